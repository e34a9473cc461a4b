//! Shapes graphs that users define: documents. Those that validate objects are compiled in memory ([`CompiledGraphs`]).
//!
//! A shapes graph is stored as the text that the client sent. Business Objects name the ones that validate their objects
//! (`validation`). `rebase` rewrites the IRIs of a namespace that moves.

mod rebase;

pub(crate) use rebase::{preview_rebase, rewrite_shapes};

use crate::change_feed::change_watched_number;
use crate::rdf::Format;
use penstock_base::collections;
use penstock_base::definition::{self, MAX_NAME_CHARACTERS};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::table::{AsJson, Row, Table};
use penstock_resources::business_object::Validation;
use penstock_resources::definitions::DefinitionKind;
pub use penstock_shapes::MAX_GRAPH_BYTES;
use penstock_shapes::{ShapesFormat, ShapesGraph};
use penstock_store::{Error, Format as StoreFormat, Read, Transaction};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;

/// The shapes graphs, by name.
pub const SHAPES_GRAPHS: Table<String, AsJson<StoredGraph>> =
    Table::new(collections::SHAPES_GRAPHS);

/// The maximum number of shapes graphs.
pub const MAX_GRAPHS: usize = 100;

/// The maximum size of all texts together. Compiled, a text takes many times its length in memory.
pub const MAX_TOTAL_BYTES: usize = 2 << 20;

/// The number of documents per read; each has up to a megabyte.
const DOCUMENTS_PER_READ: usize = 4;

/// The maximum number of existing names that an error lists.
const MAX_NAMED: usize = 50;

/// The format of the text of a shapes graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TextFormat {
    /// SHACL, as RDF.
    Rdf(Format),
    /// `ShEx` in its compact syntax.
    ShexC,
}

impl TextFormat {
    /// All formats.
    pub const ALL: [Self; 7] = [
        Self::Rdf(Format::Turtle),
        Self::Rdf(Format::NTriples),
        Self::Rdf(Format::NQuads),
        Self::Rdf(Format::TriG),
        Self::Rdf(Format::RdfXml),
        Self::Rdf(Format::JsonLd),
        Self::ShexC,
    ];

    /// Returns the media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Rdf(format) => format.media_type(),
            Self::ShexC => "text/shex",
        }
    }

    /// Returns the format with this media type.
    pub fn from_media_type(media_type: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.media_type() == media_type)
    }

    fn to_shapes_format(self) -> ShapesFormat {
        match self {
            Self::Rdf(format) => ShapesFormat::Rdf(format),
            Self::ShexC => ShapesFormat::ShexC,
        }
    }
}

impl From<TextFormat> for String {
    fn from(format: TextFormat) -> Self {
        format.media_type().to_owned()
    }
}

impl TryFrom<String> for TextFormat {
    type Error = String;

    fn try_from(media_type: String) -> Result<Self, String> {
        Self::from_media_type(&media_type)
            .ok_or_else(|| format!("this version does not know the media type {media_type:?}"))
    }
}

/// What is known about a stored shapes graph, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphMetadata {
    /// Its name, as Business Objects write it.
    pub name: String,
    /// The format of its text.
    pub format: TextFormat,
    /// The version: a number that each change raises by 1 or more. The `ETag` is this number in quotes.
    pub version: u64,
    /// The time of its creation (RFC 3339, UTC).
    pub created_at: String,
    /// The time of its last change (RFC 3339, UTC).
    pub updated_at: String,
    /// The account that changed it last: its id, or `local`.
    pub updated_by: String,
}

impl GraphMetadata {
    /// Returns a text that every change of the shapes graph changes.
    pub fn fingerprint(&self) -> String {
        format!("{} {}", self.created_at, self.version)
    }
}

/// A stored shapes graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredGraph {
    /// What is known about it.
    #[serde(flatten)]
    pub metadata: GraphMetadata,
    /// The text that the client sent.
    pub text: String,
}

/// A shapes graph that a client sends, checked.
#[derive(Debug)]
pub struct NewGraph {
    pub(crate) name: String,
    pub(crate) format: TextFormat,
    pub(crate) text: String,
}

