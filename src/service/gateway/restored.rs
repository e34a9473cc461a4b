//! The restore of a backup. It can bring back keys that were revoked since, earlier passwords, and accounts that were
//! disabled. Until the operator has dealt with each, or a month has passed, the log and the status list them.
//!
//! `penstock restore` leaves a note in the data directory. The first start does what the note asks for and removes it.
use super::data_dir::store_path;
use super::data_events::build_event;
use jiff::{SignedDuration, Timestamp};
use penstock_auth::{Auth, Caller, audit};
use penstock_base::clock::is_plausible;
use penstock_base::collections;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::files::{temporary_path, write_atomically};
use penstock_base::table::{AsJson, Table};
use penstock_base::time;
use penstock_model::messages;
use penstock_store::{Backup, Error, ReadStore, Store, Transaction};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The file in the data directory that describes the restored backup until the store is first opened.
pub const NOTE_FILE: &str = "restored";

/// The key of the document about the last restore, among those of the gateway.
const DOCUMENT_KEY: &str = "restored";
/// What the last restore brought back, among the documents about the gateway.
const RESTORED: Table<String, AsJson<RestoredState>> = Table::new(collections::GATEWAY);
/// The maximum number of keys, and of accounts, that are kept for the list.
const MAX_KEPT: usize = 1000;
/// The maximum number of keys, and of accounts, that a warning names.
const MAX_NAMED: usize = 20;
/// How long the list is shown.
const SHOWN_FOR: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The note about a restore.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoreNote {
    /// What was restored, as text for the audit trail.
    #[serde(default)]
    pub detail: String,
    /// Whether to revoke every API key.
    #[serde(default)]
    pub revoke_keys: bool,
    /// Whether to end every session.
    #[serde(default)]
    pub sign_out: bool,
}

/// What a restore may have brought back.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RestoredState {
    at: String,
    /// The note's detail. It identifies the restore.
    detail: String,
    api_keys: Vec<String>,
    /// The enabled accounts, each with its generation.
    accounts: BTreeMap<String, u64>,
    /// The numbers of keys and accounts.
    key_count: usize,
    account_count: usize,
}

impl RestoreNote {
    /// Returns the note of a restore that begins now.
    pub fn begin() -> Self {
        Self { detail: format!("at {}", time::now_rfc3339()), revoke_keys: false, sign_out: false }
    }

    /// Writes the note into the data directory.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, data_dir: &Path) -> io::Result<()> {
        let json = serde_json::to_vec(self)?;
        write_atomically(&data_dir.join(NOTE_FILE), &json)
    }

    /// Adds what was restored.
    pub fn describe(&mut self, backup: &Backup) {
        let Backup { sequence, quads, documents, .. } = backup;
        self.detail = format!(
            "{}, from a backup of {quads} quads and {documents} documents at commit {sequence}",
            self.detail
        );
    }

    /// Reads the note of a restore that no start has recorded yet. A recorded one can be left if it could not be removed.
    ///
    /// # Errors
    /// `ErrorClass::Damaged` if it cannot be read; the errors of the store.
    pub(super) fn find_unrecorded(
        data_dir: &Path,
        store: &ReadStore,
    ) -> Result<Option<Self>, GatewayError> {
        let Some(note) = Self::read(data_dir)? else { return Ok(None) };
        let is_recorded = read_state(store)?.is_some_and(|state| state.detail == note.detail);
        Ok((!is_recorded).then_some(note))
    }

    fn read(data_dir: &Path) -> Result<Option<Self>, GatewayError> {
        let path = data_dir.join(NOTE_FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(note_error(&path, &error)),
        };
        // Version 0.1.0 wrote only the text.
        if !text.starts_with('{') {
            // What a power cut has emptied or zeroed may have asked to revoke the keys.
            if text.trim().is_empty() || text.contains('\0') {
                return Err(note_error(&path, &io::Error::from(io::ErrorKind::InvalidData)));
            }
            return Ok(Some(Self { detail: text, revoke_keys: false, sign_out: false }));
        }
        serde_json::from_str(&text).map(Some).map_err(|error| note_error(&path, &error))
    }
}

