//! What the worker that writes the head does at each interval: it ships the commits since the last head. `start` finds its
//! era, `heads` reads and writes the head, `cleanup` has what happens once an hour and once a day, and `worker` decides when.
use super::head::{Head, LastFrame, MarkedTime};
use super::holes::Hole;
use super::lists::Unmerged;
use super::objects::{FinishedFile, MAX_POINTS, Point, SegmentBuilder, SegmentLine, discard_file};
use super::parts::{
    Parts, Uploaded, disk_failure, kept_failure, refused_head_failure, spoiled_failure,
    store_failure,
};
use super::place::{Objects, Upload};
use super::report::BackupState;
use super::secrecy::HeadSecret;
use super::state::{Anchor, LocalState, ReplacedBy};
use crate::cause::DeliveryFailure;
use penstock_base::time;
use penstock_store::Error;
use std::collections::VecDeque;
use std::sync::Arc;

/// The bytes of frames after which a segment ends, if more wait.
const MAX_SEGMENT_BYTES: u64 = 8 << 20;
/// Objects below this length, in bytes, are merged.
pub(super) const SMALL_SEGMENT_BYTES: u64 = 64 << 10;

/// The worker's view of the backup.
pub(super) struct Shipper<O> {
    pub(super) parts: Arc<Parts<O>>,
    pub(super) state: LocalState,
    pub(super) phase: Phase,
    /// The head in the bucket, as far as is known.
    pub(super) known: Option<KnownHead>,
    /// The entity tag of a head in the bucket that cannot be used, which the operator wants to replace.
    pub(super) unusable_etag: Option<String>,
    /// A head whose result is unclear.
    pub(super) unclear: Option<Head>,
    /// A segment that is not covered by the head yet.
    pub(super) pending: Option<PendingSegment>,
    /// Counts the heads of this process.
    pub(super) write: u64,
    /// The count of the last head that it tried to write.
    pub(super) last_put: u64,
    /// The small segments that are not merged yet.
    pub(super) unmerged: Vec<Unmerged>,
    /// The keys of objects that the last check found to be no longer needed, in the order in which they are deleted.
    pub(super) deletable: VecDeque<String>,
    /// The sequence of the last point that was recorded.
    recorded: u64,
    /// Whether frames that were not sent are gone.
    pub(super) lost_frames: bool,
}

/// What the worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The head is not read, or the era is not begun.
    Starting,
    /// It ships.
    Running,
    /// It does nothing until the operator asks for a new era.
    Stopped,
}

/// A head in the bucket.
#[derive(Debug, Clone)]
pub(super) struct KnownHead {
    pub(super) head: Head,
    /// Its entity tag, if the server names it.
    pub(super) etag: Option<String>,
    /// Whether the bucket accepted it from this process. One that was read may be an older one.
    pub(super) is_confirmed: bool,
}

/// A segment in a file.
#[derive(Debug, Clone)]
pub(super) struct PendingSegment {
    pub(super) line: SegmentLine,
    file: FinishedFile,
    raw_bytes: u64,
    is_uploaded: bool,
}

/// The next segment.
enum Built {
    Nothing,
    Segment(Box<PendingSegment>),
    FramesGone(Hole),
    /// Frames cannot be read. Later ones are in another segment of the journal.
    Unreadable(Hole, Error),
}

impl<O: Objects> Shipper<O> {
    /// Begins with the state in the data directory.
    pub(super) fn new(parts: Arc<Parts<O>>, state: LocalState) -> Self {
        // Not 0: a head of an earlier process with the same token is another one.
        let write = u64::from(rand::random::<u32>());
        let shipper = Self {
            parts,
            state,
            phase: Phase::Starting,
            known: None,
            unusable_etag: None,
            unclear: None,
            pending: None,
            write,
            last_put: write,
            unmerged: Vec::new(),
            deletable: VecDeque::new(),
            recorded: 0,
            lost_frames: false,
        };
        shipper.parts.report_holes(&shipper.state.holes);
        shipper
    }

    pub(super) fn secret(&self) -> Option<&HeadSecret> {
        self.state.secret.as_ref()
    }

    /// Returns the last frame that the head covers.
    pub(super) fn last(&self) -> Option<&LastFrame> {
        self.known.as_ref().map(|known| &known.head.last)
    }

