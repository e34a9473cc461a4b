//! Pages of lists, and what changes take of the limits.
use super::*;

#[test]
fn a_page_of_large_changes_ends_before_its_limit() {
    let plant = Plant::new("optional", "counter");
    let comment = "x".repeat(1 << 20);
    let mut ids: Vec<String> = Vec::new();
    for _ in 0..6 {
        let draft = ReviewStep::Submit(Submission { owners: &[], is_draft: true });
        let id = plant.send(Mode::Add, r#"{"name": "a"}"#, draft).unwrap().ingestion_id;
        plant.take_as(&id, ChangeAction::Submit, IfMatch::Any, Some(&comment)).unwrap();
        ids.push(id);
    }
    ids.reverse();
    for selection in [Selection::Open, Selection::All] {
        let list = |after: Option<&str>| {
            let watch = plant.catalogue.watch();
            let page = ChangePage { selection, after, limit: 10 };
            let page = list_changes(&plant.store, watch, page, &mut |_, _| true).unwrap();
            let found: Vec<_> = page.changes.into_iter().map(|change| change.id).collect();
            (found, page.has_more)
        };
        assert_eq!(list(None), (ids[..3].to_vec(), true));
        assert_eq!(list(Some(&ids[2])), (ids[3..].to_vec(), false));
    }
}

#[test]
fn the_memory_of_a_change_is_a_multiple_of_its_largest_parts() {
    let plant = Plant::new("optional", "counter");
    let small = plant.find(&plant.submit(Mode::Add, r#"{"name": "a"}"#).ingestion_id);
    let name = "x".repeat(1 << 20);
    let large =
        plant.find(&plant.submit(Mode::Add, &format!(r#"{{"name": "{name}"}}"#)).ingestion_id);
    assert!(small.memory_bytes() < 64 << 10, "{}", small.memory_bytes());
    // The request, and the page with the object, its view and its quads.
    assert!(large.memory_bytes() >= 4 * (3 << 20), "{}", large.memory_bytes());
}

#[test]
fn a_change_that_shrinks_is_rebased_although_it_exceeds_a_lower_limit() {
    let mut plant = Plant::new("optional", "counter");
    let list = |flow: u64| {
        let objects: Vec<String> = (1..=200)
            .map(|n| format!(r#"{{"uri": "http://x/pump/{n}", "flow": {}}}"#, flow * n))
            .collect();
        objects.join(",")
    };
    plant.ingest(Mode::Add, &vec![r#"{"name": "a"}"#; 200].join(","));
    let id = plant.submit(Mode::Update, &list(7)).ingestion_id;
    plant.ingest(Mode::Update, &list(7));
    plant.limits.change_bytes = 5000;
    let before = plant.find(&id);
    assert!(before.bytes > 500);
    let after = plant.take_as(&id, ChangeAction::Rebase, IfMatch::Any, None).unwrap();
    assert!(after.bytes < before.bytes && after.items == 0);
}
