//! REGEX and REPLACE have the regular expressions of `XPath`.
use super::*;
use penstock_base::error::Place;

#[test]
fn patterns_mean_what_they_mean_in_xpath() {
    let store = Fixture::with_plant(1);
    for (expression, expected) in [
        (r#"REGEX("b", "^[a-c-[b]]$")"#, "false"),
        (r#"REGEX("a", "^[a-c-[b]]$")"#, "true"),
        (r#"REGEX("R&D", "^[A-Z&&]+$")"#, "true"),
        (r#"REGEX("_", "^\\w$")"#, "false"),
        (r#"REGEX("pump-1", "^\\i\\c*$")"#, "true"),
        (r#"REGEX("a # b", "A # B", "i")"#, "true"),
        (r#"REGEX("a", "a # b", "x")"#, "false"),
        (r#"REPLACE("abc", "[a-c-[b]]", "-")"#, "-b-"),
        (r#"REPLACE("a.b", ".", "-", "q")"#, "a-b"),
        (r#"REPLACE("ab", "(?:a)(b)", "$1$1")"#, "bb"),
        // What is not constant is an error of the expression.
        (r#"COALESCE(REGEX("a", CONCAT("(?=", "a)")), "error")"#, "error"),
        (r#"COALESCE(REPLACE("a", ?pattern, "b"), "error")"#, "error"),
        (r#"COALESCE(REGEX("a", "a", ?pattern), "error")"#, "error"),
    ] {
        let query = format!(r#"SELECT ({expression} AS ?x) {{ VALUES ?pattern {{ "\\b" }} }}"#);
        assert_eq!(store.rows(&query), [expected], "{expression}");
    }
}

#[test]
fn a_constant_pattern_that_is_not_supported_is_an_error_of_the_request() {
    let none = DatasetParameters::default();
    let query = "SELECT * { ?s ?p ?o\n FILTER(REGEX(?o, \"(?=a)\")) }";
    let update = "INSERT { ?s ?p 1 } WHERE { ?s ?p ?o\n FILTER(REPLACE(?o, '\\\\b', '') = 'a') }";
    for (error, column) in [
        (Query::parse(query, &none).unwrap_err(), 19),
        (Update::parse(update, &none).unwrap_err(), 21),
    ] {
        assert_eq!(error.class, ErrorClass::Malformed);
        assert_eq!(error.findings[0].place, Place::Line { line: 2, column });
        assert!(error.to_string().contains("XPath does not have it; "), "{error}");
    }
}
