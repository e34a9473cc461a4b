//! Reads the quads of an RDF document, with the places of its errors.
use super::skolem::Skolemizer;
use super::source::{DocumentSource, ReadPosition};
use super::{Format, LoadOptions};
use oxrdf::{GraphName, Quad};
use oxrdfio::{RdfFormat, RdfParseError, RdfParser, ReaderQuadParser};
use penstock_base::error::{ErrorClass, Finding, GatewayError, Place};
use penstock_store::check_supported;
use std::io::{Chain, Cursor, Read};

/// The maximum size in bytes of JSON-LD that is parsed as a whole. A longer document must have its members in the
/// order of the streaming form (<https://www.w3.org/TR/json-ld11-streaming/>).
const MAX_WHOLE_BYTES: u64 = 4 << 20;
/// The maximum number of bytes that a parser may read before it returns a quad, for example of one long literal.
const MAX_AHEAD_BYTES: u64 = 16 << 20;

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
    quads: ReaderQuadParser<DocumentSource<Chain<Cursor<Vec<u8>>, R>>>,
    position: ReadPosition,
    /// Whether the position is exact, because the parser gets one byte at a time.
    by_byte: bool,
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
        mut text: R,
    ) -> Result<Self, GatewayError> {
        let mut start = Vec::new();
        let mut format = options.format.to_rdf_format();
        let mut max_ahead = MAX_AHEAD_BYTES;
        if options.format == Format::JsonLd {
            max_ahead = MAX_WHOLE_BYTES;
            text.by_ref()
                .take(MAX_WHOLE_BYTES + 1)
                .read_to_end(&mut start)
                .map_err(|error| unreadable_error(&error))?;
            if start.len() as u64 > MAX_WHOLE_BYTES {
                format = Format::streaming_json_ld();
            }
        }
        let position = ReadPosition::default();
        let by_byte = options.format == Format::RdfXml;
        let text = Cursor::new(start).chain(text);
        let text = DocumentSource::new(text, position.clone(), by_byte, max_ahead);
        let all_have_labels = matches!(options.format, Format::NTriples | Format::NQuads);
        let base = options.skolemize.as_ref().map(|base| base.as_str().to_owned());
        Ok(Self {
            quads: build_parser(options, format)?.for_reader(text),
            position,
            by_byte,
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
        let Some(quad) = self.quads.next() else { return Ok(None) };
        let quad = quad.map_err(|error| self.convert_error(error))?;
        self.position.reset_ahead();
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
            .position
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
        let (line, column) = self.position.line_and_column();
        let place = if self.by_byte {
            Place::Line { line, column }
        } else {
            // The parser may have read ahead by up to a buffer.
            Place::Whole
        };
        located_error(Finding { place, message: why.into(), ..Finding::default() })
    }

    fn convert_error(&self, error: RdfParseError) -> GatewayError {
        let error = match error {
            RdfParseError::Io(error) => return unreadable_error(&error),
            RdfParseError::Syntax(error) => error,
        };
        let why = strip_position(&error.to_string());
        match error.location() {
            Some(location) => {
                let (line, column) = (location.start.line + 1, location.start.column + 1);
                located_error(Finding::at_line(line, column, why))
            }
            None => self.error_at_position(why),
        }
    }
}

fn build_parser(options: &LoadOptions, format: RdfFormat) -> Result<RdfParser, GatewayError> {
    let parser = RdfParser::from_format(format).with_default_graph(options.graph.clone());
    match &options.base {
        None => Ok(parser),
        Some(base) => parser.with_base_iri(base.as_str()).map_err(|error| {
            GatewayError::new(
                ErrorClass::Malformed,
                format!("the base {base} is not an absolute IRI: {error}"),
            )
        }),
    }
}

fn located_error(finding: Finding) -> GatewayError {
    GatewayError::with_findings(
        ErrorClass::Malformed,
        "the document cannot be loaded",
        vec![finding],
    )
}

/// Returns the message of an error without the leading position, which is reported separately.
fn strip_position(text: &str) -> String {
    let rest = text.strip_prefix("Parser error at line ").and_then(|text| text.split_once(": "));
    rest.map_or(text, |(_, rest)| rest).to_owned()
}

fn unreadable_error(error: &std::io::Error) -> GatewayError {
    GatewayError::new(ErrorClass::Malformed, format!("the document cannot be read: {error}"))
}
