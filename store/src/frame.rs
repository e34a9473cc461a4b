//! The payload of a frame: one commit. FORMAT.md describes the bytes.
use crate::term::{LiteralParts, kind, split_literal};
use crate::varint::{self, Input};
use oxrdf::{BlankNodeRef, LiteralRef, NamedNodeRef, TermRef};

/// The maximum length of a frame's payload, in bytes.
pub(crate) const MAX_PAYLOAD_BYTES: u32 = 256 << 20;
/// The first byte of the payload of a commit.
pub(crate) const COMMIT_KIND: u8 = 1;

/// A quad as numbers of the frame's terms: subject, predicate, object, graph. Terms count from 1; the graph 0
/// is the default graph.
pub(crate) type QuadNumbers = [u32; 4];

/// A change of one document: collection, key, and the new value, or `None` if it is deleted.
pub(crate) type DocumentChange<'a> = (&'a str, &'a [u8], Option<&'a [u8]>);

/// A commit.
#[derive(Debug, Default)]
pub(crate) struct Change<'a> {
    /// How many frames before this one were not known to be synced when it was written.
    pub(crate) unsynced_frames: u64,
    /// The terms by number, from 1. The datatype of a literal comes before it.
    pub(crate) terms: Vec<TermRef<'a>>,
    pub(crate) removed: Vec<QuadNumbers>,
    pub(crate) added: Vec<QuadNumbers>,
    pub(crate) documents: Vec<DocumentChange<'a>>,
}

impl<'a> Change<'a> {
    /// Encodes the commit as a payload. `datatypes` has the number of the datatype of each term; only those of typed literals
    /// count.
    pub(crate) fn encode(&self, datatypes: &[u32]) -> Vec<u8> {
        let mut out = vec![COMMIT_KIND];
        varint::write_number(&mut out, self.unsynced_frames);
        varint::write_length(&mut out, self.terms.len());
        for (at, term) in self.terms.iter().enumerate() {
            write_term(&mut out, *term, datatypes.get(at).copied().unwrap_or_default());
        }
        for quads in [&self.removed, &self.added] {
            varint::write_length(&mut out, quads.len());
            for number in quads.iter().flatten() {
                varint::write_number(&mut out, u64::from(*number));
            }
        }
        varint::write_length(&mut out, self.documents.len());
        for (collection, key, value) in &self.documents {
            out.push(u8::from(value.is_some()));
            varint::write_bytes(&mut out, collection.as_bytes());
            varint::write_bytes(&mut out, key);
            if let Some(value) = value {
                varint::write_bytes(&mut out, value);
            }
        }
        out
    }

    /// Decodes a payload. The error says what is wrong with it.
    pub(crate) fn decode(payload: &'a [u8]) -> Result<Self, &'static str> {
        let mut change = Self::default();
        let unsynced_frames = read_commit(payload, &mut change)?;
        Ok(Self { unsynced_frames, ..change })
    }
}

/// The number of quads and documents that a commit changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CommitCounts {
    pub(crate) quads: u64,
    pub(crate) documents: u64,
}

impl CommitCounts {
    /// Checks a payload as [`Change::decode`] does, and passes each change of a document to `visit`. It keeps only a byte of
    /// each term: a payload can have millions of empty ones, and a backup comes from elsewhere.
    pub(crate) fn read<'a>(
        payload: &'a [u8],
        visit: &mut dyn FnMut(DocumentChange<'a>),
    ) -> Result<Self, &'static str> {
        let mut checked = CheckedCommit { kinds: Vec::new(), counts: Self::default(), visit };
        read_commit(payload, &mut checked)?;
        Ok(checked.counts)
    }
}

/// What takes the content of a commit while its payload is read.
trait CommitSink<'a> {
    fn add_term(&mut self, term: TermRef<'a>);

    /// Returns the term with this number, or another one of its kind.
    fn find_term(&self, number: u64) -> Option<TermRef<'a>>;

    fn add_quad(&mut self, is_added: bool, quad: QuadNumbers);

    fn add_document(&mut self, document: DocumentChange<'a>);
}

impl<'a> CommitSink<'a> for Change<'a> {
    fn add_term(&mut self, term: TermRef<'a>) {
        self.terms.push(term);
    }

    fn find_term(&self, number: u64) -> Option<TermRef<'a>> {
        self.terms.get(term_position(number)?).copied()
    }

    fn add_quad(&mut self, is_added: bool, quad: QuadNumbers) {
        if is_added { self.added.push(quad) } else { self.removed.push(quad) }
    }

    fn add_document(&mut self, document: DocumentChange<'a>) {
        self.documents.push(document);
    }
}

/// A commit of which only the kinds of its terms are kept.
struct CheckedCommit<'v, 'a> {
    kinds: Vec<u8>,
    counts: CommitCounts,
    visit: &'v mut dyn FnMut(DocumentChange<'a>),
}

impl<'a> CommitSink<'a> for CheckedCommit<'_, 'a> {
    fn add_term(&mut self, term: TermRef<'a>) {
        self.kinds.push(match term {
            TermRef::NamedNode(_) => kind::IRI,
            TermRef::BlankNode(_) => kind::BLANK,
            TermRef::Literal(_) | TermRef::Triple(_) => kind::STRING,
        });
    }

