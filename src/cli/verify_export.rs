//! `penstock verify-export FILE...` checks export files; with `--bucket` it checks whole buckets.
use super::{data_dir, output};
use clap::{Arg, ArgAction, ArgMatches, Command};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_config::KeyTemplate;
use penstock_export::verify;
use penstock_export::walk::{self, BucketFinding, BucketLocation, ReadCredentials, WalkSummary};
use penstock_store::SEQUENCE_JUMP;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;

pub(super) fn build_command() -> Command {
    Command::new("verify-export")
        .about("Check export files, or a whole bucket for missing, duplicate, damaged and foreign objects")
        .override_usage(
            "penstock verify-export [--json] FILE...\n       \
             penstock verify-export --bucket NAME|URL|DIRECTORY... [--key TEMPLATE]... [--keys-only] [--json] [--name=value]...",
        )
        .arg(output::files_argument("Export files").required(false).required_unless_present("bucket").conflicts_with("bucket"))
        .arg(
            Arg::new("bucket")
                .long("bucket")
                .value_name("NAME|URL|DIRECTORY")
                .num_args(1..)
                .action(ArgAction::Append)
                .help("A bucketName of the configuration, https://HOST/BUCKET[/PREFIX], or a directory with a / in its name"),
        )
        .arg(
            Arg::new("key")
                .long("key")
                .value_name("TEMPLATE")
                .action(ArgAction::Append)
                .value_parser(|text: &str| {
                    text.parse::<KeyTemplate>().map_err(|error| format!("the template {error}"))
                })
                .requires("bucket")
                .help("Also accept keys of this template, as in service.export.targets.<bucketName>.key"),
        )
        .arg(output::flag_argument("keys-only", "Check only the keys for gaps and duplicates, without reading objects").requires("bucket"))
        .arg(output::json_flag().help("Print JSON, one object on a line"))
        .after_help(
            "Keys of the default template are always accepted, with a kind and without one as earlier versions wrote them, \
             and for a bucketName of the configuration those of its template. A file with the ending .jsonl is checked \
             together with the .meta.json beside it.\n\n\
             For a bucket given by its URL, set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION in the environment. \
             A bucket does not show whether exports after the last sequence are missing: see /api/v1/targets of the \
             gateway for the exports that still wait. docs/verify-export.md has the same check in a few lines of Python.\n\n\
             Exit status: 0 everything is complete and whole, 1 there are findings, or reading failed.\n\nExamples:\n  \
             penstock verify-export data/buckets/operations/Pumps/*.json\n  \
             penstock verify-export --json export.json\n  \
             penstock verify-export --bucket operations --service.data-dir=data\n  \
             penstock verify-export --bucket https://s3.example/plant-exports/edge-1 --json\n  \
             penstock verify-export --bucket /mnt/exports/operations --key '{prefix}{kind}/{name}/{sequence}.json'",
        )
}

pub(super) fn run(given: &ArgMatches, settings: &[String]) -> ExitCode {
    let Some(places) = given.get_many::<String>("bucket") else {
        if let Some(setting) = settings.first() {
            output::print_error_line(&format!(
                "penstock verify-export of files accepts no settings; remove {setting}"
            ));
            return output::STATUS_USAGE.into();
        }
        return output::check_each_file(given, check_file);
    };
    let options =
        CheckOptions { keys_only: given.get_flag("keys-only"), json: given.get_flag("json") };
    let templates: Vec<KeyTemplate> =
        given.get_many("key").into_iter().flatten().cloned().collect();
    let mut status = ExitCode::SUCCESS;
    let mut loaded = None;
    for name in places {
        let place = if name.contains("://") {
            location_of_url(name)
        } else if name.contains('/') {
            Ok(BucketLocation::of_directory(name.into()))
        } else {
            let settings = match loaded
                .take()
                .map_or_else(|| data_dir::load_settings(settings.to_vec()), Ok)
            {
                Ok(settings) => loaded.insert(settings),
                Err(failed) => return failed,
            };
            BucketLocation::of_target(&settings.targets, &settings.data_dir, name)
        };
        let place = place.map(|place| place.with_templates(templates.clone()));
        match place.and_then(|place| check_bucket(name, &place, options)) {
            Ok(Some(walked)) if walked.findings == 0 => {}
            Ok(Some(_)) => status = output::STATUS_FAILED.into(),
            // The reader closed the pipe.
            Ok(None) => return output::STATUS_FAILED.into(),
            Err(error) => status = output::print_failure(&format!("{name}: {error}")),
        }
    }
    status
}

fn location_of_url(url: &str) -> Result<BucketLocation, GatewayError> {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let reader = ReadCredentials {
        access_key_id: variable("AWS_ACCESS_KEY_ID"),
        secret_access_key: variable("AWS_SECRET_ACCESS_KEY"),
        region: Some(variable("AWS_REGION"))
            .filter(|region| !region.is_empty())
            .unwrap_or_else(|| "us-east-1".to_owned()),
    };
    if reader.access_key_id.is_empty() || reader.secret_access_key.is_empty() {
        return Err(GatewayError::new(
            ErrorClass::Invalid,
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to read the bucket",
        ));
    }
    BucketLocation::of_url(url, reader)
}

/// How a bucket is checked.
#[derive(Debug, Clone, Copy)]
struct CheckOptions {
    /// Whether only the keys are checked, and no object is read.
    keys_only: bool,
    /// Whether findings are printed as JSON.
    json: bool,
}

