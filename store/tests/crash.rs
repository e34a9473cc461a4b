//! A process that is killed at any moment loses no acknowledged commit, and leaves no partial commit. That
//! holds for the journal and, if a checkpoint was interrupted, for the index.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod model;

use model::{Model, iri, matching, quad, text};
use oxrdf::Quad;
use penstock_store::{Error, Format, Options, Pattern, Read, Store};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Number of kills; the environment variable `PENSTOCK_CRASH_ROUNDS` overrides it.
const ROUNDS: u64 = 200;
/// Number of kills before a new store is created, since the whole store is checked each time.
const ROUNDS_OF_A_STORE: u64 = 20;
const THREADS: usize = 3;
/// The number of the first commit of a thread that requires a newer format.
const FIRST_OF_NEW_FORMAT: u64 = 40;
const DIR: &str = "PENSTOCK_STORE_CRASH_DIR";

fn open(dir: &Path) -> Store {
    // Small limits, so that most kills interrupt a checkpoint, a new segment or a compaction.
    let options = Options {
        write_back_bytes: 30_000,
        segment_bytes: 20_000,
        compact_bytes: 1,
        background_maintenance: true,
        ..Options::default()
    };
    Store::open(dir, options, &mut |_| {}).unwrap()
}

/// The quads that commit `n` of a thread adds.
fn added(thread: u64, n: u64) -> Vec<Quad> {
    let subject = format!("{thread}/{n:05}");
    let own = |field: u64| quad(&subject, &format!("p{field}"), text(&"long".repeat(60)));
    let mut quads: Vec<_> = (0..4).map(own).collect();
    quads.push(quad(&subject, "of", iri(&format!("{thread}"))));
    quads.push(quad(&format!("{thread}"), "newest", iri(&subject)));
    quads
}

/// The quads that commit `n` of a thread removes.
fn removed(thread: u64, n: u64) -> Vec<Quad> {
    let Some(before) = n.checked_sub(1) else { return Vec::new() };
    added(thread, before).into_iter().skip(3).collect()
}

fn count(bytes: Option<Vec<u8>>) -> u64 {
    bytes.map_or(0, |bytes| String::from_utf8(bytes).unwrap().parse().unwrap())
}

/// The child process that is killed. It does nothing unless started by the test.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let store = open(Path::new(&dir));
    std::thread::scope(|scope| {
        // The journal of such a small store is never compacted automatically.
        scope.spawn(|| {
            loop {
                std::thread::sleep(Duration::from_millis(25));
                store.compact_journal().unwrap();
            }
        });
        for thread in 0..THREADS as u64 {
            let store = &store;
            scope.spawn(move || {
                loop {
                    let (n, _) = store
                        .transact::<_, Error>(|change| {
                            let key = thread.to_be_bytes();
                            let n = count(change.read_document("counts", &key)?);
                            if n >= FIRST_OF_NEW_FORMAT {
                                change.require_format(Format::V3);
                            }
                            for quad in removed(thread, n) {
                                assert!(change.remove(quad.as_ref())?);
                            }
                            for quad in added(thread, n) {
                                assert!(change.insert(quad.as_ref())?);
                            }
                            change.put_document("counts", &key, (n + 1).to_string().as_bytes())?;
                            Ok(n + 1)
                        })
                        .unwrap();
                    let line = format!("done {thread} {n}\n");
                    std::io::stdout().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

/// Runs the child and kills it. Returns the commits that each thread acknowledged.
fn run_and_kill(dir: &Path, round: u64) -> [u64; THREADS] {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(DIR, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let commits = Arc::new(AtomicU64::new(0));
    let counted = commits.clone();
    let lines = std::thread::spawn(move || {
        let mut acknowledged = [0; THREADS];
        for line in stdout.lines().map_while(Result::ok) {
            // The test harness may have written the start of the line.
            let Some((_, said)) = line.split_once("done ") else { continue };
            let Some((thread, n)) = said.split_once(' ') else { continue };
            if let (Ok(thread), Ok(n)) = (thread.parse::<usize>(), n.parse()) {
                acknowledged[thread] = n;
                counted.fetch_add(1, Ordering::SeqCst);
            }
        }
        acknowledged
    });
    // Some are killed while they open; the others reach some commits, even on a slow machine.
    let most = Instant::now() + Duration::from_mins(2);
    while !round.is_multiple_of(4) && commits.load(Ordering::SeqCst) < 3 && Instant::now() < most {
        std::thread::sleep(Duration::from_millis(2));
    }
    let pause = RandomState::new().hash_one(round) % 160;
    std::thread::sleep(Duration::from_millis(30 + pause));
    child.kill().unwrap();
    child.wait().unwrap();
    lines.join().unwrap()
}

#[test]
fn acknowledged_commits_survive_kills_and_none_is_partial() {
    let rounds = std::env::var("PENSTOCK_CRASH_ROUNDS").map_or(ROUNDS, |n| n.parse().unwrap());
    let mut kills = 0;
    while kills < rounds {
        let dir = tempfile::tempdir().unwrap();
        kill_and_check(dir.path(), ROUNDS_OF_A_STORE.min(rounds - kills));
        kills += ROUNDS_OF_A_STORE;
    }
}

fn kill_and_check(dir: &Path, rounds: u64) {
    let mut acknowledged = [0; THREADS];
    for round in 0..rounds {
        // The next open, which may be killed too, takes over a base.
        if round % 3 == 2 {
            std::fs::remove_dir_all(dir.join("index")).unwrap();
        }
        for (n, now) in acknowledged.iter_mut().zip(run_and_kill(dir, round)) {
            *n = now.max(*n);
        }
        let store = open(dir);
        let read = store.read();
        let mut expected = Model::default();
        for thread in 0..THREADS as u64 {
            let commits = count(read.read_document("counts", &thread.to_be_bytes()).unwrap());
            assert!(
                commits >= acknowledged[usize::try_from(thread).unwrap()],
                "an acknowledged commit is lost"
            );
            assert!(commits <= FIRST_OF_NEW_FORMAT || store.format() == Format::V3);
            for n in 0..commits {
                for quad in removed(thread, n) {
                    expected.quads.remove(&quad);
                }
                expected.quads.extend(added(thread, n));
            }
        }
        assert_eq!(Model::of(&read, &[]).quads, expected.quads);
        for thread in 0..THREADS as u64 {
            for pattern in [
                Pattern { predicate: Some(iri("of")), ..Pattern::default() },
                Pattern { predicate: Some(iri("p1")), ..Pattern::default() },
                Pattern { object: Some(iri(&thread.to_string()).into()), ..Pattern::default() },
            ] {
                assert_eq!(matching(&read, &pattern), expected.matching(&pattern));
            }
        }
    }
    assert!(
        acknowledged.iter().sum::<u64>() > rounds,
        "{acknowledged:?}: too few commits for this test"
    );
}
