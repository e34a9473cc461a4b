//! What is checked before the parser reads a request, which calls itself for each level of nesting.
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::prefixes::WELL_KNOWN_PREFIXES;
use spargebra::SparqlSyntaxError;
use std::collections::HashSet;

/// The maximum length of a request, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// The maximum number of brackets that are open at the same time.
const MAX_OPEN_BRACKETS: usize = 100;
/// The maximum number of operators and groups. Each can be one more level of the tree that the parser builds.
const MAX_OPERATORS: usize = 2_000;
/// Words that add a level to the tree.
const OPERATOR_WORDS: &[&str] = &[
    "UNION", "OPTIONAL", "MINUS", "FILTER", "BIND", "LATERAL", "GRAPH", "SERVICE", "EXISTS", "IN",
    "AS",
];
/// Functions whose arguments the parser reads twice, so that nested ones take exponential time.
const SLOW_FUNCTIONS: &[&str] = &["SUBSTR", "REGEX", "REPLACE", "GROUP_CONCAT"];
/// The maximum number of these that are open at the same time.
const MAX_OPEN_SLOW_FUNCTIONS: usize = 8;
/// The maximum number of OPTIONALs. The time of the evaluator's planning grows with their third power.
const MAX_OPTIONALS: usize = 50;
/// The maximum number of tokens. The parser takes some 140 bytes for each, which no limit counts before it ends.
const MAX_TOKENS: usize = 250_000;
/// The maximum number of variables. The parser and the evaluator compare each with all others.
const MAX_VARIABLES: usize = 500;
/// The number of signs in an IRI, or of hyphens in a name, from which it is taken for an expression: in `1<2-3>0` the
/// parser reads no IRI.
const MAX_SIGNS_IN_NAME: usize = 32;

/// A token of a request, as far as this module distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'t> {
    /// A keyword, name, variable or number.
    Word(&'t str),
    /// An IRI with its brackets.
    Iri(&'t str),
    Quoted,
    Symbol(char),
}

/// Splits a text into tokens, each with its first byte.
pub(crate) struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Tokens<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with('#') {
                return;
            }
            self.at += trimmed.find(['\n', '\r']).unwrap_or(trimmed.len());
        }
    }
}

impl<'t> Iterator for Tokens<'t> {
    type Item = (usize, Token<'t>);

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_blanks();
        let (start, rest) = (self.at, self.rest());
        let first = rest.chars().next()?;
        let length = match first {
            '<' => find_iri_end(rest),
            '"' | '\'' => find_string_end(rest),
            _ => find_word_end(rest),
        };
        if let Some(text) = length.and_then(|length| rest.get(..length)) {
            self.at += text.len();
            let token = match first {
                '<' => Token::Iri(text),
                '"' | '\'' => Token::Quoted,
                _ => Token::Word(text),
            };
            return Some((start, token));
        }
        self.at += first.len_utf8();
        Some((start, Token::Symbol(first)))
    }
}

/// Returns the length of an IRI in angle brackets; `None` if the bracket is an operator.
fn find_iri_end(rest: &str) -> Option<usize> {
    let end = rest.find(|c: char| c == '>' || c <= ' ' || "\"{}|^`".contains(c))?;
    rest.get(end..)?.starts_with('>').then_some(end + 1)
}

/// Returns the length of a string with its quotes; `None` if it does not end.
pub(crate) fn find_string_end(rest: &str) -> Option<usize> {
    let quote = rest.get(..1)?;
    let long = quote.repeat(3);
    if rest.starts_with(&long) {
        // Without an end, the parser reads an empty string and then another one.
        return Some(find_delimiter(rest, &long).unwrap_or(2));
    }
    find_delimiter(rest, quote)
}

/// Returns the length of a string with this delimiter at both ends.
fn find_delimiter(rest: &str, delimiter: &str) -> Option<usize> {
    let mut at = delimiter.len();
    loop {
        let rest = rest.get(at..)?;
        let next = rest.chars().next()?;
        if rest.starts_with(delimiter) {
            return Some(at + delimiter.len());
        }
        if delimiter.len() == 1 && matches!(next, '\n' | '\r') {
            return None;
        }
        at += next.len_utf8();
        if next == '\\' {
            at += rest.chars().nth(1).map_or(0, char::len_utf8);
        }
    }
}

/// Returns the length of a keyword, name, variable or number; `None` if there is none.
fn find_word_end(rest: &str) -> Option<usize> {
    let is_word = |c: char| c.is_alphanumeric() || "_:?$@%.".contains(c);
    let mut length = 0;
    let mut characters = rest.chars();
    while let Some(character) = characters.next() {
        length += match character {
            // An escaped character of a name (PN_LOCAL_ESC).
            '\\' if length > 0 => 1 + characters.next().map_or(0, char::len_utf8),
            '-' if length > 0 => 1,
            '.' if length == 0 => break,
            other if is_word(other) => other.len_utf8(),
            _ => break,
        };
    }
    let word = rest.get(..length)?.trim_end_matches('.');
    (!word.is_empty()).then_some(word.len())
}

