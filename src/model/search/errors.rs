//! The errors of invalid searches.
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::nearest::find_nearest;

pub(super) fn unknown_field_error(name: &str, known: &[&str]) -> GatewayError {
    let hint = match find_nearest(name, known.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
    };
    invalid_search_error(format!("there is no field `{name}`{hint}"))
}

pub(super) fn invalid_search_error(detail: String) -> GatewayError {
    GatewayError::new(ErrorClass::Invalid, detail)
}
