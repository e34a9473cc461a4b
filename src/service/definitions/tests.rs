use super::*;
use crate::business_objects::{SaveConditions, define_business_object, delete_business_object};
use crate::gateway::Gateway;
use crate::{groups, namespaces, shapes_graphs as shapes};
use penstock_auth::Authorized;
use penstock_auth::audit::Filter;
use penstock_auth::groups::NewGroup;
use penstock_base::IfMatch;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_model::ingest::Mode;
use penstock_model::namespace::NamespaceDefinition;
use penstock_model::resource::NewDefinition;
use penstock_model::shapes_graphs::TextFormat;
use penstock_model::testing::ingest_body;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

const PUMPS: &str = "\
kind: BusinessObject
name: Pumps
description: All pumps
config:
  type: object
  path: Pump:.
  fields:
    name: {type: string, path: <urn:name>}
validation: {shapes: [names], mode: reject}
review: optional
approvers: ['group:leaders']
";
const NAMESPACE: &str = "name: Pump\nuriBase: https://plant.example/Pump/\ngenerator: counter\n";
const GROUP: &str = "kind: Group\nname: leaders\nclaimValues: [shift-leaders]\n";
const NAMES: &str = "@prefix sh: <http://www.w3.org/ns/shacl#> .\n\
    <urn:Pump> a sh:NodeShape ; sh:targetSubjectsOf <urn:name> ; \
      sh:property [ sh:path <urn:name> ; sh:minLength 3 ] .\n";

fn open_gateway(dir: &Path, more: &[String]) -> Gateway {
    let mut arguments = vec![format!("--service.data-dir={}", dir.join("data").display())];
    arguments.extend_from_slice(more);
    let sources = penstock_config::Sources { arguments, ..Default::default() };
    let settings = penstock_config::load(&sources).unwrap().settings;
    Gateway::open(Arc::new(settings), &mut |_| {}).unwrap()
}

/// Files whose order is not that in which they depend on each other.
fn plant_files() -> Vec<DefinitionFile> {
    files(&[("a.yaml", PUMPS), ("b.yaml", GROUP), ("c.yaml", NAMESPACE), ("names.ttl", NAMES)])
}

fn files(all: &[(&str, &str)]) -> Vec<DefinitionFile> {
    let file = |(name, text): &(&str, &str)| DefinitionFile {
        name: (*name).to_owned(),
        text: (*text).to_owned(),
    };
    all.iter().map(file).collect()
}

fn replace(files: &mut [DefinitionFile], name: &str, from: &str, to: &str) {
    let file = files.iter_mut().find(|file| file.name == name).unwrap();
    assert!(file.text.contains(from), "{name} has {from:?}");
    file.text = file.text.replace(from, to);
}

fn in_folder() -> ApplyOptions {
    ApplyOptions { folder: "/definitions".to_owned(), ..ApplyOptions::default() }
}

fn apply(
    gateway: &Gateway,
    files: &[DefinitionFile],
    options: &ApplyOptions,
) -> Result<ApplyReport, GatewayError> {
    apply_files(gateway, &Authorized::local(), files, options)
}

/// Returns the lines of a report: the action, the kind and the name.
fn actions(report: &ApplyReport) -> Vec<String> {
    report.changes.iter().map(|change| format!("{} {}", change.action.name(), change.id)).collect()
}

fn messages(error: &GatewayError) -> String {
    error.to_string()
}

fn ingest(gateway: &Gateway, count: usize) {
    let data: Vec<_> = (0..count).map(|n| serde_json::json!({"name": format!("P-{n}")})).collect();
    let body = serde_json::json!({ "data": data }).to_string();
    let pumps = gateway.catalogue.get("Pumps").unwrap();
    let watch = gateway.catalogue.watch();
    ingest_body(&gateway.store, watch, &pumps, Mode::Add, &body).unwrap();
}

