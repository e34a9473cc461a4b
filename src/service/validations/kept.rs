//! The reports that are kept: one file each, within a number and a size. A report can have megabytes, is derived from
//! the store, and is needed for some time. As a document of the store, it would be in each new base and in each backup.
use super::report::read_header;
use penstock_base::files::{create_folders, sync_folder, write_atomically};
use penstock_resources::validation::Validation;
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The maximum number of reports.
const MAX_REPORTS: usize = 100;
/// The maximum size of all files.
const MAX_BYTES: u64 = 64 << 20;
/// The extension of a file; its name is the id of the validation.
const EXTENSION: &str = "report";

/// The reports of the last validations, the newest first.
#[derive(Debug)]
pub(super) struct KeptReports {
    folder: PathBuf,
    /// Each with the size of its file.
    reports: VecDeque<(Validation, u64)>,
}

impl KeptReports {
    /// Reads the reports in this folder, and removes the files that cannot be read.
    pub(super) fn open(folder: &Path) -> Self {
        let mut reports = Vec::new();
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        for path in files.map(|file| file.path()) {
            let is_report = path.extension().is_some_and(|found| found == EXTENSION);
            match read_header(&path) {
                Ok(report) if is_report => {
                    let bytes = fs::metadata(&path).map_or(0, |found| found.len());
                    reports.push((report.validation, bytes));
                    continue;
                }
                Err(error) if is_report => {
                    tracing::warn!(%error, "A report of a validation was removed.");
                }
                _ => {}
            }
            remove_file(&path);
        }
        reports.sort_by(|(a, _), (b, _)| b.id.cmp(&a.id));
        Self { folder: folder.to_owned(), reports: reports.into() }
    }

    /// Iterates over the validations, the newest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Validation> {
        self.reports.iter().map(|(validation, _)| validation)
    }

    /// Returns the path of the file of a validation; `None` if it has none.
    pub(super) fn find_file(&self, id: &str) -> Option<PathBuf> {
        let has_file = |(validation, bytes): &(Validation, u64)| validation.id == id && *bytes > 0;
        self.reports.iter().any(has_file).then(|| report_path(&self.folder, id))
    }

    /// Removes the reports of a Business Object. They do not come back after a power cut.
    pub(super) fn remove_all(&mut self, business_object: &str) {
        let is_removed = |kept: &(Validation, u64)| kept.0.business_object == business_object;
        for (gone, _) in self.reports.iter().filter(|kept| is_removed(kept)) {
            remove_file(&report_path(&self.folder, &gone.id));
        }
        let count = self.reports.len();
        self.reports.retain(|kept| !is_removed(kept));
        if self.reports.len() < count
            && let Err(error) = sync_folder(&self.folder)
        {
            tracing::warn!(%error, "Syncing the folder of the reports of validations failed; after a power cut, removed ones may be there again.");
        }
    }

    /// Returns the folder.
    pub(super) fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    /// Adds an ended validation, whose file has this size, and removes the oldest ones past the limits.
    pub(super) fn add(&mut self, validation: Validation, bytes: u64) {
        let place = self.iter().position(|known| known.id < validation.id);
        self.reports.insert(place.unwrap_or(self.reports.len()), (validation, bytes));
        while self.reports.len() > MAX_REPORTS
            || self.reports.iter().map(|(_, bytes)| bytes).sum::<u64>() > MAX_BYTES
        {
            let Some((oldest, _)) = self.reports.pop_back() else { return };
            remove_file(&report_path(&self.folder, &oldest.id));
        }
    }
}

/// Writes the file of a report. After a power cut there is the complete file, or none.
pub(super) fn write_file(folder: &Path, id: &str, content: &[u8]) -> io::Result<()> {
    create_folders(folder)?;
    write_atomically(&report_path(folder, id), content)
}

fn report_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.{EXTENSION}"))
}

fn remove_file(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, "Removing the file of a validation failed.");
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Findings;
    use super::*;
    use penstock_resources::validation::{Progress, SeverityCounts, ValidationState};

    fn validation(number: usize) -> Validation {
        Validation {
            id: format!("{number:04}"),
            business_object: "b".to_owned(),
            business_object_name: "Pump".to_owned(),
            state: ValidationState::Finished,
            requested_by: "local".to_owned(),
            queued_at: String::new(),
            started_at: None,
            ended_at: None,
            commit: None,
            shapes: Vec::new(),
            progress: Progress::default(),
            conforms: Some(true),
            counts: SeverityCounts::default(),
            listed: 0,
            error: None,
        }
    }

    fn add(kept: &mut KeptReports, number: usize) {
        let one = validation(number);
        let file = Findings::default().into_file(one.clone()).unwrap();
        write_file(&kept.folder(), &one.id, &file).unwrap();
        kept.add(one, file.len() as u64);
    }

    #[test]
    fn the_last_hundred_are_kept_and_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("validations");
        let mut kept = KeptReports::open(&folder);
        // A later one may end before an earlier one, which was cancelled while it waited.
        for number in (0..MAX_REPORTS + 2).rev() {
            add(&mut kept, number);
        }
        add(&mut kept, 500);
        let ids = |kept: &KeptReports| kept.iter().map(|one| one.id.clone()).collect::<Vec<_>>();
        let expected = ids(&kept);
        assert_eq!((expected.len(), expected[0].as_str()), (MAX_REPORTS, "0500"));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), MAX_REPORTS);
        fs::write(folder.join("0999.report"), "torn").unwrap();
        fs::write(folder.join("1000.report.new"), "torn").unwrap();
        assert_eq!(ids(&KeptReports::open(&folder)), expected);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), MAX_REPORTS);
    }

    #[test]
    fn their_files_have_a_maximum_size() {
        let dir = tempfile::tempdir().unwrap();
        let mut kept = KeptReports::open(dir.path());
        kept.add(validation(1), MAX_BYTES / 2);
        kept.add(validation(2), MAX_BYTES / 2);
        assert_eq!(kept.iter().count(), 2);
        kept.add(validation(3), 1);
        assert_eq!(kept.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["0003", "0002"]);
    }
}
