//! What happens to the objects of a backup besides shipping: a test of the bucket and a check of the era at the start, the
//! check again once a day, merging once an hour, and deleting what is too old.
use super::chain::Checksum;
use super::lists::Unmerged;
use super::objects::{MAX_POINTS, Point, SegmentBuilder, discard_file};
use super::parts::{BaseWork, Uploaded, disk_failure, spoiled_failure, store_failure};
use super::place::{Objects, Precondition, Replaced, SmallObject, Upload};
use super::plan::{Retention, sort_by_era};
use super::ship::{Phase, Shipper};
use crate::cause::DeliveryFailure;
use penstock_resources::export::Cause;
use penstock_store::Error;
use std::collections::VecDeque;
use std::time::Instant;

/// The bytes of frames in a merged segment, about.
const MAX_MERGED_BYTES: u64 = 8 << 20;
/// An entity tag that no object has.
const WRONG_ETAG: &str = "\"00000000000000000000000000000000\"";

impl<O: Objects> Shipper<O> {
    /// Tests whether the bucket refuses a wrong `If-Match`, and whether objects may be deleted.
    pub(super) async fn probe(&mut self) -> Result<(), DeliveryFailure> {
        let objects = &self.parts.objects;
        let key = self.parts.keys.probe();
        objects.put(&key, "{}", &Precondition::Always).await?;
        let single_writer = objects.has_preconditions() && {
            let wrong = Precondition::Unchanged(WRONG_ETAG.to_owned());
            let refused = objects.put(&key, "{\"overwritten\":true}", &wrong).await?;
            // Some servers answer 412 and overwrite nevertheless.
            let text = objects.get(&key).await?.map(|SmallObject { text, .. }| text);
            refused == Replaced::Refused && text.as_deref() == Some("{}")
        };
        let may_delete = objects.delete(&key).await?;
        let mut reported = self.parts.reported.lock();
        let report = &mut reported.report;
        report.single_writer = Some(single_writer && report.single_writer != Some(false));
        report.may_delete = Some(may_delete);
        drop(reported);
        if !single_writer && objects.has_preconditions() {
            tracing::warn!(
                target_name = self.parts.options.target,
                "The backup's target does not refuse a wrong If-Match; the gateway reads the head before it writes one."
            );
        }
        Ok(())
    }

    /// Lists the backup: deletes segments and bases that no head covers, asks for a base if an object is missing, and finds what is
    /// no longer needed.
    pub(super) async fn check(&mut self) -> Result<(), DeliveryFailure> {
        if !self.confirm_head().await? {
            return self.end_check();
        }
        let listing = self.parts.objects.list(&self.parts.keys.root).await?;
        // Another machine writes a head before its first object. So if the head is still that of this process, nothing
        // that was listed is of one that has taken over.
        if !self.is_unchanged().await? {
            return self.end_check();
        }
        let mut eras = sort_by_era(&listing, &self.parts.keys);
        let Some(own) = self.state.era.clone() else { return Ok(()) };
        let oldest_base = eras.values().filter_map(|objects| objects.bases.keys().next()).min();
        let is_only = eras.keys().all(|era| *era == own.id);
        let oldest = oldest_base.copied().max(is_only.then_some(own.begin.sequence));
        self.forget_holes(oldest.unwrap_or(0)).await?;
        let objects = eras.entry(own.id.clone()).or_default();
        let Some(known) = self.known.clone().filter(|known| known.is_confirmed) else {
            return self.end_check();
        };
        let last = known.head.last.sequence;
        let mut leftovers = objects.list_leftovers(last);
        // Only this worker asks for bases, so while none is wanted, none of this process is above the head.
        if *self.parts.base.lock() == BaseWork::Idle {
            let above = objects.bases.range(last + 1..);
            leftovers.extend(above.map(|(_, object)| object.key.clone()));
        }
        self.delete_leftovers(leftovers).await?;
        objects.segments.retain(|(_, end), _| *end <= last);
        let path = known.head.base.as_ref().map(|base| {
            let segments = objects
                .bases
                .contains_key(&base.sequence)
                .then(|| objects.cover(base.sequence, last, last).ok());
            (base.sequence, segments.flatten())
        });
        let mut reported = self.parts.reported.lock();
        reported.report.restorable = match &path {
            Some((base, Some(segments))) => {
                reported.report.bytes = objects.bytes_of(*base, segments);
                true
            }
            Some((_, None)) => false,
            None => known.head.previous.is_some(),
        };
        drop(reported);
        if let Some((base, None)) = path {
            tracing::error!(
                era = own.id,
                base,
                "Objects of the backup are missing in the bucket; a new base is sent, and until then there is no backup."
            );
            self.parts.want_base(&own.id, self.secret());
        } else {
            self.want_base_if_due();
        }
        // Nothing is deleted while nothing can be restored.
        let (Some((base, Some(_))), Some(now)) = (path, listing.date) else { return Ok(()) };
        let retention = Retention {
            keep: self.parts.options.keep,
            now,
            era: &own.id,
            base,
            last,
            previous: known.head.previous.as_ref().map(|before| before.era.as_str()),
        };
        self.deletable = retention.list_deletable(&eras).into();
        self.deletable.extend(retention.list_old_probes(&listing, &self.parts.keys));
        Ok(())
    }

