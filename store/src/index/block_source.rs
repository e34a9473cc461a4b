//! Reading ordered maps of byte keys: from the blocks of the index, or from those of a snapshot.
use super::block::{Block, Name, VisitEntry};
use crate::Error;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// Whether a block is likely to be read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// It is cached.
    Again,
    /// It is read in a single pass, so it is cached only if it was read before.
    Once,
}

/// Where blocks come from.
pub(crate) trait BlockSource {
    /// Returns the block with the greatest name within `upper`, which is a bound at `key`.
    fn find_block(
        &self,
        upper: Bound<&[u8]>,
        key: &[u8],
        reading: Reading,
    ) -> Result<(Name, Arc<Block>), Error>;

    /// Returns the block with this name.
    fn load_block(&self, name: &[u8], reading: Reading) -> Result<Arc<Block>, Error>;

    /// Passes the value of a key to `read`, if there is one.
    fn read_value(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        let (_, block) = self.find_block(Bound::Included(key), key, Reading::Again)?;
        block.get(key).map(read);
        Ok(())
    }
}

/// Reads the entries of a source.
pub(crate) trait ReadEntries: BlockSource {
    /// Passes the value of a key to `read`, and returns what it returns.
    fn get<T>(&self, key: &[u8], mut read: impl FnMut(&[u8]) -> T) -> Result<Option<T>, Error> {
        let mut found = None;
        self.read_value(key, &mut |value| found = Some(read(value)))?;
        Ok(found)
    }

    /// Passes the entries of a tree from `from` on to `visit`, in order, until it breaks.
    fn scan(&self, from: &[u8], visit: &mut VisitEntry<'_>) -> Result<(), Error> {
        let (_, mut block) = self.find_block(Bound::Included(from), from, Reading::Again)?;
        while block.scan(from, visit)?.is_continue() {
            let Some(end) = block.end() else { break };
            let next = self.load_block(end, Reading::Again)?;
            block = next;
        }
        Ok(())
    }

    /// Passes the entries whose keys begin with `prefix` to `visit`, in order, until it breaks.
    fn scan_prefix(&self, prefix: &[u8], visit: &mut VisitEntry<'_>) -> Result<(), Error> {
        self.scan(prefix, &mut |key, value| {
            if key.starts_with(prefix) { visit(key, value) } else { Ok(ControlFlow::Break(())) }
        })
    }

    /// Passes the entries of a tree before `before` to `visit`, in reverse order, until it breaks.
    fn scan_back(&self, before: &[u8], visit: &mut VisitEntry<'_>) -> Result<(), Error> {
        let mut upper = Name::from(before);
        loop {
            let (name, block) = self.find_block(Bound::Excluded(&upper), &upper, Reading::Again)?;
            for (key, value) in block.to_vec().iter().rev() {
                if **key < *before && visit(key, value)?.is_break() {
                    return Ok(());
                }
            }
            if name.len() <= 1 {
                return Ok(());
            }
            upper = name;
        }
    }

    /// Returns whether some key begins with `prefix`.
    fn contains_prefix(&self, prefix: &[u8]) -> Result<bool, Error> {
        let mut found = false;
        self.scan_prefix(prefix, &mut |_, _| {
            found = true;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }
}

impl<S: BlockSource + ?Sized> ReadEntries for S {}
