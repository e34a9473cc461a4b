//! Decisions from a listing alone: which objects a restore reads, what is missing, and what may be deleted.
use super::keys::{BackupKeys, ObjectName, era_number};
use super::objects::Segment;
use super::place::{ListedObject, Listing};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// What a merge or a new base replaces stays for this time, for a reader that has begun.
const REPLACED_STAYS: Duration = Duration::from_hours(24);

/// The objects of one era.
#[derive(Debug, Clone, Default)]
pub(super) struct EraObjects {
    pub(super) record: Option<ListedObject>,
    /// By sequence.
    pub(super) bases: BTreeMap<u64, ListedObject>,
    pub(super) segments: BTreeMap<Segment, ListedObject>,
}

/// Frames that no segment has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MissingFrames {
    pub(super) from: u64,
    pub(super) to: u64,
}

/// Sorts a listing by era.
pub(super) fn sort_by_era(listing: &Listing, keys: &BackupKeys) -> BTreeMap<String, EraObjects> {
    let mut eras: BTreeMap<String, EraObjects> = BTreeMap::new();
    for object in &listing.objects {
        let Some((era, name)) = keys.parse(&object.key) else { continue };
        let objects = eras.entry(era.to_owned()).or_default();
        match name {
            ObjectName::Era => objects.record = Some(object.clone()),
            ObjectName::Base { sequence } => drop(objects.bases.insert(sequence, object.clone())),
            ObjectName::Segment { first, last } => {
                objects.segments.insert((first, last), object.clone());
            }
        }
    }
    eras
}

/// Returns the highest number of the listed eras.
pub(super) fn highest_number(listing: &Listing, keys: &BackupKeys) -> u64 {
    let folders = listing
        .objects
        .iter()
        .filter_map(|object| Some(object.key.strip_prefix(&keys.root)?.split_once('/')?.0));
    folders.filter_map(era_number).max().unwrap_or(0)
}

impl EraObjects {
    /// Returns the segments that have the frames after `after` up to `to`, in order and without a gap. Of several that
    /// begin in time, the one that reaches furthest counts: a merged one has the frames of those that it replaces.
    /// Frames after `limit` do not count. A segment that has some of them is chosen only where no other one reaches `limit`.
    pub(super) fn cover(
        &self,
        after: u64,
        to: u64,
        limit: u64,
    ) -> Result<Vec<Segment>, MissingFrames> {
        let mut chosen = Vec::new();
        let mut covered = after;
        let mut segments = self.segments.keys().filter(|(_, last)| *last <= limit).peekable();
        while covered < to {
            let mut best: Option<Segment> = None;
            while let Some((first, last)) = segments.next_if(|(first, _)| *first <= covered + 1) {
                if best.is_none_or(|(_, furthest)| *last > furthest) {
                    best = Some((*first, *last));
                }
            }
            let across = || {
                let mut across = self.list_across(limit);
                across.find(|(first, _)| to <= limit && *first <= covered + 1)
            };
            let Some(segment) = best.filter(|(_, last)| *last > covered).or_else(across) else {
                let next = segments.peek().map_or(to, |(first, _)| first - 1);
                return Err(MissingFrames { from: covered + 1, to: next.min(to) });
            };
            covered = segment.1;
            chosen.push(segment);
        }
        Ok(chosen)
    }

    /// Returns the segments that have this frame and later ones, in order. A restore of an earlier moment can end within a
    /// segment, and what it continues ends there too.
    fn list_across(&self, frame: u64) -> impl DoubleEndedIterator<Item = Segment> {
        let segments = self.segments.keys().copied();
        segments.filter(move |(first, last)| *first <= frame && frame < *last)
    }

    /// Returns the segments up to `limit` whose frames no other one has, in order. If none of them reaches `limit`, one that
    /// has it and later frames is among them.
    pub(super) fn list_widest(&self, limit: u64) -> Vec<Segment> {
        let mut segments: Vec<Segment> =
            self.segments.keys().filter(|(_, last)| *last <= limit).copied().collect();
        segments.sort_unstable_by_key(|(first, last)| (*first, std::cmp::Reverse(*last)));
        let mut reached = 0;
        segments.retain(|(_, last)| {
            let is_new = *last > reached;
            reached = reached.max(*last);
            is_new
        });
        if reached < limit {
            segments.extend(self.list_across(limit).next_back());
            segments.sort_unstable();
        }
        segments
    }

    /// Returns the greatest base that a restore up to `to` can begin with, with the segments after it; or what is missing
    /// after the newest base.
    pub(super) fn find_path(
        &self,
        to: u64,
        limit: u64,
    ) -> Result<(u64, Vec<Segment>), Option<MissingFrames>> {
        let mut missing = None;
        for sequence in self.bases.range(..=to).rev().map(|(sequence, _)| *sequence) {
            match self.cover(sequence, to, limit) {
                Ok(segments) => return Ok((sequence, segments)),
                Err(gap) => missing = missing.or(Some(gap)),
            }
        }
        Err(missing)
    }

