//! Audit events about data that local administration backed up, dumped, loaded, restored or moved, and about a takeover of
//! the continuous backup.
use oxrdf::GraphName;
use penstock_auth::Caller;
use penstock_auth::audit::Event;
use penstock_base::error::GatewayError;
use penstock_model::namespace::moving::FinishedMove;
use penstock_model::rdf::{DumpOptions, Dumped, LoadError, LoadOptions, LoadProgress};
use penstock_store::Backup;

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

/// Builds the event of a takeover of the continuous backup in this target, requested while the gateway is stopped.
pub fn take_over_event(target: &str) -> Event {
    build_event("backup.taken-over", format!("{target:?}"))
}

pub(super) fn build_event(what: &'static str, detail: String) -> Event {
    let by = Some(Caller::local().id().to_owned());
    Event { what, account: None, by, from: None, detail }
}

fn describe_graph(graph: &GraphName) -> String {
    match graph {
        GraphName::DefaultGraph => "the default graph".to_owned(),
        graph => format!("the graph {graph}"),
    }
}
