//! A minted URI returns its object, in the form that the client requests.
use crate::server::Server;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_minted_uri_returns_its_object_in_every_form() {
    let server = Server::start(&["--service.base-url=http://localhost/gate"]).await;
    server.define().await;
    let given = json!([{"name": "Größe", "parts": [{"label": "seal"}]}]);
    let answer = server.ingest("ADD", &given).await.expect(200).json();
    let uri = answer["objects"][0]["uri"].as_str().unwrap();
    let part = answer["objects"][0]["nested"][0]["uri"].as_str().unwrap();
    assert!(uri.starts_with("http://localhost/gate/id/Pump/"), "{uri}");
    let with_prefix = uri.strip_prefix("http://localhost").unwrap();
    let stripped = with_prefix.strip_prefix("/gate").unwrap();
    let get =
        async |path: &str, accept: &str| server.send("GET", path, &[("Accept", accept)], "").await;

    for path in [with_prefix, stripped] {
        let plain = server.get(path).await.expect(200);
        assert_eq!(plain.header("content-type"), "application/json");
        assert_eq!(plain.header("vary"), "Accept");
        assert_eq!(
            plain.json(),
            json!({"uri": uri, "name": "Größe", "parts": [{"uri": part, "label": "seal"}]})
        );
    }
    let nested =
        server.get(part.strip_prefix("http://localhost").unwrap()).await.expect(200).json();
    assert_eq!(nested, json!({"uri": part, "label": "seal"}));

    let lines = get(stripped, "application/n-triples").await.expect(200);
    assert_eq!(lines.header("content-type"), "application/n-triples");
    let lines = String::from_utf8(lines.body.to_vec()).unwrap();
    assert!(lines.contains(&format!("<{uri}> <https://plant.example/part> <{part}>")), "{lines}");
    let turtle = get(stripped, "text/turtle, application/json;q=0.5").await.expect(200);
    assert_eq!(turtle.header("content-type"), "text/turtle");
    let linked = get(stripped, "application/ld+json").await.expect(200);
    assert_eq!(linked.header("content-type"), "application/ld+json");
    assert_eq!(linked.json()[0]["@id"], uri);

    let none = get(stripped, "image/png").await;
    let problem = none.problem(406);
    assert_eq!(none.header("vary"), "Accept");
    assert!(problem["detail"].as_str().unwrap().contains("text/turtle"));
    get("/id/Pump/none", "*/*").await.problem(404);
    server.send("HEAD", stripped, &[], "").await.expect(200);
    let deleted = server.send("DELETE", stripped, &[], "").await;
    deleted.problem(405);
    assert_eq!(deleted.header("allow"), "GET, HEAD");

    // The base may have any path.
    let odd = "http://localhost/gate/plant/pumps/7";
    server.ingest("ADD", &json!([{"uri": odd, "name": "seven"}])).await.expect(200);
    assert_eq!(server.get("/plant/pumps/7").await.expect(200).json()["uri"], odd);
    server.get("/plant/pumps/8").await.problem(404);
}
