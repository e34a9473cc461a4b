//! Changes under review over HTTP: who sees them, who takes which step, and that nothing pending is visible elsewhere.
use crate::events::EventStream;
use crate::person::Person;
use crate::server::{Server, definition};
use penstock_auth::Role;
use serde_json::{Value, json};

mod decided;
mod listed;

/// A name that exists only in a pending change.
const PENDING: &str = "only-in-the-change";

struct Plant {
    server: Server,
    author: Person,
    owner: Person,
    approver: Person,
    stranger: Person,
}

impl Plant {
    async fn new(review: &str, arguments: &[&str]) -> Self {
        Self::on(Server::start(arguments).await, review).await
    }

    async fn on(server: Server, review: &str) -> Self {
        let author = Person::sign_in(&server, Role::Contributor).await;
        let owner = Person::sign_in(&server, Role::User).await;
        let approver = Person::sign_in(&server, Role::Contributor).await;
        let stranger = Person::sign_in(&server, Role::Contributor).await;
        let group = json!({"members": [approver.id]});
        server.json("PUT", "/api/v1/groups/approvers", &group).await.expect(201);
        let approvers = json!(["group:approvers"]);
        server.define_with(&json!({"review": review, "approvers": approvers})).await;
        Self { server, author, owner, approver, stranger }
    }

