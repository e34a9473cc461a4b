//! Terms as the index encodes them, for readers that compare many of them and decode few.
use super::key::{KeyBuffer, damaged_entry, object};
use crate::Error;
use crate::varint::Input;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A term as the index encodes it. Within one snapshot, two codes are equal if and only if the terms are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermCode(CodeKind);

/// The longest code of a literal that is not allocated, in bytes.
const MAX_SHORT_BYTES: usize = 22;

#[derive(Debug, Clone, PartialEq, Eq)]
enum CodeKind {
    /// The id of an IRI, a blank node or the default graph.
    Id(u64),
    /// The code of a literal, followed by zeros.
    Short { length: u8, bytes: [u8; MAX_SHORT_BYTES] },
    /// The code of a literal that is longer.
    Long(Arc<[u8]>),
}

/// A quad as codes: subject, predicate, object and graph.
pub type CodedQuad = [TermCode; 4];

/// A pattern of codes. `None` matches everything.
pub type CodedPattern<'p> = [Option<&'p TermCode>; 4];

impl Hash for TermCode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            CodeKind::Id(id) => state.write_u64(*id),
            _ => state.write(self.literal().unwrap_or_default()),
        }
    }
}

impl TermCode {
    pub(crate) const fn from_id(id: u64) -> Self {
        Self(CodeKind::Id(id))
    }

    /// Converts the code of an object.
    pub(crate) fn from_object(code: &[u8]) -> Result<Self, Error> {
        if let [object::NAMED, id @ ..] = code {
            let id = Input::new(id).read_number().ok_or_else(|| damaged_entry("an id", id))?;
            return Ok(Self::from_id(id));
        }
        let mut bytes = [0; MAX_SHORT_BYTES];
        Ok(Self(match (bytes.get_mut(..code.len()), u8::try_from(code.len())) {
            (Some(short), Ok(length)) => {
                short.copy_from_slice(code);
                CodeKind::Short { length, bytes }
            }
            _ => CodeKind::Long(code.into()),
        }))
    }

    /// Returns the id of an IRI, a blank node or the default graph.
    pub(crate) fn id(&self) -> Option<u64> {
        if let CodeKind::Id(id) = self.0 { Some(id) } else { None }
    }

    /// Returns the place of an IRI or a blank node in the order of subjects. Quads of near subjects are near each other.
    pub fn subject_order(&self) -> Option<u64> {
        self.id()
    }

    /// Returns the code of a literal.
    pub(crate) fn literal(&self) -> Option<&[u8]> {
        match &self.0 {
            CodeKind::Id(_) => None,
            CodeKind::Short { length, bytes } => bytes.get(..usize::from(*length)),
            CodeKind::Long(bytes) => Some(bytes),
        }
    }

    /// Returns the datatype and the value of a typed literal that is not long.
    pub fn typed_literal(&self) -> Option<(Self, &str)> {
        let mut input = Input::new(self.literal()?.strip_prefix(&[object::TYPED])?);
        let datatype = Self::from_id(input.read_number()?);
        Some((datatype, input.read_text()?))
    }

    /// Appends the code as an object. Returns `false` if the key would become too long.
    pub(crate) fn write_object(&self, key: &mut KeyBuffer) -> bool {
        match self.literal() {
            Some(literal) => key.extend(literal),
            None => {
                key.extend(&[object::NAMED]) && key.extend_number(self.id().unwrap_or_default())
            }
        }
    }
}
