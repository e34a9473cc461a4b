//! The steps that measure the store.
use crate::process::{self, Measurement};
use crate::work::{OBJECTS_PER_COMMIT, Order, QUADS_PER_OBJECT, Workload, shared_value};
use crate::{Figures, report_figure, run_step, step_command};
use oxrdf::{NamedOrBlankNode, Term};
use penstock_store::{
    Error, Options, Pattern, Read as _, Snapshot, Store, SubjectFilter, ValueClass, ValueKey,
    ValueRange,
};
use std::io::{BufRead as _, BufReader};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

/// The number of lookups by a literal.
const VALUE_LOOKUPS: u64 = 20_000;
/// The number of lists of the first or last subjects by a literal.
const VALUE_LISTS: u64 = 2_000;
/// The maximum number of objects read in a step.
const MAX_READ_OBJECTS: u64 = 50_000;

fn open_store(dir: &Path) -> (Store, u64) {
    let mut frames = 0;
    let store = Store::open(dir, Options::default(), &mut |progress| frames = progress.total);
    (store.expect("the store opens"), frames)
}

fn commit_objects(store: &Store, work: &Workload, first: u64) {
    store
        .transact::<_, Error>(|change| {
            for quad in (first..first + OBJECTS_PER_COMMIT).flat_map(|n| work.object_quads(n)) {
                change.insert(quad.as_ref())?;
            }
            Ok(())
        })
        .expect("a commit");
}

pub(crate) fn load_objects(dir: &Path, quads: u64, order: Order) {
    let (store, _) = open_store(dir);
    let work = Workload::new(order);
    let objects = (quads / QUADS_PER_OBJECT / OBJECTS_PER_COMMIT).max(1) * OBJECTS_PER_COMMIT;
    let commits = objects / OBJECTS_PER_COMMIT;
    // The cost of ingestion early and late: two periods of the same length, each with some checkpoints.
    let early = (commits / 10).min(100);
    let length = (commits * 3 / 10).clamp(1, 1_000);
    let mut costs = Vec::new();
    let whole = Measurement::begin();
    let mut stretch = Measurement::begin();
    let mut waits = Vec::new();
    for n in 0..commits {
        if n == early || n == commits - length {
            stretch = Measurement::begin();
            waits.clear();
        }
        let began = Instant::now();
        commit_objects(&store, &work, n * OBJECTS_PER_COMMIT);
        waits.push(began.elapsed());
        if n + 1 == early + length || n + 1 == commits {
            waits.sort_unstable();
            let median = waits.get(waits.len() / 2).map_or(0.0, Duration::as_secs_f64);
            costs.push((
                stretch.cpu_seconds(),
                stretch.thread_cpu_seconds(),
                stretch.bytes_written(),
                median,
            ));
        }
    }
    whole.report_rate("quads committed", objects * QUADS_PER_OBJECT);
    process::report_peak_memory();
    process::report_memory("loaded");
    if let [early, late] = costs.as_slice() {
        report_figure("computing late/early", format!("{:.2}", late.0 / early.0.max(0.01)));
        let here = late.1 / early.1.max(0.01);
        report_figure("computing late/early, of the thread that commits", format!("{here:.2}"));
        report_figure(
            "median wait for a commit, late/early",
            format!("{:.2}", late.3 / early.3.max(1e-6)),
        );
        report_figure(
            "written late/early",
            format!("{:.2}", late.2 as f64 / early.2.max(1) as f64),
        );
    }
    let stop = Measurement::begin();
    drop(store);
    stop.report_seconds("stop");
    let quads = objects * QUADS_PER_OBJECT;
    process::report_bytes_per_quad(
        "B a quad written to the device",
        process::bytes_written(),
        quads,
    );
    for folder in ["journal", "index"] {
        let bytes = process::folder_bytes(&dir.join(folder));
        process::report_bytes_per_quad(&format!("B a quad on disk, {folder}"), bytes, quads);
    }
    process::report_bytes_per_quad("B a quad on disk in all", process::folder_bytes(dir), quads);
}

pub(crate) fn read_objects(dir: &Path, quads: u64, order: Order) {
    let opening = Measurement::begin();
    let (store, _) = open_store(dir);
    opening.report_seconds("open after a clean stop");
    process::report_memory("opened");
    let work = Workload::new(order);
    let objects = quads / QUADS_PER_OBJECT;
    let sample = objects.min(MAX_READ_OBJECTS);
    // A prime step visits objects all over the store.
    let any = |n: u64| n.wrapping_mul(7_919_999) % objects.max(1);
    let stretch = Measurement::begin();
    for n in 0..sample {
        let subject = NamedOrBlankNode::from(work.subject(any(n)));
        let found = store.read().quads_about(&subject).expect("a subject");
        assert_eq!(found.len() as u64, QUADS_PER_OBJECT);
    }
    stretch.report_rate("subjects read", sample);
    process::report_memory("subjects read");
    scan_quads(&store, &work, sample);
    list_subjects(&store, &work, sample);
    process::report_memory("scanned");
    let snapshot = store.snapshot().expect("a snapshot");
    look_up_values(&snapshot, &work, objects);
    list_values(&snapshot, &work);
    process::report_memory("values read");
}

