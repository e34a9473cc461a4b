//! The numbers of a counter that are known to be taken.
use std::collections::BTreeMap;

/// Numbers of a counter that are known to be taken. A rejected object gives its numbers back, so the next one begins with the
/// same numbers. It need not look again at those that the store has or that the request gives.
#[derive(Debug, Default)]
pub(crate) struct TakenNumbers {
    /// Ranges of numbers, between which others are missing: the last number by the first one.
    ranges: BTreeMap<u64, u64>,
    /// The numbers that were found taken by looking at them.
    pub(crate) found: Vec<u64>,
}

impl TakenNumbers {
    /// Adds a number.
    pub(crate) fn add(&mut self, number: u64) {
        let below = self.ranges.range(..=number).next_back();
        let (first, mut last) = match below.map(|(first, last)| (*first, *last)) {
            Some((_, last)) if last >= number => return,
            Some((first, last)) if last.checked_add(1) == Some(number) => (first, number),
            _ => (number, number),
        };
        let above = number.checked_add(1).and_then(|next| self.ranges.remove(&next));
        if let Some(end) = above {
            last = end;
        }
        self.ranges.insert(first, last);
    }

    /// Returns the last of the known numbers that follow this one without a gap, or this one.
    pub(crate) fn skip_from(&self, number: u64) -> u64 {
        let Some(next) = number.checked_add(1) else { return number };
        let range = self.ranges.range(..=next).next_back();
        range.map_or(number, |(_, last)| number.max(*last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn known_numbers_are_skipped_and_no_others(numbers in prop::collection::vec(0..20_u64, 0..20)) {
            let mut taken = TakenNumbers::default();
            for number in &numbers {
                taken.add(*number);
            }
            let known: BTreeSet<u64> = numbers.into_iter().collect();
            for number in 0..22 {
                let last = (number..=22).take_while(|last| *last == number || known.contains(last)).last();
                prop_assert_eq!(Some(taken.skip_from(number)), last);
            }
        }
    }

    #[test]
    fn the_greatest_number_has_no_next_one() {
        let mut taken = TakenNumbers::default();
        taken.add(u64::MAX);
        taken.add(u64::MAX - 1);
        assert_eq!(taken.skip_from(u64::MAX - 2), u64::MAX);
        assert_eq!(taken.skip_from(u64::MAX), u64::MAX);
    }
}
