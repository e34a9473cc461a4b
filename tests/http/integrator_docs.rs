//! The programs and commands in docs/ingest.md do what the page says, also when answers are refused or lost.
use crate::events::EventStream;
use penstock_test_support::prelude::*;
use std::fs;
use std::net::SocketAddr;
use std::process::Output;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PAGE: &str = include_str!("../../docs/ingest.md");

fn block(info: &str) -> &'static str {
    let (_, text) = code_blocks(PAGE).into_iter().find(|(found, _)| *found == info).unwrap();
    text
}

/// A gateway with the mapping of the page, and a folder for programs.
struct Fixture {
    server: TestApp,
    dir: TempDir,
}

impl Fixture {
    async fn start() -> Self {
        let server = TestApp::plain().await;
        let definition = json!({"name": "Pumps", "config": block("yaml Pumps")});
        server.define_object(&definition).await;
        Self { server, dir: tempfile::tempdir().unwrap() }
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.dir.path().join(file), text).unwrap();
    }

    /// Runs a program in the folder, with `address` as the gateway.
    fn run(&self, address: SocketAddr, arguments: &[&str], input: &str) -> Output {
        self.write("input", input);
        let mut command = Command::new(arguments[0]);
        command
            .args(&arguments[1..])
            .current_dir(self.dir.path())
            .env("API", format!("http://{address}/api/v1"))
            .env("KEY", &self.server.key)
            .env("NO_PROXY", "127.0.0.1")
            .stdin(fs::File::open(self.dir.path().join("input")).unwrap());
        tokio::task::block_in_place(|| command.output().unwrap())
    }

    /// Runs a program at the gateway, which must succeed.
    fn succeed(&self, arguments: &[&str]) -> Output {
        self.run(self.server.address, arguments, "").success()
    }

    async fn stored(&self) -> Vec<Value> {
        self.server.items("/api/v1/business-objects/Pumps/objects").await
    }

    async fn ingestions(&self) -> usize {
        self.server.items("/api/v1/ingestions").await.len()
    }
}

/// What a faulty network does with a connection.
#[derive(Clone, Copy)]
enum Fault {
    /// The request is not passed on; the client gets this status.
    Refuse(u16),
    /// The request is passed on, and the client gets no answer.
    LoseAnswer,
}

/// Starts a proxy before the gateway with a fault for each of the first connections.
async fn start_proxy(gateway: SocketAddr, faults: Vec<Fault>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut faults = faults.into_iter();
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let fault = faults.next();
            tokio::spawn(async move {
                if let Some(Fault::Refuse(status)) = fault {
                    read_request(&mut client).await;
                    let answer = format!(
                        "HTTP/1.1 {status} Refused\r\nRetry-After: 1\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
                    );
                    client.write_all(answer.as_bytes()).await.unwrap();
                    return;
                }
                let mut server = TcpStream::connect(gateway).await.unwrap();
                if fault.is_some() {
                    server.write_all(&read_request(&mut client).await).await.unwrap();
                    // The answer has arrived here.
                    server.read_u8().await.unwrap();
                    return;
                }
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    address
}

/// Reads a whole request with a `Content-Length`.
async fn read_request(client: &mut TcpStream) -> Vec<u8> {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let (_, length) = head.split_once("content-length:").unwrap();
            let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
            if body.len() >= length {
                return request;
            }
        }
        assert!(client.read_buf(&mut request).await.unwrap() > 0);
    }
}

const FAULTS: [Fault; 3] = [Fault::Refuse(503), Fault::LoseAnswer, Fault::Refuse(507)];

