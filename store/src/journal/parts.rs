//! The parts of a base: the state as a series of commits, gathered, packed and numbered.
use super::packing::{PART_BYTES, Packer, new_packer, pack_part};
use super::segment::{self, StoreId};
use crate::frame::{self, CommitCounts, QuadNumbers};
use crate::term::{self, LiteralParts as Kind, split_literal};
use crate::varint;
use crate::{Error, FastMap, Format, files};
use oxrdf::{QuadRef, TermRef};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The kind of the payload that ends a base.
const END_KIND: u8 = 3;
/// The length of the payload that ends a base, in bytes.
pub(super) const END_BYTES: usize = 1 + 5 * 8;

/// The content of the end of a base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BaseEnd {
    /// The number of parts.
    pub(crate) parts: u64,
    /// The number of quads in the parts.
    pub(crate) quads: u64,
    /// The number of documents in the parts.
    pub(crate) documents: u64,
    /// The sequence after which frames are replayed over the parts.
    pub(crate) from: u64,
    /// The sequence of the frame after whose replay the state is exact.
    pub(crate) exact: u64,
}

impl BaseEnd {
    fn encode(&self) -> Vec<u8> {
        let mut out = vec![END_KIND];
        for number in [self.parts, self.quads, self.documents, self.from, self.exact] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out
    }

    pub(super) fn decode(payload: &[u8]) -> Option<Self> {
        let rest = payload.strip_prefix(&[END_KIND])?;
        if payload.len() != END_BYTES {
            return None;
        }
        let mut numbers = rest.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        Some(Self {
            parts: numbers.next()?,
            quads: numbers.next()?,
            documents: numbers.next()?,
            from: numbers.next()?,
            exact: numbers.next()?,
        })
    }

    /// Adds the counts of a part.
    pub(super) fn add_counts(&mut self, counts: CommitCounts) {
        self.parts += 1;
        self.quads += counts.quads;
        self.documents += counts.documents;
    }
}

/// Writes parts.
pub(crate) struct PartWriter<W> {
    out: W,
    /// The path of the output, for errors.
    path: PathBuf,
    packer: Packer,
    end: BaseEnd,
    gathered: GatheredCommit,
}

/// A commit that is being gathered; it only adds quads and puts documents.
#[derive(Default)]
struct GatheredCommit {
    numbers: FastMap<Vec<u8>, u32>,
    terms: Vec<u8>,
    quads: Vec<u8>,
    quads_count: usize,
    documents: Vec<u8>,
    documents_count: usize,
    scratch: Vec<u8>,
}

impl GatheredCommit {
    fn byte_count(&self) -> usize {
        self.terms.len() + self.quads.len() + self.documents.len()
    }

    fn number_term(&mut self, term: TermRef<'_>) -> Result<u32, Error> {
        self.scratch.clear();
        term::encode(&mut self.scratch, term)?;
        if let Some(number) = self.numbers.get(self.scratch.as_slice()) {
            return Ok(*number);
        }
        let bytes = self.scratch.clone();
        let datatype = match term {
            TermRef::Literal(literal) => match split_literal(literal) {
                Kind::Typed(iri, _) => self.number_term(iri.into())?,
                _ => 0,
            },
            _ => 0,
        };
        frame::write_term(&mut self.terms, term, datatype);
        let number = u32::try_from(self.numbers.len() + 1)
            .map_err(|_| Error::TooLarge { bytes: u64::MAX, limit: u64::from(u32::MAX) })?;
        self.numbers.insert(bytes, number);
        Ok(number)
    }

    fn add_quad(&mut self, quad: QuadRef<'_>) -> Result<(), Error> {
        let graph = match term::graph_to_term(quad.graph_name) {
            Some(graph) => self.number_term(graph)?,
            None => 0,
        };
        let numbers: QuadNumbers = [
            self.number_term(quad.subject.into())?,
            self.number_term(quad.predicate.into())?,
            self.number_term(quad.object)?,
            graph,
        ];
        for number in numbers {
            varint::write_number(&mut self.quads, u64::from(number));
        }
        self.quads_count += 1;
        Ok(())
    }

    fn add_document(&mut self, collection: &str, key: &[u8], value: &[u8]) {
        self.documents.push(1);
        varint::write_bytes(&mut self.documents, collection.as_bytes());
        varint::write_bytes(&mut self.documents, key);
        varint::write_bytes(&mut self.documents, value);
        self.documents_count += 1;
    }

    /// Returns the payload of the commit, and starts an empty one.
    fn take_payload(&mut self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.byte_count() + 32);
        out.push(frame::COMMIT_KIND);
        varint::write_number(&mut out, 0);
        varint::write_length(&mut out, self.numbers.len());
        out.extend_from_slice(&self.terms);
        varint::write_number(&mut out, 0);
        varint::write_length(&mut out, self.quads_count);
        out.extend_from_slice(&self.quads);
        varint::write_length(&mut out, self.documents_count);
        out.extend_from_slice(&self.documents);
        *self = Self::default();
        out
    }
}

impl<W: Write> PartWriter<W> {
    /// Begins a base of a store with this format.
    pub(crate) fn begin(out: W, path: &Path, id: &StoreId, format: Format) -> Result<Self, Error> {
        let packer = new_packer().map_err(files::io_error("packing", path))?;
        let (end, gathered) = (BaseEnd::default(), GatheredCommit::default());
        let mut parts = Self { out, path: path.to_owned(), packer, end, gathered };
        parts.write_bytes(&segment::base_header(id, format))?;
        Ok(parts)
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.out.write_all(bytes).map_err(files::io_error("writing", &self.path))
    }

    /// Gathers a quad.
    pub(crate) fn add_quad(&mut self, quad: QuadRef<'_>) -> Result<(), Error> {
        self.gathered.add_quad(quad)
    }

    /// Gathers a document.
    pub(crate) fn add_document(&mut self, collection: &str, key: &[u8], value: &[u8]) {
        self.gathered.add_document(collection, key, value);
    }

    /// Returns whether the gathered content is enough for a part.
    pub(crate) fn is_full(&self) -> bool {
        self.gathered.byte_count() >= PART_BYTES
    }

    /// Writes the gathered content as a part.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        if self.gathered.byte_count() == 0 {
            return Ok(());
        }
        self.end.quads += self.gathered.quads_count as u64;
        self.end.documents += self.gathered.documents_count as u64;
        self.end.parts += 1;
        let commit = self.gathered.take_payload();
        self.write_part(&commit)
    }

    /// Writes a whole commit as a part, after the gathered content.
    pub(crate) fn write_commit(
        &mut self,
        payload: &[u8],
        counts: CommitCounts,
    ) -> Result<(), Error> {
        self.flush()?;
        self.end.add_counts(counts);
        self.write_part(payload)
    }

    fn write_part(&mut self, commit: &[u8]) -> Result<(), Error> {
        let payload =
            pack_part(&mut self.packer, commit).map_err(files::io_error("packing", &self.path))?;
        let frame = segment::encode_part(self.end.parts, &payload)?;
        self.write_bytes(&frame)
    }

    /// Writes the end. Returns it with the output.
    pub(crate) fn finish(mut self, from: u64, exact: u64) -> Result<(BaseEnd, W), Error> {
        self.flush()?;
        let end = BaseEnd { from, exact, ..self.end };
        let frame = segment::encode_part(end.parts + 1, &end.encode())?;
        self.write_bytes(&frame)?;
        self.out.flush().map_err(files::io_error("writing", &self.path))?;
        Ok((end, self.out))
    }
}
