//! The format of the store: the gateway keeps it, shows it, and refuses a newer one without changing anything.
use penstock_store::{Error, Format, Options, Store};
use penstock_test_support::prelude::*;
use std::fs;

const DATA: &str = "--service.data-dir=data";
/// The offset of the format in the header of a file of the journal.
const FORMAT_OFFSET: usize = 8;

/// Creates the data directory of a gateway, and raises the format of its store as a later version would.
fn create_data(dir: &Path) {
    TestProcess::start(dir, &[DATA]).stop();
    let store = open_store(dir);
    assert_eq!(store.format(), Format::V2);
    store
        .transact::<_, Error>(|change| {
            change.require_format(Format::V3);
            change.put_document("test", b"of a newer format", b"")
        })
        .unwrap();
}

fn open_store(dir: &Path) -> Store {
    Store::open(&dir.join("data/store"), Options::default(), &mut |_| {}).unwrap()
}

/// Runs a command, and returns its exit status and its output on both streams.
fn run(dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = penstock(dir).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

fn verified_format(dir: &Path) -> Value {
    let (status, text) = run(dir, &["verify", "--json", DATA]);
    assert_eq!(status, Some(0), "{text}");
    serde_json::from_str::<Value>(&text).unwrap()["format"].take()
}

/// Returns the newest file of the journal with this extension.
fn newest(dir: &Path, extension: &str) -> PathBuf {
    let files = fs::read_dir(dir.join("data/store/journal")).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|found| found == extension));
    files.sort();
    files.pop().unwrap()
}

#[test]
fn a_raised_format_is_shown_and_kept_by_a_backup_and_its_restore() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    create_data(dir);
    assert_eq!(verified_format(dir), 3);
    let server = TestProcess::start(dir, &[DATA]);
    let client = server.client.with_key(admin_key(dir, DATA));
    assert_eq!(client.read("/api/v1/status")["store"]["format"], 3);
    assert_eq!(run(dir, &["backup", "backup", DATA]).0, Some(0));
    server.stop();
    fs::remove_dir_all(dir.join("data")).unwrap();
    assert_eq!(run(dir, &["restore", "backup", DATA]).0, Some(0));
    assert_eq!(verified_format(dir), 3);
}

#[test]
fn a_newer_format_is_refused_with_both_numbers_and_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    create_data(dir);
    let store = open_store(dir);
    store.compact_journal().unwrap();
    let (sequence, known) = (store.stats().sequence, Format::NEWEST.number());
    drop(store);
    let backup = dir.join("backup");
    assert_eq!(run(dir, &["backup", "backup", DATA]).0, Some(0));
    let refusal = format!(
        "has format version {}, and this version of Penstock knows up to {known}; install the version that wrote it, or restore a backup",
        known + 1
    );
    for file in [newest(dir, "journal"), newest(dir, "base"), backup.clone()] {
        let whole = fs::read(&file).unwrap();
        let mut newer = whole.clone();
        newer[FORMAT_OFFSET] = u8::try_from(known + 1).unwrap();
        fs::write(&file, newer).unwrap();
        let commands = if file == backup {
            vec![(1, vec!["restore", "backup", "--service.data-dir=restored"])]
        } else {
            vec![
                (65, vec!["serve", "--server.port=0", DATA]),
                (1, vec!["verify", DATA]),
                (1, vec!["dump", DATA]),
            ]
        };
        for (expected, command) in commands {
            let (status, text) = run(dir, &command);
            assert_eq!(status, Some(expected), "{command:?}: {text}");
            assert!(text.contains(&refusal), "{command:?}: {text}");
            let name = file.file_name().unwrap().to_str().unwrap();
            assert!(text.contains(name), "{command:?}: {text}");
        }
        fs::write(&file, whole).unwrap();
    }
    assert!(!dir.join("restored/store/journal").exists());
    // Nothing was changed: with the right version, all of it is there.
    let store = open_store(dir);
    assert!(store.stats().sequence >= sequence);
    assert_eq!(store.format(), Format::V3);
}
