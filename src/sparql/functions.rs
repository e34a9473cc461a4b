//! Functions of SPARQL whose result or time the evaluator does not bound, and BNODE: they replace its own.
//!
//! One call of CONCAT or REPLACE can build a text of gigabytes, and one call of REGEX can run for minutes. There is no
//! check of the limits within a call, so these check before they work or while they do.
use crate::budget::Budget;
use oxrdf::vocab::xsd;
use oxrdf::{BlankNode, Literal, NamedNode, Term, Variable};
use parking_lot::Mutex;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::unwind::abort;
use penstock_base::xpath_regex::translate;
use regex::{Regex, RegexBuilder};
use spareval::QueryEvaluator;
use spargebra::algebra::{Expression, Function};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The sizes that a compiled pattern may have, in bytes, tried one after the other.
const REGEX_SIZES: [usize; 5] = [2 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20];
/// The maximum product of a compiled pattern's bytes and the text's bytes. The time of a match is at most proportional
/// to it.
const MAX_REGEX_WORK: u64 = 2 << 30;
/// The same for a short query, which may take about a millisecond.
const MAX_SHORT_REGEX_WORK: u64 = 2 << 20;

/// Returns the function that replaces one of SPARQL.
pub(crate) fn find_replacement(function: &Function) -> Option<Function> {
    let name = match function {
        Function::Concat => "concat",
        Function::Regex => "regex",
        Function::Replace => "replace",
        _ => return None,
    };
    Some(Function::Custom(function_name(name)))
}

/// Returns whether an expression is BNODE of a string.
pub(crate) fn is_named_node_function(expression: &Expression) -> bool {
    matches!(expression, Expression::FunctionCall(Function::BNode, names) if !names.is_empty())
}

/// Returns the call that numbers rows.
pub(crate) fn call_row() -> Expression {
    Expression::FunctionCall(Function::Custom(function_name("row")), Vec::new())
}

/// Returns the call of BNODE for a string in the row whose number is in `row`.
pub(crate) fn call_named_node(name: Expression, row: Variable) -> Expression {
    let function = Function::Custom(function_name("node"));
    Expression::FunctionCall(function, vec![name, Expression::Variable(row)])
}

/// Names a function as no request can name it.
fn function_name(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("penstock {name}"))
}

/// Adds the functions to an evaluator.
pub(crate) fn add_functions(evaluator: QueryEvaluator, budget: &Arc<Budget>) -> QueryEvaluator {
    let (for_concat, for_regex, for_replace) = (budget.clone(), budget.clone(), budget.clone());
    let (regex_cache, replace_cache) = (RegexCache::default(), RegexCache::default());
    let rows = AtomicU64::new(0);
    evaluator
        .with_custom_function(function_name("row"), move |_| {
            Some(Literal::from(rows.fetch_add(1, Ordering::Relaxed)).into())
        })
        .with_custom_function(function_name("node"), name_node)
        .with_custom_function(function_name("concat"), move |texts| concat(texts, &for_concat))
        .with_custom_function(function_name("regex"), move |arguments| {
            match_regex(arguments, &regex_cache, &for_regex)
        })
        .with_custom_function(function_name("replace"), move |arguments| {
            replace(arguments, &replace_cache, &for_replace)
        })
}

/// The value and the language of a string literal (SPARQL 1.1, section 17.4.3.1.1); `None` for another term.
fn read_string(term: &Term) -> Option<(&str, Option<&str>)> {
    let Term::Literal(literal) = term else { return None };
    match literal.language() {
        Some(language) => Some((literal.value(), Some(language))),
        None => (literal.datatype() == xsd::STRING).then(|| (literal.value(), None)),
    }
}

fn read_plain_string(term: &Term) -> Option<&str> {
    read_string(term).and_then(|(value, language)| language.is_none().then_some(value))
}

fn build_string(value: String, language: Option<&str>) -> Term {
    match language {
        Some(language) => Literal::new_language_tagged_literal_unchecked(value, language).into(),
        None => Literal::new_simple_literal(value).into(),
    }
}

