//! The text that is loaded: where its reader is, and how far it looks ahead.
use super::blank_node::FirstBlankNode;
use std::cell::{Cell, RefCell};
use std::io::{self, BufReader, Read};
use std::rc::Rc;

/// How far a text was read; shared with the parser that reads it.
#[derive(Debug, Clone, Default)]
pub(super) struct Position(Rc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    line: Cell<u64>,
    column: Cell<u64>,
    /// Bytes since something came out of the parser.
    ahead: Cell<u64>,
    first_blank_node: RefCell<FirstBlankNode>,
}

impl Position {
    /// Line and column of the last character that was read, both from 1.
    pub(super) fn place(&self) -> (u64, u64) {
        (self.0.line.get() + 1, self.0.column.get().max(1))
    }

    /// Line and column of the first blank node of a text in Turtle, `TriG`, N-Triples or N-Quads.
    pub(super) fn first_blank_node(&self) -> Option<(u64, u64)> {
        self.0.first_blank_node.borrow().place()
    }

    /// Something came out of the parser.
    pub(super) fn moved(&self) {
        self.0.ahead.set(0);
    }

    fn read(&self, bytes: &[u8]) {
        let mut first_blank_node = self.0.first_blank_node.borrow_mut();
        for byte in bytes {
            if *byte == b'\n' {
                self.0.line.update(|line| line + 1);
                self.0.column.set(0);
            } else if byte & 0xc0 != 0x80 {
                self.0.column.update(|column| column + 1);
            }
            first_blank_node.take(*byte, self.place());
        }
        self.0.ahead.update(|ahead| ahead + bytes.len() as u64);
    }
}

/// A text that is read.
pub(super) struct Source<R> {
    text: BufReader<R>,
    position: Position,
    /// Whether the parser tells no place, so that it must get one byte at a time to be found out.
    by_byte: bool,
    /// Bytes that the parser may take without anything coming out: it keeps them.
    most_ahead: u64,
}

impl<R: Read> Source<R> {
    pub(super) fn new(text: R, position: Position, by_byte: bool, most_ahead: u64) -> Self {
        Self { text: BufReader::with_capacity(64 << 10, text), position, by_byte, most_ahead }
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.position.0.ahead.get() > self.most_ahead {
            return Err(io::Error::other(format!(
                "a part of more than {} MiB must be held in memory whole, which is the most that is \
                 taken; N-Quads and N-Triples need no more than a line",
                self.most_ahead >> 20
            )));
        }
        let most = if self.by_byte { 1 } else { buffer.len() };
        let buffer = buffer.get_mut(..most).unwrap_or_default();
        let read = self.text.read(buffer)?;
        self.position.read(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}
