//! The protections of a stored definition that a new one must not leave out.
use crate::mapping::Mapping;
use crate::natural_key::check_omitted_key;
use crate::resource::{
    CompiledDefinition, Definition, check_omitted_approvers, check_omitted_review,
    check_omitted_validation,
};
use penstock_base::error::GatewayError;

/// Checks that a new definition leaves out no protection that the stored one has. The stored keys are known only with
/// its mapping, which is `None` if it does not compile.
///
/// # Errors
/// `ErrorClass::Unconfirmed`, which names all that it leaves out.
pub(super) fn check_omitted_protections(
    before: &Definition,
    mapping: Option<&Mapping>,
    new: &CompiledDefinition,
) -> Result<(), GatewayError> {
    let after = &new.definition;
    let checks = [
        mapping.map_or(Ok(()), |mapping| check_omitted_key(mapping, &new.mapping)),
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
