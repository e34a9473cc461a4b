//! Restoring a gateway from its backup, on another machine.
use super::chain::Checksum;
use super::folder::BackupFolder;
use super::head::{Head, LastFrame, MarkedTime, PreviousEra, time_of_system};
use super::keys::era_number;
use super::objects::{Point, Segment, open_segment};
use super::place::Objects;
use super::plan::EraObjects;
use super::reader::{ReadBase, ReadError, ReadHead, Reader, document_error};
use super::state::LocalState;
use jiff::Timestamp;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::{Format, NewStore, NewStorePlan, Restored, SEQUENCE_JUMP};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The maximum number of listings, because an object may be merged while it is read.
const MAX_LISTINGS: u32 = 3;

/// What to restore, and where.
#[derive(Debug, Clone, Copy)]
pub struct RestoreRequest<'a> {
    /// The data directory. It has nothing but what a restore leaves.
    pub data_dir: &'a Path,
    /// The folder of the store in it.
    pub store_dir: &'a Path,
    /// The collections of counters.
    pub counters: &'a [&'a str],
    /// The era; by default the one that counts.
    pub era: Option<&'a str>,
    /// The moment; by default the last one.
    pub at: Option<Timestamp>,
    /// Whether the store is only for inspection: nothing is taken over.
    pub copy: bool,
}

/// How far a restore is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestoreProgress {
    /// Commits that were read.
    pub sequence: u64,
    /// The last commit to read.
    pub last: u64,
}

/// The result of a restore.
#[derive(Debug, Clone)]
pub struct RestoredBackup {
    /// The era that was restored.
    pub era: String,
    /// The time by which its last commit was made (RFC 3339).
    pub at: Option<String>,
    /// What the store has.
    pub restored: Restored,
    /// How far the sequence of commits and the counters jumped.
    pub jump: u64,
    /// The era that the new machine has begun; `None` for a copy.
    pub new_era: Option<String>,
    /// Sentences about what the operator should know.
    pub warnings: Vec<String>,
}

/// An era and the commit to restore.
struct Chosen {
    era: String,
    number: u64,
    /// The fingerprint of its key.
    key: Option<String>,
    /// The last commit that counts, as far as is known.
    end: Option<LastFrame>,
    /// Frames after this sequence do not count.
    limit: u64,
    /// The commit to restore.
    target: u64,
    /// Its time.
    time: Option<MarkedTime>,
    /// The SHA-256 of a base, by its sequence, as the head says it.
    known_base: Option<(u64, String)>,
}

impl<O: Objects> Reader<O> {
    /// See [`BackupReader::restore`](super::BackupReader::restore).
    pub(super) fn restore(
        &self,
        request: &RestoreRequest<'_>,
        progress: &mut dyn FnMut(RestoreProgress),
    ) -> Result<RestoredBackup, GatewayError> {
        let mut found = self.require_head()?;
        let mut listings = 0;
        loop {
            listings += 1;
            match self.restore_listed(&found, request, progress) {
                // It was merged, or deleted because a later head does without it.
                Err(ReadError::Missing(_) | ReadError::Incomplete(_))
                    if listings < MAX_LISTINGS =>
                {
                    found = if request.copy {
                        self.require_head()?
                    } else {
                        self.require_same_head(&found)?
                    };
                }
                done => return Ok(done?),
            }
        }
    }

