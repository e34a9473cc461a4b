//! How the records of a CSV text are written.
use penstock_base::error::{ErrorClass, GatewayError};
use serde::{Deserialize, Serialize};

/// How the records of a CSV text are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CsvFormat {
    /// The ASCII character between two cells.
    pub delimiter: char,
    /// The character between two elements of an array in one cell. Without it, a cell is one element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array_delimiter: Option<char>,
    /// Whether numbers have a comma in place of the decimal point.
    #[serde(default)]
    pub decimal_comma: bool,
}

impl Default for CsvFormat {
    /// Returns the format of RFC 4180.
    fn default() -> Self {
        Self { delimiter: ',', array_delimiter: None, decimal_comma: false }
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
        Ok(Self { delimiter, array_delimiter, decimal_comma })
    }

    /// Returns the delimiter as the byte that it is in the text.
    pub(super) fn delimiter_byte(self) -> u8 {
        u8::try_from(self.delimiter).unwrap_or(b',')
    }
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
