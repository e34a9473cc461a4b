//! The audit events of changes.
use crate::audit::change_event;
use penstock_auth::Caller;
use penstock_auth::audit::Event;
use penstock_model::changes::{Change, ChangeAction};
use penstock_resources::change::ChangeState;

/// Builds the audit event of a step.
pub(super) fn step_event(
    by: &Caller,
    change: &Change,
    action: ChangeAction,
    comment: Option<&str>,
) -> Event {
    let what = match action {
        ChangeAction::Submit => "change.submitted",
        ChangeAction::Approve => "change.approved",
        ChangeAction::Reject => "change.rejected",
        ChangeAction::Withdraw => "change.withdrawn",
        ChangeAction::Rebase => "change.rebased",
    };
    let said = comment.map_or_else(String::new, |comment| format!(": {comment}"));
    change_event(by, what, format!("{}, version {}{said}", describe_change(change), change.version))
}

/// Builds the audit event of the publication of a change that changes objects of other Business Objects that require a
/// review.
pub(super) fn bypass_event(by: &Caller, change: &Change, names: &[String]) -> Event {
    let detail = format!(
        "{}, sent by {} with bypass=true, changed objects of the Business Objects {names:?}, without their review or validation",
        describe_change(change),
        change.author
    );
    change_event(by, "review.bypassed", detail)
}

/// Builds the audit event of a new change.
pub(crate) fn submission_event(by: &Caller, change: &Change) -> Event {
    let what =
        if change.state == ChangeState::Draft { "change.drafted" } else { "change.submitted" };
    let owners: Vec<String> = change.owners.iter().map(ToString::to_string).collect();
    let owners = match owners.as_slice() {
        [] => String::new(),
        owners => format!(", with the owners {}", owners.join(", ")),
    };
    let bypass = match change.bypassed.as_deref() {
        None => String::new(),
        Some([]) => ", with bypass=true".to_owned(),
        Some(names) => format!(", with bypass=true for the Business Objects {names:?}"),
    };
    change_event(by, what, format!("{}{owners}{bypass}", describe_change(change)))
}

/// Names a change in an audit event.
pub(super) fn describe_change(change: &Change) -> String {
    format!("{} of the Business Object {:?}", change.id, change.business_object_name)
}
