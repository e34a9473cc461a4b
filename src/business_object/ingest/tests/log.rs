use super::world::{World, machine};
use crate::business_object::ingest::Mode;
use std::io::Write;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn each_ingestion_is_a_line_in_the_log() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().json().with_writer(move || writer.clone()).finish();
    let world = World::new(machine());
    let answer = tracing::subscriber::with_default(subscriber, || {
        let answer = world.add(r#"{"name": "a"}"#);
        world.send(Mode::Update, r#"{"name": "a"}"#).unwrap_err();
        answer
    });
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [done, refused] = lines.as_slice() else { panic!("two lines: {text}") };
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
