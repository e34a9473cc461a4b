//! Literals that keep their form in expressions.
//!
//! The evaluator parses literals of the types that it knows, and writes their values in canonical form. It leaves literals
//! of other types as they are. So a literal that must keep its form, or that the evaluator takes for a value though it is
//! not valid, gets a type of ours while an expression is evaluated: [`FORM`] and its own type.
use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNode, Term};
use penstock_rdf::number::{check_float, is_valid_integer};
use spareval::ExpressionTerm;

/// The beginning of the type of a literal that keeps its form. It has a blank, so no request can have it.
const FORM: &str = "penstock form ";

/// Returns a literal in the form in which an expression keeps it.
pub(crate) fn keep_form(literal: Literal) -> Literal {
    if is_kept(&literal) { literal } else { hide_type(&literal) }
}

/// As [`keep_form`], only if the evaluator would take the literal for a number though it is none.
pub(crate) fn hide_misread(literal: Literal) -> Literal {
    if is_misread(&literal) { hide_type(&literal) } else { literal }
}

/// Returns a term with its own type again.
pub(crate) fn restore_form(term: Term) -> Term {
    match term {
        Term::Literal(literal) => match literal.datatype().as_str().strip_prefix(FORM) {
            Some(datatype) => {
                Literal::new_typed_literal(literal.value(), NamedNode::new_unchecked(datatype))
                    .into()
            }
            None => literal.into(),
        },
        other => other,
    }
}

/// Converts a term to a value of the evaluator. With `keeps_form`, only if the evaluator writes it as it is.
pub(crate) fn to_expression_term(term: Term, keeps_form: bool) -> ExpressionTerm {
    match term {
        Term::Literal(literal) if is_misread(&literal) || (keeps_form && !is_kept(&literal)) => {
            let (value, datatype) = (literal.value().to_owned(), literal.datatype().into_owned());
            ExpressionTerm::OtherTypedLiteral { value, datatype }
        }
        other => other.into(),
    }
}

/// Returns whether the evaluator writes a literal as it is.
fn is_kept(literal: &Literal) -> bool {
    literal.datatype() == xsd::STRING
        || literal.language().is_some()
        || Term::from(ExpressionTerm::from(Term::from(literal.clone()))) == literal.clone().into()
}

/// Returns whether the evaluator takes a literal for a number though it is none: it reads all types of integers without
/// their bounds, and knows more names of infinity than there are.
fn is_misread(literal: &Literal) -> bool {
    match literal.datatype() {
        xsd::INTEGER => false,
        xsd::DOUBLE | xsd::FLOAT => check_float(literal.value()).is_none(),
        other => is_valid_integer(literal.value(), other) == Some(false),
    }
}

fn hide_type(literal: &Literal) -> Literal {
    let datatype = NamedNode::new_unchecked(format!("{FORM}{}", literal.datatype().as_str()));
    Literal::new_typed_literal(literal.value(), datatype)
}
