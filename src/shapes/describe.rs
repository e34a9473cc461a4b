//! Texts for people about constraints.
use crate::data::to_named_node;
use crate::violation::Severity;
use oxrdf::Term;
use rudof_rdf::rdf_core::term::Object;
use shacl::ir::IRComponent;
use shacl::types::{NodeKind, Severity as ShaclSeverity};

/// The number of values of a list that a text names.
const MAX_NAMED: usize = 10;

/// Describes what a constraint requires of a value, or of all values of a property.
pub(crate) fn describe_constraint(component: &IRComponent) -> String {
    let show = |object: &Object| format_term(&object.clone().into());
    let literal = |literal| show(&Object::Literal(literal));
    let list = |values: Vec<String>| {
        let more = values.len().saturating_sub(MAX_NAMED);
        let named = values.into_iter().take(MAX_NAMED).collect::<Vec<_>>().join(", ");
        if more > 0 { format!("{named} and {more} more") } else { named }
    };
    match component {
        IRComponent::Class(class) => format!("must be an instance of {}", show(class.class_rule())),
        IRComponent::Datatype(datatype) => {
            format!("must be a literal of the datatype {}", datatype.datatype().as_str())
        }
        IRComponent::NodeKind(kind) => format!("must be {}", name_node_kind(kind.node_kind())),
        IRComponent::MinCount(count) => match count.min_count() {
            1 => "must have a value".to_owned(),
            count => format!("must have at least {count} values"),
        },
        IRComponent::MaxCount(count) => match count.max_count() {
            0 => "must have no value".to_owned(),
            1 => "must have at most 1 value".to_owned(),
            count => format!("must have at most {count} values"),
        },
        IRComponent::MinExclusive(than) => {
            format!("must be more than {}", literal(than.min_exclusive().clone()))
        }
        IRComponent::MaxExclusive(than) => {
            format!("must be less than {}", literal(than.max_exclusive().clone()))
        }
        IRComponent::MinInclusive(from) => {
            format!("must be {} or more", literal(from.min_inclusive().clone()))
        }
        IRComponent::MaxInclusive(to) => {
            format!("must be {} or less", literal(to.max_inclusive().clone()))
        }
        IRComponent::MinLength(length) => {
            format!("must have at least {} characters", length.min_length())
        }
        IRComponent::MaxLength(length) => {
            format!("must have at most {} characters", length.max_length())
        }
        IRComponent::Pattern(pattern) => {
            format!("must match the regular expression {:?}", pattern.pattern())
        }
        IRComponent::UniqueLang(_) => "must have at most one value in each language".to_owned(),
        IRComponent::LanguageIn(languages) => format!(
            "must be in one of the languages {}",
            list(languages.langs().iter().map(ToString::to_string).collect())
        ),
        IRComponent::Equals(equals) => {
            format!("must have the same values as {}", to_named_node(equals.iri()).as_str())
        }
        IRComponent::Disjoint(disjoint) => {
            format!("must have no value of {}", to_named_node(disjoint.iri()).as_str())
        }
        IRComponent::LessThan(less) => {
            format!("must be less than every value of {}", to_named_node(less.iri()).as_str())
        }
        IRComponent::LessThanOrEquals(less) => {
            format!("must not be more than any value of {}", to_named_node(less.iri()).as_str())
        }
        IRComponent::And(_) => "must conform to all of the given shapes".to_owned(),
        IRComponent::Or(_) => "must conform to one of the given shapes".to_owned(),
        IRComponent::Xone(_) => "must conform to exactly one of the given shapes".to_owned(),
        IRComponent::Not(_) => "must not conform to the given shape".to_owned(),
        IRComponent::Node(_) => "must conform to the given shape".to_owned(),
        IRComponent::HasValue(value) => format!("must have the value {}", show(value.value())),
        IRComponent::In(values) => {
            format!("must be one of {}", list(values.values().iter().map(show).collect()))
        }
        IRComponent::QualifiedValueShape(qualified) => {
            let bounds = (qualified.qualified_min_count(), qualified.qualified_max_count());
            let number = match bounds {
                (Some(min), Some(max)) => format!("between {min} and {max}"),
                (Some(min), None) => format!("at least {min}"),
                (None, Some(max)) => format!("at most {max}"),
                (None, None) => "any number of".to_owned(),
            };
            format!("must have {number} values that conform to the given shape")
        }
        IRComponent::Closed(_) => "is a property that the closed shape does not allow".to_owned(),
        IRComponent::SubsetOf(_) | IRComponent::Deactivated(_) | IRComponent::BasicSparql(_) => {
            "must conform".to_owned()
        }
    }
}

/// Writes a term for people: an IRI as it is, a number or text without its datatype.
fn format_term(term: &Term) -> String {
    match term {
        Term::NamedNode(node) => node.as_str().to_owned(),
        Term::Literal(literal) if literal.language().is_none() => literal.value().to_owned(),
        other => other.to_string(),
    }
}

fn name_node_kind(kind: &NodeKind) -> &'static str {
    match kind {
        NodeKind::Iri => "an IRI",
        NodeKind::Lit => "a literal",
        NodeKind::BNode => "a blank node",
        NodeKind::BNodeOrIri => "an IRI or a blank node",
        NodeKind::BNodeOrLit => "a blank node or a literal",
        NodeKind::IriOrLit => "an IRI or a literal",
    }
}

pub(crate) fn to_severity(severity: &ShaclSeverity) -> Severity {
    match severity {
        ShaclSeverity::Warning => Severity::Warning,
        ShaclSeverity::Info | ShaclSeverity::Debug | ShaclSeverity::Trace => Severity::Info,
        ShaclSeverity::Violation | ShaclSeverity::Generic(_) => Severity::Violation,
    }
}
