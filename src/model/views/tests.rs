use super::*;
use penstock_base::commit::NoClient;
use penstock_base::error::{Finding, Place};
use penstock_base::json;
use penstock_store::{NEW_COUNTERS, Options};
use serde_json::{Value, json};
use std::path::Path;

fn open(dir: &Path) -> Store {
    Store::open(&dir.join("store"), Options::default(), &mut |_| {}).unwrap()
}

fn requester() -> ViewRequester<'static> {
    ViewRequester { check: &NoClient, id: "ada", on_commit: &|_, _| Ok(()) }
}

fn content(more: &Value) -> ViewContent {
    let mut body = json!({"name": "Warm", "businessObject": "b"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    ViewContent::from_json(body.to_string().as_bytes()).unwrap()
}

fn create(views: &Views, owner: Option<&str>, more: &Value) -> Arc<StoredView> {
    views.begin_change().create(requester(), owner, content(more)).unwrap()
}

#[test]
fn views_survive_a_restart_and_private_ones_go_with_their_account() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let views = Views::open(&store).unwrap();
    assert_eq!(store.format(), Format::V2);
    let own = create(
        &views,
        Some("ada"),
        &json!({"filters": [{"field": "a", "test": "eq", "value": "1"}]}),
    );
    assert_eq!(store.format(), Format::V4);
    let other = create(&views, Some("bob"), &json!({}));
    let shared = create(&views, Some("bob"), &json!({"shared": true}));
    let again = Views::open(&store).unwrap();
    assert_eq!(again.list(None, 9, |_| true), [own.clone(), other.clone(), shared.clone()]);
    assert_eq!(again.list(Some(&own.id), 1, |_| true), std::slice::from_ref(&other));
    let failed = |_: CommitPart<'_>| Err(GatewayError::new(ErrorClass::Internal, "no"));
    again.delete_private_of("ada", failed).unwrap_err();
    assert_eq!(again.get(&own.id), Some(own));
    let delete = |part: CommitPart<'_>| store.transact::<_, GatewayError>(part).map(drop);
    again.delete_private_of("ada", delete).unwrap();
    assert_eq!(again.list(None, 9, |_| true), [other.clone(), shared.clone()]);
    again.delete_private_of("bob", delete).unwrap();
    assert_eq!(again.list(None, 9, |_| true), std::slice::from_ref(&shared));
    let last = Views::open(&store).unwrap();
    assert_eq!(last.list(None, 9, |_| true), [shared]);
}

#[test]
fn the_same_content_is_no_change_and_a_failed_commit_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let views = Views::open(&open(dir.path())).unwrap();
    let view = create(&views, Some("ada"), &json!({}));
    let writer = views.begin_change();
    let same = writer.replace(requester(), &view, content(&json!({}))).unwrap();
    assert_eq!((&same, same.version), (&view, 1));
    let failing = ViewRequester {
        on_commit: &|_, _| Err(GatewayError::new(ErrorClass::Internal, "no")),
        ..requester()
    };
    let changed = content(&json!({"orderBy": "-flow"}));
    writer.replace(failing, &view, changed.clone()).unwrap_err();
    writer.delete(failing, &view).unwrap_err();
    assert_eq!(writer.get(&view.id), Some(view.clone()));
    let changed = writer.replace(requester(), &view, changed).unwrap();
    assert_eq!((changed.version, &changed.created_at), (2, &view.created_at));
    writer.delete(requester(), &changed).unwrap();
    assert_eq!(writer.get(&view.id), None);
}

#[test]
fn an_account_has_a_limited_number_of_views() {
    let dir = tempfile::tempdir().unwrap();
    let views = Views::open(&open(dir.path())).unwrap();
    for _ in 0..MAX_VIEWS_PER_ACCOUNT {
        create(&views, Some("ada"), &json!({}));
    }
    let writer = views.begin_change();
    let error = writer.create(requester(), Some("ada"), content(&json!({}))).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    writer.create(requester(), Some("bob"), content(&json!({}))).unwrap();
    writer.create(requester(), None, content(&json!({"shared": true}))).unwrap();
}

fn pointers(findings: &[Finding]) -> Vec<String> {
    let pointers = findings.iter().map(|finding| match &finding.place {
        Place::Pointer(pointer) => pointer.clone(),
        other => panic!("{other:?}"),
    });
    pointers.collect()
}

