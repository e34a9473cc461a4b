//! `ShEx` 2.1 in its compact syntax (<https://shex.io/shex-semantics/>).
mod check;
mod explain;
mod facets;
mod lines;

use crate::data::Data;
use crate::scope::Properties;
use crate::violation::{Severity, Violation};
use check::{SchemaCheck, check_text, explain_error, locate_error};
use explain::{Explanation, explain_errors};
use lines::ShortLines;
use oxrdf::{BlankNode, NamedNode, Term};
use parking_lot::Mutex;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use rudof_iri::IriS;
use rudof_rdf::rdf_core::query::{QueryRDF, QueryResultFormat, QuerySolutions};
use shex_ast::ir::actions::semantic_actions_registry::SemanticActionsRegistry;
use shex_ast::ir::schema_ir::SchemaIR;
use shex_ast::ir::shape_label::ShapeLabel;
use shex_ast::shapemap::query_shape_map::QueryShapeMap;
use shex_ast::shapemap::{NodeSelector, ShapeSelector};
use shex_ast::shex_parser::ShExParser;
use shex_ast::{ExternalShapeResolverRegistry, Node, ResolveMethod, ShapeExprLabel, ShapeLabelIdx};
use shex_validation::{Reason, ValidationResult, Validator, ValidatorConfig, ValidatorError};
use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::sync::Arc;

/// The name of the schema for the parser, which needs one. It is never part of a result.
const SOURCE: &str = "urn:penstock:shex";
/// The maximum number of violations of one member that are named.
const MAX_VIOLATIONS_PER_MEMBER: usize = 20;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Shex {
    schema: SchemaIR,
    start: ShapeLabelIdx,
    properties: Properties,
    /// How often a shape names a property, if one does more than once.
    repeated: Arc<HashMap<NamedNode, usize>>,
    /// The size of all compiled regular expressions.
    pattern_bytes: usize,
}

impl Shex {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Every part that is not supported or not valid.
    pub(crate) fn compile(text: &str) -> Result<Self, Vec<Finding>> {
        check_text(text)?;
        let lines = ShortLines::divide(text)?;
        let source = IriS::new_unchecked(SOURCE);
        let parsed = ShExParser::parse(&lines.text, None, &source)
            .map_err(|error| vec![locate_error(text, &lines, &error)])?;
        let (parsed, check) = SchemaCheck::check_schema(parsed)?;
        let SchemaCheck { properties, repeated, facets, .. } = check;
        let refused = |error: &dyn std::fmt::Display| vec![explain_error(text, &error.to_string())];
        // All IRIs are resolved. rudof copies the prefixes for each value set.
        let parsed = parsed.with_prefixmap(None);
        let pattern_bytes = facets.pattern_bytes;
        let registry = SemanticActionsRegistry::new().with(vec![Box::new(facets)]);
        let mut schema = SchemaIR::new(registry);
        schema
            .populate_from_schema_json(
                &parsed,
                &ExternalShapeResolverRegistry::default(),
                &ResolveMethod::default(),
                &None,
            )
            .map_err(|error| refused(&error))?;
        // It refuses shapes that depend on their own negation.
        Validator::new(&schema, &ValidatorConfig::new()).map_err(|error| refused(&error))?;
        let start = schema.find_ref(&ShapeExprLabel::Start).map_err(|error| refused(&error))?;
        Ok(Self { schema, start, properties, repeated: Arc::new(repeated), pattern_bytes })
    }

    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Validates the members against `start`.
    pub(crate) fn validate(
        &self,
        data: &Data<'static>,
        members: &BTreeSet<NamedNode>,
    ) -> Result<Vec<Violation>, GatewayError> {
        let failed = |error: &dyn std::fmt::Display| {
            let why = format!("the objects cannot be validated: {error}");
            GatewayError::new(ErrorClass::Invalid, why)
        };
        data.limit_combinations(self.repeated.clone());
        data.limit_schema_patterns(self.pattern_bytes);
        let failures = Arc::new(Failures::new(self.start));
        let config =
            ValidatorConfig::new().with_max_steps(None).with_typing_observer(failures.clone());
        let validator = Validator::with_neg_cycle_check(&self.schema, &config, false)
            .map_err(|error| failed(&error))?;
        let mut pairs = QueryShapeMap::new();
        for member in members {
            let node = NodeSelector::iri_unchecked(member.as_str());
            pairs
                .add_association(node, &None, ShapeSelector::Start, &None)
                .map_err(|error| failed(&error))?;
        }
        let results = validator
            .validate_shapemap(&pairs, data, &self.schema, &None)
            .map_err(|error| failed(&error))?;
        let mut found = Vec::new();
        for member in members {
            let node = Node::iri(IriS::new_unchecked(member.as_str()));
            let status = results.get_info(&node, &ShapeLabel::Start);
            if status.is_some_and(|status| status.is_conformant()) {
                continue;
            }
            let mut explained = explain_errors(&self.schema, &failures.take(&node));
            explained.truncate(MAX_VIOLATIONS_PER_MEMBER);
            if explained.is_empty() {
                explained.push(Explanation::of_shape("does not conform to the shape".to_owned()));
            }
            found.extend(explained.into_iter().map(|why| self.to_violation(member, why)));
            if found.len() > data.budget().max_violations() {
                return Err(failed(&format!(
                    "there are more than {} violations; send fewer objects at once",
                    data.budget().max_violations()
                )));
            }
        }
        Ok(found)
    }

