//! All namespaces in memory, in the orders in which pages, checks and warnings look for them.
//!
//! Each change of a namespace by the gateway stores, in its commit, a new number of the namespaces and the name of what
//! changed. So what is in memory never differs from the store, and a change is read without the other namespaces.
use super::{MAX_BASE_BYTES, Namespace, get, list};
use oxrdf::NamedNodeRef;
use parking_lot::Mutex;
use penstock_base::collections;
use penstock_base::table::{AsJson, Table};
use penstock_store::{Error, Read, Transaction};
use rand::Rng as _;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// The last changes of namespaces: pairs of a number and a name.
const CHANGES: Table<(), AsJson<Vec<(u64, String)>>> = Table::new(collections::NAMESPACE_CHANGES);

/// The number of changes that are stored. After more, all namespaces are read again.
const MAX_CHANGES: usize = 32;

/// All namespaces that a reader or a transaction sees.
#[derive(Debug, Clone, Default)]
pub struct KnownNamespaces {
    by_name: BTreeMap<String, Namespace>,
    /// The beginning of the identifiers of each, with its name.
    by_prefix: BTreeSet<(String, String)>,
}

/// The namespaces whose bases overlap with that of another one, ordered by name.
#[derive(Debug, Default)]
pub(crate) struct Overlaps<'k> {
    /// Those whose base begins with its base.
    pub(crate) inside: Vec<&'k Namespace>,
    /// Those whose base is a prefix of its base.
    pub(crate) around: Vec<&'k Namespace>,
}

impl KnownNamespaces {
    /// Creates the orders of these namespaces.
    pub fn new(all: Vec<Namespace>) -> Self {
        let mut known = Self::default();
        for namespace in all {
            known.insert(namespace);
        }
        known
    }

    /// Reads all namespaces.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn read(read: &dyn Read) -> Result<Self, Error> {
        list(read, None, usize::MAX).map(Self::new)
    }

    /// Returns the number of namespaces.
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Iterates over all namespaces, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = &Namespace> {
        self.by_name.values()
    }

    /// Iterates over the namespaces after the name `after`, ordered by name.
    pub fn iter_after(&self, after: Option<&str>) -> impl Iterator<Item = &Namespace> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_name.range::<str, _>((from, Bound::Unbounded)).map(|(_, namespace)| namespace)
    }

    /// Returns the namespace with this name.
    pub fn get(&self, name: &str) -> Option<&Namespace> {
        self.by_name.get(name)
    }

    /// Returns another namespace that mints the identifiers of this one.
    pub(super) fn find_same_base(&self, of: &Namespace) -> Option<&Namespace> {
        let prefix = of.identifier_prefix();
        self.find_by_prefix(&prefix).find(|other| other.name != of.name)
    }

    /// Returns which other namespaces overlap with this one, except those of these names.
    pub(crate) fn find_overlaps(&self, of: &Namespace, except: &[&str]) -> Overlaps<'_> {
        let start = of.identifier_prefix();
        let inside = self.iter_from_prefix(&start);
        let inside = inside.take_while(|(prefix, _)| prefix.starts_with(&start));
        // Every beginning of identifiers ends with a separator.
        let separators = start.match_indices(['/', '#', ':']);
        let ends = separators.map(|(at, separator)| at + separator.len());
        let shorter = ends.filter(|end| *end < start.len()).filter_map(|end| start.get(..end));
        let around = shorter.flat_map(|shorter| {
            self.iter_from_prefix(shorter).take_while(move |(prefix, _)| prefix == shorter)
        });
        let select = |names: BTreeSet<&String>| -> Vec<&Namespace> {
            let is_other = |name: &&String| **name != of.name && !except.contains(&name.as_str());
            names.into_iter().filter(is_other).filter_map(|name| self.get(name)).collect()
        };
        Overlaps {
            inside: select(inside.map(|(_, name)| name).collect()),
            around: select(around.map(|(_, name)| name).collect()),
        }
    }

    /// Returns the namespace that a URI lies in. If the bases of several contain it, it is the one with the longest.
    pub(crate) fn find_containing(&self, uri: NamedNodeRef<'_>) -> Option<&Namespace> {
        let text = uri.as_str();
        let separators = text.match_indices(['/', '#', ':']);
        let ends = separators.map(|(at, separator)| at + separator.len());
        let prefixes: Vec<&str> = ends.filter_map(|end| text.get(..end)).collect();
        // A base can be the URI itself, without the separator that identifiers have.
        let whole = format!("{text}/");
        std::iter::once(whole.as_str())
            .chain(prefixes.into_iter().rev())
            .filter(|prefix| prefix.len() <= MAX_BASE_BYTES + 1)
            .find_map(|prefix| self.find_by_prefix(prefix).find(|found| found.contains(uri)))
    }

    /// Returns the namespace with this base.
    pub(crate) fn find_by_base(&self, base: &str) -> Option<&Namespace> {
        let prefixes = [base.to_owned(), format!("{base}/")];
        prefixes
            .iter()
            .find_map(|prefix| self.find_by_prefix(prefix).find(|found| found.uri_base == base))
    }

    fn find_by_prefix(&self, prefix: &str) -> impl Iterator<Item = &Namespace> {
        let found = self.iter_from_prefix(prefix).take_while(move |(other, _)| other == prefix);
        found.filter_map(|(_, name)| self.get(name))
    }

    /// Iterates over the beginnings of identifiers from this one on.
    fn iter_from_prefix(&self, prefix: &str) -> impl Iterator<Item = &(String, String)> {
        self.by_prefix.range((prefix.to_owned(), String::new())..)
    }

    fn insert(&mut self, namespace: Namespace) {
        self.remove(&namespace.name);
        self.by_prefix.insert((namespace.identifier_prefix(), namespace.name.clone()));
        self.by_name.insert(namespace.name.clone(), namespace);
    }

    fn remove(&mut self, name: &str) {
        if let Some(namespace) = self.by_name.remove(name) {
            self.by_prefix.remove(&(namespace.identifier_prefix(), namespace.name));
        }
    }
}

