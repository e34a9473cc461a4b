//! Reads JSON (RFC 8259) token by token from a stream, and hashes the bytes of a part of it.
//!
//! Memory use: one buffer, one short string, and one bool for each open bracket.
use penstock_base::fault::Finding;
use sha2::{Digest, Sha256};
use std::io::{self, Read};

const BUFFER: usize = 64 << 10;
/// The maximum bytes of a string or number in memory. The metadata has no longer ones.
const LONGEST: usize = 64 << 10;
/// The maximum nesting depth.
const DEEPEST: usize = 1 << 20;

/// The reason why a file is not valid.
#[derive(Debug)]
pub(super) enum Broken {
    /// It could not be read.
    Unreadable(io::Error),
    /// An unexpected token.
    Wrong { at: u64, what: String },
    /// The metadata does not match the data.
    Untrue(Vec<Finding>),
}

impl Broken {
    pub(super) fn wrong(at: u64, expected: &str, found: &str) -> Self {
        let found: String = found.chars().take(40).collect();
        let what = if found.is_empty() {
            format!("expected {expected}, found the end of the file")
        } else {
            format!("expected {expected}, found `{found}`")
        };
        Self::Wrong { at, what }
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

/// A tokenizer of a JSON stream.
pub(super) struct Tokens<R> {
    source: R,
    buffer: Vec<u8>,
    next: usize,
    /// The offset of the buffer in the stream.
    before: u64,
    hash: Option<(Sha256, usize)>,
}

impl<R: Read> Tokens<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), next: 0, before: 0, hash: None }
    }

    /// Returns the offset of the next byte.
    pub(super) fn at(&self) -> u64 {
        self.before + self.next as u64
    }

    /// Skips white space and returns the next byte without consuming it.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, Broken> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte()? {
            self.next += 1;
        }
        self.byte()
    }

    /// Consumes this byte without skipping white space before it.
    pub(super) fn exact(&mut self, expected: u8, why: &str) -> Result<(), Broken> {
        if self.byte()? == Some(expected) {
            self.next += 1;
            return Ok(());
        }
        Err(Broken::Wrong { at: self.at(), what: format!("{why}, found {}", self.shown()?) })
    }

    /// Skips white space and consumes this byte.
    pub(super) fn token(&mut self, expected: u8) -> Result<(), Broken> {
        if self.peek()? == Some(expected) {
            self.next += 1;
            return Ok(());
        }
        Err(self.expected(&format!("`{}`", char::from(expected)))?)
    }

    /// Consumes `"name":` and the white space after it.
    pub(super) fn member(&mut self, name: &str) -> Result<(), Broken> {
        self.peek()?;
        let at = self.at();
        let found = self.string()?;
        if found != name {
            return Err(Broken::wrong(at, &format!("`{name}`"), &found));
        }
        self.token(b':')?;
        self.peek().map(|_| ())
    }

    /// Reads a string of limited length and unescapes it.
    pub(super) fn string(&mut self) -> Result<String, Broken> {
        if self.peek()? != Some(b'"') {
            return Err(self.expected("a string")?);
        }
        let at = self.at();
        let mut raw = Vec::new();
        self.skip_string(&mut |byte| {
            if raw.len() < LONGEST {
                raw.push(byte);
            }
        })?;
        serde_json::from_slice(&raw).map_err(|error| Broken::Wrong {
            at,
            what: format!("this string cannot be read: {error}"),
        })
    }

    /// Reads a number as text.
    pub(super) fn number(&mut self) -> Result<String, Broken> {
        self.peek()?;
        let mut digits = String::new();
        self.skip_number(&mut |byte| {
            if digits.len() < LONGEST {
                digits.push(char::from(byte));
            }
        })?;
        Ok(digits)
    }

    /// Checks that the stream ends here, without trailing white space.
    pub(super) fn end(&mut self) -> Result<(), Broken> {
        match self.byte()? {
            None => Ok(()),
            Some(_) => Err(Broken::Wrong {
                at: self.at(),
                what: format!("expected the end of the file, found {}", self.shown()?),
            }),
        }
    }

    /// Runs `read` and hashes the bytes that it consumes, from the next byte on.
    pub(super) fn hashed<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Broken>,
    ) -> Result<(T, Vec<u8>), Broken> {
        self.hash = Some((Sha256::new(), self.next));
        let value = read(self)?;
        let (mut hash, from) = self.hash.take().expect("nothing in `read` ends the hash");
        hash.update(self.buffer.get(from..self.next).unwrap_or_default());
        Ok((value, hash.finalize().to_vec()))
    }

    /// Skips one complete value of any type.
    pub(super) fn skip_value(&mut self) -> Result<(), Broken> {
        let mut open: Vec<bool> = Vec::new(); // true: an object
        loop {
            match self.peek()? {
                Some(bracket @ (b'{' | b'[')) => {
                    self.next += 1;
                    if open.len() == DEEPEST {
                        return Err(self.expected("less nesting")?);
                    }
                    open.push(bracket == b'{');
                    let close = if bracket == b'{' { b'}' } else { b']' };
                    if self.peek()? != Some(close) {
                        if bracket == b'{' {
                            self.name()?;
                        }
                        continue;
                    }
                }
                Some(b'"') => self.skip_string(&mut |_| ())?,
                Some(b'-' | b'0'..=b'9') => self.skip_number(&mut |_| ())?,
                Some(b't') => self.word("true")?,
                Some(b'f') => self.word("false")?,
                Some(b'n') => self.word("null")?,
                _ => return Err(self.expected("a value")?),
            }
            loop {
                let Some(&object) = open.last() else { return Ok(()) };
                if self.peek()? == Some(b',') {
                    self.next += 1;
                    if object {
                        self.name()?;
                    }
                    break;
                }
                self.token(if object { b'}' } else { b']' })?;
                open.pop();
            }
        }
    }

    fn name(&mut self) -> Result<(), Broken> {
        if self.peek()? != Some(b'"') {
            return Err(self.expected("the name of a member")?);
        }
        self.skip_string(&mut |_| ())?;
        self.token(b':')
    }

    fn word(&mut self, word: &str) -> Result<(), Broken> {
        for byte in word.bytes() {
            if self.byte()? != Some(byte) {
                return Err(self.expected(word)?);
            }
            self.next += 1;
        }
        Ok(())
    }

    /// Consumes a string and passes each byte to `each`, including the quotes.
    fn skip_string(&mut self, each: &mut dyn FnMut(u8)) -> Result<(), Broken> {
        self.take(each)?;
        loop {
            match self.byte()? {
                Some(b'"') => return self.take(each).map(|_| ()),
                Some(b'\\') => {
                    self.take(each)?;
                    match self.byte()? {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                            self.take(each)?;
                        }
                        Some(b'u') => {
                            self.take(each)?;
                            for _ in 0..4 {
                                if !self.byte()?.is_some_and(|b| b.is_ascii_hexdigit()) {
                                    return Err(self.expected("four hexadecimal digits")?);
                                }
                                self.take(each)?;
                            }
                        }
                        _ => return Err(self.expected("a known escape")?),
                    }
                }
                Some(0x20..=0x7f) => self.take(each).map(|_| ())?,
                Some(lead @ 0xc2..=0xf4) => {
                    let at = self.at();
                    let mut character = vec![lead];
                    self.take(each)?;
                    let more = if lead < 0xe0 {
                        1
                    } else if lead < 0xf0 {
                        2
                    } else {
                        3
                    };
                    for _ in 0..more {
                        character.extend(self.take(each)?);
                    }
                    if std::str::from_utf8(&character).is_err() {
                        return Err(Broken::Wrong { at, what: "this is not UTF-8".to_owned() });
                    }
                }
                _ => return Err(self.expected("a character of a string")?),
            }
        }
    }

    fn skip_number(&mut self, each: &mut dyn FnMut(u8)) -> Result<(), Broken> {
        if self.byte()? == Some(b'-') {
            self.take(each)?;
        }
        if self.byte()? == Some(b'0') {
            self.take(each)?;
        } else {
            self.digits(each)?;
        }
        if self.byte()? == Some(b'.') {
            self.take(each)?;
            self.digits(each)?;
        }
        if let Some(b'e' | b'E') = self.byte()? {
            self.take(each)?;
            if let Some(b'+' | b'-') = self.byte()? {
                self.take(each)?;
            }
            self.digits(each)?;
        }
        Ok(())
    }

    fn digits(&mut self, each: &mut dyn FnMut(u8)) -> Result<(), Broken> {
        if !self.byte()?.is_some_and(|b| b.is_ascii_digit()) {
            return Err(self.expected("a digit")?);
        }
        while self.byte()?.is_some_and(|b| b.is_ascii_digit()) {
            self.take(each)?;
        }
        Ok(())
    }

    fn take(&mut self, each: &mut dyn FnMut(u8)) -> Result<Option<u8>, Broken> {
        let byte = self.byte()?;
        if let Some(byte) = byte {
            each(byte);
            self.next += 1;
        }
        Ok(byte)
    }

    /// Returns the next byte without consuming it.
    fn byte(&mut self) -> Result<Option<u8>, Broken> {
        if self.next == self.buffer.len() {
            if let Some((hash, from)) = &mut self.hash {
                hash.update(self.buffer.get(*from..).unwrap_or_default());
                *from = 0;
            }
            self.before += self.buffer.len() as u64;
            self.next = 0;
            self.buffer.clear();
            self.source.by_ref().take(BUFFER as u64).read_to_end(&mut self.buffer)?;
        }
        Ok(self.buffer.get(self.next).copied())
    }

    /// Returns the error that `what` was expected instead of the next byte.
    pub(super) fn expected(&mut self, what: &str) -> Result<Broken, Broken> {
        let (at, found) = (self.at(), self.shown()?);
        Ok(Broken::Wrong { at, what: format!("expected {what}, found {found}") })
    }

    /// Describes the next byte.
    fn shown(&mut self) -> Result<String, Broken> {
        Ok(match self.byte()? {
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
            let mut tokens = Tokens::new(text.as_bytes());
            let taken = tokens.skip_value().and_then(|()| tokens.peek());
            let whole = matches!(taken, Ok(None));
            prop_assert_eq!(whole, serde_json::from_str::<IgnoredAny>(&text).is_ok(), "{}", text);
        }
    }
}
