//! Audit events about data that local administration backed up, dumped, loaded, restored or moved.
use oxrdf::GraphName;
use penstock_auth::Caller;
use penstock_auth::audit::{self, Event};
use penstock_base::error::GatewayError;
use penstock_base::files::write_atomically;
use penstock_base::time;
use penstock_model::namespace::moving::FinishedMove;
use penstock_model::rdf::{DumpOptions, Dumped, LoadError, LoadOptions, LoadProgress};
use penstock_store::{Backup, Store};
use std::io;
use std::path::Path;

/// The file in the data directory that describes the restored backup until the store is first opened.
const RESTORE_NOTE_FILE: &str = "restored";

/// Builds the event of a backup, complete or interrupted.
pub fn backup_event(result: &Result<Backup, penstock_store::Error>) -> Event {
    let detail = match result {
        Ok(Backup { sequence, quads, documents, .. }) => {
            format!("{quads} quads and {documents} documents, at commit {sequence}")
        }
        Err(cause) => format!("not finished: {cause}"),
    };
    build_event("data.backed-up", detail)
}

/// Builds the event of a dump, complete or interrupted.
pub fn dump_event(what: &DumpOptions, result: &Result<Dumped, GatewayError>) -> Event {
    let of = what.graph.as_ref().map_or_else(|| "all graphs".to_owned(), describe_graph);
    let detail = match result {
        Ok(dumped) => {
            let warning = dumped.to_warning().map(|warning| format!("; {warning}"));
            format!("{} quads of {of}{}", dumped.quads, warning.unwrap_or_default())
        }
        Err(cause) => format!("{of}; not finished: {cause}"),
    };
    build_event("data.dumped", detail)
}

/// Builds the event of a load, complete or interrupted.
pub fn load_event(what: &LoadOptions, result: &Result<LoadProgress, LoadError>) -> Event {
    let (LoadProgress { quads, added, .. }, end) = match result {
        Ok(loaded) => (*loaded, String::new()),
        Err(LoadError { error: fault, loaded }) => (*loaded, format!("; not finished: {fault}")),
    };
    let default = describe_graph(&what.graph);
    let bypass = if what.bypass { "; bypass=true" } else { "" };
    build_event(
        "data.loaded",
        format!("{quads} quads, {added} of them new; without a graph: {default}{bypass}{end}"),
    )
}

/// Builds the event of a namespace that was moved to another base.
pub fn move_event(moved: &FinishedMove) -> Event {
    let FinishedMove { name, from, to, quads, documents, .. } = moved;
    build_event(
        "namespace.moved",
        format!("{name:?} from <{from}> to <{to}>: {quads} quads and {documents} documents"),
    )
}

/// Writes a note about the restored backup into the data directory. The next start of the
/// gateway moves it into the audit log.
///
/// # Errors
/// When the file cannot be written.
pub fn write_restore_note(data_dir: &Path, backup: &Backup) -> io::Result<()> {
    let Backup { sequence, quads, documents, .. } = backup;
    let detail = format!(
        "at {}, from a backup of {quads} quads and {documents} documents at commit {sequence}",
        time::now_rfc3339()
    );
    write_atomically(&data_dir.join(RESTORE_NOTE_FILE), detail.as_bytes())
}

/// Drops the events that wait for webhooks with `drop_events`, which returns their number, and adds an event about the
/// restored backup to the audit log, once. If the store refuses a commit, the next start tries again.
pub(super) fn record_restore(
    data_dir: &Path,
    store: &Store,
    max_events: usize,
    drop_events: impl FnOnce() -> Result<usize, GatewayError>,
) {
    let path = data_dir.join(RESTORE_NOTE_FILE);
    let record = |detail: String| -> Result<(), String> {
        let dropped = drop_events().map_err(|error| error.to_string())?;
        if dropped > 0 {
            tracing::warn!(
                events = dropped,
                "Events that waited for webhooks were dropped, because a backup was restored; each webhook is sent their number."
            );
        }
        let event = build_event("data.restored", detail);
        audit::store_event_offline(&store.clone().into(), max_events, &event)
            .map_err(|error| error.to_string())?;
        std::fs::remove_file(&path).map_err(|error| error.to_string())
    };
    let kept = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => Err(error.to_string()),
        Ok(detail) => record(detail),
    };
    if let Err(cause) = kept {
        tracing::warn!(%cause, path = %path.display(), "Adding the restore to the audit log failed; the next start tries again.");
    }
}

fn build_event(what: &'static str, detail: String) -> Event {
    let by = Some(Caller::local().id().to_owned());
    Event { what, account: None, by, from: None, detail }
}

fn describe_graph(graph: &GraphName) -> String {
    match graph {
        GraphName::DefaultGraph => "the default graph".to_owned(),
        graph => format!("the graph {graph}"),
    }
}
