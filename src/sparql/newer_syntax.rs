//! Refuses the syntax of SPARQL 1.2, which the parser knows. The store keeps no term of RDF 1.2.
use crate::syntax::{Token, Tokens, find_place};
use penstock_base::error::{ErrorClass, Finding, GatewayError};

/// The functions of SPARQL 1.2.
const FUNCTIONS: &[&str] = &[
    "TRIPLE",
    "SUBJECT",
    "PREDICATE",
    "OBJECT",
    "ISTRIPLE",
    "LANGDIR",
    "HASLANG",
    "HASLANGDIR",
    "STRLANGDIR",
];

/// Checks that a request has no syntax of SPARQL 1.2.
///
/// # Errors
/// [`ErrorClass::Malformed`] with the place of the first one.
pub(crate) fn check_version(text: &str) -> Result<(), GatewayError> {
    let mut before = None;
    for (at, token) in Tokens::new(text) {
        let first = before.replace((at, token));
        if let Token::Iri(iri) = token
            && iri.starts_with("<<")
        {
            return Err(unsupported(text, at, TRIPLE_TERM));
        }
        if let Token::Word(word) = token
            && word.starts_with('@')
            && word.contains("--")
        {
            let why = format!("the text has a base direction (`{word}`)");
            return Err(unsupported(text, at, &why));
        }
        if token == Token::Symbol('~') {
            return Err(unsupported(text, at, "`~` names a reifier"));
        }
        let Some((start, first)) = first else { continue };
        let is_next_byte = start + 1 == at;
        let why = match (first, token) {
            (Token::Symbol('<'), Token::Symbol('<') | Token::Iri(_)) if is_next_byte => {
                TRIPLE_TERM.to_owned()
            }
            (Token::Symbol('{'), Token::Symbol('|')) if is_next_byte => {
                "`{|` begins an annotation".to_owned()
            }
            (Token::Word(name), Token::Symbol('('))
                if FUNCTIONS.iter().any(|known| known.eq_ignore_ascii_case(name)) =>
            {
                format!("{name} is a function")
            }
            (Token::Word(name), Token::Quoted) if name.eq_ignore_ascii_case("VERSION") => {
                "the request names its version".to_owned()
            }
            _ => continue,
        };
        return Err(unsupported(text, start, &why));
    }
    Ok(())
}

/// What is wrong with `<<`.
const TRIPLE_TERM: &str =
    "`<<` begins a triple term (write a space behind `<` if it compares with an IRI)";

fn unsupported(text: &str, at: usize, why: &str) -> GatewayError {
    let (line, column) = find_place(text, at);
    let finding =
        Finding::at_line(line, column, format!("{why} of SPARQL 1.2; the gateway has SPARQL 1.1"));
    GatewayError::with_findings(
        ErrorClass::Malformed,
        "the request has syntax of SPARQL 1.2",
        vec![finding],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax_of_sparql_1_2_is_refused_where_it_is() {
        for (text, column) in [
            ("SELECT * { ?s ?p <<( ?a ?b ?c )>> }", 18),
            ("SELECT * { <<?a ?b ?c>> ?p ?o }", 12),
            ("SELECT * { <<<urn:a> <urn:b> ?c>> ?p ?o }", 12),
            ("SELECT * { <<<urn:a><urn:b> ?c>> ?p ?o }", 12),
            ("SELECT * { ?s ?p ?o {| ?a ?b |} }", 21),
            ("SELECT * { ?s ?p ?o ~ <urn:r> }", 21),
            ("SELECT (triple(?a, ?b, ?c) AS ?t) {}", 9),
            ("SELECT * { FILTER isTRIPLE (?a) }", 19),
            ("SELECT * { ?s ?p \"a\"@en--ltr }", 21),
            ("SELECT (STRLANGDIR('a', 'en', 'ltr') AS ?t) {}", 9),
            ("VERSION '1.2' SELECT * {}", 1),
        ] {
            let error = check_version(text).unwrap_err();
            let place = format!("column {column}:");
            assert!(error.to_string().contains(&place), "{text}: {error}");
        }
    }

    #[test]
    fn syntax_of_sparql_1_1_is_accepted() {
        for text in [
            "SELECT ?subject { ?subject ?object 'a--b'@en-gb FILTER(?a < <urn:b>) }",
            "PREFIX object: <urn:> SELECT (object:triple(?a) AS ?version) { ?s object:p\\~ '~' }",
            "SELECT * { { ?s a ?o } # <<( )>> {| ~\n UNION { ?s <urn:p~q> ?o } }",
        ] {
            check_version(text).unwrap();
        }
    }
}
