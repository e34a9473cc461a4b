//! Creates the index of the keys that definitions add, and removes the entries of keys that none has any more.
use super::NaturalKey;
use super::agreement::read_stored_keys;
use super::build::KeyBuild;
use super::definition::{collect_keys, merge_key};
use super::index::{ENTRIES, remove_entries};
use crate::catalogue::entry::list_stored;
use crate::change_feed::Watch;
use crate::mapping::Mapping;
use crate::namespace;
use penstock_base::commit::{CommitCheck, NoClient, commit};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::{Read, Store, Transaction};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The builds of the definitions of one commit. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct KeyBuilds<'w> {
    builds: Vec<Arc<KeyBuild>>,
    watch: &'w Watch,
}

impl KeyBuilds<'_> {
    /// Checks, in the commit of the definition, that the index of every key of its mapping is complete, and that every
    /// object has its own key.
    ///
    /// # Errors
    /// As [`Self::check_indexed`] and [`Self::verify_keys`].
    pub(crate) fn verify(
        &self,
        transaction: &Transaction<'_>,
        mapping: &Mapping,
    ) -> Result<(), GatewayError> {
        let keys = collect_keys(transaction, mapping)?;
        if keys.is_empty() {
            return Ok(());
        }
        let known = read_stored_keys(transaction, &keys)?;
        self.check_indexed(transaction, &known, &keys)?;
        self.verify_keys(transaction, &keys, &mut BTreeSet::new())
    }

    /// Checks that the index of each of these keys is complete, or is that of a namespace without objects. `known` are those of
    /// the definitions before the commit. A namespace that this commit creates may have got objects from an RDF document.
    ///
    /// # Errors
    /// `ErrorClass::Conflict`
    pub(crate) fn check_indexed(
        &self,
        read: &dyn Read,
        known: &[NaturalKey],
        keys: &[NaturalKey],
    ) -> Result<(), GatewayError> {
        for key in keys {
            let mut indexed = known.iter().chain(self.builds.iter().map(|build| &build.key));
            if !indexed.any(|indexed| key.is_part_of(indexed))
                && namespace::has_data(read, &key.namespace)?
            {
                let name = &key.namespace.name;
                return Err(GatewayError::new(
                    ErrorClass::Conflict,
                    format!(
                        "the graph of the namespace {name:?} got objects meanwhile, which need an index of the key; send the \
                         definition again"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Checks that every object has its own key, of each of these keys that is being added. `checked` has the names of the
    /// namespaces that were checked before, so that several definitions with one key do not repeat its check.
    ///
    /// # Errors
    /// `ErrorClass::Conflict` with the number of objects without a key, and the first ten.
    pub(crate) fn verify_keys(
        &self,
        read: &dyn Read,
        keys: &[NaturalKey],
        checked: &mut BTreeSet<String>,
    ) -> Result<(), GatewayError> {
        for key in keys {
            let build = self.builds.iter().find(|build| key.is_part_of(&build.key));
            if let Some(build) = build
                && checked.insert(key.namespace.name.clone())
            {
                build.verify(read)?;
            }
        }
        Ok(())
    }
}

impl Drop for KeyBuilds<'_> {
    fn drop(&mut self) {
        if !self.builds.is_empty() {
            self.watch.end_key_builds(&self.builds);
            // If the definition was not stored, the exporter removes the entries.
            self.watch.wake();
        }
    }
}

/// Creates the index of all keys again, after the URIs of their objects changed. Nothing else may use the store. Blocking.
pub(crate) fn rebuild_index(store: &Store) -> Result<(), GatewayError> {
    remove_entries(store, b"", &|_| Ok(false))?;
    let mut keys = Vec::new();
    {
        let read = store.read();
        for (_, compiled) in list_stored(&read)? {
            if let Some(compiled) = compiled {
                for key in collect_keys(&read, &compiled.mapping)? {
                    merge_key(&mut keys, key);
                }
            }
        }
    }
    for key in keys {
        key.add_objects(store, &NoClient, |_, _| Ok(true))?;
    }
    Ok(())
}

/// Creates the index of each of these keys that no stored definition has yet. Blocking. It takes effect with a commit that
/// calls [`KeyBuilds::verify`]. Without one, its entries are removed later.
///
/// # Errors
/// The errors of the store, and those of `check`, which each commit runs.
pub(crate) fn build_index<'w>(
    store: &Store,
    check: &dyn CommitCheck,
    watch: &'w Watch,
    keys: Vec<NaturalKey>,
) -> Result<KeyBuilds<'w>, GatewayError> {
    if keys.is_empty() {
        return Ok(KeyBuilds { builds: Vec::new(), watch });
    }
    let known = read_stored_keys(&store.read(), &keys)?;
    let is_new = |key: &NaturalKey| !known.iter().any(|known| key.is_part_of(known));
    let build = |key| Arc::new(KeyBuild::new(key));
    let builds = KeyBuilds { builds: keys.into_iter().filter(is_new).map(build).collect(), watch };
    if builds.builds.is_empty() {
        return Ok(builds);
    }
    // Registered within a commit: the commits before it are visible to the pages, and those after it update the index.
    commit::<_, GatewayError>(store, check, |_| {
        watch.begin_key_builds(&builds.builds);
        Ok(())
    })?;
    for build in &builds.builds {
        build.add_objects(store, check)?;
    }
    Ok(builds)
}

/// Removes the entries of keys that no definition has any more and for which none is being created, in small commits.
/// Blocking.
pub(crate) fn remove_unused_entries(store: &Store, watch: &Watch) -> Result<(), GatewayError> {
    let mut after = Vec::new();
    loop {
        let row = ENTRIES.scan().after_bytes(after).first(&store.read())?;
        let Some(row) = row else { return Ok(()) };
        let Some((digest, ..)) = row.key_or_log() else {
            after = row.key_bytes().to_vec();
            continue;
        };
        remove_entries(store, &digest, &|transaction| watch.uses_key_digest(transaction, &digest))?;
        // No entry of the digest sorts after this.
        after = [digest.as_slice(), &[u8::MAX; 32]].concat();
    }
}
