//! RDF documents that the gateway refuses to read or to write, because of their size in memory or their format.
use crate::sparql::{PUMPS, ask, start};
use penstock_test_support::prelude::*;
use std::fmt::Write as _;

/// The answer is well-formed XML, or an error that says why it is none.
#[tokio::test(flavor = "multi_thread")]
async fn what_xml_cannot_express_is_refused() {
    let server = start(&[]).await;
    let rdf_xml = "application/rdf+xml";
    for predicate in [
        "http://v.example/123",
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#li",
        "http://v.example/",
    ] {
        let construct = format!("CONSTRUCT {{ <urn:a> <{predicate}> 1 }} {{}}");
        let problem = ask(&server, &construct, rdf_xml).await.problem(422);
        let detail = problem["detail"].text();
        assert!(detail.contains(predicate) && detail.contains("use another format"), "{detail}");
        ask(&server, &construct, "text/turtle").await.expect(200);
    }
    let control = "BIND(\"a\\u0001\" AS ?o)";
    let construct = format!("CONSTRUCT {{ <urn:a> <urn:p> ?o }} {{ {control} }}");
    ask(&server, &construct, rdf_xml).await.problem(422);
    let select = format!("SELECT ?o {{ {control} }}");
    ask(&server, &select, "application/sparql-results+xml").await.refused(422, "?o");
    ask(&server, &select, "application/sparql-results+json").await.expect(200);
    let select = "SELECT ?o { BIND(\"a\\r\\nb\" AS ?o) }";
    let text = ask(&server, select, "application/sparql-results+xml").await.expect(200).text();
    assert!(text.contains("a&#13;\nb"), "{text}");

    // The stored graph is a permanent obstacle too, and not a failure of the gateway.
    let li = "<urn:s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#li> 1 .";
    server.send("PUT", PUMPS, &[TURTLE], li).await.expect(204);
    server.get_with(PUMPS, &[("Accept", rdf_xml)]).await.problem(422);
    let greek = "<urn:s> <http://v.example/μέγεθος> 1 .";
    server.send("PUT", PUMPS, &[TURTLE], greek).await.expect(204);
    let text = server.get_with(PUMPS, &[("Accept", rdf_xml)]).await.expect(200).text();
    assert!(text.contains("μέγεθος"), "{text}");
}

/// Documents that would take more stack or memory than there is end with an error, and the gateway still answers.
#[tokio::test(flavor = "multi_thread")]
async fn documents_that_nest_or_expand_without_bound_are_refused() {
    let server = start(&[]).await;
    let turtle =
        format!("{}<urn:o>{} .", "<urn:s> <urn:p> <<( ".repeat(6_000), " )>>".repeat(6_000));
    let json = format!("{}{}", "{\"@graph\":[".repeat(1_000), "]}".repeat(1_000));
    let mut xml =
        "<?xml version=\"1.0\"?><!DOCTYPE rdf:RDF [<!ENTITY a0 \"aaaaaaaaaa\">".to_owned();
    for level in 1..12 {
        let value = format!("&a{};", level - 1).repeat(10);
        write!(xml, "<!ENTITY a{level} \"{value}\">").unwrap();
    }
    xml.push_str(
        "]><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"urn:e:\">\
         <rdf:Description rdf:about=\"urn:s\"><e:p>&a11;</e:p></rdf:Description></rdf:RDF>",
    );
    for (media_type, text) in [
        ("text/turtle", &turtle),
        ("application/n-triples", &turtle),
        ("application/ld+json", &json),
        ("application/rdf+xml", &xml),
    ] {
        let headers = [("Content-Type", media_type)];
        let problem = server.send("PUT", PUMPS, &headers, text.clone()).await.problem(400);
        assert_eq!(problem["errors"][0]["line"], 1, "{problem}");
        let problem =
            server.send("PUT", "/api/v1/shapes/x", &headers, text.clone()).await.problem(422);
        assert_eq!(problem["errors"][0]["line"], 1, "{problem}");
    }
    assert_eq!(server.page(PUMPS).await.lines().count(), 3);
}
