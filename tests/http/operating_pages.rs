//! The pages with which an operator understands and repairs the gateway: targets, overview, exports, ingestions and the
//! sign-in.
use penstock_test_support::prelude::*;

/// Returns the page at this path, as a User with a session sees it.
async fn user_page(server: &TestApp, path: &str) -> String {
    server.cookie_of(Role::User).get_with(path, &[HTML]).await.expect(200).text()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_blocked_target_has_the_cause_the_remedy_and_the_settings() {
    // No server listens there.
    let settings = s3_settings("away", "http://127.0.0.1:9", "a-secret-of-the-target");
    let server = TestApp::start(&lent(&settings)).await;
    server.define_with(&json!({"pushTargets": [{"bucketName": "away"}]})).await;
    server.ingest("ADD", &json!([{"name": "P-1"}])).await.expect(200);
    server.post_empty("/api/v1/business-objects/Pump/push").await.expect(202);
    until("the target `away` is blocked", async || {
        let targets = server.items("/api/v1/targets").await;
        targets.iter().any(|target| target["name"] == "away" && target["blocked"].is_string())
    })
    .await;

    let page = server.page("/admin/targets/away").await;
    page.has_all(&[
        "What failed",
        "Export 1 of Pump was not delivered.",
        "the connection was refused",
        "Check that the server runs",
        "<code>service.export.targets.away.endpoint</code> = <code>http://127.0.0.1:9</code>",
        "<code>******</code>",
        "service.export.targets.away.ca-file",
        "systemctl restart penstock",
        "Retry now",
    ]);
    // Settings of other types of targets are not offered.
    assert!(!page.contains("service.export.targets.away.bearer-token"), "{page}");
    assert!(!page.contains("a-secret-of-the-target"));
    // One wording of the state everywhere.
    let blocked = "<span class=\"state bad\">blocked</span>";
    for path in ["/admin", "/admin/targets", "/admin/targets/away"] {
        let page = server.page(path).await;
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
    let server = TestApp::with_pumps().await;
    let uri = |n: u64| format!("https://plant.example/p/{n}");
    let pumps = (0..OBJECTS).map(|n| json!({"uri": uri(n), "name": "P"})).collect::<Value>();
    let headings = [("/admin", "Objects per minute"), ("/admin?range=day", "Objects per hour")];
    let mut before = Vec::new();
    for (path, heading) in headings {
        before.push(counted_objects(&server.page(path).await, heading));
    }
    server.ingest("ADD", &pumps).await.expect(200);
    server.ingest("ADD", &pumps).await.expect(200);
    for ((path, heading), before) in headings.into_iter().zip(before) {
        let page = server.page(path).await;
        let counted = counted_objects(&page, heading);
        for (count, before) in counted.into_iter().zip(before) {
            assert!(count >= before + OBJECTS, "{counted:?}, before {before:?}");
        }
        page.has_all(&["Memory: in use: ", "Disk: free: ", "No export waits.", "came in"]);
    }
    server.get("/admin?range=year").await.expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_shown_as_a_table_and_compared_with_the_one_before() {
    let server = TestApp::with_pumps().await;
    let pump =
        |n: u32, name: &str| json!({"uri": format!("urn:pump:{n}"), "name": name, "flow": n});
    let pumps = json!([pump(1, "one"), pump(2, "two <b>"), pump(3, "three")]);
    server.ingest("ADD", &pumps).await.expect(200);
    let first = server.push("Pump").await;
    let page = server.page(&format!("/admin/exports/{first}")).await;
    assert!(page.contains("All 3 objects."), "{page}");
    assert!(page.contains("<td data-label=\"name\">two &#60;b&#62;</td>"), "{page}");
    let difference = format!("/admin/exports/{first}?show=difference");
    let page = server.page(&difference).await;
    assert!(page.contains("every object is new"), "{page}");
    page.has_all(&["<dt>Added</dt><dd>3</dd>", r#"uri=urn%3Apump%3A3">three</a>"#]);

    server.ingest("UPDATE", &json!([{"uri": "urn:pump:2", "name": "second"}])).await.expect(200);
    server.ingest("DELETE", &json!([{"uri": "urn:pump:1"}])).await.expect(200);
    server.ingest("ADD", &json!([pump(4, "four")])).await.expect(200);
    let second = server.push("Pump").await;
    let difference = format!("/admin/exports/{second}?show=difference");
    let page = server.page(&difference).await;
    page.has_all(&[
        &format!("/admin/exports/{first}\">export 1</a>"),
        "<dt>Added</dt><dd>1</dd>",
        "<dt>Changed</dt><dd>1</dd>",
        "<dt>Removed</dt><dd>1</dd>",
        "<dt>Unchanged</dt><dd>1</dd>",
        "<del>two &#60;b&#62;</del>",
        "<ins>second</ins>",
        r#"uri=urn%3Apump%3A1">"#,
        r#"uri=urn%3Apump%3A4">four</a>"#,
    ]);
    server.get(&format!("/admin/exports/{second}?show=all")).await.expect(400);

    let page = server.page(&format!("/admin/exports/{second}")).await;
    assert!(page.contains("\">Pump</a></dd>"), "{page}");
    server.delete("/api/v1/business-objects/Pump").await.expect(204);
    let page = server.page(&format!("/admin/exports/{second}")).await;
    assert!(page.contains("<dd>Pump (deleted)</dd>"), "{page}");
}

/// Waits until this many exports are recorded and all of them are delivered. Returns their ids, the newest first.
async fn wait_until_delivered(server: &TestApp, count: usize) -> Vec<String> {
    until_some("all exports are delivered", async || {
        let exports = server.items("/api/v1/exports").await;
        let is_delivered = |one: &Value| one["status"] == "delivered";
        let done = exports.len() == count && exports.iter().all(is_delivered);
        done.then(|| exports.iter().map(|one| one["id"].string()).collect())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_compared_with_the_exports_before_and_shortened() {
    let server = TestApp::plain().await;
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
    let page = server.page(&path).await;
    page.has_all(&[
        &format!("/admin/exports/{}\">export 2</a> and the ones before, back to export 1", ids[1]),
        "<dt>Added</dt><dd>1</dd>",
        "<dt>Changed</dt><dd>1</dd>",
        r#"uri=urn%3Apump%3A3">three</a>"#,
        "xy</ins>",
    ]);
    assert!(page.len() < 50_000, "{}", page.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_record_of_the_full_export_before_nothing_is_called_new() {
    let server = TestApp::start(&["--service.limits.history=1"]).await;
    server.define().await;
    server.ingest("ADD", &json!([{"name": "P-1"}])).await.expect(200);
    server.push("Pump").await;
    wait_until_delivered(&server, 1).await;
    let second = server.push("Pump").await;
    while wait_until_delivered(&server, 1).await != [second.clone()] {}
    let path = format!("/admin/exports/{second}?show=difference");
    let page = server.page(&path).await;
    assert!(page.contains("no earlier full export for the same target"), "{page}");
    assert!(!page.contains("every object is new"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_say_why_a_run_exported_nothing() {
    let server = TestApp::plain().await;
    let id = server.define().await["id"].string();
    let pushed = server.post_empty("/api/v1/business-objects/Pump/push").await;
    let reason = pushed.expect(202).json()["reason"].string();
    let reason = reason.split(" of ").next().unwrap().replace('<', "&#60;").replace('>', "&#62;");
    for path in ["/admin/exports".to_owned(), format!("/admin/business-objects/{id}")] {
        let page = server.page(&path).await;
        assert!(page.contains(&reason), "{reason}\nis not in\n{page}");
    }
    server.ingest("ADD", &json!([{"name": "P-1"}])).await.expect(200);
    server.push("Pump").await;
    let page = server.page("/admin/exports").await;
    assert!(!page.contains("exported nothing"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ingestions_have_a_page_and_names() {
    let server = TestApp::with_pumps().await;
    let path = "/api/v1/business-objects/Pump?onError=skip";
    let data = json!({"data": [{"name": "P-1"}, {"name": "P-2", "flow": "fast"}]});
    let answer = server.post(path, &data).await.expect(200).json();
    let id = answer["ingestionId"].text();
    let page = server.page(&format!("/admin/ingestions/{id}")).await;
    page.has_all(&[
        "<h1>ADD into Pump, ",
        "API key &#34;tests&#34;",
        "<dd>1 <a",
        ">Dead letters</a>",
    ]);
    let filtered = server.page(&format!("/admin/rejected?ingestion={id}")).await;
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
    let server = TestApp::plain().await;
    server.define_with(&json!({"review": "optional"})).await;
    let path = "/api/v1/business-objects/Pump?onError=skip";
    let data =
        json!({"data": [{"uri": "urn:pump:1", "name": "P-1"}, {"name": "P-2", "flow": "fast"}]});
    server.post(path, &data).await.expect(200);
    server.push("Pump").await;
    let path = "/api/v1/business-objects/Pump?mode=MERGE&review=true";
    let data = json!({"data": [{"uri": "urn:pump:1", "name": "P-3"}]});
    server.post(path, &data).await.expect(202);
    server.put("/api/v1/groups/operators", &json!({"members": []})).await.expect(201);
    let mut waiting = vec!["/admin".to_owned()];
    let mut visited = BTreeSet::new();
    while let Some(path) = waiting.pop() {
        if !visited.insert(path.clone()) {
            continue;
        }
        let page = server.page(&path).await;
        for tag in link_tags(&page) {
            // The gateway marks objects in a format as a download.
            let is_download = tag.contains("download=") || tag.contains("?format=");
            assert!(!tag.contains("/api/v1/") || is_download, "{path}: {tag}");
        }
        waiting.extend(linked_pages(&page).into_iter().filter(|path| !visited.contains(path)));
        assert!(visited.len() < 400, "{visited:?}");
    }
    for page in
        ["object?", "object/edit?", "exports/", "rejected/", "ingestions/", "changes/", "groups/"]
    {
        let page = format!("/admin/{page}");
        assert!(visited.iter().any(|path| path.starts_with(&page)), "{page}: {visited:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_does_not_learn_the_names_of_the_keys_of_others() {
    let server = TestApp::plain().await;
    let id = server.define().await["id"].string();
    let path = format!("/admin/business-objects/{id}");
    let name = "API key &#34;tests&#34;";
    let page = server.page(&path).await;
    assert!(page.contains(name), "{page}");
    let page = user_page(&server, &path).await;
    assert!(page.contains("Last saved") && !page.contains("&#34;tests&#34;"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sign_in_says_where_the_first_password_is_until_it_is_changed() {
    let server = TestApp::plain().await;
    let anonymous = server.anonymous();
    let sign_in = async || anonymous.get_with("/login", &[HTML]).await.expect(200).text();
    let page = sign_in().await;
    page.has_all(&["User name or email", "initial-admin-password"]);
    assert!(!page.contains(server.dir().to_str().unwrap()), "{page}");
    let users = server.read("/api/v1/users").await;
    let is_first = |user: &&Value| user["email"] == "admin";
    let first = users["items"].list().iter().find(is_first).unwrap()["id"].clone();
    let path = format!("/api/v1/users/{}/password", escaped(first.text()));
    let changed = server.post(&path, &json!({"password": "a long password of its own"})).await;
    assert!(changed.status < 300, "{changed:?}");
    assert!(!sign_in().await.contains("initial-admin-password"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_editor_shows_the_fields_and_the_next_runs() {
    let server = TestApp::plain().await;
    let runs = json!({"schedule": "30 6 * * 1-5", "timezone": "Europe/Vienna"});
    server.define_with(&runs).await;
    let defined = server.items("/api/v1/business-objects").await;
    let id = defined[0]["id"].text();
    let page = server.page(&format!("/admin/business-objects/{id}")).await;
    assert!(page.contains("Monday to Friday at 06:30 (Europe/Vienna)"), "{page}");
    assert!(page.contains("next runs: ") && page.contains(" 06:30:00"), "{page}");
    let page = server.page(&format!("/admin/business-objects/{id}/edit")).await;
    page.has_all(&[
        "Runs Monday to Friday at 06:30, Europe/Vienna time.",
        "<strong>parts</strong> <span class=\"small\">object in Part, several</span>",
        "<ul>\n<li><strong>label</strong>",
    ]);
    // Deletions are apart from the other actions.
    let deletion = format!("/admin/business-objects/{id}/delete");
    let list = server.page("/admin/business-objects").await;
    assert!(!list.contains(&deletion), "{list}");
    let page = server.page(&format!("/admin/business-objects/{id}")).await;
    let apart = page.split_once("<section class=\"apart\"").unwrap().1;
    assert!(apart.contains(&deletion) && page.matches(&deletion).count() == 1, "{page}");
}
