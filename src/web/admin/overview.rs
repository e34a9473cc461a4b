//! `/admin`: the state of the gateway, and what is wrong.
use super::frame::{Frame, PageReply, PageResult, Section};
use super::health::{Concern, collect_concerns};
use super::plot::{Plot, PlotSpec};
use super::words;
use askama::Template;
use penstock_base::Role;
use penstock_base::telemetry::metrics::{PeriodCounts, RecentCounts, recent_counts};
use penstock_export::TargetState;
use penstock_http::caller::caller;
use penstock_http::query::Query;
use penstock_http::state::{gateway, state};
use penstock_service::gateway::status::Status;
use salvo::{Depot, Request, handler};

/// The maximum number of log lines that are shown.
const MAX_LOG_LINES: usize = 5;

#[derive(Template)]
#[template(path = "admin/overview.html")]
struct Overview {
    frame: Frame,
    /// The problems, the most severe first.
    concerns: Vec<Concern>,
    /// The state in one sentence.
    summary: String,
    targets: Vec<Target>,
    plots: [Plot; 4],
    lines: Vec<Line>,
    facts: Vec<(&'static str, String)>,
}

/// The row of a target.
struct Target {
    name: String,
    class: &'static str,
    state: &'static str,
    depth: String,
    size: String,
    oldest: String,
    last: String,
}

/// A line of the log.
struct Line {
    time: String,
    is_error: bool,
    text: String,
    fields: String,
}

/// Shows the page.
#[handler]
pub(crate) async fn show_overview(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let frame = Frame::new(req, depot, Section::Overview);
    let gateway = gateway(depot)?;
    let defined = gateway.catalogue.list().len() as u64;
    let first = gateway.auth.accounts.find_with_initial_password();
    let status = state(depot).collect_status(caller(depot)).await?;
    let first = first.as_ref().map(|account| account.id.as_str());
    let page = Overview {
        concerns: collect_concerns(&status, first, &frame),
        summary: build_summary(&status, defined),
        targets: status.targets.iter().map(target_row).collect(),
        plots: build_plots(&recent_counts()),
        lines: recent_log_lines(&status),
        facts: system_facts(&status),
        frame,
    };
    Ok(PageReply::show(&page))
}

fn build_summary(status: &Status, defined: u64) -> String {
    let objects =
        words::format_count(defined, "Business Object is defined", "Business Objects are defined");
    let waiting = match status.queue.depth {
        0 => "no export is waiting".to_owned(),
        depth => format!("{} waiting", words::format_count(depth, "export is", "exports are")),
    };
    format!("{objects}, and {waiting}.")
}

fn target_row(target: &TargetState) -> Target {
    let (class, state) = match target {
        TargetState { blocked: Some(_), .. } => ("bad", "Blocked"),
        TargetState { paused: Some(_), .. } => ("warn", "Paused"),
        TargetState { depth: 1.., .. } => ("", "Delivering"),
        TargetState { reachable: Some(true), .. } => ("good", "Reachable"),
        TargetState { reachable: Some(false), .. } => ("warn", "Unreachable"),
        _ => ("", "Not used yet"),
    };
    let ago = |moment: &str| format!("{} ago", words::format_age(moment));
    Target {
        name: target.name.clone(),
        class,
        state,
        depth: words::format_number(target.depth),
        size: if target.depth == 0 { "–".to_owned() } else { words::format_size(target.bytes) },
        oldest: target.oldest_age_seconds.map_or_else(|| "–".to_owned(), words::format_duration),
        last: target.last_delivery.as_deref().map_or_else(|| "never".to_owned(), ago),
    }
}

/// Returns recent warnings and errors.
fn recent_log_lines(status: &Status) -> Vec<Line> {
    // Refusals are in the audit trail, which has its own page.
    let lines = status.last_errors.iter().filter(|line| line.code != "auth::audit");
    let shown = lines.take(MAX_LOG_LINES).map(|line| {
        let fields = line.fields.iter().map(|(name, value)| format!("{name}: {value}"));
        Line {
            time: words::format_second(&line.time),
            is_error: line.level == "error",
            text: line.text.clone(),
            fields: fields.collect::<Vec<_>>().join(", "),
        }
    });
    shown.collect()
}

fn build_plots(recent: &RecentCounts) -> [Plot; 4] {
    let ingested = |counts: &[PeriodCounts]| -> Vec<_> {
        counts.iter().map(|count| (count.objects, 0)).collect()
    };
    let delivered = |counts: &[PeriodCounts]| -> Vec<_> {
        counts.iter().map(|count| (count.delivered, count.failed)).collect()
    };
    let of = |heading, (one, more), wrong, is_day: bool| PlotSpec {
        heading,
        singular: one,
        plural: more,
        failure_nouns: wrong,
        from: if is_day { "24 h ago" } else { "60 min ago" },
        step: if is_day { "15 min" } else { "min" },
    };
    let objects = ("object", "objects");
    let exports = ("export delivered", "exports delivered");
    let failed = ("failed attempt", "failed attempts");
    [
        Plot::new(
            of("Ingested in the last hour", objects, ("", ""), false),
            &ingested(&recent.hour),
        ),
        Plot::new(of("Ingested in the last day", objects, ("", ""), true), &ingested(&recent.day)),
        Plot::new(
            of("Exported in the last hour", exports, failed, false),
            &delivered(&recent.hour),
        ),
        Plot::new(of("Exported in the last day", exports, failed, true), &delivered(&recent.day)),
    ]
}

fn system_facts(status: &Status) -> Vec<(&'static str, String)> {
    let size = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), words::format_size);
    let memory = match status.memory.limit_bytes {
        Some(limit) => {
            format!("{} of {}", size(status.memory.resident_bytes), words::format_size(limit))
        }
        None => size(status.memory.resident_bytes),
    };
    let clock_state = match status.clock.synchronised {
        Some(true) => "synchronised",
        Some(false) => "not synchronised",
        None => "unknown",
    };
    let on_disk = status.disk.journal_bytes.saturating_add(status.disk.index_bytes);
    vec![
        ("Disk free", size(status.disk.free_bytes)),
        ("Memory used", memory),
        ("Clock", format!("{} UTC", words::format_second(&status.clock.now))),
        ("Clock state", clock_state.to_owned()),
        ("Data on disk", words::format_size(on_disk)),
        ("Quads stored", words::format_number(status.store.quads)),
        ("Uptime", words::format_duration(status.uptime_seconds)),
        ("Version", status.version.to_owned()),
        ("Gateway ID", status.gateway_id.clone()),
    ]
}
