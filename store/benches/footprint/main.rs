//! The footprint report: what the store costs, compared with flat keys in sled for the same work.
//!
//! `cargo bench --bench footprint -- 10000000` runs it for ten million quads; the default is one million.
//! `--baseline=N` sets the number of quads of the baseline, which takes gigabytes; 0 leaves it out.
//!
//! The work: objects of 10 quads, 5 with one of 1,024 shared values and 5 with a unique string of 38 bytes.
//! They are written in commits of 100 objects, each durable before the next. Subjects are minted once in
//! order, like counters and `UUIDv7`, and once at random.
//!
//! Each step runs in a process of its own, so that memory and bytes written are that step's. Rates are given
//! per second of wall time, and per second of CPU time, which does not depend on other load of the machine.
#![expect(clippy::print_stdout, reason = "this program prints a report")]
#![expect(clippy::expect_used, reason = "a measurement that fails has nothing to report")]
#![expect(clippy::cast_precision_loss, reason = "the report needs no more")]
mod codes;
mod flat;
mod packed;
mod process;
mod work;

use std::path::Path;
use std::process::{Command, Stdio};
use work::Order;

/// The allocator of the gateway.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Names and values, in the order of the report.
type Figures = Vec<(String, String)>;

/// Reports a figure to the parent process.
fn report_figure(name: &str, value: impl std::fmt::Display) {
    println!("{name}\t{value}");
}

fn step_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.arg("step").args(arguments).stdout(Stdio::piped());
    command
}

/// Runs a step in a process of its own.
fn run_step(arguments: &[&str], figures: &mut Figures) {
    let output = step_command(arguments).stderr(Stdio::inherit()).output().expect("a step");
    assert!(output.status.success(), "the step {arguments:?} failed: {}", output.status);
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let (name, value) = line.split_once('\t').expect("a name and a value");
        figures.push((name.to_owned(), value.to_owned()));
    }
}

fn measure_store(dir: &Path, quads: u64, order: Order, killed_after: &[usize]) -> Figures {
    let mut figures = vec![("quads".to_owned(), quads.to_string())];
    let dir = dir.join("packed");
    let _ = std::fs::remove_dir_all(&dir);
    let path = dir.to_str().expect("a path in Unicode");
    let (quads, order) = (quads.to_string(), order.name());
    run_step(&["load", path, &quads, order], &mut figures);
    run_step(&["use", path, &quads, order], &mut figures);
    run_step(&["codes", path, &quads, order], &mut figures);
    packed::kill_and_reopen(&dir, order, killed_after, &mut figures);
    let _ = std::fs::remove_dir_all(&dir);
    figures
}

fn measure_baseline(dir: &Path, quads: u64) -> Figures {
    let mut figures = vec![("quads".to_owned(), quads.to_string())];
    let dir = dir.join("flat");
    let _ = std::fs::remove_dir_all(&dir);
    let path = dir.to_str().expect("a path in Unicode");
    run_step(&["flat-load", path, &quads.to_string()], &mut figures);
    run_step(&["flat-use", path, &quads.to_string()], &mut figures);
    let _ = std::fs::remove_dir_all(&dir);
    figures
}

fn print_report(columns: &[(&str, Figures)]) {
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in columns.iter().flat_map(|(_, figures)| figures) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    println!("| what | {} |\n|---|{}", heads.join(" | "), "---|".repeat(heads.len()));
    for name in names {
        print!("| {name} |");
        for (_, figures) in columns {
            let value = figures.iter().find(|(found, _)| found == name);
            print!(" {} |", value.map_or("-", |(_, value)| value));
        }
        println!();
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["step", step, dir, rest @ ..] = words.as_slice() {
        let dir = Path::new(dir);
        let quads = rest.first().and_then(|quads| quads.parse().ok()).unwrap_or_default();
        let order = Order::from_name(rest.get(1).copied().unwrap_or_default());
        return match *step {
            "load" => packed::load_objects(dir, quads, order),
            "use" => packed::read_objects(dir, quads, order),
            "codes" => codes::read_codes(dir, order),
            "crash" => packed::commit_until_killed(dir, order),
            "reopen" => packed::time_reopening(dir),
            "flat-load" => flat::load_objects(dir, quads),
            "flat-use" => flat::read_objects(dir, quads),
            _ => panic!("there is no step {step}"),
        };
    }
    // `cargo test --benches` runs without `--bench`: it only checks that a small report works.
    let tiny = !words.contains(&"--bench");
    let quads = words.iter().find_map(|word| word.parse().ok());
    let quads = quads.unwrap_or(if tiny { 10_000 } else { 1_000_000 });
    let baseline = words.iter().find_map(|word| word.strip_prefix("--baseline=")?.parse().ok());
    let baseline = baseline.unwrap_or(if tiny { 2_000 } else { 100_000 });
    let killed_after: &[usize] = if tiny { &[2] } else { &[70, 130, 190, packed::IN_CHECKPOINT] };
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let mut columns = vec![
        ("in order", measure_store(dir.path(), quads, Order::Minted, killed_after)),
        ("at random", measure_store(dir.path(), quads, Order::Random, killed_after)),
    ];
    if baseline > 0 {
        columns.push(("flat sled keys", measure_baseline(dir.path(), baseline)));
    }
    print_report(&columns);
}
