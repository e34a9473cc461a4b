//! Reads the configuration: dotted names with values from files, the environment, credentials and the command line.
//!
//! - `table` declares every setting once: its field in [`Settings`], its name, type, default and meaning. `section` has the
//!   macro for that, and reads the fields.
//! - `name` defines the spellings of a name, `kind` the kinds of values, `valid` which texts are valid.
//! - `sources` reads the values with their origins; `yaml` and `properties` parse the files.
//! - `load` merges and checks the values.
//! - `checks` checks what depends on several settings; so do `security`, `targets`, `backup` and `mqtt`.
//! - `types` has the types of settings; `broker_url` and `webhooks` parse URLs and secrets.
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

mod backup;
mod broker_url;
mod checks;
#[cfg(test)]
mod document;
mod error;
mod graph_template;
mod key_template;
mod kind;
mod load;
mod mqtt;
mod name;
mod name_parts;
mod properties;
mod section;
mod security;
mod setting;
mod settings;
mod sources;
mod table;
mod targets;
mod types;
mod valid;
mod webhooks;
mod window;
mod yaml;

pub use broker_url::BrokerUrl;
pub use error::ConfigError;
pub use graph_template::{GraphTemplate, GraphTemplateError};
pub use key_template::{
    BACKUP_FOLDER, HEARTBEAT_FOLDER, KeyPart, KeyTemplate, KeyTemplateError, Placeholder,
};
pub use kind::Kind;
pub use load::{CheckedFile, InvalidConfiguration, Loaded, check_file, load};
pub use setting::Setting;
pub use sources::Sources;
pub use table::{
    Claims, EventLimits, GraphqlLimits, Limits, Oidc, ResourceServer, ReviewSettings, RoleValues,
    SETTINGS, Security, Server, SessionLimits, Settings, ShapesLimits, Source, Sparql,
    SparqlLimits, Subscription, Targets, Webhook,
};
pub use types::{
    Backup, ClientAuthentication, Compression, DeliveryWindow, EffectiveValue, ExportFormat,
    ForwardHeaders, SparqlLogin, SparqlProtocol, SparqlStore, Target, TargetKind, Tls,
};
pub use valid::is_endpoint;
pub use webhooks::{WebhookSecret, WebhookSecretError, display_origin};
pub use window::{Window, WindowParseError};

/// Returns the description of the effect of the setting with this name, as it is in [`SETTINGS`]; empty if there is none.
pub fn describe_setting(name: &str) -> &'static str {
    table::find_setting(name).map_or("", |setting| &*setting.meaning)
}

/// Whether a command-line argument, up to its `=`, is the name of a setting: it contains a dot, or it is a known
/// name without one.
pub fn is_setting_argument(argument: &str) -> bool {
    let Some(rest) = argument.strip_prefix("--") else { return false };
    let name = rest.split('=').next().unwrap_or_default();
    name.contains('.') || name::resolve_name(name).is_some()
}
