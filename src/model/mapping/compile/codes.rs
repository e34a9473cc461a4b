//! Reads the codes of a field: `base` and `values`.
use super::compiler::{Checked, Compiler, ErrorReported};
use super::definition::Definition;
use super::position::Position;
use crate::mapping::path;
use crate::mapping::yaml::{Content, Key, Location, Node};
use crate::mapping::{CodeList, Codes, Form, Literal, Value};
use oxrdf::{NamedNode, Term};
use penstock_base::json::{self, Json};
use penstock_base::nearest::find_nearest;
use penstock_rdf::number::to_json_number;

/// The keys of an entry of `values` that names a code and its value.
const ENTRY_KEYS: [&str; 2] = ["code", "is"];

impl Compiler {
    /// Reads the codes of a definition with values of this type, if it has some.
    pub(super) fn read_codes(
        &mut self,
        definition: &Definition<'_>,
        value: &Value,
    ) -> Checked<Option<Box<Codes>>> {
        let place = definition.place;
        // A key that the type does not take is reported with the other keys.
        let read = |name| definition.get(name).filter(|_| value.kind().keys.contains(&name));
        let codes = match (read("base"), read("values")) {
            (None, None) => return Ok(None),
            (Some(_), Some((at, _))) => {
                return Err(self.report_error(
                    at,
                    place,
                    "a field has a `base` or `values`, not both; leave one of them out",
                ));
            }
            (Some((_, node)), None) => Codes::Base(self.read_base(node, place)?),
            (None, Some((_, node))) => Codes::Listed(self.read_code_list(node, value, place)?),
        };
        Ok(Some(Box::new(codes)))
    }

    fn read_base(&mut self, node: &Node, place: &Position<'_>) -> Checked<NamedNode> {
        let Content::Scalar { text, .. } = &node.content else {
            let message = format!("`base` must be an IRI, not {}", node.kind());
            return Err(self.report_error(node.at, place, message));
        };
        self.expand_iri(text).map_err(|why| {
            self.report_error(node.at, place, format!("the base `{text}` is invalid: {why}"))
        })
    }

    /// Expands an IRI, with or without angle brackets, or a name with a prefix.
    fn expand_iri(&mut self, text: &str) -> Result<NamedNode, String> {
        if text.starts_with('<') {
            return path::parse_iri(text, &mut self.prefixes);
        }
        self.prefixes.expand_iri(text)
    }

    fn read_code_list(
        &mut self,
        node: &Node,
        value: &Value,
        place: &Position<'_>,
    ) -> Checked<CodeList> {
        let entries: Vec<(Location, Checked<Json>, Checked<Term>)> = match &node.content {
            Content::Mapping(entries) if !entries.is_empty() => {
                let read = |(key, node): &(Key, Node)| {
                    let code = parse_code(&key.name, key.plain);
                    let code = code.map_err(|why| self.report_error(key.at, place, why));
                    (key.at, code, self.read_code_value(node, value, place))
                };
                entries.iter().map(read).collect()
            }
            Content::Sequence(nodes) if !nodes.is_empty() => {
                let read = |node: &Node| {
                    let (code, term) = match &node.content {
                        Content::Mapping(entries) => self.read_entry(entries, node, value, place),
                        _ => self.read_allowed_value(node, value, place),
                    };
                    (node.at, code, term)
                };
                nodes.iter().map(read).collect()
            }
            _ => {
                let message = "`values` is a map of codes to values, a list of entries such as `{code: 0, is: off}`, or on a \
                               `string` or `integer` a list of the allowed values; it needs at least one";
                return Err(self.report_error(node.at, place, message));
            }
        };
        let mut codes = CodeList::default();
        let mut result = Ok(());
        for (at, code, term) in entries {
            result = result.and(match (code, term) {
                (Ok(code), Ok(term)) => {
                    let shown = code.to_string();
                    if codes.add(value, code, term) {
                        Ok(())
                    } else {
                        let message = format!("`values` has the code {shown} twice");
                        Err(self.report_error(at, place, message))
                    }
                }
                _ => Err(ErrorReported),
            });
        }
        result.map(|()| codes)
    }

