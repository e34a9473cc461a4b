use super::*;

const VOCABULARY: &str = "https://plant.example/v/";

fn of(text: &str) -> DerivedMapping {
    let names = MappingNames { business_object: "Pump", vocabulary: VOCABULARY };
    derive_mapping(names, &read_samples(text, 128).unwrap().objects).unwrap()
}

fn misfits(text: &str) -> Vec<String> {
    of(text).notes.into_iter().filter(|note| note.misfit).map(|note| note.field).collect()
}

#[test]
fn a_sample_of_a_plant_system() {
    let derived = of(
        r#"{"uri": "urn:pump:1", "name": "P-101", "flow": 12.5, "stages": 3, "running": true,
        "built": "2019-05-04", "serviced": "2026-03-01T12:00:00Z", "maker": "https://maker.example/",
        "tags": ["a", "b"], "position": {"lat": 47.1}, "parts": [{"label": "Seal"}, {"label": "Shaft", "mass": 4}]}"#,
    );
    let expected = "\
prefixes:
  v: \"https://plant.example/v/\"
type: object
path: Pump:.
fields:
  uri:
    type: id
  name:
    type: string
    path: v:name
  flow:
    type: number
    path: v:flow
  stages:
    type: integer
    path: v:stages
  running:
    type: boolean
    path: v:running
  built:
    type: date
    path: v:built
  serviced:
    type: dateTime
    path: v:serviced
  maker:
    type: resource
    path: v:maker
  tags:
    type: array
    path: v:tags
    elements:
      type: string
  position:
    type: object
    path: v:position/PumpPosition:.
    fields:
      lat:
        type: number
        path: v:lat
  parts:
    type: array
    path: v:parts
    ordered: true
    elements:
      type: object
      path: PumpParts:.
      fields:
        label:
          type: string
          path: v:label
        mass:
          type: integer
          path: v:mass
";
    assert_eq!(derived.config, expected);
    let notes: Vec<_> =
        derived.notes.iter().map(|note| (note.field.as_str(), note.misfit)).collect();
    assert_eq!(notes, [("parts", false)]);
}

