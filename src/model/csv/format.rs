//! How the records of a CSV text are written.
use penstock_base::error::{ErrorClass, GatewayError};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// The character that stands before another one with [`CsvFormat::array_escape`].
const ESCAPE: char = '\\';

/// How the records of a CSV text are written.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CsvFormat {
    /// The ASCII character between two cells.
    pub delimiter: char,
    /// The character between two elements of an array in one cell. Without it, a cell is one element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array_delimiter: Option<char>,
    /// Whether `\` stands before an array delimiter that is part of an element, and before a `\`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub array_escape: bool,
    /// Whether numbers have a comma in place of the decimal point.
    #[serde(default)]
    pub decimal_comma: bool,
}

/// The digests of stored answers have this text, so it changes only with what earlier versions did not have.
impl fmt::Debug for CsvFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut format = f.debug_struct("CsvFormat");
        format
            .field("delimiter", &self.delimiter)
            .field("array_delimiter", &self.array_delimiter)
            .field("decimal_comma", &self.decimal_comma);
        if self.array_escape {
            format.field("array_escape", &self.array_escape);
        }
        format.finish()
    }
}

impl Default for CsvFormat {
    /// Returns the format of RFC 4180.
    fn default() -> Self {
        Self { delimiter: ',', array_delimiter: None, array_escape: false, decimal_comma: false }
    }
}

impl CsvFormat {
    /// Creates a format from the texts of its delimiters: a character, or `tab`.
    ///
    /// # Errors
    /// `ErrorClass::Malformed` if a delimiter is anything else, is used otherwise in CSV, or is not ASCII between cells.
    pub fn new(
        delimiter: Option<&str>,
        array_delimiter: Option<&str>,
        decimal_comma: bool,
    ) -> Result<Self, GatewayError> {
        let delimiter = delimiter.map_or(Ok(','), |text| parse_delimiter("delimiter", text))?;
        if !delimiter.is_ascii() {
            return Err(delimiter_error("delimiter", &delimiter.to_string(), "an ASCII character"));
        }
        let array_delimiter =
            array_delimiter.map(|text| parse_delimiter("arrayDelimiter", text)).transpose()?;
        if array_delimiter == Some(delimiter) {
            let expected = "another character than the delimiter of cells";
            return Err(delimiter_error("arrayDelimiter", &delimiter.to_string(), expected));
        }
        Ok(Self { delimiter, array_delimiter, array_escape: false, decimal_comma })
    }

    /// Returns the format in which `\` stands before array delimiters and `\` in elements.
    ///
    /// # Errors
    /// `ErrorClass::Malformed` without an array delimiter, or if that is `\` itself.
    pub fn with_array_escape(self) -> Result<Self, GatewayError> {
        match self.array_delimiter {
            Some(ESCAPE) => {
                let expected = "another character than the one that stands before it";
                Err(delimiter_error("arrayDelimiter", &ESCAPE.to_string(), expected))
            }
            Some(_) => Ok(Self { array_escape: true, ..self }),
            None => {
                let message =
                    "arrayEscape=true is for the elements of arrays; send arrayDelimiter too";
                Err(GatewayError::new(ErrorClass::Malformed, message))
            }
        }
    }

    /// Returns the format with the delimiter that a line before the header names, as spreadsheets write it (`sep=;`), and the
    /// bytes of that line. Without such a line they are 0.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn read_delimiter_line(self, text: &[u8]) -> Result<(Self, usize), GatewayError> {
        let Some((delimiter, length)) = find_delimiter_line(text) else { return Ok((self, 0)) };
        let array_delimiter = self.array_delimiter.map(String::from);
        let format = Self::new(
            Some(&delimiter.to_string()),
            array_delimiter.as_deref(),
            self.decimal_comma,
        )?;
        Ok((Self { array_escape: self.array_escape, ..format }, length))
    }

    /// Splits the text of an array into those of its elements. Without an array delimiter it is one element.
    pub(super) fn split_array(self, text: &str) -> Vec<Cow<'_, str>> {
        let Some(delimiter) = self.array_delimiter else { return vec![Cow::Borrowed(text)] };
        if !self.array_escape {
            return text.split(delimiter).map(Cow::Borrowed).collect();
        }
        let (mut elements, mut element) = (Vec::new(), String::new());
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            if character == delimiter {
                elements.push(Cow::Owned(std::mem::take(&mut element)));
            } else if character == ESCAPE {
                // At the end it stands for itself.
                element.push(characters.next().unwrap_or(ESCAPE));
            } else {
                element.push(character);
            }
        }
        elements.push(Cow::Owned(element));
        elements
    }

    /// Joins the texts of the elements of an array; `None` if one has the delimiter of others, and nothing stands before it.
    pub(super) fn join_array(self, elements: &[String]) -> Option<String> {
        let Some(delimiter) = self.array_delimiter else {
            return if elements.len() > 1 { None } else { Some(elements.concat()) };
        };
        let mut joined = String::new();
        for (index, element) in elements.iter().enumerate() {
            if index > 0 {
                joined.push(delimiter);
            }
            for character in element.chars() {
                if self.array_escape && (character == delimiter || character == ESCAPE) {
                    joined.push(ESCAPE);
                } else if character == delimiter {
                    return None;
                }
                joined.push(character);
            }
        }
        Some(joined)
    }

    /// Returns the delimiter as the byte that it is in the text.
    pub(super) fn delimiter_byte(self) -> u8 {
        u8::try_from(self.delimiter).unwrap_or(b',')
    }
}

/// Returns the delimiter that the first line of a text names, and the bytes of that line.
fn find_delimiter_line(text: &[u8]) -> Option<(char, usize)> {
    let line = text.split_inclusive(|byte| *byte == b'\n').next()?;
    let kept = line.strip_suffix(b"\n").unwrap_or(line);
    let kept = kept.strip_suffix(b"\r").unwrap_or(kept);
    let inner = kept.strip_prefix(b"\"").and_then(|kept| kept.strip_suffix(b"\""));
    let (name, [delimiter]) = inner.unwrap_or(kept).split_last_chunk()?;
    let names_one = name.eq_ignore_ascii_case(b"sep=")
        && delimiter.is_ascii()
        && !matches!(delimiter, b'"' | b'\r');
    names_one.then(|| (char::from(*delimiter), line.len()))
}

fn parse_delimiter(name: &str, text: &str) -> Result<char, GatewayError> {
    let mut characters = text.chars();
    match (text, characters.next(), characters.next()) {
        ("tab", ..) => Ok('\t'),
        (_, Some(character), None) if !matches!(character, '"' | '\r' | '\n') => Ok(character),
        _ => Err(delimiter_error(name, text, "one character or `tab`, and no quote or line break")),
    }
}

fn delimiter_error(name: &str, text: &str, expected: &str) -> GatewayError {
    let message = format!("the query parameter {name} is {text:?}; it must be {expected}");
    GatewayError::new(ErrorClass::Malformed, message)
}
