//! The OpenAPI document and the Swagger UI, which the gateway serves itself.
use penstock_test_support::prelude::*;
use std::io::Read as _;

#[tokio::test(flavor = "multi_thread")]
async fn the_page_loads_only_from_the_gateway() {
    let server = TestApp::plain().await;
    let page = server.get("/swagger-ui/").await.expect(200);
    assert!(page.header("content-type").starts_with("text/html"));
    assert!(page.header("content-security-policy").starts_with("default-src 'self'"));
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    assert!(!text.contains("://"), "{text}");
    let start = server.get("/swagger-ui/start.js").await.expect(200);
    let start = String::from_utf8(start.body.to_vec()).unwrap();
    assert!(start.contains("\"../api-doc/openapi.json\""), "{start}");
    assert!(start.contains("validatorUrl: \"none\""), "{start}");
    for file in ["swagger-ui.css", "swagger-ui-bundle.js"] {
        assert!(text.contains(&format!("./{file}")), "{text}");
        let path = format!("/swagger-ui/{file}");
        let plain = server.get(&path).await.expect(200);
        assert_eq!(plain.header("content-encoding"), "");
        let packed = [("Accept-Encoding", "br, gzip;q=0.8")];
        let packed = server.get_with(&path, &packed).await.expect(200);
        assert_eq!(packed.header("content-encoding"), "gzip");
        assert!(packed.body.len() * 2 < plain.body.len(), "{}", packed.body.len());
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&packed.body[..]).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, plain.body);
        let refused = [("Accept-Encoding", "gzip;q=0, identity")];
        let refused = server.get_with(&path, &refused).await.expect(200);
        assert_eq!(refused.body, plain.body);
    }
    server.get("/swagger-ui/none.js").await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_names_every_route_of_the_contract() {
    let server = TestApp::plain().await;
    let answer = server.get("/api-doc/openapi.json").await.expect(200);
    assert_eq!(answer.header("content-type"), "application/json");
    let document = answer.json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["servers"][0]["url"], "/");
    for (method, path) in [
        ("put", "/api/v1/business-objects"),
        ("get", "/api/v1/business-objects"),
        ("get", "/api/v1/business-objects/{id}"),
        ("put", "/api/v1/business-objects/{id}"),
        ("delete", "/api/v1/business-objects/{id}"),
        ("post", "/api/v1/business-objects/{id}"),
        ("get", "/api/v1/business-objects/{id}/push"),
        ("post", "/api/v1/business-objects/{id}/push"),
        ("get", "/api/v1/business-objects/{id}/objects"),
        ("get", "/api/v1/business-objects/{id}/objects/{uri}"),
        ("get", "/api/v1/business-objects/{id}/schema"),
        ("get", "/api/v1/business-objects/{id}/shapes"),
        ("get", "/api/v1/ingestions/{id}"),
        ("delete", "/api/v1/namespaces/{name}"),
        ("get", "/api/v1/exports/{id}/content"),
        ("post", "/api/v1/exports/{id}/replay"),
        ("get", "/api/v1/targets"),
        ("get", "/api/v1/limits"),
        ("get", "/api/v1/status"),
        ("get", "/health/ready"),
        ("get", "/metrics"),
    ] {
        assert!(document["paths"][path][method]["responses"].is_object(), "{method} {path}");
    }
    let taken =
        &document["paths"]["/api/v1/business-objects/{id}"]["post"]["requestBody"]["content"];
    for media_type in ["application/json", "application/x-ndjson", "text/csv"] {
        assert!(taken[media_type].is_object(), "{media_type}");
    }
    let file = &document["paths"]["/api/v1/exports/{id}/content"]["get"]["responses"]["200"];
    let contents = file["content"].as_object().unwrap().keys().collect::<Vec<_>>();
    assert_eq!(contents, ["application/json", "application/x-ndjson"]);
}
