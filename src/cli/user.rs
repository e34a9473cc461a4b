//! `penstock user add|passwd|list|enable|disable|delete`: accounts.
use super::output::{self, STATUS_USAGE};
use super::{control, data_dir};
use clap::{Arg, ArgMatches, Command};
use hyper::Method;
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use penstock_auth::Authorized;
use penstock_auth::accounts::{AccountEdit, NewAccount, NewPassword};
use penstock_auth::password;
use penstock_base::IfMatch;
use penstock_base::error::GatewayError;
use penstock_config::Settings;
use penstock_resources::account::Account;
use penstock_service::accounts;
use penstock_service::gateway::Gateway;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::io::{BufRead, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

pub(super) fn build_command() -> Command {
    let email = || {
        Arg::new("EMAIL")
            .help("The account's email or other sign-in name, or its id")
            .required(true)
    };
    let generate = || {
        output::flag_argument("generate", "Generate a random password, and print only the password")
    };
    let text = output::value_argument;
    let json = output::json_flag;
    Command::new("user")
        .about("Show and change accounts")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .override_usage(
            "penstock user <add EMAIL|passwd EMAIL|list|enable EMAIL|disable EMAIL|delete EMAIL> [--name=value]...",
        )
        .subcommands([
            Command::new("add")
                .about("Create a built-in account; its password is read from standard input")
                .arg(email())
                .arg(
                    text("role", "ROLE", "User, Contributor or Admin")
                        .required(true)
                        .value_parser(["User", "Contributor", "Admin"])
                        .ignore_case(true),
                )
                .arg(text("given-name", "NAME", "The given name"))
                .arg(text("family-name", "NAME", "The family name"))
                .arg(text("organization", "NAME", "The organization"))
                .arg(generate())
                .arg(json())
                .after_help(
                    "On a terminal the command asks for the password twice and does not show it. Otherwise it reads the first line.\n\n\
                     Examples:\n  penstock user add ada@plant.example --role Admin\n  \
                     penstock user add line4 --role Contributor --generate",
                ),
            Command::new("passwd")
                .about("Set the password of a built-in account, and end its sessions")
                .arg(email())
                .arg(generate())
                .arg(json())
                .after_help(
                    "The command does not ask for the current password: a user who can read the data directory is an administrator.\n\n\
                     Examples:\n  penstock user passwd admin --service.data-dir=data\n  \
                     penstock user passwd admin --generate",
                ),
            Command::new("list")
                .about("List the accounts")
                .arg(json())
                .after_help("Example:\n  penstock user list --json"),
            Command::new("enable")
                .about("Enable an account")
                .arg(email())
                .arg(json())
                .after_help("Example:\n  penstock user enable ada@plant.example"),
            Command::new("disable")
                .about("Disable an account: its sessions end, and its API keys are refused")
                .arg(email())
                .arg(json())
                .after_help("Example:\n  penstock user disable ada@plant.example"),
            Command::new("delete")
                .about("Delete an account, its sessions and its API keys")
                .arg(email())
                .arg(json())
                .after_help("Example:\n  penstock user delete ada@plant.example"),
        ])
        .after_help(
            "The command asks the running service; if none runs, it opens the store itself.\n\nExamples:\n  \
             penstock user list --service.data-dir=data",
        )
}

pub(super) fn run(given: &ArgMatches, settings: &Settings) -> ExitCode {
    let Some((name, given)) = given.subcommand() else { return STATUS_USAGE.into() };
    output::print_text(run_action(name, given, settings))
}

/// The action to perform.
enum Action {
    Add(Value),
    Password { id: String, password: String },
    Enable { id: String, enabled: bool },
    Delete { id: String },
    List,
}

fn run_action(name: &str, given: &ArgMatches, settings: &Settings) -> Result<String, String> {
    data_dir::check_exists(settings)?;
    let email = given.try_get_one::<String>("EMAIL").ok().flatten().cloned().unwrap_or_default();
    let mut generated = None;
    let action = match name {
        "add" => {
            let text = |name: &str| given.get_one::<String>(name);
            let password = read_new_password(given, &email, &mut generated)?;
            Action::Add(json!({
                "email": email,
                "roles": [text("role")],
                "givenName": text("given-name"),
                "familyName": text("family-name"),
                "organization": text("organization"),
                "password": password,
            }))
        }
        "passwd" => {
            let password = read_new_password(given, &email, &mut generated)?;
            Action::Password { id: email.clone(), password }
        }
        "enable" | "disable" => Action::Enable { id: email.clone(), enabled: name == "enable" },
        "delete" => Action::Delete { id: email.clone() },
        _ => Action::List,
    };
    let service = async |dir: &Path| perform_by_service(&action, dir).await;
    let store = async |gateway: &Gateway| perform_by_store(&action, gateway).await;
    let mut answer = data_dir::perform_action(settings, service, store)?;
    if let (Some(password), Some(answer)) = (&generated, answer.as_object_mut()) {
        answer.insert("password".to_owned(), password.as_str().into());
    }
    if given.get_flag("json") {
        return Ok(answer.to_string());
    }
    let done = |what: &str| format!("The account {email} {what}.");
    Ok(match (&action, generated) {
        (_, Some(password)) => password,
        (Action::List, None) => format_accounts(&answer),
        (Action::Add(_), None) => {
            format!("{} Its id is {}.", done("was created"), output::format_cell(&answer, "id"))
        }
        (Action::Password { .. }, None) => done("has a new password; its sessions have ended"),
        (Action::Enable { enabled: true, .. }, None) => done("was enabled"),
        (Action::Enable { enabled: false, .. }, None) => {
            done("was disabled; its sessions have ended")
        }
        (Action::Delete { .. }, None) => done("was deleted"),
    })
}

async fn perform_by_service(action: &Action, dir: &Path) -> Result<Option<Value>, String> {
    let path = |id: &str| format!("/api/v1/users/{}", utf8_percent_encode(id, NON_ALPHANUMERIC));
    match action {
        Action::List => {
            let items = control::list_items(dir, "/api/v1/users", usize::MAX).await?;
            Ok(items.map(|items| json!({ "items": items })))
        }
        Action::Add(body) => {
            control::request_json_with_body(dir, Method::POST, "/api/v1/users", Some(body)).await
        }
        Action::Password { id, password } => {
            let path = format!("{}/password", path(id));
            let body = json!({ "password": password });
            let done =
                control::request_json_with_body(dir, Method::POST, &path, Some(&body)).await?;
            Ok(done.map(|_| json!({ "email": id })))
        }
        Action::Enable { id, enabled } => {
            let Some(account) = control::request_json(dir, Method::GET, &path(id)).await? else {
                return Ok(None);
            };
            let body = build_edit(&account, *enabled);
            control::request_json_with_body(dir, Method::PUT, &path(id), Some(&body)).await
        }
        Action::Delete { id } => {
            let done = control::request_json(dir, Method::DELETE, &path(id)).await?;
            Ok(done.map(|_| json!({ "email": id })))
        }
    }
}

/// Builds the body that enables or disables an account. It leaves out the role and the email, so that it does not undo a
/// change of them that was made meanwhile. A name that is left out would be removed.
fn build_edit(account: &Value, enabled: bool) -> Value {
    json!({
        "givenName": account.get("givenName"),
        "familyName": account.get("familyName"),
        "organization": account.get("organization"),
        "enabled": enabled,
    })
}

async fn perform_by_store(action: &Action, gateway: &Gateway) -> Result<Value, GatewayError> {
    let by = Authorized::local();
    match action {
        Action::List => {
            let accounts = accounts::list_accounts(gateway, &by, None, usize::MAX)?;
            let items: Vec<_> = accounts.iter().map(|account| Account::from(&**account)).collect();
            Ok(json!({ "items": items }))
        }
        Action::Add(body) => {
            let new = NewAccount::from_json(body.to_string().as_bytes())?;
            let account = accounts::create_account(gateway, &by, new).await?;
            Ok(json!(Account::from(&*account)))
        }
        Action::Password { id, password } => {
            let account = accounts::find_account(gateway, &by, id)?;
            let body = json!({ "password": password }).to_string();
            let new = NewPassword::from_json(body.as_bytes(), &account.email)?;
            accounts::set_password(gateway, &by, &account, new).await?;
            Ok(json!({ "email": account.email }))
        }
        Action::Enable { id, enabled } => {
            let account = accounts::find_account(gateway, &by, id)?;
            let edit =
                AccountEdit { enabled: Some(*enabled), ..AccountEdit::unchanged_from(&account) };
            let account = accounts::change_account(gateway, &by, id, IfMatch::Any, edit).await?;
            Ok(json!(Account::from(&*account)))
        }
        Action::Delete { id } => {
            accounts::delete_account(gateway, &by, id, IfMatch::Any).await?;
            Ok(json!({ "email": id }))
        }
    }
}

fn format_accounts(answer: &Value) -> String {
    let items = output::items_of(answer);
    if items.is_empty() {
        return "There are no accounts.".to_owned();
    }
    let columns = [
        ("EMAIL", "email"),
        ("ROLE", "roles"),
        ("ENABLED", "enabled"),
        ("SOURCE", "source"),
        ("GIVEN NAME", "givenName"),
        ("FAMILY NAME", "familyName"),
        ("LAST LOGIN", "lastLogin"),
        ("ID", "id"),
    ];
    output::format_table(&columns, items)
}

/// Returns the new password: a random one, one that a person types twice, or the first line of standard input.
fn read_new_password(
    given: &ArgMatches,
    email: &str,
    generated: &mut Option<String>,
) -> Result<String, String> {
    if given.get_flag("generate") {
        return Ok(generated.insert(password::generate_password()).clone());
    }
    if !std::io::stdin().is_terminal() {
        return read_stdin_line();
    }
    let first = read_hidden_line(&format!("New password of {email}: "))?;
    // Checked before the person has to type it again.
    password::check_password(&first, email)
        .map_err(|why| format!("this password cannot be set: {why}"))?;
    if read_hidden_line("Confirm new password: ")? == first {
        Ok(first)
    } else {
        Err("the two passwords differ; nothing was changed".to_owned())
    }
}

fn read_stdin_line() -> Result<String, String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|error| format!("reading standard input failed: {error}"))?;
    let line = line.trim_end_matches(['\n', '\r']).to_owned();
    if line.is_empty() {
        return Err("standard input has no password; write it there, or use --generate".to_owned());
    }
    Ok(line)
}