#[test]
fn a_body_is_read_strictly() {
    let filter = |value: Value| json!({"name": "n", "businessObject": "b", "filters": [value]});
    let long = "x".repeat(1_001);
    for (body, pointer) in [
        (json!([]), ""),
        (json!({"businessObject": "b"}), "/name"),
        (json!({"name": " ", "businessObject": "b"}), "/name"),
        (json!({"name": "a\u{202e}", "businessObject": "b"}), "/name"),
        (json!({"name": "n".repeat(101), "businessObject": "b"}), "/name"),
        (json!({"name": "n"}), "/businessObject"),
        (json!({"name": "n", "businessObject": "b", "filter": []}), "/filter"),
        (json!({"name": "n", "businessObject": "b", "shared": "yes"}), "/shared"),
        (json!({"name": "n", "businessObject": "b", "filters": vec![0; 21]}), "/filters"),
        (filter(json!("a")), "/filters/0"),
        (filter(json!({"field": "a", "test": "eq"})), "/filters/0/value"),
        (filter(json!({"field": "a", "test": "eq", "value": 1})), "/filters/0/value"),
        (filter(json!({"field": "a", "test": "eq", "value": long})), "/filters/0/value"),
        (filter(json!({"field": "a", "test": "eq", "value": "1", "or": 1})), "/filters/0/or"),
        (json!({"name": "n", "businessObject": "b", "columns": ["a", 1]}), "/columns/1"),
        (json!({"name": "n", "businessObject": "b", "chart": {"kind": "pie"}}), "/chart/kind"),
        (json!({"name": "n", "businessObject": "b", "columns": vec!["x".repeat(100); 50]}), ""),
    ] {
        let error = ViewContent::from_json(body.to_string().as_bytes()).unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid);
        assert_eq!(pointers(&error.findings), [pointer], "{body}");
    }
    let value = json::parse(
        b"{\"name\": \" n \", \"businessObject\": \"b\", \"version\": 7, \"chart\": null}",
        9,
    );
    let read = ViewContent::from_value(value.unwrap()).unwrap();
    assert_eq!((read.name.as_str(), read.chart), ("n", None));
}

#[test]
fn what_does_not_fit_the_mapping_is_found_at_its_place() {
    let mapping = "type: object\npath: 'Pump:.'\nfields:\n  name: {type: string, path: <urn:n>}\n  flow: {type: number, path: <urn:f>}\n  tags: {type: array, path: <urn:t>}\n";
    let root = mapping::compile(mapping).unwrap().root;
    let filter = |field: &str, test: &str, value: &str| json!({"field": field, "test": test, "value": value});
    let fitting = content(&json!({
        "filters": [filter("flow", "after", "1"), filter("uri", "eq", "urn:a")],
        "orderBy": "-flow", "columns": ["name", "uri"], "chart": {"time": "", "number": "flow"},
    }));
    assert!(fitting.find_misfits(&root).is_empty(), "{:?}", fitting.find_misfits(&root));
    let misfit = content(&json!({
        "filters": [filter("none", "eq", "1"), filter("flow", "is", "1"), filter("flow", "after", "x")],
        "orderBy": "tags", "columns": ["name", "gone"], "chart": {"time": "at", "number": "flow"},
    }));
    let expected = [
        "/filters/0/field",
        "/filters/1/test",
        "/filters/2/value",
        "/orderBy",
        "/columns/1",
        "/chart/time",
    ];
    assert_eq!(pointers(&misfit.find_misfits(&root)), expected);
}

#[test]
fn a_restored_view_gets_no_version_that_was_lost() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let views = Views::open(&store).unwrap();
    let view = create(&views, Some("ada"), &json!({}));
    let begin = 1_000_000_u64.to_be_bytes();
    let name = collections::COUNTERS.name;
    store.transact::<_, Error>(|t| t.put_document(name, NEW_COUNTERS, &begin)).unwrap();
    let changed = content(&json!({"orderBy": "-flow"}));
    let changed = views.begin_change().replace(requester(), &view, changed).unwrap();
    assert_eq!((view.version, changed.version), (1, 1_000_001));
}
