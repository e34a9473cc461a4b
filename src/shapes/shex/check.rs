//! What a schema may have. rudof's parser calls itself for each level of brackets, and fetches what a schema imports.
use super::facets::Facets;
use super::lines::{ShortLines, find_position, token_length};
use crate::scope::Properties;
use oxrdf::NamedNode;
use penstock_base::error::Finding;
use prefixmap::IriRef;
use shex_ast::shex_parser_error::ParseError;
use shex_ast::{Schema, Shape, ShapeExpr, TripleExpr};
use std::collections::{HashMap, HashSet};

/// The maximum number of levels of brackets.
const MAX_DEPTH: usize = 32;
/// How often the parser tries what is in a bracket within a shape, and how often it may in the whole schema: together
/// at most about a second.
const ATTEMPTS_PER_LEVEL: u64 = 5;
const MAX_ATTEMPTS: u64 = 20_000;
/// The maximum length of all IRIs of a schema in bytes, once prefixes and relative IRIs are resolved: each is a copy.
const MAX_IRI_BYTES: usize = 32 << 20;
/// The maximum number of findings of one schema.
const MAX_FINDINGS: usize = 20;

/// Checks that the brackets are not nested too deeply. The parser tries each bracket within a shape several times, and
/// those in it each time.
///
/// # Errors
/// The place of the bracket past [`MAX_DEPTH`] or [`MAX_ATTEMPTS`].
pub(super) fn check_text(text: &str) -> Result<(), Vec<Finding>> {
    let (mut open, mut rest) = (Vec::new(), text);
    let mut attempts: u64 = 0;
    let mut iris = ResolvedIris::default();
    while let Some(sign) = rest.chars().next() {
        let length = token_length(rest, sign);
        iris.count_token(rest, sign, length);
        match sign {
            '(' | '{' | '[' => {
                open.push(sign);
                let inner =
                    open.iter().skip_while(|sign| **sign != '{').filter(|sign| **sign != '[');
                let levels = u32::try_from(inner.count()).unwrap_or(u32::MAX);
                if levels > 0 && sign != '[' {
                    attempts = attempts.saturating_add(ATTEMPTS_PER_LEVEL.saturating_pow(levels));
                }
                if open.len() > MAX_DEPTH || attempts > MAX_ATTEMPTS {
                    let before = text.get(..text.len() - rest.len()).unwrap_or_default();
                    let (line, column) = find_position(before);
                    let why =
                        "too many levels of brackets in each other; give the inner shapes names";
                    return Err(vec![Finding::at_line(line, column, why)]);
                }
            }
            ')' | '}' | ']' => drop(open.pop()),
            'P' | 'p' if open.is_empty() => {
                if let Some(why) = check_prefix(rest) {
                    let before = text.get(..text.len() - rest.len()).unwrap_or_default();
                    let (line, column) = find_position(before);
                    return Err(vec![Finding::at_line(line, column, why)]);
                }
            }
            _ => {}
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    if iris.max_bytes() > MAX_IRI_BYTES {
        return Err(vec![Finding::whole(format!(
            "its IRIs may have more than {MAX_IRI_BYTES} bytes once the prefixes are replaced; use shorter prefixes"
        ))]);
    }
    Ok(())
}

/// Bounds the length of the IRIs of a schema once they are resolved.
#[derive(Default)]
struct ResolvedIris {
    /// The IRIs, and the signs that may be in a name with a prefix.
    names: usize,
    longest: usize,
    /// The declarations of a base, each of which may be relative to the one before.
    bases: usize,
    /// The character before the token.
    before: Option<char>,
}

impl ResolvedIris {
    /// Counts the token of this length that the text begins with.
    fn count_token(&mut self, text: &str, sign: char, length: usize) {
        // Not a part of a name, nor a prefix of this name.
        let begins_word = self
            .before
            .is_none_or(|before| !before.is_alphanumeric() && !matches!(before, ':' | '-' | '_'));
        match sign {
            '<' if length > 1 => {
                self.names += 1;
                self.longest = self.longest.max(length);
            }
            ':' => self.names += 1,
            'B' | 'b' if begins_word => {
                let (word, after) = text.split_at_checked(4).unwrap_or_default();
                let ends =
                    after.starts_with(|sign: char| sign.is_whitespace() || "<#/".contains(sign));
                self.bases += usize::from(ends && word.eq_ignore_ascii_case("BASE"));
            }
            _ => {}
        }
        self.before = Some(sign);
    }

    fn max_bytes(&self) -> usize {
        // A prefix and the base that it is relative to.
        self.names.saturating_mul(self.longest).saturating_mul(self.bases + 1)
    }
}

/// Returns why the parser would misunderstand the prefix that is declared at the start of this text: it puts a slash
/// between the IRI and the local name, unless the IRI ends with a slash or a number sign.
fn check_prefix(text: &str) -> Option<String> {
    let (keyword, rest) = text.split_at_checked("PREFIX".len())?;
    if !keyword.eq_ignore_ascii_case("PREFIX") || !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let (name, rest) = rest.split_once('<')?;
    let (iri, _) = rest.split_once('>')?;
    let is_name = name.trim().ends_with(':') && !name.trim().contains(char::is_whitespace);
    (is_name && !iri.ends_with(['/', '#'])).then(|| {
        format!(
            "the prefix {} <{iri}> ends with neither / nor #, which is not supported; write the IRIs in full",
            name.trim()
        )
    })
}

/// Returns the finding of an error of the parser, which got the text in short lines.
pub(super) fn locate_error(text: &str, lines: &ShortLines, error: &ParseError) -> Finding {
    match error {
        ParseError::NomError { err } => {
            let (line, column) = lines.find_original(text, u64::from(err.line), err.column as u64);
            Finding::at_line(line, column, err.source.to_string())
        }
        other => explain_error(text, &other.to_string()),
    }
}

/// Returns the finding of an error of rudof. For a name that nothing defines it has the place, and what to do.
pub(super) fn explain_error(text: &str, error: &str) -> Finding {
    if error.contains("refix map")
        && let Some((before, prefix)) = find_undeclared_prefix(text)
    {
        let (line, column) = find_position(before);
        let why = format!("the prefix `{prefix}:` is not declared; add `PREFIX {prefix}: <IRI>`");
        return Finding::at_line(line, column, why);
    }
    let Some(label) = error.strip_prefix("Shape label not found ") else {
        return Finding::whole(error);
    };
    let label = if label.starts_with("_:") { label.to_owned() } else { format!("<{label}>") };
    let why =
        format!("there is no shape {label} in the schema; define it, or correct the reference");
    match text.split_once(&format!("@{label}")) {
        Some((before, _)) => {
            let (line, column) = find_position(before);
            Finding::at_line(line, column, why)
        }
        None => Finding::whole(why),
    }
}

/// Returns the first prefix that is used and not declared before, with the text before it.
fn find_undeclared_prefix(text: &str) -> Option<(&str, &str)> {
    let is_name = |sign: char| sign.is_alphanumeric() || matches!(sign, '_' | ':' | '.' | '-');
    let mut declared = HashSet::new();
    let (mut is_declaration, mut rest) = (false, text);
    while let Some(sign) = rest.chars().next() {
        let length = if is_name(sign) {
            rest.find(|sign| !is_name(sign)).unwrap_or(rest.len())
        } else {
            token_length(rest, sign)
        };
        let (token, after) = rest.split_at(length);
        if is_name(sign) {
            match token.split_once(':') {
                None => is_declaration = token.eq_ignore_ascii_case("PREFIX"),
                Some((prefix, _)) if is_declaration => {
                    declared.insert(prefix);
                    is_declaration = false;
                }
                Some((prefix, _)) if prefix == "_" || declared.contains(prefix) => {}
                Some((prefix, _)) => return Some((text.strip_suffix(rest)?, prefix)),
            }
        }
        rest = after;
    }
    None
}

/// Walks through a schema.
#[derive(Default)]
pub(super) struct SchemaCheck {
    findings: Vec<Finding>,
    pub(super) properties: Properties,
    /// How often a shape names a property, if one does more than once.
    pub(super) repeated: HashMap<NamedNode, usize>,
    pub(super) facets: Facets,
}

impl SchemaCheck {
    /// Checks a schema, and replaces the constraints that are checked by [`Facets`].
    ///
    /// # Errors
    /// Every part that is not supported or not valid.
    pub(super) fn check_schema(mut schema: Schema) -> Result<(Schema, Self), Vec<Finding>> {
        let mut check = Self::default();
        if schema.imports().is_some_and(|imports| !imports.is_empty()) {
            check.refuse("IMPORT: nothing is ever fetched; put all shapes into one schema");
        }
        if schema.start_actions().is_some_and(|actions| !actions.is_empty()) {
            check.refuse_actions();
        }
        match schema.start() {
            Some(mut start) => {
                check.check_shape_expr(&mut start);
                schema = schema.with_start(Some(start));
            }
            None => check.refuse(
                "the schema has no start, so nothing would be validated; add a line such as start = @<Pump>",
            ),
        }
        for declared in schema.shapes_mut().into_iter().flatten() {
            if declared.is_abstract {
                check.refuse("ABSTRACT is not part of ShEx 2.1 and not supported");
            }
            check.check_shape_expr(&mut declared.shape_expr);
        }
        check.findings.extend(check.facets.take_findings());
        if check.findings.is_empty() { Ok((schema, check)) } else { Err(check.findings) }
    }

    fn refuse(&mut self, why: &str) {
        if self.findings.len() < MAX_FINDINGS && !self.findings.iter().any(|f| f.message == why) {
            self.findings.push(Finding::whole(why.to_owned()));
        }
    }

    fn refuse_actions(&mut self) {
        self.refuse("semantic actions (%…{…%}) are not supported");
    }

    fn check_shape_expr(&mut self, shape: &mut ShapeExpr) {
        match shape {
            ShapeExpr::ShapeOr { shape_exprs } | ShapeExpr::ShapeAnd { shape_exprs } => {
                for part in shape_exprs {
                    self.check_shape_expr(&mut part.se);
                }
            }
            ShapeExpr::ShapeNot { shape_expr } => self.check_shape_expr(&mut shape_expr.se),
            ShapeExpr::NodeConstraint(constraint) => {
                if constraint.sem_acts().is_some_and(|actions| !actions.is_empty()) {
                    self.refuse_actions();
                }
                self.facets.replace(constraint);
            }
            ShapeExpr::Shape(shape) => self.check_shape(shape),
            ShapeExpr::External => {
                self.refuse("EXTERNAL: nothing is ever fetched; write the shape here");
            }
            ShapeExpr::Ref(_) => {}
        }
    }

    fn check_shape(&mut self, shape: &mut Shape) {
        if shape.sem_acts.as_ref().is_some_and(|actions| !actions.is_empty()) {
            self.refuse_actions();
        }
        if shape.extends.as_ref().is_some_and(|extended| !extended.is_empty()) {
            self.refuse("EXTENDS is not part of ShEx 2.1 and not supported; use AND");
        }
        for property in shape.extra.iter().flatten() {
            self.add_property(property, false);
        }
        let mut counts = HashMap::new();
        if let Some(expression) = &mut shape.expression {
            self.check_triple_expr(&mut expression.te, &mut counts);
        }
        for (property, count) in counts.into_iter().filter(|(_, count)| *count > 1) {
            let most = self.repeated.entry(property).or_default();
            *most = count.max(*most);
        }
    }

    fn check_triple_expr(&mut self, expr: &mut TripleExpr, counts: &mut HashMap<NamedNode, usize>) {
        let sem_acts = match expr {
            TripleExpr::EachOf { expressions, sem_acts, .. }
            | TripleExpr::OneOf { expressions, sem_acts, .. } => {
                for part in expressions {
                    self.check_triple_expr(&mut part.te, counts);
                }
                sem_acts
            }
            TripleExpr::TripleConstraint { inverse, predicate, value_expr, sem_acts, .. } => {
                if let Some(value) = value_expr {
                    self.check_shape_expr(value);
                }
                if let Some(property) = self.add_property(predicate, *inverse == Some(true)) {
                    *counts.entry(property).or_default() += 1;
                }
                sem_acts
            }
            TripleExpr::Ref(label) => {
                return self.refuse(&format!(
                    "the inclusion &{label} is not supported; write its triple constraints here"
                ));
            }
        };
        if sem_acts.as_ref().is_some_and(|actions| !actions.is_empty()) {
            self.refuse_actions();
        }
    }

    fn add_property(&mut self, property: &IriRef, is_inverse: bool) -> Option<NamedNode> {
        let IriRef::Iri(iri) = property else {
            self.refuse(&format!("the property {property} has no known prefix"));
            return None;
        };
        let node = NamedNode::new_unchecked(iri.as_str());
        let properties =
            if is_inverse { &mut self.properties.inverse } else { &mut self.properties.forward };
        properties.insert(node.clone());
        Some(node)
    }
}