/// Refuses a data directory with the note of a restore that was killed before it began the store. To open a store would
/// begin an empty one.
///
/// # Errors
/// `ErrorClass::Damaged`, with what to do.
pub fn refuse_unfinished_restore(data_dir: &Path) -> Result<(), GatewayError> {
    let note = data_dir.join(NOTE_FILE);
    let left = [temporary_path(&note), note].into_iter().find(|path| path.exists());
    let store = store_path(data_dir);
    let has_store = match std::fs::read_dir(&store) {
        Ok(entries) => entries.flatten().any(|entry| entry.file_name() != "lock"),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    };
    match left {
        Some(left) if !has_store => Err(GatewayError::new(
            ErrorClass::Damaged,
            format!(
                "{}; to begin without its data, remove {}",
                Error::UnfinishedRestore { path: store },
                left.display()
            ),
        )),
        _ => Ok(()),
    }
}

fn note_error(path: &Path, error: &dyn std::error::Error) -> GatewayError {
    let detail = format!(
        "the note about the restored backup, {}, cannot be read: {error}; run penstock restore again",
        path.display()
    );
    GatewayError::new(ErrorClass::Damaged, detail)
}

/// Does what the note of a restore asks for, once, and keeps what the backup may have brought back. Then drops the events
/// that wait for webhooks with `drop_events`, which returns their number, adds an event to the audit trail, and removes
/// the note. Nothing serves requests yet.
///
/// # Errors
/// If keys cannot be revoked or sessions cannot be ended: the gateway must not start with them.
pub(super) fn finish_restore(
    data_dir: &Path,
    store: &Store,
    auth: &Auth,
    max_events: usize,
    drop_events: impl FnOnce() -> Result<usize, GatewayError>,
) -> Result<(), GatewayError> {
    let recorded = match RestoreNote::find_unrecorded(data_dir, store)? {
        Some(note) => {
            if note.revoke_keys {
                auth.keys.revoke_all()?;
            }
            if note.sign_out {
                auth.sessions.end_all_sessions(store)?;
            }
            drop_events().and_then(|dropped| {
                if dropped > 0 {
                    tracing::warn!(
                        events = dropped,
                        "Events that waited for webhooks were dropped, because a backup was restored; each webhook is sent their number."
                    );
                }
                record_restore(store, auth, max_events, &note)
            })
        }
        None => Ok(()),
    };
    if let Err(cause) = recorded.and_then(|()| remove_note(data_dir)) {
        tracing::warn!(%cause, "Adding the restore to the audit trail failed; the next start tries again.");
    }
    if let Err(cause) = correct_time(store, Timestamp::now()) {
        tracing::warn!(%cause, "Correcting the time of the last restore failed; the next start tries again.");
    }
    if let Some(warning) = describe_restored(store, auth)? {
        tracing::warn!("{warning}");
    }
    Ok(())
}

/// Replaces the time of a restore that was recorded while the clock was wrong, so that the list is shown for a month from
/// now.
fn correct_time(store: &Store, now: Timestamp) -> Result<(), GatewayError> {
    let Some(mut state) = read_state(store)? else { return Ok(()) };
    let is_wrong = |at: Timestamp| !is_plausible(at) || at > now;
    if is_plausible(now) && state.at.parse::<Timestamp>().is_ok_and(is_wrong) {
        state.at = time::format_rfc3339(now);
        store.transact::<_, GatewayError>(|transaction: &mut Transaction<'_>| {
            Ok(RESTORED.put(transaction, DOCUMENT_KEY, &state)?)
        })?;
    }
    Ok(())
}

fn record_restore(
    store: &Store,
    auth: &Auth,
    max_events: usize,
    note: &RestoreNote,
) -> Result<(), GatewayError> {
    let state = RestoredState::of_now(auth, note)?;
    let event = build_event("data.restored", note.detail.clone());
    store.transact::<_, GatewayError>(|transaction: &mut Transaction<'_>| {
        RESTORED.put(transaction, DOCUMENT_KEY, &state)?;
        messages::unconfirm_sessions(transaction)?;
        penstock_export::forget_object_counts(transaction)?;
        audit::add_event_offline(transaction, max_events, &event)
    })?;
    Ok(())
}

fn remove_note(data_dir: &Path) -> Result<(), GatewayError> {
    match std::fs::remove_file(data_dir.join(NOTE_FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GatewayError::new(
            ErrorClass::Internal,
            format!("removing the note failed: {error}"),
        )),
        _ => Ok(()),
    }
}

