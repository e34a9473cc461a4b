//! The work, as requests to each of the two servers.
use crate::client::Client;
use crate::server::{Server, folder_bytes, start_minimal_server};
use crate::several::{Latencies, RepeatedRequest};
use crate::{Figures, READ_DURATION, measure_time};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use std::fmt::Write as _;
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The number of objects in one request.
const OBJECTS_PER_REQUEST: usize = 100;
const BASE: &str = "https://plant.example/m/";
const VOCABULARY: &str = "https://plant.example/v/";

fn object_uri(object: usize) -> String {
    format!("{BASE}{object:07}")
}

/// Returns the reference in a field, which 20 objects share.
fn object_reference(object: usize, field: usize) -> String {
    format!("https://plant.example/r/{field}/{}", object / 20)
}

/// Returns a unique string of 38 bytes.
fn random_string(random: &mut StdRng) -> String {
    let number: u128 = random.random();
    format!("value-{number:032x}")
}

/// Builds the bodies of all requests.
fn build_bodies(objects: usize, write: impl Fn(&mut String, usize, &[String; 5])) -> Vec<String> {
    let mut random = StdRng::seed_from_u64(7);
    let mut bodies = Vec::new();
    for first in (0..objects).step_by(OBJECTS_PER_REQUEST) {
        let mut body = String::new();
        for object in first..objects.min(first + OBJECTS_PER_REQUEST) {
            write(&mut body, object, &std::array::from_fn(|_| random_string(&mut random)));
        }
        bodies.push(body);
    }
    bodies
}

/// Prints a result at once, in case the rest fails.
fn print_result(who: &str, what: &str, value: f64) {
    println!("{who}: {what}: {value:.6}");
}

fn measure_ingest(bodies: Vec<String>, mut send: impl FnMut(String)) -> Vec<f64> {
    let tenth = bodies.len() / 10;
    let mut seconds = vec![0.0; 10];
    for (number, body) in bodies.into_iter().enumerate() {
        seconds[(number / tenth).min(9)] += measure_time(|| send(body)).0;
    }
    seconds
}

/// The cost of reading single random objects.
pub(crate) struct Reads {
    /// Seconds for one object, on one connection.
    pub(crate) seconds: f64,
    /// Seconds for the cheapest request, on one connection.
    pub(crate) cheapest_seconds: f64,
    /// Seconds between two responses, with [`CONNECTIONS`] at once.
    pub(crate) concurrent_seconds: f64,
    /// The CPU time of the server for one object, in seconds.
    pub(crate) cpu_seconds: f64,
    /// The same with [`CONNECTIONS`] at once.
    pub(crate) concurrent_cpu_seconds: f64,
    /// Seconds between two responses, with [`MANY_CONNECTIONS`] at once.
    pub(crate) many_seconds: f64,
    /// The times of the responses, with [`MANY_CONNECTIONS`] at once.
    pub(crate) many_latencies: Latencies,
}

/// The number of connections that read at once.
pub(crate) const CONNECTIONS: u64 = 8;
/// A number of connections that keeps the server busy.
pub(crate) const MANY_CONNECTIONS: u64 = 50;
/// The minimum size of an object in bytes, in any format.
const MIN_OBJECT_BYTES: usize = 300;

