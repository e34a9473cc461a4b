//! The Business Objects for which changes are noted, and word of it to whoever exports.
use super::cursor::{is_watched, watched};
use super::holders::Links;
use crate::resource::{BusinessObject, Compiled, Conditions};
use crate::{catalogue, namespace};
use oxrdf::{GraphName, NamedNode};
use penstock_base::clock::{Clock, Stamp};
use penstock_base::fault::Fault;
use penstock_store::{Pattern, Read};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;
use tokio::sync::Notify;

/// What is watched. Cheap to clone.
#[derive(Clone)]
pub struct Watch {
    inner: Arc<Inner>,
    /// Milliseconds on a line that only goes forward.
    elapsed: Arc<dyn Fn() -> u64 + Send + Sync>,
    clock: Option<Clock>,
    most_holders: usize,
}

/// When a change concerns more objects than this, since they hold nested what changes, they are not noted
/// one by one: they would all stand in memory, and in the frame of the commit.
const MOST_HOLDERS: usize = 10_000;

#[derive(Debug, Default)]
struct Inner {
    /// The number of the set in the store, and its views.
    views: RwLock<(u64, Arc<[View]>)>,
    marks: Mutex<HashMap<String, Mark>>,
    marked: Notify,
    version: AtomicU64,
}

/// When a Business Object's objects changed since its last export on change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The first time.
    pub first: Instant,
    /// The last time.
    pub last: Instant,
}

/// What a watched Business Object shows.
#[derive(Debug)]
pub(super) struct View {
    pub(super) id: String,
    pub(super) exports_on_change: bool,
    pub(super) keeps_ages: bool,
    /// This version cannot tell what belongs to it.
    pub(super) is_blind: bool,
    pub(super) links: Links,
    conditions: Conditions,
    /// Without conditions, where its objects stand.
    graph: GraphName,
}

impl Watch {
    /// `elapsed` gives milliseconds on a line that only goes forward, through restarts too.
    pub fn new(elapsed: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        let elapsed = Arc::new(elapsed);
        Self { inner: Arc::default(), elapsed, clock: None, most_holders: MOST_HOLDERS }
    }

    /// Counts by this clock.
    pub fn by(clock: Clock) -> Self {
        let ages = clock.clone();
        Self { clock: Some(clock), ..Self::new(move || ages.elapsed()) }
    }

