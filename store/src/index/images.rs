//! The file of images: the changes that a checkpoint writes to the engine. It is written first, so that the
//! next open can finish an interrupted checkpoint without rebuilding the index.
use crate::varint::{self, Input};
use crate::{Error, files};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use zstd::bulk::{Compressor, Decompressor};

const MAGIC: &[u8; 8] = b"PENSCKP1";
/// The maximum number of blocks in a part. The engine gets the new names of a part first, and then the bytes
/// of its blocks. A leaf of the engine that gets too many entries is rewritten whole, as two leaves. The part
/// is small enough that the leaf is still in memory when the bytes follow.
const PART_BLOCKS: usize = 512;
/// Bytes after which a part ends.
const IMAGE_PART_BYTES: usize = 512 << 10;
/// The maximum length of a part, in bytes. A part can exceed [`IMAGE_PART_BYTES`] by one block.
const MAX_IMAGE_PART_BYTES: usize = 4 << 20;
const ZSTD_LEVEL: i32 = 1;
/// The length of a part's header: two lengths and a checksum.
const PART_HEADER_BYTES: usize = 12;

/// The change of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Image<'a> {
    /// The name is deleted.
    Deleted,
    /// The block of an existing name is replaced.
    Changed(&'a [u8]),
    /// The name is new.
    New(&'a [u8]),
}

/// The callback for each part, with its names and their changes.
type VisitPart<'v> = dyn FnMut(&[(&[u8], Image<'_>)]) -> Result<(), Error> + 'v;

/// The end of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ImagesEnd {
    /// The index's new note.
    pub(super) note: Vec<u8>,
    /// The sum of the checksums of all blocks in the file.
    pub(super) sum: u64,
}

/// Writes a file of images.
pub(super) struct NewImages {
    file: File,
    path: PathBuf,
    length: u64,
    part: Vec<u8>,
    blocks: usize,
    compressor: Compressor<'static>,
}

impl NewImages {
    pub(super) fn begin(path: &Path) -> Result<Self, Error> {
        let file = files::create_or_truncate(path)?;
        let compressor = Compressor::new(ZSTD_LEVEL).map_err(files::io_error("packing", path))?;
        let mut new = Self {
            file,
            path: path.to_owned(),
            length: 0,
            part: Vec::new(),
            blocks: 0,
            compressor,
        };
        new.write_bytes(MAGIC)?;
        Ok(new)
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        files::write_at(&self.file, &self.path, bytes, self.length)
            .map_err(files::io_error("writing", &self.path))?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn push(&mut self, name: &[u8], image: Image<'_>) -> Result<(), Error> {
        varint::write_bytes(&mut self.part, name);
        match image {
            Image::Deleted => self.part.push(0),
            Image::Changed(block) => {
                self.part.push(1);
                varint::write_bytes(&mut self.part, block);
            }
            Image::New(block) => {
                self.part.push(2);
                varint::write_bytes(&mut self.part, block);
            }
        }
        self.blocks += 1;
        if self.blocks >= PART_BLOCKS || self.part.len() >= IMAGE_PART_BYTES {
            self.end_part()?;
        }
        Ok(())
    }

    fn end_part(&mut self) -> Result<(), Error> {
        if self.blocks == 0 {
            return Ok(());
        }
        let packed = self.compressor.compress(&self.part);
        let packed = packed.map_err(files::io_error("packing", &self.path))?;
        let out = frame_bytes(&packed, self.part.len());
        self.part.clear();
        self.blocks = 0;
        self.write_bytes(&out)
    }

    /// Ends the file. Returns when its content is on the medium; its name may not be.
    pub(super) fn finish(mut self, end: &ImagesEnd) -> Result<(), Error> {
        self.end_part()?;
        let mut bytes = end.sum.to_le_bytes().to_vec();
        bytes.extend_from_slice(&end.note);
        let out = frame_bytes(&bytes, 0);
        self.write_bytes(&out)?;
        files::sync_file(&self.file, &self.path)
    }
}

/// Frames bytes with their length, their unpacked length, and a checksum of everything.
fn frame_bytes(bytes: &[u8], raw: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + PART_HEADER_BYTES);
    for number in [bytes.len(), raw] {
        out.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
    }
    let crc = crc32c::crc32c_append(crc32c::crc32c(&out), bytes);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(bytes);
    out
}

