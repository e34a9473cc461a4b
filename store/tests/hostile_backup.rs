//! A backup of a few kilobytes that expands to far more is refused, or read, without allocating that memory, and one of a
//! sequence that no store can continue is refused too.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use penstock_store::{BackupFile, Error, Format, NewStore, NewStorePlan};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

const DIR: &str = "PENSTOCK_STORE_HOSTILE_DIR";
/// The size to which the only part expands, in bytes; slightly less than the limit of a part.
const EXPANDED: usize = 250 << 20;
/// The empty terms of a commit. Decoded, they take more than the bound.
const EMPTY_TERMS: usize = 3 << 20;
const BOUND_KB: u64 = 64 << 10;

/// Returns a backup with one part of zeros, with valid checksums and counts.
fn hostile() -> Vec<u8> {
    let zeros = vec![0; 1 << 20];
    let mut sum = 0;
    let mut packed = zstd::Encoder::new(Vec::new(), 1).unwrap();
    for _ in 0..EXPANDED / zeros.len() {
        sum = crc32c::crc32c_append(sum, &zeros);
        packed.write_all(&zeros).unwrap();
    }
    with_part(sum, EXPANDED, &packed.finish().unwrap())
}

/// Returns a valid backup whose only commit has very many empty terms, each of which would be much longer in memory.
fn wide() -> Vec<u8> {
    let mut commit = vec![1, 0];
    commit.extend(four_bytes(EMPTY_TERMS));
    (0..EMPTY_TERMS).for_each(|_| commit.extend([2, 0]));
    // No quads and no documents.
    commit.extend([0; 3]);
    let packed = zstd::bulk::compress(&commit, 1).unwrap();
    with_part(crc32c::crc32c(&commit), commit.len(), &packed)
}

/// Returns a backup with one part, with this checksum and length of its content.
fn with_part(sum: u32, length: usize, packed: &[u8]) -> Vec<u8> {
    let mut file = header();
    let mut part = vec![2, 1];
    part.extend(sum.to_le_bytes());
    part.extend(four_bytes(length));
    part.extend(packed);
    frame(&mut file, 1, &part);
    end(&mut file, 1, 7);
    file
}

/// Encodes a number in four bytes (varint.rs).
fn four_bytes(number: usize) -> [u8; 4] {
    (0xe000_0000 | u32::try_from(number).unwrap()).to_be_bytes()
}

fn header() -> Vec<u8> {
    let mut file = b"PENSBASE".to_vec();
    file.extend(1_u32.to_le_bytes());
    file.extend([1; 16]);
    file.extend(1_u64.to_le_bytes());
    file.extend(crc32c::crc32c(&file).to_le_bytes());
    file
}

/// Appends the end of a backup with so many parts, up to a commit.
fn end(file: &mut Vec<u8>, parts: u64, sequence: u64) {
    let mut end = vec![3];
    for number in [parts, 0, 0, sequence, sequence] {
        end.extend(number.to_le_bytes());
    }
    frame(file, parts + 1, &end);
}

fn frame(file: &mut Vec<u8>, number: u64, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
    let sum = crc32c::crc32c_append(crc32c::crc32c(&length), &number.to_le_bytes());
    file.extend(length);
    file.extend(crc32c::crc32c_append(sum, payload).to_le_bytes());
    file.extend(number.to_le_bytes());
    file.extend(payload);
}

/// The child process that is measured. It does nothing unless started by the test.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let dir = Path::new(&dir);
    let backup = BackupFile::open(&dir.join("hostile")).unwrap();
    for refused in
        [backup.verify_content().map(drop), backup.restore_into(&dir.join("new"), &[]).map(drop)]
    {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("at byte 40") && refused.contains("unknown kind"), "{refused}");
    }
    let wide = BackupFile::open(&dir.join("wide")).unwrap();
    wide.verify_content().unwrap();
    wide.restore_into(&dir.join("new"), &[]).unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    assert!(peak < BOUND_KB, "refusing it took {peak} kB of memory; the limit is {BOUND_KB}");
}

#[test]
fn a_hostile_backup_takes_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = hostile();
    assert!(bytes.len() < 64 << 10, "{} bytes are too many for this test", bytes.len());
    std::fs::write(dir.path().join("hostile"), bytes).unwrap();
    std::fs::write(dir.path().join("wide"), wide()).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(DIR, dir.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_backup_of_a_sequence_that_cannot_continue_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("backup");
    for (sequence, is_possible) in [(1_u64 << 62, true), ((1 << 62) + 1, false), (u64::MAX, false)]
    {
        let mut bytes = header();
        end(&mut bytes, 0, sequence);
        std::fs::write(&path, bytes).unwrap();
        let backup = BackupFile::open(&path).unwrap();
        let to = dir.path().join(sequence.to_string());
        for read in [backup.verify_content().map(drop), backup.restore_into(&to, &[]).map(drop)] {
            assert_eq!(read.is_ok(), is_possible, "{sequence}: {read:?}");
            assert!(is_possible || matches!(read, Err(Error::Corrupt(_))), "{read:?}");
        }
    }
    // The number of the era decides how far a restore from the continuous backup jumps.
    let plan = NewStorePlan { format: Format::NEWEST, sequence: 1, jump: u64::MAX };
    let begun = NewStore::begin(&dir.path().join("jumped"), plan, &[]).map(drop);
    assert!(matches!(begun, Err(Error::Corrupt(_))), "{begun:?}");
}
