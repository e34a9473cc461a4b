use super::*;
use penstock_model::testing::put_definition;
use penstock_resources::definitions::ApplyAction;
use penstock_resources::gateway::Drift;

/// Applies files, and prunes what the dry run before it lists, as `penstock apply --prune` does.
pub(super) fn apply_and_prune(gateway: &Gateway, files: &[DefinitionFile]) -> AppliedDefinitions {
    let dry_run = ApplyOptions { is_dry_run: true, prunes_all: true, ..in_folder() };
    let prune = apply(gateway, files, &dry_run).unwrap().prunable;
    apply(gateway, files, &ApplyOptions { prune, ..in_folder() }).unwrap()
}

fn leave_out(name: &str) -> Vec<DefinitionFile> {
    plant_files().into_iter().filter(|file| file.name != name).collect()
}

#[test]
fn each_kind_is_pruned_if_nothing_uses_it() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    apply(&gateway, &plant_files(), &in_folder()).unwrap();
    // What a Business Object uses stays, with the reason.
    for (file, id) in [("c.yaml", "Namespace \"Pump\""), ("names.ttl", "Shapes \"names\"")] {
        let report = apply_and_prune(&gateway, &leave_out(file));
        assert_eq!(actions(&report), [format!("kept {id}")]);
        let reason = report.changes[0].reason.as_deref().unwrap();
        assert!(reason.contains("Pumps"), "{reason}");
        apply(&gateway, &plant_files(), &in_folder()).unwrap();
    }
    let report = apply_and_prune(&gateway, &leave_out("b.yaml"));
    assert_eq!(actions(&report), ["deleted Group \"leaders\""]);
    assert!(gateway.auth.groups.get("leaders").is_none());
    let report = apply_and_prune(&gateway, &leave_out("a.yaml"));
    assert_eq!(actions(&report), ["created Group \"leaders\"", "deleted BusinessObject \"Pumps\""]);
    assert!(gateway.catalogue.get("Pumps").is_none());
    let report = apply_and_prune(&gateway, &files(&[("b.yaml", GROUP)]));
    assert_eq!(actions(&report), ["deleted Shapes \"names\"", "deleted Namespace \"Pump\""]);
    assert!(gateway.catalogue.get_shapes_graph("names").is_none());
    assert_eq!(find_drift(&gateway).unwrap(), (1, Vec::new()));
}

#[test]
fn a_renamed_file_prunes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    apply(&gateway, &plant_files(), &in_folder()).unwrap();
    let mut renamed = plant_files();
    for file in &mut renamed[..3] {
        file.name = format!("new-{}", file.name);
    }
    let report = apply_and_prune(&gateway, &renamed);
    assert_eq!((actions(&report), report.unchanged), (Vec::new(), 4));
    let id = DefinitionId { kind: DefinitionKind::Group, name: "leaders".to_owned() };
    let found = penstock_base::managed::find_managed(&gateway.store.read(), id.kind, &id.name);
    assert_eq!(found.unwrap().unwrap().file, "new-b.yaml");
}

#[test]
fn another_kind_under_the_same_name_is_pruned_only_by_a_later_run() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    apply(&gateway, &plant_files(), &in_folder()).unwrap();
    let mut changed = plant_files();
    replace(&mut changed, "b.yaml", "kind: Group", "kind: Namespace");
    replace(&mut changed, "b.yaml", "claimValues: [shift-leaders]", "generator: uuid");
    let report = apply_and_prune(&gateway, &changed);
    assert_eq!(actions(&report), ["created Namespace \"leaders\"", "unmanaged Group \"leaders\""]);
    assert!(report.warnings[0].contains("only a later run prunes it"), "{report:?}");
    assert!(gateway.auth.groups.get("leaders").is_some());
    let report = apply_and_prune(&gateway, &changed);
    assert_eq!(actions(&report), ["deleted Group \"leaders\""]);
}

#[test]
fn what_was_deleted_and_created_again_is_not_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let (by, any) = (Authorized::local(), Preconditions::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let delete_pumps =
        || runtime.block_on(delete::<BusinessObjects>(&gateway, &by, "Pumps", any)).unwrap();
    let create_again = || {
        delete_pumps();
        let config =
            "{type: object, path: 'Pump:.', fields: {name: {type: string, path: <urn:name>}}}";
        put_definition(&gateway.catalogue, &serde_json::json!({"name": "Pumps", "config": config}));
    };
    let without = leave_out("a.yaml");
    // No file has it any more.
    apply(&gateway, &plant_files(), &in_folder()).unwrap();
    apply(&gateway, &without, &in_folder()).unwrap();
    create_again();
    assert_eq!(actions(&apply_and_prune(&gateway, &without)), Vec::<String>::new());
    assert!(gateway.catalogue.get("Pumps").is_some());
    // A file still has it.
    delete_pumps();
    apply(&gateway, &plant_files(), &in_folder()).unwrap();
    create_again();
    let report = apply(&gateway, &plant_files(), &in_folder()).unwrap();
    assert_eq!(actions(&report), ["changed BusinessObject \"Pumps\""]);
    let report = apply_and_prune(&gateway, &without);
    assert_eq!(actions(&report), ["unmanaged BusinessObject \"Pumps\""]);
    assert!(gateway.catalogue.get("Pumps").is_some());
}

#[test]
fn pruning_deletes_what_files_created_and_never_data() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    // A definition that a client created before.
    let by = Authorized::local();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tank = DefinedNamespace { name: "Tank".to_owned(), ..DefinedNamespace::default() };
    let saved = save::<Namespaces>(&gateway, &by, tank, Preconditions::default());
    runtime.block_on(saved).unwrap();
    let mut plant = plant_files();
    replace(&mut plant, "names.ttl", "sh:minLength 3", "sh:minLength 1");
    plant.extend(files(&[("d.yaml", "kind: Namespace\nname: Tank\n")]));
    let report = apply(&gateway, &plant, &in_folder()).unwrap();
    assert_eq!((report.changes.len(), report.unchanged), (4, 1));
    ingest(&gateway, 1);

    // Another folder has nothing to do with it.
    let other = ApplyOptions { folder: "/others".to_owned(), ..ApplyOptions::default() };
    assert_eq!(apply(&gateway, &[], &other).unwrap(), AppliedDefinitions::default());

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
    let names = |drifts: Vec<Drift>| drifts.into_iter().map(|drift| drift.name).collect::<Vec<_>>();
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
