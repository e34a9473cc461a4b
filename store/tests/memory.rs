//! Resident memory stays under a limit, however much is committed. So the engine's leaks and caches cannot
//! return unnoticed: 1M quads as flat keys in large batches once took 7.9 GB.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod model;

use model::{iri, open, quad, text};
use oxrdf::NamedOrBlankNode;
use penstock_store::{Error, Pattern, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

const DIR: &str = "PENSTOCK_STORE_MEMORY_DIR";
const OBJECTS: u64 = 20_000;
const QUADS: u64 = OBJECTS * 10;
/// Measured: 21 MB. The leak took about 1,600 MB for the same amount.
const BOUND_KB: u64 = 64 << 10;

/// The child process that is measured. It does nothing unless started by the test.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let store = open(Path::new(&dir));
    for begin in (0..OBJECTS).step_by(200) {
        store
            .transact::<_, Error>(|change| {
                for n in begin..begin + 200 {
                    let subject = format!("object/{n}");
                    for field in 0..5 {
                        let shared = iri(&format!("shared/{}", (n + field) % 50));
                        change.insert(quad(&subject, &format!("r{field}"), shared).as_ref())?;
                        let own = text(&format!("a value of its own, {n:08} {field:04}"));
                        change.insert(quad(&subject, &format!("v{field}"), own).as_ref())?;
                    }
                }
                Ok(())
            })
            .unwrap();
    }
    let mut count = 0;
    store
        .read()
        .for_each(&Pattern::default(), &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(count, QUADS);
    for n in (0..OBJECTS).step_by(7) {
        let subject = NamedOrBlankNode::from(iri(&format!("object/{n}")));
        assert_eq!(store.read().quads_about(&subject).unwrap().len(), 10);
    }
    store.compact_journal().unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    assert!(peak < BOUND_KB, "{QUADS} quads took {peak} kB of memory; the limit is {BOUND_KB}");
}

#[test]
fn two_hundred_thousand_quads_stay_within_the_memory_limit() {
    let dir = tempfile::tempdir().unwrap();
    let run = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(DIR, dir.path())
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}