    /// Returns the last frame of the own era that the head covers. Until the worker ships, the head is not compared with the
    /// journal, which may have other frames.
    pub(super) fn last_anchor(&self) -> Option<Anchor> {
        if self.phase != Phase::Running {
            return None;
        }
        let (own, known) = (self.state.era.as_ref()?, self.known.as_ref()?);
        let LastFrame { sequence, checksum, .. } = known.head.last;
        (own.id == known.head.era).then_some(Anchor { sequence, checksum })
    }

    /// Lets the journal remove what is sent, and not needed for a merge or after a restart.
    pub(super) async fn update_retention(&self) -> Result<(), DeliveryFailure> {
        let anchor = self.state.anchor_sequence();
        let unmerged = self.unmerged.first().map(|segment| segment.first - 1);
        let Some(after) = anchor.into_iter().chain(unmerged).min() else { return Ok(()) };
        let retained = self.parts.run(move |parts| {
            parts.store.retain_frames_after(Some(after)).map_err(|error| store_failure(&error))
        });
        retained.await
    }

    /// Asks for a base if there is none, or the frames since it are many or old.
    pub(super) fn want_base_if_due(&self) {
        let (Some(own), Some(known)) = (&self.state.era, &self.known) else { return };
        // Nothing is uploaded before the bucket has accepted a head of this process.
        if !known.is_confirmed {
            return;
        }
        let last = known.head.last.sequence;
        let is_due = own.base.as_ref().is_none_or(|base| {
            let age = self.parts.clock.elapsed_since(base.elapsed);
            base.sent_since > base.entry.bytes.max(MAX_SEGMENT_BYTES)
                || (last > base.entry.sequence && age >= self.parts.options.base)
        });
        if is_due {
            self.parts.want_base(&own.id, self.secret());
        }
    }

    /// Returns whether a base is in the bucket that the next head can name.
    pub(super) fn has_base_to_name(&self) -> bool {
        let last = self.last().map_or(0, |last| last.sequence);
        let own = self.state.era.as_ref();
        own.is_some_and(|own| self.parts.stored_base(&own.id, last).is_some())
    }

    /// Ships the commits since the last head. Returns whether more wait that were made before it began: later ones wait
    /// for the next interval.
    pub(super) async fn ship(&mut self) -> Result<bool, DeliveryFailure> {
        self.relieve_disk().await?;
        if self.phase != Phase::Running {
            return Ok(false);
        }
        let newest = self.parts.run(|parts| Ok(parts.store.newest_durable())).await?;
        if !self.confirm_head().await? {
            return Ok(self.phase != Phase::Stopped);
        }
        let (Some(own), Some(last)) = (self.state.era.clone(), self.last().cloned()) else {
            return Ok(false);
        };
        let is_covered =
            |pending: &PendingSegment| !pending.is_uploaded && pending.line.last <= last.sequence;
        if self.pending.as_ref().is_some_and(is_covered) {
            // The bucket had returned an older head before.
            self.discard_pending();
        }
        if self.pending.is_none() {
            self.pending = self.build_segment(&own.id, &last).await?;
        }
        let has_base = self.parts.stored_base(&own.id, last.sequence).is_some();
        let Some(pending) = self.pending.clone() else {
            if has_base {
                let content = self.describe_head(&own, last);
                self.write_head(content).await?;
                if self.phase == Phase::Running && self.has_base_to_name() {
                    return Err(refused_head_failure(&self.parts.keys));
                }
            }
            return Ok(false);
        };
        if !pending.is_uploaded {
            let upload = Upload {
                key: self.parts.keys.segment(&own.id, pending.line.first, pending.line.last),
                path: self.parts.folder.segment_file(),
                bytes: pending.file.bytes,
                sha256: pending.file.sha256.clone(),
                is_base: false,
            };
            match self.parts.upload(&upload).await? {
                Uploaded::Stored => {}
                Uploaded::Spoiled => {
                    self.discard_pending();
                    return Err(spoiled_failure(&upload));
                }
                Uploaded::Kept | Uploaded::HeadChanged => {
                    // If another machine has taken over, this notices it.
                    self.is_unchanged().await?;
                    let is_replaced = self.phase == Phase::Stopped;
                    return if is_replaced { Ok(false) } else { Err(kept_failure(&upload.key)) };
                }
            }
            self.parts.reported.lock().report.sent_bytes[0] += pending.file.bytes;
            if let Some(pending) = &mut self.pending {
                pending.is_uploaded = true;
            }
        }
        let SegmentLine { last: sequence, after: checksum, points, .. } = &pending.line;
        let time = points.last().map_or(last.time, |point| point.time.clone());
        let last = LastFrame { sequence: *sequence, checksum: *checksum, time };
        let content = self.describe_head(&own, last);
        self.write_head(content).await?;
        let covered = self.last().is_some_and(|last| last.sequence >= *sequence);
        if self.phase != Phase::Running {
            return Ok(false);
        }
        if !covered {
            return Err(refused_head_failure(&self.parts.keys));
        }
        let has_more = newest > *sequence;
        self.finish_segment(own.id, pending).await?;
        Ok(has_more)
    }

