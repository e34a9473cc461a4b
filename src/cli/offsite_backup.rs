//! `penstock offsite-backup list|check|new-key|take-over`: the continuous backup in a bucket.
use super::{control, data_dir, output, serve};
use clap::{Arg, ArgMatches, Command};
use hyper::Method;
use penstock_auth::audit;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_config::Settings;
use penstock_export::backup::{
    self, BackupReader, CheckFinding, CheckedBackup, GeneratedKey, ListedBackup, ListedEra,
};
use penstock_service::gateway::{data_events, find_gateway_id};
use serde_json::{Value, json};
use std::process::ExitCode;

/// The bucket cannot be read, so nothing is known about the backup.
const STATUS_UNREADABLE: u8 = 3;

/// The setting that `--from` sets.
const TARGET_ARGUMENT: &str = "--service.backup.target";

pub(super) fn from_argument() -> Arg {
    output::value_argument(
        "from",
        "BUCKET",
        "The bucketName of the target that has the continuous backup",
    )
}

pub(super) fn gateway_argument() -> Arg {
    output::value_argument(
        "gateway",
        "ID",
        "The id of the gateway; without it service.gateway-id, that in the data directory, or the only one in the bucket",
    )
}

pub(super) fn era_argument() -> Arg {
    output::value_argument("era", "ERA", "An era, as list names it")
}

pub(super) fn build_command() -> Command {
    let place = |command: Command| {
        command.arg(from_argument().required(true)).arg(gateway_argument()).arg(output::json_flag())
    };
    Command::new("offsite-backup")
        .about("List and check the continuous backup, create its key, and take it over")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .override_usage("penstock offsite-backup <list|check|new-key|take-over> [--name=value]...")
        .subcommands([
            place(Command::new("list").about("List what can be restored")).after_help(
                "Example:\n  penstock offsite-backup list --from vault --gateway edge-1",
            ),
            place(Command::new("check").about("Download and verify all eras, or only one"))
                .arg(era_argument())
                .after_help(
                    "It needs service.backup.key, the age identity. Older eras with another key are named, and checked \
                     with their own key and --era.\n\nExit status: 0 the backup is whole, 1 there are \
                     findings, 3 the bucket cannot be read.\n\nExample:\n  \
                     penstock offsite-backup check --from vault --gateway edge-1",
                ),
            Command::new("new-key")
                .about("Create a key, and print it")
                .arg(output::json_flag())
                .after_help(
                    "The text is a file of identities for age. Either its identity (AGE-SECRET-KEY-1...) or its recipient \
                     (age1...) is service.backup.key. Without the identity nobody can read the backup: keep it outside of \
                     the gateway.\n\nExample:\n  penstock offsite-backup new-key > backup-key.txt",
                ),
            Command::new("take-over")
                .about("Let this gateway continue the backup, whichever gateway wrote it last")
                .after_help(
                    "It begins a new era: at once if the service runs, otherwise at the next start. Stop the other gateway \
                     first.\n\nExample:\n  penstock offsite-backup take-over --service.data-dir=data",
                ),
        ])
        .after_help(
            "docs/backup.md describes the continuous backup.\n\nExamples:\n  \
             penstock offsite-backup new-key > backup-key.txt\n  penstock offsite-backup list --from vault",
        )
}

pub(super) fn run(given: &ArgMatches, arguments: Vec<String>) -> ExitCode {
    match given.subcommand() {
        Some(("list", given)) => BackupPlace::load(given, arguments, output::STATUS_FAILED)
            .map_or_else(|failed| failed, |place| list_backup(given, &place)),
        Some(("check", given)) => BackupPlace::load(given, arguments, STATUS_UNREADABLE)
            .map_or_else(|failed| failed, |place| check_backup(given, &place)),
        Some(("new-key", given)) => match arguments.first() {
            None => output::print_outcome(given, Ok(describe_new_key(&backup::generate_key()))),
            Some(setting) => {
                output::print_error_line(&format!(
                    "penstock offsite-backup new-key accepts no settings; remove {setting}"
                ));
                output::STATUS_USAGE.into()
            }
        },
        Some(("take-over", _)) => match data_dir::load_settings(arguments) {
            Ok(settings) => output::print_text(take_over(&settings).map(str::to_owned)),
            Err(failed) => failed,
        },
        _ => output::STATUS_USAGE.into(),
    }
}

/// The continuous backup of a gateway, and the settings that lead to it.
pub(super) struct BackupPlace {
    pub(super) settings: Settings,
    /// The bucketName.
    pub(super) bucket: String,
    /// The id of the gateway.
    pub(super) gateway: String,
    pub(super) reader: BackupReader,
}

