//! `penstock export list|retry|park`: the export queue.
use super::output::{self, STATUS_USAGE};
use super::{control, data_dir};
use clap::{Arg, ArgMatches, Command, value_parser};
use hyper::Method;
use penstock_auth::Authorized;
use penstock_base::error::GatewayError;
use penstock_config::Settings;
use penstock_resources::export::Export;
use penstock_service::gateway::Gateway;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

/// The number of exports listed without `--limit`.
const DEFAULT_LIST_LIMIT: usize = 100;

pub(super) fn build_command() -> Command {
    let id = || {
        Arg::new("ID").help("The export's id, as `penstock export list` shows it").required(true)
    };
    Command::new("export")
        .about("Show the export queue, and resolve blocked exports")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .override_usage("penstock export <list|retry ID|park ID> [--name=value]...")
        .subcommands([
            Command::new("list")
                .about("List exports, newest first")
                .arg(
                    output::value_argument("limit", "N", "The maximum number of exports")
                        .default_value("100")
                        .value_parser(value_parser!(u32).range(1..)),
                )
                .arg(output::json_flag())
                .after_help(
                    "Examples:\n  penstock export list --service.data-dir=data\n  penstock export list --limit 5 --json",
                ),
            Command::new("retry")
                .about("Retry a waiting export now, or queue a parked one again")
                .arg(id())
                .arg(output::json_flag())
                .after_help("Example:\n  penstock export retry 0199c1d2-7d3e-7000-8000-000000000001"),
            Command::new("park")
                .about("Park a waiting export, so that those behind it are delivered")
                .arg(id())
                .arg(output::json_flag())
                .after_help("Example:\n  penstock export park 0199c1d2-7d3e-7000-8000-000000000001"),
        ])
        .after_help(
            "The command asks the running service; if none runs, it opens the store itself.\n\nExamples:\n  \
             penstock export list --service.data-dir=data",
        )
}

pub(super) fn run(given: &ArgMatches, settings: &Settings) -> ExitCode {
    let Some((action, given)) = given.subcommand() else { return STATUS_USAGE.into() };
    let action = match (action, given.try_get_one::<String>("ID")) {
        ("retry", Ok(Some(id))) => Action::Retry(id),
        ("park", Ok(Some(id))) => Action::Park(id),
        _ => Action::List(given.get_one("limit").map_or(DEFAULT_LIST_LIMIT, |n: &u32| *n as usize)),
    };
    let service = async |dir: &Path| perform_by_service(&action, dir).await;
    let store = async |gateway: &Gateway| perform_by_store(&action, gateway);
    let answer = data_dir::perform_action(settings, service, store);
    output::print_answer(given, answer, |answer| match action {
        Action::List(_) => format_exports(output::items_of(answer)),
        Action::Retry(_) | Action::Park(_) => format_exports(std::slice::from_ref(answer)),
    })
}

enum Action<'a> {
    List(usize),
    Retry(&'a str),
    Park(&'a str),
}

async fn perform_by_service(action: &Action<'_>, dir: &Path) -> Result<Option<Value>, String> {
    let act = |id: &str, verb: &str| {
        format!("/api/v1/exports/{}/{verb}", utf8_percent_encode(id, NON_ALPHANUMERIC))
    };
    let limit = match action {
        Action::Retry(id) => {
            return control::request_json(dir, Method::POST, &act(id, "retry")).await;
        }
        Action::Park(id) => {
            return control::request_json(dir, Method::POST, &act(id, "park")).await;
        }
        Action::List(limit) => *limit,
    };
    let items = control::list_items(dir, "/api/v1/exports", limit).await?;
    Ok(items.map(|items| json!({ "items": items })))
}

fn perform_by_store(action: &Action<'_>, gateway: &Gateway) -> Result<Value, GatewayError> {
    let exporter = &gateway.exporter;
    let value = |entry: &Export| serde_json::to_value(entry).unwrap_or_default();
    let limit = match action {
        Action::Retry(id) => {
            return exporter.retry(&Authorized::local(), id).map(|entry| value(&entry));
        }
        Action::Park(id) => {
            return exporter.park(&Authorized::local(), id).map(|entry| value(&entry));
        }
        Action::List(limit) => *limit,
    };
    let entries = exporter.list(None, limit)?;
    Ok(json!({ "items": entries.iter().map(value).collect::<Vec<_>>() }))
}

/// The columns of the table: heading and field.
const COLUMNS: [(&str, &str); 9] = [
    ("ID", "id"),
    ("TARGET", "target"),
    ("BUSINESS OBJECT", "businessObjectName"),
    ("SEQUENCE", "sequence"),
    ("KIND", "kind"),
    ("STATUS", "status"),
    ("OBJECTS", "objectCount"),
    ("BYTES", "bytes"),
    ("CREATED", "createdAt"),
];

fn format_exports(entries: &[Value]) -> String {
    if entries.is_empty() {
        return "There are no exports.".to_owned();
    }
    let mut text = output::format_table(&COLUMNS, entries);
    for entry in entries {
        if let Some(why) = entry.get("lastError").and_then(Value::as_str) {
            // Writing into a string cannot fail.
            let _ = write!(text, "\n{}: {why}", output::format_cell(entry, "id"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_aligned_and_shows_errors() {
        let entry = json!({
            "id": "1", "target": "plant-exports", "businessObjectName": "Pumps", "sequence": 12,
            "kind": "full", "status": "blocked", "objectCount": 3, "bytes": 100,
            "createdAt": "2026-03-01T12:00:00.000Z", "lastError": "connection refused",
        });
        let text = format_exports(&[entry]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert_eq!(lines[0].find("SEQUENCE"), lines[1].find("12"), "{text}");
        assert_eq!(lines[2], "1: connection refused");
        assert_eq!(format_exports(&[]), "There are no exports.");
    }
}
