//! What the gateway knows of its backup after a restart: files in `<data-dir>/backup`. None of it is in the store, because
//! a commit would be one more to send.
use super::chain::Checksum;
use super::head::{BaseEntry, Head, LastFrame, PreviousEra};
use super::objects::{MAX_POINTS, Point, discard_file};
use super::secrecy::HeadSecret;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::files;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

const STATE_FILE: &str = "state.json";
/// A copy of the state, which a start uses if the state is damaged or missing. It is written first, so it is never older.
const STATE_COPY_FILE: &str = "state.copy.json";
/// The extension of a damaged state that was kept.
const DAMAGED_EXTENSION: &str = "json.damaged";
/// What the state is after the takeover of a restore, while it is not certain that the bucket has taken its head. It is in a
/// file of its own, because a gateway that is started with an empty store must not take it for its state.
const TAKEOVER_FILE: &str = "takeover.json";
const UNMERGED_FILE: &str = "unmerged.jsonl";
const POINTS_FILE: &str = "points.jsonl";
const SEGMENT_FILE: &str = "segment.new";
const MERGED_FILE: &str = "merged.new";
const BASE_FILE: &str = "base.new";
/// Exists after a restore until exports whose files are gone are replaced. It is no part of the state, which only the
/// worker writes.
const LOST_EXPORTS_FILE: &str = "lost-exports";
const VERSION: u32 = 1;
/// The number of earlier heads' tokens that are kept.
const MAX_FORMER_WRITERS: usize = 32;

/// The folder of the backup in the data directory.
#[derive(Debug, Clone)]
pub(super) struct BackupFolder {
    pub(super) path: PathBuf,
}

/// An era of this gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OwnEra {
    pub(super) id: String,
    pub(super) number: u64,
    /// The frame after which its segments begin.
    pub(super) begin: LastFrame,
    /// The era before it that can be restored, until this one has a base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) previous: Option<PreviousEra>,
    /// Its newest base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base: Option<OwnBase>,
}

/// The newest base of an era.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OwnBase {
    // Not flattened: with `arbitrary_precision`, serde reads no numbers of flattened members.
    pub(super) entry: BaseEntry,
    /// When it was made (RFC 3339).
    pub(super) at: String,
    /// The same as elapsed time in milliseconds.
    pub(super) elapsed: u64,
    /// The bytes of segments sent since.
    #[serde(default)]
    pub(super) sent_since: u64,
}

/// Commits that no backup has one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hole {
    pub(super) from: u64,
    pub(super) to: u64,
}

/// Another machine that has taken over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReplacedBy {
    /// When this gateway noticed it (RFC 3339).
    pub(super) at: String,
    /// The era in the head.
    pub(super) era: String,
}

/// `state.json`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct LocalState {
    pub(super) version: u32,
    /// The secret of the head's HMAC, if the key is a recipient.
    pub(super) secret: Option<HeadSecret>,
    /// The era whose head was confirmed.
    pub(super) era: Option<OwnEra>,
    /// An era whose head may not be there yet.
    pub(super) beginning: Option<OwnEra>,
    /// A frame that a head in the bucket covers, of the confirmed era. The journal keeps all later ones.
    pub(super) anchor: Option<Anchor>,
    /// Who may have written the head that is in the bucket now: the last writer that was confirmed, and those that tried
    /// since.
    pub(super) writers: Vec<Writer>,
    /// Who wrote the heads before, other machines included, the newest last. A bucket may still return one of them.
    pub(super) former: Vec<Writer>,
    /// The highest number of an era that is known.
    pub(super) highest_number: u64,
    pub(super) replaced: Option<ReplacedBy>,
    /// Whether the store is a copy for inspection.
    pub(super) copy: bool,
    /// Whether the operator asked for a new era, whoever has the current one.
    pub(super) take_over: bool,
    /// The last commits that are in no backup one by one.
    pub(super) hole: Option<Hole>,
    /// Why the state and its copy cannot be used, if so. Then nothing else here is known: not even whether another machine
    /// has taken over. It is never stored, because the damaged files say it until the operator takes over.
    #[serde(skip)]
    pub(super) lost: Option<String>,
}

