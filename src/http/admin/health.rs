//! Is it well, and if not, why, in words.
use super::frame::Frame;
use super::words;
use jiff::Timestamp;
use penstock_base::Role;
use penstock_base::memory::Level;
use penstock_export::TargetState;
use penstock_service::gateway::status::Status;

/// A certificate that ends within so many seconds is worth a word.
const SOON: i64 = 30 * 24 * 60 * 60;

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
pub(super) struct Concern {
    weight: Weight,
    pub(super) heading: String,
    pub(super) words: String,
    /// Where more is said: a path without the prefix, and its words.
    pub(super) link: Option<(&'static str, &'static str)>,
}

impl Concern {
    fn new(weight: Weight, heading: impl Into<String>, words: impl Into<String>) -> Self {
        Self { weight, heading: heading.into(), words: words.into(), link: None }
    }

    fn at(self, path: &'static str, words: &'static str) -> Self {
        Self { link: Some((path, words)), ..self }
    }

    pub(super) fn class(&self) -> &'static str {
        match self.weight {
            Weight::Fault => "bad",
            Weight::Warning => "warn",
        }
    }

    pub(super) fn mark(&self) -> &'static str {
        match self.weight {
            Weight::Fault => "✗",
            Weight::Warning => "!",
        }
    }
}

/// Everything that is not as it should be, what is worst first. `first_password` is the id of the account
/// whose password is still the one in its file.
pub(super) fn concerns(
    status: &Status,
    first_password: Option<&str>,
    frame: &Frame,
) -> Vec<Concern> {
    let mut concerns = Vec::new();
    concerns.extend(store(status));
    concerns.extend(status.targets.iter().filter_map(target));
    concerns.extend(queue(status));
    concerns.extend(machine(status));
    if frame.may(Role::Admin) {
        concerns.extend(password(first_password, frame));
        if status.configuration_warnings > 0 {
            let count = words::many(status.configuration_warnings as u64, "warning", "warnings");
            let words = format!("The configuration gave {count} at the start.");
            let concern = Concern::new(Weight::Warning, "The configuration has oddities.", words);
            concerns.push(concern.at("/admin/settings", "Settings"));
        }
    }
    concerns.sort_by_key(|concern| concern.weight);
    concerns
}

fn store(status: &Status) -> Vec<Concern> {
    let mut concerns = Vec::new();
    if status.store.poisoned.is_some() {
        concerns.push(Concern::new(
            Weight::Fault,
            "The disk failed.",
            "A write did not succeed, so nothing is taken in. Reading and exporting go on, and the store \
             is opened anew by itself once the disk takes writes again; the log says why it does not.",
        ));
    }
    if status.disk.in_reserve {
        let free = status.disk.free_bytes.map(words::size).unwrap_or_default();
        let words = format!(
            "{free} are free, and {} are kept in reserve: nothing is taken in until there is room. \
             Reading, deleting and exporting go on.",
            words::size(status.disk.reserve_bytes)
        );
        concerns.push(Concern::new(Weight::Fault, "The disk is full.", words));
    }
    concerns
}

fn target(target: &TargetState) -> Option<Concern> {
    let why = target.blocked.as_ref()?;
    let since = target.blocked_since.as_deref().map(words::age).unwrap_or_default();
    let waiting = words::many(target.depth, "export waits", "exports wait");
    let heading = format!("{} takes nothing, for {since}.", target.name);
    let concern = Concern::new(Weight::Fault, heading, format!("{waiting} for it: {why}"));
    Some(concern.at("/admin/targets", "Targets"))
}

fn queue(status: &Status) -> Vec<Concern> {
    let (queue, disk) = (&status.queue, &status.disk);
    let mut concerns = Vec::new();
    if !queue.waiting.is_empty() {
        let words = format!(
            "{} of exports wait for their targets, and {} are the most that may. The exports by \
             themselves of {} are made when some are delivered; nothing of them is lost.",
            words::size(disk.spool_bytes),
            words::size(disk.spool_limit_bytes),
            queue.waiting.join(", ")
        );
        let concern = Concern::new(Weight::Fault, "The spool is full.", words);
        concerns.push(concern.at("/admin/exports", "Exports"));
    }
    if queue.parked > 0 {
        let heading = words::many(queue.parked, "export is parked.", "exports are parked.");
        let words = "Their targets have a gap until they are retried.";
        concerns
            .push(Concern::new(Weight::Warning, heading, words).at("/admin/exports", "Exports"));
    }
    concerns
}

fn machine(status: &Status) -> Vec<Concern> {
    let mut concerns = Vec::new();
    match status.memory.level {
        Level::Short => concerns.push(Concern::new(
            Weight::Fault,
            "Memory is short.",
            "Hardly any data is taken in until there is more; whoever sends it is told to try again.",
        )),
        Level::Low => concerns.push(Concern::new(
            Weight::Warning,
            "Memory is low.",
            "Three quarters of what the gateway may have are in use.",
        )),
        Level::Ample => {}
    }
    if status.clock.synchronised == Some(false) {
        concerns.push(Concern::new(
            Weight::Warning,
            "The clock follows no time server.",
            "Times in records and exports may be wrong, and access tokens may be refused.",
        ));
    }
    let ends = status.certificate.as_ref().and_then(|certificate| certificate.expires_at.as_ref());
    if let Some(ends) = ends
        && let Ok(at) = ends.parse::<Timestamp>()
    {
        let left = at.as_second() - Timestamp::now().as_second();
        if left <= 0 {
            concerns.push(Concern::new(
                Weight::Fault,
                "The certificate has expired.",
                "Clients refuse to connect; give the gateway another one.",
            ));
        } else if left < SOON {
            let left = words::span(left.unsigned_abs());
            let words =
                format!("Clients refuse to connect in {left}; give the gateway another one.");
            concerns.push(Concern::new(Weight::Warning, "The certificate expires soon.", words));
        }
    }
    concerns
}

fn password(first: Option<&str>, frame: &Frame) -> Option<Concern> {
    let concern = Concern::new(
        Weight::Warning,
        "The first password is still in use.",
        "It stands in a file on this machine. Set one of your own.",
    );
    Some(if first? == frame.account {
        concern.at("/admin/profile", "Change it")
    } else {
        concern.at("/admin/users", "Users")
    })
}
