//! Numbers in one to nine bytes, whose encodings sort like the numbers.
//!
//! The number of leading one bits in the first byte is the number of bytes that follow. The other bits of the
//! first byte and the bytes that follow are the number, big-endian. A shorter encoding has a smaller first
//! byte. So comparing bytes compares numbers, and no encoding is a prefix of another.

/// Passes the encoding of a number to `write`.
pub(crate) fn encode_number<T>(number: u64, write: impl FnOnce(&[u8]) -> T) -> T {
    let bits = (u64::BITS - number.leading_zeros()).max(1);
    let bytes = number.to_be_bytes();
    if bits > 56 {
        let mut all = [0xff; 9];
        all[1..].copy_from_slice(&bytes);
        return write(&all);
    }
    // One bit of the marker for each byte after the first, above the number.
    let length = bits.div_ceil(7);
    let marker = !(u64::MAX.checked_shr(length - 1).unwrap_or(0)) >> (64 - 8 * length);
    let bytes = (number | marker).to_be_bytes();
    write(bytes.get(8 - length as usize..).unwrap_or_default())
}

/// Appends a number.
pub(crate) fn write_number(out: &mut Vec<u8>, number: u64) {
    encode_number(number, |bytes| out.extend_from_slice(bytes));
}

/// Appends a length, or another `usize`.
pub(crate) fn write_length(out: &mut Vec<u8>, length: usize) {
    write_number(out, length as u64);
}

/// Appends bytes, preceded by their length.
pub(crate) fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_length(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Bytes that are still to be read. Every read returns `None` if they end too early.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn read_byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn read_number(&mut self) -> Option<u64> {
        let whole = self.0;
        let first = self.read_byte()?;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        let following = first.leading_ones();
        if following < 8
            && let Some(bytes) = whole.first_chunk::<8>()
        {
            // Fast path: the leading ones and the zero after them are cut off, and what follows the number.
            let number = u64::from_be_bytes(*bytes) << (following + 1) >> (following + 1);
            self.0 = whole.get(1 + following as usize..)?;
            return Some(number >> (56 - 8 * following));
        }
        let start = u64::from(first & 0x7f_u8.checked_shr(following).unwrap_or(0));
        let bytes = self.take(following as usize)?;
        Some(bytes.iter().fold(start, |number, byte| (number << 8) | u64::from(*byte)))
    }

    pub(crate) fn read_length(&mut self) -> Option<usize> {
        usize::try_from(self.read_number()?).ok()
    }

    pub(crate) fn read_bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.read_length()?;
        self.take(length)
    }

    pub(crate) fn read_text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.read_bytes()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(number: u64) -> Vec<u8> {
        let mut out = Vec::new();
        write_number(&mut out, number);
        out
    }

    #[test]
    fn the_limits_of_every_length_round_trip_and_keep_their_order() {
        let mut numbers: Vec<u64> = (0..64)
            .flat_map(|bit| {
                let power = 1_u64 << bit;
                [power - 1, power, power + 1]
            })
            .chain([u64::MAX])
            .collect();
        numbers.sort_unstable();
        for pair in numbers.windows(2) {
            assert_eq!(Input::new(&encoded(pair[0])).read_number(), Some(pair[0]));
            assert_eq!(pair[0].cmp(&pair[1]), encoded(pair[0]).cmp(&encoded(pair[1])));
        }
        assert_eq!(encoded(127).len(), 1);
        assert_eq!(encoded(128).len(), 2);
        assert_eq!(encoded((1 << 56) - 1).len(), 8);
        assert_eq!(encoded(1 << 56).len(), 9);
    }

    proptest! {
        #[test]
        fn any_two_numbers_compare_as_their_bytes_do(a: u64, b: u64) {
            prop_assert_eq!(a.cmp(&b), encoded(a).cmp(&encoded(b)));
            let bytes = encoded(a);
            prop_assert_eq!(Input::new(&bytes).read_number(), Some(a));
            let followed = [bytes.as_slice(), &[0xff; 9]].concat();
            let mut input = Input::new(&followed);
            prop_assert_eq!((input.read_number(), input.len()), (Some(a), 9));
            prop_assert_eq!(Input::new(&bytes[..bytes.len() - 1]).read_number(), None);
        }
    }
}
