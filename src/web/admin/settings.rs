//! `/admin/settings`: the configuration in force, each value with its source.
use super::configured::SettingRow;
use super::frame::{Frame, PageReply, PageResult};
use super::menu::Section;
use askama::Template;
use penstock_http::query::Query;
use penstock_http::state::{gateway, state};
use penstock_resources::gateway::{Drift, DriftState};
use penstock_service::blocking::run_blocking;
use penstock_service::definitions::find_drift;
use salvo::{Depot, Request, handler};

/// The maximum number of definitions that are listed as not being as their files define them.
const MAX_DRIFT_ROWS: usize = 200;

#[derive(Template)]
#[template(path = "admin/settings.html")]
struct Page {
    frame: Frame,
    /// Warnings of the configuration.
    warnings: Vec<String>,
    /// Whether the gateway applies the files of `service.definitions.dir` now.
    is_applying: bool,
    /// Why the files of `service.definitions.dir` were not applied: the first errors.
    definition_errors: Vec<String>,
    /// The number of further errors.
    more_errors: usize,
    /// The first definitions that are not as their files define them.
    drift: Vec<DriftRow>,
    /// The number of further ones.
    more_drift: usize,
    /// The settings with a configured value.
    given: Vec<SettingRow>,
    /// The settings with their default.
    defaults: Vec<SettingRow>,
}

/// A definition that is not as its file defines it.
struct DriftRow {
    kind: &'static str,
    name: String,
    file: String,
    state: &'static str,
}

impl From<Drift> for DriftRow {
    fn from(Drift { kind, name, file, state }: Drift) -> Self {
        let state = match state {
            DriftState::Changed => "Changed since the file was applied",
            DriftState::Deleted => "Deleted since the file was applied",
            DriftState::Unmanaged => "No file has it any more",
        };
        Self { kind: kind.label(), name, file, state }
    }
}

/// Shows the page.
#[handler]
pub(crate) async fn show_settings(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let state = state(depot);
    let (defaults, given): (Vec<_>, Vec<_>) =
        state.settings().effective_values.iter().partition(|value| value.origin == "default");
    let gateway = gateway(depot)?;
    let outcome = gateway.definition_files.outcome();
    let (_, drift) = run_blocking(move || find_drift(&gateway)).await?;
    let page = Page {
        is_applying: outcome.is_running,
        more_errors: outcome.error_count.saturating_sub(outcome.errors.len()),
        definition_errors: outcome.errors,
        more_drift: drift.len().saturating_sub(MAX_DRIFT_ROWS),
        drift: drift.into_iter().take(MAX_DRIFT_ROWS).map(DriftRow::from).collect(),
        frame: Frame::new(req, depot, Section::Settings),
        warnings: state.settings().warnings.clone(),
        given: given.into_iter().map(SettingRow::from).collect(),
        defaults: defaults.into_iter().map(SettingRow::from).collect(),
    };
    Ok(PageReply::show(&page))
}
