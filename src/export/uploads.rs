//! Records of multipart uploads on the disk: the upload's id and the parts that the server has. With them an
//! upload continues after a broken connection, a closed window or a crash.
//!
//! Each upload has one file, `<export id>.upload` in `<data-dir>/uploads`. The first line is the upload as
//! JSON, each further line a part. A line that a crash cut off is ignored, and the part is sent again. The
//! compressed form of the export's file is in the same folder, if one is sent.
use penstock_base::files;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

const ENDING: &str = ".upload";

/// The folder of the records.
#[derive(Debug, Clone)]
pub(super) struct Uploads {
    folder: PathBuf,
}

/// An upload that was created at the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Begun {
    /// The bucketName.
    pub(super) target: String,
    /// The URL of the bucket. Another bucket does not have the upload.
    pub(super) place: String,
    pub(super) key: String,
    /// The id of the upload at the server.
    pub(super) upload: String,
    /// The size in bytes of every part except the last.
    pub(super) part_size: u64,
    /// The total bytes to send.
    pub(super) length: u64,
    /// SHA-256 of the bytes to send.
    pub(super) sha256: String,
}

/// A part that the server has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) number: u64,
    pub(super) etag: String,
}

impl Begun {
    /// Returns the number of parts of the complete upload.
    pub(super) fn parts(&self) -> u64 {
        self.length.div_ceil(self.part_size.max(1))
    }
}

impl Uploads {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns the path of a file that belongs to the upload of this export.
    pub(super) fn path(&self, id: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{id}{ending}"))
    }

    /// Creates the folder.
    pub(super) fn make(&self) -> io::Result<()> {
        files::create_folders(&self.folder)
    }

    /// Reads the upload of this export and the parts that the server has, in order.
    pub(super) fn find(&self, id: &str) -> Option<(Begun, Vec<Part>)> {
        let text = fs::read_to_string(self.path(id, ENDING)).ok()?;
        let mut lines = text.lines();
        let begun = serde_json::from_str(lines.next()?).ok()?;
        let mut parts: Vec<Part> =
            lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
        parts.sort_by_key(|part| part.number);
        parts.dedup_by_key(|part| part.number);
        Some((begun, parts))
    }

    /// Records an upload. After it returns, a crash leaves no unrecorded upload.
    pub(super) fn begin(&self, id: &str, begun: &Begun) -> io::Result<()> {
        self.make()?;
        let mut line = serde_json::to_vec(begun)?;
        line.push(b'\n');
        files::write_atomically(&self.path(id, ENDING), &line)
    }

    /// Records a part. If a power cut loses the record, the part is sent again.
    pub(super) fn add(&self, id: &str, part: &Part) -> io::Result<()> {
        let mut line = vec![b'\n'];
        line.extend(serde_json::to_vec(part)?);
        line.push(b'\n');
        OpenOptions::new().append(true).open(self.path(id, ENDING))?.write_all(&line)
    }

    /// Syncs the records of the parts. The cleanup after the parts were assembled needs all of them.
    pub(super) fn sync(&self, id: &str) -> io::Result<()> {
        File::open(self.path(id, ENDING))?.sync_data()
    }

    /// Removes only the record of the upload.
    pub(super) fn end(&self, id: &str) {
        remove(&self.path(id, ENDING));
    }

    /// Removes the files kept for sending. The record of the upload stays until the upload is completed or
    /// aborted.
    pub(super) fn sent(&self, id: &str) {
        let noted = self.path(id, ENDING);
        for path in
            self.files().into_iter().filter(|path| id_of(path) == Some(id) && *path != noted)
        {
            remove(&path);
        }
    }

    /// Returns the ids of all exports with files in the folder.
    pub(super) fn ids(&self) -> Vec<String> {
        let mut ids: Vec<_> =
            self.files().iter().filter_map(|path| id_of(path).map(str::to_owned)).collect();
        ids.sort();
        ids.dedup();
        ids
    }

    fn files(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
    }
}

/// Creates or truncates a file that only its owner can read.
pub(super) fn create(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn id_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()?.split('.').next()
}

/// Removes a file. If that fails, the next cleanup finds it again.
fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, "A file of an upload could not be removed.");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_parts_are_found_and_a_torn_record_is_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let uploads = Uploads::new(dir.path().join("uploads"));
        assert!(uploads.find("a").is_none() && uploads.ids().is_empty());
        let begun = Begun {
            target: "plant".to_owned(),
            place: "https://s3.example/plant".to_owned(),
            key: "Pump/1.json".to_owned(),
            upload: "2~abc".to_owned(),
            part_size: 5 << 20,
            length: 12 << 20,
            sha256: "00".to_owned(),
        };
        uploads.begin("a", &begun).unwrap();
        let part = |number, etag: &str| Part { number, etag: etag.to_owned() };
        uploads.add("a", &part(1, "\"x\"")).unwrap();
        let mut file = OpenOptions::new().append(true).open(uploads.path("a", ENDING)).unwrap();
        file.write_all(b"{\"number\":2,\"et").unwrap();
        uploads.add("a", &part(3, "\"z\"")).unwrap();
        let (found, parts) = uploads.find("a").unwrap();
        assert_eq!((found, parts), (begun, vec![part(1, "\"x\""), part(3, "\"z\"")]));

        create(&uploads.path("a", ".gz")).unwrap();
        uploads.sent("a");
        assert!(uploads.find("a").is_some());
        uploads.end("a");
        assert!(uploads.find("a").is_none() && uploads.ids().is_empty());
    }
}
