use super::*;
use penstock_store::faults::{Failure, Faults};
use std::time::Duration;

/// A folder for `service.definitions.dir` with the files of the plant.
fn write_folder(dir: &Path, files: &[DefinitionFile]) -> String {
    let folder = dir.join("definitions");
    if !folder.exists() {
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
    }
    for file in files {
        let path = folder.join(&file.name);
        std::fs::write(&path, &file.text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    }
    format!("--service.definitions.dir={}", folder.display())
}

#[test]
fn definitions_of_the_service_folder_are_read_only() {
    let dir = tempfile::tempdir().unwrap();
    let setting = write_folder(dir.path(), &plant_files());
    let gateway = open_gateway(dir.path(), std::slice::from_ref(&setting));
    let by = Authorized::local();
    apply_service_folder(&gateway, &by);
    assert_eq!(gateway.definition_files.outcome().errors, Vec::<String>::new());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let refused = |result: Result<(), GatewayError>, file: &str| {
        let error = result.unwrap_err();
        assert_eq!(error.class, ErrorClass::Conflict, "{error}");
        assert!(error.to_string().contains(&format!("the file {file} of")), "{error}");
    };
    runtime.block_on(async {
        let name = "leaders";
        let any = Preconditions::default();
        let group = NewGroup { name: name.to_owned(), ..NewGroup::default() };
        refused(save::<Groups>(&gateway, &by, group, any).await.map(drop), "b.yaml");
        refused(delete::<Groups>(&gateway, &by, name, any).await, "b.yaml");
        let graph = NewShapesGraph {
            name: "names".to_owned(),
            text: Box::new(NAMES.replace("minLength 3", "minLength 9")),
            format: TextFormat::from_media_type("text/turtle").unwrap(),
        };
        refused(save::<ShapesGraphs>(&gateway, &by, graph, any).await.map(drop), "names.ttl");
        let generator = find::<Namespaces>(&gateway, &by, "Pump").await.unwrap().generator;
        let renamed = DefinedNamespace {
            name: "Pump".to_owned(),
            uri_base: Some("https://other.example/".to_owned()),
            generator: Some(generator),
        };
        // The namespace is used too, and that is found first.
        let put = save::<Namespaces>(&gateway, &by, renamed, any).await;
        assert_eq!(put.unwrap_err().class, ErrorClass::Conflict);
        refused(delete::<BusinessObjects>(&gateway, &by, "Pumps", any).await, "a.yaml");
        let there = gateway.catalogue.get("Pumps").unwrap();
        let mut definition = there.object.definition.clone();
        definition.description = "mine".to_owned();
        let new = NewDefinition { definition, findings: Vec::new() };
        let new = NewBusinessObject { new, replaced: None, force: false };
        let put = save::<BusinessObjects>(&gateway, &by, new, any).await;
        refused(put.map(drop), "a.yaml");
        let begun = crate::deletions::begin_deletion(&gateway, &by, "Pumps", any.if_match, false);
        refused(begun.await.map(drop), "a.yaml");
    });
    let mut changed = plant_files();
    replace(&mut changed, "b.yaml", "shift-leaders", "others");
    let error = apply(&gateway, &changed, &in_folder()).unwrap_err();
    assert!(
        messages(&error)
            .contains("b.yaml:1:1: the group \"leaders\" is defined by the file b.yaml"),
        "{error}"
    );
    drop(gateway);

    // Without the setting they can be changed again.
    let gateway = open_gateway(dir.path(), &[]);
    apply_service_folder(&gateway, &by);
    assert_eq!(find_drift(&gateway).unwrap().1.len(), 4);
    let deleted = delete::<Groups>(&gateway, &by, "leaders", Preconditions::default());
    runtime.block_on(deleted).unwrap();
}

#[test]
fn a_bad_file_keeps_the_definitions_of_the_last_good_run() {
    let dir = tempfile::tempdir().unwrap();
    let setting = write_folder(dir.path(), &plant_files());
    let gateway = open_gateway(dir.path(), std::slice::from_ref(&setting));
    let by = Authorized::local();
    apply_service_folder(&gateway, &by);
    let mut bad = plant_files();
    replace(&mut bad, "a.yaml", "type: string", "type: strong");
    replace(&mut bad, "b.yaml", "shift-leaders", "others");
    write_folder(dir.path(), &bad);
    apply_service_folder(&gateway, &by);
    let outcome = gateway.definition_files.outcome();
    assert!(outcome.errors[0].starts_with("a.yaml:8:18: "), "{outcome:?}");
    let status = gateway.collect_status(&by).unwrap();
    let warning = status.warnings.iter().find(|warning| warning.contains("a.yaml:8:18"));
    assert!(warning.unwrap().contains("the last good run stay"), "{:?}", status.warnings);
    assert_eq!(status.definitions.managed, 4);
    assert_eq!(gateway.auth.groups.get("leaders").unwrap().claim_values, ["shift-leaders"]);

    let mut good = plant_files();
    replace(&mut good, "b.yaml", "shift-leaders", "others");
    write_folder(dir.path(), &good);
    apply_service_folder(&gateway, &by);
    assert_eq!(gateway.definition_files.outcome().errors, Vec::<String>::new());
    assert_eq!(gateway.auth.groups.get("leaders").unwrap().claim_values, ["others"]);
    // A folder that is gone is an error, not an empty one.
    std::fs::remove_dir_all(dir.path().join("definitions")).unwrap();
    apply_service_folder(&gateway, &by);
    assert!(!gateway.definition_files.outcome().errors.is_empty());
    assert_eq!(find_drift(&gateway).unwrap().0, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_applied_again_after_a_full_disk_and_not_after_an_error_in_them() {
    let dir = tempfile::tempdir().unwrap();
    let setting = write_folder(dir.path(), &plant_files());
    let gateway = open_gateway(dir.path(), std::slice::from_ref(&setting));
    let by = Authorized::local();
    let faults = Faults::inject_below(dir.path());
    faults.fail_nth(1, Failure::DiskFull, true);
    apply_service_folder(&gateway, &by);
    assert_eq!(gateway.definition_files.outcome().error_count, 1);
    assert!(gateway.catalogue.get("Pumps").is_none());
    let retrying = tokio::spawn(retry_service_folder(gateway.clone(), by.clone()));
    faults.clear_plan();
    while gateway.definition_files.must_retry() {
        tokio::time::sleep(Duration::from_millis(5)).await;
        // The gateway does this every few seconds.
        if gateway.store.poison_cause().is_some() {
            gateway.store.reopen(&mut |_| {}).unwrap();
        }
    }
    retrying.abort();
    assert_eq!(gateway.definition_files.outcome().errors, Vec::<String>::new());
    assert!(gateway.catalogue.get("Pumps").is_some());

    let mut bad = plant_files();
    replace(&mut bad, "a.yaml", "type: string", "type: strong");
    write_folder(dir.path(), &bad);
    apply_service_folder(&gateway, &by);
    assert_eq!(gateway.definition_files.outcome().error_count, 1);
    assert!(!gateway.definition_files.must_retry());
}

#[test]
fn a_retry_without_a_folder_and_its_definitions_is_the_last_one() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let failed = GatewayError::new(ErrorClass::Internal, "an I/O error");
    *gateway.definition_files.0.last.lock() = FolderOutcome::of_error(&failed);
    assert!(gateway.definition_files.must_retry());
    apply_service_folder(&gateway, &Authorized::local());
    assert!(!gateway.definition_files.must_retry());
    assert_eq!(gateway.definition_files.outcome(), FolderOutcome::default());
}

#[test]
fn the_status_shows_a_run_and_does_not_wait_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let setting = write_folder(dir.path(), &plant_files());
    let gateway = open_gateway(dir.path(), std::slice::from_ref(&setting));
    let by = Authorized::local();
    let folder = || gateway.collect_status(&by).unwrap().definitions;
    assert_eq!((folder().running, folder().applied_at), (false, None));
    // The run waits for this change of the catalogue.
    let other = gateway.catalogue.begin_batch();
    let run = gateway.definition_files.begin_run();
    std::thread::scope(|scope| {
        let applied = scope.spawn(|| {
            apply_service_folder(&gateway, &by);
            drop(run);
        });
        assert_eq!((folder().running, folder().applied_at), (true, None));
        assert!(gateway.catalogue.get("Pumps").is_none());
        drop(other);
        applied.join().unwrap();
    });
    let ended = folder();
    assert!(!ended.running && ended.applied_at.is_some(), "{ended:?}");
    assert!(gateway.catalogue.get("Pumps").is_some());
}
