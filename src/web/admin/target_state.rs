//! The state of a target in words, the same on every page, and what to do about a failure.
use penstock_export::{FailureClass, TargetState, WebhookState};

/// The state of a target or webhook: the class of its label, and the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateLabel {
    pub(super) class: &'static str,
    pub(super) words: &'static str,
}

impl StateLabel {
    pub(super) fn of_target(target: &TargetState) -> Self {
        let (class, words) = match target {
            TargetState { blocked: Some(_), .. } => ("bad", "blocked"),
            TargetState { paused: Some(_), depth: 1.., .. } => ("warn", "paused"),
            TargetState { depth: 1.., .. } => ("", "delivering"),
            TargetState { reachable: Some(true), .. } => ("good", "reachable"),
            TargetState { reachable: Some(false), .. } => ("warn", "unreachable"),
            _ => ("", "not used yet"),
        };
        Self { class, words }
    }

    pub(super) fn of_webhook(webhook: &WebhookState) -> Self {
        let (class, words) = match webhook {
            WebhookState { disabled_since: Some(_), .. } => ("bad", "disabled"),
            WebhookState { blocked: Some(_), .. } => ("bad", "blocked"),
            WebhookState { waiting: 1.., .. } => ("", "delivering"),
            WebhookState { last_delivery: Some(_), .. } => ("good", "reachable"),
            _ => ("", "not used yet"),
        };
        Self { class, words }
    }
}

/// Returns the type of a target in words.
pub(super) fn describe_kind(kind: &str) -> &'static str {
    match kind {
        "s3" => "S3 bucket",
        "sparql" => "SPARQL store",
        _ => "directory",
    }
}

/// What probably recovers a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Remedy {
    pub(super) words: &'static str,
    /// The last parts of the names of the settings to check.
    pub(super) settings: &'static [&'static str],
}

impl Remedy {
    /// Returns the remedy for this class of failures of a target of this kind.
    pub(super) fn of_failure(class: FailureClass, kind: &str) -> Self {
        if kind == "directory" {
            return Self::of_directory(class);
        }
        let (words, settings): (_, &'static [&'static str]) = match class {
            FailureClass::Unreachable => (
                "Check that the server runs, that its name and port are right, and that this machine may connect to it: \
                 network, firewall, proxy (HTTPS_PROXY).",
                &["endpoint"],
            ),
            FailureClass::Broken => (
                "Check the network to the server. The gateway continues an interrupted upload at the next attempt.",
                &["endpoint"],
            ),
            FailureClass::Busy => {
                ("Nothing has to be done here: the gateway retries until the server recovers.", &[])
            }
            FailureClass::Credentials => (
                "Correct the credentials in the settings, or enable them again at the server.",
                &["access-key-id", "secret-access-key", "username", "password", "bearer-token"],
            ),
            FailureClass::Bucket => (
                "Create the bucket or the store at the server, or correct its name or address in the settings.",
                &["bucket", "endpoint", "protocol"],
            ),
            FailureClass::Policy => (
                "Allow these credentials to write there, at the server, or use others in the settings.",
                &["access-key-id", "username", "bucket", "endpoint"],
            ),
            FailureClass::Quota => (
                "Raise the limit at the server, or free space there. The gateway then continues.",
                &[],
            ),
            FailureClass::Certificate => (
                "Renew the certificate at the server, or trust its authority with ca-file.",
                &["ca-file", "endpoint"],
            ),
            FailureClass::Clock => (
                "Set the clock of this machine, or that of the server, and keep it synchronised (NTP).",
                &[],
            ),
            FailureClass::Conflict => (
                "Find out who wrote the other object. Remove it there, or park the export so that the next ones are \
                 delivered.",
                &["prefix", "key"],
            ),
            FailureClass::Gateway => (
                "Correct the settings or the folder of this machine that the cause names.",
                &["type", "path", "endpoint", "region", "bucket"],
            ),
            FailureClass::Refused => (
                "Look up the answer in the manual of the server, or ask its operator. Test the connection afterwards.",
                &["endpoint", "region", "bucket"],
            ),
            FailureClass::Closed => ("Nothing has to be done.", &[]),
        };
        Self { words, settings }
    }

    /// Returns the remedy for a directory, which has neither a server nor credentials.
    fn of_directory(class: FailureClass) -> Self {
        let (words, settings): (_, &'static [&'static str]) = match class {
            FailureClass::Policy => (
                "Let the user of the gateway write into the folder, or set another one. The cause says what prevents it.",
                &["path"],
            ),
            FailureClass::Quota => {
                ("Free space on the disk of the folder. The gateway then continues.", &["path"])
            }
            FailureClass::Conflict => (
                "Find out who wrote the other file. Remove it, or park the export so that the next ones are delivered.",
                &["path", "prefix", "key"],
            ),
            FailureClass::Closed => ("Nothing has to be done.", &[]),
            _ => (
                "Check that the folder is there, that its disk or network drive is mounted and works, and that no file is in \
                 its place.",
                &["path", "prefix", "type"],
            ),
        };
        Self { words, settings }
    }
}
