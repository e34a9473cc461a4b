//! What the worker that writes the head does at its start: it finds out whose the head is, and continues its era or begins
//! one.
use super::chain::Checksum;
use super::head::{Continued, DocumentError, EraRecord, Head, LastFrame, MarkedTime, PreviousEra};
use super::heads::{Origin, document_failure, old_head_failure};
use super::holes::Hole;
use super::keys::new_era_id;
use super::parts::{Parts, refused_head_failure, store_failure};
use super::place::{Objects, Precondition, Replaced, SmallObject};
use super::plan;
use super::secrecy::random_secret;
use super::ship::{KnownHead, Phase, Shipper};
use super::state::{Anchor, OwnEra};
use crate::cause::DeliveryFailure;
use penstock_store::Error;

/// What the journal has of the commits that a head covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coverage {
    /// It continues them.
    Continued,
    /// It lacks some of them or of those after them, or cannot read them. It is not known to have others.
    Incomplete,
    /// It may have other commits.
    Unknown,
}

impl<O: Objects> Shipper<O> {
    /// Reads the head, and finds out whose it is.
    pub(super) async fn start(&mut self) -> Result<(), DeliveryFailure> {
        let is_asked = std::mem::take(&mut *self.parts.take_over.lock());
        if is_asked {
            (self.state.take_over, self.state.lost) = (true, None);
            // From now on it is tried until it succeeds.
            self.phase = Phase::Starting;
            self.write_state().await?;
        }
        if self.state.lost.is_some() {
            return self.hold_without_state().await;
        }
        self.relieve_disk().await?;
        if self.known.is_none() {
            self.report_own_era().await?;
        }
        if let Some(reason) = self.state.hold_reason() {
            self.stop(reason);
            return Ok(());
        }
        let found = self.parts.objects.get(&self.parts.keys.head()).await?;
        let Some(SmallObject { text, etag }) = found else {
            return self.begin_era(None, None, Coverage::Unknown).await;
        };
        let has_own = self.state.era.is_some() || self.state.beginning.is_some();
        // It is tried until it succeeds, also once the new era is in the data directory.
        self.state.take_over |= self.parts.options.new_era && !has_own;
        let takes_over = self.state.take_over;
        let (head, origin) = match self.read_head(&text) {
            Ok(found) => found,
            Err(DocumentError::Malformed { .. } | DocumentError::WrongMac) if takes_over => {
                return self.begin_era(None, etag, Coverage::Unknown).await;
            }
            Err(error) => return Err(document_failure(&self.parts.keys, &error)),
        };
        if takes_over {
            let coverage = match origin {
                Origin::Own => self.find_reason_for_new_era(&head).await.map(to_coverage),
                Origin::Former | Origin::Other => Ok(Coverage::Unknown),
            };
            let coverage = coverage.unwrap_or(Coverage::Unknown);
            let is_continued = coverage == Coverage::Continued;
            let begun = self.state.beginning.as_ref();
            // The answer to an attempt before was lost. A key that has changed since needs an era of its own.
            let has_arrived = begun.is_some_and(|own| own.id == head.era);
            if is_continued && has_arrived && self.can_check(&head) {
                return self.continue_era(head, etag).await;
            }
            return self.begin_era(Some(head), etag, coverage).await;
        }
        match origin {
            Origin::Former => {
                let known = self.state.retain_after().unwrap_or(0);
                return Err(old_head_failure(&self.parts.keys, head.last.sequence, known));
            }
            Origin::Other => return self.record_replacement(&head.era).await,
            Origin::Own => {}
        }
        let compared = self.find_reason_for_new_era(&head).await?;
        let new_key = (!self.can_check(&head)).then_some("service.backup.key has changed");
        match new_key.or(compared.map(|(reason, _)| reason)) {
            Some(reason) => {
                tracing::warn!(era = head.era, reason, "The backup begins a new era.");
                self.begin_era(Some(head), etag, to_coverage(compared)).await
            }
            None => self.continue_era(head, etag).await,
        }
    }

