//! The examples in docs/mapping.md become exactly the quads that the page shows.
use oxrdf::Quad;
use oxrdfio::{RdfFormat, RdfParser};
use penstock_model::rdf::{DumpOptions, Format, write_dump};
use penstock_test_support::prelude::*;
use std::collections::HashSet;

const PAGE: &str = include_str!("../../docs/mapping.md");

#[tokio::test]
async fn the_examples_become_the_quads_that_the_page_shows() {
    let server = TestApp::plain().await;
    for (_, text) in code_blocks(PAGE).into_iter().filter(|(info, _)| *info == "json namespaces") {
        for namespace in serde_json::from_str::<Vec<Value>>(text).unwrap() {
            let path = format!("/api/v1/namespaces/{}", namespace["name"].text());
            server.send("PUT", &path, &[JSON], namespace.to_string()).await.expect(201);
        }
    }
    let mut expected = HashSet::new();
    let mut examples = 0;
    for (info, text) in code_blocks(PAGE) {
        if let Some(name) = info.strip_prefix("yaml ") {
            let definition = json!({"name": name, "config": text}).to_string();
            server.send("PUT", "/api/v1/business-objects", &[JSON], definition).await.expect(201);
        } else if let Some(name) = info.strip_prefix("json data ") {
            let path = format!("/api/v1/business-objects/{name}?mode=ADD");
            let body = format!("{{\"data\": {text}}}");
            server.send("POST", &path, &[JSON], body).await.expect(200);
            examples += 1;
        } else if let Some(name) = info.strip_prefix("json document ") {
            let path = format!("/api/v1/business-objects/{name}?mode=ADD&form=document");
            server.send("POST", &path, &[JSON], text).await.expect(200);
            examples += 1;
        } else if info == "trig" {
            expected.extend(quads(RdfFormat::TriG, text.as_bytes()));
        }
    }
    assert!(examples >= 4 && expected.len() > 20, "the page has lost its examples");
    let mut stored = Vec::new();
    let all = DumpOptions { format: Format::NQuads, graph: None };
    write_dump(&server.gateway().store, &all, &mut stored, &mut |_| {}).unwrap();
    assert_eq!(quads(RdfFormat::NQuads, &stored), expected);
    server.stop().await;
}

fn quads(format: RdfFormat, text: &[u8]) -> HashSet<Quad> {
    RdfParser::from_format(format).for_slice(text).map(Result::unwrap).collect()
}
