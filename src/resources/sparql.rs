//! SPARQL queries and updates as forms. The handlers read them, so these types only describe them.
use crate::body::refuse_null;
use schemars::JsonSchema;

/// A SPARQL query as a form.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(rename_all = "kebab-case", transform = refuse_null)]
pub struct SparqlQueryForm {
    /// The query.
    pub query: String,
    /// The graphs of the default graph, in place of `FROM`.
    pub default_graph_uri: Option<Vec<String>>,
    /// The named graphs, in place of `FROM NAMED`.
    pub named_graph_uri: Option<Vec<String>>,
}

/// A SPARQL update as a form.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(rename_all = "kebab-case", transform = refuse_null)]
pub struct SparqlUpdateForm {
    /// The update.
    pub update: String,
    /// The graphs of the default graph of `WHERE`, in place of `USING`.
    pub using_graph_uri: Option<Vec<String>>,
    /// The named graphs of `WHERE`, in place of `USING NAMED`.
    pub using_named_graph_uri: Option<Vec<String>>,
    /// Replace each blank node that would be stored by an IRI that begins with this one.
    pub skolemize: Option<String>,
    /// Change objects of Business Objects that refuse what violates their shapes.
    pub bypass: Option<bool>,
}
