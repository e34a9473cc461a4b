//! The keys of a tree that begin with a prefix, one after the other.
use super::block::{Block, Following, common_prefix_len};
use super::block_source::{BlockSource, Reading};
use super::key::{KeyBuffer, damaged_entry};
use super::term_code::TermCode;
use crate::Error;
use crate::varint::Input;
use std::ops::Bound;
use std::sync::Arc;

/// The keys of a tree that begin with a prefix, in order.
pub(super) struct KeyScan<'a> {
    blocks: &'a dyn BlockSource,
    /// The current key, or the first key that is sought.
    key: KeyBuffer,
    prefix_bytes: usize,
    /// The block that is read, unless the sought key is in another.
    block: Option<Arc<Block>>,
    /// The position in the block of the current key.
    key_at: usize,
    /// The position in the block of what follows the key.
    at: usize,
    /// How many bytes the key shares with the entry before `at`.
    matched: usize,
    /// Whether the block after the current one is likely to have the key that is sought next.
    is_sequential: bool,
}

impl<'a> KeyScan<'a> {
    /// Begins at a key, to read the keys that begin with its first bytes.
    pub(super) fn new(
        blocks: &'a dyn BlockSource,
        (key, prefix_bytes): (KeyBuffer, usize),
    ) -> Self {
        Self {
            blocks,
            key,
            prefix_bytes,
            block: None,
            key_at: 0,
            at: 0,
            matched: 0,
            is_sequential: true,
        }
    }

    /// Continues at another key. That is cheap if it follows in the same block, or if the keys that are sought are in one
    /// block after the other: loading a block by its name takes less than finding the block of a key.
    pub(super) fn seek(&mut self, (key, prefix_bytes): (KeyBuffer, usize)) -> Result<(), Error> {
        let is_in_block = |block: &Block| block.end().is_none_or(|end| end > &*key);
        let before = self.block.take().filter(|_| *key > *self.key);
        if let Some(block) = before {
            if is_in_block(&block) {
                let matched = common_prefix_len(&key, &self.key).min(self.matched);
                let position = block.seek(self.at, matched, &key);
                (self.at, self.matched) = (position.at, position.matched);
                self.block = Some(block);
            } else if let Some(end) = block.end() {
                let next = if self.is_sequential {
                    let next = self.blocks.load_block(end, Reading::Once)?;
                    self.is_sequential = is_in_block(&next);
                    self.is_sequential.then_some(next)
                } else {
                    let upper = Bound::Included(&*key);
                    let (name, next) = self.blocks.find_block(upper, &key, Reading::Once)?;
                    self.is_sequential = *name == *end;
                    Some(next)
                };
                if let Some(next) = next {
                    let position = next.seek(0, 0, &key);
                    (self.at, self.matched) = (position.at, position.matched);
                    self.block = Some(next);
                }
            }
        }
        (self.key, self.prefix_bytes) = (key, prefix_bytes);
        Ok(())
    }

    fn prefix(&self) -> &[u8] {
        self.key.get(..self.prefix_bytes).unwrap_or_default()
    }

    /// Moves to the next key. Returns false at the end.
    pub(super) fn advance(&mut self) -> Result<bool, Error> {
        loop {
            let Some(block) = &self.block else {
                let key = &*self.key;
                let (_, block) =
                    self.blocks.find_block(Bound::Included(key), key, Reading::Once)?;
                let position = block.seek(0, 0, key);
                (self.at, self.matched) = (position.at, position.matched);
                self.block = Some(block);
                continue;
            };
            self.key_at = self.at;
            match block.read_within(self.prefix_bytes, &mut self.at, &mut self.key) {
                Following::Key => {
                    self.matched = self.key.len();
                    return Ok(true);
                }
                Following::OtherPrefix => return Ok(false),
                Following::Damage => return Err(damaged_entry("the key after", &self.key)),
                Following::EndOfBlock => {
                    let prefix = self.prefix();
                    let Some(end) = block.end() else { return Ok(false) };
                    if end > prefix && !end.starts_with(prefix) {
                        return Ok(false);
                    }
                    self.block = Some(self.blocks.load_block(end, Reading::Once)?);
                    (self.at, self.matched) = (0, 0);
                }
            }
        }
    }

    /// Returns the current key.
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Reads a number that follows the prefix in the current key.
    pub(super) fn read_number(&self) -> Result<u64, Error> {
        let rest = self.key.get(self.prefix_bytes..).unwrap_or_default();
        Input::new(rest).read_number().ok_or_else(|| damaged_entry("a number in", &self.key))
    }

    /// Reads the number that is the value of the current key.
    pub(super) fn read_value(&self) -> Result<u64, Error> {
        let value = self.block.as_ref().and_then(|block| block.read_value(self.key_at));
        let number = value.and_then(|value| Input::new(value).read_number());
        number.ok_or_else(|| damaged_entry("the number of", &self.key))
    }

    /// Reads two numbers that follow the prefix in the current key.
    pub(super) fn read_numbers(&self) -> Result<(u64, u64), Error> {
        let damaged = || damaged_entry("a number in", &self.key);
        let mut rest = Input::new(self.key.get(self.prefix_bytes..).unwrap_or_default());
        let first = rest.read_number().ok_or_else(damaged)?;
        Ok((first, rest.read_number().ok_or_else(damaged)?))
    }
}

/// Returns the key of a tree with these parts, and the number of its bytes.
pub(super) fn build_prefix(tree: u8, ids: &[u64], object: Option<&TermCode>) -> (KeyBuffer, usize) {
    let mut key = KeyBuffer::new(tree);
    // All parts of a quad fit.
    let _ = ids.iter().all(|id| key.extend_number(*id))
        && object.is_none_or(|object| object.write_object(&mut key));
    let bytes = key.len();
    (key, bytes)
}
