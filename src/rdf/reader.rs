//! Reads the quads of an RDF document in bounded memory, with the places of its errors.
use crate::format::Format;
use crate::number::without_exponent;
use crate::scan::Excess;
use crate::source::{DocumentSource, ReadPosition};
use oxrdf::vocab::xsd;
use oxrdf::{GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use oxrdfio::{RdfFormat, RdfParseError, RdfParser, ReaderQuadParser};
use penstock_base::error::{Finding, GatewayError, Place};
use penstock_base::unwind::run_on_stack;
use std::collections::VecDeque;
use std::io::{self, Chain, Cursor, Read};

/// The maximum size in bytes of JSON-LD that is parsed as a whole. A longer document must have its members in the
/// order of the streaming form (<https://www.w3.org/TR/json-ld11-streaming/>).
const MAX_WHOLE_BYTES: u64 = 4 << 20;
/// The maximum number of bytes that a parser may read before it returns a quad, for example of one long literal.
const MAX_AHEAD_BYTES: u64 = 16 << 20;
/// The stack for the parser of JSON-LD, which recurses: enough for [`MAX_NESTING`](crate::MAX_NESTING) levels without
/// optimization. Only pages that are used take memory.
const JSON_LD_STACK_BYTES: usize = 32 << 20;
/// The quads that are parsed on one such stack, and the bytes of their terms.
const JSON_LD_BATCH_QUADS: usize = 1_000;
const JSON_LD_BATCH_BYTES: usize = 1 << 20;
/// The maximum length of an IRI in bytes. With a prefix, a document of that many bytes has it many times.
pub const MAX_IRI_BYTES: usize = 1 << 16;

/// How to read a document.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The base of relative IRIs.
    pub base: Option<NamedNode>,
    /// The graph of triples that name none.
    pub graph: GraphName,
}

/// Why a document cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The text could not be read, or not in bounded memory.
    #[error("the document cannot be read: {0}")]
    Unreadable(io::Error),
    /// The document is not of the format, or exceeds a limit.
    #[error("{0}")]
    Malformed(Finding),
    /// The machine has no memory for the stack of the parser. Read the document again later.
    #[error("{0}")]
    NoStack(GatewayError),
    /// The base is no absolute IRI.
    #[error("the base {base} is not an absolute IRI: {reason}")]
    Base {
        /// The base.
        base: NamedNode,
        /// Why it is none.
        reason: String,
    },
}

/// Reads a document quad by quad.
pub struct QuadReader<R: Read> {
    quads: ReaderQuadParser<DocumentSource<Chain<Cursor<Vec<u8>>, R>>>,
    position: ReadPosition,
    format: Format,
    /// The quads of JSON-LD that are parsed already, and the error after them.
    parsed: VecDeque<Result<Quad, ReadError>>,
    /// The stack for the parser of JSON-LD.
    stack_bytes: usize,
}

impl<R: Read> QuadReader<R> {
    /// Begins to read a document.
    ///
    /// # Errors
    /// If the base is not absolute, or the beginning of the text cannot be read.
    pub fn new(mut text: R, format: Format, options: &ReadOptions) -> Result<Self, ReadError> {
        let mut start = Vec::new();
        let mut syntax = format.to_rdf_format();
        let mut max_ahead = MAX_AHEAD_BYTES;
        if format == Format::JsonLd {
            max_ahead = MAX_WHOLE_BYTES;
            text.by_ref()
                .take(MAX_WHOLE_BYTES + 1)
                .read_to_end(&mut start)
                .map_err(ReadError::Unreadable)?;
            if start.len() as u64 > MAX_WHOLE_BYTES {
                syntax = Format::streaming_json_ld();
            }
        }
        let position = ReadPosition::new(format);
        let text = Cursor::new(start).chain(text);
        let by_byte = format == Format::RdfXml;
        let text = DocumentSource::new(text, position.clone(), by_byte, max_ahead);
        let quads = build_parser(options, syntax)?.for_reader(text);
        let (parsed, stack_bytes) = (VecDeque::new(), JSON_LD_STACK_BYTES);
        Ok(Self { quads, position, format, parsed, stack_bytes })
    }