impl BackupPlace {
    /// Loads the settings, with the bucket of `--from` as the target of the backup.
    ///
    /// # Errors
    /// The exit status, after the cause is printed: `unreadable` if the bucket cannot be read.
    pub(super) fn load(
        given: &ArgMatches,
        mut arguments: Vec<String>,
        unreadable: u8,
    ) -> Result<Self, ExitCode> {
        let Some(bucket) = given.get_one::<String>("from").cloned() else {
            return Err(output::STATUS_USAGE.into());
        };
        // Without a key only a backup that is not encrypted can be read; an encrypted one is refused by its head.
        arguments.push(format!("{TARGET_ARGUMENT}={bucket}"));
        arguments.push("--service.backup.insecure=true".to_owned());
        let settings = data_dir::load_settings_with(arguments, |error| {
            if error.origin.as_deref() == Some(TARGET_ARGUMENT) {
                (error.name, error.origin) = (Some("--from".to_owned()), None);
            }
        })?;
        let opened = find_gateway(given, &settings, &bucket).and_then(|gateway| {
            let key = settings.backup.as_ref().and_then(|backup| backup.key.as_deref());
            let (targets, dir) = (&settings.targets, &settings.data_dir);
            Ok((BackupReader::of_target(targets, dir, &bucket, &gateway, key)?, gateway))
        });
        match opened {
            Ok((reader, gateway)) => Ok(Self { settings, bucket, gateway, reader }),
            Err(error) => Err(print_reader_failure(&error, unreadable)),
        }
    }
}

/// Writes to standard error why a backup could not be used, and returns the exit status: `unreadable` if the bucket cannot
/// be read. Anything else says what is wrong with the backup, or with the arguments.
fn print_reader_failure(error: &GatewayError, unreadable: u8) -> ExitCode {
    let failed = output::print_failure(error);
    if error.class == ErrorClass::Internal { unreadable.into() } else { failed }
}

/// Returns the id of the gateway: the given one, that of the settings or the data directory, or the only one that has a
/// backup in the bucket.
fn find_gateway(
    given: &ArgMatches,
    settings: &Settings,
    bucket: &str,
) -> Result<String, GatewayError> {
    let known = given.get_one::<String>("gateway").cloned().or_else(|| find_gateway_id(settings));
    if let Some(gateway) = known {
        return Ok(gateway);
    }
    let mut found = BackupReader::list_gateways(&settings.targets, &settings.data_dir, bucket)?;
    if found.len() == 1 {
        return Ok(found.remove(0));
    }
    let detail = format!(
        "the target {bucket} has backups of several gateways: {}; add --gateway ID",
        found.join(", ")
    );
    Err(GatewayError::new(ErrorClass::Invalid, detail))
}

/// Prints what there is.
fn list_backup(given: &ArgMatches, place: &BackupPlace) -> ExitCode {
    match place.reader.list() {
        Ok(listed) => {
            output::print_outcome(given, Ok((list_to_text(&listed), list_to_json(&listed))))
        }
        Err(error) => output::print_failure(&error),
    }
}

fn list_to_text(listed: &ListedBackup) -> String {
    let ListedBackup { gateway, era, last_sequence, last_at, restorable, key, .. } = listed;
    let or_none = |text: Option<&str>| text.unwrap_or("none").to_owned();
    let last = last_sequence.map_or_else(|| "-".to_owned(), |last| last.to_string());
    let rows: Vec<Value> = listed.eras.iter().map(era_to_row).collect();
    let columns = [
        ("Era", "era"),
        ("Begun at", "begunAt"),
        ("Begins after", "begin"),
        ("Continues", "continues"),
        ("Bases at", "bases"),
        ("Segments", "segments"),
        ("Last commit", "last"),
        ("Bytes", "bytes"),
        ("Missing", "missing"),
    ];
    format!(
        "Gateway:              {gateway}\nEra that counts:      {}\nEra to restore:       {}\nLast commit:          {last}, committed by {}\nKey fingerprint:      {}\n\n{}",
        or_none(era.as_deref()),
        or_none(restorable.as_deref()),
        or_none(last_at.as_deref()),
        or_none(key.as_deref()),
        output::format_table(&columns, &rows)
    )
}

/// Describes an era for a table.
fn era_to_row(era: &ListedEra) -> Value {
    let continues = era.continues.as_ref().map(|(era, last)| format!("{era} up to {last}"));
    let missing: Vec<String> =
        era.missing.iter().map(|(from, to)| format!("{from} to {to}")).collect();
    json!({
        "era": era.id,
        "begunAt": era.begun_at,
        "begin": era.begin,
        "continues": continues,
        "bases": era.bases,
        "segments": era.segments,
        "last": era.last,
        "bytes": era.bytes,
        "missing": missing,
    })
}

