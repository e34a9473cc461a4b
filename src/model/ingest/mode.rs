//! Reads the query parameters `mode` and `onError`. Both are case-sensitive.
use super::findings::quote_excerpt;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::ingestion::{Mode, OnError};

/// Returns the mode with this name.
///
/// # Errors
/// `ErrorClass::Malformed` if there is none.
pub fn parse_mode(name: &str) -> Result<Mode, GatewayError> {
    Mode::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
        let shown = quote_excerpt(name);
        let meant = Mode::ALL.iter().find(|mode| mode.name().eq_ignore_ascii_case(name.trim()));
        let hint = meant.map_or_else(String::new, |mode| {
            format!(" (did you mean {mode}? modes are in capitals)")
        });
        GatewayError::new(
            ErrorClass::Malformed,
            format!(
                "Ingestion failed: {shown} is not a mode{hint}; mode is one of ADD, REPLACE, UPDATE, MERGE, DELETE, VALIDATE"
            ),
        )
    })
}

/// Returns what an ingestion does if an object has an error, by its name.
///
/// # Errors
/// `ErrorClass::Malformed` if the name is unknown.
pub fn parse_on_error(name: &str) -> Result<OnError, GatewayError> {
    match name {
        "abort" => Ok(OnError::Abort),
        "skip" => Ok(OnError::Skip),
        _ => Err(GatewayError::new(
            ErrorClass::Malformed,
            format!(
                "the query parameter onError is {}; it must be abort or skip",
                quote_excerpt(name)
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_names_of_modes_are_parsed() {
        for mode in Mode::ALL {
            assert_eq!(parse_mode(mode.name()), Ok(mode));
        }
        for wrong in ["add", "", "PATCH", " ADD"] {
            let error = parse_mode(wrong).unwrap_err();
            assert_eq!(error.class, ErrorClass::Malformed);
            assert!(error.detail.starts_with("Ingestion failed: "), "{}", error.detail);
        }
        for (near, meant) in [("add", "ADD"), ("Replace", "REPLACE"), (" DELETE", "DELETE")] {
            let error = parse_mode(near).unwrap_err();
            assert!(error.detail.contains(&format!("did you mean {meant}?")), "{}", error.detail);
        }
        assert!(!parse_mode("PATCH").unwrap_err().detail.contains("did you mean"));
    }
}