/// Returns whether a sign belongs to a number in the position of an object, or in a list. It is no operator there: what
/// comes before is no number.
fn is_sign_of_number(text: &str, at: usize, before: Option<Token<'_>>) -> bool {
    let digit = text.as_bytes().get(at + 1);
    let is_first = match before {
        Some(Token::Iri(_) | Token::Symbol(',')) => true,
        Some(Token::Word(word)) => word.contains(':'),
        _ => false,
    };
    is_first && digit.is_some_and(|digit| digit.is_ascii_digit() || *digit == b'.')
}

/// Counts what may be operators in a word.
fn count_operators_in_word(word: &str) -> usize {
    if OPERATOR_WORDS.iter().any(|known| known.eq_ignore_ascii_case(word)) {
        return 1;
    }
    let hyphens = word.matches('-').count();
    let is_name = !word.starts_with(|c: char| c == '?' || c == '$' || c.is_ascii_digit());
    let hyphens = if is_name && hyphens <= MAX_SIGNS_IN_NAME { 0 } else { hyphens };
    // A question mark behind a name is a path.
    hyphens + word.matches('?').count() - usize::from(word.len() > 1 && word.starts_with('?'))
}

/// Counts what may be operators and brackets in an IRI.
fn count_operators_in_iri(iri: &str) -> usize {
    let signs = iri.matches(|c: char| "-+*/=!&(".contains(c)).count();
    if signs <= MAX_SIGNS_IN_NAME { 0 } else { signs }
}

/// An open bracket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    /// That of a slow function.
    SlowFunction,
    /// The rows of VALUES.
    Values,
    Other,
}

/// Checks that a request is not too long, and not nested too deeply for the parser.
///
/// # Errors
/// [`ErrorClass::TooLarge`] or [`ErrorClass::Malformed`], with the place.
pub(crate) fn check_nesting(text: &str) -> Result<(), GatewayError> {
    if text.len() > MAX_BYTES {
        return Err(GatewayError::new(
            ErrorClass::TooLarge,
            format!("the request has {} bytes; at most {MAX_BYTES} are read", text.len()),
        ));
    }
    let mut open: Vec<Bracket> = Vec::new();
    let mut variables = HashSet::new();
    let (mut operators, mut optionals, mut is_slow, mut is_values) = (0, 0, false, false);
    let mut before = None;
    for (number, (at, token)) in Tokens::new(text).enumerate() {
        let was_slow = std::mem::take(&mut is_slow);
        let before = before.replace(token);
        match token {
            Token::Symbol('+' | '-') if is_sign_of_number(text, at, before) => {}
            Token::Symbol('(') => {
                operators += usize::from(open.last() != Some(&Bracket::Values));
                open.push(if was_slow { Bracket::SlowFunction } else { Bracket::Other });
            }
            Token::Symbol('[') => open.push(Bracket::Other),
            Token::Symbol('{') => {
                let is_rows = std::mem::take(&mut is_values);
                open.push(if is_rows { Bracket::Values } else { Bracket::Other });
                operators += 1;
            }
            Token::Symbol(')' | ']' | '}') => {
                open.pop();
            }
            Token::Symbol('!' | '+' | '-' | '*' | '/' | '^' | '|' | '&' | '=' | '<' | '>')
                if open.last() != Some(&Bracket::Values) =>
            {
                operators += 1;
            }
            Token::Word(word) => {
                operators += count_operators_in_word(word);
                is_slow = SLOW_FUNCTIONS.iter().any(|known| known.eq_ignore_ascii_case(word));
                is_values |= word.eq_ignore_ascii_case("VALUES");
                optionals += usize::from(word.eq_ignore_ascii_case("OPTIONAL"));
                if word.starts_with(['?', '$']) {
                    variables.insert(word);
                }
            }
            Token::Iri(iri) => operators += count_operators_in_iri(iri),
            Token::Symbol(_) | Token::Quoted => {}
        }
        let slow = open.iter().filter(|bracket| **bracket == Bracket::SlowFunction).count();
        let why = if open.len() > MAX_OPEN_BRACKETS {
            format!("more than {MAX_OPEN_BRACKETS} brackets are open here")
        } else if slow > MAX_OPEN_SLOW_FUNCTIONS {
            format!(
                "more than {MAX_OPEN_SLOW_FUNCTIONS} calls of SUBSTR, REGEX, REPLACE and GROUP_CONCAT are nested here"
            )
        } else if operators > MAX_OPERATORS {
            format!("there are more than {MAX_OPERATORS} operators, calls and groups up to here")
        } else if optionals > MAX_OPTIONALS {
            format!("there are more than {MAX_OPTIONALS} OPTIONALs up to here")
        } else if variables.len() > MAX_VARIABLES {
            format!("there are more than {MAX_VARIABLES} variables up to here")
        } else if number >= MAX_TOKENS {
            format!("there are more than {MAX_TOKENS} words and signs up to here")
        } else {
            continue;
        };
        return Err(too_deep(text, at, &why));
    }
    Ok(())
}

