//! A gateway without a hardware clock: it starts in 1972, works, and marks unreliable times. And one whose clock was
//! ahead.
use penstock_test_support::prelude::*;

const DATA: &str = "--service.data-dir=data";
/// About 55 years ago, as an offset for faketime.
const LONG_AGO: &str = "-20000d";
const RIGHT: &str = "+0";

/// A clock set by the test.
pub(crate) struct Clock {
    library: PathBuf,
    file: PathBuf,
}

impl Clock {
    /// Creates a clock with this offset to the real time. Returns `None` if the Debian package faketime is not
    /// installed.
    pub(crate) fn at(dir: &Path, offset: &str) -> Option<Self> {
        let folders = ["x86_64-linux-gnu", "aarch64-linux-gnu", "arm-linux-gnueabihf"];
        let paths = folders.map(|it| format!("/usr/lib/{it}/faketime/libfaketimeMT.so.1"));
        let Some(library) = paths.map(PathBuf::from).into_iter().find(|path| path.exists()) else {
            let missing = "the Debian package faketime is not installed";
            assert!(std::env::var_os("CI").is_none(), "{missing}");
            eprintln!("skipped: {missing}");
            return None;
        };
        let clock = Self { library, file: dir.join("clock") };
        clock.set(offset);
        Some(clock)
    }

    #[expect(clippy::disallowed_methods, reason = "the clock's file need not outlive a power cut")]
    pub(crate) fn set(&self, offset: &str) {
        // The file is replaced, so that the library never reads a half-written one.
        let next = self.file.with_extension("next");
        std::fs::write(&next, format!("{offset}\n")).unwrap();
        std::fs::rename(&next, &self.file).unwrap();
    }

    pub(crate) fn start(&self, dir: &Path, arguments: &[&str]) -> TestProcess {
        let environment = [
            ("LD_PRELOAD", self.library.to_str().unwrap()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.to_str().unwrap()),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ];
        TestProcess::start_with(dir, arguments, &environment)
    }
}

pub(crate) fn define(client: Client, bucket: &str) {
    let config = "type: object\npath: 'Wells:.'\nfields:\n  level: { type: integer, path: <https://wells.example/level> }\n";
    let definition =
        json!({ "name": "Wells", "config": config, "pushTargets": [{ "bucketName": bucket }] });
    client.put("/api/v1/business-objects", &definition).expect(201);
}

pub(crate) fn ingest(client: Client, level: u64) {
    let well = json!({ "uri": "https://wells.example/1", "level": level });
    let body = json!({ "data": [well] }).to_string();
    client.post("/api/v1/business-objects/Wells?mode=REPLACE", body).expect(200);
}

/// Ingests and exports. Returns the record of the ingestion and the export.
fn ingest_and_export(client: Client, level: u64) -> (Value, Value) {
    ingest(client, level);
    let records = client.read("/api/v1/ingestions?limit=1");
    (records["items"][0].clone(), push_and_wait(client, "Wells"))
}

#[test]
fn it_works_without_the_time_and_its_times_never_go_back() {
    let dir = tempfile::tempdir().unwrap();
    let Some(clock) = Clock::at(dir.path(), LONG_AGO) else { return };
    let mut seen = Vec::new();
    let server = clock.start(dir.path(), &[DATA]);
    define(server.client, "wells");
    seen.push(ingest_and_export(server.client, 1));
    for (record, export) in &seen {
        assert!(record["at"].text().starts_with("197"), "{record}");
        assert_eq!([&record["clock"], &export["clock"]], ["unsynchronised"; 2]);
        assert!(export["key"].has("-197"), "{export}");
    }
    // The clock is corrected.
    clock.set(RIGHT);
    seen.push(ingest_and_export(server.client, 2));
    let (record, export) = seen.last().unwrap();
    assert_eq!([&record["clock"], &export["clock"]], [&Value::Null; 2]);
    assert!(record["at"].text().starts_with("20"), "{record}");
    // After a power failure the clock starts in the past again.
    server.kill();
    clock.set(LONG_AGO);
    let server = clock.start(dir.path(), &[DATA]);
    seen.push(ingest_and_export(server.client, 3));
    let (record, export) = seen.last().unwrap();
    assert_eq!([&record["clock"], &export["clock"]], ["behind"; 2]);
    let status = server.client.read("/api/v1/status");
    assert!(status["clock"]["system"].text().starts_with("197"), "{status}");
    clock.set(RIGHT);
    seen.push(ingest_and_export(server.client, 4));
    assert_eq!(seen.last().unwrap().0["clock"], Value::Null);

    for name in ["createdAt", "deliveredAt", "key"] {
        let times: Vec<_> = seen.iter().map(|(_, export)| export[name].text()).collect();
        assert!(times.is_sorted(), "{name}: {times:?}");
    }
    let times: Vec<_> = seen.iter().map(|(record, _)| record["at"].text()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let sequences: Vec<_> = seen.iter().map(|(_, export)| &export["sequence"]).collect();
    assert_eq!(sequences, [1, 2, 3, 4]);
    server.stop();
}

#[test]
fn a_time_ahead_that_new_records_repeat_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let Some(clock) = Clock::at(dir.path(), "+3000d") else { return };
    let server = clock.start(dir.path(), &[DATA]);
    define(server.client, "wells");
    let (_, ahead) = ingest_and_export(server.client, 1);
    let status = server.client.read("/api/v1/status");
    assert_eq!(status["clock"]["repeatedTime"], Value::Null);
    server.stop();
    clock.set(RIGHT);
    let server = clock.start(dir.path(), &[DATA]);
    let (_, export) = ingest_and_export(server.client, 2);
    assert_eq!(export["clock"], "behind");
    assert!(export["createdAt"].text() >= ahead["createdAt"].text(), "{export}");
    // The reset does not end it, and says so.
    for action in ["show", "reset"] {
        let shown = penstock(dir.path()).args(["clock", action, "--json", DATA]).succeed().json();
        assert!(shown["repeatedTime"].text() > shown["now"].text(), "{action}: {shown}");
    }
    let status = server.client.read("/api/v1/status");
    let repeated = status["clock"]["repeatedTime"].text();
    let warning = format!("repeat the time {repeated}");
    assert!(status["warnings"].list().iter().any(|text| text.has(&warning)), "{status}");
    let logged = "The clock is behind the times of earlier records";
    assert!(status["lastErrors"].list().iter().any(|line| line["text"].has(logged)), "{status}");
    server.stop();
}
