//! Keys that are unique only in a parent, and nested objects without a key.
use super::*;

#[test]
fn a_part_is_unique_only_in_its_parent() {
    let (gateway, pumps) = Gateway::with("Pumps", PUMP);
    let pump = |site: &str| {
        format!(
            r#"{{"site": "{site}", "number": 1, "parts": [{{"position": "a", "maker": "{site}"}}]}}"#
        )
    };
    let both = format!("{}, {}", pump("N"), pump("S"));
    let answer = gateway.send(&pumps, Mode::Add, &both).unwrap();
    assert_ne!(answer.objects[0].nested[0].uri, answer.objects[1].nested[0].uri);
    assert_eq!(gateway.send(&pumps, Mode::Add, &both).unwrap().unchanged, 2);
    // A part with another URI is found in its own parent only.
    let given = r#"{"site": "W", "number": 1, "parts": [{"uri": "urn:part", "position": "a"}]}"#;
    gateway.send(&pumps, Mode::Add, given).unwrap();
    assert_eq!(gateway.entries(), 1);
    let answer = gateway.send(&pumps, Mode::Merge, &pump("W")).unwrap();
    assert_eq!(answer.objects[0].nested[0].uri, "urn:part");
    gateway.send(&pumps, Mode::Delete, r#"{"site": "W", "number": 1}"#).unwrap();
    assert_eq!(gateway.entries(), 0);
}

#[test]
fn parents_outside_and_inside_the_namespace_have_different_parts() {
    let (gateway, pumps) = Gateway::with("Pumps", PUMP);
    let pump = |uri: &str, site: &str, maker: &str| {
        format!(
            r#"{{"uri": "{uri}", "site": "{site}", "number": 1, "parts": [{{"position": "x", "maker": "{maker}"}}]}}"#
        )
    };
    let inside = format!("{BASE}Pump/urn:a");
    for (uri, site, maker) in [("urn:a", "N", "one"), (inside.as_str(), "S", "two")] {
        gateway.send(&pumps, Mode::Merge, &pump(uri, site, maker)).unwrap();
    }
    let part = |segment: &str| format!("<{BASE}Part/{segment}/x> <http://e/maker>");
    let makers: Vec<String> =
        gateway.quads().into_iter().filter(|quad| quad.contains("http://e/maker")).collect();
    let graph = format!("<{BASE}Part/>");
    assert_eq!(
        makers,
        [
            format!("{} \"one\" {graph}", part("@urn%3Aa")),
            format!("{} \"two\" {graph}", part("urn%3Aa")),
        ]
    );
}

#[test]
fn a_part_of_a_parent_outside_the_namespace_keeps_the_uri_of_earlier_versions() {
    let (gateway, pumps) = Gateway::with("Pumps", PUMP);
    let earlier = NamedNode::new_unchecked(format!("{BASE}Part/urn%3Aa/x"));
    let node = |iri: &str| NamedNode::new_unchecked(iri);
    let graph = |name: &str| node(&format!("{BASE}{name}/"));
    let pump = node("urn:a");
    for (subject, property, object, space) in [
        (&pump, "http://e/site", Term::from(Literal::from("N")), "Pump"),
        (&pump, "http://e/number", Literal::from(1).into(), "Pump"),
        (&pump, "http://e/part", earlier.clone().into(), "Pump"),
        (&earlier, "http://e/position", Literal::from("x").into(), "Part"),
    ] {
        gateway.insert(&Quad::new(subject.clone(), node(property), object, graph(space)));
    }
    let merge = |maker: &str| {
        let data = format!(
            r#"{{"site": "N", "number": 1, "uri": "urn:a", "parts": [{{"position": "x", "maker": "{maker}"}}]}}"#
        );
        gateway.send(&pumps, Mode::Merge, &data).unwrap();
        gateway.quads().into_iter().filter(|quad| quad.contains("http://e/maker")).collect()
    };
    for maker in ["one", "two"] {
        let makers: Vec<String> = merge(maker);
        assert_eq!(makers, [format!("{earlier} <http://e/maker> {maker:?} {}", graph("Part"))]);
    }
    // A parent in the namespace whose part would have that URI does not overwrite it.
    let inside = format!(
        r#"{{"uri": "{BASE}Pump/urn:a", "site": "S", "number": 1, "parts": [{{"position": "x"}}]}}"#
    );
    let error = gateway.send(&pumps, Mode::Merge, &inside).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict, "{error}");
}