    /// Holds exports, sources and webhooks until the operator takes over, because the head in the bucket could be that of
    /// another machine. Writes nothing: a state would hide that it was lost.
    async fn hold_without_state(&self) -> Result<(), DeliveryFailure> {
        let reason = self.state.hold_reason().unwrap_or_default();
        self.parts.uplink.hold(reason.clone());
        self.parts.cleared.send_replace(true);
        // If the state can be read again, its era continues with the frames that were not sent. A takeover begins with a base.
        if self.parts.disk.is_in_reserve() {
            let released = self.parts.run(|parts| {
                parts.store.retain_frames_after(None).map_err(|error| store_failure(&error))
            });
            released.await?;
        }
        Err(DeliveryFailure::of_gateway(reason))
    }

    /// Reports what the data directory knows of the own era, until the head is read: the link may be down for long.
    async fn report_own_era(&self) -> Result<(), DeliveryFailure> {
        let Some(own) = self.state.era.clone().or_else(|| self.state.beginning.clone()) else {
            return Ok(());
        };
        let era = own.id.clone();
        let small = self.parts.run(move |parts| Ok(parts.folder.read_unmerged(&era).pop()));
        let small = small.await?.map(|mut segment| {
            let time = segment.points.pop().map(|point| point.time.at);
            (segment.last, time)
        });
        // Only a last segment that is not small is missing here. Then a little too much counts as not sent.
        let ends = [
            Some((own.begin.sequence, Some(own.begin.time.at))),
            self.state.anchor.map(|anchor| (anchor.sequence, None)),
            own.base.as_ref().map(|base| (base.entry.sequence, None)),
            small,
        ];
        let last = ends.into_iter().flatten().max();
        let mut reported = self.parts.reported.lock();
        let report = &mut reported.report;
        report.era = Some(own.id);
        report.restorable = own.base.is_some() || own.previous.is_some();
        if let Some((sequence, at)) = last {
            (report.last_sequence, report.last_at) = (Some(sequence), at);
        }
        if let Some(base) = own.base {
            report.base_sequence = Some(base.entry.sequence);
            report.base_at = Some(base.at);
            report.bytes = base.entry.bytes + base.sent_since;
        }
        Ok(())
    }

    /// Returns why the journal cannot continue the era of a head of this gateway, and what it has of its commits.
    async fn find_reason_for_new_era(
        &self,
        head: &Head,
    ) -> Result<Option<(&'static str, Coverage)>, DeliveryFailure> {
        const MISSING: &str = "the journal does not have all frames of the bucket";
        if self.lost_frames {
            let reason = "frames that were not sent are no longer in the journal";
            return Ok(Some((reason, Coverage::Incomplete)));
        }
        let anchor = self.anchor_of(&head.era);
        let last = head.last.clone();
        let Some(anchor) = anchor else {
            let reason = "the data directory does not have the state of this era";
            return Ok(Some((reason, Coverage::Unknown)));
        };
        if anchor.sequence > last.sequence {
            return Err(old_head_failure(&self.parts.keys, last.sequence, anchor.sequence));
        }
        // A frame of the head that the journal lacks was synced before it was sent, so the medium has lost it. Only the disk
        // that sent it gets here: see `state::Writer`.
        let compared = self.parts.run(move |parts| {
            if parts.store.newest_durable() < last.sequence {
                // Others may follow before the new era begins.
                return Ok(Some((MISSING, Coverage::Unknown)));
            }
            let mut checksum = anchor.checksum;
            let read = parts.store.read_frames(anchor.sequence, last.sequence, &mut |_, frame| {
                checksum.add_frame(frame);
                Ok(())
            });
            match read {
                Ok(()) if checksum == last.checksum => Ok(None),
                Ok(()) => {
                    Ok(Some(("the journal has other frames than the bucket", Coverage::Unknown)))
                }
                Err(error)
                    if error.is_unreadable() || matches!(error, Error::FramesReplaced { .. }) =>
                {
                    Ok(Some((MISSING, Coverage::Incomplete)))
                }
                Err(error) => Err(store_failure(&error)),
            }
        });
        compared.await
    }

