//! The member `validation` of a definition: the shapes graphs that validate the objects of a Business Object.
use super::Definition;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::{Json, Members};
use penstock_resources::business_object::{Validation, ValidationMode};

/// Reads the member `validation` of a definition.
pub(super) fn read_validation(members: &mut Members<'_>) -> Option<Validation> {
    let value = members.take("validation")?;
    let pointer = members.pointer_to("validation");
    let mut inner = Members::of_object(value, &pointer, members.findings())?;
    let shapes = read_names(&mut inner);
    let mode = match inner.take_string("mode").map(|name| ValidationMode::parse(&name)) {
        Some(Ok(mode)) => mode,
        Some(Err(why)) => {
            inner.add_finding("mode", why);
            ValidationMode::default()
        }
        None => {
            inner.report_missing("mode", "expected reject, warn or off");
            ValidationMode::default()
        }
    };
    inner.report_unknown();
    Some(Validation { shapes, mode })
}

fn read_names(members: &mut Members<'_>) -> Vec<String> {
    let Some(elements) = members.take_array("shapes") else {
        members.report_missing("shapes", "expected the names of shapes graphs in an array");
        return Vec::new();
    };
    let mut names = Vec::new();
    for (index, element) in elements.into_iter().enumerate() {
        match element {
            Json::String(name) => names.push(name),
            other => {
                let place = format!("{}/{index}", members.pointer_to("shapes"));
                let message =
                    format!("expected the name of a shapes graph, not {}", other.kind_name());
                members.findings().push(Finding::at_pointer(place, message));
            }
        }
    }
    names
}

impl Definition {
    /// Removes a `validation` that validates nothing and names nothing, so that it is stored as if it was left out.
    pub(crate) fn remove_empty_validation(&mut self) {
        self.validation = self.validation.take().filter(|given| *given != Validation::default());
    }
}

/// Checks that a new definition does not leave out the `validation` that the stored one has. An empty one removes it.
///
/// # Errors
/// `ErrorClass::Unconfirmed`, which names it.
pub(crate) fn check_omitted_validation(
    before: &Definition,
    after: &Definition,
) -> Result<(), GatewayError> {
    let Some(there) = before.validation.as_ref().filter(|_| after.validation.is_none()) else {
        return Ok(());
    };
    let message = "add `validation`; or write `{\"shapes\": [], \"mode\": \"off\"}` to remove it, or send the request \
                   again with ?force=true";
    let (mode, shapes) = (there.mode.name(), there.shapes.join(", "));
    Err(GatewayError::with_findings(
        ErrorClass::Unconfirmed,
        format!(
            "the definition leaves out `validation`, which the stored one has: {mode}, with [{shapes}]"
        ),
        vec![Finding::at_pointer("/validation", message)],
    ))
}
