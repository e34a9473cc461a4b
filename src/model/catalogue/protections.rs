//! The protections of a stored definition that a new one must not leave out.
use crate::natural_key::check_omitted_key;
use crate::resource::{
    Compiled, CompiledDefinition, check_omitted_approvers, check_omitted_review,
    check_omitted_validation,
};
use penstock_base::error::GatewayError;

/// Checks that a new definition leaves out no protection that the stored one has.
///
/// # Errors
/// `ErrorClass::Unconfirmed`, which names all that it leaves out.
pub(super) fn check_omitted_protections(
    there: &Compiled,
    new: &CompiledDefinition,
) -> Result<(), GatewayError> {
    let (before, after) = (&there.object.definition, &new.definition);
    let checks = [
        check_omitted_key(&there.mapping, &new.mapping),
        check_omitted_validation(before, after),
        check_omitted_review(before, after),
        check_omitted_approvers(before, after),
    ];
    let omitted = checks.into_iter().filter_map(Result::err).reduce(|mut one, other| {
        one.detail = format!("{}; {}", one.detail, other.detail);
        one.findings.extend(other.findings);
        one
    });
    omitted.map_or(Ok(()), Err)
}