#[test]
fn files_in_any_order_are_one_commit_and_the_same_files_none() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    gateway.auth.audit.flush();
    let before = gateway.store.stats().sequence;
    let report = apply(&gateway, &plant_files(), &in_folder()).unwrap();
    let expected = [
        "created Namespace \"Pump\"",
        "created Shapes \"names\"",
        "created Group \"leaders\"",
        "created BusinessObject \"Pumps\"",
    ];
    assert_eq!(actions(&report), expected);
    assert_eq!(report.changes[3].file, "a.yaml");
    assert!(report.warnings.is_empty(), "{report:?}");
    assert_eq!(gateway.store.stats().sequence, before + 1);
    let pumps = gateway.catalogue.get("Pumps").unwrap();
    assert_eq!(
        (pumps.object.version, pumps.object.definition.description.as_str()),
        (1, "All pumps")
    );
    assert_eq!(gateway.auth.groups.get("leaders").unwrap().claim_values, ["shift-leaders"]);
    assert!(gateway.catalogue.get_shapes_graph("names").is_some());
    let events = gateway.auth.audit.list(&Filter::default(), None, 10).unwrap();
    let kinds: Vec<_> = events.iter().map(|event| event.what.as_str()).take(5).collect();
    let expected = [
        "definitions.applied",
        "business-object.created",
        "group.created",
        "shapes-graph.created",
        "namespace.created",
    ];
    assert_eq!(kinds, expected);
    assert!(events[0].detail.contains("created Group \"leaders\""), "{events:?}");

    let before = gateway.store.stats().sequence;
    let again = apply(&gateway, &plant_files(), &in_folder()).unwrap();
    assert_eq!((actions(&again), again.unchanged), (Vec::new(), 4));
    assert_eq!(gateway.store.stats().sequence, before);
    assert_eq!(find_drift(&gateway).unwrap(), (4, Vec::new()));

    // What memory shows is what is stored.
    let versions = |gateway: &Gateway| {
        let pumps = gateway.catalogue.get("Pumps").unwrap();
        let names = gateway.catalogue.get_shapes_graph("names").unwrap();
        let leaders = gateway.auth.groups.get("leaders").unwrap();
        (pumps.object.clone(), names.metadata.clone(), leaders)
    };
    let known = versions(&gateway);
    drop(gateway);
    let gateway = open_gateway(dir.path(), &[]);
    assert_eq!(versions(&gateway), known);
}

#[test]
fn one_error_applies_nothing_and_each_has_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let mut bad = plant_files();
    replace(&mut bad, "a.yaml", "type: string", "type: strong");
    replace(&mut bad, "b.yaml", "claimValues: [shift-leaders]", "claimValue: [shift-leaders]");
    bad.extend(files(&[
        (
            "d.yaml",
            "- {name: Tank, generator: counter}\n- {name: Pump, generator: uuid}\n- nothing: 1\n",
        ),
        ("e.json", "{\"kind\": \"Namespaces\",\n \"name\": \"X\"}"),
        ("f.ttl", "<urn:a> <urn:b\n"),
        ("g.shex", "start = @<urn:missing>"),
    ]));
    let error = apply(&gateway, &bad, &in_folder()).unwrap_err();
    let text = messages(&error);
    assert_eq!(error.class, ErrorClass::Invalid);
    for expected in [
        "a.yaml:8:18: ",
        "b.yaml:3:1: `claimValue` is not known here",
        "d.yaml:2:3: the namespace \"Pump\" is also in c.yaml, line 1",
        "d.yaml:3:3: it is unknown what this defines",
        "e.json:1:2: there is no kind \"Namespaces\"",
        "f.ttl:1:",
        "g.shex",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let error =
        apply(&gateway, &files(&[("a.yaml", "a: [\n"), ("b.yaml", "a: 1\na: 2\n")]), &in_folder());
    let text = messages(&error.unwrap_err());
    assert!(text.contains("a.yaml:") && text.contains("b.yaml:2:1: the key `a`"), "{text}");

    // An error that only the transaction finds.
    let mut bad = plant_files();
    replace(&mut bad, "a.yaml", "[names]", "[names, others]");
    let before = gateway.store.stats().sequence;
    let error = apply(&gateway, &bad, &in_folder()).unwrap_err();
    let text = messages(&error);
    assert!(text.contains("a.yaml:9:30: there is no shapes graph \"others\""), "{text}");
    assert_eq!(gateway.store.stats().sequence, before);
    assert!(gateway.catalogue.get_shapes_graph("names").is_none());
    assert!(gateway.auth.groups.get("leaders").is_none());
    apply(&gateway, &plant_files(), &in_folder()).unwrap();
}