    /// The same, with another bound of the objects that one change may be noted for.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn with_most_holders(self, most_holders: usize) -> Self {
        Self { most_holders, ..self }
    }

    /// For how many objects that hold it one change is noted.
    pub(super) fn most_holders(&self) -> usize {
        self.most_holders
    }

    /// Waits until something is marked.
    pub async fn marked(&self) {
        self.inner.marked.notified().await;
    }

    /// Tells that definitions changed, and ends a wait for a mark.
    pub fn wake(&self) {
        self.inner.version.fetch_add(1, Ordering::AcqRel);
        self.inner.marked.notify_one();
    }

    /// How often definitions have changed.
    pub fn version(&self) -> u64 {
        self.inner.version.load(Ordering::Acquire)
    }

    /// The mark of a Business Object, if it has one.
    pub fn marked_at(&self, id: &str) -> Option<Mark> {
        self.marks().get(id).copied()
    }

    /// Takes a mark away; what changes from now on marks anew. Whoever reads the changes afterwards, in a
    /// commit of their own, misses none: a mark is made within the commit that makes the change.
    pub fn unmark(&self, id: &str) {
        self.marks().remove(id);
    }

    /// Marks a Business Object that has no mark.
    pub fn mark_unless_marked(&self, id: &str) {
        let now = Instant::now();
        self.marks().entry(id.to_owned()).or_insert(Mark { first: now, last: now });
    }

    fn marks(&self) -> MutexGuard<'_, HashMap<String, Mark>> {
        self.inner.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks a Business Object, some object of which changes.
    pub fn mark(&self, id: &str) {
        let now = Instant::now();
        let mut marks = self.marks();
        if let Some(mark) = marks.get_mut(id) {
            mark.last = now;
        } else {
            marks.insert(id.to_owned(), Mark { first: now, last: now });
        }
        drop(marks);
        self.inner.marked.notify_one();
    }

    /// Milliseconds on a line that only goes forward, by which ages count.
    pub fn elapsed(&self) -> u64 {
        (self.elapsed)()
    }

    /// The time, for what stands in an order ([`Clock::stamp`]).
    pub fn stamp(&self) -> Stamp {
        self.clock.as_ref().map_or_else(Stamp::of_system, Clock::stamp)
    }

    /// The time ([`Clock::now`]).
    pub fn now(&self) -> jiff::Timestamp {
        self.clock.as_ref().map_or_else(jiff::Timestamp::now, Clock::now)
    }

    /// The views as of this change: a definition that was stored before it counts, whatever the catalogue
    /// has in memory.
    pub(super) fn views(&self, read: &impl Read) -> Result<Arc<[View]>, Fault> {
        let number = watched(read)?;
        let views = self.inner.views.read().unwrap_or_else(PoisonError::into_inner);
        if views.0 == number {
            return Ok(Arc::clone(&views.1));
        }
        drop(views);
        let mut views = Vec::new();
        for (object, compiled) in catalogue::stored(read)? {
            if is_watched(&object) {
                views.push(View::new(read, &object, compiled.as_ref())?);
            }
        }
        let views: Arc<[View]> = views.into();
        *self.inner.views.write().unwrap_or_else(PoisonError::into_inner) =
            (number, Arc::clone(&views));
        Ok(views)
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

impl View {
    fn new(
        read: &impl Read,
        object: &BusinessObject,
        compiled: Option<&Compiled>,
    ) -> Result<Self, Fault> {
        let mut view = Self {
            id: object.id.clone(),
            exports_on_change: object.definition.export_on_change,
            keeps_ages: object.definition.retention.is_some(),
            is_blind: true,
            links: Links::default(),
            conditions: Conditions::new(),
            graph: GraphName::DefaultGraph,
        };
        if let Some(compiled) = compiled
            && let Some(namespace) = namespace::get(read, &compiled.mapping.root.namespace)?
        {
            view.is_blind = false;
            view.links = Links::of(&compiled.mapping.root);
            view.conditions.clone_from(&compiled.conditions);
            view.graph = namespace.graph().into();
        }
        Ok(view)
    }

    /// Whether this object belongs.
    pub(super) fn holds(&self, read: &impl Read, uri: &NamedNode) -> Result<bool, Fault> {
        let subject = Some(uri.clone().into());
        if self.conditions.is_empty() {
            let graph = Some(self.graph.clone());
            return Ok(read.any(&Pattern { subject, graph, ..Pattern::default() })?);
        }
        for (predicate, value) in &self.conditions {
            let pattern = Pattern {
                subject: subject.clone(),
                predicate: Some(predicate.clone()),
                object: Some(value.clone()),
                graph: None,
            };
            if !read.any(&pattern)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Catalogue, Defaults, IfMatch, Requester};
    use crate::changes;
    use penstock_base::commit::NoClient;
    use penstock_base::fault::Kind;
    use penstock_store::{Options, Store};

    /// A commit whose sync fails lets others see it for a moment. Here it is taken back before any sync.
    #[test]
    fn what_was_seen_of_a_definition_that_failed_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let defaults = Defaults {
            base_url: Some("https://plant.example".to_owned()),
            gateway_id: "gateway-1".to_owned(),
            auto_create_namespaces: true,
        };
        let catalogue = Catalogue::open(store.clone(), defaults).unwrap();
        let define = |name: &str| {
            let body = serde_json::json!({
                "name": name,
                "config": "type: object\npath: A:.\nfields: {name: {type: string, path: <urn:n>}}",
                "pushTargets": [{"bucketName": "north"}],
                "exportOnChange": true,
            });
            let body = body.to_string();
            catalogue
                .put(Requester::new(&NoClient, "local"), body.as_bytes(), IfMatch::Any, &|_| Ok(()))
                .unwrap()
                .0
        };
        let first = define("A");
        let watch = catalogue.watch();
        let ids = |views: &[View]| views.iter().map(|view| view.id.clone()).collect::<Vec<_>>();
        let taken_back = store.transact(|t| -> Result<(), Fault> {
            changes::removed(t, &first.object.id)?;
            t.delete(catalogue::COLLECTION, first.object.id.as_bytes())?;
            assert_eq!(ids(&watch.views(t)?), Vec::<String>::new());
            Err(Fault::new(Kind::Internal, "the sync failed"))
        });
        assert!(taken_back.is_err());
        let second = define("B");
        let views = watch.views(&store.read()).unwrap();
        assert_eq!(ids(&views), [first.object.id.clone(), second.object.id.clone()]);
    }
}