/// What every version of the state has.
#[derive(Deserialize)]
struct Preamble {
    version: u32,
}

/// Who wrote heads, and up to where.
///
/// The sequence tells the two reasons apart for which a journal can lack what a head with a token of this disk covers. A
/// medium that lost frames after it had said that they were synced has the sequence: the gateway begins a new era. The
/// clone of a running disk, or an older image of it, has not, because its token went on elsewhere: another machine has
/// taken over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Writer {
    pub(super) era: String,
    pub(super) token: String,
    /// The last frame that its heads can cover.
    pub(super) last: u64,
}

impl Writer {
    fn is(&self, era: &str, token: &str) -> bool {
        self.era == era && self.token == token
    }

    fn can_have_written(&self, head: &Head) -> bool {
        self.is(&head.era, &head.writer) && head.last.sequence <= self.last
    }
}

/// A frame and the checksum up to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Anchor {
    pub(super) sequence: u64,
    pub(super) checksum: Checksum,
}

impl Default for LocalState {
    fn default() -> Self {
        Self {
            version: VERSION,
            secret: None,
            era: None,
            beginning: None,
            anchor: None,
            writers: Vec::new(),
            former: Vec::new(),
            highest_number: 0,
            replaced: None,
            copy: false,
            take_over: false,
            hole: None,
            lost: None,
        }
    }
}

/// A small segment that is not merged yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Unmerged {
    pub(super) era: String,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) before: Checksum,
    pub(super) after: Checksum,
    /// The bytes of its frames.
    pub(super) raw_bytes: u64,
    pub(super) points: Vec<Point>,
}

impl BackupFolder {
    pub(super) fn of(data_dir: &Path) -> Self {
        Self { path: data_dir.join("backup") }
    }

    pub(super) fn segment_file(&self) -> PathBuf {
        self.path.join(SEGMENT_FILE)
    }

    pub(super) fn merged_file(&self) -> PathBuf {
        self.path.join(MERGED_FILE)
    }

    pub(super) fn base_file(&self) -> PathBuf {
        self.path.join(BASE_FILE)
    }

    /// Records whether exports whose files are gone still have to be replaced.
    pub(super) fn set_lost_exports(&self, are_lost: bool) -> io::Result<()> {
        let path = self.path.join(LOST_EXPORTS_FILE);
        if are_lost {
            return files::write_atomically(&path, b"");
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => files::sync_folder(&self.path),
        }
    }

    /// Returns whether exports whose files are gone still have to be replaced.
    pub(super) fn has_lost_exports(&self) -> bool {
        self.path.join(LOST_EXPORTS_FILE).exists()
    }

    /// Creates the folder, and removes what an earlier process did not finish.
    pub(super) fn prepare(&self) -> io::Result<()> {
        files::create_folders(&self.path)?;
        for left in [self.segment_file(), self.merged_file(), self.base_file()] {
            discard_file(&left);
        }
        Ok(())
    }

    /// Reads the state: its copy if it is damaged or missing, and the default if there is neither. Changes nothing, so the
    /// caller does not need the lock of the store.
    ///
    /// # Errors
    /// A newer version wrote it.
    pub(super) fn read_state(&self) -> Result<LocalState, GatewayError> {
        Ok(self.find_state()?.0)
    }

    /// Reads the state as [`Self::read_state`] does. One that was damaged or missing is written again from its copy, and what
    /// is left of it is kept under another name. The caller has the lock of the store.
    ///
    /// # Errors
    /// A newer version wrote it.
    pub(super) fn repair_state(&self) -> Result<LocalState, GatewayError> {
        let (state, cause) = self.find_state()?;
        let repaired = if let Some(cause) = cause {
            tracing::warn!(
                cause,
                "The state of the backup cannot be used, so the backup continues with its copy. Check the disk."
            );
            self.keep_damaged_state().and_then(|()| self.write_state(&state))
        } else if state.lost.is_none() {
            self.repair_copy()
        } else {
            Ok(())
        };
        if let Err(error) = repaired {
            tracing::warn!(%error, "Writing the state of the backup again failed; the gateway tries again.");
        }
        Ok(state)
    }

