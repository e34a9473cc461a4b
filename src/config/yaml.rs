//! Parses YAML files into flat names and values.
use super::kind::RawValue;
use saphyr_parser::{Event, Parser};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_yaml::Value;
use std::collections::HashMap;
use std::fmt;

/// Parses all names and values, in order.
///
/// # Errors
/// Describes the error, with its line and column.
pub(super) fn parse(text: &str) -> Result<Vec<(String, RawValue)>, String> {
    let shape: Value = serde_yaml::from_str(text)
        .map_err(|error| find_names(text).1.unwrap_or_else(|| error.to_string()))?;
    let tree = TreeSeed(&shape)
        .deserialize(serde_yaml::Deserializer::from_str(text))
        .map_err(|e| e.to_string())?;
    let mut found = Vec::new();
    match tree {
        Tree::Nothing => {}
        Tree::Map(_) => flatten_tree(String::new(), tree, &mut found),
        Tree::Scalar(_) | Tree::List(_) => {
            return Err(
                "expected names with values at the top level, such as `server.port: 8080`".into()
            );
        }
    }
    Ok(found)
}

/// The line of a name.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameLine {
    /// Counted from 1.
    number: usize,
    /// Whether an alias (`*name`) is its value. The names below it have no lines of their own.
    is_alias: bool,
}

/// Returns the line on which each name begins. Of a name that occurs twice, that is the last one, whose value is in force.
pub(super) fn find_lines(text: &str) -> HashMap<String, NameLine> {
    find_names(text).0
}

/// Returns the line of each name, and describes the first key that occurs twice in a mapping, because `serde_yaml` names
/// neither line.
fn find_names(text: &str) -> (HashMap<String, NameLine>, Option<String>) {
    /// A mapping or list that is not closed yet.
    enum Open {
        /// Its name, the lines of its keys, and the name of the key whose value comes next.
        Map { name: String, keys: HashMap<String, usize>, next: Option<String> },
        /// Its name, and the index of the item that comes next.
        List { name: String, index: usize },
    }
    let mut parser = Parser::new_from_str(text);
    let (mut lines, mut duplicate, mut open) = (HashMap::new(), None, Vec::<Open>::new());
    while let Some(Ok((event, span))) = parser.next_event() {
        if matches!(event, Event::SequenceEnd | Event::MappingEnd) {
            open.pop();
            continue;
        }
        if !matches!(
            event,
            Event::Scalar(..)
                | Event::Alias(..)
                | Event::SequenceStart(..)
                | Event::MappingStart(..)
        ) {
            continue;
        }
        let (number, is_top) = (span.start.line(), open.len() == 1);
        let line = NameLine { number, is_alias: false };
        let name = match open.last_mut() {
            None => String::new(),
            Some(Open::List { name, index }) => {
                let item = format!("{name}[{index}]");
                *index += 1;
                lines.insert(item.clone(), line);
                item
            }
            Some(Open::Map { name, keys, next }) => match (next.take(), &event) {
                (Some(full), _) => full,
                (None, Event::Scalar(key, ..)) => {
                    if let Some(first) = keys.insert(key.to_string(), number) {
                        duplicate.get_or_insert_with(|| {
                            describe_duplicate_key(key, [first, number], is_top)
                        });
                    }
                    let full = join_names(name, key);
                    lines.insert(full.clone(), line);
                    *next = Some(full);
                    continue;
                }
                // A key that is no text. No setting has this name.
                (None, _) => next.insert(join_names(name, "?")).clone(),
            },
        };
        match event {
            Event::SequenceStart(..) => open.push(Open::List { name, index: 0 }),
            Event::MappingStart(..) => {
                open.push(Open::Map { name, keys: HashMap::new(), next: None });
            }
            Event::Alias(..) => {
                if let Some(line) = lines.get_mut(&name) {
                    line.is_alias = true;
                }
            }
            _ => {}
        }
    }
    (lines, duplicate)
}

/// Describes a key that is in both lines. A key that `is_top` is in no other one.
fn describe_duplicate_key(key: &str, [first, second]: [usize; 2], is_top: bool) -> String {
    let remedy = if is_top && key == "security" {
        "write `security.mode` for the one with a value, such as `security.mode: oauth2`, or put `mode: oauth2` below the \
         other one, beside `role`"
    } else {
        "move the keys of both below one of them"
    };
    format!("line {second}: the duplicate key {key:?}, which is in line {first} already; {remedy}")
}

/// Returns the line of a name, counted from 1. Below an alias, that is the line of the alias. `None` if it is unknown.
pub(super) fn line_of_name(lines: &HashMap<String, NameLine>, name: &str) -> Option<usize> {
    if let Some(line) = lines.get(name) {
        return Some(line.number);
    }
    let mut above = name;
    loop {
        above = above.get(..above.rfind(['.', '['])?)?;
        if let Some(line) = lines.get(above) {
            return line.is_alias.then_some(line.number);
        }
    }
}

fn join_names(name: &str, key: &str) -> String {
    if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") }
}