/// Checks that no `<` of an expression begins an IRI: `?a<?b&&?c>?d` has the IRI `<?b&&?c>`, because the longest token counts
/// (SPARQL 1.1, section 19.8).
///
/// # Errors
/// [`ErrorClass::Malformed`] with the place of the first one.
pub(crate) fn check_comparisons(text: &str) -> Result<(), GatewayError> {
    let mut are_expressions = Vec::new();
    let mut before = None;
    for (at, token) in Tokens::new(text) {
        let is_in_expression = are_expressions.last() == Some(&true);
        match (before.replace(token), token) {
            (Some(Token::Word(word)), Token::Symbol('(')) => {
                let begins = |keyword: &&str| keyword.eq_ignore_ascii_case(word);
                let is_first = ["FILTER", "BIND", "HAVING"].iter().any(begins);
                are_expressions.push(is_in_expression || is_first);
            }
            (_, Token::Symbol('(')) => are_expressions.push(is_in_expression),
            (_, Token::Symbol('{' | '[')) => are_expressions.push(false),
            (_, Token::Symbol(')' | '}' | ']')) => {
                are_expressions.pop();
            }
            (Some(Token::Word(word)), Token::Iri(iri))
                if is_in_expression && word.starts_with(['?', '$']) =>
            {
                let finding = format!(
                    "`{iri}` is an IRI here; write a space behind `<` if it compares `{word}`"
                );
                return Err(syntax_error(text, at, finding));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns a text as the parser gets it: it knows `true` and `false` in lower case only, and its search for keywords must
/// not meet the end. All places stay the same.
pub(crate) fn prepare(text: &str) -> String {
    let mut prepared = String::with_capacity(text.len() + PADDING.len());
    for (at, token) in Tokens::new(text) {
        if let Token::Word(word) = token
            && ["true", "false"].iter().any(|boolean| boolean.eq_ignore_ascii_case(word))
        {
            prepared.push_str(text.get(prepared.len()..at).unwrap_or_default());
            prepared.push_str(&word.to_ascii_lowercase());
        }
    }
    prepared.push_str(text.get(prepared.len()..).unwrap_or_default());
    prepared.push_str(PADDING);
    prepared
}

fn too_deep(text: &str, at: usize, why: &str) -> GatewayError {
    let (line, column) = find_place(text, at);
    let finding = Finding::at_line(line, column, format!("{why}; split the request"));
    GatewayError::with_findings(
        ErrorClass::Malformed,
        "the SPARQL request is too large or nested too deeply",
        vec![finding],
    )
}

/// Returns line and column of a byte, both from 1.
pub(crate) fn find_place(text: &str, at: usize) -> (u64, u64) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line as u64, column as u64)
}

/// Blanks that follow a text when it is parsed.
const PADDING: &str = "                ";

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

fn syntax_error(text: &str, at: usize, finding: String) -> GatewayError {
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
    use super::Token::{Iri, Quoted, Symbol, Word};
    use super::*;
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

    #[test]
    fn a_comparison_that_reads_as_an_iri_is_refused() {
        for (text, column) in [
            ("SELECT * { FILTER (?x<?a&&?b>?y) }", 22),
            ("SELECT * { FILTER(IF((?x<5&&?b>3), 1, 2)) }", 25),
        ] {
            let error = check_comparisons(text).unwrap_err().to_string();
            assert!(error.contains(&format!("column {column}: ")), "{error}");
        }
        for text in [
            "SELECT * { ?x <a:b> ?y FILTER(?x<5 && ?y>3) }",
            "SELECT * { ?s ?p (?x <a:b>) FILTER EXISTS { ?x <a:b> ?y } }",
            "SELECT * { FILTER(?x = <a:b> || ?x<?y||?z>?y || EXISTS { ?x <a:b> ?y }) } ORDER BY ?x <a:f>(?y)",
        ] {
            check_comparisons(text).unwrap();
        }
    }

    #[test]
    fn booleans_are_read_in_any_case() {
        let text =
            "SELECT (TRUE AS ?true) { ?TRUE TRUE:a 'TRUE' , \"False\" . <TRUE> a False. # TRUE";
        let prepared = prepare(text);
        assert_eq!(
            prepared.trim_end(),
            "SELECT (true AS ?true) { ?TRUE TRUE:a 'TRUE' , \"False\" . <TRUE> a false. # TRUE"
        );
        assert_eq!(prepared.len(), text.len() + PADDING.len());
    }

    #[test]
    fn tokens_are_split_as_in_sparql() {
        let text = "# no (\nSELECT ?a<?b {<a:b> 'it\\'s {' \"\"\"x\"{\"\"\" ex:a-b. }";
        let tokens: Vec<_> = Tokens::new(text).map(|(_, token)| token).collect();
        assert_eq!(
            tokens,
            [
                Word("SELECT"),
                Word("?a"),
                Symbol('<'),
                Word("?b"),
                Symbol('{'),
                Iri("<a:b>"),
                Quoted,
                Quoted,
                Word("ex:a-b"),
                Symbol('.'),
                Symbol('}'),
            ]
        );
    }
}
