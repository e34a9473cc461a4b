use super::*;

#[test]
fn an_object_becomes_exactly_what_is_given() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "name": "Press", "weight": 1, "tags": ["a"], "motor": {"uri": "urn:e", "name": "e", "power": 1}}"#);
    fixture.insert("urn:m", "http://p/foreign", oxrdf::Literal::from("stays"), "urn:other");
    let data = r#"{"uri": "urn:m", "tags": ["b"], "motor": {"power": 2}}"#;
    let answer = fixture.send(Mode::Replace, data).unwrap();
    assert_eq!((answer.updated, answer.deleted), (1, 0));
    assert_eq!(
        fixture.view("urn:m"),
        r#"{"uri":"urn:m","id":"urn:m","tags":["b"],"motor":{"uri":"urn:e","power":2},"parts":[]}"#
    );
    assert!(
        fixture.quads().contains(&"<urn:m> <http://p/foreign> \"stays\" <urn:other>".to_owned())
    );
    let again = fixture.send(Mode::Replace, data).unwrap();
    assert_eq!((again.updated, again.unchanged), (0, 1));
}

#[test]
fn a_new_object_is_created_and_an_empty_one_refused() {
    let fixture =
        Fixture::new(shape("Machine", vec![required(string("name")), many(string("tags"))]));
    assert_eq!(fixture.send(Mode::Replace, r#"{"name": "x"}"#).unwrap().created, 1);
    let invalid = |data| fixture.expect_refusal(Mode::Replace, data, ErrorClass::Invalid);
    assert_eq!(invalid(r#"{"uri": "http://x/Machine/1"}"#), ["/data/0"]);
    assert_eq!(invalid(r#"{"uri": "http://x/Machine/1", "tags": []}"#), ["/data/0"]);
    assert_eq!(invalid(r#"{"uri": "http://x/Machine/1", "tags": ["x"]}"#), ["/data/0/name"]);
}

#[test]
fn unreferenced_nested_objects_are_removed() {
    let fixture = Fixture::new(machine());
    fixture.add(
        r#"{"uri": "urn:m", "parts": [{"uri": "urn:p1", "name": "1", "maker": {"uri": "urn:k", "name": "k"}}, {"uri": "urn:p2", "name": "2"}]},
           {"uri": "urn:n", "name": "n", "parts": [{"uri": "urn:p2"}]}"#,
    );
    let answer = fixture.send(Mode::Replace, r#"{"uri": "urn:m", "name": "m"}"#).unwrap();
    assert_eq!(answer.deleted, 2, "the part and its maker, but not the shared part");
    assert_eq!(
        fixture.quads(),
        [
            "<urn:m> <http://p/name> \"m\" <http://x/Machine/>",
            "<urn:n> <http://p/name> \"n\" <http://x/Machine/>",
            "<urn:n> <http://p/parts> <urn:p2> <http://x/Machine/>",
            "<urn:p2> <http://p/name> \"2\" <http://x/Part/>",
        ]
    );
}

#[test]
fn a_part_moved_within_one_request_stays() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "name": "m", "parts": [{"uri": "urn:p", "name": "1"}]}, {"uri": "urn:n", "name": "n"}"#);
    let moved = r#"{"uri": "urn:m", "name": "m"}, {"uri": "urn:n", "name": "n", "parts": [{"uri": "urn:p"}]}"#;
    assert_eq!(fixture.send(Mode::Replace, moved).unwrap().deleted, 0);
    assert_eq!(
        fixture.view("urn:n"),
        r#"{"uri":"urn:n","id":"urn:n","name":"n","tags":[],"parts":[{"uri":"urn:p","name":"1"}]}"#
    );
}

#[test]
fn an_object_of_the_request_is_not_an_orphan() {
    let inner = shape("Plant", vec![string("name")]);
    let fixture =
        Fixture::new(shape("Plant", vec![string("name"), field("part", Value::Object(inner))]));
    fixture.add(r#"{"uri": "urn:a", "name": "a", "part": {"uri": "urn:b", "name": "b"}}"#);
    let apart = r#"{"uri": "urn:b", "name": "b"}, {"uri": "urn:a", "name": "a"}"#;
    assert_eq!(fixture.send(Mode::Replace, apart).unwrap().deleted, 0);
    assert_eq!(fixture.quads().len(), 2);
}

#[test]
fn a_new_element_takes_the_place_of_an_old_one() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "parts": [{"name": "p"}]}"#);
    let answer =
        fixture.send(Mode::Replace, r#"{"uri": "urn:m", "parts": [{"name": "p"}]}"#).unwrap();
    assert_eq!((answer.updated, answer.deleted), (1, 1));
    assert_eq!(answer.objects[0].nested[0].uri, "http://x/Part/2");
    assert_eq!(fixture.quads().len(), 2);
}

#[test]
fn repeated_mentions_must_be_equal() {
    let fixture = Fixture::new(machine());
    let different = |data| fixture.expect_refusal(Mode::Replace, data, ErrorClass::Invalid);
    assert_eq!(
        different(r#"{"uri": "urn:m", "name": "x"}, {"uri": "urn:m", "weight": 1}"#),
        ["/data/1/name", "/data/1/weight"]
    );
    assert_eq!(
        different(
            r#"{"uri": "urn:m", "parts": [{"uri": "urn:p", "name": "x"}]}, {"uri": "urn:n", "parts": [{"uri": "urn:p", "name": "y"}]}"#
        ),
        ["/data/1/parts/0/name"]
    );
    let same = r#"{"uri": "urn:m", "name": "x", "parts": [{"name": "p"}], "motor": {"name": "e"}}"#;
    let answer = fixture.send(Mode::Replace, &format!("{same}, {same}")).unwrap();
    assert_eq!((answer.created, answer.unchanged), (1, 1));
    assert_eq!(fixture.quads().len(), 5, "{:?}", fixture.quads());
    let referred = r#"{"uri": "urn:n", "parts": [{"uri": "urn:q", "name": "q"}]}, {"uri": "urn:o", "parts": [{"uri": "urn:q"}]}"#;
    assert_eq!(fixture.send(Mode::Replace, referred).unwrap().created, 2);
}

#[test]
fn one_object_may_have_two_shapes() {
    let inner = shape("Plant", vec![string("name")]);
    let fixture = Fixture::new(shape(
        "Plant",
        vec![string("name"), many(field("parts", Value::Object(inner)))],
    ));
    let data = r#"{"uri": "urn:a", "name": "a", "parts": [{"uri": "urn:b", "name": "b"}]},
                  {"uri": "urn:b", "name": "b", "parts": [{"uri": "urn:a", "name": "a"}]}"#;
    assert_eq!(fixture.send(Mode::Replace, data).unwrap().created, 2);
    let quads = fixture.quads();
    assert_eq!(quads.len(), 4);
    // REPLACE accepts what the view returns, including the cycle.
    let (a, b) = (fixture.view("urn:a"), fixture.view("urn:b"));
    assert_eq!(a, r#"{"uri":"urn:a","name":"a","parts":[{"uri":"urn:b","name":"b"}]}"#);
    assert_eq!(fixture.send(Mode::Replace, &format!("{b}, {a}")).unwrap().unchanged, 2);
    assert_eq!(fixture.quads(), quads);
}
