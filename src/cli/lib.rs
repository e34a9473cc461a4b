//! The command line: one file for each command.
//!
//! `--name=value` with a dot in the name is a setting and may be anywhere among the arguments; clap parses the rest.
//! The result goes to standard output, everything else to standard error.

mod api_key;
pub mod app;
mod apply;
mod backup;
mod check;
mod clock;
mod control;
mod data_dir;
mod demo;
mod derive;
mod dump;
mod export;
mod load;
mod namespace;
mod offsite_backup;
mod output;
mod owner;
mod query;
mod restore;
mod serve;
mod user;
mod validate;
mod verify;
mod verify_export;
mod version;

#[cfg(test)]
mod manual;

use clap::{ArgMatches, Command};
use nix::sys::stat::{Mode, umask};
use output::STATUS_USAGE;
use penstock_config::{self as config, Settings};
use std::ffi::OsString;
use std::process::ExitCode;

const ABOUT: &str = "A semantic data gateway for the edge: JSON in, RDF on disk, exports in order";

const AFTER_HELP: &str =
    "Settings are given as --name=value, in application.yaml, or in the environment; \
docs/configuration.md lists them.

Exit status: 0 success, 1 failure, 2 wrong command line; serve also 65, 74, 77 and 78, see \
penstock serve --help.";

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    // Other users never get write permission to files that Penstock creates.
    umask(umask(Mode::empty()) | Mode::S_IWGRP | Mode::S_IWOTH);
    let (settings, rest) = split_settings(std::env::args_os());
    let matches = match build_command().try_get_matches_from(rest) {
        Ok(matches) => matches,
        Err(error) => {
            // Help and version come here too. A reader that closed the pipe is not an error.
            let _ = error.print();
            return if error.use_stderr() { STATUS_USAGE.into() } else { ExitCode::SUCCESS };
        }
    };
    match matches.subcommand() {
        Some(("serve", _)) => serve::run(settings),
        Some(("demo", given)) => demo::run(given, settings),
        Some(("verify-export", given)) => verify_export::run(given, &settings),
        Some(("validate", given)) => validate::run(given, settings),
        Some(("restore", given)) => restore::run(given, settings),
        Some(("offsite-backup", given)) => offsite_backup::run(given, settings),
        Some((name, given)) => match (find_command(name), settings.first()) {
            (Some(run), _) => data_dir::load_settings(settings)
                .map_or_else(|failed| failed, |settings| run(given, &settings)),
            (None, Some(setting)) => {
                output::print_error_line(&format!(
                    "penstock {name} accepts no settings; remove {setting}"
                ));
                STATUS_USAGE.into()
            }
            (None, None) => match name {
                "check" => check::run(given),
                "derive" => derive::run(given),
                _ => version::run(given),
            },
        },
        None => STATUS_USAGE.into(),
    }
}

/// Returns how a command runs that needs the settings, and fails with status 1 if they are not valid.
fn find_command(name: &str) -> Option<fn(&ArgMatches, &Settings) -> ExitCode> {
    Some(match name {
        "user" => user::run,
        "api-key" => api_key::run,
        "export" => export::run,
        "clock" => clock::run,
        "verify" => verify::run,
        "backup" => backup::run,
        "dump" => dump::run,
        "query" => query::run,
        "apply" => apply::run,
        "load" => load::run,
        "namespace" => namespace::run,
        _ => return None,
    })
}

fn build_command() -> Command {
    Command::new("penstock")
        .about(ABOUT)
        .version(env!("CARGO_PKG_VERSION"))
        .after_help(AFTER_HELP)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            serve::build_command(),
            demo::build_command(),
            check::build_command(),
            derive::build_command(),
            verify_export::build_command(),
            user::build_command(),
            api_key::build_command(),
            export::build_command(),
            clock::build_command(),
            verify::build_command(),
            backup::build_command(),
            restore::build_command(),
            offsite_backup::build_command(),
            dump::build_command(),
            apply::build_command(),
            load::build_command(),
            query::build_command(),
            validate::build_command(),
            namespace::build_command(),
            version::build_command(),
        ])
}

/// Splits the arguments into settings and the rest. Arguments after `--` are never settings.
fn split_settings(arguments: impl Iterator<Item = OsString>) -> (Vec<String>, Vec<OsString>) {
    let mut settings = Vec::new();
    let mut rest = Vec::new();
    let mut open = true;
    for argument in arguments {
        open &= argument != "--";
        match argument.to_str() {
            Some(text) if open && config::is_setting_argument(text) => {
                settings.push(text.to_owned());
            }
            _ => rest.push(argument),
        }
    }
    (settings, rest)
}

#[cfg(test)]
mod tests {
    #[test]
    fn commands_are_consistent() {
        super::build_command().debug_assert();
    }

    #[test]
    fn settings_are_split_out() {
        let given = [
            "penstock",
            "--security=oauth2",
            "export",
            "list",
            "--json",
            "--service.x=a=b",
            "--",
            "--a.b",
        ];
        let (settings, rest) = super::split_settings(given.into_iter().map(Into::into));
        assert_eq!(settings, ["--security=oauth2", "--service.x=a=b"]);
        assert_eq!(rest, ["penstock", "export", "list", "--json", "--", "--a.b"]);
    }
}
