//! The text being read: the position of its reader, how far the parser reads ahead, and how deep the text nests.
use crate::format::Format;
use crate::scan::{Excess, Scanner};
use std::cell::{Cell, RefCell};
use std::io::{self, BufReader, Read};
use std::rc::Rc;

/// The position in a text, shared with the parser that reads it.
#[derive(Debug, Clone)]
pub(crate) struct ReadPosition(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    line: Cell<u64>,
    column: Cell<u64>,
    /// The number of bytes read since the last quad from the parser.
    ahead: Cell<u64>,
    scanner: RefCell<Scanner>,
}

impl ReadPosition {
    pub(crate) fn new(format: Format) -> Self {
        Self(Rc::new(Inner {
            line: Cell::default(),
            column: Cell::default(),
            ahead: Cell::default(),
            scanner: RefCell::new(Scanner::new(format)),
        }))
    }

    /// Returns the line and column of the last character read, both counted from 1.
    pub(crate) fn line_and_column(&self) -> (u64, u64) {
        (self.0.line.get() + 1, self.0.column.get().max(1))
    }

    /// Returns the line and column of the first blank node of a text in Turtle, `TriG`, N-Triples or N-Quads.
    pub(crate) fn first_blank_node(&self) -> Option<(u64, u64)> {
        self.0.scanner.borrow().first_blank_node()
    }

    /// Returns whether a string of JSON that was read is a number in the form of a double.
    pub(crate) fn has_double_text(&self) -> bool {
        self.0.scanner.borrow().has_double_text()
    }

    /// Records that the parser returned a quad.
    pub(crate) fn reset_ahead(&self) {
        self.0.ahead.set(0);
    }

    fn advance(&self, bytes: &[u8]) -> Result<(), Excess> {
        let mut scanner = self.0.scanner.borrow_mut();
        let mut expanded = 0;
        for byte in bytes {
            if *byte == b'\n' {
                self.0.line.update(|line| line + 1);
                self.0.column.set(0);
            } else if byte & 0xc0 != 0x80 {
                self.0.column.update(|column| column + 1);
            }
            expanded += scanner.process_byte(*byte, self.line_and_column())?;
        }
        self.0.ahead.update(|ahead| ahead + bytes.len() as u64 + expanded);
        Ok(())
    }
}

/// The text being loaded, as a reader for the parser.
pub(crate) struct DocumentSource<R> {
    text: BufReader<R>,
    position: ReadPosition,
    /// Whether the parser gets one byte at a time, because it reports no positions of its own.
    by_byte: bool,
    /// The maximum number of bytes that the parser may read without returning a quad, because it keeps them in memory.
    max_ahead_bytes: u64,
}

impl<R: Read> DocumentSource<R> {
    pub(crate) fn new(
        text: R,
        position: ReadPosition,
        by_byte: bool,
        max_ahead_bytes: u64,
    ) -> Self {
        Self { text: BufReader::with_capacity(64 << 10, text), position, by_byte, max_ahead_bytes }
    }
}

impl<R: Read> Read for DocumentSource<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.position.0.ahead.get() > self.max_ahead_bytes {
            return Err(io::Error::other(format!(
                "the parser would have to hold more than {} MiB in memory at once, which is the limit; N-Quads \
                 and N-Triples need only a line",
                self.max_ahead_bytes >> 20
            )));
        }
        let most = if self.by_byte { 1 } else { buffer.len() };
        let buffer = buffer.get_mut(..most).unwrap_or_default();
        let read = self.text.read(buffer)?;
        self.position
            .advance(buffer.get(..read).unwrap_or_default())
            .map_err(|excess| io::Error::new(io::ErrorKind::InvalidData, excess))?;
        Ok(read)
    }
}
