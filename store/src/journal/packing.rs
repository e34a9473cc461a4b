//! The payload of a part or a pack: packed content with its length and checksum. FORMAT.md describes the bytes.
use crate::frame::MAX_PAYLOAD_BYTES;
use crate::varint::{self, Input};
use std::io::{self, Read as _};

/// The kind of a payload with packed content: a commit in a base, frames in a packed segment.
const PART_KIND: u8 = 2;
const METHOD_STORED: u8 = 0;
const METHOD_ZSTD: u8 = 1;
/// On objects of 10 quads, level 1 packs as well as level 3 in half the time.
const ZSTD_LEVEL: i32 = 1;
/// The maximum length of a part of a base, in bytes: the limit of a commit, and what packing may add.
pub(super) const MAX_PART_BYTES: u32 = MAX_PAYLOAD_BYTES + (1 << 20);
/// Bytes gathered before a part is packed. One quad or document may exceed it.
pub(super) const PART_BYTES: usize = 256 << 10;
/// The most that a zstd frame may ask of a reader's memory, as a power of two: 8 MiB, as RFC 8878 (3.1.1.1.2) recommends.
/// Level 1 uses 512 KiB.
pub const MAX_ZSTD_WINDOW_LOG: u32 = 23;
/// The maximum length of a content that is unpacked in one call, in bytes. Most parts are shorter.
const MAX_UNPACK_AT_ONCE_BYTES: usize = 4 * PART_BYTES;

pub(super) type Packer = zstd::bulk::Compressor<'static>;

pub(super) fn new_packer() -> io::Result<Packer> {
    zstd::bulk::Compressor::new(ZSTD_LEVEL)
}

/// Returns the payload of a part with this content.
pub(super) fn pack_part(packer: &mut Packer, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let packed = packer.compress(bytes)?;
    let (method, kept) = if packed.len() < bytes.len() {
        (METHOD_ZSTD, packed.as_slice())
    } else {
        (METHOD_STORED, bytes)
    };
    let mut payload = Vec::with_capacity(kept.len() + 16);
    payload.extend_from_slice(&[PART_KIND, method]);
    payload.extend_from_slice(&crc32c::crc32c(bytes).to_le_bytes());
    varint::write_length(&mut payload, bytes.len());
    payload.extend_from_slice(kept);
    Ok(payload)
}

/// Unpacks a part. The error says what is wrong with it. `first` is the first byte of the content, if it is
/// known.
///
/// A few packed bytes can expand to 32,000 times as many. So memory is allocated only as they are unpacked,
/// and unexpected content is refused at its first byte.
pub(super) fn unpack_part(payload: &[u8], first: Option<u8>) -> Result<Vec<u8>, &'static str> {
    const SHORT: &str = "the part ends too early";
    let mut input = Input::new(payload);
    if input.read_byte() != Some(PART_KIND) {
        return Err("the payload has an unknown kind");
    }
    let method = input.read_byte().ok_or(SHORT)?;
    let sum = input.take(4).and_then(|sum| sum.first_chunk().copied()).ok_or(SHORT)?;
    let length = input.read_length().ok_or(SHORT)?;
    if length > MAX_PART_BYTES as usize {
        return Err("the part is longer than the limit");
    }
    let commit = match method {
        METHOD_STORED => input.rest().to_vec(),
        METHOD_ZSTD if length <= MAX_UNPACK_AT_ONCE_BYTES => {
            zstd::bulk::decompress(input.rest(), length)
                .map_err(|_| "the part cannot be unpacked")?
        }
        METHOD_ZSTD => unpack_long_part(input.rest(), length, first)?,
        _ => return Err("the part has an unknown packing method"),
    };
    if commit.len() != length || crc32c::crc32c(&commit) != u32::from_le_bytes(sum) {
        return Err("the length or checksum of the unpacked part is wrong");
    }
    Ok(commit)
}

/// Unpacks content of more than [`MAX_UNPACK_AT_ONCE_BYTES`] bytes.
fn unpack_long_part(
    packed: &[u8],
    length: usize,
    first: Option<u8>,
) -> Result<Vec<u8>, &'static str> {
    const WRONG: &str = "the part cannot be unpacked";
    let mut decoder = zstd::Decoder::with_buffer(packed).map_err(|_| WRONG)?;
    // The decoder allocates its window before there is any content.
    decoder.window_log_max(MAX_ZSTD_WINDOW_LOG).map_err(|_| WRONG)?;
    let mut bytes = Vec::new();
    decoder
        .by_ref()
        .take(MAX_UNPACK_AT_ONCE_BYTES as u64)
        .read_to_end(&mut bytes)
        .map_err(|_| WRONG)?;
    if first.is_some() && bytes.first().copied() != first {
        return Err("the payload has an unknown kind");
    }
    let rest = length.saturating_sub(bytes.len()) as u64;
    // One more byte shows that the content is longer than stated.
    decoder.take(rest + 1).read_to_end(&mut bytes).map_err(|_| WRONG)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_part_that_asks_for_a_large_window_is_refused() {
        let content = vec![1; MAX_UNPACK_AT_ONCE_BYTES + 1];
        for (window_log, is_refused) in
            [(MAX_ZSTD_WINDOW_LOG, false), (MAX_ZSTD_WINDOW_LOG + 1, true)]
        {
            let mut packed = zstd::Encoder::new(Vec::new(), ZSTD_LEVEL).unwrap();
            packed.window_log(window_log).unwrap();
            packed.write_all(&content).unwrap();
            let mut payload = vec![PART_KIND, METHOD_ZSTD];
            payload.extend(crc32c::crc32c(&content).to_le_bytes());
            varint::write_length(&mut payload, content.len());
            payload.extend(packed.finish().unwrap());
            let unpacked = unpack_part(&payload, Some(1));
            assert_eq!(unpacked.is_err(), is_refused, "{window_log}");
        }
        // What this program packs asks for less.
        let packed = pack_part(&mut new_packer().unwrap(), &content).unwrap();
        assert_eq!(unpack_part(&packed, Some(1)), Ok(content));
    }
}
