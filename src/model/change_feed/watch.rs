//! What the stored definitions say about a change of the graph, and the notification of the exporter.
use super::cursor::is_watched;
use super::holders::HolderLinks;
use super::watched_number::read_watched_number;
use crate::catalogue::entry::{list_named_namespaces, list_stored};
use crate::namespace::NamespaceCache;
use crate::natural_key::{self, KeyBuild, NaturalKey};
use crate::protection::touched::Protection;
use crate::resource::{BusinessObject, Compiled};
use crate::shapes_graphs::CompiledGraphs;
use crate::{members, namespace};
use oxrdf::NamedNode;
use parking_lot::{Mutex, MutexGuard, RwLock};
use penstock_base::clock::{Clock, Stamp};
use penstock_base::error::GatewayError;
use penstock_base::principal::Principal;
use penstock_base::shared::Shared;
use penstock_store::{Read, SubjectFilter};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::Notify;

/// The watched Business Objects. Cheap to clone.
#[derive(Clone)]
pub struct Watch {
    inner: Shared<Inner>,
    /// Returns monotonic milliseconds.
    elapsed: Arc<dyn Fn() -> u64 + Send + Sync>,
    clock: Option<Clock>,
    max_holders: usize,
}

/// The maximum number of objects that one change is recorded for. If more objects hold a changed object nested, they
/// are not recorded one by one, because all of them would be in memory and in the frame of the commit.
const MAX_HOLDERS: usize = 10_000;

#[derive(Debug, Default)]
struct Inner {
    /// The number of the definitions in the store, and what they say.
    definitions: RwLock<Option<(u64, Arc<WatchedDefinitions>)>>,
    /// The natural keys whose index is being created.
    key_builds: RwLock<Vec<Arc<KeyBuild>>>,
    marks: Mutex<HashMap<String, ChangeMark>>,
    marked: Notify,
    version: AtomicU64,
    /// The ids of the Business Objects whose objects this process has begun to delete.
    closed: RwLock<HashSet<String>>,
    namespaces: NamespaceCache,
}

/// What the stored definitions say about a change of the graph.
#[derive(Debug, Default)]
pub(crate) struct WatchedDefinitions {
    /// The Business Objects for which changes are recorded.
    pub(super) views: Vec<WatchedView>,
    /// The natural keys, each namespace once.
    pub(crate) keys: Vec<NaturalKey>,
    /// Whether a definition cannot be compiled, so that its keys are unknown.
    has_unknown_keys: bool,
    /// The filters of the members of the Business Objects. If this version of the gateway cannot determine the members
    /// of one, they are the filters of all objects that may be members or nested in one.
    pub(crate) members: Vec<SubjectFilter>,
    /// What protects the members of the Business Objects that have shapes.
    pub(crate) protections: Vec<Protection>,
    /// The shapes graphs of the protections.
    graphs: CompiledGraphs,
    /// The version of each Business Object, by its id.
    versions: HashMap<String, u64>,
    /// Who approves changes of each Business Object, by its id.
    approvers: HashMap<String, Vec<Principal>>,
}

/// Marks a Business Object whose objects changed since its last export on change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeMark {
    /// The time of the first change.
    pub first: Instant,
    /// The time of the last change.
    pub last: Instant,
}

/// The parts of a watched Business Object that decide which changes concern it.
#[derive(Debug)]
pub(super) struct WatchedView {
    pub(super) id: String,
    pub(super) exports_on_change: bool,
    pub(super) keeps_ages: bool,
    pub(super) links: HolderLinks,
    /// The filter that the members satisfy; `None` if this version of the gateway cannot determine them.
    filter: Option<SubjectFilter>,
}

impl Watch {
    /// Creates an empty watch. `elapsed` returns monotonic milliseconds that continue after a restart.
    pub fn new(elapsed: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        let elapsed = Arc::new(elapsed);
        Self { inner: Shared::default(), elapsed, clock: None, max_holders: MAX_HOLDERS }
    }

    /// Returns the namespaces in memory.
    pub(crate) fn namespaces(&self) -> &NamespaceCache {
        &self.inner.namespaces
    }

    /// Creates a watch that uses this clock.
    pub fn with_clock(clock: Clock) -> Self {
        let ages = clock.clone();
        Self { clock: Some(clock), ..Self::new(move || ages.elapsed()) }
    }