    /// Returns the state, and if it is that of the copy, the reason.
    fn find_state(&self) -> Result<(LocalState, Option<String>), GatewayError> {
        let cause = match self.read_state_file(STATE_FILE)? {
            Ok(Some(state)) => return Ok((state, None)),
            Ok(None) => None,
            Err(cause) => Some(cause),
        };
        match (self.read_state_file(STATE_COPY_FILE)?, cause) {
            (Ok(Some(copy)), cause) => {
                let missing = || format!("backup/{STATE_FILE} is missing");
                Ok((copy, Some(cause.unwrap_or_else(missing))))
            }
            (Ok(None), None) => Ok((LocalState::default(), None)),
            (Ok(None) | Err(_), Some(cause)) | (Err(cause), None) => {
                Ok((LocalState { lost: Some(cause), ..LocalState::default() }, None))
            }
        }
    }

    /// Reads a file with the state; `None` if there is none. The inner error says why it cannot be used, without any of its
    /// content.
    ///
    /// # Errors
    /// A newer version wrote it.
    fn read_state_file(
        &self,
        name: &str,
    ) -> Result<Result<Option<LocalState>, String>, GatewayError> {
        let path = self.path.join(name);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ok(None)),
            Err(error) => return Ok(Err(format!("backup/{name} cannot be read: {error}"))),
        };
        let preamble = serde_json::from_slice::<Preamble>(&bytes);
        if preamble.is_ok_and(|preamble| preamble.version > VERSION) {
            return Err(GatewayError::new(
                ErrorClass::Damaged,
                format!(
                    "a newer version of Penstock wrote the state of the backup, {}; install that version",
                    path.display()
                ),
            ));
        }
        let state = serde_json::from_slice(&bytes).map(Some);
        Ok(state.map_err(|error| {
            let (line, column) = (error.line(), error.column());
            format!("backup/{name} is damaged at line {line}, column {column}")
        }))
    }

    /// Writes the copy of the state again if it differs. The caller knows that the state can be read.
    fn repair_copy(&self) -> io::Result<()> {
        let copy = self.path.join(STATE_COPY_FILE);
        let state = match fs::read(self.path.join(STATE_FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            state => state?,
        };
        if fs::read(&copy).is_ok_and(|copy| copy == state) {
            return Ok(());
        }
        files::write_atomically(&copy, &state)
    }

    /// Keeps a state that cannot be used under another name, if there is a file.
    pub(super) fn keep_damaged_state(&self) -> io::Result<()> {
        match files::rename_synced(&self.path.join(STATE_FILE), &self.damaged_file()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn damaged_file(&self) -> PathBuf {
        self.path.join(STATE_FILE).with_extension(DAMAGED_EXTENSION)
    }

    /// Returns the warning about a damaged state, until the operator removes what was kept of it.
    pub(super) fn describe_damage(&self) -> Option<String> {
        let kept = self.damaged_file();
        kept.symlink_metadata().is_ok().then(|| {
            format!(
                "the state of the backup was damaged, and backup/{STATE_FILE}.damaged in the data directory is what was left \
                 of it; check the disk, and remove that file"
            )
        })
    }

    /// Replaces the state and its copy. Both are on the medium when this returns.
    pub(super) fn write_state(&self, state: &LocalState) -> io::Result<()> {
        files::create_folders(&self.path)?;
        let text = serde_json::to_vec(state)?;
        files::write_atomically(&self.path.join(STATE_COPY_FILE), &text)?;
        files::write_atomically(&self.path.join(STATE_FILE), &text)
    }

    /// Records the state after a takeover that is about to be tried.
    pub(super) fn write_takeover(&self, state: &LocalState) -> io::Result<()> {
        files::create_folders(&self.path)?;
        files::write_atomically(&self.path.join(TAKEOVER_FILE), &serde_json::to_vec(state)?)
    }

    /// Returns the state after a takeover that was tried, if its result was not seen.
    pub(super) fn read_takeover(&self) -> Option<LocalState> {
        // One that is damaged only lets another era begin.
        serde_json::from_slice(&fs::read(self.path.join(TAKEOVER_FILE)).ok()?).ok()
    }

    /// Forgets a takeover that was tried.
    pub(super) fn discard_takeover(&self) {
        discard_file(&self.path.join(TAKEOVER_FILE));
    }

    /// Reads the small segments of an era that are not merged yet, in order.
    pub(super) fn read_unmerged(&self, era: &str) -> Vec<Unmerged> {
        let segments = read_lines::<Unmerged>(&self.path.join(UNMERGED_FILE));
        segments.filter(|segment| segment.era == era).collect()
    }

    /// Adds a small segment. If a power cut loses the line, the segment stays small.
    pub(super) fn append_unmerged(&self, segment: &Unmerged) -> io::Result<()> {
        append_line(&self.path.join(UNMERGED_FILE), segment)
    }

    /// Reads the times of the frames after `after`, in order, at most so many: without a link the file grows for long.
    pub(super) fn read_points(&self, after: u64, max: usize) -> Vec<Point> {
        let points = read_lines::<Point>(&self.path.join(POINTS_FILE));
        points.filter(|point| point.sequence > after).take(max).collect()
    }

    /// Adds the time of the newest frame. If a power cut loses the line, the time is known less exactly.
    pub(super) fn append_point(&self, point: &Point) -> io::Result<()> {
        append_line(&self.path.join(POINTS_FILE), point)
    }

    /// Removes all times.
    pub(super) fn discard_points(&self) {
        discard_file(&self.path.join(POINTS_FILE));
    }

    /// Removes the times of the frames up to `sent`: under load some always wait. The file is written again only
    /// if that removes at least half of them, so not with each segment.
    pub(super) fn discard_points_up_to(&self, sent: u64) -> io::Result<()> {
        let path = self.path.join(POINTS_FILE);
        let waiting = self.read_points(sent, MAX_POINTS + 1);
        let all = read_lines::<Point>(&path).take(2 * MAX_POINTS + 1).count();
        if waiting.is_empty() {
            self.discard_points();
        } else if waiting.len() <= MAX_POINTS && all > 2 * waiting.len() {
            write_lines(&path, &waiting)?;
        }
        Ok(())
    }

    /// Replaces the list of small segments.
    pub(super) fn write_unmerged(&self, segments: &[Unmerged]) -> io::Result<()> {
        write_lines(&self.path.join(UNMERGED_FILE), segments)
    }
}

/// Reads the lines of a file. One that a crash cut off, or that a medium damaged, is ignored, whatever bytes it has.
fn read_lines<T: for<'a> Deserialize<'a>>(path: &Path) -> impl Iterator<Item = T> + use<T> {
    let file = File::open(path).ok();
    let lines = file.into_iter().flat_map(|file| BufReader::new(file).split(b'\n'));
    lines.map_while(Result::ok).filter_map(|line| serde_json::from_slice(&line).ok())
}

/// Replaces the lines of a file.
fn write_lines(path: &Path, values: &[impl Serialize]) -> io::Result<()> {
    let mut text = Vec::new();
    for value in values {
        text.extend(serde_json::to_vec(value)?);
        text.push(b'\n');
    }
    files::write_atomically(path, &text)
}

/// Adds a line to a file, on its own also if the last one was cut off.
fn append_line(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut line = vec![b'\n'];
    line.extend(serde_json::to_vec(value)?);
    line.push(b'\n');
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)?.write_all(&line)
}

impl LocalState {
    /// Returns why the exports, sources and webhooks of this gateway stand still, if they do.
    pub(super) fn hold_reason(&self) -> Option<String> {
        if self.copy {
            return Some(
                "this store is a copy for inspection (penstock restore --copy), which disturbs nobody"
                    .to_owned(),
            );
        }
        if let Some(cause) = &self.lost {
            return Some(format!(
                "the state of the backup and its copy cannot be used ({cause}), so another machine may have taken over \
                 this gateway; if this is the right one, run penstock offsite-backup take-over"
            ));
        }
        let ReplacedBy { at, era } = self.replaced.as_ref().filter(|_| !self.take_over)?;
        Some(format!(
            "another machine has taken over this gateway: the backup has the era {era}, noticed at {at}; if this is \
             wrong, run penstock offsite-backup take-over"
        ))
    }

    /// Logs why they stand still.
    pub(super) fn log_hold(&self) {
        if self.copy {
            tracing::warn!(
                "This store is a copy for inspection: its backup, exports, sources and webhooks stand still."
            );
        } else if let Some(cause) = &self.lost {
            tracing::error!(
                cause,
                "The state of the backup and its copy cannot be used, so another machine may have taken over this gateway: \
                 its backup, exports, sources and webhooks stand still. If this is the right one, run penstock \
                 offsite-backup take-over."
            );
        } else if let Some(ReplacedBy { at, era }) = &self.replaced {
            tracing::error!(
                era,
                noticed_at = at,
                "Another machine has taken over this gateway: its backup, exports, sources and webhooks stand still."
            );
        }
    }

    /// Returns whether this can be the current head of this gateway.
    pub(super) fn may_have_written(&self, head: &Head) -> bool {
        self.writers.iter().any(|writer| writer.can_have_written(head))
    }

    /// Returns whether this gateway wrote this head before its current one.
    pub(super) fn has_written_before(&self, head: &Head) -> bool {
        self.former.iter().any(|writer| writer.can_have_written(head))
    }

    /// Adds who is about to write a head up to `last`.
    pub(super) fn add_writer(&mut self, era: &str, token: &str, last: u64) {
        match self.writers.iter_mut().find(|writer| writer.is(era, token)) {
            Some(writer) => writer.last = writer.last.max(last),
            None => {
                self.writers.push(Writer { era: era.to_owned(), token: token.to_owned(), last });
            }
        }
    }

    /// Records that a head was confirmed.
    pub(super) fn confirm_writer(&mut self, head: &Head) {
        let Head { era, writer: token, .. } = head;
        let before = self.writers.extract_if(.., |writer| !writer.is(era, token));
        self.former.extend(before);
        self.add_writer(era, token, head.last.sequence);
        self.limit_former();
    }

    /// Adds the head of another machine that a head of this one has replaced. The precondition of that excludes that the
    /// other one has written it since.
    pub(super) fn add_former(&mut self, head: &Head) {
        if self.may_have_written(head) || self.has_written_before(head) {
            return;
        }
        let (era, token) = (head.era.clone(), head.writer.clone());
        self.former.push(Writer { era, token, last: head.last.sequence });
        self.limit_former();
    }

    fn limit_former(&mut self) {
        let superfluous = self.former.len().saturating_sub(MAX_FORMER_WRITERS);
        self.former.drain(..superfluous);
    }

    /// Returns the sequence after which the journal must keep all frames.
    pub(super) fn retain_after(&self) -> Option<u64> {
        if self.copy || (self.replaced.is_some() && !self.take_over) {
            return None;
        }
        let begin = self.beginning.as_ref().map(|era| era.begin.sequence);
        begin.into_iter().chain(self.anchor_sequence()).min()
    }

    /// Returns the last frame that the bucket is known to have: that of the anchor, or the begin of the era before there is
    /// one.
    pub(super) fn anchor_sequence(&self) -> Option<u64> {
        let begin = || self.era.as_ref().map(|era| era.begin.sequence);
        self.anchor.map(|anchor| anchor.sequence).or_else(begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::head::{HeadContent, time_of_system};
    use crate::backup::secrecy::BackupKey;
    use penstock_store::Format;

    fn unmerged(first: u64) -> Unmerged {
        let checksum = Checksum::of_era("e");
        let (before, after) = (checksum, checksum);
        let points = vec![Point { sequence: first, time: time_of_system() }];
        Unmerged { era: "e".into(), first, last: first, before, after, raw_bytes: 1, points }
    }

    #[test]
    fn the_state_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let folder = BackupFolder::of(dir.path());
        assert_eq!(folder.read_state().unwrap(), LocalState::default());
        let checksum = Checksum::of_era("e");
        let begin = LastFrame { sequence: 3, checksum, time: time_of_system() };
        let own = |id: &str| OwnEra {
            id: id.to_owned(),
            number: 1,
            begin: begin.clone(),
            previous: None,
            base: None,
        };
        let entry = BaseEntry { sequence: 2, bytes: 3, sha256: "0".repeat(64) };
        let base = OwnBase { entry, at: "now".to_owned(), elapsed: 4, sent_since: 5 };
        let mut state = LocalState {
            era: Some(OwnEra { base: Some(base), ..own("e") }),
            beginning: Some(own("f")),
            anchor: Some(Anchor { sequence: 9, checksum }),
            ..LocalState::default()
        };
        state.add_writer("e", "v", 9);
        state.add_writer("f", "w", 3);
        folder.write_state(&state).unwrap();
        assert_eq!(folder.read_state().unwrap(), state);
        assert_eq!(state.retain_after(), Some(3));
        let head = |era: &str, token: &str, sequence| {
            Head::new(
                HeadContent {
                    gateway: "g".to_owned(),
                    era: era.to_owned(),
                    number: 1,
                    store_format: Format::NEWEST,
                    writer: token.to_owned(),
                    write: 0,
                    base: None,
                    last: LastFrame { sequence, ..begin.clone() },
                    previous: None,
                },
                &BackupKey::None,
                None,
            )
        };
        let (of_e, of_f) = (head("e", "v", 9), head("f", "w", 3));
        assert!(state.may_have_written(&of_e) && state.may_have_written(&of_f));
        assert!(!state.may_have_written(&head("f", "v", 3)));
        // The token went on, on another disk.
        assert!(!state.may_have_written(&head("e", "v", 10)));
        state.confirm_writer(&of_f);
        assert!(state.may_have_written(&of_f) && !state.may_have_written(&of_e));
        assert!(state.has_written_before(&of_e) && !state.has_written_before(&of_f));
        assert!(!state.has_written_before(&head("e", "v", 10)));
        let replaced = ReplacedBy { at: "now".to_owned(), era: "g".to_owned() };
        let replaced = LocalState { replaced: Some(replaced), ..state };
        assert!(replaced.hold_reason().is_some() && replaced.retain_after().is_none());
        let newer =
            serde_json::to_string(&replaced).unwrap().replace("\"version\":1", "\"version\":2");
        for text in [newer.as_str(), "{\"version\":2}"] {
            fs::write(folder.path.join(STATE_FILE), text).unwrap();
            assert_eq!(folder.read_state().unwrap_err().class, ErrorClass::Damaged);
        }
    }

    /// Ways in which a file is damaged or lost.
    fn damages() -> [fn(&Path); 6] {
        [
            |path| fs::write(path, "").unwrap(),
            |path| fs::write(path, [0_u8; 400]).unwrap(),
            |path| fs::write(path, [0xff_u8; 400]).unwrap(),
            |path| {
                let text = fs::read(path).unwrap();
                fs::write(path, &text[..text.len() / 2]).unwrap();
            },
            // Reading this fails as reading a bad sector does.
            |path| {
                fs::remove_file(path).unwrap();
                std::os::unix::fs::symlink("/proc/self/mem", path).unwrap();
            },
            |path| fs::remove_file(path).unwrap(),
        ]
    }

    #[test]
    fn a_damaged_state_is_that_of_its_copy_and_is_kept() {
        for damage in damages() {
            let dir = tempfile::tempdir().unwrap();
            let folder = BackupFolder::of(dir.path());
            let replaced = ReplacedBy { at: "now".to_owned(), era: "g".to_owned() };
            let state = LocalState { replaced: Some(replaced), ..LocalState::default() };
            folder.write_state(&state).unwrap();
            let (file, copy) = (folder.path.join(STATE_FILE), folder.path.join(STATE_COPY_FILE));
            damage(&file);
            let is_left = file.symlink_metadata().is_ok();
            assert_eq!(folder.read_state().unwrap(), state);
            // Without the lock of the store nothing changes.
            assert_eq!(file.symlink_metadata().is_ok(), is_left);
            assert_eq!(folder.repair_state().unwrap(), state);
            assert_eq!(folder.damaged_file().symlink_metadata().is_ok(), is_left);
            assert_eq!(folder.describe_damage().is_some(), is_left);
            assert_eq!(fs::read(&file).unwrap(), fs::read(&copy).unwrap());
            // The next damage may be that of the copy.
            damage(&copy);
            assert_eq!(folder.repair_state().unwrap(), state);
            assert_eq!(fs::read(&file).unwrap(), fs::read(&copy).unwrap());
        }
    }

    #[test]
    fn without_a_copy_a_damaged_state_is_lost_until_a_takeover_and_a_missing_one_is_not() {
        for damage in damages() {
            let dir = tempfile::tempdir().unwrap();
            let folder = BackupFolder::of(dir.path());
            assert_eq!(folder.repair_state().unwrap(), LocalState::default());
            assert!(!folder.path.exists());
            folder.write_state(&LocalState { copy: true, ..LocalState::default() }).unwrap();
            damage(&folder.path.join(STATE_COPY_FILE));
            damage(&folder.path.join(STATE_FILE));
            if folder.path.join(STATE_FILE).symlink_metadata().is_err() {
                // As in a store from `penstock restore FILE`.
                assert_eq!(folder.repair_state().unwrap(), LocalState::default());
                continue;
            }
            for _ in 0..2 {
                let state = folder.repair_state().unwrap();
                let cause = state.lost.clone().unwrap();
                assert!(cause.starts_with("backup/state.json "), "{cause}");
                assert!(state.hold_reason().unwrap().contains("take-over"));
                assert_eq!(state.retain_after(), None);
            }
            crate::backup::request_take_over(dir.path(), || Ok(())).unwrap();
            let asked = LocalState { take_over: true, ..LocalState::default() };
            assert_eq!(folder.repair_state().unwrap(), asked);
            assert_eq!(asked.hold_reason(), None);
            assert!(folder.damaged_file().symlink_metadata().is_ok());
        }
    }

    #[test]
    fn a_torn_line_of_a_small_segment_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let folder = BackupFolder::of(dir.path());
        folder.prepare().unwrap();
        let (first, second) = (unmerged(1), unmerged(2));
        folder.append_unmerged(&first).unwrap();
        let mut file =
            OpenOptions::new().append(true).open(folder.path.join(UNMERGED_FILE)).unwrap();
        file.write_all(b"\n{\"era\":\"e\"\n\xff\xfe\0").unwrap();
        folder.append_unmerged(&second).unwrap();
        let point = |sequence| Point { sequence, time: time_of_system() };
        (1..5).for_each(|sequence| folder.append_point(&point(sequence)).unwrap());
        let mut file = OpenOptions::new().append(true).open(folder.path.join(POINTS_FILE)).unwrap();
        file.write_all(b"\xc3\x28\n").unwrap();
        (5..9).for_each(|sequence| folder.append_point(&point(sequence)).unwrap());
        let points = folder.read_points(3, 2);
        assert_eq!(points.iter().map(|point| point.sequence).collect::<Vec<_>>(), [4, 5]);
        for (sent, expected) in [(4, 8), (5, 3), (8, 0)] {
            folder.discard_points_up_to(sent).unwrap();
            assert_eq!(folder.read_points(0, 9).len(), expected);
        }
        assert!(!folder.path.join(POINTS_FILE).exists());
        assert_eq!(folder.read_unmerged("e"), [first, second.clone()]);
        assert!(folder.read_unmerged("f").is_empty());
        folder.write_unmerged(std::slice::from_ref(&second)).unwrap();
        assert_eq!(folder.read_unmerged("e"), [second]);
    }
}
