//! The five modes.
use penstock_base::fault::{Fault, Kind};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What an ingestion does with what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Mode {
    /// Adds and never removes; a contradiction is a fault.
    #[default]
    Add,
    /// Makes each named object exactly what is given.
    Replace,
    /// Replaces the values of the fields present.
    Update,
    /// Removes the named objects.
    Delete,
    /// Stores nothing and answers what `Add` would.
    Validate,
}

impl Mode {
    /// The name, as the query parameter has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Replace => "REPLACE",
            Self::Update => "UPDATE",
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
    type Err = Fault;

    /// Reads the query parameter; its case counts.
    fn from_str(text: &str) -> Result<Self, Fault> {
        let all = [Self::Add, Self::Replace, Self::Update, Self::Delete, Self::Validate];
        all.into_iter()
            .find(|mode| mode.name() == text)
            .ok_or_else(|| {
                let shown = super::findings::excerpt(text);
                let meant = all.iter().find(|mode| mode.name().eq_ignore_ascii_case(text.trim()));
                let hint = meant.map_or_else(String::new, |mode| {
                    format!(" (did you mean {mode}? modes are written in capitals)")
                });
                Fault::new(
                    Kind::Malformed,
                    format!(
                        "Ingestion failed: {shown} is no mode{hint}; mode is one of ADD, REPLACE, UPDATE, DELETE, VALIDATE"
                    ),
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_is_read_by_its_name_and_nothing_else_is() {
        for mode in [Mode::Add, Mode::Replace, Mode::Update, Mode::Delete, Mode::Validate] {
            assert_eq!(mode.name().parse::<Mode>(), Ok(mode));
        }
        for wrong in ["add", "", "PATCH", " ADD"] {
            let fault = wrong.parse::<Mode>().unwrap_err();
            assert_eq!(fault.kind, Kind::Malformed);
            assert!(fault.detail.starts_with("Ingestion failed: "), "{}", fault.detail);
        }
        for (near, meant) in [("add", "ADD"), ("Replace", "REPLACE"), (" DELETE", "DELETE")] {
            let fault = near.parse::<Mode>().unwrap_err();
            assert!(fault.detail.contains(&format!("did you mean {meant}?")), "{}", fault.detail);
        }
        assert!(!"PATCH".parse::<Mode>().unwrap_err().detail.contains("did you mean"));
    }
}