/// The namespaces as they were last read, with their number.
#[derive(Debug, Default)]
pub(crate) struct NamespaceCache(Mutex<Option<(u64, Arc<KnownNamespaces>)>>);

impl NamespaceCache {
    /// Returns the namespaces that a reader or a transaction sees.
    pub(crate) fn current(&self, read: &dyn Read) -> Result<Arc<KnownNamespaces>, Error> {
        let changes = read_changes(read)?;
        let number = changes.last().map_or(0, |(number, _)| *number);
        let mut cached = self.0.lock();
        let outdated = match &*cached {
            Some((of, known)) if *of == number => return Ok(Arc::clone(known)),
            _ => cached.take(),
        };
        // Nothing is read under the lock: a snapshot may wait there for a commit, the commit for a reader, and the reader for
        // the lock.
        drop(cached);
        let known = match outdated {
            Some((of, mut known))
                if let Some(place) = changes.iter().position(|(n, _)| *n == of) =>
            {
                let changed = Arc::make_mut(&mut known);
                for (_, name) in changes.iter().skip(place + 1) {
                    match get(read, name)? {
                        Some(namespace) => changed.insert(namespace),
                        None => changed.remove(name),
                    }
                }
                known
            }
            _ => Arc::new(KnownNamespaces::read(read)?),
        };
        *self.0.lock() = Some((number, Arc::clone(&known)));
        Ok(known)
    }
}

/// Reads the last changes, the newest at the end. There are none before the first one.
fn read_changes(read: &dyn Read) -> Result<Vec<(u64, String)>, Error> {
    Ok(CHANGES.get_readable(read, ())?.unwrap_or_default())
}

