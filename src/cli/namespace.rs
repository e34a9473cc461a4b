//! `penstock namespace move NAME NEW-BASE`: gives a namespace another base, with all its URIs.
use super::data_dir;
use super::output::{self, STATUS_USAGE};
use clap::{Arg, ArgMatches, Command};
use penstock_auth::audit;
use penstock_base::clock::Clock;
use penstock_base::disk::Disk;
use penstock_base::error::GatewayError;
use penstock_config::Settings;
use penstock_model::change_feed::Watch;
use penstock_model::namespace::moving::{
    self, FinishedMove, MovePlan, MoveProgress, MoveTarget, PendingMove, find_pending_move,
};
use penstock_service::gateway::data_events;
use penstock_store::Store;
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The interval between lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn build_command() -> Command {
    Command::new("namespace")
        .about("Move a namespace to another base")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .override_usage(
            "penstock namespace move NAME NEW-BASE [--dry-run] [--json] [--name=value]...",
        )
        .subcommands([Command::new("move")
            .about("Give a namespace another base: rewrite every URI of it, in all quads and records")
            .arg(Arg::new("NAME").help("The name of the namespace").required(true))
            .arg(
                Arg::new("NEW-BASE")
                    .help("Its new base, such as https://plant.example/id/Pump/")
                    .required(true),
            )
            .arg(output::flag_argument("dry-run", "Only check the move, and count what it would rewrite"))
            .arg(output::json_flag())
            .after_help(
                "Stop the service first, and make a backup. The command rewrites subjects, predicates, objects and \
                 graph names; definitions, counters, stored answers and the records of changes follow. Literals stay. \
                 The next export of each Business Object that shows a rewritten URI is full. Exports that are queued \
                 keep the old URIs.\n\n\
                 A move that was interrupted continues when the command runs again. Until then the service does not \
                 start (status 65).\n\n\
                 Exit status: 0 moved, or the namespace has this base already; 1 the move is refused and nothing was \
                 changed, or it was interrupted.\n\nExamples:\n  \
                 penstock namespace move Pump https://plant.example/id/Pump/ --dry-run\n  \
                 penstock namespace move Pump https://plant.example/id/Pump/ --service.data-dir=data",
            )])
}

pub(super) fn run(given: &ArgMatches, settings: &Settings) -> ExitCode {
    let Some(("move", given)) = given.subcommand() else { return STATUS_USAGE.into() };
    let text = |name: &str| given.get_one::<String>(name).cloned().unwrap_or_default();
    let wanted = PendingMove { name: text("NAME"), uri_base: text("NEW-BASE") };
    let json = given.get_flag("json");
    let mut report = Report { is_quiet: json, next: Instant::now() + PROGRESS_INTERVAL };
    let moved = run_move(settings, &wanted, given.get_flag("dry-run"), &mut report);
    output::print_text(moved.map(|end| if json { end.to_json() } else { end.to_text(&wanted) }))
}

/// How the command ended.
enum MoveEnd {
    Unchanged,
    Checked(MovePlan),
    Moved(FinishedMove),
}

