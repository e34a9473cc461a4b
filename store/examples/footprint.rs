//! What a store costs: 100,000 objects of 10 quads (5 shared references, 5 unique strings of 38
//! bytes) in commits of 100 objects; or as many objects as the first argument says.
//!
//! `cargo run --release -p penstock-store --example footprint -- 100000`
#![expect(clippy::print_stdout, reason = "the report is what it is for")]
#![expect(clippy::cast_precision_loss, reason = "rates need no more")]
use oxrdf::{GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use penstock_store::{Error, Options, Pattern, Read, Store, SubjectFilter};
use std::fs;
use std::path::Path;
use std::time::Instant;

const IN_COMMIT: u64 = 100;

fn object(n: u64, predicates: &[NamedNode], graph: &GraphName) -> Vec<Quad> {
    let subject = iri(n);
    let mut random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    predicates
        .iter()
        .zip(0_u64..)
        .map(|(predicate, field)| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(field);
            let object: Term = if field < 5 {
                NamedNode::new_unchecked(format!("https://example.org/shared/{}", random >> 54))
                    .into()
            } else {
                Literal::new_simple_literal(format!("{random:020} {n:08} {field:08}")).into()
            };
            Quad::new(subject.clone(), predicate.clone(), object, graph.clone())
        })
        .collect()
}

fn iri(n: u64) -> NamedNode {
    NamedNode::new_unchecked(format!(
        "https://example.org/object/{:016x}",
        if std::env::var("SEQ").is_ok() { n } else { n.wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    ))
}

fn of_process(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Seconds that the process has computed; other than the clock's, they do not depend on what else
/// the machine does.
fn computed() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(") ").next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

struct Phase {
    clock: Instant,
    computed: f64,
}

impl Phase {
    fn begin() -> Self {
        Self { clock: Instant::now(), computed: computed() }
    }

    fn report(&self, what: &str, count: u64) {
        println!(
            "{what}: {:.0}/s, {:.0}/s of computing; RSS {} MB (peak {}), written {} MB",
            count as f64 / self.clock.elapsed().as_secs_f64(),
            count as f64 / (computed() - self.computed),
            of_process("status", "VmRSS") / 1024,
            of_process("status", "VmHWM") / 1024,
            of_process("io", "write_bytes") >> 20,
        );
    }
}

fn bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|data| data.len()).sum()
}

fn main() -> Result<(), Error> {
    let objects: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let dir = Path::new("target/footprint");
    let _ = fs::remove_dir_all(dir);
    let open = || Store::open(dir, Options::default(), &mut |_| {});
    let store = open()?;
    let predicates: Vec<_> = (0..10)
        .map(|n| NamedNode::new_unchecked(format!("https://example.org/vocabulary#field{n}")))
        .collect();
    let graph = GraphName::from(NamedNode::new_unchecked("https://example.org/"));
    let phase = Phase::begin();
    for first in (0..objects).step_by(usize::try_from(IN_COMMIT).unwrap_or(1)) {
        store.transact::<_, Error>(|change| {
            for quad in (first..first + IN_COMMIT).flat_map(|n| object(n, &predicates, &graph)) {
                change.insert(quad.as_ref())?;
            }
            Ok(())
        })?;
        if (first + IN_COMMIT).is_multiple_of(objects / 5) {
            phase.report("quads committed", (first + IN_COMMIT) * 10);
        }
    }
    let quads = objects * 10;
    println!("{:?}", store.stats());
    let at = Instant::now();
    drop(store);
    println!("closed in {:?}", at.elapsed());
    for folder in ["journal", "index"] {
        println!("{folder}: {} B a quad", bytes(&dir.join(folder)) / quads);
    }
    let at = Instant::now();
    let store = open()?;
    println!("opened in {:?}", at.elapsed());
    let sample = objects.min(50_000);
    let phase = Phase::begin();
    for n in 0..sample {
        let found = store.read().quads_about(&NamedOrBlankNode::from(iri(n * 7 % objects)))?;
        assert_eq!(found.len(), 10);
    }
    phase.report("subjects read", sample);
    let phase = Phase::begin();
    let filter = SubjectFilter { graph: Some(graph), having: Vec::new() };
    let (mut after, mut count) = (None::<String>, 0);
    while let Some(last) = {
        let page = store.read().subjects(&filter, after.as_deref(), 1_000)?;
        count += page.len() as u64;
        page.last().map(|iri| iri.as_str().to_owned())
    } {
        after = Some(last);
    }
    phase.report("subjects listed in pages of 1,000", count);
    let phase = Phase::begin();
    for n in 0..sample {
        let object = Some(iri(n * 7 % objects).into());
        assert!(!store.read().any(&Pattern { object, ..Pattern::default() })?);
    }
    phase.report("lookups by object", sample);
    drop(store);
    fs::remove_dir_all(dir.join("index")).map_err(|source| Error::Io {
        action: "removing",
        path: dir.to_owned(),
        source,
    })?;
    let phase = Phase::begin();
    let store = open()?;
    phase.report("quads replayed", store.stats().quads);
    Ok(())
}
