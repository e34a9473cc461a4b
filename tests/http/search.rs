//! The search field of the pages: what it finds, for whom, and within which limits.
use penstock_test_support::prelude::*;

const CONFIG: &str = "
type: object
path: Valve:.
key: [tag]
fields:
  uri: {type: id}
  tag: {type: string, path: <https://plant.example/tag>, required: true}
  name: {type: string, path: <https://plant.example/name>}
label: name
";

async fn search(by: &Caller, text: &str) -> String {
    by.page(&format!("/admin/search?q={}", escaped(text))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn one_field_finds_pages_definitions_objects_exports_and_settings() {
    let server = TestApp::with_pumps().await;
    server
        .ingest("ADD", &json!([{"uri": "urn:pump:1", "name": "Feed <pump>", "flow": 7}]))
        .await
        .expect(200);
    let valve =
        server.define_object(&json!({"name": "Valve", "config": CONFIG, "enabled": true})).await;
    let valves =
        json!({"data": [{"tag": "V-17", "name": "Inlet"}, {"tag": "V-18", "name": "Outlet"}]});
    let made = server.post("/api/v1/business-objects/Valve", &valves).await.expect(200).json();
    let uri = made["objects"][0]["uri"].text();
    let export = server.push("Pump").await;
    let user = Person::sign_in(&server, Role::User).await;
    let view = json!({"name": "Inlets", "businessObject": "Valve"});
    user.post("/api/v1/views", &view).await.expect(201);

    let page = search(&user, "").await;
    assert!(page.contains("The field finds pages") && !page.contains("role=\"status\""), "{page}");
    // A label, in any case, of any Business Object.
    search(&user, "feed <PUMP").await.has_all(&[
        "1 result<",
        "value=\"feed &#60;PUMP\"",
        "/admin/object?uri=urn%3Apump%3A1",
        "Feed &#60;pump&#62;",
        "Pump, urn:pump:1",
    ]);
    let link = format!("/admin/object?uri={}&#38;view={}", escaped_uri(uri), valve["id"].text());
    // The value of a key, or the URI.
    search(&user, "V-17").await.has_all(&["1 result<", &link, "Inlet"]);
    search(&user, uri).await.has_all(&["1 result<", "Inlet"]);
    search(&user, "inlet").await.has_all(&[
        "2 results",
        "Saved views",
        "of Valve",
        "Objects",
        &link,
    ]);
    search(&user, "pumps of the").await.has_all(&["Business Objects</h2>", "Pumps of the plant"]);
    search(&user, "audit").await.has_all(&["0 results"]);
    search(&user, &export).await.has_all(&["1 result<", &format!("/admin/exports/{export}")]);
    search(&user, "pump/").await.has_all(&["Exports</h2>", "to plant-exports"]);
    // A part of a key is not found here, but Explore finds it in its field. The label was searched already.
    let path = format!("/admin/objects/{}?filter.tag.containsAnyCase=V-1", valve["id"].text());
    let nothing = search(&user, "V-1").await;
    nothing.has_all(&[
        "0 results",
        "The field finds pages",
        &format!("<li>Valve: <a href=\"{path}\">tag</a></li>"),
    ]);
    assert!(!nothing.contains(">name</a>"), "{nothing}");
    user.page(&path).await.has_all(&["2 objects match"]);

    let admin = Person::sign_in(&server, Role::Admin).await;
    search(&admin, "audit").await.has_all(&[
        "Pages</h2>",
        "/admin/audit",
        "Settings</h2>",
        "#service.limits.audit",
    ]);
    assert!(admin.page("/admin/settings").await.contains("<tr id=\"service.limits.audit\">"));
    // Private views of others are not found.
    assert!(!search(&admin, "inlet").await.contains("of Valve"));
}

/// Encodes a URI as links of pages have it.
fn escaped_uri(uri: &str) -> String {
    escaped(uri).replace("%2D", "-").replace("%2E", ".").replace("%5F", "_").replace("%7E", "~")
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_limited_and_the_page_says_so() {
    let server = TestApp::with_pumps().await;
    let pumps: Value = (0..30).map(|n| json!({"name": format!("pump {n}")})).collect();
    server.ingest("ADD", &pumps).await.expect(200);
    let page = search(&server, "pump").await;
    page.has_all(&["These Business Objects may have more such objects: Pump."]);
    assert_eq!(page.matches("/admin/object?uri=").count(), 5, "{page}");
    let long = search(&server, &"x".repeat(201)).await;
    assert!(long.contains("more than 200 characters") && !long.contains("0 results"), "{long}");
    server.get("/admin/search?query=x").await.expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_menu_has_groups_of_the_entries_that_a_role_may_use() {
    let server = TestApp::plain().await;
    let captions = async |role| {
        let page = server.cookie_of(role).get_with("/admin", &[HTML]).await.expect(200).text();
        let captions = page.split("<p class=\"caption\" id=\"menu-").skip(1);
        captions.map(|rest| rest.split('"').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(captions(Role::User).await, ["Data", "Exchange", "Access"]);
    assert_eq!(captions(Role::Admin).await, ["Data", "Exchange", "Access", "System"]);
}
