//! `penstock api-key create|list|revoke`: API keys, the credentials of plant systems.
use super::output::{self, STATUS_USAGE};
use super::{control, data_dir};
use clap::{Arg, ArgAction, ArgMatches, Command};
use hyper::Method;
use jiff::{SignedDuration, Timestamp};
use penstock_auth::Authorized;
use penstock_auth::keys::NewApiKey;
use penstock_base::error::GatewayError;
use penstock_config::Settings;
use penstock_resources::api_key::MadeApiKey;
use penstock_service::api_keys;
use penstock_service::gateway::Gateway;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;

pub(super) fn build_command() -> Command {
    let text = output::value_argument;
    Command::new("api-key")
        .about("Create and revoke API keys, the credentials of plant systems")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .override_usage(
            "penstock api-key <create --name N --role R|list|revoke ID> [--name=value]...",
        )
        .subcommands([
            Command::new("create")
                .about("Create an API key and print it; it is shown only once")
                .arg(text("name", "NAME", "The purpose of the key").required(true))
                .arg(
                    text("role", "ROLE", "Metrics, User, Contributor or Admin")
                        .required(true)
                        .value_parser(["Metrics", "User", "Contributor", "Admin"])
                        .ignore_case(true),
                )
                .arg(
                    text("expires", "TIME", "When the key expires: a time in RFC 3339, or a time from now (90d, 12h); without it the key does not expire")
                        .value_parser(parse_expiry),
                )
                .arg(
                    text("business-object", "ID", "The id or name of a Business Object that the key is restricted to; repeat it for several")
                        .action(ArgAction::Append),
                )
                .arg(output::json_flag())
                .after_help(
                    "The key belongs to the local administration, not to an account. It has its role until it expires or \
                     is revoked, in every mode of sign-in. Send it as Authorization: Bearer KEY, or Apikey: KEY.\n\nExamples:\n  penstock api-key create --name historian --role Contributor\n  \
                     penstock api-key create --name line4 --role Contributor --business-object Pump --expires 365d\n  \
                     penstock api-key create --name line5 --role Contributor --business-object Pump --business-object Valve",
                ),
            Command::new("list")
                .about("List all API keys, without their secrets")
                .arg(output::json_flag())
                .after_help("Example:\n  penstock api-key list --json"),
            Command::new("revoke")
                .about("Revoke an API key")
                .arg(
                    Arg::new("ID")
                        .help("The key's id, as `penstock api-key list` shows it")
                        .required(true),
                )
                .arg(output::json_flag())
                .after_help("Example:\n  penstock api-key revoke 0199c1d2-7d3e-7000-8000-000000000001"),
        ])
        .after_help(
            "The command asks the running service; if none runs, it opens the store itself.\n\nExamples:\n  \
             penstock api-key list --service.data-dir=data",
        )
}

/// Parses a time, or a duration from now such as 90d, into RFC 3339.
fn parse_expiry(text: &str) -> Result<String, String> {
    let expected =
        || format!("{text:?} is neither a time in RFC 3339 nor a duration such as 90d or 12h");
    let hours = match text.strip_suffix('d') {
        Some(days) => days.parse::<i64>().ok().and_then(|days| days.checked_mul(24)),
        None => text.strip_suffix('h').and_then(|hours| hours.parse().ok()),
    };
    let at = match hours {
        Some(hours @ 1..) if hours < 24 * 365 * 1000 => {
            Timestamp::now().checked_add(SignedDuration::from_hours(hours)).ok()
        }
        Some(_) => None,
        None => text.parse::<Timestamp>().ok(),
    };
    at.map(|at| format!("{at:.0}")).ok_or_else(expected)
}

enum Action<'a> {
    Create(Value),
    List,
    Revoke(&'a str),
}

pub(super) fn run(given: &ArgMatches, settings: &Settings) -> ExitCode {
    let Some((name, given)) = given.subcommand() else { return STATUS_USAGE.into() };
    let text = |name: &str| given.try_get_one::<String>(name).ok().flatten();
    let action = match (name, text("ID")) {
        ("create", _) => Action::Create(json!({
            "name": text("name"),
            "role": text("role"),
            "expiresAt": text("expires"),
            "businessObjects": given
                .try_get_many::<String>("business-object")
                .ok()
                .flatten()
                .map(Iterator::collect::<Vec<_>>),
        })),
        ("revoke", Some(id)) => Action::Revoke(id),
        _ => Action::List,
    };
    let service = async |dir: &Path| perform_by_service(&action, dir).await;
    let store = async |gateway: &Gateway| perform_by_store(&action, gateway).await;
    let answer = data_dir::perform_action(settings, service, store);
    output::print_answer(given, answer, |answer| match action {
        Action::Create(_) => output::format_cell(answer, "key"),
        Action::List => format_keys(answer),
        Action::Revoke(id) => format!("The API key {id} was revoked."),
    })
}

async fn perform_by_service(action: &Action<'_>, dir: &Path) -> Result<Option<Value>, String> {
    let path = "/api/v1/api-keys";
    match action {
        Action::Create(body) => {
            control::request_json_with_body(dir, Method::POST, path, Some(body)).await
        }
        Action::List => {
            let items = control::list_items(dir, path, usize::MAX).await?;
            Ok(items.map(|items| json!({ "items": items })))
        }
        Action::Revoke(id) => {
            let path = format!("{path}/{}", utf8_percent_encode(id, NON_ALPHANUMERIC));
            let done = control::request_json(dir, Method::DELETE, &path).await?;
            Ok(done.map(|_| json!({ "id": id })))
        }
    }
}

async fn perform_by_store(action: &Action<'_>, gateway: &Gateway) -> Result<Value, GatewayError> {
    let by = Authorized::local();
    match action {
        Action::Create(body) => {
            let new = NewApiKey::from_json(body.to_string().as_bytes())?;
            let (key, secret) = api_keys::create_key(gateway, &by, new).await?;
            Ok(json!(MadeApiKey { id: key.id, key: secret }))
        }
        Action::List => {
            let keys = api_keys::list_keys(gateway, &by, None, usize::MAX);
            Ok(json!({ "items": keys }))
        }
        Action::Revoke(id) => {
            api_keys::revoke_key(gateway, &by, id).await?;
            Ok(json!({ "id": id }))
        }
    }
}

fn format_keys(answer: &Value) -> String {
    let items = output::items_of(answer);
    if items.is_empty() {
        return "There are no API keys.".to_owned();
    }
    let columns = [
        ("ID", "id"),
        ("NAME", "name"),
        ("ROLE", "role"),
        ("OWNER", "owner"),
        ("BUSINESS OBJECTS", "businessObjects"),
        ("EXPIRES", "expiresAt"),
        ("LAST USED", "lastUsed"),
    ];
    output::format_table(&columns, items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_a_time_or_a_duration() {
        assert_eq!(parse_expiry("2027-01-31T12:00:00Z").unwrap(), "2027-01-31T12:00:00Z");
        assert_eq!(parse_expiry("2027-01-31T12:00:00+02:00").unwrap(), "2027-01-31T10:00:00Z");
        let at: Timestamp = parse_expiry("90d").unwrap().parse().unwrap();
        let hours = at.duration_since(Timestamp::now()).as_hours();
        assert!((90 * 24 - 1..=90 * 24).contains(&hours), "{hours}");
        for bad in ["", "d", "0d", "-1d", "90", "tomorrow", "99999999999999999d", "1.5h"] {
            assert!(parse_expiry(bad).is_err(), "{bad}");
        }
    }
}
