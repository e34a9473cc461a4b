use super::*;
use crate::definitions::save;
use crate::deletions::{begin_deletion, continue_deletions, run_deletions};
use crate::shapes_graphs::{NewShapesGraph, ShapesGraphs};
use crate::testing::open_gateway;
use penstock_base::{IfMatch, Preconditions};
use penstock_model::ingest::Mode;
use penstock_model::shapes_graphs::TextFormat;
use penstock_model::testing::{ingest_body, put_definition};
use serde_json::json;
use std::time::Duration;
use tokio::sync::watch;

const SHAPES: &str = "@prefix sh: <http://www.w3.org/ns/shacl#> .\n\
    <urn:Pump> a sh:NodeShape ; sh:targetSubjectsOf <urn:name> ; \
      sh:property [ sh:path <urn:name> ; sh:minLength 3 ] .";

/// Stores pumps with these names, which must have three characters.
async fn define_pumps(gateway: &Gateway, names: &[&str]) -> Arc<Compiled> {
    let graph = NewShapesGraph {
        name: "pumps".to_owned(),
        text: Box::new(SHAPES),
        format: TextFormat::Rdf(Format::Turtle),
    };
    let (by, any) = (Authorized::local(), Preconditions::default());
    save::<ShapesGraphs>(gateway, &by, graph, any).await.unwrap();
    let definition = json!({
        "name": "Pump",
        "config": "type: object\npath: Pump:.\nfields: {name: {type: string, path: <urn:name>}}",
        "validation": {"shapes": ["pumps"], "mode": "warn"},
    });
    let pumps = put_definition(&gateway.catalogue, &definition);
    let data: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
    let body = json!({ "data": data }).to_string();
    ingest_body(&gateway.store, gateway.catalogue.watch(), &pumps, Mode::Add, &body).unwrap();
    pumps
}

fn start(gateway: &Gateway, pumps: &Compiled) -> Result<Validation, GatewayError> {
    enqueue_validation(gateway, &Authorized::local(), pumps)
}

async fn cancel(gateway: &Gateway, id: &str) -> Result<Validation, GatewayError> {
    cancel_validation(gateway, &Authorized::local(), id).await
}

