//! Converts the values of fields with codes.
use super::findings::quote_excerpt;
use super::literal::{describe_mismatch, to_iri, to_term};
use crate::mapping::{CodeList, Codes, Form, Value, code_text, expand_code};
use oxrdf::Term;
use penstock_base::json::Json;
use penstock_store::FastSet;

/// The maximum number of codes that an error names.
const MAX_NAMED_CODES: usize = 20;

/// Returns the value of a code of a field. A value that is not listed is kept if the field could store it: it is accepted
/// where it is stored already, which [`find_unlisted`] checks.
///
/// # Errors
/// Returns the message for a value that is neither.
pub(super) fn to_coded_term(codes: &Codes, value: &Value, json: Json) -> Result<Term, String> {
    let list = match codes {
        Codes::Base(base) => {
            return match json {
                Json::String(code) => match expand_code(base, &code) {
                    Some(iri) => to_iri(Json::String(iri)).map(Term::from),
                    None => to_iri(Json::String(code)).map(Term::from).map_err(|error| {
                        format!(
                            "{error}; a code of the field has at least one character, and no colon"
                        )
                    }),
                },
                other => Err(describe_mismatch("a code or an IRI as a string", &other)),
            };
        }
        Codes::Listed(list) => list,
    };
    if let Some(term) = list.find_term(&json) {
        return Ok(term.clone());
    }
    let Ok(term) = to_term(value, json.clone()) else { return Err(describe_unknown(list, &json)) };
    match list.find_code(value, term.as_ref()) {
        None => Ok(term),
        Some(code) => {
            let shown = show_code(&json);
            Err(format!("{shown} is what the code {} stands for; send the code", show_code(code)))
        }
    }
}

/// Returns the message for the first of these values that is neither listed nor among those in `stored`.
pub(super) fn find_unlisted<'t>(
    codes: &Codes,
    value: &Value,
    terms: &[Term],
    stored: impl IntoIterator<Item = &'t Term>,
) -> Option<String> {
    let list = codes.list()?;
    let is_listed = |term: &&Term| list.find_code(value, term.as_ref()).is_some();
    let mut unlisted = terms.iter().filter(|term| !is_listed(term)).peekable();
    unlisted.peek()?;
    let stored: FastSet<&Term> = stored.into_iter().collect();
    let unlisted = unlisted.find(|term| !stored.contains(term))?;
    let json = match unlisted {
        Term::Literal(literal) if value.kind().form == Form::Number => {
            Json::Number(literal.value().to_owned())
        }
        Term::Literal(literal) => Json::String(literal.value().to_owned()),
        Term::NamedNode(iri) => Json::String(iri.as_str().to_owned()),
        // No ingestion writes another term here.
        _ => Json::Null,
    };
    Some(describe_unknown(list, &json))
}

fn describe_unknown(list: &CodeList, json: &Json) -> String {
    let shown = show_code(json);
    if let Some(near) = list.find_nearest(code_text(json)) {
        return format!("{shown} is not a code of the field; did you mean {}?", show_code(near));
    }
    let named: Vec<String> =
        list.iter().take(MAX_NAMED_CODES).map(|(code, _)| show_code(code)).collect();
    let more = if list.iter().len() > MAX_NAMED_CODES { " and others" } else { "" };
    format!("{shown} is not a code of the field; it has {}{more}", named.join(", "))
}

