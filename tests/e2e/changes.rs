//! Changes under review survive a kill at any moment: each is stored once, published at most once and completely, and no
//! identifier is minted twice.
use penstock_test_support::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

const DATA: &str = "--service.data-dir=data";
/// More than the test sends: each request is repeated at the end.
const KEYS: &str = "--service.limits.idempotency-keys=1000000";
const MAPPING: &str = r#"
type: object
path: "Settings:."
fields:
  uri: { type: id }
  label: { type: string, path: "<http://www.w3.org/2000/01/rdf-schema#label>" }
"#;
/// What the approver and the author do with changes, one after the other.
const STEPS: [&str; 4] = ["approve", "approve", "reject", "withdraw"];

/// What the clients know.
#[derive(Default)]
struct Known {
    /// The last number that a label has.
    last: AtomicU64,
    /// The id and URI of each acknowledged change by its label; nothing if its answer was lost.
    sent: Mutex<BTreeMap<String, Option<(String, String)>>>,
    /// The acknowledged changes for which no step was taken yet, by id.
    open: Mutex<Vec<String>>,
    /// The state that was acknowledged for a change, or the step whose answer was lost.
    steps: Mutex<BTreeMap<String, (&'static str, bool)>>,
}

#[test]
fn kills_publish_each_change_at_most_once_and_mint_no_identifier_twice() {
    let dir = tempfile::tempdir().unwrap();
    let settings = [DATA, KEYS];
    let server = TestProcess::start(dir.path(), &settings);
    define(server.client);
    let author = create_key(dir.path(), DATA, "author", "Contributor");
    server.stop();

    let known = Arc::new(Known::default());
    for _ in 0..6 {
        let server = TestProcess::start(dir.path(), &settings);
        let author = Client::new(server.client.address).with_key(author.clone());
        let before = known.steps.lock().unwrap().len();
        let threads = [
            start(&known, move |known| send(author, known)),
            start(&known, move |known| send(author, known)),
            start(&known, move |known| decide(server.client, author, known)),
        ];
        wait_for("a step was taken", || known.steps.lock().unwrap().len() > before + 1);
        std::thread::sleep(Duration::from_millis(rand::random_range(0..300)));
        server.kill();
        for thread in threads {
            thread.join().unwrap();
        }
    }

    let server = TestProcess::start(dir.path(), &settings);
    check(server.client, Client::new(server.client.address).with_key(author), &known);
    server.stop();
}

fn start(
    known: &Arc<Known>,
    run: impl FnOnce(&Known) -> Option<()> + Send + 'static,
) -> std::thread::JoinHandle<Option<()>> {
    let known = Arc::clone(known);
    // `None` is the end of the server.
    std::thread::spawn(move || run(&known))
}

fn define(client: Client) {
    let base = "https://settings.example/";
    let namespace = json!({"name": "Settings", "uriBase": base, "generator": "counter"});
    client.put("/api/v1/namespaces/Settings", &namespace).expect(201);
    let definition = json!({
        "name": "Settings", "description": "What the machines shall do", "enabled": true, "config": MAPPING,
        "conditions": [], "pushTargets": [{"bucketName": "settings"}], "review": "required",
    });
    client.put("/api/v1/business-objects", &definition).expect(201);
}

fn submit(author: Client, label: &str) -> Result<Answer, String> {
    let body = json!({"data": [{"label": label}]}).to_string();
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", label)];
    author.send("POST", "/api/v1/business-objects/Settings?mode=ADD", &headers, body)
}

fn read_sent(answer: Answer) -> (String, String) {
    let change = answer.expect(202).json();
    let text = |value: &Value| value.string();
    (text(&change["id"]), text(&change["objects"][0]["uri"]))
}

/// Sends changes until the server ends.
fn send(author: Client, known: &Known) -> Option<()> {
    loop {
        let label = format!("setting-{}", known.last.fetch_add(1, Ordering::SeqCst));
        known.sent.lock().unwrap().insert(label.clone(), None);
        let answer = submit(author, &label).ok().filter(|answer| answer.status != 503)?;
        let sent = read_sent(answer);
        known.open.lock().unwrap().push(sent.0.clone());
        known.sent.lock().unwrap().insert(label, Some(sent));
    }
}

/// Takes steps of the acknowledged changes until the server ends.
fn decide(approver: Client, author: Client, known: &Known) -> Option<()> {
    for step in STEPS.into_iter().cycle() {
        let id = loop {
            if let Some(id) = known.open.lock().unwrap().pop() {
                break id;
            }
            approver.send("GET", "/health/live", &[], "").ok()?;
        };
        known.steps.lock().unwrap().insert(id.clone(), (step, false));
        let by = if step == "withdraw" { author } else { approver };
        let path = format!("/api/v1/changes/{id}/{step}");
        let answer = by.send("POST", &path, &[("If-Match", "\"1\"")], "").ok()?;
        if answer.status == 503 {
            return None;
        }
        answer.expect(200);
        known.steps.lock().unwrap().insert(id, (step, true));
    }
    None
}

fn check(approver: Client, author: Client, known: &Known) {
    let sent = std::mem::take(&mut *known.sent.lock().unwrap());
    let mut labels = BTreeMap::new();
    let mut minted = BTreeSet::new();
    for (label, acknowledged) in sent {
        // The answer that was lost comes again, and the same one comes twice.
        let again = read_sent(submit(author, &label).unwrap());
        assert_eq!(acknowledged.as_ref().unwrap_or(&again), &again, "{label}");
        assert!(minted.insert(again.1.clone()), "{} was minted twice", again.1);
        labels.insert(again.0, (label, again.1));
    }

    let changes = approver.all("/api/v1/changes?limit=100");
    assert_eq!(changes.len(), labels.len(), "a change is missing or there twice");
    let steps = known.steps.lock().unwrap();
    let mut published = BTreeMap::new();
    for change in changes {
        let id = change["id"].text();
        let state = change["state"].text();
        let done = match steps.get(id) {
            None => "submitted",
            Some((_, false)) if state == "submitted" => "submitted",
            Some(("approve", _)) => "approved",
            Some(("reject", _)) => "rejected",
            Some(_) => "withdrawn",
        };
        assert_eq!(state, done, "{change}");
        if state == "approved" {
            let (label, uri) = labels[id].clone();
            published.insert(uri, label);
            approver.get(&format!("/api/v1/ingestions/{id}")).expect(200);
        }
    }
    assert!(!published.is_empty());
    let text = |value: &Value| value.string();
    let objects = approver.all("/api/v1/business-objects/Settings/objects?limit=100");
    let count = objects.len();
    let objects: BTreeMap<_, _> =
        objects.iter().map(|it| (text(&it["uri"]), text(&it["label"]))).collect();
    assert_eq!((objects.len(), objects), (count, published));
}
