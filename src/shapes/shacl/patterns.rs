//! The regular expressions of shapes, which rudof does not match.
use super::check::SHACL;
use crate::patterns::Pattern;
use oxrdf::{Literal, NamedNode, NamedOrBlankNode, Term, Triple};
use penstock_base::error::Finding;
use shacl::ir::{IRComponent, IRSchema};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The compiled regular expressions, by text and flags.
pub(super) type Patterns = Arc<HashMap<(String, String), Arc<Pattern>>>;

/// Compiles the regular expressions of all shapes.
pub(super) fn compile_patterns(schema: &IRSchema) -> Result<Patterns, Vec<Finding>> {
    let mut patterns = HashMap::new();
    for (_, shape) in schema.iter() {
        for component in shape.components() {
            let IRComponent::Pattern(pattern) = component else { continue };
            let (text, flags) = pattern_key(pattern);
            let compiled = Pattern::compile(&text, &flags).map_err(|why| {
                vec![Finding::whole(format!("sh:pattern in {} {why}", shape.id()))]
            })?;
            patterns.insert((text, flags), Arc::new(compiled));
        }
    }
    Ok(Arc::new(patterns))
}

/// The flag of a text that matches itself. rudof compiles every `sh:pattern` in the syntax of the crate `regex`, and does
/// not use the result here. With this flag it compiles every text.
const QUOTED: &str = "q";

/// Appends [`QUOTED`] to the flags of each `sh:pattern`.
pub(super) fn quote_patterns(triples: &[Triple]) -> impl Iterator<Item = Triple> {
    let is_property = |triple: &Triple, name| {
        triple.predicate.as_str().strip_prefix(SHACL).is_some_and(|found| found == name)
    };
    let with_flags: HashSet<&NamedOrBlankNode> = triples
        .iter()
        .filter(|triple| is_property(triple, "flags"))
        .map(|triple| &triple.subject)
        .collect();
    triples.iter().flat_map(move |triple| {
        let mut triple = triple.clone();
        let mut added = None;
        if let Term::Literal(flags) = &triple.object
            && is_property(&triple, "flags")
        {
            let flags = format!("{}{QUOTED}", flags.value());
            triple.object = Literal::new_simple_literal(flags).into();
        } else if is_property(&triple, "pattern") && !with_flags.contains(&triple.subject) {
            let predicate = NamedNode::new_unchecked(format!("{SHACL}flags"));
            let flags = Literal::new_simple_literal(QUOTED);
            added = Some(Triple::new(triple.subject.clone(), predicate, flags));
        }
        added.into_iter().chain([triple])
    })
}

/// Returns the text and the flags of a regular expression, without [`QUOTED`].
pub(super) fn pattern_key(pattern: &shacl::ir::components::Pattern) -> (String, String) {
    let flags = pattern.flags().and_then(|flags| flags.strip_suffix(QUOTED)).unwrap_or_default();
    (pattern.pattern().clone(), flags.to_owned())
}