    /// Records that the head covers the pending segment.
    async fn finish_segment(
        &mut self,
        era: String,
        pending: PendingSegment,
    ) -> Result<(), DeliveryFailure> {
        self.pending = None;
        let PendingSegment { line, file, raw_bytes, .. } = pending;
        if let Some(base) = self.state.era.as_mut().and_then(|own| own.base.as_mut()) {
            base.sent_since += file.bytes;
        }
        let small = (file.bytes < SMALL_SEGMENT_BYTES).then_some(Unmerged {
            era,
            first: line.first,
            last: line.last,
            before: line.before,
            after: line.after,
            raw_bytes,
            points: line.points,
        });
        let added = small.clone();
        let recorded = self.parts.run(move |parts| {
            discard_file(&parts.folder.segment_file());
            parts.folder.discard_points_up_to(line.last).map_err(|error| disk_failure(&error))?;
            let added = added.map_or(Ok(()), |added| parts.folder.append_unmerged(&added));
            added.map_err(|error| disk_failure(&error))
        });
        recorded.await?;
        self.unmerged.extend(small);
        self.parts.report_segment(file.bytes);
        self.want_base_if_due();
        self.update_retention().await
    }

    /// Builds the next segment, if there are commits after the last one.
    async fn build_segment(
        &mut self,
        era: &str,
        last: &LastFrame,
    ) -> Result<Option<PendingSegment>, DeliveryFailure> {
        let (era, after, before) = (era.to_owned(), last.sequence, last.checksum);
        let built = self.parts.run(move |parts| {
            let newest = parts.store.newest_durable();
            if newest <= after {
                return Ok(Built::Nothing);
            }
            let stamp = MarkedTime::of_stamp(parts.clock.stamp());
            let points = parts.folder.read_points(after, MAX_POINTS);
            let end = points.get(MAX_POINTS - 1).map_or(newest, |point| point.sequence.min(newest));
            let mut segment =
                SegmentBuilder::begin(after, before).map_err(|error| disk_failure(&error))?;
            let mut is_full = false;
            let read = parts.store.read_frames(after, end, &mut |sequence, frame| {
                if segment.raw_bytes() >= MAX_SEGMENT_BYTES {
                    is_full = true;
                    // Ends the reading.
                    return Err(Error::Closing);
                }
                segment.add_frame(sequence, frame).map_err(|source| Error::Io {
                    action: "packing",
                    path: parts.folder.segment_file(),
                    source,
                })
            });
            match read {
                Err(Error::Closing) if is_full => {}
                Err(Error::FramesReplaced { sequence, .. }) => {
                    return Ok(Built::FramesGone(Hole { from: sequence, to: newest }));
                }
                // What comes before them is sent first, so that the hole has no more than what is lost.
                Err(cause) if cause.is_unreadable() && segment.last() > after => {}
                Err(cause) if cause.is_unreadable() => {
                    // The next frames are in another segment then, which can be read.
                    parts.store.end_segment().map_err(|error| store_failure(&error))?;
                    // Only once: without space for the base, each attempt fills the disk, and wears it.
                    if let Err(error) = parts.store.compact_journal() {
                        tracing::warn!(
                            %error,
                            "No base could replace the frames of the journal that cannot be read; the store tries it again \
                             when it packs them."
                        );
                    }
                    return Ok(Built::Unreadable(Hole { from: after + 1, to: newest }, cause));
                }
                read => read.map_err(|error| store_failure(&error))?,
            }
            let points = choose_points(points, (after, segment.last()), &stamp);
            let raw_bytes = segment.raw_bytes();
            let path = parts.folder.segment_file();
            let place = (parts.gateway.as_str(), era.as_str());
            let (line, file) = segment
                .write(&path, &parts.key, place, points)
                .map_err(|error| disk_failure(&error))?;
            let segment = PendingSegment { line, file, raw_bytes, is_uploaded: false };
            Ok(Built::Segment(Box::new(segment)))
        });
        match built.await? {
            Built::Nothing => Ok(None),
            Built::Segment(segment) => Ok(Some(*segment)),
            Built::FramesGone(hole) => {
                let reason = "a base of the journal replaced them, which can happen after the disk was full or while \
                              service.backup.target was not set";
                self.give_up_frames(hole, reason).await?;
                Err(DeliveryFailure::interrupt("frames that were not sent are gone"))
            }
            Built::Unreadable(hole, cause) => {
                self.give_up_frames(hole, &cause.to_string()).await?;
                // With a delay, in case the next frames cannot be read either.
                Err(store_failure(&cause))
            }
        }
    }

