//! Scans XML for open elements and for entities, which its parser expands in memory.

/// The maximum length in bytes of a document type declaration.
const MAX_DOCTYPE_BYTES: usize = 16 << 10;
/// The maximum length in bytes of the value of an entity. Those of RDF/XML are namespaces.
const MAX_ENTITY_BYTES: u64 = 1024;
/// The entities that every document has (XML 1.0, 4.6).
const PREDEFINED: [&[u8]; 5] = [b"amp", b"lt", b"gt", b"apos", b"quot"];
const ENTITY: &[u8] = b"<!ENTITY";

/// The open elements and the entities of a document that is passed byte by byte.
#[derive(Debug, Default)]
pub(crate) struct XmlScanner {
    state: State,
    depth: usize,
    /// The last bytes, as many as decide what a `<` begins or ends.
    last: [u8; 9],
    /// The number of bytes since the last `<` in text, with it.
    begun: usize,
    doctype_bytes: usize,
    /// How many `[` of the document type declaration are open.
    doctype_brackets: usize,
    entity: EntityState,
    /// The length of the longest entity.
    longest_entity: u64,
    /// The reference that began with the last `&`, without it.
    reference: Option<Vec<u8>>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After `<`.
    Begin,
    /// In a tag. `quote` is that of the attribute that is being read.
    Tag {
        is_end: bool,
        quote: Option<u8>,
    },
    /// After `<!`.
    Declaration,
    Comment,
    CData,
    Instruction,
    Doctype,
}

/// Where in the declaration of an entity the next byte is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum EntityState {
    #[default]
    None,
    /// Before its name.
    Begin,
    Name,
    /// Before the quote that begins its value.
    Gap,
    Value {
        quote: u8,
        bytes: u64,
    },
}

impl XmlScanner {
    /// Returns how many elements are open.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Processes a byte. Returns how many bytes the parser adds there.
    pub(crate) fn process_byte(&mut self, byte: u8) -> Result<u64, String> {
        self.last.rotate_left(1);
        if let Some(last) = self.last.last_mut() {
            *last = byte;
        }
        self.begun = if byte == b'<' && self.state == State::Text { 1 } else { self.begun + 1 };
        if !matches!(self.state, State::Comment | State::CData) {
            self.process_entity(byte)?;
        }
        let expanded = self.process_reference(byte)?;
        self.state = self.next_state(byte)?;
        Ok(expanded)
    }

    fn ends_with(&self, text: &[u8]) -> bool {
        self.last.ends_with(text)
    }

    fn next_state(&mut self, byte: u8) -> Result<State, String> {
        Ok(match (self.state, byte) {
            (State::Text, b'<') => State::Begin,
            (State::Begin, b'!') => State::Declaration,
            (State::Begin, b'?') => State::Instruction,
            (State::Begin, _) => State::Tag { is_end: byte == b'/', quote: None },
            (State::Tag { is_end, quote: None }, b'"' | b'\'') => {
                State::Tag { is_end, quote: Some(byte) }
            }
            (State::Tag { is_end, quote: Some(quote) }, _) if byte == quote => {
                State::Tag { is_end, quote: None }
            }
            (State::Tag { is_end, quote: None }, b'>') => {
                if is_end {
                    self.depth = self.depth.saturating_sub(1);
                } else if !self.ends_with(b"/>") {
                    self.depth += 1;
                }
                State::Text
            }
            (State::Declaration, _) if self.ends_with(b"<!--") => State::Comment,
            (State::Declaration, _) if self.ends_with(b"<![CDATA[") => State::CData,
            (State::Declaration, b'D' | b'd') if self.begun == b"<!D".len() => State::Doctype,
            (State::Comment, b'>') if self.begun >= b"<!---->".len() && self.ends_with(b"-->") => {
                State::Text
            }
            (State::CData, b'>') if self.ends_with(b"]]>") => State::Text,
            (State::Instruction, b'>') if self.begun >= b"<??>".len() && self.ends_with(b"?>") => {
                State::Text
            }
            (State::Doctype, _) => self.next_in_doctype(byte)?,
            (State::Declaration, b'>') => State::Text,
            (state, _) => state,
        })
    }

    fn next_in_doctype(&mut self, byte: u8) -> Result<State, String> {
        self.doctype_bytes += 1;
        if self.doctype_bytes > MAX_DOCTYPE_BYTES {
            return Err(format!(
                "the document type declaration has more than {MAX_DOCTYPE_BYTES} bytes; declare namespaces by xmlns"
            ));
        }
        match byte {
            _ if matches!(self.entity, EntityState::Value { .. }) => {}
            b'[' => self.doctype_brackets += 1,
            b']' => self.doctype_brackets = self.doctype_brackets.saturating_sub(1),
            b'>' if self.doctype_brackets == 0 => return Ok(State::Text),
            _ => {}
        }
        Ok(State::Doctype)
    }