#[tokio::test(flavor = "multi_thread")]
async fn the_python_program_delivers_each_batch_once_in_spite_of_faults() {
    let fixture = Fixture::start().await;
    let (server, dir) = (&fixture.server, fixture.dir.path());
    fixture.write("send.py", block("python send.py"));
    let python = |address, input: &str| fixture.run(address, &["python3", "send.py"], input);
    let spooled = || {
        let files = fs::read_dir(dir.join("spool")).unwrap();
        let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    };
    let proxy = start_proxy(server.address, FAULTS.to_vec()).await;
    let lines = (0..1500).map(|number| format!("{{\"tag\": \"P-{number}\", \"flow\": 1.50}}\n"));
    let input = lines.collect::<Vec<_>>().concat();
    python(proxy, &input).success();
    assert!(spooled().is_empty(), "{:?}", spooled());
    // Two batches, each committed once.
    assert_eq!(fixture.ingestions().await, 2);
    assert_eq!(fixture.stored().await[0]["flow"].to_string(), "1.50");

    // Wrong data is put aside, and a wrong key stops the program with its spool.
    python(server.address, "{\"tag\": \"P-1\"\n").success();
    assert_eq!(spooled()[0].extension().unwrap(), "refused");
    let output = python(server.address, "{\"tag\": 1}\n");
    assert!(output.err().contains("rejected: "), "{output:?}");
    assert_eq!(spooled().len(), 1);
    let disabled = json!({"name": "Pumps", "enabled": false, "config": block("yaml Pumps")});
    server.put("/api/v1/business-objects", &disabled).await.expect(200);
    let output = python(server.address, "{\"tag\": \"P-2000\"}\n");
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(spooled()[1].extension().unwrap(), "json");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_function_for_node_sends_once_in_spite_of_faults() {
    let fixture = Fixture::start().await;
    let call = "\nconst answer = await send([{ tag: 'P-1', flow: 2.5 }]);\nconsole.log(answer.created);\n\
                await send({}).catch((error) => console.log(error.message));\n";
    fixture.write("send.mjs", &(block("js send.mjs").to_owned() + call));
    let proxy = start_proxy(fixture.server.address, FAULTS[..2].to_vec()).await;
    let output = fixture.run(proxy, &["node", "send.mjs"], "").success();
    let text = output.out();
    assert!(text.starts_with("1\n") && text.contains("Ingestion failed"), "{output:?}");
    assert_eq!((fixture.ingestions().await, fixture.stored().await.len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_command_of_the_page_succeeds() {
    let fixture = Fixture::start().await;
    fixture.write("pumps.csv", block("csv pumps.csv"));
    let skip = "/api/v1/business-objects/Pumps?onError=skip";
    let answer = fixture.server.post(skip, &json!({"data": [{"tag": 1}]})).await.expect(200).json();
    let commands: Vec<_> =
        code_blocks(PAGE).into_iter().filter(|(info, _)| *info == "sh").collect();
    assert!(commands.len() >= 4, "the page has lost its commands");
    for (_, command) in commands {
        let command = format!(
            "set -e; curl() {{ command curl --silent --show-error --fail-with-body \"$@\"; }}\nINGESTION={}\n{command}",
            answer["ingestionId"]
        );
        fixture.succeed(&["bash", "-c", &command]);
    }
    let objects = fixture.stored().await;
    let names: Vec<&Value> = objects.iter().map(|object| &object["name"]).collect();
    assert_eq!(names, [&json!("Feed pump; spare"), &Value::Null]);
    assert_eq!(objects[0]["flow"].to_string(), "12.50");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_event_of_the_page_has_the_members_of_an_event() {
    let fixture = Fixture::start().await;
    let mut events = EventStream::start(&fixture.server, "/api/v1/events", &[]).await;
    let path = "/api/v1/business-objects/Pumps";
    fixture.server.post(path, &json!({"data": [{"tag": "P-1"}]})).await.expect(200);
    let event = events.event().await.data;
    let documented: Value = serde_json::from_str(block("json event")).unwrap();
    // Present only while the time may be wrong.
    let names = |value: &Value| -> Vec<String> {
        value.as_object().unwrap().keys().filter(|name| *name != "clock").cloned().collect()
    };
    assert_eq!(names(&documented), names(&event));
    assert_eq!(names(&documented["data"]), names(&event["data"]));
    assert_eq!(documented["type"], event["type"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_flow_for_node_red_is_json_and_its_nodes_are_connected() {
    let flow: Vec<Value> = serde_json::from_str(block("json node-red")).unwrap();
    let ids: Vec<&Value> = flow.iter().map(|node| &node["id"]).collect();
    let wires = flow.iter().flat_map(|node| node["wires"][0].list());
    assert!(wires.into_iter().all(|wire| ids.contains(&wire)));
    // Node-RED takes a node without a position for a configuration.
    assert!(flow.iter().all(|node| node["x"].is_u64() && node["y"].is_u64()));
}

/// Runs the function of the node `body` as Node-RED does, and sends the request that the node `http request` builds of its
/// message.
const RUN_FLOW: &str = r"
import { readFileSync } from 'node:fs';
const flow = JSON.parse(readFileSync('flow.json', 'utf8'));
const node = (id) => flow.find((one) => one.id === id);
const run = new Function('msg', 'env', 'RED', node('body').func);
const environment = { PENSTOCK_KEY: process.env.KEY };
const messages = [{ tag: 'P-1', flow: 1.5 }, { tag: 'P-2', measured: '2026-03-01T12:00:00+01:00' }];
const msg = run({ payload: messages }, { get: (name) => environment[name] }, { util: { generateId: () => '0a1b' } });
const { method, url } = node('request');
const target = url.replace('https://gateway.example/api/v1', process.env.API);
const answer = await fetch(target, { method, headers: msg.headers, body: JSON.stringify(msg.payload) });
console.log(answer.status, (await answer.json()).created);
";

#[tokio::test(flavor = "multi_thread")]
async fn the_function_of_the_flow_for_node_red_builds_a_batch() {
    let fixture = Fixture::start().await;
    fixture.write("flow.json", block("json node-red"));
    fixture.write("run.mjs", RUN_FLOW);
    for _ in 0..2 {
        // The same message is sent with the same key, and stored once.
        assert_eq!(fixture.succeed(&["node", "run.mjs"]).out(), "200 2\n");
    }
    assert_eq!((fixture.ingestions().await, fixture.stored().await.len()), (1, 2));
}

/// Prints the output of the configuration as JSON.
const READ_TELEGRAF: &str = "import json, sys, tomllib\nprint(json.dumps(tomllib.load(sys.stdin.buffer)['outputs']['http']))";

/// Applies the transformation to metrics as Telegraf gives them to it.
const TRANSFORM_METRICS: &str = r"
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
const [, , tests, count] = process.argv;
const jsonata = createRequire(tests + '/package.json')('jsonata');
const metrics = Array.from({ length: count }, (_, number) => ({
  name: 'pump', tags: { tag: 'P-' + number, host: 'edge' }, fields: { flow: 2.5 }, timestamp: 1772362800000,
}));
const transform = jsonata(readFileSync('transformation', 'utf8'));
console.log(JSON.stringify(await transform.evaluate({ metrics })));
";

#[tokio::test(flavor = "multi_thread")]
async fn the_output_of_telegraf_sends_any_number_of_metrics_as_one_batch() {
    let fixture = Fixture::start().await;
    let read = ["python3", "-c", READ_TELEGRAF];
    let outputs = fixture.run(fixture.server.address, &read, block("toml")).json();
    let [output] = outputs.list() else { panic!("{outputs}") };
    assert_eq!((&output["method"], &output["data_format"]), (&json!("POST"), &json!("json")));
    // What cannot be retried is put aside by the rules above.
    assert_eq!(output["non_retryable_statuscodes"], json!([400, 413, 415, 422]));
    let headers = &output["headers"];
    headers.includes(&json!({"Content-Type": "application/json", "Authorization": "Bearer KEY"}));
    let path = output["url"].text().replacen("https://gateway.example", "", 1);
    fixture.write("transformation", output["json_transformation"].text());
    fixture.write("transform.mjs", TRANSFORM_METRICS);
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    if !tests.join("node_modules/jsonata").is_dir() {
        assert!(std::env::var_os("CI").is_none(), "`npm ci` in tests/ installs JSONata");
        eprintln!("skipped: JSONata is not installed; `npm ci` in tests/ does it");
        return;
    }
    for (count, created) in [(1, 1), (3, 2)] {
        let count = count.to_string();
        let arguments = ["node", "transform.mjs", tests.to_str().unwrap(), &count];
        let body = fixture.succeed(&arguments).json();
        let answer = fixture.server.post(&path, &body).await.expect(200).json();
        assert_eq!((&answer["created"], &answer["rejected"]), (&json!(created), &json!([])));
    }
    let stored = fixture.stored().await;
    assert_eq!(stored[2]["measured"], "2026-03-01T11:00:00.000Z", "{stored:?}");
    assert_eq!((stored.len(), stored[2]["flow"].to_string()), (3, "2.5".to_owned()));
}

#[test]
fn the_mqtt_source_of_the_page_is_a_valid_configuration() {
    let checked = penstock_config::check_file(Path::new("application.yaml"), block("yaml mqtt"));
    assert!(checked.errors.is_empty() && checked.warnings.is_empty(), "{checked:?}");
    let source = &checked.sources["plant"];
    assert!(source.url.uses_tls && source.business_objects().contains("Pumps"), "{source:?}");
}