/// Reads a line from the terminal without showing it.
fn read_hidden_line(prompt: &str) -> Result<String, String> {
    let failed = |error: nix::Error| format!("configuring the terminal failed: {error}");
    let stdin = std::io::stdin();
    let shown = tcgetattr(&stdin).map_err(failed)?;
    restore_when_interrupted(shown.clone())
        .map_err(|error| format!("installing a signal handler failed: {error}"))?;
    let mut unseen = shown.clone();
    unseen.local_flags.remove(LocalFlags::ECHO);
    unseen.local_flags.insert(LocalFlags::ECHONL);
    tcsetattr(&stdin, SetArg::TCSAFLUSH, &unseen).map_err(failed)?;
    output::print_prompt(prompt);
    let line = read_stdin_line();
    // Restored even if reading failed.
    tcsetattr(&stdin, SetArg::TCSAFLUSH, &shown).map_err(failed)?;
    line
}

/// Configures the terminal as before if a signal ends the process: it would not show what is typed into the shell. From now on,
/// these signals end the process with the status that a shell gives to them.
fn restore_when_interrupted(shown: Termios) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let entered = runtime.enter();
    let listen = |kind: SignalKind| signal(kind).map(|received| (received, kind.as_raw_value()));
    let (mut interrupt, interrupted) = listen(SignalKind::interrupt())?;
    let (mut terminate, terminated) = listen(SignalKind::terminate())?;
    let (mut quit, has_quit) = listen(SignalKind::quit())?;
    drop(entered);
    std::thread::Builder::new().name("terminal".to_owned()).spawn(move || {
        let number = runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => interrupted,
                _ = terminate.recv() => terminated,
                _ = quit.recv() => has_quit,
            }
        });
        // If it fails, nobody is left to be told.
        let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, &shown);
        output::print_error_line("");
        std::process::exit(128 + number);
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disabling_an_account_changes_neither_its_role_nor_its_email() {
        let account =
            json!({"email": "ada", "roles": ["Admin"], "givenName": "Ada", "enabled": true});
        let edit = AccountEdit::from_json(build_edit(&account, false).to_string().as_bytes());
        let given_name = Some("Ada".to_owned());
        let expected = AccountEdit { given_name, enabled: Some(false), ..AccountEdit::default() };
        assert_eq!(edit.unwrap(), expected);
    }

    #[test]
    fn the_table_has_a_line_for_each_account() {
        let account = json!({
            "email": "admin", "roles": ["Admin"], "enabled": true, "source": "built-in",
            "givenName": null, "id": "1",
        });
        let text = format_accounts(&json!({ "items": [account] }));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!(lines[0].find("SOURCE"), lines[1].find("built-in"), "{text}");
        assert!(lines[1].contains("Admin  yes"), "{text}");
        assert_eq!(format_accounts(&json!({ "items": [] })), "There are no accounts.");
    }
}
