//! `/admin/backup`: the continuous backup, and how to restore it.
use super::configured::{CONFIGURATION_FILE, CREDENTIALS_DIR, Step};
use super::frame::{Frame, PageReply, PageResult};
use super::labels::Labelled as _;
use super::menu::Section;
use super::words;
use askama::Template;
use penstock_http::caller::caller;
use penstock_http::query::Query;
use penstock_http::state::state;
use penstock_resources::gateway::{BackupState, BackupStatus};
use salvo::{Depot, Request, handler};
use std::path::Path;

#[derive(Template)]
#[template(path = "admin/backup.html")]
struct Page {
    frame: Frame,
    /// `None` without a continuous backup.
    backup: Option<BackupStatus>,
    /// Whether it is encrypted.
    has_key: bool,
    /// Whether its first warning is a failure: why it sends nothing.
    has_failed: bool,
    /// Whether it is lost together with the data.
    is_with_data: bool,
    /// What to do after this machine was lost.
    steps: Vec<Step>,
}

/// Shows the page.
#[handler]
pub(crate) async fn show_backup(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let frame = Frame::new(req, depot, Section::Backup);
    let status = state(depot).collect_status(caller(depot)).await?;
    let backup = status.backup;
    let gateway = state(depot);
    let settings = gateway.settings();
    let has_key = settings.backup.as_ref().is_some_and(|settings| settings.key.is_some());
    let is_with_data = settings.keeps_backup_with_data();
    let steps = backup
        .as_ref()
        .map(|backup| list_steps(&backup.target, &status.gateway_id, &settings.data_dir, has_key));
    let steps = steps.unwrap_or_default();
    let has_failed = backup
        .as_ref()
        .is_some_and(|backup| matches!(backup.state, BackupState::Blocked | BackupState::Replaced));
    Ok(PageReply::show(&Page { frame, backup, has_key, has_failed, is_with_data, steps }))
}

/// Lists the steps that restore the backup of a gateway on a new machine.
fn list_steps(target: &str, gateway_id: &str, data_dir: &Path, has_key: bool) -> Vec<Step> {
    let step = |words: &str, command: String| Step { words: words.to_owned(), command };
    let data_dir = data_dir.display();
    let key = step(
        "Put the age identity into a file that only root can read:",
        format!("{CREDENTIALS_DIR}/service.backup.key"),
    );
    let mut steps = vec![
        step(
            "Keep the old machine off. On the new one install this version of Penstock or a newer one, and stop it:",
            "sudo systemctl stop penstock.socket penstock.service".to_owned(),
        ),
        step(
            "If its first start has filled the data directory, move that away:",
            format!("sudo mv -T {data_dir} {data_dir}.unused"),
        ),
        step(
            "Create an empty one:",
            format!("sudo install -d -o penstock -g penstock -m 700 {data_dir}"),
        ),
        step(
            &format!(
                "Copy the configuration and its secrets. It needs at least {gateway_id} as service.gateway-id, the settings \
                 of the backup and its target, and a certificate:"
            ),
            CONFIGURATION_FILE.to_owned(),
        ),
    ];
    steps.extend(Some(key).filter(|_| has_key));
    steps.extend([
        step(
            "Look at what there is:",
            format!("sudo penstock offsite-backup list --from {target} --gateway {gateway_id}"),
        ),
        step(
            "Restore it into the empty data directory:",
            format!("sudo penstock restore --from {target} --gateway {gateway_id}"),
        ),
        step("Start the gateway:", "sudo systemctl start penstock".to_owned()),
    ]);
    steps
}

/// Describes how old the backup is: `up to date`, `8 s behind`.
pub(super) fn describe_lag(backup: &BackupStatus) -> String {
    match backup.lag_seconds {
        0 => "up to date".to_owned(),
        lag => format!("{} behind", words::format_duration(lag)),
    }
}

/// Describes the backup in short: how old it is and its size, or why there is none.
pub(super) fn describe_backup(backup: Option<&BackupStatus>) -> String {
    let Some(backup) = backup else { return "off".to_owned() };
    match backup.state {
        BackupState::Running | BackupState::FirstBase if backup.cause.is_none() => {
            format!("{}, {}", describe_lag(backup), words::format_size(backup.bytes))
        }
        _ => match &backup.cause {
            Some(cause) => format!("{}: {cause}", backup.label().words),
            None => backup.label().words.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_name_the_key_if_there_is_one() {
        let has_path = |has_key: bool| {
            let steps = list_steps("vault", "edge-1", Path::new("/var/lib/penstock"), has_key);
            steps.iter().any(|step| step.command.ends_with("/service.backup.key"))
        };
        assert!(has_path(true) && !has_path(false));
    }

    #[test]
    fn the_data_directory_is_empty_before_the_restore() {
        let steps = list_steps("vault", "edge-1", Path::new("/var/lib/penstock"), true);
        let find = |beginning: &str| {
            steps.iter().position(|step| step.command.starts_with(beginning)).unwrap()
        };
        let moved = find("sudo mv -T /var/lib/penstock /var/lib/penstock.unused");
        let created = find("sudo install -d -o penstock -g penstock -m 700 /var/lib/penstock");
        assert!(moved < created && created < find("sudo penstock restore "));
    }
}
