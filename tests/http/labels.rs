//! The label of objects in the administration interface.
use crate::server::Server;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn lists_titles_and_references_show_the_label_and_without_one_the_uri() {
    let server = Server::start(&[]).await;
    let definition = json!({"name": "Pump", "config": "
type: object
path: Pump:.
label: name
fields:
  serial: {type: string, path: <https://plant.example/serial>}
  name: {type: string, path: <https://plant.example/name>}
  next: {type: resource, path: <https://plant.example/next>}
"});
    let all = "/api/v1/business-objects";
    let defined = server.json("PUT", all, &definition).await.expect(201).json();
    let pumps = json!([
        {"uri": "urn:pump:1", "serial": "S-1", "name": "Feed <pump>", "next": "urn:pump:2"},
        {"uri": "urn:pump:2", "serial": "S-2", "next": "urn:pump:1"},
    ]);
    server.ingest("ADD", &pumps).await.expect(200);
    let page = async |path: &str| server.get(path).await.expect(200).text();

    let list = page(&format!("/admin/objects/{}", defined["id"].as_str().unwrap())).await;
    assert!(
        list.contains(
            ">Feed &#60;pump&#62;</a><br><span class=\"uri faint small\">urn:pump:1</span>"
        ),
        "{list}"
    );
    assert!(list.contains("class=\"uri\">urn:pump:2</a></th>"), "{list}");
    assert!(list.contains("<option value=\"/name\" selected>name</option>"), "{list}");

    let labelled = page("/admin/object?uri=urn:pump:1").await;
    assert!(labelled.contains("<title>Feed &#60;pump&#62;"), "{labelled}");
    assert!(
        labelled.contains("<h1>Feed &#60;pump&#62;</h1>\n<p class=\"uri\">urn:pump:1</p>"),
        "{labelled}"
    );
    assert!(labelled.contains(">urn:pump:2</a> <span class=\"faint\">(Pump, next)"), "{labelled}");

    let other = page("/admin/object?uri=urn:pump:2").await;
    assert!(other.contains("<h1 class=\"uri\">urn:pump:2</h1>\n<p>It belongs to"), "{other}");
    assert!(
        other.contains(">Feed &#60;pump&#62;</a> <span class=\"faint\">(Pump, next)<br>urn:pump:1"),
        "{other}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_is_no_single_text_is_refused_with_its_place() {
    let server = Server::start(&[]).await;
    let definition = json!({"name": "Pump", "config":
        "type: object\npath: Pump:.\nlabel: flow\nfields:\n  flow: {type: number, path: <https://plant.example/flow>}\n"});
    let problem = server.json("PUT", "/api/v1/business-objects", &definition).await.problem(422);
    let error = &problem["errors"][0];
    assert_eq!((&error["line"], &error["column"]), (&json!(3), &json!(8)));
    assert!(error["message"].as_str().unwrap().contains("`type: string`"), "{problem}");
}
