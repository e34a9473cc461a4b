//! Records of multipart uploads on the disk: the upload's id and the parts that the server has. With them, an upload
//! continues after a broken connection, a closed delivery window or a crash.
//!
//! Each upload has one file, `<export id>.upload` in `<data-dir>/uploads`. The first line is the upload as
//! JSON, each further line a part. A line that a crash cut off is ignored, and the part is sent again.
use parking_lot::Mutex;
use penstock_base::files;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const RECORD_EXTENSION: &str = ".upload";
/// The `upload` in the record of a parked export whose staging graphs in a SPARQL store are dropped.
pub(super) const DROPPED: &str = "dropped";

/// The folder of the records.
#[derive(Debug, Clone)]
pub(super) struct UploadFolder {
    folder: PathBuf,
    /// Locked while a record is compared and replaced or removed, and while one is written: the cleanup of an export may
    /// run while a retry begins another upload.
    record_lock: Arc<Mutex<()>>,
}

/// An upload that was created at the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UploadRecord {
    /// The bucketName.
    pub(super) target: String,
    /// The URL of the bucket. Another bucket does not have the upload.
    pub(super) place: String,
    pub(super) key: String,
    /// The id of the upload at the server.
    pub(super) upload: String,
    /// The size in bytes of every part except the last.
    pub(super) part_size: u64,
    /// The number of bytes to send.
    pub(super) length: u64,
    /// SHA-256 of the bytes to send.
    pub(super) sha256: String,
}

/// A part that the server has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UploadedPart {
    pub(super) number: u64,
    pub(super) etag: String,
}

impl UploadRecord {
    /// Returns the number of parts of the complete upload.
    pub(super) fn part_count(&self) -> u64 {
        self.length.div_ceil(self.part_size.max(1))
    }
}

impl UploadFolder {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, record_lock: Arc::default() }
    }

    /// Returns the path of a file that belongs to the upload of this export.
    pub(super) fn file_path(&self, id: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{id}{ending}"))
    }

    /// Creates the folder.
    pub(super) fn create_folder(&self) -> io::Result<()> {
        files::create_folders(&self.folder)
    }

    /// Reads the upload of this export and the parts that the server has, in order.
    pub(super) fn read_upload(&self, id: &str) -> Option<(UploadRecord, Vec<UploadedPart>)> {
        let text = fs::read_to_string(self.file_path(id, RECORD_EXTENSION)).ok()?;
        let mut lines = text.lines();
        let record = serde_json::from_str(lines.next()?).ok()?;
        let mut parts: Vec<UploadedPart> =
            lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
        parts.sort_by_key(|part| part.number);
        parts.dedup_by_key(|part| part.number);
        Some((record, parts))
    }

    /// Returns whether a target may still have parts or staging graphs of this export.
    pub(super) fn needs_cleanup(&self, id: &str) -> bool {
        self.read_upload(id).is_some_and(|(record, _)| record.upload != DROPPED)
    }

    /// Records an upload. Once this returns, a crash does not lose the id of the upload.
    pub(super) fn record_upload(&self, id: &str, record: &UploadRecord) -> io::Result<()> {
        let _one_at_a_time = self.record_lock.lock();
        self.write_record(id, record)
    }

    /// Replaces the record `from` by `to`, unless a new attempt has replaced it already. Returns whether it did so.
    pub(super) fn replace_record(
        &self,
        id: &str,
        from: &UploadRecord,
        to: &UploadRecord,
    ) -> io::Result<bool> {
        let _one_at_a_time = self.record_lock.lock();
        let is_current = self.has_record(id, from);
        if is_current {
            self.write_record(id, to)?;
        }
        Ok(is_current)
    }

    fn has_record(&self, id: &str, record: &UploadRecord) -> bool {
        self.read_upload(id).is_some_and(|(current, _)| current == *record)
    }

    fn write_record(&self, id: &str, record: &UploadRecord) -> io::Result<()> {
        self.create_folder()?;
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        files::write_atomically(&self.file_path(id, RECORD_EXTENSION), &line)
    }

    /// Returns whether the record of this export was last written this long ago, by the system's clock. If that was set
    /// back since, the time by which the record is ahead counts instead. Otherwise it would stay for years after a clock
    /// that was wrong by years.
    pub(super) fn is_record_older_than(&self, id: &str, age: Duration) -> bool {
        let data = fs::metadata(self.file_path(id, RECORD_EXTENSION));
        let modified = data.and_then(|data| data.modified()).ok();
        modified.is_some_and(|at| at.elapsed().unwrap_or_else(|ahead| ahead.duration()) >= age)
    }

    /// Records a part. If a power cut loses the record, the part is sent again.
    pub(super) fn record_part(&self, id: &str, part: &UploadedPart) -> io::Result<()> {
        let mut line = vec![b'\n'];
        line.extend(serde_json::to_vec(part)?);
        line.push(b'\n');
        OpenOptions::new().append(true).open(self.file_path(id, RECORD_EXTENSION))?.write_all(&line)
    }

    /// Syncs the records of the parts. The cleanup after the completion needs all of them.
    pub(super) fn sync_record(&self, id: &str) -> io::Result<()> {
        File::open(self.file_path(id, RECORD_EXTENSION))?.sync_data()
    }

    /// Removes only the record of the upload.
    pub(super) fn remove_record(&self, id: &str) {
        remove_file(&self.file_path(id, RECORD_EXTENSION));
    }

    /// Removes this record, whose upload is cleaned up, unless a new attempt has replaced it.
    pub(super) fn remove_if_current(&self, id: &str, record: &UploadRecord) {
        let _one_at_a_time = self.record_lock.lock();
        if self.has_record(id, record) {
            self.remove_record(id);
        }
    }

    /// Removes the compressed form of the export's file, which a crash or an earlier version left. The record of the
    /// upload stays until the upload is completed or aborted.
    pub(super) fn remove_compressed_file(&self, id: &str) {
        let record_path = self.file_path(id, RECORD_EXTENSION);
        for path in self
            .list_files()
            .into_iter()
            .filter(|path| export_id_of(path) == Some(id) && *path != record_path)
        {
            remove_file(&path);
        }
    }

    /// Returns the ids of all exports with files in the folder.
    pub(super) fn list_export_ids(&self) -> Vec<String> {
        let mut ids: Vec<_> = self
            .list_files()
            .iter()
            .filter_map(|path| export_id_of(path).map(str::to_owned))
            .collect();
        ids.sort();
        ids.dedup();
        ids
    }

    fn list_files(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
    }
}

