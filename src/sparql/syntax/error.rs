//! Describes errors of the parser, which names the place and what it expected there.
use super::prepare::PADDING;
use super::tokens::{Token, Tokens, find_place};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::prefixes::WELL_KNOWN_PREFIXES;
use spargebra::SparqlSyntaxError;
use std::collections::HashSet;

/// Whether a request is a query or an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Query,
    Update,
}

/// The keywords that begin an update.
const UPDATE_KEYWORDS: &[&str] =
    &["INSERT", "DELETE", "WITH", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY"];
/// The keywords that begin a query.
const QUERY_KEYWORDS: &[&str] = &["SELECT", "ASK", "CONSTRUCT", "DESCRIBE"];

/// Converts an error of the parser about a text with [`PADDING`].
///
/// The message is `error at LINE:COLUMN: expected …`. The parser compares whole keywords, and an error is behind the
/// longest one that it compared. So if it expects only keywords, the statement that is wrong begins that much before.
pub(crate) fn to_error(text: &str, error: &SparqlSyntaxError, kind: RequestKind) -> GatewayError {
    if let Some((at, prefix)) = find_undeclared_prefix(text) {
        return syntax_error(
            text,
            at,
            format!("the prefix `{prefix}:` is not declared; add `PREFIX {prefix}: <IRI>`"),
        );
    }
    let message = error.to_string();
    let place = message.strip_prefix("error at ").and_then(|rest| {
        let (place, expected) = rest.split_once(": expected ")?;
        let (line, column) = place.split_once(':')?;
        Some((line.parse().ok()?, column.parse().ok()?, expected))
    });
    let Some((line, column, expected)) = place else {
        let detail = format!("the SPARQL request has a syntax error: {message}");
        return GatewayError::new(ErrorClass::Malformed, detail);
    };
    let expected = expected.trim_start_matches("one of ").split(", ").filter(|word| *word != "[_]");
    let (keywords, others): (Vec<&str>, Vec<&str>) = expected.partition(|word| is_keyword(word));
    // The error may be in the padding.
    let padded = format!("{text}{PADDING}");
    let at = find_offset(&padded, line, column);
    if others.is_empty() {
        let longest = keywords.iter().map(|word| word.len()).max().unwrap_or_default();
        let before = padded.get(..at).unwrap_or_default();
        let start = before.char_indices().rev().take(longest).last().map_or(at, |(start, _)| start);
        let rest = text.get(start..).unwrap_or_default();
        let start = start + (rest.len() - rest.trim_start().len());
        return syntax_error(text, start, describe_invalid(text, start, kind));
    }
    // What the parser refuses after it has read it has a reason in words.
    let is_reason = |word: &&&str| word.contains(' ') && !word.starts_with(['"', '[']);
    if let Some(reason) = others.iter().find(is_reason) {
        return syntax_error(text, at, (*reason).to_owned());
    }
    let names = name_expected(others);
    let finding = if names.is_empty() {
        describe_invalid(text, at, kind)
    } else {
        format!("expected {}", names.join(" or "))
    };
    syntax_error(text, at, finding)
}

/// Returns whether the parser names a keyword so. It names other tokens in quotes, and characters in brackets.
fn is_keyword(word: &str) -> bool {
    word != "EOF" && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Names what the parser expects. It has a name for each first character of a term; one name for the term is enough.
fn name_expected(mut expected: Vec<&str>) -> Vec<&str> {
    // If all of the first are expected, the name replaces them and the others.
    let terms: [(&[&str], &[&str], &str); 4] = [
        (&[r#""?""#, r#""$""#], &[], "a variable"),
        (&[r#""<""#, r#"":""#], &[r#""<<""#, r#""<<(""#], "an IRI"),
        (
            &[r#""'""#, r#""\"""#],
            &[r#""'''""#, r#""\"\"\"""#, r#""+""#, r#""-""#, r#"".""#, r#""true""#, r#""false""#],
            "a literal",
        ),
        (&[r#""_:""#], &[r#""[""#], "a blank node"),
    ];
    let mut names = Vec::new();
    for (all, others, name) in terms {
        if all.iter().all(|token| expected.contains(token)) {
            names.push(name);
            expected.retain(|token| !all.contains(token) && !others.contains(token));
        }
    }
    if let [digits] = *expected
        && digits == "['0'..='9']"
        && names.is_empty()
    {
        return vec!["a digit"];
    }
    expected.retain(|token| !token.starts_with('['));
    names.extend(expected.into_iter().map(|token| if token == "EOF" { "the end" } else { token }));
    names
}

/// Describes a statement that is not valid. If it is of the other kind of request, the description says where to send it.
fn describe_invalid(text: &str, at: usize, kind: RequestKind) -> String {
    let rest = text.get(at..).unwrap_or_default().trim();
    let excerpt: String = rest.chars().take_while(|c| *c != '\n').take(40).collect();
    if excerpt.is_empty() {
        return "the text ends too early; is a bracket not closed?".to_owned();
    }
    let (keywords, other, path) = match kind {
        RequestKind::Query => (UPDATE_KEYWORDS, "an update", "/sparql/update"),
        RequestKind::Update => (QUERY_KEYWORDS, "a query", "/sparql"),
    };
    let count = |bracket| {
        let before = Tokens::new(text).take_while(|(start, _)| *start < at);
        before.filter(|(_, token)| *token == Token::Symbol(bracket)).count()
    };
    let hint = match Tokens::new(rest).next() {
        Some((_, Token::Word(word)))
            if keywords.iter().any(|keyword| keyword.eq_ignore_ascii_case(word))
                && count('{') == count('}') =>
        {
            format!("; {word} begins {other}: send it to {path}")
        }
        _ => String::new(),
    };
    format!("this is not valid here: `{excerpt}`{hint}")
}

pub(super) fn syntax_error(text: &str, at: usize, finding: String) -> GatewayError {
    let (line, column) = find_place(text, at.min(text.trim_end().len()));
    let findings = vec![Finding::at_line(line, column, finding)];
    let detail = "the SPARQL request has a syntax error";
    GatewayError::with_findings(ErrorClass::Malformed, detail, findings)
}

/// Returns the first prefix that is used and neither declared nor well known, with its place.
fn find_undeclared_prefix(text: &str) -> Option<(usize, &str)> {
    let mut declared: HashSet<&str> =
        WELL_KNOWN_PREFIXES.iter().map(|(prefix, _)| *prefix).collect();
    let mut is_declaration = false;
    for (at, token) in Tokens::new(text) {
        let Token::Word(word) = token else { continue };
        match word.split_once(':') {
            None => is_declaration = word.eq_ignore_ascii_case("PREFIX"),
            Some((prefix, "")) if is_declaration => {
                declared.insert(prefix);
            }
            Some(("_", _)) => {}
            Some((prefix, _))
                if prefix.starts_with(['?', '$', '@']) || declared.contains(prefix) => {}
            Some((prefix, _)) => return Some((at, prefix)),
        }
    }
    None
}

/// Returns the byte of a line and column, both from 1.
fn find_offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let rest = text.get(before..).unwrap_or_default();
    before + rest.char_indices().nth(column - 1).map_or(rest.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use crate::thread::run_in_query_thread;
    use crate::{DatasetParameters, Query, Update};

    #[test]
    fn errors_name_the_place_and_what_is_there() {
        for (text, line, column, words) in [
            ("SELECT *\nWHERE { ?s ?p }", 2, 9, "`?s ?p }`"),
            ("SELECT ?x { ?s <a:p> ?o FILTR(?o) }", 1, 25, "`FILTR(?o) }`"),
            ("SELEC ?x { ?s ?p ?o . ?x <a:y> ?z }", 1, 1, "`SELEC ?x"),
            ("SELECT ?x {\n  ?s ex:p ?o }", 2, 6, "PREFIX ex: <IRI>"),
            ("SELECT ?x { ?s ?p ?o", 1, 21, "\"}\""),
            ("SELECT * {\n FILTER(STRLEN(?ä) > 1 }", 2, 24, "\")\""),
            ("SELECT * { FILTER(foo > 1) }", 1, 19, "`foo > 1) }`"),
            ("PREFIX a: <http://a.example/vocabulary/>\nSELEC", 2, 1, "`SELEC`"),
            ("SELECT * { ?ä ?ö ?ü FILTR(?ä) }", 1, 21, "`FILTR(?ä) }`"),
            ("SELECT * { ?s <relative> ?o }", 1, 25, "column 25: IRI parsing failed"),
            ("", 1, 1, "ends too early"),
        ] {
            let parsed = run_in_query_thread(|| Query::parse(text, &DatasetParameters::default()));
            let error = parsed.unwrap().unwrap_err().to_string();
            let place = format!("line {line}, column {column}: ");
            assert!(error.contains(&place) && error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn errors_of_updates_are_short() {
        let text = "DELETE WHERE { ?s ?p }";
        let parsed =
            run_in_query_thread(|| Update::parse(text, &DatasetParameters::default())).unwrap();
        let error = parsed.unwrap_err().to_string();
        let expected =
            "line 1, column 22: expected a variable or an IRI or a literal or a blank node";
        assert!(error.contains(expected) && error.len() < 200, "{error}");
    }

    #[test]
    fn a_request_of_the_other_kind_is_told_where_to_go() {
        let parameters = DatasetParameters::default();
        let update = "PREFIX a: <a:>\ninsert data { a:s a:p 1 }";
        let error = run_in_query_thread(|| Query::parse(update, &parameters)).unwrap().unwrap_err();
        let hint = "; insert begins an update: send it to /sparql/update";
        assert!(error.to_string().contains(hint), "{error}");
        let query = "SELECT * { ?s ?p ?o }";
        let error = run_in_query_thread(|| Update::parse(query, &parameters)).unwrap().unwrap_err();
        assert!(
            error.to_string().ends_with("; SELECT begins a query: send it to /sparql"),
            "{error}"
        );
        let nested = "SELECT * { DELETE }";
        let error = run_in_query_thread(|| Query::parse(nested, &parameters)).unwrap().unwrap_err();
        assert!(!error.to_string().contains("send it"), "{error}");
    }
}
