//! `penstock clock show|reset`: what the gateway takes for the time.
use super::output::{self, USED_WRONGLY};
use super::{control, data_dir};
use clap::{ArgMatches, Command};
use hyper::Method;
use penstock_auth::Authorized;
use penstock_config::Settings;
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;

pub(super) fn command() -> Command {
    Command::new("clock")
        .about("See what the gateway takes for the time, and mend it")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .override_usage("penstock clock <show|reset> [--name=value]...")
        .subcommands([
            Command::new("show")
                .about("Show the time, and when the clock was last known to be right")
                .arg(output::json_flag())
                .after_help("Example:\n  penstock clock show --service.data-dir=data"),
            Command::new("reset")
                .about("Take what the system's clock says for the time from now on")
                .arg(output::json_flag())
                .after_help(
                    "The gateway never takes the time for earlier than it was when the system's clock was \
                     last synchronised. If that was wrong, since a time server was, access tokens and API \
                     keys seem to have expired: set the system's clock right, and reset.\n\n\
                     Example:\n  penstock clock reset --service.data-dir=data",
                ),
        ])
        .after_help(
            "While the service runs it is asked; otherwise the store is opened.\n\nExamples:\n  \
             penstock clock show --service.data-dir=data",
        )
}

pub(super) fn run(given: &ArgMatches, arguments: Vec<String>) -> ExitCode {
    let settings = match data_dir::settings(arguments) {
        Ok(settings) => settings,
        Err(failed) => return failed,
    };
    let Some((action, given)) = given.subcommand() else { return USED_WRONGLY.into() };
    let answer = match perform(action == "reset", settings) {
        Ok(answer) => answer,
        Err(why) => return output::fail(&why),
    };
    let text = if given.get_flag("json") { answer.to_string() } else { lines(&answer) };
    output::answer(&text).map_or_else(|status| status, |()| ExitCode::SUCCESS)
}

fn perform(resets: bool, settings: Settings) -> Result<Value, String> {
    let (method, path) = if resets {
        (Method::POST, "/control/clock/reset")
    } else {
        (Method::GET, "/control/clock")
    };
    let by_service = async |dir: &Path| control::request(dir, method, path).await;
    data_dir::perform(settings, by_service, |gateway| {
        if resets {
            gateway.clock.reset(&Authorized::local())?;
        }
        Ok(serde_json::to_value(gateway.clock.report()).unwrap_or_default())
    })
}

fn lines(report: &Value) -> String {
    let text = |name: &str| report.get(name).and_then(Value::as_str);
    let synchronised = match report.get("synchronised").and_then(Value::as_bool) {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not known: systemd-timesyncd does not run",
    };
    format!(
        "Time:              {}\nSystem's clock:    {}\nSynchronised:      {synchronised}\nLast known right:  {}",
        text("now").unwrap_or("-"),
        text("system").unwrap_or("-"),
        text("lastKnown").unwrap_or("never")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_report_is_told_in_lines() {
        let text =
            lines(&json!({"now": "a", "system": "b", "synchronised": null, "lastKnown": null}));
        assert!(text.contains("not known") && text.ends_with("never"), "{text}");
        let text =
            lines(&json!({"now": "a", "system": "b", "synchronised": true, "lastKnown": "c"}));
        assert!(text.contains("yes") && text.ends_with('c'), "{text}");
    }
}
