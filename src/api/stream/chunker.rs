//! Splits a stream into chunks of whole objects.
use memchr::{memchr, memchr_iter, memrchr};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_http::body::{self, BYTE_ORDER_MARK};
use penstock_http::problem::Problem;
use penstock_model::csv::{CsvFormat, RecordScanner, count_blank_bytes};

/// The maximum number of objects of a chunk.
const MAX_CHUNK_OBJECTS: usize = 1000;
/// A chunk ends with the line or record in which it reaches this number of bytes.
pub(super) const CHUNK_END_BYTES: usize = 1 << 20;
/// The maximum number of cells of a chunk with several records of CSV. `service.limits.values` limits them too, to not less
/// than 10,000 by default, and counts some of them twice.
const MAX_CHUNK_CELLS: usize = 5000;
/// The maximum bytes before the header of CSV: a byte order mark and `"sep=;"` with its line break.
const MAX_PRECEDING_BYTES: usize = 12;
/// The maximum bytes of the headers of all dead letters that a chunk can have. Each dead letter has the header.
const MAX_HEADER_COPIES_BYTES: usize = 4 << 20;

/// Whole objects that are ingested together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) text: Vec<u8>,
    /// The number of the first line of each object in the stream, from 1.
    pub(super) line_numbers: Vec<u64>,
}

/// Splits a text into chunks of whole objects. The split depends only on the text, never on the pieces in which
/// it arrived. Blank lines and records are left out.
#[derive(Debug)]
pub(super) struct Chunker {
    pub(super) text: Vec<u8>,
    objects: Objects,
    max_objects: usize,
    /// The start of the first object that is not in `line_numbers` yet.
    object_start: usize,
    /// The position up to which that object was searched for its end.
    searched: usize,
    /// The numbers of the first lines of the objects before it.
    line_numbers: Vec<u64>,
    /// The number of all lines before it in the stream, with blank ones.
    closed_lines: u64,
    /// Whether what may precede the text was looked for.
    is_begun: bool,
}

/// How the text is divided into objects.
#[derive(Debug)]
enum Objects {
    Lines,
    Records { scanner: Box<RecordScanner>, format: CsvFormat, has_header: bool },
}

impl Objects {
    /// Reads on in the text, and returns how many of its bytes belong to the object; `None` if it does not end there.
    fn find_end(&mut self, text: &[u8]) -> Option<usize> {
        match self {
            Self::Lines => memchr(b'\n', text).map(|at| at + 1),
            Self::Records { scanner, .. } => scanner.find_end(text),
        }
    }

    /// Returns how many bytes at the start of the text are no values of an object.
    fn count_blank(&self, text: &[u8]) -> usize {
        match self {
            Self::Lines => text.iter().take_while(|byte| byte.is_ascii_whitespace()).count(),
            Self::Records { format, .. } => count_blank_bytes(text, *format),
        }
    }

    fn is_blank(&self, text: &[u8]) -> bool {
        self.count_blank(text) == text.len()
    }

    /// Ends the text. Returns whether its last object, which is not blank, is incomplete.
    fn is_incomplete(&mut self) -> bool {
        match self {
            Self::Lines => false,
            Self::Records { scanner, .. } => scanner.ends_in_quotes(),
        }
    }
}

impl Chunker {
    /// Creates a chunker of NDJSON.
    pub(super) fn of_lines() -> Self {
        Self::new(Objects::Lines)
    }

    /// Creates a chunker of CSV, whose header must be taken first.
    pub(super) fn of_records(format: CsvFormat) -> Self {
        let scanner = Box::new(RecordScanner::new(format));
        Self::new(Objects::Records { scanner, format, has_header: false })
    }

    fn new(objects: Objects) -> Self {
        Self {
            text: Vec::new(),
            objects,
            max_objects: MAX_CHUNK_OBJECTS,
            object_start: 0,
            searched: 0,
            line_numbers: Vec::new(),
            closed_lines: 0,
            is_begun: false,
        }
    }

    /// Returns whether the header of CSV was not taken yet.
    pub(super) fn needs_header(&self) -> bool {
        matches!(self.objects, Objects::Records { has_header: false, .. })
    }

    /// Returns the format of CSV.
    pub(super) fn format(&self) -> CsvFormat {
        match self.objects {
            Objects::Lines => CsvFormat::default(),
            Objects::Records { format, .. } => format,
        }
    }

