//! The modes of an ingestion.
use penstock_base::error::{ErrorClass, GatewayError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What an ingestion does with existing data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Mode {
    /// Adds values and never removes any; a contradiction is an error.
    #[default]
    Add,
    /// Replaces the values of all fields of the mapping. Fields that the request does not give become empty.
    Replace,
    /// Replaces the values of the fields that the request gives.
    Update,
    /// Creates objects, or replaces the values of the fields that the request gives (RFC 7396): `null` removes them.
    Merge,
    /// Removes the named objects.
    Delete,
    /// Stores nothing and returns the answer of `Add`.
    Validate,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 6] =
        [Self::Add, Self::Replace, Self::Update, Self::Merge, Self::Delete, Self::Validate];

    /// Returns the name as in the query parameter.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Replace => "REPLACE",
            Self::Update => "UPDATE",
            Self::Merge => "MERGE",
            Self::Delete => "DELETE",
            Self::Validate => "VALIDATE",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Mode {
    type Err = GatewayError;

    /// Parses the query parameter, which is case-sensitive.
    fn from_str(text: &str) -> Result<Self, GatewayError> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or_else(|| {
                let shown = super::findings::quote_excerpt(text);
                let meant = Self::ALL.iter().find(|mode| mode.name().eq_ignore_ascii_case(text.trim()));
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_names_of_modes_are_parsed() {
        for mode in Mode::ALL {
            assert_eq!(mode.name().parse::<Mode>(), Ok(mode));
        }
        for wrong in ["add", "", "PATCH", " ADD"] {
            let error = wrong.parse::<Mode>().unwrap_err();
            assert_eq!(error.class, ErrorClass::Malformed);
            assert!(error.detail.starts_with("Ingestion failed: "), "{}", error.detail);
        }
        for (near, meant) in [("add", "ADD"), ("Replace", "REPLACE"), (" DELETE", "DELETE")] {
            let error = near.parse::<Mode>().unwrap_err();
            assert!(error.detail.contains(&format!("did you mean {meant}?")), "{}", error.detail);
        }
        assert!(!"PATCH".parse::<Mode>().unwrap_err().detail.contains("did you mean"));
    }
}
