//! A minted URI returns its object, in the form that the client requests.
use penstock_test_support::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_minted_uri_returns_its_object_in_every_form() {
    let server = TestApp::start(&["--service.base-url=http://localhost/gate"]).await;
    server.define().await;
    let given = json!([{"name": "Größe", "parts": [{"label": "seal"}]}]);
    let answer = server.ingest("ADD", &given).await.expect(200).json();
    let uri = answer["objects"][0]["uri"].text();
    let part = answer["objects"][0]["nested"][0]["uri"].text();
    assert!(uri.starts_with("http://localhost/gate/id/Pump/"), "{uri}");
    let with_prefix = uri.strip_prefix("http://localhost").unwrap();
    let stripped = with_prefix.strip_prefix("/gate").unwrap();
    let get = async |path: &str, accept: &str| server.get_with(path, &[("Accept", accept)]).await;

    for path in [with_prefix, stripped] {
        let plain = server.get(path).await.expect(200);
        assert_eq!(plain.header("content-type"), "application/json");
        assert_eq!(plain.header("vary"), "Accept");
        assert_eq!(
            plain.json(),
            json!({"uri": uri, "name": "Größe", "parts": [{"uri": part, "label": "seal"}]})
        );
    }
    let nested = server.read(part.strip_prefix("http://localhost").unwrap()).await;
    assert_eq!(nested, json!({"uri": part, "label": "seal"}));

    let lines = get(stripped, "application/n-triples").await.expect(200);
    assert_eq!(lines.header("content-type"), "application/n-triples");
    let lines = String::from_utf8(lines.body.to_vec()).unwrap();
    assert!(lines.contains(&format!("<{uri}> <https://plant.example/part> <{part}>")), "{lines}");
    let turtle = get(stripped, "text/turtle, application/json;q=0.5").await.expect(200);
    assert_eq!(turtle.header("content-type"), "text/turtle; charset=utf-8");
    assert!(!turtle.text().contains("@prefix"), "no mapping has a prefix: {}", turtle.text());
    let linked = get(stripped, "application/ld+json").await.expect(200);
    assert_eq!(linked.header("content-type"), "application/ld+json");
    assert_eq!(linked.json()[0]["@id"], uri);

    let none = get(stripped, "image/png").await;
    let problem = none.problem(406);
    assert_eq!(none.header("vary"), "Accept");
    assert!(problem["detail"].has("text/turtle"));
    get("/id/Pump/none", "*/*").await.problem(404);
    server.send("HEAD", stripped, &[], "").await.expect(200);
    let deleted = server.delete(stripped).await;
    deleted.problem(405);
    assert_eq!(deleted.header("allow"), "GET, HEAD");

    // The base may have any path.
    let odd = "http://localhost/gate/plant/pumps/7";
    server.ingest("ADD", &json!([{"uri": odd, "name": "seven"}])).await.expect(200);
    assert_eq!(server.read("/plant/pumps/7").await["uri"], odd);
    server.get("/plant/pumps/8").await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_with_a_session_is_led_to_the_page_of_the_object() {
    let server = TestApp::start(&["--service.base-url=http://localhost/gate"]).await;
    server.define().await;
    let given = json!([{"name": "Feed pump", "parts": [{"label": "seal"}]}]);
    let answer = server.ingest("ADD", &given).await.expect(200).json();
    let uri = answer["objects"][0]["uri"].text();
    let path = uri.strip_prefix("http://localhost").unwrap();
    let person = Person::sign_in(&server, Role::User).await;
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let get = async |accept: &str| person.get_with(path, &[("Accept", accept)]).await;

    let led = get(browser).await.expect(303);
    assert_eq!(led.header("location"), format!("/gate/admin/object?uri={}", encoded(uri)));
    assert_eq!(led.header("vary"), "Accept");
    let page = person.page(led.header("location")).await;
    assert!(page.contains("<h1>Feed pump</h1>"), "{page}");
    get("text/html").await.expect(303);
    // Data that is preferred, or as good, is data.
    for accept in ["text/turtle, text/html;q=0.9", "text/html, text/turtle", "*/*"] {
        get(accept).await.expect(200);
    }
    // A program has no pages.
    let html = [("Accept", browser)];
    let program = server.get_with(path, &html).await.expect(200);
    assert_eq!(program.header("content-type"), "application/json");
    // What no Business Object shows has no page to lead to.
    let quad = "<http://localhost/gate/loose/1> <urn:p> \"x\" <urn:g> .";
    let load = server.control("POST", "/control/load?format=nq", &[], quad).await;
    load.expect(200);
    let loose = person.get_with("/gate/loose/1", &html).await.expect(200);
    assert_eq!(loose.header("content-type"), "text/turtle; charset=utf-8");
    person.get_with("/gate/loose/2", &html).await.expect(404);
}

/// Percent-encodes as the gateway does in the query of a link.
fn encoded(text: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    text.chars()
        .map(|c| if is_kept(c) { c.to_string() } else { format!("%{:02X}", c as u32) })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn turtle_has_the_prefixes_of_the_mappings_that_it_uses() {
    let server = TestApp::start(&["--service.base-url=http://localhost/gate"]).await;
    let config = "
prefixes:
  v: https://plant.example/
  unused: https://unused.example/
type: object
path: Pump:.
types: [v:Pump]
fields:
  name: {type: string, path: v:name}
  size: {type: integer, path: v:size}
";
    server.define_with(&json!({"config": config})).await;
    let given = json!([{"name": "Feed pump", "size": 3}]);
    let answer = server.ingest("ADD", &given).await.expect(200).json();
    let uri = answer["objects"][0]["uri"].text();
    let path = uri.strip_prefix("http://localhost").unwrap();
    let turtle = server.get_with(path, &[("Accept", "text/turtle")]).await;
    let turtle = turtle.expect(200).text();
    assert!(turtle.contains("@prefix v: <https://plant.example/> ."), "{turtle}");
    assert!(turtle.contains("v:name \"Feed pump\""), "{turtle}");
    assert!(!turtle.contains("unused") && !turtle.contains("@prefix brick"), "{turtle}");
}
