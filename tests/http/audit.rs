//! The audit trail: events about accounts and credentials, and refused requests.
use penstock_test_support::prelude::*;

const AUDIT: &str = "/api/v1/audit";
const PASSWORD: &str = "correct horse battery";

async fn events(server: &TestApp, query: &str) -> Vec<Value> {
    server.items(&format!("{AUDIT}?{query}")).await
}

/// Waits until the trail has an event of this kind about `part`: those outside a commit follow within a second.
pub(crate) async fn until_event(server: &TestApp, what: &str, part: &str) {
    until(what, async || {
        let found = events(server, &format!("what={what}")).await;
        found.iter().any(|event| event["detail"].has(part))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_has_the_steps_of_exports_targets_validations_and_dead_letters() {
    let server = TestApp::plain().await;
    let shape = "@prefix sh: <http://www.w3.org/ns/shacl#> . <urn:s> a sh:NodeShape ; sh:targetNode <urn:n> .";
    server.send("PUT", "/api/v1/shapes/pumps", &[TURTLE], shape).await.expect(201);
    server.define_with(&json!({"validation": {"shapes": ["pumps"], "mode": "off"}})).await;
    let post = async |path: &str| server.post_empty(path).await;

    let pump = "/api/v1/business-objects/Pump";
    let given = json!({"data": [{"name": "a"}, {"name": 1}]});
    let answer = server.post(&format!("{pump}?onError=skip"), &given).await.expect(200).json();
    let letter = answer["rejected"][0]["id"].text();
    let ingestion = answer["ingestionId"].text();
    let path = format!("/api/v1/ingestions/{ingestion}/rejected/{letter}");
    server.delete(&path).await.expect(204);
    until_event(&server, "dead-letter.deleted", letter).await;
    server.delete(&path).await.problem(404);
    assert_eq!(events(&server, "what=dead-letter").await.len(), 1);

    let started = post(&format!("{pump}/validation")).await.expect(202).json();
    until_event(&server, "validation.started", started["id"].text()).await;

    let export = server.deliver("Pump").await["id"].string();
    let path = format!("/api/v1/exports/{export}");
    post(&format!("{path}/park")).await.problem(409);
    post(&format!("{path}/replay")).await.expect(200);
    until_event(&server, "export.replayed", &export).await;
    assert!(events(&server, "what=export.parked").await.is_empty());

    post("/api/v1/targets/plant-exports/test").await.expect(200);
    until_event(&server, "target.tested", "plant-exports").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_lists_events_and_never_a_credential() {
    let server = TestApp::plain().await;
    let new = json!({"email": "ada", "password": PASSWORD, "roles": ["User"]});
    let account = server.post("/api/v1/users", &new).await.expect(201).json();
    let id = account["id"].text();
    for password in ["a wrong password", PASSWORD] {
        let body = json!({"email": "ada", "password": password});
        server.anonymous().post("/login", &body).await;
    }
    let path = format!("/api/v1/users/{id}");
    let change = json!({"roles": ["Contributor"], "enabled": false});
    server.put(&path, &change).await.expect(200);
    let password = json!({"password": "another horse battery"});
    server.post(&format!("{path}/password"), &password).await.expect(204);
    server.delete(&path).await.expect(204);
    connect(server.address, "GET", AUDIT, &[("Apikey", "penstock_planted")], "").await.problem(401);

    let listed = events(&server, &format!("account={id}")).await;
    let kinds: Vec<&str> = listed.iter().rev().map(|event| event["what"].text()).collect();
    assert_eq!(
        kinds.join(" "),
        "account.created sign-in.refused sign-in role.changed account.disabled password.changed \
         account.deleted"
    );
    assert_eq!(listed.last().unwrap()["from"], "127.0.0.1");
    assert_eq!(listed[4]["from"], "127.0.0.1");
    assert_eq!(listed[0]["count"], 1);
    let all = events(&server, "").await;
    assert!(all.iter().any(|event| event["what"] == "request.refused"), "{all:?}");
    let text = serde_json::to_string(&all).unwrap();
    for secret in ["horse", "wrong password", "planted", &server.key[9..]] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    assert_eq!(events(&server, "what=role").await.len(), 1);
    assert_eq!(events(&server, "what=sign-in").await.len(), 2);
    assert_eq!(events(&server, "what=sign-in.refused").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_paged_and_bounded() {
    let server = TestApp::start(&["--service.limits.audit=5"]).await;
    for _ in 0..6 {
        server.make_key(Role::User, None);
    }
    let first = server.read(&format!("{AUDIT}?limit=3")).await;
    let next = first["next"].text();
    let rest = server.read(&format!("{AUDIT}?limit=3&cursor={next}")).await;
    assert_eq!(rest["items"].list().len(), 2);
    assert_eq!(rest["next"], Value::Null);
    for path in ["/api/v1/audit?cursor=78", "/api/v1/audit?limit=0", "/api/v1/audit?who=x"] {
        server.get(path).await.problem(400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_survives_a_restart() {
    let server = TestApp::plain().await;
    server.make_key(Role::User, None);
    let before = events(&server, "").await;
    let dir = server.stop().await.unwrap();
    let server = TestApp::reopen(dir.path()).await;
    let after = events(&server, "").await;
    assert!(before.iter().all(|event| after.contains(event)), "{before:?} {after:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_refusals_is_counted() {
    let server = TestApp::plain().await;
    for _ in 0..30 {
        connect(server.address, "GET", AUDIT, &[("Apikey", "penstock_x")], "").await.problem(401);
    }
    assert_eq!(events(&server, "what=request.refused").await.len(), 3);
    let dir = server.stop().await.unwrap();
    let server = TestApp::reopen(dir.path()).await;
    let events = events(&server, "what=request.refused").await;
    let counts: Vec<u64> = events.iter().map(|event| event["count"].as_u64().unwrap()).collect();
    assert_eq!(counts, [27, 1, 1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_trusted_proxies_determine_the_client_address() {
    let server = TestApp::start(&[
        "--server.forward-headers-strategy=native",
        "--service.trusted-proxies=127.0.0.1,192.0.2.0/24",
    ])
    .await;
    let status = async |headers: &[(&str, &str)]| {
        let headers = [headers, &[("Apikey", "penstock_x")]].concat();
        server.get_with(AUDIT, &headers).await.status
    };
    let (standard, usual) = ("Forwarded", "X-Forwarded-For");
    for (headers, from) in [
        (&[][..], "127.0.0.1"),
        (&[(usual, "203.0.113.1")], "203.0.113.1"),
        // Behind two trusted proxies. The first address was written by the client, so it does not count.
        (&[(usual, "10.0.0.1, 203.0.113.2, 192.0.2.7")], "203.0.113.2"),
        (&[(standard, "for=203.0.113.3;proto=https;host=gw.example")], "203.0.113.3"),
        (&[(standard, "for=10.0.0.1, For=\"[2001:db8::4]:4711\"")], "2001:db8::4"),
        // Some proxies write both headers.
        (
            &[
                (standard, "for=203.0.113.5;proto=https;host=GW.example"),
                (usual, "203.0.113.5"),
                ("X-Forwarded-Proto", "https"),
                ("X-Forwarded-Host", "gw.example"),
            ],
            "203.0.113.5",
        ),
        (&[(standard, "for=203.0.113.6"), ("X-Forwarded-Prefix", "/gate")], "203.0.113.6"),
    ] {
        assert_eq!(status(headers).await, 401, "{headers:?}");
        let newest = &events(&server, "what=request.refused&limit=1").await[0];
        assert_eq!(newest["from"], from, "{headers:?}");
    }
    for (forwarded, others) in [
        ("for=10.0.0.1", &[(usual, "203.0.113.1")][..]),
        ("for=203.0.113.1;host=evil.example", &[(usual, "203.0.113.1")]),
        ("for=203.0.113.1", &[(usual, "203.0.113.1"), ("X-Forwarded-Proto", "https")]),
        ("proto=https", &[(usual, "203.0.113.1")]),
        ("", &[("X-Forwarded-Host", "gw.example")]),
    ] {
        let headers = [others, &[(standard, forwarded)]].concat();
        for path in [AUDIT, "/health/live", "/nothing"] {
            let refused = server.anonymous().get_with(path, &headers).await;
            refused.refused(400, "configure the proxy to write one of them");
        }
    }
    // Without trusted proxies, neither header counts.
    let server = TestApp::plain().await;
    let headers = [(standard, "for=10.0.0.1"), (usual, "203.0.113.1")];
    server.anonymous().get_with("/health/live", &headers).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_creates_namespaces_at_a_limited_rate() {
    let server = TestApp::plain().await;
    let person = server.session(Role::Contributor);
    let put =
        async |number: u32| person.put(&format!("/api/v1/namespaces/N{number}"), &json!({})).await;
    let mut created = 0;
    let refused = loop {
        let answer = put(created).await;
        if answer.status != 201 {
            break answer;
        }
        created += 1;
        assert!(created < 200, "there is no limit");
    };
    assert!(created >= 100, "{created}");
    assert!(!refused.header("retry-after").is_empty());
    refused.refused(429, "created namespaces");
    // Existing namespaces can be changed, and Admins have no limit.
    put(0).await.expect(200);
    server.put("/api/v1/namespaces/Other", &json!({})).await.expect(201);
}