    /// Returns the keys of segments above the head, which do not count.
    pub(super) fn list_leftovers(&self, last: u64) -> Vec<String> {
        let above = self.segments.iter().filter(|((_, end), _)| *end > last);
        above.map(|(_, object)| object.key.clone()).collect()
    }

    /// Returns the bytes of all bases and segments.
    pub(super) fn bytes(&self) -> u64 {
        let objects = self.bases.values().chain(self.segments.values());
        objects.fold(0, |bytes, object| bytes.saturating_add(object.bytes))
    }

    fn objects(&self) -> impl Iterator<Item = &ListedObject> {
        self.record.iter().chain(self.bases.values()).chain(self.segments.values())
    }

    /// Returns the bytes of a base and the segments after it.
    pub(super) fn bytes_of(&self, base: u64, segments: &[Segment]) -> u64 {
        let of_base = self.bases.get(&base).map_or(0, |object| object.bytes);
        let of_segment = |segment| self.segments.get(segment).map_or(0, |object| object.bytes);
        segments.iter().map(of_segment).fold(of_base, u64::saturating_add)
    }
}

/// The rules by which objects are deleted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retention<'a> {
    /// `service.backup.keep`
    pub(super) keep: Duration,
    /// The time of the server's clock.
    pub(super) now: Timestamp,
    /// The era that counts.
    pub(super) era: &'a str,
    /// The newest base of that era, in the head.
    pub(super) base: u64,
    /// The last sequence in the head.
    pub(super) last: u64,
    /// The era that the head names as the last one that can be restored.
    pub(super) previous: Option<&'a str>,
}

