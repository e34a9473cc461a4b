//! Texts for people about why a node does not conform.
use super::facets::describe_condition;
use oxrdf::{NamedNode, Term};
use rbe::{Cardinality, Max, RbeError};
use rudof_rdf::rdf_core::term::Object;
use shex_ast::ir::schema_ir::SchemaIR;
use shex_ast::ir::shape_label::ShapeLabel;
use shex_ast::{Node, Pred, ShapeLabelIdx};
use shex_validation::ValidatorError;
use shex_validation::no_match_reason::NoMatchReason;

/// Why a node does not conform to a shape.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Explanation {
    pub(super) shape: Option<ShapeLabelIdx>,
    /// The property, and whether it leads from the node to the value.
    pub(super) predicate: Option<(NamedNode, bool)>,
    pub(super) value: Option<Term>,
    /// A term of the vocabulary of `ShEx`.
    pub(super) constraint: NamedNode,
    pub(super) message: String,
}

impl Explanation {
    /// Explains a failure that is about a shape as a whole.
    pub(super) fn of_shape(message: String) -> Self {
        Self { shape: None, predicate: None, value: None, constraint: shex("Shape"), message }
    }

    fn of_property(predicate: &Pred, constraint: &str, message: String) -> Self {
        let property = NamedNode::new_unchecked(predicate.iri().as_str());
        Self {
            predicate: Some((property, predicate.is_direct())),
            constraint: shex(constraint),
            ..Self::of_shape(message)
        }
    }
}

fn shex(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("http://www.w3.org/ns/shex#{name}"))
}

/// Explains the errors of one node, each once.
pub(super) fn explain_errors(schema: &SchemaIR, errors: &[ValidatorError]) -> Vec<Explanation> {
    let mut found = Vec::new();
    for error in errors {
        explain_error(schema, error, None, &mut found);
    }
    found
}

fn add(found: &mut Vec<Explanation>, shape: Option<ShapeLabelIdx>, explanation: Explanation) {
    let explanation = Explanation { shape, ..explanation };
    if !found.contains(&explanation) {
        found.push(explanation);
    }
}

fn explain_error(
    schema: &SchemaIR,
    error: &ValidatorError,
    shape: Option<ShapeLabelIdx>,
    found: &mut Vec<Explanation>,
) {
    match error {
        ValidatorError::ShapeAndError { shape_expr, errors, .. }
        | ValidatorError::ShapeRefFailed { idx: shape_expr, errors, .. } => {
            let shape = name_of(schema, *shape_expr).map(|_| *shape_expr).or(shape);
            let before = found.len();
            for error in errors.iter() {
                explain_error(schema, error, shape, found);
            }
            if found.len() == before {
                add(
                    found,
                    shape,
                    Explanation::of_shape(format!(
                        "does not conform to {}",
                        describe_shape(schema, *shape_expr)
                    )),
                );
            }
        }
        ValidatorError::ShapeFailed { idx, errors, .. } => {
            for error in errors {
                explain_error(schema, error, Some(*idx), found);
            }
        }
        ValidatorError::ShapeOrError { errors, .. } => {
            let message = format!("conforms to none of the {} alternatives", errors.len());
            let constraint = shex("ShapeOr");
            add(found, shape, Explanation { constraint, ..Explanation::of_shape(message) });
        }
        ValidatorError::ShapeNotError { .. } => {
            let message = "conforms to the shape that NOT excludes".to_owned();
            let constraint = shex("ShapeNot");
            add(found, shape, Explanation { constraint, ..Explanation::of_shape(message) });
        }
        ValidatorError::ClosedShapeWithRemainderPreds { remainder, .. } => {
            for predicate in remainder.preds() {
                let message = "is a property that the closed shape does not allow".to_owned();
                add(found, shape, Explanation::of_property(predicate, "closed", message));
            }
        }
        ValidatorError::FailedPending { failed_pending } => {
            for (value, referred, predicates, _) in failed_pending {
                for predicate in predicates {
                    let message = format!(
                        "has a value that does not conform to {}",
                        describe_shape(schema, *referred)
                    );
                    let explanation = Explanation::of_property(predicate, "Shape", message);
                    add(found, shape, Explanation { value: Some(to_term(value)), ..explanation });
                }
            }
        }
        ValidatorError::NoMatchesFound { idx, reasons, .. } => {
            for reason in reasons {
                add(found, Some(*idx), explain_reason(reason));
            }
            if reasons.is_empty() {
                add(
                    found,
                    Some(*idx),
                    Explanation::of_shape("lacks properties that the shape requires".to_owned()),
                );
            }
        }
        ValidatorError::RbeError(
            error @ (RbeError::CondFailed { .. } | RbeError::MsgError { .. }),
        ) => {
            let constraint = shex("NodeConstraint");
            let message =
                format!("is not allowed here: {}", describe_condition(&error.to_string()));
            add(found, shape, Explanation { constraint, ..Explanation::of_shape(message) });
        }
        ValidatorError::RbeError(_) => {
            let message = "lacks properties that the shape requires".to_owned();
            add(found, shape, Explanation::of_shape(message));
        }
        _ => add(found, shape, Explanation::of_shape("does not conform to the shape".to_owned())),
    }
}

fn explain_reason(reason: &NoMatchReason) -> Explanation {
    match reason {
        NoMatchReason::ConditionFailed { predicate, value, error, .. } => {
            let error = describe_condition(&error.to_string());
            let message = format!("has a value that is not allowed: {error}");
            let explanation = Explanation::of_property(predicate, "NodeConstraint", message);
            Explanation { value: Some(to_term(value)), ..explanation }
        }
        NoMatchReason::CardinalityFailed { predicate, expected, current, .. } => {
            let message =
                format!("must have {}, and has {current}", describe_cardinality(expected));
            Explanation::of_property(predicate, "TripleConstraint", message)
        }
        NoMatchReason::Other { candidate, .. } => {
            let mut properties: Vec<String> = candidate
                .iter()
                .map(|(predicate, _): &(Pred, Node)| predicate.to_string())
                .collect();
            properties.sort();
            properties.dedup();
            Explanation::of_shape(format!(
                "has a combination of properties that the shape does not allow: {}",
                properties.join(", ")
            ))
        }
    }
}

fn describe_cardinality(expected: &Cardinality) -> String {
    let min = expected.min.value;
    match &expected.max {
        Max::Unbounded => format!("at least {min} {}", values(min)),
        Max::IntMax(max) if *max == min => format!("exactly {min} {}", values(min)),
        Max::IntMax(max) => format!("{min} to {max} values"),
    }
}

fn values(number: usize) -> &'static str {
    if number == 1 { "value" } else { "values" }
}

/// Returns a value of a result as a term.
fn to_term(node: &Node) -> Term {
    let object: Object = node.as_object().clone();
    object.into()
}

fn name_of(schema: &SchemaIR, shape: ShapeLabelIdx) -> Option<&str> {
    match schema.shape_label_from_idx(&shape) {
        Some(ShapeLabel::Iri(iri)) => Some(iri.as_str()),
        _ => None,
    }
}

fn describe_shape(schema: &SchemaIR, shape: ShapeLabelIdx) -> String {
    name_of(schema, shape)
        .map_or_else(|| "the given shape".to_owned(), |name| format!("the shape {name}"))
}
