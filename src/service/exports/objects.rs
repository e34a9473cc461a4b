//! Reads the objects of an export file one after the other, so that a long file needs little memory.
use penstock_export::{ExportExt as _, OpenedExport};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{BufRead, BufReader};

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
pub(super) struct ObjectReader<R = BufReader<File>> {
    file: R,
    scan: JsonScan,
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
        let scan = if is_lines { JsonScan::of_lines() } else { JsonScan::of_document() };
        Ok(Self { file: BufReader::new(opened.file), scan, read_bytes: 0 })
    }
}

impl<R: BufRead> ObjectReader<R> {
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
            for byte in buffered {
                used += 1;
                let event = self.scan.push_byte(*byte);
                if !text.is_empty() || event == Some(ObjectEvent::Begin) {
                    text.push(*byte);
                }
                if event == Some(ObjectEvent::End) {
                    is_complete = true;
                    break;
                }
            }
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

/// Where an object begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ObjectEvent {
    Begin,
    End,
}

/// Finds the objects in the bytes of a file.
struct JsonScan {
    /// The nesting at which objects begin.
    object_depth: usize,
    depth: usize,
    /// Whether the array of the objects has begun.
    is_in_data: bool,
    in_string: bool,
    is_escaped: bool,
}

impl JsonScan {
    /// Creates the scan of a file in the format `json`.
    fn of_document() -> Self {
        Self {
            object_depth: DATA_DEPTH,
            depth: 0,
            is_in_data: false,
            in_string: false,
            is_escaped: false,
        }
    }

    /// Creates the scan of a file in the format `jsonl`.
    fn of_lines() -> Self {
        Self { object_depth: 0, is_in_data: true, ..Self::of_document() }
    }

    fn push_byte(&mut self, byte: u8) -> Option<ObjectEvent> {
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return None;
        }
        match byte {
            b'"' => self.in_string = true,
            b'[' | b'{' => {
                let is_object = byte == b'{' && self.is_in_data && self.depth == self.object_depth;
                // In the format `json`, only the objects are an array at this nesting; the metadata is an object.
                self.is_in_data |= byte == b'[' && self.depth + 1 == self.object_depth;
                self.depth += 1;
                return is_object.then_some(ObjectEvent::Begin);
            }
            b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                let is_object = byte == b'}' && self.is_in_data && self.depth == self.object_depth;
                self.is_in_data &= byte == b'}' || self.depth + 1 != self.object_depth;
                return is_object.then_some(ObjectEvent::End);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Reads all objects, in pieces of `capacity` bytes.
    fn read_all(scan: JsonScan, text: &str, capacity: usize) -> Result<Vec<Value>, String> {
        let file = BufReader::with_capacity(capacity, text.as_bytes());
        let mut reader = ObjectReader { file, scan, read_bytes: 0 };
        let mut objects = Vec::new();
        while let Some(object) = reader.next_object()? {
            objects.push(Value::Object(object.members));
        }
        assert_eq!(reader.read_bytes(), text.len() as u64);
        Ok(objects)
    }

    #[test]
    fn objects_are_found_in_both_formats_in_pieces_of_any_size() {
        let objects = [
            json!({"uri": "urn:1", "text": "a } { ] \" \\"}),
            json!({"uri": "urn:2", "parts": [{"uri": "urn:3", "sizes": [[1], []]}], "empty": {}}),
            json!({"uri": "urn:4", "text": "\\\"}\\"}),
        ];
        let metadata = json!({"mixed": ["[{", {"uri": "urn:0"}], "schema": {"uri": "urn:0"}});
        let data = Value::from(objects.to_vec());
        let lines = objects.iter().map(|object| format!("{object}\n")).collect::<Vec<_>>().concat();
        for capacity in [1, 2, 7, 8192] {
            for document in [
                format!("{{\"metadata\": {metadata}, \"data\": {data}}}"),
                format!("{{\"data\": {data:#}, \"metadata\": {metadata:#}}}\n"),
            ] {
                let read = read_all(JsonScan::of_document(), &document, capacity).unwrap();
                assert_eq!(read, objects, "{capacity}");
            }
            assert_eq!(read_all(JsonScan::of_lines(), &lines, capacity).unwrap(), objects);
        }
        let nothing = format!("{{\"metadata\": {metadata}, \"data\": []}}");
        assert_eq!(read_all(JsonScan::of_document(), &nothing, 8192).unwrap(), [] as [Value; 0]);
    }

    #[test]
    fn a_cut_file_ends_and_a_wrong_one_is_refused() {
        let cut = r#"{"data": [{"uri": "urn:1"}, {"uri": "ur"#;
        assert_eq!(
            read_all(JsonScan::of_document(), cut, 8192).unwrap(),
            [json!({"uri": "urn:1"})]
        );
        for (text, cause) in [
            (r#"{"data": [{"name": "no uri"}]}"#, "no text in the member \"uri\""),
            (r#"{"data": [{"uri": 1}]}"#, "no text in the member \"uri\""),
            (r#"{"data": [{"uri" "urn:1"}]}"#, "is not valid JSON"),
        ] {
            let error = read_all(JsonScan::of_document(), text, 8192).unwrap_err();
            assert!(error.contains(cause), "{error}");
        }
        let long = json!({"uri": "urn:1", "text": "x".repeat(MAX_OBJECT_BYTES + 10_000)});
        let error = read_all(JsonScan::of_lines(), &long.to_string(), 8192).unwrap_err();
        assert!(error.contains("more than 1 MiB"), "{error}");
    }
}
