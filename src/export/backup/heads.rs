//! Reading and writing the head: whose it is, and what became of an attempt to write it.
use super::head::{DocumentError, Head, HeadContent, LastFrame};
use super::keys::BackupKeys;
use super::parts::refused_head_failure;
use super::place::{Objects, Precondition, Replaced, SmallObject};
use super::ship::{KnownHead, Phase, Shipper};
use super::state::{OwnBase, OwnEra};
use crate::cause::DeliveryFailure;
use penstock_resources::export::Cause;

/// The maximum number of attempts in a row to have a head accepted.
const MAX_CONFIRMATIONS: u32 = 3;

/// Whose a head is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// This gateway wrote it.
    Own,
    /// This gateway wrote it before its current one.
    Former,
    /// Another machine wrote it.
    Other,
}

impl<O: Objects> Shipper<O> {
    /// Reads a head, and finds out whose it is. One of this gateway must have the right HMAC, unless the key has changed.
    /// One of another machine can have an HMAC of a key or secret that this machine lacks; it says no more than that there
    /// is another machine.
    pub(super) fn read_head(&self, text: &str) -> Result<(Head, Origin), DocumentError> {
        let head = Head::read(text, &self.parts.gateway)?;
        // The clone of a machine that runs has its token.
        let is_of_clone = head.writer == self.parts.token && head.write > self.last_put;
        let origin = if is_of_clone {
            Origin::Other
        } else if self.state.has_written_before(&head) {
            Origin::Former
        } else if self.state.may_have_written(&head) {
            Origin::Own
        } else {
            Origin::Other
        };
        if origin != Origin::Other && self.can_check(&head) {
            head.check_mac(&self.parts.key, self.secret())?;
        }
        Ok((head, origin))
    }

    /// Returns whether this gateway can check the HMAC of a head of its own.
    pub(super) fn can_check(&self, head: &Head) -> bool {
        let key = &self.parts.key;
        // While the head of a new era is not there yet, the secret can be newer than the head that is.
        let has_secret = || {
            let begun = self.state.beginning.as_ref();
            self.secret().is_some()
                && (begun.is_none_or(|own| own.id == head.era)
                    || head.check_mac(key, self.secret()).is_ok())
        };
        head.key == key.fingerprint() && (!key.needs_secret() || has_secret())
    }

    /// Describes a head of an era up to a frame.
    pub(super) fn describe_head(&self, own: &OwnEra, last: LastFrame) -> HeadContent {
        let stored = self.parts.stored_base(&own.id, last.sequence).or_else(|| own.base.clone());
        HeadContent {
            gateway: self.parts.gateway.clone(),
            era: own.id.clone(),
            number: own.number,
            store_format: self.parts.store.format(),
            writer: self.parts.token.clone(),
            write: self.write,
            previous: own.previous.clone().filter(|_| stored.is_none()),
            base: stored.map(|base| base.entry),
            last,
        }
    }

    /// Writes a head. If another machine has written one, the gateway is replaced.
    pub(super) async fn write_head(&mut self, content: HeadContent) -> Result<(), DeliveryFailure> {
        if let Some(unclear) = self.unclear.take()
            && !self.resolve_head(unclear).await?
        {
            return Ok(());
        }
        let is_older = |known: &KnownHead| {
            known.head.era == content.era && content.last.sequence < known.head.last.sequence
        };
        if self.known.as_ref().is_some_and(is_older) {
            return Ok(());
        }
        self.write += 1;
        let content = HeadContent { write: self.write, ..content };
        self.state.add_writer(&content.era, &content.writer, content.last.sequence);
        self.state.anchor = self.last_anchor().or(self.state.anchor);
        // The data directory knows token, era and sequence before the bucket does.
        self.write_state().await?;
        let head = Head::new(content, &self.parts.key, self.secret());
        let etag = self.known.as_ref().map_or(&self.unusable_etag, |known| &known.etag);
        let mut precondition = match etag {
            Some(etag) if self.has_preconditions() => Precondition::Unchanged(etag.clone()),
            None if self.known.is_none() => Precondition::Missing,
            _ => Precondition::Always,
        };
        if precondition == Precondition::Always || !self.parts.objects.has_preconditions() {
            // Nothing excludes a second writer, but one that has written before is noticed.
            if !self.is_unchanged().await? {
                return Ok(());
            }
        }
        let (key, text) = (self.parts.keys.head(), head.to_text());
        self.last_put = self.write;
        let is_first = self.known.as_ref().is_none_or(|known| !known.is_confirmed);
        loop {
            let put = self.parts.objects.put(&key, &text, &precondition).await;
            match put {
                Ok(Replaced::Stored(_)) if is_first && !self.excludes_others(&precondition) => {
                    // If two machines have replaced the same head, only the later one continues.
                    return self.resolve_head(head).await.map(drop);
                }
                Ok(Replaced::Stored(etag)) => {
                    return self.accept_head(KnownHead { head, etag, is_confirmed: true }).await;
                }
                Ok(Replaced::Unsupported) => {
                    self.parts.reported.lock().report.single_writer = Some(false);
                    if !self.is_unchanged().await? {
                        return Ok(());
                    }
                    precondition = Precondition::Always;
                }
                Ok(Replaced::Refused) => {
                    self.resolve_head(head).await?;
                    return Ok(());
                }
                Err(failure) => {
                    self.unclear = Some(head);
                    return Err(failure);
                }
            }
        }
    }