fn damaged_file(path: &Path) -> Error {
    Error::Index(format!("{} is damaged or incomplete", path.display()))
}

/// Reads the file, one part at a time. Parts before a damaged one are visited before the error is returned.
pub(super) fn read_images(path: &Path, visit: &mut VisitPart<'_>) -> Result<ImagesEnd, Error> {
    let unreadable =
        |cause: io::Error| Error::Index(format!("{} cannot be read: {cause}", path.display()));
    let mut file = File::open(path).map_err(unreadable)?;
    let mut left = file.metadata().map_err(unreadable)?.len();
    let mut take = |length: usize| {
        left = left.checked_sub(length as u64).ok_or_else(|| damaged_file(path))?;
        let mut bytes = vec![0; length];
        file.read_exact(&mut bytes).map_err(unreadable)?;
        Ok::<_, Error>((bytes, left))
    };
    if take(MAGIC.len())?.0 != MAGIC {
        return Err(damaged_file(path));
    }
    let mut unpacker = Decompressor::new().map_err(unreadable)?;
    loop {
        let (head, _) = take(PART_HEADER_BYTES)?;
        let mut numbers =
            head.chunks(4).map(|four| four.try_into().map(u32::from_le_bytes).unwrap_or_default());
        let mut number = || numbers.next().unwrap_or_default();
        let (length, raw, crc) = (number() as usize, number() as usize, number());
        let (bytes, left) = take(length)?;
        let found = crc32c::crc32c(head.get(..PART_HEADER_BYTES - 4).unwrap_or_default());
        if crc32c::crc32c_append(found, &bytes) != crc || raw > MAX_IMAGE_PART_BYTES {
            return Err(damaged_file(path));
        }
        if raw == 0 {
            let (sum, note) = bytes.split_first_chunk().ok_or_else(|| damaged_file(path))?;
            let end = ImagesEnd { note: note.to_vec(), sum: u64::from_le_bytes(*sum) };
            return if left == 0 { Ok(end) } else { Err(damaged_file(path)) };
        }
        let part = unpacker.decompress(&bytes, raw).map_err(unreadable)?;
        visit(&parse_entries(&part).ok_or_else(|| damaged_file(path))?)?;
    }
}

fn parse_entries(part: &[u8]) -> Option<Vec<(&[u8], Image<'_>)>> {
    let mut input = Input::new(part);
    let mut found = Vec::new();
    while !input.is_empty() {
        let name = input.read_bytes()?;
        let image = match input.read_byte()? {
            0 => Image::Deleted,
            1 => Image::Changed(input.read_bytes()?),
            2 => Image::New(input.read_bytes()?),
            _ => return None,
        };
        found.push((name, image));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_whole_file_is_read_and_a_damaged_or_cut_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("images");
        let mut new = NewImages::begin(&path).unwrap();
        for n in 0..1_400_u32 {
            let image = match n % 3 {
                0 => Image::Deleted,
                1 => Image::Changed(b"changed"),
                _ => Image::New(b"fresh"),
            };
            new.push(&n.to_be_bytes(), image).unwrap();
        }
        let end = ImagesEnd { note: vec![1, 2, 3], sum: 77 };
        new.finish(&end).unwrap();
        let mut found = Vec::new();
        let read_all = |found: &mut Vec<u32>| {
            read_images(&path, &mut |entries| {
                found.extend(entries.iter().map(|(name, image)| {
                    let n = u32::from_be_bytes((*name).try_into().unwrap());
                    assert_eq!(n % 3 == 0, *image == Image::Deleted);
                    n
                }));
                Ok(())
            })
        };
        assert_eq!(read_all(&mut found).unwrap(), end);
        assert_eq!(found, (0..1_400).collect::<Vec<_>>());
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            std::fs::write(&path, &bytes).unwrap();
            assert!(
                matches!(read_images(&path, &mut |_| Ok(())), Err(Error::Index(_))),
                "byte {at}"
            );
            std::fs::write(&path, &whole[..at]).unwrap();
            assert!(
                matches!(read_images(&path, &mut |_| Ok(())), Err(Error::Index(_))),
                "cut at {at}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_entries_or_refused(bytes: Vec<u8>) {
            parse_entries(&bytes);
        }
    }
}
