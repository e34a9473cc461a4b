//! Compaction: writes a new base of the journal, so that the journal takes the disk space of the current
//! state and not of its whole history.
//!
//! The base is read from the index in pages while commits continue, so it can mix older and newer state.
//! FORMAT.md proves that replaying the frames after it makes the state exact.
use crate::index::Health as _;
use crate::journal::{PartWriter, SyncState, Writer};
use crate::store::{ChangeCounts, StoreInner};
use crate::{Error, Format};
use parking_lot::MutexGuard;
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The maximum number of quads or documents read under one lock. It limits how long a commit waits.
const ITEMS_PER_PAGE: usize = 256;

/// The state before a pass over the whole index.
pub(crate) struct PassStart {
    /// The sequence of the newest frame.
    pub(crate) from: u64,
    /// The format of the store.
    pub(crate) format: Format,
    quads: u64,
    documents: u64,
    change_counts: ChangeCounts,
    /// Identifies the opened journal: reopening the store replaces it.
    pub(crate) synced: Arc<SyncState>,
    /// Whether the store already refused commits.
    pub(crate) was_poisoned: bool,
}

impl StoreInner {
    /// Writes a new base of the journal. If any step fails, the old base stays valid.
    pub(crate) fn compact_journal(&self) -> Result<(), Error> {
        let _slot = self.slot.take();
        loop {
            match self.write_base() {
                // The header of the next base tells the raised format.
                Err(Error::FormatRaised) => {}
                done => return done,
            }
        }
    }

    fn write_base(&self) -> Result<(), Error> {
        self.closing.check_not_closing()?;
        let mut writer = self.lock_writer_if_writable()?;
        let before = self.begin_pass(&writer);
        let from = before.from;
        let Some(mut base) = writer.begin_base(from)? else { return Ok(()) };
        drop(writer);
        let exact = match self.write_state(&mut base.parts, &before) {
            Ok(exact) => exact,
            Err(error) => {
                base.discard();
                return Err(error);
            }
        };
        let base = base.finish(exact, &|| self.check_may_continue(&before))?;
        let locked = self.lock_writer_if_writable();
        let mut writer = match locked.and_then(|writer| {
            self.check_may_continue(&before)?;
            Ok(writer)
        }) {
            Ok(writer) => writer,
            Err(error) => {
                base.discard();
                return Err(error);
            }
        };
        // If the index lacks frames of the old segments, it gets a checkpoint first. Otherwise a crash would
        // cause a rebuild from the base. If the disk is full, that is acceptable: a compaction frees disk
        // space, so it must not fail for lack of it.
        if self.lock_index().checkpointed_sequence() < from
            && let Err(error) = self.write_checkpoint(&writer)
            && !error.is_disk_full()
        {
            base.discard();
            return Err(error);
        }
        let base = writer.publish_base(base)?;
        drop(writer);
        self.sync_state().record_base(self.remove_obsolete(), base.bytes);
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
    pub(crate) fn begin_pass(&self, _writer: &MutexGuard<'_, Writer>) -> PassStart {
        let index = self.lock_index();
        let synced = self.sync_state();
        PassStart {
            from: index.sequence(),
            format: synced.format(),
            quads: index.quad_count(),
            documents: index.document_count(),
            change_counts: self.change_counts(),
            was_poisoned: synced.check_writable().is_err(),
            synced,
        }
    }

    /// Fails if a pass must end, so that the store can be closed or reopened. A pass that began on a poisoned
    /// store continues, because it may be the last one that saves the data. No pass continues once the store
    /// was reopened: commits that it has read may have been cut off. No pass continues either once the format
    /// of the store was raised: its header tells the format, and it may have read records of the new one.
    pub(crate) fn check_may_continue(&self, before: &PassStart) -> Result<(), Error> {
        self.closing.check_not_closing()?;
        if !Arc::ptr_eq(&before.synced, &self.sync_state()) {
            return Err(Error::Reopening);
        }
        if before.synced.format() != before.format {
            return Err(Error::FormatRaised);
        }
        if before.was_poisoned { Ok(()) } else { before.synced.check_writable() }
    }

    /// Writes the whole state, page by page. Returns the sequence of the newest frame whose changes the parts
    /// may contain. All frames up to that one are synced, unless the store was poisoned before: then a sync may have
    /// failed for good, and this may be the pass that saves the data.
    pub(crate) fn write_state<W: Write>(
        &self,
        parts: &mut PartWriter<W>,
        before: &PassStart,
    ) -> Result<u64, Error> {
        let mut quads = 0_u64;
        let mut cursor = Some(Vec::new());
        while let Some(from) = cursor {
            self.check_may_continue(before)?;
            let mut left = ITEMS_PER_PAGE;
            cursor = self.lock_index().view().visit_quad_page(&from, &mut |quad| {
                parts.add_quad(quad.as_ref())?;
                quads += 1;
                Ok(break_if_full(&mut left, parts))
            })?;
            if parts.is_full() {
                parts.flush()?;
            }
        }
        let mut cursor = Some(Vec::new());
        let (mut exact, mut documents) = (0, 0_u64);
        while let Some(from) = cursor {
            self.check_may_continue(before)?;
            let mut left = ITEMS_PER_PAGE;
            let index = self.lock_index();
            cursor = index.view().visit_document_page(&from, &mut |collection, key, value| {
                parts.add_document(collection, key, value);
                documents += 1;
                Ok(break_if_full(&mut left, parts))
            })?;
            exact = index.sequence();
            drop(index);
            if parts.is_full() {
                parts.flush()?;
            }
        }
        self.check_may_continue(before)?;
        if !before.was_poisoned {
            before.synced.wait_synced(exact)?;
        }
        // Each number written may differ from the count before by at most the number of changes meanwhile.
        let counts = self.change_counts();
        for (what, counted, written, changed) in [
            ("quads", before.quads, quads, counts.quads - before.change_counts.quads),
            (
                "documents",
                before.documents,
                documents,
                counts.documents - before.change_counts.documents,
            ),
        ] {
            if counted.abs_diff(written) > changed {
                let error = Error::Index(format!(
                    "it returned {written} {what}, but its count is {counted} and only {changed} changed meanwhile"
                ));
                self.lock_index().record_damage(&error);
                return Err(error);
            }
        }
        Ok(exact)
    }
}

fn break_if_full<W: Write>(left: &mut usize, parts: &PartWriter<W>) -> ControlFlow<()> {
    *left = left.saturating_sub(1);
    if *left == 0 || parts.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
