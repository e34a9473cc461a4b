//! `/admin`: the state of the gateway, and what is wrong.
use super::backup::describe_backup;
use super::frame::{Frame, PageReply, PageResult};
use super::health::{Concern, collect_concerns};
use super::labels::Labelled as _;
use super::menu::Section;
use super::plot::{Plot, Series, Unit};
use super::words;
use askama::Template;
use penstock_auth::Caller;
use penstock_base::Role;
use penstock_base::telemetry::metrics::{
    Levels, PeriodCounts, RecentCounts, recent_counts, recent_levels,
};
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::state::{gateway, state};
use penstock_resources::export::Target;
use penstock_resources::gateway::Status;
use penstock_service::gateway::Gateway;
use salvo::{Depot, Request, handler};
use std::time::Duration;

/// The maximum number of log lines that are shown.
const MAX_LOG_LINES: usize = 5;
/// The maximum number of Business Objects whose objects the page links to.
const MAX_DATA_LINKS: usize = 24;
/// The number of minutes that the summary is about.
const SUMMARY_MINUTES: usize = 10;

#[derive(Template)]
#[template(path = "admin/overview.html")]
struct Overview {
    frame: Frame,
    /// The problems, the most severe first.
    concerns: Vec<Concern>,
    /// The state in sentences.
    summary: String,
    /// The first Business Objects, whose objects the page links to: id and name.
    data: Vec<(String, String)>,
    /// The number of further ones.
    more_data: usize,
    targets: Vec<Target>,
    range: Range,
    plots: [Plot; 5],
    /// How long the plots have been recorded.
    since: String,
    lines: Vec<Line>,
    facts: Vec<(&'static str, String)>,
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
    let query = Query::read(req, &["range"])?;
    let range = match query.get("range") {
        None | Some("hour") => Range::Hour,
        Some("day") => Range::Day,
        Some(other) => return Err(unknown_range(other)),
    };
    let frame = Frame::new(req, depot, Section::Overview);
    let gateway = gateway(depot)?;
    let all = gateway.catalogue.list();
    let first = gateway.auth.accounts.find_with_initial_password();
    let state = state(depot);
    let status = state.collect_status(caller(depot)).await?;
    let warnings = state.settings().warnings.len();
    let first = first.as_ref().map(|account| account.id.as_str());
    let recent = recent_counts();
    let page = Overview {
        concerns: collect_concerns(&status, warnings, first, &frame),
        summary: build_summary(&status, all.len() as u64, &recent),
        data: all
            .iter()
            .take(MAX_DATA_LINKS)
            .map(|one| (one.object.id.clone(), one.object.definition.name.clone()))
            .collect(),
        more_data: all.len().saturating_sub(MAX_DATA_LINKS),
        plots: build_plots(range, &recent, &status),
        range,
        since: words::format_duration(recent.since.as_secs()),
        lines: recent_log_lines(&status, &gateway, caller(depot)),
        facts: system_facts(&status),
        targets: status.targets,
        frame,
    };
    Ok(PageReply::show(&page))
}

fn unknown_range(range: &str) -> Problem {
    Problem::malformed(format!("the range {range:?} is unknown; it is hour or day"))
}

/// Describes the state in sentences.
fn build_summary(status: &Status, defined: u64, recent: &RecentCounts) -> String {
    let mut sentences = Vec::new();
    if defined == 0 {
        sentences.push("No Business Object is defined yet.".to_owned());
    }
    let last = recent.hour.iter().rev().take(SUMMARY_MINUTES);
    let sum = |count: fn(&PeriodCounts) -> u64| last.clone().map(count).sum::<u64>();
    let (objects, delivered) = (sum(|count| count.objects), sum(|count| count.delivered));
    let ingested = match (objects, sum(|count| count.unchanged)) {
        (0, _) => "no data came in".to_owned(),
        (_, 0) => format!("{} came in", words::format_count(objects, "object", "objects")),
        (_, unchanged) => format!(
            "{} came in, {} of them unchanged",
            words::format_count(objects, "object", "objects"),
            words::format_number(unchanged)
        ),
    };
    let exports = match delivered {
        0 => "nothing was delivered".to_owned(),
        1 => "1 export was delivered".to_owned(),
        _ => format!("{} exports were delivered", words::format_number(delivered)),
    };
    let since = recent.since.as_secs();
    let when = if since < SUMMARY_MINUTES as u64 * 60 {
        format!("Since the start, {} ago,", words::format_duration(since))
    } else {
        format!("In the last {SUMMARY_MINUTES} minutes")
    };
    sentences.push(format!("{when} {ingested}, and {exports}."));
    sentences.push(match (status.queue.depth, status.queue.oldest_age_seconds) {
        (0, _) => "No export waits.".to_owned(),
        (1, Some(age)) => format!("1 export waits, since {}.", words::format_duration(age)),
        (depth, age) => format!(
            "{} exports wait, the oldest since {}.",
            words::format_number(depth),
            words::format_duration(age.unwrap_or_default())
        ),
    });
    if let Some(free) = status.disk.free_bytes {
        let memory = &status.memory;
        let left = memory.limit_bytes.zip(memory.resident_bytes);
        let left = left.map(|(limit, used)| limit.saturating_sub(used)).map(words::format_size);
        let left = left.map(|left| format!(" and {left} of memory")).unwrap_or_default();
        sentences.push(format!("{} of disk space{left} are free.", words::format_size(free)));
    }
    sentences.join(" ")
}

/// Returns recent warnings and errors.
fn recent_log_lines(status: &Status, gateway: &Gateway, by: &Caller) -> Vec<Line> {
    // Refusals are in the audit trail, which has its own page.
    let lines = status.last_errors.iter().filter(|line| line.code != "auth::audit");
    let shown = lines.take(MAX_LOG_LINES).map(|line| {
        // People know exports by their sequence. The log has the ids too.
        let fields = line.fields.iter().filter(|(name, _)| !name.ends_with("_id"));
        let fields = fields.map(|(name, value)| match *name {
            "caller" => format!("caller: {}", words::name_actor(gateway, by, value)),
            name => format!("{}: {value}", name.replace('_', " ")),
        });
        Line {
            time: words::format_second(&line.time),
            is_error: line.level == "error",
            text: line.text.clone(),
            fields: fields.collect::<Vec<_>>().join(", "),
        }
    });
    shown.collect()
}

/// The time that the plots show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Range {
    Hour,
    Day,
}

