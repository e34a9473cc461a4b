//! Documents around the objects: `form=document`.
use penstock_test_support::prelude::*;

const SAMPLES: &str = "/api/v1/business-objects/Samples?form=document";

const CONFIG: &str = "
type: object
path: Samples:.
items: /metrics/*
key: [device, name]
fields:
  device: {type: string, path: <urn:device>, required: true, outer: /device/id}
  name: {type: string, path: <urn:name>, required: true, outer: '*'}
  unit: {type: string, path: <urn:unit>, outer: unit}
  value: {type: number, path: <urn:value>}
";

async fn start(more: Value) -> TestApp {
    let server = TestApp::plain().await;
    let mut definition = json!({"name": "Samples", "config": CONFIG});
    definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.define_object(&definition).await;
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_taken_as_it_is() {
    let server = start(json!({})).await;
    let document = json!({
        "device": {"id": "D", "firmware": 7}, "unit": "bar",
        "metrics": {"flow": {"value": 1.5}, "level": {"value": 2.5, "unit": "m"}},
    });
    let answer = server.post(SAMPLES, &document).await.expect(200).json();
    assert_eq!((&answer["created"], &answer["warnings"]), (&json!(2), &json!([])));
    let path = "/api/v1/business-objects/Samples/objects";
    let mut shown = server.items(path).await;
    for object in &mut shown {
        object.as_object_mut().unwrap().remove("uri");
    }
    assert_eq!(
        shown,
        [
            json!({"device": "D", "name": "flow", "unit": "bar", "value": 1.5}),
            json!({"device": "D", "name": "level", "unit": "m", "value": 2.5}),
        ]
    );
    let none = server.post(SAMPLES, &json!({"metrics": []})).await.expect(200).json();
    assert_eq!((&none["created"], none["warnings"].list().len()), (&json!(0), 1));

    let wrong = json!([document, {"device": {"id": 5}, "metrics": [{"name": "x", "value": "y"}]}]);
    let problem = server.post(SAMPLES, &wrong).await.problem(422);
    let places: Vec<&Value> = problem["errors"].list().iter().map(|one| &one["pointer"]).collect();
    assert_eq!(places, ["/1/metrics/0/value", "/1/device/id"]);

    let headers = [("Content-Type", "text/csv")];
    server.send("POST", SAMPLES, &headers, "device,name\nD,x\n").await.problem(415);
    let unknown = SAMPLES.replace("document", "file");
    assert!(server.post(&unknown, &document).await.problem(400)["detail"].has("data or document"));
    let problem = server.post("/api/v1/business-objects/Samples", &document).await.problem(422);
    assert!(problem["detail"].has("query parameter form=document"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_mapping_of_documents_says_how_to_send_them() {
    let server = start(json!({})).await;
    let plain = server.define().await;
    let defined = server.read("/api/v1/business-objects/Samples").await;
    for (object, expected) in [(defined, true), (plain, false)] {
        let page = server.page(&format!("/admin/business-objects/{}", object["id"].text())).await;
        assert_eq!(page.contains("<code>&amp;form=document</code>"), expected, "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_is_a_document_and_a_dead_letter_needs_none() {
    let server = start(json!({})).await;
    let line = |device: &str, value: &str| {
        format!(
            r#"{{"device": {{"id": "{device}"}}, "metrics": [{{"name": "a", "value": 1.0}}, {{"name": "b", "value": {value}}}]}}"#
        )
    };
    let text = format!("{}\n\n{}\n", line("D", "2.0"), line("E", "true"));
    let path = format!("{SAMPLES}&onError=skip&mode=MERGE");
    let answer = server.send("POST", &path, &[NDJSON], text).await.expect(200).lines().remove(0);
    answer.includes(&json!({"firstIndex": 0, "lastIndex": 1, "created": 3}));
    answer["rejected"][0].includes(&json!({"index": 3, "line": 3}));
    assert_eq!(answer["rejected"][0]["errors"][0]["pointer"], "/metrics/1/value");

    let letters = format!("/api/v1/ingestions/{}/rejected", answer["ingestionId"].text());
    let letter = server.get(&letters).await.expect(200).lines().remove(0);
    assert_eq!(letter["text"], r#"{"name":"b","value":true,"device":"E"}"#);
    assert_eq!(letter["errors"], answer["rejected"][0]["errors"]);
    let retry = format!("{letters}/{}/retry", letter["id"].text());
    let problem = server.send("POST", &retry, &[], "").await.problem(422);
    assert_eq!(problem["errors"][0]["pointer"], "/data/3/value");
    let corrected = letter["text"].text().replace("true", "3.5");
    let retried = server.send("POST", &retry, &[JSON], corrected).await.expect(200).json();
    assert_eq!(retried["created"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_under_review_has_the_objects_of_its_document() {
    let server = start(json!({"review": "required"})).await;
    let document = json!({"device": {"id": "D"}, "metrics": [{"name": "a", "value": 1.0}]});
    let change = server.post(SAMPLES, &document).await.expect(202).json();
    assert_eq!((&change["state"], &change["created"]), (&json!("submitted"), &json!(1)));
    let shown = server.read(&format!("/api/v1/changes/{}", change["id"].text())).await;
    assert_eq!(shown["request"], r#"{"data":[{"name":"a","value":1.0,"device":"D"}]}"#);
    let wrong = json!({"device": {"id": 5}, "metrics": [{"name": "a"}]});
    let problem = server.post(SAMPLES, &wrong).await.problem(422);
    assert_eq!(problem["errors"][0]["pointer"], "/device/id");
}
