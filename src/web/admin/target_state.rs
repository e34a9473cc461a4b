//! The state of a target in words, the same on every page, and what to do about a failure.
use penstock_resources::export::{Cause, Target};
use penstock_resources::webhook::Webhook;

/// The state of a target or webhook: the class of its label, and the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateLabel {
    pub(super) class: &'static str,
    pub(super) words: &'static str,
}

impl StateLabel {
    pub(super) fn of_target(target: &Target) -> Self {
        let (class, words) = match target {
            Target { blocked: Some(_), .. } => ("bad", "blocked"),
            Target { paused: Some(_), depth: 1.., .. } => ("warn", "paused"),
            Target { depth: 1.., .. } => ("", "delivering"),
            Target { reachable: Some(true), .. } => ("good", "reachable"),
            Target { reachable: Some(false), .. } => ("warn", "unreachable"),
            _ => ("", "not used yet"),
        };
        Self { class, words }
    }

    pub(super) fn of_webhook(webhook: &Webhook) -> Self {
        let (class, words) = match webhook {
            Webhook { disabled_since: Some(_), .. } => ("bad", "disabled"),
            Webhook { blocked: Some(_), .. } => ("bad", "blocked"),
            Webhook { waiting: 1.., .. } => ("", "delivering"),
            Webhook { last_delivery: Some(_), .. } => ("good", "reachable"),
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
    pub(super) fn of_failure(class: Cause, kind: &str) -> Self {
        if kind == "directory" {
            return Self::of_directory(class);
        }
        let (words, settings): (_, &'static [&'static str]) = match class {
            Cause::Unreachable => (
                "Check that the server runs, that its name and port are right, and that this machine may connect to it: \
                 network, firewall, proxy (HTTPS_PROXY).",
                &["endpoint"],
            ),
            Cause::Broken => (
                "Check the network to the server. The gateway continues an interrupted upload at the next attempt.",
                &["endpoint"],
            ),
            Cause::Busy => {
                ("Nothing has to be done here: the gateway retries until the server recovers.", &[])
            }
            Cause::Credentials => (
                "Correct the credentials in the settings, or enable them again at the server.",
                &["access-key-id", "secret-access-key", "username", "password", "bearer-token"],
            ),
            Cause::Bucket => (
                "Create the bucket or the store at the server, or correct its name or address in the settings.",
                &["bucket", "endpoint", "protocol"],
            ),
            Cause::Policy => (
                "Allow these credentials to write there, at the server, or use others in the settings.",
                &["access-key-id", "username", "bucket", "endpoint"],
            ),
            Cause::Quota => (
                "Raise the limit at the server, or free space there. The gateway then continues.",
                &[],
            ),
            Cause::Certificate => (
                "Renew the certificate at the server, or trust its authority with ca-file.",
                &["ca-file", "endpoint"],
            ),
            Cause::Clock => (
                "Set the clock of this machine, or that of the server, and keep it synchronised (NTP).",
                &[],
            ),
            Cause::Conflict => (
                "Find out who wrote the other object. Remove it there, or park the export so that the next ones are \
                 delivered.",
                &["prefix", "key"],
            ),
            Cause::Gateway => (
                "Correct the settings or the folder of this machine that the cause names.",
                &["type", "path", "endpoint", "region", "bucket"],
            ),
            Cause::Refused => (
                "Look up the answer in the manual of the server, or ask its operator. Test the connection afterwards.",
                &["endpoint", "region", "bucket"],
            ),
        };
        Self { words, settings }
    }

    /// Returns the remedy for a directory, which has neither a server nor credentials.
    fn of_directory(class: Cause) -> Self {
        let (words, settings): (_, &'static [&'static str]) = match class {
            Cause::Policy => (
                "Let the user of the gateway write into the folder, or set another one. The cause says what prevents it.",
                &["path"],
            ),
            Cause::Quota => {
                ("Free space on the disk of the folder. The gateway then continues.", &["path"])
            }
            Cause::Conflict => (
                "Find out who wrote the other file. Remove it, or park the export so that the next ones are delivered.",
                &["path", "prefix", "key"],
            ),
            _ => (
                "Check that the folder is there, that its disk or network drive is mounted and works, and that no file is in \
                 its place.",
                &["path", "prefix", "type"],
            ),
        };
        Self { words, settings }
    }
}
