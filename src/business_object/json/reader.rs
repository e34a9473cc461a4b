//! The grammar of JSON (RFC 8259) over UTF-8 text, by recursive descent.
//!
//! Invariant: `at` is on a character boundary, since only whole ASCII bytes and whole runs between
//! them are stepped over.
use super::{Json, MAX_NESTING};
use std::collections::HashSet;

/// A fault of the text and where it is, in bytes from its start.
#[derive(Debug)]
pub(super) struct Fail {
    pub(super) at: usize,
    pub(super) message: String,
}

/// A place in a text.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    nesting: usize,
}

/// From this many members on, duplicate names are looked up instead of searched for.
const MANY_MEMBERS: usize = 24;

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, nesting: usize) -> Self {
        Self { text, at: 0, depth: 0, nesting: nesting.min(MAX_NESTING) }
    }

    /// Refuses what is no JSON from its first character on, in words of its own.
    pub(super) fn begin(&mut self) -> Result<(), Fail> {
        if self.text.starts_with('\u{feff}') {
            return Err(self.fail(
                "the text begins with a byte order mark, which JSON does not have; leave out the \
                 bytes EF BB BF",
            ));
        }
        self.skip_white();
        if self.peek().is_none() {
            return Err(self.fail("the text is empty; a JSON value is expected"));
        }
        Ok(())
    }

    /// Makes sure that nothing stands after the value.
    pub(super) fn end(&mut self) -> Result<(), Fail> {
        self.skip_white();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.fail(format!("{} stands after the end of the JSON", self.here()))),
        }
    }

    pub(super) fn at_object(&mut self) -> bool {
        self.skip_white();
        self.peek() == Some(b'{')
    }

    pub(super) fn at_array(&mut self) -> bool {
        self.skip_white();
        self.peek() == Some(b'[')
    }

    /// Reads one value.
    pub(super) fn value(&mut self) -> Result<Json, Fail> {
        self.skip_white();
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => self.string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number().map(Json::Number),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            None => Err(self.fail("the text ends where a value is expected; it was cut short")),
            Some(_) => Err(self.fail(format!("a value is expected, not {}", self.here()))),
        }
    }

    /// Steps over the bracket of an array or object, which `next_element` or `next_name` leaves again.
    pub(super) fn enter(&mut self, what: &str) -> Result<(), Fail> {
        if self.depth == self.nesting {
            return Err(self.fail(format!(
                "this {what} is nested deeper than {} levels (service.limits.nesting)",
                self.nesting
            )));
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    /// Goes to the next element of an array; false behind its end.
    pub(super) fn next_element(&mut self, first: bool) -> Result<bool, Fail> {
        self.skip_white();
        match self.peek() {
            Some(b']') => {
                self.at += 1;
                self.depth -= 1;
                return Ok(false);
            }
            Some(_) if first => return Ok(true),
            Some(b',') => self.at += 1,
            None => {
                return Err(self.fail("the text ends before the array is closed; it was cut short"));
            }
            Some(_) => {
                return Err(
                    self.fail(format!("`,` or `]` is expected in the array, not {}", self.here()))
                );
            }
        }
        self.skip_white();
        if self.peek() == Some(b']') {
            return Err(self.fail("a `,` stands before `]`; JSON has none after the last element"));
        }
        Ok(true)
    }

    fn object(&mut self) -> Result<Json, Fail> {
        self.enter("object")?;
        let mut members: Vec<(String, Json)> = Vec::new();
        let mut seen: HashSet<String> = HashSet::new();
        while let Some(name) = self.name(members.is_empty(), |name| {
            if members.len() < MANY_MEMBERS {
                members.iter().any(|(n, _)| n == name)
            } else {
                seen.contains(name)
            }
        })? {
            let value = self.value()?;
            members.push((name, value));
            match members.len() {
                0..MANY_MEMBERS => {}
                MANY_MEMBERS => seen.extend(members.iter().map(|(n, _)| n.clone())),
                _ => seen.extend(members.last().map(|(n, _)| n.clone())),
            }
        }
        Ok(Json::Object(members))
    }

    fn array(&mut self) -> Result<Json, Fail> {
        self.enter("array")?;
        let mut elements = Vec::new();
        while self.next_element(elements.is_empty())? {
            elements.push(self.value()?);
        }
        Ok(Json::Array(elements))
    }

    /// Reads the name of the next member of an object and its colon; `None` behind the object's end.
    pub(super) fn name(
        &mut self,
        first: bool,
        is_known: impl FnOnce(&str) -> bool,
    ) -> Result<Option<String>, Fail> {
        self.skip_white();
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                self.depth -= 1;
                return Ok(None);
            }
            Some(b',') if !first => {
                self.at += 1;
                self.skip_white();
                if self.peek() == Some(b'}') {
                    return Err(
                        self.fail("a `,` stands before `}`; JSON has none after the last member")
                    );
                }
            }
            Some(_) if first => {}
            None => {}
            Some(_) => {
                return Err(self
                    .fail(format!("`,` or `}}` is expected in the object, not {}", self.here())));
            }
        }
        let start = self.at;
        match self.peek() {
            Some(b'"') => {}
            None => {
                return Err(
                    self.fail("the text ends before the object is closed; it was cut short")
                );
            }
            Some(_) => {
                return Err(self.fail(format!(
                    "a name in double quotes is expected in the object, not {}",
                    self.here()
                )));
            }
        }
        let name = self.string()?;
        if is_known(&name) {
            let message = format!("the name {name:?} stands twice in one object");
            return Err(Fail { at: start, message });
        }
        self.skip_white();
        match self.peek() {
            Some(b':') => self.at += 1,
            None => return Err(self.fail("the text ends after a name; it was cut short")),
            Some(_) => {
                return Err(self.fail(format!(
                    "`:` is expected after the name {name:?}, not {}",
                    self.here()
                )));
            }
        }
        Ok(Some(name))
    }

    fn string(&mut self) -> Result<String, Fail> {
        let opened = self.at;
        self.at += 1;
        let mut value = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let run = rest
                .bytes()
                .position(|b| b == b'"' || b == b'\\' || b < 0x20)
                .unwrap_or(rest.len());
            value.push_str(rest.get(..run).unwrap_or_default());
            self.at += run;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(value);
                }
                Some(b'\\') => value.push(self.escape()?),
                None => {
                    let message = "this string is never closed; the text was cut short".to_owned();
                    return Err(Fail { at: opened, message });
                }
                Some(control) => {
                    return Err(self.fail(format!(
                        "a control character stands in a string; write it as \\u{control:04x}"
                    )));
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, Fail> {
        let start = self.at;
        self.at += 1;
        let escaped = self.peek();
        let Some(escaped) = escaped else {
            return Err(self.fail("the text ends within an escape; it was cut short"));
        };
        let c = match escaped {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(start),
            _ => {
                return Err(Fail {
                    at: start,
                    message:
                        "JSON knows the escapes \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX alone; \
                              a backslash itself is written \\\\"
                            .to_owned(),
                });
            }
        };
        self.at += 1;
        Ok(c)
    }

    /// Reads `uXXXX`, and the second half when it is the first of a surrogate pair.
    fn unicode(&mut self, start: usize) -> Result<char, Fail> {
        self.at += 1;
        let lone = |unit: u32| Fail {
            at: start,
            message: format!(
                "\\u{unit:04x} is half of a surrogate pair and stands alone; it is no character"
            ),
        };
        let first = self.hex(start)?;
        if !(0xD800..0xE000).contains(&first) {
            return char::from_u32(first).ok_or_else(|| lone(first));
        }
        let rest = self.text.get(self.at..).unwrap_or_default();
        if first >= 0xDC00 || !rest.starts_with("\\u") {
            return Err(lone(first));
        }
        self.at += 2;
        let second = self.hex(start)?;
        if !(0xDC00..0xE000).contains(&second) {
            return Err(lone(first));
        }
        char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))
            .ok_or_else(|| lone(first))
    }

    fn hex(&mut self, start: usize) -> Result<u32, Fail> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).unwrap_or_default();
        let unit = digits
            .iter()
            .try_fold(0, |unit, &b| char::from(b).to_digit(16).map(|digit| (unit << 4) | digit))
            .filter(|_| digits.len() == 4);
        self.at += 4;
        unit.ok_or_else(|| Fail {
            at: start,
            message: "four hexadecimal digits are expected after \\u".to_owned(),
        })
    }

    fn number(&mut self) -> Result<String, Fail> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(Fail { at: start, message: "a number has no zeros in front".to_owned() });
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(self.text.get(start..self.at).unwrap_or_default().to_owned())
    }

    fn digits(&mut self) -> Result<(), Fail> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return Err(match self.peek() {
                None => self.fail("the text ends within a number; it was cut short"),
                Some(_) => {
                    self.fail(format!("a digit is expected in the number, not {}", self.here()))
                }
            });
        }
        Ok(())
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, Fail> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if rest.starts_with(word) {
            self.at += word.len();
            Ok(value)
        } else if word.starts_with(rest) {
            Err(self.fail(format!("the text ends within `{word}`; it was cut short")))
        } else {
            Err(self.fail(
                "a value is expected; of bare words JSON knows `true`, `false` and `null` alone",
            ))
        }
    }

    fn skip_white(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The character at this place, in words.
    fn here(&self) -> String {
        match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(c) => format!("{c:?}"),
            None => "the end of the text".to_owned(),
        }
    }

    fn fail(&self, message: impl Into<String>) -> Fail {
        Fail { at: self.at, message: message.into() }
    }
}
