//! `/admin/settings`: the configuration in force, each value with its source.
use super::frame::{Frame, PageReply, PageResult, Section};
use askama::Template;
use penstock_config::{EffectiveValue, SETTINGS, Setting};
use penstock_http::query::Query;
use penstock_http::state::{gateway, state};
use penstock_service::blocking::run_blocking;
use penstock_service::definitions::{Drift, DriftState, find_drift};
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
    given: Vec<Row>,
    /// The settings with their default.
    defaults: Vec<Row>,
}

/// A definition that is not as its file defines it.
struct DriftRow {
    kind: &'static str,
    name: String,
    file: String,
    state: &'static str,
}

impl From<Drift> for DriftRow {
    fn from(Drift { id, file, state }: Drift) -> Self {
        let state = match state {
            DriftState::Changed => "Changed since the file was applied",
            DriftState::Deleted => "Deleted since the file was applied",
            DriftState::Unmanaged => "No file has it any more",
        };
        Self { kind: id.kind.label(), name: id.name, file, state }
    }
}

/// One value in force.
struct Row {
    name: String,
    value: String,
    origin: String,
    meaning: String,
}

impl From<&EffectiveValue> for Row {
    fn from(effective: &EffectiveValue) -> Self {
        let EffectiveValue { name, value, origin } = effective;
        // A table cell shows where a text ends, so it needs no quotes.
        let plain = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        let plain = plain.filter(|value| !value.contains(['\\', '"'])).unwrap_or(value);
        Self {
            name: name.clone(),
            value: plain.to_owned(),
            origin: if origin.starts_with("--") {
                "command line".to_owned()
            } else {
                origin.clone()
            },
            // The page shows plain text, not Markdown.
            meaning: find_setting(name).map_or("", |setting| setting.meaning).replace('`', ""),
        }
    }
}

/// Returns the setting with this name. A name in the table may have a placeholder in angle brackets, which
/// any text may replace.
fn find_setting(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| match setting.name.split_once('<') {
        None => setting.name == name,
        Some((before, rest)) => {
            let after = rest.split_once('>').map_or("", |(_, after)| after);
            name.strip_prefix(before).is_some_and(|name| name.ends_with(after))
        }
    })
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
        given: given.into_iter().map(Row::from).collect(),
        defaults: defaults.into_iter().map(Row::from).collect(),
    };
    Ok(PageReply::show(&page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_values_with_their_meaning_and_no_secrets() {
        let row = |name: &str, value: &str| {
            let origin = "default".to_owned();
            Row::from(&EffectiveValue { name: name.to_owned(), value: value.to_owned(), origin })
        };
        let port = row("server.port", "\"8080\"");
        assert_eq!(port.value, "8080");
        assert!(port.meaning.starts_with("The TCP port"));
        assert_eq!(row("service.log.level", r#""a\"b""#).value, r#""a\"b""#);
        let secret = row("service.export.targets.my.bucket.secret-access-key", "******");
        assert_eq!(secret.value, "******");
        assert!(secret.meaning.contains("secret"));
        assert_eq!(row("nothing", "").meaning, "");
    }
}
