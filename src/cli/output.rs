//! What every command writes, and the statuses they end with.
use crate::config::ConfigFault;
use clap::{Arg, ArgAction};
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// It failed.
pub(super) const FAILED: u8 = 1;
/// The command line is wrong.
pub(super) const USED_WRONGLY: u8 = 2;
/// `EX_IOERR` of sysexits(3).
pub(super) const DISK: u8 = 74;
/// `EX_NOPERM` of sysexits(3).
pub(super) const PERMISSION: u8 = 77;
/// `EX_CONFIG` of sysexits(3).
pub(super) const CONFIGURATION: u8 = 78;

/// An option without a value.
pub(super) fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
}

/// `--json`
pub(super) fn json_flag() -> Arg {
    flag("json", "Answer in JSON")
}

/// Writes the answer to standard output, with a line end. A reader that went away has all it wanted.
pub(super) fn answer(text: &str) -> Result<(), ExitCode> {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.write_all(b"\n"))
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            say(&format!("penstock: standard output: {error}"));
            Err(FAILED.into())
        }
        _ => Ok(()),
    }
}

/// Writes a line to standard error.
pub(super) fn say(text: &str) {
    // There is nowhere left to report it to.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Says why a command failed.
pub(super) fn fail(why: &impl std::fmt::Display) -> ExitCode {
    say(&format!("penstock: {why}"));
    FAILED.into()
}

/// Says everything that is wrong with the configuration.
pub(super) fn configuration_faults(faults: &[ConfigFault]) {
    let count =
        if faults.len() == 1 { "a fault".to_owned() } else { format!("{} faults", faults.len()) };
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    say(&format!("penstock: the configuration has {count}:\n  {}", lines.join("\n  ")));
}

/// Tells on a terminal how far an opening store has come, once it takes longer than a second.
pub(super) fn progress() -> impl FnMut(penstock_store::Progress) {
    let terminal = std::io::stderr().is_terminal();
    let mut next = Instant::now() + Duration::from_secs(1);
    move |progress| {
        if terminal && Instant::now() >= next {
            say(&format!("replaying the journal: {} of {} frames", progress.done, progress.total));
            next = Instant::now() + Duration::from_secs(1);
        }
    }
}
