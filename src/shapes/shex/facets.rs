//! Constraints on single values that are checked here. rudof counts bytes for lengths, reads regular expressions in the
//! syntax of the crate `regex` and compiles them for each value, and reads some numbers in another way than XML Schema
//! (`+INF`, `Infinity`, `xsd:int`, and more than 28 digits).
//!
//! In the schema that rudof compiles, each of them is a semantic action of its node constraint. So it counts wherever a
//! node constraint can be, whether within NOT, OR or a nested shape.
use crate::patterns::{MAX_PATTERNS, Pattern};
use oxrdf::{Literal, NamedNode, NamedNodeRef, Term};
use penstock_base::error::Finding;
use penstock_rdf::compare::{compare, is_valid};
use penstock_rdf::number::is_numeric;
use prefixmap::IriRef;
use rudof_iri::IriS;
use rudof_rdf::rdf_core::term::Object;
use shex_ast::ir::semantic_action_context::SemanticActionContext;
use shex_ast::ir::semantic_action_error::SemanticActionError;
use shex_ast::ir::semantic_action_extension::SemanticActionExtension;
use shex_ast::{Node, NodeConstraint, NumericFacet, SemAct, StringFacet, XsFacet};
use std::any::Any;
use std::cmp::Ordering;

/// The name of the semantic actions. No schema can have it: those of a schema are refused.
const ACTION: &str = "urn:penstock:facet";

/// The constraints of a schema that are checked here. The code of a semantic action is the number of one.
#[derive(Debug, Default)]
pub(super) struct Facets {
    checks: Vec<Check>,
    findings: Vec<Finding>,
    patterns: usize,
    /// The size of all compiled regular expressions.
    pub(super) pattern_bytes: usize,
}

#[derive(Debug)]
enum Check {
    /// This number of characters.
    Length(usize),
    MinLength(usize),
    MaxLength(usize),
    Pattern(Pattern, String),
    /// A datatype of numbers.
    Datatype(NamedNode),
    /// A number whose order relative to this one is among these. The text names the facet in errors.
    Compares(Literal, &'static [Ordering], &'static str),
}

impl Facets {
    /// Returns the regular expressions that are not supported.
    pub(super) fn take_findings(&mut self) -> Vec<Finding> {
        if self.patterns > MAX_PATTERNS {
            let why = format!("more than {MAX_PATTERNS} regular expressions");
            self.findings.push(Finding::whole(why));
        }
        std::mem::take(&mut self.findings)
    }

    /// Replaces the constraints of a node constraint by semantic actions.
    pub(super) fn replace(&mut self, constraint: &mut NodeConstraint) {
        let mut replaced = NodeConstraint::new().with_annotations(constraint.annotations());
        if let Some(kind) = constraint.node_kind() {
            replaced = replaced.with_node_kind(kind);
        }
        if let Some(values) = constraint.values() {
            replaced = replaced.with_values(values);
        }
        let mut actions = Vec::new();
        match constraint.datatype() {
            Some(IriRef::Iri(iri)) if is_numeric(NamedNodeRef::new_unchecked(iri.as_str())) => {
                let datatype = NamedNode::new_unchecked(iri.as_str());
                actions.push(self.add(Check::Datatype(datatype)));
            }
            Some(datatype) => replaced = replaced.with_datatype(datatype),
            None => {}
        }
        let mut others = Vec::new();
        for facet in constraint.facets().unwrap_or_default() {
            match self.build_check(facet) {
                Ok(check) => actions.extend(check.map(|check| self.add(check))),
                Err(facet) => others.push(facet),
            }
        }
        if !actions.is_empty() {
            replaced = replaced.with_sem_acts(Some(actions));
        }
        *constraint = replaced.with_xsfacets(others);
    }

    /// Builds the check of a facet, or returns the facet if rudof checks it. There is none for a regular expression that is
    /// refused.
    fn build_check(&mut self, facet: XsFacet) -> Result<Option<Check>, XsFacet> {
        use Ordering::{Equal, Greater, Less};
        let check = match facet {
            XsFacet::StringFacet(StringFacet::Length(length)) => Check::Length(length),
            XsFacet::StringFacet(StringFacet::MinLength(min)) => Check::MinLength(min),
            XsFacet::StringFacet(StringFacet::MaxLength(max)) => Check::MaxLength(max),
            XsFacet::StringFacet(StringFacet::Pattern(pattern)) => {
                return Ok(self.compile_pattern(&pattern));
            }
            XsFacet::NumericFacet(NumericFacet::MinInclusive(min)) => {
                Check::Compares(min.into(), &[Greater, Equal], ">=")
            }
            XsFacet::NumericFacet(NumericFacet::MinExclusive(min)) => {
                Check::Compares(min.into(), &[Greater], ">")
            }
            XsFacet::NumericFacet(NumericFacet::MaxInclusive(max)) => {
                Check::Compares(max.into(), &[Less, Equal], "<=")
            }
            XsFacet::NumericFacet(NumericFacet::MaxExclusive(max)) => {
                Check::Compares(max.into(), &[Less], "<")
            }
            digits => return Err(digits),
        };
        Ok(Some(check))
    }

