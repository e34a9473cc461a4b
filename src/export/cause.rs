//! Why a file did not get through, in words and by class: the class says how soon another attempt is
//! worth it, and whether the link is asked meanwhile.
use serde::Serialize;
use std::time::Duration;

/// What kind of failure it was; its name is that of the API and the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Nobody answers: no name, no route, nobody listens, no answer in time.
    Unreachable,
    /// The connection broke, or the answer stayed away.
    Broken,
    /// The server asks for patience, or has a fault of its own.
    Busy,
    /// The server does not know the credentials.
    Credentials,
    /// The bucket is not there.
    Bucket,
    /// The credentials may not write to the bucket.
    Policy,
    /// There is no room for more in the bucket.
    Quota,
    /// The certificate is not trusted, expired, or for another name.
    Certificate,
    /// The clocks of the gateway and of the server differ.
    Clock,
    /// The key is taken by an object that is not this export.
    Conflict,
    /// The gateway's own settings or files are in the way.
    Gateway,
    /// The server refuses for a reason that is not known here.
    Refused,
    /// No failure: the window closed.
    Closed,
}

impl Class {
    /// Whether time alone may mend it; else somebody has to.
    pub(super) fn passes(self) -> bool {
        matches!(self, Self::Unreachable | Self::Broken | Self::Busy)
    }

    /// Whether it is the link, so that it is worth asking whether that is back.
    pub(super) fn is_link(self) -> bool {
        matches!(self, Self::Unreachable | Self::Broken)
    }

    /// Whether the target was reached; `None` when that was not tried.
    pub(super) fn reached(self) -> Option<bool> {
        match self {
            Self::Unreachable | Self::Broken | Self::Certificate => Some(false),
            Self::Gateway | Self::Closed => None,
            _ => Some(true),
        }
    }
}

/// Why a file was not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// The kind.
    pub(super) class: Class,
    /// Why, in words, with the mend, without a secret.
    pub(super) cause: String,
    /// How long the server asks to be left alone.
    pub(super) patience: Option<Duration>,
    /// The server was asked to store the whole file, and it is not known or not noted how that ended: it may be
    /// there, or come yet.
    pub(super) unanswered: bool,
}

impl Failure {
    pub(super) fn new(class: Class, cause: impl Into<String>) -> Self {
        Self { class, cause: cause.into(), patience: None, unanswered: false }
    }

    /// The gateway itself is in the way.
    pub(super) fn gateway(cause: impl Into<String>) -> Self {
        Self::new(Class::Gateway, cause)
    }
}
