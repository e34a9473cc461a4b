//! Invalid credentials, and how the answer describes the error (RFC 6750, 3).
use penstock_test_support::prelude::*;

const STATUS: &str = "/api/v1/status";

#[tokio::test(flavor = "multi_thread")]
async fn answers_name_the_error_of_a_credential() {
    let server = TestApp::plain().await;
    let key = server.key.clone();
    let bearer = format!("Bearer {key}");
    let wrong = format!("Bearer {}x", &key[..key.len() - 1]);
    let invalid = r#"Bearer realm="penstock", error="invalid_token", error_description=""#;
    let malformed = r#"Bearer realm="penstock", error="invalid_request", error_description=""#;
    let nothing = r#"Bearer realm="penstock""#;
    for (headers, status, challenge) in [
        (vec![], 401, nothing),
        (vec![("Authorization", "Basic YWRtaW46eA==")], 401, nothing),
        (vec![("Cookie", "penstock_session=x")], 401, nothing),
        (vec![("Authorization", wrong.as_str())], 401, invalid),
        (vec![("Authorization", "Bearer penstock_")], 401, invalid),
        (vec![("Authorization", "Bearer a.b.c")], 401, invalid),
        (vec![("Apikey", "x")], 401, invalid),
        (vec![("Authorization", "Bearer ")], 400, malformed),
        (vec![("Authorization", &bearer), ("Apikey", &key)], 400, malformed),
        (vec![("Authorization", &bearer), ("Authorization", &bearer)], 400, malformed),
        (vec![("Authorization", &bearer), ("Authorization", "Bearer a.b.c")], 400, malformed),
    ] {
        let answer = connect(server.address, "GET", STATUS, &headers, "").await;
        let detail = answer.problem(status)["detail"].string();
        assert!(answer.header("www-authenticate").starts_with(challenge), "{headers:?} {answer:?}");
        assert!(!detail.contains(&key), "{detail}");
    }
    // The header counts, not the cookie in the same request.
    let both = [("Authorization", bearer.as_str()), ("Cookie", "penstock_session=x")];
    connect(server.address, "GET", STATUS, &both, "").await.expect(200);
    let both = [("Authorization", wrong.as_str()), ("Cookie", "penstock_session=x")];
    connect(server.address, "GET", STATUS, &both, "").await.problem(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_bad_credentials_are_delayed_and_good_ones_are_not() {
    let server = TestApp::plain().await;
    let mut told = None;
    for _ in 0..3000 {
        let answer =
            connect(server.address, "GET", STATUS, &[("Apikey", "penstock_wrong")], "").await;
        if answer.status == 429 {
            assert!(answer.header("retry-after").parse::<u64>().unwrap() >= 1);
            answer.problem(429);
            told = Some(());
            break;
        }
        answer.problem(401);
    }
    assert!(told.is_some(), "none of three thousand bad keys got 429");
    server.get(STATUS).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_in_the_audit_trail_with_their_reason() {
    let server = TestApp::plain().await;
    let planted = "penstock_plantedplantedplantedplantedplanted";
    connect(server.address, "GET", STATUS, &[("Apikey", planted)], "").await.problem(401);
    let reader = server.make_key(Role::User, None);
    let audit = [("Apikey", reader.as_str())];
    connect(server.address, "GET", "/api/v1/audit", &audit, "").await.problem(403);
    let refused = until_some("both refusals are in the trail", async || {
        let mut trail = server.items("/api/v1/audit").await;
        assert!(!json!(trail).to_string().contains("planted"), "{trail:?}");
        trail.retain(|event| event["what"] == "request.refused");
        (trail.len() >= 2).then_some(trail)
    })
    .await;
    let details: Vec<_> = refused.iter().filter_map(|event| event["detail"].as_str()).collect();
    assert!(details.iter().any(|detail| detail.contains("needs the role Admin")), "{details:?}");
    assert!(refused.iter().all(|event| event["from"] == "127.0.0.1"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_name_the_account() {
    let server = TestApp::plain().await;
    let cookie = server.sign_in(Role::Admin);
    let headers = [("Cookie", cookie.as_str()), ("Sec-Fetch-Site", "same-origin"), JSON];
    let send = async |method: &str, path: &str, body: Value| {
        connect(server.address, method, path, &headers, body.to_string()).await
    };
    let me = send("GET", "/api/v1/users/me", Value::Null).await.expect(200).json();
    let defined = send("PUT", "/api/v1/business-objects", definition()).await.expect(201).json();
    assert_eq!(defined["updatedBy"], me["id"]);
    let body = json!({"data": [{"name": "x"}]});
    send("POST", "/api/v1/business-objects/Pump", body).await.expect(200);
    let record = send("GET", "/api/v1/ingestions", Value::Null).await.expect(200).json();
    assert_eq!(record["items"][0]["caller"], me["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_explains_how_to_get_credentials() {
    let server = TestApp::start(&["--service.base-url=http://localhost/gate"]).await;
    let create = "`penstock api-key create";
    let detail = async |method: &str, path: &str, headers: &[(&str, &str)], status: u16| {
        let answer = connect(server.address, method, path, headers, "").await;
        answer.problem(status)["detail"].string()
    };
    let reader = server.make_key(Role::User, None);
    for told in [
        detail("GET", STATUS, &[], 401).await,
        detail("GET", STATUS, &[("Apikey", "penstock_wrong")], 401).await,
        detail("GET", "/api/v1/users", &[("Apikey", &reader)], 403).await,
    ] {
        assert!(told.contains(create) && told.contains("/gate/admin/keys"), "{told}");
    }
    let told = detail("GET", "/api/v1/users", &[("Apikey", &reader)], 403).await;
    assert!(told.contains("`penstock api-key create --role Admin`"), "{told}");
    let cookie = server.sign_in(Role::Admin);
    let foreign =
        [("Cookie", cookie.as_str()), ("Sec-Fetch-Site", "cross-site"), ("Host", "localhost")];
    let told = detail("POST", "/api/v1/users", &foreign, 403).await;
    assert!(told.contains("hidden field _csrf") && told.contains(create), "{told}");
}
