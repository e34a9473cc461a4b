//! Saved views: how people look at Business Objects. They are documents of the store, all of them also in memory.
//!
//! `content` reads what a client saves, and finds what of it does not fit the mapping. A view that no longer fits stays, and
//! is shown with warnings.
//!
//! Invariant: a change locks `writer`, commits, and replaces the view in memory before it unlocks `writer`.

mod content;
#[cfg(test)]
mod tests;

pub use content::{ViewContent, invalid_view_error, list_conditions};

use crate::catalogue::BUSINESS_OBJECTS;
use crate::mapping::{self, Mapping, Shape, Value};
use crate::namespace::moving::rebase::Rebase;
use crate::search::{find_field_path, find_search_property};
use parking_lot::{Mutex, MutexGuard, RwLock};
use penstock_base::collections;
use penstock_base::commit::{CommitCheck, CommitPart, commit};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::next_version;
use penstock_base::table::{AsJson, Row, Table};
use penstock_base::time;
use penstock_store::{Error, Format, Read, Store, Transaction};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// The views, by id.
pub(crate) const VIEWS: Table<String, AsJson<StoredView>> = Table::new(collections::VIEWS);

/// The maximum number of views. Each takes at most 4 KiB of memory.
const MAX_VIEWS: usize = 2_000;
/// The maximum number of views of an account.
const MAX_VIEWS_PER_ACCOUNT: usize = 100;
/// Who has changed a view when a namespace has moved.
const MOVED_BY: &str = "local";

/// A saved view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredView {
    /// Its id, a UUID whose order is that of the creation.
    pub id: String,
    /// The id of the account that saved it, which may have been deleted; `None` without an account.
    pub owner: Option<String>,
    /// What was saved.
    pub content: ViewContent,
    /// A number that each change raises by 1 or more.
    pub version: u64,
    /// When it was created (RFC 3339, UTC).
    pub created_at: String,
    /// When it was last changed (RFC 3339, UTC).
    pub updated_at: String,
    /// Who changed it last: the id of an account or API key, or `local`.
    pub updated_by: String,
}

/// The saved views.
#[derive(Debug)]
pub struct Views {
    store: Store,
    entries: RwLock<BTreeMap<String, Arc<StoredView>>>,
    writer: Mutex<()>,
}

/// Who changes a view.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "it has a function")]
pub struct ViewRequester<'r> {
    /// The check of the commit.
    pub check: &'r dyn CommitCheck,
    /// The id of an account or API key, or `local`.
    pub id: &'r str,
    /// Adds to the commit. It gets the view as it is afterwards, of a deletion as it was.
    pub on_commit: &'r dyn Fn(&mut Transaction<'_>, &StoredView) -> Result<(), GatewayError>,
}

impl Views {
    /// Reads all views from the store. Blocking.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn open(store: &Store) -> Result<Self, Error> {
        let rows = VIEWS.scan().read_all(&store.read())?;
        let views = rows.iter().filter_map(Row::value_or_log);
        let entries = views.map(|view| (view.id.clone(), Arc::new(view))).collect();
        Ok(Self { store: store.clone(), entries: RwLock::new(entries), writer: Mutex::default() })
    }

    /// Returns the view with this id.
    pub fn get(&self, id: &str) -> Option<Arc<StoredView>> {
        self.entries.read().get(id).cloned()
    }

    /// Lists at most `limit` views for which `is_wanted` is true, after the id `after`, in the order of their creation.
    pub fn list(
        &self,
        after: Option<&str>,
        limit: usize,
        is_wanted: impl Fn(&StoredView) -> bool,
    ) -> Vec<Arc<StoredView>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = self.entries.read();
        let views = entries.range::<str, _>((from, Bound::Unbounded)).map(|(_, view)| view);
        views.filter(|view| is_wanted(view)).take(limit).cloned().collect()
    }

    /// Begins a change. Other changes wait for its end.
    pub fn begin_change(&self) -> ViewsWriter<'_> {
        ViewsWriter { views: self, _writer: self.writer.lock() }
    }

    /// Deletes the views that only this account sees in the commit that deletes it: `delete` commits what it gets. Shared
    /// ones stay. Blocking.
    ///
    /// # Errors
    /// Those of `delete`. The views stay then.
    pub fn delete_private_of(
        &self,
        account: &str,
        delete: impl FnOnce(CommitPart<'_>) -> Result<(), GatewayError>,
    ) -> Result<(), GatewayError> {
        let _writer = self.writer.lock();
        let is_private =
            |view: &StoredView| !view.content.shared && view.owner.as_deref() == Some(account);
        let views = self.list(None, usize::MAX, is_private);
        delete(&|transaction| {
            views.iter().try_for_each(|view| Ok(VIEWS.delete(transaction, &view.id)?))
        })?;
        let mut entries = self.entries.write();
        for view in &views {
            entries.remove(&view.id);
        }
        Ok(())
    }
}

/// A change of the views. It holds the lock of changes, so what it reads stays as it is.
#[derive(Debug)]
pub struct ViewsWriter<'v> {
    views: &'v Views,
    _writer: MutexGuard<'v, ()>,
}

