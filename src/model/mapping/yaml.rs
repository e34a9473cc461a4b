//! Parses the YAML or JSON of mappings into nodes with their line and column.
use penstock_base::error::Finding;
use penstock_base::yaml;
pub(crate) use penstock_base::yaml::{Content, Key, Location, Node};

/// The maximum length of a text, in bytes.
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// Parses one document. Reports duplicate keys in `findings`, and uses the first of them.
///
/// # Errors
/// Returns the error that makes the text unreadable.
pub(crate) fn parse_document(text: &str, findings: &mut Vec<Finding>) -> Result<Node, Finding> {
    let start = Location { line: 1, column: 1 };
    if text.len() > MAX_BYTES {
        let message =
            format!("the text has {} bytes; the maximum for a mapping is {MAX_BYTES}", text.len());
        return Err(start.to_finding(message));
    }
    let mut duplicates = Vec::new();
    let parsed = yaml::parse_document(text, "mapping", &mut duplicates);
    findings.extend(duplicates.into_iter().map(|duplicate| {
        let Key { at, name, .. } = duplicate.key;
        at.to_finding(format!("the key `{name}` is in this mapping twice"))
    }));
    let root =
        parsed.map_err(|error| error.at.min(end_location(text)).to_finding(error.message))?;
    root.ok_or_else(|| start.to_finding("the text is empty; a mapping begins with `type: object`"))
}

/// Returns the elements of a list, or only the node if it is none.
pub(crate) fn list_nodes(node: &Node) -> &[Node] {
    match &node.content {
        Content::Sequence(nodes) => nodes,
        _ => std::slice::from_ref(node),
    }
}

fn end_location(text: &str) -> Location {
    let last = text.lines().last().unwrap_or_default();
    Location { line: text.lines().count().max(1) as u64, column: last.chars().count() as u64 + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_error(text: &str) -> String {
        parse_document(text, &mut Vec::new()).unwrap_err().to_string()
    }

    fn entry<'a>(node: &'a Node, name: &str) -> &'a Node {
        let Content::Mapping(entries) = &node.content else { panic!("{node:?}") };
        &entries.iter().find(|(key, _)| key.name == name).unwrap().1
    }

    #[test]
    fn duplicate_keys_are_reported_and_the_first_counts() {
        let mut findings = Vec::new();
        let node =
            parse_document("a: 1\nb:\n  x: 1\n  \"x\": {y: 2}\na: 3\n", &mut findings).unwrap();
        let text: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            text,
            [
                "line 4, column 3: the key `x` is in this mapping twice",
                "line 5, column 1: the key `a` is in this mapping twice"
            ]
        );
        assert_eq!(
            entry(&node, "a").content,
            Content::Scalar { text: "1".to_owned(), plain: true }
        );
        assert_eq!(entry(entry(&node, "b"), "x").at, Location { line: 3, column: 6 });
    }

    #[test]
    fn only_a_single_plain_document_is_accepted() {
        assert!(parse_error("").contains("the text is empty"));
        assert!(parse_error("# nothing\n").contains("the text is empty"));
        assert!(parse_error("---\n...\n").contains("the text is empty"));
        assert_eq!(
            parse_error("a: 1\n---\nb: 1"),
            "line 2, column 1: a second document begins here; a mapping must be one document"
        );
        assert_eq!(
            parse_error("a:\n  b: !secret x"),
            "line 2, column 6: the tag !secret has no meaning in a mapping; leave it out"
        );
        assert_eq!(
            parse_error("a: 1\n? [x]\n: 2"),
            "line 2, column 3: a key must be a text, not a list"
        );
        assert!(parse_error(&"x".repeat(MAX_BYTES + 1)).contains("bytes"));
        let message = parse_error("type: object\nfields:\n  a: [1, 2\nb: 3");
        assert!(message.starts_with("line ") && message.contains("not valid YAML"), "{message}");
        assert!(
            parse_error("a: b: c").starts_with("line 1, column 5: this is not valid YAML"),
            "{}",
            parse_error("a: b: c")
        );
        assert!(parse_error("a: \"b").contains("line 1"), "{}", parse_error("a: \"b"));
        assert!(parse_error("a:\n\tb: c").contains("not valid YAML"));
    }
}