    /// Returns whether a head that was stored with this precondition cannot have replaced that of another machine.
    fn excludes_others(&self, precondition: &Precondition) -> bool {
        *precondition != Precondition::Always
            && self.parts.reported.lock().report.single_writer == Some(true)
    }

    fn has_preconditions(&self) -> bool {
        self.parts.objects.has_preconditions()
            && self.parts.reported.lock().report.single_writer != Some(false)
    }

    /// Returns whether the head in the bucket is the known one. If it is another one of this gateway, that is known then. One
    /// of another machine replaces the gateway.
    pub(super) async fn is_unchanged(&mut self) -> Result<bool, DeliveryFailure> {
        let found = self.parts.objects.get(&self.parts.keys.head()).await?;
        let Some(SmallObject { text, etag }) = found else {
            (self.known, self.unusable_etag) = (None, None);
            return Ok(true);
        };
        let (head, origin) = match self.read_head(&text) {
            Err(error) if self.known.is_none() && self.may_replace(&error) => return Ok(true),
            read => read.map_err(|error| document_failure(&self.parts.keys, &error))?,
        };
        let is_known = self.is_known(&head);
        Ok(self.adopt_head(head, origin, etag).await? && is_known)
    }

    /// Returns whether the operator wants a head that cannot be used to be replaced.
    fn may_replace(&self, error: &DocumentError) -> bool {
        self.state.take_over
            && matches!(error, DocumentError::Malformed { .. } | DocumentError::WrongMac)
    }

    /// Takes over what the worker knows from a head in the bucket, which it did not write just now. Returns false if the
    /// gateway is replaced, or has to find its era again.
    async fn adopt_head(
        &mut self,
        head: Head,
        origin: Origin,
        etag: Option<String>,
    ) -> Result<bool, DeliveryFailure> {
        let is_known = self.is_known(&head);
        if !is_known && origin == Origin::Other && !self.state.take_over {
            self.record_replacement(&head.era).await?;
            return Ok(false);
        }
        let of_era = self.known.as_ref().filter(|known| known.head.era == head.era);
        let known = of_era.map_or(0, |known| known.head.last.sequence);
        if !is_known && (origin == Origin::Former || head.last.sequence < known) {
            return Err(old_head_failure(&self.parts.keys, head.last.sequence, known));
        }
        let is_confirmed = is_known && self.known.as_ref().is_some_and(|known| known.is_confirmed);
        if origin == Origin::Own {
            self.learn_base(&head);
        }
        let own = self.state.era.as_ref();
        let is_of_other_era = own.is_none_or(|own| own.id != head.era);
        self.known = Some(KnownHead { head, etag, is_confirmed });
        // An attempt of an earlier process to begin an era may arrive late. What is pending is of the era before.
        let has_moved = self.phase == Phase::Running && is_of_other_era;
        if has_moved {
            self.phase = Phase::Starting;
        }
        Ok(!has_moved)
    }

    /// Returns whether a head is the one that the worker knows.
    fn is_known(&self, head: &Head) -> bool {
        self.known.as_ref().is_some_and(|known| known.head == *head)
    }

    /// Reads the head after an attempt with an unclear result. Returns whether the worker may go on writing: what it tried
    /// is there, or what it knew before.
    async fn resolve_head(&mut self, tried: Head) -> Result<bool, DeliveryFailure> {
        let found = match self.parts.objects.get(&self.parts.keys.head()).await {
            Ok(found) => found,
            Err(failure) => {
                self.unclear = Some(tried);
                return Err(failure);
            }
        };
        let Some(SmallObject { text, etag }) = found else {
            self.unusable_etag = None;
            // The first head, which has not arrived. The precondition excludes that it does later.
            if self.known.take().is_none() {
                return Ok(true);
            }
            return Err(DeliveryFailure::new(
                Cause::Conflict,
                format!(
                    "{} was deleted from the bucket; the gateway writes it again",
                    self.parts.keys.head()
                ),
            ));
        };
        let (head, mut origin) = match self.read_head(&text) {
            Ok(found) => found,
            Err(error) => {
                if self.may_replace(&error) {
                    (self.known, self.unusable_etag) = (None, etag);
                } else {
                    self.unclear = Some(tried);
                }
                return Err(document_failure(&self.parts.keys, &error));
            }
        };
        if head == tried {
            self.accept_head(KnownHead { head, etag, is_confirmed: true }).await?;
            return Ok(true);
        }
        if (&head.writer, head.write) == (&tried.writer, tried.write) {
            origin = Origin::Other;
        }
        // What was tried is not there, or not there yet: the precondition excludes that both arrive.
        let adopted = self.adopt_head(head, origin, etag).await;
        if adopted.is_err() {
            self.unclear = Some(tried);
        }
        adopted
    }

