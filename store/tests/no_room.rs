//! A full disk refuses commits and loses none. When space is free again, the same store continues.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod model;

use model::{Model, open, quad, text};
use penstock_store::{Error, Options, Store, Transaction};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const DIR: &str = "PENSTOCK_STORE_SMALL_DISK";

/// Runs a test of this file on a file system of 24 MiB, in a mount namespace of its own.
fn on_a_small_disk(test: &str) {
    let dir = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=24m none \"$0\" || exit 77; exec \"$@\"";
    let run = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .arg(dir.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(DIR, dir.path())
        .output();
    match run {
        Ok(run) if run.status.success() => {
            assert!(String::from_utf8_lossy(&run.stdout).contains("1 passed"), "{run:?}");
        }
        Ok(run) if run.status.code() == Some(101) => {
            panic!("{}", String::from_utf8_lossy(&run.stderr));
        }
        // Containers may forbid mounting.
        run => {
            let why = format!("skipped {test}, because mounting failed: {run:?}\n");
            assert!(std::env::var_os("CI").is_none(), "{why}");
            std::io::stderr().write_all(why.as_bytes()).unwrap();
        }
    }
}

fn small_disk() -> Option<PathBuf> {
    std::env::var_os(DIR).map(PathBuf::from)
}

/// Fills the disk, except for `free` bytes.
fn fill(dir: &Path, free: u64) -> PathBuf {
    let path = dir.join("filler");
    let mut file = fs::File::create(&path).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
    let length = file.metadata().unwrap().len();
    file.set_len(length.saturating_sub(free)).unwrap();
    path
}

fn commit(store: &Store, model: &mut Model, n: usize) -> Result<(), Error> {
    let quad = quad(&format!("s{n}"), "p", text(&"value ".repeat(n % 400)));
    store.transact::<_, Error>(|change| change.insert(quad.as_ref()))?;
    model.quads.insert(quad);
    Ok(())
}

#[test]
fn commits_continue_when_disk_space_is_free_again() {
    let Some(disk) = small_disk() else {
        return on_a_small_disk("commits_continue_when_disk_space_is_free_again");
    };
    let dir = disk.join("store");
    let mut model = Model::default();
    let mut n = 0;
    for write_back_bytes in [12 << 20, 100_000] {
        let options = Options { write_back_bytes, segment_bytes: 100_000, ..Options::default() };
        let store = Store::open(&dir, options, &mut |_| {}).unwrap();
        for free in [0, 5_000, 30_000, 120_000, 300_000] {
            let filler = fill(&disk, free);
            let refused = loop {
                n += 1;
                if let Err(error) = commit(&store, &mut model, n) {
                    break error;
                }
            };
            assert!(refused.is_disk_full(), "{refused}");
            assert_eq!(store.poison_cause(), None);
            assert!(Model::of(&store.read(), &[]) == model);
            fs::remove_file(filler).unwrap();
            n += 1;
            commit(&store, &mut model, n).unwrap();
        }
        drop(store);
        assert!(Model::of(&open(&dir).read(), &[]) == model);
    }
}

#[test]
fn an_index_is_rebuilt_with_less_disk_space_than_a_full_checkpoint_needs() {
    let Some(disk) = small_disk() else {
        return on_a_small_disk(
            "an_index_is_rebuilt_with_less_disk_space_than_a_full_checkpoint_needs",
        );
    };
    let dir = disk.join("store");
    let store = open(&dir);
    // More than a checkpoint needs, with a small journal and a small index.
    for n in 0..160_u64 {
        let put = |change: &mut Transaction<'_>| {
            (0..100_u64).try_for_each(|k| {
                change.put_document("d", &(n * 100 + k).to_be_bytes(), &[7; 1000])
            })
        };
        store.transact::<_, Error>(put).unwrap();
        store.pack_segments().unwrap();
    }
    let model = Model::of(&store.read(), &["d"]);
    drop(store);
    let lose_index = || fs::remove_dir_all(dir.join("index")).unwrap();
    lose_index();
    let filler = fill(&disk, 14 << 20);
    let store = open(&dir);
    assert!(Model::of(&store.read(), &["d"]) == model);
    drop(store);
    lose_index();
    fs::remove_file(filler).unwrap();
    let filler = fill(&disk, 2 << 20);
    let refused = Store::open(&dir, Options::default(), &mut |_| {}).unwrap_err();
    assert!(refused.is_disk_full(), "{refused}");
    let full = refused.disk_full_details().unwrap();
    assert!(full.free < full.needed && full.free <= 2 << 20, "{full:?}");
    assert!(refused.to_string().contains(&full.needed.to_string()), "{refused}");
    fs::remove_file(filler).unwrap();
    assert!(Model::of(&open(&dir).read(), &["d"]) == model);
}

#[test]
fn a_disk_that_fills_at_any_moment_loses_nothing() {
    let Some(disk) = small_disk() else {
        return on_a_small_disk("a_disk_that_fills_at_any_moment_loses_nothing");
    };
    let dir = disk.join("store");
    let options =
        Options { write_back_bytes: 60_000, segment_bytes: 200_000, ..Options::default() };
    let mut model = Model::default();
    let (stop, mut refused, mut poisoned) = (AtomicBool::new(false), 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut pause = 0;
            while !stop.load(Ordering::Relaxed) {
                pause = (pause * 31 + 7) % 23;
                std::thread::sleep(Duration::from_millis(pause));
                let filler = fill(&disk, 0);
                std::thread::sleep(Duration::from_millis(3));
                fs::remove_file(filler).unwrap();
            }
        });
        let mut store = Store::open(&dir, options.clone(), &mut |_| {}).unwrap();
        let mut n = 0;
        // The disk must have been full often enough for this test.
        while model.quads.len() < 3_000 || refused + poisoned <= 10 {
            n += 1;
            match commit(&store, &mut model, n) {
                Ok(()) => {}
                Err(error) if error.is_disk_full() && store.poison_cause().is_none() => {
                    refused += 1;
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(_) => {
                    poisoned += 1;
                    drop(store);
                    // The frame may exist, since its commit was not acknowledged. An open may fail for lack
                    // of disk space too.
                    store = loop {
                        match Store::open(&dir, options.clone(), &mut |_| {}) {
                            Ok(store) => break store,
                            Err(error) => assert!(error.is_disk_full(), "{error}"),
                        }
                    };
                    let found = Model::of(&store.read(), &[]);
                    assert!(found.quads.is_superset(&model.quads), "a commit is lost");
                    model = found;
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(Model::of(&open(&dir).read(), &[]) == model);
}
