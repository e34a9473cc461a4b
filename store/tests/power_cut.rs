//! The power is cut while a process commits: all that it had acknowledged is there afterwards.
//!
//! The data directory is on an ext4 file system in an image file. The file is copied while the process
//! is stopped: the copy has what the kernel had written to the "disk" so far, and lacks what it still
//! held in memory, which is what a power cut leaves. Copies are mounted (ext4 replays its own journal),
//! opened and checked.
//!
//! What it simulates: everything that was written and not synced is lost, whatever `fsync` and
//! `fdatasync` let through is there, and with it metadata that is older or newer than the bytes it
//! belongs to. Writeback of its own, which the kernel begins after seconds and `mkfs` after mounting,
//! may get a few more writes into a copy, as it would on a disk. What it does not simulate: a disk that
//! acknowledges a flush and loses it, and pages torn within themselves.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod model;

use model::{Model, iri, quad, text};
use oxrdf::Quad;
use penstock_store::{Error, Options, Read, Store};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const CUTS: u64 = 32;
/// Cuts after which the process is started anew, on an empty file system.
const CUTS_OF_A_RUN: u64 = 8;
const DIR: &str = "PENSTOCK_STORE_POWER_CUT_DIR";

fn open(dir: &Path) -> Store {
    // Small bounds, so that the cuts hit checkpoints, new segments and compactions.
    let options = Options {
        write_back_bytes: 60_000,
        segment_bytes: 60_000,
        compact_bytes: 200_000,
        tidies: true,
    };
    Store::open(dir, options, &mut |_| {}).unwrap()
}

fn added(n: u64) -> Vec<Quad> {
    let subject = format!("{n:05}");
    let mut quads: Vec<_> = (0..4)
        .map(|field| {
            quad(&subject, &format!("p{field}"), text(&format!("{n} {field} ").repeat(20)))
        })
        .collect();
    quads.push(quad(&subject, "of", iri("shared")));
    quads
}

fn removed(n: u64) -> Vec<Quad> {
    n.checked_sub(7).map_or_else(Vec::new, |before| added(before).into_iter().take(3).collect())
}

fn count(bytes: Option<Vec<u8>>) -> u64 {
    bytes.map_or(0, |bytes| String::from_utf8(bytes).unwrap().parse().unwrap())
}

/// The process whose power is cut. Run as a test of its own it does nothing.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let store = open(Path::new(&dir));
    let compacted = store.clone();
    // By itself the journal of a store this small is not compacted.
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(150));
            compacted.compact().unwrap();
        }
    });
    loop {
        let (n, _) = store
            .transact::<_, Error>(|change| {
                let n = count(change.document("counts", b"n")?);
                for quad in removed(n) {
                    assert!(change.remove(quad.as_ref())?);
                }
                for quad in added(n) {
                    assert!(change.insert(quad.as_ref())?);
                }
                change.put("counts", b"n", (n + 1).to_string().as_bytes())?;
                Ok(n + 1)
            })
            .unwrap();
        std::io::stdout().write_all(format!("done {n}\n").as_bytes()).unwrap();
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let done = Command::new(program).args(arguments).output().map_err(|e| e.to_string())?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&done.stderr)))
}