    /// Records that the bucket has this head of this gateway.
    pub(super) async fn accept_head(&mut self, known: KnownHead) -> Result<(), DeliveryFailure> {
        let head = &known.head;
        let mut has_changed = known.is_confirmed && self.state.writers.len() != 1;
        if known.is_confirmed {
            self.state.confirm_writer(head);
            if let Some(replaced) = self.known.as_ref().filter(|_| self.has_preconditions()) {
                self.state.add_former(&replaced.head);
            }
        }
        let is_first = self.state.beginning.as_ref().is_some_and(|own| own.id == head.era);
        if is_first {
            self.state.era = self.state.beginning.take();
            self.state.anchor = None;
            self.unmerged.clear();
            self.lost_frames = false;
        }
        has_changed |= is_first;
        if known.is_confirmed {
            self.state.beginning = None;
        }
        self.state.take_over = false;
        self.state.replaced = None;
        self.unusable_etag = None;
        self.phase = Phase::Running;
        has_changed |= self.learn_base(head);
        // Of two machines with one disk, only the one whose head is accepted exports and reads its sources.
        if known.is_confirmed {
            self.release();
        }
        self.known = Some(known);
        if has_changed {
            self.write_state().await?;
        }
        self.report_head();
        self.want_base_if_due();
        self.update_retention().await
    }

    /// Records the base that a head of this gateway names, unless it is an older one. Returns whether it was not known.
    fn learn_base(&mut self, head: &Head) -> bool {
        let (Some(base), Some(own)) = (&head.base, &mut self.state.era) else { return false };
        let is_new = own
            .base
            .as_ref()
            .is_none_or(|known| known.entry != *base && known.entry.sequence <= base.sequence);
        if own.id != head.era || !is_new {
            return false;
        }
        let stored = self.parts.stored_base(&head.era, head.last.sequence);
        let stored = stored.filter(|stored| stored.entry == *base);
        // The process may have ended before it wrote the state with the base.
        own.base = Some(stored.unwrap_or_else(|| OwnBase {
            entry: base.clone(),
            at: head.last.time.at.clone(),
            elapsed: self.parts.clock.elapsed(),
            sent_since: 0,
        }));
        own.previous = None;
        self.parts.finish_base(base);
        self.parts.reported.lock().report.restorable = true;
        tracing::info!(
            sequence = base.sequence,
            bytes = base.bytes,
            "A base of the backup counts."
        );
        true
    }

    /// Makes sure that the bucket has accepted a head of this process, which must be before its first upload: of two machines
    /// with one disk, only one gets there. Returns whether it has.
    pub(super) async fn confirm_head(&mut self) -> Result<bool, DeliveryFailure> {
        for _ in 0..MAX_CONFIRMATIONS {
            let (Some(own), Some(known)) = (self.state.era.clone(), self.known.clone()) else {
                self.phase = Phase::Starting;
                return Ok(false);
            };
            if known.is_confirmed {
                return Ok(true);
            }
            let content = self.describe_head(&own, known.head.last);
            self.write_head(content).await?;
            if self.phase != Phase::Running {
                return Ok(false);
            }
        }
        let is_confirmed = self.known.as_ref().is_some_and(|known| known.is_confirmed);
        if is_confirmed { Ok(true) } else { Err(refused_head_failure(&self.parts.keys)) }
    }
}

/// Converts a document of the bucket that cannot be used into a failure.
pub(super) fn document_failure(keys: &BackupKeys, error: &DocumentError) -> DeliveryFailure {
    let head = keys.head();
    DeliveryFailure::new(
        Cause::Conflict,
        format!("{head}: {error} (penstock offsite-backup take-over begins a new era)"),
    )
}

pub(super) fn old_head_failure(keys: &BackupKeys, found: u64, known: u64) -> DeliveryFailure {
    let head = keys.head();
    DeliveryFailure::new(
        Cause::Busy,
        format!(
            "the bucket returned an older {head} (commit {found} in place of {known}); if it stays so, penstock \
             offsite-backup take-over begins a new era"
        ),
    )
}
