//! Caches of recently read names, by id and by key. The same names recur often: predicates, graphs, and
//! objects of many quads. Ids and names never change their assignment, so the caches need no invalidation.
use super::filter;
use oxrdf::{Term, TermRef};
use parking_lot::Mutex;

/// The caches of one index.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(super) by_id: NameCache,
    pub(super) ids: IdCache,
}

/// The number of names kept: 4,096 of at most 128 bytes take less than 800 KB.
const NAME_SLOTS: usize = 4_096;
/// The number of slots that a name can be in.
const SLOTS_PER_SET: usize = 4;
const MAX_CACHED_NAME_BYTES: usize = 128;

type CachedName = Option<(u64, Term)>;

/// An id leads to a set of slots. A new name replaces the one in its set that was not used for longest.
#[derive(Default)]
pub(super) struct NameCache(Mutex<Vec<[CachedName; SLOTS_PER_SET]>>);

impl NameCache {
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method alone is not general enough over lifetimes"
    )]
    pub(super) fn get(&self, id: u64) -> Option<Term> {
        self.with_name(id, |name| name.into_owned())
    }

    /// Passes the name to `read`, which must be short because it holds a lock.
    pub(super) fn with_name<T>(&self, id: u64, read: impl FnOnce(TermRef<'_>) -> T) -> Option<T> {
        let mut sets = self.0.lock();
        let set = sets.get_mut(set_of_id(id))?;
        let at =
            set.iter().position(|slot| slot.as_ref().is_some_and(|(found, _)| *found == id))?;
        set.get_mut(..=at)?.rotate_right(1);
        let (_, name) = set.first()?.as_ref()?;
        Some(read(name.as_ref()))
    }

    pub(super) fn cache_name(&self, id: u64, name: &Term) {
        let length = match name {
            Term::NamedNode(iri) => iri.as_str().len(),
            Term::BlankNode(node) => node.as_str().len(),
            Term::Literal(_) | Term::Triple(_) => return,
        };
        if length > MAX_CACHED_NAME_BYTES {
            return;
        }
        let mut sets = self.0.lock();
        if sets.is_empty() {
            sets.resize_with(NAME_SLOTS / SLOTS_PER_SET, Default::default);
        }
        if let Some(set) = sets.get_mut(set_of_id(id)) {
            set.rotate_right(1);
            set[0] = Some((id, name.clone()));
        }
    }
}

/// The number of ids kept: 4,096, with keys of at most 128 bytes, take less than 700 KB.
const ID_SLOTS: u64 = 4_096;

/// Each key maps to one slot by its hash. A new key replaces the old one in its slot.
#[derive(Default)]
pub(super) struct IdCache(Mutex<Vec<Option<CachedId>>>);

type CachedId = (Box<[u8]>, u64);

impl IdCache {
    /// Returns the id of the name with this key.
    pub(super) fn get(&self, key: &[u8]) -> Option<u64> {
        let slots = self.0.lock();
        let (cached, id) = slots.get(Self::slot_of_key(key))?.as_ref()?;
        (**cached == *key).then_some(*id)
    }

    pub(super) fn cache_id(&self, key: &[u8], id: u64) {
        if key.len() > MAX_CACHED_NAME_BYTES {
            return;
        }
        let mut slots = self.0.lock();
        if slots.is_empty() {
            slots.resize_with(usize::try_from(ID_SLOTS).unwrap_or_default(), || None);
        }
        if let Some(slot) = slots.get_mut(Self::slot_of_key(key)) {
            *slot = Some((key.into(), id));
        }
    }

    fn slot_of_key(key: &[u8]) -> usize {
        usize::try_from(filter::hash_key(key) % ID_SLOTS).unwrap_or_default()
    }
}

impl std::fmt::Debug for IdCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IdCache")
    }
}

/// Ids are numbers in order, so that near ones lead to different sets.
fn set_of_id(id: u64) -> usize {
    usize::try_from(id % (NAME_SLOTS / SLOTS_PER_SET) as u64).unwrap_or_default()
}

impl std::fmt::Debug for NameCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NameCache")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::NamedNode;

    #[test]
    fn a_slot_has_the_last_id() {
        let ids = IdCache::default();
        let key = |n: u64| format!("name {n}").into_bytes();
        for n in 0..2 * ID_SLOTS {
            ids.cache_id(&key(n), n);
            assert_eq!(ids.get(&key(n)), Some(n));
        }
        let held =
            (0..2 * ID_SLOTS).filter(|n| ids.get(&key(*n)).is_some_and(|id| id == *n)).count();
        assert!(held > 1_000 && held <= 4_096, "{held}");
        ids.cache_id(&[7; MAX_CACHED_NAME_BYTES + 1], 1);
        assert_eq!(ids.get(&[7; MAX_CACHED_NAME_BYTES + 1]), None);
    }

    #[test]
    fn a_set_has_the_names_used_last() {
        let names = NameCache::default();
        let name = |text: &str| Term::from(NamedNode::new_unchecked(text));
        assert_eq!(names.get(1), None);
        // Ids of one set.
        let id = |n: u64| 1 + n * (NAME_SLOTS / SLOTS_PER_SET) as u64;
        for n in 0..SLOTS_PER_SET as u64 {
            names.cache_name(id(n), &name(&format!("http://e/{n}")));
        }
        assert_eq!(names.get(id(0)), Some(name("http://e/0")));
        names.cache_name(id(9), &name("http://e/9"));
        assert_eq!((names.get(id(0)), names.get(id(1))), (Some(name("http://e/0")), None));
        assert_eq!(names.get(id(9)), Some(name("http://e/9")));
        names.cache_name(2, &name(&"x".repeat(MAX_CACHED_NAME_BYTES + 1)));
        assert_eq!((names.get(2), names.get(id(2))), (None, Some(name("http://e/2"))));
    }
}
