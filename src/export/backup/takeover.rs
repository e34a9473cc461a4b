//! The last step of a restore: it begins a new era in the bucket, which replaces the machine before.
use super::chain::Checksum;
use super::folder::BackupFolder;
use super::head::{
    Continued, EraRecord, Head, HeadContent, LastFrame, PreviousEra, time_of_system,
};
use super::keys::{new_era_id, random_token};
use super::place::{Objects, Precondition, Replaced};
use super::reader::{ReadHead, Reader};
use super::restore::disk_error;
use super::secrecy::HeadSecret;
use super::state::{LocalState, OwnEra};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::Format;
use std::cell::Cell;

impl<O: Objects> Reader<O> {
    /// Begins a new era in the bucket, if the head is still the same. Its id is in the data directory before that, so that a
    /// repeated restore knows it if the answer is lost.
    pub(super) fn take_over(
        &self,
        found: &ReadHead,
        folder: &BackupFolder,
        (number, sequence): (u64, u64),
        continued: Option<PreviousEra>,
        secret: Option<&HeadSecret>,
    ) -> Result<String, GatewayError> {
        let id = new_era_id(number);
        let token = random_token();
        let checksum = Checksum::of_era(&id);
        let begin = LastFrame { sequence, checksum, time: time_of_system() };
        let previous = continued.clone().or_else(|| found.head.restorable());
        let own = OwnEra {
            id: id.clone(),
            number,
            begin: begin.clone(),
            previous: previous.clone(),
            base: None,
        };
        let mut state = LocalState {
            beginning: Some(own),
            secret: secret.cloned(),
            highest_number: number,
            ..LocalState::default()
        };
        state.add_writer(&id, &token, sequence);
        // Once this head is there, the one before is an older one.
        if self.objects.has_preconditions() {
            state.add_former(&found.head);
        }
        self.require_same_head(found)?;
        let continues =
            continued.map(|before| Continued { era: before.era, sequence: before.last.sequence });
        let record = EraRecord::new(&self.gateway, (&id, number), begin.clone(), continues);
        let (key, text) = (self.keys.era(&id), record.to_text());
        if self.wait(|| self.objects.put(&key, &text, &Precondition::Missing))?
            == Replaced::Unsupported
        {
            self.wait(|| self.objects.put(&key, &text, &Precondition::Always))?;
        }
        let content = HeadContent {
            gateway: self.gateway.clone(),
            era: id.clone(),
            number,
            store_format: found.head.format().unwrap_or(Format::NEWEST),
            writer: token,
            write: 0,
            base: None,
            last: begin,
            previous,
        };
        let head = Head::new(content, &self.key, secret);
        folder.write_takeover(&state).map_err(|error| disk_error(folder, &error))?;
        let may_be_stored = Cell::new(false);
        self.put_head(&head, found, &may_be_stored).inspect_err(|error| {
            // The bucket has refused it, or it was not sent.
            if error.class == ErrorClass::Conflict || !may_be_stored.get() {
                folder.discard_takeover();
            }
        })?;
        record_takeover(folder, &state)?;
        Ok(id)
    }

    /// Continues a takeover whose answer was lost: the head is its own. Until the store is published, no other machine can
    /// have the token of that head.
    pub(super) fn finish_takeover(
        &self,
        found: &ReadHead,
        folder: &BackupFolder,
        tried: &LocalState,
        sequence: u64,
    ) -> Result<String, GatewayError> {
        let now = self.require_same_head(found)?;
        let own = tried.beginning.as_ref().filter(|own| own.begin.sequence == sequence);
        let Some(own) = own else {
            folder.discard_takeover();
            return Err(self.changed_error(&now.head));
        };
        record_takeover(folder, tried)?;
        Ok(own.id.clone())
    }

    /// Reads the head again. It must be the one that was restored.
    pub(super) fn require_same_head(&self, found: &ReadHead) -> Result<ReadHead, GatewayError> {
        let now = self.require_head()?;
        if now.head == found.head { Ok(now) } else { Err(self.changed_error(&now.head)) }
    }

    /// Replaces the head that was restored by that of the takeover. After a lost answer, and where nothing excludes a second
    /// writer, the head says whether it was written. `may_be_stored` becomes true if it may be there after an error, or
    /// arrive later.
    fn put_head(
        &self,
        head: &Head,
        found: &ReadHead,
        may_be_stored: &Cell<bool>,
    ) -> Result<(), GatewayError> {
        let (key, text) = (self.keys.head(), head.to_text());
        let mut is_conditional = self.objects.has_preconditions();
        loop {
            let precondition = match self.require_same_head(found)?.etag {
                Some(etag) if is_conditional => Precondition::Unchanged(etag),
                _ => Precondition::Always,
            };
            let put = self.wait(|| async {
                let put = self.objects.put(&key, &text, &precondition).await;
                put.inspect_err(|failure| {
                    if failure.outcome_unknown {
                        may_be_stored.set(true);
                    }
                })
            });
            match put {
                Ok(Replaced::Stored(_)) if precondition != Precondition::Always => return Ok(()),
                Ok(Replaced::Unsupported) if is_conditional => is_conditional = false,
                put => {
                    let now = self.require_head().inspect_err(|_| may_be_stored.set(true))?;
                    if now.head == *head {
                        return Ok(());
                    }
                    put?;
                    return Err(self.changed_error(&now.head));
                }
            }
        }
    }

    fn changed_error(&self, head: &Head) -> GatewayError {
        GatewayError::new(
            ErrorClass::Conflict,
            format!(
                "{} changed meanwhile (era {}, commit {}): the old machine runs, or another restore does. Stop it, and run \
                 the restore again",
                self.keys.head(),
                head.era,
                head.last.sequence
            ),
        )
    }
}

/// Makes the state after a takeover that of the gateway.
fn record_takeover(folder: &BackupFolder, state: &LocalState) -> Result<(), GatewayError> {
    let written = folder.write_state(state).and_then(|()| folder.set_lost_exports(true));
    written.map_err(|error| disk_error(folder, &error))
}
