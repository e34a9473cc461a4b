//! Rewrites shapes graphs when a namespace moves to another base.
//!
//! Shapes name objects (`sh:targetNode`), classes and properties. If those of the namespace kept their IRIs, the shapes
//! would silently match nothing any more. The rewritten text counts only if it has the triples of the old one with the
//! new IRIs; otherwise the move is refused before it begins.
use super::{StoredGraph, TextFormat, compile_text, iter_rows, store_graph};
use crate::catalogue::RebasePreview;
use crate::namespace::moving::rebase::Rebase;
use crate::rdf::Format;
use oxrdf::{BlankNode, GraphName, NamedOrBlankNode, Quad, Term};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::next_version;
use penstock_base::table::{AsJson, Row};
use penstock_base::time;
use penstock_rdf::{QuadReader, ReadOptions};
use penstock_store::{Error, Read, Transaction};
use std::collections::HashMap;

/// The account that a rewritten shapes graph names as that of its last change.
const UPDATED_BY: &str = "local";

/// Rewrites all shapes graphs without storing them.
pub(crate) fn preview_rebase(read: &dyn Read, rebase: &Rebase) -> Result<RebasePreview, Error> {
    let mut preview = RebasePreview::default();
    for row in iter_rows(read) {
        let row = row?;
        let name = row.key()?;
        match row.value() {
            Ok(stored) => match rewrite_text(&stored, rebase) {
                Ok(Some(_)) => preview.warnings.push(format!(
                    "the shapes graph {name:?} names IRIs of the namespace; its text gets the new ones"
                )),
                Ok(None) => {}
                Err(why) => preview.refused.push(format!("the shapes graph {name:?} {why}")),
            },
            Err(why) => preview.refused.push(format!(
                "the shapes graph {name:?} cannot be read, so its IRIs are unknown ({why}); replace it first"
            )),
        }
    }
    Ok(preview)
}

/// Rewrites and stores the shapes graph, as its next version. Returns whether this changes it.
pub(crate) fn rewrite_shapes(
    transaction: &mut Transaction<'_>,
    rebase: &Rebase,
    row: &Row<String, AsJson<StoredGraph>>,
) -> Result<bool, GatewayError> {
    let mut stored = row.value()?;
    let internal = |why: String| GatewayError::new(ErrorClass::Internal, why);
    let Some(text) = rewrite_text(&stored, rebase).map_err(internal)? else { return Ok(false) };
    stored.text = text;
    stored.metadata.version = next_version(transaction, Some(stored.metadata.version))?;
    stored.metadata.updated_at = time::now_rfc3339();
    UPDATED_BY.clone_into(&mut stored.metadata.updated_by);
    store_graph(transaction, &stored)?;
    Ok(true)
}

/// Returns the rewritten text of a shapes graph; `None` if it stays.
///
/// # Errors
/// Returns the reason why it cannot be rewritten as text.
fn rewrite_text(graph: &StoredGraph, rebase: &Rebase) -> Result<Option<String>, String> {
    let is_quoted =
        matches!(graph.metadata.format, TextFormat::Rdf(Format::RdfXml | Format::JsonLd));
    let begin = if is_quoted { ['"', '\''] } else { ['<', '<'] };
    let rewritten = rebase.rewrite_text(&graph.text, |c| begin.contains(&c));
    let TextFormat::Rdf(format) = graph.metadata.format else {
        if rewritten == graph.text || compile_text(&graph.text, graph.metadata.format).is_err() {
            return Ok(None);
        }
        let compiled = compile_text(&rewritten, graph.metadata.format);
        compiled.map_err(|_| describe_unwritable(rebase.from().identifier_prefix().as_str()))?;
        return Ok(Some(rewritten));
    };
    // Nothing uses a text that cannot be parsed.
    let Ok(before) = parse_quads(&graph.text, format) else { return Ok(None) };
    for iri in before.iter().flat_map(list_iris) {
        rebase.check(iri).map_err(|why| format!("names an IRI that cannot be moved: {why}"))?;
    }
    let expected: Vec<Quad> = before
        .iter()
        .map(|quad| rebase.rewrite_quad(quad).unwrap_or_else(|| quad.clone()))
        .collect();
    if expected == before {
        return Ok(None);
    }
    if parse_quads(&rewritten, format).is_ok_and(|after| after == expected) {
        return Ok(Some(rewritten));
    }
    let moved = before.iter().flat_map(list_iris).find(|iri| rebase.rewrite(iri).is_some());
    Err(describe_unwritable(moved.unwrap_or_default()))
}

fn describe_unwritable(iri: &str) -> String {
    format!(
        "names <{iri}> in a form that cannot be rewritten, or has a literal with such a value; \
         write the IRIs of the namespace in full, or with a prefix whose IRI begins with the base, and save it"
    )
}

fn list_iris(quad: &Quad) -> impl Iterator<Item = &str> {
    let subject = match &quad.subject {
        NamedOrBlankNode::NamedNode(iri) => Some(iri.as_str()),
        NamedOrBlankNode::BlankNode(_) => None,
    };
    let object = match &quad.object {
        Term::NamedNode(iri) => Some(iri.as_str()),
        _ => None,
    };
    let graph = match &quad.graph_name {
        GraphName::NamedNode(iri) => Some(iri.as_str()),
        _ => None,
    };
    [subject, Some(quad.predicate.as_str()), object, graph].into_iter().flatten()
}

/// Parses the quads of a text. Its blank nodes get names by the order in which they occur, so that two texts can be
/// compared.
fn parse_quads(text: &str, format: Format) -> Result<Vec<Quad>, String> {
    let mut names = HashMap::new();
    let mut rename = |node: &mut BlankNode| {
        let number = names.len();
        let name = names.entry(node.clone()).or_insert_with(|| format!("b{number}"));
        *node = BlankNode::new_unchecked(name.as_str());
    };
    let mut quads = Vec::new();
    let mut reader = QuadReader::new(text.as_bytes(), format, &ReadOptions::default())
        .map_err(|error| error.to_string())?;
    while let Some(mut quad) = reader.next_quad().map_err(|error| error.to_string())? {
        if let NamedOrBlankNode::BlankNode(node) = &mut quad.subject {
            rename(node);
        }
        if let Term::BlankNode(node) = &mut quad.object {
            rename(node);
        }
        if let GraphName::BlankNode(node) = &mut quad.graph_name {
            rename(node);
        }
        quads.push(quad);
    }
    Ok(quads)
}
