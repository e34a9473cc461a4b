//! The configuration: one flat space of dotted names, read from files, the environment, credentials
//! and the command line.
//!
//! `table` lists every setting (name, type, default, meaning), `name` knows how it may be spelled,
//! `kind` what its value may be; `sources` gathers the values with their origins (`yaml` and
//! `properties` read the files), `load` merges and checks them, `build` (`security` for who may come
//! in) makes [`Settings`], which is what the rest of the program sees.
//!
//! What wins, from the weakest: the default; `application.yaml`, `.yml`, `.properties` of the working
//! directory, then those of `/etc/penstock`; `application-<profile>.*` of both for each active profile
//! in turn; the environment; files in `$CREDENTIALS_DIRECTORY`; `--name=value`. An empty value counts as
//! not given, so that it brings the default back.

#[cfg(test)]
mod document;
mod fault;
mod kind;
mod load;
mod name;
mod properties;
mod security;
mod settings;
mod sources;
mod table;
mod typed;
mod window;
mod yaml;

pub use fault::ConfigFault;
pub use kind::{Kind, check_bucket_name};
pub use load::{Loaded, check_file, load};
pub use settings::{
    Claims, ClientAuthentication, Compression, Effective, ForwardHeaders, GraphqlLimits, Limits,
    Oidc, ResourceServer, RoleValues, Security, Server, SessionLimits, Settings, Target,
    TargetKind, Targets, Times, Tls,
};
pub use sources::Sources;
pub use table::{Setting, TABLE};
pub use window::{NoWindow, Window};

/// Whether an argument of the command line, as far as its `=`, is the name of a setting: there is a dot
/// in it, or it is a known name without one.
pub fn is_setting_argument(argument: &str) -> bool {
    let Some(rest) = argument.strip_prefix("--") else { return false };
    let name = rest.split('=').next().unwrap_or_default();
    name.contains('.') || name::resolve(name).is_some()
}