    /// Replaces the maximum number of objects that one change is recorded for.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn with_max_holders(self, most_holders: usize) -> Self {
        Self { max_holders: most_holders, ..self }
    }

    /// Returns the maximum number of holders that one change is recorded for.
    pub(super) fn max_holders(&self) -> usize {
        self.max_holders
    }

    /// Waits until something is marked.
    pub async fn wait_for_mark(&self) {
        self.inner.marked.notified().await;
    }

    /// Records that definitions changed, and wakes the task in [`Self::wait_for_mark`].
    pub fn wake(&self) {
        self.inner.version.fetch_add(1, Ordering::AcqRel);
        self.inner.marked.notify_one();
    }

    /// Returns how often definitions have changed.
    pub fn version(&self) -> u64 {
        self.inner.version.load(Ordering::Acquire)
    }

    /// Returns the mark of a Business Object, if it has one.
    pub fn find_mark(&self, id: &str) -> Option<ChangeMark> {
        self.lock_marks().get(id).copied()
    }

    /// Removes a mark; later changes set it again. A caller that then reads the changes in its own commit misses
    /// none, because a mark is set within the commit of the change.
    pub fn unmark(&self, id: &str) {
        self.lock_marks().remove(id);
    }

    /// Marks a Business Object if it has no mark.
    pub fn mark_unless_marked(&self, id: &str) {
        let now = Instant::now();
        self.lock_marks().entry(id.to_owned()).or_insert(ChangeMark { first: now, last: now });
    }

    fn lock_marks(&self) -> MutexGuard<'_, HashMap<String, ChangeMark>> {
        self.inner.marks.lock()
    }

    /// Marks a Business Object with a changed object.
    pub fn mark(&self, id: &str) {
        let now = Instant::now();
        let mut marks = self.lock_marks();
        if let Some(mark) = marks.get_mut(id) {
            mark.last = now;
        } else {
            marks.insert(id.to_owned(), ChangeMark { first: now, last: now });
        }
        drop(marks);
        self.inner.marked.notify_one();
    }

    /// Closes a Business Object, before its objects are deleted: no commit after this adds objects to it or queues an
    /// export of it.
    pub(crate) fn close(&self, id: &str) {
        let mut closed = self.inner.closed.write();
        closed.insert(id.to_owned());
    }

    /// Checks that a Business Object is neither being deleted nor closed. A request may have read its definition before.
    /// The caller is inside the transaction that stores the objects or queues the export: it either ends before the
    /// first object is deleted, or sees here that the Business Object is closed.
    ///
    /// # Errors
    /// `ErrorClass::Conflict`.
    pub fn check_not_closed(&self, object: &BusinessObject) -> Result<(), GatewayError> {
        let closed = self.inner.closed.read();
        if object.deleting.is_some() || closed.contains(&object.id) {
            Err(object.being_deleted_error())
        } else {
            Ok(())
        }
    }

    /// Returns the monotonic milliseconds in which ages are counted.
    pub fn elapsed(&self) -> u64 {
        (self.elapsed)()
    }

    /// Returns a timestamp for ordered records, which never goes back ([`Clock::stamp`]).
    pub fn stamp(&self) -> Stamp {
        self.clock.as_ref().map_or_else(Stamp::of_system, Clock::stamp)
    }

    /// Returns the current time ([`Clock::now`]).
    pub fn now(&self) -> jiff::Timestamp {
        self.clock.as_ref().map_or_else(jiff::Timestamp::now, Clock::now)
    }

    /// Returns the definitions as `read` sees them, in a transaction with its own changes. A stored definition counts,
    /// even if the catalogue does not have it in memory yet.
    pub(crate) fn current_definitions(
        &self,
        read: &dyn Read,
    ) -> Result<Arc<WatchedDefinitions>, GatewayError> {
        let number = read_watched_number(read)?;
        let known = self.inner.definitions.read();
        if let Some((_, definitions)) = known.as_ref().filter(|(known, _)| *known == number) {
            return Ok(Arc::clone(definitions));
        }
        let earlier = known.as_ref().map(|(_, definitions)| Arc::clone(definitions));
        drop(known);
        let current = Arc::new(WatchedDefinitions::read(read, &earlier.unwrap_or_default())?);
        *self.inner.definitions.write() = Some((number, Arc::clone(&current)));
        Ok(current)
    }

    /// Lets all commits update the index of these keys.
    pub(crate) fn begin_key_builds(&self, builds: &[Arc<KeyBuild>]) {
        let mut all = self.inner.key_builds.write();
        all.extend(builds.iter().cloned());
    }

    /// Ends what [`Self::begin_key_builds`] began.
    pub(crate) fn end_key_builds(&self, builds: &[Arc<KeyBuild>]) {
        let mut all = self.inner.key_builds.write();
        all.retain(|build| !builds.iter().any(|ended| Arc::ptr_eq(ended, build)));
    }

    /// Returns whether entries of the index that begin with this digest are used, or may be: a definition has their key, or
    /// cannot be compiled, or the index of their key is being created.
    pub(crate) fn uses_key_digest(
        &self,
        read: &dyn Read,
        digest: &[u8],
    ) -> Result<bool, GatewayError> {
        let definitions = self.current_definitions(read)?;
        Ok(definitions.has_unknown_keys
            || definitions.keys.iter().any(|key| key.has_digest(digest))
            || self.key_builds().iter().any(|build| build.has_digest(digest)))
    }

    /// Returns the natural keys whose index is being created.
    pub(super) fn key_builds(&self) -> Vec<Arc<KeyBuild>> {
        self.inner.key_builds.read().clone()
    }
}