#[test]
fn a_dry_run_shows_the_difference_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    apply(&gateway, &plant_files(), &in_folder()).unwrap();
    let mut changed = plant_files();
    replace(&mut changed, "a.yaml", "description: All pumps", "description: Pumps of line 4");
    replace(&mut changed, "b.yaml", "shift-leaders", "leads");
    replace(&mut changed, "names.ttl", "sh:minLength 3", "sh:minLength 4");
    changed.remove(2);
    let before = gateway.store.stats().sequence;
    let dry_run = ApplyOptions { is_dry_run: true, ..in_folder() };
    let report = apply(&gateway, &changed, &dry_run).unwrap();
    assert_eq!(gateway.store.stats().sequence, before);
    let expected = [
        "changed Shapes \"names\"",
        "changed Group \"leaders\"",
        "changed BusinessObject \"Pumps\"",
        "unmanaged Namespace \"Pump\"",
    ];
    assert_eq!(actions(&report), expected);
    let difference = |index: usize| report.changes[index].difference.join("\n");
    assert_eq!(difference(1), "  members:\n  claimValues:\n-   - shift-leaders\n+   - leads");
    let shown = difference(2);
    assert!(
        shown.contains("- description: \"All pumps\"\n+ description: \"Pumps of line 4\""),
        "{shown}"
    );
    let pumps = gateway.catalogue.get("Pumps").unwrap();
    assert_eq!(
        (pumps.object.version, pumps.object.definition.description.as_str()),
        (1, "All pumps")
    );
    assert_eq!(find_drift(&gateway).unwrap(), (4, Vec::new()));

    let report = apply(&gateway, &changed, &in_folder()).unwrap();
    assert_eq!(actions(&report), expected);
    assert_eq!(gateway.catalogue.get("Pumps").unwrap().object.version, 2);
    assert_eq!(gateway.catalogue.get_shapes_graph("names").unwrap().metadata.version, 2);
    assert_eq!(gateway.auth.groups.get("leaders").unwrap().version, 2);
}

#[test]
fn a_refused_redefinition_needs_force() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let mut plant = plant_files();
    replace(&mut plant, "names.ttl", "sh:minLength 3", "sh:minLength 1");
    apply(&gateway, &plant, &in_folder()).unwrap();
    ingest(&gateway, 3);
    let mut changed = plant.clone();
    replace(&mut changed, "a.yaml", "path: Pump:.", "path: Tank:.");
    changed.extend(files(&[("d.yaml", "name: Tank\ngenerator: uuid\n")]));
    let error = apply(&gateway, &changed, &in_folder()).unwrap_err();
    let text = messages(&error);
    assert!(
        text.contains("a.yaml:1:1: with this definition 3 ") && text.contains("force: true"),
        "{text}"
    );
    let mut omitted = plant.clone();
    replace(&mut omitted, "a.yaml", "review: optional\n", "");
    let text = messages(&apply(&gateway, &omitted, &in_folder()).unwrap_err());
    assert!(text.contains("review"), "{text}");

    replace(&mut changed, "a.yaml", "name: Pumps\n", "name: Pumps\nforce: true\n");
    let report = apply(&gateway, &changed, &in_folder()).unwrap();
    assert_eq!(
        actions(&report),
        ["created Namespace \"Tank\"", "changed BusinessObject \"Pumps\""]
    );
    let again = apply(&gateway, &changed, &in_folder()).unwrap();
    assert_eq!(actions(&again), Vec::<String>::new());
    assert!(again.warnings[0].contains("`force: true` has no effect"), "{again:?}");
    let events = gateway.auth.audit.list(&Filter::default(), None, 10).unwrap();
    assert!(events.iter().any(|event| event.detail.contains("force=true")), "{events:?}");
}

