//! Tests a scheduled run that has nothing to export.
use super::action::TestDefinition;
use super::fixture::{Fixture, NAMES};
use crate::ExportRequester;
use chrono::{TimeDelta, Utc};
use std::sync::Arc;

#[test]
fn a_run_without_objects_logs_the_reason_that_a_push_gives() {
    let mut fixture = Fixture::new();
    let defined = TestDefinition {
        on_change: false,
        scheduled: true,
        conditions: true,
        ..TestDefinition::exporting_to(&[0])
    };
    fixture.define_object(0, &defined);
    fixture.run_round();
    let business_object = fixture.catalogue.get(NAMES[0]).unwrap();
    fixture.plan.run_now(&business_object.object.id, Utc::now() - TimeDelta::hours(1));
    let log = tempfile::NamedTempFile::new().unwrap();
    let writer = Arc::new(log.reopen().unwrap());
    let subscriber = tracing_subscriber::fmt().json().with_writer(writer).finish();
    penstock_base::telemetry::with_subscriber(subscriber, || fixture.run_round());
    let reason = fixture
        .exporter
        .push(&business_object, ExportRequester::gateway())
        .unwrap()
        .reason
        .unwrap();
    assert!(reason.contains("urn:x-part:1"), "{reason}");
    let text = std::fs::read_to_string(log.path()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let runs: Vec<_> = lines
        .filter(|line| line["fields"]["message"] == "A run of the schedule had nothing to export.")
        .collect();
    assert_eq!(runs.len(), 1, "{text}");
    assert_eq!(runs[0]["fields"]["reason"], reason);
}
