//! The problems of the gateway, for the overview.
use super::backup::describe_lag;
use super::frame::Frame;
use super::words;
use jiff::Timestamp;
use penstock_base::Role;
use penstock_resources::export::Target;
use penstock_resources::gateway::{BackupState, BackupStatus, MemoryLevel, Status};
use penstock_resources::source::{ConnectionStatus, Source, SourceConnection};
use penstock_service::gateway::status::CERTIFICATE_WARNING_TIME;

/// The severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    /// Something does not work.
    Error,
    /// Something will fail soon, or needs attention.
    Warning,
}

/// One problem of the gateway.
#[derive(Debug)]
pub(super) struct Concern {
    severity: Severity,
    pub(super) heading: String,
    pub(super) words: String,
    /// A page with details: its path without the prefix, and its label.
    pub(super) link: Option<(String, &'static str)>,
}

impl Concern {
    fn new(severity: Severity, heading: impl Into<String>, words: impl Into<String>) -> Self {
        Self { severity, heading: heading.into(), words: words.into(), link: None }
    }

    fn with_link(self, path: impl Into<String>, words: &'static str) -> Self {
        Self { link: Some((path.into(), words)), ..self }
    }

    pub(super) fn class(&self) -> &'static str {
        match self.severity {
            Severity::Error => "bad",
            Severity::Warning => "warn",
        }
    }

    pub(super) fn mark(&self) -> &'static str {
        match self.severity {
            Severity::Error => "✗",
            Severity::Warning => "!",
        }
    }
}

/// Returns all problems, the most severe first. `configuration_warnings` is the number of warnings of the configuration,
/// and `first_password` the id of the account whose password is still the initial one, from its file.
pub(super) fn collect_concerns(
    status: &Status,
    configuration_warnings: usize,
    first_password: Option<&str>,
    frame: &Frame,
) -> Vec<Concern> {
    let mut concerns = Vec::new();
    concerns.extend(check_store(status));
    concerns.extend(status.targets.iter().filter_map(check_target));
    concerns.extend(status.sources.iter().flat_map(check_source));
    concerns.extend(status.backup.as_ref().and_then(check_backup));
    concerns.extend(check_queue(status));
    concerns.extend(check_rejected(status, frame));
    concerns.extend(check_machine(status));
    concerns.extend(check_definitions(status, frame));
    if frame.may(Role::Admin) {
        concerns.extend(check_initial_password(first_password, frame));
        if configuration_warnings > 0 {
            let count = words::format_count(configuration_warnings as u64, "warning", "warnings");
            let words = format!("The configuration caused {count} at the start.");
            let concern = Concern::new(Severity::Warning, "The configuration has warnings.", words);
            concerns.push(concern.with_link("/admin/settings", "Settings"));
        }
    }
    concerns.sort_by_key(|concern| concern.severity);
    concerns
}

/// Checks the definitions from files.
fn check_definitions(status: &Status, frame: &Frame) -> Vec<Concern> {
    let definitions = &status.definitions;
    let mut concerns = Vec::new();
    if let Some(error) = definitions.errors.first() {
        let words = format!("The definitions of the last good run stay. The first error: {error}");
        let heading = "The definition files were not applied.";
        concerns.push(Concern::new(Severity::Warning, heading, words));
    }
    // Settings also has those that no file has any more. They may stay so.
    let count = definitions.unwanted_count;
    if count > 0 {
        let count = words::format_count(count as u64, "definition was", "definitions were");
        let heading = "Definitions differ from their files.";
        let words = format!("{count} changed or deleted since the files were applied.");
        concerns.push(Concern::new(Severity::Warning, heading, words));
    }
    if frame.may(Role::Admin) {
        let link = |concern: Concern| concern.with_link("/admin/settings", "Settings");
        concerns = concerns.into_iter().map(link).collect();
    }
    concerns
}