impl Retention<'_> {
    fn is_older(&self, object: &ListedObject, age: Duration) -> bool {
        let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
        object.modified.is_some_and(|at| self.now.duration_since(at) > age)
    }

    /// Returns the keys of all objects that may be deleted, in an order in which every state between can be restored.
    pub(super) fn list_deletable(&self, eras: &BTreeMap<String, EraObjects>) -> Vec<String> {
        let mut keys = Vec::new();
        for (id, objects) in eras {
            if id == self.era {
                self.list_deletable_of_era(objects, &mut keys);
            } else if Some(id.as_str()) != self.previous
                && objects
                    .objects()
                    .all(|object| self.is_older(object, self.keep.max(REPLACED_STAYS)))
            {
                // The record comes last, so that the number of the era stays known.
                let others = objects.bases.values().chain(objects.segments.values());
                keys.extend(others.chain(&objects.record).map(|object| object.key.clone()));
            }
        }
        keys
    }

    /// Returns the keys of the objects with which a bucket was tested, and which a crash left.
    pub(super) fn list_old_probes(&self, listing: &Listing, keys: &BackupKeys) -> Vec<String> {
        let is_old = |object: &&ListedObject| {
            keys.is_probe(&object.key) && self.is_older(object, REPLACED_STAYS)
        };
        listing.objects.iter().filter(is_old).map(|object| object.key.clone()).collect()
    }

    fn list_deletable_of_era(&self, objects: &EraObjects, keys: &mut Vec<String>) {
        let keep = self.keep.max(REPLACED_STAYS);
        // Every point after this base can be restored from it, and all points before it are too old.
        let is_old = |(sequence, object): &(&u64, &ListedObject)| {
            **sequence <= self.base && self.is_older(object, keep)
        };
        let from = objects.bases.iter().rev().find(is_old).map(|(sequence, _)| *sequence);
        let from = from.unwrap_or(0);
        let bases = objects.bases.range(..from);
        keys.extend(bases.map(|(_, object)| object.key.clone()));
        for ((first, last), object) in &objects.segments {
            let is_before = *last <= from;
            // Another one has all of its frames, for long enough.
            let is_merged = || {
                objects.segments.range(..=(*first, u64::MAX)).any(|((begin, end), merged)| {
                    *begin <= *first
                        && *end >= *last
                        && (begin, end) != (first, last)
                        && *end <= self.last
                        && self.is_older(merged, REPLACED_STAYS)
                })
            };
            if is_before || (*last <= self.last && is_merged()) {
                keys.push(object.key.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> BackupKeys {
        BackupKeys::new("", "g", false)
    }

    fn object(key: String, hours_ago: i64) -> ListedObject {
        let modified = now() - SignedDuration::from_hours(hours_ago);
        ListedObject { key, bytes: 10, modified: Some(modified) }
    }

    fn now() -> Timestamp {
        "2026-11-28T20:00:00Z".parse().unwrap()
    }

    fn listing(era: &str, bases: &[(u64, i64)], segments: &[(u64, u64, i64)]) -> Listing {
        let bases = bases.iter().map(|(at, age)| object(keys().base(era, *at), *age));
        let segments = segments
            .iter()
            .map(|(first, last, age)| object(keys().segment(era, *first, *last), *age));
        let record = object(keys().era(era), 9_999);
        Listing { objects: bases.chain(segments).chain([record]).collect(), date: Some(now()) }
    }

    fn era(bases: &[(u64, i64)], segments: &[(u64, u64, i64)]) -> EraObjects {
        sort_by_era(&listing("000001-aaaaaaaaaaaaaaaa", bases, segments), &keys())
            .remove("000001-aaaaaaaaaaaaaaaa")
            .unwrap()
    }

    #[test]
    fn a_path_has_no_gap_and_prefers_merged_segments() {
        let objects = era(
            &[(5, 0), (20, 0)],
            &[(1, 4, 0), (5, 8, 0), (9, 9, 0), (5, 9, 0), (10, 22, 0), (23, 30, 0), (32, 40, 0)],
        );
        assert_eq!(objects.find_path(9, 40), Ok((5, vec![(5, 9)])));
        assert_eq!(objects.find_path(30, 40), Ok((20, vec![(10, 22), (23, 30)])));
        assert_eq!(objects.find_path(20, 40), Ok((20, Vec::new())));
        assert_eq!(objects.find_path(35, 40), Err(Some(MissingFrames { from: 31, to: 31 })));
        assert_eq!(objects.find_path(30, 29), Err(Some(MissingFrames { from: 23, to: 30 })));
        // A restore ended within a segment.
        assert_eq!(objects.find_path(25, 25), Ok((20, vec![(10, 22), (23, 30)])));
        assert_eq!(objects.list_widest(25), [(1, 4), (5, 9), (10, 22), (23, 30)]);
        assert_eq!(objects.find_path(4, 40), Err(None));
        assert_eq!(objects.list_leftovers(30), [keys().segment("000001-aaaaaaaaaaaaaaaa", 32, 40)]);
        let widest = [(1, 4), (5, 9), (10, 22), (23, 30), (32, 40)];
        assert_eq!((objects.list_widest(40), objects.list_widest(31).len()), (widest.to_vec(), 4));
        assert_eq!(objects.bytes_of(20, &[(10, 22), (23, 30)]), 30);
    }

    #[test]
    fn an_older_base_replaces_one_after_which_something_is_missing() {
        let objects = era(&[(5, 0), (20, 0)], &[(6, 30, 0)]);
        assert_eq!(objects.find_path(30, 30), Ok((20, vec![(6, 30)])));
        let objects = era(&[(5, 0), (20, 0)], &[(6, 19, 0), (22, 30, 0)]);
        assert_eq!(objects.find_path(30, 30), Err(Some(MissingFrames { from: 21, to: 21 })));
    }

    fn deletable(listing: &Listing, previous: Option<&str>) -> Vec<String> {
        let retention = Retention {
            keep: Duration::from_hours(30 * 24),
            now: now(),
            era: "000002-bbbbbbbbbbbbbbbb",
            base: 50,
            last: 70,
            previous,
        };
        retention.list_deletable(&sort_by_era(listing, &keys()))
    }

    #[test]
    fn only_what_no_point_within_the_time_needs_is_deleted() {
        let month = 31 * 24;
        let found = deletable(
            &listing(
                "000002-bbbbbbbbbbbbbbbb",
                &[(10, 90 * 24), (30, month), (50, 10)],
                &[
                    (1, 10, 90 * 24),
                    (11, 30, month),
                    (25, 40, month),
                    (41, 50, 100),
                    (51, 55, 30),
                    (56, 60, 30),
                    (51, 60, 25),
                    (61, 65, 30),
                    (66, 70, 30),
                    (61, 70, 23),
                    (61, 80, 30),
                ],
            ),
            None,
        );
        let era = "000002-bbbbbbbbbbbbbbbb";
        let expected = [
            keys().base(era, 10),
            keys().segment(era, 1, 10),
            keys().segment(era, 11, 30),
            keys().segment(era, 51, 55),
            keys().segment(era, 56, 60),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_older_era_goes_when_all_of_it_is_old_and_the_head_does_not_name_it() {
        let old = listing("000001-aaaaaaaaaaaaaaaa", &[(5, 40 * 24)], &[(6, 9, 31 * 24)]);
        let found = deletable(&old, None);
        assert_eq!(found.len(), 3);
        assert_eq!(found.last(), Some(&keys().era("000001-aaaaaaaaaaaaaaaa")));
        assert!(deletable(&old, Some("000001-aaaaaaaaaaaaaaaa")).is_empty());
        assert!(
            deletable(
                &listing("000001-aaaaaaaaaaaaaaaa", &[(5, 40 * 24)], &[(6, 9, 29 * 24)]),
                None
            )
            .is_empty()
        );
        assert_eq!(highest_number(&old, &keys()), 1);
    }

    #[test]
    fn without_the_times_of_the_server_nothing_is_deleted() {
        let mut old = listing("000001-aaaaaaaaaaaaaaaa", &[(5, 40 * 24)], &[]);
        old.objects.iter_mut().for_each(|object| object.modified = None);
        assert!(deletable(&old, None).is_empty());
    }
}
