//! Language maps, and values of the types `scalar` and `json`.
use super::*;
use crate::csv::{CsvFormat, CsvHeader};
use crate::unshown::check_stored_values;
use oxrdf::Literal;

const MAPPING: &str = "
type: object
path: Pump:.
fields:
  name: {type: languageMap, path: <urn:name>}
  nameFr: {type: string, path: <urn:name>, language: fr}
  notes: {type: languageMap, path: <urn:note>, languages: [en, de], elements: array}
  setting: {type: scalar, path: <urn:setting>}
  state: {type: json, path: <urn:state>}
";

fn fixture() -> Fixture {
    Fixture::new(compile(MAPPING).unwrap().root)
}

/// Sends an object of this URI with these members, which have no braces around them.
fn send(fixture: &Fixture, mode: Mode, members: &str) -> Result<Answer, GatewayError> {
    fixture.send(mode, &format!(r#"{{"uri":"urn:p",{members}}}"#))
}

fn view(fixture: &Fixture) -> String {
    let view = fixture.view("urn:p");
    view.strip_prefix(r#"{"uri":"urn:p""#).unwrap().trim_start_matches(',').to_owned()
}

/// Returns the pointer and the message of the first finding.
fn refusal(fixture: &Fixture, mode: Mode, members: &str) -> String {
    send(fixture, mode, members).unwrap_err().findings[0].to_string()
}

#[test]
fn texts_have_their_language_and_the_view_is_ordered_by_it() {
    let fixture = fixture();
    let given = r#""name":{"en":"Pump","DE-at":"Pumpe"},"nameFr":"Pompe","notes":{"en":["b","a","b"],"de":[]}"#;
    let answer = send(&fixture, Mode::Add, given).unwrap();
    assert_eq!(answer.warnings.len(), 1, "{:?}", answer.warnings);
    assert_eq!(answer.warnings[0].pointer, "/data/0/notes/en/2");
    let quads = fixture.quads().join("\n");
    for part in [r#""Pump"@en"#, r#""Pumpe"@de-at"#, r#""Pompe"@fr"#, r#""a"@en"#] {
        assert!(quads.contains(part), "{part}: {quads}");
    }
    let shown = r#""name":{"de-AT":"Pumpe","en":"Pump"},"nameFr":"Pompe","notes":{"en":["a","b"]}"#;
    assert_eq!(view(&fixture), format!("{shown}}}"));
    for mode in [Mode::Add, Mode::Update, Mode::Replace, Mode::Merge] {
        assert_eq!(send(&fixture, mode, shown).unwrap().unchanged, 1, "{mode:?}");
    }
}

#[test]
fn only_the_object_with_a_too_long_language_tag_is_rejected() {
    let fixture = fixture();
    let tag = format!("en-x{}", "-abcdefgh".repeat(8_000));
    let body = format!(
        r#"{{"data":[{{"uri":"urn:p","name":{{"en":"Pump"}}}},{{"uri":"urn:q","name":{{"{tag}":"x"}}}}]}}"#
    );
    let request = fixture.request(Mode::Add, Body::Json(body.as_bytes()));
    let answer = fixture.run(&Request { on_error: OnError::Skip, ..request }).unwrap();
    assert_eq!((answer.created, answer.rejected.len()), (1, 1));
    let error = &answer.rejected[0].errors[0].message;
    assert!(error.contains("72004 bytes; the maximum is 65536"), "{error}");
}

#[test]
fn each_language_counts_as_a_field() {
    let fixture = fixture();
    send(&fixture, Mode::Add, r#""name":{"en":"Pump"},"notes":{"en":["a"]}"#).unwrap();
    send(&fixture, Mode::Add, r#""name":{"de":"Pumpe"},"notes":{"en":["b"]}"#).unwrap();
    let all = r#""name":{"de":"Pumpe","en":"Pump"},"notes":{"en":["a","b"]}}"#;
    assert_eq!(view(&fixture), all);
    let error = send(&fixture, Mode::Add, r#""name":{"en":"Fan"}"#).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(error.findings[0].message.contains("one text in each language"), "{error}");
    let merged = r#""name":{"EN":"Fan","de":null,"it":null},"notes":{"de":["c"]}"#;
    send(&fixture, Mode::Merge, merged).unwrap();
    assert_eq!(view(&fixture), r#""name":{"en":"Fan"},"notes":{"de":["c"],"en":["a","b"]}}"#);
    send(&fixture, Mode::Merge, r#""name":{},"notes":null"#).unwrap();
    assert_eq!(view(&fixture), r#""name":{"en":"Fan"}}"#);
    send(&fixture, Mode::Update, r#""name":{"de":"Rad"}"#).unwrap();
    assert_eq!(view(&fixture), r#""name":{"de":"Rad"}}"#);
    send(&fixture, Mode::Replace, r#""setting":1"#).unwrap();
    assert_eq!(view(&fixture), r#""setting":1}"#);
}

#[test]
fn languages_are_equal_whatever_their_case() {
    let fixture = fixture();
    send(&fixture, Mode::Add, r#""name":{"en":"Pump","de":"Pumpe"}"#).unwrap();
    let spanish = Literal::new_language_tagged_literal_unchecked("Bomba", "ES");
    insert_quad(&fixture.store, "urn:p", "urn:name", spanish, "http://x/Pump/");
    for (given, stored) in [
        (r#""name":{"it":"Pompa","DE":"Rad","EN":"Fan"}"#, r#"has "Pumpe", not "Rad""#),
        (r#""name":{"en":"Pump","eS":"Rueda"}"#, r#"has "Bomba", not "Rueda""#),
    ] {
        let error = send(&fixture, Mode::Add, given).unwrap_err();
        assert_eq!(error.class, ErrorClass::Conflict);
        let found = error.findings[0].to_string();
        assert!(found.starts_with("/data/0/name: ") && found.contains(stored), "{found}");
    }
    let refused = refusal(&fixture, Mode::Merge, r#""name":{"de":null,"FR":"Pompe"}"#);
    assert!(refused.starts_with("/data/0/name/FR: "), "{refused}");
    let refused = refusal(&fixture, Mode::Merge, r#""name":{"it":null,"de":"x","De":"y"}"#);
    assert!(refused.starts_with("/data/0/name/De: "), "{refused}");
    send(&fixture, Mode::Merge, r#""name":{"dE":null,"es":"Rueda"}"#).unwrap();
    assert_eq!(view(&fixture), r#""name":{"en":"Pump","es":"Rueda"}}"#);
}

#[test]
fn a_required_map_keeps_a_text() {
    let config = "type: object\npath: Pump:.\nfields:\n  name: {type: languageMap, path: <urn:name>, required: true}\n";
    let fixture = Fixture::new(compile(config).unwrap().root);
    assert!(send(&fixture, Mode::Add, r#""name":{}"#).is_err());
    send(&fixture, Mode::Add, r#""name":{"en":"Pump","de":"Pumpe"}"#).unwrap();
    send(&fixture, Mode::Merge, r#""name":{"en":null}"#).unwrap();
    let refused = refusal(&fixture, Mode::Merge, r#""name":{"de":null}"#);
    assert_eq!(refused, "/data/0/name: the field is required and has no value");
    send(&fixture, Mode::Merge, r#""name":{"de":null,"fr":"Pompe"}"#).unwrap();
    assert_eq!(view(&fixture), r#""name":{"fr":"Pompe"}}"#);
}

#[test]
fn an_error_points_to_the_language() {
    let fixture = fixture();
    for (members, pointer, part) in [
        (r#""name":"Pump""#, "/data/0/name", "an object whose names are language tags is expected"),
        (r#""name":{"e n":"x"}"#, "/data/0/name/e n", "is not a language tag"),
        (r#""name":{"en":1}"#, "/data/0/name/en", "a string is expected, not the number 1"),
        (r#""name":{"en":"x","EN":"y"}"#, "/data/0/name/EN", "send a language once"),
        (r#""name":{"fr":"x"}"#, "/data/0/name/fr", "the language of the field \"nameFr\""),
        (r#""notes":{"it":["x"]}"#, "/data/0/notes/it", "it has en, de"),
        (r#""notes":{"en":"x"}"#, "/data/0/notes/en", "an array is expected"),
        (r#""notes":{"en":["x",true]}"#, "/data/0/notes/en/1", "a string is expected, not true"),
        (r#""setting":[1]"#, "/data/0/setting", "a single value is expected"),
        (r#""setting":{}"#, "/data/0/setting", "a string, a number, true or false is expected"),
    ] {
        let refused = refusal(&fixture, Mode::Add, members);
        assert!(refused.starts_with(&format!("{pointer}: ")), "{members}: {refused}");
        assert!(refused.contains(part), "{members}: {refused}");
    }
}

#[test]
fn stored_values_that_a_map_cannot_show_are_left_out() {
    let fixture = fixture();
    send(&fixture, Mode::Add, r#""name":{"en":"Pump"}"#).unwrap();
    let plain = Literal::new_simple_literal("Plain");
    let second = Literal::new_language_tagged_literal_unchecked("Water pump", "en");
    for text in [plain, second] {
        insert_quad(&fixture.store, "urn:p", "urn:name", text, "urn:g");
    }
    let (shown, warnings) = fixture.view_with_warnings("urn:p");
    assert_eq!(shown, r#"{"uri":"urn:p","name":{"en":"Pump"}}"#);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("a text without a language, and is left out"), "{warnings:?}");
    assert!(warnings[1].contains("2 texts in the language en"), "{warnings:?}");
    // A MERGE changes what it names.
    send(&fixture, Mode::Merge, r#""name":{"en":"Fan"}"#).unwrap();
    assert!(fixture.quads().iter().any(|quad| quad.contains("\"Plain\"")));
    send(&fixture, Mode::Update, r#""name":{"en":"Fan"}"#).unwrap();
    assert!(!fixture.quads().iter().any(|quad| quad.contains("\"Plain\"")));
}

#[test]
fn scalars_and_json_come_back_as_they_were_sent() {
    let fixture = fixture();
    for setting in [r#""7""#, "7", "7.0", "7e1", "-0", "true", r#""true""#] {
        let members = format!(r#""setting":{setting}"#);
        send(&fixture, Mode::Update, &members)
            .or_else(|_| send(&fixture, Mode::Add, &members))
            .unwrap();
        assert_eq!(view(&fixture), format!("{members}}}"));
    }
    send(&fixture, Mode::Replace, r#""state": {"b": [[1.50, 1.50], [null]], "a": " x "} "#)
        .unwrap();
    let shown = r#""state":{"b":[[1.50,1.50],[null]],"a":" x "}"#;
    assert_eq!(view(&fixture), format!("{shown}}}"));
    assert_eq!(send(&fixture, Mode::Add, shown).unwrap().unchanged, 1);
    let other = r#""state":{"a":" x ","b":[[1.50,1.50],[null]]}"#;
    assert_eq!(send(&fixture, Mode::Add, other).unwrap_err().class, ErrorClass::Conflict);
    send(&fixture, Mode::Merge, r#""state":[]"#).unwrap();
    assert_eq!(view(&fixture), r#""state":[]}"#);
    send(&fixture, Mode::Merge, r#""setting":1,"state":null"#).unwrap();
    assert_eq!(view(&fixture), r#""setting":1}"#);
}

#[test]
fn stored_json_is_shown_without_white_space_or_as_a_string() {
    let fixture = fixture();
    let json = |text: &str| Literal::new_typed_literal(text, oxrdf::vocab::rdf::JSON);
    insert_quad(&fixture.store, "urn:p", "urn:state", json("{ \"a\": [1,\n 2] }"), "urn:g");
    assert_eq!(fixture.view_with_warnings("urn:p").0, r#"{"uri":"urn:p","state":{"a":[1,2]}}"#);
    insert_quad(&fixture.store, "urn:q", "urn:state", json("{"), "urn:g");
    let (shown, warnings) = fixture.view_with_warnings("urn:q");
    assert_eq!(shown, r#"{"uri":"urn:q","state":"{"}"#);
    assert!(warnings[0].contains("is not JSON, and is shown as a string"), "{warnings:?}");
}

#[test]
fn texts_in_other_languages_than_those_of_the_field_are_left_out() {
    for mode in [Mode::Update, Mode::Replace, Mode::Merge] {
        let fixture = fixture();
        send(&fixture, Mode::Add, r#""notes":{"en":["a"]}"#).unwrap();
        let french = Literal::new_language_tagged_literal_unchecked("b", "fr");
        insert_quad(&fixture.store, "urn:p", "urn:note", french, "http://x/Pump/");
        let (shown, warnings) = fixture.view_with_warnings("urn:p");
        assert!(shown.contains(r#""notes":{"en":["a"]}"#), "{shown}");
        assert!(
            warnings.len() == 1 && warnings[0].contains("languages of the field"),
            "{warnings:?}"
        );
        let mapping = &fixture.business_object.mapping;
        let found = check_stored_values(&fixture.store.read(), mapping).unwrap();
        assert!(found.len() == 1 && found[0].message.contains("`notes`"), "{found:?}");
        send(&fixture, mode, r#""notes":{"en":["c"]}"#).unwrap();
        let has_french = fixture.quads().join("\n").contains("@fr");
        assert_eq!(has_french, mode == Mode::Merge, "{mode:?}");
    }
}

#[test]
fn json_that_other_software_wrote_is_the_same_without_its_white_space() {
    let fixture = fixture();
    let stored = Literal::new_typed_literal("{ \"a\" : [1, 2] }", oxrdf::vocab::rdf::JSON);
    insert_quad(&fixture.store, "urn:p", "urn:state", stored, "http://x/Pump/");
    let quads = fixture.quads();
    let shown = view(&fixture);
    assert_eq!(shown, r#""state":{"a":[1,2]}}"#);
    let shown = shown.strip_suffix('}').unwrap();
    assert_eq!(send(&fixture, Mode::Add, shown).unwrap().unchanged, 1);
    assert_eq!(fixture.quads(), quads);
    let error = send(&fixture, Mode::Add, r#""state":{"a":[1,3]}"#).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
}

#[test]
fn json_in_cells_of_csv_is_limited_as_json_is() {
    let mut fixture = fixture();
    fixture.limits.nesting = 4;
    let format = CsvFormat { delimiter: ';', ..CsvFormat::default() };
    let header = CsvHeader::read(b"uri;state", format, 1).unwrap();
    let send = |cell: &str| {
        let record = format!("urn:p;{cell}\n");
        let text = record.as_bytes();
        let body = Body::Records { text, header: &header, first: 0, line_numbers: &[2] };
        fixture.run(&fixture.request(Mode::Merge, body))
    };
    assert_eq!(send("[[[1]]]").unwrap().created, 1);
    let error = send("[[[[1]]]]").unwrap_err();
    assert_eq!(error.class, ErrorClass::Malformed);
    assert!(error.detail.contains("line 2") && error.detail.contains("limits.nesting"), "{error}");
    // What is too large is refused as a string, which has two bytes more, and not read as JSON.
    let cell = format!("[{}1]", "1,".repeat(128 << 10));
    let error = send(&cell).unwrap_err();
    assert!(error.detail.contains(&format!("has {} bytes", cell.len() + 2)), "{error}");
}

#[test]
fn a_request_reads_a_long_map_again_only_some_times() {
    let fixture = fixture();
    let texts: Vec<String> = (0..300).map(|n| format!(r#""en-x-{n}":"a""#)).collect();
    let texts = texts.join(",");
    send(&fixture, Mode::Add, &format!(r#""name":{{{texts}}}"#)).unwrap();
    let merge = |count: usize| {
        let objects = vec![r#"{"uri":"urn:p","name":{"en-x-7":"b"}}"#; count].join(",");
        fixture.send(Mode::Merge, &objects)
    };
    let error = merge(100).unwrap_err();
    assert_eq!(error.class, ErrorClass::TooLarge, "{error}");
    assert!(error.detail.contains("such as urn:p: "), "{error}");
    assert!(error.detail.contains("give each object once"), "{error}");
    assert!(view(&fixture).contains(r#""en-x-7":"a""#));
    assert_eq!(merge(50).unwrap().updated, 1);
    assert!(view(&fixture).contains(r#""en-x-7":"b""#));
}
