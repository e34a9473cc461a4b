//! A set of sequences with one bit each.
use std::collections::BTreeMap;

/// The number of sequences in one block.
const SEQUENCES_PER_BLOCK: u64 = 4096;

/// A set of sequences, starting at 1.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    blocks: BTreeMap<u64, Box<[u64; (SEQUENCES_PER_BLOCK / 64) as usize]>>,
    len: u64,
    last: u64,
}

impl Sequences {
    /// Adds a sequence. Returns false if it was already there.
    pub(super) fn insert(&mut self, sequence: u64) -> bool {
        let block =
            self.blocks.entry(sequence / SEQUENCES_PER_BLOCK).or_insert_with(|| Box::new([0; 64]));
        let at = usize::try_from(sequence % SEQUENCES_PER_BLOCK / 64).unwrap_or_default();
        let bit = 1 << (sequence % 64);
        let Some(word) = block.get_mut(at) else { return false };
        if *word & bit != 0 {
            return false;
        }
        *word |= bit;
        self.len += 1;
        self.last = self.last.max(sequence);
        true
    }

    /// Returns whether a sequence was added.
    pub(super) fn contains(&self, sequence: u64) -> bool {
        let block = self.blocks.get(&(sequence / SEQUENCES_PER_BLOCK));
        let at = usize::try_from(sequence % SEQUENCES_PER_BLOCK / 64).unwrap_or_default();
        block.and_then(|words| words.get(at)).is_some_and(|word| word & (1 << (sequence % 64)) != 0)
    }

    /// Returns the number of sequences.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the highest sequence.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Returns the sequences in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        self.blocks.iter().flat_map(|(block, words)| {
            (0..).zip(words.iter()).flat_map(move |(at, word)| {
                (0..64)
                    .filter(move |bit| word & (1 << bit) != 0)
                    .map(move |bit| block * SEQUENCES_PER_BLOCK + at * 64 + bit)
            })
        })
    }

    /// Returns the missing ranges below the highest sequence, both ends included.
    pub(super) fn missing_ranges(&self) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut next = 1;
        for sequence in self.iter() {
            if sequence > next {
                gaps.push((next, sequence - 1));
            }
            next = sequence + 1;
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set_that_knows_its_gaps(seen in prop::collection::vec(1_u64..10_000, 0..60)) {
            let mut sequences = Sequences::default();
            let mut model = BTreeSet::new();
            for sequence in seen {
                prop_assert_eq!(sequences.insert(sequence), model.insert(sequence));
            }
            prop_assert!(sequences.iter().eq(model.iter().copied()));
            prop_assert!((1..10_000).all(|one| sequences.contains(one) == model.contains(&one)));
            let last = model.last().copied().unwrap_or(0);
            prop_assert_eq!((sequences.len(), sequences.last()), (model.len() as u64, last));
            let missing: Vec<u64> = (1..=last).filter(|sequence| !model.contains(sequence)).collect();
            let gaps = sequences.missing_ranges();
            let listed: Vec<u64> = gaps.iter().flat_map(|&(from, to)| from..=to).collect();
            prop_assert_eq!(listed, missing);
            prop_assert!(gaps.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
        }
    }
}
