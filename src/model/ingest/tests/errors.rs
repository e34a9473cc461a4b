use super::*;
use crate::mapping::Literal;

#[test]
fn every_error_of_a_request_is_reported() {
    let fixture = Fixture::new(machine());
    let data = r#"{"name": "fine"},
        {"name": 5, "colour": "red", "tags": "a", "site": "no iri", "parts": [{"weight": "x"}, 7, {"maker": []}]},
        {"uri": "relative", "motor": [{}]},
        null,
        {"uri": "urn:a", "id": "urn:b", "a/b~c": 1}"#;
    assert_eq!(
        fixture.expect_refusal(Mode::Add, data, ErrorClass::Invalid),
        [
            "/data/1/name",
            "/data/1/colour",
            "/data/1/tags",
            "/data/1/site",
            "/data/1/parts/0/weight",
            "/data/1/parts/1",
            "/data/1/parts/2/maker",
            "/data/2/uri",
            "/data/2/motor",
            "/data/3",
            "/data/4/id",
            "/data/4/a~1b~0c",
        ]
    );
}

#[test]
fn an_unknown_field_is_answered_with_the_one_that_was_meant_or_all_there_are() {
    let fields = (0..25).map(|number| string(&format!("field{number:02}"))).collect();
    let fixture = Fixture::new(shape("Machine", fields));
    let refused = |object: &str| fixture.send(Mode::Add, object).unwrap_err().detail;
    let near = refused(r#"{"field24x": "a"}"#);
    assert!(near.ends_with("no field \"field24x\"; did you mean \"field24\"?"), "{near}");
    let far = refused(r#"{"pressure": "a"}"#);
    assert!(far.contains("; it has field00, field01, "), "{far}");
    assert!(far.ends_with("field18, field19 and 5 more"), "{far}");
    // Looking for a similar name takes a while, so a request that skips objects does so for 1,000 of them.
    let answer = fixture.skip(Mode::Add, &vec![r#"{"field24x": "a"}"#; 1001].join(",")).unwrap();
    let messages = answer.rejected.iter().map(|rejected| rejected.errors[0].message.as_str());
    let messages: Vec<&str> = messages.collect();
    assert!(messages[999].ends_with("did you mean \"field24\"?"), "{}", messages[999]);
    assert!(messages[1000].ends_with("field19 and 5 more"), "{}", messages[1000]);
}

#[test]
fn an_object_in_data_of_its_own_is_to_be_sent_without_it() {
    let fixture = Fixture::new(machine());
    let text = br#"{"data": [{"name": "a"}]}"#;
    let lines = Body::Lines { text, first: 0, line_numbers: &[1] };
    let wrapped = fixture.run(&fixture.request(Mode::Add, lines)).unwrap_err();
    assert_eq!(pointers(&wrapped), ["/data/0/data"]);
    let message = "send the object without `data` around it";
    assert!(wrapped.detail.ends_with(message), "{wrapped}");
    for other in [r#"{"data": "a"}"#, r#"{"name": "a", "data": {"weight": 1}}"#] {
        let text = fixture.send(Mode::Add, other).unwrap_err();
        assert!(!text.detail.contains(message), "{text}");
    }
}

#[test]
fn the_findings_are_bounded() {
    let fixture = Fixture::new(machine());
    let data = vec![r#"{"name": 1}"#; 500].join(",");
    assert_eq!(fixture.expect_refusal(Mode::Add, &data, ErrorClass::Invalid).len(), 100);
}

#[test]
fn a_request_with_many_conflicts_is_not_read_further() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "name": "x"}"#);
    let conflicts = vec![r#"{"uri": "urn:m", "name": "y"}"#; 100].join(",");
    let data = format!(r#"{conflicts}, {{"name": 1}}"#);
    assert_eq!(fixture.expect_refusal(Mode::Add, &data, ErrorClass::Conflict).len(), 100);
}

#[test]
fn invalid_values_have_priority_over_conflicts() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "name": "x"}"#);
    let data = r#"{"uri": "urn:m", "name": "y"}, {"name": 1}"#;
    assert_eq!(fixture.expect_refusal(Mode::Add, data, ErrorClass::Invalid), ["/data/1/name"]);
}

#[test]
fn dates_and_booleans_are_checked() {
    let fields = vec![
        field("day", Value::Literal(Literal::Date)),
        field("at", Value::Literal(Literal::DateTime)),
        field("on", Value::Literal(Literal::Boolean)),
        many(field("counts", Value::Literal(Literal::Integer))),
    ];
    let fixture = Fixture::new(shape("Machine", fields));
    let data =
        r#"{"day": "2026-02-30", "at": "2026-01-01", "on": "true", "counts": [1, 1.0, 1e2]}"#;
    assert_eq!(
        fixture.expect_refusal(Mode::Add, data, ErrorClass::Invalid),
        ["/data/0/day", "/data/0/at", "/data/0/on", "/data/0/counts/1", "/data/0/counts/2"]
    );
    fixture.add(r#"{"uri": "urn:m", "day": "2026-02-28Z", "at": "2026-01-01T00:00:00.10+02:00", "on": false, "counts": [10, 9, -1]}"#);
    assert_eq!(
        fixture.view("urn:m"),
        r#"{"uri":"urn:m","day":"2026-02-28Z","at":"2026-01-01T00:00:00.10+02:00","on":false,"counts":[-1,9,10]}"#
    );
}

#[test]
fn a_body_that_cannot_be_read_is_malformed() {
    let fixture = Fixture::new(machine());
    let error =
        |text: &[u8]| fixture.run(&fixture.request(Mode::Add, Body::Json(text))).unwrap_err();
    for text in [
        &b"{\"data\": [{\"name\": \"x\"}"[..],
        b"",
        b"{\"data\": [{\"name\": \"\xff\"}]}",
        b"{\"data\": [{\"name\": 1, \"name\": 2}]}",
    ] {
        let error = error(text);
        assert_eq!(error.class, ErrorClass::Malformed);
        assert!(error.detail.starts_with("Ingestion failed: "), "{error}");
    }
    assert_eq!(error(b"{}").class, ErrorClass::Invalid);
    let both = error(br#"{"data": [{"name": 1}], "more": 2}"#);
    assert_eq!(
        (both.class, pointers(&both)),
        (ErrorClass::Invalid, vec!["/data/0/name".to_owned(), "/more".to_owned()])
    );
    assert_eq!(fixture.quads(), Vec::<String>::new());
}

#[test]
fn more_objects_than_the_limit_are_refused() {
    let mut fixture = Fixture::new(machine());
    fixture.limits.objects = 2;
    fixture.expect_refusal(
        Mode::Add,
        r#"{"name": "a"}, {"name": "b"}, {"name": "c"}"#,
        ErrorClass::TooLarge,
    );
    assert_eq!(fixture.add(r#"{"name": "a"}, {"name": "b"}"#).created, 2);
}

#[test]
fn a_disabled_business_object_refuses() {
    let mut fixture = Fixture::new(machine());
    fixture.business_object.object.definition.enabled = false;
    for mode in [Mode::Add, Mode::Validate, Mode::Delete] {
        fixture.expect_refusal(mode, r#"{"uri": "urn:m"}"#, ErrorClass::Conflict);
    }
}

#[test]
fn an_undefined_namespace_is_reported() {
    let mut fixture = Fixture::new(shape("Machine", vec![string("name")]));
    fixture.business_object.mapping.root.namespace = "Lost".to_owned();
    let error = fixture.send(Mode::Add, r#"{"name": "x"}"#).unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid);
    assert!(error.detail.contains("\"Lost\""), "{error}");
}

#[test]
fn a_number_that_no_double_holds_keeps_its_digits() {
    let fixture = Fixture::new(machine());
    let digits = "123456789012345678901234567890.12345678901234567890";
    fixture.add(&format!(
        r#"{{"uri": "urn:m", "weight": {digits}}}, {{"uri": "urn:n", "weight": 1E400}}"#
    ));
    assert!(fixture.view("urn:m").contains(&format!("\"weight\":{digits},")));
    assert!(fixture.view("urn:n").contains("\"weight\":1E400,"));
}

#[test]
fn more_values_than_allowed_are_refused_before_any_is_read() {
    let mut fixture = Fixture::new(machine());
    fixture.limits.values = 10;
    let data = |parts: usize| format!(r#"{{"parts": [{}]}}"#, vec!["{}"; parts].join(","));
    fixture.send(Mode::Add, &data(6)).unwrap();
    fixture.expect_refusal(Mode::Add, &data(7), ErrorClass::TooLarge);
    let line = format!("{}\n", data(9));
    let lines = fixture
        .request(Mode::Add, Body::Lines { text: line.as_bytes(), first: 0, line_numbers: &[1] });
    let error = fixture.run(&lines).unwrap_err();
    assert!(error.detail.contains("service.limits.values"), "{error}");
}

#[test]
fn a_body_that_is_not_an_object_is_reported_without_position() {
    let fixture = Fixture::new(machine());
    let error = fixture.run(&fixture.request(Mode::Add, Body::Json(b"[]"))).unwrap_err();
    assert!(error.detail.starts_with("Ingestion failed: the body is an array"), "{error}");
}
