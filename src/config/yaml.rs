//! Parses YAML files into flat names and values.
use super::kind::RawValue;
use super::properties::Property;
use penstock_base::yaml::{self, Content, DuplicateKey, Location, Node};

/// Parses all names and values, in order, each with the line of its name. Below an alias (`*name`), that is the line of the
/// alias.
///
/// # Errors
/// Describes the error, with its line.
pub(super) fn parse(text: &str) -> Result<Vec<Property>, String> {
    let mut duplicates = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parsed = yaml::parse_document(text, "configuration", &mut duplicates);
    if let Some(duplicate) = duplicates.first() {
        return Err(describe_duplicate(duplicate));
    }
    let mut found = Vec::new();
    if let Some(root) = parsed.map_err(|error| error.to_string())? {
        if !matches!(root.content, Content::Mapping(_)) {
            return Err(
                "expected names with values at the top level, such as `server.port: 8080`".into()
            );
        }
        flatten(String::new(), root.at, root, &mut found);
    }
    Ok(found)
}

fn describe_duplicate(DuplicateKey { key, first, is_at_top }: &DuplicateKey) -> String {
    let remedy = if *is_at_top && key.name == "security" {
        "write `security.mode` for the one with a value, such as `security.mode: oauth2`, or put `mode: oauth2` below \
         the other one, beside `role`"
    } else {
        "move the keys of both below one of them"
    };
    format!(
        "line {}: the duplicate key {:?}, which is in line {} already; {remedy}",
        key.at.line, key.name, first.line
    )
}

/// Adds the values in a node, whose name begins at `at`.
fn flatten(name: String, at: Location, node: Node, into: &mut Vec<Property>) {
    // What an alias copies has the positions of the original, which comes before.
    let is_copy = node.at < at;
    let place = |own: Location| if is_copy { at } else { own };
    let value = match node.content {
        Content::Null => RawValue::Text(String::new()),
        Content::Scalar { text, .. } => RawValue::Text(text),
        Content::Sequence(items)
            if items.iter().all(|item| matches!(item.content, Content::Scalar { .. })) =>
        {
            let texts = items.into_iter().filter_map(|item| match item.content {
                Content::Scalar { text, .. } => Some(text),
                _ => None,
            });
            RawValue::List(texts.collect())
        }
        Content::Sequence(items) => {
            for (index, item) in items.into_iter().enumerate() {
                flatten(format!("{name}[{index}]"), place(item.at.max(node.at)), item, into);
            }
            return;
        }
        Content::Mapping(entries) => {
            for (key, value) in entries {
                let full = if name.is_empty() { key.name } else { format!("{name}.{}", key.name) };
                flatten(full, place(key.at), value, into);
            }
            return;
        }
    };
    into.push(Property { line: at.line, name, value });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_flat_and_scalars_keep_their_digits() {
        let text = "server:\n  port: 0123\n  cors.allowed-origins: [a, 'b,c']\nservice.gateway-id: 1.10\nservice:\n  base-url:\n  export: &x {targets: {'[my.bucket]': {type: s3}}}\nother: *x\n";
        let found: Vec<(String, String)> =
            parse(text).unwrap().into_iter().map(|p| (p.name, p.value.to_string())).collect();
        let expected = [
            ("server.port", "0123"),
            ("server.cors.allowed-origins", "a,b,c"),
            ("service.gateway-id", "1.10"),
            ("service.base-url", ""),
            ("service.export.targets.[my.bucket].type", "s3"),
            ("other.targets.[my.bucket].type", "s3"),
        ];
        assert_eq!(found, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
        assert!(parse("# nothing\n").unwrap().is_empty());
    }

    #[test]
    fn every_name_has_a_line() {
        let text = "# c\nserver:\n  port: 1\n\nservice:\n  base: &x {type: a}\n  list:\n  - topic: t\n    mode: m\n  - topic: u\nother: *x\ntext: |\n  a: 1\nlast: [p, q]\nitems:\n- *x\n";
        let found = parse(text).unwrap();
        for (name, line) in [
            ("server.port", 3),
            ("service.base.type", 6),
            ("service.list[0].topic", 8),
            ("service.list[0].mode", 9),
            ("service.list[1].topic", 10),
            ("other.type", 11),
            ("text", 12),
            ("last", 14),
            ("items[0].type", 16),
        ] {
            let property = found.iter().find(|property| property.name == name).unwrap();
            assert_eq!(property.line, line, "{name}");
        }
    }

    #[test]
    fn the_line_of_a_name_is_that_of_its_value_in_force() {
        let twice = parse("server.port: 1\nserver:\n  port: 2\n").unwrap();
        let lines = twice.iter().map(|property| (property.name.as_str(), property.line));
        assert_eq!(lines.collect::<Vec<_>>(), [("server.port", 1), ("server.port", 3)]);
    }

    #[test]
    fn errors_have_a_position() {
        for (text, expected) in [
            ("a: 1\nb: [\n", "line 3"),
            ("a: 1\na: 2\n", "line 2: the duplicate key \"a\", which is in line 1"),
            (
                "a:\n- b: [{c: 1}]\n  d: 1\n- b: 1\n  d: 1\n  b: 2\n",
                "line 6: the duplicate key \"b\"",
            ),
            (
                "security: oauth2\nx: 1\nsecurity:\n  role: {admin: A}\n",
                "line 3: the duplicate key \"security\"",
            ),
            ("security: oauth2\nsecurity: {role: {}}\n", "`security.mode: oauth2`"),
            ("- a\n", "names with values"),
            ("a: !secret x\n", "tag"),
            ("a: 1\n---\nb: 2\n", "document"),
        ] {
            let error = parse(text).err().unwrap_or_default();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
