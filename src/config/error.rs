//! Errors in the configuration.
use std::fmt;

/// A configuration error: the setting, its value, where the value comes from, and what is expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The setting; `None` if a whole source cannot be read.
    pub name: Option<String>,
    /// Its value; secrets are masked.
    pub value: Option<String>,
    /// Where the value comes from.
    pub origin: Option<String>,
    /// What is wrong, or what is expected.
    pub message: String,
}

impl ConfigError {
    /// Creates the error for a source that cannot be read.
    pub(super) fn of_source(origin: String, message: String) -> Self {
        Self { name: None, value: None, origin: Some(origin), message }
    }

    /// Creates the error for a setting that is not set.
    pub(super) fn missing_value(name: String, message: String) -> Self {
        Self { name: Some(name), value: None, origin: None, message }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, &self.value) {
            (Some(name), Some(value)) => {
                write!(f, "{name} = {value}")?;
                if let Some(origin) = &self.origin {
                    write!(f, " (from {origin})")?;
                }
            }
            (Some(name), None) => f.write_str(name)?,
            (None, _) => f.write_str(self.origin.as_deref().unwrap_or("the configuration"))?,
        }
        write!(f, ": {}", self.message)
    }
}
