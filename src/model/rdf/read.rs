//! Reads the quads of an RDF document for the graph: without blank nodes and terms of RDF 1.2.
use super::Format;
use super::skolem::Skolemizer;
use oxrdf::{GraphName, NamedNode, Quad};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_rdf::{QuadReader, ReadError, ReadOptions};
use penstock_store::check_supported;
use std::io::Read;

/// The parameters of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadOptions {
    /// The format of the document.
    pub format: Format,
    /// The graph for triples that the document assigns to no graph.
    pub graph: GraphName,
    /// The base of relative IRIs.
    pub base: Option<NamedNode>,
    /// The prefix of the IRIs that replace blank nodes. Without it, blank nodes are refused.
    pub skolemize: Option<NamedNode>,
    /// Whether the load may change objects of a Business Object that refuses what violates its shapes.
    pub bypass: bool,
}

/// The rules for a document, which depend on how it was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadRules {
    /// How a client replaces blank nodes by IRIs, for the error that names it.
    pub(super) skolemize_option: &'static str,
    /// The class of the error of a blank node.
    pub(super) blank_node_class: ErrorClass,
    /// Whether the document may name graphs. Otherwise all of its triples are for the graph of the options.
    pub(super) allows_named_graphs: bool,
}

/// Reads a document quad by quad, in bounded memory.
pub(super) struct DocumentReader<'o, R: Read> {
    quads: QuadReader<R>,
    skolem: Skolemizer,
    options: &'o LoadOptions,
    rules: &'o ReadRules,
    /// The number of quads so far.
    count: u64,
}

impl<'o, R: Read> DocumentReader<'o, R> {
    pub(super) fn new(
        options: &'o LoadOptions,
        rules: &'o ReadRules,
        text: R,
    ) -> Result<Self, GatewayError> {
        let read_options = ReadOptions { base: options.base.clone(), graph: options.graph.clone() };
        let quads = QuadReader::new(text, options.format, &read_options);
        let all_have_labels = matches!(options.format, Format::NTriples | Format::NQuads);
        let base = options.skolemize.as_ref().map(|base| base.as_str().to_owned());
        Ok(Self {
            quads: quads.map_err(convert_error)?,
            skolem: Skolemizer::new(base, rules.skolemize_option, all_have_labels),
            options,
            rules,
            count: 0,
        })
    }

    /// Returns the next quad, with its blank nodes replaced.
    ///
    /// # Errors
    /// `ErrorClass::Malformed` for an error in the document, and for a term of RDF 1.2; the class of the rules for a blank node.
    pub(super) fn next_quad(&mut self) -> Result<Option<Quad>, GatewayError> {
        let Some(quad) = self.quads.next_quad().map_err(convert_error)? else { return Ok(None) };
        self.count += 1;
        if !self.rules.allows_named_graphs && quad.graph_name != self.options.graph {
            return Err(self.graph_error(&quad.graph_name));
        }
        check_supported(quad.object.as_ref())
            .map_err(|error| self.error_at_position(format!("in quad {}, {error}", self.count)))?;
        let quad = self.skolem.replace_blank_nodes(quad);
        quad.map(Some).map_err(|why| self.blank_node_error(&why))
    }

    fn graph_error(&self, graph: &GraphName) -> GatewayError {
        let (number, why) =
            (self.count, "this request writes one graph, so its document must name no other");
        self.error_at_position(format!("quad {number} is in the graph {graph}; {why}"))
    }

    /// Creates the error for a quad that is refused because of a blank node.
    fn blank_node_error(&self, why: &str) -> GatewayError {
        let why = format!("in quad {}, {why}", self.count);
        let has_places = !matches!(self.options.format, Format::RdfXml | Format::JsonLd);
        // Without the option the first blank node is refused, so its position is that of the quad.
        let place = self
            .quads
            .first_blank_node()
            .filter(|_| has_places && self.options.skolemize.is_none());
        let error = match place {
            Some((line, column)) => located_error(Finding::at_line(line, column, why)),
            None => self.error_at_position(why),
        };
        GatewayError { class: self.rules.blank_node_class, ..error }
    }

    /// Creates an error in the document at the position of the parser.
    fn error_at_position(&self, why: impl Into<String>) -> GatewayError {
        located_error(Finding {
            place: self.quads.place(),
            message: why.into(),
            ..Finding::default()
        })
    }
}

fn convert_error(error: ReadError) -> GatewayError {
    match error {
        ReadError::Malformed(finding) => located_error(finding),
        ReadError::NoStack(error) => error,
        error => GatewayError::new(ErrorClass::Malformed, error.to_string()),
    }
}

fn located_error(finding: Finding) -> GatewayError {
    GatewayError::with_findings(
        ErrorClass::Malformed,
        "the document cannot be loaded",
        vec![finding],
    )
}
