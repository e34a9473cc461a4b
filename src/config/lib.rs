//! Reads the configuration: dotted names with values from files, the environment, credentials and the command line.
//!
//! - `table` lists every setting: its name, type, default and meaning.
//! - `name` defines the spellings of a name, `kind` the valid values.
//! - `sources` reads the values with their origins; `yaml` and `properties` parse the files.
//! - `load` merges and checks the values.
//! - `typed` builds [`Settings`], which the rest of the program uses; `security` builds the part for authentication and
//!   authorization.
//! - `mqtt` builds the settings of sources and checks them, `webhooks` those of webhooks.
//! - `key_template` parses the templates of export keys, `window` times of day; `document` generates
//!   docs/configuration.md.
//!
//! The sources, from the lowest to the highest precedence:
//! 1. the default;
//! 2. `application.yaml`, `.yml`, `.properties` of the working directory, then those of `/etc/penstock`;
//! 3. `application-<profile>.*` of both, for each active profile in order;
//! 4. the environment;
//! 5. files in `$CREDENTIALS_DIRECTORY`;
//! 6. `--name=value`.
//!
//! An empty value counts as not set, which restores the default.

#[cfg(test)]
mod document;
mod error;
mod graph_template;
mod key_template;
mod kind;
mod load;
mod mqtt;
mod name;
mod properties;
mod security;
mod settings;
mod shared_graphs;
mod sources;
mod table;
mod typed;
mod webhooks;
mod window;
mod yaml;

pub use error::ConfigError;
pub use graph_template::{GraphTemplate, GraphTemplateError};
pub use key_template::{KeyPart, KeyTemplate, KeyTemplateError, Placeholder};
pub use kind::SettingKind;
pub use load::{CheckedFile, Loaded, check_file, load};
pub use mqtt::Source;
pub use settings::{
    Claims, ClientAuthentication, Compression, DeliveryWindow, EffectiveValue, ExportFormat,
    ForwardHeaders, GraphqlLimits, Limits, Oidc, ResourceServer, ReviewSettings, RoleValues,
    Security, Server, SessionLimits, Settings, Sparql, SparqlLimits, SparqlLogin, SparqlProtocol,
    SparqlStore, Target, TargetKind, Targets, Tls,
};
pub use sources::Sources;
pub use table::{SETTINGS, Setting};
pub use webhooks::{Webhook, WebhookSecret, WebhookSecretError, display_origin};
pub use window::{Window, WindowParseError};

/// Returns the description of the effect of the setting with this name, as it is in [`SETTINGS`]; empty if there is none.
pub fn describe_setting(name: &str) -> &'static str {
    table::find_setting(name).map_or("", |setting| setting.meaning)
}

/// Whether a command-line argument, up to its `=`, is the name of a setting: it contains a dot, or it is a known
/// name without one.
pub fn is_setting_argument(argument: &str) -> bool {
    let Some(rest) = argument.strip_prefix("--") else { return false };
    let name = rest.split('=').next().unwrap_or_default();
    name.contains('.') || name::resolve_name(name).is_some()
}
