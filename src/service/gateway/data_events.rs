//! Audit events about data that local administration backed up, dumped, loaded or restored.
use oxrdf::GraphName;
use penstock_auth::Caller;
use penstock_auth::audit::{self, Event};
use penstock_base::fault::Fault;
use penstock_base::files::write_atomically;
use penstock_base::time;
use penstock_model::rdf::{Dump, Failed, Load, Loaded};
use penstock_store::{Backup, Store};
use std::io;
use std::path::Path;

/// The file in the data directory that describes the restored backup until the store is first opened.
const RESTORED: &str = "restored";

/// Builds the event of a backup, complete or interrupted.
pub fn backed_up(result: &Result<Backup, penstock_store::Error>) -> Event {
    let detail = match result {
        Ok(Backup { sequence, quads, documents, .. }) => {
            format!("{quads} quads and {documents} documents, at commit {sequence}")
        }
        Err(cause) => format!("not finished: {cause}"),
    };
    event("data.backed-up", detail)
}

/// Builds the event of a dump, complete or interrupted.
pub fn dumped(what: &Dump, result: &Result<u64, Fault>) -> Event {
    let of = what.graph.as_ref().map_or_else(|| "all graphs".to_owned(), graph);
    let detail = match result {
        Ok(quads) => format!("{quads} quads of {of}"),
        Err(cause) => format!("{of}; not finished: {cause}"),
    };
    event("data.dumped", detail)
}

/// Builds the event of a load, complete or interrupted.
pub fn loaded(what: &Load, result: &Result<Loaded, Failed>) -> Event {
    let (Loaded { quads, added, .. }, end) = match result {
        Ok(loaded) => (*loaded, String::new()),
        Err(Failed { fault, loaded }) => (*loaded, format!("; not finished: {fault}")),
    };
    let default = graph(&what.graph);
    event(
        "data.loaded",
        format!("{quads} quads, {added} of them new; without a graph: {default}{end}"),
    )
}

/// Writes into the data directory which backup its store was restored from, for the audit log.
///
/// # Errors
/// When the file cannot be written.
pub fn note_restored(data_dir: &Path, backup: &Backup) -> io::Result<()> {
    let Backup { sequence, quads, documents, .. } = backup;
    let detail = format!(
        "at {}, from a backup of {quads} quads and {documents} documents at commit {sequence}",
        time::rfc3339()
    );
    write_atomically(&data_dir.join(RESTORED), detail.as_bytes())
}

/// Adds an event about the restored backup to the audit log, once. If the store refuses the commit, the next start
/// tries again.
pub(super) fn keep_restored(data_dir: &Path, store: &Store, most: usize) {
    let path = data_dir.join(RESTORED);
    let kept = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => Err(error.to_string()),
        Ok(detail) => {
            audit::keep_offline(&store.clone().into(), most, &event("data.restored", detail))
                .map_err(|fault| fault.to_string())
                .and_then(|()| std::fs::remove_file(&path).map_err(|error| error.to_string()))
        }
    };
    if let Err(cause) = kept {
        tracing::warn!(%cause, path = %path.display(), "Adding the restore to the audit log failed; the next start tries again.");
    }
}

fn event(what: &'static str, detail: String) -> Event {
    let by = Some(Caller::local().id().to_owned());
    Event { what, account: None, by, from: None, detail }
}

fn graph(graph: &GraphName) -> String {
    match graph {
        GraphName::DefaultGraph => "the default graph".to_owned(),
        graph => format!("the graph {graph}"),
    }
}
