//! Saved views: an account has its own ones, shared ones belong to all, and each says what of it no longer fits.
use penstock_test_support::prelude::*;

const VIEWS: &str = "/api/v1/views";
const PUMP: &str = "/api/v1/business-objects/Pump";

fn body(name: &str, more: &Value) -> Value {
    let mut body = json!({"name": name, "businessObject": "Pump"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn filter(field: &str, test: &str, value: &str) -> Value {
    json!({"field": field, "test": test, "value": value})
}

/// Saves a view, and returns its path.
async fn save(by: &Caller, name: &str, more: &Value) -> String {
    by.post(VIEWS, &body(name, more)).await.expect(201).header("location").to_owned()
}

/// Returns the names of the views that a caller sees.
async fn names(by: &Caller) -> Vec<String> {
    by.items(VIEWS).await.iter().map(|view| view["name"].string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_is_saved_replaced_and_deleted() {
    let server = TestApp::plain().await;
    let defined = server.define().await;
    let ada = Person::sign_in(&server, Role::User).await;
    let given = json!({
        "filters": [filter("flow", "after", "10"), filter("parts.label", "containsAnyCase", "seal")],
        "orderBy": "-flow", "columns": ["name", "flow"], "chart": {"number": "flow"},
    });
    let made = ada.post(VIEWS, &body(" Over the limit ", &given)).await.expect(201);
    let (path, view) = (made.header("location").to_owned(), made.json());
    assert_eq!(
        (made.header("etag"), path.as_str()),
        ("\"1\"", &*format!("{VIEWS}/{}", view["id"].text()))
    );
    let members: Vec<&str> = view.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        members.join(" "),
        "id name businessObject filters orderBy columns chart shared owner version createdAt updatedAt updatedBy warnings"
    );
    view.includes(&given);
    view.includes(&json!({
        "name": "Over the limit", "businessObject": defined["id"], "shared": false, "owner": ada.id,
        "version": 1, "updatedBy": ada.id, "warnings": [],
    }));
    assert_eq!(ada.read(&path).await, view);
    ada.get_with(&path, &[("If-None-Match", "\"1\"")]).await.expect(304);

    // An unchanged answer can be sent back.
    let same = ada.put(&path, &view).await.expect(200);
    assert_eq!((same.json(), same.header("etag")), (view, "\"1\""));
    let headers = [JSON, ("If-Match", "\"1\"")];
    let changed = body("All", &json!({})).to_string();
    let changed = ada.send("PUT", &path, &headers, changed).await.expect(200);
    assert_eq!(changed.header("etag"), "\"2\"");
    let names: Vec<String> = changed.json().as_object().unwrap().keys().cloned().collect();
    assert!(!names.iter().any(|name| name == "orderBy" || name == "chart"), "{names:?}");
    for method in ["PUT", "DELETE"] {
        let body = body("All", &json!({})).to_string();
        ada.send(method, &path, &headers, body).await.problem(412);
    }
    ada.send("DELETE", &path, &[("If-Match", "\"2\"")], "").await.expect(204);
    ada.get(&path).await.problem(404);
    ada.put(&path, &body("All", &json!({}))).await.problem(404);
    ada.delete(&path).await.problem(404);
    let audit = server.items("/api/v1/audit?what=view").await;
    let kinds: Vec<&str> = audit.iter().map(|event| event["what"].text()).collect();
    assert_eq!(kinds, ["view.deleted", "view.replaced", "view.created"]);
    assert!(audit[2]["detail"].has("Over the limit") && audit[2]["by"] == ada.id.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_saved_once_and_a_repeated_request_has_the_same_answer() {
    let server = TestApp::with_pumps().await;
    let ada = Person::sign_in(&server, Role::Contributor).await;
    let carla = Person::sign_in(&server, Role::Contributor).await;
    let given = body("n", &json!({"filters": [filter("flow", "after", "10")]}));
    let first = ada.post(VIEWS, &given).await.expect(201);
    let again = ada.post(VIEWS, &given).await.expect(201);
    assert_eq!((again.json(), again.header("location")), (first.json(), first.header("location")));
    let problem = ada.post(VIEWS, &body(" n", &json!({"orderBy": "flow"}))).await.problem(409);
    assert_eq!(problem["errors"][0]["pointer"], "/name");
    let other = save(&ada, "m", &json!({"shared": true})).await;
    ada.put(&other, &body("n", &json!({"shared": true}))).await.problem(409);
    assert_eq!(names(&ada).await, ["n", "m"]);
    // Others have their own names, and do not learn of private ones.
    save(&carla, "n", &json!({})).await;
    carla.put(&other, &body("n", &json!({"shared": true}))).await.expect(200);
    assert_eq!(server.items("/api/v1/audit?what=view.created").await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn own_views_are_private_and_shared_ones_belong_to_contributors() {
    let server = TestApp::with_pumps().await;
    let ada = Person::sign_in(&server, Role::Contributor).await;
    let bob = Person::sign_in(&server, Role::User).await;
    let carla = Person::sign_in(&server, Role::Contributor).await;
    let own = save(&ada, "own", &json!({})).await;
    let shared = save(&ada, "shared", &json!({"shared": true})).await;
    save(&bob, "of Bob", &json!({})).await;
    assert_eq!(names(&ada).await, ["own", "shared"]);
    assert_eq!(names(&bob).await, ["shared", "of Bob"]);
    // Only its owner sees a private view; an Admin does not.
    for other in [&*bob, &*carla, &*server] {
        other.get(&own).await.problem(404);
        other.put(&own, &body("x", &json!({}))).await.problem(404);
        other.delete(&own).await.problem(404);
    }
    // To share, and to change what others have shared, takes a Contributor.
    bob.post(VIEWS, &body("x", &json!({"shared": true}))).await.problem(403);
    bob.put(&shared, &body("x", &json!({"shared": true}))).await.problem(403);
    bob.delete(&shared).await.problem(403);
    let renamed = carla.put(&shared, &body("renamed", &json!({"shared": true}))).await.expect(200);
    renamed.json().includes(&json!({"owner": ada.id, "updatedBy": carla.id, "version": 2}));
    let problem = carla.put(&shared, &body("mine", &json!({}))).await.problem(403);
    assert_eq!(problem["errors"][0]["pointer"], "/shared");
    ada.put(&shared, &body("private", &json!({}))).await.expect(200);
    carla.get(&shared).await.problem(404);
    // An API key without an account shares views, and has none of its own.
    let problem = server.post(VIEWS, &body("x", &json!({}))).await.problem(422);
    assert_eq!(problem["errors"][0]["pointer"], "/shared");
    let of_key = save(&server, "of a key", &json!({"shared": true})).await;
    assert_eq!(bob.read(&of_key).await["owner"], Value::Null);
    carla.delete(&of_key).await.expect(204);
    // A key for one Business Object is for its data only.
    server.with_key(Role::Contributor, Some("Pump")).get(VIEWS).await.problem(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_of_something_that_is_gone_says_so() {
    let server = TestApp::with_pumps().await;
    let given = json!({
        "shared": true, "filters": [filter("name", "eq", "P-1"), filter("flow", "before", "2")],
        "orderBy": "flow", "columns": ["flow", "name"],
    });
    let path = save(&server, "slow", &given).await;
    let config = "type: object\npath: Pump:.\nfields:\n  name: {type: string, path: <https://plant.example/name>}\n";
    server.define_with(&json!({"config": config})).await;
    let view = server.read(&path).await;
    let pointers = |view: &Value| -> Vec<String> {
        view["warnings"].list().iter().map(|warning| warning["pointer"].string()).collect()
    };
    assert_eq!(pointers(&view), ["/filters/1/field", "/orderBy", "/columns/0"], "{view}");
    view.includes(&given);
    let page = server.page("/admin/views").await;
    page.has_all(&["slow", "there is no field `flow`", "flow is before or less than 2"]);
    // What does not fit is not saved again.
    let problem = server.put(&path, &view).await.problem(422);
    assert_eq!(problem["errors"].list().len(), 3, "{problem}");

    server.delete(PUMP).await.expect(204);
    let view = server.read(&path).await;
    assert_eq!(pointers(&view), ["/businessObject"]);
    assert_eq!(server.items(VIEWS).await, std::slice::from_ref(&view));
    assert!(server.page("/admin/views").await.contains("deleted"));
    let gone = format!("{VIEWS}?businessObject={}", view["businessObject"].text());
    assert_eq!(server.items(&gone).await.len(), 1);
    assert_eq!(
        server.put(&path, &view).await.problem(422)["errors"][0]["pointer"],
        "/businessObject"
    );
    server.delete(&path).await.expect(204);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_their_position() {
    let server = TestApp::with_pumps().await;
    let filters = |filter: Value| json!({"shared": true, "filters": [filter]});
    for (more, pointer, words) in [
        (json!({"businessObject": "None"}), "/businessObject", "there is no Business Object"),
        (filters(filter("flwo", "eq", "1")), "/filters/0/field", "did you mean `flow`?"),
        (filters(filter("flow", "equals", "1")), "/filters/0/test", "containsAnyCase"),
        (filters(filter("flow", "after", "high")), "/filters/0/value", "high"),
        (filters(filter("flow", "atLeast", "high")), "/filters/0/value", "high"),
        (filters(filter("name", "atMost", "1")), "/filters/0/test", "startsWith"),
        (filters(filter("flow", "startsWith", "1")), "/filters/0/test", "atMost"),
        (json!({"orderBy": "-parts"}), "/orderBy", "parts"),
        (json!({"columns": ["name", "none"]}), "/columns/1", "none"),
        (json!({"chart": {"time": "at"}}), "/chart/time", "at"),
        (json!({"private": true}), "/private", "not known"),
    ] {
        let mut given = body("n", &json!({"shared": true}));
        given.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let problem = server.post(VIEWS, &given).await.problem(422);
        let error = &problem["errors"][0];
        assert!(error["pointer"] == pointer && error["message"].has(words), "{problem}");
    }
    server.send("POST", VIEWS, &[JSON], "{").await.problem(400);
    for query in ["limit=0", "cursor=78", "owner=x"] {
        server.get(&format!("{VIEWS}?{query}")).await.problem(400);
    }
    assert!(server.items(VIEWS).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_has_a_limited_number_of_views_which_are_paged() {
    let server = TestApp::with_pumps().await;
    let ada = Person::sign_in(&server, Role::Admin).await;
    for n in 0..100 {
        save(&ada, &format!("v{n}"), &json!({})).await;
    }
    assert!(
        ada.post(VIEWS, &body("one more", &json!({}))).await.problem(409)["detail"].has("limit")
    );
    let views = ada.all(&format!("{VIEWS}?limit=40&businessObject=Pump"), 40).await;
    let found: Vec<&str> = views.iter().map(|view| view["name"].text()).collect();
    assert_eq!(found, (0..100).map(|n| format!("v{n}")).collect::<Vec<_>>());
    // Others than Admins change only 100 at once.
    let bob = Person::sign_in(&server, Role::User).await;
    let view = save(&bob, "own", &json!({})).await;
    for n in 1..100 {
        bob.put(&view, &body(&format!("own {n}"), &json!({}))).await.expect(200);
    }
    // On a slow machine one more was allowed every 10 s.
    let mut n = 100;
    let is_refused = async || {
        n += 1;
        bob.put(&view, &body(&format!("own {n}"), &json!({}))).await.status == 429
    };
    until("further changes are refused", is_refused).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_account_takes_its_own_views_with_it_and_leaves_shared_ones() {
    let server = TestApp::with_pumps().await;
    let ada = Person::sign_in(&server, Role::Contributor).await;
    let own = save(&ada, "own", &json!({})).await;
    let shared = save(&ada, "shared", &json!({"shared": true})).await;
    let id = own.rsplit('/').next().unwrap();
    assert!(server.gateway().views.get(id).is_some());
    server.delete(&format!("/api/v1/users/{}", ada.id)).await.expect(204);
    assert!(server.gateway().views.get(id).is_none());
    assert_eq!(server.read(&shared).await["owner"], ada.id.as_str());
    let dir = server.stop().await.unwrap();
    let server = TestApp::reopen(dir.path()).await;
    assert_eq!(names(&server).await, ["shared"]);
    assert_eq!(server.read("/api/v1/status").await["store"]["format"], 4);
    server.put(&shared, &body("taken over", &json!({"shared": true}))).await.expect(200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_saved_on_its_page_and_the_menu_leads_to_it() {
    let server = TestApp::plain().await;
    let defined = server.define().await;
    let id = defined["id"].text();
    let pumps =
        json!([{"name": "Feed <1>", "flow": 12}, {"name": "Feed 2", "flow": 3}, {"name": "Drain"}]);
    server.ingest("ADD", &pumps).await.expect(200);
    let ada = Person::sign_in(&server, Role::Contributor).await;
    let list = format!("/admin/objects/{id}");
    let page = ada.page(&format!("{list}?field=/name&text=feed&sort=-flow")).await;
    page.has_all(&[
        "<summary>Save view</summary>",
        "name=\"address\" value=\"filter.name.containsAnyCase=feed&#38;orderBy=-flow\">",
    ]);
    let fields = [
        ("name", "Feeds <all>"),
        ("businessObject", id),
        ("address", "filter.name.containsAnyCase=feed&orderBy=-flow&time="),
    ];
    let saved = ada.form("/admin/views", &fields).await.expect(303);
    let address = saved.header("location").to_owned();
    let view = ada.items(VIEWS).await.remove(0);
    view.includes(&json!({
        "name": "Feeds <all>", "filters": [filter("name", "containsAnyCase", "feed")], "orderBy": "-flow", "shared": false,
        "chart": {"time": ""},
    }));
    assert_eq!(address, format!("{list}?view={}", view["id"].text()));

    // The view begins the list, and further filters narrow it.
    let page = ada.page(&address).await;
    page.has_all(&[
        "2 objects match",
        "name contains feed",
        "Feeds &#60;all&#62;",
        "aria-sort=\"descending\"",
    ]);
    let narrow = ada.page(&format!("{address}&field=/flow&test=after&text=5")).await;
    narrow.has_all(&["1 object matches", "Feed &#60;1&#62;"]);
    let fields = [
        ("name", "Strong feeds"),
        ("businessObject", id),
        ("address", &format!("view={}&field=/flow&test=after&text=5", view["id"].text())),
        ("shared", "true"),
    ];
    ada.form("/admin/views", &fields).await.expect(303);
    let strong = ada.items(VIEWS).await.remove(1);
    strong.includes(&json!({
        "filters": [filter("name", "containsAnyCase", "feed"), filter("flow", "after", "5")], "orderBy": "-flow", "shared": true,
    }));

    // Everybody finds shared views in the menu of every page, and on that of the Business Object.
    let bob = Person::sign_in(&server, Role::User).await;
    for path in ["/admin", &format!("/admin/business-objects/{id}")] {
        let link = format!("<a href=\"{list}?view={}\">", strong["id"].text());
        let page = bob.page(path).await;
        assert!(page.contains(&link) && !page.contains("Feeds &#60;all"), "{path}: {page}");
    }
    bob.get(&address).await.expect(404);
    let deletion = format!("/admin/views/{}/delete", strong["id"].text());
    assert!(!bob.page("/admin/views").await.contains(&deletion));
    assert!(ada.page(&deletion).await.contains("Delete the view Strong feeds?"));
    ada.form(&deletion, &[("version", "7")]).await.expect(303);
    assert_eq!(names(&bob).await.len(), 1);
    ada.form(&deletion, &[("version", "1")]).await.expect(303);
    assert!(names(&bob).await.is_empty());

    // What cannot be saved leads back to the page, whose form has what was typed.
    let fields =
        [("name", "Feeds <1>"), ("businessObject", id), ("address", ""), ("shared", "true")];
    ada.form("/admin/views", &fields).await.expect(303);
    let fields = [
        ("name", "Feeds <1>"),
        ("businessObject", id),
        ("address", "orderBy=flow"),
        ("shared", "true"),
    ];
    let back = ada.form("/admin/views", &fields).await.expect(303);
    let back = back.header("location").to_owned();
    assert_eq!(back, format!("{list}?orderBy=flow&unsavedName=Feeds%20%3C1%3E&unsavedShared=true"));
    let page = ada.page(&back).await;
    page.has_all(&[
        "<details open>",
        "name=\"name\" value=\"Feeds &#60;1&#62;\"",
        "name=\"shared\" value=\"true\" checked",
        "name=\"address\" value=\"orderBy=flow\"",
    ]);
    let page = ada.page(&list).await;
    assert!(!page.contains("<details open>") && !page.contains("value=\"true\" checked"));
    // It is saved without what was in the address, also if that of an earlier attempt comes back.
    let fields = [("name", "Feeds 2"), ("businessObject", id), ("address", "unsavedName=a")];
    let saved = ada.form("/admin/views", &fields).await.expect(303);
    let saved = saved.header("location").to_owned();
    assert!(saved.starts_with(&format!("{list}?view=")) && !saved.contains("unsaved"), "{saved}");
    let long = "x".repeat(100_000);
    let fields = [("name", long.as_str()), ("businessObject", id), ("address", "unsavedName=a")];
    let back = ada.form("/admin/views", &fields).await.expect(303);
    let back = back.header("location").to_owned();
    assert_eq!(back, format!("{list}?unsavedName={}", "x".repeat(200)));
}