#[test]
fn a_part_that_two_parents_link_to_needs_a_key_of_its_own_in_both() {
    let (gateway, pumps) = Gateway::with("Pumps", PUMP);
    let part = |pump: u8, part: &str| {
        format!("{{\"site\": \"N\", \"number\": {pump}, \"parts\": [{part}]}}")
    };
    let (linked, keyed) = (r#"{"uri": "urn:part"}"#, r#"{"position": "a"}"#);
    let first = part(1, r#"{"uri": "urn:part", "position": "a"}"#);
    gateway.send(&pumps, Mode::Add, &first).unwrap();
    // In one request, the link and the key are two objects with one key.
    let both = format!("{}, {}", part(2, linked), part(2, keyed));
    let error = gateway.send(&pumps, Mode::Add, &both).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    let expected = "/data/1/parts/0: https://plant.example/id/Part/N%2F2/a would have the same key as urn:part";
    assert!(messages(&error).contains(expected), "{error}");
    let answer = gateway.skip(&pumps, Mode::Add, &both);
    assert_eq!((answer.created, answer.rejected.len()), (1, 1));
    assert_eq!(answer.rejected[0].index, 1);
    // In two requests, the second finds the first one's part.
    let answer = gateway.send(&pumps, Mode::Add, &part(2, keyed)).unwrap();
    assert_eq!(answer.objects[0].nested[0].uri, "urn:part");
    // A pump with a part of the key gets no link to another one.
    gateway.send(&pumps, Mode::Add, &part(3, keyed)).unwrap();
    let error = gateway.send(&pumps, Mode::Add, &part(3, linked)).unwrap_err();
    assert!(messages(&error).contains("urn:part would have the same key as"), "{error}");
    assert_eq!(gateway.skip(&pumps, Mode::Add, &part(3, linked)).rejected.len(), 1);
}

#[test]
fn an_object_that_gets_its_key_in_parts_shares_it_with_none() {
    let (gateway, pumps) = Gateway::with("Pumps", PUMP);
    let halves = gateway
        .define("Halves", "type: object\npath: Pump:.\nfields:\n  number: {type: integer, path: <http://e/number>}\n  site: {type: string, path: <http://e/site>}\n")
        .unwrap();
    gateway.send(&pumps, Mode::Add, r#"{"site": "N", "number": 7}"#).unwrap();
    gateway.send(&halves, Mode::Add, r#"{"uri": "urn:p", "number": 7}"#).unwrap();
    let complete = r#"{"uri": "urn:p", "site": "N"}"#;
    let error = gateway.send(&pumps, Mode::Update, complete).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(messages(&error).contains("/data/0: urn:p would have the same key as"), "{error}");
    let answer = gateway.skip(
        &pumps,
        Mode::Update,
        &format!("{complete}, {}", r#"{"site": "N", "number": 7, "power": 3}"#),
    );
    assert_eq!((answer.updated, answer.rejected.len()), (1, 1));
    gateway.send(&pumps, Mode::Update, r#"{"uri": "urn:p", "site": "S"}"#).unwrap();
    let answer = gateway.send(&pumps, Mode::Merge, r#"{"site": "S", "number": 7}"#).unwrap();
    assert_eq!(uris(&answer), ["urn:p"]);
}

#[test]
fn a_nested_object_without_a_key_shares_none_with_a_later_object() {
    let backup = "
  backup:
    type: object
    path: <http://e/backup>/Pump:.
    fields:
      tag: {type: string, path: <http://e/tag>}
";
    let (gateway, pumps) =
        Gateway::with("Pumps", &format!("{TAGGED}{}", backup.trim_start_matches('\n')));
    let both = r#"{"tag": "P-1", "backup": {"uri": "urn:x", "tag": "P-9"}}, {"tag": "P-9"}"#;
    let error = gateway.send(&pumps, Mode::Add, both).unwrap_err();
    assert!(messages(&error).contains("/data/1: "), "{error}");
    assert_eq!(gateway.skip(&pumps, Mode::Add, both).rejected[0].index, 1);
    assert_eq!(uris(&gateway.send(&pumps, Mode::Add, r#"{"tag": "P-9"}"#).unwrap()), ["urn:x"]);
}
