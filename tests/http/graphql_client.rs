//! Introspection, the SDL and a real client (graphql-js) agree, whatever names are used.
use penstock_test_support::prelude::*;
use std::io::Write as _;

/// Definitions with names and texts that are difficult for a schema.
pub(crate) fn definitions() -> Vec<Value> {
    let pump = include_str!("difficult_names.yaml");
    let plain = "type: object\npath: Plain:.\nfields: {name: {type: string, path: <urn:p:name>}}";
    let names =
        "Pump,pump,Pump Connection,Query,Node,Export,object,PumpReading,Pump_Reading,12,Насос,🚰";
    let description = "A \"quoted\" \"\"\"block\"\"\",\r\n\n   with \\ and \t\u{1} lines  \n  \"";
    let define = |name| {
        let config = if name == "Pump" { pump } else { plain };
        json!({"name": name, "description": description, "config": config})
    };
    names.split(',').map(define).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn introspection_the_sdl_and_a_real_client_agree() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    if !tests.join("node_modules/graphql").is_dir() {
        assert!(std::env::var_os("CI").is_none(), "`npm ci` in tests/ installs the client");
        eprintln!("skipped: the client is not installed; `npm ci` in tests/ does it");
        return;
    }
    let server = TestApp::plain().await;
    client(&server, json!([{"document": "{ businessObjects { name } }", "valid": true}])).await;
    for definition in definitions() {
        server.define_object(&definition).await;
    }
    let (valid, invalid) = include_str!("documents.graphql").split_once("\n\n").unwrap();
    let documents: Vec<_> = [(valid, true), (invalid, false)]
        .iter()
        .flat_map(|(text, valid)| text.lines().skip(1).map(move |line| (line, valid)))
        .map(|(document, valid)| json!({"document": document, "valid": valid}))
        .collect();
    assert_eq!(documents.len(), 45);
    client(&server, Value::Array(documents)).await;
    server.stop().await;
}

async fn client(server: &TestApp, documents: Value) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graphql/client.mjs");
    let arguments = [format!("http://{}", server.address), server.key.clone()];
    let run = move || {
        let mut child = Command::new("node")
            .arg(script)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(documents.to_string().as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let done = tokio::task::spawn_blocking(run).await.unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
