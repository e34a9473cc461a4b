//! Samples of any shape round-trip through the mapping that is derived from them.
use crate::values::find_difference;
use crate::{fixture_of, text};
use penstock_base::json::{self, Json};
use penstock_model::derive::{DerivedMapping, MappingNames, derive_mapping, read_samples};
use penstock_model::ingest::Mode;
use penstock_model::mapping;
use proptest::prelude::*;

const NESTING: usize = 128;

/// The kind of the values under one name in all samples.
#[derive(Debug, Clone)]
enum Kind {
    /// Any value.
    Any,
    /// Texts in several languages.
    Languages,
    /// Members whose names are data.
    Map(Box<Kind>),
    Text(&'static str),
    Integer,
    Number,
    Boolean,
    Object(Vec<(String, Kind)>),
    Array(Box<Kind>),
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{1,6}",
        1 => "[ -~]{1,8}",
        1 => "[\u{a0}-\u{2fff}\u{1f600}]{1,4}",
        1 => Just("@id".to_owned()),
        1 => Just("null".to_owned()),
    ]
    // `uri` identifies the object, and names of fields contain no control characters.
    .prop_filter("a name of a field", |name| name != "uri" && !name.chars().any(char::is_control))
}

fn kind() -> impl Strategy<Value = Kind> {
    let leaf = prop_oneof![
        prop_oneof![
            Just("[a-z ]{0,8}"),
            Just("2026-0[1-9]-1[0-9]"),
            Just("2026-0[1-9]-1[0-9]T10:00:0[0-9](Z|\\+01:00)"),
            Just("(http://x/|urn:x:|x:)[a-z]{1,4}"),
            Just("2026-0[1-9]-1[0-9] 10:00(:00)?"),
            Just("[1-9]{1,2}\\.[0-9]{1,3}"),
            Just("(true|false)"),
        ]
        .prop_map(Kind::Text),
        Just(Kind::Integer),
        Just(Kind::Number),
        Just(Kind::Boolean),
        Just(Kind::Any),
        Just(Kind::Languages),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let array = inner.clone().prop_map(|kind| Kind::Array(Box::new(kind)));
        let map = inner.clone().prop_map(|kind| Kind::Map(Box::new(kind)));
        prop_oneof![2 => fields(inner).prop_map(Kind::Object), 2 => array, 1 => map]
    })
}

fn fields(kind: impl Strategy<Value = Kind>) -> impl Strategy<Value = Vec<(String, Kind)>> {
    prop::collection::vec((name(), kind), 0..5).prop_map(|mut fields| {
        let mut seen = std::collections::HashSet::new();
        fields.retain(|(name, _)| seen.insert(name.clone()));
        fields
    })
}

/// Generates a value. If `gaps` is true, arrays may contain `null`, which ingestion ignores.
fn value(kind: &Kind, gaps: bool) -> BoxedStrategy<Json> {
    match kind {
        Kind::Text(form) => {
            proptest::string::string_regex(form).unwrap().prop_map(Json::String).boxed()
        }
        Kind::Integer => any::<i64>().prop_map(|n| Json::Number(n.to_string())).boxed(),
        Kind::Number => "-?(0|[1-9][0-9]{0,9})(\\.[0-9]{1,9})?([eE][+-]?[0-9]{1,2})?"
            .prop_map(Json::Number)
            .boxed(),
        Kind::Boolean => any::<bool>().prop_map(Json::Bool).boxed(),
        Kind::Any => prop_oneof![
            "[a-c]{0,2}".prop_map(Json::String),
            (0..3_u8).prop_map(|number| Json::Number(number.to_string())),
            any::<bool>().prop_map(Json::Bool),
            Just(Json::Array(vec![Json::Array(Vec::new())])),
            Just(Json::Object(Vec::new())),
        ]
        .boxed(),
        Kind::Languages => {
            let text = |tag: &'static str| {
                ("[a-z]{1,4}").prop_map(move |text| (tag.to_owned(), Json::String(text)))
            };
            (text("en"), text("de")).prop_map(|(one, other)| Json::Object(vec![one, other])).boxed()
        }
        Kind::Map(kind) => prop::collection::btree_map("T[1-9]{1,2}", value(kind, false), 2..4)
            .prop_map(|members| Json::Object(members.into_iter().collect()))
            .boxed(),
        Kind::Object(fields) => object(fields, gaps),
        Kind::Array(kind) => {
            let gap = Just(Json::Null);
            let element = prop_oneof![9 => value(kind, gaps), u32::from(gaps) => gap];
            prop::collection::vec(element, 0..4).prop_map(Json::Array).boxed()
        }
    }
}

