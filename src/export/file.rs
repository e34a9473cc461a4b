//! The export file of the specification (2.4), written as a stream, and its form with one object a line.
//!
//! In the format `json`, `metadata` comes first in the file, but contains the count and the checksum of the data after
//! it. So the writer reserves space for it, fills it at the end, and pads it with white space after its last field. The
//! data is written only once. In the format `jsonl`, the file has only the data, and the metadata is a document of its
//! own.
use super::graph_lines;
use penstock_base::files::PeriodicallySynced;
use penstock_base::hex::encode_hex;
use penstock_config::ExportFormat;
use penstock_resources::export::ExportKind;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 64 << 10;

/// The value of `checksum_algorithm`.
pub(super) const CHECKSUM_ALGORITHM: &str = "SHA-256";

/// The metadata of an export. Its members are those of the specification, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Metadata {
    /// When the export was created, as `20260301T120000Z`.
    pub export_date: String,
    /// The name of the Business Object.
    pub object_type: String,
    /// The number of objects in `data`.
    pub object_count: u64,
    /// The SHA-256 of the bytes of `data`, or of the lines.
    pub data_checksum: String,
    /// Always `SHA-256`.
    pub checksum_algorithm: &'static str,
    /// The further members of extended metadata.
    #[serde(flatten)]
    pub extended: Option<ExtendedMetadata>,
}

/// The members that only extended metadata has (`service.export.metadata=extended`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExtendedMetadata {
    /// `full`, `incremental` or `deleted`.
    pub kind: String,
    /// The sequence of the export.
    pub sequence: u64,
    /// The id of the gateway.
    pub gateway_id: String,
    /// The id of the export.
    pub export_id: String,
    /// The version of the Business Object.
    pub schema_version: u64,
    /// The journal sequence of a commit up to which no change is missing once the file is applied.
    pub commit: u64,
}

/// What the metadata of the files that are rendered together has in common.
#[derive(Debug, Clone)]
pub(super) struct MetadataSource<'a> {
    pub(super) export_date: String,
    pub(super) object_type: &'a str,
    pub(super) gateway_id: &'a str,
    /// The version of the Business Object.
    pub(super) schema_version: u64,
    /// The journal sequence of a commit up to which no change is missing once the files are applied.
    pub(super) commit: u64,
    /// Whether the metadata is extended.
    pub(super) is_extended: bool,
}

/// Writes the data of an export file.
#[derive(Debug)]
pub(super) struct FileWriter {
    pub(super) path: PathBuf,
    file: PeriodicallySynced,
    pub(super) format: ExportFormat,
    /// Buffered data that is not written yet.
    buffered: Vec<u8>,
    header_length: usize,
    objects: u64,
    /// The bytes of data written so far.
    pub(super) data_bytes: u64,
    data: Sha256,
}

/// A file with all its data, but without its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DataFile {
    pub(super) path: PathBuf,
    pub(super) format: ExportFormat,
    /// `metadata.object_count`
    pub(super) objects: u64,
    /// The size of the whole file in bytes.
    pub(super) bytes: u64,
    /// `metadata.data_checksum`
    pub(super) data_checksum: String,
    header_length: usize,
}

/// A file that is complete and on disk.
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

impl MetadataSource<'_> {
    /// Returns the metadata of the export with this id.
    pub(super) fn metadata_of(
        &self,
        export_id: &str,
        kind: ExportKind,
        sequence: u64,
        object_count: u64,
        data_checksum: &str,
    ) -> Metadata {
        let extended = self.is_extended.then(|| ExtendedMetadata {
            kind: kind.name().to_owned(),
            sequence,
            gateway_id: self.gateway_id.to_owned(),
            export_id: export_id.to_owned(),
            schema_version: self.schema_version,
            commit: self.commit,
        });
        Metadata {
            export_date: self.export_date.clone(),
            object_type: self.object_type.to_owned(),
            object_count,
            data_checksum: data_checksum.to_owned(),
            checksum_algorithm: CHECKSUM_ALGORITHM,
            extended,
        }
    }
}

impl Metadata {
    /// Returns the document with only the metadata, as it is beside a file in the format `jsonl`.
    pub(super) fn to_document(&self) -> String {
        format!("{}}}}}", self.render())
    }

    /// Returns the start of a document, up to the last member of the metadata.
    fn render(&self) -> String {
        let members = serde_json::to_string(self).expect("its members are texts and numbers");
        format!("{{\"metadata\":{}", members.strip_suffix('}').unwrap_or(&members))
    }

