//! Objects found by their values, and listed in the order of a field: `filter.…` and `orderBy` of the list of objects.
use penstock_test_support::prelude::*;

const OBJECTS: &str = "/api/v1/business-objects/Pump/objects";

const CONFIG: &str = "
type: object
path: Pump:.
prefixes: {v: 'https://plant.example/v/'}
fields:
  serial: {type: string, path: v:serial}
  rating: {type: number, path: v:rating}
  installed: {type: dateTime, path: v:installed}
  tags: {type: array, path: v:tag}
  readings:
    type: array
    elements:
      type: object
      path: v:reading/Reading:.
      fields:
        value: {type: number, path: v:value}
        unit: {type: string, path: v:unit}
  sensors:
    type: map
    path: v:sensor/Sensor:.
    key: {path: v:code}
    elements: {type: object, fields: {value: {type: number, path: v:value}}}
";

/// Starts a gateway with three pumps, with these settings.
async fn start(settings: &[&str]) -> TestApp {
    let server = TestApp::start(settings).await;
    server.define_object(&json!({"name": "Pump", "config": CONFIG})).await;
    let reading = |name: &str, value: f64, unit: &str| json!({"uri": format!("urn:r:{name}"), "value": value, "unit": unit});
    let objects = json!([
        {"uri": "urn:p:1", "serial": "SN-7", "rating": 12.5, "installed": "2024-03-01T12:00:00Z", "tags": ["wet", "old"],
         "readings": [reading("1", 20.5, "C"), reading("2", 3.0, "bar")],
         "sensors": {"10.0.0.1": {"uri": "urn:s:1", "value": 5}}},
        {"uri": "urn:p:2", "serial": "SN-71", "rating": 9, "installed": "2024-02-01T12:00:00+01:00",
         "readings": [reading("3", 21.0, "bar")]},
        {"uri": "urn:p:3", "serial": "A-1", "tags": ["old"]},
    ]);
    server.ingest("ADD", &objects).await.expect(200);
    server
}