/// Generates an object whose members are each present, `null` or absent.
fn object(fields: &[(String, Kind)], gaps: bool) -> BoxedStrategy<Json> {
    let members: Vec<_> = fields
        .iter()
        .map(|(name, kind)| {
            let name = name.clone();
            let value = prop_oneof![
                8 => value(kind, gaps).prop_map(Some),
                1 => Just(Some(Json::Null)),
                1 => Just(None),
            ];
            value.prop_map(move |value| value.map(|value| (name.clone(), value)))
        })
        .collect();
    members.prop_map(|members| Json::Object(members.into_iter().flatten().collect())).boxed()
}

fn derived(objects: &[Json]) -> DerivedMapping {
    let names = MappingNames { business_object: "Pump", vocabulary: "https://plant.example/v/" };
    derive_mapping(names, objects).unwrap()
}

/// Returns whether a sample has fields that may hold URIs of objects. Several objects may then have the same URI.
fn names_objects(json: &Json) -> bool {
    match json {
        Json::Object(members) => members.iter().any(|(name, value)| {
            matches!(name.as_str(), "@id" | "id" | "iri") || names_objects(value)
        }),
        Json::Array(elements) => elements.iter().any(names_objects),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn samples_round_trip_through_the_mapping_derived_from_them(
        objects in fields(kind()).prop_flat_map(|fields| prop::collection::vec(object(&fields, false), 1..4)),
    ) {
        let derived = derived(&objects);
        let misfits: Vec<_> = derived.notes.iter().filter(|note| note.misfit).collect();
        prop_assert!(misfits.iter().all(|note| note.message.contains("holds no value")), "{misfits:?}");
        let mapping = mapping::compile(&derived.config).unwrap();
        // Several objects with the same URI are one object, which this test does not cover.
        prop_assume!(misfits.is_empty() && !objects.iter().any(names_objects));
        prop_assume!(mapping.document.is_none());
        let fixture = fixture_of(&mapping.root);
        fixture.send(Mode::Validate, &text::elements(&objects)).unwrap();
        let answer = fixture.send(Mode::Add, &text::elements(&objects)).unwrap();
        for (object, outcome) in objects.iter().zip(&answer.objects) {
            let shown = json::parse(fixture.view(&outcome.uri).as_bytes(), NESTING).unwrap();
            let difference = find_difference(&mapping.root, object, &shown);
            prop_assert_eq!(difference, None, "{}\n{}", derived.config, shown);
        }
        let quads = fixture.quads();
        let shown: Vec<String> = answer.objects.iter().map(|one| fixture.view(&one.uri)).collect();
        fixture.send(Mode::Update, &shown.join(",")).unwrap();
        prop_assert_eq!(fixture.quads(), quads);
    }

    #[test]
    fn any_pasted_json_gives_a_mapping_or_a_note(
        objects in prop::collection::vec(
            kind().prop_flat_map(|kind| value(&kind, true)).prop_map(|value| Json::Object(vec![("a".to_owned(), value)])),
            1..6,
        ),
    ) {
        let derived = derived(&objects);
        let mapping = mapping::compile(&derived.config).unwrap();
        let text = objects.iter().map(text::write).collect::<Vec<_>>().join("\n");
        prop_assert_eq!(&read_samples(&text, NESTING).unwrap().objects, &objects);
        // Unless a note reports a misfit, the samples fit the mapping. An object whose only member is an object without members
        // has no value, unless it is kept as JSON.
        let is_empty = |object: &Json| text::write(object) == r#"{"a":{}}"#;
        let is_json = mapping.root.iter_properties().any(|(_, field, property)| {
            field.name == "a" && property.value.kind().name == "json"
        });
        let has_value = is_json || !objects.iter().any(is_empty);
        let has_misfit = derived.notes.iter().any(|note| note.misfit);
        if !has_misfit && has_value && !objects.iter().any(names_objects) {
            fixture_of(&mapping.root).send(Mode::Validate, &text::elements(&objects)).unwrap();
        }
    }
}
