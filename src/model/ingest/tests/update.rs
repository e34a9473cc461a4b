use super::*;

#[test]
fn given_fields_are_replaced_and_others_stay() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "name": "Press", "weight": 1, "tags": ["a", "b"], "motor": {"uri": "urn:e", "name": "e", "power": 1}}"#);
    let answer = fixture
        .send(
            Mode::Update,
            r#"{"uri": "urn:m", "weight": 2, "tags": ["b", "c"], "motor": {"power": 9}}"#,
        )
        .unwrap();
    assert_eq!(answer.objects[0].status, IngestedStatus::Updated);
    assert_eq!(
        fixture.view("urn:m"),
        r#"{"uri":"urn:m","id":"urn:m","name":"Press","weight":2,"tags":["b","c"],"motor":{"uri":"urn:e","name":"e","power":9},"parts":[]}"#
    );
    let again = fixture.send(Mode::Update, r#"{"uri": "urn:m", "weight": 2}"#).unwrap();
    assert_eq!((again.updated, again.unchanged), (0, 1));
}

#[test]
fn an_empty_array_clears_and_null_does_not() {
    let fixture = Fixture::new(machine());
    fixture.add(
        r#"{"uri": "urn:m", "name": "x", "tags": ["a"], "parts": [{"uri": "urn:p", "name": "p"}]}"#,
    );
    assert_eq!(
        fixture
            .send(Mode::Update, r#"{"uri": "urn:m", "name": null, "tags": null}"#)
            .unwrap()
            .unchanged,
        1
    );
    let answer =
        fixture.send(Mode::Update, r#"{"uri": "urn:m", "tags": [], "parts": []}"#).unwrap();
    assert_eq!((answer.updated, answer.deleted), (1, 0));
    assert_eq!(
        fixture.view("urn:m"),
        r#"{"uri":"urn:m","id":"urn:m","name":"x","tags":[],"parts":[]}"#
    );
    assert_eq!(fixture.quads().len(), 2, "UPDATE removes no nested objects");
}

#[test]
fn an_unknown_or_missing_uri_is_refused() {
    let fixture = Fixture::new(machine());
    let data = r#"{"uri": "urn:m", "name": "x"}, {"name": "y"}"#;
    assert_eq!(
        fixture.expect_refusal(Mode::Update, data, ErrorClass::Invalid),
        ["/data/0", "/data/1"]
    );
}

#[test]
fn a_required_field_cannot_be_cleared() {
    let fixture = Fixture::new(shape("Machine", vec![required(many(string("tags"))), number("n")]));
    fixture.add(r#"{"uri": "urn:m", "tags": ["x"]}"#);
    let empty = r#"{"uri": "urn:m", "tags": []}"#;
    assert_eq!(fixture.expect_refusal(Mode::Update, empty, ErrorClass::Invalid), ["/data/0/tags"]);
    assert_eq!(fixture.send(Mode::Update, r#"{"uri": "urn:m", "n": 1}"#).unwrap().updated, 1);
}

#[test]
fn repeated_mentions_must_be_equal() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "name": "x"}"#);
    let data = r#"{"uri": "urn:m", "name": "y"}, {"uri": "urn:m", "name": "z"}"#;
    assert_eq!(fixture.expect_refusal(Mode::Update, data, ErrorClass::Invalid), ["/data/1/name"]);
    let data = r#"{"uri": "urn:m", "tags": ["a", "b"]}, {"uri": "urn:m", "tags": ["b", "a"]}"#;
    let answer = fixture.send(Mode::Update, data).unwrap();
    assert_eq!((answer.updated, answer.unchanged), (1, 1));
}

#[test]
fn values_in_other_graphs_are_replaced_too() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "name": "x"}"#);
    fixture.insert("urn:m", "http://p/name", oxrdf::Literal::from("old"), "urn:other");
    fixture.send(Mode::Update, r#"{"uri": "urn:m", "name": "new"}"#).unwrap();
    assert_eq!(fixture.quads(), ["<urn:m> <http://p/name> \"new\" <http://x/Machine/>"]);
}