    /// Forgets the holes up to the oldest state in the bucket.
    async fn forget_holes(&mut self, oldest: u64) -> Result<(), DeliveryFailure> {
        if !self.state.holes.forget_up_to(oldest) {
            return Ok(());
        }
        self.parts.report_holes(&self.state.holes);
        self.write_state().await
    }

    /// Deletes some of what the last check found, for at most an interval: after a day of small segments it is much, and
    /// commits do not wait for it.
    pub(super) async fn delete_some(&mut self) -> Result<(), DeliveryFailure> {
        let mut keys = std::mem::take(&mut self.deletable);
        if !self.is_unchanged().await? || self.known.is_none() {
            return self.end_check();
        }
        let end = Instant::now() + self.parts.options.interval;
        let count = self.delete_until(&mut keys, end).await?;
        self.deletable = keys;
        if count > 0 {
            tracing::debug!(count, "Objects of the backup that are no longer needed were deleted.");
        }
        Ok(())
    }

    /// Ends a check because the head is not the expected one. It is repeated soon, unless the gateway was replaced.
    fn end_check(&self) -> Result<(), DeliveryFailure> {
        if self.phase == Phase::Stopped {
            return Ok(());
        }
        Err(DeliveryFailure::new(Cause::Busy, "head.json of the backup changed during the check"))
    }

    /// Deletes objects above the head, but for the segment that is being shipped.
    async fn delete_leftovers(&self, keys: Vec<String>) -> Result<(), DeliveryFailure> {
        let pending = self.pending.as_ref().map(|pending| {
            self.parts.keys.segment(&pending.line.era, pending.line.first, pending.line.last)
        });
        let mut keys: VecDeque<String> =
            keys.into_iter().filter(|key| Some(key) != pending.as_ref()).collect();
        let end = Instant::now() + self.parts.options.interval;
        self.delete_until(&mut keys, end).await.map(drop)
    }

    /// Deletes objects in this order until all are deleted, or time is up. Returns how many were.
    async fn delete_until(
        &self,
        keys: &mut VecDeque<String>,
        end: Instant,
    ) -> Result<usize, DeliveryFailure> {
        let mut count = 0;
        while let Some(key) = keys.pop_front() {
            if self.parts.reported.lock().report.may_delete == Some(false) {
                keys.clear();
            } else if self.parts.objects.delete(&key).await? {
                count += 1;
            } else {
                self.parts.reported.lock().report.may_delete = Some(false);
            }
            if Instant::now() >= end {
                break;
            }
        }
        Ok(count)
    }

    /// Merges small segments that follow each other, but for the newest. Those that they replace are deleted a day later.
    pub(super) async fn merge(&mut self) -> Result<(), DeliveryFailure> {
        let may_delete = self.parts.reported.lock().report.may_delete;
        if self.phase != Phase::Running || may_delete != Some(true) {
            self.forget_unmerged().await?;
            return Ok(());
        }
        if !self.confirm_head().await? {
            return Ok(());
        }
        while let Some(count) = count_mergeable(&self.unmerged) {
            let run: Vec<Unmerged> = self.unmerged.iter().take(count).cloned().collect();
            if run.len() > 1 {
                self.merge_run(&run).await?;
            }
            self.unmerged.drain(..count);
            self.write_unmerged().await?;
        }
        self.update_retention().await
    }