impl RestoredState {
    fn of_now(auth: &Auth, note: &RestoreNote) -> Result<Self, GatewayError> {
        let keys = auth.keys.list(&Caller::local(), None, usize::MAX);
        let mut accounts = auth.accounts.list(None, usize::MAX)?;
        accounts.retain(|account| account.enabled);
        Ok(Self {
            at: time::now_rfc3339(),
            detail: note.detail.clone(),
            key_count: keys.len(),
            account_count: accounts.len(),
            api_keys: keys.iter().take(MAX_KEPT).map(|key| key.id.clone()).collect(),
            accounts: accounts
                .iter()
                .take(MAX_KEPT)
                .map(|account| (account.id.clone(), account.generation))
                .collect(),
        })
    }
}

fn read_state(store: &ReadStore) -> Result<Option<RestoredState>, GatewayError> {
    // What cannot be read is only not listed.
    Ok(RESTORED.get_readable(&store.read(), DOCUMENT_KEY)?)
}

/// Describes what the last restore may have brought back and nobody has dealt with yet, for Admins; `None` if there is
/// nothing.
pub(super) fn describe_restored(
    store: &ReadStore,
    auth: &Auth,
) -> Result<Option<String>, GatewayError> {
    let Some(state) = read_state(store)? else { return Ok(None) };
    if is_old(&state.at, Timestamp::now()) {
        return Ok(None);
    }
    let by = Caller::local();
    let keys: Vec<String> = state
        .api_keys
        .iter()
        .filter_map(|id| Some(format!("{:?} ({id})", auth.keys.get(&by, id)?.name)))
        .collect();
    let accounts: Vec<String> = state
        .accounts
        .iter()
        .filter_map(|(id, generation)| {
            let account = auth.accounts.get(id)?;
            let is_same = account.enabled && account.generation == *generation;
            is_same.then(|| account.email.clone())
        })
        .collect();
    if keys.is_empty() && accounts.is_empty() {
        return Ok(None);
    }
    let more_keys = state.key_count.saturating_sub(state.api_keys.len());
    let more_accounts = state.account_count.saturating_sub(state.accounts.len());
    Ok(Some(format!(
        "a backup was restored at {}, which brings back API keys that were revoked, earlier passwords, and accounts that \
         were disabled since. Older than the restore are {} and {}. Revoke the keys, and disable the accounts or give \
         them new passwords, where the backup is not right any more",
        state.at,
        list_named("API key", &keys, more_keys),
        list_named("account", &accounts, more_accounts)
    )))
}

/// Whether a restore that was recorded at this time is no longer shown. A time that cannot be right says nothing about that.
fn is_old(at: &str, now: Timestamp) -> bool {
    let at = at.parse::<Timestamp>();
    at.is_ok_and(|at| is_plausible(at) && now.duration_since(at) > SHOWN_FOR)
}

