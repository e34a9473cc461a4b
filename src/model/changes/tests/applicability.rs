//! Whether a change still does what was shown, and has the warnings that were shown.
use super::*;
use crate::testing::put_shapes_graph;

const SHAPES: &str = "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix p: <http://p/> .\n\
    <http://s/Pump> a sh:NodeShape ; sh:targetSubjectsOf p:name ; \
      sh:property [ sh:path p:name ; sh:minLength 3 ; \
        sh:message \"a longer name is expected\"@en , \"ein längerer Name wird erwartet\"@de ] .";

const RENAME: &str = r#"{"uri": "http://x/pump/1", "name": "ab"}"#;

fn check(plant: &Plant, id: &str) -> Applicability {
    plant
        .review(id, IfMatch::Any, None, |store, review, decision| {
            check_applicability(store, review, decision)
        })
        .unwrap()
}

fn list_warnings(plant: &Plant, id: &str) -> Vec<String> {
    let change = plant.find(id);
    let content = read_content(&plant.store.read(), &change).unwrap();
    content.warnings.into_iter().map(|warning| warning.message).collect()
}

/// A gateway with a pump, and with shapes in `warn` or without.
fn define_shapes(plant: &mut Plant, has_shapes: bool) {
    let mut pumps = definition("optional", "counter");
    pumps["validation"] =
        json!({"shapes": ["pumps"], "mode": if has_shapes { "warn" } else { "off" }});
    plant.pumps = put_definition(&plant.catalogue, &pumps);
}

#[test]
fn a_change_applies_until_something_that_it_depends_on_changes() {
    let plant = Plant::new("optional", "counter");
    plant.ingest(Mode::Add, r#"{"name": "old"}"#);
    let id = plant.submit(Mode::Update, RENAME).ingestion_id;
    assert_eq!(check(&plant, &id), Applicability::Applies, "nothing was committed meanwhile");
    plant.ingest(Mode::Add, r#"{"name": "another"}"#);
    assert_eq!(check(&plant, &id), Applicability::Applies);
    plant.ingest(Mode::Update, r#"{"uri": "http://x/pump/1", "flow": 1}"#);
    assert_eq!(check(&plant, &id), Applicability::Differs);
    plant.take_as(&id, ChangeAction::Rebase, IfMatch::Any, None).unwrap();
    assert_eq!(check(&plant, &id), Applicability::Applies);
    plant.ingest(Mode::Delete, r#"{"uri": "http://x/pump/1"}"#);
    assert!(matches!(check(&plant, &id), Applicability::Fails(_)));
}

#[test]
fn a_warning_that_appears_after_the_submission_is_approved_only_after_it_was_shown() {
    let mut plant = Plant::new("optional", "counter");
    put_shapes_graph(&plant.store, "pumps", SHAPES);
    define_shapes(&mut plant, false);
    plant.ingest(Mode::Add, r#"{"name": "old"}"#);
    let id = plant.submit(Mode::Update, RENAME).ingestion_id;
    assert_eq!(list_warnings(&plant, &id), Vec::<String>::new());
    define_shapes(&mut plant, true);
    assert_eq!(check(&plant, &id), Applicability::Differs);
    assert_eq!(plant.approve(&id).unwrap_err().class, ErrorClass::Conflict);
    let rebased = plant.take_as(&id, ChangeAction::Rebase, IfMatch::Any, None).unwrap();
    assert_eq!(rebased.version, 2);
    let warnings = list_warnings(&plant, &id);
    assert!(warnings.len() == 1 && warnings[0].contains("a longer name"), "{warnings:?}");
    assert_eq!(check(&plant, &id), Applicability::Applies);
    plant.approve(&id).unwrap();
}

#[test]
fn warnings_keep_the_language_of_the_author() {
    let mut plant = Plant::new("optional", "counter");
    put_shapes_graph(&plant.store, "pumps", SHAPES);
    define_shapes(&mut plant, true);
    let request = Request {
        review: ReviewStep::Submit(Submission::default()),
        languages: &["de".to_owned()],
        ..plant.request(Mode::Add, Body::Json(br#"{"data": [{"name": "ab"}]}"#))
    };
    let id = plant.run(&request).unwrap().ingestion_id;
    plant.ingest(Mode::Add, r#"{"name": "another"}"#);
    assert_eq!(check(&plant, &id), Applicability::Applies);
    plant.take(&id, ChangeAction::Rebase, IfMatch::Any).unwrap();
    let warnings = list_warnings(&plant, &id);
    assert!(warnings.len() == 1 && warnings[0].contains("ein längerer Name"), "{warnings:?}");
}
