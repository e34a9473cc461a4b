//! Compaction: the journal gets a new base, so that it takes the room of what is held and not of
//! all that ever was.
//!
//! A base is read from the index in pages while commits go on, so it may hold any mixture of what
//! was and what is. FORMAT.md shows why the frames behind it, replayed over it, make it exact.
use crate::Error;
use crate::journal::{Parts, Synced, Writer};
use crate::store::{Inner, Touched};
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::{Arc, MutexGuard};

/// Quads and documents read under one lock, so that no commit waits for more.
const PAGE: usize = 256;

/// What was held before a pass over all of it.
pub(crate) struct Before {
    /// The newest frame.
    pub(crate) from: u64,
    quads: u64,
    documents: u64,
    touched: Touched,
    /// Another one is in its place once the store was reopened.
    synced: Arc<Synced>,
    /// Whether no commit was taken already.
    pub(crate) was_poisoned: bool,
}

impl Inner {
    /// Gives the journal a new base. Whatever fails on the way, the old one stays.
    pub(crate) fn compact(&self) -> Result<(), Error> {
        let _slot = self.slot.take();
        self.closing.check()?;
        let mut writer = self.admitted()?;
        let before = self.before(&writer);
        let from = before.from;
        let Some(mut base) = writer.begin_base(from)? else { return Ok(()) };
        drop(writer);
        let exact = match self.write_state(&mut base.parts, &before) {
            Ok(exact) => exact,
            Err(error) => {
                base.give_up();
                return Err(error);
            }
        };
        let base = base.finish(exact, &|| self.may_go_on(&before))?;
        let mut writer = match self.admitted() {
            Ok(writer) => writer,
            Err(error) => {
                base.give_up();
                return Err(error);
            }
        };
        // An index that lacks frames of the old segments would have to be made again from the base
        // after a crash. That is better than no room for a compaction, which makes room.
        if self.index().noted() < from
            && let Err(error) = self.checkpoint(&writer)
            && !error.is_no_room()
        {
            base.give_up();
            return Err(error);
        }
        let base = writer.replace(base)?;
        drop(writer);
        self.synced().rebased(base.remove_older(), base.bytes);
        let end = base.end;
        tracing::info!(
            quads = end.quads,
            documents = end.documents,
            bytes = base.bytes,
            "The journal was compacted."
        );
        Ok(())
    }

    /// What is held before a pass over all of it begins.
    pub(crate) fn before(&self, _writer: &MutexGuard<'_, Writer>) -> Before {
        let index = self.index();
        let synced = self.synced();
        Before {
            from: index.sequence(),
            quads: index.quads(),
            documents: index.document_count(),
            touched: self.touched(),
            was_poisoned: synced.check().is_err(),
            synced,
        }
    }

    /// Refuses to go on with a pass that keeps the store from being closed, or from being opened anew: one that
    /// began when the store was poisoned goes on, as it may be the last that saves what is held. None goes on
    /// once the store was opened anew: what it has read so far may have been cut.
    pub(crate) fn may_go_on(&self, before: &Before) -> Result<(), Error> {
        self.closing.check()?;
        if !Arc::ptr_eq(&before.synced, &self.synced()) {
            return Err(Error::Reopening);
        }
        if before.was_poisoned { Ok(()) } else { before.synced.check() }
    }

    /// Writes the whole state, page by page; gives the newest frame that the parts may hold
    /// something of. All frames up to that one are synced.
    pub(crate) fn write_state<W: Write>(
        &self,
        parts: &mut Parts<W>,
        before: &Before,
    ) -> Result<u64, Error> {
        let mut quads = 0_u64;
        let mut cursor = Some(Vec::new());
        while let Some(from) = cursor {
            self.may_go_on(before)?;
            let mut left = PAGE;
            cursor = self.index().page_of_quads(&from, &mut |quad| {
                parts.quad(quad.as_ref())?;
                quads += 1;
                Ok(full(&mut left, parts))
            })?;
            if parts.is_full() {
                parts.flush()?;
            }
        }
        let mut cursor = Some(Vec::new());
        let (mut exact, mut documents) = (0, 0_u64);
        while let Some(from) = cursor {
            self.may_go_on(before)?;
            let mut left = PAGE;
            let index = self.index();
            cursor = index.page_of_documents(&from, &mut |collection, key, value| {
                parts.document(collection, key, value);
                documents += 1;
                Ok(full(&mut left, parts))
            })?;
            exact = index.sequence();
            drop(index);
            if parts.is_full() {
                parts.flush()?;
            }
        }
        self.may_go_on(before)?;
        before.synced.wait(exact)?;
        // No more than the commits meanwhile can the quads and documents be more or fewer than they were.
        let touched = self.touched();
        for (what, counted, written, changed) in [
            ("quads", before.quads, quads, touched.quads - before.touched.quads),
            (
                "documents",
                before.documents,
                documents,
                touched.documents - before.touched.documents,
            ),
        ] {
            if counted.abs_diff(written) > changed {
                let error = Error::Index(format!(
                    "it gave {written} {what} where it counts {counted}, and {changed} were changed meanwhile"
                ));
                self.index().note_damage(&error);
                return Err(error);
            }
        }
        Ok(exact)
    }
}

fn full<W: Write>(left: &mut usize, parts: &Parts<W>) -> ControlFlow<()> {
    *left = left.saturating_sub(1);
    if *left == 0 || parts.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
