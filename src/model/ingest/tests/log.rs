use super::*;
use parking_lot::Mutex;
use std::io::Write;
use std::sync::Arc;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs `work` and returns the lines that it logs.
fn capture_log<T>(work: impl FnOnce() -> T) -> (T, Vec<serde_json::Value>) {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().json().with_writer(move || writer.clone()).finish();
    let done = penstock_base::telemetry::with_subscriber(subscriber, work);
    let text = String::from_utf8(log.0.lock().clone()).unwrap();
    (done, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn each_ingestion_is_a_line_in_the_log() {
    let fixture = Fixture::new(machine());
    let (answer, lines) = capture_log(|| {
        let answer = fixture.add(r#"{"name": "a"}"#);
        fixture.send(Mode::Update, r#"{"name": "a"}"#).unwrap_err();
        answer
    });
    let [done, refused] = lines.as_slice() else { panic!("two lines: {lines:?}") };
    let fields = &done["fields"];
    assert_eq!(fields["ingestion_id"], answer.ingestion_id);
    assert_eq!(fields["business_object"], "Machine");
    assert_eq!((&fields["mode"], &fields["caller"]), (&"ADD".into(), &"local".into()));
    for (name, value) in
        [("created", 1), ("updated", 0), ("unchanged", 0), ("deleted", 0), ("bytes", 25)]
    {
        assert_eq!(fields[name], value, "{name}");
    }
    assert!(fields["duration_ms"].is_u64());
    assert!(refused["fields"]["cause"].as_str().unwrap().contains("/data/0"), "{refused}");
}

#[test]
fn dead_letters_that_new_ones_displace_are_a_warning() {
    let mut fixture = Fixture::new(machine());
    let skip = |fixture: &Fixture, wrong: &str| fixture.skip(Mode::Add, wrong).unwrap();
    let is_warning = |line: &serde_json::Value| line["level"] == "WARN";
    let (_, lines) = capture_log(|| skip(&fixture, r#"{"name": "a"}, {"name": 1}"#));
    assert!(!lines.iter().any(is_warning), "{lines:?}");
    // One of about this size fits.
    let totals = crate::dead_letters::read_totals(&fixture.store.read()).unwrap();
    fixture.limits.rejected_bytes = totals.bytes * 3 / 2;
    let (_, lines) = capture_log(|| skip(&fixture, r#"{"name": "b"}, {"name": 2}"#));
    let warning = lines.iter().find(|line| is_warning(line)).unwrap();
    let fields = &warning["fields"];
    assert_eq!((&fields["business_object"], &fields["count"]), (&"Machine".into(), &1.into()));
}

#[test]
fn objects_removed_without_being_named_are_logged() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "motor": {"uri": "urn:e", "name": "e"}}"#);
    let replace = || fixture.send(Mode::Replace, r#"{"uri": "urn:m", "name": "m"}"#).unwrap();
    let (answer, lines) = capture_log(replace);
    assert_eq!(answer.deleted, 1);
    let fields = &lines[0]["fields"];
    assert_eq!(fields["ingestion_id"], answer.ingestion_id);
    assert_eq!((&fields["count"], &fields["first"]), (&1.into(), &r#""urn:e""#.into()));
}
