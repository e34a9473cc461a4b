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
    path: v:position/Position:.
    fields:
      lat:
        type: number
        path: v:lat
  parts:
    type: array
    path: v:parts
    elements:
      type: object
      path: Parts:.
      fields:
        label:
          type: string
          path: v:label
        mass:
          type: integer
          path: v:mass
";
    assert_eq!(derived, DerivedMapping { config: expected.to_owned(), notes: Vec::new() });
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
    assert_eq!(misfits(r#"[{"a": 1}, {"a": "x"}, {"a": "y"}]"#), ["a"]);
    assert_eq!(misfits(r#"{"a": {"b": [1, {"c": 1}, {"c": 2}]}}"#), ["a.b"]);
    assert_eq!(misfits(r#"{"a": [[1]], "b": 1}"#), ["a"]);
    assert_eq!(misfits(r#"{"uri": "no IRI", "": 1, "b": 1}"#), ["uri", ""]);
    assert_eq!(misfits(r#"{"a": null, "b": [], "c": [null], "d": {}}"#), [""; 0]);
    assert_eq!(misfits(r#"[{"a": 1}, {"uri": "urn:x", "a": null, "b": [null]}]"#), [""]);
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
    assert_eq!(mapping.namespaces(), ["Pump", "Part", "PartPart", "PART", "PARTPart"]);
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