/// BNODE of a string (section 17.4.2.9): the same node for equal strings in one solution, others in other solutions.
fn name_node(arguments: &[Term]) -> Option<Term> {
    let [name, Term::Literal(row)] = arguments else { return None };
    let name = read_plain_string(name)?;
    let hash = |half: u8| {
        let mut hasher = DefaultHasher::new();
        (half, row.value(), name).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    Some(BlankNode::new_from_unique_id(hash(0) << 64 | hash(1)).into())
}

/// CONCAT (section 17.4.3.12).
fn concat(texts: &[Term], budget: &Budget) -> Option<Term> {
    let texts = texts.iter().map(read_string).collect::<Option<Vec<_>>>()?;
    let bytes = texts.iter().fold(0_usize, |sum, (value, _)| sum.saturating_add(value.len()));
    budget.check_bytes(bytes);
    let mut languages = texts.iter().map(|(_, language)| *language);
    let first = languages.next().flatten();
    let language = first.filter(|_| languages.all(|language| language == first));
    Some(build_string(texts.iter().map(|(value, _)| *value).collect(), language))
}

/// REGEX (section 17.4.3.14).
fn match_regex(arguments: &[Term], cache: &RegexCache, budget: &Budget) -> Option<Term> {
    let [text, pattern, flags @ ..] = arguments else { return None };
    let (text, _) = read_string(text)?;
    let regex = cache.compile(pattern, flags.first(), text.len(), budget)?;
    budget.check();
    let is_match = regex.is_match(text);
    budget.check_time();
    Some(Literal::from(is_match).into())
}

/// REPLACE (section 17.4.3.15), which is `fn:replace` of `XPath` 2.0.
fn replace(arguments: &[Term], cache: &RegexCache, budget: &Budget) -> Option<Term> {
    let [text, pattern, replacement, flags @ ..] = arguments else { return None };
    let (text, language) = read_string(text)?;
    let replacement = read_plain_string(replacement)?;
    let regex = cache.compile(pattern, flags.first(), text.len(), budget)?;
    if regex.is_match("") {
        return None;
    }
    let replacement = parse_replacement(replacement, regex.captures_len() - 1)?;
    let mut result = String::new();
    let mut append = |piece: &str| {
        budget.check_bytes(result.len() + piece.len());
        result.push_str(piece);
    };
    let mut copied = 0;
    for captures in regex.captures_iter(text) {
        budget.check_time();
        let Some(found) = captures.get(0) else { continue };
        append(text.get(copied..found.start()).unwrap_or_default());
        for piece in &replacement {
            match piece {
                Piece::Text(text) => append(text),
                Piece::Group(group) => {
                    append(captures.get(*group).map_or("", |found| found.as_str()));
                }
            }
        }
        copied = found.end();
    }
    append(text.get(copied..).unwrap_or_default());
    Some(build_string(result, language))
}

/// A part of a replacement.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// What this group of the pattern matched.
    Group(usize),
}

/// Parses a replacement: `$N` is a group, with as many digits as there are groups for; `\\$` and `\\\\` are characters.
/// Returns `None` for another use of these.
fn parse_replacement(text: &str, groups: usize) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.push(characters.next().filter(|next| matches!(next, '\\' | '$'))?),
            '$' => {
                let mut group = characters.next()?.to_digit(10)? as usize;
                while let Some(digit) = characters.peek().and_then(|next| next.to_digit(10)) {
                    let longer = group * 10 + digit as usize;
                    if longer > groups {
                        break;
                    }
                    group = longer;
                    characters.next();
                }
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Group(group));
            }
            other => plain.push(other),
        }
    }
    pieces.push(Piece::Text(plain));
    Some(pieces)
}

/// The pattern that was compiled last, with its flags: most requests have one constant pattern.
#[derive(Default)]
struct RegexCache(Mutex<Option<Compiled>>);

struct Compiled {
    pattern: String,
    flags: String,
    /// `None` if the pattern or the flags are not valid.
    regex: Option<Regex>,
    /// The limit of [`REGEX_SIZES`] that the compiled pattern keeps to.
    size: usize,
}

impl RegexCache {
    /// Returns the compiled pattern; `None` if it is not valid. Aborts if matching a text of `bytes` could take long.
    fn compile(
        &self,
        pattern: &Term,
        flags: Option<&Term>,
        bytes: usize,
        budget: &Budget,
    ) -> Option<Regex> {
        let pattern = read_plain_string(pattern)?;
        let flags = flags.map_or(Some(""), read_plain_string)?;
        let mut last = self.0.lock();
        let compiled = match &mut *last {
            Some(last) if last.pattern == pattern && last.flags == flags => last,
            last => last.insert(compile(pattern, flags)),
        };
        let work = (compiled.size as u64).saturating_mul(bytes as u64);
        if work > MAX_SHORT_REGEX_WORK {
            budget.abort_short_query();
        }
        if work > MAX_REGEX_WORK {
            abort(GatewayError::new(
                ErrorClass::Invalid,
                format!(
                    "the pattern {pattern:?} and a text of {bytes} bytes may take longer than service.limits.sparql.time; use a shorter pattern, or CONTAINS"
                ),
            ));
        }
        compiled.regex.clone()
    }
}

fn compile(pattern: &str, flags: &str) -> Compiled {
    let (pattern, flags) = (pattern.to_owned(), flags.to_owned());
    let Ok(translated) = translate(&pattern, &flags) else {
        return Compiled { pattern, flags, regex: None, size: 0 };
    };
    let mut builder = RegexBuilder::new(&translated);
    for size in REGEX_SIZES {
        match builder.size_limit(size).dfa_size_limit(1 << 20).build() {
            Ok(regex) => return Compiled { pattern, flags, regex: Some(regex), size },
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(_) => break,
        }
    }
    Compiled { pattern, flags, regex: None, size: 0 }
}
