//! The cost of GraphQL queries over HTTP, compared with the same queries in SPARQL to the server of Oxigraph.
//!
//! A machine has 15 quads: a name, a unique code, a site that 20 machines share, and two parts. Each part has a name, a
//! weight and a sensor, which has a name and a unit. The queries are:
//!
//! - an object by its URI
//! - a page of 100 objects with both nested levels
//! - a filter by site, which an index answers
//! - a filter by the code, which the index of values answers
//! - the first 20 objects in the order of the code, of which the index of values reads only these
//! - a filter by a part of the code, for which every object is read
//!
//! `cargo bench --bench graphql` loads 1,000,000 quads; as a test it loads 6,000. `PENSTOCK_GRAPHQL_QUADS` sets another
//! number. Oxigraph is measured if `benches/oxigraph/run` has installed it, or `PENSTOCK_OXIGRAPH` names its binary.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench panics on an error, and prints its results"
)]

#[path = "oxigraph/client.rs"]
mod client;
#[expect(dead_code, reason = "the bench `oxigraph` uses the rest")]
#[path = "oxigraph/server.rs"]
mod server;

use client::Client;
use criterion::Criterion;
use penstock_service::gateway::Gateway;
use penstock_store::{Pattern, Read as _};
use penstock_test_support::TestApp;
use server::Server;
use std::cell::Cell;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The number of quads of one machine, with its parts and their sensors.
const QUADS_PER_MACHINE: usize = 15;
/// The number of machines in one request.
const MACHINES_PER_REQUEST: usize = 500;
const BASE: &str = "https://plant.example/m/";
const VOCABULARY: &str = "https://plant.example/v/";

/// A query in both languages.
struct QueryPair {
    name: &'static str,
    graphql: String,
    sparql: String,
    /// The number of objects in the response.
    objects: usize,
}