/// Looks up subjects by a literal.
fn look_up_values(snapshot: &Snapshot, work: &Workload, objects: u64) {
    let stretch = Measurement::begin();
    for n in 0..VALUE_LOOKUPS {
        let n = n.wrapping_mul(7_919_999) % objects.max(1);
        let quad = work.object_quads(n).last().expect("a quad");
        let Term::Literal(literal) = quad.object else { continue };
        let mut found = Vec::new();
        let visit = &mut |_: &ValueKey, subject| {
            found.push(subject);
            ControlFlow::Continue(())
        };
        let range = ValueRange::equal_to(literal.as_ref());
        let read = snapshot.visit_values(quad.predicate.as_ref(), &range, false, visit);
        assert!(read.expect("an index of values"));
        assert_eq!(found, [quad.subject]);
    }
    stretch.report_rate("subjects looked up by a literal", VALUE_LOOKUPS);
}

/// Lists the subjects with the first and the last values of a property.
fn list_values(snapshot: &Snapshot, work: &Workload) {
    let all = ValueRange::of_class(ValueClass::Text);
    for (what, reverse) in [("first", false), ("last", true)] {
        let stretch = Measurement::begin();
        for _ in 0..VALUE_LISTS {
            let property = work.predicates.last().expect("a property");
            let mut found = 0;
            let visit = &mut |_: &ValueKey, _| {
                found += 1;
                if found < 20 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            snapshot.visit_values(property.as_ref(), &all, reverse, visit).expect("values");
            assert_eq!(found, 20);
        }
        stretch.report_rate(&format!("{what} 20 subjects by a literal"), VALUE_LISTS);
    }
}

/// Scans by predicate and object, each with the quads of all objects that match.
fn scan_quads(store: &Store, work: &Workload, most: u64) {
    let stretch = Measurement::begin();
    let (mut scans, mut found) = (0, 0);
    for (n, predicate) in (0..1_024).zip(work.predicates.iter().take(5).cycle()) {
        let pattern = Pattern {
            predicate: Some(predicate.clone()),
            object: Some(shared_value(n).into()),
            ..Pattern::default()
        };
        let scanned = store.read().for_each(&pattern, &mut |_| {
            found += 1;
            ControlFlow::Continue(())
        });
        scanned.expect("a scan");
        scans += 1;
        if found > most {
            break;
        }
    }
    stretch.report_rate("scans by predicate and object", scans);
    stretch.report_rate("quads scanned", found);
}

/// Lists subjects in pages, as exports do.
fn list_subjects(store: &Store, work: &Workload, most: u64) {
    let stretch = Measurement::begin();
    let filter = SubjectFilter {
        graph: Some(work.graph.clone()),
        having: Vec::new(),
        ..SubjectFilter::default()
    };
    let mut after: Option<String> = None;
    let mut listed = 0;
    while listed < most {
        let page = store.read().list_subjects(&filter, after.as_deref(), 1_000).expect("a page");
        let Some(last) = page.last() else { break };
        listed += page.len() as u64;
        after = Some(last.as_str().to_owned());
    }
    stretch.report_rate("subjects listed", listed);
}

/// Instead of a number of commits: the process is killed while it writes a checkpoint.
pub(crate) const IN_CHECKPOINT: usize = usize::MAX;

/// Kills a process that commits, and measures the time until the store is open again. `after` has the number
/// of commits before each kill.
pub(crate) fn kill_and_reopen(dir: &Path, order: &str, after: &[usize], figures: &mut Figures) {
    let path = dir.to_str().expect("a path in Unicode");
    let mut found = Figures::new();
    for commits in after.iter().copied() {
        let mut child = step_command(&["crash", path, "0", order]).spawn().expect("a step");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let acknowledged = if commits == IN_CHECKPOINT {
            // The child prints nothing while it writes a checkpoint.
            let lines = std::thread::spawn(|| output.lines().map_while(Result::ok).last());
            while !dir.join("checkpoint-open").exists() {
                std::thread::sleep(Duration::from_micros(100));
            }
            child.kill().expect("SIGKILL");
            lines.join().expect("its output")
        } else {
            let last = output.lines().take(commits).map_while(Result::ok).last();
            child.kill().expect("SIGKILL");
            last
        };
        child.wait().expect("its end");
        run_step(&["reopen", path], &mut found);
        let quads = found.pop().expect("a count").1.parse().unwrap_or(0);
        let acknowledged = acknowledged.and_then(|quads| quads.parse::<u64>().ok());
        assert!(quads >= acknowledged.expect("commits"), "a commit that was acknowledged is lost");
    }
    let times: Vec<String> = found.into_iter().map(|(_, value)| value).collect();
    figures.push(("ready after SIGKILL, last in a checkpoint".to_owned(), times.join("; ")));
}

pub(crate) fn commit_until_killed(dir: &Path, order: Order) {
    let (store, _) = open_store(dir);
    let work = Workload::new(order);
    let mut next = store.stats().quads / QUADS_PER_OBJECT;
    loop {
        commit_objects(&store, &work, next);
        next += OBJECTS_PER_COMMIT;
        println!("{}", next * QUADS_PER_OBJECT);
    }
}

pub(crate) fn time_reopening(dir: &Path) {
    let opening = Measurement::begin();
    let (store, frames) = open_store(dir);
    report_figure("ready", opening.format_elapsed(&format!(", {frames} commits replayed")));
    report_figure("quads", store.stats().quads);
}
