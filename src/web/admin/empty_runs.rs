//! The last runs of Business Objects that exported nothing.
use jiff::Timestamp;
use penstock_export::EmptyRun;
use penstock_service::exports::find_empty_run;
use penstock_service::gateway::Gateway;
use std::cmp::Reverse;

/// The maximum number of runs without an export that are listed.
const MAX_EMPTY_RUNS: usize = 5;

/// Returns the last runs that exported nothing, of this Business Object or of all, the newest first. Each has the name of
/// its Business Object.
pub(super) fn list_empty_runs(
    gateway: &Gateway,
    business_object: Option<&str>,
) -> Vec<(String, EmptyRun)> {
    let all = gateway.catalogue.list();
    let chosen = all
        .iter()
        .map(|compiled| &compiled.object)
        .filter(|object| business_object.is_none_or(|id| id == object.id));
    let mut runs: Vec<_> = chosen
        .filter_map(|object| {
            Some((object.definition.name.clone(), find_empty_run(gateway, &object.id)?))
        })
        .collect();
    runs.sort_by_key(|(_, run)| Reverse(run.at.parse::<Timestamp>().ok()));
    runs.truncate(MAX_EMPTY_RUNS);
    runs
}
