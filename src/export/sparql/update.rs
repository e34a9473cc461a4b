//! The updates that stage and apply an export.
//!
//! The graph `<graph>:state` has these triples, whose predicates all begin with `urn:penstock:export:`.
//!
//! | subject | predicate | object |
//! |---|---|---|
//! | `<graph>` | `sequence`, `export-id`, `target` | the last export that was applied, and the bucketName of its target |
//! | an exported object | `holds` | itself, and each subject that is nested in it |
//! | a staging graph | `staged-for` | the sequence of its export |
//!
//! The graph `<graph>:<export id>:state` has what each object of the export holds, and of `<graph>:<export id>`:
//!
//! | predicate | object |
//! |---|---|
//! | `written` | positions of the spool file up to which the lines are staged |
//! | `replaces` | an object that the export contains or removes, unless it is full |
//! | `loose` | while it is applied: a subject that only replaced objects held |
//!
//! Each operation changes nothing once the state has the sequence of its export or a higher one, and has the same effect
//! when it runs again. What an object held stays in the state until its old triples are removed. So an export that was
//! applied in part is completed by the next attempt, also from other staging graphs.
use super::chunks::Chunk;
use crate::graph_lines::VOCABULARY as V;
use penstock_resources::export::ExportKind;
use std::fmt::Write as _;

/// The graphs of one export, in angle brackets.
#[derive(Debug, Clone)]
pub(super) struct ExportGraphs {
    graph: String,
    state: String,
    staging: String,
    staging_state: String,
    sequence: u64,
}

impl ExportGraphs {
    /// Returns the graphs of an export into the graph with this IRI. `staging` names its staging graphs.
    pub(super) fn new(graph: &str, staging: &str, sequence: u64) -> Self {
        Self {
            graph: format!("<{graph}>"),
            state: format!("<{graph}:state>"),
            staging: format!("<{graph}:{staging}>"),
            staging_state: format!("<{graph}:{staging}:state>"),
            sequence,
        }
    }

    /// Returns graphs that no export has.
    pub(super) fn of_connection_test() -> Self {
        Self::new(&format!("{V}connection-test"), "none", 0)
    }

    /// Returns the staging graph, in angle brackets.
    pub(super) fn staging(&self) -> &str {
        &self.staging
    }

    /// Returns the query for [`super::state::StoreState`].
    pub(super) fn query_state(&self) -> String {
        let Self { graph, state, staging, staging_state, .. } = self;
        format!(
            "SELECT ?p ?o ?written WHERE {{ {{ GRAPH {state} {{ {graph} ?p ?o }} }} UNION {{ \
             SELECT (MAX(?position) AS ?written) WHERE {{ GRAPH {staging_state} {{ \
             {staging} <{V}written> ?position }} }} }} }}"
        )
    }

    /// Returns the condition that neither this export nor a later one was applied.
    fn is_not_applied(&self) -> String {
        let Self { graph, state, sequence, .. } = self;
        format!(
            "FILTER NOT EXISTS {{ GRAPH {state} {{ {graph} <{V}sequence> ?applied \
             FILTER(?applied >= {sequence}) }} }}"
        )
    }

    /// Returns the operations that drop the staging graphs of earlier exports and register those of this one. Its lines
    /// begin at this position of its file.
    pub(super) fn prepare(&self, begin: u64) -> String {
        let Self { state, staging, staging_state, sequence, .. } = self;
        let is_not_applied = self.is_not_applied();
        let stale =
            format!("GRAPH {state} {{ ?staging <{V}staged-for> ?of }} FILTER(?of < {sequence})");
        let content = "GRAPH ?staging { ?s ?p ?o }";
        [
            // Only what was empty before: in a store without conflict detection, a request that runs at the same time can
            // restore what the next operation drops. The export after this one drops that.
            format!(
                "DELETE {{ GRAPH {state} {{ ?staging <{V}staged-for> ?of }} }} WHERE {{ {stale} \
                 FILTER NOT EXISTS {{ {content} }} }}"
            ),
            format!("DELETE {{ {content} }} WHERE {{ {stale} {content} }}"),
            format!(
                "INSERT {{ GRAPH {state} {{ {staging} <{V}staged-for> {sequence} . \
                 {staging_state} <{V}staged-for> {sequence} }} \
                 GRAPH {staging_state} {{ {staging} <{V}written> {begin} }} }} WHERE {{ {is_not_applied} }}"
            ),
        ]
        .join(" ;\n")
    }

    /// Appends the operations that stage a chunk, if everything up to its position is staged. The position is written
    /// after the chunk, so that a part of a chunk never counts.
    pub(super) fn append_stage(&self, from: u64, chunk: &Chunk, text: &mut String) {
        let Self { staging, staging_state, .. } = self;
        let Chunk { triples, state, end, .. } = chunk;
        let is_next = format!("GRAPH {staging_state} {{ {staging} <{V}written> {from} }}");
        text.push_str("INSERT {");
        for (graph, triples) in [(staging, triples), (staging_state, state)] {
            if !triples.is_empty() {
                let _ = write!(text, " GRAPH {graph} {{\n{triples}}}");
            }
        }
        let _ = write!(
            text,
            " }} WHERE {{ {is_next} }} ;\nINSERT {{ GRAPH {staging_state} {{ {staging} <{V}written> {end} }} }} \
             WHERE {{ {is_next} }}"
        );
    }