    /// Submits an object with this name as the author, and returns the answer.
    async fn submit(&self, name: &str) -> Value {
        let path = format!("/api/v1/business-objects/Pump?changeOwners=user:{}", self.owner.id);
        let body = json!({"data": [{"name": name, "parts": [{"label": "seal"}]}]}).to_string();
        let answer = self.author.send(&self.server, "POST", &path, &[], &body).await.expect(202);
        let change = answer.json();
        let location = format!("/api/v1/changes/{}", change["id"].as_str().unwrap());
        assert!(answer.header("location").ends_with(&location));
        change
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_needs_two_accounts_and_what_was_seen() {
    let plant = Plant::new("required", &[]).await;
    let Plant { server, author, owner, approver, stranger } = &plant;
    let submitted = plant.submit("one").await;
    let id = submitted["id"].as_str().unwrap();
    assert_eq!((&submitted["state"], &submitted["created"]), (&json!("submitted"), &json!(1)));
    let uri = submitted["objects"][0]["uri"].as_str().unwrap();

    let path = format!("/api/v1/changes/{id}");
    for sees in [author, owner, approver] {
        let change = sees.get(server, &path).await.expect(200);
        assert_eq!(change.header("etag"), "\"1\"");
        let change = change.json();
        assert!(change["request"].as_str().unwrap().contains("one"), "{change}");
        assert_eq!(change["applicability"], json!({"applies": true}));
        assert_eq!(change["difference"]["items"][0]["after"]["name"], "one");
        assert_eq!(change["changeOwners"], json!([format!("user:{}", owner.id)]));
        assert_eq!(change["unknownChangeOwners"].is_array(), sees.id == approver.id);
    }
    stranger.get(server, &path).await.problem(404);
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
        let listed = who.get(server, &lists(query)).await.expect(200).json();
        assert_eq!(listed["items"].as_array().unwrap().len(), count, "{query}");
    }

    let problem = author.step(server, id, "approve", "\"1\"").await.problem(403);
    assert!(problem["detail"].as_str().unwrap().contains("author"), "{problem}");
    owner.step(server, id, "approve", "\"1\"").await.problem(403);
    stranger.step(server, id, "approve", "\"1\"").await.problem(404);
    stranger.step(server, id, "withdraw", "").await.problem(404);
    // An Admin that is no approver sees it, and does not decide.
    let admin = Person::sign_in(server, Role::Admin).await;
    admin.step(server, id, "approve", "\"1\"").await.problem(403);
    approver.step(server, id, "approve", "").await.problem(428);
    approver.step(server, id, "approve", "*").await.problem(428);
    approver.step(server, id, "approve", "\"2\"").await.problem(412);

    let approved = approver.step(server, id, "approve", "\"1\"").await.expect(200).json();
    assert_eq!((&approved["state"], &approved["version"]), (&json!("approved"), &json!(2)));
    assert_eq!(approver.step(server, id, "approve", "\"1\"").await.expect(200).json(), approved);
    author.step(server, id, "withdraw", "").await.problem(409);
    let record = server.get(&format!("/api/v1/ingestions/{id}")).await.expect(200).json();
    assert_eq!(
        (&record["author"], &record["approvedBy"]),
        (&json!(author.id), &json!(approver.id))
    );
    let escaped = crate::server::escaped(uri);
    let stored = format!("/api/v1/business-objects/Pump/objects/{escaped}");
    assert_eq!(server.get(&stored).await.expect(200).json()["name"], "one");
    let events = server.get("/api/v1/audit?what=change").await.expect(200).json();
    let kinds: Vec<_> = events["items"].as_array().unwrap().iter().map(|e| &e["what"]).collect();
    assert_eq!(kinds, ["change.approved", "change.submitted"]);

    server.send("DELETE", "/api/v1/business-objects/Pump", &[], "").await.expect(204);
    assert_eq!(approver.step(server, id, "approve", "\"1\"").await.expect(200).json(), approved);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_author_that_was_disabled_publishes_nothing_and_a_group_decides_at_that_moment() {
    let plant = Plant::new("required", &[]).await;
    let Plant { server, author, approver, .. } = &plant;
    let id = plant.submit("one").await["id"].as_str().unwrap().to_owned();
    let enable = async |enabled: bool| {
        let path = format!("/api/v1/users/{}", author.id);
        server.json("PUT", &path, &json!({"enabled": enabled})).await.expect(200);
    };
    enable(false).await;
    let problem = approver.step(server, &id, "approve", "\"1\"").await.problem(409);
    assert!(problem["detail"].as_str().unwrap().contains("disabled"), "{problem}");
    let change = approver.get(server, &format!("/api/v1/changes/{id}")).await.expect(200).json();
    let applicability = &change["applicability"];
    assert_eq!(applicability["applies"], false);
    assert!(applicability.to_string().contains("disabled"), "{applicability}");
    enable(true).await;
    let members = async |members: &[&str]| {
        let group = json!({"members": members});
        server.json("PUT", "/api/v1/groups/approvers", &group).await.expect(200);
    };
    members(&[]).await;
    approver.step(server, &id, "approve", "\"1\"").await.problem(404);
    approver.get(server, &format!("/api/v1/changes/{id}")).await.problem(404);
    let found = server.get("/api/v1/business-objects/Pump").await.expect(200).json();
    let warnings = found["warnings"].to_string();
    assert!(warnings.contains("no enabled account could approve"), "{warnings}");
    members(&[&approver.id]).await;
    let rejected = approver
        .send(
            server,
            "POST",
            &format!("/api/v1/changes/{id}/reject"),
            &[],
            r#"{"comment": "too high"}"#,
        )
        .await
        .expect(200)
        .json();
    assert_eq!(rejected["history"][1]["comment"], "too high");
    // Names for everybody, members for Admins.
    let seen = approver.get(server, "/api/v1/groups").await.expect(200).json();
    assert_eq!(seen["items"], json!([{"name": "approvers"}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_difference_are_of_one_version() {
    let plant = Plant::new("required", &[]).await;
    let Plant { server, author, approver, .. } = &plant;
    let pumps: Vec<_> = (0..150).map(|number| json!({"name": format!("pump {number}")})).collect();
    let path = "/api/v1/business-objects/Pump";
    let body = json!({"data": pumps}).to_string();
    let sent = author.send(server, "POST", path, &[], &body).await.expect(202).json();
    let path = format!("/api/v1/changes/{}", sent["id"].as_str().unwrap());
    let first = approver.get(server, &path).await.expect(200).json();
    let first = &first["difference"];
    let rest = format!("{path}?cursor={}", first["next"].as_str().unwrap());
    let second = approver.get(server, &rest).await.expect(200).json();
    assert_eq!(
        [first, &second["difference"]].map(|page| page["items"].as_array().unwrap().len()),
        [100, 50]
    );
    let comment = r#"{"comment": "as it is now"}"#;
    let rebased = author.send(server, "POST", &format!("{path}/rebase"), &[], comment).await;
    assert_eq!(rebased.expect(200).json()["version"], 2);
    approver.get(server, &rest).await.problem(409);
    approver.get(server, &format!("{path}?cursor=W10")).await.problem(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_a_change_go_only_to_those_who_see_it() {
    const PATH: &str = "/api/v1/events";
    let plant = Plant::new("required", &[]).await;
    let Plant { server, author, owner, approver, stranger } = &plant;
    let mut listeners = Vec::new();
    for person in [author, owner, approver, stranger] {
        let headers: Vec<_> =
            person.headers.iter().map(|(name, it)| (*name, it.as_str())).collect();
        listeners.push(EventStream::start_with(server, PATH, &headers).await);
    }
    listeners.push(EventStream::start_with(server, PATH, &[("Apikey", &server.key)]).await);

    let id = plant.submit("one").await["id"].clone();
    approver.step(server, id.as_str().unwrap(), "reject", "").await.expect(200);
    let id = plant.submit("two").await["id"].clone();
    approver.step(server, id.as_str().unwrap(), "approve", "\"1\"").await.expect(200);
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
async fn leaks(server: &Server, who: &Person, uri: &str) -> Vec<String> {
    let name = format!("\"{PENDING}\"");
    let sparql = format!(
        "ASK {{ {{ ?s ?p {name} }} UNION {{ GRAPH ?g {{ ?s ?p {name} }} }} UNION {{ <{uri}> ?p ?o }} UNION {{ GRAPH ?g {{ <{uri}> ?p ?o }} }} }}"
    );
    let graphql = "{ pumpConnection { nodes { uri name } } exports { nodes { key } } penstockPendingChanges { id author } }";
    let graphql = json!({ "query": graphql });
    let escaped = crate::server::escaped(uri);
    let mut found = Vec::new();
    let answer = who.send(server, "POST", "/graphql", &[], &graphql.to_string()).await.json();
    assert_eq!(answer["data"]["penstockPendingChanges"], json!([]), "{answer}");
    for (path, type_, body) in [
        ("/api/v1/business-objects/Pump/objects".to_owned(), "", String::new()),
        (format!("/api/v1/business-objects/Pump/objects/{escaped}"), "", String::new()),
        (format!("/api/v1/business-objects/Pump/objects?uri={escaped}"), "", String::new()),
        ("/api/v1/ingestions".to_owned(), "", String::new()),
        ("/api/v1/exports".to_owned(), "", String::new()),
        ("/api/v1/changes".to_owned(), "", String::new()),
        ("/graphql".to_owned(), "application/json", graphql.to_string()),
    ] {
        let method = if body.is_empty() { "GET" } else { "POST" };
        let headers = [("Content-Type", type_)];
        let headers = if body.is_empty() { &headers[..0] } else { &headers[..] };
        let text = who.send(server, method, &path, headers, &body).await.text();
        // The answer to a request for the URI repeats it.
        if text.contains(PENDING)
            || !path.contains("uri=") && !path.contains(&escaped) && text.contains(uri)
        {
            found.push(format!("{path}: {text}"));
        }
    }
    let headers = [
        ("Content-Type", "application/sparql-query"),
        ("Accept", "application/sparql-results+json"),
    ];
    let ask = who.send(server, "POST", "/sparql", &headers, &sparql).await.expect(200).json();
    if ask["boolean"] == true {
        found.push("sparql".to_owned());
    }
    let dump = server.control("GET", "/control/dump?format=nq", &[], "").await.expect(200).text();
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
    let (id, uri) = (change["id"].as_str().unwrap(), change["objects"][0]["uri"].as_str().unwrap());
    assert_eq!(leaks(server, stranger, uri).await, Vec::<String>::new());
    approver.step(server, id, "reject", "").await.expect(200);
    assert_eq!(leaks(server, stranger, uri).await, Vec::<String>::new());
    // The check finds what is published.
    let change = plant.submit(PENDING).await;
    let (id, uri) = (change["id"].as_str().unwrap(), change["objects"][0]["uri"].as_str().unwrap());
    approver.step(server, id, "approve", "\"1\"").await.expect(200);
    assert!(leaks(server, stranger, uri).await.len() >= 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_way_around_a_required_review() {
    let plant = Plant::new("required", &["--service.sparql.update=true"]).await;
    let Plant { server, approver, .. } = &plant;
    let change = plant.submit("one").await;
    let uri = change["objects"][0]["uri"].as_str().unwrap();
    let part = change["objects"][0]["nested"][0]["uri"].as_str().unwrap();
    approver.step(server, change["id"].as_str().unwrap(), "approve", "\"1\"").await.expect(200);
    // Two other Business Objects that write to the same objects.
    for (name, path) in [("Same", "Pump"), ("Piece", "Part")] {
        let config = format!(
            "type: object\npath: {path}:.\nfields:\n  label: {{type: string, path: <https://plant.example/label>}}\n"
        );
        let body = json!({"name": name, "config": config, "pushTargets": []});
        server.json("PUT", "/api/v1/business-objects", &body).await.expect(201);
    }
    let dump =
        async || server.control("GET", "/control/dump?format=nq", &[], "").await.expect(200).text();
    let before = dump().await;
    let turtle = format!("<{uri}> <urn:p> 1 .");
    let update = format!("INSERT DATA {{ <{part}> <urn:p> 1 }}");
    let graph = "/sparql/graphs?graph=urn:g";
    let same = json!({"data": [{"uri": uri, "label": "x"}]}).to_string();
    let piece = json!({"data": [{"uri": part, "label": "x"}]}).to_string();
    let new = json!({"data": [{"label": "x"}]}).to_string();
    let json_type = "application/json";
    let lines = "application/x-ndjson";
    for (method, path, type_, body, status) in [
        ("POST", "/api/v1/business-objects/Same?mode=MERGE", json_type, same.as_str(), 409),
        ("POST", "/api/v1/business-objects/Same", json_type, &new, 409),
        (
            "POST",
            "/api/v1/business-objects/Same",
            lines,
            &format!("{{\"uri\": \"{uri}\", \"label\": \"x\"}}"),
            409,
        ),
        ("POST", "/api/v1/business-objects/Piece?mode=UPDATE", json_type, &piece, 409),
        (
            "POST",
            "/api/v1/business-objects/Piece?mode=DELETE",
            json_type,
            &piece.replace(",\"label\":\"x\"", "").replace("\"label\":\"x\",", ""),
            409,
        ),
        ("POST", "/api/v1/business-objects/Pump", lines, "{\"name\": \"x\"}", 415),
        ("POST", "/api/v1/business-objects/Pump?onError=skip", json_type, &new, 400),
        ("DELETE", "/api/v1/business-objects/Pump?bypass=true", "", "", 400),
        // Its own review is not bypassed.
        (
            "POST",
            "/api/v1/business-objects/Pump?bypass=true",
            json_type,
            "{\"data\": [{\"name\": \"x\"}]}",
            202,
        ),
        ("POST", "/sparql/update", "application/sparql-update", &update, 409),
        ("PUT", graph, "text/turtle", &turtle, 409),
        ("POST", graph, "text/turtle", &turtle, 409),
        ("DELETE", "/sparql/graphs?graph=http://localhost/none", "", "", 404),
        ("DELETE", "/api/v1/business-objects/Pump?data=true", "", "", 409),
    ] {
        let headers = [("Content-Type", type_)];
        let headers = if type_.is_empty() { &headers[..0] } else { &headers[..] };
        let answer = server.send(method, path, headers, body.to_owned()).await;
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
        server.json("POST", &path, &body).await.expect(202);
    }
    assert_eq!(dump().await, before);
    // An Admin overrides it, with an audit event.
    server
        .json(
            "POST",
            "/api/v1/business-objects/Same?mode=MERGE&bypass=true",
            &json!({"data": [{"uri": uri, "label": "x"}]}),
        )
        .await
        .expect(200);
    let events = server.get("/api/v1/audit?what=review").await.expect(200).json();
    assert!(events["items"][0]["detail"].as_str().unwrap().contains("Pump"), "{events}");
    plant
        .author
        .send(server, "POST", "/api/v1/business-objects/Same?bypass=true", &[], &new)
        .await
        .problem(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_bypasses_a_second_review_of_the_same_objects() {
    let plant = Plant::new("required", &[]).await;
    let Plant { server, author, approver, .. } = &plant;
    let config = "type: object\npath: Part:.\nfields:\n  label: {type: string, path: <https://plant.example/label>}\n";
    let pieces = json!({"name": "Piece", "config": config, "pushTargets": [], "review": "required", "approvers": ["group:approvers"]});
    server.json("PUT", "/api/v1/business-objects", &pieces).await.expect(201);
    let path = "/api/v1/business-objects/Pump";
    let bypassing = format!("{path}?bypass=true");
    let body = json!({"data": [{"name": "one", "parts": [{"label": "seal"}]}]}).to_string();
    let admin = Person::sign_in(server, Role::Admin).await;
    let problem = admin.send(server, "POST", path, &[], &body).await.problem(409);
    assert!(problem["detail"].as_str().unwrap().contains("\"Piece\""), "{problem}");
    author.send(server, "POST", &bypassing, &[], &body).await.problem(403);
    let submit = async || {
        let change = admin.send(server, "POST", &bypassing, &[], &body).await.expect(202).json();
        assert!(change["warnings"].to_string().contains("Piece"), "{change}");
        change["id"].as_str().unwrap().to_owned()
    };
    let id = submit().await;
    let change = approver.get(server, &format!("/api/v1/changes/{id}")).await.expect(200).json();
    assert_eq!(change["bypass"], true);
    assert!(change["warnings"].to_string().contains("Piece"), "{change}");
    approver.step(server, &id, "approve", "\"1\"").await.expect(200);
    let events = server.get("/api/v1/audit?what=review").await.expect(200).json();
    let event = &events["items"][0];
    assert_eq!(event["what"], "review.bypassed");
    let detail = event["detail"].as_str().unwrap();
    assert!(detail.contains("Piece") && detail.contains(&id), "{detail}");

    // It counts only as long as its author is an Admin.
    let id = submit().await;
    let account = format!("/api/v1/users/{}", admin.id);
    server.json("PUT", &account, &json!({"roles": ["Contributor"]})).await.expect(200);
    let problem = approver.step(server, &id, "approve", "\"1\"").await.problem(409);
    assert!(problem["detail"].as_str().unwrap().contains("no Admin any more"), "{problem}");
    server.json("PUT", &account, &json!({"roles": ["Admin"]})).await.expect(200);
    approver.step(server, &id, "approve", "\"1\"").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_keeps_its_answer_and_a_key_with_a_write_scope_sees_its_own() {
    let plant = Plant::new("optional", &[]).await;
    let Plant { server, author, approver, .. } = &plant;
    let body = json!({"data": [{"name": "one"}]}).to_string();
    let path = "/api/v1/business-objects/Pump?review=true";
    let headers = [("Idempotency-Key", "k")];
    let first = author.send(server, "POST", path, &headers, &body).await.expect(202).json();
    let id = first["id"].as_str().unwrap();
    approver.step(server, id, "approve", "\"1\"").await.expect(200);
    let again = author.send(server, "POST", path, &headers, &body).await.expect(202).json();
    assert_eq!(again, first);
    let corrected = format!("{path}&changeOwners=user:{}", approver.id);
    author.send(server, "POST", &corrected, &headers, &body).await.problem(409);

    let key = server.make_key(Role::Contributor, Some("Pump"));
    let bearer = format!("Bearer {key}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let own = server.send("POST", path, &headers, body).await.expect(202).json();
    let own = own["id"].as_str().unwrap();
    let get = async |id: &str| {
        server.send("GET", &format!("/api/v1/changes/{id}"), &headers[..1], "").await.status
    };
    assert_eq!((get(own).await, get(id).await), (200, 404));
    let listed = server.send("GET", "/api/v1/changes", &headers[..1], "").await.expect(200).json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    let missing = json!({"name": "Pump", "config": definition()["config"]});
    let problem = server.json("PUT", "/api/v1/business-objects", &missing).await.problem(409);
    let text = problem.to_string();
    assert!(text.contains("review") && text.contains("approvers"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_show_a_change_only_to_those_who_may_see_it() {
    let plant = Plant::new("required", &[]).await;
    let Plant { server, author, owner, approver, stranger } = &plant;
    let stored = plant.submit("stored").await;
    let uri = stored["objects"][0]["uri"].as_str().unwrap();
    let id = stored["id"].as_str().unwrap();
    approver.step(server, id, "approve", "\"1\"").await.expect(200);
    let path = format!("/api/v1/business-objects/Pump?mode=REPLACE&changeOwners=user:{}", owner.id);
    let body = json!({"data": [{"uri": uri, "name": PENDING}]}).to_string();
    let change = author.send(server, "POST", &path, &[], &body).await.expect(202).json();
    let id = change["id"].as_str().unwrap();

    let object = format!("/admin/object?uri={}", crate::server::escaped(uri));
    let (page, list) = (format!("/admin/changes/{id}"), "/admin/changes".to_owned());
    let progress = format!("{page}/progress");
    let html = [("Accept", "text/html")];
    let get = async |who: &Person, path: &str| who.send(server, "GET", path, &html, "").await;
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
    let form = [("Accept", "text/html"), ("Content-Type", "application/x-www-form-urlencoded")];
    let stale = approver.send(server, "POST", &reject, &form, "version=7").await.expect(412);
    assert!(stale.text().contains("It has changed since you opened this page."));
    let comment = "version=1&comment=not+this+one";
    owner.send(server, "POST", &reject, &form, comment).await.expect(403);
    stranger.send(server, "POST", &reject, &form, comment).await.expect(404);
    approver.send(server, "POST", &reject, &form, comment).await.expect(303);
    assert!(get(author, &page).await.text().contains("<blockquote>not this one</blockquote>"));
    assert!(!get(author, &object).await.text().contains(id));
    assert!(!waiting(&get(approver, "/admin").await.text()));
}