fn list_named(what: &str, names: &[String], more: usize) -> String {
    let count = names.len() + more;
    let plural = if count == 1 { "" } else { "s" };
    let shown = names.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match count {
        0 => format!("no {what}s"),
        _ if count > MAX_NAMED => format!("{count} {what}{plural} ({shown}, …)"),
        _ => format!("{count} {what}{plural} ({shown})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::{SessionId, StoredSession, load_session, store_session};
    use crate::testing::open_gateway;
    use penstock_store::Options;
    use std::collections::BTreeSet;

    #[test]
    fn a_restore_that_was_recorded_with_a_wrong_clock_is_shown_for_a_month_from_the_correct_time() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let now: Timestamp = "2026-11-28T12:00:00Z".parse().unwrap();
        let corrected = time::format_rfc3339(now);
        for (at, old, expected) in [
            ("1970-01-01T00:01:00.000Z", false, corrected.as_str()),
            ("2036-11-28T12:00:00.000Z", false, corrected.as_str()),
            ("2026-11-01T12:00:00.000Z", false, "2026-11-01T12:00:00.000Z"),
            ("2026-10-01T12:00:00.000Z", true, "2026-10-01T12:00:00.000Z"),
        ] {
            assert_eq!(is_old(at, now), old, "{at}");
            let state = RestoredState {
                at: at.to_owned(),
                detail: String::new(),
                api_keys: Vec::new(),
                accounts: BTreeMap::new(),
                key_count: 0,
                account_count: 0,
            };
            let put = |change: &mut Transaction<'_>| RESTORED.put(change, DOCUMENT_KEY, &state);
            store.transact::<_, Error>(put).unwrap();
            // A clock that is wrong itself corrects nothing.
            correct_time(&store, Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(read_state(&store).unwrap().unwrap().at, at);
            correct_time(&store, now).unwrap();
            assert_eq!(read_state(&store).unwrap().unwrap().at, expected);
        }
    }

    #[test]
    fn a_damaged_note_is_refused_because_it_may_ask_to_revoke_the_keys() {
        let dir = tempfile::tempdir().unwrap();
        let store =
            Store::open(&dir.path().join("store"), Options::default(), &mut |_| {}).unwrap();
        let find = || RestoreNote::find_unrecorded(dir.path(), &store);
        assert!(find().unwrap().is_none());
        let path = dir.path().join(NOTE_FILE);
        for damaged in ["", "\n", "\0\0\0\0", "{\"detail\":\"at", "\0\0revokeKeys\":true}"] {
            std::fs::write(&path, damaged).unwrap();
            let refused = find().unwrap_err();
            assert_eq!(refused.class, ErrorClass::Damaged);
            assert!(refused.detail.contains("run penstock restore again"), "{refused}");
        }
        std::fs::write(&path, "at 2026-03-01T12:00:00Z").unwrap();
        assert_eq!(find().unwrap().unwrap().detail, "at 2026-03-01T12:00:00Z");
    }

    #[test]
    fn a_restore_that_began_no_store_is_refused_until_it_is_run_again() {
        let dir = tempfile::tempdir().unwrap();
        let refuse = || refuse_unfinished_restore(dir.path());
        refuse().unwrap();
        let note = dir.path().join(NOTE_FILE);
        // What a kill leaves, the earliest first.
        std::fs::write(temporary_path(&note), "").unwrap();
        refuse().unwrap_err();
        std::fs::remove_file(temporary_path(&note)).unwrap();
        RestoreNote::begin().write(dir.path()).unwrap();
        refuse().unwrap_err();
        std::fs::create_dir(store_path(dir.path())).unwrap();
        refuse().unwrap_err();
        std::fs::write(store_path(dir.path()).join("lock"), "").unwrap();
        let refused = refuse().unwrap_err();
        assert_eq!(refused.class, ErrorClass::Damaged);
        assert!(refused.detail.contains("did not finish"), "{refused}");
        assert!(refused.detail.ends_with(&format!("remove {}", note.display())), "{refused}");
        drop(Store::open(&store_path(dir.path()), Options::default(), &mut |_| {}).unwrap());
        refuse().unwrap();
    }

    #[test]
    fn a_restored_gateway_repeats_no_epoch_and_trusts_no_subscription() {
        let dir = tempfile::tempdir().unwrap();
        let gateway = open_gateway(dir.path(), &[]);
        let epoch = gateway.epoch;
        let id = SessionId { source: "line".to_owned(), client_id: "edge-1".to_owned() };
        let topics = BTreeSet::from(["plant/+".to_owned()]);
        let session = StoredSession { topics: topics.clone(), ..StoredSession::default() };
        store_session(&gateway, &id, Some(&session)).unwrap();
        drop(gateway);
        let note = RestoreNote::begin();
        note.write(dir.path()).unwrap();

        let gateway = open_gateway(dir.path(), &[]);
        // Without a clock, the epochs since the backup are the next ones.
        assert_eq!(gateway.epoch, epoch + 1_000_000);
        let session = load_session(&gateway, &id).unwrap().unwrap();
        assert_eq!((session.list_confirmed(), &session.topics), (BTreeSet::new(), &topics));

        // A note that could not be removed does nothing again.
        let confirmed = StoredSession { pending: BTreeSet::new(), ..session };
        store_session(&gateway, &id, Some(&confirmed)).unwrap();
        drop(gateway);
        note.write(dir.path()).unwrap();
        let gateway = open_gateway(dir.path(), &[]);
        assert_eq!(gateway.epoch, epoch + 1_000_001);
        assert_eq!(load_session(&gateway, &id).unwrap().unwrap().list_confirmed(), topics);
        assert!(!dir.path().join(NOTE_FILE).exists());
    }
}
