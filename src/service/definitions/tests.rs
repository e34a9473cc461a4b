mod folder;
mod keys;
mod pruning;

use super::*;
use crate::accounts::create_account;
use crate::business_objects::{BusinessObjects, NewBusinessObject};
use crate::gateway::Gateway;
use crate::groups::Groups;
use crate::namespaces::Namespaces;
use crate::shapes_graphs::{NewShapesGraph, ShapesGraphs};
use penstock_auth::accounts::{AccountEdit, NewAccount};
use penstock_auth::audit::Filter;
use penstock_auth::groups::NewGroup;
use penstock_auth::{Authorized, Role};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::{IfMatch, Preconditions};
use penstock_model::ingest::Mode;
use penstock_model::resource::NewDefinition;
use penstock_model::shapes_graphs::TextFormat;
use penstock_model::testing::ingest_body;
use penstock_resources::definitions::{AppliedDefinitions, DefinitionFile, DefinitionKind};
use penstock_resources::gateway::DriftState;
use penstock_resources::namespace::DefinedNamespace;
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
    crate::testing::open_gateway(&dir.join("data"), more)
}

/// An account that loses its role meanwhile commits nothing that needs it, whatever role the route asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_use_case_checks_its_role_before_and_in_its_commit() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let local = Authorized::local();
    let mut signed_in = Vec::new();
    for (email, role) in [("user@plant.example", Role::User), ("admin@plant.example", Role::Admin)]
    {
        let (given_name, family_name, organization) = (None, None, None);
        let (email, password) = (email.to_owned(), "correct horse battery".to_owned());
        let enabled = true;
        let new =
            NewAccount { given_name, family_name, email, organization, role, enabled, password };
        let account = create_account(&gateway, &local, new).await.unwrap();
        let session = gateway.auth.sessions.start_session(&account, None, None).unwrap();
        let caller = gateway.auth.sessions.authenticate_session(&session.id).unwrap();
        signed_in.push((account, gateway.auth.authorize(caller, Role::User).unwrap()));
    }
    let [(_, user), (account, admin)] = &signed_in[..] else { panic!("two accounts") };
    let new = || NewGroup::from_json("leaders", b"{}").unwrap();
    let save = async |by| save::<Groups>(&gateway, by, new(), Preconditions::default()).await;
    assert_eq!(save(user).await.unwrap_err().class, ErrorClass::Forbidden);
    let account = Arc::clone(account);
    let demoted = gateway.run(admin, Role::Admin, move |gateway, by| {
        let edit = AccountEdit { role: Some(Role::User), ..AccountEdit::unchanged_from(&account) };
        let accounts = &gateway.auth.accounts;
        accounts.change(&Authorized::local(), &account.id, IfMatch::Any, edit)?;
        gateway.store.commit::<_, GatewayError>(by, |_| Ok(()))
    });
    assert_eq!(demoted.await.unwrap_err().class, ErrorClass::Forbidden);
    assert!(gateway.auth.groups.get("leaders").is_none());
    save(&local).await.unwrap();
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
) -> Result<AppliedDefinitions, GatewayError> {
    apply_files(gateway, &Authorized::local(), files, options)
}

/// Returns the lines of a report: the action, the kind and the name.
fn actions(report: &AppliedDefinitions) -> Vec<String> {
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
fn each_kind_has_its_type() {
    for kind in DefinitionKind::ALL {
        assert_eq!(of_kind!(kind, K => <K as Kind>::KIND), kind);
    }
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
fn an_error_is_reported_once() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    apply(&gateway, &plant_files(), &in_folder()).unwrap();
    // The namespace is used, and the Business Object gives it another base.
    let other = "kind: BusinessObject\nname: Other\nnamespaces: [{name: Pump, uriBase: 'https://other.example/'}]\n\
                 config: {type: object, path: 'Pump:.', fields: {a: {type: string, path: <urn:a>}}}\n";
    let error = apply(&gateway, &files(&[("o.yaml", other)]), &in_folder()).unwrap_err();
    let text = messages(&error);
    assert_eq!((error.class, error.findings.len()), (ErrorClass::Conflict, 1), "{text}");
    assert!(text.contains("o.yaml:3:14: the namespace \"Pump\" is used"), "{text}");
    let json = "{\"kind\": \"Group\", \"claimValues\": [\"\\ud83d\\ude00\"], \"x\": 1, \"name\": \"leaders\"}";
    let error = apply(&gateway, &files(&[("g.json", json)]), &in_folder()).unwrap_err();
    let text = messages(&error);
    assert!(text.contains("g.json:1:52: `x` is not known here"), "{text}");
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
    assert!(text.contains("review") && text.contains("force: true"), "{text}");
    assert_eq!(text.lines().count(), 2, "the remedy belongs to its error: {text}");

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
    // The same definitions become read-only, which is a change too.
    let of_service = ApplyOptions { is_service_folder: true, ..in_folder() };
    let error = apply(&gateway, &plant_files(), &of_service).unwrap_err();
    assert_eq!(error.class, ErrorClass::InsufficientStorage, "{error}");
}

#[test]
fn a_full_disk_does_not_refuse_the_unchanged_files_of_the_service() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let of_service = ApplyOptions { is_service_folder: true, ..in_folder() };
    apply(&gateway, &plant_files(), &of_service).unwrap();
    drop(gateway);
    let gateway = open_gateway(dir.path(), &["--service.limits.disk-reserve=1TiB".to_owned()]);
    // A command with the same folder leaves them read-only.
    for options in [of_service, in_folder()] {
        let report = apply(&gateway, &plant_files(), &options).unwrap();
        assert_eq!((report.changes.len(), report.unchanged), (0, 4));
    }
}

#[test]
fn definitions_of_the_command_stay_editable_and_drift_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    apply(&gateway, &plant_files(), &in_folder()).unwrap();
    let by = Authorized::local();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let group = NewGroup { name: "leaders".to_owned(), ..NewGroup::default() };
    let any = Preconditions::default();
    runtime.block_on(save::<Groups>(&gateway, &by, group, any)).unwrap();
    runtime.block_on(delete::<BusinessObjects>(&gateway, &by, "Pumps", any)).unwrap();
    let (_, drifts) = find_drift(&gateway).unwrap();
    let shown: Vec<_> =
        drifts.iter().map(|one| (one.name.as_str(), one.state, one.file.as_str())).collect();
    assert_eq!(
        shown,
        [("leaders", DriftState::Changed, "b.yaml"), ("Pumps", DriftState::Deleted, "a.yaml")]
    );
    let report = apply(&gateway, &plant_files(), &in_folder()).unwrap();
    assert_eq!(actions(&report), ["changed Group \"leaders\"", "created BusinessObject \"Pumps\""]);
    assert_eq!(find_drift(&gateway).unwrap().1, []);
}
