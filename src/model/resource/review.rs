//! The members `review` and `approvers` of a definition: which ingestions become changes, and who approves them.
use super::Definition;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::{Json, Members};
use penstock_base::principal::Principal;
use penstock_resources::business_object::Review;

/// The maximum number of approvers of a Business Object.
pub(super) const MAX_APPROVERS: usize = 100;

/// Reads the member `review` of a definition.
pub(super) fn read_review(members: &mut Members<'_>) -> Option<Review> {
    let parsed = Review::parse(&members.take_string("review")?);
    parsed.map_err(|why| members.add_finding("review", why)).ok()
}

/// Reads the member `approvers` of a definition.
pub(super) fn read_approvers(members: &mut Members<'_>) -> Option<Vec<Principal>> {
    let elements = members.take_array("approvers")?;
    let mut approvers = Vec::new();
    for (index, element) in elements.into_iter().enumerate() {
        let parsed = match element {
            Json::String(text) => Principal::parse(&text),
            other => Err(format!("expected a user or a group, not {}", other.kind_name())),
        };
        match parsed {
            Ok(approver) => approvers.push(approver),
            Err(why) => {
                let place = format!("{}/{index}", members.pointer_to("approvers"));
                members.findings().push(Finding::at_pointer(place, why));
            }
        }
    }
    Some(approvers)
}

impl Definition {
    /// Returns which ingestions become changes under review.
    pub fn review(&self) -> Review {
        self.review.unwrap_or_default()
    }

    /// Returns the users and groups that approve changes; none if Admins do.
    pub fn approvers(&self) -> &[Principal] {
        self.approvers.as_deref().unwrap_or_default()
    }

    /// Removes a `review` that is off and `approvers` without an element, so that they are stored as if left out.
    pub(crate) fn remove_empty_review(&mut self) {
        self.review = self.review.filter(|review| *review != Review::Off);
        self.approvers = self.approvers.take().filter(|approvers| !approvers.is_empty());
    }
}

/// Checks that a new definition does not leave out the `review` that the stored one has. `off` removes it.
///
/// # Errors
/// `ErrorClass::Unconfirmed`, which names it.
pub(crate) fn check_omitted_review(
    before: &Definition,
    after: &Definition,
) -> Result<(), GatewayError> {
    let Some(there) = before.review.filter(|_| after.review.is_none()) else { return Ok(()) };
    let removal = "\"off\"";
    Err(omitted_error("review", there.name(), removal))
}

/// Checks that a new definition does not leave out the `approvers` that the stored one has. An empty list removes them.
///
/// # Errors
/// `ErrorClass::Unconfirmed`, which names them.
pub(crate) fn check_omitted_approvers(
    before: &Definition,
    after: &Definition,
) -> Result<(), GatewayError> {
    let Some(there) = before.approvers.as_ref().filter(|_| after.approvers.is_none()) else {
        return Ok(());
    };
    let there: Vec<String> = there.iter().map(ToString::to_string).collect();
    Err(omitted_error("approvers", &format!("[{}]", there.join(", ")), "[]"))
}

fn omitted_error(member: &str, there: &str, removal: &str) -> GatewayError {
    let message = format!(
        "add `{member}`; or write `{removal}` to remove it, or send the request again with ?force=true"
    );
    GatewayError::with_findings(
        ErrorClass::Unconfirmed,
        format!("the definition leaves out `{member}`, which the stored one has: {there}"),
        vec![Finding::at_pointer(format!("/{member}"), message)],
    )
}
