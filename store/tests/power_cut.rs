//! Cuts the power while a process commits: all acknowledged commits must survive.
//!
//! The data directory is on an ext4 file system in an image file. The file is copied while the process is
//! stopped. The copy has what the kernel had written to the "disk" so far. It lacks what the kernel still had
//! in memory, as after a power cut. Copies are mounted (ext4 replays its own journal), opened and checked.
//!
//! It simulates the loss of everything that was written but not synced. The copy has what `fsync` and
//! `fdatasync` wrote, and with it metadata that is older or newer than its bytes. Writeback that the kernel
//! begins after some seconds, or that follows `mkfs` after mounting, may add a few writes to a copy, as on a
//! real disk. It does not simulate a disk that acknowledges a flush and loses it, nor torn pages.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod model;

use model::{Model, iri, quad, text};
use oxrdf::Quad;
use penstock_store::{Error, Format, Options, Read, Store};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const CUTS: u64 = 32;
/// Cuts after which the process is restarted on an empty file system.
const CUTS_OF_A_RUN: u64 = 8;
/// The number of commits before each cut, at least.
const COMMITS_OF_A_CUT: u64 = 13;
/// How long a process may need for these commits, or to stop.
const LIMIT: Duration = Duration::from_mins(2);
/// The number of commits in each store of [`raising_child`].
const COMMITS_OF_A_STORE: u64 = 4;
/// In the commits that require a newer format.
const MARK: &[u8] = b"requires the format 3";
const DIR: &str = "PENSTOCK_STORE_POWER_CUT_DIR";

fn open(dir: &Path) -> Store {
    // Small limits, so that the cuts interrupt checkpoints, new segments and compactions.
    let options = Options {
        write_back_bytes: 60_000,
        segment_bytes: 60_000,
        compact_bytes: 200_000,
        background_maintenance: true,
        ..Options::default()
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

/// The child process whose power is cut. It does nothing unless started by the test.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let store = open(Path::new(&dir));
    let compacted = store.clone();
    // The journal of such a small store is never compacted automatically.
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(150));
            compacted.compact_journal().unwrap();
        }
    });
    loop {
        let (n, _) = store
            .transact::<_, Error>(|change| {
                let n = count(change.read_document("counts", b"n")?);
                for quad in removed(n) {
                    assert!(change.remove(quad.as_ref())?);
                }
                for quad in added(n) {
                    assert!(change.insert(quad.as_ref())?);
                }
                change.put_document("counts", b"n", (n + 1).to_string().as_bytes())?;
                Ok(n + 1)
            })
            .unwrap();
        std::io::stdout().write_all(format!("done {n}\n").as_bytes()).unwrap();
    }
}

