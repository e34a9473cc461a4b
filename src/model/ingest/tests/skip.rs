use super::*;
use crate::dead_letters::{self, DeadLetter, count_error_bytes};
use penstock_resources::dead_letter::RejectedObject;
use penstock_store::{DocumentRange, Read as _, ReadStore};
use proptest::prelude::*;

/// A machine with a required name, a resource, a single motor and an array of parts.
fn strict_machine() -> Shape {
    let part = shape("Part", vec![string("name"), number("weight")]);
    shape(
        "Machine",
        vec![
            required(string("name")),
            number("weight"),
            field("site", Value::Resource),
            field("motor", Value::Object(part.clone())),
            many(field("parts", Value::Object(part))),
        ],
    )
}

impl Fixture {
    pub(super) fn skip(&self, mode: Mode, elements: &str) -> Result<Answer, GatewayError> {
        let body = format!("{{\"data\": [{elements}]}}");
        self.run(&self.skip_request(mode, Body::Json(body.as_bytes())))
    }

    fn skip_request<'a>(&'a self, mode: Mode, body: Body<'a>) -> Request<'a> {
        Request { on_error: OnError::Skip, ..self.request(mode, body) }
    }
}

fn rejected_indexes(answer: &Answer) -> Vec<usize> {
    answer.rejected.iter().map(|rejected| rejected.index).collect()
}

/// Returns the dead letters of an ingestion with their texts.
pub(super) fn letters(store: &ReadStore, ingestion: &str) -> Vec<(DeadLetter, String)> {
    let listed =
        dead_letters::list_ingestion_letters(store, ingestion, None, None, usize::MAX).unwrap();
    assert_eq!(listed.next, None);
    let text = |id: &str| dead_letters::read_text(&store.read(), id).unwrap().unwrap();
    let with_text = listed.letters.into_iter().map(|letter| {
        let text = String::from_utf8(text(&letter.id)).unwrap();
        (letter, text)
    });
    with_text.collect()
}

#[test]
fn only_objects_with_errors_are_left_out_and_their_texts_are_kept() {
    let fixture = Fixture::new(machine());
    let wrong = "{\"name\": 1,\n \"weight\":\"x\" , \"color\": null}";
    let answer = fixture
        .skip(Mode::Add, &format!("{{\"name\": \"a\"}}, {wrong}\n ,{{\"name\": \"b\"}}, []"))
        .unwrap();
    assert_eq!((answer.created, rejected_indexes(&answer)), (2, vec![1, 3]));
    let uris: Vec<_> = answer.objects.iter().map(|o| (o.index, o.uri.as_str())).collect();
    assert_eq!(uris, [(0, "http://x/Machine/1"), (2, "http://x/Machine/2")]);
    let pointers: Vec<_> =
        answer.rejected[0].errors.iter().filter_map(|error| error.pointer.as_deref()).collect();
    assert_eq!(pointers, ["/data/1/name", "/data/1/weight", "/data/1/color"]);
    let kept = letters(&fixture.store, &answer.ingestion_id);
    let texts: Vec<_> = kept.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, [wrong, "[]"]);
    for ((letter, _), rejected) in kept.iter().zip(&answer.rejected) {
        assert_eq!(Some(&letter.id), rejected.id.as_ref());
        assert_eq!(letter.errors, rejected.errors);
        assert_eq!((letter.line, letter.mode), (None, Mode::Add));
    }
    let record = list_records(&fixture.store, None, 1).unwrap().remove(0);
    assert_eq!((record.created, record.rejected), (2, 2));
    let totals = dead_letters::read_totals(&fixture.store.read()).unwrap();
    assert_eq!((totals.letters, totals.evicted), (2, 0));
}