/// A document in which every scalar keeps its original text: `0123` and `1.10` keep their digits.
enum Tree {
    Nothing,
    Scalar(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

fn flatten_tree(name: String, tree: Tree, into: &mut Vec<(String, RawValue)>) {
    match tree {
        Tree::Nothing => into.push((name, RawValue::Text(String::new()))),
        Tree::Scalar(text) => into.push((name, RawValue::Text(text))),
        Tree::List(items) if items.iter().all(|i| matches!(i, Tree::Scalar(_))) => {
            let texts = items.into_iter().filter_map(|item| match item {
                Tree::Scalar(text) => Some(text),
                _ => None,
            });
            into.push((name, RawValue::List(texts.collect())));
        }
        Tree::List(items) => {
            for (index, item) in items.into_iter().enumerate() {
                flatten_tree(format!("{name}[{index}]"), item, into);
            }
        }
        Tree::Map(entries) => {
            for (key, value) in entries {
                flatten_tree(join_names(&name, &key), value, into);
            }
        }
    }
}

/// Reads a document with the shape of this value, which has the types of the scalars.
struct TreeSeed<'a>(&'a Value);

impl<'de> DeserializeSeed<'de> for TreeSeed<'_> {
    type Value = Tree;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        match self.0 {
            Value::Null => IgnoredAny::deserialize(deserializer).map(|_| Tree::Nothing),
            Value::Sequence(_) => deserializer.deserialize_seq(self),
            Value::Mapping(_) => deserializer.deserialize_map(self),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                String::deserialize(deserializer).map(Tree::Scalar)
            }
            Value::Tagged(tagged) => Err(serde::de::Error::custom(format!(
                "the tag {} is not supported in a configuration file",
                tagged.tag
            ))),
        }
    }
}

impl<'de> Visitor<'de> for TreeSeed<'_> {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the same document as before")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        for value in self.0.as_sequence().into_iter().flatten() {
            items.extend(access.next_element_seed(TreeSeed(value))?);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Tree, A::Error> {
        let mut entries = Vec::new();
        for (_, value) in self.0.as_mapping().into_iter().flatten() {
            if let Some(key) = access.next_key()? {
                entries.push((key, access.next_value_seed(TreeSeed(value))?));
            }
        }
        Ok(Tree::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What libyaml reads and other readers refuse, and files of running gateways have.
    #[test]
    fn every_layout_of_libyaml_is_read() {
        for (text, name, value) in [
            (
                "server:\n  cors:\n    allowed-origins: [\n      \"https://a.example\",\n      \"https://b.example\"\n    ]\n",
                "server.cors.allowed-origins",
                "https://a.example,https://b.example",
            ),
            ("service:\n  limits: {\n    \"body\": \"1MiB\"\n  }\n", "service.limits.body", "1MiB"),
            ("service:\n  base-url: \"https://a/\\\n  x\"\n", "service.base-url", "https://a/x"),
            ("server.port:\t8081\n", "server.port", "8081"),
            ("service.gateway-id: !!str 123\n", "service.gateway-id", "123"),
        ] {
            let found = parse(text).unwrap();
            let [(found_name, found_value)] = found.as_slice() else { panic!("{text}") };
            assert_eq!((found_name.as_str(), found_value.to_string().as_str()), (name, value));
        }
    }

    #[test]
    fn names_are_flat_and_scalars_keep_their_digits() {
        let text = "server:\n  port: 0123\n  cors.allowed-origins: [a, 'b,c']\nservice.gateway-id: 1.10\nservice:\n  base-url:\n  export: &x {targets: {'[my.bucket]': {type: s3}}}\nother: *x\n";
        let found: Vec<(String, String)> =
            parse(text).unwrap().into_iter().map(|(n, v)| (n, format!("{v}"))).collect();
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
        let text = "# c\nserver:\n  port: 1\n\nservice:\n  base: &x {type: a}\n  list:\n  - topic: t\n    mode: m\n  - topic: u\nother: *x\ntext: |\n  a: 1\nlast: [p, q]\n";
        let lines = find_lines(text);
        for (name, line) in [
            ("server.port", 3),
            ("service.base.type", 6),
            ("service.list[0].topic", 8),
            ("service.list[0].mode", 9),
            ("service.list[1].topic", 10),
            ("other.type", 11),
            ("text", 12),
            ("last", 14),
        ] {
            assert_eq!(line_of_name(&lines, name), Some(line), "{name}");
        }
        assert_eq!(line_of_name(&lines, "nothing"), None);
        assert_eq!(line_of_name(&lines, "server.address"), None);
        for (name, _) in parse(text).unwrap() {
            assert!(line_of_name(&lines, &name).is_some(), "{name}");
        }
    }

    #[test]
    fn the_line_of_a_name_is_that_of_its_value_in_force() {
        let twice = find_lines("server.port: 1\nserver:\n  port: 2\n");
        assert_eq!(line_of_name(&twice, "server.port"), Some(3));
        let ended = find_lines("server:\n  port: 1\n  tls: [\n");
        assert_eq!(line_of_name(&ended, "server.port"), Some(2));
        assert_eq!(line_of_name(&ended, "server.address"), None);
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
            ("? [a, b]\n: 1\nc: 1\nc: 2\n", "line 4: the duplicate key \"c\""),
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
