//! The last runs of Business Objects that exported nothing, and why.
use super::words;
use jiff::Timestamp;
use penstock_export::EmptyRun;
use penstock_model::resource::BusinessObject;
use penstock_service::exports;
use penstock_service::gateway::Gateway;
use std::cmp::Reverse;

/// The maximum number of runs without an export that are listed.
const MAX_EMPTY_RUNS: usize = 5;

/// A run that exported nothing.
pub(super) struct EmptyRunRow {
    pub(super) business_object: String,
    pub(super) age: String,
    pub(super) cause: String,
    pub(super) is_error: bool,
}

/// Returns the last runs that exported nothing, of this Business Object or of all, the newest first.
pub(super) fn list_empty_runs(
    gateway: &Gateway,
    business_object: Option<&str>,
) -> Vec<EmptyRunRow> {
    let all = gateway.catalogue.list();
    let chosen = all
        .iter()
        .map(|compiled| &compiled.object)
        .filter(|object| business_object.is_none_or(|id| id == object.id));
    let mut runs: Vec<_> = chosen
        .filter_map(|object| Some((object, exports::find_empty_run(gateway, &object.id)?)))
        .collect();
    runs.sort_by_key(|(_, run)| Reverse(run.at.parse::<Timestamp>().ok()));
    let newest = runs.into_iter().take(MAX_EMPTY_RUNS);
    newest.map(|(object, run)| EmptyRunRow::new(object, run)).collect()
}

/// Returns the last run of a Business Object, if it exported nothing.
pub(super) fn find_empty_run(gateway: &Gateway, object: &BusinessObject) -> Option<EmptyRunRow> {
    exports::find_empty_run(gateway, &object.id).map(|run| EmptyRunRow::new(object, run))
}

impl EmptyRunRow {
    fn new(object: &BusinessObject, run: EmptyRun) -> Self {
        Self {
            business_object: object.definition.name.clone(),
            age: words::format_age(&run.at),
            cause: run.cause,
            is_error: run.is_error,
        }
    }
}