fn run_move(
    settings: &Settings,
    wanted: &PendingMove,
    is_dry_run: bool,
    report: &mut Report,
) -> Result<MoveEnd, String> {
    data_dir::check_exists(settings)?;
    let store = data_dir::open_stopped_store(settings)?;
    let text = |error: GatewayError| error.to_string();
    let pending = find_pending_move(&store.read()).map_err(|error| error.to_string())?;
    match pending {
        Some(pending) if pending == *wanted && !is_dry_run => report.print("The move continues."),
        Some(pending) => return Err(pending.to_string()),
        None => {
            let PendingMove { name, uri_base } = wanted;
            let mut on_progress = |progress: MoveProgress| {
                let MoveProgress { checked, quads, .. } = progress;
                report.show(&format!("{checked} quads checked, {quads} of them to be rewritten"));
            };
            let plan = moving::plan_move(&store, name, uri_base, &mut on_progress).map_err(text)?;
            let Some(plan) = plan else { return Ok(MoveEnd::Unchanged) };
            for warning in &plan.warnings {
                output::print_error_line(&format!("penstock: warning: {warning}"));
            }
            if is_dry_run {
                return Ok(MoveEnd::Checked(plan));
            }
            report.print(&format!("{} quads have URIs of the namespace {name:?}.", plan.quads));
            let (disk, watch) = open_parts(settings, &store)?;
            moving::begin_move(MoveTarget { store: &store, disk: &disk, watch: &watch }, &plan)
                .map_err(text)?;
        }
    }
    let (disk, watch) = open_parts(settings, &store)?;
    let target = MoveTarget { store: &store, disk: &disk, watch: &watch };
    let max_events = settings.limits.audit;
    let moved = moving::continue_move(
        target,
        &mut |progress| {
            let MoveProgress { quads, documents, .. } = progress;
            report.show(&format!("{quads} quads and {documents} documents rewritten"));
        },
        &mut |transaction, moved| {
            audit::add_event_offline(transaction, max_events, &data_events::move_event(moved))
        },
    );
    let moved = moved.map_err(|error| {
        format!("the move was interrupted, and continues when the command runs again: {error}")
    })?;
    // The journal has everything; only the next start takes longer without it.
    if let Err(error) = store.checkpoint() {
        output::print_error_line(&format!("penstock: warning: the checkpoint failed: {error}"));
    }
    Ok(MoveEnd::Moved(moved))
}

fn open_parts(settings: &Settings, store: &Store) -> Result<(Disk, Watch), String> {
    let disk = Disk::new(settings.data_dir.clone(), settings.limits.disk_reserve_bytes);
    let clock = Clock::open(store.clone()).map_err(|error| error.to_string())?;
    Ok((disk, Watch::with_clock(clock)))
}

/// Prints progress to standard output, unless the result is JSON.
struct Report {
    is_quiet: bool,
    /// When the next line of progress is due.
    next: Instant,
}

impl Report {
    fn print(&self, line: &str) {
        if !self.is_quiet {
            // A closed standard output must not interrupt the move.
            let _ = output::print_result(line);
        }
    }

    /// Prints a line if one is due.
    fn show(&mut self, line: &str) {
        if Instant::now() >= self.next {
            self.next = Instant::now() + PROGRESS_INTERVAL;
            self.print(line);
        }
    }
}

impl MoveEnd {
    fn to_text(&self, wanted: &PendingMove) -> String {
        let PendingMove { name, uri_base } = wanted;
        match self {
            Self::Unchanged => {
                format!("The namespace {name:?} has the base <{uri_base}> already.")
            }
            Self::Checked(plan) => format!(
                "The namespace {name:?} can be moved from <{}> to <{uri_base}>: {} quads would be rewritten.",
                plan.from, plan.quads
            ),
            Self::Moved(moved) => {
                let FinishedMove { from, to, quads, documents, full_exports, .. } = moved;
                let mut text = format!(
                    "Moved the namespace {name:?} from <{from}> to <{to}>: {quads} quads and {documents} documents were \
                     rewritten."
                );
                if !full_exports.is_empty() {
                    text.push_str("\nThe next export of these Business Objects is full: ");
                    text.push_str(&full_exports.join(", "));
                    text.push('.');
                }
                text
            }
        }
    }

    fn to_json(&self) -> String {
        match self {
            Self::Unchanged => json!({"moved": false, "quads": 0, "documents": 0}),
            Self::Checked(MovePlan { name, from, to, quads, warnings }) => json!({
                "moved": false, "name": name, "from": from, "to": to, "quads": quads, "warnings": warnings,
            }),
            Self::Moved(FinishedMove { name, from, to, quads, documents, full_exports }) => json!({
                "moved": true, "name": name, "from": from, "to": to, "quads": quads, "documents": documents,
                "fullExports": full_exports,
            }),
        }
        .to_string()
    }
}