impl WatchedDefinitions {
    /// Reads the stored definitions. What is compiled in the earlier ones is not compiled again.
    fn read(read: &dyn Read, earlier: &Self) -> Result<Self, GatewayError> {
        let mut definitions = Self::default();
        for (object, compiled) in list_stored(read)? {
            let mut filter = None;
            definitions.has_unknown_keys |= compiled.is_none();
            if let Some(compiled) = &compiled {
                for key in natural_key::collect_keys(read, &compiled.mapping)? {
                    natural_key::merge_key(&mut definitions.keys, key);
                }
                if namespace::get(read, &compiled.mapping.root.namespace)?.is_some() {
                    filter = Some(members::build_member_filter(read, compiled)?);
                }
            }
            let members = if let Some(filter) = &filter {
                vec![filter.clone()]
            } else {
                let named = list_named_namespaces(read, &object.id)?;
                members::build_possible_filters(read, &object.definition, &named)?
            };
            let known = compiled.as_ref().filter(|_| filter.is_some());
            let graphs = &mut definitions.graphs;
            let protection = Protection::new(&object, known, &members, &mut |name| {
                graphs.read(read, name, &earlier.graphs).map(|(_, graph)| graph)
            });
            definitions.protections.extend(protection);
            if is_watched(&object) {
                definitions.views.push(WatchedView::new(&object, compiled.as_ref(), filter));
            }
            definitions.members.extend(members);
            definitions.versions.insert(object.id.clone(), object.version);
            let approvers = object.definition.approvers.unwrap_or_default();
            definitions.approvers.insert(object.id, approvers);
        }
        Ok(definitions)
    }

    /// Returns who approves changes of a Business Object; `None` if it is not stored. None are the Admins.
    pub(crate) fn approvers_of(&self, id: &str) -> Option<&[Principal]> {
        self.approvers.get(id).map(Vec::as_slice)
    }

    /// Returns the version of a Business Object; `None` if it is not stored.
    pub(crate) fn version_of(&self, id: &str) -> Option<u64> {
        self.versions.get(id).copied()
    }
}

impl Default for Watch {
    /// Counts from the start of the process.
    fn default() -> Self {
        let start = Instant::now();
        Self::new(move || u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Watch").field(&self.inner).finish()
    }
}

impl WatchedView {
    fn new(
        object: &BusinessObject,
        compiled: Option<&Compiled>,
        filter: Option<SubjectFilter>,
    ) -> Self {
        let links = compiled.filter(|_| filter.is_some());
        Self {
            id: object.id.clone(),
            exports_on_change: object.definition.export_on_change,
            keeps_ages: object.definition.retention.is_some(),
            links: links.map_or_else(HolderLinks::default, |compiled| {
                HolderLinks::of_mapping(&compiled.mapping.root)
            }),
            filter,
        }
    }

    /// Returns whether this version of the gateway cannot determine the members.
    pub(super) fn is_blind(&self) -> bool {
        self.filter.is_none()
    }

    /// Returns whether this object is a member.
    pub(super) fn is_member(&self, read: &dyn Read, uri: &NamedNode) -> Result<bool, GatewayError> {
        match &self.filter {
            Some(filter) => Ok(members::satisfies_filter(read, filter, uri)?),
            None => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{self, Catalogue};
    use crate::change_feed;
    use crate::testing::{catalogue_settings, open_store, put_definition};
    use penstock_base::error::ErrorClass;

    /// A commit whose sync fails is visible for a moment. This test rolls it back before any sync.
    #[test]
    fn views_forget_a_definition_whose_commit_failed() {
        let (_dir, store) = open_store();
        let catalogue = Catalogue::open(store.clone(), catalogue_settings()).unwrap();
        let define = |name: &str| {
            let definition = serde_json::json!({
                "name": name,
                "config": "type: object\npath: A:.\nfields: {name: {type: string, path: <urn:n>}}",
                "pushTargets": [{"bucketName": "north"}],
                "exportOnChange": true,
            });
            put_definition(&catalogue, &definition)
        };
        let first = define("A");
        let watch = catalogue.watch();
        let ids = |watched: &WatchedDefinitions| {
            watched.views.iter().map(|view| view.id.clone()).collect::<Vec<_>>()
        };
        let rolled_back = store.transact(|t| -> Result<(), GatewayError> {
            change_feed::stop_watching(t, &first.object.id)?;
            catalogue::BUSINESS_OBJECTS.delete(t, &first.object.id)?;
            let current = watch.current_definitions(t)?;
            assert_eq!(ids(&current), Vec::<String>::new());
            Err(GatewayError::new(ErrorClass::Internal, "the sync failed"))
        });
        assert!(rolled_back.is_err());
        let second = define("B");
        let views = watch.current_definitions(&store.read()).unwrap();
        assert_eq!(ids(&views), [first.object.id.clone(), second.object.id.clone()]);
    }
}
