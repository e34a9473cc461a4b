//! The audit trail: events about accounts and credentials, and refused requests.
use crate::server::{Server, connect, definition};
use penstock_base::Role;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const AUDIT: &str = "/api/v1/audit";
const PASSWORD: &str = "correct horse battery";

async fn events(server: &Server, query: &str) -> Vec<Value> {
    let page = server.get(&format!("{AUDIT}?{query}")).await.expect(200).json();
    page["items"].as_array().unwrap().clone()
}

/// Waits until the trail has an event of this kind about `part`: those outside a commit follow within a second.
pub(crate) async fn until_event(server: &Server, what: &str, part: &str) {
    let begun = Instant::now();
    loop {
        let found = events(server, &format!("what={what}")).await;
        if found.iter().any(|event| event["detail"].as_str().unwrap().contains(part)) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "no {what} of {part}: {found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_has_the_steps_of_exports_targets_validations_and_dead_letters() {
    let server = Server::start(&[]).await;
    let turtle = [("Content-Type", "text/turtle")];
    let shape = "@prefix sh: <http://www.w3.org/ns/shacl#> . <urn:s> a sh:NodeShape ; sh:targetNode <urn:n> .";
    server.send("PUT", "/api/v1/shapes/pumps", &turtle, shape).await.expect(201);
    let mut body = definition();
    body["validation"] = json!({"shapes": ["pumps"], "mode": "off"});
    server.json("PUT", "/api/v1/business-objects", &body).await.expect(201);
    let post = async |path: &str| server.send("POST", path, &[], "").await;

    let pump = "/api/v1/business-objects/Pump";
    let given = json!({"data": [{"name": "a"}, {"name": 1}]});
    let answer =
        server.json("POST", &format!("{pump}?onError=skip"), &given).await.expect(200).json();
    let letter = answer["rejected"][0]["id"].as_str().unwrap();
    let ingestion = answer["ingestionId"].as_str().unwrap();
    let path = format!("/api/v1/ingestions/{ingestion}/rejected/{letter}");
    server.send("DELETE", &path, &[], "").await.expect(204);
    until_event(&server, "dead-letter.deleted", letter).await;
    server.send("DELETE", &path, &[], "").await.problem(404);
    assert_eq!(events(&server, "what=dead-letter").await.len(), 1);

    let started = post(&format!("{pump}/validation")).await.expect(202).json();
    until_event(&server, "validation.started", started["id"].as_str().unwrap()).await;

    let pushed = post(&format!("{pump}/push")).await.expect(202).json();
    let export = pushed["exports"][0]["id"].as_str().unwrap();
    let path = format!("/api/v1/exports/{export}");
    let begun = Instant::now();
    while server.get(&path).await.expect(200).json()["status"] != "delivered" {
        assert!(begun.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    post(&format!("{path}/park")).await.problem(409);
    post(&format!("{path}/replay")).await.expect(200);
    until_event(&server, "export.replayed", export).await;
    assert!(events(&server, "what=export.parked").await.is_empty());

    post("/api/v1/targets/plant-exports/test").await.expect(200);
    until_event(&server, "target.tested", "plant-exports").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_lists_events_and_never_a_credential() {
    let server = Server::start(&[]).await;
    let new = json!({"email": "ada", "password": PASSWORD, "roles": ["User"]});
    let account = server.json("POST", "/api/v1/users", &new).await.expect(201).json();
    let id = account["id"].as_str().unwrap();
    for password in ["a wrong password", PASSWORD] {
        let body = json!({"email": "ada", "password": password}).to_string();
        let headers = [("Content-Type", "application/json")];
        connect(server.address, "POST", "/login", &headers, body).await;
    }
    let path = format!("/api/v1/users/{id}");
    let change = json!({"roles": ["Contributor"], "enabled": false});
    server.json("PUT", &path, &change).await.expect(200);
    server
        .json("POST", &format!("{path}/password"), &json!({"password": "another horse battery"}))
        .await
        .expect(204);
    server.send("DELETE", &path, &[], "").await.expect(204);
    connect(server.address, "GET", AUDIT, &[("Apikey", "penstock_planted")], "").await.problem(401);

    let listed = events(&server, &format!("account={id}")).await;
    let kinds: Vec<&str> =
        listed.iter().rev().map(|event| event["what"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "account.created",
            "sign-in.refused",
            "sign-in",
            "role.changed",
            "account.disabled",
            "password.changed",
            "account.deleted",
        ]
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
    let server = Server::start(&["--service.limits.audit=5"]).await;
    for _ in 0..6 {
        server.make_key(Role::User, None);
    }
    let first = server.get(&format!("{AUDIT}?limit=3")).await.expect(200).json();
    let next = first["next"].as_str().unwrap();
    let rest = server.get(&format!("{AUDIT}?limit=3&cursor={next}")).await.expect(200).json();
    assert_eq!(rest["items"].as_array().unwrap().len(), 2);
    assert_eq!(rest["next"], Value::Null);
    for path in ["/api/v1/audit?cursor=78", "/api/v1/audit?limit=0", "/api/v1/audit?who=x"] {
        server.get(path).await.problem(400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_survives_a_restart() {
    let server = Server::start(&[]).await;
    server.make_key(Role::User, None);
    let before = events(&server, "").await;
    let dir = server.stop().await.unwrap();
    let server = Server::start_in(dir.path(), &[]).await.unwrap();
    let after = events(&server, "").await;
    assert!(before.iter().all(|event| after.contains(event)), "{before:?} {after:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_refusals_is_counted() {
    let server = Server::start(&[]).await;
    for _ in 0..30 {
        connect(server.address, "GET", AUDIT, &[("Apikey", "penstock_x")], "").await.problem(401);
    }
    assert_eq!(events(&server, "what=request.refused").await.len(), 3);
    let dir = server.stop().await.unwrap();
    let server = Server::start_in(dir.path(), &[]).await.unwrap();
    let events = events(&server, "what=request.refused").await;
    let counts: Vec<u64> = events.iter().map(|event| event["count"].as_u64().unwrap()).collect();
    assert_eq!(counts, [27, 1, 1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_trusted_proxies_determine_the_client_address() {
    let server = Server::start(&[
        "--server.forward-headers-strategy=native",
        "--service.trusted-proxies=127.0.0.1,192.0.2.0/24",
    ])
    .await;
    let status = async |headers: &[(&str, &str)]| {
        let headers = [headers, &[("Apikey", "penstock_x")]].concat();
        connect(server.address, "GET", AUDIT, &headers, "").await.status
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
            let refused = connect(server.address, "GET", path, &headers, "").await;
            let detail = refused.problem(400)["detail"].as_str().unwrap().to_owned();
            assert!(
                detail.contains("configure the proxy to write one of them"),
                "{headers:?}: {detail}"
            );
        }
    }
    // Without trusted proxies, neither header counts.
    let server = Server::start(&[]).await;
    let headers = [(standard, "for=10.0.0.1"), (usual, "203.0.113.1")];
    connect(server.address, "GET", "/health/live", &headers, "").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_creates_namespaces_at_a_limited_rate() {
    let server = Server::start(&[]).await;
    let cookie = server.sign_in(Role::Contributor);
    let headers = [
        ("Content-Type", "application/json"),
        ("Cookie", cookie.as_str()),
        ("Sec-Fetch-Site", "same-origin"),
    ];
    let put = async |number: u32| {
        let path = format!("/api/v1/namespaces/N{number}");
        server.send("PUT", &path, &headers, "{}").await
    };
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
    let problem = refused.problem(429);
    assert!(problem["detail"].as_str().unwrap().contains("created namespaces"), "{problem}");
    // Those that exist can be changed, and Admins have no limit.
    put(0).await.expect(200);
    server.json("PUT", "/api/v1/namespaces/Other", &json!({})).await.expect(201);
}