fn list_to_json(listed: &ListedBackup) -> Value {
    let range = |(from, to): &(u64, u64)| json!({ "from": from, "to": to });
    let era = |era: &ListedEra| {
        let continues = era.continues.as_ref();
        json!({
            "id": era.id,
            "number": era.number,
            "begunAt": era.begun_at,
            "begin": era.begin,
            "continues": continues.map(|(era, last)| json!({ "era": era, "sequence": last })),
            "bases": era.bases,
            "segments": era.segments,
            "last": era.last,
            "bytes": era.bytes,
            "missing": era.missing.iter().map(range).collect::<Vec<_>>(),
        })
    };
    json!({
        "gateway": listed.gateway,
        "era": listed.era,
        "lastSequence": listed.last_sequence,
        "lastAt": listed.last_at,
        "restorable": listed.restorable,
        "key": listed.key,
        "storeFormat": listed.store_format,
        "eras": listed.eras.iter().map(era).collect::<Vec<_>>(),
    })
}

/// Checks the backup, and prints each finding at once.
fn check_backup(given: &ArgMatches, place: &BackupPlace) -> ExitCode {
    let json = given.get_flag("json");
    let mut gone = false;
    let mut show = output::show_count("objects were read");
    let era = given.get_one::<String>("era").map(String::as_str);
    let checked = place.reader.check(
        era,
        &mut |CheckFinding { key, cause, is_note }| {
            let line = if json {
                let member = if *is_note { "note" } else { "cause" };
                json!({ "key": key, member: cause }).to_string()
            } else {
                format!("{key}: {cause}")
            };
            gone |= output::print_result(&line).is_err();
        },
        &mut |checked| show(checked.bases + checked.segments),
    );
    let checked = match checked {
        Ok(checked) => checked,
        Err(error) => return print_reader_failure(&error, STATUS_UNREADABLE),
    };
    let (text, counts) = describe_checked(&checked);
    gone |= output::print_result(&if json { counts.to_string() } else { text }).is_err();
    if checked.findings == 0 && !gone { ExitCode::SUCCESS } else { output::STATUS_FAILED.into() }
}

/// Describes the result of a check as text and JSON.
fn describe_checked(checked: &CheckedBackup) -> (String, Value) {
    let CheckedBackup { eras, other_keys, bases, segments, frames, findings } = *checked;
    let count = output::format_count;
    let verdict = if findings == 0 { "whole".to_owned() } else { count(findings, "finding") };
    let others = match other_keys {
        0 => String::new(),
        others => format!("; not checked, because of another key: {}", count(others, "older era")),
    };
    let text = format!(
        "{verdict}: {}, and {} in {}, of {}{others}",
        count(bases, "base"),
        count(frames, "frame"),
        count(segments, "segment"),
        count(eras, "era")
    );
    let json = json!({
        "whole": findings == 0,
        "eras": eras,
        "otherKeys": other_keys,
        "bases": bases,
        "segments": segments,
        "frames": frames,
        "findings": findings,
    });
    (text, json)
}

/// Describes a new key as text, which is a file of identities for age, and as JSON.
fn describe_new_key(key: &GeneratedKey) -> (String, Value) {
    let GeneratedKey { identity, recipient } = key;
    let text = format!("# public key: {recipient}\n{identity}");
    (text, json!({ "identity": identity, "recipient": recipient }))
}

/// Takes the backup over: through the running service, or at its next start.
fn take_over(settings: &Settings) -> Result<&'static str, String> {
    let Some(backup) = &settings.backup else {
        return Err("there is no continuous backup: service.backup.target is not set".to_owned());
    };
    data_dir::check_exists(settings)?;
    let dir = &settings.data_dir;
    let runtime = serve::build_runtime().map_err(|error| error.to_string())?;
    let path = "/control/backup/take-over";
    if runtime.block_on(control::request_json(dir, Method::POST, path))?.is_some() {
        return Ok("The gateway begins a new era of its backup now.");
    }
    // Its lock excludes a service that does not answer.
    let store = data_dir::open_stopped_store(settings)?;
    let store = store.into();
    let event = data_events::take_over_event(&backup.target);
    let record = || audit::store_event_offline(&store, settings.limits.audit, &event);
    backup::request_take_over(dir, record).map_err(|error| error.to_string())?;
    Ok("The gateway begins a new era of its backup at its next start.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_one_are_singular() {
        let checked =
            CheckedBackup { eras: 1, other_keys: 1, bases: 1, segments: 2, frames: 1, findings: 1 };
        let (text, _) = describe_checked(&checked);
        let others = "not checked, because of another key: 1 older era";
        assert_eq!(
            text,
            format!("1 finding: 1 base, and 1 frame in 2 segments, of 1 era; {others}")
        );
    }
}
