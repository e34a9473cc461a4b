//! What to do about a failure of a target.
use penstock_resources::export::Cause;

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
