//! The pages with which an operator understands and repairs the gateway: targets, overview, exports, ingestions and the
//! sign-in.
use crate::server::{Server, connect, escaped};
use penstock_base::Role;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

const HTML: (&str, &str) = ("Accept", "text/html");

/// Waits until the target `away` is blocked.
async fn wait_until_blocked(server: &Server) {
    loop {
        let targets = server.get("/api/v1/targets").await.expect(200).json();
        let target = targets["items"].as_array().unwrap().iter().find(|one| one["name"] == "away");
        if target.is_some_and(|target| target["blocked"].is_string()) {
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the page at this path, as a User with a session sees it.
async fn user_page(server: &Server, path: &str) -> String {
    let cookie = server.sign_in(Role::User);
    let headers = [("Cookie", cookie.as_str()), HTML];
    connect(server.address, "GET", path, &headers, "").await.expect(200).text()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_blocked_target_has_the_cause_the_remedy_and_the_settings() {
    let target = "--service.export.targets.away";
    let server = Server::start(&[
        &format!("{target}.type=s3"),
        // No server listens there.
        &format!("{target}.endpoint=http://127.0.0.1:9"),
        &format!("{target}.access-key-id=key"),
        &format!("{target}.secret-access-key=a-secret-of-the-target"),
    ])
    .await;
    server.define_with(&json!({"pushTargets": [{"bucketName": "away"}]})).await;
    server.ingest("ADD", &json!([{"name": "P-1"}])).await.expect(200);
    server.send("POST", "/api/v1/business-objects/Pump/push", &[], "").await.expect(202);
    wait_until_blocked(&server).await;

    let page = server.get("/admin/targets/away").await.expect(200).text();
    for part in [
        "What failed",
        "Export 1 of Pump was not delivered.",
        "the connection was refused",
        "Check that the server runs",
        "<code>service.export.targets.away.endpoint</code> = <code>http://127.0.0.1:9</code>",
        "<code>******</code>",
        "service.export.targets.away.ca-file",
        "systemctl restart penstock",
        "Retry now",
    ] {
        assert!(page.contains(part), "{part}\nis not in\n{page}");
    }
    // Settings of other types of targets are not offered.
    assert!(!page.contains("service.export.targets.away.bearer-token"), "{page}");
    assert!(!page.contains("a-secret-of-the-target"));
    // One wording of the state everywhere.
    let blocked = "<span class=\"state bad\">blocked</span>";
    for path in ["/admin", "/admin/targets", "/admin/targets/away"] {
        let page = server.get(path).await.expect(200).text();
        assert!(page.contains(blocked) && page.contains("/admin/targets/away"), "{path}: {page}");
    }
    let page = user_page(&server, "/admin/targets/away").await;
    assert!(page.contains("the connection was refused") && !page.contains("ca-file"), "{page}");
    assert!(!page.contains("Retry now") && !page.contains("Test connection"), "{page}");
    server.get("/admin/targets/nowhere").await.expect(404);
}

/// More objects than the other tests of this process ingest in the meantime.
const OBJECTS: u64 = 1_000;

/// Returns the numbers of changed and of unchanged objects in the plot with this heading.
fn counted_objects(page: &str, heading: &str) -> [u64; 2] {
    let plot = page.split_once(&format!("aria-label=\"{heading}: changed: ")).unwrap().1;
    let (changed, rest) = plot.split_once(", sent again unchanged: ").unwrap();
    let unchanged = rest.split(';').next().unwrap();
    let number = |count: &str| count.replace(" in total", "").replace(',', "").parse().unwrap();
    [changed, unchanged].map(number)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_counts_changes_apart_from_what_was_sent_again() {
    let server = Server::start(&[]).await;
    server.define().await;
    let uri = |n: u64| format!("https://plant.example/p/{n}");
    let pumps = (0..OBJECTS).map(|n| json!({"uri": uri(n), "name": "P"})).collect::<Value>();
    let headings = [("/admin", "Objects per minute"), ("/admin?range=day", "Objects per hour")];
    let mut before = Vec::new();
    for (path, heading) in headings {
        before.push(counted_objects(&server.get(path).await.expect(200).text(), heading));
    }
    server.ingest("ADD", &pumps).await.expect(200);
    server.ingest("ADD", &pumps).await.expect(200);
    for ((path, heading), before) in headings.into_iter().zip(before) {
        let page = server.get(path).await.expect(200).text();
        let counted = counted_objects(&page, heading);
        for (count, before) in counted.into_iter().zip(before) {
            assert!(count >= before + OBJECTS, "{counted:?}, before {before:?}");
        }
        for part in ["Memory: in use: ", "Disk: free: ", "No export waits.", "came in"] {
            assert!(page.contains(part), "{part}\nis not in\n{page}");
        }
    }
    server.get("/admin?range=year").await.expect(400);
}

/// Exports `Pump`, and returns the id of the export.
async fn push(server: &Server) -> String {
    let pushed = server.send("POST", "/api/v1/business-objects/Pump/push", &[], "").await;
    pushed.expect(202).json()["exports"][0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_shown_as_a_table_and_compared_with_the_one_before() {
    let server = Server::start(&[]).await;
    server.define().await;
    let pump =
        |n: u32, name: &str| json!({"uri": format!("urn:pump:{n}"), "name": name, "flow": n});
    let pumps = json!([pump(1, "one"), pump(2, "two <b>"), pump(3, "three")]);
    server.ingest("ADD", &pumps).await.expect(200);
    let first = push(&server).await;
    let page = server.get(&format!("/admin/exports/{first}")).await.expect(200).text();
    assert!(page.contains("All 3 objects."), "{page}");
    assert!(page.contains("<td data-label=\"name\">two &#60;b&#62;</td>"), "{page}");
    let difference = format!("/admin/exports/{first}?show=difference");
    let page = server.get(&difference).await.expect(200).text();
    assert!(page.contains("every object is new"), "{page}");
    assert!(
        page.contains("<dt>Added</dt><dd>3</dd>")
            && page.contains(r#"uri=urn%3Apump%3A3">three</a>"#),
        "{page}"
    );

    server.ingest("UPDATE", &json!([{"uri": "urn:pump:2", "name": "second"}])).await.expect(200);
    server.ingest("DELETE", &json!([{"uri": "urn:pump:1"}])).await.expect(200);
    server.ingest("ADD", &json!([pump(4, "four")])).await.expect(200);
    let second = push(&server).await;
    let difference = format!("/admin/exports/{second}?show=difference");
    let page = server.get(&difference).await.expect(200).text();
    for part in [
        &format!("/admin/exports/{first}\">export 1</a>"),
        "<dt>Added</dt><dd>1</dd>",
        "<dt>Changed</dt><dd>1</dd>",
        "<dt>Removed</dt><dd>1</dd>",
        "<dt>Unchanged</dt><dd>1</dd>",
        "<del>two &#60;b&#62;</del>",
        "<ins>second</ins>",
        r#"uri=urn%3Apump%3A1">"#,
        r#"uri=urn%3Apump%3A4">four</a>"#,
    ] {
        assert!(page.contains(part), "{part}\nis not in\n{page}");
    }
    server.get(&format!("/admin/exports/{second}?show=all")).await.expect(400);
}

/// Waits until this many exports are recorded and all of them are delivered. Returns their ids, the newest first.
async fn wait_until_delivered(server: &Server, count: usize) -> Vec<String> {
    loop {
        let exports = server.get("/api/v1/exports").await.expect(200).json();
        let exports = exports["items"].as_array().unwrap();
        if exports.len() == count && exports.iter().all(|one| one["status"] == "delivered") {
            return exports.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
        }
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_compared_with_the_exports_before_and_shortened() {
    let server = Server::start(&[]).await;
    server.define_with(&json!({"exportOnChange": true, "debounce": "0s"})).await;
    let pump = |n: u32, name: &str| json!({"uri": format!("urn:pump:{n}"), "name": name});
    let long = "x".repeat(100_000);
    server.ingest("ADD", &json!([pump(1, "one"), pump(2, &long)])).await.expect(200);
    wait_until_delivered(&server, 1).await;
    server.ingest("UPDATE", &json!([pump(1, "first")])).await.expect(200);
    wait_until_delivered(&server, 2).await;
    let longer = format!("{long}y");
    server.ingest("REPLACE", &json!([pump(2, &longer), pump(3, "three")])).await.expect(200);
    let ids = wait_until_delivered(&server, 3).await;
    let path = format!("/admin/exports/{}?show=difference", ids[0]);
    let page = server.get(&path).await.expect(200).text();
    for part in [
        &format!("/admin/exports/{}\">export 2</a> and the ones before, back to export 1", ids[1]),
        "<dt>Added</dt><dd>1</dd>",
        "<dt>Changed</dt><dd>1</dd>",
        r#"uri=urn%3Apump%3A3">three</a>"#,
        "xy</ins>",
    ] {
        assert!(page.contains(part), "{part}\nis not in\n{page}");
    }
    assert!(page.len() < 50_000, "{}", page.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_record_of_the_full_export_before_nothing_is_called_new() {
    let server = Server::start(&["--service.limits.history=1"]).await;
    server.define().await;
    server.ingest("ADD", &json!([{"name": "P-1"}])).await.expect(200);
    push(&server).await;
    wait_until_delivered(&server, 1).await;
    let second = push(&server).await;
    while wait_until_delivered(&server, 1).await != [second.clone()] {}
    let path = format!("/admin/exports/{second}?show=difference");
    let page = server.get(&path).await.expect(200).text();
    assert!(page.contains("no earlier full export for the same target"), "{page}");
    assert!(!page.contains("every object is new"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_say_why_a_run_exported_nothing() {
    let server = Server::start(&[]).await;
    let id = server.define().await["id"].as_str().unwrap().to_owned();
    let pushed = server.send("POST", "/api/v1/business-objects/Pump/push", &[], "").await;
    let reason = pushed.expect(202).json()["reason"].as_str().unwrap().to_owned();
    let reason = reason.split(" of ").next().unwrap().replace('<', "&#60;").replace('>', "&#62;");
    for path in ["/admin/exports".to_owned(), format!("/admin/business-objects/{id}")] {
        let page = server.get(&path).await.expect(200).text();
        assert!(page.contains(&reason), "{reason}\nis not in\n{page}");
    }
    server.ingest("ADD", &json!([{"name": "P-1"}])).await.expect(200);
    push(&server).await;
    let page = server.get("/admin/exports").await.expect(200).text();
    assert!(!page.contains("exported nothing"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ingestions_have_a_page_and_names() {
    let server = Server::start(&[]).await;
    server.define().await;
    let path = "/api/v1/business-objects/Pump?onError=skip";
    let data = json!({"data": [{"name": "P-1"}, {"name": "P-2", "flow": "fast"}]});
    let answer = server.json("POST", path, &data).await.expect(200).json();
    let id = answer["ingestionId"].as_str().unwrap();
    let page = server.get(&format!("/admin/ingestions/{id}")).await.expect(200).text();
    for part in ["<h1>ADD into Pump, ", "API key &#34;tests&#34;", "<dd>1 <a", ">Dead letters</a>"]
    {
        assert!(page.contains(part), "{part}\nis not in\n{page}");
    }
    let filtered = server.get(&format!("/admin/rejected?ingestion={id}")).await.expect(200).text();
    assert!(filtered.contains(&format!("/admin/ingestions/{id}\">ADD into Pump, ")), "{filtered}");
    server.get(&format!("/admin/ingestions/{}", uuid::Uuid::now_v7())).await.expect(404);
}

/// Returns the links of a page: the attributes of each.
fn link_tags(page: &str) -> impl Iterator<Item = &str> {
    page.split("<a ").skip(1).map(|part| part.split('>').next().unwrap_or_default())
}

/// Returns the pages of the interface that are linked from this one.
fn linked_pages(page: &str) -> Vec<String> {
    let addresses =
        link_tags(page).filter_map(|tag| tag.split("href=\"").nth(1)?.split('"').next());
    let addresses = addresses.map(|address| address.replace("&amp;", "&").replace("&#38;", "&"));
    addresses
        .filter_map(|address| Some(address.get(address.find("/admin")?..)?.to_owned()))
        // An API key has no profile.
        .filter(|path| !path.contains('#') && path != "/admin/profile")
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_link_of_any_page_leads_to_json_except_a_download() {
    let server = Server::start(&[]).await;
    server.define_with(&json!({"review": "optional"})).await;
    let path = "/api/v1/business-objects/Pump?onError=skip";
    let data =
        json!({"data": [{"uri": "urn:pump:1", "name": "P-1"}, {"name": "P-2", "flow": "fast"}]});
    server.json("POST", path, &data).await.expect(200);
    push(&server).await;
    let path = "/api/v1/business-objects/Pump?mode=MERGE&review=true";
    let data = json!({"data": [{"uri": "urn:pump:1", "name": "P-3"}]});
    server.json("POST", path, &data).await.expect(202);
    server.json("PUT", "/api/v1/groups/operators", &json!({"members": []})).await.expect(201);
    let mut waiting = vec!["/admin".to_owned()];
    let mut visited = std::collections::BTreeSet::new();
    while let Some(path) = waiting.pop() {
        if !visited.insert(path.clone()) {
            continue;
        }
        let page = server.get(&path).await.expect(200).text();
        for tag in link_tags(&page) {
            assert!(!tag.contains("/api/v1/") || tag.contains("download="), "{path}: {tag}");
        }
        waiting.extend(linked_pages(&page).into_iter().filter(|path| !visited.contains(path)));
        assert!(visited.len() < 400, "{visited:?}");
    }
    for page in [
        "/admin/object?",
        "/admin/object/edit?",
        "/admin/exports/",
        "/admin/rejected/",
        "/admin/ingestions/",
        "/admin/changes/",
        "/admin/groups/",
    ] {
        assert!(visited.iter().any(|path| path.starts_with(page)), "{page}: {visited:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_does_not_learn_the_names_of_the_keys_of_others() {
    let server = Server::start(&[]).await;
    let id = server.define().await["id"].as_str().unwrap().to_owned();
    let path = format!("/admin/business-objects/{id}");
    let name = "API key &#34;tests&#34;";
    let page = server.get(&path).await.expect(200).text();
    assert!(page.contains(name), "{page}");
    let page = user_page(&server, &path).await;
    assert!(page.contains("Last saved") && !page.contains("&#34;tests&#34;"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sign_in_says_where_the_first_password_is_until_it_is_changed() {
    let server = Server::start(&[]).await;
    let sign_in =
        async || connect(server.address, "GET", "/login", &[HTML], "").await.expect(200).text();
    let page = sign_in().await;
    assert!(
        page.contains("User name or email") && page.contains("initial-admin-password"),
        "{page}"
    );
    assert!(!page.contains(server.dir().to_str().unwrap()), "{page}");
    let users = server.get("/api/v1/users").await.expect(200).json();
    let is_first = |user: &&Value| user["email"] == "admin";
    let first = users["items"].as_array().unwrap().iter().find(is_first).unwrap()["id"].clone();
    let path = format!("/api/v1/users/{}/password", escaped(first.as_str().unwrap()));
    let changed =
        server.json("POST", &path, &json!({"password": "a long password of its own"})).await;
    assert!(changed.status < 300, "{changed:?}");
    assert!(!sign_in().await.contains("initial-admin-password"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_editor_shows_the_fields_and_the_next_runs() {
    let server = Server::start(&[]).await;
    let runs = json!({"schedule": "30 6 * * 1-5", "timezone": "Europe/Vienna"});
    server.define_with(&runs).await;
    let defined = server.get("/api/v1/business-objects").await.expect(200).json();
    let id = defined["items"][0]["id"].as_str().unwrap();
    let page = server.get(&format!("/admin/business-objects/{id}")).await.expect(200).text();
    assert!(page.contains("Monday to Friday at 06:30 (Europe/Vienna)"), "{page}");
    assert!(page.contains("next runs: ") && page.contains(" 06:30:00"), "{page}");
    let page = server.get(&format!("/admin/business-objects/{id}/edit")).await.expect(200).text();
    for part in [
        "Runs Monday to Friday at 06:30, Europe/Vienna time.",
        "<strong>parts</strong> <span class=\"small\">object in Part, several</span>",
        "<ul>\n<li><strong>label</strong>",
    ] {
        assert!(page.contains(part), "{part}\nis not in\n{page}");
    }
    // Deletions are apart from the other actions.
    let deletion = format!("/admin/business-objects/{id}/delete");
    let list = server.get("/admin/business-objects").await.expect(200).text();
    assert!(!list.contains(&deletion), "{list}");
    let page = server.get(&format!("/admin/business-objects/{id}")).await.expect(200).text();
    let apart = page.split_once("<section class=\"apart\"").unwrap().1;
    assert!(apart.contains(&deletion) && page.matches(&deletion).count() == 1, "{page}");
}
