//! Scans the bytes of a document before the parser reads them, for what would take more stack or memory than the gateway
//! has: the parsers and the terms that they return nest as deep as the document does.
use crate::format::Format;
use crate::number::without_exponent;
use crate::turtle::TurtleScanner;
use crate::xml_scan::XmlScanner;

/// How deep a document may nest: brackets and triple terms of Turtle and its relatives, elements of RDF/XML, objects and
/// arrays of JSON-LD.
pub const MAX_NESTING: usize = 128;

/// What a document has too much of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub(crate) struct Excess {
    pub(crate) line: u64,
    pub(crate) column: u64,
    pub(crate) reason: String,
}

/// Scans a document byte by byte.
#[derive(Debug)]
pub(crate) enum Scanner {
    Turtle(TurtleScanner),
    Xml(XmlScanner),
    Json(JsonScanner),
}

/// Counts the open objects and arrays of JSON.
#[derive(Debug, Default)]
pub(crate) struct JsonScanner {
    in_string: bool,
    is_escaped: bool,
    depth: usize,
    /// The string that is open, as long as it may be a number.
    number: Option<String>,
    /// Whether a string was a number in the form of a double.
    has_double_text: bool,
}

/// The maximum length of a string that is looked at. Longer numbers count as such.
const MAX_NUMBER_BYTES: usize = 1_000;

impl Scanner {
    pub(crate) fn new(format: Format) -> Self {
        match format {
            Format::RdfXml => Self::Xml(XmlScanner::default()),
            Format::JsonLd => Self::Json(JsonScanner::default()),
            Format::Turtle | Format::NTriples | Format::NQuads | Format::TriG => {
                Self::Turtle(TurtleScanner::default())
            }
        }
    }

    /// Returns the line and column of the first blank node, which only Turtle and its relatives have.
    pub(crate) fn first_blank_node(&self) -> Option<(u64, u64)> {
        match self {
            Self::Turtle(scanner) => scanner.first_blank_node(),
            Self::Xml(_) | Self::Json(_) => None,
        }
    }

    /// Returns whether a string of JSON was a number in the form of a double.
    pub(crate) fn has_double_text(&self) -> bool {
        matches!(self, Self::Json(JsonScanner { has_double_text: true, .. }))
    }

    /// Processes the byte at a line and column. Returns how many bytes the parser adds there, for an entity of XML.
    pub(crate) fn process_byte(&mut self, byte: u8, place: (u64, u64)) -> Result<u64, Excess> {
        let (line, column) = place;
        let excess = |reason| Excess { line, column, reason };
        let mut expanded = 0;
        let depth = match self {
            Self::Turtle(scanner) => {
                scanner.process_byte(byte, place);
                scanner.depth()
            }
            Self::Json(scanner) => {
                scanner.process_byte(byte);
                scanner.depth
            }
            Self::Xml(scanner) => {
                expanded = scanner.process_byte(byte).map_err(excess)?;
                scanner.depth()
            }
        };
        if depth > MAX_NESTING {
            return Err(excess(format!(
                "the document nests more than {MAX_NESTING} levels deep; write nested parts beside each other"
            )));
        }
        Ok(expanded)
    }
}

impl JsonScanner {
    fn process_byte(&mut self, byte: u8) {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.in_string => {
                self.is_escaped = true;
                self.number = None;
            }
            b'"' => self.process_quote(),
            _ if self.in_string => self.process_character(byte),
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }

    fn process_quote(&mut self) {
        self.in_string = !self.in_string;
        if self.in_string {
            self.number = Some(String::new());
        } else if let Some(text) = self.number.take() {
            self.has_double_text |= without_exponent(&text).is_some();
        }
    }

    fn process_character(&mut self, byte: u8) {
        let Some(text) = &mut self.number else { return };
        if !(byte.is_ascii_digit() || b"+-.E".contains(&byte)) {
            self.number = None;
        } else if text.len() < MAX_NUMBER_BYTES {
            text.push(char::from(byte));
        } else {
            self.has_double_text = true;
        }
    }
}
