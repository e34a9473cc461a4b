//! Compression of blocks for the engine, where it saves space.
use crate::varint::{self, Input};
use parking_lot::Mutex;
use zstd::bulk::{Compressor, Decompressor};

/// From level 1 on, what remains of a block is also coded by the frequency of its bytes. That makes an index of a million
/// quads 2 % smaller, but a reader builds tables for each block: scans took a third longer.
pub(super) const ZSTD_LEVEL: i32 = -1;
/// The minimum length to compress, in bytes. Smaller blocks would save little, and they are the ones written
/// often.
const MIN_PACKED_BYTES: usize = 400;
/// The maximum length of a block, in bytes. Blocks are split, and the longest entry is two names of 64 KiB.
const MAX_BLOCK_BYTES: usize = 1 << 20;

/// Compresses blocks for the engine.
pub(super) struct Packer(Option<Compressor<'static>>);

impl Packer {
    pub(super) fn new() -> Self {
        Self::with_level(ZSTD_LEVEL)
    }

    pub(super) fn with_level(level: i32) -> Self {
        Self(Compressor::new(level).ok())
    }

    /// Appends the packed form of `raw` to `out`.
    pub(super) fn pack_block(&mut self, raw: &[u8], out: &mut Vec<u8>) {
        if (MIN_PACKED_BYTES..=MAX_BLOCK_BYTES).contains(&raw.len())
            && let Some(compressor) = &mut self.0
            && let Ok(packed) = compressor.compress(raw)
            && packed.len() + packed.len() / 16 < raw.len()
        {
            varint::write_length(out, raw.len());
            out.extend_from_slice(&packed);
            return;
        }
        varint::write_number(out, 0);
        out.extend_from_slice(raw);
    }
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Packer")
    }
}

/// Decompresses what a [`Packer`] wrote. All readers share one, because creating its tables takes far longer
/// than reading a block.
#[derive(Default)]
pub(super) struct Unpacker(Mutex<Option<Decompressor<'static>>>);

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Unpacker")
    }
}

impl Unpacker {
    /// Returns the block's bytes; `None` if they are damaged.
    pub(super) fn unpack_block(&self, packed: &[u8]) -> Option<Vec<u8>> {
        let mut input = Input::new(packed);
        match input.read_length()? {
            0 => Some(input.rest().to_vec()),
            length if length <= MAX_BLOCK_BYTES => {
                let mut slot = self.0.lock();
                let unpacker = match &mut *slot {
                    Some(unpacker) => unpacker,
                    empty => empty.insert(Decompressor::new().ok()?),
                };
                let raw = unpacker.decompress(input.rest(), length).ok()?;
                drop(slot);
                (raw.len() == length).then_some(raw)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_packed_comes_back(words in prop::collection::vec(0_u8..8, 0..750)) {
            let raw: Vec<u8> = words.iter().flat_map(|word| [b'w', b'o' + word, b'r', *word]).collect();
            let mut packed = Vec::new();
            Packer::new().pack_block(&raw, &mut packed);
            prop_assert!(packed.len() <= raw.len() + 1);
            prop_assert!(raw.len() < 2_000 || packed.len() < raw.len());
            let again = Unpacker::default().unpack_block(&packed);
            prop_assert_eq!(again, Some(raw));
        }

        #[test]
        fn any_bytes_are_unpacked_or_refused(bytes: Vec<u8>) {
            Unpacker::default().unpack_block(&bytes);
        }
    }
}
