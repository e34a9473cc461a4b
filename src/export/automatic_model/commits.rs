//! Tests `metadata.commit`: a consumer that has applied the files up to it has every change up to this commit.
use super::*;

/// Adds a plant, and returns the sequence of the commit.
fn add_plant(fixture: &Fixture, number: usize) -> u64 {
    fixture.ingest_objects(0, Mode::Add, &[(number, 1, vec![])]);
    fixture.store().read().sequence()
}

/// Returns the commit and the URIs of each file of the plants in order.
fn list_commits(fixture: &Fixture) -> Vec<(u64, Vec<String>)> {
    let mut entries = fixture.exporter.list(None, 100).unwrap();
    entries.retain(|entry| entry.target == "north" && entry.business_object_name == "Plant");
    entries.sort_by_key(|entry| entry.sequence);
    let read = |id: &str| {
        let file = fixture.exporter.open_content(id).unwrap().file;
        let file: Value = serde_json::from_reader(file).unwrap();
        let objects = file["data"].as_array().unwrap().iter();
        let uris = objects.map(|object| object["uri"].as_str().unwrap().to_owned());
        (file["metadata"]["commit"].as_u64().unwrap(), uris.collect())
    };
    entries.iter().map(|entry| read(&entry.id)).collect()
}

#[test]
fn no_export_names_a_commit_whose_changes_are_only_in_a_later_one() {
    let mut fixture = Fixture::new();
    let first = add_plant(&fixture, 0);
    fixture.settle_all();
    let mut added = vec![first];
    for number in 1..3 {
        added.push(add_plant(&fixture, number));
        // The failed push closes the generation with this plant.
        fixture = fixture.apply_action(TestAction::Interrupt { push: Some(0) });
    }
    fixture.load_quads(&[(true, 0, 0, 2)]);
    added.push(fixture.store().read().sequence());
    fixture = fixture.restart();
    fixture.settle_all();
    fixture.assert_consumers_match();

    let exports = list_commits(&fixture);
    let uris: Vec<_> = exports.iter().flat_map(|(_, uris)| uris.clone()).collect();
    assert_eq!(uris, [0, 1, 2, 0].map(test_uri));
    for (at, (commit, _)) in exports.iter().enumerate() {
        let later = added.get(at + 1).copied().unwrap_or(u64::MAX);
        assert!(*commit < later, "export {at} names {commit}: {added:?}");
    }
    assert!(exports[0].0 >= added[0] && exports[1].0 >= added[1], "{exports:?}: {added:?}");
    assert!(exports[3].0 >= added[3], "{exports:?}: {added:?}");
}