#[test]
fn pruning_deletes_what_files_created_and_never_data() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    // A definition that a client created before.
    let by = Authorized::local();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tank = NamespaceDefinition { name: "Tank".to_owned(), ..NamespaceDefinition::default() };
    runtime.block_on(namespaces::define_namespace(&gateway, &by, tank)).unwrap();
    let mut plant = plant_files();
    replace(&mut plant, "names.ttl", "sh:minLength 3", "sh:minLength 1");
    plant.extend(files(&[("d.yaml", "kind: Namespace\nname: Tank\n")]));
    let report = apply(&gateway, &plant, &in_folder()).unwrap();
    assert_eq!((report.changes.len(), report.unchanged), (4, 1));
    ingest(&gateway, 1);

    // Another folder has nothing to do with it.
    let other = ApplyOptions { folder: "/others".to_owned(), ..ApplyOptions::default() };
    assert_eq!(apply(&gateway, &[], &other).unwrap(), ApplyReport::default());

    let report = apply(&gateway, &[], &in_folder()).unwrap();
    assert_eq!((report.changes.len(), report.prunable.len()), (5, 4), "{report:?}");
    assert!(report.changes.iter().all(|change| change.action == ApplyAction::Unmanaged));
    let (managed, drifts) = find_drift(&gateway).unwrap();
    assert_eq!((managed, drifts.len()), (0, 5));
    let again = apply(&gateway, &[], &in_folder()).unwrap();
    assert_eq!((again.changes.len(), again.prunable.len()), (0, 4));

    let prune = ApplyOptions { prune: again.prunable.clone(), ..in_folder() };
    let report = apply(&gateway, &[], &prune).unwrap();
    let expected = [
        "deleted BusinessObject \"Pumps\"",
        "deleted Group \"leaders\"",
        "deleted Shapes \"names\"",
        "kept Namespace \"Pump\"",
    ];
    assert_eq!(actions(&report), expected);
    assert!(report.changes[3].reason.is_some());
    assert!(gateway.catalogue.get("Pumps").is_none());
    assert!(gateway.auth.groups.get("leaders").is_none());
    assert_eq!(gateway.store.stats().quads, 1, "the data stays");
    let names =
        |drifts: Vec<Drift>| drifts.into_iter().map(|drift| drift.id.name).collect::<Vec<_>>();
    assert_eq!(names(find_drift(&gateway).unwrap().1), ["Pump", "Tank"]);
    // The files can come back.
    let report = apply(&gateway, &plant, &in_folder()).unwrap();
    assert_eq!((report.changes.len(), report.unchanged), (3, 2));

    // In the run that finds them gone, each definition has one action. The same run again changes nothing.
    let report = apply(&gateway, &[], &prune).unwrap();
    let expected =
        [&expected[..3], &["unmanaged Namespace \"Tank\"", "kept Namespace \"Pump\""]].concat();
    assert_eq!(actions(&report), expected);
    let before = gateway.store.stats().sequence;
    let again = apply(&gateway, &[], &prune).unwrap();
    assert_eq!(actions(&again), ["kept Namespace \"Pump\""]);
    assert_eq!(gateway.store.stats().sequence, before);
}

#[test]
fn a_full_disk_refuses_only_what_changes() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    apply(&gateway, &plant_files(), &in_folder()).unwrap();
    drop(gateway);
    let gateway = open_gateway(dir.path(), &["--service.limits.disk-reserve=1TiB".to_owned()]);
    let report = apply(&gateway, &plant_files(), &in_folder()).unwrap();
    assert_eq!((report.changes.len(), report.unchanged), (0, 4));
    let mut changed = plant_files();
    replace(&mut changed, "b.yaml", "shift-leaders", "leads");
    let error = apply(&gateway, &changed, &in_folder()).unwrap_err();
    assert_eq!(error.class, ErrorClass::InsufficientStorage, "{error}");
    assert_eq!(gateway.auth.groups.get("leaders").unwrap().claim_values, ["shift-leaders"]);
}

#[test]
fn the_definitions_of_one_commit_are_checked_together() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let object = |name: &str, key: &str| {
        format!(
            "name: {name}\nconfig: |\n  type: object\n  path: Pump:.\n  key: {key}\n  fields:\n    \
             a: {{type: string, path: <urn:a>, required: true}}\n    \
             b: {{type: string, path: <urn:b>, required: true}}\n"
        )
    };
    let (one, other, same) = (object("One", "a"), object("Other", "b"), object("Other", "a"));
    let before = gateway.store.stats().sequence;
    let bad = files(&[("one.yaml", &one), ("other.yaml", &other)]);
    let error = apply(&gateway, &bad, &in_folder()).unwrap_err();
    let text = messages(&error);
    assert!(text.contains("other.yaml:") && text.contains("\"One\" has another key"), "{text}");
    assert_eq!(gateway.store.stats().sequence, before);
    assert!(gateway.catalogue.get("One").is_none());
    let good = files(&[("one.yaml", &one), ("other.yaml", &same)]);
    let report = apply(&gateway, &good, &in_folder()).unwrap();
    assert_eq!(
        actions(&report),
        ["created BusinessObject \"One\"", "created BusinessObject \"Other\""]
    );
}

