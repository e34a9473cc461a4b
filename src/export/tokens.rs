//! Reads JSON (RFC 8259) token by token from a stream, and hashes the bytes of a part of it.
//!
//! Memory use: one buffer, one short string, and one bool for each open bracket.
use penstock_base::error::Finding;
use sha2::{Digest, Sha256};
use std::io::{self, Read};

const BUFFER_BYTES: usize = 64 << 10;
/// The maximum bytes of a string or number in memory. No string or number of the metadata is longer.
const MAX_TOKEN_BYTES: usize = 64 << 10;
/// The maximum nesting depth.
const MAX_DEPTH: usize = 1 << 20;

/// The reason why a file is not valid.
#[derive(Debug)]
pub(super) enum ParseError {
    /// It could not be read.
    Unreadable(io::Error),
    /// An unexpected token.
    Unexpected { at: u64, what: String },
    /// The metadata does not match the data.
    Mismatch(Vec<Finding>),
}

impl ParseError {
    pub(super) fn unexpected_value(at: u64, expected: &str, found: &str) -> Self {
        let found: String = found.chars().take(40).collect();
        let what = if found.is_empty() {
            format!("expected {expected}, found the end of the file")
        } else {
            format!("expected {expected}, found `{found}`")
        };
        Self::Unexpected { at, what }
    }
}

