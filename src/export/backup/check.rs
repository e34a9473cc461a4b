//! Looking at a backup: what there is, and whether all of it is whole.
use super::head::{EraRecord, PreviousEra};
use super::keys::era_number;
use super::place::Objects;
use super::plan::{EraObjects, MissingFrames};
use super::reader::{ReadBase, ReadError, Reader};
use super::secrecy::DecryptionError;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::verify_backup;
use std::collections::BTreeMap;

/// A backup, as its listing shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedBackup {
    /// The gateway.
    pub gateway: String,
    /// The era that counts.
    pub era: Option<String>,
    /// The last commit that counts.
    pub last_sequence: Option<u64>,
    /// The time by which it was made (RFC 3339).
    pub last_at: Option<String>,
    /// The era that a restore takes; `None` if none can be restored.
    pub restorable: Option<String>,
    /// The fingerprint of the key; `None` if the backup is not encrypted.
    pub key: Option<String>,
    /// The number of the store's format.
    pub store_format: Option<u32>,
    /// The eras, the oldest first.
    pub eras: Vec<ListedEra>,
}

/// An era, as its listing shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedEra {
    /// Its id.
    pub id: String,
    /// Its number.
    pub number: u64,
    /// When it began (RFC 3339).
    pub begun_at: Option<String>,
    /// The commit after which its segments begin. Those between the one that it continues and this one are only in its
    /// bases.
    pub begin: Option<u64>,
    /// The era and the commit that it continues.
    pub continues: Option<(String, u64)>,
    /// The commits of its bases.
    pub bases: Vec<u64>,
    /// The number of segments.
    pub segments: usize,
    /// The last commit in a segment or base.
    pub last: Option<u64>,
    /// The bytes of all objects.
    pub bytes: u64,
    /// The commits after the oldest base that no segment and no later base has: first and last.
    pub missing: Vec<(u64, u64)>,
}

/// Something that a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckFinding {
    /// The key of the object, or the folder of the era.
    pub key: String,
    /// What is wrong, or what was not checked.
    pub cause: String,
    /// Whether nothing is wrong: an older era has another key.
    pub is_note: bool,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckedBackup {
    /// Eras that were checked.
    pub eras: u64,
    /// Older eras with another key, which were not checked.
    pub other_keys: u64,
    /// Bases that were read.
    pub bases: u64,
    /// Segments that were read.
    pub segments: u64,
    /// Frames in them.
    pub frames: u64,
    /// Problems.
    pub findings: u64,
}

impl<O: Objects> Reader<O> {
    /// See [`BackupReader::list`](super::BackupReader::list).
    pub(super) fn list(&self) -> Result<ListedBackup, GatewayError> {
        let head = self.read_head()?.map(|found| found.head);
        let eras = self.list_eras()?;
        if head.is_none() && eras.is_empty() {
            return Err(self.missing_backup_error());
        }
        let mut listed = ListedBackup { gateway: self.gateway.clone(), ..ListedBackup::default() };
        if let Some(head) = &head {
            listed.era = Some(head.era.clone());
            listed.last_sequence = Some(head.last.sequence);
            listed.last_at = Some(head.last.time.at.clone());
            listed.restorable = head.restorable().map(|known| known.era);
            listed.key.clone_from(&head.key);
            listed.store_format = Some(head.store_format);
        }
        for (id, objects) in eras {
            let record = match self.read_era(&id) {
                // The check names it.
                Err(error) if error.class == ErrorClass::Damaged => None,
                record => record?,
            };
            listed.eras.push(describe_era(id, &objects, record));
        }
        Ok(listed)
    }