    fn to_violation(&self, member: &NamedNode, why: Explanation) -> Violation {
        let shape = why.shape.unwrap_or(self.start);
        let (shape, source_shape) = match self.schema.shape_label_from_idx(&shape) {
            Some(ShapeLabel::Iri(iri)) => {
                (iri.as_str().to_owned(), NamedNode::new_unchecked(iri.as_str()).into())
            }
            _ => ("start".to_owned(), Term::from(BlankNode::new_unchecked("start"))),
        };
        let path = why.predicate.as_ref().map(|(predicate, is_direct)| {
            if *is_direct { predicate.as_str().to_owned() } else { format!("^{predicate}") }
        });
        Violation {
            focus_node: member.clone().into(),
            path,
            predicate: why.predicate.filter(|(_, is_direct)| *is_direct).map(|(node, _)| node),
            value: why.value,
            shape,
            source_shape,
            constraint: why.constraint,
            severity: Severity::Violation,
            messages: vec![(None, why.message)],
        }
    }
}

/// The errors of the nodes that do not conform to `start`.
#[derive(Debug)]
struct Failures {
    start: ShapeLabelIdx,
    errors: Mutex<HashMap<Node, Vec<ValidatorError>>>,
}

impl Failures {
    fn new(start: ShapeLabelIdx) -> Self {
        Self { start, errors: Mutex::default() }
    }

    fn take(&self, node: &Node) -> Vec<ValidatorError> {
        let mut errors = self.errors.lock();
        errors.remove(node).unwrap_or_default()
    }
}

impl rudof_typing::TypingObserver<Node, ShapeLabelIdx, ValidatorError, Reason> for Failures {
    fn on_insert(&self, (node, shape): &(Node, ShapeLabelIdx), result: &ValidationResult) {
        if *shape != self.start {
            return;
        }
        if let Some(found) = result.as_ref().left() {
            let mut errors = self.errors.lock();
            errors.insert(node.clone(), found.clone());
        }
    }
}

/// A schema asks no queries: they are for node selectors in SPARQL.
impl QueryRDF for Data<'static> {
    fn query_select(&self, _: &str) -> Result<QuerySolutions<Self>, Infallible> {
        Ok(QuerySolutions::empty())
    }

    fn query_construct(&self, _: &str, _: &QueryResultFormat) -> Result<String, Infallible> {
        Ok(String::new())
    }

    fn query_ask(&self, _: &str) -> Result<bool, Infallible> {
        Ok(false)
    }
}