impl Range {
    /// Returns the labels of the time axis.
    fn ticks(self) -> [&'static str; 5] {
        match self {
            Self::Hour => ["−60", "−45", "−30 min", "−15", "now"],
            Self::Day => ["−24", "−18", "−12 h", "−6", "now"],
        }
    }

    /// Returns the number of the first periods that ended before counting began.
    fn count_unknown(self, since: Duration) -> usize {
        let (periods, seconds) = match self {
            Self::Hour => (60_usize, 60),
            Self::Day => (96, 15 * 60),
        };
        // The last period is still running.
        let known = usize::try_from(since.as_secs() / seconds).map_or(periods, |ended| ended + 1);
        periods.saturating_sub(known)
    }

    /// Returns the unit of rates, and how many periods it has.
    fn rate(self) -> (&'static str, u64) {
        match self {
            Self::Hour => ("per minute", 1),
            Self::Day => ("per hour", 4),
        }
    }
}

fn build_plots(range: Range, counts: &RecentCounts, status: &Status) -> [Plot; 5] {
    let levels = recent_levels();
    let unknown = range.count_unknown(counts.since);
    let (counts, levels) = match range {
        Range::Hour => (&counts.hour, &levels.hour),
        Range::Day => (&counts.day, &levels.day),
    };
    let (per, factor) = range.rate();
    let rates = |class, label, count: fn(&PeriodCounts) -> u64| {
        let known = counts.iter().skip(unknown).map(|counts| Some(count(counts)));
        Series { class, label, values: std::iter::repeat_n(None, unknown).chain(known).collect() }
    };
    let level = |class, label, level: fn(&Levels) -> Option<u64>| Series {
        class,
        label,
        values: levels.iter().map(|levels| levels.as_ref().and_then(level)).collect(),
    };
    let reserve = ("reserve", status.disk.reserve_bytes);
    let memory_limit = status.memory.limit_bytes.map(|limit| ("limit", limit));
    [
        Plot::of_rates(
            format!("Objects {per}"),
            vec![
                rates("up", "changed", |counts| counts.objects.saturating_sub(counts.unchanged)),
                rates("again", "sent again unchanged", |counts| counts.unchanged),
            ],
            factor,
        ),
        Plot::of_rates(
            format!("Deliveries {per}"),
            vec![
                rates("up", "delivered", |counts| counts.delivered),
                rates("down", "failed attempts", |counts| counts.failed),
            ],
            factor,
        ),
        Plot::of_levels(
            "Export queue".to_owned(),
            level("level", "waiting", |levels| Some(levels.queued)),
            Some(status.queue.depth),
            Unit::Count,
            None,
        ),
        Plot::of_levels(
            "Disk".to_owned(),
            level("level", "free", |levels| levels.disk_free_bytes),
            status.disk.free_bytes,
            Unit::Bytes,
            Some(reserve),
        ),
        Plot::of_levels(
            "Memory".to_owned(),
            level("level", "in use", |levels| levels.memory_bytes),
            status.memory.resident_bytes,
            Unit::Bytes,
            memory_limit,
        ),
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
        ("Backup", describe_backup(status.backup.as_ref())),
        ("Quads stored", words::format_number(status.store.quads)),
        ("Uptime", words::format_duration(status.uptime_seconds)),
        ("Version", status.version.to_owned()),
        ("Gateway ID", status.gateway_id.clone()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_before_the_start_are_unknown() {
        for (seconds, hour, day) in
            [(0, 59, 95), (59, 59, 95), (60, 58, 95), (900, 44, 94), (3540, 0, 92), (100_000, 0, 0)]
        {
            let since = Duration::from_secs(seconds);
            let unknown = [Range::Hour, Range::Day].map(|range| range.count_unknown(since));
            assert_eq!(unknown, [hour, day], "{seconds}");
        }
    }
}