    /// Without the right to delete objects nothing is merged, so the frames need not stay.
    async fn forget_unmerged(&mut self) -> Result<(), DeliveryFailure> {
        if !self.unmerged.is_empty() && self.phase == Phase::Running {
            self.unmerged.clear();
            self.write_unmerged().await?;
            self.update_retention().await?;
        }
        Ok(())
    }

    async fn write_unmerged(&self) -> Result<(), DeliveryFailure> {
        let unmerged = self.unmerged.clone();
        let written = self.parts.run(move |parts| {
            parts.folder.write_unmerged(&unmerged).map_err(|error| disk_failure(&error))
        });
        written.await
    }

    /// Sends the frames of some segments as one, read again from the journal.
    async fn merge_run(&self, run: &[Unmerged]) -> Result<(), DeliveryFailure> {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { return Ok(()) };
        let era = first.era.clone();
        let (after, before) = (first.first - 1, first.before);
        let (to, expected): (u64, Checksum) = (last.last, last.after);
        let points: Vec<Point> =
            run.iter().flat_map(|segment| segment.points.iter().cloned()).collect();
        let merged = self.parts.run(move |parts| {
            let mut segment =
                SegmentBuilder::begin(after, before).map_err(|error| disk_failure(&error))?;
            let read = parts.store.read_frames(after, to, &mut |sequence, frame| {
                segment.add_frame(sequence, frame).map_err(|source| Error::Io {
                    action: "packing",
                    path: parts.folder.merged_file(),
                    source,
                })
            });
            match read {
                Err(Error::FramesReplaced { .. }) => return Ok(None),
                Err(error) if error.is_unreadable() => return Ok(None),
                read => read.map_err(|error| store_failure(&error))?,
            }
            let (path, place) =
                (parts.folder.merged_file(), (parts.gateway.as_str(), era.as_str()));
            let (line, file) = segment
                .write(&path, &parts.key, place, points)
                .map_err(|error| disk_failure(&error))?;
            if line.after != expected {
                return Err(DeliveryFailure::new(
                    Cause::Gateway,
                    "the journal has other frames than those that were sent to the backup",
                ));
            }
            Ok(Some((line, file, path)))
        });
        let Some((line, file, path)) = merged.await? else { return Ok(()) };
        let key = self.parts.keys.segment(&line.era, line.first, line.last);
        let (bytes, sha256) = (file.bytes, file.sha256);
        let upload = Upload { key, path: path.clone(), bytes, sha256, is_base: false };
        let uploaded = self.parts.upload(&upload).await?;
        discard_file(&path);
        match uploaded {
            Uploaded::Stored => self.parts.reported.lock().report.sent_bytes[0] += bytes,
            Uploaded::Spoiled => return Err(spoiled_failure(&upload)),
            // What is there already is from an attempt before a crash: the same frames.
            Uploaded::Kept | Uploaded::HeadChanged => {}
        }
        Ok(())
    }
}

/// Returns the number of segments at the beginning that are merged into one, or that stay alone; `None` if only the newest
/// is left.
fn count_mergeable(unmerged: &[Unmerged]) -> Option<usize> {
    let (_, older) = unmerged.split_last()?;
    let (mut bytes, mut points) = (0, 0);
    let mut next = older.first()?.first;
    let run = older.iter().take_while(|segment| {
        points += segment.points.len();
        let fits = segment.first == next && bytes < MAX_MERGED_BYTES && points <= MAX_POINTS;
        bytes += segment.raw_bytes;
        next = segment.last + 1;
        fits
    });
    Some(run.count().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(first: u64, last: u64, raw_bytes: u64) -> Unmerged {
        let checksum = Checksum::of_era("e");
        let (before, after) = (checksum, checksum);
        Unmerged { era: "e".into(), first, last, before, after, raw_bytes, points: Vec::new() }
    }

    #[test]
    fn neighbours_are_merged_but_not_the_newest() {
        assert_eq!(count_mergeable(&[]), None);
        assert_eq!(count_mergeable(&[segment(1, 1, 9)]), None);
        let run = [segment(1, 2, 9), segment(3, 3, 9), segment(7, 7, 9), segment(8, 8, 9)];
        assert_eq!(count_mergeable(&run), Some(2));
        assert_eq!(count_mergeable(&run[2..]), Some(1));
        let large = [segment(1, 2, 9 << 20), segment(3, 3, 9), segment(4, 4, 9)];
        assert_eq!(count_mergeable(&large), Some(1));
    }
}