    /// Returns the next quad.
    ///
    /// # Errors
    /// If the text cannot be read, is not of the format or exceeds a limit. Then there is nothing more to read.
    pub fn next_quad(&mut self) -> Result<Option<Quad>, ReadError> {
        if self.format != Format::JsonLd {
            return self.parse_quad();
        }
        if self.parsed.is_empty() {
            run_on_stack(self.stack_bytes, || self.parse_batch()).map_err(ReadError::NoStack)?;
        }
        self.parsed.pop_front().transpose()
    }

    fn parse_batch(&mut self) {
        let mut bytes = 0;
        while self.parsed.len() < JSON_LD_BATCH_QUADS && bytes < JSON_LD_BATCH_BYTES {
            let Some(parsed) = self.parse_quad().transpose() else { return };
            bytes += parsed.as_ref().map_or(0, count_term_bytes);
            let is_error = parsed.is_err();
            self.parsed.push_back(parsed);
            if is_error {
                return;
            }
        }
    }

    fn parse_quad(&mut self) -> Result<Option<Quad>, ReadError> {
        let mut quad = self.quads.next().transpose().map_err(|error| self.convert_error(error))?;
        self.position.reset_ahead();
        if self.format == Format::JsonLd
            && !self.position.has_double_text()
            && let Some(quad) = &mut quad
        {
            expand_decimal(&mut quad.object);
        }
        if quad.as_ref().is_some_and(has_long_iri) {
            let message = format!("an IRI has more than {MAX_IRI_BYTES} bytes");
            let place = self.place();
            return Err(ReadError::Malformed(Finding { place, message, ..Finding::default() }));
        }
        Ok(quad)
    }

    /// Returns the place of the parser, if it is known: parsers read ahead by up to a buffer.
    pub fn place(&self) -> Place {
        let (line, column) = self.position.line_and_column();
        // The parser of RDF/XML gets one byte at a time.
        if self.format == Format::RdfXml { Place::Line { line, column } } else { Place::Whole }
    }

    /// Returns the line and column of the first blank node of a text in Turtle, `TriG`, N-Triples or N-Quads.
    pub fn first_blank_node(&self) -> Option<(u64, u64)> {
        self.position.first_blank_node()
    }

    fn convert_error(&self, error: RdfParseError) -> ReadError {
        let error = match error {
            RdfParseError::Io(error) => {
                let excess = error.get_ref().and_then(|cause| cause.downcast_ref::<Excess>());
                return match excess {
                    Some(Excess { line, column, reason }) => {
                        ReadError::Malformed(Finding::at_line(*line, *column, reason.clone()))
                    }
                    None => ReadError::Unreadable(error),
                };
            }
            RdfParseError::Syntax(error) => error,
        };
        let message = describe_syntax_error(&error.to_string());
        ReadError::Malformed(match error.location() {
            Some(location) => {
                let (line, column) = (location.start.line + 1, location.start.column + 1);
                Finding::at_line(line, column, message)
            }
            None => Finding { place: self.place(), message, ..Finding::default() },
        })
    }
}

/// Writes a decimal without an exponent. A JSON-LD processor gives each number with a fraction the form of a double (JSON-LD
/// 1.1 API, 8.6), also if its datatype is `xsd:decimal`, which has no exponent. The digits are those of the document. If the
/// document has a string of that form, it may be the text of a literal, which stays as it is.
fn expand_decimal(object: &mut Term) {
    let Term::Literal(literal) = object else { return };
    if literal.datatype() != xsd::DECIMAL {
        return;
    }
    if let Some(text) = without_exponent(literal.value()) {
        *literal = Literal::new_typed_literal(text, xsd::DECIMAL);
    }
}

/// Returns the length of the terms of a quad in bytes, without that of the graph's name.
pub fn count_term_bytes(quad: &Quad) -> usize {
    let subject = match &quad.subject {
        NamedOrBlankNode::NamedNode(iri) => iri.as_str().len(),
        NamedOrBlankNode::BlankNode(node) => node.as_str().len(),
    };
    let object = match &quad.object {
        Term::NamedNode(iri) => iri.as_str().len(),
        Term::BlankNode(node) => node.as_str().len(),
        Term::Literal(literal) => literal.value().len() + literal.datatype().as_str().len(),
        // A term of RDF 1.2, which nobody here accepts.
        Term::Triple(_) => 0,
    };
    subject + quad.predicate.as_str().len() + object
}