/// Formats a JSON value for a message.
fn show_code(json: &Json) -> String {
    match json {
        Json::String(text) => quote_excerpt(text),
        Json::Number(digits) => digits.chars().take(40).collect(),
        Json::Bool(flag) => flag.to_string(),
        other => other.kind_name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::ingest::Mode;
    use crate::mapping::compile;
    use crate::testing::{Fixture, insert_quad};
    use oxrdf::{Literal, NamedNode};

    const MAPPING: &str = "
type: object
path: Pump:.
fields:
  maker: {type: resource, path: <urn:maker>, base: 'http://m/'}
  state: {type: resource, path: <urn:state>, values: {RUN: <urn:Running>, STOP: <urn:Stopped>, HALT: <urn:Stopped>}}
  valve: {type: string, path: <urn:valve>, values: {0: closed, 1: open, true: open}}
  level: {type: integer, path: <urn:level>, values: [1, 2]}
  marks: {type: array, path: <urn:mark>, elements: {type: string, values: {a: B, b: C}}}
";

    fn fixture() -> Fixture {
        Fixture::new(compile(MAPPING).unwrap().root)
    }

    fn errors(fixture: &Fixture, mode: Mode, data: &str) -> Vec<String> {
        let error = fixture.send(mode, data).unwrap_err();
        error.findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn codes_become_values_and_come_back() {
        let fixture = fixture();
        let object =
            r#"{"uri":"urn:p","maker":"K S","state":"STOP","valve":1,"level":2,"marks":["a","b"]}"#;
        fixture.send(Mode::Add, object).unwrap();
        let mut quads = fixture.quads().join("\n");
        for value in [
            "<urn:maker> <http://m/K%20S>",
            "<urn:state> <urn:Stopped>",
            r#"<urn:valve> "open""#,
            "<urn:level> \"2\"^^<http://www.w3.org/2001/XMLSchema#integer>",
            r#"<urn:mark> "B""#,
            r#"<urn:mark> "C""#,
        ] {
            assert!(quads.contains(value), "{quads}");
        }
        assert_eq!(fixture.view("urn:p"), object);
        let others =
            r#"{"uri":"urn:p","state":"HALT","valve":true,"maker":"http://m/K%20S","level":2}"#;
        fixture.send(Mode::Merge, others).unwrap();
        assert_eq!(fixture.view("urn:p"), object);
        fixture.send(Mode::Replace, object).unwrap();
        quads = fixture.quads().join("\n");
        assert_eq!(quads.lines().count(), 6, "{quads}");
    }

    #[test]
    fn other_values_are_refused_with_the_nearest_code() {
        let data = r#"{"state": "RUNN", "valve": 7, "level": 3, "maker": "", "marks": ["B", "x"]}"#;
        let found = errors(&fixture(), Mode::Add, data);
        let expected = [
            ("/data/0/state", "\"RUNN\" is not a code of the field; did you mean \"RUN\"?"),
            ("/data/0/valve", "7 is not a code of the field"),
            ("/data/0/maker", "; a code of the field has at least one character, and no colon"),
            ("/data/0/marks/0", "\"B\" is what the code \"a\" stands for; send the code"),
        ];
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (pointer, words) in expected {
            assert!(
                found.iter().any(|one| one.contains(pointer) && one.contains(words)),
                "{pointer}: {words}\n{found:#?}"
            );
        }
        for (data, words) in [
            (r#"{"level": 3}"#, "3 is not a code of the field"),
            (r#"{"valve": "0"}"#, "\"0\" is not a code of the field; did you mean 0?"),
            (r#"{"maker": "a:b c"}"#, "is not an absolute IRI"),
            (r#"{"maker": 7}"#, "a code or an IRI as a string is expected, not the number 7"),
            (r#"{"state": "urn:x"}"#, "it has \"RUN\", \"STOP\", \"HALT\""),
        ] {
            let found = errors(&fixture(), Mode::Add, data);
            assert!(found.len() == 1 && found[0].contains(words), "{words}\n{found:#?}");
        }
    }

    #[test]
    fn a_stored_value_without_a_code_is_accepted_where_it_is() {
        let fixture = fixture();
        let graph = "http://x/Pump/";
        let state = NamedNode::new_unchecked("urn:Broken");
        insert_quad(&fixture.store, "urn:p", "urn:state", state, graph);
        insert_quad(&fixture.store, "urn:p", "urn:valve", Literal::from("jammed"), graph);
        let view = r#"{"uri":"urn:p","state":"urn:Broken","valve":"jammed","marks":[]}"#;
        assert_eq!(fixture.view_with_warnings("urn:p"), (view.to_owned(), Vec::new()));
        for mode in [Mode::Add, Mode::Merge, Mode::Update, Mode::Replace] {
            fixture.send(mode, view).unwrap();
            assert_eq!(fixture.view("urn:p"), view);
        }
        let other = r#"{"uri":"urn:q","valve":"jammed"}"#;
        assert!(errors(&fixture, Mode::Add, other)[0].contains("is not a code of the field"));
    }

    #[test]
    fn of_several_values_without_a_code_only_stored_ones_are_accepted() {
        let fixture = fixture();
        for mark in ["x", "y"] {
            insert_quad(&fixture.store, "urn:p", "urn:mark", Literal::from(mark), "http://x/Pump/");
        }
        for mode in [Mode::Add, Mode::Merge, Mode::Update, Mode::Replace] {
            fixture.send(mode, r#"{"uri":"urn:p","marks":["y","a","x"]}"#).unwrap();
            assert_eq!(fixture.view("urn:p"), r#"{"uri":"urn:p","marks":["a","x","y"]}"#);
            let found = errors(&fixture, mode, r#"{"uri":"urn:p","marks":["y","z","w"]}"#);
            assert!(found.len() == 1 && found[0].contains("\"z\" is not a code"), "{found:?}");
        }
    }

    #[test]
    fn a_stored_text_that_is_the_code_of_another_value_is_left_out() {
        let fixture = fixture();
        for mark in ["a", "B", "other"] {
            insert_quad(&fixture.store, "urn:p", "urn:mark", Literal::from(mark), "http://x/Pump/");
        }
        let (view, warnings) = fixture.view_with_warnings("urn:p");
        assert_eq!(view, r#"{"uri":"urn:p","marks":["a","other"]}"#);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("is the code of another value"), "{warnings:?}");
    }
}
