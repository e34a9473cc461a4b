//! `penstock apply DIR`: applies the definitions in files.
use super::output::{self, flag_argument};
use super::{control, data_dir};
use clap::{Arg, ArgMatches, Command, value_parser};
use hyper::Method;
use penstock_auth::Authorized;
use penstock_base::error::GatewayError;
use penstock_config::Settings;
use penstock_resources::definitions::{AppliedDefinitions, ApplyAction, ApplyDefinitions};
use penstock_service::definitions::{ApplyOptions, apply_files, read_folder};
use penstock_service::gateway::Gateway;
use serde_json::{Value, json};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) fn build_command() -> Command {
    Command::new("apply")
        .about("Apply the definitions in files: namespaces, shapes graphs, groups, Business Objects")
        .override_usage("penstock apply DIR [--dry-run] [--prune] [--json] [--name=value]...")
        .arg(
            Arg::new("DIR")
                .help("The folder with the files: .yaml, .yml, .json, .ttl and .shex")
                .required(true)
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(flag_argument("dry-run", "Only show the difference"))
        .arg(flag_argument(
            "prune",
            "Delete definitions that files of this folder created and no file has any more, never data",
        ))
        .arg(output::json_flag())
        .after_help(
            "All files are applied in one commit, or none of them. Each has one definition or a list of them, as its PUT \
             takes it, with `kind`: BusinessObject, Namespace, Shapes or Group. Files and folder must belong to root or \
             the user of the service, and no other user may be able to write them.\n\n\
             The command asks the running service; if none runs, it opens the store itself.\n\n\
             Exit status: 0 applied, or nothing to do; 1 nothing was applied, with file, line and column of each error.\n\n\
             Examples:\n  penstock apply /etc/penstock/definitions --dry-run\n  \
             penstock apply definitions --prune --service.data-dir=data",
        )
}

pub(super) fn run(given: &ArgMatches, settings: &Settings) -> ExitCode {
    let Some(folder) = given.get_one::<PathBuf>("DIR") else { return output::STATUS_USAGE.into() };
    output::print_text(apply_folder(given, settings, folder))
}

fn apply_folder(given: &ArgMatches, settings: &Settings, folder: &Path) -> Result<String, String> {
    data_dir::check_exists(settings)?;
    let owner = std::fs::metadata(&settings.data_dir).map_or(0, |found| found.uid());
    let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
    // Read before this process may change to another user, who may lack the permission.
    let files = read_folder(&folder, owner).map_err(|error| error.to_string())?;
    let (is_dry_run, prunes) = (given.get_flag("dry-run"), given.get_flag("prune"));
    let mut asked = ApplyDefinitions {
        folder: folder.display().to_string(),
        files,
        dry_run: true,
        prune: Vec::new(),
        prune_all: prunes,
    };
    if prunes {
        // What is in the way of the files is deleted in this dry run too.
        asked.prune = send_files(settings, &asked)?.0.prunable;
        asked.prune_all = false;
    }
    if prunes && !is_dry_run {
        for id in &asked.prune {
            output::print_error_line(&format!("to be deleted: {} {:?}", id.kind, id.name));
        }
    }
    asked.dry_run = is_dry_run;
    let (report, answer) = send_files(settings, &asked)?;
    for warning in &report.warnings {
        output::print_error_line(&format!("penstock: warning: {warning}"));
    }
    Ok(if given.get_flag("json") { answer.to_string() } else { format_report(&report, &asked) })
}

/// Applies the files through the service, or in the store.
fn send_files(
    settings: &Settings,
    asked: &ApplyDefinitions,
) -> Result<(AppliedDefinitions, Value), String> {
    let body = json!(asked);
    let by_service = async |dir: &Path| {
        control::request_json_with_body(dir, Method::POST, "/control/definitions", Some(&body))
            .await
    };
    let by_store = async |gateway: &Gateway| {
        let options = ApplyOptions::of_request(asked);
        let report = apply_files(gateway, &Authorized::local(), &asked.files, &options)?;
        Ok::<_, GatewayError>(json!(report))
    };
    let answer = data_dir::perform_action(settings, by_service, by_store)?;
    let report = serde_json::from_value(answer.clone())
        .map_err(|error| format!("parsing the service's response failed: {error}"))?;
    Ok((report, answer))
}

/// Formats a line for each definition that changes, with its difference in a dry run, and a summary.
fn format_report(report: &AppliedDefinitions, asked: &ApplyDefinitions) -> String {
    let mut lines = Vec::new();
    for change in &report.changes {
        let reason = change.reason.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        lines.push(format!(
            "{} {} {:?} ({}){reason}",
            change.action.name(),
            change.id.kind,
            change.id.name,
            change.file
        ));
        lines.extend(change.difference.iter().map(|line| format!("  {line}")));
    }
    let count =
        |action: ApplyAction| report.changes.iter().filter(|one| one.action == action).count();
    let mut summary: Vec<String> = ApplyAction::ALL
        .into_iter()
        .map(|action| (action.name(), count(action)))
        .filter(|(_, count)| *count > 0)
        .map(|(action, count)| format!("{count} {action}"))
        .collect();
    summary.push(format!("{} unchanged", report.unchanged));
    let heading = if asked.dry_run { "Dry run, nothing was changed: " } else { "" };
    lines.push(format!("{heading}{}", summary.join(", ")));
    if asked.prune.is_empty() && !report.prunable.is_empty() {
        lines.push(format!(
            "--prune would delete {} definitions that no file has any more",
            report.prunable.len()
        ));
    }
    lines.join("\n")
}
