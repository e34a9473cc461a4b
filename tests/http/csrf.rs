//! Requests that pages of other sites cause in a browser have no effect. Programs and the gateway's own pages are not
//! restricted.
use penstock_auth::sessions::Sessions;
use penstock_test_support::prelude::*;

const PUSH: &str = "/api/v1/business-objects/Pump/push";

#[tokio::test(flavor = "multi_thread")]
async fn a_session_acts_only_from_the_gateway_s_own_pages() {
    let server = TestApp::with_pumps().await;
    let cookie = server.sign_in(Role::Contributor);
    let id = cookie.split_once('=').unwrap().1;
    let token = Sessions::csrf_token(id);
    let own = format!("http://{}", server.address);
    let send = async |method: &str, path: &str, header: Option<(&str, &str)>| {
        let mut headers = vec![("Cookie", cookie.as_str())];
        headers.extend(header);
        connect(server.address, method, path, &headers, "").await.status
    };
    for (header, post, get) in [
        (None, 403, 403),
        (Some(("Sec-Fetch-Site", "same-origin")), 202, 202),
        // A typed address, or a link in an e-mail.
        (Some(("Sec-Fetch-Site", "none")), 202, 403),
        (Some(("Sec-Fetch-Site", "same-site")), 403, 403),
        (Some(("Sec-Fetch-Site", "cross-site")), 403, 403),
        (Some(("Origin", own.as_str())), 202, 202),
        (Some(("Origin", "http://localhost:1")), 403, 403),
        (Some(("Origin", "https://evil.example")), 403, 403),
        (Some(("Origin", "null")), 403, 403),
        (Some(("X-CSRF-Token", token.as_str())), 202, 202),
        (Some(("X-CSRF-Token", "x")), 403, 403),
        (Some(("X-CSRF-Token", "")), 403, 403),
    ] {
        assert_eq!(send("POST", PUSH, header).await, post, "{header:?}");
        assert_eq!(send("GET", PUSH, header).await, get, "{header:?}");
        assert_eq!(send("GET", "/api/v1/status", header).await, 200, "{header:?}");
    }
    // A navigation, such as a link that leads through the sign-in page.
    let navigation = [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Mode", "navigate")];
    let headers = [&[("Cookie", cookie.as_str())], &navigation[..]].concat();
    server.get_with(PUSH, &headers).await.expect(403);
    // Other notations of the address are the same route.
    for path in [
        "/api/v1/business-objects/Pump/pus%68",
        "/api/v1/business-objects/Pump/push/",
        "/api/v1/business-objects/Pump//push",
        "//api/v1/business-objects/Pump/push",
    ] {
        for header in [None, Some(("Sec-Fetch-Site", "cross-site"))] {
            let status = send("GET", path, header).await;
            assert!(matches!(status, 403 | 404), "{path}: {status}");
        }
    }
    // The token of one session is not valid for another.
    let other = server.cookie_of(Role::Contributor);
    let foreign = [("X-CSRF-Token", token.as_str())];
    other.send("POST", PUSH, &foreign, "").await.expect(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_acts_from_any_origin() {
    let server = TestApp::with_pumps().await;
    for header in [
        ("Sec-Fetch-Site", "cross-site"),
        ("Origin", "https://evil.example"),
        ("Host", "plant.example"),
        ("X-Forwarded-For", "192.0.2.1"),
    ] {
        server.send("POST", PUSH, &[header], "").await.expect(202);
        server.get_with(PUSH, &[header]).await.expect(202);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_are_refused_under_a_foreign_host() {
    let server = TestApp::start(&["--service.base-url=http://own.example/gate"]).await;
    let cookie = server.sign_in(Role::User);
    for (host, status) in [
        ("localhost", 200),
        ("LOCALHOST:8080", 200),
        ("127.0.0.2:1", 200),
        ("[::1]:8080", 200),
        ("192.0.2.1", 200),
        ("own.example", 200),
        ("evil.example", 403),
        ("own.example.evil.example", 403),
    ] {
        for (path, headers) in [
            ("/api-doc/openapi.json", &[("Host", host)][..]),
            ("/api/v1/status", &[("Host", host), ("Cookie", cookie.as_str())]),
        ] {
            let answer = server.anonymous().get_with(path, headers).await;
            assert_eq!(answer.status, status, "{path} at {host}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_allowed_origins_use_a_key_and_no_cookie() {
    let server = TestApp::start(&["--server.cors.allowed-origins=https://own.example"]).await;
    let preflight = async |origin: &str| {
        let headers = [
            ("Origin", origin),
            ("Access-Control-Request-Method", "PUT"),
            ("Access-Control-Request-Headers", "authorization"),
        ];
        server.anonymous().send("OPTIONS", "/api/v1/business-objects", &headers, "").await
    };
    let asked = preflight("https://own.example").await.expect(204);
    assert_eq!(asked.header("access-control-allow-origin"), "https://own.example");
    assert_eq!(asked.header("access-control-allow-credentials"), "");
    let allowed: Vec<_> = asked.header("access-control-allow-headers").split(',').collect();
    assert!(allowed.contains(&"authorization"), "{allowed:?}");
    // So can every header of the API be sent. Browsers allow Accept-Language themselves.
    let document = server.read("/api-doc/openapi.json").await;
    let operations = document["paths"].as_object().unwrap().values();
    let operations = operations.flat_map(|path| path.as_object().unwrap().values());
    let parameters = operations.flat_map(|one| one["parameters"].as_array().into_iter().flatten());
    let headers = parameters.filter(|one| one["in"] == "header").map(|one| one["name"].text());
    let headers: Vec<_> = headers.map(str::to_ascii_lowercase).collect();
    assert!(headers.len() > 5, "{headers:?}");
    for header in headers {
        let is_allowed = header == "accept-language" || allowed.contains(&header.as_str());
        assert!(is_allowed, "{header} is not in {allowed:?}");
    }
    assert_eq!(preflight("https://evil.example").await.header("access-control-allow-origin"), "");

    // The page can read the reason of the refusal.
    let stranger = [("Origin", "https://own.example")];
    let refused = server.anonymous().get_with("/api/v1/status", &stranger).await.expect(401);
    assert_eq!(refused.header("access-control-allow-origin"), "https://own.example");
    let answer = server.get_with("/api/v1/status", &stranger).await.expect(200);
    assert_eq!(answer.header("access-control-allow-origin"), "https://own.example");
    // And that the answer of a query is not what it may expect.
    assert!(answer.header("access-control-expose-headers").contains("penstock-warning"));
}