    fn compile_pattern(&mut self, pattern: &shex_ast::Pattern) -> Option<Check> {
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS {
            return None;
        }
        let (text, flags) = (pattern.regex(), pattern.flags().unwrap_or_default());
        match Pattern::compile(text, flags) {
            Ok(compiled) => {
                self.pattern_bytes += compiled.program_bytes();
                Some(Check::Pattern(compiled, format!("/{text}/{flags}")))
            }
            Err(why) => {
                self.findings.push(Finding::whole(format!("the pattern /{text}/ {why}")));
                None
            }
        }
    }

    fn add(&mut self, check: Check) -> SemAct {
        let number = self.checks.len().to_string();
        self.checks.push(check);
        SemAct::new(IriRef::iri(IriS::new_unchecked(ACTION)), Some(number))
    }
}

impl Check {
    /// Checks a value.
    ///
    /// # Errors
    /// What it must be.
    fn check(&self, node: &Node) -> Result<(), String> {
        let has_length = |is_allowed: &dyn Fn(usize) -> bool, expected: &str| {
            let length = text_of(node).chars().count();
            let why = || format!("must have {expected} characters, and has {length}");
            is_allowed(length).then_some(()).ok_or_else(why)
        };
        match self {
            Self::Length(length) => has_length(&|found| found == *length, &length.to_string()),
            Self::MinLength(min) => has_length(&|found| found >= *min, &format!("at least {min}")),
            Self::MaxLength(max) => has_length(&|found| found <= *max, &format!("at most {max}")),
            Self::Pattern(pattern, text) => {
                let is_match = pattern.regex().is_match(&text_of(node));
                is_match.then_some(()).ok_or_else(|| format!("must match {text}"))
            }
            Self::Datatype(datatype) => match to_literal(node) {
                Some(literal)
                    if literal.datatype() == datatype.as_ref()
                        && is_valid(&literal) == Some(true) =>
                {
                    Ok(())
                }
                _ => Err(format!("must be a value of {datatype}")),
            },
            Self::Compares(bound, allowed, sign) => {
                let ordering = to_literal(node)
                    .and_then(|literal| compare(&literal.into(), &Term::from(bound.clone())));
                let is_allowed = ordering.is_some_and(|ordering| allowed.contains(&ordering));
                is_allowed.then_some(()).ok_or_else(|| format!("must be {sign} {}", bound.value()))
            }
        }
    }
}

/// Returns the text that string facets constrain (`ShEx` 2.1, 5.4.6).
fn text_of(node: &Node) -> String {
    match node.as_object() {
        Object::Iri(iri) => iri.as_str().to_owned(),
        Object::BlankNode(label) => label.clone(),
        Object::Literal(literal) => literal.lexical_form(),
        Object::Triple { .. } => node.to_string(),
    }
}

fn to_literal(node: &Node) -> Option<Literal> {
    match node.as_object() {
        Object::Literal(literal) => Some(literal.into()),
        _ => None,
    }
}

impl SemanticActionExtension for Facets {
    fn action_iri(&self) -> IriS {
        IriS::new_unchecked(ACTION)
    }

    fn run_action(
        &self,
        code: Option<&str>,
        context: &SemanticActionContext,
    ) -> Result<(), SemanticActionError> {
        let check = code.and_then(|number| self.checks.get(number.parse::<usize>().ok()?));
        let node = context.n();
        let (Some(check), Some(node)) = (check, node) else {
            let message = "the value or its constraint is unknown".to_owned();
            return Err(SemanticActionError::FailAction { message });
        };
        check.check(&node).map_err(|message| SemanticActionError::FailAction { message })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Returns the error of a condition without what rudof writes about semantic actions.
pub(super) fn describe_condition(error: &str) -> String {
    let none = SemanticActionError::FailAction { message: String::new() };
    error.replace(&format!("Semantic action error for {ACTION}: {none}"), "")
}