fn check_store(status: &Status) -> Vec<Concern> {
    let mut concerns = Vec::new();
    if status.store.poisoned.is_some() {
        concerns.push(Concern::new(
            Severity::Error,
            "The disk failed.",
            "A write failed, so the gateway accepts no data. Reading and exporting still work. The store \
             reopens automatically when the disk accepts writes again; the log has the cause.",
        ));
    }
    if status.disk.in_reserve {
        let free = status.disk.free_bytes.map(words::format_size).unwrap_or_default();
        let words = format!(
            "{free} are free, and the reserve is {}: the gateway accepts no data until more is free. \
             Reading and exporting still work, and deleting unless almost nothing is free.",
            words::format_size(status.disk.reserve_bytes)
        );
        concerns.push(Concern::new(Severity::Error, "The disk is full.", words));
    }
    concerns
}

fn check_target(target: &Target) -> Option<Concern> {
    let why = target.blocked.as_ref()?;
    let since = target.blocked_since.as_deref().map(words::format_age).unwrap_or_default();
    let waiting = words::format_count(target.depth, "export waits", "exports wait");
    let heading = format!("{} has been blocked for {since}.", target.name);
    let concern =
        Concern::new(Severity::Error, heading, format!("{waiting} for this target: {why}"));
    Some(concern.with_link(format!("/admin/targets/{}", target.name), "Details and remedy"))
}

fn check_backup(backup: &BackupStatus) -> Option<Concern> {
    let concern = match (backup.state, &backup.cause) {
        (BackupState::Replaced, _) => Concern::new(
            Severity::Error,
            "Another gateway replaced this one.",
            "This one sends no exports, no events and no backup, and reads no sources.",
        ),
        (BackupState::Copy, _) => Concern::new(
            Severity::Warning,
            "This store is a copy for inspection.",
            "It sends nothing, and reads no sources.",
        ),
        (_, Some(cause)) => {
            let since = backup.cause_since.as_deref().map(words::format_age).unwrap_or_default();
            let heading = format!("The backup has been blocked for {since}.");
            Concern::new(Severity::Error, heading, cause.as_str())
        }
        (BackupState::Running | BackupState::FirstBase, None) if !backup.restorable => {
            Concern::new(
                Severity::Warning,
                "The first backup is not complete.",
                "Until its base is in the bucket, nothing of it can be restored.",
            )
        }
        (_, None) if backup.is_late() => Concern::new(
            Severity::Warning,
            "The backup is late.",
            format!(
                "It is {}, and {} wait for the link.",
                describe_lag(backup),
                words::format_size(backup.lag_bytes)
            ),
        ),
        _ => return None,
    };
    Some(concern.with_link("/admin/backup", "Backup"))
}

fn check_source(source: &Source) -> Vec<Concern> {
    let check = |connection: &SourceConnection| {
        let (name, object) = (&source.name, &connection.business_object);
        let heading = match (connection.state, &connection.error) {
            (ConnectionStatus::Connected, None) => return None,
            (ConnectionStatus::Connected, Some(_)) => {
                format!("Messages of the source {name} wait.")
            }
            (ConnectionStatus::Disconnected, _) => {
                format!("The source {name} is not connected.")
            }
            (ConnectionStatus::Off, _) => format!("The source {name} is off."),
        };
        let words = match &connection.error {
            _ if connection.state == ConnectionStatus::Off => {
                format!("{object} requires a review.")
            }
            Some(error) => format!("{object}: {error}"),
            None => format!("It has not connected for {object} yet."),
        };
        let concern = Concern::new(Severity::Error, heading, words);
        Some(concern.with_link(format!("/admin/sources/{name}"), "Details"))
    };
    source.connections.iter().filter_map(check).collect()
}

