//! The output of all commands, and their exit statuses.
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use penstock_config::InvalidConfiguration;
use serde_json::Value;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The command failed.
pub(super) const STATUS_FAILED: u8 = 1;
/// The command line is wrong.
pub(super) const STATUS_USAGE: u8 = 2;
/// `EX_DATAERR` of sysexits(3): the data directory is damaged, or of a newer version.
pub(super) const STATUS_DATA: u8 = 65;
/// `EX_IOERR` of sysexits(3).
pub(super) const STATUS_IO: u8 = 74;
/// `EX_NOPERM` of sysexits(3).
pub(super) const STATUS_PERMISSION: u8 = 77;
/// `EX_CONFIG` of sysexits(3).
pub(super) const STATUS_CONFIGURATION: u8 = 78;

/// Builds an option without a value.
pub(super) fn flag_argument(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
}

/// Builds an option with a value.
pub(super) fn value_argument(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// Builds the option `--json`.
pub(super) fn json_flag() -> Arg {
    flag_argument("json", "Print JSON")
}

/// Builds the argument `FILE...`.
pub(super) fn files_argument(help: &'static str) -> Arg {
    Arg::new("FILE")
        .help(help)
        .required(true)
        .action(ArgAction::Append)
        .num_args(1..)
        .value_parser(value_parser!(PathBuf))
}

/// Returns the files of [`files_argument`].
pub(super) fn list_files(given: &ArgMatches) -> Vec<PathBuf> {
    given.get_many::<PathBuf>("FILE").into_iter().flatten().cloned().collect()
}

/// Runs `look` on each file of [`files_argument`], and prints the returned text. `look` gets the file and whether
/// [`json_flag`] is set, and returns whether the file is valid, and the text. The status is [`STATUS_FAILED`] if any
/// file is not valid.
pub(super) fn check_each_file(
    given: &ArgMatches,
    look: impl Fn(&Path, bool) -> (bool, String),
) -> ExitCode {
    let json = given.get_flag("json");
    let mut status = ExitCode::SUCCESS;
    for path in given.get_many::<PathBuf>("FILE").into_iter().flatten() {
        let (right, text) = look(path, json);
        if !right {
            status = STATUS_FAILED.into();
        }
        if let Err(failed) = print_result(&text) {
            return failed;
        }
    }
    status
}

/// Writes the result to standard output, with a line end. A closed pipe is not an error.
pub(super) fn print_result(text: &str) -> Result<(), ExitCode> {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.write_all(b"\n"))
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            print_error_line(&format!("penstock: standard output: {error}"));
            Err(STATUS_FAILED.into())
        }
        _ => Ok(()),
    }
}

/// Writes a line to standard error.
pub(super) fn print_error_line(text: &str) {
    // If standard error fails, there is nowhere left to report it.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Writes a prompt to standard error.
pub(super) fn print_prompt(text: &str) {
    // If standard error fails, there is nowhere left to report it.
    let _ = write!(std::io::stderr().lock(), "{text}");
}

/// Prints the result of a command, as text or with [`json_flag`] as JSON, or why it failed.
pub(super) fn print_outcome(
    given: &ArgMatches,
    outcome: Result<(String, Value), String>,
) -> ExitCode {
    print_text(
        outcome.map(|(text, json)| if given.get_flag("json") { json.to_string() } else { text }),
    )
}

/// Prints the answer of a command as `format` returns it, or with [`json_flag`] as JSON, or why it failed.
pub(super) fn print_answer(
    given: &ArgMatches,
    answer: Result<Value, String>,
    format: impl FnOnce(&Value) -> String,
) -> ExitCode {
    print_outcome(given, answer.map(|answer| (format(&answer), answer)))
}

/// Prints the result of a command, or why it failed.
pub(super) fn print_text(outcome: Result<String, String>) -> ExitCode {
    match outcome {
        Ok(text) => print_result(&text).map_or_else(|status| status, |()| ExitCode::SUCCESS),
        Err(why) => print_failure(&why),
    }
}

/// Writes to standard error why a command failed, and returns the exit status.
pub(super) fn print_failure(why: &impl std::fmt::Display) -> ExitCode {
    print_error_line(&format!("penstock: {why}"));
    STATUS_FAILED.into()
}

/// Writes all errors and warnings of the configuration to standard error.
pub(super) fn print_invalid_configuration(invalid: &InvalidConfiguration) {
    let count = format_count(invalid.errors.len() as u64, "error");
    let lines = invalid.list_lines().join("\n  ");
    print_error_line(&format!("penstock: the configuration has {count}:\n  {lines}"));
}

/// Formats a count with its noun: `1 export`, `2 exports`.
pub(super) fn format_count(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns the items of a list.
pub(super) fn items_of(list: &Value) -> &[Value] {
    list.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
}

/// Formats items as a table; `columns` are the headings and the members below them.
pub(super) fn format_table(columns: &[(&str, &str)], items: &[Value]) -> String {
    let headings = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
    let row = |item| columns.iter().map(|(_, member)| format_cell(item, member)).collect();
    let rows: Vec<Vec<String>> = std::iter::once(headings).chain(items.iter().map(row)).collect();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Formats a member of an item for a table.
pub(super) fn format_cell(item: &Value, member: &str) -> String {
    match item.get(member) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => "-".to_owned(),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => "no".to_owned(),
        Some(Value::Array(items)) => {
            let items = items
                .iter()
                .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
            items.collect::<Vec<_>>().join(", ")
        }
        Some(other) => other.to_string(),
    }
}

/// Shows the progress of opening a store on a terminal, once a second.
pub(super) fn show_replay_progress() -> impl FnMut(penstock_store::Progress) {
    show_each_second(|progress: penstock_store::Progress| {
        format!("replaying the journal: {} of {} frames", progress.done, progress.total)
    })
}

/// Shows a count on a terminal, once a second.
pub(super) fn show_count(what: &'static str) -> impl FnMut(u64) {
    show_each_second(move |count: u64| format!("{count} {what}"))
}

/// Shows a progress on a terminal as `format` returns it, once a second.
pub(super) fn show_each_second<P>(format: impl Fn(P) -> String) -> impl FnMut(P) {
    let terminal = std::io::stderr().is_terminal();
    let mut next = Instant::now() + Duration::from_secs(1);
    move |progress| {
        if terminal && Instant::now() >= next {
            print_error_line(&format(progress));
            next = Instant::now() + Duration::from_secs(1);
        }
    }
}