    /// Reads the declarations of entities as the parser does: a name up to white space, and a value in quotes. What could be
    /// read in two ways is refused, because the two must agree.
    fn process_entity(&mut self, byte: u8) -> Result<(), String> {
        let is_space = byte.is_ascii_whitespace();
        self.entity = match self.entity {
            _ if self.ends_with(ENTITY) => EntityState::Begin,
            EntityState::Begin if is_space || byte == b'%' => EntityState::Begin,
            EntityState::Begin | EntityState::Name if b"\"'<>&;".contains(&byte) => {
                return Err(format!(
                    "the name of an entity has the character {:?}; use letters",
                    char::from(byte)
                ));
            }
            EntityState::Name | EntityState::Gap if is_space => EntityState::Gap,
            EntityState::Begin | EntityState::Name => EntityState::Name,
            EntityState::Gap if matches!(byte, b'"' | b'\'') => {
                EntityState::Value { quote: byte, bytes: 0 }
            }
            EntityState::Gap => {
                return Err(
                    "an entity has no value in quotes; external ones are not read".to_owned()
                );
            }
            EntityState::Value { quote, .. } if byte == quote => EntityState::None,
            EntityState::Value { bytes, .. } if bytes == MAX_ENTITY_BYTES => {
                return Err(format!(
                    "an entity has more than {MAX_ENTITY_BYTES} bytes; write its value where it is used"
                ));
            }
            EntityState::Value { quote, bytes } => {
                self.longest_entity = self.longest_entity.max(bytes + 1);
                EntityState::Value { quote, bytes: bytes + 1 }
            }
            EntityState::None => EntityState::None,
        };
        Ok(())
    }

    /// Reads the references to entities. In the value of an entity only the predefined ones are allowed: with others, a
    /// few lines would expand to more than any memory holds.
    fn process_reference(&mut self, byte: u8) -> Result<u64, String> {
        if byte == b'&' {
            self.reference = Some(Vec::new());
            return Ok(0);
        }
        let Some(name) = &mut self.reference else { return Ok(0) };
        if byte != b';' {
            // Longer ones are none of those that matter here.
            if name.len() < 64 {
                name.push(byte);
            }
            return Ok(0);
        }
        let is_predefined = name.first() == Some(&b'#') || PREDEFINED.contains(&name.as_slice());
        let text = String::from_utf8_lossy(name).into_owned();
        self.reference = None;
        match self.entity {
            _ if is_predefined => Ok(0),
            EntityState::Value { .. } => Err(format!(
                "the value of an entity refers to the entity {text:?}; write its value in place of the reference"
            )),
            _ => Ok(self.longest_entity),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> Result<(usize, u64), String> {
        let mut scanner = XmlScanner::default();
        let mut expanded = 0;
        for byte in text.bytes() {
            expanded += scanner.process_byte(byte)?;
        }
        Ok((scanner.depth(), expanded))
    }

    #[test]
    fn counts_open_elements() {
        for (text, depth) in [
            ("<?xml version='1.0'?><a><b c='>'/><d><!-- <e> --></d>", 1),
            ("<a><![CDATA[<b><c>]]><b d=\"/>\"><c/>", 2),
            ("<!DOCTYPE a [ <!ENTITY b \"<c]>\"> ]><a><b></b ></a>", 0),
            ("<a><![CDATA[ ]><b> ]]>", 1),
            ("<a><![CDATA[[[[]]><b>", 2),
            ("<a><!--> <b> --><?> <b> ?><b>", 2),
        ] {
            assert_eq!(scan(text).unwrap().0, depth, "{text}");
        }
    }

    #[test]
    fn entities_may_not_refer_to_entities_and_count_where_they_are_used() {
        let declared = "<!DOCTYPE a [<!ENTITY x \"0123456789\"><!ENTITY y 'a&amp;b&#32;'>]>";
        let used = format!("{declared}<a b='&x;c'>&x;&amp;</a>");
        assert_eq!(scan(&used).unwrap().1, 2 * 12);
        let nested = "<!DOCTYPE a [<!ENTITY x \"1\"><!ENTITY y \"&x;&x;\">]><a/>";
        assert!(scan(nested).unwrap_err().contains("refers to the entity \"x\""));
        let long = format!("<!DOCTYPE a [<!ENTITY x \"{}\">]>", "1".repeat(1025));
        assert!(scan(&long).unwrap_err().contains("more than 1024 bytes"));
        // The parser reads a name up to white space, so the quotes would belong to it.
        for name in ["a''", "a\"\"", "a>", "a&b;"] {
            let text = format!("<!DOCTYPE a [<!ENTITY {name} \"1\"><!ENTITY b \"&{name};\">]>");
            assert!(scan(&text).unwrap_err().contains("the name of an entity"), "{name}");
        }
        assert!(scan("<!DOCTYPE a [<!ENTITY x SYSTEM \"file\">]>").is_err());
        scan(&format!("<a><![CDATA[{}<!ENTITY x \"&y;\">]]></a>", " ".repeat(MAX_DOCTYPE_BYTES)))
            .unwrap();
        let declaration = format!("<!DOCTYPE a [{}]>", " ".repeat(MAX_DOCTYPE_BYTES));
        assert!(scan(&declaration).is_err());
    }
}
