//! What to do with an export, by what the store has.
//!
//! No delivery relies on what the store was before: it may have been restored, emptied or written by another gateway, and
//! exports before this one may be parked. Newer data is applied in any case. If the store may lack something then, the
//! target gets a full export.
use super::state::StoreState;
use crate::cause::DeliveryOutcome;
use crate::key::ExportExt as _;
use penstock_resources::export::{Export, ExportKind};

/// What the gateway knows about the exports of this Business Object for this target.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownExports<'a> {
    /// The bucketName.
    pub(super) target: &'a str,
    /// The last sequence that the gateway has assigned.
    pub(super) last_assigned: u64,
    /// Whether the export was delivered before.
    pub(super) is_replay: bool,
}

/// The next step of a delivery, and its outcome if that succeeds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// There is nothing to write.
    Finish(DeliveryOutcome),
    /// The export is to be written.
    Apply(DeliveryOutcome),
}

/// Decides what to do with an export.
///
/// # Errors
/// The cause and the remedy, if somebody else writes the graph.
pub(super) fn decide(
    state: &StoreState,
    entry: &Export,
    known: KnownExports<'_>,
) -> Result<Step, String> {
    let graph = entry.graph().unwrap_or_default();
    if let Some(other) = state.targets.iter().find(|target| *target != known.target) {
        return Err(format!(
            "the target `{other}` writes the graph <{graph}> too; give one of the targets another `graph`. If `{other}` is \
             the earlier name of this target, remove the triple `urn:penstock:export:target` from <{graph}:state>"
        ));
    }
    let last = state.last_sequence();
    if last > known.last_assigned {
        return Err(format!(
            "the graph <{graph}> has sequence {last}, but this gateway has assigned no sequence after {}: another gateway \
             with the same `service.gateway-id` writes it, such as a copy of this one, or this gateway has lost its data. \
             Give one of the gateways another id. If only this gateway writes the graph, drop <{graph}:state> and retry",
            known.last_assigned
        ));
    }
    if state.has_export(entry) {
        return Ok(Step::Finish(confirm(state)));
    }
    if last >= entry.sequence {
        let why = format!("Nothing was written: the store has a later export (sequence {last})");
        let needs_full = !known.is_replay || state.is_mixed();
        return Ok(Step::Finish(DeliveryOutcome::with_warning(why, needs_full)));
    }
    let is_next = last + 1 == entry.sequence && !state.is_mixed();
    if is_next || entry.kind == ExportKind::Full {
        return Ok(Step::Apply(DeliveryOutcome::default()));
    }
    let why = match last {
        _ if state.is_mixed() => describe_mixed(state),
        0 => "The store had no earlier export of this Business Object".to_owned(),
        _ => format!("The store lacks exports between sequence {last} and this one"),
    };
    Ok(Step::Apply(DeliveryOutcome::with_warning(why, true)))
}

/// Returns the outcome of a delivery whose export the state shows.
pub(super) fn confirm(state: &StoreState) -> DeliveryOutcome {
    if state.is_mixed() {
        DeliveryOutcome::with_warning(describe_mixed(state), true)
    } else {
        DeliveryOutcome::default()
    }
}

fn describe_mixed(state: &StoreState) -> String {
    let sequences: Vec<String> = state.sequences.iter().map(u64::to_string).collect();
    format!(
        "The state of the graph names several exports (sequences {}), as after two requests at the same time",
        sequences.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_resources::export::ExportStatus;
    use std::collections::BTreeSet;

    fn export(sequence: u64, kind: ExportKind) -> Export {
        Export {
            id: format!("id-{sequence}"),
            business_object: "b".to_owned(),
            business_object_name: "Pump".to_owned(),
            target: "t".to_owned(),
            sequence,
            kind,
            status: ExportStatus::Queued,
            object_count: 1,
            bytes: 1,
            data_checksum: String::new(),
            sha256: String::new(),
            key: "<urn:g>".to_owned(),
            created_at: String::new(),
            clock: None,
            commit: None,
            delivered_at: None,
            attempts: 0,
            last_error: None,
            pushed_by: None,
            traceparent: None,
            warnings: Vec::new(),
        }
    }

    fn state(sequences: &[u64]) -> StoreState {
        StoreState {
            sequences: sequences.iter().copied().collect(),
            export_ids: sequences.iter().map(|sequence| format!("id-{sequence}")).collect(),
            targets: BTreeSet::from(["t".to_owned()]),
            staged_bytes: 0,
        }
    }

    /// Returns whether the export is applied, and whether the target then needs a full one.
    fn step(sequences: &[u64], entry: &Export, is_replay: bool) -> (bool, bool) {
        let known = KnownExports { target: "t", last_assigned: 9, is_replay };
        let (applies, outcome) = match decide(&state(sequences), entry, known).unwrap() {
            Step::Finish(outcome) => (false, outcome),
            Step::Apply(outcome) => (true, outcome),
        };
        assert!(outcome.warning.is_some() || !outcome.needs_full);
        (applies, outcome.needs_full)
    }

    #[test]
    fn an_export_is_applied_whatever_the_store_had_before_and_a_full_one_follows_a_gap() {
        use ExportKind::{Deleted, Full, Incremental};
        for (sequences, sequence, kind, applies, needs_full) in [
            (&[][..], 1, Full, true, false),
            (&[4], 5, Incremental, true, false),
            (&[4], 5, Deleted, true, false),
            (&[3], 5, Full, true, false),
            (&[3], 5, Incremental, true, true),
            (&[], 5, Deleted, true, true),
            (&[3, 4], 5, Incremental, true, true),
            (&[3, 4], 5, Full, true, false),
            (&[5], 5, Incremental, false, false),
            (&[4, 5], 5, Full, false, true),
            (&[6], 5, Incremental, false, true),
            (&[6], 5, Full, false, true),
        ] {
            let found = step(sequences, &export(sequence, kind), false);
            assert_eq!(found, (applies, needs_full), "{sequences:?} {sequence} {kind:?}");
        }
        assert_eq!(step(&[6], &export(5, Full), true), (false, false));
        assert_eq!(step(&[5, 6], &export(5, Full), true), (false, true));
        let other = Export { id: "of another history".to_owned(), ..export(5, Full) };
        assert_eq!(step(&[5], &other, false), (false, true));
    }

    #[test]
    fn what_somebody_else_wrote_is_a_conflict() {
        let known = KnownExports { target: "t", last_assigned: 9, is_replay: false };
        let lost = decide(&state(&[10]), &export(9, ExportKind::Full), known).unwrap_err();
        assert!(lost.contains("no sequence after 9") && lost.contains("same `service.gateway-id`"));
        let known = KnownExports { target: "u", ..known };
        let taken = decide(&state(&[3]), &export(9, ExportKind::Full), known).unwrap_err();
        assert!(taken.contains("the target `t` writes the graph <urn:g>"), "{taken}");
    }
}