    /// Returns the start of a file up to its data, padded to at least `length` bytes.
    fn render_header(&self, length: usize) -> String {
        let (start, end) = (self.render(), "},\"data\":");
        let padding = length.saturating_sub(start.len() + end.len());
        format!("{start}{:padding$}{end}", "")
    }

    /// Returns the length of the longest header that this metadata can have once the numbers and the checksum are
    /// known.
    fn max_header_length(&self) -> usize {
        let mut longest =
            Self { object_count: u64::MAX, data_checksum: encode_hex(&[0; 32]), ..self.clone() };
        if let Some(extended) = &mut longest.extended {
            ExportKind::Incremental.name().clone_into(&mut extended.kind);
            (extended.sequence, extended.commit) = (u64::MAX, u64::MAX);
        }
        longest.render_header(0).len()
    }
}

impl FileWriter {
    /// Creates a file at `path`, which must not exist. [`DataFile::complete`] writes the metadata, in which the numbers,
    /// the checksum and the kind may differ from `metadata`.
    pub(super) fn create(
        path: &Path,
        format: ExportFormat,
        metadata: &Metadata,
    ) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        let header_length = match format {
            ExportFormat::Json => metadata.max_header_length(),
            ExportFormat::JsonLines | ExportFormat::Quads | ExportFormat::Triples => 0,
        };
        let mut writer = Self {
            path: path.to_owned(),
            file: PeriodicallySynced::new(file),
            format,
            buffered: Vec::with_capacity(BUFFER_BYTES),
            header_length,
            objects: 0,
            data_bytes: 0,
            data: Sha256::new(),
        };
        if format == ExportFormat::Json {
            writer.file.write_all(&vec![b' '; header_length])?;
            writer.buffer_data(b"[")?;
        }
        writer.buffer_data(graph_lines::header_line(format).as_bytes())?;
        Ok(writer)
    }

    /// Appends one object as JSON.
    pub(super) fn append_object(&mut self, json: &[u8]) -> io::Result<()> {
        if self.format == ExportFormat::Json && self.objects > 0 {
            self.buffer_data(b",")?;
        }
        self.objects += 1;
        self.buffer_data(json)?;
        match self.format {
            ExportFormat::JsonLines => self.buffer_data(b"\n"),
            ExportFormat::Json | ExportFormat::Quads | ExportFormat::Triples => Ok(()),
        }
    }

    /// Appends lines of a graph. The object that they belong to is counted by [`Self::count_object`].
    pub(super) fn append_lines(&mut self, lines: &[u8]) -> io::Result<()> {
        self.buffer_data(lines)
    }

    /// Counts an object whose lines were appended.
    pub(super) fn count_object(&mut self) {
        self.objects += 1;
    }

    /// Writes the end of the data.
    pub(super) fn finish(mut self) -> io::Result<DataFile> {
        let mut bytes = self.header_length as u64;
        if self.format == ExportFormat::Json {
            self.buffer_data(b"]")?;
            self.flush_buffer()?;
            self.file.write_all(b"}")?;
            bytes += 1;
        } else {
            self.flush_buffer()?;
        }
        Ok(DataFile {
            path: self.path,
            format: self.format,
            objects: self.objects,
            bytes: bytes + self.data_bytes,
            data_checksum: encode_hex(&self.data.finalize()),
            header_length: self.header_length,
        })
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

impl DataFile {
    /// Completes `path`, which is this file or a copy of it: writes the metadata into it if the format has a place for
    /// it, syncs the file, and reads it back to compute the checksum of the whole.
    pub(super) fn complete(&self, path: &Path, metadata: &Metadata) -> io::Result<FinishedFile> {
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        if self.format == ExportFormat::Json {
            let header = metadata.render_header(self.header_length);
            if header.len() != self.header_length {
                return Err(io::Error::other("the metadata is longer than the space for it"));
            }
            file.write_all(header.as_bytes())?;
        }
        file.sync_all()?;
        file.seek(SeekFrom::Start(0))?;
        let (bytes, sha256) = digest_to_end(&mut file)?;
        if bytes != self.bytes {
            return Err(io::Error::other(format!(
                "{} has {bytes} bytes, but {} were written",
                path.display(),
                self.bytes
            )));
        }
        let (objects, data_checksum) = (self.objects, self.data_checksum.clone());
        Ok(FinishedFile { objects, bytes, data_checksum, sha256 })
    }
}

/// Reads to the end and returns the number of bytes and their SHA-256.
pub(super) fn digest_to_end(read: &mut impl Read) -> io::Result<(u64, String)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut bytes = 0;
    loop {
        match read.read(&mut buffer) {
            Ok(0) => return Ok((bytes, encode_hex(&hasher.finalize()))),
            Ok(n) => {
                hasher.update(buffer.get(..n).unwrap_or_default());
                bytes += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(name: &str, file: Option<&DataFile>) -> Metadata {
        Metadata {
            export_date: "20260301T120000Z".to_owned(),
            object_type: name.to_owned(),
            object_count: file.map_or(0, |file| file.objects),
            data_checksum: file.map_or_else(String::new, |file| file.data_checksum.clone()),
            checksum_algorithm: CHECKSUM_ALGORITHM,
            extended: None,
        }
    }

    fn write_file(path: &Path, format: ExportFormat, name: &str, objects: &[&str]) -> DataFile {
        let mut writer = FileWriter::create(path, format, &metadata(name, None)).unwrap();
        for object in objects {
            writer.append_object(object.as_bytes()).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn a_file_matches_the_specification_byte_for_byte() {
        for (name, objects) in
            [("Pump", vec![]), ("Größe \"x\"", vec!["{\"uri\":\"urn:a\"}", "{}"])]
        {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x.json");
            let written = write_file(&path, ExportFormat::Json, name, &objects);
            let finished = written.complete(&path, &metadata(name, Some(&written))).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let text = std::str::from_utf8(&bytes).unwrap();
            let data = format!("[{}]", objects.join(","));
            assert!(text.starts_with(
                "{\"metadata\":{\"export_date\":\"20260301T120000Z\",\"object_type\":"
            ));
            assert!(text.ends_with(&format!("}},\"data\":{data}}}")));
            assert_eq!(finished.data_checksum, encode_hex(&Sha256::digest(&data)));
            assert_eq!(finished.sha256, encode_hex(&Sha256::digest(&bytes)));
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

    #[test]
    fn lines_have_their_metadata_in_a_document_of_its_own() {
        for objects in [vec![], vec!["{\"uri\":\"urn:a\"}", "{}"]] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x.json");
            let written = write_file(&path, ExportFormat::JsonLines, "Pump", &objects);
            let metadata = metadata("Pump", Some(&written));
            let finished = written.complete(&path, &metadata).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            let lines: Vec<_> = objects.iter().flat_map(|object| [object, "\n"]).collect();
            assert_eq!(text, lines.concat());
            assert_eq!(finished.data_checksum, encode_hex(&Sha256::digest(&text)));
            assert_eq!(finished.sha256, finished.data_checksum);
            assert_eq!(finished.bytes, text.len() as u64);
            assert_eq!(
                metadata.to_document(),
                format!(
                    "{{\"metadata\":{{\"export_date\":\"20260301T120000Z\",\"object_type\":\"Pump\",\
                     \"object_count\":{},\"data_checksum\":\"{}\",\"checksum_algorithm\":\"SHA-256\"}}}}",
                    objects.len(),
                    finished.data_checksum
                )
            );
        }
    }

    #[test]
    fn extended_metadata_fits_into_the_reserved_space_for_every_target() {
        let dir = tempfile::tempdir().unwrap();
        let (path, copy) = (dir.path().join("x.json"), dir.path().join("y.json"));
        let extended = |sequence, export_id: &str| ExtendedMetadata {
            kind: "deleted".to_owned(),
            sequence,
            gateway_id: "gw-\"1".to_owned(),
            export_id: export_id.to_owned(),
            schema_version: 3,
            commit: 77,
        };
        let start = Metadata { extended: Some(extended(0, "aa")), ..metadata("Pump", None) };
        let mut writer = FileWriter::create(&path, ExportFormat::Json, &start).unwrap();
        writer.append_object(b"{}").unwrap();
        let written = writer.finish().unwrap();
        std::fs::copy(&path, &copy).unwrap();
        for (path, sequence, id) in [(&path, 1, "aa"), (&copy, u64::MAX, "bb")] {
            let extended = Some(extended(sequence, id));
            let metadata = Metadata { extended, ..metadata("Pump", Some(&written)) };
            let finished = written.complete(path, &metadata).unwrap();
            let bytes = std::fs::read(path).unwrap();
            assert_eq!(finished.sha256, encode_hex(&Sha256::digest(&bytes)));
            let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            let found = &value["metadata"];
            assert_eq!(
                (found["sequence"].as_u64(), &found["export_id"]),
                (Some(sequence), &id.into())
            );
            assert_eq!(
                (&found["kind"], &found["gateway_id"]),
                (&"deleted".into(), &"gw-\"1".into())
            );
            assert_eq!(
                (found["schema_version"].as_u64(), found["commit"].as_u64()),
                (Some(3), Some(77))
            );
            assert_eq!(found.as_object().unwrap().len(), 11);
        }
    }
}
