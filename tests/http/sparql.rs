//! SPARQL over HTTP: the protocol, updates, the Graph Store Protocol, and who may do what.
use penstock_auth::sessions::Sessions;
use penstock_test_support::prelude::*;
use penstock_test_support::stub::{answer_with, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

const UPDATES: &str = "--service.sparql.update=true";
const TSV: &str = "text/tab-separated-values";
const QUERY_TYPE: (&str, &str) = ("Content-Type", "application/sparql-query");
const UPDATE_TYPE: (&str, &str) = ("Content-Type", "application/sparql-update");
pub(super) const PUMPS: &str = "/sparql/graphs?graph=urn:g:pumps";
/// The head of a query for CSV, without its length.
const REQUEST: &str = "Accept: text/csv\r\nContent-Type: application/sparql-query\r\n";
const DATA: &str =
    "<urn:p:1> <urn:name> \"Feed pump\"@en ; <urn:flow> 01.50 .\n<urn:p:2> <urn:flow> 7 .\n";

/// Starts a gateway with two pumps in a graph.
pub(super) async fn start(arguments: &[&str]) -> TestApp {
    let server = TestApp::start(&[&[UPDATES], arguments].concat()).await;
    server.send("PUT", PUMPS, &[TURTLE], DATA).await.expect(201);
    server
}

pub(super) async fn ask(server: &TestApp, query: &str, accept: &str) -> Answer {
    server.send("POST", "/sparql", &[QUERY_TYPE, ("Accept", accept)], query.to_owned()).await
}

async fn update(server: &TestApp, update: &str) -> Answer {
    server.send("POST", "/sparql/update", &[UPDATE_TYPE], update.to_owned()).await
}

/// Returns the values of `?o`, ordered.
async fn objects(server: &TestApp, query: &str) -> Vec<String> {
    let answer = ask(server, query, "application/sparql-results+json").await.expect(200).json();
    let rows = answer["results"]["bindings"].list();
    let mut values: Vec<_> = rows.iter().map(|row| row["o"]["value"].string()).collect();
    values.sort();
    values
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_is_probably_not_meant_is_answered_with_a_warning() {
    let server = start(&[]).await;
    let query = |having: &str| {
        format!("SELECT ?p (COUNT(*) AS ?n) {{ ?s ?p ?o }} GROUP BY ?p HAVING ({having} > 1)")
    };
    let warned = ask(&server, &query("?n"), "text/csv").await.expect(200);
    assert!(warned.header("penstock-warning").contains("HAVING names ?n,"));
    assert_eq!(warned.text().trim(), "p,n");
    let plain = ask(&server, &query("COUNT(*)"), "text/csv").await.expect(200);
    assert_eq!(plain.header("penstock-warning"), "");
    assert_eq!(plain.text().trim(), "p,n\r\nurn:flow,2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_comes_in_the_url_in_a_form_or_as_the_body() {
    let server = start(&[]).await;
    let query = "SELECT ?o { <urn:p:1> <urn:flow> ?o }";
    let path = format!("/sparql?query={}", escaped(query));
    let form = format!("query={}", escaped(query));
    let by_url = server.get(&path).await.expect(200);
    let by_form = server.send("POST", "/sparql", &[FORM], form).await.expect(200);
    let by_body = server.send("POST", "/sparql", &[QUERY_TYPE], query).await.expect(200);
    assert_eq!(by_url.body, by_form.body);
    assert_eq!(by_url.body, by_body.body);
    assert_eq!(by_url.header("content-type"), "application/sparql-results+json");
    assert_eq!(by_url.header("vary"), "Accept");
    let value = &by_url.json()["results"]["bindings"][0]["o"];
    // The number keeps its digits.
    assert_eq!(value["value"], "01.50");
    let head = server.send("HEAD", &path, &[], "").await.expect(200);
    assert!(head.body.is_empty());
    // Some clients add these to each query.
    server.get(&format!("{path}&format=json&output=json&results=json")).await.expect(200);

    for (method, path, headers, body, status) in [
        ("GET", "/sparql?default-graph-uri=urn:g", &[][..], "", 400),
        ("GET", "/sparql?query=ASK%7B%7D&query=ASK%7B%7D", &[], "", 400),
        ("GET", "/sparql?query=ASK%7B%7D&defaultgraph=urn:g", &[], "", 400),
        ("GET", "/sparql?query=ASK%7B%7D&default-graph-uri=relative", &[], "", 400),
        ("GET", "/sparql?update=CLEAR%20ALL", &[], "", 400),
        ("POST", "/sparql", &[FORM], "default-graph-uri=urn:g", 400),
        ("POST", "/sparql?query=ASK%7B%7D", &[QUERY_TYPE], "ASK{}", 400),
        ("POST", "/sparql", &[UPDATE_TYPE], "CLEAR ALL", 415),
        ("POST", "/sparql", &[], "ASK{}", 415),
        ("PUT", "/sparql", &[QUERY_TYPE], "ASK{}", 405),
    ] {
        let answer = server.send(method, path, headers, body).await;
        assert_eq!(answer.status, status, "{method} {path} {body}: {answer:?}");
        answer.problem(status);
    }
    let long = format!("ASK {{}} #{}", "x".repeat(1 << 20));
    server.send("POST", "/sparql", &[QUERY_TYPE], long).await.problem(413);
}

#[tokio::test(flavor = "multi_thread")]
async fn accept_chooses_the_format_that_fits_the_query() {
    let server = start(&[]).await;
    let select = "SELECT ?o { ?s <urn:flow> ?o } ORDER BY ?s";
    let xsd = "http://www.w3.org/2001/XMLSchema#";
    for (query, accept, media_type, text) in [
        (select, "text/csv", "text/csv; charset=utf-8", "o\r\n01.50\r\n7\r\n".to_owned()),
        (select, TSV, "text/tab-separated-values; charset=utf-8", "?o\n01.50\n7\n".to_owned()),
        ("ASK {}", JSON.1, JSON.1, r#"{"head":{},"boolean":true}"#.to_owned()),
        (
            "CONSTRUCT { ?s <urn:q> ?o } { ?s <urn:flow> ?o FILTER (?o > 2) }",
            "application/n-triples, text/turtle;q=0.5",
            "application/n-triples",
            format!("<urn:p:2> <urn:q> \"7\"^^<{xsd}integer> .\n"),
        ),
    ] {
        let answer = ask(&server, query, accept).await.expect(200);
        assert_eq!((answer.header("content-type"), answer.text()), (media_type, text));
    }
    for (query, accept, begin) in [
        (select, "application/sparql-results+xml", "<?xml"),
        ("DESCRIBE <urn:p:1>", "*/*", "<urn:p:1>"),
        ("DESCRIBE <urn:p:1>", "application/rdf+xml", "<?xml"),
        ("DESCRIBE <urn:p:1>", "application/ld+json", "[{"),
        ("DESCRIBE <urn:p:1>", "application/trig", "<urn:p:1>"),
        ("DESCRIBE <urn:p:1>", "application/n-quads", "<urn:p:1>"),
    ] {
        let answer = ask(&server, query, accept).await;
        // RDF/XML cannot write these predicates.
        if accept == "application/rdf+xml" && answer.status != 200 {
            continue;
        }
        let text = answer.expect(200).text();
        assert!(text.starts_with(begin), "{accept}: {text}");
    }
    ask(&server, select, "text/turtle").await.refused(406, "application/sparql-results+xml");
    let refused = ask(&server, "DESCRIBE <urn:p:1>", "text/csv").await;
    assert!(refused.problem(406)["detail"].has("text/turtle"));
    assert_eq!(refused.header("vary"), "Accept");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_describes_itself() {
    let server = TestApp::start(&["--service.base-url=http://localhost/gate"]).await;
    let description = server.get("/sparql").await.expect(200);
    assert_eq!(description.header("content-type"), "text/turtle; charset=utf-8");
    let accept = [("Accept", "application/n-triples")];
    let text = server.get_with("/sparql", &accept).await.expect(200).text();
    let sd = "http://www.w3.org/ns/sparql-service-description#";
    let endpoint = "<http://localhost/gate/sparql>";
    for (predicate, object) in [
        ("endpoint", endpoint.to_owned()),
        ("supportedLanguage", format!("<{sd}SPARQL11Query>")),
        ("feature", format!("<{sd}UnionDefaultGraph>")),
        ("resultFormat", "<http://www.w3.org/ns/formats/SPARQL_Results_JSON>".to_owned()),
        ("resultFormat", "<http://www.w3.org/ns/formats/Turtle>".to_owned()),
    ] {
        let line = format!("{endpoint} <{sd}{predicate}> {object} .");
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    assert!(!text.contains("SPARQL11Update") && !text.contains("BasicFederatedQuery"), "{text}");
    server.get_with("/sparql", &[("Accept", "text/csv")]).await.problem(406);
    let open = start(&["--service.sparql.services=http://127.0.0.1:9/sparql"]).await;
    let text = open.page("/sparql").await;
    assert!(text.contains("SPARQL11Update") && text.contains("BasicFederatedQuery"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_syntax_error_has_its_line_and_column() {
    let server = start(&[]).await;
    for (path, kind, text) in [
        ("/sparql", QUERY_TYPE, "SELECT *\nWHERE { ?s ?p }"),
        ("/sparql/update", UPDATE_TYPE, "INSERT DATA {\n <urn:a> <urn:b> }"),
    ] {
        let problem = server.send("POST", path, &[kind], text).await.problem(400);
        let error = &problem["errors"][0];
        assert_eq!(error["line"], 2, "{problem}");
        assert!(error["column"].as_u64().unwrap() > 1, "{problem}");
    }
    let nested = format!("ASK {}{}", "{".repeat(50_000), "}".repeat(50_000));
    ask(&server, &nested, "*/*").await.problem(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_replace_the_graphs_of_the_query() {
    let server = start(&[]).await;
    let data = "<urn:p:3> <urn:flow> 9 .";
    server.send("PUT", "/sparql/graphs?default", &[TURTLE], data).await.expect(201);
    let all = "SELECT ?o { ?s <urn:flow> ?o }";
    assert_eq!(objects(&server, all).await, ["01.50", "7", "9"]);
    let named = "SELECT ?o FROM <urn:g:none> { ?s <urn:flow> ?o }";
    assert!(objects(&server, named).await.is_empty());
    let path = format!("/sparql?query={}&default-graph-uri=urn:g:pumps", escaped(named));
    let answer = server.read(&path).await;
    assert_eq!(answer["results"]["bindings"].list().len(), 2);
    let graphs = escaped("SELECT ?o { GRAPH ?o {} }");
    let form = format!("query={graphs}&named-graph-uri=urn:g:none&named-graph-uri=urn:g:pumps");
    let answer = server.send("POST", "/sparql", &[FORM], form).await.expect(200).json();
    let rows = answer["results"]["bindings"].list();
    assert!(rows.iter().any(|row| row["o"]["value"] == "urn:g:pumps"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_off_by_default_and_only_for_admins() {
    let closed = TestApp::plain().await;
    for (method, path, kind) in [
        ("POST", "/sparql/update", UPDATE_TYPE),
        ("PUT", PUMPS, TURTLE),
        ("POST", PUMPS, TURTLE),
        ("DELETE", PUMPS, TURTLE),
    ] {
        closed.send(method, path, &[kind], "").await.refused(403, "service.sparql.update");
    }
    let server = start(&[]).await;
    server.define().await;
    let query = "/sparql?query=ASK%7B%7D";
    let send = async |caller: &Caller, method: &str, path: &str, kind: (&str, &str)| {
        caller.send(method, path, &[kind], "").await.status
    };
    for role in [Role::User, Role::Contributor] {
        let key = server.with_key(role, None);
        assert_eq!(send(&key, "GET", query, TURTLE).await, 200);
        assert_eq!(send(&key, "GET", PUMPS, TURTLE).await, 200);
        assert_eq!(send(&key, "POST", "/sparql/update", UPDATE_TYPE).await, 403);
        for method in ["PUT", "POST", "DELETE"] {
            assert_eq!(send(&key, method, PUMPS, TURTLE).await, 403, "{method}");
        }
    }
    // A key for one Business Object reads nothing else, so it may not query everything.
    let bound = server.with_key(Role::Admin, Some("Pump"));
    assert_eq!(send(&bound, "GET", query, TURTLE).await, 403);
    assert_eq!(send(&bound, "POST", "/sparql", QUERY_TYPE).await, 403);
    assert_eq!(send(&bound, "POST", "/sparql/update", UPDATE_TYPE).await, 403);
    assert_eq!(send(&bound, "GET", PUMPS, TURTLE).await, 403);
    server.anonymous().get(query).await.problem(401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_changes_quads_only_with_its_token() {
    let server = start(&[]).await;
    let cookie = server.sign_in(Role::Admin);
    let token = Sessions::csrf_token(cookie.split_once('=').unwrap().1);
    let own = ("Sec-Fetch-Site", "same-origin");
    let send = async |method: &str, path: &str, headers: &[(&str, &str)]| {
        let headers = [&[("Cookie", cookie.as_str())], headers].concat();
        connect(server.address, method, path, &headers, "").await.status
    };
    for (method, path, kind, done) in [
        ("POST", "/sparql/update", UPDATE_TYPE, 200),
        ("POST", PUMPS, TURTLE, 204),
        ("PUT", PUMPS, TURTLE, 204),
        ("DELETE", PUMPS, TURTLE, 404),
    ] {
        assert_eq!(send(method, path, &[kind]).await, 403, "{method} {path}");
        assert_eq!(send(method, path, &[kind, own]).await, 403, "{method} {path}");
        let with_token = [kind, own, ("X-CSRF-Token", token.as_str())];
        assert_eq!(send(method, path, &with_token).await, done, "{method} {path}");
    }
    // Reading needs none.
    assert_eq!(send("GET", "/sparql?query=ASK%7B%7D", &[]).await, 200);
    assert_eq!(send("POST", "/sparql", &[QUERY_TYPE, own]).await, 400);
    assert_eq!(send("POST", "/sparql", &[QUERY_TYPE, ("Sec-Fetch-Site", "cross-site")]).await, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_is_one_commit_with_its_record_and_its_event() {
    let server = start(&[]).await;
    let text = "INSERT DATA { <urn:p:3> <urn:flow> 1 ; <urn:name> 'x' } ; \
                DELETE WHERE { GRAPH ?g { <urn:p:2> ?p ?o } } ; DELETE DATA { <urn:none> <urn:p> 1 }";
    let form = format!("update={}", escaped(text));
    let headers =
        [FORM, ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")];
    let answer =
        server.send("POST", "/sparql/update", &headers, form.clone()).await.expect(200).json();
    assert_eq!((answer["inserted"].as_u64(), answer["removed"].as_u64()), (Some(2), Some(1)));

    let id = answer["ingestionId"].text();
    let record = server.read(&format!("/api/v1/ingestions/{id}")).await;
    assert_eq!(record["mode"], "SPARQL");
    assert_eq!(record["quads"], json!({"inserted": 2, "removed": 1}));
    assert_eq!(record["bytes"], form.len());
    assert!(record["sequence"].as_u64().unwrap() > 0, "{record}");
    assert!(record["traceparent"].has("0af7651916cd43dd8448eb211c80319c"));
    assert!(record.get("businessObject").is_none() && record["apiKey"].is_string(), "{record}");
    let list = server.items("/api/v1/ingestions?limit=1").await;
    assert_eq!(list[0], record);

    let events = server.items("/api/v1/audit?what=data.updated").await;
    let detail = events[0]["detail"].text();
    assert!(detail.contains("2 quads inserted, 1 removed") && detail.contains(id), "{detail}");
    assert_eq!(objects(&server, "SELECT ?o { ?s <urn:flow> ?o }").await, ["01.50", "1"]);
    // An error in the last operation undoes all.
    let failing = "INSERT DATA { <urn:p:4> <urn:flow> 1 } ; DROP GRAPH <urn:g:none>";
    assert_eq!(update(&server, failing).await.status, 404);
    assert_eq!(objects(&server, "SELECT ?o { <urn:p:4> ?p ?o }").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_is_bounded_and_stores_no_blank_node() {
    let server = start(&["--service.limits.sparql.update=3"]).await;
    let many = "INSERT DATA { <urn:a> <urn:p> 1, 2, 3, 4 }";
    update(&server, many).await.refused(413, "service.limits.sparql.update");
    update(&server, "INSERT DATA { <urn:a> <urn:p> 1, 2, 3 }").await.expect(200);
    let document = "<urn:b> <urn:p> 1, 2, 3, 4 .";
    server.send("POST", PUMPS, &[TURTLE], document).await.problem(413);

    let blank = "INSERT DATA { _:x <urn:p> 5 }";
    update(&server, blank).await.refused(422, "?skolemize=<IRI>");
    let path = format!("/sparql/update?skolemize={}", escaped("urn:genid:"));
    server.send("POST", &path, &[UPDATE_TYPE], blank).await.expect(200);
    let made = "SELECT ?o { ?o <urn:p> 5 }";
    assert!(objects(&server, made).await[0].starts_with("urn:genid:"));
    for refused in [
        "LOAD <http://127.0.0.1:1/x>",
        "INSERT { ?s ?p ?o } WHERE { SERVICE <urn:s> { ?s ?p ?o } }",
    ] {
        update(&server, refused).await.problem(422);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_is_exported_on_change() {
    let server = start(&[]).await;
    server
        .define_with(&json!({"exportOnChange": true, "pushTargets": [{"bucketName": "embedded"}]}))
        .await;
    server
        .ingest("ADD", &json!([{"uri": "https://plant.example/p/1", "name": "a"}]))
        .await
        .expect(200);
    let names = async || {
        let exports = server.read("/api/v1/exports").await;
        let mut names = Vec::new();
        for export in exports["items"].list() {
            let path = format!("/api/v1/exports/{}/content", export["id"].text());
            let content = server.get(&path).await;
            if content.status == 200 {
                names.push(content.json()["data"][0]["name"].clone());
            }
        }
        names
    };
    let wait_for = async |name: &str| {
        until(name, async || names().await.contains(&Value::from(name))).await;
    };
    wait_for("a").await;
    let text = "DELETE { GRAPH ?g { ?s ?p ?o } } INSERT { GRAPH ?g { ?s ?p 'b' } } \
                WHERE { GRAPH ?g { ?s ?p ?o } FILTER (?p = <https://plant.example/name>) }";
    let answer = update(&server, text).await.expect(200).json();
    assert_eq!((answer["inserted"].as_u64(), answer["removed"].as_u64()), (Some(1), Some(1)));
    wait_for("b").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn graphs_are_read_replaced_extended_and_deleted() {
    let server = start(&[]).await;
    let nt = [("Accept", "application/n-triples")];
    let get = async |path: &str| server.get_with(path, &nt).await;
    let lines = async |path: &str| get(path).await.expect(200).text().lines().count();
    assert_eq!(lines(PUMPS).await, 3);
    let head = server.send("HEAD", PUMPS, &nt, "").await.expect(200);
    assert_eq!((head.header("content-type"), head.body.len()), ("application/n-triples", 0));
    get("/sparql/graphs?graph=urn:g:none").await.problem(404);
    assert_eq!(server.send("HEAD", "/sparql/graphs?graph=urn:g:none", &[], "").await.status, 404);

    // Only what differs is a change.
    let other = "<urn:p:2> <urn:flow> 7, 8 .";
    server.send("PUT", PUMPS, &[TURTLE], other).await.expect(204);
    assert_eq!(lines(PUMPS).await, 2);
    let list = server.items("/api/v1/ingestions?limit=1").await;
    assert_eq!(list[0]["quads"], json!({"inserted": 1, "removed": 2}));
    let added = r#"[{"@id": "urn:p:5", "urn:name": [{"@value": "five"}]}]"#;
    let json_ld = ("Content-Type", "application/ld+json");
    server.send("POST", PUMPS, &[json_ld], added).await.expect(204);
    assert_eq!(lines(PUMPS).await, 3);
    let new = "/sparql/graphs?graph=urn:g:new";
    server.send("POST", new, &[TURTLE], "<> <urn:p> <#x> .").await.expect(201);
    assert_eq!(get(new).await.text(), "<urn:g:new> <urn:p> <urn:g:new#x> .\n");

    // The default graph is the unnamed one, and deleting it leaves the named ones.
    let default = "/sparql/graphs?default";
    assert_eq!(lines(default).await, 0);
    server.send("PUT", default, &[TURTLE], "<urn:d> <urn:p> 1 .").await.expect(201);
    assert_eq!(lines(default).await, 1);
    server.delete(default).await.expect(204);
    assert_eq!((lines(default).await, lines(PUMPS).await), (0, 3));
    server.delete(PUMPS).await.expect(204);
    server.delete(PUMPS).await.problem(404);
    get(PUMPS).await.problem(404);

    for path in [
        "/sparql/graphs",
        "/sparql/graphs?graph=relative",
        "/sparql/graphs?default&graph=urn:g",
        "/sparql/graphs?default=x",
    ] {
        server.get(path).await.problem(400);
    }
    server.get_with(default, &[("Accept", "text/csv")]).await.problem(406);
    server.send("PUT", PUMPS, &[("Content-Type", "text/csv")], "").await.problem(415);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_a_document_has_its_place() {
    let server = start(&[]).await;
    let problem = server.send("PUT", PUMPS, &[TURTLE], "<urn:a> <urn:b> 1 .\n<urn:a> oops").await;
    let error = &problem.problem(400)["errors"][0];
    assert_eq!(error["line"], 2, "{error}");
    let problem =
        server.send("POST", PUMPS, &[TURTLE], "<urn:a> <urn:b> 1 .\n_:x <urn:b> 1 .").await;
    let problem = problem.problem(422);
    let error = &problem["errors"][0];
    assert_eq!((error["line"].as_u64(), error["column"].as_u64()), (Some(2), Some(1)), "{problem}");
    assert!(error["message"].has("?skolemize=<IRI>"), "{problem}");
    let path = format!("{PUMPS}&skolemize=urn:genid:");
    server.send("POST", &path, &[TURTLE], "_:x <urn:b> 1 .").await.expect(204);
    let nq = ("Content-Type", "application/n-quads");
    let other = "<urn:a> <urn:b> <urn:c> <urn:other> .\n";
    server.send("POST", PUMPS, &[nq], other).await.problem(400);
    // Nothing of a refused document is stored.
    let all = "SELECT ?o { ?o <urn:b> ?x }";
    assert_eq!(objects(&server, all).await, ["urn:genid:x"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_named_before_the_first_byte_and_breaks_off_after_it() {
    let server = start(&["--service.limits.sparql.rows=1000"]).await;
    let values: Vec<_> = (0..1001).map(|n| format!("\"{n}{}\"", "x".repeat(200))).collect();
    let document = format!("<urn:many> <urn:value> {} .", values.join(", "));
    server.send("POST", PUMPS, &[TURTLE], document).await.expect(204);
    let many = "SELECT ?s { <urn:many> <urn:value> ?o BIND (1 AS ?s) }";
    let problem = ask(&server, many, "text/csv").await.problem(422);
    let detail = problem["detail"].text();
    assert!(detail.contains("service.limits.sparql.rows") && detail.contains("1000"), "{detail}");

    let long = "SELECT ?o { <urn:many> <urn:value> ?o }";
    let lines = |query: &str| format!("{REQUEST}Content-Length: {}\r\n", query.len());
    let mut stream = server.begin("POST /sparql", &lines(long)).await;
    stream.write_all(long.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // The connection ends, with an error or without.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.to_ascii_lowercase().contains("transfer-encoding: chunked"), "{answer}");
    assert!(answer.len() > 64 << 10 && !answer.ends_with("\r\n0\r\n\r\n"), "{}", answer.len());
    // With HTTP/1.0 the end of the connection is the end of the answer.
    for (query, status) in [(long.to_owned(), 505), (format!("{long} LIMIT 10"), 200)] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = format!(
            "POST /sparql HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n{}\r\n{query}",
            server.key,
            lines(&query)
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let answer = read_rest(&mut stream).await;
        assert!(answer.starts_with(&format!("HTTP/1.0 {status}")), "{answer}");
    }
    // A complete answer of several pieces.
    let limited = format!("{long} LIMIT 1000");
    let answer = ask(&server, &limited, "text/csv").await.expect(200).text();
    assert_eq!(answer.lines().count(), 1001);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_nothing_is_disconnected_at_the_limit() {
    let server =
        start(&["--service.limits.sparql.time=1s", "--service.limits.sparql.rows=10000000"]).await;
    let values: Vec<_> = (0..2000).map(|n| format!("\"{n}{}\"", "x".repeat(200))).collect();
    let document = format!("<urn:many> <urn:value> {} .", values.join(", "));
    server.send("POST", PUMPS, &[TURTLE], document).await.expect(204);
    let many = "SELECT * { <urn:many> <urn:value> ?a . <urn:many> <urn:value> ?b }";
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    let head = format!(
        "POST /sparql HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n{REQUEST}\
         Content-Length: {}\r\n\r\n{many}",
        server.key,
        many.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let ended = timeout(TEST_TIMEOUT, async {
        // The other end refuses what is sent to it once it is closed.
        while stream.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    ended.await.expect("the connection is still open");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!answer.ends_with(b"\r\n0\r\n\r\n"), "{}", answer.len());
    // The permit is free again.
    server.get("/sparql?query=ASK%7B%7D").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_has_one_running_and_two_waiting_queries() {
    let server = start(&["--service.limits.sparql.time=3s"]).await;
    let values: Vec<_> = (0..2000).map(|n| n.to_string()).collect();
    let document = format!("<urn:many> <urn:value> {} .", values.join(", "));
    server.send("POST", PUMPS, &[TURTLE], document).await.expect(204);
    let slow = "ASK { ?a <urn:value> ?x . ?b <urn:value> ?y . ?c <urn:value> ?z FILTER (?x + ?y + ?z < 0) }";
    let mut queries = JoinSet::new();
    for _ in 0..4 {
        let caller = server.caller_with(&server.key);
        queries.spawn(async move { caller.send("POST", "/sparql", &[QUERY_TYPE], slow).await });
    }
    let refused = queries.join_next().await.unwrap().unwrap();
    refused.problem(503);
    assert_eq!(refused.header("retry-after"), "1");
    // Another account is not affected.
    server.cookie_of(Role::User).get("/sparql?query=ASK%7B%7D").await.expect(200);
    while let Some(answer) = queries.join_next().await {
        answer.unwrap().refused(422, "service.limits.sparql.time");
    }
    server.get("/sparql?query=ASK%7B%7D").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_are_refused_while_memory_is_short() {
    let server = TestApp::start(&["--service.limits.memory=1MiB"]).await;
    let answer = server.get("/sparql?query=ASK%7B%7D").await;
    assert!(answer.problem(503)["detail"].has("memory"));
    assert_eq!(answer.header("retry-after"), "5");
}

#[tokio::test(flavor = "multi_thread")]
async fn service_asks_only_the_configured_endpoints() {
    let address = serve(|request| {
        let body = r#"{"head":{"vars":["o"]},"results":{"bindings":[{"o":{"type":"literal","value":"remote"}}]}}"#;
        Some(if request.path == "/redirect" {
            answer_with("302 Found", "Location: /sparql\r\n", "")
        } else {
            let lines = "Content-Type: application/sparql-results+json\r\nConnection: close\r\n";
            answer_with("200 OK", lines, body)
        })
    });
    let endpoint = format!("http://{address}/sparql");
    let redirecting = format!("http://{address}/redirect");
    let services = format!("--service.sparql.services={endpoint},{redirecting}");
    let server = start(&[&services]).await;
    let of = |endpoint: &str| format!("SELECT ?o {{ SERVICE <{endpoint}> {{ ?s ?p ?o }} }}");
    assert_eq!(objects(&server, &of(&endpoint)).await, ["remote"]);
    for (endpoint, why) in [
        (redirecting.as_str(), "302"),
        ("http://127.0.0.1:1/sparql", "service.sparql.services"),
        ("file:///etc/passwd", "service.sparql.services"),
    ] {
        ask(&server, &of(endpoint), "*/*").await.refused(422, why);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_of_the_page_find_something_in_the_data_of_the_demo() {
    let server = TestApp::plain().await;
    let definition =
        json!({"name": "Plants", "config": include_str!("../../src/cli/demo/plants.yaml")});
    server.define_object(&definition).await;
    let data: Value = serde_json::from_str(include_str!("../../src/cli/demo/plants.json")).unwrap();
    server.post("/api/v1/business-objects/Plants", &data).await.expect(200);
    let page = include_str!("../../docs/sparql.md");
    let examples: Vec<_> = page.split("```sparql\n").skip(1).collect();
    assert_eq!(examples.len(), 4);
    for example in examples {
        let (query, _) = example.split_once("\n```").unwrap();
        let accept = "text/csv, application/n-triples;q=0.5";
        let text = ask(&server, query, accept).await.expect(200).text();
        assert!(text.lines().count() > 1, "{query}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_ends_when_its_client_disconnects() {
    let server = start(&["--service.limits.sparql.time=1h"]).await;
    let values: Vec<_> = (0..2000).map(|n| n.to_string()).collect();
    let document = format!("<urn:many> <urn:value> {} .", values.join(", "));
    server.send("POST", PUMPS, &[TURTLE], document).await.expect(204);
    let caller = server.caller_with(&server.key);
    let slow = "ASK { ?a <urn:value> ?x . ?b <urn:value> ?y . ?c <urn:value> ?z FILTER (?x + ?y + ?z < 0) }";
    let running =
        tokio::spawn(async move { caller.send("POST", "/sparql", &[QUERY_TYPE], slow).await });
    let ask = || server.get("/sparql?query=ASK%7B%7D");
    // Another query of the account waits for it once it runs.
    while timeout(Duration::from_millis(300), ask()).await.is_ok() {}
    running.abort();
    // The gateway first has to notice that both clients have disconnected.
    until("the query has ended", async || ask().await.status == 200).await;
}