fn check_queue(status: &Status) -> Vec<Concern> {
    let (queue, disk) = (&status.queue, &status.disk);
    let mut concerns = Vec::new();
    if !queue.waiting.is_empty() {
        let words = format!(
            "{} of exports wait for their targets; the limit is {}. The automatic exports of {} \
             are created when some are delivered; no data is lost.",
            words::format_size(disk.spool_bytes),
            words::format_size(disk.spool_limit_bytes),
            queue.waiting.join(", ")
        );
        let concern = Concern::new(Severity::Error, "The spool is full.", words);
        concerns.push(concern.with_link("/admin/exports", "Exports"));
    }
    if !queue.failing.is_empty() {
        let names = queue.failing.join(", ");
        let words = format!("Those of {names} cannot be created. The gateway retries them.");
        let concern = Concern::new(Severity::Error, "Automatic exports fail.", words);
        concerns.push(concern.with_link("/admin/exports", "Exports"));
    }
    if queue.parked > 0 {
        let heading = words::format_count(queue.parked, "export is parked.", "exports are parked.");
        let words = "Their targets have a gap until they are retried. A full export replaces those that a restore parked.";
        concerns.push(
            Concern::new(Severity::Warning, heading, words).with_link("/admin/exports", "Exports"),
        );
    }
    concerns
}

fn check_rejected(status: &Status, frame: &Frame) -> Option<Concern> {
    let count = status.rejected.dead_letters;
    if count == 0 {
        return None;
    }
    let heading = words::format_count(count, "dead letter.", "dead letters.");
    let words = "Ingestions rejected these objects because of errors. Correct and retry them, or delete them.";
    let concern = Concern::new(Severity::Warning, heading, words);
    Some(if frame.may(Role::Contributor) {
        concern.with_link("/admin/rejected", "Dead letters")
    } else {
        concern
    })
}

fn check_machine(status: &Status) -> Vec<Concern> {
    let mut concerns = Vec::new();
    match status.memory.level {
        MemoryLevel::Short => concerns.push(Concern::new(
            Severity::Error,
            "Memory is short.",
            "The gateway refuses most data until more is free; clients can retry later.",
        )),
        MemoryLevel::Low => concerns.push(Concern::new(
            Severity::Warning,
            "Memory is low.",
            "Three quarters of the memory limit are in use.",
        )),
        MemoryLevel::Ample => {}
    }
    if status.clock.synchronised == Some(false) {
        concerns.push(Concern::new(
            Severity::Warning,
            "The clock is not synchronised.",
            "Times in records and exports may be wrong, and access tokens may be refused.",
        ));
    } else if let Some(time) = &status.clock.repeated_time {
        let words = format!(
            "New records repeat the time {time} of an earlier one until the clock has passed it. Rely on sequences."
        );
        let heading = "The clock is behind the times of earlier records.";
        concerns.push(Concern::new(Severity::Warning, heading, words));
    }
    let ends = status.certificate.as_ref().and_then(|certificate| certificate.expires_at.as_ref());
    if let Some(ends) = ends
        && let Ok(at) = ends.parse::<Timestamp>()
    {
        let left = at.as_second() - Timestamp::now().as_second();
        if left <= 0 {
            concerns.push(Concern::new(
                Severity::Error,
                "The certificate has expired.",
                "Clients refuse to connect; install a new one.",
            ));
        } else if left < CERTIFICATE_WARNING_TIME.as_secs() {
            let left = words::format_duration(left.unsigned_abs());
            let words = format!("Clients will refuse to connect in {left}; install a new one.");
            concerns.push(Concern::new(Severity::Warning, "The certificate expires soon.", words));
        }
    }
    concerns
}

fn check_initial_password(first: Option<&str>, frame: &Frame) -> Option<Concern> {
    let concern = Concern::new(
        Severity::Warning,
        "The initial password is still in use.",
        "It is in a file on this machine. Set your own password.",
    );
    Some(if first? == frame.account {
        concern.with_link("/admin/profile", "Change it")
    } else {
        concern.with_link("/admin/users", "Users")
    })
}
