//! Compares Penstock with the server of Oxigraph. Both do the same work over HTTP, one after the other.
//!
//! 1. The client ingests 100,000 objects of 10 triples, 100 in a request: 5 references that 20 objects share, and 5
//!    unique strings of 38 bytes. Each request is answered and durable before the next one is sent. Oxigraph syncs its
//!    log only now and then, so the client syncs it after each response.
//! 2. The client reads single objects.
//! 3. The client reads all objects in the order of their URIs.
//! 4. Penstock alone: the client ingests 200,000 objects into an empty store, one in a request.
//!
//! There is one client with one connection. Where a row mentions several connections, each of them sends its next
//! request after its response has arrived. `benches/oxigraph/run 0 [new objects]` measures only the last step.
//!
//! `benches/oxigraph/run` installs Oxigraph and runs the bench. `cargo test --benches` only compiles it.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::naive_bytecount,
    clippy::print_stdout,
    reason = "a bench panics on an error, and prints its results"
)]

mod client;
mod server;
mod several;
mod work;

use std::path::Path;
use std::time::{Duration, Instant};

/// The results of one server.
struct Figures {
    idle_mb: f64,
    /// Seconds of each tenth of the ingestion.
    ingest_seconds: Vec<f64>,
    reads: work::Reads,
    read_all_seconds: f64,
    peak_mb: f64,
    disk_bytes: u64,
    /// What was written to the device until the last ingestion was answered.
    written_bytes: u64,
    open_seconds: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let [penstock, oxigraph, objects @ ..] = arguments.as_slice() else {
        println!("benches/oxigraph/run runs this");
        return;
    };
    if !Path::new(penstock).is_file() {
        // `cargo test` passes arguments of its own.
        return;
    }
    let numbers: Vec<usize> = objects.iter().map(|objects| objects.parse().unwrap()).collect();
    let objects = numbers.first().copied().unwrap_or(100_000);
    let new_objects = numbers.get(1).copied().unwrap_or(200_000);
    let quads = objects as f64 * 10.0;
    if objects == 0 {
        print_new_objects(&work::measure_new_objects(penstock, new_objects));
        return;
    }
    let ours = work::measure_penstock(penstock, objects);
    let theirs = work::measure_oxigraph(oxigraph, objects);
    let nothing = work::measure_minimal_server();

    println!("| {objects} objects, {quads} quads | Penstock | Oxigraph | ratio |");
    println!("|---|---|---|---|");
    let rate = |name: &str, count: f64, ours: f64, theirs: f64| {
        let (ours, theirs) = (count / ours, count / theirs);
        println!("| {name} | {ours:.0} | {theirs:.0} | {:.1} |", ours / theirs);
    };
    rate(
        "durable ingest, quads/s",
        quads,
        ours.ingest_seconds.iter().sum(),
        theirs.ingest_seconds.iter().sum(),
    );
    rate("the first tenth of it", quads / 10.0, ours.ingest_seconds[0], theirs.ingest_seconds[0]);
    rate("the last tenth of it", quads / 10.0, ours.ingest_seconds[9], theirs.ingest_seconds[9]);
    let several = work::CONNECTIONS;
    rate("one object, reads/s", 1.0, ours.reads.seconds, theirs.reads.seconds);
    let reads = (ours.reads.concurrent_seconds, theirs.reads.concurrent_seconds);
    rate(&format!("the same on {several} connections"), 1.0, reads.0, reads.1);
    let many = work::MANY_CONNECTIONS;
    rate(
        &format!("the same on {many} connections"),
        1.0,
        ours.reads.many_seconds,
        theirs.reads.many_seconds,
    );
    rate(
        "all as objects in order, objects/s",
        objects as f64,
        ours.read_all_seconds,
        theirs.read_all_seconds,
    );
    let amount = |name: &str, ours: f64, theirs: f64| {
        println!("| {name} | {ours:.1} | {theirs:.1} | {:.2} |", ours / theirs);
    };
    amount("resident when idle and empty, MB", ours.idle_mb, theirs.idle_mb);
    amount("peak resident, MB", ours.peak_mb, theirs.peak_mb);
    let a_quad = |bytes: u64| bytes as f64 / quads;
    amount("on disk after a stop, B a quad", a_quad(ours.disk_bytes), a_quad(theirs.disk_bytes));
    let written = (a_quad(ours.written_bytes), a_quad(theirs.written_bytes));
    amount("written until the last ingestion was answered, B a quad", written.0, written.1);
    amount("answers after a start, s", ours.open_seconds, theirs.open_seconds);
    let micros = |name: &str, of: fn(&work::Reads) -> f64| {
        amount(name, of(&ours.reads) * 1e6, of(&theirs.reads) * 1e6);
    };
    micros("one object, us", |reads| reads.seconds);
    micros("the cheapest request, us", |reads| reads.cheapest_seconds);
    micros("one object, us of CPU time", |reads| reads.cpu_seconds);
    micros(&format!("the same on {several} connections"), |reads| reads.concurrent_cpu_seconds);
    for percent in [50, 99] {
        let ms = |reads: &work::Reads| reads.many_latencies.percentile_ms(percent);
        amount(
            &format!("one object on {many} connections, ms at p{percent}"),
            ms(&ours.reads),
            ms(&theirs.reads),
        );
    }
    print_new_objects(&work::measure_new_objects(penstock, new_objects));
    println!("\nA minimal server answers in {:.1} us.", nothing * 1e6);
}

/// Prints the rows about requests with one new object each. Oxigraph has none, because it syncs no request.
fn print_new_objects(new: &work::NewObjects) {
    let many = work::MANY_CONNECTIONS;
    let row = |name: &str, value: f64| println!("| {name} | {value:.1} | - | - |");
    println!("| {} new objects, one in a request, on {many} connections | | | |", new.count);
    row("a second", 1.0 / new.seconds);
    row("ms at p50", new.latencies.percentile_ms(50));
    row("ms at p99", new.latencies.percentile_ms(99));
    row("us of CPU time for each", new.cpu_seconds * 1e6);
    row("peak resident, MB", new.peak_mb);
    row("resident after 20 s without a request, MB", new.rested_mb);
}

/// Runs `work`, and returns the seconds that it took and its result.
fn measure_time<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let begun = Instant::now();
    let value = work();
    (begun.elapsed().as_secs_f64(), value)
}

/// How long single reads are measured.
const READ_DURATION: Duration = Duration::from_secs(5);
