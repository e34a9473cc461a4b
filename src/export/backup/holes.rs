//! Holes: ranges of commits that no backup has one by one.
use penstock_resources::gateway::BackupHole;
use serde::{Deserialize, Serialize};

/// The maximum number of holes. A disk that is full again and again must not let the state grow.
const MAX_HOLES: usize = 32;

/// Commits that no backup has one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hole {
    pub(super) from: u64,
    pub(super) to: u64,
}

/// The holes before which an earlier state can still be restored, in order. Past [`MAX_HOLES`] the closest ones become one,
/// which then also has the commits between them: what is shown as restorable is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Holes(Vec<Hole>);

impl Holes {
    /// Adds the newest hole. It replaces one that overlaps it: that was recorded before the head said what the bucket has.
    pub(super) fn add(&mut self, hole: Hole) {
        self.0.retain(|known| known.to < hole.from);
        self.0.push(hole);
        if self.0.len() > MAX_HOLES {
            self.join_closest();
        }
    }

    /// Joins the two holes with the fewest commits between them. The newest hole may still be replaced.
    fn join_closest(&mut self) {
        let older = self.0.len().saturating_sub(1);
        let holes = self.0.iter().take(older);
        let pairs = holes.clone().zip(holes.skip(1));
        let gaps = pairs.map(|(before, after)| after.from.saturating_sub(before.to));
        let closest = gaps.enumerate().min_by_key(|(_, gap)| *gap).map(|(at, _)| at);
        let Some(at) = closest else { return };
        let after = self.0.remove(at + 1);
        if let Some(before) = self.0.get_mut(at) {
            before.to = after.to;
        }
    }

    /// Forgets those up to `sequence`, before which nothing can be restored. Returns whether there were any.
    pub(super) fn forget_up_to(&mut self, sequence: u64) -> bool {
        let count = self.0.len();
        self.0.retain(|hole| hole.to > sequence);
        self.0.len() < count
    }

    /// Lists them for the operator. Adjacent ones are shown as one.
    pub(super) fn list(&self) -> Vec<BackupHole> {
        let mut listed: Vec<BackupHole> = Vec::new();
        for &Hole { from, to } in &self.0 {
            match listed.last_mut() {
                Some(before) if before.to.saturating_add(1) >= from => before.to = to,
                _ => listed.push(BackupHole { from, to }),
            }
        }
        listed
    }

    #[cfg(test)]
    pub(super) fn newest(&self) -> Option<Hole> {
        self.0.last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add_all(ranges: impl IntoIterator<Item = (u64, u64)>) -> Holes {
        let mut holes = Holes::default();
        ranges.into_iter().for_each(|(from, to)| holes.add(Hole { from, to }));
        holes
    }

    fn list(holes: &Holes) -> Vec<(u64, u64)> {
        holes.list().iter().map(|hole| (hole.from, hole.to)).collect()
    }

    #[test]
    fn earlier_holes_stay_until_nothing_before_them_can_be_restored() {
        let mut holes = add_all([(3, 9), (20, 25), (26, 30)]);
        assert_eq!(list(&holes), [(3, 9), (20, 30)]);
        assert!(!holes.forget_up_to(8));
        assert!(holes.forget_up_to(9));
        assert_eq!(list(&holes), [(20, 30)]);
        assert!(holes.forget_up_to(30));
        assert_eq!(holes, Holes::default());
    }

    #[test]
    fn the_begin_of_an_era_replaces_what_was_recorded_before_it() {
        assert_eq!(list(&add_all([(3, 9), (12, 20), (12, 24)])), [(3, 9), (12, 24)]);
        // The head covers more than the data directory knew; the adjacent one is not lost.
        assert_eq!(list(&add_all([(3, 9), (10, 20), (15, 24)])), [(3, 9), (15, 24)]);
    }

    #[test]
    fn past_the_limit_the_closest_are_joined() {
        let many = (1..=MAX_HOLES as u64).map(|number| (100 * number, 100 * number + 10));
        let mut holes = add_all(many);
        holes.add(Hole { from: 3_215, to: 3_220 });
        assert_eq!(holes.list().len(), MAX_HOLES);
        assert_eq!(list(&holes)[..2], [(100, 210), (300, 310)]);
        assert_eq!(holes.newest(), Some(Hole { from: 3_215, to: 3_220 }));
        holes.add(Hole { from: 3_300, to: 3_301 });
        assert_eq!(list(&holes)[MAX_HOLES - 2..], [(3_200, 3_220), (3_300, 3_301)]);
    }
}
