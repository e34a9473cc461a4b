use super::*;
use proptest::prelude::*;
use std::fmt::Write as _;

fn good(text: &str) -> Node {
    let mut findings = Vec::new();
    let node = read(text, &mut findings).unwrap();
    assert_eq!(findings, []);
    node
}

fn bad(text: &str) -> String {
    read(text, &mut Vec::new()).unwrap_err().to_string()
}

fn entry<'a>(node: &'a Node, name: &str) -> (&'a Key, &'a Node) {
    let Content::Mapping(entries) = &node.content else { panic!("{node:?}") };
    let (key, value) = entries.iter().find(|(key, _)| key.name == name).unwrap();
    (key, value)
}

fn at(line: u64, column: u64) -> At {
    At { line, column }
}

#[test]
fn every_node_knows_its_place() {
    let node = good("type: object\nfields:\n  näme:\n    type: 'string'\n  list: [1, {a: b}]\n");
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
    let node =
        good("{\"type\": \"object\",\n  \"none\": null, \"empty\": \"\",\n\t\"required\": true}");
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
fn a_missing_value_is_nothing() {
    let node = good("a:\nb: ~\nc: '~'");
    assert_eq!(entry(&node, "a").1.content, Content::Null);
    assert_eq!(entry(&node, "b").1.content, Content::Null);
    assert_eq!(entry(&node, "c").1.kind(), "a text");
}

#[test]
fn duplicate_keys_are_found_and_the_first_counts() {
    let mut findings = Vec::new();
    let node = read("a: 1\nb:\n  x: 1\n  \"x\": {y: 2}\na: 3\n", &mut findings).unwrap();
    let text: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(
        text,
        [
            "line 4, column 3: the key `x` stands twice in one mapping",
            "line 5, column 1: the key `a` stands twice in one mapping"
        ]
    );
    assert_eq!(entry(&node, "a").1.content, Content::Scalar { text: "1".to_owned(), plain: true });
    assert_eq!(entry(entry(&node, "b").1, "x").1.at, at(3, 6));
}

#[test]
fn aliases_are_expanded_within_a_budget() {
    let node = good("a: &x {p: 1}\nb: *x\n");
    assert_eq!(entry(&node, "a").1, entry(&node, "b").1);

    let mut bomb = "a0: &a0 [x, x]\n".to_owned();
    for i in 1..40 {
        writeln!(bomb, "a{i}: &a{i} [*a{0}, *a{0}]", i - 1).unwrap();
    }
    assert!(bad(&bomb).contains("more than 200000 values"), "{}", bad(&bomb));

    let mut deep = "a0: &a0 [x]\n".to_owned();
    for i in 1..1200 {
        writeln!(deep, "a{i}: &a{i} [*a{}]", i - 1).unwrap();
    }
    let message = bad(&deep);
    assert!(message.contains("nests deeper") || message.contains("more than"), "{message}");
    assert_eq!(bad("a: &x [*x]"), "line 1, column 8: this alias stands within what it refers to");
    assert!(bad("a: *nowhere").contains("unknown anchor"));
}

#[test]
fn what_is_no_single_plain_document_is_refused() {
    assert!(bad("").contains("the text is empty"));
    assert!(bad("# nothing\n").contains("the text is empty"));
    assert!(bad("---\n...\n").contains("the text is empty"));
    assert_eq!(
        bad("a: 1\n---\nb: 1"),
        "line 2, column 1: a second document begins here; the mapping is one document"
    );
    assert_eq!(
        bad("a:\n  b: !secret x"),
        "line 2, column 6: the tag !secret has no meaning in a mapping; leave it out"
    );
    assert_eq!(bad("a: 1\n? [x]\n: 2"), "line 2, column 3: a key must be a text, not a list");
    assert!(bad(&"x".repeat(MAX_BYTES + 1)).contains("bytes"));
    let message = bad("type: object\nfields:\n  a: [1, 2\nb: 3");
    assert!(message.starts_with("line ") && message.contains("not valid YAML"), "{message}");
    assert!(
        bad("a: b: c").starts_with("line 1, column 5: this is not valid YAML"),
        "{}",
        bad("a: b: c")
    );
    assert!(bad("a: \"b").contains("line 1"), "{}", bad("a: \"b"));
    assert!(bad("a:\n\tb: c").contains("not valid YAML"));
}

#[test]
fn no_depth_overflows_the_stack() {
    assert!(bad(&"[".repeat(100_000)).contains("255"));
    assert!(bad(&"- ".repeat(100_000)).contains("deeper than 1000"));
    let deepest = format!("{}x", "- ".repeat(1000));
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || assert_eq!(good(&deepest).height, 1001))
        .unwrap()
        .join()
        .unwrap();
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let _ = read(&text, &mut Vec::new());
    }

    #[test]
    fn text_of_yamls_own_characters_never_panics(text in "[-a:\\[\\]{},&*!?|>'\"#%@ \n\t~.]{0,60}") {
        let _ = read(&text, &mut Vec::new());
    }
}
