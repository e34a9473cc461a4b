//! What is wrong with the configuration.
use std::fmt;

/// One fault: which setting, its value, where it comes from, and what is expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigFault {
    /// The setting; absent when a whole source cannot be read.
    pub name: Option<String>,
    /// Its value; a secret one is masked.
    pub value: Option<String>,
    /// Where the value comes from.
    pub origin: Option<String>,
    /// What is wrong, or what is expected.
    pub message: String,
}

impl ConfigFault {
    /// A source that cannot be read.
    pub(super) fn of_source(origin: String, message: String) -> Self {
        Self { name: None, value: None, origin: Some(origin), message }
    }

    /// A setting that is not given.
    pub(super) fn absent(name: String, message: String) -> Self {
        Self { name: Some(name), value: None, origin: None, message }
    }
}

impl fmt::Display for ConfigFault {
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