async fn find(caller: &Caller, query: &str) -> Vec<String> {
    let items = caller.items(&format!("{OBJECTS}?{query}")).await;
    items.iter().map(|item| item["uri"].string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_and_orders_select_objects() {
    for settings in [&[][..], &["--service.store.value-index=off"]] {
        let server = start(settings).await;
        for (query, expected) in [
            ("filter.serial=SN-7", &["1"][..]),
            ("filter.serial.in=SN-7&filter.serial.in=A-1", &["1", "3"]),
            ("filter.serial.startsWith=SN-", &["1", "2"]),
            ("filter.serial.containsAnyCase=sn&filter.rating.after=10", &["1"]),
            ("filter.rating.atLeast=9&filter.rating.atMost=9.0", &["2"]),
            ("filter.rating.exists=false", &["3"]),
            ("filter.tags=old&filter.tags=wet", &["1"]),
            ("filter.installed.before=2024-02-01T12:00:00Z", &["2"]),
            ("filter.readings.value.after=10&filter.readings.unit=bar", &["2"]),
            ("filter.readings.exists=false", &["3"]),
            ("filter.sensors[%2210.0.0.1%22].value=5", &["1"]),
            ("filter.sensors.T1.exists=true", &[]),
            ("filter.uri.startsWith=urn:p:2", &["2"]),
            ("orderBy=-rating", &["1", "2", "3"]),
            ("orderBy=installed", &["2", "1", "3"]),
            ("orderBy=serial", &["3", "1", "2"]),
            ("orderBy=-uri&filter.tags=old", &["3", "1"]),
        ] {
            let expected: Vec<String> = expected.iter().map(|id| format!("urn:p:{id}")).collect();
            assert_eq!(find(&server, query).await, expected, "{query} {settings:?}");
        }
        let whole = server.read(&format!("{OBJECTS}?filter.serial=SN-71")).await;
        assert_eq!(whole["items"][0]["readings"][0]["value"], 21.0, "{whole}");
        assert_eq!(whole["next"], Value::Null);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_continue_after_the_last_object() {
    let server = start(&[]).await;
    let query = format!("{OBJECTS}?orderBy=-rating&limit=1");
    let items = server.all(&query, 1).await;
    let found: Vec<&str> = items.iter().map(|item| item["uri"].text()).collect();
    assert_eq!(found, ["urn:p:1", "urn:p:2", "urn:p:3"]);
    // A cursor belongs to its list.
    let cursor = server.read(&query).await["next"].string();
    let another = "the cursor belongs to a listing in another order";
    for other in ["orderBy=rating", "limit=1"] {
        server.get(&format!("{OBJECTS}?{other}&cursor={cursor}")).await.refused(400, another);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_the_parameter() {
    let server = start(&[]).await;
    for (query, status, words) in [
        (
            "filter.serail=1",
            422,
            "filter.serail: there is no field `serail`; did you mean `serial`?",
        ),
        ("filter.rating.aftr=1", 422, "did you mean `after`?"),
        ("filter.rating.after=high", 422, "filter.rating.after: \"high\" is not a number"),
        ("filter.serial.after=1", 422, "no test `after`, but eq, in,"),
        (
            "orderBy=ratng",
            422,
            "orderBy: there is no field `ratng` to order by; did you mean `rating`?",
        ),
        ("orderBy=tags", 422, "cannot be ordered by tags"),
        ("orderBy=rating,serial", 422, "to order by; name only one field"),
        ("uri=urn:p:L%201", 400, "in the query of a URL, write % as %25"),
        ("uri=urn:p:1&filter.serial=1", 400, "leave out filters and orderBy"),
        ("uri=urn:p:1&orderBy=serial", 400, "leave out filters and orderBy"),
        ("filters.serial=1", 400, "no query parameter"),
        ("orderBy=serial&orderBy=rating", 400, "more than once"),
        ("orderBy=serial&cursor=x", 400, "cursor"),
    ] {
        server.get(&format!("{OBJECTS}?{query}")).await.refused(status, words);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_key_may_not_see_is_no_value() {
    let server = start(&[]).await;
    let site = "type: object\npath: Site:.\nfields:\n  unit: {type: string, path: <https://plant.example/v/unit>}\n";
    server.define_object(&json!({"name": "Site", "config": site})).await;
    let data = json!({"data": [{"uri": "urn:site:1", "unit": "secret"}]});
    server.post("/api/v1/business-objects/Site", &data).await.expect(200);
    // The pump refers to the site in a field of readings.
    let pump = json!([{"uri": "urn:p:4", "serial": "S", "readings": [{"uri": "urn:site:1"}]}]);
    server.ingest("ADD", &pump).await.expect(200);
    let query = "filter.readings.unit=secret";
    assert_eq!(find(&server, query).await, ["urn:p:4"]);
    let limited = server.with_key(Role::User, Some("Pump"));
    assert_eq!(find(&limited, query).await, Vec::<String>::new());
    assert_eq!(find(&limited, "filter.readings.unit=C").await, ["urn:p:1"]);
    // Nor is it one in summaries, downloads and GraphQL.
    let filter = "{readings: {unit: {eq: \"secret\"}}}";
    let graphql =
        json!({"query": format!("{{ pumpConnection(where: {filter}) {{ nodes {{ uri }} }} }}")});
    for (caller, is_seen) in [(&*server, true), (&limited, false)] {
        let summary = "/api/v1/business-objects/Pump/summary?group=readings.unit";
        let summary = caller.read(summary).await;
        assert_eq!(summary.to_string().contains("secret"), is_seen, "{summary}");
        let lines = caller.page(&format!("{OBJECTS}?format=ndjson")).await;
        assert_eq!(lines.contains("secret"), is_seen, "{lines}");
        let found = caller.post("/graphql", &graphql).await.expect(200).json();
        assert_eq!(found.to_string().contains("urn:p:4"), is_seen, "{found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_a_key_may_not_see_are_in_no_order() {
    let server = start(&[]).await;
    let site = "type: object\npath: Site:.\nfields:\n  serial: {type: string, path: <https://plant.example/v/serial>}\n";
    server.define_object(&json!({"name": "Site", "config": site})).await;
    let data = json!({"data": [{"uri": "urn:site:1", "serial": "A-0"}, {"uri": "urn:site:2", "serial": "Z"}]});
    server.post("/api/v1/business-objects/Site", &data).await.expect(200);
    // Enough objects for the index of values.
    let pumps = (100..400)
        .map(|number| json!({"uri": format!("urn:q:{number}"), "serial": format!("T-{number}")}));
    server.ingest("ADD", &Value::Array(pumps.collect())).await.expect(200);
    let limited = server.with_key(Role::User, Some("Pump"));
    for (query, expected) in [
        ("orderBy=serial&limit=2", ["urn:p:3", "urn:p:1"]),
        ("orderBy=-serial&limit=2", ["urn:q:399", "urn:q:398"]),
    ] {
        for found in [find(&server, query).await, find(&limited, query).await] {
            assert_eq!(found, expected, "{query}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_with_literals_select_members() {
    let server = start(&[]).await;
    let mut definition = json!({"name": "Old", "config": CONFIG});
    definition["conditions"] = json!([{"predicate": "v:tag", "value": "old"}]);
    let defined = server.define_object(&definition).await;
    assert_eq!(defined["conditions"], definition["conditions"]);
    let members = async |server: &TestApp| -> Vec<String> {
        let items = server.items("/api/v1/business-objects/Old/objects").await;
        items.iter().map(|item| item["uri"].string()).collect()
    };
    assert_eq!(members(&server).await, ["urn:p:1", "urn:p:3"]);
    let dir = server.stop().await.unwrap();
    let server = TestApp::start_in(dir.path(), &[]).await.unwrap();
    assert_eq!(members(&server).await, ["urn:p:1", "urn:p:3"]);
    let ingested = json!({"data": [{"uri": "urn:p:5", "tags": ["new"]}]});
    let answer = server.post("/api/v1/business-objects/Old?mode=ADD", &ingested).await.expect(200);
    assert!(answer.json()["warnings"].to_string().contains("v/tag = "), "{answer:?}");
    // The mapping writes decimals.
    let condition = json!({"predicate": "v:rating", "value": "9", "datatype": "xsd:integer"});
    definition["conditions"] = json!([condition]);
    let path = "/api/v1/business-objects?force=true";
    let warned = server.put(path, &definition).await.expect(200).json();
    let warning = warned["warnings"].to_string();
    assert!(warning.contains("`rating` has values of another type"), "{warning}");
    let query = json!({"query": "{ businessObjects { conditions { value datatype language } } }"});
    let answer = server.post("/graphql", &query).await.expect(200).json();
    let shown = answer["data"]["businessObjects"].list();
    let expected = json!([{"value": "9", "datatype": "xsd:integer", "language": null}]);
    assert!(shown.iter().any(|one| one["conditions"] == expected), "{answer}");
}
