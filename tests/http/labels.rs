//! The page of a Business Object, and the labels of objects, in the administration interface.
use penstock_test_support::prelude::*;

/// Returns the text of the element with this id in a page, without the escapes of HTML.
fn element_text(page: &str, id: &str) -> String {
    let (_, rest) = page.split_once(&format!("id=\"{id}\"")).unwrap();
    let (_, rest) = rest.split_once('>').unwrap();
    let (text, _) = rest.split_once('<').unwrap();
    let escapes = [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")];
    escapes.iter().fold(text.to_owned(), |text, (escape, plain)| text.replace(escape, plain))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_on_the_page_of_a_business_object_sends_an_object() {
    let server = TestApp::plain().await;
    let definition = json!({"name": "Pump", "config": "
type: object
path: Pump:.
key: tag
fields:
  flow: {type: number, path: <https://plant.example/flow>}
  it's: {type: string, required: true, path: <https://plant.example/its>}
  tag: {type: string, required: true, path: <https://plant.example/tag>}
"});
    let defined = server.put("/api/v1/business-objects", &definition).await;
    let id = defined.expect(201).json()["id"].string();
    let page = server.page(&format!("/admin/business-objects/{id}")).await;
    let command = element_text(&page, "command");
    let command = command.replace("KEY", &server.key);
    let shell = || Command::new("bash").args(["-c", &command]).succeed().json();
    let first = tokio::task::block_in_place(shell);
    assert_eq!((&first["created"], &first["mode"]), (&json!(1), &json!("MERGE")), "{first}");
    assert_eq!(tokio::task::block_in_place(shell)["unchanged"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_titles_and_references_show_the_label_and_without_one_the_uri() {
    let server = TestApp::plain().await;
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
    let defined = server.put(all, &definition).await.expect(201).json();
    let pumps = json!([
        {"uri": "urn:pump:1", "serial": "S-1", "name": "Feed <pump>", "next": "urn:pump:2"},
        {"uri": "urn:pump:2", "serial": "S-2", "next": "urn:pump:1"},
    ]);
    server.ingest("ADD", &pumps).await.expect(200);
    let page = async |path: &str| server.page(path).await;

    let list = page(&format!("/admin/objects/{}", defined["id"].text())).await;
    assert!(
        list.contains(
            ">Feed &#60;pump&#62;</a><br><span class=\"uri faint small\">urn:pump:1</span>"
        ),
        "{list}"
    );
    assert!(list.contains("class=\"uri\">urn:pump:2</a></th>"), "{list}");
    assert!(list.contains("<option value=\"name\" selected>name</option>"), "{list}");

    let labelled = page("/admin/object?uri=urn:pump:1").await;
    assert!(labelled.contains("<title>Feed &#60;pump&#62;"), "{labelled}");
    assert!(
        labelled.contains("<h1>Feed &#60;pump&#62;</h1>\n<p class=\"uri faint\">urn:pump:1</p>"),
        "{labelled}"
    );
    let labelled = page("/admin/object?uri=urn:pump:1&tab=references").await;
    assert!(labelled.contains(">urn:pump:2</a> <span class=\"faint\">(Pump, next)"), "{labelled}");

    let other = page("/admin/object?uri=urn:pump:2").await;
    assert!(other.contains("<h1 class=\"uri\">urn:pump:2</h1>\n</div>"), "{other}");
    // The field that refers to it shows its label.
    let link = "<a href=\"/admin/object?uri=urn%3Apump%3A1\">Feed &#60;pump&#62;</a>";
    assert!(other.contains(link), "{other}");
    let other = page("/admin/object?uri=urn:pump:2&tab=references").await;
    assert!(
        other.contains(">Feed &#60;pump&#62;</a> <span class=\"faint\">(Pump, next)<br>urn:pump:1"),
        "{other}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_is_no_single_text_is_refused_with_its_place() {
    let server = TestApp::plain().await;
    let definition = json!({"name": "Pump", "config":
        "type: object\npath: Pump:.\nlabel: flow\nfields:\n  flow: {type: number, path: <https://plant.example/flow>}\n"});
    let problem = server.put("/api/v1/business-objects", &definition).await.problem(422);
    let error = &problem["errors"][0];
    assert_eq!((&error["line"], &error["column"]), (&json!(3), &json!(8)));
    assert!(error["message"].has("`type: string`"), "{problem}");
}