/// Stores that a namespace changes in this commit. The number is random and not the next one: that of a commit that failed
/// may still be in memory, and no other commit must get it.
pub(super) fn record_change(transaction: &mut Transaction<'_>, name: &str) -> Result<(), Error> {
    let mut changes = read_changes(transaction)?;
    changes.push((rand::rng().random_range(1..=u64::MAX), name.to_owned()));
    changes.drain(..changes.len().saturating_sub(MAX_CHANGES));
    CHANGES.put(transaction, (), &changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::delete;
    use crate::testing::{open_store, put_namespace};
    use oxrdf::{NamedNode, Quad};
    use penstock_base::error::GatewayError;
    use penstock_resources::namespace::Generator;
    use penstock_store::{
        Document, DocumentRange, Pattern, Snapshot, SubjectFilter, ValueRange, VisitValue,
    };
    use std::ops::ControlFlow;

    const BASES: &[&str] = &[
        "http://e/",
        "http://e/a",
        "http://e/a/b/",
        "http://e/a#",
        "http://e/ab/",
        "http://e/b/c",
        "http://e/b/c/d#",
        "urn:e:",
        "urn:e:a:",
        "urn:e",
    ];

    fn known() -> KnownNamespaces {
        // Their names are in another order than their bases.
        let one = |(index, base): (usize, &&str)| Namespace {
            name: format!("N{}", (index * 7) % BASES.len()),
            uri_base: (*base).to_owned(),
            generator: Generator::Uuid,
            created_at: String::new(),
        };
        KnownNamespaces::new(BASES.iter().enumerate().map(one).collect())
    }

    #[test]
    fn overlaps_are_those_of_all_pairs() {
        let known = known();
        let mut count = 0;
        for of in known.iter() {
            for except in [&[][..], &["N0", "N4"]] {
                let others = || {
                    let is_excepted = |name: &str| name == of.name || except.contains(&name);
                    known.iter().filter(move |other| !is_excepted(&other.name))
                };
                let start = of.identifier_prefix();
                let starts_with =
                    |one: &str, other: &str| one.len() > other.len() && one.starts_with(other);
                let inside =
                    others().filter(|other| starts_with(&other.identifier_prefix(), &start));
                let around =
                    others().filter(|other| starts_with(&start, &other.identifier_prefix()));
                let found = known.find_overlaps(of, except);
                assert_eq!(found.inside, inside.collect::<Vec<_>>(), "{start}");
                assert_eq!(found.around, around.collect::<Vec<_>>(), "{start}");
                count += found.inside.len() + found.around.len();
            }
        }
        assert!(count > BASES.len(), "only {count} overlaps were compared");
    }

    #[test]
    fn the_longest_base_that_contains_a_uri_is_found() {
        let known = known();
        let uris = [
            "http://e/a",
            "http://e/a/",
            "http://e/a/b",
            "http://e/a/b/c/d",
            "http://e/a#x",
            "http://e/ab",
            "http://e/ab/",
            "http://e/b/c/d",
            "http://e/b/c/d#",
            "http://e/b/c/d#e",
            "http://e",
            "http://e/",
            "http://f/",
            "urn:e",
            "urn:e/x",
            "urn:e:",
            "urn:e:x",
            "urn:e:a:b:c",
            "urn:ex",
        ];
        let mut count = 0;
        for uri in uris {
            let uri = NamedNodeRef::new_unchecked(uri);
            let containing = known.iter().filter(|one| one.contains(uri));
            let longest = containing.max_by_key(|one| one.uri_base.len());
            assert_eq!(known.find_containing(uri), longest, "{uri}");
            count += usize::from(longest.is_some());
            let equal = known.iter().find(|one| one.uri_base == uri.as_str());
            assert_eq!(known.find_by_base(uri.as_str()), equal, "{uri}");
        }
        assert!(count > 10, "{count}");
    }

    #[test]
    fn pages_are_parts_of_the_sorted_whole() {
        let known = known();
        let names = |page: Vec<&Namespace>| -> Vec<String> {
            page.into_iter().map(|one| one.name.clone()).collect()
        };
        let all = names(known.iter().collect());
        assert!(all.is_sorted() && all.len() == BASES.len());
        assert_eq!(names(known.iter_after(None).take(3).collect()), all[..3]);
        for (index, after) in all.iter().enumerate() {
            assert_eq!(known.get(after).unwrap().name, *after);
            assert_eq!(names(known.iter_after(Some(after)).collect()), all[index + 1..]);
        }
        assert_eq!(names(known.iter_after(Some("N35")).collect()), all[4..]);
        assert_eq!(known.get("N35"), None);
    }

    #[test]
    fn what_is_in_memory_follows_each_change() {
        let (_dir, store) = open_store();
        let cache = NamespaceCache::default();
        let bases = || -> Vec<(String, String)> {
            let known = cache.current(&store.read()).unwrap();
            known.iter().map(|one| (one.name.clone(), one.uri_base.clone())).collect()
        };
        let pair = |name: &str, base: &str| (name.to_owned(), base.to_owned());
        assert_eq!(bases(), []);
        put_namespace(&store, "Pump", "urn:pump:", Generator::Uuid);
        assert_eq!(bases(), [pair("Pump", "urn:pump:")]);
        put_namespace(&store, "Pump", "urn:other:", Generator::Uuid);
        put_namespace(&store, "Line", "urn:line:", Generator::Uuid);
        assert_eq!(bases(), [pair("Line", "urn:line:"), pair("Pump", "urn:other:")]);

        // Other commits, and commits that fail, change nothing.
        let before = cache.current(&store.read()).unwrap();
        store.transact::<_, Error>(|t| t.put_document("other", b"", b"")).unwrap();
        let failed = store.transact::<(), GatewayError>(|t| {
            delete(t, "Pump")?;
            delete(t, "None")
        });
        assert!(failed.is_err());
        assert!(Arc::ptr_eq(&before, &cache.current(&store.read()).unwrap()));

        // A transaction sees its own changes. If it fails, nobody else does.
        let failed = store.transact::<(), GatewayError>(|t| {
            delete(t, "Pump")?;
            assert_eq!(cache.current(t)?.iter().count(), 1);
            delete(t, "None")
        });
        assert!(failed.is_err());
        assert_eq!(bases(), [pair("Line", "urn:line:"), pair("Pump", "urn:other:")]);
        store.transact(|t| delete(t, "Pump")).unwrap();
        assert_eq!(bases(), [pair("Line", "urn:line:")]);

        // With more changes than are stored, all are read again.
        for count in [MAX_CHANGES - 1, MAX_CHANGES, MAX_CHANGES + 1] {
            let names: Vec<_> = (0..count).map(|index| format!("{count}-{index}")).collect();
            for name in &names {
                put_namespace(&store, name, &format!("urn:{name}:"), Generator::Uuid);
            }
            let stored = list(&store.read(), None, usize::MAX).unwrap();
            assert_eq!(
                cache.current(&store.read()).unwrap().iter().cloned().collect::<Vec<_>>(),
                stored
            );
        }
    }

    /// A snapshot that fails to read documents while the cache is locked.
    struct UnlockedSnapshot<'c> {
        cache: &'c NamespaceCache,
        snapshot: Snapshot,
    }

    impl Read for UnlockedSnapshot<'_> {
        fn for_each(
            &self,
            pattern: &Pattern,
            visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
        ) -> Result<(), Error> {
            self.snapshot.for_each(pattern, visit)
        }

        fn list_subjects(
            &self,
            filter: &SubjectFilter,
            after: Option<&str>,
            limit: usize,
        ) -> Result<Vec<NamedNode>, Error> {
            self.snapshot.list_subjects(filter, after, limit)
        }

        fn read_document(&self, collection: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
            assert!(!self.cache.0.is_locked());
            self.snapshot.read_document(collection, key)
        }

        fn read_documents(
            &self,
            collection: &str,
            range: DocumentRange<'_>,
        ) -> Result<Vec<Document>, Error> {
            assert!(!self.cache.0.is_locked());
            self.snapshot.read_documents(collection, range)
        }

        fn visit_values(
            &self,
            property: NamedNodeRef<'_>,
            range: &ValueRange,
            reverse: bool,
            visit: &mut VisitValue<'_>,
        ) -> Result<bool, Error> {
            self.snapshot.visit_values(property, range, reverse, visit)
        }

        fn estimate_values(
            &self,
            property: NamedNodeRef<'_>,
            range: &ValueRange,
        ) -> Result<Option<u64>, Error> {
            self.snapshot.estimate_values(property, range)
        }
    }

    #[test]
    fn nothing_is_read_under_the_lock() {
        let (_dir, store) = open_store();
        let cache = NamespaceCache::default();
        let count = || {
            let snapshot = store.snapshot().unwrap();
            let read = UnlockedSnapshot { cache: &cache, snapshot };
            cache.current(&read).unwrap().iter().count()
        };
        put_namespace(&store, "Pump", "urn:pump:", Generator::Uuid);
        assert_eq!(count(), 1, "all are read");
        put_namespace(&store, "Line", "urn:line:", Generator::Uuid);
        assert_eq!(count(), 2, "only the change is read");
        assert_eq!(count(), 2);
    }
}