    /// See [`BackupReader::check`](super::BackupReader::check).
    pub(super) fn check(
        &self,
        era: Option<&str>,
        found: &mut dyn FnMut(&CheckFinding),
        progress: &mut dyn FnMut(&CheckedBackup),
    ) -> Result<CheckedBackup, GatewayError> {
        let head = self.require_head()?.head;
        // An older era can have had another key.
        let is_older = era.is_some_and(|era| era != head.era);
        let fingerprint = if is_older { self.key.fingerprint() } else { head.key.clone() };
        self.check_key(fingerprint.as_deref())?;
        let mut eras = self.list_eras()?;
        if let Some(era) = era.filter(|era| !eras.contains_key(*era)) {
            return Err(self.missing_era_error(era));
        }
        // If all objects of the era to restore are missing, they are missed too.
        if let Some(known) = head.restorable().filter(|_| !is_older) {
            eras.entry(known.era).or_default();
        }
        let mut check =
            Check { checked: CheckedBackup::default(), found, progress, relisted: None };
        let mut named_base = None;
        for (id, objects) in eras.iter().filter(|(id, _)| era.is_none_or(|era| era == *id)) {
            let known = head.restorable().filter(|known| known.era == *id);
            let has_key = known.as_ref().is_some_and(|known| known.key == self.key.fingerprint());
            if era.is_none() && *id != head.era && !has_key && self.has_other_key(id, objects)? {
                check.note_other_key(self.keys.era_folder(id));
                continue;
            }
            check.checked.eras += 1;
            let limit = match &known {
                Some(known) => known.last.sequence,
                None => match self.find_limit(&head, id, &eras) {
                    Err(error) if error.class == ErrorClass::Damaged => {
                        check.report(self.keys.era_folder(id), error.detail);
                        u64::MAX
                    }
                    limit => limit?,
                },
            };
            let named = self.check_bases(id, objects, known.as_ref(), &mut check)?;
            if *id == head.era {
                named_base = named;
            }
            self.check_segments(id, objects, (known.as_ref(), limit), &mut check)?;
        }
        // Each era can have a secret of its own. That of the head is in the base that it names.
        if let Some(base) = named_base
            && let Err(error) = head.check_mac(&self.key, base.secret.as_ref())
        {
            check.report(self.keys.head(), error.to_string());
        }
        Ok(check.checked)
    }

    /// Returns whether the objects of an era are for another key than this one.
    fn has_other_key(&self, era: &str, objects: &EraObjects) -> Result<bool, GatewayError> {
        let bases = objects.bases.iter().map(|(at, object)| (self.keys.base(era, *at), object));
        let segments = objects
            .segments
            .iter()
            .map(|((first, last), object)| (self.keys.segment(era, *first, *last), object));
        let Some((key, object)) = bases.chain(segments).next() else { return Ok(false) };
        if key != object.key {
            // Only one of the two is encrypted.
            return Ok(true);
        }
        let Some(input) = self.open(&key)? else { return Ok(false) };
        Ok(matches!(self.key.decrypt(input), Err(DecryptionError::OtherKey)))
    }

    /// Checks the bases of an era. Returns the one that the head names, if it is whole.
    fn check_bases(
        &self,
        era: &str,
        objects: &EraObjects,
        known: Option<&PreviousEra>,
        check: &mut Check<'_>,
    ) -> Result<Option<ReadBase>, GatewayError> {
        let mut named = None;
        if let Some(known) = known.filter(|k| !objects.bases.contains_key(&k.base.sequence)) {
            let key = self.keys.base(era, known.base.sequence);
            check.report(key, "it does not exist, and head.json names it".to_owned());
        }
        for sequence in objects.bases.keys() {
            let read = self.read_base(era, *sequence, &mut |input, path| {
                verify_backup(input, path).map(|backup| backup.sequence)
            });
            match read {
                Ok(base) => {
                    check.checked.bases += 1;
                    match known.filter(|known| known.base.sequence == *sequence) {
                        Some(known) if known.base == base.entry => named = Some(base),
                        Some(_) => {
                            let cause = "it is not the object that head.json names";
                            check.report(self.keys.base(era, *sequence), cause.to_owned());
                        }
                        None => {}
                    }
                }
                Err(ReadError::Missing(key)) => {
                    let is_named = known.is_some_and(|known| known.base.sequence == *sequence);
                    self.check_missing(era, key, check, |now| {
                        !is_named && !now.bases.contains_key(sequence)
                    })?;
                }
                Err(error) => check.report_error(self.keys.base(era, *sequence), error)?,
            }
            check.show_progress();
        }
        Ok(named)
    }

    /// Reports an object that was listed and is not there, unless the backup does without it by now: it was deleted because
    /// a merged segment or a newer base replaces it.
    fn check_missing(
        &self,
        era: &str,
        key: String,
        check: &mut Check<'_>,
        is_replaced: impl Fn(&EraObjects) -> bool,
    ) -> Result<(), GatewayError> {
        let is_replaced_in = |eras: &BTreeMap<String, EraObjects>| match eras.get(era) {
            Some(objects) => is_replaced(objects),
            None => is_replaced(&EraObjects::default()),
        };
        // A gateway deletes thousands of merged segments at once, and each listing can be long.
        if check.relisted.as_ref().is_some_and(is_replaced_in) {
            return Ok(());
        }
        let now = self.list_eras()?;
        if !is_replaced_in(&now) {
            check.report(key, "it is listed, and does not exist".to_owned());
        }
        check.relisted = Some(now);
        Ok(())
    }