/// Waits until a validation has ended.
async fn wait_for_end(gateway: &Gateway, id: &str) -> Validation {
    loop {
        let found = find_known(gateway, id).unwrap();
        // One that runs is in the queue until it is kept.
        if found.ended_at.is_some() {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_runs_and_sixteen_wait() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let pumps = define_pumps(&gateway, &["a", "north"]).await;
    let first = start(&gateway, &pumps).unwrap();
    // Nothing runs them here, so the first one stays.
    run::start_next(&gateway).unwrap();
    let waiting: Vec<_> = (0..16).map(|_| start(&gateway, &pumps).unwrap()).collect();
    let refused = start(&gateway, &pumps).unwrap_err();
    assert!(matches!(refused.class, ErrorClass::Unavailable(_)), "{refused}");
    let listed = list_validations(&gateway, &Caller::local(), Some(&pumps.object.id), None, 100);
    assert_eq!((listed.len(), &listed[16].id), (17, &first.id), "the newest first");
    let after = list_validations(&gateway, &Caller::local(), None, Some(&waiting[2].id), 2);
    assert_eq!(after, [waiting[1].clone(), waiting[0].clone()]);
    assert!(list_validations(&gateway, &Caller::local(), Some("other"), None, 100).is_empty());

    // One that waits is kept as cancelled, and gives its place to another one.
    let cancelled = cancel(&gateway, &waiting[3].id).await.unwrap();
    assert_eq!((cancelled.state, cancelled.conforms), (ValidationState::Cancelled, None));
    assert!(cancelled.ended_at.is_some());
    assert_eq!(find_validation(&gateway, &cancelled.id).await.unwrap().validation, cancelled);
    assert_eq!(check_finished(&gateway, &cancelled.id).unwrap_err().class, ErrorClass::Conflict);
    assert_eq!(cancel(&gateway, &cancelled.id).await.unwrap_err().class, ErrorClass::Conflict);
    start(&gateway, &pumps).unwrap();
    // One that runs ends later, and is shown as cancelled until then.
    let running = cancel(&gateway, &first.id).await.unwrap();
    assert_eq!((running.state, running.ended_at), (ValidationState::Cancelled, None));
    assert_eq!(cancel(&gateway, &first.id).await.unwrap_err().class, ErrorClass::Conflict);
    assert_eq!(cancel(&gateway, "none").await.unwrap_err().class, ErrorClass::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_validated_and_what_ended_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let pumps = define_pumps(&gateway, &["a", "b", "north"]).await;
    let (stop, stopped) = watch::channel(false);
    let worker = tokio::spawn(run_validations(gateway.clone(), stopped));
    let ids = [start(&gateway, &pumps).unwrap().id, start(&gateway, &pumps).unwrap().id];
    let ended = wait_for_end(&gateway, &ids[1]).await;
    assert_eq!(ended.state, ValidationState::Finished, "{ended:?}");
    assert_eq!((ended.conforms, ended.counts.violation, ended.listed), (Some(false), 2, 2));
    assert_eq!(ended.progress, Progress { validated: 3, expected: Some(3) });
    assert_eq!(gateway.validations.list_last_counts(), [("Pump".to_owned(), ended.counts)]);
    stop.send(true).unwrap();
    worker.await.unwrap();
    drop(gateway);

    let gateway = open_gateway(dir.path(), &[]);
    let listed = list_validations(&gateway, &Caller::local(), None, None, 100);
    assert_eq!((listed.len(), &listed[0]), (2, &ended));
    let report = find_validation(&gateway, &ids[1]).await.unwrap();
    assert_eq!((report.constraints.len(), report.constraints[0].count), (1, 2));
    let page = list_violations(&gateway, &Caller::local(), &ids[1], 1, 10).await.unwrap();
    assert_eq!((page.len(), page[0].violation.value.as_deref()), (1, Some("b")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_restart_interrupts_begins_again_unless_it_was_cancelled() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let pumps = define_pumps(&gateway, &["a"]).await;
    let queued: Vec<_> = (0..4).map(|_| start(&gateway, &pumps).unwrap()).collect();
    // Nothing runs them here, so they stay as they are until the restart.
    run::start_next(&gateway).unwrap();
    cancel(&gateway, &queued[0].id).await.unwrap();
    run::start_next(&gateway).unwrap();
    cancel(&gateway, &queued[2].id).await.unwrap();
    drop(gateway);

    let gateway = open_gateway(dir.path(), &[]);
    let body = r#"{"data": [{"name": "b"}]}"#;
    ingest_body(&gateway.store, gateway.catalogue.watch(), &pumps, Mode::Add, body).unwrap();
    let listed = list_validations(&gateway, &Caller::local(), None, None, 100);
    let open: Vec<_> = listed.iter().filter(|one| one.state.is_open()).cloned().collect();
    assert_eq!(open, [queued[3].clone(), queued[1].clone()], "the newest first");
    let (stop, stopped) = watch::channel(false);
    let worker = tokio::spawn(run_validations(gateway.clone(), stopped));
    let interrupted = wait_for_end(&gateway, &queued[1].id).await;
    assert_eq!(interrupted.state, ValidationState::Finished, "{interrupted:?}");
    assert_eq!(interrupted.counts.violation, 2, "of a new snapshot");
    wait_for_end(&gateway, &queued[3].id).await;
    stop.send(true).unwrap();
    worker.await.unwrap();
    let files = std::fs::read_dir(dir.path().join("validations")).unwrap();
    assert_eq!(files.count(), 3, "only reports are left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_validation_that_ends_the_process_each_time_fails() {
    for (kills, expected) in [(2, ValidationState::Finished), (3, ValidationState::Failed)] {
        let dir = tempfile::tempdir().unwrap();
        let gateway = open_gateway(dir.path(), &[]);
        let pumps = define_pumps(&gateway, &["a"]).await;
        let queued = start(&gateway, &pumps).unwrap();
        drop(gateway);
        let folder = dir.path().join("validations");
        // It ran each time, and the service did not stop regularly.
        assert_eq!(kept::update_runs(&folder, &queued.id, |_| kills), kills);

        let gateway = open_gateway(dir.path(), &[]);
        let (stop, stopped) = watch::channel(false);
        let worker = tokio::spawn(run_validations(gateway.clone(), stopped));
        let ended = wait_for_end(&gateway, &queued.id).await;
        assert_eq!(ended.state, expected, "{ended:?}");
        assert_eq!(ended.error.is_some_and(|error| error.contains("3 times")), kills == 3);
        stop.send(true).unwrap();
        worker.await.unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "only the report is left");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_cancelled_is_kept_although_the_service_stops() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let pumps = define_pumps(&gateway, &["a"]).await;
    let queued = start(&gateway, &pumps).unwrap();
    let (validation, cancellation) = run::start_next(&gateway).unwrap();
    cancel(&gateway, &queued.id).await.unwrap();
    gateway.validations.is_stopping.store(true, std::sync::atomic::Ordering::Release);
    run::run_validation(&gateway, validation, &cancellation);
    drop(gateway);

    let gateway = open_gateway(dir.path(), &[]);
    let known = find_known(&gateway, &queued.id).unwrap();
    assert_eq!(known.state, ValidationState::Cancelled);
    assert!(known.ended_at.is_some(), "{known:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_are_deleted_with_the_objects_of_their_business_object() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let pumps = define_pumps(&gateway, &["a"]).await;
    let (stop, stopped) = watch::channel(false);
    let workers = [
        tokio::spawn(run_validations(gateway.clone(), stopped.clone())),
        tokio::spawn(run_deletions(gateway.clone(), stopped)),
    ];
    let started = start(&gateway, &pumps).unwrap();
    wait_for_end(&gateway, &started.id).await;
    let files = || std::fs::read_dir(dir.path().join("validations")).unwrap().count();
    assert_eq!(files(), 1);
    begin_deletion(&gateway, &Authorized::local(), "Pump", IfMatch::Any, false).await.unwrap();
    while files() > 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(list_validations(&gateway, &Caller::local(), None, None, 10).is_empty());
    stop.send(true).unwrap();
    for worker in workers {
        worker.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_report_is_left_when_the_last_commit_of_a_deletion_begins() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let pumps = define_pumps(&gateway, &["a"]).await;
    let (stop, stopped) = watch::channel(false);
    let worker = tokio::spawn(run_validations(gateway.clone(), stopped));
    let before = start(&gateway, &pumps).unwrap();
    assert_eq!(wait_for_end(&gateway, &before.id).await.listed, 1);
    begin_deletion(&gateway, &Authorized::local(), "Pump", IfMatch::Any, false).await.unwrap();
    let meanwhile = start(&gateway, &pumps).unwrap();
    assert_eq!(wait_for_end(&gateway, &meanwhile.id).await.listed, 0);
    assert!(continue_deletions(&gateway).unwrap());
    assert!(gateway.catalogue.get("Pump").is_some(), "another commit follows");
    assert!(list_validations(&gateway, &Caller::local(), None, None, 10).is_empty());
    assert_eq!(std::fs::read_dir(dir.path().join("validations")).unwrap().count(), 0);
    stop.send(true).unwrap();
    worker.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_validation_that_cannot_be_done_or_kept_fails_with_its_cause() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let pumps = define_pumps(&gateway, &["a"]).await;
    let (stop, stopped) = watch::channel(false);
    let mut deleted = Compiled::clone(&pumps);
    deleted.object.id = "deleted".to_owned();
    let deleted = start(&gateway, &deleted).unwrap();
    let worker = tokio::spawn(run_validations(gateway.clone(), stopped));
    let failed = wait_for_end(&gateway, &deleted.id).await;
    assert_eq!(failed.state, ValidationState::Failed);
    assert!(failed.error.unwrap().contains("was deleted"));

    let folder = dir.path().join("validations");
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "").unwrap();
    let unkept = start(&gateway, &pumps).unwrap();
    let failed = wait_for_end(&gateway, &unkept.id).await;
    assert_eq!((failed.state, failed.conforms), (ValidationState::Failed, None));
    assert!(failed.error.unwrap().contains("writing the report failed"));
    assert_eq!(list_violations(&gateway, &Caller::local(), &unkept.id, 0, 10).await.unwrap(), []);
    stop.send(true).unwrap();
    worker.await.unwrap();
}