    /// Reads an entry such as `{code: 0, is: off}`.
    fn read_entry(
        &mut self,
        entries: &[(Key, Node)],
        node: &Node,
        value: &Value,
        place: &Position<'_>,
    ) -> (Checked<Json>, Checked<Term>) {
        for (key, _) in entries.iter().filter(|(key, _)| !ENTRY_KEYS.contains(&&*key.name)) {
            let hint = find_nearest(&key.name, ENTRY_KEYS)
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let message = format!(
                "an entry of `values` has `code` and `is`, and no key `{}`{hint}",
                key.name
            );
            self.report_error(key.at, place, message);
        }
        let find =
            |name: &str| entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node);
        let (Some(code), Some(meaning)) = (find("code"), find("is")) else {
            let message =
                "an entry of `values` needs both a `code` and what it `is`: `{code: 0, is: off}`";
            let reported = self.report_error(node.at, place, message);
            return (Err(reported), Err(reported));
        };
        let read = match &code.content {
            Content::Scalar { text, plain } => parse_code(text, *plain),
            Content::Null => parse_code("null", true),
            _ => Err(format!("a code is a text, a number or a boolean, not {}", code.kind())),
        };
        let read = read.map_err(|why| self.report_error(code.at, place, why));
        (read, self.read_code_value(meaning, value, place))
    }

    /// Reads an element of a list of allowed values, each of which is its own code.
    fn read_allowed_value(
        &mut self,
        node: &Node,
        value: &Value,
        place: &Position<'_>,
    ) -> (Checked<Json>, Checked<Term>) {
        let Value::Literal(kind) = value else {
            let message = "on a `resource`, `values` is a map of codes to IRIs, such as `{RUN: <http://example.com/Running>}`";
            let reported = self.report_error(node.at, place, message);
            return (Err(reported), Err(reported));
        };
        let term = self.read_code_value(node, value, place);
        let code = match (&node.content, kind.kind().form) {
            (Content::Scalar { text, .. }, Form::Number) => Ok(Json::Number(text.clone())),
            (Content::Scalar { text, .. }, _) => Ok(Json::String(text.clone())),
            // The other content was reported with the value.
            _ => Err(ErrorReported),
        };
        (code, term)
    }

    /// Reads the value of a code.
    fn read_code_value(
        &mut self,
        node: &Node,
        value: &Value,
        place: &Position<'_>,
    ) -> Checked<Term> {
        let Content::Scalar { text, .. } = &node.content else {
            let message = format!("a value in `values` must be a text, not {}", node.kind());
            return Err(self.report_error(node.at, place, message));
        };
        let term = match value {
            Value::Literal(kind) => parse_literal(kind, text).map(Term::from),
            _ => self.expand_iri(text).map(Term::from),
        };
        term.map_err(|why| {
            self.report_error(
                node.at,
                place,
                format!("the value `{text}` in `values` is invalid: {why}"),
            )
        })
    }
}

/// Returns the literal of a value in `values`.
fn parse_literal(kind: &Literal, text: &str) -> Result<oxrdf::Literal, String> {
    if kind.kind().form == Form::Number && !is_json_number(text) {
        return Err("it is not a number as JSON writes it".to_owned());
    }
    match (kind.kind().check_text)(text) {
        Ok(datatype) => Ok(kind.build(text.to_owned(), datatype)),
        Err(why) => Err(format!("it {why}")),
    }
}

/// Returns the code that a scalar is. Without quotes, it is what YAML reads.
fn parse_code(text: &str, plain: bool) -> Result<Json, String> {
    if !plain {
        return Ok(Json::String(text.to_owned()));
    }
    match json::parse(text.as_bytes(), 1) {
        Ok(code @ (Json::Number(_) | Json::Bool(_))) => Ok(code),
        Ok(Json::Null) => {
            Err("`null` is no code, because it means no value; a text needs quotes".to_owned())
        }
        _ if is_special(text) => Err(format!(
            "the code `{text}` is not written as JSON writes a number or boolean; correct it, or write it in quotes if it \
             is a text"
        )),
        _ => Ok(Json::String(text.to_owned())),
    }
}

fn is_json_number(text: &str) -> bool {
    to_json_number(text).is_some_and(|number| number == text)
}