#[test]
fn nothing_of_a_rejected_object_stays_not_even_its_numbers() {
    let fixture = Fixture::new(strict_machine());
    // Its parts are minted before the name turns out to be missing.
    let wrong = r#"{"weight": 1, "parts": [{"name": "p"}, {"name": "q"}]}"#;
    let answer =
        fixture.skip(Mode::Add, &format!(r#"{wrong}, {{"name": "a", "motor": {{"name": "m"}}}}"#));
    assert_eq!(rejected_indexes(&answer.unwrap()), [0]);
    let expected = Fixture::new(strict_machine());
    expected.add(r#"{"name": "a", "motor": {"name": "m"}}"#);
    assert_eq!(fixture.quads(), expected.quads());
    // The counters continue where the valid objects left them.
    fixture.add(r#"{"name": "b", "motor": {"name": "n"}}"#);
    expected.add(r#"{"name": "b", "motor": {"name": "n"}}"#);
    assert_eq!(fixture.quads(), expected.quads());
}

#[test]
fn rejected_objects_look_at_taken_numbers_once() {
    let count_steps = |count: usize| {
        let fixture = Fixture::new(strict_machine());
        let site = |number: usize| format!(r#""site": "http://x/Part/{number}""#);
        let taken = (1..=count)
            .map(|number| format!(r#"{{"uri": "urn:{number}", "name": "a", {}}}"#, site(number)));
        fixture.add(&taken.collect::<Vec<_>>().join(","));
        // Each is rejected, because it has no name, and refers to another number.
        let rejected: Vec<String> = (0..count)
            .map(|number| format!(r#"{{{}, "motor": {{"weight": 1}}}}"#, site(count + 2 + number)))
            .collect();
        let valid = r#"{"name": "b", "motor": {"weight": 1}}"#;
        let before = fixture.store.step_count();
        let answer = fixture.skip(Mode::Add, &format!("{},{valid}", rejected.join(",")));
        let answer = answer.unwrap();
        assert_eq!(answer.objects[0].nested[0].uri, format!("http://x/Part/{}", count + 1));
        assert_eq!(answer.rejected.len(), count);
        fixture.store.step_count() - before
    };
    let (few, many) = (count_steps(50), count_steps(400));
    assert!(many < 20 * few, "{few}, {many}");
}

#[test]
fn a_number_that_only_a_rejected_object_has_is_minted() {
    let fixture = Fixture::new(strict_machine());
    let wrong = r#"{"site": "http://x/Part/1", "motor": {"weight": 1}}"#;
    let valid = r#"{"name": "b", "motor": {"weight": 1}}"#;
    // The URI of the last object is that of the number after it.
    let last = r#"{"uri": "http://x/Part/2", "name": "c"}"#;
    let answer = fixture.skip(Mode::Add, &format!("{wrong}, {wrong}, {valid}, {last}")).unwrap();
    assert_eq!(rejected_indexes(&answer), [0, 1]);
    assert_eq!(answer.objects[0].nested[0].uri, "http://x/Part/1");
}

#[test]
fn the_values_of_a_rejected_object_do_not_contradict_later_ones() {
    for mode in [Mode::Add, Mode::Replace] {
        let fixture = Fixture::new(strict_machine());
        let answer = fixture
            .skip(
                mode,
                r#"{"uri": "urn:a", "weight": 1}, {"uri": "urn:a", "name": "a", "weight": 2}"#,
            )
            .unwrap();
        assert_eq!((rejected_indexes(&answer), answer.created), (vec![0], 1), "{mode}");
        assert!(fixture.view("urn:a").contains(r#""weight":2"#), "{mode}");
    }
    let fixture = Fixture::new(strict_machine());
    // The number 1 was minted for the rejected object.
    let answer = fixture
        .skip(Mode::Add, r#"{"weight": 1}, {"uri": "http://x/Machine/1", "name": "a"}"#)
        .unwrap();
    assert_eq!((rejected_indexes(&answer), answer.created), (vec![0], 1));
}

#[test]
fn objects_that_need_a_rejected_one_are_rejected_too() {
    let fixture = Fixture::new(strict_machine());
    let answer = fixture
        .skip(
            Mode::Add,
            r#"{"uri": "urn:c", "name": "c", "motor": {"uri": "urn:b"}},
               {"uri": "urn:b", "name": "b", "site": "urn:n"},
               {"uri": "urn:a", "weight": 1, "parts": [{"uri": "urn:n", "name": "n"}]},
               {"uri": "urn:d", "name": "d", "parts": [{"name": "p", "weight": 1}]},
               {"uri": "urn:e", "name": "e", "site": "urn:elsewhere"}"#,
        )
        .unwrap();
    assert_eq!(rejected_indexes(&answer), [0, 1, 2]);
    let error = |index: usize| answer.rejected[index].errors[0].clone();
    assert_eq!(error(0).pointer.as_deref(), Some("/data/0/motor"));
    assert!(error(0).message.contains("urn:b is not stored, because object 1"), "{:?}", error(0));
    assert_eq!(error(1).pointer.as_deref(), Some("/data/1/site"));
    assert!(error(1).message.contains("urn:n is not stored, because object 2"), "{:?}", error(1));
    let expected = Fixture::new(strict_machine());
    expected.add(
        r#"{"uri": "urn:d", "name": "d", "parts": [{"name": "p", "weight": 1}]},
           {"uri": "urn:e", "name": "e", "site": "urn:elsewhere"}"#,
    );
    assert_eq!(fixture.quads(), expected.quads());
}

#[test]
fn a_cycle_through_a_rejected_object_is_rejected_and_one_without_is_not() {
    let fixture = Fixture::new(strict_machine());
    let answer = fixture
        .skip(
            Mode::Add,
            r#"{"uri": "urn:a", "name": "a", "motor": {"uri": "urn:b"}},
               {"uri": "urn:b", "name": "b", "motor": {"uri": "urn:c"}},
               {"uri": "urn:c", "name": 1, "motor": {"uri": "urn:a"}},
               {"uri": "urn:x", "name": "x", "motor": {"uri": "urn:y"}},
               {"uri": "urn:y", "name": "y", "motor": {"uri": "urn:x"}, "site": "urn:y"}"#,
        )
        .unwrap();
    assert_eq!((rejected_indexes(&answer), answer.created), (vec![0, 1, 2], 2));
}

#[test]
fn a_reference_to_a_rejected_object_that_is_stored_or_given_again_is_valid() {
    let fixture = Fixture::new(strict_machine());
    fixture.add(r#"{"uri": "urn:a", "name": "a"}"#);
    let answer = fixture
        .skip(
            Mode::Add,
            r#"{"uri": "urn:a", "name": "other"},
               {"uri": "urn:b", "name": 1},
               {"uri": "urn:c", "name": "c", "motor": {"uri": "urn:a"}},
               {"uri": "urn:b", "name": "b"},
               {"uri": "urn:d", "name": "d", "motor": {"uri": "urn:b"}}"#,
        )
        .unwrap();
    assert_eq!((rejected_indexes(&answer), answer.created), (vec![0, 1], 3));
}

/// Each run without the rejected objects takes away what others needed.
const CASCADE: [&str; 5] = [
    r#"{"uri": "urn:a", "weight": "x"}"#,
    r#"{"uri": "urn:d", "name": "d", "motor": {"uri": "urn:a"}, "parts": [{"uri": "urn:n", "name": "n"}]}"#,
    r#"{"uri": "urn:n", "weight": 1}"#,
    r#"{"uri": "urn:f", "name": "f", "site": "urn:n", "parts": [{"uri": "urn:m", "name": "m"}]}"#,
    r#"{"uri": "urn:m", "weight": 1}"#,
];

#[test]
fn a_third_run_that_rejects_objects_refuses_the_request() {
    let fixture = Fixture::new(strict_machine());
    let answer = fixture.skip(Mode::Add, &CASCADE[..4].join(",")).unwrap();
    assert_eq!((rejected_indexes(&answer), answer.created), (vec![0, 1, 2, 3], 0));
    let sequence = fixture.store.stats().sequence;
    let error = fixture.skip(Mode::Add, &CASCADE.join(",")).unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid);
    assert!(error.detail.contains("after 3 runs 5 objects are rejected"), "{error}");
    assert_eq!(pointers(&error), ["/data/4/name"]);
    assert_eq!(fixture.store.stats().sequence, sequence);
}

#[test]
fn malformed_lines_are_rejected_with_their_numbers_in_the_stream() {
    let fixture = Fixture::new(machine());
    let text = b"{\"name\": \"a\"}\n{\"name\": \r\n\n{\"name\": \"b\"}\n\xff\n";
    let body = Body::Lines { text, first: 10, line_numbers: &[21, 24, 26, 29] };
    let answer = fixture.run(&fixture.skip_request(Mode::Add, body)).unwrap();
    assert_eq!(answer.created, 2);
    let found: Vec<_> = answer
        .rejected
        .iter()
        .map(|rejected| (rejected.index, rejected.line, rejected.errors[0].line))
        .collect();
    assert_eq!(found, [(11, Some(24), Some(24)), (13, Some(29), Some(29))]);
    let text = |id: &Option<String>| {
        let text = dead_letters::read_text(&fixture.store.read(), id.as_ref().unwrap());
        text.unwrap().unwrap()
    };
    let texts: Vec<_> = answer.rejected.iter().map(|rejected| text(&rejected.id)).collect();
    assert_eq!(texts, [b"{\"name\": ".to_vec(), b"\xff".to_vec()]);
}

#[test]
fn a_body_that_is_wrong_as_a_whole_is_refused() {
    let fixture = Fixture::new(machine());
    for (body, class) in [
        ("{\"data\": [{\"name\": 1}, {", ErrorClass::Malformed),
        ("{\"data\": [{\"name\": 1}], \"mode\": 1}", ErrorClass::Invalid),
        ("[]", ErrorClass::Invalid),
    ] {
        let request = fixture.skip_request(Mode::Add, Body::Json(body.as_bytes()));
        assert_eq!(fixture.run(&request).unwrap_err().class, class, "{body}");
    }
    assert_eq!(list_records(&fixture.store, None, 1).unwrap(), []);
}

#[test]
fn an_ingestion_without_valid_objects_has_a_record() {
    let fixture = Fixture::new(machine());
    let answer = fixture.skip(Mode::Add, "1, 2").unwrap();
    assert_eq!((answer.created, rejected_indexes(&answer)), (0, vec![0, 1]));
    let records = list_records(&fixture.store, None, 2).unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!((&records[0].id, records[0].rejected), (&answer.ingestion_id, 2));
    assert_eq!(fixture.quads(), Vec::<String>::new());
}

#[test]
fn validate_names_the_objects_and_keeps_nothing() {
    let fixture = Fixture::new(machine());
    let sequence = fixture.store.stats().sequence;
    let answer = fixture.skip(Mode::Validate, "{\"name\": \"a\"}, {\"name\": 1}").unwrap();
    assert_eq!((answer.created, rejected_indexes(&answer)), (1, vec![1]));
    assert_eq!(answer.rejected[0].id, None);
    assert_eq!(fixture.store.stats().sequence, sequence);
}

#[test]
fn a_repeated_request_gets_the_same_answer_and_no_more_dead_letters() {
    let fixture = Fixture::new(machine());
    let body = Body::Json(b"{\"data\": [{\"name\": \"a\"}, {\"name\": 1}]}");
    let request = Request { idempotency_key: Some("k"), ..fixture.skip_request(Mode::Add, body) };
    let first = fixture.run(&request).unwrap();
    assert!(first.rejected[0].id.is_some());
    assert_eq!(fixture.run(&request).unwrap(), first);
    let totals = dead_letters::read_totals(&fixture.store.read()).unwrap();
    assert_eq!(totals.letters, 1);
}

#[test]
fn the_stored_answer_to_a_repeated_request_leaves_errors_to_the_dead_letters() {
    let mut fixture = Fixture::new(machine());
    let fields: Vec<String> = (0..10).map(|n| format!("\"{}{n}\": 1", "x".repeat(400))).collect();
    let object = format!("{{{}}}", fields.join(","));
    let body = format!("{{\"data\": [{}]}}", vec![object; 100].join(","));
    let body = Body::Json(body.as_bytes());
    let request = Request { idempotency_key: Some("k"), ..fixture.skip_request(Mode::Add, body) };
    let first = fixture.run(&request).unwrap();
    assert_eq!(fixture.run(&request).unwrap(), first);
    let all = || DocumentRange { limit: 9, ..DocumentRange::default() };
    let stored = fixture.store.read().read_documents("idempotency", all()).unwrap();
    assert!(stored[0].1.len() < 40_000, "{}", stored[0].1.len());
    // Without dead letters the errors beyond the limit are only in the first answer.
    fixture.limits.rejected_bytes = 0;
    let request = Request { idempotency_key: Some("l"), ..fixture.skip_request(Mode::Add, body) };
    let first = fixture.run(&request).unwrap();
    let again = fixture.run(&request).unwrap();
    assert_eq!(again.rejected[0], first.rejected[0]);
    assert!(again.rejected[99].errors[0].message.contains("only the first answer"));
}

#[test]
fn at_most_ten_errors_of_an_object_are_listed() {
    let fixture = Fixture::new(machine());
    let fields: Vec<String> = (0..150).map(|n| format!("\"f{n}\": 1")).collect();
    let object = format!("{{{}}}", fields.join(","));
    let answer = fixture.skip(Mode::Add, &format!("{object}, {{\"name\": \"a\"}}")).unwrap();
    assert_eq!((answer.created, answer.rejected[0].errors.len()), (1, 10));
}

#[test]
fn a_limit_of_the_request_cannot_be_skipped() {
    let mut fixture = Fixture::new(machine());
    fixture.limits.objects = 1;
    let error = fixture.skip(Mode::Add, "{\"name\": 1}, {\"name\": \"a\"}").unwrap_err();
    assert_eq!(error.class, ErrorClass::TooLarge);
}

#[test]
fn delete_skips_too() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:a", "name": "a"}"#);
    let answer = fixture.skip(Mode::Delete, r#"{"name": "b"}, {"uri": "urn:a"}"#).unwrap();
    assert_eq!((answer.deleted, rejected_indexes(&answer)), (1, vec![0]));
}

fn any_object() -> impl Strategy<Value = String> {
    let uri = || prop_oneof![Just("urn:a"), Just("urn:b"), Just("urn:c"), Just("urn:n")];
    let nested = prop_oneof![
        uri().prop_map(|uri| format!("{{\"uri\": \"{uri}\"}}")),
        (uri(), 0..3_u8).prop_map(|(uri, n)| format!("{{\"uri\": \"{uri}\", \"name\": \"{n}\"}}")),
        (0..3_u8).prop_map(|weight| format!("{{\"weight\": {weight}}}")),
        Just("{\"weight\": \"x\"}".to_owned()),
    ];
    let member = prop_oneof![
        3 => (0..3_u8).prop_map(|n| format!("\"name\": \"{n}\"")),
        1 => (0..3_u8).prop_map(|n| format!("\"weight\": {n}")),
        1 => uri().prop_map(|uri| format!("\"site\": \"{uri}\"")),
        1 => nested.clone().prop_map(|nested| format!("\"motor\": {nested}")),
        1 => prop::collection::vec(nested, 0..3)
            .prop_map(|nested| format!("\"parts\": [{}]", nested.join(","))),
        1 => Just("\"color\": 1".to_owned()),
    ];
    (prop::option::of(uri()), prop::collection::vec(member, 0..4)).prop_map(|(uri, members)| {
        let uri = uri.map(|uri| format!("\"uri\": \"{uri}\""));
        let mut names = std::collections::HashSet::new();
        let members = uri.into_iter().chain(members);
        let members: Vec<_> = members
            .filter(|member| names.insert(member.split(':').next().unwrap().to_owned()))
            .collect();
        format!("{{{}}}", members.join(", "))
    })
}

/// Returns a fixture with those of these objects that are valid.
fn open(stored: &[String]) -> Fixture {
    let fixture = Fixture::new(strict_machine());
    for object in stored {
        let _ = fixture.send(Mode::Add, object);
    }
    fixture
}

#[test]
fn the_errors_of_a_request_are_bounded() {
    let fixture = Fixture::new(machine());
    let members: Vec<String> = (0..10).map(|n| format!("\"{}{n}\": 1", "x".repeat(2000))).collect();
    let object = format!("{{{}}}", members.join(","));
    let answer = fixture.skip(Mode::Add, &vec![object; 500].join(",")).unwrap();
    let bytes =
        |rejected: &RejectedObject| rejected.errors.iter().map(count_error_bytes).sum::<usize>();
    assert_eq!(answer.rejected.len(), 500);
    assert!(answer.rejected.iter().all(|rejected| !rejected.errors.is_empty()));
    assert!(answer.rejected.iter().map(bytes).sum::<usize>() < 2 << 20);
}

fn any_mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Add), Just(Mode::Replace), Just(Mode::Update), Just(Mode::Merge)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn skip_stores_what_sending_only_the_valid_objects_stores(
        stored in prop::collection::vec(any_object(), 0..3),
        objects in prop::collection::vec(any_object(), 1..7),
        mode in any_mode(),
    ) {
        let (skipping, expected) = (open(&stored), open(&stored));
        let Ok(answer) = skipping.skip(mode, &objects.join(",")) else { return Ok(()) };
        let rejected = rejected_indexes(&answer);
        let valid: Vec<&str> = (0..)
            .zip(&objects)
            .filter(|(index, _)| !rejected.contains(index))
            .map(|(_, object)| object.as_str())
            .collect();
        let sent = expected.send(mode, &valid.join(","));
        prop_assert!(sent.is_ok(), "{:?} {:?}", sent, answer);
        prop_assert_eq!(skipping.quads(), expected.quads());
        // Nothing but the valid objects has used the counters.
        let next = r#"{"uri": "urn:z", "name": "z", "motor": {"name": "z"}, "parts": [{"name": "z"}]}, {"name": "y"}"#;
        skipping.add(next);
        expected.add(next);
        prop_assert_eq!(skipping.quads(), expected.quads());
        // Each text is that of its object.
        let texts = letters(&skipping.store, &answer.ingestion_id);
        for ((letter, text), index) in texts.iter().zip(&rejected) {
            prop_assert_eq!((letter.index, text), (*index, &objects[*index]));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn an_object_is_valid_if_a_request_with_the_valid_ones_before_it_accepts_it(
        stored in prop::collection::vec(any_object(), 0..3),
        objects in prop::collection::vec(any_object(), 1..6),
        mode in any_mode(),
    ) {
        let fixture = open(&stored);
        let Ok(answer) = fixture.skip(mode, &objects.join(",")) else { return Ok(()) };
        // Only with `skip` a reference to a rejected object is an error.
        let needs_another = answer.rejected.iter().any(|rejected| {
            rejected.errors.iter().any(|error| error.message.contains("is not stored, because"))
        });
        prop_assume!(!needs_another);
        let (mut valid, mut refused) = (Vec::new(), Vec::new());
        for (index, object) in objects.iter().enumerate() {
            valid.push(object.as_str());
            if open(&stored).send(mode, &valid.join(",")).is_err() {
                valid.pop();
                refused.push(index);
            }
        }
        prop_assert_eq!(rejected_indexes(&answer), refused);
    }
}