    /// Returns a frame of an era and the checksum up to it, which is not above its head.
    fn anchor_of(&self, era: &str) -> Option<Anchor> {
        let begin = |own: &OwnEra| {
            let LastFrame { sequence, checksum, .. } = own.begin;
            (own.id == era).then_some(Anchor { sequence, checksum })
        };
        if let Some(begin) = self.state.beginning.as_ref().and_then(begin) {
            return Some(begin);
        }
        let own = self.state.era.as_ref().and_then(begin)?;
        Some(self.state.anchor.unwrap_or(own))
    }

    /// Continues the era of a head of this gateway.
    async fn continue_era(
        &mut self,
        head: Head,
        etag: Option<String>,
    ) -> Result<(), DeliveryFailure> {
        self.discard_pending();
        self.unmerged = self.parts.folder.read_unmerged(&head.era);
        self.unmerged.retain(|segment| segment.last <= head.last.sequence);
        let is_restorable = head.restorable().is_some();
        self.accept_head(KnownHead { head, etag, is_confirmed: false }).await?;
        self.parts.reported.lock().report.restorable = is_restorable;
        tracing::info!(era = self.era_id(), "The backup continues.");
        Ok(())
    }

    fn era_id(&self) -> &str {
        self.state.era.as_ref().map_or("", |own| own.id.as_str())
    }

    /// Begins a new era. It replaces the head `found`, or one that cannot be used, with this entity tag. `coverage` says what
    /// the journal has of the commits of that head.
    async fn begin_era(
        &mut self,
        found: Option<Head>,
        etag: Option<String>,
        coverage: Coverage,
    ) -> Result<(), DeliveryFailure> {
        self.discard_pending();
        // The head was read after that attempt: it is `found`, or the precondition excludes it.
        self.unclear = None;
        let own = self.prepare_era(found.as_ref(), coverage).await?;
        let record = EraRecord::new(
            &self.parts.gateway,
            (&own.id, own.number),
            own.begin.clone(),
            own.previous.as_ref().map(|before| Continued {
                era: before.era.clone(),
                sequence: before.last.sequence,
            }),
        );
        let key = self.parts.keys.era(&own.id);
        // Its id is random, so an object that is there is from an attempt before this one.
        let text = record.to_text();
        let put = self.parts.objects.put(&key, &text, &Precondition::Missing).await?;
        if put == Replaced::Unsupported {
            self.parts.objects.put(&key, &text, &Precondition::Always).await?;
        }
        (self.known, self.unusable_etag) = match found {
            Some(head) => (Some(KnownHead { head, etag, is_confirmed: false }), None),
            None => (None, etag),
        };
        let content = self.describe_head(&own, own.begin.clone());
        self.write_head(content).await?;
        if self.phase == Phase::Stopped {
            return Ok(());
        }
        if self.era_id() != own.id {
            // The next attempt begins with the head that the bucket has then.
            return Err(refused_head_failure(&self.parts.keys));
        }
        tracing::info!(
            era = own.id,
            sequence = own.begin.sequence,
            "The backup began an era; a base follows."
        );
        Ok(())
    }

