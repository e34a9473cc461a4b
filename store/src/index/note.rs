//! The note of the index about itself. A checkpoint writes it last.
use super::run::RunNote;
use crate::varint::{self, Input};

/// The version of the index format. An index of another version is rebuilt.
const INDEX_FORMAT: u64 = 8;

/// The beginning of a note, which is the same in all versions. It says how far an index is, also if that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoteHead {
    format: u64,
    pub(super) store_id: [u8; 16],
    pub(super) sequence: u64,
}

impl NoteHead {
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        Self::read(&mut Input::new(bytes))
    }

    /// Returns why an index with this note cannot be used, if it is of another version.
    pub(super) fn describe_other_version(self) -> Option<String> {
        let Self { format, .. } = self;
        (format != INDEX_FORMAT)
            .then(|| format!("it has version {format} in place of {INDEX_FORMAT}"))
    }

    fn read(input: &mut Input<'_>) -> Option<Self> {
        let format = input.read_number()?;
        let store_id = input.take(16)?.try_into().ok()?;
        Some(Self { format, store_id, sequence: input.read_number()? })
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Note {
    /// The id of the store from whose journal it was built.
    pub(super) store_id: [u8; 16],
    /// The sequence of its newest frame.
    pub(super) sequence: u64,
    /// The next id of a name.
    pub(super) next_id: u64,
    /// The next id of a long literal.
    pub(super) next_long: u64,
    pub(super) quads: u64,
    pub(super) documents: u64,
    /// The sum of the checksums of all blocks.
    pub(super) checksum_sum: u64,
    /// The valid runs, newest first.
    pub(super) runs: Vec<RunNote>,
    /// The valid runs of values, newest first; `None` without an index of values.
    pub(super) values: Option<Vec<RunNote>>,
}

impl Note {
    pub(super) fn new(store_id: [u8; 16], has_values: bool) -> Self {
        let values = has_values.then(Vec::new);
        Self { store_id, next_id: 1, next_long: 1, values, ..Self::default() }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        varint::write_number(&mut out, INDEX_FORMAT);
        out.extend_from_slice(&self.store_id);
        for number in [self.sequence, self.next_id, self.next_long, self.quads, self.documents] {
            varint::write_number(&mut out, number);
        }
        out.extend_from_slice(&self.checksum_sum.to_le_bytes());
        let mut write = |first, runs: &[RunNote]| {
            varint::write_length(&mut out, first + runs.len());
            for run in runs {
                run.encode(&mut out);
            }
        };
        write(0, &self.runs);
        match &self.values {
            None => write(0, &[]),
            Some(values) => write(1, values),
        }
        out
    }

    /// Decodes a note of this version.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::new(bytes);
        let NoteHead { format, store_id, sequence } = NoteHead::read(&mut input)?;
        if format != INDEX_FORMAT {
            return None;
        }
        let mut note = Self {
            store_id,
            sequence,
            next_id: input.read_number()?,
            next_long: input.read_number()?,
            quads: input.read_number()?,
            documents: input.read_number()?,
            checksum_sum: u64::from_le_bytes(input.take(8)?.try_into().ok()?),
            runs: Vec::new(),
            values: None,
        };
        for _ in 0..input.read_length()? {
            note.runs.push(RunNote::decode(&mut input)?);
        }
        if let Some(count) = input.read_length()?.checked_sub(1) {
            let mut values = Vec::new();
            for _ in 0..count {
                values.push(RunNote::decode(&mut input)?);
            }
            note.values = Some(values);
        }
        input.is_empty().then_some(note)
    }
}