fn main() {
    let measured = std::env::args().any(|argument| argument == "--bench");
    let quads = std::env::var("PENSTOCK_GRAPHQL_QUADS").ok();
    let quads = quads.map_or(if measured { 1_000_000 } else { 6_000 }, |q| q.parse().unwrap());
    let machines = (quads / QUADS_PER_MACHINE).max(200);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let running = TestApp::start_in(dir.path(), &["--service.log.level=off"]);
    let running = runtime.block_on(running).unwrap();
    let (address, gateway) = (running.address, running.gateway());
    let mut penstock = Client::connect(address).unwrap();
    penstock.authorization = Some(format!("Bearer {}", running.key));
    let begun = Instant::now();
    load_machines(&mut penstock, machines);
    println!(
        "{machines} machines, {} quads, in {:.1} s",
        machines * QUADS_PER_MACHINE,
        begun.elapsed().as_secs_f64()
    );

    let queries = build_queries(machines);
    let mut criterion = Criterion::default()
        .configure_from_args()
        .sample_size(20)
        .measurement_time(Duration::from_secs(5));
    let mut rows = Vec::new();
    for query in &queries {
        // A new connection for each query, because the gateway closes idle ones.
        let mut penstock = Client::connect(address).unwrap();
        penstock.authorization = Some(format!("Bearer {}", running.key));
        let body = serde_json::json!({"query": query.graphql}).to_string();
        let json = [("Content-Type", "application/json")];
        let mut ask = || {
            let mut answer = Vec::new();
            penstock.send_request("POST", "/graphql", &json, body.clone(), &mut |piece| {
                answer.extend_from_slice(piece);
            });
            answer
        };
        let answer: serde_json::Value = serde_json::from_slice(&ask()).unwrap();
        assert!(answer.get("errors").is_none(), "{answer}");
        assert_eq!(count_occurrences(&answer.to_string(), "\"code\""), query.objects, "{answer}");
        rows.push(measure_query(&mut criterion, &format!("graphql: {}", query.name), &mut || {
            ask();
        }));
    }
    let theirs = find_oxigraph().filter(|_| measured).map(|binary| {
        measure_sparql(&mut criterion, &binary, &dir.path().join("oxigraph"), gateway, &queries)
    });
    println!(
        "| {} quads | GraphQL, ms | SPARQL (Oxigraph), ms |\n|---|---|---|",
        machines * QUADS_PER_MACHINE
    );
    for (place, query) in queries.iter().enumerate() {
        let theirs = theirs.as_ref().and_then(|all| all.get(place));
        let theirs = theirs.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.2}"));
        println!("| {} | {:.2} | {theirs} |", query.name, rows.get(place).unwrap());
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    for name in ["VmRSS", "VmHWM"] {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        println!("{}", line.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    runtime.shutdown_background();
}

fn build_queries(machines: usize) -> Vec<QueryPair> {
    let middle = machine_uri(machines / 2);
    let site = format!("https://plant.example/site/{}", machines / 40);
    let code = machine_code(machines / 3);
    let wanted = code.get(2..9).unwrap();
    let few = (0..machines).filter(|number| machine_code(*number).contains(wanted)).count();
    vec![
        QueryPair {
            name: "an object by its URI",
            graphql: format!("{{ machine(uri: \"{middle}\") {{ uri name code site }} }}"),
            sparql: format!("SELECT ?name ?code ?site {{ GRAPH ?g {{ <{middle}> <{VOCABULARY}name> ?name; <{VOCABULARY}code> ?code; <{VOCABULARY}site> ?site }} }}"),
            objects: 1,
        },
        QueryPair {
            name: "a page of 100 with two nested levels",
            graphql: "{ machineConnection(first: 100) { nodes { uri name code parts { name weight sensor { name unit } } } } }".to_owned(),
            sparql: format!(
                "SELECT * {{ {{ SELECT ?m ?n ?c {{ GRAPH <{BASE}> {{ ?m <{VOCABULARY}name> ?n; <{VOCABULARY}code> ?c }} }} ORDER BY ?m LIMIT 100 }} \
                 GRAPH ?g {{ ?m <{VOCABULARY}part> ?p }} GRAPH ?h {{ ?p <{VOCABULARY}partName> ?pn; <{VOCABULARY}weight> ?w; <{VOCABULARY}sensor> ?s }} \
                 GRAPH ?i {{ ?s <{VOCABULARY}sensorName> ?sn; <{VOCABULARY}unit> ?u }} }} ORDER BY ?m"
            ),
            objects: 100,
        },
        QueryPair {
            name: "a filter that an index answers (20 objects)",
            graphql: format!("{{ machineConnection(first: 100, where: {{site: {{eq: \"{site}\"}}}}) {{ nodes {{ uri name code }} }} }}"),
            sparql: format!("SELECT ?m ?n ?c {{ GRAPH ?g {{ ?m <{VOCABULARY}site> <{site}>; <{VOCABULARY}name> ?n; <{VOCABULARY}code> ?c }} }} ORDER BY ?m LIMIT 100"),
            objects: 20,
        },
        QueryPair {
            name: "a filter by a string (1 object)",
            graphql: format!("{{ machineConnection(where: {{code: {{eq: \"{code}\"}}}}) {{ nodes {{ uri name code }} }} }}"),
            sparql: format!("SELECT ?m ?n ?c {{ GRAPH ?g {{ ?m <{VOCABULARY}code> \"{code}\"; <{VOCABULARY}code> ?c; <{VOCABULARY}name> ?n }} }} ORDER BY ?m"),
            objects: 1,
        },
        QueryPair {
            name: "the first 20 in the order of a string",
            graphql: "{ machineConnection(first: 20, orderBy: {field: code}) { nodes { uri name code } } }".to_owned(),
            sparql: format!("SELECT ?m ?n ?c {{ GRAPH ?g {{ ?m <{VOCABULARY}code> ?c; <{VOCABULARY}name> ?n }} }} ORDER BY ?c ?m LIMIT 20"),
            objects: 20,
        },
        QueryPair {
            name: "a filter without an index (reads every object)",
            graphql: format!("{{ machineConnection(first: 100, where: {{code: {{contains: \"{wanted}\"}}}}) {{ nodes {{ uri name code }} }} }}"),
            sparql: format!("SELECT ?m ?n ?c {{ GRAPH ?g {{ ?m <{VOCABULARY}code> ?c; <{VOCABULARY}name> ?n FILTER(CONTAINS(?c, \"{wanted}\")) }} }} ORDER BY ?m LIMIT 100"),
            objects: few,
        },
    ]
}

fn machine_uri(machine: usize) -> String {
    format!("{BASE}{machine:07}")
}

/// Returns the unique code of a machine.
fn machine_code(machine: usize) -> String {
    format!("{:016x}", (machine as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Measures a query, and returns its mean duration in milliseconds.
fn measure_query(criterion: &mut Criterion, name: &str, ask: &mut dyn FnMut()) -> f64 {
    let (seconds, count) = (Cell::new(0.0), Cell::new(0_u32));
    criterion.bench_function(name, |bencher| {
        bencher.iter(|| {
            let begun = Instant::now();
            ask();
            seconds.set(seconds.get() + begun.elapsed().as_secs_f64());
            count.set(count.get() + 1);
        });
    });
    seconds.get() / f64::from(count.get().max(1)) * 1_000.0
}

fn count_occurrences(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

fn load_machines(client: &mut Client, machines: usize) {
    let config = format!(
        "type: object\npath: Machines:.\nfields:\n  \
         name: {{type: string, path: <{VOCABULARY}name>}}\n  \
         code: {{type: string, path: <{VOCABULARY}code>}}\n  \
         site: {{type: resource, path: <{VOCABULARY}site>}}\n  \
         parts:\n    type: array\n    elements:\n      type: object\n      path: <{VOCABULARY}part>/Parts:.\n      fields:\n        \
         name: {{type: string, path: <{VOCABULARY}partName>}}\n        \
         weight: {{type: number, path: <{VOCABULARY}weight>}}\n        \
         sensor:\n          type: object\n          path: <{VOCABULARY}sensor>/Sensors:.\n          fields:\n            \
         name: {{type: string, path: <{VOCABULARY}sensorName>}}\n            \
         unit: {{type: string, path: <{VOCABULARY}unit>}}\n"
    );
    let namespace = serde_json::json!({"name": "Machines", "uriBase": BASE, "generator": "manual"});
    client.send_for_text("PUT", "/api/v1/namespaces/Machines", &namespace.to_string());
    let definition = serde_json::json!({"name": "Machine", "config": config});
    client.send_for_text("PUT", "/api/v1/business-objects", &definition.to_string());
    for first in (0..machines).step_by(MACHINES_PER_REQUEST) {
        let mut body = String::from("{\"data\":[");
        for machine in first..machines.min(first + MACHINES_PER_REQUEST) {
            if machine > first {
                body.push(',');
            }
            let _ = write!(
                body,
                "{{\"uri\":\"{}\",\"name\":\"Machine {machine}\",\"code\":\"{}\",\"site\":\"https://plant.example/site/{}\",\"parts\":[",
                machine_uri(machine),
                machine_code(machine),
                machine / 20
            );
            for part in 0..2 {
                let comma = if part > 0 { "," } else { "" };
                let _ = write!(
                    body,
                    "{comma}{{\"uri\":\"https://plant.example/p/{machine}-{part}\",\"name\":\"Part {part}\",\"weight\":{machine}.5,\
                     \"sensor\":{{\"uri\":\"https://plant.example/s/{machine}-{part}\",\"name\":\"Sensor {machine}\",\"unit\":\"°C\"}}}}"
                );
            }
            body.push_str("]}");
        }
        body.push_str("]}");
        client.send_for_text("POST", "/api/v1/business-objects/Machine?mode=ADD", &body);
    }
}

/// Returns the path of Oxigraph's binary, if it is installed.
fn find_oxigraph() -> Option<PathBuf> {
    let kept = || {
        let home = PathBuf::from(std::env::var_os("HOME")?);
        let cache = std::env::var_os("XDG_CACHE_HOME").map_or(home.join(".cache"), PathBuf::from);
        Some(cache.join("penstock/oxigraph/bin/oxigraph"))
    };
    let binary = std::env::var_os("PENSTOCK_OXIGRAPH").map(PathBuf::from).or_else(kept);
    binary.filter(|binary| binary.is_file())
}

/// Loads the same quads into Oxigraph, and measures the same queries; returns milliseconds.
fn measure_sparql(
    criterion: &mut Criterion,
    binary: &std::path::Path,
    data: &std::path::Path,
    gateway: &Gateway,
    queries: &[QueryPair],
) -> Vec<f64> {
    let location = data.display().to_string();
    let arguments = ["serve", "--location", &location, "--bind", "127.0.0.1:PORT"];
    let server = Server::start(binary.to_str().unwrap(), &arguments, "/query?query=ASK%7B%7D");
    let mut client = server.connect_client();
    let nquads = [("Content-Type", "application/n-quads")];
    let (mut some, mut count) = (String::new(), 0);
    gateway
        .store
        .read()
        .for_each(&Pattern::default(), &mut |quad| {
            let _ = writeln!(some, "{quad} .");
            count += 1;
            if count % 20_000 == 0 {
                client.send_request(
                    "POST",
                    "/store",
                    &nquads,
                    std::mem::take(&mut some),
                    &mut |_| {},
                );
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    client.send_request("POST", "/store", &nquads, some, &mut |_| {});
    let headers = [
        ("Content-Type", "application/sparql-query"),
        ("Accept", "application/sparql-results+json"),
    ];
    let mut all = Vec::new();
    for query in queries {
        let mut client = server.connect_client();
        let mut ask = || {
            let mut answer = Vec::new();
            client.send_request("POST", "/query", &headers, query.sparql.clone(), &mut |piece| {
                answer.extend_from_slice(piece);
            });
            answer
        };
        let answer: serde_json::Value = serde_json::from_slice(&ask()).unwrap();
        let found = answer["results"]["bindings"].as_array().unwrap().len();
        // The response with nested objects has a row for each of the two parts.
        let rows = query.objects * if query.sparql.contains("?sn") { 2 } else { 1 };
        assert_eq!(found, rows, "{}", query.name);
        let name = format!("sparql: {}", query.name);
        all.push(measure_query(criterion, &name, &mut || {
            ask();
        }));
    }
    server.stop();
    all
}
