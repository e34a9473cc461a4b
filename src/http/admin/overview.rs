//! `/admin`: is it well, and if not, why.
use super::frame::{self, Frame, Section};
use super::plot::{Of, Plot};
use super::words;
use crate::auth::Role;
use crate::export::TargetState;
use crate::gateway::Gateway;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::shapes::Status;
use crate::http::state::{blocking, gateway, state};
use crate::http::status;
use crate::telemetry::metrics::{Count, Snapshot, recent_counts};
use askama::Template;
use salvo::{Depot, Request, Response, handler};

#[derive(Template)]
#[template(path = "admin/overview.html")]
struct Overview {
    frame: Frame,
    /// Why it is not well, what is worst first.
    concerns: Vec<Concern>,
    /// What is well, in a sentence.
    summary: String,
    targets: Vec<Target>,
    plots: [Plot; 4],
    facts: Vec<(&'static str, String)>,
}

/// How much something matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// Something does not work.
    Fault,
    /// Something will not work for long, or should be looked at.
    Warning,
}

/// One reason why all is not well.
#[derive(Debug)]
struct Concern {
    weight: Weight,
    heading: String,
    words: String,
    /// Where more is said: a path without the prefix, and its words.
    link: Option<(&'static str, &'static str)>,
}

impl Concern {
    fn class(&self) -> &'static str {
        match self.weight {
            Weight::Fault => "bad",
            Weight::Warning => "warn",
        }
    }

    fn mark(&self) -> &'static str {
        match self.weight {
            Weight::Fault => "✗",
            Weight::Warning => "!",
        }
    }
}

/// A target's row.
struct Target {
    name: String,
    class: &'static str,
    state: &'static str,
    depth: String,
    size: String,
    oldest: String,
    last: String,
}

/// What the page is made of.
struct Gathered {
    status: Status,
    targets: Vec<TargetState>,
    poisoned: bool,
    business_objects: usize,
    /// The id of the account whose password is still the first one.
    first_password: Option<String>,
}

#[handler]
pub(in crate::http) async fn get(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    Query::read(req, &[])?;
    let frame = Frame::of(req, depot, res, Section::Overview);
    let (state, gateway) = (state(depot), gateway(depot)?);
    let spool = state.settings().targets.spool_bytes;
    let gathered = blocking(move || gather(&state, &gateway)).await?;
    let recent = recent_counts();
    let page = Overview {
        concerns: concerns(&gathered, spool, &frame),
        summary: summary(&gathered),
        targets: gathered.targets.iter().map(target).collect(),
        plots: plots(&recent),
        facts: facts(&gathered.status),
        frame,
    };
    frame::show(res, depot, &page);
    Ok(())
}

fn gather(state: &crate::http::State, gateway: &Gateway) -> Result<Gathered, Problem> {
    Ok(Gathered {
        status: status::now(state, gateway)?,
        targets: gateway.exporter.targets()?,
        poisoned: gateway.store.poisoned().is_some(),
        business_objects: gateway.catalogue.list().len(),
        first_password: gateway
            .auth
            .accounts
            .with_initial_password()
            .map(|account| account.id.clone()),
    })
}

