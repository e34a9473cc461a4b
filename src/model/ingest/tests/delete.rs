use super::*;

#[test]
fn an_object_is_removed_with_its_unshared_nested_objects() {
    let fixture = Fixture::new(machine());
    fixture.add(
        r#"{"uri": "urn:m", "name": "m", "motor": {"uri": "urn:e", "name": "e", "maker": {"uri": "urn:k", "name": "k"}},
            "parts": [{"uri": "urn:p", "name": "p"}]},
           {"uri": "urn:n", "parts": [{"uri": "urn:p"}]}"#,
    );
    let answer = fixture.send(Mode::Delete, r#"{"uri": "urn:m"}, {"id": "urn:unknown"}"#).unwrap();
    assert_eq!((answer.deleted, answer.objects.len()), (3, 2));
    assert_eq!(answer.objects[0].status, IngestedStatus::Deleted);
    assert_eq!(answer.objects[1].status, IngestedStatus::Absent);
    assert_eq!(
        fixture.quads(),
        [
            "<urn:n> <http://p/parts> <urn:p> <http://x/Machine/>",
            "<urn:p> <http://p/name> \"p\" <http://x/Part/>",
        ]
    );
}

#[test]
fn every_quad_about_the_object_is_removed() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "name": "m"}"#);
    fixture.insert("urn:m", "http://p/foreign", oxrdf::Literal::from("x"), "urn:other");
    fixture.send(Mode::Delete, r#"{"uri": "urn:m"}"#).unwrap();
    assert_eq!(fixture.quads(), Vec::<String>::new());
}

#[test]
fn an_unreferenced_ring_is_removed() {
    // a plant -> line -> cell -> the same line
    let back = shape("Line", vec![string("name")]);
    let cell = shape("Cell", vec![string("name"), field("line", Value::Object(back))]);
    let line = shape("Line", vec![string("name"), field("cell", Value::Object(cell))]);
    let plant = shape("Plant", vec![string("name"), field("line", Value::Object(line))]);
    let fixture = Fixture::new(plant);
    let data = |plant: &str| {
        format!(
            r#"{{"uri": "{plant}", "line": {{"uri": "urn:l", "name": "l", "cell": {{"uri": "urn:c", "name": "c", "line": {{"uri": "urn:l"}}}}}}}}"#
        )
    };
    fixture.add(&format!("{}, {}", data("urn:1"), data("urn:2")));
    assert_eq!(fixture.send(Mode::Delete, r#"{"uri": "urn:1"}"#).unwrap().deleted, 1);
    assert_eq!(fixture.send(Mode::Delete, r#"{"uri": "urn:2"}"#).unwrap().deleted, 3);
    assert_eq!(fixture.quads(), Vec::<String>::new());
}

#[test]
fn an_object_that_is_gone_costs_nothing_again() {
    let count_steps = |count: usize| {
        let fixture = Fixture::new(machine());
        fixture.add(r#"{"uri": "urn:m", "name": "m"}"#);
        let before = fixture.store.step_count();
        let data = vec![r#"{"uri": "urn:m"}"#; count].join(",");
        let answer = fixture.send(Mode::Delete, &data).unwrap();
        assert_eq!((answer.deleted, answer.objects.len()), (1, count));
        assert_eq!(answer.objects[count - 1].status, IngestedStatus::Absent);
        fixture.store.step_count() - before
    };
    assert!(count_steps(3_200) < 2 * count_steps(50));
}

#[test]
fn only_the_uri_is_accepted() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "name": "m"}"#);
    let data =
        r#"{"uri": "urn:m", "name": "m"}, {}, {"uri": "no iri"}, {"uri": "urn:m", "colour": 1}"#;
    assert_eq!(
        fixture.expect_refusal(Mode::Delete, data, ErrorClass::Invalid),
        ["/data/0/name", "/data/1", "/data/2/uri", "/data/3/colour"]
    );
}
