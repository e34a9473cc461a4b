//! Reads the lines of an export in chunks that each fit into one update.
use crate::graph_lines::{GraphLine, VOCABULARY};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::unix::fs::FileExt as _;

/// The maximum bytes of a chunk as SPARQL. The rest of the 1 MiB of a request is for the operations around it.
const MAX_CHUNK_BYTES: usize = 960 << 10;

/// What a chunk may contain.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkLimits {
    /// The maximum number of lines.
    pub(super) lines: usize,
    /// Whether the export is full, so that it replaces every object.
    pub(super) is_full: bool,
}

/// A part of an export as SPARQL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// The triples of the graph.
    pub(super) triples: String,
    /// The triples about the objects: what they hold, and which are replaced.
    pub(super) state: String,
    /// The number of lines.
    pub(super) lines: usize,
    /// The position in the file after the chunk.
    pub(super) end: u64,
}

/// Why a chunk could not be read.
#[derive(Debug)]
pub(super) enum ChunkError {
    /// The file could not be read.
    Io(io::Error),
    /// The file has something other than lines of the gateway.
    Damaged,
    /// One line, about this subject, does not fit into a chunk.
    TooLong(String),
}

impl From<io::Error> for ChunkError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A file that is read from a position.
struct FileFrom<'f> {
    file: &'f File,
    at: u64,
}

impl Read for FileFrom<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(buffer, self.at)?;
        self.at += length as u64;
        Ok(length)
    }
}

/// Reads the first line of a file, with its line feed, at most 100 bytes.
pub(super) fn read_first_line(file: &File) -> io::Result<String> {
    let mut line = Vec::new();
    BufReader::new(FileFrom { file, at: 0 }.take(100)).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// Reads the lines from a position, as many as fit. Returns `None` at the end of the file. `staging` is the staging graph
/// in angle brackets.
pub(super) fn read_chunk(
    file: &File,
    from: u64,
    limits: ChunkLimits,
    staging: &str,
) -> Result<Option<Chunk>, ChunkError> {
    let mut reader = BufReader::new(FileFrom { file, at: from });
    let mut chunk = Chunk { triples: String::new(), state: String::new(), lines: 0, end: from };
    let mut line = Vec::new();
    while chunk.lines < limits.lines {
        line.clear();
        // A longer line cannot fit.
        let length = (&mut reader).take(2 * MAX_CHUNK_BYTES as u64).read_until(b'\n', &mut line)?;
        if length == 0 {
            break;
        }
        let text = std::str::from_utf8(&line).map_err(|_| ChunkError::Damaged);
        let lengths = (chunk.triples.len(), chunk.state.len());
        let is_added = line.ends_with(b"\n") && chunk.add_line(text?, limits.is_full, staging)?;
        if !is_added || chunk.triples.len() + chunk.state.len() > MAX_CHUNK_BYTES {
            chunk.triples.truncate(lengths.0);
            chunk.state.truncate(lengths.1);
            if chunk.lines == 0 {
                return Err(too_long(&line));
            }
            break;
        }
        chunk.lines += 1;
        chunk.end += length as u64;
    }
    Ok((chunk.lines > 0).then_some(chunk))
}

fn too_long(line: &[u8]) -> ChunkError {
    if line.len() < MAX_CHUNK_BYTES / 2 {
        return ChunkError::Damaged;
    }
    let subject = line.split(|byte| *byte == b' ').next().unwrap_or_default();
    ChunkError::TooLong(String::from_utf8_lossy(subject).chars().take(300).collect())
}

impl Chunk {
    /// Adds a line. Returns false if it does not fit.
    fn add_line(&mut self, line: &str, is_full: bool, staging: &str) -> Result<bool, ChunkError> {
        if line.len() > MAX_CHUNK_BYTES {
            return Ok(false);
        }
        let replaces = |object: &str| format!("{staging} <{VOCABULARY}replaces> {object} .\n");
        let parsed = GraphLine::parse(line.trim_end_matches('\n')).ok_or(ChunkError::Damaged)?;
        match parsed {
            GraphLine::Triple(triple) => {
                let _ = writeln!(self.triples, "{triple} .");
            }
            GraphLine::Holds { object, subject } => {
                let _ = writeln!(self.state, "{object} <{VOCABULARY}holds> {subject} .");
                if object == subject && !is_full {
                    self.state.push_str(&replaces(object));
                }
            }
            GraphLine::Removed { object } => self.state.push_str(&replaces(object)),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    const STAGING: &str = "<urn:g:1>";

    fn file_of(text: &str) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn read_all(text: &str, lines: usize, is_full: bool) -> Vec<Chunk> {
        let file = file_of(text);
        let (mut chunks, mut at) = (Vec::new(), 0);
        let limits = ChunkLimits { lines, is_full };
        while let Some(chunk) = read_chunk(&file, at, limits, STAGING).unwrap() {
            at = chunk.end;
            chunks.push(chunk);
        }
        assert_eq!(at, text.len() as u64);
        chunks
    }

    #[test]
    fn lines_become_triples_and_what_each_object_holds() {
        let text = "<urn:o> <urn:penstock:export:holds> <urn:o> <urn:o> .\n\
                    <urn:o> <urn:p> \"x\" <urn:o> .\n\
                    <urn:o> <urn:penstock:export:holds> <urn:n> <urn:o> .\n\
                    <urn:r> <urn:penstock:export:removed> <urn:r> <urn:r> .\n";
        let [chunk] = read_all(text, 10, false).try_into().unwrap();
        assert_eq!(chunk.triples, "<urn:o> <urn:p> \"x\" .\n");
        let replaces = "<urn:g:1> <urn:penstock:export:replaces>";
        let state = format!(
            "<urn:o> <urn:penstock:export:holds> <urn:o> .\n{replaces} <urn:o> .\n\
             <urn:o> <urn:penstock:export:holds> <urn:n> .\n{replaces} <urn:r> .\n"
        );
        assert_eq!(chunk.state, state);
        assert!(!read_all(text, 10, true).first().unwrap().state.contains("replaces> <urn:o>"));
        let counts: Vec<_> = read_all(text, 3, true).iter().map(|chunk| chunk.lines).collect();
        assert_eq!(counts, [3, 1]);
    }

    #[test]
    fn chunks_stay_below_their_limit_and_a_longer_line_is_an_error() {
        let line = |length| format!("<urn:o> <urn:p> \"{}\" <urn:o> .\n", "x".repeat(length));
        let chunks = read_all(&line(300 << 10).repeat(7), 1_000, true);
        assert_eq!(chunks.iter().map(|chunk| chunk.lines).collect::<Vec<_>>(), [3, 3, 1]);
        let limits = ChunkLimits { lines: 9, is_full: true };
        for length in [961 << 10, 3 << 20] {
            let refused = read_chunk(&file_of(&line(length)), 0, limits, STAGING);
            let Err(ChunkError::TooLong(subject)) = refused else { panic!("{refused:?}") };
            assert_eq!(subject, "<urn:o>");
        }
        let torn = read_chunk(&file_of("<urn:o> <urn:p> <ur"), 0, limits, STAGING);
        assert!(matches!(torn, Err(ChunkError::Damaged)), "{torn:?}");
    }
}
