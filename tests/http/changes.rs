//! Changes under review over HTTP: who sees them, who takes which step, and that nothing pending is visible elsewhere.
use crate::events::EventStream;
use penstock_test_support::prelude::*;

mod decided;
mod listed;

/// A name that exists only in a pending change.
const PENDING: &str = "only-in-the-change";

struct Plant {
    server: TestApp,
    author: Person,
    owner: Person,
    approver: Person,
    stranger: Person,
}

impl Plant {
    async fn new(review: &str, arguments: &[&str]) -> Self {
        Self::on(TestApp::start(arguments).await, review).await
    }

    async fn on(server: TestApp, review: &str) -> Self {
        let author = Person::sign_in(&server, Role::Contributor).await;
        let owner = Person::sign_in(&server, Role::User).await;
        let approver = Person::sign_in(&server, Role::Contributor).await;
        let stranger = Person::sign_in(&server, Role::Contributor).await;
        let group = json!({"members": [approver.id]});
        server.put("/api/v1/groups/approvers", &group).await.expect(201);
        let approvers = json!(["group:approvers"]);
        server.define_with(&json!({"review": review, "approvers": approvers})).await;
        Self { server, author, owner, approver, stranger }
    }

    /// Submits an object with this name as the author, and returns the answer.
    async fn submit(&self, name: &str) -> Value {
        let path = format!("/api/v1/business-objects/Pump?changeOwners=user:{}", self.owner.id);
        let body = json!({"data": [{"name": name, "parts": [{"label": "seal"}]}]});
        let answer = self.author.post(&path, &body).await.expect(202);
        let change = answer.json();
        let location = format!("/api/v1/changes/{}", change["id"].text());
        assert!(answer.header("location").ends_with(&location));
        change
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_needs_two_accounts_and_what_was_seen() {
    let plant = Plant::new("required", &[]).await;
    let Plant { server, author, owner, approver, stranger } = &plant;
    let submitted = plant.submit("one").await;
    let id = submitted["id"].text();
    assert_eq!((&submitted["state"], &submitted["created"]), (&json!("submitted"), &json!(1)));
    let uri = submitted["objects"][0]["uri"].text();

    let path = format!("/api/v1/changes/{id}");
    for sees in [author, owner, approver] {
        let change = sees.get(&path).await.expect(200);
        assert_eq!(change.header("etag"), "\"1\"");
        let change = change.json();
        assert!(change["request"].has("one"), "{change}");
        assert_eq!(change["applicability"], json!({"applies": true}));
        assert_eq!(change["difference"]["items"][0]["after"]["name"], "one");
        assert_eq!(change["changeOwners"], json!([format!("user:{}", owner.id)]));
        assert_eq!(change["unknownChangeOwners"].is_array(), sees.id == approver.id);
    }
    stranger.get(&path).await.problem(404);
    server.get(&path).await.expect(200);
    let lists = |query: &str| format!("/api/v1/changes?{query}");
    for (who, query, count) in [
        (author, "role=author", 1),
        (author, "role=approver", 0),
        (owner, "role=owner&state=submitted", 1),
        (approver, "role=approver&businessObject=Pump", 1),
        (approver, "state=approved", 0),
        (stranger, "", 0),
    ] {
        let listed = who.items(&lists(query)).await;
        assert_eq!(listed.len(), count, "{query}");
    }

    author.step(id, "approve", "\"1\"").await.refused(403, "author");
    owner.step(id, "approve", "\"1\"").await.problem(403);
    stranger.step(id, "approve", "\"1\"").await.problem(404);
    stranger.step(id, "withdraw", "").await.problem(404);
    // An Admin that is no approver sees it, and does not decide.
    let admin = Person::sign_in(server, Role::Admin).await;
    admin.step(id, "approve", "\"1\"").await.problem(403);
    approver.step(id, "approve", "").await.problem(428);
    approver.step(id, "approve", "*").await.problem(428);
    approver.step(id, "approve", "\"2\"").await.problem(412);

    let approved = approver.step(id, "approve", "\"1\"").await.expect(200).json();
    assert_eq!((&approved["state"], &approved["version"]), (&json!("approved"), &json!(2)));
    assert_eq!(approver.step(id, "approve", "\"1\"").await.expect(200).json(), approved);
    author.step(id, "withdraw", "").await.problem(409);
    let record = server.read(&format!("/api/v1/ingestions/{id}")).await;
    record.includes(&json!({"author": author.id, "approvedBy": approver.id}));
    let stored = format!("/api/v1/business-objects/Pump/objects/{}", escaped(uri));
    assert_eq!(server.read(&stored).await["name"], "one");
    let events = server.items("/api/v1/audit?what=change").await;
    let kinds: Vec<_> = events.iter().map(|e| &e["what"]).collect();
    assert_eq!(kinds, ["change.approved", "change.submitted"]);

    server.delete("/api/v1/business-objects/Pump").await.expect(204);
    assert_eq!(approver.step(id, "approve", "\"1\"").await.expect(200).json(), approved);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_author_that_was_disabled_publishes_nothing_and_a_group_decides_at_that_moment() {
    let plant = Plant::new("required", &[]).await;
    let Plant { server, author, approver, .. } = &plant;
    let id = plant.submit("one").await["id"].string();
    let enable = async |enabled: bool| {
        let path = format!("/api/v1/users/{}", author.id);
        server.put(&path, &json!({"enabled": enabled})).await.expect(200);
    };
    enable(false).await;
    approver.step(&id, "approve", "\"1\"").await.refused(409, "disabled");
    let change = approver.read(&format!("/api/v1/changes/{id}")).await;
    let applicability = &change["applicability"];
    assert_eq!(applicability["applies"], false);
    assert!(applicability.to_string().contains("disabled"), "{applicability}");
    enable(true).await;
    let members = async |members: &[&str]| {
        let group = json!({"members": members});
        server.put("/api/v1/groups/approvers", &group).await.expect(200);
    };
    members(&[]).await;
    approver.step(&id, "approve", "\"1\"").await.problem(404);
    approver.get(&format!("/api/v1/changes/{id}")).await.problem(404);
    let found = server.read("/api/v1/business-objects/Pump").await;
    let warnings = found["warnings"].to_string();
    assert!(warnings.contains("no enabled account could approve"), "{warnings}");
    members(&[&approver.id]).await;
    let reject = format!("/api/v1/changes/{id}/reject");
    let rejected = approver.post(&reject, &json!({"comment": "too high"})).await.expect(200).json();
    assert_eq!(rejected["history"][1]["comment"], "too high");
    // Names for everybody, members for Admins.
    let seen = approver.items("/api/v1/groups").await;
    assert_eq!(json!(seen), json!([{"name": "approvers"}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_difference_are_of_one_version() {
    let plant = Plant::new("required", &[]).await;
    let Plant { author, approver, .. } = &plant;
    let pumps: Vec<_> = (0..150).map(|number| json!({"name": format!("pump {number}")})).collect();
    let path = "/api/v1/business-objects/Pump";
    let sent = author.post(path, &json!({"data": pumps})).await.expect(202).json();
    let path = format!("/api/v1/changes/{}", sent["id"].text());
    let first = approver.read(&path).await;
    let first = &first["difference"];
    let rest = format!("{path}?cursor={}", first["next"].text());
    let second = approver.read(&rest).await;
    assert_eq!([first, &second["difference"]].map(|page| page["items"].list().len()), [100, 50]);
    let comment = json!({"comment": "as it is now"});
    let rebased = author.post(&format!("{path}/rebase"), &comment).await;
    assert_eq!(rebased.expect(200).json()["version"], 2);
    approver.get(&rest).await.problem(409);
    approver.get(&format!("{path}?cursor=W10")).await.problem(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_change_go_only_to_those_who_see_it() {
    const PATH: &str = "/api/v1/events";
    let plant = Plant::new("required", &[]).await;
    let Plant { server, author, owner, approver, stranger } = &plant;
    let mut listeners = Vec::new();
    for caller in [&**author, owner, approver, stranger, server] {
        listeners.push(EventStream::start(caller, PATH, &[]).await);
    }

    let id = plant.submit("one").await["id"].clone();
    approver.step(id.text(), "reject", "").await.expect(200);
    let id = plant.submit("two").await["id"].clone();
    approver.step(id.text(), "approve", "\"1\"").await.expect(200);
    // Everybody hears of an ingestion, which ends the wait for others.
    server.define_with(&json!({"review": "off", "approvers": []})).await;
    server.ingest("ADD", &json!([{"name": "three"}])).await.expect(200);
    for (number, listener) in listeners.iter_mut().enumerate() {
        let (mut steps, mut ingestions) = (Vec::new(), 0);
        while ingestions < 2 {
            let event = listener.event().await;
            match event.event.strip_prefix("penstock.change.") {
                Some(step) => {
                    // Its id, Business Object and state.
                    assert_eq!(event.data["data"].as_object().unwrap().len(), 3);
                    steps.push(step.to_owned());
                }
                None => ingestions += usize::from(event.event == "penstock.ingestion.committed"),
            }
        }
        let expected = ["submitted", "rejected", "submitted", "approved"];
        let is_stranger = number == 3;
        assert_eq!(steps, if is_stranger { &[] } else { &expected[..] }, "listener {number}");
    }
}

/// Whether an answer of any route has the pending name or the minted URI.
async fn leaks(server: &TestApp, who: &Person, uri: &str) -> Vec<String> {
    let name = format!("\"{PENDING}\"");
    let sparql = format!(
        "ASK {{ {{ ?s ?p {name} }} UNION {{ GRAPH ?g {{ ?s ?p {name} }} }} UNION {{ <{uri}> ?p ?o }} UNION {{ GRAPH ?g {{ <{uri}> ?p ?o }} }} }}"
    );
    let graphql = "{ pumpConnection { nodes { uri name } } exports { nodes { key } } penstockPendingChanges { id author } }";
    let graphql = json!({ "query": graphql });
    let escaped = escaped(uri);
    let mut found = Vec::new();
    let answer = who.post("/graphql", &graphql).await;
    let mut texts = vec![("/graphql".to_owned(), answer.text())];
    let answer = answer.json();
    assert_eq!(answer["data"]["penstockPendingChanges"], json!([]), "{answer}");
    let objects = "business-objects/Pump/objects";
    let (by_path, by_query) = (format!("{objects}/{escaped}"), format!("{objects}?uri={escaped}"));
    for path in [objects, &by_path, &by_query, "ingestions", "exports", "changes"] {
        let path = format!("/api/v1/{path}");
        let text = who.get(&path).await.text();
        texts.push((path, text));
    }
    for (path, text) in texts {
        // The answer to a request for the URI repeats it.
        if text.contains(PENDING)
            || !path.contains("uri=") && !path.contains(&escaped) && text.contains(uri)
        {
            found.push(format!("{path}: {text}"));
        }
    }
    let query_type = ("Content-Type", "application/sparql-query");
    let headers = [query_type, ("Accept", "application/sparql-results+json")];
    let ask = who.send("POST", "/sparql", &headers, sparql).await.expect(200).json();
    if ask["boolean"] == true {
        found.push("sparql".to_owned());
    }
    let dump = server.dump().await;
    if dump.contains(PENDING) || dump.contains(uri) {
        found.push("dump".to_owned());
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pending_name_appears_nowhere_else_before_and_after_a_rejection() {
    let plant = Plant::new("optional", &[]).await;
    let Plant { server, approver, stranger, .. } = &plant;
    server.ingest("ADD", &json!([{"name": "another"}])).await.expect(200);
    let change = plant.submit(PENDING).await;
    let (id, uri) = (change["id"].text(), change["objects"][0]["uri"].text());
    assert_eq!(leaks(server, stranger, uri).await, Vec::<String>::new());
    approver.step(id, "reject", "").await.expect(200);
    assert_eq!(leaks(server, stranger, uri).await, Vec::<String>::new());
    // The check finds what is published.
    let change = plant.submit(PENDING).await;
    let (id, uri) = (change["id"].text(), change["objects"][0]["uri"].text());
    approver.step(id, "approve", "\"1\"").await.expect(200);
    assert!(leaks(server, stranger, uri).await.len() >= 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_way_around_a_required_review() {
    let plant = Plant::new("required", &["--service.sparql.update=true"]).await;
    let Plant { server, approver, .. } = &plant;
    let change = plant.submit("one").await;
    let uri = change["objects"][0]["uri"].text();
    let part = change["objects"][0]["nested"][0]["uri"].text();
    approver.step(change["id"].text(), "approve", "\"1\"").await.expect(200);
    // Two other Business Objects that write to the same objects.
    for (name, path) in [("Same", "Pump"), ("Piece", "Part")] {
        let config = format!(
            "type: object\npath: {path}:.\nfields:\n  label: {{type: string, path: <https://plant.example/label>}}\n"
        );
        let body = json!({"name": name, "config": config, "pushTargets": []});
        server.define_object(&body).await;
    }
    let dump = async || server.dump().await;
    let before = dump().await;
    let turtle = format!("<{uri}> <urn:p> 1 .");
    let update = format!("INSERT DATA {{ <{part}> <urn:p> 1 }}");
    let graph = "/sparql/graphs?graph=urn:g";
    let same = json!({"data": [{"uri": uri, "label": "x"}]}).to_string();
    let piece = json!({"data": [{"uri": part, "label": "x"}]}).to_string();
    let new = json!({"data": [{"label": "x"}]}).to_string();
    let line = format!("{{\"uri\": \"{uri}\", \"label\": \"x\"}}");
    let gone = json!({"data": [{"uri": part}]}).to_string();
    let named = json!({"data": [{"name": "x"}]}).to_string();
    let (json_type, lines) = (JSON.1, NDJSON.1);
    let [pump, same_path, piece_path] =
        ["Pump", "Same", "Piece"].map(|name| format!("/api/v1/business-objects/{name}"));
    for (method, path, type_, body, status) in [
        ("POST", format!("{same_path}?mode=MERGE"), json_type, same.as_str(), 409),
        ("POST", same_path.clone(), json_type, &new, 409),
        ("POST", same_path, lines, &line, 409),
        ("POST", format!("{piece_path}?mode=UPDATE"), json_type, &piece, 409),
        ("POST", format!("{piece_path}?mode=DELETE"), json_type, &gone, 409),
        ("POST", pump.clone(), lines, "{\"name\": \"x\"}", 415),
        ("POST", format!("{pump}?onError=skip"), json_type, &new, 400),
        ("DELETE", format!("{pump}?bypass=true"), "", "", 400),
        // Its own review is not bypassed.
        ("POST", format!("{pump}?bypass=true"), json_type, &named, 202),
        ("POST", "/sparql/update".to_owned(), "application/sparql-update", &update, 409),
        ("PUT", graph.to_owned(), TURTLE.1, &turtle, 409),
        ("POST", graph.to_owned(), TURTLE.1, &turtle, 409),
        ("DELETE", "/sparql/graphs?graph=http://localhost/none".to_owned(), "", "", 404),
        ("DELETE", format!("{pump}?data=true"), "", "", 409),
    ] {
        let headers = [("Content-Type", type_)];
        let headers = if type_.is_empty() { &headers[..0] } else { &headers[..] };
        let answer = server.send(method, &path, headers, body.to_owned()).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        if status == 409 {
            assert!(answer.text().contains("Pump"), "{method} {path}: {}", answer.text());
        }
    }
    let nquads = format!("<{uri}> <urn:p> \"1\" .\n");
    let load = server.control("POST", "/control/load?format=nq", &[], nquads).await;
    assert!(load.text().contains("requires a review"), "{}", load.text());
    assert_eq!(dump().await, before);
    // Every mode becomes a change.
    for (mode, body) in [
        ("REPLACE", json!({"data": [{"uri": uri, "name": "x"}]})),
        ("UPDATE", json!({"data": [{"uri": uri, "name": "x"}]})),
        ("MERGE", json!({"data": [{"uri": uri, "name": "x"}]})),
        ("DELETE", json!({"data": [{"uri": uri}]})),
    ] {
        let path = format!("/api/v1/business-objects/Pump?mode={mode}");
        server.post(&path, &body).await.expect(202);
    }
    assert_eq!(dump().await, before);
    // An Admin overrides it, with an audit event.
    let path = "/api/v1/business-objects/Same?mode=MERGE&bypass=true";
    let merged = json!({"data": [{"uri": uri, "label": "x"}]});
    server.post(path, &merged).await.expect(200);
    let events = server.read("/api/v1/audit?what=review").await;
    assert!(events["items"][0]["detail"].has("Pump"), "{events}");
    let path = "/api/v1/business-objects/Same?bypass=true";
    plant.author.send("POST", path, &[JSON], new).await.problem(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_bypasses_a_second_review_of_the_same_objects() {
    let plant = Plant::new("required", &[]).await;
    let Plant { server, author, approver, .. } = &plant;
    let config = "type: object\npath: Part:.\nfields:\n  label: {type: string, path: <https://plant.example/label>}\n";
    let pieces = json!({"name": "Piece", "config": config, "pushTargets": [], "review": "required", "approvers": ["group:approvers"]});
    server.define_object(&pieces).await;
    let path = "/api/v1/business-objects/Pump";
    let bypassing = format!("{path}?bypass=true");
    let body = json!({"data": [{"name": "one", "parts": [{"label": "seal"}]}]});
    let admin = Person::sign_in(server, Role::Admin).await;
    admin.post(path, &body).await.refused(409, "\"Piece\"");
    author.post(&bypassing, &body).await.problem(403);
    let submit = async || {
        let change = admin.post(&bypassing, &body).await.expect(202).json();
        assert!(change["warnings"].to_string().contains("Piece"), "{change}");
        change["id"].string()
    };
    let id = submit().await;
    let change = approver.read(&format!("/api/v1/changes/{id}")).await;
    assert_eq!(change["bypass"], true);
    assert!(change["warnings"].to_string().contains("Piece"), "{change}");
    approver.step(&id, "approve", "\"1\"").await.expect(200);
    let events = server.items("/api/v1/audit?what=review").await;
    let event = &events[0];
    assert_eq!(event["what"], "review.bypassed");
    let detail = event["detail"].text();
    assert!(detail.contains("Piece") && detail.contains(&id), "{detail}");

    // It counts only as long as its author is an Admin.
    let id = submit().await;
    let account = format!("/api/v1/users/{}", admin.id);
    server.put(&account, &json!({"roles": ["Contributor"]})).await.expect(200);
    approver.step(&id, "approve", "\"1\"").await.refused(409, "no Admin any more");
    server.put(&account, &json!({"roles": ["Admin"]})).await.expect(200);
    approver.step(&id, "approve", "\"1\"").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_keeps_its_answer_and_a_key_with_a_write_scope_sees_its_own() {
    let plant = Plant::new("optional", &[]).await;
    let Plant { server, author, approver, .. } = &plant;
    let body = json!({"data": [{"name": "one"}]}).to_string();
    let path = "/api/v1/business-objects/Pump?review=true";
    let headers = [JSON, ("Idempotency-Key", "k")];
    let first = author.send("POST", path, &headers, body.clone()).await.expect(202).json();
    let id = first["id"].text();
    approver.step(id, "approve", "\"1\"").await.expect(200);
    let again = author.send("POST", path, &headers, body.clone()).await.expect(202).json();
    assert_eq!(again, first);
    let corrected = format!("{path}&changeOwners=user:{}", approver.id);
    author.send("POST", &corrected, &headers, body.clone()).await.problem(409);

    let caller = server.with_key(Role::Contributor, Some("Pump"));
    let own = caller.send("POST", path, &[JSON], body).await.expect(202).json();
    let own = own["id"].text();
    let get = async |id: &str| caller.get(&format!("/api/v1/changes/{id}")).await.status;
    assert_eq!((get(own).await, get(id).await), (200, 404));
    assert_eq!(caller.items("/api/v1/changes").await.len(), 1);
    let missing = json!({"name": "Pump", "config": definition()["config"]});
    let problem = server.put("/api/v1/business-objects", &missing).await.problem(409);
    let text = problem.to_string();
    assert!(text.contains("review") && text.contains("approvers"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_show_a_change_only_to_those_who_may_see_it() {
    let plant = Plant::new("required", &[]).await;
    let Plant { author, owner, approver, stranger, .. } = &plant;
    let stored = plant.submit("stored").await;
    let uri = stored["objects"][0]["uri"].text();
    let id = stored["id"].text();
    approver.step(id, "approve", "\"1\"").await.expect(200);
    let path = format!("/api/v1/business-objects/Pump?mode=REPLACE&changeOwners=user:{}", owner.id);
    let body = json!({"data": [{"uri": uri, "name": PENDING}]});
    let change = author.post(&path, &body).await.expect(202).json();
    let id = change["id"].text();

    let object = format!("/admin/object?uri={}", escaped(uri));
    let (page, list) = (format!("/admin/changes/{id}"), "/admin/changes".to_owned());
    let progress = format!("{page}/progress");
    let get = async |who: &Person, path: &str| who.get_with(path, &[HTML]).await;
    for who in [author, owner, approver] {
        for path in [&object, &list] {
            let text = get(who, path).await.expect(200).text();
            assert!(text.contains(&format!("href=\"{page}\"")), "{path}: {text}");
        }
        let text = get(who, &page).await.expect(200).text();
        assert!(text.contains(&format!("<ins>{PENDING}</ins>")), "{text}");
        assert!(get(who, &progress).await.expect(200).text().contains("data-version=\"1\""));
        assert_eq!(text.contains("/approve\""), who.id == approver.id, "{text}");
        // Names of accounts are for approvers.
        let hidden = "<dt>Sent by</dt><dd>another account</dd>";
        assert_eq!(text.contains(hidden), who.id == owner.id, "{text}");
        assert!(!text.contains(&author.id) && !text.contains(&owner.id), "{text}");
    }
    for path in [&object, &list, &"/admin".to_owned()] {
        let text = get(stranger, path).await.expect(200).text();
        assert!(!text.contains(id) && !text.contains(PENDING), "{path}: {text}");
    }
    for path in [&page, &progress] {
        let text = get(stranger, path).await.expect(404).text();
        assert!(!text.contains(PENDING), "{text}");
    }
    let waiting = |text: &str| text.contains("1<span class=\"sr\"> to approve</span>");
    assert!(waiting(&get(approver, "/admin").await.text()));
    assert!(waiting(&get(approver, "/admin/changes/to-approve").await.text()));
    for who in [author, owner, stranger] {
        assert!(!waiting(&get(who, "/admin").await.text()));
    }

    let reject = format!("{page}/reject");
    let form = [HTML, FORM];
    let stale = approver.send("POST", &reject, &form, "version=7").await.expect(412);
    assert!(stale.text().contains("It has changed since you opened this page."));
    let comment = "version=1&comment=not+this+one";
    owner.send("POST", &reject, &form, comment).await.expect(403);
    stranger.send("POST", &reject, &form, comment).await.expect(404);
    approver.send("POST", &reject, &form, comment).await.expect(303);
    assert!(get(author, &page).await.text().contains("<blockquote>not this one</blockquote>"));
    assert!(!get(author, &object).await.text().contains(id));
    assert!(!waiting(&get(approver, "/admin").await.text()));
}