/// Creates or truncates a file that only its owner can read.
pub(super) fn create_private_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn export_id_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()?.split('.').next()
}

/// Removes a file. If that fails, the next cleanup finds it again.
fn remove_file(path: &Path) {
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
    use std::time::SystemTime;

    fn upload_record(upload: &str) -> UploadRecord {
        UploadRecord {
            target: "plant".to_owned(),
            place: "https://s3.example/plant".to_owned(),
            key: "Pump/1.json".to_owned(),
            upload: upload.to_owned(),
            part_size: 5 << 20,
            length: 12 << 20,
            sha256: "00".to_owned(),
        }
    }

    #[test]
    fn the_record_of_a_new_attempt_is_neither_removed_nor_replaced_by_a_cleanup() {
        let dir = tempfile::tempdir().unwrap();
        let uploads = UploadFolder::new(dir.path().join("uploads"));
        let (earlier, later) = (upload_record("2~abc"), upload_record("2~def"));
        uploads.record_upload("a", &earlier).unwrap();
        uploads.record_upload("a", &later).unwrap();
        uploads.remove_if_current("a", &earlier);
        assert!(!uploads.replace_record("a", &earlier, &upload_record(DROPPED)).unwrap());
        assert_eq!(uploads.read_upload("a"), Some((later.clone(), Vec::new())));

        let dropped = upload_record(DROPPED);
        assert!(uploads.replace_record("a", &later, &dropped).unwrap());
        uploads.remove_if_current("a", &dropped);
        assert_eq!(uploads.read_upload("a"), None);
    }

    #[test]
    fn recorded_parts_are_found_and_a_torn_record_is_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let uploads = UploadFolder::new(dir.path().join("uploads"));
        assert!(uploads.read_upload("a").is_none() && uploads.list_export_ids().is_empty());
        let record = upload_record("2~abc");
        uploads.record_upload("a", &record).unwrap();
        let part = |number, etag: &str| UploadedPart { number, etag: etag.to_owned() };
        uploads.record_part("a", &part(1, "\"x\"")).unwrap();
        let mut file =
            OpenOptions::new().append(true).open(uploads.file_path("a", RECORD_EXTENSION)).unwrap();
        file.write_all(b"{\"number\":2,\"et").unwrap();
        uploads.record_part("a", &part(3, "\"z\"")).unwrap();
        let (found, parts) = uploads.read_upload("a").unwrap();
        assert_eq!((found, parts), (record, vec![part(1, "\"x\""), part(3, "\"z\"")]));

        assert!(uploads.is_record_older_than("a", Duration::ZERO));
        assert!(!uploads.is_record_older_than("a", Duration::from_hours(1)));
        let file = File::options().append(true).open(uploads.file_path("a", RECORD_EXTENSION));
        // As if the clock was set back since.
        file.unwrap().set_modified(SystemTime::now() + Duration::from_hours(9)).unwrap();
        assert!(uploads.is_record_older_than("a", Duration::from_hours(1)));

        create_private_file(&uploads.file_path("a", ".gz")).unwrap();
        uploads.remove_compressed_file("a");
        assert!(uploads.read_upload("a").is_some());
        uploads.remove_record("a");
        assert!(uploads.read_upload("a").is_none() && uploads.list_export_ids().is_empty());
    }
}