#[test]
fn definitions_of_the_command_stay_editable_and_drift_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    apply(&gateway, &plant_files(), &in_folder()).unwrap();
    let by = Authorized::local();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let group = NewGroup::default();
    runtime
        .block_on(groups::define_group(&gateway, &by, "leaders", group, IfMatch::Any, false))
        .unwrap();
    runtime.block_on(delete_business_object(&gateway, &by, "Pumps", IfMatch::Any)).unwrap();
    let (_, drifts) = find_drift(&gateway).unwrap();
    let shown: Vec<_> =
        drifts.iter().map(|one| (one.id.name.as_str(), one.state, one.file.as_str())).collect();
    assert_eq!(
        shown,
        [("leaders", DriftState::Changed, "b.yaml"), ("Pumps", DriftState::Deleted, "a.yaml")]
    );
    let report = apply(&gateway, &plant_files(), &in_folder()).unwrap();
    assert_eq!(actions(&report), ["changed Group \"leaders\"", "created BusinessObject \"Pumps\""]);
    assert_eq!(find_drift(&gateway).unwrap().1, []);
}

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
        let put =
            groups::define_group(&gateway, &by, name, NewGroup::default(), IfMatch::Any, false);
        refused(put.await.map(drop), "b.yaml");
        refused(groups::delete_group(&gateway, &by, name, IfMatch::Any).await, "b.yaml");
        let turtle = TextFormat::from_media_type("text/turtle").unwrap();
        let text = NAMES.replace("minLength 3", "minLength 9");
        let any = shapes::SaveConditions::default();
        let put = shapes::define_shapes_graph(&gateway, &by, "names", text, turtle, any);
        refused(put.await.map(drop), "names.ttl");
        let generator =
            namespaces::find_namespace(&gateway, "Pump").await.unwrap().namespace.generator;
        let renamed = NamespaceDefinition {
            name: "Pump".to_owned(),
            uri_base: Some("https://other.example/".to_owned()),
            generator: Some(generator),
        };
        // The namespace is used too, and that is found first.
        let put = namespaces::define_namespace(&gateway, &by, renamed).await;
        assert_eq!(put.unwrap_err().class, ErrorClass::Conflict);
        refused(delete_business_object(&gateway, &by, "Pumps", IfMatch::Any).await, "a.yaml");
        let there = gateway.catalogue.get("Pumps").unwrap();
        let mut definition = there.object.definition.clone();
        definition.description = "mine".to_owned();
        let new = NewDefinition { definition, findings: Vec::new() };
        let any = SaveConditions::default();
        let put = define_business_object(&gateway, &by, new, any).await;
        refused(put.map(drop), "a.yaml");
        let begun = crate::deletions::begin_deletion(&gateway, &by, "Pumps", IfMatch::Any, false);
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
    runtime.block_on(groups::delete_group(&gateway, &by, "leaders", IfMatch::Any)).unwrap();
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

#[test]
fn the_status_shows_a_run_and_does_not_wait_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let setting = write_folder(dir.path(), &plant_files());
    let gateway = open_gateway(dir.path(), std::slice::from_ref(&setting));
    let by = Authorized::local();
    let folder = || gateway.collect_status(&by).unwrap().definitions.folder;
    assert_eq!((folder().is_running, folder().applied_at), (false, None));
    // The run waits for this change of the catalogue.
    let other = gateway.catalogue.begin_batch();
    let run = gateway.definition_files.begin_run();
    std::thread::scope(|scope| {
        let applied = scope.spawn(|| {
            apply_service_folder(&gateway, &by);
            drop(run);
        });
        assert_eq!((folder().is_running, folder().applied_at), (true, None));
        assert!(gateway.catalogue.get("Pumps").is_none());
        drop(other);
        applied.join().unwrap();
    });
    let ended = folder();
    assert!(!ended.is_running && ended.applied_at.is_some(), "{ended:?}");
    assert!(gateway.catalogue.get("Pumps").is_some());
}
