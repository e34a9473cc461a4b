//! The configuration, from its sources to the typed settings.
mod azuread;
mod backup;
mod documentation;
mod errors;
mod properties;
mod security;
mod sources;
mod tls;
mod webhooks;

use penstock_config::{Loaded, Sources};
use std::path::Path;

/// Returns sources with these arguments.
fn with_arguments(arguments: &[&str]) -> Sources {
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    Sources { arguments, ..Sources::default() }
}

/// Returns sources with the files in this folder.
fn in_dir(dir: &Path) -> Sources {
    Sources { system_dir: dir.to_owned(), working_dir: dir.join("none"), ..Sources::default() }
}

/// Loads settings that must be valid.
#[track_caller]
fn loaded(sources: &Sources) -> Loaded {
    penstock_config::load(sources).unwrap_or_else(|invalid| panic!("{invalid:#?}"))
}

/// Returns the errors of settings that must not be valid.
#[track_caller]
fn load_errors(sources: &Sources) -> Vec<String> {
    penstock_config::load(sources).map_or_else(
        |invalid| invalid.errors.iter().map(ToString::to_string).collect(),
        |loaded| panic!("it loaded: {loaded:#?}"),
    )
}