#[test]
fn the_obvious_name_is_the_label_unless_it_is_the_first_string() {
    let label = |text: &str| {
        let config = of(text).config;
        let label = config.lines().find_map(|line| line.strip_prefix("label: "));
        label.map(str::to_owned)
    };
    assert_eq!(label(r#"{"serial": "S-1", "Name": "Feed pump"}"#).as_deref(), Some("Name"));
    assert_eq!(label(r#"{"serial": "S-1", "title": "a", "name": "b"}"#).as_deref(), Some("name"));
    assert_eq!(label(r#"{"uri": "urn:pump:1", "name": "Feed pump", "serial": "S-1"}"#), None);
    assert_eq!(label(r#"{"serial": "S-1", "name": {"en": "Feed pump"}}"#), None);
    assert_eq!(label(r#"{"serial": "S-1", "name": ["Feed pump"]}"#), None);
}

#[test]
fn samples_are_examined_together() {
    let merged =
        of(r#"[{"a": 1, "d": "2026-01-01"}, {"a": 1.5, "d": "soon", "b": [null, {"c": true}]}]"#);
    for part in ["a:\n    type: number", "d:\n    type: string", "c:\n          type: boolean"] {
        assert!(merged.config.contains(part), "{part}\n{}", merged.config);
    }
    let lines = "{\"a\": 1, \"d\": \"2026-01-01\"}\n\n{\"a\": 1.5, \"d\": \"soon\", \"b\": [null, {\"c\": true}]}\n";
    assert_eq!(of(lines), merged);
    let body = format!("{{\"data\": [{}]}}", lines.trim().replace("\n\n", ","));
    assert_eq!(of(&body), merged);
}

#[test]
fn notes_name_the_fields_that_do_not_fit() {
    assert_eq!(misfits(r#"{"uri": "no IRI", "": 1, "b": 1}"#), ["uri", ""]);
    assert_eq!(misfits(r#"{"a": null, "b": [], "c": [null], "d": {}}"#), [""; 0]);
    assert_eq!(misfits(r#"[{"a": 1}, {"uri": "urn:x", "a": null, "b": [null]}]"#), [""]);
    for text in
        [r#"[{"a": 1}, {"a": "x"}]"#, r#"{"a": {"b": [1, {"c": 1}]}}"#, r#"{"a": [[1]], "b": 1}"#]
    {
        assert_eq!(misfits(text), [""; 0], "{text}");
    }
}

/// Returns the lines of the field `a` in a derived mapping, without their indentation, and whether a note is about it.
fn field(text: &str) -> (Vec<String>, bool) {
    let derived = of(text);
    let (_, fields) = derived.config.split_once("\nfields:\n").unwrap();
    let lines = fields.lines().skip_while(|line| *line != "  a:").skip(1);
    let own = lines.take_while(|line| line.starts_with("   ")).map(|line| line.trim().to_owned());
    (own.collect(), derived.notes.iter().any(|note| note.field == "a" && !note.misfit))
}

#[track_caller]
fn check_field(text: &str, lines: &[&str]) {
    let (own, has_note) = field(text);
    assert_eq!(own, lines, "{text}");
    assert!(has_note, "{text}");
}

#[test]
fn values_in_other_forms_have_them_in_accept() {
    let values = |name: &str, values: &[&str]| {
        let objects = values.iter().map(|value| format!("{{\"{name}\": {value}}}"));
        let derived = of(&format!("[{}]", objects.collect::<Vec<_>>().join(",")));
        let (_, fields) = derived.config.split_once("\nfields:\n").unwrap();
        let mut lines = fields.lines().map(str::trim);
        let kind = lines.nth(1).unwrap().trim_start_matches("type: ");
        match lines.nth(1).and_then(|line| line.strip_prefix("accept: ")) {
            Some(form) => format!("{kind} {form}"),
            None => kind.to_owned(),
        }
    };
    for (name, given, expected) in [
        ("timestamp", &["1732700000000"][..], "dateTime unix-ms"),
        ("ts", &["1732700000.25", "1732700001"], "dateTime unix"),
        ("time", &["\"1732700000000000000\""], "dateTime unix-ns"),
        ("until", &["4000000000000"], "dateTime unix-ms"),
        ("flow", &["1732700000000"], "integer"),
        ("timestamp", &["1732700000", "2463457000"], "integer"),
        ("timestamp", &["960000000"], "integer"),
        ("time", &["12"], "integer"),
        ("a", &["\"2026-03-01 12:00:00\"", "\"2026-03-01T12:00:00Z\""], "dateTime iso"),
        ("a", &["\"/Date(1732700000000)/\""], "dateTime odata"),
        ("a", &["\"31.03.2026 07:05\""], "dateTime \"%d.%m.%Y %H:%M\""),
        ("a", &["\"31/03/2026\"", "\"01/03/2026\""], "date \"%d/%m/%Y\""),
        ("a", &["\"01/03/2026\""], "string"),
        ("date", &["\"20260331\""], "date \"%Y%m%d\""),
        ("a", &["\"20260331\""], "integer text"),
        ("a", &["\"12.50\"", "\"-3\""], "number text"),
        ("serial", &["\"4711\""], "string"),
        ("a", &["\"007\""], "string"),
        ("a", &["\"12,5\"", "\"1,234\""], "number {decimal: \",\"}"),
        ("a", &["\"1.234,50\""], "number {decimal: \",\", group: \".\"}"),
        ("a", &["\"1,234\""], "string"),
        ("a", &["\"-123,456\""], "string"),
        ("a", &["\"True\"", "\"false\""], "boolean {true: [\"True\"], false: [\"false\"]}"),
        ("a", &["1", "\"x\"", "true"], "scalar"),
    ] {
        assert_eq!(values(name, given), expected, "{name} {given:?}");
    }
}

#[test]
fn a_time_without_an_offset_has_a_note() {
    let asks_for_zone = |values: &str| {
        let notes = of(&format!(r"[{values}]")).notes;
        notes.iter().any(|note| note.field == "a" && note.message.contains("`timeZone: "))
    };
    for (text, expected) in [
        ("2026-03-01T12:00:00", true),
        ("2026-03-01T24:00:00", true),
        ("2026-03-01 12:00", true),
        ("31.03.2026 07:05", true),
        ("2026-03-01T12:00:00Z", false),
        ("2026-03-01 12:00+01", false),
        ("/Date(1732700000000)/", false),
        ("2026-03-01", false),
        ("soon", false),
    ] {
        assert_eq!(asks_for_zone(&format!(r#"{{"a": "{text}"}}"#)), expected, "{text}");
    }
    assert!(asks_for_zone(r#"{"a": "2026-03-01T12:00:00Z"}, {"a": "2026-03-01T12:00:00"}"#));
}

#[test]
fn structures_that_rdf_lacks_have_their_types() {
    let json = ["type: json", "path: v:a"];
    check_field(r#"{"a": [[1, 2], [3]]}"#, &json);
    check_field(r#"{"a": {}}"#, &json);
    check_field(r#"[{"a": {"b": 1}}, {"a": "off"}]"#, &json);
    check_field(r#"{"a": [2, null, 1]}"#, &json);
    let ordered = |kind| ["type: array", "path: v:a", "ordered: true", "elements:", kind];
    check_field(r#"{"a": [1, 2]}"#, &ordered("type: integer"));
    check_field(r#"[{"a": ["a", "b"]}, {"a": ["b", "a"]}]"#, &ordered("type: string"));
    check_field(r#"{"a": ["a", "a"]}"#, &ordered("type: string"));
    let set = ["type: array", "path: v:a", "elements:", "type: string"];
    assert_eq!(
        field(r#"[{"a": ["a", "b"]}, {"a": []}]"#),
        (set.map(str::to_owned).to_vec(), false)
    );
    check_field(r#"{"a": {"en": "Pump", "de": "Pumpe"}}"#, &["type: languageMap", "path: v:a"]);
    check_field(
        r#"[{"a": {"en": ["a", "b"]}}]"#,
        &["type: languageMap", "path: v:a", "elements: array"],
    );
    assert_eq!(field(r#"{"a": {"en": [1], "de": [2]}}"#).0[0], "type: object");
}

#[test]
fn objects_whose_names_are_data_are_maps() {
    let head = |namespace: &str, key: &str| {
        vec![
            "type: map".to_owned(),
            format!("path: v:a/{namespace}:."),
            key.to_owned(),
            "elements:".to_owned(),
        ]
    };
    let check = |text: &str, key: &str, rest: &[&str]| {
        let mut lines = head("PumpA", key);
        lines.extend(rest.iter().map(|line| (*line).to_owned()));
        assert_eq!(field(text), (lines, true), "{text}");
    };
    check(
        r#"{"a": {"T1": 20.5, "T2": 3}}"#,
        "key: {path: 'v:key'}",
        &["type: number", "path: v:value"],
    );
    check(
        r#"{"a": {"1": {"key": 1}, "20": {"key": 2}}}"#,
        "key: {path: 'v:key2', type: integer}",
        &["type: object", "fields:", "key:", "type: integer", "path: v:key"],
    );
    check(
        r#"{"a": {"T1": {"x1": [2, 1], "x2": [1]}, "T2": {"x1": [3]}}}"#,
        "key: {path: 'v:key'}",
        &[
            "type: map",
            "path: v:value/PumpA2:.",
            "key: {path: 'v:key'}",
            "elements:",
            "type: array",
            "path: v:value",
            "ordered: true",
            "elements:",
            "type: integer",
        ],
    );
    for text in
        [r#"{"a": {"T1": 1}}"#, r#"{"a": {"T1": 1, "P1": 2}}"#, r#"{"a": {"T1": 1, "T2": "x"}}"#]
    {
        assert_eq!(field(text).0.first().map(String::as_str), Some("type: object"), "{text}");
    }
}

#[test]
fn a_nested_object_that_repeats_has_a_note_unless_it_has_a_uri() {
    let note = |text: &str| {
        let notes = of(text).notes;
        notes.into_iter().find(|note| note.field == "m").map(|note| note.message)
    };
    let named = r#"[{"m": {"serial": "S-1", "n": 1}}, {"m": {"serial": "S-1", "n": 2}}]"#;
    let equal = r#"[{"m": {"hall": "A"}}, {"m": {"hall": "A"}}]"#;
    for text in [named, equal] {
        assert!(note(text).is_some_and(|note| note.contains("`required: true`")), "{text}");
    }
    let different =
        r#"[{"m": {"serial": "S-1", "unit": "A"}}, {"m": {"serial": "S-2", "unit": "A"}}]"#;
    let with_uri = r#"[{"m": {"uri": "urn:m:1", "n": 1}}, {"m": {"uri": "urn:m:1", "n": 1}}]"#;
    let map = r#"[{"m": {"T1": {"n": 1}, "T2": {"n": 1}}}, {"m": {"T1": {"n": 1}}}]"#;
    for text in [different, with_uri] {
        assert_eq!(note(text), None);
    }
    assert!(note(map).is_some_and(|note| !note.contains("repeat")));
}

#[test]
fn a_mapping_with_the_key_that_the_note_asks_for_compiles() {
    let derived = of(r#"{"msgId": 1, "n": 2}"#);
    let note = derived.notes.iter().find(|note| note.field.is_empty()).unwrap();
    assert!(
        note.message.contains("`key`") && note.message.contains("`required: true`"),
        "{note:?}"
    );
    let (before, after) = derived.config.split_once("fields:\n  msgId:\n").unwrap();
    let keyed = format!("{before}key: msgId\nfields:\n  msgId:\n    required: true\n{after}");
    assert!(mapping::compile(&keyed).is_ok(), "{keyed}");
}

#[test]
fn words_that_repeat_are_codes() {
    let objects = |values: &[&str]| {
        let objects = values.iter().map(|value| format!("{{\"a\": \"{value}\"}}"));
        format!("[{}]", objects.collect::<Vec<_>>().join(","))
    };
    let codes = ["RUN", "STOP", "RUN", "RUN", "STOP", "RUN", "STOP", "RUN"];
    let base = "base: \"https://plant.example/v/a/\"";
    check_field(&objects(&codes), &["type: resource", "path: v:a", base]);
    for texts in [&codes[..6], &["a b"; 8], &["same"; 8]] {
        assert_eq!(field(&objects(texts)).0[0], "type: string", "{texts:?}");
    }
}

#[test]
fn documents_around_the_objects_have_items() {
    let derived =
        of(r#"{"timestamp": 1732700000000, "device": {"id": 7}, "seq": 1, "gateway_id": "G-1",
        "metrics": [{"name": "flow", "value": 1.5}, {"name": "level", "value": 2}]}"#);
    let config = &derived.config;
    assert!(config.contains("\nitems: \"/metrics/*\"\n"), "{config}");
    assert!(config.contains("  timestamp:\n    type: dateTime\n    path: v:timestamp\n    accept: unix-ms\n    outer: timestamp\n"), "{config}");
    assert!(config.contains("    outer: gateway_id\n"), "{config}");
    let left_out = "Members around the objects are left out: device, seq.";
    assert!(derived.notes.iter().any(|note| note.message == left_out), "{:?}", derived.notes);
    for (text, items) in [
        (r#"{"d": {"results": [{"a": 1}]}}"#, Some("/d/results/*")),
        (r#"{"@odata.count": 1, "value": [{"a": 1}]}"#, Some("/value/*")),
        (r#"{"name": "G-1", "data": [{}]}"#, Some("/data/*")),
        (r#"[{"data": [{"a": 1}], "count": 1}, {"data": [], "count": 0}]"#, Some("/data/*")),
        (r#"{"orderNumber": "7", "items": [{"a": 1}]}"#, None),
        (r#"{"uri": "urn:x", "data": [{"a": 1}]}"#, None),
        (r#"{"name": "P-1", "history": {"readings": [{"a": 1}]}}"#, None),
        (r#"{"data": [{"a": 1}], "events": [{"a": 1}]}"#, None),
        (r#"{"data": [1], "count": 2}"#, None),
    ] {
        let mapping = mapping::compile(&of(text).config).unwrap();
        let expected = items.map(|items| format!("\nitems: \"{items}\"\n"));
        assert_eq!(mapping.document.is_some(), items.is_some(), "{text}");
        assert!(expected.is_none_or(|line| of(text).config.contains(&line)), "{text}");
    }
}

#[test]
fn a_sample_of_documents_is_sent_as_it_is() {
    let mapping = mapping::compile(&of(r#"{"n": 1, "data": [{"a": 1}]}"#).config).unwrap();
    for (text, sent) in [
        (r#"{"n": 1, "data": [{"a": 1}]}"#, r#"{"n":1,"data":[{"a":1}]}"#),
        (r#"[{"data": [{"a": 1}]}]"#, r#"[{"data":[{"a":1}]}]"#),
        (r#"{"data": [{"a": 1}]}"#, r#"{"data":[{"a":1}]}"#),
        ("{\"data\": []}\n{\"data\": [{\"a\": 2}]}", "{\"data\":[]}\n{\"data\":[{\"a\":2}]}\n"),
    ] {
        let body = SampleBody::read(text, &mapping, 128).unwrap();
        let (Body::Json(own) | Body::Lines { text: own, .. }) = body.to_body() else {
            panic!("{text}")
        };
        assert_eq!((std::str::from_utf8(own).unwrap(), body.form), (sent, BodyForm::Document));
    }
}

#[test]
fn a_field_is_the_id_if_all_its_values_are_iris() {
    let id = |text: &str| of(text).config.contains("type: id");
    assert!(id(r#"[{"@id": "urn:x:1", "n": 1}, {"@id": "http://x/2"}]"#));
    assert!(!id(r#"[{"id": "urn:x:1"}, {"id": "P-2"}]"#));
    assert!(!id(r#"{"id": "P:2"}"#), "an IRI by chance");
    assert!(id(r#"{"uri": "p:2", "n": 1}"#));
    assert_eq!(
        of(r#"{"uri": "urn:x:1", "id": "urn:x:2", "n": 1}"#).config.matches("type: id").count(),
        1
    );
}

#[test]
fn every_field_name_gets_its_own_property() {
    let derived = of(
        r##"{".": 1, "a b": 1, "a%20b": 1, "null": 1, "1": 1, "-": 1, "a:.": 1, "#": 1, "\"\\": 1,
        "\u2028": 1, "ä😀": 1, "x/y": {"z": 1}, "w:": [{"z": 1}]}"##,
    );
    let mapping = mapping::compile(&derived.config).unwrap();
    let names: Vec<_> = mapping.root.fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(
        names,
        [".", "a b", "a%20b", "null", "1", "-", "a:.", "#", "\"\\", "\u{2028}", "ä😀", "x/y", "w:"]
    );
    let properties: HashSet<_> = mapping
        .root
        .fields
        .iter()
        .map(|field| match &field.kind {
            mapping::FieldKind::Property(property) => property.predicate.clone(),
            mapping::FieldKind::Id => panic!("{} is an id", field.name),
        })
        .collect();
    assert_eq!(properties.len(), names.len());
}

#[test]
fn nested_objects_have_their_own_namespaces() {
    let derived = of(r#"{"part": {"a": 1, "part": {"b": 1}}, "PART": [{"part": {"c": 1}}]}"#);
    let mapping = mapping::compile(&derived.config).unwrap();
    assert_eq!(
        mapping.namespaces(),
        ["Pump", "PumpPart", "PumpPartPart", "PumpPART", "PumpPARTPart"]
    );
    // Names that differ only in what a namespace cannot have.
    let derived = of(r#"{"a": {"b": {"n": 1}}, "a b": {"n": 1}, "a-b": {"n": 1}}"#);
    let mapping = mapping::compile(&derived.config).unwrap();
    assert_eq!(mapping.namespaces(), ["Pump", "PumpA", "PumpAB", "PumpAB2", "PumpAB3"]);
    // A letter that no name of a namespace may have.
    let derived = of("{\"\u{115f}\": {\"a\": 1}}");
    let mapping = mapping::compile(&derived.config).unwrap();
    assert_eq!(mapping.namespaces(), ["Pump", "PumpObject"]);
}

#[test]
fn very_many_nested_objects_share_a_namespace_of_the_business_object() {
    let fields: Vec<String> = (0..950).map(|n| format!("\"f{n}\": {{\"n\": 1}}")).collect();
    let derived = of(&format!("{{{}}}", fields.join(",")));
    let mapping = mapping::compile(&derived.config).unwrap();
    let namespaces = mapping.namespaces();
    assert_eq!(namespaces.len(), 900);
    assert_eq!((namespaces[898], namespaces[899]), ("PumpF897", "PumpPart"));
    // Names have a limited length, so those of the objects of a long name have only numbers.
    let long = "Pump ".repeat(20);
    let names = MappingNames { business_object: &long, vocabulary: VOCABULARY };
    let samples = read_samples(r#"{"motor": {"n": 1}}"#, 128).unwrap();
    let derived = derive_mapping(names, &samples.objects).unwrap();
    let root = "Pump".repeat(15);
    let mapping = mapping::compile(&derived.config).unwrap();
    assert_eq!(mapping.namespaces(), [root.clone(), format!("{root}2")]);
}

#[test]
fn nested_objects_are_not_in_the_namespace_of_another_business_object() {
    let names = MappingNames { business_object: "Motor", vocabulary: VOCABULARY };
    let samples = read_samples(r#"{"pump": {"n": 1}, "parts": [{"n": 1}]}"#, 128).unwrap();
    let motor = derive_mapping(names, &samples.objects).unwrap();
    let pump = of(r#"{"motor": {"n": 1}, "parts": [{"n": 1}]}"#);
    let [motor, pump] = [motor, pump].map(|derived| mapping::compile(&derived.config).unwrap());
    assert_eq!(motor.namespaces(), ["Motor", "MotorPump", "MotorParts"]);
    assert_eq!(pump.namespaces(), ["Pump", "PumpMotor", "PumpParts"]);
}

#[test]
fn a_text_that_is_not_a_sample_is_refused() {
    for (text, kind) in [
        ("", ErrorClass::Malformed),
        ("{\"a\": 1,}", ErrorClass::Malformed),
        ("[]", ErrorClass::Invalid),
        ("7", ErrorClass::Invalid),
        ("[1, {}]", ErrorClass::Invalid),
    ] {
        assert_eq!(read_samples(text, 128).unwrap_err().class, kind, "{text}");
    }
    let names = MappingNames { business_object: "Pump", vocabulary: "no IRI" };
    assert_eq!(
        derive_mapping(names, &read_samples("{}", 8).unwrap().objects).unwrap_err().class,
        ErrorClass::Invalid
    );
}