/// A mounted image; unmounted when dropped.
struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    fn new(image: &Path, at: &'a Path) -> Result<Self, String> {
        run("mount", &["-o", "loop", image.to_str().unwrap(), at.to_str().unwrap()])?;
        Ok(Self(at))
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        for _ in 0..50 {
            if run("umount", &[self.0.to_str().unwrap()]).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A process that commits, and what it has acknowledged.
struct Writing {
    child: Child,
    acknowledged: Arc<AtomicU64>,
}

impl Writing {
    fn start(dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(DIR, dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let acknowledged = Arc::new(AtomicU64::new(0));
        let told = acknowledged.clone();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if let Some((_, n)) = line.split_once("done ") {
                    told.store(n.parse().unwrap(), Ordering::SeqCst);
                }
            }
        });
        Self { child, acknowledged }
    }

    fn signal(&self, name: &str) {
        run("kill", &[&format!("-{name}"), &self.child.id().to_string()]).unwrap();
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn check(dir: &Path, acknowledged: u64) -> u64 {
    let store = open(dir);
    let read = store.read();
    let commits = count(read.document("counts", b"n").unwrap());
    assert!(commits >= acknowledged, "{acknowledged} acknowledged, {commits} there");
    let mut expected = Model::default();
    for n in 0..commits {
        for quad in removed(n) {
            expected.quads.remove(&quad);
        }
        expected.quads.extend(added(n));
    }
    assert!(Model::of(&read, &[]).quads == expected.quads, "a commit is there in part");
    drop(read);
    // And the store goes on.
    model::add(&store, &[quad("new", "p", text("value"))]);
    commits
}

fn cuts(work: &Path) -> Result<u64, String> {
    let [live, cut] = ["live", "cut"].map(|name| work.join(name));
    for folder in [&live, &cut] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let mut lost = 0;
    for round in 0..CUTS / CUTS_OF_A_RUN {
        let image = work.join(format!("live-{round}.img"));
        std::fs::File::create(&image).unwrap().set_len(96 << 20).unwrap();
        let lazy = "lazy_itable_init=0,lazy_journal_init=0";
        run("mkfs.ext4", &["-q", "-F", "-E", lazy, "-J", "size=4", image.to_str().unwrap()])?;
        let mounted = Mounted::new(&image, &live)?;
        let writing = Writing::start(&live.join("store"));
        for cut_number in 0..CUTS_OF_A_RUN {
            let pause = 60 + (round * CUTS_OF_A_RUN + cut_number) * 71 % 397;
            std::thread::sleep(Duration::from_millis(pause));
            // What was acknowledged before the copy begins must be in it. The process stands still
            // meanwhile, lest the copy has later writes without earlier ones.
            writing.signal("STOP");
            // What it said last is still on its way through the pipe.
            std::thread::sleep(Duration::from_millis(10));
            let acknowledged = writing.acknowledged.load(Ordering::SeqCst);
            // A name of its own: where another mount namespace was made meanwhile the copy before is mounted
            // there still, and a file of that name would be taken for it.
            let copy = work.join(format!("cut-{round}-{cut_number}.img"));
            run("cp", &["--sparse=always", image.to_str().unwrap(), copy.to_str().unwrap()])?;
            let on_live = journal_bytes(&live.join("store"));
            writing.signal("CONT");
            let mounted = Mounted::new(&copy, &cut)?;
            let on_cut = journal_bytes(&cut.join("store"));
            lost += u64::from(on_live != on_cut);
            if acknowledged > 0 {
                check(&cut.join("store"), acknowledged);
            }
            drop(mounted);
            std::fs::remove_file(&copy).unwrap();
        }
        assert!(writing.acknowledged.load(Ordering::SeqCst) > 100, "too few to prove a thing");
        drop(writing);
        drop(mounted);
    }
    Ok(lost)
}

/// The name and length of each file of the index and the journal: to tell whether a cut lost anything.
fn journal_bytes(store: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for folder in ["journal", "index"] {
        let Ok(entries) = std::fs::read_dir(store.join(folder)) else { continue };
        for entry in entries.flatten() {
            let length = entry.metadata().map_or(0, |data| data.len());
            found.push((entry.file_name().to_string_lossy().into_owned(), length));
        }
    }
    found.sort();
    found
}

#[test]
fn what_was_acknowledged_survives_a_power_cut() {
    let work = tempfile::tempdir().unwrap();
    match cuts(work.path()) {
        Ok(lost) => assert!(lost > 0, "no cut lost anything: this tests nothing"),
        Err(cause) => {
            assert!(std::env::var_os("CI").is_none(), "no loop devices: {cause}");
            let why = format!(
                "power cuts were not tried, since loop devices are not to be had: {cause}\n"
            );
            std::io::stderr().write_all(why.as_bytes()).unwrap();
        }
    }
}