    fn find_term(&self, number: u64) -> Option<TermRef<'a>> {
        Some(match *self.kinds.get(term_position(number)?)? {
            kind::IRI => NamedNodeRef::new_unchecked("").into(),
            kind::BLANK => BlankNodeRef::new_unchecked("b").into(),
            _ => LiteralRef::new_simple_literal("").into(),
        })
    }

    fn add_quad(&mut self, _: bool, _: QuadNumbers) {
        self.counts.quads += 1;
    }

    fn add_document(&mut self, document: DocumentChange<'a>) {
        self.counts.documents += 1;
        (self.visit)(document);
    }
}

/// Reads a payload into `sink`. Returns how many frames before it were not known to be synced. The error says what is wrong
/// with the payload.
fn read_commit<'a>(payload: &'a [u8], sink: &mut impl CommitSink<'a>) -> Result<u64, &'static str> {
    const SHORT: &str = "the payload ends too early";
    let mut input = Input::new(payload);
    if input.read_byte() != Some(COMMIT_KIND) {
        return Err("the payload has an unknown kind");
    }
    let unsynced_frames = input.read_number().ok_or(SHORT)?;
    for _ in 0..input.read_length().ok_or(SHORT)? {
        let term = read_term(&mut input, sink).ok_or("a term is malformed")?;
        sink.add_term(term);
    }
    for is_added in [false, true] {
        for _ in 0..input.read_length().ok_or(SHORT)? {
            let quad = read_quad(&mut input, sink).ok_or("a quad is malformed")?;
            sink.add_quad(is_added, quad);
        }
    }
    for _ in 0..input.read_length().ok_or(SHORT)? {
        let put = input.read_byte().ok_or(SHORT)?;
        let collection = input.read_text().ok_or("a collection's name is malformed")?;
        let key = input.read_bytes().ok_or(SHORT)?;
        let value = match put {
            0 => None,
            1 => Some(input.read_bytes().ok_or(SHORT)?),
            _ => return Err("a document is neither put nor deleted"),
        };
        sink.add_document((collection, key, value));
    }
    if input.is_empty() { Ok(unsynced_frames) } else { Err("the payload continues after its end") }
}

/// Returns how many frames before the one with this payload were not known to be synced.
pub(crate) fn read_unsynced_frames(payload: &[u8]) -> Option<u64> {
    let mut input = Input::new(payload);
    input.read_byte().filter(|kind| *kind == COMMIT_KIND)?;
    input.read_number()
}

/// Returns the position of the term with this number.
fn term_position(number: u64) -> Option<usize> {
    usize::try_from(number.checked_sub(1)?).ok()
}

/// Appends a term. `datatype` is the number of a typed literal's datatype.
pub(crate) fn write_term(out: &mut Vec<u8>, term: TermRef<'_>, datatype: u32) {
    match term {
        TermRef::NamedNode(iri) => {
            out.push(kind::IRI);
            varint::write_bytes(out, iri.as_str().as_bytes());
        }
        TermRef::BlankNode(node) => {
            out.push(kind::BLANK);
            varint::write_bytes(out, node.as_str().as_bytes());
        }
        TermRef::Literal(literal) => match split_literal(literal) {
            LiteralParts::String(value) => {
                out.push(kind::STRING);
                varint::write_bytes(out, value.as_bytes());
            }
            LiteralParts::Language(language, value) => {
                out.push(kind::LANGUAGE);
                varint::write_bytes(out, language.as_bytes());
                varint::write_bytes(out, value.as_bytes());
            }
            LiteralParts::Typed(_, value) => {
                out.push(kind::TYPED);
                varint::write_number(out, u64::from(datatype));
                varint::write_bytes(out, value.as_bytes());
            }
        },
        // A transaction refuses it, so no commit has one.
        TermRef::Triple(_) => {}
    }
}

fn read_term<'a>(input: &mut Input<'a>, sink: &impl CommitSink<'a>) -> Option<TermRef<'a>> {
    Some(match input.read_byte()? {
        kind::IRI => NamedNodeRef::new_unchecked(input.read_text()?).into(),
        kind::BLANK => BlankNodeRef::new_unchecked(input.read_text()?).into(),
        kind::STRING => LiteralRef::new_simple_literal(input.read_text()?).into(),
        kind::LANGUAGE => {
            let language = input.read_text()?;
            LiteralRef::new_language_tagged_literal_unchecked(input.read_text()?, language).into()
        }
        kind::TYPED => {
            let TermRef::NamedNode(datatype) = sink.find_term(input.read_number()?)? else {
                return None;
            };
            LiteralRef::new_typed_literal(input.read_text()?, datatype).into()
        }
        _ => return None,
    })
}

fn read_quad<'a>(input: &mut Input<'a>, sink: &impl CommitSink<'a>) -> Option<QuadNumbers> {
    let quad =
        [input.read_number()?, input.read_number()?, input.read_number()?, input.read_number()?];
    let [subject, predicate, object, graph] = quad.map(|number| sink.find_term(number));
    let fits = matches!(subject?, TermRef::NamedNode(_) | TermRef::BlankNode(_))
        && matches!(predicate?, TermRef::NamedNode(_))
        && object.is_some()
        && match graph {
            None => quad.last() == Some(&0),
            Some(TermRef::Literal(_)) => false,
            Some(_) => true,
        };
    if !fits {
        return None;
    }
    let mut numbers = [0; 4];
    for (to, from) in numbers.iter_mut().zip(quad) {
        *to = u32::try_from(from).ok()?;
    }
    Some(numbers)
}
