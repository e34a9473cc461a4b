//! The export file of the specification (2.4), written as a stream.
//!
//! `metadata` comes first in the file, but contains the count and the checksum of the data after it. So the writer
//! reserves space for it, fills it at the end, and pads it with white space after its last field. The data is
//! written only once.
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 64 << 10;

/// Writes an export file.
#[derive(Debug)]
pub(super) struct FileWriter {
    path: PathBuf,
    file: File,
    /// Buffered data that is not written yet.
    buffered: Vec<u8>,
    export_date: String,
    object_type: String,
    header_length: usize,
    objects: u64,
    data_bytes: u64,
    data: Sha256,
}

/// The metadata of a finished file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FinishedFile {
    /// `metadata.object_count`
    pub(super) objects: u64,
    /// The size of the whole file in bytes.
    pub(super) bytes: u64,
    /// `metadata.data_checksum`
    pub(super) data_checksum: String,
    /// SHA-256 of the whole file.
    pub(super) sha256: String,
}

impl FileWriter {
    /// Creates a file at `path`, which must not exist.
    pub(super) fn create(path: &Path, object_type: &str, export_date: &str) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        let longest = render_header(export_date, object_type, u64::MAX, &to_hex(&[0; 32]), 0);
        let mut writer = Self {
            path: path.to_owned(),
            file,
            buffered: Vec::with_capacity(BUFFER_BYTES),
            export_date: export_date.to_owned(),
            object_type: object_type.to_owned(),
            header_length: longest.len(),
            objects: 0,
            data_bytes: 0,
            data: Sha256::new(),
        };
        writer.file.write_all(&vec![b' '; longest.len()])?;
        writer.buffer_data(b"[")?;
        Ok(writer)
    }

    /// Appends one object as JSON.
    pub(super) fn append_object(&mut self, json: &[u8]) -> io::Result<()> {
        if self.objects > 0 {
            self.buffer_data(b",")?;
        }
        self.objects += 1;
        self.buffer_data(json)
    }

    /// Returns the bytes of data written so far.
    pub(super) fn written_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Writes the metadata, syncs the file, and reads it back to compute the checksum of the whole file.
    pub(super) fn finish(mut self) -> io::Result<FinishedFile> {
        self.buffer_data(b"]")?;
        self.flush_buffer()?;
        self.file.write_all(b"}")?;
        let data_checksum = to_hex(&self.data.finalize());
        let header = render_header(
            &self.export_date,
            &self.object_type,
            self.objects,
            &data_checksum,
            self.header_length,
        );
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(header.as_bytes())?;
        let mut file = self.file;
        file.sync_all()?;
        file.seek(SeekFrom::Start(0))?;
        let (bytes, sha256) = digest_to_end(&mut file)?;
        let expected = self.header_length as u64 + self.data_bytes + 1;
        if bytes != expected {
            return Err(io::Error::other(format!(
                "{} has {bytes} bytes, but {expected} were written",
                self.path.display()
            )));
        }
        Ok(FinishedFile { objects: self.objects, bytes, data_checksum, sha256 })
    }

    fn buffer_data(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffered.len() + bytes.len() > BUFFER_BYTES {
            self.flush_buffer()?;
        }
        if bytes.len() > BUFFER_BYTES {
            return self.write_data(bytes);
        }
        self.buffered.extend_from_slice(bytes);
        Ok(())
    }

    fn flush_buffer(&mut self) -> io::Result<()> {
        let mut buffered = std::mem::take(&mut self.buffered);
        self.write_data(&buffered)?;
        buffered.clear();
        self.buffered = buffered;
        Ok(())
    }

    fn write_data(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.data.update(bytes);
        self.data_bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }
}

/// Returns the start of the file up to its data, padded to at least `length` bytes.
fn render_header(
    date: &str,
    object_type: &str,
    objects: u64,
    checksum: &str,
    length: usize,
) -> String {
    let object_type = serde_json::Value::from(object_type);
    let start = format!(
        "{{\"metadata\":{{\"export_date\":\"{date}\",\"object_type\":{object_type},\"object_count\":{objects},\
         \"data_checksum\":\"{checksum}\",\"checksum_algorithm\":\"SHA-256\""
    );
    let end = "},\"data\":";
    let width = length.saturating_sub(end.len());
    format!(
        "{start:<width$}{end}",
        width = width.saturating_sub(start.len() - start.chars().count())
    )
}

/// Reads to the end and returns the number of bytes and their SHA-256.
pub(super) fn digest_to_end(read: &mut impl Read) -> io::Result<(u64, String)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut bytes = 0;
    loop {
        match read.read(&mut buffer) {
            Ok(0) => return Ok((bytes, to_hex(&hasher.finalize()))),
            Ok(n) => {
                hasher.update(buffer.get(..n).unwrap_or_default());
                bytes += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Formats bytes as lowercase hexadecimal.
pub(super) fn to_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_matches_the_specification_byte_for_byte() {
        for (name, objects) in
            [("Pump", vec![]), ("Größe \"x\"", vec!["{\"uri\":\"urn:a\"}", "{}"])]
        {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x.json");
            let mut writer = FileWriter::create(&path, name, "20260301T120000Z").unwrap();
            for object in &objects {
                writer.append_object(object.as_bytes()).unwrap();
            }
            let finished = writer.finish().unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let text = std::str::from_utf8(&bytes).unwrap();
            let data = format!("[{}]", objects.join(","));
            assert!(text.starts_with(
                "{\"metadata\":{\"export_date\":\"20260301T120000Z\",\"object_type\":"
            ));
            assert!(text.ends_with(&format!("}},\"data\":{data}}}")));
            assert_eq!(finished.data_checksum, to_hex(&Sha256::digest(&data)));
            assert_eq!(finished.sha256, to_hex(&Sha256::digest(&bytes)));
            assert_eq!(
                (finished.bytes, finished.objects),
                (bytes.len() as u64, objects.len() as u64)
            );
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(value["metadata"]["object_type"], name);
            assert_eq!(value["metadata"]["object_count"], objects.len());
            assert_eq!(value["metadata"]["data_checksum"], finished.data_checksum.as_str());
            let fields: Vec<_> = value["metadata"].as_object().unwrap().keys().cloned().collect();
            assert_eq!(
                fields,
                [
                    "export_date",
                    "object_type",
                    "object_count",
                    "data_checksum",
                    "checksum_algorithm"
                ]
            );
        }
    }
}