    /// Stores a new era in the data directory, before anything in the bucket names it. One that was begun before is used
    /// again, because its head may still arrive; not if the head before it has moved on, which an older one can have hidden
    /// from the first attempt: what that head covers would no longer be restored.
    ///
    /// A new era begins where the head before it ends, if the journal has the frames after that. Otherwise it begins with
    /// the newest frame, and the frames between are a hole.
    async fn prepare_era(
        &mut self,
        found: Option<&Head>,
        coverage: Coverage,
    ) -> Result<OwnEra, DeliveryFailure> {
        if let Some(begun) = self.state.beginning.clone()
            && found.is_none_or(|head| {
                head.number < begun.number && self.trust_restorable(head) == begun.previous
            })
        {
            let sequence = begun.begin.sequence;
            if self.parts.run(move |parts| retain_after(parts, sequence)).await? {
                self.record_hole(found, coverage, sequence);
                return Ok(begun);
            }
        }
        let listing = self.parts.objects.list(&self.parts.keys.root).await?;
        let listed = plan::highest_number(&listing, &self.parts.keys);
        let known = found.map_or(0, |head| head.number).max(self.state.highest_number);
        let number = listed.max(known) + 1;
        let id = new_era_id(number);
        let checksum = Checksum::of_era(&id);
        let continued = found.filter(|_| coverage == Coverage::Continued);
        let end = continued.map(|head| head.last.clone());
        let begun = self.parts.run(move |parts| {
            if let Some(LastFrame { sequence, time, .. }) = end
                && retain_after(parts, sequence)?
            {
                return Ok(LastFrame { sequence, checksum, time });
            }
            // Before the sequence is read, so that no compaction removes the frames after it.
            retain_after(parts, parts.store.newest_durable())?;
            let sequence = parts.store.newest_durable();
            // Those of frames that are lost would be taken for those of new ones.
            parts.folder.discard_points();
            let time = MarkedTime::of_stamp(parts.clock.stamp());
            Ok(LastFrame { sequence, checksum, time })
        });
        let begin = begun.await?;
        self.record_hole(found, coverage, begin.sequence);
        let previous = found.and_then(|head| self.trust_restorable(head));
        let own = OwnEra { id, number, begin, previous, base: None };
        let key = &self.parts.key;
        if found.is_some_and(|head| head.key != key.fingerprint()) {
            self.state.secret = None;
        }
        if key.needs_secret() {
            self.state.secret.get_or_insert_with(random_secret);
        }
        self.state.highest_number = number;
        self.state.beginning = Some(own.clone());
        self.write_state().await?;
        Ok(own)
    }

    /// Records the commits of this gateway that no era has one by one, if a new one begins after `begin`.
    fn record_hole(&mut self, found: Option<&Head>, coverage: Coverage, begin: u64) {
        let known = self.state.retain_after().or(self.state.anchor_sequence());
        let sent = match found {
            Some(head) if coverage == Coverage::Continued => Some(head.last.sequence),
            // The medium lost the newest of the frames that were sent, and has no others.
            Some(head) if self.anchor_of(&head.era).is_some() && begin <= head.last.sequence => {
                None
            }
            // The bucket may have returned an older head.
            Some(head) if coverage == Coverage::Incomplete => known.max(Some(head.last.sequence)),
            _ => known,
        };
        if let Some(sent) = sent.filter(|sent| *sent < begin) {
            self.state.holes.add(Hole { from: sent + 1, to: begin });
            self.parts.report_holes(&self.state.holes);
        }
    }

    /// Returns what a head says can be restored, if its HMAC is right, or if the data directory knows it. The new head gives it an
    /// HMAC of this gateway.
    fn trust_restorable(&self, head: &Head) -> Option<PreviousEra> {
        let is_right =
            self.can_check(head) && head.check_mac(&self.parts.key, self.secret()).is_ok();
        let mut eras = self.state.era.iter().chain(&self.state.beginning);
        let is_known = eras.any(|own| {
            own.id == head.era
                && match &head.base {
                    Some(base) => own.base.as_ref().is_some_and(|known| known.entry == *base),
                    None => own.previous == head.previous,
                }
        });
        if is_right || is_known { head.restorable() } else { None }
    }
}

/// Returns what the journal has of the commits of a head, with the reason for a new era, if there is one.
fn to_coverage(compared: Option<(&'static str, Coverage)>) -> Coverage {
    compared.map_or(Coverage::Continued, |(_, coverage)| coverage)
}

/// Lets the journal keep the frames after this one. Returns whether it has all of them, and the frame itself or a base
/// with it.
fn retain_after<O: Objects>(parts: &Parts<O>, sequence: u64) -> Result<bool, DeliveryFailure> {
    let retained = parts.store.retain_frames_after(Some(sequence));
    let oldest = retained.and_then(|()| parts.store.oldest_frame());
    let oldest = oldest.map_err(|error| store_failure(&error))?;
    Ok(oldest <= sequence + 1 && sequence <= parts.store.newest_durable())
}