fn has_long_iri(quad: &Quad) -> bool {
    let is_long = |iri: &NamedNode| iri.as_str().len() > MAX_IRI_BYTES;
    let is_long_object = match &quad.object {
        Term::NamedNode(iri) => is_long(iri),
        Term::Literal(literal) => literal.datatype().as_str().len() > MAX_IRI_BYTES,
        _ => false,
    };
    is_long_object
        || is_long(&quad.predicate)
        || matches!(&quad.subject, NamedOrBlankNode::NamedNode(iri) if is_long(iri))
        || matches!(&quad.graph_name, GraphName::NamedNode(iri) if is_long(iri))
}

fn build_parser(options: &ReadOptions, format: RdfFormat) -> Result<RdfParser, ReadError> {
    let parser = RdfParser::from_format(format).with_default_graph(options.graph.clone());
    match &options.base {
        None => Ok(parser),
        Some(base) => parser
            .with_base_iri(base.as_str())
            .map_err(|error| ReadError::Base { base: base.clone(), reason: error.to_string() }),
    }
}

/// Returns the message of an error without the leading position, which is reported separately.
fn describe_syntax_error(text: &str) -> String {
    let starts = ["Parser error at line ", "Parser error between line "];
    let rest = starts.iter().find_map(|start| text.strip_prefix(start)?.split_once(": "));
    let message = rest.map_or(text, |(_, rest)| rest);
    if message.contains("LoadDocumentCallback") {
        return "it has a remote JSON-LD context: nothing is ever fetched; write the context into the document"
            .to_owned();
    }
    message.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn read(text: &str, format: Format) -> Result<usize, ReadError> {
        let mut reader = QuadReader::new(text.as_bytes(), format, &ReadOptions::default())?;
        let mut quads = 0;
        while reader.next_quad()?.is_some() {
            quads += 1;
        }
        Ok(quads)
    }

    fn refusal(text: &str, format: Format) -> String {
        match read(text, format).unwrap_err() {
            ReadError::Malformed(finding) => finding.to_string(),
            error => error.to_string(),
        }
    }

    #[test]
    fn documents_that_nest_too_deep_are_refused() {
        let levels = 6_000;
        let triples =
            format!("{}<urn:o>{} .", "<urn:s> <urn:p> <<( ".repeat(levels), " )>>".repeat(levels));
        let xml = format!(
            "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='urn:e:'>{}",
            "<e:A><e:p>".repeat(levels)
        );
        for (text, format) in [
            (triples.as_str(), Format::Turtle),
            (&triples, Format::NTriples),
            (&triples, Format::NQuads),
            (&triples, Format::TriG),
            (&format!("<urn:s> <urn:p> {}", "[ <urn:p> ".repeat(levels)), Format::Turtle),
            (&format!("<urn:s> <urn:p> {}", "( ".repeat(levels)), Format::Turtle),
            (&"{\"@graph\":[".repeat(levels), Format::JsonLd),
            (&xml, Format::RdfXml),
        ] {
            let error = refusal(text, format);
            assert!(error.contains("nests more than 128 levels deep"), "{format:?}: {error}");
            assert!(error.contains("line 1"), "{format:?}: {error}");
        }
    }

    #[test]
    fn decimals_of_json_ld_have_no_exponent() {
        let values = "12.5, 0.05, -0.125, 1.10, 100.5e1, 1e-3, 7, -1.5e3, 2.5e22, \
                      0.1234567890123456789012345678901234567890";
        let json = format!(
            r#"{{"@context": {{"v": {{"@id": "urn:v", "@type": "http://www.w3.org/2001/XMLSchema#decimal"}}}},
                "@id": "urn:s", "v": [{values}]}}"#
        );
        let mut reader =
            QuadReader::new(json.as_bytes(), Format::JsonLd, &ReadOptions::default()).unwrap();
        let mut found = Vec::new();
        while let Some(quad) = reader.next_quad().unwrap() {
            let Term::Literal(literal) = quad.object else { panic!("{quad}") };
            assert_eq!(literal.datatype(), xsd::DECIMAL);
            found.push(literal.value().to_owned());
        }
        let expected = [
            "12.5",
            "0.05",
            "-0.125",
            "1.1",
            "1005",
            "0.001",
            "7",
            "-1500",
            "25000000000000000000000",
            "0.123456789012345678901234567890123456789",
        ];
        assert_eq!(found, expected);
        // The text of a literal is kept, also if it is no decimal. Other strings make no difference.
        for (value, expected) in
            [(r#""1.5E7""#, "1.5E7"), ("12.5, \"E\", \"\\u00fc\", \"1.50E7\"", "12.5")]
        {
            let json = format!(
                r#"{{"@context": {{"v": {{"@id": "urn:v", "@type": "http://www.w3.org/2001/XMLSchema#decimal"}}}},
                    "@id": "urn:s", "v": [{value}]}}"#
            );
            let mut reader =
                QuadReader::new(json.as_bytes(), Format::JsonLd, &ReadOptions::default()).unwrap();
            let object = reader.next_quad().unwrap().unwrap().object.to_string();
            assert!(object.starts_with(&format!("{expected:?}")), "{object}");
        }
    }

    #[test]
    fn without_memory_for_the_stack_of_the_parser_the_document_can_be_read_later() {
        let json = r#"{"@id": "urn:s", "urn:p": "o"}"#;
        let mut reader =
            QuadReader::new(json.as_bytes(), Format::JsonLd, &ReadOptions::default()).unwrap();
        reader.stack_bytes = usize::MAX - (1 << 20);
        match reader.next_quad().unwrap_err() {
            ReadError::NoStack(error) => assert_eq!(error.class.http_status(), 503),
            error => panic!("{error}"),
        }
    }

    #[test]
    fn documents_within_the_limit_are_read() {
        let levels = 60;
        let lists = format!("<urn:s> <urn:p> {}1{} .", "( ".repeat(levels), " )".repeat(levels));
        assert_eq!(read(&lists, Format::Turtle).unwrap(), 2 * levels + 1);
        let json = format!(
            "{}{{\"@id\": \"urn:o\"}}{}",
            "{\"@id\": \"urn:s\", \"urn:p\": ".repeat(levels),
            "}".repeat(levels)
        );
        assert_eq!(read(&json, Format::JsonLd).unwrap(), levels);
        let json = format!("{}{}", "{\"@graph\":[".repeat(64), "]}".repeat(64));
        assert_eq!(read(&json, Format::JsonLd).unwrap(), 0);
    }

    #[test]
    fn entities_that_would_fill_the_memory_are_refused() {
        let begin = "<?xml version=\"1.0\"?><!DOCTYPE rdf:RDF [<!ENTITY a \"aaaaaaaaaa\">";
        let mut nested = begin.to_owned();
        for (entity, of) in "bcdefghijk".chars().zip("abcdefghij".chars()) {
            let value = format!("&{of};").repeat(10);
            write!(nested, "<!ENTITY {entity} \"{value}\">").unwrap();
        }
        let body = |text: &str| {
            format!(
                "]><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"urn:e:\">\
                 <rdf:Description rdf:about=\"urn:s\"><e:p>{text}</e:p></rdf:Description></rdf:RDF>"
            )
        };
        let error = refusal(&format!("{nested}{}", body("&k;")), Format::RdfXml);
        assert!(error.contains("refers to the entity"), "{error}");
        let large = format!("{begin}<!ENTITY b \"{}\">", "b".repeat(1000));
        let error = refusal(&format!("{large}{}", body(&"&b;".repeat(20_000))), Format::RdfXml);
        assert!(error.contains("more than 16 MiB in memory"), "{error}");
        assert_eq!(read(&format!("{begin}{}", body("&a;")), Format::RdfXml).unwrap(), 1);
    }

    #[test]
    fn long_iris_are_refused() {
        let turtle = format!("@prefix p: <urn:{}> . p:a p:b p:c .", "x".repeat(MAX_IRI_BYTES));
        assert!(refusal(&turtle, Format::Turtle).contains("more than 65536 bytes"));
    }

    proptest::proptest! {
        /// Whatever a document holds, reading it ends with quads or an error.
        #[test]
        fn any_document_is_read_or_refused(
            pieces in proptest::collection::vec(
                proptest::sample::select(vec![
                    "<", ">", "<<(", ")>>", "[", "]", "(", ")", "\"", "'''", "\\", "#", "\n", " ", "_:a", "<urn:s>", "{", "}",
                    "<a>", "</a>", "<!--", "-->", "<![CDATA[", "]]>", "<!DOCTYPE a [", "<!ENTITY x \"", "&x;", "\"@id\":",
                    "[[", ".", "1", "é", "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>",
                ]),
                0..200,
            ),
        ) {
            let text = pieces.concat();
            for format in Format::ALL {
                let _ = read(&text, format);
            }
        }
    }
}
