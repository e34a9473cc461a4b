//! The decision about a change: whether it still applies, the steps that the viewer may take, and why a step was refused.
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_http::problem::Problem;
use penstock_model::changes::{Applicability, ChangeAction};
use salvo::http::StatusCode;

/// A step that was refused: what happened, why, and what to do.
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) heading: &'static str,
    pub(super) detail: String,
    pub(super) findings: Vec<String>,
    pub(super) remedy: &'static str,
}

/// Whether a change still applies.
pub(super) struct Verdict {
    pub(super) class: &'static str,
    pub(super) mark: &'static str,
    pub(super) heading: &'static str,
    pub(super) words: String,
}

/// A button of a step.
pub(super) struct ActionButton {
    pub(super) name: &'static str,
    pub(super) words: &'static str,
    pub(super) class: &'static str,
}

/// Returns whether the page of the change shows an error of a step, with the comment. A viewer who may not take the
/// step, or does not see the change any more, gets the error page.
pub(super) fn is_shown_with_change(class: ErrorClass) -> bool {
    !matches!(class, ErrorClass::Unauthorized | ErrorClass::Forbidden | ErrorClass::NotFound)
}

impl Refusal {
    pub(super) fn from_error(error: GatewayError, action: ChangeAction) -> Self {
        let class = error.class;
        let problem = Problem::from(error);
        Self {
            status: problem.status(),
            heading: match action {
                ChangeAction::Submit => "The change was not submitted.",
                ChangeAction::Approve => "The change was not approved, and nothing was published.",
                ChangeAction::Reject => "The change was not rejected.",
                ChangeAction::Withdraw => "The change was not withdrawn.",
                ChangeAction::Rebase => "The difference was not computed again.",
            },
            detail: match class {
                ErrorClass::PreconditionFailed => {
                    "It has changed since you opened this page.".to_owned()
                }
                _ => problem.detail().to_owned(),
            },
            findings: problem.errors().iter().map(ToString::to_string).collect(),
            remedy: match class {
                ErrorClass::PreconditionFailed => {
                    "This page shows it as it is now. Look at it again, and decide then."
                }
                _ => "This page shows the change as it is now, and what you can do.",
            },
        }
    }
}

/// Returns whether a step can succeed as things are now.
pub(super) fn is_useful(action: ChangeAction, applicability: Option<&Applicability>) -> bool {
    match (action, applicability) {
        (ChangeAction::Approve, Some(found)) => *found == Applicability::Applies,
        // A draft is submitted as it is.
        (ChangeAction::Rebase, Some(found)) => *found == Applicability::Differs,
        _ => true,
    }
}

impl From<ChangeAction> for ActionButton {
    fn from(action: ChangeAction) -> Self {
        let (words, class) = match action {
            ChangeAction::Submit => ("Submit for approval", ""),
            ChangeAction::Approve => ("Approve and publish", ""),
            ChangeAction::Reject => ("Reject", "danger plain"),
            ChangeAction::Withdraw => ("Withdraw", "danger plain"),
            ChangeAction::Rebase => ("Rebase: compute the difference again", "plain"),
        };
        Self { name: action.name(), words, class }
    }
}

impl Verdict {
    pub(super) fn from_applicability(found: Option<&Applicability>) -> Self {
        match found {
            Some(Applicability::Applies) => Self {
                class: "good",
                mark: "✓",
                heading: "It still applies.",
                words: "Approving it does exactly what this page shows.".to_owned(),
            },
            Some(Applicability::Differs) => Self {
                class: "warn",
                mark: "!",
                heading: "It would do something else now.",
                words: "Data that it depends on has changed since the difference was computed, so it cannot be approved. Rebase it: the gateway computes the difference again, and then look at it again."
                    .to_owned(),
            },
            Some(Applicability::Fails(error)) => {
                let findings = error.findings.iter().map(|finding| format!(" {finding}."));
                Self {
                    class: "bad",
                    mark: "✗",
                    heading: "It cannot be published as things are now.",
                    words: format!(
                        "The gateway would refuse it: {}.{} Correct the cause, or reject or withdraw the change and send a corrected one.",
                        error.detail,
                        findings.collect::<String>()
                    ),
                }
            }
            None => Self {
                class: "warn",
                mark: "!",
                heading: "Whether it still applies is not known now.",
                words: "The gateway cannot compute it at the moment. Open the page again later.".to_owned(),
            },
        }
    }
}