/// Measures reads of single objects and of the cheapest request `least`. `path` builds the path of an object from its
/// percent-encoded URI.
fn measure_reads(
    server: &Server,
    objects: usize,
    headers: Vec<(&'static str, String)>,
    path: impl Fn(&str) -> String + Clone + Send + 'static,
    least: &'static str,
) -> Reads {
    let address = server.address;
    let object = move |random: &mut StdRng| {
        let uri = object_uri(random.random_range(0..objects));
        Some((path(&utf8_percent_encode(&uri, NON_ALPHANUMERIC).to_string()), String::new()))
    };
    let objects = RepeatedRequest {
        address,
        method: "GET",
        headers,
        next: object,
        min_response_bytes: MIN_OBJECT_BYTES,
    };
    let run = |connections| {
        let (begun, computed) = (Instant::now(), server.cpu_seconds());
        let latencies = objects.measure_latencies(connections, begun + READ_DURATION);
        let count = latencies.count() as f64;
        let seconds = begun.elapsed().as_secs_f64() / count;
        (seconds, (server.cpu_seconds() - computed) / count, latencies)
    };
    objects.measure_latencies(1, Instant::now() + READ_DURATION / 5);
    let (alone, computed, _) = run(1);
    let (several, computed_several, _) = run(CONNECTIONS);
    let (many, _, many_latencies) = run(MANY_CONNECTIONS);
    let least = measure_request_seconds(address, least, 0);
    Reads {
        seconds: alone,
        cheapest_seconds: least,
        concurrent_seconds: several,
        cpu_seconds: computed,
        concurrent_cpu_seconds: computed_several,
        many_seconds: many,
        many_latencies,
    }
}

/// Measures the seconds of one request to a minimal server.
pub(crate) fn measure_minimal_server() -> f64 {
    measure_request_seconds(start_minimal_server(500), "/", MIN_OBJECT_BYTES)
}

fn measure_request_seconds(
    address: SocketAddr,
    path: &'static str,
    min_response_bytes: usize,
) -> f64 {
    let request = RepeatedRequest {
        address,
        method: "GET",
        headers: Vec::new(),
        next: move |_: &mut StdRng| Some((path.to_owned(), String::new())),
        min_response_bytes,
    };
    let begun = Instant::now();
    let count = request.measure_latencies(1, begun + READ_DURATION / 5).count() as f64;
    begun.elapsed().as_secs_f64() / count
}

/// Starts Penstock with a Business Object and an API key. Returns the client that has the key.
fn start_penstock(binary: &str, data: &Path) -> (Server, f64, Client) {
    let data_dir = format!("--service.data-dir={}", data.display());
    let server = Server::start(binary, &penstock_arguments(&data_dir), "/health/ready");
    let idle_mb = server.memory_mb("VmRSS");
    let mut client = server.connect_client();
    let arguments_of_key = ["api-key", "create", "--name", "bench", "--role", "Admin", &data_dir];
    let key = Command::new(binary).args(arguments_of_key).output().unwrap();
    assert!(key.status.success(), "{key:?}");
    client.authorization =
        Some(format!("Bearer {}", String::from_utf8(key.stdout).unwrap().trim()));
    let mut config = "type: object\npath: \"Machines:.\"\nfields:\n".to_owned();
    for field in 1..=5 {
        let _ = writeln!(config, "  r{field}: {{type: resource, path: <{VOCABULARY}r{field}>}}");
        let _ = writeln!(config, "  s{field}: {{type: string, path: <{VOCABULARY}s{field}>}}");
    }
    let namespace = serde_json::json!({"name": "Machines", "uriBase": BASE, "generator": "manual"});
    client.send_for_text("PUT", "/api/v1/namespaces/Machines", &namespace.to_string());
    let definition = serde_json::json!({
        "name": "Machines", "enabled": true, "config": config, "conditions": [],
        "pushTargets": [{"bucketName": "machines"}],
    });
    client.send_for_text("PUT", "/api/v1/business-objects", &definition.to_string());
    (server, idle_mb, client)
}

fn penstock_arguments(data_dir: &str) -> [&str; 3] {
    ["serve", "--server.port=PORT", data_dir]
}

/// Appends an object as JSON.
fn write_object(body: &mut String, object: usize, strings: &[String; 5]) {
    let _ = write!(body, "{{\"uri\":\"{}\"", object_uri(object));
    for (number, string) in (1..).zip(strings) {
        let _ = write!(body, ",\"r{number}\":\"{}\"", object_reference(object, number));
        let _ = write!(body, ",\"s{number}\":\"{string}\"");
    }
    body.push('}');
}

/// The path of an ingestion.
const INGEST_PATH: &str = "/api/v1/business-objects/Machines?mode=ADD";

/// The results of requests with one new object each, on [`MANY_CONNECTIONS`].
pub(crate) struct NewObjects {
    pub(crate) count: usize,
    /// Seconds between two responses.
    pub(crate) seconds: f64,
    pub(crate) latencies: Latencies,
    /// The CPU time of the server for one object, in seconds.
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_mb: f64,
    /// The resident memory [`IDLE_TIME`] after the last response.
    pub(crate) rested_mb: f64,
}

/// How long the server does nothing before its memory is read.
const IDLE_TIME: Duration = Duration::from_secs(20);

/// Measures requests with one new object each.
pub(crate) fn measure_new_objects(binary: &str, count: usize) -> NewObjects {
    let dir = tempfile::tempdir().unwrap();
    let (server, _, client) = start_penstock(binary, &dir.path().join("data"));
    let written = Arc::new(AtomicUsize::new(0));
    let next = move |random: &mut StdRng| {
        let object = written.fetch_add(1, Ordering::Relaxed);
        let mut body = String::new();
        write_object(&mut body, object, &std::array::from_fn(|_| random_string(random)));
        (object < count).then(|| (INGEST_PATH.to_owned(), format!("{{\"data\":[{body}]}}")))
    };
    let headers = vec![
        ("Authorization", client.authorization.unwrap()),
        ("Content-Type", "application/json".to_owned()),
    ];
    let address = server.address;
    let request = RepeatedRequest { address, method: "POST", headers, next, min_response_bytes: 0 };
    let (begun, computed) = (Instant::now(), server.cpu_seconds());
    let until = begun + Duration::from_hours(1);
    let latencies = request.measure_latencies(MANY_CONNECTIONS, until);
    let seconds = begun.elapsed().as_secs_f64() / count as f64;
    let cpu_seconds = (server.cpu_seconds() - computed) / count as f64;
    let peak_mb = server.memory_mb("VmHWM");
    print_result("Penstock", "seconds of a new object", seconds);
    std::thread::sleep(IDLE_TIME);
    let rested_mb = server.memory_mb("VmRSS");
    server.stop();
    NewObjects { count, seconds, latencies, cpu_seconds, peak_mb, rested_mb }
}

pub(crate) fn measure_penstock(binary: &str, objects: usize) -> Figures {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let (server, idle_mb, mut client) = start_penstock(binary, &data);
    let bodies = build_bodies(objects, |body, object, strings| {
        body.push_str(if body.is_empty() { "{\"data\":[" } else { "," });
        write_object(body, object, strings);
    });
    let json = [("Content-Type", "application/json")];
    let ingest = measure_ingest(bodies, |body| {
        client.send_request("POST", INGEST_PATH, &json, body + "]}", &mut |_| {});
    });
    print_result("Penstock", "seconds of ingestion", ingest.iter().sum());
    let written_bytes = server.written_bytes();
    let headers = vec![("Authorization", client.authorization.clone().unwrap())];
    let path = |uri: &str| format!("/api/v1/business-objects/Machines/objects?uri={uri}");
    let reads = measure_reads(&server, objects, headers, path, "/health/live");
    print_result("Penstock", "seconds of a read", reads.seconds);
    // An export is written to the disk before it is read.
    let (all, count) = measure_time(|| {
        let push = client.send_for_text("POST", "/api/v1/business-objects/Machines/push", "");
        let push: serde_json::Value = serde_json::from_str(&push).unwrap();
        let id = push["exports"][0]["id"].as_str().unwrap();
        let path = format!("/api/v1/exports/{id}/content");
        let mut count = 0;
        client.send_request("GET", &path, &[], "", &mut |piece| count += count_bytes(piece, b'{'));
        count
    });
    // The file itself has two more braces.
    assert_eq!(count, objects + 2);
    print_result("Penstock", "seconds of all", all);
    let peak_mb = server.memory_mb("VmHWM");
    print_result("Penstock", "peak MB", peak_mb);
    print_result("Penstock", "bytes written with an export of all", server.written_bytes() as f64);
    server.stop();
    let disk_bytes = folder_bytes(&data.join("store"));
    print_result("Penstock", "bytes on disk", disk_bytes as f64);
    let data_dir = format!("--service.data-dir={}", data.display());
    let server = Server::start(binary, &penstock_arguments(&data_dir), "/health/ready");
    let open = server.open;
    Figures {
        idle_mb,
        ingest_seconds: ingest,
        reads,
        read_all_seconds: all,
        peak_mb,
        disk_bytes,
        written_bytes,
        open_seconds: open,
    }
}

/// Makes the data durable that Oxigraph has acknowledged. Oxigraph leaves its log in the system's cache, and syncs a
/// file of the log only when it is full.
fn sync_log(data: &Path) {
    let files = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    File::open(logs.max().unwrap()).unwrap().sync_data().unwrap();
}

pub(crate) fn measure_oxigraph(binary: &str, objects: usize) -> Figures {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let location = data.display().to_string();
    let arguments = ["serve", "--location", &location, "--bind", "127.0.0.1:PORT"];
    let ready = "/query?query=ASK%7B%7D";
    let server = Server::start(binary, &arguments, ready);
    let idle_mb = server.memory_mb("VmRSS");
    let mut client = server.connect_client();
    let bodies = build_bodies(objects, |body, object, strings| {
        for (number, string) in (1..).zip(strings) {
            let uri = object_uri(object);
            let reference = object_reference(object, number);
            let _ = writeln!(body, "<{uri}> <{VOCABULARY}r{number}> <{reference}> .");
            let _ = writeln!(body, "<{uri}> <{VOCABULARY}s{number}> \"{string}\" .");
        }
    });
    let graph = utf8_percent_encode(BASE, NON_ALPHANUMERIC).to_string();
    let path = format!("/store?graph={graph}");
    let triples = [("Content-Type", "application/n-triples")];
    let mut syncing = 0.0;
    let ingest = measure_ingest(bodies, |body| {
        client.send_request("POST", &path, &triples, body, &mut |_| {});
        syncing += measure_time(|| sync_log(&data)).0;
    });
    print_result("Oxigraph", "of the ingestion, seconds of syncing for it", syncing);
    let json = [("Accept", "application/sparql-results+json")];
    print_result("Oxigraph", "seconds of ingestion", ingest.iter().sum());
    let written_bytes = server.written_bytes();
    // `uri` is percent-encoded already, and so is the rest of the path.
    let path =
        |uri: &str| format!("/query?query=SELECT%20*%7BGRAPH%20?g%7B%3C{uri}%3E%20?p%20?o%7D%7D");
    let reads =
        measure_reads(&server, objects, vec![(json[0].0, json[0].1.to_owned())], path, ready);
    print_result("Oxigraph", "seconds of a read", reads.seconds);
    let (all, count) = measure_time(|| {
        let mut query = format!("SELECT * {{ GRAPH <{BASE}> {{ ?uri");
        for field in 1..=5 {
            let _ = write!(
                query,
                " <{VOCABULARY}r{field}> ?r{field}; <{VOCABULARY}s{field}> ?s{field};"
            );
        }
        query.push_str(" } } ORDER BY ?uri");
        let headers = [json[0], ("Content-Type", "application/sparql-query")];
        let mut count = 0;
        client.send_request("POST", "/query", &headers, query, &mut |piece| {
            count += count_bytes(piece, b'{');
        });
        count
    });
    // Each row has twelve braces: its own and eleven values. The response itself has three more.
    assert_eq!(count, objects * 12 + 3);
    print_result("Oxigraph", "seconds of all", all);
    let peak_mb = server.memory_mb("VmHWM");
    print_result("Oxigraph", "peak MB", peak_mb);
    server.stop();
    let disk_bytes = folder_bytes(&data);
    print_result("Oxigraph", "bytes on disk", disk_bytes as f64);
    let server = Server::start(binary, &arguments, ready);
    let open = server.open;
    Figures {
        idle_mb,
        ingest_seconds: ingest,
        reads,
        read_all_seconds: all,
        peak_mb,
        disk_bytes,
        written_bytes,
        open_seconds: open,
    }
}

fn count_bytes(piece: &[u8], byte: u8) -> usize {
    piece.iter().filter(|b| **b == byte).count()
}