/// Everything that is not as it should be.
fn concerns(gathered: &Gathered, spool: u64, frame: &Frame) -> Vec<Concern> {
    let Gathered { status, targets, .. } = gathered;
    let mut concerns = Vec::new();
    let mut add = |weight, heading: String, words: String, link| {
        concerns.push(Concern { weight, heading, words, link });
    };
    if gathered.poisoned {
        add(
            Weight::Fault,
            "The disk failed.".to_owned(),
            "A write did not succeed, so nothing is taken in. Reading and exporting go on, and the store \
             is opened anew by itself once the disk takes writes again; the log says why it does not."
                .to_owned(),
            None,
        );
    }
    if status.disk_in_reserve {
        let free = status.disk_free_bytes.map(words::size).unwrap_or_default();
        add(
            Weight::Fault,
            "The disk is full.".to_owned(),
            format!(
                "{free} are free, which is less than the reserve: nothing is taken in until there is \
                 room. Reading, deleting and exporting go on."
            ),
            None,
        );
    }
    for target in targets {
        if let Some(why) = &target.blocked {
            let since = target.blocked_since.as_deref().map(words::age).unwrap_or_default();
            let waiting = words::many(target.depth, "export waits", "exports wait");
            add(
                Weight::Fault,
                format!("{} takes nothing, for {since}.", target.name),
                format!("{waiting} for it: {why}"),
                Some(("/admin/targets", "Targets")),
            );
        }
    }
    let waiting: u64 = targets.iter().map(|target| target.bytes).sum();
    if targets.iter().any(|target| target.waiting > 0) || (spool > 0 && waiting >= spool) {
        add(
            Weight::Fault,
            "The spool is full.".to_owned(),
            format!(
                "{} of exports wait for their targets, and {} are the most that may: exports by \
                 themselves begin again when some are delivered.",
                words::size(waiting),
                words::size(spool)
            ),
            Some(("/admin/exports", "Exports")),
        );
    }
    if status.clock_synchronised == Some(false) {
        add(
            Weight::Warning,
            "The clock follows no time server.".to_owned(),
            "Times in records and exports may be wrong, and access tokens may be refused."
                .to_owned(),
            None,
        );
    }
    if let Some(first) = &gathered.first_password
        && frame.may(Role::Admin)
    {
        let link = if *first == frame.account {
            ("/admin/profile", "Change it")
        } else {
            ("/admin/users", "Users")
        };
        add(
            Weight::Warning,
            "The first password is still in use.".to_owned(),
            "It stands in a file on this machine. Set one of your own.".to_owned(),
            Some(link),
        );
    }
    concerns.sort_by_key(|concern| concern.weight);
    concerns
}

fn summary(gathered: &Gathered) -> String {
    let objects = words::many(
        gathered.business_objects as u64,
        "Business Object is defined",
        "Business Objects are defined",
    );
    let waiting = match gathered.status.queue.depth {
        0 => "nothing waits".to_owned(),
        depth => format!("{} under way", words::many(depth, "export is", "exports are")),
    };
    format!("{objects}, and {waiting}.")
}

fn target(target: &TargetState) -> Target {
    let (class, state) = match target {
        TargetState { blocked: Some(_), .. } => ("bad", "Blocked"),
        TargetState { paused: Some(_), .. } => ("warn", "Paused"),
        TargetState { depth: 1.., .. } => ("", "Delivering"),
        TargetState { reachable: Some(true), .. } => ("good", "Reachable"),
        TargetState { reachable: Some(false), .. } => ("warn", "Not reached"),
        _ => ("", "Not used yet"),
    };
    let ago = |moment: &str| format!("{} ago", words::age(moment));
    Target {
        name: target.name.clone(),
        class,
        state,
        depth: words::number(target.depth),
        size: if target.depth == 0 { "–".to_owned() } else { words::size(target.bytes) },
        oldest: target.oldest.as_deref().map_or_else(|| "–".to_owned(), words::age),
        last: target.last_delivery.as_deref().map_or_else(|| "never".to_owned(), ago),
    }
}

fn plots(recent: &Snapshot) -> [Plot; 4] {
    let ingested =
        |counts: &[Count]| -> Vec<_> { counts.iter().map(|count| (count.objects, 0)).collect() };
    let delivered = |counts: &[Count]| -> Vec<_> {
        counts.iter().map(|count| (count.delivered, count.failed)).collect()
    };
    let of = |heading, (one, more), wrong, is_day: bool| Of {
        heading,
        one,
        more,
        wrong,
        from: if is_day { "24 h ago" } else { "60 min ago" },
        step: if is_day { "quarter of an hour" } else { "minute" },
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

fn facts(status: &Status) -> Vec<(&'static str, String)> {
    let size = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), words::size);
    let clock = match status.clock_synchronised {
        Some(true) => "synchronised",
        Some(false) => "not synchronised",
        None => "unknown whether synchronised",
    };
    let now = crate::time::rfc3339();
    vec![
        ("Disk free", size(status.disk_free_bytes)),
        ("Memory used", size(status.memory_bytes)),
        ("Clock", format!("{}, {clock}", words::moment(&now))),
        ("Running for", words::span(status.uptime_seconds)),
        ("Version", status.version.clone()),
        ("Facts held", format!("{} quads", words::number(status.store.quads))),
        (
            "Data on disk",
            words::size(status.store.journal_bytes.saturating_add(status.store.index_bytes)),
        ),
        ("Gateway", status.gateway_id.clone()),
    ]
}
