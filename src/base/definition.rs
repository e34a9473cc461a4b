//! What the definitions of all kinds have in common: their names, the conditions of their changes, and
//! how errors name them.
use crate::Preconditions;
use crate::characters::is_deceptive;
use crate::error::{ErrorClass, GatewayError};
use penstock_resources::definitions::DefinitionKind;

/// The maximum length of a name in characters, for the kinds that have no limit of their own.
pub const MAX_NAME_CHARACTERS: usize = 64;

/// Names a definition in an error.
pub fn describe_definition(kind: DefinitionKind, name: &str) -> String {
    format!("the {} {name:?}", kind.label())
}

/// Checks the conditions of a change of a definition whose stored version is `stored`, `None` if there is none.
///
/// # Errors
/// `ErrorClass::PreconditionFailed`.
pub fn check_conditions(
    kind: DefinitionKind,
    name: &str,
    stored: Option<u64>,
    conditions: Preconditions,
) -> Result<(), GatewayError> {
    conditions.check_version(stored, &describe_definition(kind, name))
}

/// Returns the error of a definition that does not exist.
pub fn missing_error(kind: DefinitionKind, name: &str) -> GatewayError {
    GatewayError::new(ErrorClass::NotFound, format!("there is no {} {name:?}", kind.label()))
}

/// Checks the name of a definition, which is a segment of its path. `forbidden` are the characters that it must not have,
/// besides deceptive ones.
///
/// # Errors
/// Returns the reason why the name is not valid.
pub fn check_name(
    kind: DefinitionKind,
    name: &str,
    max_characters: usize,
    forbidden: &[char],
) -> Result<(), String> {
    let why = if name.is_empty() {
        "it is empty".to_owned()
    } else if name.chars().count() > max_characters {
        format!("it has more than {max_characters} characters")
    } else if name.trim() != name {
        "it begins or ends with white space".to_owned()
    } else if name == "." || name == ".." {
        "URLs do not keep it as a path segment".to_owned()
    } else if let Some(c) = name.chars().find(|c| forbidden.contains(c) || is_deceptive(*c)) {
        format!("the character {c:?} is not allowed")
    } else {
        return Ok(());
    };
    Err(describe_bad_name(kind, name, &why))
}

/// Returns why a name cannot be that of a definition.
pub fn describe_bad_name(kind: DefinitionKind, name: &str, why: &str) -> String {
    format!("{name:?} cannot be the name of a {}: {why}", kind.label())
}
