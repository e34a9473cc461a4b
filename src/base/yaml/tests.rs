use super::*;
use proptest::prelude::*;
use std::fmt::Write as _;

fn parse_valid(text: &str) -> Node {
    let mut duplicates = Vec::new();
    let node = parse_document(text, "mapping", &mut duplicates).unwrap();
    assert_eq!(duplicates, []);
    node.unwrap()
}

fn parse_error(text: &str) -> String {
    parse_document(text, "mapping", &mut Vec::new()).unwrap_err().to_string()
}

fn entry<'a>(node: &'a Node, name: &str) -> (&'a Key, &'a Node) {
    let Content::Mapping(entries) = &node.content else { panic!("{node:?}") };
    let (key, value) = entries.iter().find(|(key, _)| key.name == name).unwrap();
    (key, value)
}

fn at(line: u64, column: u64) -> Location {
    Location { line, column }
}

#[test]
fn every_node_has_its_position() {
    let node =
        parse_valid("type: object\nfields:\n  näme:\n    type: 'string'\n  list: [1, {a: b}]\n");
    assert_eq!(node.at, at(1, 1));
    assert_eq!(entry(&node, "type").1.at, at(1, 7));
    let (key, fields) = entry(&node, "fields");
    assert_eq!((key.at, fields.at), (at(2, 1), at(3, 3)));
    let (key, name) = entry(fields, "näme");
    assert_eq!(key.at, at(3, 3));
    let (_, kind) = entry(name, "type");
    assert_eq!(kind.at, at(4, 11));
    assert_eq!(kind.content, Content::Scalar { text: "string".to_owned(), plain: false });
    let Content::Sequence(list) = &entry(fields, "list").1.content else { panic!() };
    assert_eq!((list[0].at, list[1].at), (at(5, 10), at(5, 13)));
}

#[test]
fn json_is_yaml() {
    let node = parse_valid(
        "{\"type\": \"object\",\n  \"none\": null, \"empty\": \"\",\n\t\"required\": true}",
    );
    assert_eq!(
        entry(&node, "type").1.content,
        Content::Scalar { text: "object".to_owned(), plain: false }
    );
    assert_eq!(entry(&node, "none").1.content, Content::Null);
    assert_eq!(
        entry(&node, "empty").1.content,
        Content::Scalar { text: String::new(), plain: false }
    );
    assert_eq!(entry(&node, "required").0.at, at(3, 2));
}

#[test]
fn a_missing_value_is_null() {
    let node = parse_valid("a:\nb: ~\nc: '~'");
    assert_eq!(entry(&node, "a").1.content, Content::Null);
    assert_eq!(entry(&node, "b").1.content, Content::Null);
    assert_eq!(entry(&node, "c").1.kind(), "a text");
}

#[test]
fn aliases_are_expanded_within_a_budget() {
    let node = parse_valid("a: &x {p: 1}\nb: *x\n");
    assert_eq!(entry(&node, "a").1, entry(&node, "b").1);

    let mut bomb = "a0: &a0 [x, x]\n".to_owned();
    for i in 1..40 {
        writeln!(bomb, "a{i}: &a{i} [*a{0}, *a{0}]", i - 1).unwrap();
    }
    assert!(parse_error(&bomb).contains("more than 200000 values"), "{}", parse_error(&bomb));

    let mut deep = "a0: &a0 [x]\n".to_owned();
    for i in 1..1200 {
        writeln!(deep, "a{i}: &a{i} [*a{}]", i - 1).unwrap();
    }
    let message = parse_error(&deep);
    assert!(message.contains("nests deeper") || message.contains("more than"), "{message}");
    assert_eq!(
        parse_error("a: &x [*x]"),
        "line 1, column 8: this alias is inside the value that it refers to"
    );
    assert!(parse_error("a: *nowhere").contains("unknown anchor"));
}

#[test]
fn deep_texts_do_not_overflow_the_stack() {
    assert!(parse_error(&"[".repeat(100_000)).contains("255"));
    assert!(parse_error(&"- ".repeat(100_000)).contains("deeper than 1000"));
    let deepest = format!("{}x", "- ".repeat(1000));
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || assert_eq!(parse_valid(&deepest).height, 1001))
        .unwrap()
        .join()
        .unwrap();
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let _ = parse_document(&text, "mapping", &mut Vec::new());
    }

    #[test]
    fn text_of_yamls_own_characters_never_panics(text in "[-a:\\[\\]{},&*!?|>'\"#%@ \n\t~.]{0,60}") {
        let _ = parse_document(&text, "mapping", &mut Vec::new());
    }
}