    fn restore_listed(
        &self,
        found: &ReadHead,
        request: &RestoreRequest<'_>,
        progress: &mut dyn FnMut(RestoreProgress),
    ) -> Result<RestoredBackup, ReadError> {
        let mut warnings = Vec::new();
        let eras = self.list_eras()?;
        let chosen = self.choose(&found.head, request, &eras, &mut warnings)?;
        self.check_key(chosen.key.as_deref())?;
        let objects = eras.get(&chosen.era).cloned().unwrap_or_default();
        let path = objects.find_path(chosen.target, chosen.limit);
        let (base, segments) =
            path.map_err(|missing| ReadError::Incomplete(self.missing_error(&chosen, missing)))?;
        let folder = BackupFolder::of(request.data_dir);
        let tried = folder
            .read_takeover()
            .filter(|tried| !request.copy && chosen.is_of(tried, &found.head));
        let highest = eras.keys().filter_map(|era| era_number(era)).max().unwrap_or(0);
        let next = highest.max(found.head.number) + 1;
        let number = tried.as_ref().map_or(next, |tried| tried.highest_number);
        let jump = SEQUENCE_JUMP.saturating_mul(number.saturating_sub(chosen.number).max(1));
        let format = found.head.format().unwrap_or(Format::NEWEST);
        let plan = NewStorePlan { format, sequence: chosen.target, jump };
        let mut store = NewStore::begin(request.store_dir, plan, request.counters)
            .map_err(|error| store_error(&error))?;
        let mut report =
            |sequence: u64| progress(RestoreProgress { sequence, last: chosen.target });
        let base = self.read_base(&chosen.era, base, &mut |input, path| {
            store.add_base(input, path).map(|backup| backup.sequence)
        })?;
        report(base.entry.sequence);
        self.check_base(found, &chosen, &base, &mut warnings)?;
        let (mut position, mut reached) = (None, None);
        for (first, last) in segments {
            let name = self.keys.segment(&chosen.era, first, last);
            let mut add = |sequence, frame: &[u8], checksum| {
                if sequence == chosen.target {
                    reached = Some(checksum);
                }
                if sequence > chosen.target {
                    return Ok(());
                }
                let added = store.add_frame(sequence, frame, Path::new(&name));
                added.map_err(|error| store_error(&error))
            };
            let checksum = self.read_segment(&chosen.era, (first, last), position, &mut add)?;
            position = Some((last, checksum));
            report(last.min(chosen.target));
        }
        if let Some(end) = &chosen.end {
            self.check_end(end, reached.map(|checksum| (chosen.target, checksum)))?;
        }
        let new = store.finish().map_err(|error| store_error(&error))?;
        let continued = Self::describe_continued(&chosen, &base, reached);
        let new_era = if request.copy {
            let state = LocalState { copy: true, ..LocalState::default() };
            folder.write_state(&state).map_err(|error| disk_error(&folder, &error))?;
            None
        } else {
            let sequence = new.restored().sequence;
            let taken = match tried {
                Some(tried) => self.finish_takeover(found, &folder, &tried, sequence),
                None => self.take_over(
                    found,
                    &folder,
                    (number, sequence),
                    continued,
                    base.secret.as_ref(),
                ),
            };
            // Without a takeover, nothing of the restore stays. If it is not known whether the bucket has its head, the next
            // attempt finds out.
            Some(taken.inspect_err(|_| {
                if folder.read_takeover().is_none() {
                    drop(fs::remove_dir_all(&folder.path));
                }
            })?)
        };
        let restored = new.publish().map_err(|error| store_error(&error))?;
        folder.discard_takeover();
        Ok(RestoredBackup {
            era: chosen.era,
            at: chosen.time.map(|time| time.at),
            restored,
            jump,
            new_era,
            warnings,
        })
    }

    /// Checks a base and the HMAC of the head, whose secret may be in the base.
    fn check_base(
        &self,
        found: &ReadHead,
        chosen: &Chosen,
        base: &ReadBase,
        warnings: &mut Vec<String>,
    ) -> Result<(), GatewayError> {
        if let Some((sequence, sha256)) = &chosen.known_base
            && *sequence == base.entry.sequence
            && *sha256 != base.entry.sha256
        {
            let key = self.keys.base(&chosen.era, *sequence);
            return Err(GatewayError::new(
                ErrorClass::Damaged,
                format!(
                    "{key} does not have the SHA-256 that head.json says: it is not the object that was sent"
                ),
            ));
        }
        if found.head.key != chosen.key {
            warnings.push(
                "the head of the backup has the HMAC of another key, so it could not be checked"
                    .to_owned(),
            );
            return Ok(());
        }
        let checked = found.head.check_mac(&self.key, base.secret.as_ref());
        if checked.is_err() && chosen.era != found.head.era {
            // The secret may be that of the base that was not complete yet.
            warnings.push(
                "the head of the backup has the HMAC of an era whose base is not complete, so it could not be checked"
                    .to_owned(),
            );
            return Ok(());
        }
        checked.map_err(|error| document_error(&self.keys.head(), &error))
    }

    /// Describes what a new era continues. `None` if the segments do not say the checksum up to the restored commit.
    fn describe_continued(
        chosen: &Chosen,
        base: &ReadBase,
        reached: Option<Checksum>,
    ) -> Option<PreviousEra> {
        let end = chosen.end.as_ref().filter(|end| end.sequence == chosen.target);
        let checksum = reached.or(end.map(|end| end.checksum))?;
        let time = chosen.time.clone().unwrap_or_else(time_of_system);
        Some(PreviousEra {
            era: chosen.era.clone(),
            number: chosen.number,
            key: chosen.key.clone(),
            base: base.entry.clone(),
            last: LastFrame { sequence: chosen.target, checksum, time },
        })
    }

    fn missing_error(
        &self,
        chosen: &Chosen,
        missing: Option<super::plan::MissingFrames>,
    ) -> GatewayError {
        let folder = self.keys.era_folder(&chosen.era);
        let text = match missing {
            Some(missing) => format!(
                "{folder} lacks the frames {} to {}, so commit {} cannot be restored; --at restores an earlier moment, and \
                 --era an earlier era",
                missing.from, missing.to, chosen.target
            ),
            None => format!("{folder} has no base up to commit {}", chosen.target),
        };
        GatewayError::new(ErrorClass::Damaged, text)
    }

