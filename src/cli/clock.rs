//! `penstock clock show|reset`: the gateway's time.
use super::output::{self, STATUS_USAGE};
use super::{control, data_dir};
use clap::{ArgMatches, Command};
use hyper::Method;
use penstock_auth::Authorized;
use penstock_config::Settings;
use penstock_service::gateway::Gateway;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

pub(super) fn build_command() -> Command {
    Command::new("clock")
        .about("Show the gateway's time, and correct it")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .override_usage("penstock clock <show|reset> [--name=value]...")
        .subcommands([
            Command::new("show")
                .about("Show the time, and when the clock was last known to be right")
                .arg(output::json_flag())
                .after_help("Example:\n  penstock clock show --service.data-dir=data"),
            Command::new("reset")
                .about("Use the time of the system's clock from now on")
                .arg(output::json_flag())
                .after_help(
                    "The gateway's time is never earlier than it was when the system's clock was last \
                     synchronised. If the time server was wrong then, access tokens and API keys seem to \
                     have expired: correct the system's clock, then reset.\n\n\
                     The times of ingestions, exports and definitions never go back, also not by a reset: new ones \
                     repeat the latest time until the clock has passed it.\n\n\
                     Example:\n  penstock clock reset --service.data-dir=data",
                ),
        ])
        .after_help(
            "The command asks the running service; if none runs, it opens the store itself.\n\nExamples:\n  \
             penstock clock show --service.data-dir=data",
        )
}

pub(super) fn run(given: &ArgMatches, settings: &Settings) -> ExitCode {
    let Some((action, given)) = given.subcommand() else { return STATUS_USAGE.into() };
    output::print_answer(given, show_or_reset(action == "reset", settings), format_report)
}

fn show_or_reset(resets: bool, settings: &Settings) -> Result<Value, String> {
    let (method, path) = if resets {
        (Method::POST, "/control/clock/reset")
    } else {
        (Method::GET, "/control/clock")
    };
    let by_service = async |dir: &Path| control::request_json(dir, method, path).await;
    data_dir::perform_action(settings, by_service, async |gateway: &Gateway| {
        if resets {
            gateway.clock.reset(&Authorized::local())?;
        }
        Ok(json!(gateway.clock.report()))
    })
}

fn format_report(report: &Value) -> String {
    let text = |name: &str| report.get(name).and_then(Value::as_str);
    let synchronised = match report.get("synchronised").and_then(Value::as_bool) {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown: systemd-timesyncd is not running",
    };
    let repeated = text("repeatedTime").map_or_else(String::new, |time| {
        format!("\nTime of records:   {time}, until the clock has passed it")
    });
    format!(
        "Time:              {}\nSystem's clock:    {}\nSynchronised:      {synchronised}\nLast known right:  {}{repeated}",
        text("now").unwrap_or("-"),
        text("system").unwrap_or("-"),
        text("lastKnown").unwrap_or("never")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_formatted_in_lines() {
        let text = format_report(
            &json!({"now": "a", "system": "b", "synchronised": null, "lastKnown": null}),
        );
        assert!(text.contains("unknown") && text.ends_with("never"), "{text}");
        let text = format_report(
            &json!({"now": "a", "system": "b", "synchronised": true, "lastKnown": "c"}),
        );
        assert!(text.contains("yes") && text.ends_with('c'), "{text}");
        let text = format_report(&json!({"lastKnown": "c", "repeatedTime": "d"}));
        assert!(text.contains("\nTime of records:   d, until"), "{text}");
    }
}
