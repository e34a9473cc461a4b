//! Introspection, the SDL and a real client (graphql-js) agree, whatever names are used.
use crate::server::Server;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Definitions with names and texts that are difficult for a schema.
pub(crate) fn definitions() -> Vec<Value> {
    let pump = "
type: object
path: Pump:.
fields:
  uri: {type: id}
  serial number: {type: string, path: <urn:p:serial>, required: true}
  serial-number: {type: string, path: <urn:p:serial2>}
  weight: {type: number, path: <urn:p:weight>}
  and: {type: boolean, path: <urn:p:and>}
  'true': {type: date, path: <urn:p:true>}
  3rd: {type: dateTime, path: <urn:p:third>}
  Größe: {type: integer, path: <urn:p:size>}
  泵: {type: string, language: zh, path: <urn:p:zh>}
  '...': {type: string, datatype: <urn:d:x>, path: <urn:p:dots>}
  site: {type: resource, path: <urn:p:site>}
  siteObject: {type: string, path: <urn:p:so>}
  sites: {type: array, path: <urn:p:sites>, elements: {type: resource}}
  reading: &reading
    type: object
    path: <urn:p:reading>/Reading:.
    fields:
      value: {type: number, path: <urn:p:value>}
      asObject: {type: string, path: <urn:p:ao>}
  readings:
    type: array
    elements:
      type: object
      path: <urn:p:readings>/Reading:.
      fields:
        value: {type: number, path: <urn:p:value>}
        asObject: {type: string, path: <urn:p:ao>}
        inner: {type: object, path: <urn:p:inner>/Inner:., fields: {x: {type: string, path: <urn:p:x>}}}
";
    let plain = "type: object\npath: Plain:.\nfields: {name: {type: string, path: <urn:p:name>}}";
    let names = [
        ("Pump", pump),
        ("pump", plain),
        ("Pump Connection", plain),
        ("Query", plain),
        ("Node", plain),
        ("Export", plain),
        ("object", plain),
        ("PumpReading", plain),
        ("Pump_Reading", plain),
        ("12", plain),
        ("Насос", plain),
        ("🚰", plain),
    ];
    let description = "A \"quoted\" \"\"\"block\"\"\",\r\n\n   with \\ and \t\u{1} lines  \n  \"";
    names
        .iter()
        .map(|(name, config)| json!({"name": name, "description": description, "config": config}))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn introspection_the_sdl_and_a_real_client_agree() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    if !tests.join("node_modules/graphql").is_dir() {
        assert!(std::env::var_os("CI").is_none(), "`npm ci` in tests/ installs the client");
        eprintln!("skipped: the client is not installed; `npm ci` in tests/ does it");
        return;
    }
    let server = Server::start(&[]).await;
    client(&server, json!([{"document": "{ businessObjects { name } }", "valid": true}])).await;
    let json = [("Content-Type", "application/json")];
    for definition in definitions() {
        let path = "/api/v1/business-objects";
        server.send("PUT", path, &json, definition.to_string()).await.expect(201);
    }
    let documents: Vec<_> = [
        ("{ pumpConnection { nodes { uri serialNumber serialNumber_2 weight and_2 true_2 _3rd groesse } } }", true),
        ("{ pumpConnection { nodes { u6CF5 u002Eu002Eu002E site siteObject siteObject_2 { uri } sitesObjects { uri } } } }", true),
        ("{ pumpConnection { nodes { reading { value asObject_2 asObject { uri } } readings { inner { x } } } } }", true),
        ("{ pump_2(uri: \"urn:x\") { __typename name } query(uri: \"urn:x\") { name } object_2(uri: \"urn:x\") { name } }", true),
        ("{ _12(uri: \"urn:x\") { ... on _12 { name } } node(uri: \"urn:x\") { ...N } } fragment N on Node_2 { name }", true),
        ("{ object(uri: \"urn:x\", as: Query_2) { __typename ... on Pump { weight } ... on Export_2 { name } } }", true),
        ("query($n: Int, $w: PumpFilter, $o: PumpOrder) { pumpConnection(first: $n, where: $w, orderBy: $o) { totalCount } }", true),
        ("{ pumpConnection(where: {or: [{weight: {before: 5}}, {and_2: {eq: true}}], reading: {value: {in: [1, 2.5]}}}) { totalCount } }", true),
        ("{ pumpConnection(where: {not: {readings: {inner: {x: {contains: \"a\"}}}}}, orderBy: {field: _3rd, direction: DESC}) { totalCount } }", true),
        ("{ referredBy(uri: \"urn:x\", type: Pump) { edges { type path node { uri referredBy { nodes { uri } } } } } }", true),
        ("{ exports(status: queued) { nodes { id kind } pageInfo { endCursor } } targets { name } authenticatedUser { id } }", true),
        ("query($x: Boolean = true) { authenticatedUser { id __typename @skip(if: $x) } }", true),
        ("query($x: Boolean = true) { pumpConnection { totalCount @include(if: $x) } }", true),
        ("query($x: [String!] = \"a\") { pumpConnection(where: {serialNumber: {in: $x}}) { totalCount } }", true),
        ("{ pumpConnection(where: {serialNumber: {in: [\"\\uD83D\\uDE00\", \"\\u{1F600}\"]}}) { totalCount } }", true),
        ("{ __typename @inclde }", false),
        ("{ __typename @skip }", false),
        ("{ __typename @skip(if: \"true\") }", false),
        ("{ __typename @skip(if: $x) }", false),
        ("{ __typename @skip(if: true) @skip(if: true) }", false),
        ("{ __typename(x: 1) }", false),
        ("query($x: Int @skip(if: true)) { exports(first: $x) { nodes { id } } }", false),
        ("query($x: Boolean) { authenticatedUser { id @skip(if: $x) } }", false),
        ("query($x: String!) { pump(uri: $x) { uri } }", false),
        ("query($x: String!) { pumpConnection(where: {serialNumber: {in: $x}}) { totalCount } }", false),
        ("query($x: Int) { pumpConnection(where: {or: [{weight: {eq: $x}}]}) { totalCount } }", false),
        ("{ pumpConnection(where: {weight: {eq: 1, eq: 9}}) { totalCount } }", false),
        ("{ pumpConnection(where: 5) { totalCount } }", false),
        ("{ pumpConnection(first: 3000000000) { totalCount } }", false),
        ("{ pumpConnection(orderBy: {field: \"weight\"}) { totalCount } }", false),
        ("{ exports(status: \"queued\") { nodes { id } } }", false),
        ("{ pumpConnection { nodes { and } } }", false),
        ("{ pumpConnection(first: \"a\") { totalCount } }", false),
        ("{ pumpConnection(where: {weight: {contains: \"a\"}}) { totalCount } }", false),
        ("{ pumpConnection(where: {nothing: {eq: 1}}) { totalCount } }", false),
        ("{ pumpConnection(orderBy: {field: readings}) { totalCount } }", false),
        ("{ pumpConnection(orderBy: {direction: ASC}) { totalCount } }", false),
        ("{ pump { uri } }", false),
        ("{ pumpConnection }", false),
        ("{ pumpConnection { nodes { weight { x } } } }", false),
        ("{ object(uri: \"urn:x\") { name } }", false),
        ("{ object(uri: \"urn:x\") { ... on Pump_Reading { uri } } }", false),
        ("query($x: PumpFilter!) { pumpConnection(where: $y) { totalCount } }", false),
        ("query($x: [Nothing] = [1]) { __typename }", false),
        ("{ a: pumpConnection { totalCount } a: pumpConnection(first: 1) { totalCount } }", false),
    ]
    .iter()
    .map(|(document, valid)| json!({"document": document, "valid": valid}))
    .collect();
    client(&server, Value::Array(documents)).await;
    server.stop().await;
}

async fn client(server: &Server, documents: Value) {
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