    fn check_segments(
        &self,
        era: &str,
        objects: &EraObjects,
        (known, limit): (Option<&PreviousEra>, u64),
        check: &mut Check<'_>,
    ) -> Result<(), GatewayError> {
        for MissingFrames { from, to } in list_missing(objects, limit, known.is_some()) {
            let cause = format!("the frames {from} to {to} are missing");
            check.report(self.keys.era_folder(era), cause);
        }
        let widest = objects.list_widest(limit);
        let (mut position, mut end) = (None, None);
        let counting = objects
            .segments
            .keys()
            .filter(|segment| segment.1 <= limit || widest.binary_search(segment).is_ok());
        for segment in counting {
            let is_widest = widest.binary_search(segment).is_ok();
            let before = position.filter(|_| is_widest);
            let (mut frames, mut at_limit) = (0, None);
            let read = self.read_segment(era, *segment, before, &mut |sequence, _, checksum| {
                frames += 1;
                if sequence == limit {
                    at_limit = Some((sequence, checksum));
                }
                Ok(())
            });
            match read {
                Ok(checksum) => {
                    check.checked.segments += 1;
                    check.checked.frames += frames;
                    if is_widest {
                        position = Some((segment.1, checksum));
                        end = end.or(at_limit);
                    }
                }
                Err(ReadError::Missing(key)) => {
                    position = position.filter(|_| !is_widest);
                    let (first, last) = *segment;
                    self.check_missing(era, key, check, |now| {
                        let is_before = now.bases.keys().next().is_none_or(|base| *base >= last);
                        let is_merged = now.cover(first - 1, last, limit).is_ok();
                        !now.segments.contains_key(segment) && (is_before || is_merged)
                    })?;
                }
                Err(error) => {
                    position = None;
                    check.report_error(self.keys.segment(era, segment.0, segment.1), error)?;
                }
            }
            check.show_progress();
        }
        if let Some(known) = known
            && let Err(error) = self.check_end(&known.last, end)
        {
            check.report(self.keys.era_folder(era), error.detail);
        }
        Ok(())
    }
}

/// A check that runs.
struct Check<'a> {
    checked: CheckedBackup,
    found: &'a mut dyn FnMut(&CheckFinding),
    progress: &'a mut dyn FnMut(&CheckedBackup),
    /// The last listing after an object was missing.
    relisted: Option<BTreeMap<String, EraObjects>>,
}

impl Check<'_> {
    fn report(&mut self, key: String, cause: String) {
        self.checked.findings += 1;
        (self.found)(&CheckFinding { key, cause, is_note: false });
    }

    fn note_other_key(&mut self, key: String) {
        self.checked.other_keys += 1;
        let cause = "this era has another key, so it was not checked".to_owned();
        (self.found)(&CheckFinding { key, cause, is_note: true });
    }

    /// Reports the problem of the object with this key. Other errors end the check.
    fn report_error(&mut self, key: String, error: ReadError) -> Result<(), GatewayError> {
        match error {
            ReadError::Object { error, .. } => self.report(key, error.to_string()),
            ReadError::Gateway(error) if error.class != ErrorClass::Damaged => return Err(error),
            error => self.report(key, GatewayError::from(error).detail),
        }
        Ok(())
    }

    fn show_progress(&mut self) {
        (self.progress)(&self.checked);
    }
}

fn describe_era(id: String, objects: &EraObjects, record: Option<EraRecord>) -> ListedEra {
    let last_segment = objects.segments.keys().map(|(_, last)| *last).max();
    let last_base = objects.bases.keys().next_back().copied();
    let missing = list_missing(objects, u64::MAX, false);
    ListedEra {
        number: era_number(&id).unwrap_or(0),
        id,
        begun_at: record.as_ref().map(|record| record.begin.time.at.clone()),
        begin: record.as_ref().map(|record| record.begin.sequence),
        continues: record
            .and_then(|record| record.continues)
            .map(|continued| (continued.era, continued.sequence)),
        bases: objects.bases.keys().copied().collect(),
        segments: objects.segments.len(),
        last: last_segment.max(last_base),
        bytes: objects.bytes(),
        missing: missing.into_iter().map(|MissingFrames { from, to }| (from, to)).collect(),
    }
}

/// Lists the frames after the oldest base that no segment up to `limit` has. With `is_end`, `limit` is the last frame, which
/// must be there.
fn list_missing(objects: &EraObjects, limit: u64, is_end: bool) -> Vec<MissingFrames> {
    let Some(oldest) = objects.bases.keys().next() else { return Vec::new() };
    let mut covered = *oldest;
    let mut missing = Vec::new();
    for (first, end) in objects.list_widest(limit) {
        if first > covered + 1 {
            missing.push(MissingFrames { from: covered + 1, to: first - 1 });
        }
        covered = covered.max(end);
    }
    if is_end && limit > covered {
        missing.push(MissingFrames { from: covered + 1, to: limit });
    }
    // A base after the gap does without these frames, but no point between them can be restored.
    missing
}