    /// Records the time of the newest commit, so that a segment says it also if the link is down for long.
    pub(super) async fn record_point(&mut self) -> Result<(), DeliveryFailure> {
        let reported = self.parts.reported.lock().report.last_sequence;
        let last = self.last().map(|last| last.sequence).or(reported);
        let recorded = self.recorded.max(last.unwrap_or(0));
        let newest = self.parts.run(move |parts| {
            let sequence = parts.store.newest_durable();
            if sequence > recorded {
                let time = MarkedTime::of_stamp(parts.clock.stamp());
                parts
                    .folder
                    .append_point(&Point { sequence, time })
                    .map_err(|error| disk_failure(&error))?;
            }
            Ok(sequence)
        });
        let newest = newest.await?;
        self.recorded = self.recorded.max(newest);
        Ok(())
    }

    /// Gives up frames that are not sent, if they keep the disk in its reserve: a new era with a base follows.
    pub(super) async fn relieve_disk(&mut self) -> Result<(), DeliveryFailure> {
        if !self.parts.disk.is_in_reserve() || self.phase == Phase::Stopped {
            return Ok(());
        }
        self.state.anchor = self.last_anchor().or(self.state.anchor);
        let sent = self.state.retain_after();
        let lost = self.parts.run(move |parts| {
            let failed = |error: Error| store_failure(&error);
            let newest = parts.store.newest_durable();
            let retained = parts.store.retained_bytes().map_err(failed)?;
            if retained == 0 {
                return Ok(None);
            }
            parts.store.retain_frames_after(Some(newest)).map_err(failed)?;
            let oldest = parts.store.oldest_frame().map_err(failed)?;
            let hole = sent.filter(|sent| oldest > sent + 1);
            Ok(Some(hole.map(|sent| Hole { from: sent + 1, to: newest })))
        });
        let Some(hole) = lost.await? else { return Ok(()) };
        self.unmerged.clear();
        match hole {
            Some(hole) => self.give_up_frames(hole, "the disk is full up to its reserve").await,
            None => self.write_state().await,
        }
    }

    /// Records that frames are gone that were not sent. A new era with a base follows; its begin is the end of the hole.
    async fn give_up_frames(&mut self, hole: Hole, reason: &str) -> Result<(), DeliveryFailure> {
        let Hole { from, to } = hole;
        tracing::warn!(
            from,
            to,
            reason,
            "Commits that were not sent to the backup are no longer in the journal; a new era begins with a base."
        );
        self.state.holes.add(hole);
        self.parts.report_holes(&self.state.holes);
        self.discard_pending();
        // The begin of the hole is known again after a restart.
        self.state.anchor = self.last_anchor().or(self.state.anchor);
        self.lost_frames = true;
        self.phase = Phase::Starting;
        self.write_state().await?;
        // The next era has none of these frames, unless it was begun before and the journal still has its own.
        let begun = self.state.beginning.as_ref().map(|own| own.begin.sequence);
        let discarded = self.parts.run(move |parts| {
            let oldest = parts.store.oldest_frame().map_err(|error| store_failure(&error))?;
            let begun = begun.filter(|begun| oldest <= begun + 1);
            let gone = begun.map_or(to, |begun| begun.min(to));
            parts.folder.discard_points_up_to(gone).map_err(|error| disk_failure(&error))
        });
        discarded.await
    }

    /// Records that another machine has taken over, and holds exports, sources and webhooks.
    pub(super) async fn record_replacement(&mut self, era: &str) -> Result<(), DeliveryFailure> {
        self.state.replaced = Some(ReplacedBy { at: time::now_rfc3339(), era: era.to_owned() });
        self.state.take_over = false;
        let reason = self.state.hold_reason().unwrap_or_default();
        self.parts.reported.lock().report.replaced_by = Some(era.to_owned());
        self.state.log_hold();
        self.stop(reason);
        self.discard_pending();
        self.write_state().await?;
        let released = self.parts.run(|parts| {
            parts.folder.discard_points();
            parts.store.retain_frames_after(None).map_err(|error| store_failure(&error))
        });
        released.await
    }

