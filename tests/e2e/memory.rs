//! Bounded memory: ingesting a stream of a hundred thousand objects, and exporting all of them in one file.
use bytes::Bytes;
use penstock_test_support::prelude::*;
use std::fmt::Write as _;

const OBJECTS: u64 = 100_000;
/// The maximum memory of the whole process in kB while it ingests a stream of any length. The stream of this test has
/// about 30 MB. Within this limit, the memory cannot contain the whole stream, in any form, beside the store.
const INGEST_BOUND_KB: u64 = 160 << 10;
/// The maximum memory of an export in kB, in addition to the idle process (the goal of the design).
const EXPORT_BOUND_KB: u64 = 32 << 10;

const ARGUMENTS: [&str; 2] =
    ["--service.data-dir=data", "--service.base-url=https://samples.example"];

const CONFIG: &str = include_str!("memory.yaml");

#[test]
fn a_hundred_thousand_objects_are_ingested_and_exported_in_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let server = TestProcess::start(dir.path(), &ARGUMENTS);
    let text = (0..OBJECTS / 100).map(|chunk| Bytes::from(lines(chunk * 100)));
    ingest_all(&server, "?mode=ADD", "application/x-ndjson", text);
    server.stop();

    let server = TestProcess::start(dir.path(), &ARGUMENTS);
    let idle = server.memory_kb("VmHWM");
    let entry = push_and_wait(server.client, "Samples");
    let peak = server.memory_kb("VmHWM");
    assert_eq!(entry["objectCount"], OBJECTS);
    println!("a full export of {OBJECTS} objects: idle {idle} kB, peak {peak} kB");
    assert!(peak - idle <= EXPORT_BOUND_KB, "exporting took {} kB", peak - idle);
    let file = dir.path().join("data/buckets/samples").join(entry["key"].text());
    penstock(dir.path()).arg("verify-export").arg(file).succeed();
    server.stop();
}

#[test]
fn a_hundred_thousand_records_of_csv_are_ingested_in_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let server = TestProcess::start(dir.path(), &ARGUMENTS);
    let header = Bytes::from_static(
        b"uri;label;sensor;at;values;origin.uri;origin.operator;origin.note\r\n",
    );
    let text = (0..OBJECTS / 100).map(|chunk| Bytes::from(records(chunk * 100)));
    let query = "?mode=ADD&delimiter=%3B&arrayDelimiter=%7C&decimalComma=true";
    ingest_all(&server, query, "text/csv", std::iter::once(header).chain(text));
    server.stop();
}

/// Defines the samples and ingests all of them as one stream.
fn ingest_all(
    server: &TestProcess,
    query: &str,
    media_type: &str,
    text: impl Iterator<Item = Bytes> + Send + Sync + 'static,
) {
    let definition = json!({
        "name": "Samples",
        "description": "",
        "enabled": true,
        "config": CONFIG,
        "conditions": [],
        "pushTargets": [{ "bucketName": "samples" }],
    });
    server.client.put("/api/v1/business-objects", &definition).expect(201);
    let idle = server.memory_kb("VmRSS");
    let path = format!("/api/v1/business-objects/Samples{query}");
    let answer = server.client.send_chunks(&path, media_type, text).expect(200);
    let chunks: Vec<Value> =
        answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let created: u64 = chunks.iter().filter_map(|chunk| chunk["created"].as_u64()).sum();
    assert_eq!(created, OBJECTS, "{:?}", chunks.last());
    assert!(chunks.len() > 1, "one commit of everything is not a stream");
    let peak = server.memory_kb("VmHWM");
    assert!(peak < INGEST_BOUND_KB, "{media_type}: idle {idle} kB, peak {peak} kB");
}

/// Returns a hundred records of CSV, with the same values as [`lines`].
fn records(first: u64) -> String {
    let mut text = String::new();
    for i in first..first + 100 {
        write!(
            text,
            "https://samples.example/id/Samples/{i:08};Sample {i};https://samples.example/sensor/{};2026-03-01T12:{:02}:{:02}Z;\
             {i},25|{},5;https://samples.example/id/Origins/{i:08};Shift {};\"Taken by hand,\nnumber {i}\"\r\n",
            i % 50,
            i / 60 % 60,
            i % 60,
            i + 1,
            i % 3,
        )
        .unwrap();
    }
    text
}

/// Returns a hundred lines.
fn lines(first: u64) -> String {
    let mut text = String::new();
    for i in first..first + 100 {
        writeln!(
            text,
            r#"{{"uri":"https://samples.example/id/Samples/{i:08}","label":"Sample {i}","sensor":"https://samples.example/sensor/{}","at":"2026-03-01T12:{:02}:{:02}Z","values":[{i}.25,{}.5],"origin":{{"uri":"https://samples.example/id/Origins/{i:08}","operator":"Shift {}","note":"Taken by hand, number {i}"}}}}"#,
            i % 50,
            i / 60 % 60,
            i % 60,
            i + 1,
            i % 3,
        )
        .unwrap();
    }
    text
}
