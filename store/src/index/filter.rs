//! A Bloom filter: tells which keys a run cannot contain.

/// Of the lookups of a missing key, one in 100 reads a run in vain if the filter has 10 bits for each key; with 8 bits one in
/// 40, with 7 one in 25, and with 5 one in 7.
const PROBES_PER_KEY: u32 = 7;

/// The bits of a filter. An empty filter matches no key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filter(Box<[u8]>);

/// Returns the hash of a key for the filter.
pub(super) fn hash_key(key: &[u8]) -> u64 {
    // The finalizer of SplitMix64, including the length. A plain CRC has equal distances between similar
    // keys.
    let mut mixed = (key.len() as u64) << 32 | u64::from(crc32c::crc32c(key));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Filter {
    /// Creates a filter for that many keys.
    pub(super) fn new(keys: u64, bits_per_key: u64) -> Self {
        let bytes = usize::try_from((keys * bits_per_key).div_ceil(8)).unwrap_or_default();
        Self(vec![0; bytes].into())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn bit_positions(&self, hash: u64) -> impl Iterator<Item = (usize, u8)> + use<> {
        let bits = (self.0.len() as u64 * 8).max(1);
        let step = (hash >> 32) | 1;
        (0..PROBES_PER_KEY).scan(hash, move |at, _| {
            *at = at.wrapping_add(step);
            let bit = *at % bits;
            Some((usize::try_from(bit / 8).unwrap_or_default(), 1 << (bit % 8)))
        })
    }

    pub(super) fn add_hash(&mut self, hash: u64) {
        for (at, bit) in self.bit_positions(hash) {
            if let Some(byte) = self.0.get_mut(at) {
                *byte |= bit;
            }
        }
    }

    pub(super) fn may_contain(&self, hash: u64) -> bool {
        self.bit_positions(hash).all(|(at, bit)| self.0.get(at).is_some_and(|byte| byte & bit != 0))
    }

    pub(super) fn encode(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn decode(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_all_added_keys_and_few_others() {
        let key = |n: u32| hash_key(format!("https://example.org/object/{n:016x}").as_bytes());
        let mut filter = Filter::default();
        for (bits, most) in [(10, 1_500), (8, 3_500), (7, 5_500), (5, 17_000)] {
            filter = Filter::new(10_000, bits);
            (0..10_000).for_each(|n| filter.add_hash(key(n)));
            assert!((0..10_000).all(|n| filter.may_contain(key(n))));
            let wrong = (10_000..110_000).filter(|n| filter.may_contain(key(*n))).count();
            assert!(wrong < most, "{bits} bits: {wrong} of 100,000");
        }
        assert!(!Filter::new(0, 10).may_contain(key(1)));
        assert_eq!(Filter::decode(filter.encode()), filter);
    }
}
