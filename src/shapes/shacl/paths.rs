//! Property paths (SHACL, 2.3.1).
use super::to_named_node;
use crate::graph::Properties;
use rudof_iri::IriS;
use rudof_rdf::rdf_core::SHACLPath;
use shacl::ir::{IRComponent, IRSchema};
use shacl::types::Target;

/// Writes a path as SPARQL does (SPARQL 1.1, 9.1). A single property is its IRI without brackets.
pub(super) fn format_path(path: &SHACLPath) -> String {
    match path {
        SHACLPath::Predicate { pred } => pred.as_str().to_owned(),
        other => format_part(other),
    }
}

fn format_part(path: &SHACLPath) -> String {
    let join = |paths: &[SHACLPath], separator: &str| {
        let parts: Vec<String> = paths.iter().map(format_part).collect();
        format!("({})", parts.join(separator))
    };
    match path {
        SHACLPath::Predicate { pred } => format!("<{}>", pred.as_str()),
        SHACLPath::Alternative { paths } => join(paths, "|"),
        SHACLPath::Sequence { paths } => join(paths, "/"),
        SHACLPath::Inverse { path } => format!("^{}", format_part(path)),
        SHACLPath::ZeroOrMore { path } => format!("{}*", format_part(path)),
        SHACLPath::OneOrMore { path } => format!("{}+", format_part(path)),
        SHACLPath::ZeroOrOne { path } => format!("{}?", format_part(path)),
    }
}

/// Returns the properties that the shapes read.
pub(super) fn collect_properties(schema: &IRSchema) -> Properties {
    let mut properties = Properties::default();
    for (_, shape) in schema.iter() {
        if let Some(path) = shape.path() {
            add_path(path, false, &mut properties);
        }
        for target in shape.targets() {
            match target {
                Target::SubjectsOf(property) => add(property, false, &mut properties),
                Target::ObjectsOf(property) => add(property, true, &mut properties),
                _ => {}
            }
        }
        for component in shape.components() {
            match component {
                IRComponent::Equals(equals) => add(equals.iri(), false, &mut properties),
                IRComponent::Disjoint(disjoint) => add(disjoint.iri(), false, &mut properties),
                IRComponent::LessThan(less) => add(less.iri(), false, &mut properties),
                IRComponent::LessThanOrEquals(less) => add(less.iri(), false, &mut properties),
                _ => {}
            }
        }
    }
    properties
}

fn add_path(path: &SHACLPath, is_inverse: bool, properties: &mut Properties) {
    match path {
        SHACLPath::Predicate { pred } => add(pred, is_inverse, properties),
        SHACLPath::Alternative { paths } | SHACLPath::Sequence { paths } => {
            for path in paths {
                add_path(path, is_inverse, properties);
            }
        }
        SHACLPath::Inverse { path } => add_path(path, !is_inverse, properties),
        SHACLPath::ZeroOrMore { path }
        | SHACLPath::OneOrMore { path }
        | SHACLPath::ZeroOrOne { path } => add_path(path, is_inverse, properties),
    }
}

fn add(property: &IriS, is_inverse: bool, properties: &mut Properties) {
    let properties = if is_inverse { &mut properties.inverse } else { &mut properties.forward };
    properties.insert(to_named_node(property));
}