    /// Returns the request that applies the export, once everything up to the end of its file is staged.
    pub(super) fn apply(
        &self,
        end: u64,
        kind: ExportKind,
        export_id: &str,
        target: &str,
    ) -> String {
        let Self { graph, state, staging, staging_state, sequence } = self;
        let is_due = format!(
            "GRAPH {staging_state} {{ {staging} <{V}written> {end} }} {}",
            self.is_not_applied()
        );
        let mut operations = match kind {
            ExportKind::Full => self.replace_everything(&is_due),
            ExportKind::Incremental | ExportKind::Deleted => self.replace_objects(&is_due),
        };
        operations.push(format!(
            "INSERT {{ GRAPH {state} {{ ?object <{V}holds> ?held }} }} WHERE {{ {is_due} \
             GRAPH {staging_state} {{ ?object <{V}holds> ?held }} }}"
        ));
        operations.push(format!(
            "DELETE {{ GRAPH {state} {{ {graph} <{V}sequence> ?last . {graph} <{V}export-id> ?id . \
             {graph} <{V}target> ?target }} }} \
             INSERT {{ GRAPH {state} {{ {graph} <{V}sequence> {sequence} . {graph} <{V}export-id> \"{export_id}\" . \
             {graph} <{V}target> \"{target}\" }} }} \
             WHERE {{ {is_due} OPTIONAL {{ GRAPH {state} {{ {graph} <{V}sequence> ?last }} }} \
             OPTIONAL {{ GRAPH {state} {{ {graph} <{V}export-id> ?id }} }} \
             OPTIONAL {{ GRAPH {state} {{ {graph} <{V}target> ?target }} }} }}"
        ));
        operations.join(" ;\n")
    }

    /// Returns the operations that make the graph equal to the staged one. What stays the same is not touched.
    fn replace_everything(&self, is_due: &str) -> Vec<String> {
        let Self { graph, state, staging, staging_state, .. } = self;
        vec![
            format!(
                "DELETE {{ GRAPH {graph} {{ ?s ?p ?o }} }} WHERE {{ {is_due} GRAPH {graph} {{ ?s ?p ?o }} \
                 FILTER NOT EXISTS {{ GRAPH {staging} {{ ?s ?p ?o }} }} }}"
            ),
            self.insert_staged(is_due),
            format!(
                "DELETE {{ GRAPH {state} {{ ?object <{V}holds> ?held }} }} WHERE {{ {is_due} \
                 GRAPH {state} {{ ?object <{V}holds> ?held }} \
                 FILTER NOT EXISTS {{ GRAPH {staging_state} {{ ?object <{V}holds> ?held }} }} }}"
            ),
        ]
    }

    /// Returns the operations that replace or remove objects, with the subjects that no other object holds.
    fn replace_objects(&self, is_due: &str) -> Vec<String> {
        let Self { graph, state, staging, staging_state, .. } = self;
        let replaced = format!("GRAPH {staging_state} {{ {staging} <{V}replaces> ?object }}");
        let holds = format!("GRAPH {state} {{ ?object <{V}holds> ?held }}");
        let loose = format!("GRAPH {staging_state} {{ {staging} <{V}loose> ?held }}");
        vec![
            format!("INSERT {{ {loose} }} WHERE {{ {is_due} {replaced} {holds} }}"),
            format!(
                "DELETE {{ {loose} }} WHERE {{ {is_due} {loose} {holds} \
                 FILTER NOT EXISTS {{ {replaced} }} }}"
            ),
            format!(
                "DELETE {{ GRAPH {graph} {{ ?held ?p ?o }} }} WHERE {{ {is_due} {loose} \
                 GRAPH {graph} {{ ?held ?p ?o }} \
                 FILTER NOT EXISTS {{ GRAPH {staging} {{ ?held ?p ?o }} }} }}"
            ),
            self.insert_staged(is_due),
            format!(
                "DELETE {{ {holds} }} WHERE {{ {is_due} {replaced} {holds} \
                 FILTER NOT EXISTS {{ GRAPH {staging_state} {{ ?object <{V}holds> ?held }} }} }}"
            ),
        ]
    }

    fn insert_staged(&self, is_due: &str) -> String {
        let Self { graph, staging, .. } = self;
        format!(
            "INSERT {{ GRAPH {graph} {{ ?s ?p ?o }} }} WHERE {{ {is_due} GRAPH {staging} {{ ?s ?p ?o }} }}"
        )
    }

    /// Returns the request that drops the staging graphs. That with the positions is the first, so that an export is not
    /// applied from what is left. They stay registered: a request that arrives late can restore a part of them in a store
    /// without conflict detection, and the next export drops that too. What arrives later still, the cleanup drops.
    pub(super) fn drop_staging(&self) -> String {
        let Self { staging, staging_state, .. } = self;
        format!("DROP SILENT GRAPH {staging_state} ;\nDROP SILENT GRAPH {staging}")
    }
}