    /// Chooses the era and the commit.
    fn choose(
        &self,
        head: &Head,
        request: &RestoreRequest<'_>,
        eras: &BTreeMap<String, EraObjects>,
        warnings: &mut Vec<String>,
    ) -> Result<Chosen, ReadError> {
        match (request.era, request.at) {
            (None, None) => {
                let restorable = head.restorable().ok_or_else(|| {
                    GatewayError::new(
                        ErrorClass::NotFound,
                        format!(
                            "the first base of the era {} is not complete, and there is no earlier era that can be restored",
                            head.era
                        ),
                    )
                })?;
                Ok(Chosen::of_restorable(restorable))
            }
            (Some(era), None) => Ok(self.describe_era(head, era, eras)?),
            (era, Some(at)) => {
                let mut candidates = self.list_candidates(head, era, at, eras)?;
                while let Some(candidate) = candidates.pop() {
                    let mut chosen = self.describe_era(head, &candidate, eras)?;
                    let Some(objects) = eras.get(&candidate) else { continue };
                    self.check_key(chosen.key.as_deref())?;
                    let target = self.find_moment(&mut chosen, objects, at, warnings)?;
                    let Some(target) = target else { continue };
                    if objects.find_path(target, chosen.limit).is_ok() {
                        chosen.target = target;
                        return Ok(chosen);
                    }
                    warnings.push(format!(
                        "the era {candidate} has commits of {at} or before, but no whole base before them, so an earlier \
                         era is restored"
                    ));
                }
                Err(ReadError::Gateway(GatewayError::new(
                    ErrorClass::NotFound,
                    format!(
                        "the backup of the gateway {:?} has no state of {at} or before; penstock offsite-backup list shows \
                         what there is",
                        self.gateway
                    ),
                )))
            }
        }
    }

    /// Lists the eras that had begun by a moment, the newest last.
    fn list_candidates(
        &self,
        head: &Head,
        era: Option<&str>,
        at: Timestamp,
        eras: &BTreeMap<String, EraObjects>,
    ) -> Result<Vec<String>, GatewayError> {
        if let Some(era) = era {
            return Ok(vec![era.to_owned()]);
        }
        let mut candidates = Vec::new();
        for id in eras.keys().filter(|id| era_number(id).is_some_and(|n| n <= head.number)) {
            let begun = self.read_era(id)?.and_then(|record| record.begin.time.timestamp());
            if begun.is_some_and(|begun| begun <= at) {
                candidates.push(id.clone());
            }
        }
        Ok(candidates)
    }

    /// Describes an era up to its last commit that counts.
    fn describe_era(
        &self,
        head: &Head,
        era: &str,
        eras: &BTreeMap<String, EraObjects>,
    ) -> Result<Chosen, GatewayError> {
        let known = head.restorable().filter(|known| known.era == era);
        if let Some(known) = known {
            return Ok(Chosen::of_restorable(known));
        }
        let objects = eras.get(era).ok_or_else(|| self.missing_era_error(era))?;
        let limit = self.find_limit(head, era, eras)?;
        let base = objects.bases.range(..=limit).next_back().map_or(0, |(sequence, _)| *sequence);
        let mut target = base;
        for (_, last) in objects.segments.keys().filter(|(first, _)| *first <= limit) {
            let end = limit.min(*last);
            if end > target && objects.cover(base, end, limit).is_ok() {
                target = end;
            }
        }
        Ok(Chosen {
            era: era.to_owned(),
            number: era_number(era).unwrap_or(0),
            // An older era can have had another key. Its objects say so.
            key: self.key.fingerprint(),
            end: None,
            limit,
            target,
            time: None,
            known_base: None,
        })
    }

    /// Returns the last sequence of an era that counts, as far as is known: what a later era does not continue does not.
    /// A later era without objects may be only the record of a takeover that failed.
    pub(super) fn find_limit(
        &self,
        head: &Head,
        era: &str,
        eras: &BTreeMap<String, EraObjects>,
    ) -> Result<u64, GatewayError> {
        let mut limit = if era == head.era { head.last.sequence } else { u64::MAX };
        let has_counted = |(id, objects): &(&String, &EraObjects)| {
            **id == head.era || !objects.bases.is_empty() || !objects.segments.is_empty()
        };
        for (later, _) in eras.iter().filter(has_counted) {
            if era_number(later) <= era_number(era) {
                continue;
            }
            let continues = self.read_era(later)?.and_then(|record| record.continues);
            if let Some(continued) = continues.filter(|continued| continued.era == era) {
                limit = limit.min(continued.sequence);
            }
        }
        Ok(limit)
    }