    /// Removes what may precede the text: a byte order mark, and from CSV the line that names the delimiter. Returns false while
    /// the rest of it may arrive: the scanner would take the beginning of a mark for a part of the first name, whose quote it
    /// then passes over.
    fn begin_text(&mut self, ended: bool) -> Result<bool, Problem> {
        if self.is_begun || !ended && self.text.len() < MAX_PRECEDING_BYTES {
            return Ok(self.is_begun);
        }
        if self.text.starts_with(BYTE_ORDER_MARK) {
            self.text.drain(..BYTE_ORDER_MARK.len());
        }
        if let Objects::Records { scanner, format, .. } = &mut self.objects {
            let (named, length) = format.read_delimiter_line(&self.text)?;
            if length > 0 {
                **scanner = RecordScanner::new(named);
                *format = named;
                self.text.drain(..length);
                self.closed_lines += 1;
            }
        }
        self.is_begun = true;
        Ok(true)
    }

    /// Returns the header and its line if it is complete.
    pub(super) fn take_header(&mut self, ended: bool) -> Result<Option<(Vec<u8>, u64)>, Problem> {
        if !self.begin_text(ended)? {
            return Ok(None);
        }
        while self.line_numbers.is_empty() {
            if !self.close_next(ended)? {
                return Ok(None);
            }
        }
        let Chunk { text, line_numbers } = self.take_chunk();
        Ok(line_numbers.first().map(|line| (text, *line)))
    }

    /// Begins with the records after a header of this many bytes and columns.
    pub(super) fn begin_records(&mut self, header_bytes: usize, columns: usize) {
        if let Objects::Records { has_header, .. } = &mut self.objects {
            *has_header = true;
        }
        let copies = MAX_HEADER_COPIES_BYTES / header_bytes.max(1);
        let records = MAX_CHUNK_CELLS / columns.max(1);
        self.max_objects = copies.min(records).clamp(1, MAX_CHUNK_OBJECTS);
    }

    /// Returns the next chunk if it is complete, or the rest at the end of the text.
    pub(super) fn next_chunk(&mut self, ended: bool) -> Result<Option<Chunk>, Problem> {
        if !self.begin_text(ended)? {
            return Ok(None);
        }
        while self.close_next(ended)? {
            if self.line_numbers.len() == self.max_objects || self.object_start >= CHUNK_END_BYTES {
                return Ok(Some(self.take_chunk()));
            }
        }
        let is_last = ended && !self.line_numbers.is_empty();
        Ok(is_last.then(|| self.take_chunk()))
    }

    /// Counts the next object if it is complete, or removes it if it is blank. Returns false if there is none.
    fn close_next(&mut self, ended: bool) -> Result<bool, Problem> {
        if self.searched == self.object_start {
            self.remove_blank_lines();
        }
        let unread = self.text.get(self.searched..).unwrap_or_default();
        if let Some(length) = self.objects.find_end(unread) {
            self.close_object(self.searched + length);
            return Ok(true);
        }
        self.searched = self.text.len();
        let rest = self.text.get(self.object_start..).unwrap_or_default();
        if !ended || rest.is_empty() {
            return Ok(false);
        }
        if !self.objects.is_blank(rest) && self.objects.is_incomplete() {
            // The complete objects before it are ingested first.
            if !self.line_numbers.is_empty() {
                return Ok(false);
            }
            return Err(unbalanced_quote(self.next_line()));
        }
        self.close_object(self.text.len());
        Ok(true)
    }

    /// Removes the blank lines before the next object, all at once.
    fn remove_blank_lines(&mut self) {
        let rest = self.text.get(self.object_start..).unwrap_or_default();
        let blank = rest.get(..self.objects.count_blank(rest)).unwrap_or_default();
        let length = memrchr(b'\n', blank).map_or(0, |at| at + 1);
        self.closed_lines += memchr_iter(b'\n', blank).count() as u64;
        self.text.drain(self.object_start..self.object_start + length);
    }

    fn close_object(&mut self, end: usize) {
        let object = self.text.get(self.object_start..end).unwrap_or_default();
        let line_breaks = memchr_iter(b'\n', object).count() as u64;
        if self.objects.is_blank(object) {
            self.text.drain(self.object_start..end);
        } else {
            self.line_numbers.push(self.next_line());
            self.object_start = end;
        }
        self.closed_lines += line_breaks;
        self.searched = self.object_start;
    }

    /// Returns the line of the object that comes next.
    fn next_line(&self) -> u64 {
        let object = self.text.get(self.object_start..).unwrap_or_default();
        let empty_lines = object.iter().take_while(|byte| **byte == b'\n').count() as u64;
        self.closed_lines + empty_lines + 1
    }

    fn take_chunk(&mut self) -> Chunk {
        let rest = self.text.split_off(self.object_start);
        let text = std::mem::replace(&mut self.text, rest);
        let line_numbers = std::mem::take(&mut self.line_numbers);
        self.searched -= self.object_start;
        self.object_start = 0;
        Chunk { text, line_numbers }
    }

