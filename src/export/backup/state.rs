//! What the gateway knows of its backup after a restart. It is in a file and not in the store, because a commit would be one
//! more to send.
use super::chain::Checksum;
use super::head::{BaseEntry, Head, LastFrame, PreviousEra};
use super::holes::{Hole, Holes};
use super::secrecy::HeadSecret;
use serde::{Deserialize, Serialize};

/// The version of the file with the state.
pub(super) const VERSION: u32 = 1;
/// The number of earlier heads' tokens that are kept.
const MAX_FORMER_WRITERS: usize = 32;

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
    /// The commits that are in no backup one by one.
    pub(super) holes: Holes,
    /// The newest of them, in a state of before all were kept. [`Self::convert_hole`] moves it.
    #[serde(skip_serializing)]
    pub(super) hole: Option<Hole>,
    /// Why the state and its copy cannot be used, if so. Then nothing else here is known: not even whether another machine
    /// has taken over. It is never stored, because the damaged files say it until the operator takes over.
    #[serde(skip)]
    pub(super) lost: Option<String>,
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
            holes: Holes::default(),
            hole: None,
            lost: None,
        }
    }
}

impl LocalState {
    /// Returns a state that was read in the form of this version.
    pub(super) fn convert_hole(mut self) -> Self {
        if let Some(hole) = self.hole.take() {
            self.holes.add(hole);
        }
        self
    }

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
    use crate::backup::folder::BackupFolder;
    use crate::backup::head::{HeadContent, time_of_system};
    use crate::backup::secrecy::BackupKey;
    use penstock_base::error::ErrorClass;
    use penstock_store::Format;

    #[test]
    fn the_hole_of_an_earlier_state_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let folder = BackupFolder::of(dir.path());
        folder.prepare().unwrap();
        let mut expected = LocalState::default();
        for hole in ["null", r#"{"from":3,"to":9}"#] {
            let text = format!(r#"{{"version":1,"highestNumber":0,"hole":{hole}}}"#);
            std::fs::write(folder.path.join("state.json"), text).unwrap();
            assert_eq!(folder.read_state().unwrap(), expected);
            expected.holes.add(Hole { from: 3, to: 9 });
        }
        let state = folder.read_state().unwrap();
        folder.write_state(&state).unwrap();
        assert_eq!(folder.read_state().unwrap(), state);
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
            std::fs::write(folder.path.join("state.json"), text).unwrap();
            assert_eq!(folder.read_state().unwrap_err().class, ErrorClass::Damaged);
        }
    }
}