    /// Finds the newest commit at a moment, from the times in the segments.
    fn find_moment(
        &self,
        chosen: &mut Chosen,
        objects: &EraObjects,
        at: Timestamp,
        warnings: &mut Vec<String>,
    ) -> Result<Option<u64>, ReadError> {
        if chosen.time.as_ref().and_then(MarkedTime::timestamp).is_some_and(|end| end <= at) {
            warn_of_clock(chosen.time.as_ref(), warnings);
            return Ok(Some(chosen.target));
        }
        let segments = objects.list_widest(chosen.limit);
        // Times never go back within an era, so the first segment that ends after the moment has it.
        let (mut low, mut high) = (0, segments.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            let Some(segment) = segments.get(middle) else { break };
            let points = self.read_points(&chosen.era, *segment)?;
            let end = points.last().and_then(|point| point.time.timestamp());
            if end.is_some_and(|end| end <= at) { low = middle + 1 } else { high = middle }
        }
        let mut best: Option<Point> = None;
        let mut next = None;
        for segment in segments.get(low.saturating_sub(1)..).unwrap_or_default().iter().take(2) {
            for point in self.read_points(&chosen.era, *segment)? {
                if point.sequence > chosen.limit {
                    break;
                }
                if point.time.timestamp().is_some_and(|time| time <= at) {
                    if best.as_ref().is_none_or(|best| best.sequence < point.sequence) {
                        best = Some(point);
                    }
                } else if next.is_none() {
                    next = Some(point.time);
                }
            }
        }
        if best.is_none() {
            best = self.find_begin(&chosen.era, objects, at)?;
        }
        let Some(best) = best else { return Ok(None) };
        warn_of_clock(Some(&best.time), warnings);
        if best.time.clock.is_none() {
            warn_of_clock(next.as_ref(), warnings);
        }
        chosen.time = Some(best.time);
        Ok(Some(best.sequence))
    }

    /// Returns the moment at which an era began, if that was not later and a base has the state of then: without commits
    /// since, no segment has a time.
    fn find_begin(
        &self,
        era: &str,
        objects: &EraObjects,
        at: Timestamp,
    ) -> Result<Option<Point>, GatewayError> {
        let Some(record) = self.read_era(era)? else { return Ok(None) };
        let LastFrame { sequence, time, .. } = record.begin;
        let has_begun = time.timestamp().is_some_and(|begun| begun <= at);
        let has_state = objects.bases.contains_key(&sequence);
        Ok((has_begun && has_state).then_some(Point { sequence, time }))
    }

    fn read_points(&self, era: &str, (first, last): Segment) -> Result<Vec<Point>, ReadError> {
        let key = self.keys.segment(era, first, last);
        let input = self.open_hashing(&key)?;
        let place = (self.gateway.as_str(), era);
        match open_segment(input, &self.key, place, (first, last)) {
            Ok(opened) => Ok(opened.line.points),
            Err(error) => Err(ReadError::Object { key: key.clone(), error }),
        }
    }
}

impl Chosen {
    /// Returns whether an attempt to take over has restored the same commit and written the head.
    fn is_of(&self, tried: &LocalState, head: &Head) -> bool {
        tried.may_have_written(head)
            && tried
                .beginning
                .as_ref()
                .and_then(|own| own.previous.as_ref())
                .is_some_and(|before| before.era == self.era && before.last.sequence == self.target)
    }

    fn of_restorable(known: PreviousEra) -> Self {
        Self {
            era: known.era,
            number: known.number,
            key: known.key,
            limit: known.last.sequence,
            target: known.last.sequence,
            time: Some(known.last.time.clone()),
            end: Some(known.last),
            known_base: Some((known.base.sequence, known.base.sha256)),
        }
    }
}

fn warn_of_clock(time: Option<&MarkedTime>, warnings: &mut Vec<String>) {
    if let Some(MarkedTime { at, clock: Some(doubt) }) = time {
        warnings.push(format!(
            "the gateway's clock was not reliable at {at} ({}), so the moment may be another one",
            doubt.name()
        ));
    }
}

fn store_error(error: &penstock_store::Error) -> GatewayError {
    let class = match error {
        penstock_store::Error::Corrupt(_) | penstock_store::Error::NewerFormat { .. } => {
            ErrorClass::Damaged
        }
        error if error.is_disk_full() => ErrorClass::InsufficientStorage,
        _ => ErrorClass::Internal,
    };
    GatewayError::new(class, error.to_string())
}

pub(super) fn disk_error(folder: &BackupFolder, error: &std::io::Error) -> GatewayError {
    GatewayError::new(
        ErrorClass::Internal,
        format!("writing {} failed: {error}", folder.path.display()),
    )
}
