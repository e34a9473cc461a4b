//! Compaction: writes a new base of the journal, so that the journal takes the disk space of the current
//! state and not of its whole history.
//!
//! The base is read from the index in pages while commits continue, so it can mix older and newer state.
//! FORMAT.md proves that replaying the frames after it makes the state exact.
use crate::Error;
use crate::journal::{Parts, Synced, Writer};
use crate::store::{Inner, Touched};
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::{Arc, MutexGuard};

/// Quads and documents read under one lock. It limits how long a commit waits.
const PAGE: usize = 256;

/// The state before a pass over the whole index.
pub(crate) struct Before {
    /// The sequence of the newest frame.
    pub(crate) from: u64,
    quads: u64,
    documents: u64,
    touched: Touched,
    /// Identifies the opened journal: reopening the store replaces it.
    synced: Arc<Synced>,
    /// Whether the store already refused commits.
    pub(crate) was_poisoned: bool,
}

impl Inner {
    /// Writes a new base of the journal. If any step fails, the old base stays valid.
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
        // If the index lacks frames of the old segments, a crash would cause a rebuild from the base. That is
        // acceptable: a compaction frees disk space, so it must not fail for lack of it.
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
            "Compacted the journal."
        );
        Ok(())
    }

    /// Records the state before a pass over the whole index.
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

    /// Ends a pass if it keeps the store from being closed or reopened. A pass that began on a poisoned store
    /// continues, because it may be the last one that saves the data. No pass continues once the store was
    /// reopened: commits that it has read may have been cut off.
    pub(crate) fn may_go_on(&self, before: &Before) -> Result<(), Error> {
        self.closing.check()?;
        if !Arc::ptr_eq(&before.synced, &self.synced()) {
            return Err(Error::Reopening);
        }
        if before.was_poisoned { Ok(()) } else { before.synced.check() }
    }

    /// Writes the whole state, page by page. Returns the sequence of the newest frame of which the parts may
    /// contain something. All frames up to that one are synced.
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
        // The numbers of quads and documents can differ only by the number changed meanwhile.
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
                    "it returned {written} {what}, but its count is {counted} and only {changed} changed meanwhile"
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
