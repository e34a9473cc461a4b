//! A push without members reports the reason. After the last object is removed, one empty file is exported.
use oxrdf::NamedNode;
use penstock_test_support::exports::prelude::*;

#[test]
fn a_push_without_members_returns_the_reason_and_no_file() {
    let plant = Plant::new();
    let exporter = plant.open(embedded());
    let push = exporter.push(&pump("Pump", &["plant-a"]), ExportRequester::gateway()).unwrap();
    assert!(push.exports.is_empty());
    let reason = push.reason.unwrap();
    assert!(reason.contains("`Pump`") && reason.contains(BASE), "{reason}");
    assert!(plant.spooled().is_empty());

    plant.pumps(0..2, 1);
    let mut conditioned = pump("Pump", &["plant-a"]);
    let iri = |iri: &str| NamedNode::new(iri).unwrap();
    conditioned.conditions =
        vec![(iri("https://plant.example/type"), iri("https://plant.example/Pump").into())];
    let reason = exporter.push(&conditioned, ExportRequester::gateway()).unwrap().reason.unwrap();
    assert!(reason.contains("https://plant.example/type"), "{reason}");
    assert!(reason.contains("https://plant.example/Pump"), "{reason}");
}

#[test]
fn one_empty_file_follows_after_all_objects_are_removed() {
    let plant = Plant::with_pumps(0..2, 1);
    let exporter = plant.open(embedded());
    let business_object = pump("Pump", &["plant-a"]);
    push_one(&exporter, &business_object);
    plant.clear();
    let empty = push_one(&exporter, &business_object);
    assert_eq!((empty.object_count, empty.sequence), (0, 2));
    let push = exporter.push(&business_object, ExportRequester::gateway()).unwrap();
    assert!(push.exports.is_empty() && push.reason.is_some());
    plant.pumps(0..1, 1);
    assert_eq!(push_one(&exporter, &business_object).sequence, 3);
}