    /// Returns the number of complete objects that are in no chunk yet.
    pub(super) fn object_count(&self) -> usize {
        self.line_numbers.len()
    }

    /// Returns the bytes of the object that has no end yet.
    pub(super) fn unfinished_bytes(&self) -> usize {
        self.text.len() - self.object_start
    }

    /// Returns the problem of an object that is larger than a body may be.
    pub(super) fn describe_too_large(&self, limit: u64) -> Problem {
        match self.objects {
            Objects::Lines => body::line_too_large(limit),
            Objects::Records { .. } => body::record_too_large(limit, self.next_line()),
        }
    }
}

fn unbalanced_quote(line: u64) -> Problem {
    let message = "the record has a quote without a closing one; the records before it are ingested, and the rest of the \
                   text is not";
    let finding = Finding::at_line(line, 1, message);
    let detail = format!("the CSV cannot be read: {finding}");
    GatewayError::with_findings(ErrorClass::Malformed, detail, vec![finding]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(pieces: impl IntoIterator<Item = Vec<u8>>) -> Vec<Chunk> {
        let (mut chunker, mut chunks) = (Chunker::of_lines(), Vec::new());
        for piece in pieces {
            chunker.text.extend_from_slice(&piece);
            while let Some(chunk) = chunker.next_chunk(false).unwrap() {
                chunks.push(chunk);
            }
        }
        while let Some(chunk) = chunker.next_chunk(true).unwrap() {
            chunks.push(chunk);
        }
        chunks
    }

    #[test]
    fn chunks_do_not_depend_on_the_pieces() {
        let mut text = Vec::new();
        for index in 0..2500 {
            text.extend_from_slice(format!("{{\"n\":{index}}}\r\n").as_bytes());
            if index % 100 == 0 {
                text.extend_from_slice(b" \n\n");
            }
        }
        text.extend_from_slice(br#"{"n":"last"}"#);
        let whole = chunks([text.clone()]);
        let counts: Vec<_> = whole.iter().map(|chunk| chunk.line_numbers.len()).collect();
        assert_eq!(counts, [1000, 1000, 501]);
        let numbers = whole.iter().flat_map(|chunk| chunk.line_numbers.iter().copied());
        let has_object = |line: &[u8]| !line.trim_ascii().is_empty();
        let lines = (1..).zip(text.split(|byte| *byte == b'\n'));
        let expected = lines.filter(|(_, line)| has_object(line)).map(|(number, _)| number);
        assert!(numbers.eq(expected), "blank lines count");
        for size in [1, 7, 4096] {
            assert_eq!(chunks(text.chunks(size).map(<[u8]>::to_vec)), whole, "{size}");
        }
        let joined: Vec<u8> = whole.into_iter().flat_map(|chunk| chunk.text).collect();
        let lines = |text: &[u8]| {
            let lines = text.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
            lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        assert_eq!(lines(&joined), lines(&text));
    }

    #[test]
    fn chunks_of_records_have_the_lines_of_their_starts() {
        let mut text = b"name;note\r\n\r\n;;\r\n".to_vec();
        for number in 0..1500 {
            text.extend_from_slice(format!("p{number};\"two\nlines\"\r\n").as_bytes());
        }
        text.extend_from_slice(b"last;x");
        let format = CsvFormat::new(Some(";"), None, false).unwrap();
        let split = |size: usize| {
            let (mut chunker, mut header, mut chunks) =
                (Chunker::of_records(format), None, Vec::new());
            let mut pieces = text.chunks(size);
            loop {
                let piece = pieces.next();
                chunker.text.extend_from_slice(piece.unwrap_or_default());
                if chunker.needs_header() {
                    header = chunker.take_header(piece.is_none()).unwrap();
                    if header.is_some() {
                        chunker.begin_records(9, 3);
                    }
                }
                while !chunker.needs_header()
                    && let Some(chunk) = chunker.next_chunk(piece.is_none()).unwrap()
                {
                    chunks.push(chunk);
                }
                if piece.is_none() {
                    return (header, chunks);
                }
            }
        };
        let (header, chunks) = split(text.len());
        assert_eq!(header, Some((b"name;note\r\n".to_vec(), 1)));
        let counts: Vec<_> = chunks.iter().map(|chunk| chunk.line_numbers.len()).collect();
        assert_eq!(counts, [1000, 501]);
        let lines: Vec<u64> = chunks.iter().flat_map(|chunk| chunk.line_numbers.clone()).collect();
        let expected = (0..1501).map(|number| 4 + 2 * number);
        assert_eq!(lines, expected.collect::<Vec<u64>>());
        for size in [1, 7, 4096] {
            assert_eq!(split(size), (header.clone(), chunks.clone()), "{size}");
        }
    }

    #[test]
    fn an_open_quote_ends_the_stream_after_the_records_before_it() {
        let mut chunker = Chunker::of_records(CsvFormat::default());
        chunker.text.extend_from_slice(b"a\n1\n\n\"2\n3\n");
        chunker.take_header(true).unwrap().unwrap();
        chunker.begin_records(1, 1);
        let chunk = chunker.next_chunk(true).unwrap().unwrap();
        assert_eq!((chunk.text, chunk.line_numbers), (b"1\n".to_vec(), vec![2]));
        let problem = chunker.next_chunk(true).unwrap_err();
        assert!(problem.detail().contains("line 4, column 1"), "{}", problem.detail());
    }

    #[test]
    fn a_byte_order_mark_before_a_quoted_header_may_arrive_in_pieces() {
        let text = b"\xEF\xBB\xBF\"a\nb\",c\n1,2\n";
        for size in [1, 2, 3, 5, text.len()] {
            let mut chunker = Chunker::of_records(CsvFormat::default());
            let mut header = None;
            for piece in text.chunks(size) {
                chunker.text.extend_from_slice(piece);
                if header.is_none() {
                    header = chunker.take_header(false).unwrap();
                }
            }
            assert_eq!(header, Some((b"\"a\nb\",c\n".to_vec(), 1)), "{size}");
        }
        let mut chunker = Chunker::of_records(CsvFormat::default());
        chunker.text.extend_from_slice(b"a");
        assert_eq!(chunker.take_header(true).unwrap(), Some((b"a".to_vec(), 1)));
    }

    #[test]
    fn a_line_before_the_header_names_the_delimiter() {
        for first in ["sep=;\r\n", "SEP=;\n", "\u{feff}\"sep=;\"\r\n"] {
            let text = format!("{first}a;b\n\"1\n2\";3\n4;5\n");
            for size in [1, 5, text.len()] {
                let mut chunker = Chunker::of_records(CsvFormat::default());
                let mut header = None;
                for piece in text.as_bytes().chunks(size) {
                    chunker.text.extend_from_slice(piece);
                    if header.is_none() {
                        header = chunker.take_header(false).unwrap();
                    }
                }
                assert_eq!(header, Some((b"a;b\n".to_vec(), 2)), "{first:?} {size}");
                assert_eq!(chunker.format().delimiter, ';');
                chunker.begin_records(4, 2);
                let chunk = chunker.next_chunk(true).unwrap().unwrap();
                assert_eq!(chunk.line_numbers, [3, 5], "{first:?} {size}");
            }
        }
        let bars = CsvFormat::new(None, Some("|"), false).unwrap();
        let mut chunker = Chunker::of_records(bars);
        chunker.text.extend_from_slice(b"sep=|\na|b\n");
        let problem = chunker.take_header(true).unwrap_err();
        assert!(problem.detail().contains("arrayDelimiter"), "{}", problem.detail());
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let text = b"\xEF\xBB\xBF{\"n\":1}\n{\"n\":2}\n";
        for size in [1, 2, text.len()] {
            let found = chunks(text.chunks(size).map(<[u8]>::to_vec));
            let expected = Chunk { text: text[3..].to_vec(), line_numbers: vec![1, 2] };
            assert_eq!(found, [expected], "{size}");
        }
    }

    #[test]
    fn a_long_header_makes_chunks_small() {
        let mut chunker = Chunker::of_records(CsvFormat::default());
        chunker.begin_records(MAX_HEADER_COPIES_BYTES / 2, 1);
        chunker.text.extend_from_slice(b"1\n2\n3\n");
        let counts: Vec<_> = std::iter::from_fn(|| chunker.next_chunk(true).unwrap())
            .map(|chunk| chunk.line_numbers.len())
            .collect();
        assert_eq!(counts, [2, 1]);
    }

    #[test]
    fn a_chunk_ends_with_the_line_that_fills_it() {
        let line = [vec![b'x'; 400_000], vec![b'\n']].concat();
        let text = line.repeat(4);
        let found: Vec<_> =
            chunks([text]).iter().map(|c| (c.line_numbers.len(), c.text.len())).collect();
        assert_eq!(found, [(3, 1_200_003), (1, 400_001)]);
    }

    #[test]
    fn blank_text_has_no_chunk() {
        assert_eq!(chunks([b" \n\r\n  ".to_vec()]), []);
        assert_eq!(chunks([]), []);
    }
}