impl NewGraph {
    /// Reads the text of a shapes graph, and checks that it compiles.
    ///
    /// # Errors
    /// - `ErrorClass::Invalid` for a name that is not allowed, and for a text that is not UTF-8 or cannot be used, with
    ///   the line and column where they are known
    /// - `ErrorClass::TooLarge` for more than [`MAX_GRAPH_BYTES`]
    pub fn check(name: &str, text: &[u8], format: TextFormat) -> Result<Self, GatewayError> {
        check_name(name).map_err(|why| GatewayError::new(ErrorClass::Invalid, why))?;
        if text.len() > MAX_GRAPH_BYTES {
            return Err(GatewayError::new(
                ErrorClass::TooLarge,
                format!(
                    "the shapes graph has {} bytes, and at most {MAX_GRAPH_BYTES} are allowed; divide it into several",
                    text.len()
                ),
            ));
        }
        let text = decode_utf8(text)?.to_owned();
        compile_text(&text, format)?;
        Ok(Self { name: name.to_owned(), format, text })
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Compiles the text of a shapes graph.
///
/// # Errors
/// As [`ShapesGraph::read`].
pub(crate) fn compile_text(text: &str, format: TextFormat) -> Result<ShapesGraph, GatewayError> {
    ShapesGraph::read(text, format.to_shapes_format())
}

fn decode_utf8(text: &[u8]) -> Result<&str, GatewayError> {
    std::str::from_utf8(text).map_err(|error| {
        let before = String::from_utf8_lossy(text.get(..error.valid_up_to()).unwrap_or_default());
        let line = 1 + before.matches('\n').count() as u64;
        let column = 1 + before.rsplit('\n').next().map_or(0, |line| line.chars().count()) as u64;
        let message = "the text is not UTF-8 here; send it in UTF-8";
        GatewayError::with_findings(
            ErrorClass::Invalid,
            "the shapes graph cannot be used",
            vec![Finding::at_line(line, column, message)],
        )
    })
}

/// Checks the name of a shapes graph.
///
/// # Errors
/// Returns the reason why the name is not valid.
pub fn check_name(name: &str) -> Result<(), String> {
    definition::check_name(DefinitionKind::Shapes, name, MAX_NAME_CHARACTERS, &['/'])
}

/// Compiled shapes graphs, by the digest of their format and text.
#[derive(Debug, Default)]
pub(crate) struct CompiledGraphs(HashMap<[u8; 32], Arc<ShapesGraph>>);

impl CompiledGraphs {
    /// Returns the version of a stored shapes graph, and the graph. Compiles it unless it is here or among the earlier ones.
    ///
    /// # Errors
    /// `ErrorClass::Damaged` if this version cannot use it.
    pub(crate) fn read(
        &mut self,
        from: &dyn Read,
        name: &str,
        earlier: &Self,
    ) -> Result<(u64, Arc<ShapesGraph>), GatewayError> {
        let damaged = |why: &str| {
            let detail =
                format!("this version cannot use the shapes graph {name:?}: {why}; replace it");
            GatewayError::new(ErrorClass::Damaged, detail)
        };
        let stored =
            SHAPES_GRAPHS.get_readable(from, name)?.ok_or_else(|| damaged("it cannot be read"))?;
        let StoredGraph { metadata, text } = stored;
        let digest = Sha256::new()
            .chain_update(metadata.format.media_type())
            .chain_update([0])
            .chain_update(&text)
            .finalize()
            .into();
        let known = self.0.get(&digest).or_else(|| earlier.0.get(&digest)).cloned();
        let compiled = match known {
            Some(known) => known,
            None => compile_text(&text, metadata.format)
                .map(Arc::new)
                .map_err(|error| damaged(&error.to_string()))?,
        };
        self.0.insert(digest, Arc::clone(&compiled));
        Ok((metadata.version, compiled))
    }
}

/// Iterates over all stored shapes graphs.
pub(crate) fn iter_rows(
    read: &dyn Read,
) -> impl Iterator<Item = Result<Row<String, AsJson<StoredGraph>>, Error>> {
    SHAPES_GRAPHS.scan().pages(move || read, DOCUMENTS_PER_READ)
}

/// Stores a shapes graph.
pub(crate) fn store_graph(
    transaction: &mut Transaction<'_>,
    graph: &StoredGraph,
) -> Result<(), Error> {
    // An older version would ignore it, and store what it forbids.
    transaction.require_format(StoreFormat::V3);
    change_watched_number(transaction)?;
    SHAPES_GRAPHS.put(transaction, &graph.metadata.name, graph)
}

/// Checks that all shapes graphs that a definition names exist.
///
/// # Errors
/// `ErrorClass::Invalid` with a finding for each unknown name.
pub(crate) fn check_exist(
    read: &dyn Read,
    validation: Option<&Validation>,
) -> Result<(), GatewayError> {
    let mut findings = Vec::new();
    for (index, name) in validation.iter().flat_map(|validation| &validation.shapes).enumerate() {
        if !SHAPES_GRAPHS.contains(read, name)? {
            let message = format!("there is no shapes graph {name:?}");
            findings.push(Finding::at_pointer(format!("/validation/shapes/{index}"), message));
        }
    }
    if findings.is_empty() {
        return Ok(());
    }
    let mut known = Vec::new();
    for row in iter_rows(read) {
        known.push(format!("{:?}", row?.key()?));
    }
    let more = if known.len() > MAX_NAMED { " and more" } else { "" };
    known.truncate(MAX_NAMED);
    let known = if known.is_empty() {
        "no shapes graph is defined; define one with PUT /api/v1/shapes/{name}".to_owned()
    } else {
        format!("the shapes graphs are {}{more}", known.join(", "))
    };
    for finding in &mut findings {
        finding.message = format!("{}; {known}", finding.message);
    }
    Err(GatewayError::with_findings(
        ErrorClass::Invalid,
        "`validation` names shapes graphs that do not exist",
        findings,
    ))
}

#[cfg(test)]
mod tests;
