//! Settings, and the values that sources give them.
use super::error::ConfigError;
use super::kind::{Kind, PEM, RawValue, WEBHOOK_URL};
use super::webhooks::display_origin;
use penstock_base::files::is_pem;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A setting.
pub struct Setting {
    /// Its name. A part in angle brackets is a placeholder for any name.
    pub name: String,
    /// The kind of its value.
    pub kind: Kind<()>,
    /// Its default, in the form of a configuration file.
    pub default: Option<&'static str>,
    /// A description of its effect.
    pub meaning: Cow<'static, str>,
}

impl Setting {
    /// Whether it has an effect in a target of this type.
    pub fn applies_to(&self, target_type: &str) -> bool {
        let types = self.kind.target_types;
        types.is_empty() || types.contains(&target_type)
    }
}

/// The kind of a source, in the order of reading. Later kinds override earlier ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SourceKind {
    File(PathBuf),
    Environment,
    Credential,
    Argument,
}

/// A value of a setting, not yet parsed, and its origin.
#[derive(Clone)]
pub(super) struct RawSetting {
    pub(super) setting: &'static Setting,
    /// What replaces each `<...>` of the setting's name.
    pub(super) given: Vec<String>,
    pub(super) raw: RawValue,
    pub(super) origin: String,
    pub(super) source: Option<SourceKind>,
    /// Whether `raw` was collected from `name[0]`, `name[1]`, ... of one source.
    pub(super) is_indexed: bool,
}

impl RawSetting {
    /// Creates a value that comes from no source.
    pub(super) fn new(
        setting: &'static Setting,
        given: Vec<String>,
        raw: RawValue,
        origin: String,
    ) -> Self {
        Self { setting, given, raw, origin, source: None, is_indexed: false }
    }

    /// Returns the value for display, with secrets masked.
    pub(super) fn display_value(&self) -> String {
        if self.setting.kind.is_secret {
            return "******".to_owned();
        }
        let text = self.raw.to_string();
        if self.setting.kind.expected == WEBHOOK_URL {
            return format!("{:?}", format!("{}/******", display_origin(&text)));
        }
        // A URL can contain a password, even where none is allowed.
        match (text.find("://"), text.rfind('@')) {
            (Some(scheme), Some(at)) if scheme < at => {
                format!(
                    "{:?}",
                    text.replace(text.get(scheme + 3..at).unwrap_or_default(), "******")
                )
            }
            _ => format!("{text:?}"),
        }
    }

    /// Returns a warning if this is a secret that every user of the machine can read.
    pub(super) fn describe_exposure(&self, name: &str) -> Option<String> {
        let is_path = self.setting.kind.expected == PEM && !is_pem(&self.raw.to_string());
        (self.setting.kind.is_secret && !is_path && self.source == Some(SourceKind::Argument)).then(|| {
            format!(
                "{name} is a secret on the command line, where every user of this machine can read it; give it in \
                 an environment variable, in a file {name} in $CREDENTIALS_DIRECTORY, or in an application.yaml \
                 that only the service can read, and change the secret"
            )
        })
    }

    /// Creates an error about this value.
    pub(super) fn to_error(&self, name: &str, message: String) -> ConfigError {
        ConfigError {
            name: Some(name.to_owned()),
            value: Some(self.display_value()),
            origin: Some(self.origin.clone()),
            message,
        }
    }
}

/// The valid values of settings, by name.
pub(super) type Values = BTreeMap<String, RawSetting>;
