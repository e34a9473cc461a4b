//! The states of what pages show, in words, the same on every page. The macro `state` of `form.html` shows them.
use penstock_auth::AccountSource;
use penstock_resources::change::ChangeState;
use penstock_resources::export::{ExportKind, ExportStatus, Target};
use penstock_resources::gateway::{BackupState, BackupStatus};
use penstock_resources::source::{ConnectionStatus, SourceConnection};
use penstock_resources::validation::{Validation, ValidationState};
use penstock_resources::webhook::Webhook;

/// A state: the class of its label, and the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) class: &'static str,
    pub(super) words: &'static str,
}

/// What has a state.
pub(super) trait Labelled {
    /// Returns the state.
    fn label(&self) -> Label;
}

impl Labelled for ExportStatus {
    fn label(&self) -> Label {
        let (class, words) = match self {
            Self::Waiting => ("warn", "waiting for space"),
            Self::Queued => ("", "queued"),
            Self::Delivering => ("", "delivering"),
            Self::Delivered => ("good", "delivered"),
            Self::Blocked => ("bad", "blocked"),
            Self::Parked => ("warn", "parked"),
        };
        Label { class, words }
    }
}

impl Labelled for Target {
    fn label(&self) -> Label {
        let (class, words) = match self {
            Self { blocked: Some(_), .. } => ("bad", "blocked"),
            Self { paused: Some(_), depth: 1.., .. } => ("warn", "paused"),
            Self { depth: 1.., .. } => ("", "delivering"),
            Self { reachable: Some(true), .. } => ("good", "reachable"),
            Self { reachable: Some(false), .. } => ("warn", "unreachable"),
            _ => ("", "not used yet"),
        };
        Label { class, words }
    }
}

impl Labelled for Webhook {
    fn label(&self) -> Label {
        let (class, words) = match self {
            Self { disabled_since: Some(_), .. } => ("bad", "disabled"),
            Self { blocked: Some(_), .. } => ("bad", "blocked"),
            Self { waiting: 1.., .. } => ("", "delivering"),
            Self { last_delivery: Some(_), .. } => ("good", "reachable"),
            _ => ("", "not used yet"),
        };
        Label { class, words }
    }
}

impl Labelled for BackupStatus {
    fn label(&self) -> Label {
        let (class, words) = match self.state {
            BackupState::Starting => ("", "starting"),
            BackupState::FirstBase => ("warn", "sending the first base"),
            BackupState::Running if self.is_late() => ("warn", "behind"),
            BackupState::Running => ("good", "running"),
            BackupState::Blocked => ("bad", "blocked"),
            BackupState::Replaced => ("bad", "replaced"),
            BackupState::Copy => ("warn", "copy"),
        };
        Label { class, words }
    }
}

impl Labelled for SourceConnection {
    fn label(&self) -> Label {
        let (class, words) = match self.state {
            ConnectionStatus::Connected if self.error.is_some() => ("warn", "waiting"),
            ConnectionStatus::Connected => ("good", "connected"),
            ConnectionStatus::Disconnected => ("bad", "disconnected"),
            ConnectionStatus::Off => ("warn", "off"),
        };
        Label { class, words }
    }
}

impl Labelled for ChangeState {
    fn label(&self) -> Label {
        let (class, words) = match self {
            Self::Draft => ("", "draft"),
            Self::Submitted => ("warn", "waits for approval"),
            Self::Approved => ("good", "approved and published"),
            Self::Rejected => ("bad", "rejected"),
            Self::Withdrawn => ("", "withdrawn"),
        };
        Label { class, words }
    }
}

/// The state of a validation, or the result of a finished one.
impl Labelled for Validation {
    fn label(&self) -> Label {
        let counts = self.counts;
        let (class, words) = match self.state {
            ValidationState::Finished if counts.violation > 0 => ("bad", "violations"),
            ValidationState::Finished if counts.total() > 0 => ("warn", "warnings"),
            ValidationState::Finished => ("good", "conforms"),
            ValidationState::Failed => ("bad", "failed"),
            other => ("", other.name()),
        };
        Label { class, words }
    }
}

/// Returns the class of the label of a severity.
pub(super) fn severity_class(severity: &str) -> &'static str {
    match severity {
        "violation" => "bad",
        "warning" => "warn",
        _ => "",
    }
}

/// Returns the kind of an export in words.
pub(super) fn describe_export_kind(kind: ExportKind) -> &'static str {
    match kind {
        ExportKind::Full => "full",
        ExportKind::Incremental => "changes",
        ExportKind::Deleted => "deletions",
    }
}

/// Returns the type of a target in words.
pub(super) fn describe_target_kind(kind: &str) -> &'static str {
    match kind {
        "s3" => "S3 bucket",
        "sparql" => "SPARQL store",
        _ => "directory",
    }
}

/// Returns the version of MQTT that a source speaks.
pub(super) fn describe_protocol(protocol: Option<&str>) -> &'static str {
    match protocol {
        Some("3.1.1") => "MQTT 3.1.1",
        Some(_) => "MQTT 5",
        None => "–",
    }
}

/// Returns where an account comes from, in words.
pub(super) fn describe_account_source(source: AccountSource) -> &'static str {
    match source {
        AccountSource::BuiltIn => "Built in",
        AccountSource::OpenIdConnect => "OpenID Connect",
        AccountSource::ServiceAccount => "Access token",
        AccountSource::ApiKey => "API key",
    }
}