impl ViewsWriter<'_> {
    /// Returns the view with this id.
    pub fn get(&self, id: &str) -> Option<Arc<StoredView>> {
        self.views.get(id)
    }

    /// Creates a view of this account. Blocking.
    ///
    /// # Errors
    /// `ErrorClass::Conflict` when a limit is reached.
    pub fn create(
        &self,
        by: ViewRequester<'_>,
        owner: Option<&str>,
        content: ViewContent,
    ) -> Result<Arc<StoredView>, GatewayError> {
        let is_own = |view: &StoredView| owner.is_some() && view.owner.as_deref() == owner;
        let limit_error = |detail| Err(GatewayError::new(ErrorClass::Conflict, detail));
        if self.views.entries.read().len() >= MAX_VIEWS {
            return limit_error(format!("the limit of {MAX_VIEWS} views is reached; delete some"));
        }
        if self.views.list(None, usize::MAX, is_own).len() >= MAX_VIEWS_PER_ACCOUNT {
            return limit_error(format!(
                "this account has reached its limit of {MAX_VIEWS_PER_ACCOUNT} views; delete some"
            ));
        }
        let now = time::now_rfc3339();
        self.put(
            by,
            StoredView {
                id: uuid::Uuid::now_v7().to_string(),
                owner: owner.map(str::to_owned),
                content,
                version: 0,
                created_at: now.clone(),
                updated_at: now,
                updated_by: by.id.to_owned(),
            },
        )
    }

    /// Replaces the content of a view. The same content changes nothing: version and `updated_at` stay. Blocking.
    ///
    /// # Errors
    /// The errors of the check and of the store.
    pub fn replace(
        &self,
        by: ViewRequester<'_>,
        view: &Arc<StoredView>,
        content: ViewContent,
    ) -> Result<Arc<StoredView>, GatewayError> {
        if view.content == content {
            return Ok(view.clone());
        }
        self.put(
            by,
            StoredView {
                content,
                updated_at: time::now_rfc3339(),
                updated_by: by.id.to_owned(),
                ..(**view).clone()
            },
        )
    }

    /// Deletes a view. Blocking.
    ///
    /// # Errors
    /// The errors of the check and of the store.
    pub fn delete(&self, by: ViewRequester<'_>, view: &StoredView) -> Result<(), GatewayError> {
        commit::<_, GatewayError>(&self.views.store, by.check, |transaction| {
            VIEWS.delete(transaction, &view.id)?;
            (by.on_commit)(transaction, view)
        })?;
        self.views.entries.write().remove(&view.id);
        Ok(())
    }

    /// Stores a view as its next version.
    fn put(
        &self,
        by: ViewRequester<'_>,
        mut view: StoredView,
    ) -> Result<Arc<StoredView>, GatewayError> {
        commit::<_, GatewayError>(&self.views.store, by.check, |transaction| {
            // An older version would not know them.
            transaction.require_format(Format::V4);
            view.version = next_version(transaction, Some(view.version))?;
            VIEWS.put(transaction, &view.id, &view)?;
            (by.on_commit)(transaction, &view)
        })?;
        let view = Arc::new(view);
        self.views.entries.write().insert(view.id.clone(), view.clone());
        Ok(view)
    }
}

/// The part of a stored definition that says which fields hold IRIs.
#[derive(Serialize, Deserialize)]
struct DefinitionPart {
    object: ConfigPart,
}

#[derive(Serialize, Deserialize)]
struct ConfigPart {
    config: String,
}

/// Rewrites the IRIs that fields with IRIs are compared with. Texts stay, as stored ones do. Returns whether this changes
/// the view.
pub(crate) fn rewrite_view(
    transaction: &mut Transaction<'_>,
    rebase: &Rebase,
    row: &Row<String, AsJson<StoredView>>,
) -> Result<bool, GatewayError> {
    let Some(mut view) = row.value_or_log() else { return Ok(false) };
    let filters = &mut view.content.filters;
    if !filters.iter().any(|filter| rebase.rewrite(&filter.value).is_some()) {
        return Ok(false);
    }
    let Some(mapping) = read_mapping(transaction, &view.content.business_object)? else {
        return Ok(false);
    };
    let mut is_changed = false;
    for filter in filters {
        if holds_iris(&mapping.root, &filter.field)
            && let Some(iri) = rebase.rewrite(&filter.value)
        {
            filter.value = iri;
            is_changed = true;
        }
    }
    if is_changed {
        view.version = next_version(transaction, Some(view.version))?;
        view.updated_at = time::now_rfc3339();
        MOVED_BY.clone_into(&mut view.updated_by);
        VIEWS.put(transaction, &view.id, &view)?;
    }
    Ok(is_changed)
}

/// Returns the mapping of a Business Object. `None` if it was deleted, or if its mapping does not compile: then no filter
/// fits.
fn read_mapping(read: &dyn Read, business_object: &str) -> Result<Option<Mapping>, GatewayError> {
    let part =
        BUSINESS_OBJECTS.with_values::<AsJson<DefinitionPart>>().get(read, business_object)?;
    Ok(part.and_then(|part| mapping::compile(&part.object.config).ok()))
}

/// Returns whether values of a field are IRIs, also if the view shows codes for some of them.
fn holds_iris(shape: &Shape, field: &str) -> bool {
    match find_search_property(shape, field) {
        Some(property) => matches!(property.value, Value::Resource | Value::Object(_)),
        // The URI of an object has no property.
        None => find_field_path(shape, field).is_ok(),
    }
}