/// Checks one bucket, and prints each finding at once. Returns `None` if the reader closed the pipe.
fn check_bucket(
    name: &str,
    place: &BucketLocation,
    CheckOptions { keys_only, json }: CheckOptions,
) -> Result<Option<WalkSummary>, GatewayError> {
    let mut gone = false;
    let mut told = |line: String| gone |= output::print_result(&line).is_err();
    let mut show = output::show_each_second(|(objects, bytes): (u64, u64)| {
        format!("read {objects} objects, {bytes} bytes")
    });
    let mut progress = |objects, bytes| show((objects, bytes));
    let walked = walk::walk_bucket(place, keys_only, &mut progress, &mut |finding| {
        told(if json {
            finding_to_json(name, finding)
        } else {
            format!("{name}: {}", describe_finding(finding))
        });
    })?;
    if json {
        told(summary_to_json(name, &walked));
    } else {
        for folder in &walked.folders {
            let gateway =
                folder.gateway.as_ref().map(|gateway| format!(" of the gateway {gateway}"));
            told(format!(
                "{name}: {}: {}, the last with sequence {}{}",
                folder.folder,
                output::format_count(folder.exports, "export"),
                folder.last,
                gateway.unwrap_or_default()
            ));
        }
        let verdict = if walked.findings == 0 {
            "whole".to_owned()
        } else {
            output::format_count(walked.findings, "finding")
        };
        let read =
            if keys_only { "not read".to_owned() } else { format!("{} bytes", walked.bytes) };
        told(format!(
            "{name}: {verdict}: {}, {read}",
            output::format_count(walked.objects, "object")
        ));
    }
    Ok((!gone).then_some(walked))
}

fn summary_to_json(bucket: &str, walked: &WalkSummary) -> String {
    let folders = walked.folders.iter().map(|folder| {
        json!({
            "folder": folder.folder,
            "exports": folder.exports,
            "last": folder.last,
            "gateway": folder.gateway,
        })
    });
    let line = json!({
        "bucket": bucket,
        "whole": walked.findings == 0,
        "objects": walked.objects,
        "bytes": walked.bytes,
        "folders": folders.collect::<Vec<_>>(),
        "findings": walked.findings,
    });
    line.to_string()
}

fn finding_to_json(bucket: &str, finding: &BucketFinding) -> String {
    let line = match finding {
        BucketFinding::Gap { folder, from, to } => {
            json!({ "bucket": bucket, "finding": "gap", "folder": folder, "from": from, "to": to })
        }
        BucketFinding::Healed { folder, from, to, full } => json!({
            "bucket": bucket,
            "note": "healed",
            "folder": folder,
            "from": from,
            "to": to,
            "full": full,
        }),
        BucketFinding::Double { key, sequence } => {
            json!({ "bucket": bucket, "finding": "double", "key": key, "sequence": sequence })
        }
        BucketFinding::Damaged { key, cause } => {
            json!({ "bucket": bucket, "finding": "damaged", "key": key, "cause": cause })
        }
        BucketFinding::Foreign { key } => {
            json!({ "bucket": bucket, "finding": "foreign", "key": key })
        }
        BucketFinding::Mixed { key, gateway, expected } => json!({
            "bucket": bucket,
            "finding": "mixed",
            "key": key,
            "gateway": gateway,
            "expected": expected,
        }),
    };
    line.to_string()
}

fn describe_finding(finding: &BucketFinding) -> String {
    match finding {
        BucketFinding::Gap { folder, from, to } => {
            let remedy = if is_restore(*from, *to) { "; push the Business Object" } else { "" };
            format!("gap: {folder}: {}{remedy}", describe_missing(*from, *to))
        }
        BucketFinding::Healed { folder, from, to, full } => {
            let them = if from == to { "it" } else { "them" };
            let missing = describe_missing(*from, *to);
            format!("healed: {folder}: {missing}; the full export {full} replaces {them}")
        }
        BucketFinding::Double { key, sequence } => {
            format!("double: {key}: sequence {sequence} exists under another key too")
        }
        BucketFinding::Damaged { key, cause } => format!("damaged: {key}: {cause}"),
        BucketFinding::Foreign { key } => {
            format!(
                "foreign: {key}: this is not the key of an export; --key accepts keys of other templates"
            )
        }
        BucketFinding::Mixed { key, gateway, expected } => format!(
            "mixed: {key}: it comes from the gateway {gateway}, but others in this folder from {expected}"
        ),
    }
}

fn describe_missing(from: u64, to: u64) -> String {
    let cause = if is_restore(from, to) {
        "the gateway was restored"
    } else {
        "parked at the gateway, or removed"
    };
    if from == to {
        format!("sequence {from} is missing: {cause}")
    } else {
        format!("sequences {from} to {to} are missing: {cause}")
    }
}

/// Returns whether a restore has left out these sequences. Some after the backup can have been delivered, which shortens
/// the gap.
fn is_restore(from: u64, to: u64) -> bool {
    to - from >= SEQUENCE_JUMP / 2
}

fn check_file(path: &Path, json: bool) -> (bool, String) {
    let shown = path.display();
    match verify::verify_file(path) {
        Ok(verified) if json => {
            let line = json!({
                "file": shown.to_string(),
                "whole": true,
                "exportDate": verified.export_date,
                "objectType": verified.object_type,
                "objectCount": verified.object_count,
                "dataChecksum": verified.data_checksum,
            });
            (true, line.to_string())
        }
        Ok(verified) => {
            let text = format!(
                "{shown}: whole: {} of {}, exported {}, SHA-256 {}",
                output::format_count(verified.object_count, "object"),
                verified.object_type,
                verified.export_date,
                verified.data_checksum
            );
            (true, text)
        }
        Err(error) if json => (
            false,
            json!({ "file": shown.to_string(), "whole": false, "fault": error.to_string() })
                .to_string(),
        ),
        Err(error) if error.class == ErrorClass::Invalid => (false, format!("{shown}: {error}")),
        // The error names the file.
        Err(error) => (false, error.to_string()),
    }
}