    /// Stops, with the reason for it.
    pub(super) fn stop(&mut self, reason: String) {
        self.phase = Phase::Stopped;
        self.deletable.clear();
        self.parts.uplink.hold(reason.clone());
        self.parts.cancel_base();
        let mut reported = self.parts.reported.lock();
        let report = &mut reported.report;
        report.state = if self.state.copy { BackupState::Copy } else { BackupState::Replaced };
        report.replaced_by = self.state.replaced.as_ref().map(|by| by.era.clone());
        report.cause_since = self.state.replaced.as_ref().map(|by| by.at.clone());
        report.cause = Some(reason);
        (reported.base_failure, reported.cleanup_failure) = (None, None);
        drop(reported);
        self.parts.cleared.send_replace(true);
    }

    /// Lets exports, sources and webhooks run.
    pub(super) fn release(&self) {
        self.parts.uplink.release();
        self.parts.cleared.send_replace(true);
    }

    /// Writes the state of the backup in the data directory.
    pub(super) async fn write_state(&self) -> Result<(), DeliveryFailure> {
        let mut state = self.state.clone();
        let written = self.parts.run(move |parts| {
            let _guard = parts.state_lock.lock();
            // What the operator asked for meanwhile is in the file already.
            state.take_over |= *parts.take_over.lock();
            parts.folder.write_state(&state).map_err(|error| disk_failure(&error))
        });
        written.await
    }

    pub(super) fn discard_pending(&mut self) {
        if self.pending.take().is_some() {
            discard_file(&self.parts.folder.segment_file());
        }
    }

    pub(super) fn report_head(&self) {
        let Some(KnownHead { head, .. }) = &self.known else { return };
        let own_base = self.state.era.as_ref().and_then(|own| own.base.as_ref());
        let mut reported = self.parts.reported.lock();
        let report = &mut reported.report;
        report.state =
            if head.base.is_some() { BackupState::Running } else { BackupState::FirstBase };
        // Of a head with a base, the checks know more.
        if head.base.is_none() {
            report.restorable = head.previous.is_some();
        }
        report.era = Some(head.era.clone());
        report.last_sequence = Some(head.last.sequence);
        report.last_at = Some(head.last.time.at.clone());
        let base_sequence = head.base.as_ref().map(|base| base.sequence);
        // Later segments are added to it, and a check counts what is listed.
        if report.base_sequence != base_sequence {
            report.bytes = own_base.map_or(0, |base| base.entry.bytes + base.sent_since);
        }
        report.base_sequence = base_sequence;
        report.base_at = own_base.map(|base| base.at.clone());
        report.replaced_by = None;
        (report.cause, report.cause_since) = (None, None);
    }
}

/// Returns the times of the frames after `after` up to `last`. The last frame has the time of the first point that is not
/// before it: the commit was made by then.
fn choose_points(recorded: Vec<Point>, (after, last): (u64, u64), now: &MarkedTime) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    let mut end = None;
    for point in recorded {
        // A restart may have recorded a point again.
        let is_next = point.sequence > points.last().map_or(after, |before| before.sequence);
        if is_next && point.sequence < last {
            points.push(point);
        } else if is_next && end.is_none() {
            end = Some(point.time);
        }
    }
    points.push(Point { sequence: last, time: end.unwrap_or_else(|| now.clone()) });
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::head::time_of_system;

    #[test]
    fn the_last_frame_has_the_time_of_the_next_point() {
        let time = |at: &str| MarkedTime { at: at.to_owned(), clock: None };
        let point = |sequence, at: &str| Point { sequence, time: time(at) };
        let recorded = vec![point(3, "a"), point(7, "b"), point(7, "b2"), point(12, "c")];
        let now = time_of_system();
        let chosen = choose_points(recorded.clone(), (3, 10), &now);
        assert_eq!(chosen, [point(7, "b"), point(10, "c")]);
        let chosen = choose_points(recorded.clone(), (7, 12), &now);
        assert_eq!(chosen, [point(12, "c")]);
        let chosen = choose_points(recorded, (12, 13), &now);
        assert_eq!(chosen, [Point { sequence: 13, time: now }]);
    }
}