/// The child process that raises the format of one store after the other. It does nothing unless started by the
/// test.
#[test]
fn raising_child() {
    let Some(dir) = std::env::var_os(DIR).map(PathBuf::from) else { return };
    for number in 0_u64.. {
        // Nothing is packed, so that the mark can be found in the files.
        let options = Options { background_maintenance: false, ..Options::default() };
        let store = Store::open(&dir.join(number.to_string()), options, &mut |_| {}).unwrap();
        for n in 1..=COMMITS_OF_A_STORE {
            store
                .transact::<_, Error>(|change| {
                    if n > number % COMMITS_OF_A_STORE {
                        change.require_format(Format::V3);
                        change.put_document("marks", &n.to_be_bytes(), MARK)?;
                    }
                    change.put_document("counts", b"n", n.to_string().as_bytes())
                })
                .unwrap();
            let done = number * COMMITS_OF_A_STORE + n;
            std::io::stdout().write_all(format!("done {done}\n").as_bytes()).unwrap();
        }
        if let Some(old) = number.checked_sub(3) {
            std::fs::remove_dir_all(dir.join(old.to_string())).unwrap();
        }
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
        for _ in 0..600 {
            if run("umount", &[self.0.to_str().unwrap()]).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A process that commits, and the file with the commits that it has acknowledged.
struct Writing {
    child: Child,
    output: PathBuf,
}

impl Writing {
    fn start(child: &str, dir: &Path, output: PathBuf) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", child, "--nocapture", "--test-threads=1"])
            .env(DIR, dir)
            .stdout(std::fs::File::create(&output).unwrap())
            .spawn()
            .unwrap();
        Self { child, output }
    }

    /// Returns the number of commits that the process has acknowledged.
    fn acknowledged(&self) -> u64 {
        let output = std::fs::read_to_string(&self.output).unwrap();
        // The last line may lack its end.
        let lines = output.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let last = lines.lines().rev().find_map(|line| line.split_once("done "));
        last.map_or(0, |(_, n)| n.parse().unwrap())
    }

    /// Waits until the process has acknowledged this many commits, or until the limit.
    fn wait_for(&self, commits: u64) {
        let end = Instant::now() + LIMIT;
        while self.acknowledged() < commits && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Stops every thread of the process. One that is in a system call ends that first.
    fn stop(&self) {
        self.signal("STOP");
        let end = Instant::now() + LIMIT;
        while !self.is_stopped() {
            assert!(Instant::now() < end, "the process does not stop");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn is_stopped(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        // The state of a thread is after its name, which is in parentheses (proc(5)).
        threads.flatten().all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('T'))
        })
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

fn check(dir: &Path, acknowledged: u64) {
    let store = open(dir);
    let read = store.read();
    let commits = count(read.read_document("counts", b"n").unwrap());
    assert!(commits >= acknowledged, "{acknowledged} acknowledged, {commits} there");
    let mut expected = Model::default();
    for n in 0..commits {
        for quad in removed(n) {
            expected.quads.remove(&quad);
        }
        expected.quads.extend(added(n));
    }
    assert!(Model::of(&read, &[]).quads == expected.quads, "a commit exists in part");
    drop(read);
    // The store must accept further commits.
    model::add(&store, &[quad("new", "p", text("value"))]);
}

/// Asserts that all commits of [`raising_child`] survived, and that none that requires the format 3 is in a
/// segment of an older one.
fn check_raised(dir: &Path, acknowledged: u64) {
    let newest = acknowledged / COMMITS_OF_A_STORE;
    for number in newest.saturating_sub(1)..=newest {
        let dir = dir.join(number.to_string());
        if !dir.join("journal").is_dir() {
            assert_eq!(number * COMMITS_OF_A_STORE, acknowledged, "an acknowledged commit is lost");
            continue;
        }
        for segment in model::segments(&dir) {
            let bytes = std::fs::read(&segment).unwrap();
            let is_marked = bytes.windows(MARK.len()).any(|part| part == MARK);
            assert!(!is_marked || bytes.get(8) == Some(&3), "{}", segment.display());
        }
        let store = open(&dir);
        let commits = count(store.read().read_document("counts", b"n").unwrap());
        let expected = (acknowledged - number * COMMITS_OF_A_STORE).min(COMMITS_OF_A_STORE);
        assert!(commits >= expected, "{acknowledged} acknowledged, {commits} in store {number}");
        assert!(commits <= number % COMMITS_OF_A_STORE || store.format() == Format::V3);
    }
}

/// Cuts the power of a child process. `check` gets the data directory after a cut, and the acknowledged commits.
fn cuts(work: &Path, child: &str, check: impl Fn(&Path, u64)) -> Result<u64, String> {
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
        let output = work.join(format!("output-{round}"));
        let writing = Writing::start(child, &live.join("store"), output);
        for cut_number in 0..CUTS_OF_A_RUN {
            writing.wait_for((cut_number + 1) * COMMITS_OF_A_CUT);
            let pause = 60 + (round * CUTS_OF_A_RUN + cut_number) * 71 % 397;
            std::thread::sleep(Duration::from_millis(pause));
            // The copy must contain what was acknowledged before it begins. The process is stopped meanwhile;
            // otherwise the copy could have later writes without earlier ones.
            writing.stop();
            let acknowledged = writing.acknowledged();
            // Each copy needs its own name. If another mount namespace was created meanwhile, the previous
            // copy is still mounted there, and a file with the same name would be mistaken for it.
            let copy = work.join(format!("cut-{round}-{cut_number}.img"));
            run("cp", &["--sparse=always", image.to_str().unwrap(), copy.to_str().unwrap()])?;
            let on_live = file_lengths(&live.join("store"));
            writing.signal("CONT");
            let mounted = Mounted::new(&copy, &cut)?;
            let on_cut = file_lengths(&cut.join("store"));
            lost += u64::from(on_live != on_cut);
            if acknowledged > 0 {
                check(&cut.join("store"), acknowledged);
            }
            drop(mounted);
            std::fs::remove_file(&copy).unwrap();
        }
        assert!(writing.acknowledged() > 100, "too few commits for this test");
        drop(writing);
        drop(mounted);
    }
    Ok(lost)
}

/// Returns path and length of each file, to detect whether a cut lost anything.
fn file_lengths(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(data) if data.is_dir() => folders.push(entry.path()),
                data => {
                    let path = entry.path().strip_prefix(folder).unwrap().to_owned();
                    found.push((path, data.map_or(0, |data| data.len())));
                }
            }
        }
    }
    found.sort();
    found
}

#[test]
fn acknowledged_commits_survive_a_power_cut() {
    check_after_cuts("child", check);
}

#[test]
fn a_commit_of_a_newer_format_is_never_in_a_file_of_an_older_one_after_a_power_cut() {
    check_after_cuts("raising_child", check_raised);
}

fn check_after_cuts(child: &str, check: impl Fn(&Path, u64)) {
    let work = tempfile::tempdir().unwrap();
    match cuts(work.path(), child, check) {
        Ok(lost) => assert!(lost > 0, "no cut lost anything: this tests nothing"),
        Err(cause) => {
            assert!(std::env::var_os("CI").is_none(), "no loop devices: {cause}");
            let why =
                format!("skipped the power cuts, because loop devices are unavailable: {cause}\n");
            std::io::stderr().write_all(why.as_bytes()).unwrap();
        }
    }
}