impl From<io::Error> for ParseError {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

/// A tokenizer of a JSON stream.
pub(super) struct Tokenizer<R> {
    source: R,
    buffer: Vec<u8>,
    position: usize,
    /// The offset of the buffer in the stream.
    buffer_offset: u64,
    hash: Option<(Sha256, usize)>,
    /// Whether a line break is white space.
    skips_line_breaks: bool,
}

impl<R: Read> Tokenizer<R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            position: 0,
            buffer_offset: 0,
            hash: None,
            skips_line_breaks: true,
        }
    }

    /// Returns a tokenizer of values on lines, none of which contains a line break.
    pub(super) fn of_lines(source: R) -> Self {
        Self { skips_line_breaks: false, ..Self::new(source) }
    }

    /// Returns the offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.buffer_offset + self.position as u64
    }

    /// Skips white space and returns the next byte without consuming it.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, ParseError> {
        loop {
            match self.peek_byte()? {
                Some(b' ' | b'\t' | b'\r') => self.position += 1,
                Some(b'\n') if self.skips_line_breaks => self.position += 1,
                next => return Ok(next),
            }
        }
    }

    /// Consumes this byte without skipping white space before it.
    pub(super) fn expect_exact(&mut self, expected: u8, why: &str) -> Result<(), ParseError> {
        if self.peek_byte()? == Some(expected) {
            self.position += 1;
            return Ok(());
        }
        Err(ParseError::Unexpected {
            at: self.offset(),
            what: format!("{why}, found {}", self.describe_next()?),
        })
    }

    /// Skips white space and consumes this byte.
    pub(super) fn expect_token(&mut self, expected: u8) -> Result<(), ParseError> {
        if self.peek()? == Some(expected) {
            self.position += 1;
            return Ok(());
        }
        Err(self.unexpected_token(&format!("`{}`", char::from(expected)))?)
    }

    /// Consumes `"name":` and the white space after it.
    pub(super) fn expect_member(&mut self, name: &str) -> Result<(), ParseError> {
        self.peek()?;
        let at = self.offset();
        let found = self.read_string()?;
        if found != name {
            return Err(ParseError::unexpected_value(at, &format!("`{name}`"), &found));
        }
        self.expect_token(b':')?;
        self.peek().map(|_| ())
    }

    /// Reads a string of limited length and unescapes it.
    pub(super) fn read_string(&mut self) -> Result<String, ParseError> {
        if self.peek()? != Some(b'"') {
            return Err(self.unexpected_token("a string")?);
        }
        let at = self.offset();
        let mut raw = Vec::new();
        self.skip_string(&mut |byte| {
            if raw.len() < MAX_TOKEN_BYTES {
                raw.push(byte);
            }
        })?;
        serde_json::from_slice(&raw).map_err(|error| ParseError::Unexpected {
            at,
            what: format!("this string cannot be read: {error}"),
        })
    }

    /// Reads a number as text.
    pub(super) fn read_number(&mut self) -> Result<String, ParseError> {
        self.peek()?;
        let mut digits = String::new();
        self.skip_number(&mut |byte| {
            if digits.len() < MAX_TOKEN_BYTES {
                digits.push(char::from(byte));
            }
        })?;
        Ok(digits)
    }

    /// Returns whether the stream ends here, without white space.
    pub(super) fn is_at_end(&mut self) -> Result<bool, ParseError> {
        Ok(self.peek_byte()?.is_none())
    }

    /// Checks that the stream ends here, without trailing white space.
    pub(super) fn expect_end(&mut self) -> Result<(), ParseError> {
        match self.peek_byte()? {
            None => Ok(()),
            Some(_) => Err(ParseError::Unexpected {
                at: self.offset(),
                what: format!("expected the end of the file, found {}", self.describe_next()?),
            }),
        }
    }

    /// Runs `read` and hashes the bytes that it consumes, from the next byte on.
    pub(super) fn read_hashed<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<(T, Vec<u8>), ParseError> {
        self.hash = Some((Sha256::new(), self.position));
        let value = read(self)?;
        let (mut hash, from) = self.hash.take().expect("nothing in `read` ends the hash");
        hash.update(self.buffer.get(from..self.position).unwrap_or_default());
        Ok((value, hash.finalize().to_vec()))
    }

    /// Skips one complete value of any type.
    pub(super) fn skip_value(&mut self) -> Result<(), ParseError> {
        let mut open: Vec<bool> = Vec::new(); // true: an object
        loop {
            match self.peek()? {
                Some(bracket @ (b'{' | b'[')) => {
                    self.position += 1;
                    if open.len() == MAX_DEPTH {
                        return Err(self.unexpected_token("less nesting")?);
                    }
                    open.push(bracket == b'{');
                    let close = if bracket == b'{' { b'}' } else { b']' };
                    if self.peek()? != Some(close) {
                        if bracket == b'{' {
                            self.skip_name()?;
                        }
                        continue;
                    }
                }
                Some(b'"') => self.skip_string(&mut |_| ())?,
                Some(b'-' | b'0'..=b'9') => self.skip_number(&mut |_| ())?,
                Some(b't') => self.skip_literal("true")?,
                Some(b'f') => self.skip_literal("false")?,
                Some(b'n') => self.skip_literal("null")?,
                _ => return Err(self.unexpected_token("a value")?),
            }
            loop {
                let Some(&object) = open.last() else { return Ok(()) };
                if self.peek()? == Some(b',') {
                    self.position += 1;
                    if object {
                        self.skip_name()?;
                    }
                    break;
                }
                self.expect_token(if object { b'}' } else { b']' })?;
                open.pop();
            }
        }
    }

    fn skip_name(&mut self) -> Result<(), ParseError> {
        if self.peek()? != Some(b'"') {
            return Err(self.unexpected_token("the name of a member")?);
        }
        self.skip_string(&mut |_| ())?;
        self.expect_token(b':')
    }

    fn skip_literal(&mut self, word: &str) -> Result<(), ParseError> {
        for byte in word.bytes() {
            if self.peek_byte()? != Some(byte) {
                return Err(self.unexpected_token(word)?);
            }
            self.position += 1;
        }
        Ok(())
    }

    /// Consumes a string and passes each byte to `each`, including the quotes.
    fn skip_string(&mut self, each: &mut dyn FnMut(u8)) -> Result<(), ParseError> {
        self.take_byte(each)?;
        loop {
            match self.peek_byte()? {
                Some(b'"') => return self.take_byte(each).map(|_| ()),
                Some(b'\\') => {
                    self.take_byte(each)?;
                    match self.peek_byte()? {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                            self.take_byte(each)?;
                        }
                        Some(b'u') => {
                            self.take_byte(each)?;
                            for _ in 0..4 {
                                if !self.peek_byte()?.is_some_and(|b| b.is_ascii_hexdigit()) {
                                    return Err(self.unexpected_token("four hexadecimal digits")?);
                                }
                                self.take_byte(each)?;
                            }
                        }
                        _ => return Err(self.unexpected_token("a known escape")?),
                    }
                }
                Some(0x20..=0x7f) => self.take_byte(each).map(|_| ())?,
                Some(lead @ 0xc2..=0xf4) => {
                    let at = self.offset();
                    let mut character = vec![lead];
                    self.take_byte(each)?;
                    let more = if lead < 0xe0 {
                        1
                    } else if lead < 0xf0 {
                        2
                    } else {
                        3
                    };
                    for _ in 0..more {
                        character.extend(self.take_byte(each)?);
                    }
                    if std::str::from_utf8(&character).is_err() {
                        return Err(ParseError::Unexpected {
                            at,
                            what: "this is not UTF-8".to_owned(),
                        });
                    }
                }
                _ => return Err(self.unexpected_token("a character of a string")?),
            }
        }
    }

    fn skip_number(&mut self, each: &mut dyn FnMut(u8)) -> Result<(), ParseError> {
        if self.peek_byte()? == Some(b'-') {
            self.take_byte(each)?;
        }
        if self.peek_byte()? == Some(b'0') {
            self.take_byte(each)?;
        } else {
            self.skip_digits(each)?;
        }
        if self.peek_byte()? == Some(b'.') {
            self.take_byte(each)?;
            self.skip_digits(each)?;
        }
        if let Some(b'e' | b'E') = self.peek_byte()? {
            self.take_byte(each)?;
            if let Some(b'+' | b'-') = self.peek_byte()? {
                self.take_byte(each)?;
            }
            self.skip_digits(each)?;
        }
        Ok(())
    }

    fn skip_digits(&mut self, each: &mut dyn FnMut(u8)) -> Result<(), ParseError> {
        if !self.peek_byte()?.is_some_and(|b| b.is_ascii_digit()) {
            return Err(self.unexpected_token("a digit")?);
        }
        while self.peek_byte()?.is_some_and(|b| b.is_ascii_digit()) {
            self.take_byte(each)?;
        }
        Ok(())
    }

    fn take_byte(&mut self, each: &mut dyn FnMut(u8)) -> Result<Option<u8>, ParseError> {
        let byte = self.peek_byte()?;
        if let Some(byte) = byte {
            each(byte);
            self.position += 1;
        }
        Ok(byte)
    }

    /// Returns the next byte without consuming it.
    fn peek_byte(&mut self) -> Result<Option<u8>, ParseError> {
        if self.position == self.buffer.len() {
            if let Some((hash, from)) = &mut self.hash {
                hash.update(self.buffer.get(*from..).unwrap_or_default());
                *from = 0;
            }
            self.buffer_offset += self.buffer.len() as u64;
            self.position = 0;
            self.buffer.clear();
            self.source.by_ref().take(BUFFER_BYTES as u64).read_to_end(&mut self.buffer)?;
        }
        Ok(self.buffer.get(self.position).copied())
    }

    /// Returns the error that `what` was expected instead of the next byte.
    ///
    /// # Errors
    /// If the next byte cannot be read.
    pub(super) fn unexpected_token(&mut self, what: &str) -> Result<ParseError, ParseError> {
        let (at, found) = (self.offset(), self.describe_next()?);
        Ok(ParseError::Unexpected { at, what: format!("expected {what}, found {found}") })
    }

    /// Describes the next byte.
    fn describe_next(&mut self) -> Result<String, ParseError> {
        Ok(match self.peek_byte()? {
            None => "the end of the file".to_owned(),
            Some(byte @ 0x21..=0x7e) => format!("`{}`", char::from(byte)),
            Some(byte) => format!("byte 0x{byte:02x}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

        /// Generates texts from fragments of JSON, so that many are valid and many are nearly valid.
        #[test]
        fn a_value_is_accepted_exactly_if_serde_json_accepts_it(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "{", "}", "[", "]", ",", ":", "\"a\"", "\"", "\\", "\\n", "\\u00e9", "\\u12", "ü", "0", "1",
                    "-", ".", "e", "E+", "true", "false", "null", "nul", " ", "\t", "\n", "\u{1}", "[]", "{}",
                    "\"k\":", "1,", "[1,", "]}",
                ]),
                0..8,
            )
        ) {
            let text = parts.concat();
            let mut tokens = Tokenizer::new(text.as_bytes());
            let taken = tokens.skip_value().and_then(|()| tokens.peek());
            let is_accepted = matches!(taken, Ok(None));
            prop_assert_eq!(is_accepted, serde_json::from_str::<IgnoredAny>(&text).is_ok(), "{}", text);
        }
    }
}
