//! Fields in groups (`type: group`), on every surface that knows fields.
use penstock_test_support::prelude::*;

const PUMP: &str = "/api/v1/business-objects/Pump";

const CONFIG: &str = "
type: object
path: Pump:.
key: device.serial
label: device.name
prefixes: {v: 'https://plant.example/v/'}
fields:
  device:
    type: group
    fields:
      serial: {type: string, path: v:serial, required: true}
      name: {type: string, path: v:name}
      net: {type: group, fields: {uri: {type: resource, path: v:address}}}
  limits:
    type: group
    fields:
      low: {type: number, path: v:low}
      marks: {type: array, path: v:mark}
      place: {type: object, path: 'v:place/Place:.', fields: {room: {type: string, path: v:room}}}
";

#[tokio::test(flavor = "multi_thread")]
async fn every_surface_shows_fields_in_their_groups() {
    let server = TestApp::plain().await;
    let defined = server.define_object(&json!({"name": "Pump", "config": CONFIG})).await;
    let first = json!({
        "uri": "urn:pump:1",
        "device": {"serial": "S-1", "name": "Feed pump", "net": {"uri": "urn:net:7"}},
        "limits": {"low": 1.5, "marks": ["a"], "place": {"uri": "urn:place:1", "room": "R1"}},
    });
    let second = json!({"uri": "urn:pump:2", "device": {"serial": "S-2"}});
    server.ingest("ADD", &json!([first, second])).await.expect(200);
    assert_eq!(server.items(&format!("{PUMP}/objects")).await, [first, second]);

    let schema = server.read(&format!("{PUMP}/schema")).await;
    assert_eq!(schema["required"], json!(["device"]));
    assert_eq!(schema["x-key"], json!(["device.serial"]));
    assert_eq!(schema["properties"]["device"]["required"], json!(["serial"]));
    assert_eq!(schema["properties"]["limits"]["type"], json!(["object", "null"]));

    let query = r#"{
        pump(uri: "urn:pump:1") { device { serial net { uri_2 } } limits { low marks place { room } } }
        other: pump(uri: "urn:pump:2") { device { name } limits { low } }
        found: pumpConnection(where: {limits: {low: {after: 1}, place: {room: {eq: "R1"}}}}) { nodes { uri } }
        ordered: pumpConnection(orderBy: {field: device_serial, direction: DESC}) { nodes { uri } }
    }"#;
    assert_eq!(
        server.graphql(query).await,
        json!({
            "pump": {
                "device": {"serial": "S-1", "net": {"uri_2": "urn:net:7"}},
                "limits": {"low": 1.5, "marks": ["a"], "place": {"room": "R1"}},
            },
            "other": {"device": {"name": null}, "limits": null},
            "found": {"nodes": [{"uri": "urn:pump:1"}]},
            "ordered": {"nodes": [{"uri": "urn:pump:2"}, {"uri": "urn:pump:1"}]},
        })
    );

    let page = server.page("/admin/object?uri=urn:pump:1").await;
    assert!(page.contains("<h1>Feed pump</h1>") && page.contains("limits.low"), "{page}");
    let id = defined["id"].text();
    let form = server.page(&format!("/admin/object/edit?uri=urn:pump:1&view={id}")).await;
    assert!(form.contains("name=\"v/limits/low\""), "{form}");

    // CSV names the fields with dots, and finds the object by its key.
    let headers = [("Content-Type", "text/csv")];
    let text = "device.serial,limits.low\nS-2,7.50\n".to_owned();
    server.send("POST", &format!("{PUMP}?mode=MERGE"), &headers, text).await.expect(200);
    let merged = server.items(&format!("{PUMP}/objects")).await;
    assert_eq!(merged[1]["limits"].to_string(), r#"{"low":7.50,"marks":[]}"#);
    // `null` for a group clears its fields; the others stay.
    let cleared = json!([{"uri": "urn:pump:2", "limits": null}]);
    server.ingest("MERGE", &cleared).await.expect(200);
    let merged = server.items(&format!("{PUMP}/objects")).await;
    assert_eq!(merged[1], json!({"uri": "urn:pump:2", "device": {"serial": "S-2"}}));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_point_into_groups() {
    let server = TestApp::plain().await;
    server.define_object(&json!({"name": "Pump", "config": CONFIG})).await;
    for (object, pointer, message) in [
        (
            json!({"uri": "urn:pump:9", "device": {"name": "x"}}),
            "/data/0/device/serial",
            "is required",
        ),
        (
            json!({"device": {"serial": "S", "colour": 1}}),
            "/data/0/device/colour",
            "it has serial, name, net",
        ),
        (json!({"device": 7}), "/data/0/device", "an object"),
        (json!({"device.serial": "S"}), "/data/0/device.serial", "has no field"),
        (
            json!({"device": {"serial": "S"}, "limits": {"uri": "urn:x"}}),
            "/data/0/limits/uri",
            "has no field",
        ),
    ] {
        server.ingest("REPLACE", &json!([object])).await.refused_at(pointer, message);
    }
    server.stop().await;
}
