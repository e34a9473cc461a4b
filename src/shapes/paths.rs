//! Property paths (SHACL, 2.3.1).
use crate::data::to_named_node;
use crate::scope::Properties;
use rudof_iri::IriS;
use rudof_rdf::rdf_core::SHACLPath;
use shacl::ir::{IRComponent, IRSchema};
use shacl::types::Target;

/// Writes a path as SPARQL does (SPARQL 1.1, 9.1). A single property is its IRI without brackets.
pub(crate) fn format_path(path: &SHACLPath) -> String {
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
        SHACLPath::ZeroOrMore { path } => format!("{}*", format_repeated(path)),
        SHACLPath::OneOrMore { path } => format!("{}+", format_repeated(path)),
        SHACLPath::ZeroOrOne { path } => format!("{}?", format_repeated(path)),
    }
}

/// Writes a path before `*`, `+` or `?`, which bind tighter than `^` and do not follow each other.
fn format_repeated(path: &SHACLPath) -> String {
    match path {
        SHACLPath::Predicate { .. }
        | SHACLPath::Alternative { .. }
        | SHACLPath::Sequence { .. } => format_part(path),
        other => format!("({})", format_part(other)),
    }
}

/// Reads a path that [`format_path`] wrote.
pub(crate) fn parse_path(text: &str) -> Option<SHACLPath> {
    if !text.starts_with(['<', '(', '^']) {
        return Some(SHACLPath::iri(IriS::new_unchecked(text)));
    }
    let (path, rest) = parse_part(text)?;
    rest.is_empty().then_some(path)
}

/// Reads a path, and returns what follows it.
fn parse_part(text: &str) -> Option<(SHACLPath, &str)> {
    let (mut path, mut rest) = if let Some(text) = text.strip_prefix('<') {
        let (iri, rest) = text.split_once('>')?;
        (SHACLPath::iri(IriS::new_unchecked(iri)), rest)
    } else if let Some(text) = text.strip_prefix('^') {
        let (path, rest) = parse_part(text)?;
        return Some((SHACLPath::Inverse { path: Box::new(path) }, rest));
    } else {
        parse_group(text.strip_prefix('(')?)?
    };
    while let Some(sign) = rest.chars().next() {
        let inner = Box::new(path.clone());
        path = match sign {
            '*' => SHACLPath::ZeroOrMore { path: inner },
            '+' => SHACLPath::OneOrMore { path: inner },
            '?' => SHACLPath::ZeroOrOne { path: inner },
            _ => break,
        };
        rest = rest.get(1..)?;
    }
    Some((path, rest))
}

/// Reads the parts of a sequence or an alternative, up to its closing parenthesis.
fn parse_group(text: &str) -> Option<(SHACLPath, &str)> {
    let (first, mut rest) = parse_part(text)?;
    let (mut paths, mut separator) = (vec![first], None);
    while let Some(found) = rest.chars().next().filter(|sign| matches!(sign, '/' | '|')) {
        if *separator.get_or_insert(found) != found {
            return None;
        }
        let (path, after) = parse_part(rest.get(1..)?)?;
        paths.push(path);
        rest = after;
    }
    let rest = rest.strip_prefix(')')?;
    let path = match separator {
        Some('|') => SHACLPath::Alternative { paths },
        Some(_) => SHACLPath::Sequence { paths },
        None => paths.pop()?,
    };
    Some((path, rest))
}

/// Returns the properties that the shapes read.
pub(crate) fn collect_properties(schema: &IRSchema) -> Properties {
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
