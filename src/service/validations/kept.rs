//! The reports that are kept: one file each, within a number and a size. A report can have megabytes, is derived from
//! the store, and is needed for some time. As a document of the store, it would be in each new base and in each backup.
//!
//! A validation that has not ended has a file too, so that it begins again after a restart.
use super::report::read_header;
use penstock_base::files::{create_folders, sync_folder, write_atomically};
use penstock_resources::validation::Validation;
use serde::{Deserialize, Serialize};
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
/// The extension of the file of a validation that has not ended; its name is the id of the validation.
const UNENDED_EXTENSION: &str = "queued";
/// The number of times that a validation begins to run. Perhaps it was what ended the process each time.
pub(super) const MAX_RUNS: u32 = 3;

/// A validation that has not ended, in its file.
#[derive(Debug, Serialize, Deserialize)]
struct Unended {
    #[serde(flatten)]
    validation: Validation,
    /// How many times it began to run without a regular stop of the service after it.
    runs: u32,
}

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
            if has_extension(&path, UNENDED_EXTENSION) {
                continue;
            }
            let is_report = has_extension(&path, EXTENSION);
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

    /// Reads the validations that had not ended when the gateway stopped, the oldest first. Removes the files of those that
    /// have a report, and those that cannot be read.
    pub(super) fn read_unended(&self) -> VecDeque<Validation> {
        let mut found = Vec::new();
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let paths = files.map(|file| file.path());
        for path in paths.filter(|path| has_extension(path, UNENDED_EXTENSION)) {
            match read_unended_file(&path) {
                Ok(Unended { validation, .. })
                    if self.iter().any(|ended| ended.id == validation.id) => {}
                Ok(Unended { validation, .. }) => {
                    found.push(validation);
                    continue;
                }
                Err(error) => {
                    tracing::warn!(%error, "A validation that had not ended was removed.");
                }
            }
            remove_file(&path);
        }
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found.into()
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

/// Writes the file of a validation that has not ended. After a power cut there is the complete file, or none.
pub(super) fn write_unended(folder: &Path, validation: &Validation) -> io::Result<()> {
    create_folders(folder)?;
    let path = unended_path(folder, &validation.id);
    write_unended_file(&path, &Unended { validation: validation.clone(), runs: 0 })
}

/// Changes how many times a validation that has not ended began to run. Returns the new number, or 0 if it could not be
/// written. Without its file it will not begin again.
pub(super) fn update_runs(folder: &Path, id: &str, update: impl FnOnce(u32) -> u32) -> u32 {
    let path = unended_path(folder, id);
    let updated = read_unended_file(&path).and_then(|unended| {
        let updated = Unended { runs: update(unended.runs), ..unended };
        write_unended_file(&path, &updated).map(|()| updated.runs)
    });
    updated.unwrap_or_else(|error| {
        if error.kind() != io::ErrorKind::NotFound {
            tracing::warn!(%error, id, "Counting the runs of a validation failed.");
        }
        0
    })
}

/// Removes the file of a validation that has not ended, so that it does not begin again.
pub(super) fn remove_unended(folder: &Path, id: &str) {
    remove_file(&unended_path(folder, id));
}

fn read_unended_file(path: &Path) -> io::Result<Unended> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

fn write_unended_file(path: &Path, unended: &Unended) -> io::Result<()> {
    write_atomically(path, &serde_json::to_vec(unended)?)
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

fn report_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.{EXTENSION}"))
}

fn unended_path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.{UNENDED_EXTENSION}"))
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
    fn validations_that_have_not_ended_are_read_again_unless_they_have_a_report() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("validations");
        let mut kept = KeptReports::open(&folder);
        for number in [3, 1, 2] {
            write_unended(&folder, &validation(number)).unwrap();
        }
        // The power was cut between the report and the removal of the other file.
        add(&mut kept, 2);
        fs::write(folder.join("0004.queued"), "torn").unwrap();
        let kept = KeptReports::open(&folder);
        assert_eq!(kept.read_unended(), [validation(1), validation(3)]);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 3);
        remove_unended(&folder, "0001");
        assert_eq!(kept.read_unended(), [validation(3)]);
    }

    #[test]
    fn the_runs_of_a_validation_are_counted_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let kept = KeptReports::open(dir.path());
        write_unended(dir.path(), &validation(1)).unwrap();
        let run = || update_runs(dir.path(), "0001", |runs| runs + 1);
        assert_eq!((run(), run()), (1, 2));
        assert_eq!(kept.read_unended(), [validation(1)]);
        // The service stopped regularly.
        assert_eq!(update_runs(dir.path(), "0001", |_| 0), 0);
        assert_eq!(run(), 1);
        remove_unended(dir.path(), "0001");
        assert_eq!(run(), 0);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
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
