//! Lists in the folder of the backup, a line for each element: small segments that are not merged yet, and the times of
//! frames that are not sent yet.
use super::chain::Checksum;
use super::folder::BackupFolder;
use super::objects::{MAX_POINTS, Point, discard_file};
use penstock_base::files;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

const UNMERGED_FILE: &str = "unmerged.jsonl";
const POINTS_FILE: &str = "points.jsonl";

/// A small segment that is not merged yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Unmerged {
    pub(super) era: String,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) before: Checksum,
    pub(super) after: Checksum,
    /// The bytes of its frames.
    pub(super) raw_bytes: u64,
    pub(super) points: Vec<Point>,
}

impl BackupFolder {
    /// Reads the small segments of an era that are not merged yet, in order.
    pub(super) fn read_unmerged(&self, era: &str) -> Vec<Unmerged> {
        let segments = read_lines::<Unmerged>(&self.path.join(UNMERGED_FILE));
        segments.filter(|segment| segment.era == era).collect()
    }

    /// Adds a small segment. If a power cut loses the line, the segment stays small.
    pub(super) fn append_unmerged(&self, segment: &Unmerged) -> io::Result<()> {
        append_line(&self.path.join(UNMERGED_FILE), segment)
    }

    /// Reads the times of the frames after `after`, in order, at most so many: without a link the file grows for long.
    pub(super) fn read_points(&self, after: u64, max: usize) -> Vec<Point> {
        let points = read_lines::<Point>(&self.path.join(POINTS_FILE));
        points.filter(|point| point.sequence > after).take(max).collect()
    }

    /// Adds the time of the newest frame. If a power cut loses the line, the time is known less exactly.
    pub(super) fn append_point(&self, point: &Point) -> io::Result<()> {
        append_line(&self.path.join(POINTS_FILE), point)
    }

    /// Removes all times.
    pub(super) fn discard_points(&self) {
        discard_file(&self.path.join(POINTS_FILE));
    }

    /// Removes the times of the frames up to `sent`: under load some always wait. The file is written again only
    /// if that removes at least half of them, so not with each segment.
    pub(super) fn discard_points_up_to(&self, sent: u64) -> io::Result<()> {
        let path = self.path.join(POINTS_FILE);
        let waiting = self.read_points(sent, MAX_POINTS + 1);
        let all = read_lines::<Point>(&path).take(2 * MAX_POINTS + 1).count();
        if waiting.is_empty() {
            self.discard_points();
        } else if waiting.len() <= MAX_POINTS && all > 2 * waiting.len() {
            write_lines(&path, &waiting)?;
        }
        Ok(())
    }

    /// Replaces the list of small segments.
    pub(super) fn write_unmerged(&self, segments: &[Unmerged]) -> io::Result<()> {
        write_lines(&self.path.join(UNMERGED_FILE), segments)
    }
}

/// Reads the lines of a file. One that a crash cut off, or that a medium damaged, is ignored, whatever bytes it has.
fn read_lines<T: for<'a> Deserialize<'a>>(path: &Path) -> impl Iterator<Item = T> + use<T> {
    let file = File::open(path).ok();
    let lines = file.into_iter().flat_map(|file| BufReader::new(file).split(b'\n'));
    lines.map_while(Result::ok).filter_map(|line| serde_json::from_slice(&line).ok())
}

/// Replaces the lines of a file.
fn write_lines(path: &Path, values: &[impl Serialize]) -> io::Result<()> {
    let mut text = Vec::new();
    for value in values {
        text.extend(serde_json::to_vec(value)?);
        text.push(b'\n');
    }
    files::write_atomically(path, &text)
}

/// Adds a line to a file, on its own also if the last one was cut off.
fn append_line(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut line = vec![b'\n'];
    line.extend(serde_json::to_vec(value)?);
    line.push(b'\n');
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)?.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::head::time_of_system;

    fn unmerged(first: u64) -> Unmerged {
        let checksum = Checksum::of_era("e");
        let (before, after) = (checksum, checksum);
        let points = vec![Point { sequence: first, time: time_of_system() }];
        Unmerged { era: "e".into(), first, last: first, before, after, raw_bytes: 1, points }
    }

    #[test]
    fn a_torn_line_of_a_small_segment_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let folder = BackupFolder::of(dir.path());
        folder.prepare().unwrap();
        let (first, second) = (unmerged(1), unmerged(2));
        folder.append_unmerged(&first).unwrap();
        let mut file =
            OpenOptions::new().append(true).open(folder.path.join(UNMERGED_FILE)).unwrap();
        file.write_all(b"\n{\"era\":\"e\"\n\xff\xfe\0").unwrap();
        folder.append_unmerged(&second).unwrap();
        let point = |sequence| Point { sequence, time: time_of_system() };
        (1..5).for_each(|sequence| folder.append_point(&point(sequence)).unwrap());
        let mut file = OpenOptions::new().append(true).open(folder.path.join(POINTS_FILE)).unwrap();
        file.write_all(b"\xc3\x28\n").unwrap();
        (5..9).for_each(|sequence| folder.append_point(&point(sequence)).unwrap());
        let points = folder.read_points(3, 2);
        assert_eq!(points.iter().map(|point| point.sequence).collect::<Vec<_>>(), [4, 5]);
        for (sent, expected) in [(4, 8), (5, 3), (8, 0)] {
            folder.discard_points_up_to(sent).unwrap();
            assert_eq!(folder.read_points(0, 9).len(), expected);
        }
        assert!(!folder.path.join(POINTS_FILE).exists());
        assert_eq!(folder.read_unmerged("e"), [first, second.clone()]);
        assert!(folder.read_unmerged("f").is_empty());
        folder.write_unmerged(std::slice::from_ref(&second)).unwrap();
        assert_eq!(folder.read_unmerged("e"), [second]);
    }
}