/// Returns whether YAML reads a scalar without quotes as a number or boolean (YAML 1.2.2, 10.3.2).
fn is_special(text: &str) -> bool {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0o"));
    let is_prefixed =
        |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let unsigned = text.trim_start_matches(['+', '-']);
    to_json_number(text).is_some()
        || digits.is_some_and(is_prefixed)
        || ["true", "false"].iter().any(|name| text.eq_ignore_ascii_case(name))
        || [".inf", ".nan"].iter().any(|name| unsigned.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::compile;

    fn field(definition: &str) -> String {
        format!(
            "type: object\npath: Pump:.\nprefixes: {{v: 'http://v/'}}\nfields:\n  a: {{path: v:a, {definition}}}\n"
        )
    }

    fn codes(definition: &str) -> Codes {
        let mapping = compile(&field(definition)).unwrap();
        *mapping.root.property_at(0).unwrap().codes.clone().unwrap()
    }

    fn listed(definition: &str) -> Vec<String> {
        let Codes::Listed(list) = codes(definition) else { panic!() };
        list.iter().map(|(code, value)| format!("{code} {value}")).collect()
    }

    #[test]
    fn codes_are_what_yaml_reads() {
        assert_eq!(
            listed("type: string, values: {0: off, '1': on, true: 7, yes: 'a b', \"2\": x}"),
            [r#"0 "off""#, r#""1" "on""#, r#"true "7""#, r#""yes" "a b""#, r#""2" "x""#]
        );
        assert_eq!(
            listed("type: resource, values: [{code: 1.50, is: v:b}, {code: 'x', is: <urn:c>}]"),
            ["1.50 <http://v/b>", r#""x" <urn:c>"#]
        );
        assert_eq!(
            listed("type: string, language: de, values: [ja, 1]"),
            [r#""ja" "ja"@de"#, r#""1" "1"@de"#]
        );
        let integer = "<http://www.w3.org/2001/XMLSchema#integer>";
        assert_eq!(
            listed("type: integer, values: [1, -2]"),
            [format!(r#"1 "1"^^{integer}"#), format!(r#"-2 "-2"^^{integer}"#)]
        );
        for base in ["http://v/", "<http://v/>", "'v:'"] {
            let expected = Codes::Base(NamedNode::new_unchecked("http://v/"));
            assert_eq!(codes(&format!("type: resource, base: {base}")), expected);
        }
        let config = "{\"type\": \"object\", \"path\": \"Pump:.\", \"fields\": {\"a\": {\"type\": \"string\", \"path\": \
                      \"<urn:a>\", \"values\": {\"0\": \"off\"}}}}";
        let mapping = compile(config).unwrap();
        let codes = mapping.root.property_at(0).unwrap().codes.clone().unwrap();
        assert!(codes.lists(&Json::String("0".to_owned())), "names in JSON are strings");
    }

    #[test]
    fn errors_name_the_cause_and_the_remedy() {
        for (definition, words) in [
            ("type: string, values: {}", "it needs at least one"),
            ("type: string, values: x", "`values` is a map of codes to values"),
            (
                "type: string, values: {007: a}",
                "the code `007` is not written as JSON writes a number",
            ),
            ("type: string, values: {True: a}", "write it in quotes"),
            ("type: string, values: {0x1F: a}", "write it in quotes"),
            ("type: string, values: {.inf: a}", "write it in quotes"),
            ("type: string, values: {~: a}", "`null` is no code"),
            ("type: string, values: {1: a, 1.0: b}", "`values` has the code 1.0 twice"),
            ("type: string, values: [a, b, a]", "`values` has the code \"a\" twice"),
            ("type: string, values: {a: [b]}", "a value in `values` must be a text, not a list"),
            ("type: string, values: [{code: a}]", "needs both a `code` and what it `is`"),
            ("type: string, values: [{cod: a, is: b}]", "did you mean `code`?"),
            (
                "type: string, values: [{code: [a], is: b}]",
                "a code is a text, a number or a boolean",
            ),
            ("type: integer, values: {a: 1.5}", "it is not an integer"),
            ("type: integer, values: [x]", "it is not a number as JSON writes it"),
            ("type: resource, values: [<urn:a>]", "`values` is a map of codes to IRIs"),
            ("type: resource, values: {a: b}", "the value `b` in `values` is invalid"),
            ("type: resource, base: [x]", "`base` must be an IRI, not a list"),
            ("type: resource, base: x", "the base `x` is invalid"),
            ("type: resource, base: <urn:a>, values: {a: <urn:b>}", "not both"),
            ("type: string, base: <urn:a>", "`base` has no meaning here"),
            ("type: number, values: [1]", "`values` has no meaning here"),
        ] {
            let findings = compile(&field(definition)).unwrap_err();
            let found: Vec<String> = findings.iter().map(ToString::to_string).collect();
            assert!(
                found.iter().any(|one| one.starts_with("line 5, ") && one.contains(words)),
                "{definition}: {words}\n{found:#?}"
            );
        }
    }
}
