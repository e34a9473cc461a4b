//! The quad index: what the journal amounts to, as ordered maps. It can be made again at any time
//! by replaying the journal, and a replayed frame takes the same way as a new one.
mod about;
mod block;
mod blocks;
mod checkpoint;
mod clean;
mod dictionary;
mod documents;
mod engine;
mod filter;
#[cfg(test)]
mod fuzz;
mod images;
mod key;
mod merged;
mod names;
mod note;
mod packing;
mod page;
mod quads;
mod run;
mod runs;
mod seal;
mod stand;
mod subjects;

pub(crate) use checkpoint::{Inspected, discard, inspect, is_there, open};
pub use engine::panic_is_caught;
pub(crate) use key::{Code, DEFAULT_GRAPH, Row};
pub(crate) use page::Cursor;
pub(crate) use stand::{Near, Stand};

use crate::frame::Change;
use crate::steps::Steps;
use crate::{Error, files};
use blocks::Blocks;
use note::Note;
use runs::Runs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The index.
#[derive(Debug)]
pub(crate) struct Index {
    blocks: Blocks,
    /// What is named in an order that is not the one it comes in.
    runs: Runs,
    names: names::Names,
    ids: names::Ids,
    /// Tells it from any other index of this process: ids mean something in one alone.
    instance: u64,
    /// What holds for the state in memory.
    note: Note,
    /// The sequence up to which the medium has it.
    noted: u64,
    /// The data directory.
    dir: PathBuf,
    /// Why the state in memory cannot be trusted any more.
    broken: Option<String>,
    /// The first damage that was met since it was opened.
    damage: OnceLock<String>,
    /// Whether the medium may have a checkpoint that is not known here, since it failed at its end.
    is_behind: AtomicBool,
    /// Whether it was closed, since another one is about to take its place.
    closed: bool,
}

fn damaged(what: &str, bytes: &[u8]) -> Error {
    Error::Index(format!("{what} {bytes:02x?} is missing or damaged"))
}

impl Index {
    /// The sequence of the newest frame that was applied.
    pub(crate) fn sequence(&self) -> u64 {
        self.note.sequence
    }

    /// The newest frame that is on the medium, too.
    pub(crate) fn noted(&self) -> u64 {
        self.noted
    }

    /// Tells it from any other index of this process.
    pub(crate) fn instance(&self) -> u64 {
        self.instance
    }

    pub(crate) fn store_id(&self) -> [u8; 16] {
        self.note.store_id
    }

    pub(crate) fn quads(&self) -> u64 {
        self.note.quads
    }

    /// How many documents there are.
    pub(crate) fn document_count(&self) -> u64 {
        self.note.documents
    }

    /// Finds out how many documents there are, in an index of a format that does not note it.
    fn count_documents(&mut self) -> Result<(), Error> {
        let mut counted = 0;
        self.page_of_documents(&Vec::new(), &mut |_, _, _| {
            counted += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        self.note.documents = counted;
        Ok(())
    }

    pub(crate) fn dirty_bytes(&self) -> usize {
        self.blocks.dirty_bytes() + self.runs.changed_bytes()
    }

    pub(crate) fn bytes_on_disk(&self) -> u64 {
        self.blocks.engine().size() + self.runs.size()
    }

    /// Lets go of the files, so that they can be opened anew. It answers no more.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.damage = OnceLock::new();
        self.blocks.close();
        self.runs.close();
    }

    /// Refuses when a frame was applied in part.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &self.broken {
            _ if self.closed => Err(Error::Reopening),
            Some(cause) => Err(Error::Index(cause.clone())),
            None => Ok(()),
        }
    }

    /// Whether the medium may have more than this state knows, so that it must be read again.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Acquire)
    }

    /// What was met that is not as it was written, or cannot be read.
    pub(crate) fn damage(&self) -> Option<&str> {
        self.damage.get().map(String::as_str)
    }

    /// Remembers damage: another index is to take the place of this one.
    pub(crate) fn note_damage(&self, error: &Error) {
        if let Error::Index(cause) = error
            && self.damage.set(cause.clone()).is_ok()
        {
            tracing::warn!(cause, "The quad index is damaged.");
        }
    }

    /// Reads from the index, and remembers damage that it meets.
    fn reading<T>(&self, read: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        self.check()?;
        read().inspect_err(|error| self.note_damage(error))
    }

    /// Applies the frame that follows the newest one. After a failure the index answers no more.
    pub(crate) fn apply(
        &mut self,
        sequence: u64,
        change: &Change<'_>,
        steps: &Steps,
    ) -> Result<(), Error> {
        self.check()?;
        // It holds while the parts are applied, so that not even a panic lets half of them be seen.
        self.broken = Some("a commit was applied in part".to_owned());
        match self.apply_parts(change, steps) {
            Ok(()) => {
                self.note.sequence = sequence;
                self.broken = None;
                Ok(())
            }
            Err(error) => {
                self.note_damage(&error);
                self.broken = Some(error.to_string());
                Err(error)
            }
        }
    }

    fn apply_parts(&mut self, change: &Change<'_>, steps: &Steps) -> Result<(), Error> {
        files::allow_apply(&self.dir)?;
        let mut codes = Vec::with_capacity(change.terms.len() + 1);
        codes.push(Code::named(DEFAULT_GRAPH));
        for term in &change.terms {
            codes.push(self.enter(*term)?);
            steps.step();
        }
        // What is added comes first, lest a long literal that a removed quad and an added one
        // share is lost in between.
        for (quads, added) in [(&change.added, true), (&change.removed, false)] {
            self.change_quads(&change.terms, &codes, quads, added, steps)?;
        }
        for (collection, key, value) in &change.documents {
            steps.step();
            match value {
                Some(value) => self.put_document(collection, key, value)?,
                None => self.delete_document(collection, key)?,
            }
        }
        Ok(())
    }
}
