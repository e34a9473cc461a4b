//! Business Objects that are deleted with their objects.
use penstock_base::Preconditions;
use penstock_base::commit::NoClient;
use penstock_model::catalogue::{Catalogue, Requester};
use penstock_model::testing::catalogue_settings;
use penstock_store::{Error, Options, Read, Store};
use penstock_test_support::prelude::*;

const ALL: &str = "/api/v1/business-objects";
const PUMP: &str = "/api/v1/business-objects/Pump";

/// Defines a Business Object of the pumps with the name `shared`, so that they belong to two.
async fn define_shared(server: &TestApp) {
    let config = "type: object\npath: Pump:.\nfields:\n  kind: {type: resource, path: <https://plant.example/kind>}\n";
    let definition = json!({
        "name": "Shared", "config": config,
        "conditions": [{"predicate": "https://plant.example/kind", "value": "https://plant.example/shared"}],
    });
    server.put(ALL, &definition).await.expect(201);
}

async fn wait_until_gone(server: &TestApp, path: &str) {
    until("it is gone", async || server.get(path).await.status == 404).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_objects_are_deleted_except_those_of_other_business_objects() {
    let server = TestApp::plain().await;
    server.define_with(&json!({"exportOnChange": true, "debounce": "0s"})).await;
    define_shared(&server).await;
    let pump = |number: usize| json!({"uri": format!("https://plant.example/p/{number}"), "name": "n", "parts": [{"label": "seal"}]});
    let pumps: Vec<Value> = (0..450).map(pump).collect();
    server.ingest("ADD", &json!(pumps)).await.expect(200);
    let shared = json!({"data": [{"uri": "https://plant.example/p/7", "kind": "https://plant.example/shared"}]});
    server.post(&format!("{ALL}/Shared"), &shared).await.expect(200);

    let delete = async |parameters: &str| server.delete(&format!("{PUMP}{parameters}")).await;
    let count = delete("?data=true&dryRun=true").await.expect(200).json();
    assert_eq!(count, json!({"objects": 449, "kept": 1}));
    for bad in ["?dryRun=true", "?data=false&dryRun=true", "?data=yes", "?objects=true"] {
        delete(bad).await.problem(400);
    }
    for role in [Role::User, Role::Contributor] {
        let caller = server.with_key(role, None);
        for parameters in ["?data=true", "?data=true&dryRun=true"] {
            caller.delete(&format!("{PUMP}{parameters}")).await.problem(403);
        }
    }
    let stale = [("If-Match", "\"7\"")];
    server.send("DELETE", &format!("{PUMP}?data=true"), &stale, "").await.problem(412);
    assert_eq!(server.get(PUMP).await.json()["enabled"], true);

    let exports = async || server.get("/api/v1/exports").await.json()["items"].clone();
    let begun = delete("?data=true").await.expect(202);
    assert_eq!(begun.header("etag"), "\"2\"");
    let object = begun.json();
    object.includes(&json!({"enabled": false, "deleting": {"remaining": 450}}));
    let exports_before = exports().await;
    wait_until_gone(&server, PUMP).await;
    delete("?data=true").await.problem(404);

    let left = server.items(&format!("{ALL}/Shared/objects")).await;
    assert_eq!(left.len(), 1);
    // The kept pump with its part.
    assert_eq!(server.get("/api/v1/status").await.json()["store"]["quads"], 4);
    assert_eq!(exports().await.list().len(), exports_before.list().len());
    let records = server.get("/api/v1/ingestions?limit=1000").await.json();
    let records = records["items"].list().iter();
    let deleted: u64 =
        records.filter(|r| r["mode"] == "DELETE").map(|r| r["deleted"].as_u64().unwrap()).sum();
    assert_eq!(deleted, 449 * 2);
    let audit = server.get("/api/v1/audit?what=business-object").await.json();
    let last =
        |at: usize| (audit["items"][at]["what"].clone(), audit["items"][at]["detail"].string());
    assert_eq!(last(0).0, "business-object.deleted");
    assert!(last(0).1.ends_with("version 2, with 449 objects"), "{}", last(0).1);
    assert_eq!(last(1).0, "business-object.deletion-begun");
    assert!(last(1).1.ends_with("version 2, with 450 objects"), "{}", last(1).1);

    // The name is free again, and its exports continue their sequence.
    server.define().await;
    server.stop().await;
}

/// Makes the definition of a Business Object unreadable for this version, as a newer one may leave it. It is then not
/// known which objects belong to it, so a deletion makes no progress.
fn break_definition(store: &Store, id: &str) {
    let change = store.transact::<_, Error>(|t| {
        let document = t.read_document("business-objects", id.as_bytes())?.unwrap();
        let text = String::from_utf8(document).unwrap().replace("path: Pump:.", "path: Pump");
        t.put_document("business-objects", id.as_bytes(), text.as_bytes())
    });
    change.unwrap();
}

/// Begins the deletion of `Pump` in a stopped gateway's data, and keeps it from making progress.
fn begin_without_progress(dir: &Path, other: &str) {
    let store = Store::open(&dir.join("data/store"), Options::default(), &mut |_| {}).unwrap();
    let catalogue = Catalogue::open(store.clone(), catalogue_settings()).unwrap();
    catalogue
        .begin_deletion(Requester::new(&NoClient, "local"), "Pump", Preconditions::default())
        .unwrap();
    break_definition(&store, other);
}

#[tokio::test(flavor = "multi_thread")]
async fn meanwhile_it_is_disabled_and_cannot_be_changed() {
    let server = TestApp::with_pumps().await;
    define_shared(&server).await;
    let other = server.get(&format!("{ALL}/Shared")).await.json()["id"].string();
    let uri = "https://plant.example/p/1";
    server.ingest("ADD", &json!([{"uri": uri, "name": "one"}])).await.expect(200);
    let dir = server.stop().await.unwrap();
    begin_without_progress(dir.path(), &other);

    let server = TestApp::reopen(dir.path()).await;
    let object = server.read(PUMP).await;
    object.includes(&json!({"enabled": false, "deleting": {"remaining": 1}}));
    let listed = server.get(ALL).await.json();
    assert_eq!(listed["items"][0]["deleting"], json!({"remaining": 1}));
    let id = object["id"].text();
    for (method, path, body) in [
        ("PUT", ALL.to_owned(), definition()),
        ("PUT", format!("{ALL}/{id}?force=true"), object.clone()),
        ("POST", format!("{PUMP}?mode=ADD"), json!({"data": [{"name": "two"}]})),
        ("POST", format!("{PUMP}?mode=VALIDATE"), json!({"data": [{"name": "two"}]})),
        ("POST", format!("{PUMP}/push"), json!({})),
        ("DELETE", PUMP.to_owned(), json!({})),
    ] {
        let answer = server.send(method, &path, &[JSON], body.to_string()).await;
        answer.refused(409, "is being deleted with its objects");
    }
    // Reading continues, and the same request again changes nothing.
    server.get(&format!("{PUMP}/objects/{}", escaped(uri))).await.expect(200);
    let query = json!({"query": "{ pump(uri: \"https://plant.example/p/1\") { name } }"});
    let answer = server.post("/graphql", &query).await.expect(200).json();
    assert_eq!(answer["data"]["pump"]["name"], "one", "{answer}");
    for headers in [&[][..], &[("If-Match", "\"1\"")]] {
        let again =
            server.send("DELETE", &format!("{PUMP}?data=true"), headers, "").await.expect(202);
        assert_eq!(again.json(), server.get(PUMP).await.json());
    }
    let page = server.page(&format!("/admin/business-objects/{id}")).await;
    assert!(
        page.contains("It is being deleted with its objects.") && !page.contains("/edit"),
        "{page}"
    );
    let list = server.page("/admin/business-objects").await;
    assert!(list.contains("being deleted") && list.contains("1 left"), "{list}");

    // Without the definition that keeps it from continuing, it ends after its next retry.
    server.delete(&format!("{ALL}/Shared")).await.expect(204);
    wait_until_gone(&server, PUMP).await;
    assert_eq!(server.get("/api/v1/status").await.json()["store"]["quads"], 0);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_what_is_deleted_before_it_is_confirmed() {
    let server = TestApp::plain().await;
    let id = server.define().await["id"].string();
    define_shared(&server).await;
    let pumps: Vec<Value> = (0..3)
        .map(|n| json!({"uri": format!("https://plant.example/p/{n}"), "name": "n"}))
        .collect();
    server.ingest("ADD", &json!(pumps)).await.expect(200);
    let shared = json!({"data": [{"uri": "https://plant.example/p/1", "kind": "https://plant.example/shared"}]});
    server.post(&format!("{ALL}/Shared"), &shared).await.expect(200);
    let path = format!("/admin/business-objects/{id}/delete");
    let page = server.page(&path).await;
    page.has_all(&[
        "<li>3 objects: they stay in the store, unless you also delete them.",
        "Also delete its objects: 2 objects",
        "What also belongs to another Business Object stays: 1 object.",
    ]);
    let answer = server.send("POST", &path, &[FORM], "version=1&data=true").await;
    assert_eq!(answer.header("location"), "/admin/business-objects");
    wait_until_gone(&server, PUMP).await;
    assert_eq!(server.get("/api/v1/status").await.json()["store"]["quads"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_deletes_objects_that_require_a_review_only_with_a_bypass() {
    let server = TestApp::plain().await;
    server.define_with(&json!({"review": "required"})).await;
    let defined = server.read(PUMP).await;
    let path = format!("/admin/business-objects/{}/delete", defined["id"].text());
    assert!(server.page(&path).await.contains("name=\"bypass\""));
    let refused = server.send("POST", &path, &[FORM], "version=1&data=true").await;
    assert_eq!(refused.header("location"), path);
    let begun = server.send("POST", &path, &[FORM], "version=1&data=true&bypass=true").await;
    assert_eq!(begun.header("location"), "/admin/business-objects");
    wait_until_gone(&server, PUMP).await;
    let path = "/api/v1/audit?what=business-object.deletion-begun";
    let events = server.read(path).await;
    assert!(events["items"][0]["detail"].has("bypass=true"), "{events}");
}
