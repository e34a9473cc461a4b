//! Reads the objects of an export file one after the other, so that a long file needs little memory.
use penstock_export::OpenedExport;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{BufRead as _, BufReader};

/// The maximum number of bytes of one object.
const MAX_OBJECT_BYTES: usize = 1 << 20;
/// The nesting of the array of the objects in a file in the format `json`.
const DATA_DEPTH: usize = 2;

/// An object of an export.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportObject {
    /// Its URI.
    pub uri: String,
    /// All its members.
    pub members: Map<String, Value>,
}

/// Reads the objects of a file. Ends with the file, also if that is cut.
pub(super) struct ObjectReader {
    file: BufReader<File>,
    /// The nesting at which objects begin: 0 in the format `jsonl`.
    object_depth: usize,
    depth: usize,
    /// Whether the array of the objects has begun.
    is_in_data: bool,
    in_string: bool,
    is_escaped: bool,
    read_bytes: u64,
}

impl ObjectReader {
    /// Creates the reader, or returns why the file has no JSON objects.
    pub(super) fn new(opened: OpenedExport) -> Result<Self, String> {
        let entry = &opened.entry;
        if entry.graph().is_some() {
            return Err("a file for a SPARQL store has triples, no JSON objects".to_owned());
        }
        let is_lines = entry.metadata_key().is_some();
        Ok(Self {
            file: BufReader::new(opened.file),
            object_depth: if is_lines { 0 } else { DATA_DEPTH },
            depth: 0,
            is_in_data: is_lines,
            in_string: false,
            is_escaped: false,
            read_bytes: 0,
        })
    }

    /// Returns the number of bytes read so far.
    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Returns the next object, or `None` at the end of the file.
    pub(super) fn next_object(&mut self) -> Result<Option<ExportObject>, String> {
        let mut text = Vec::new();
        loop {
            let buffered =
                self.file.fill_buf().map_err(|error| format!("it could not be read: {error}"))?;
            if buffered.is_empty() {
                return Ok(None);
            }
            let (mut used, mut is_complete) = (0, false);
            // The state is changed while the buffer is borrowed.
            let mut state = (self.depth, self.is_in_data, self.in_string, self.is_escaped);
            for byte in buffered {
                used += 1;
                let was_inside = !text.is_empty();
                let begins = step(&mut state, *byte, self.object_depth);
                if was_inside || begins {
                    text.push(*byte);
                }
                if was_inside && state.0 == self.object_depth && !state.2 {
                    is_complete = true;
                    break;
                }
            }
            (self.depth, self.is_in_data, self.in_string, self.is_escaped) = state;
            self.file.consume(used);
            self.read_bytes += used as u64;
            if is_complete {
                return ExportObject::parse(&text).map(Some);
            }
            if text.len() > MAX_OBJECT_BYTES {
                return Err("it has an object of more than 1 MiB".to_owned());
            }
        }
    }
}

impl ExportObject {
    /// Parses the JSON of an object. Every object of an export has the member `uri`.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let members: Map<String, Value> = serde_json::from_slice(text)
            .map_err(|error| format!("an object is not valid JSON: {error}"))?;
        let uri = members.get("uri").and_then(Value::as_str).map(str::to_owned);
        let uri = uri.ok_or("an object has no text in the member \"uri\"")?;
        Ok(Self { uri, members })
    }
}

/// Reads one byte of JSON. The state is the nesting, whether the array of the objects has begun, and whether the byte is
/// in a string and after a backslash there. Returns whether an object begins.
fn step(state: &mut (usize, bool, bool, bool), byte: u8, object_depth: usize) -> bool {
    let (depth, is_in_data, in_string, is_escaped) = state;
    if *in_string {
        match byte {
            _ if *is_escaped => *is_escaped = false,
            b'\\' => *is_escaped = true,
            b'"' => *in_string = false,
            _ => {}
        }
        return false;
    }
    match byte {
        b'"' => *in_string = true,
        b'[' | b'{' => {
            let begins = byte == b'{' && *is_in_data && *depth == object_depth;
            // In the format `json`, only the objects are an array at this nesting; the metadata is an object.
            *is_in_data |= byte == b'[' && *depth + 1 == object_depth;
            *depth += 1;
            return begins;
        }
        b']' | b'}' => *depth = depth.saturating_sub(1),
        _ => {}
    }
    false
}
