//! Validations of everything that a Business Object has.
use oxrdfio::{RdfFormat, RdfParser};
use penstock_test_support::prelude::*;

const START: &str = "/api/v1/business-objects/Pump/validation";
const SHAPES: &str = "\
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix v: <https://plant.example/> .
v:PumpShape a sh:NodeShape ; sh:targetSubjectsOf v:name ;
  sh:property [ sh:path v:flow ; sh:minInclusive 0 ; sh:message \"must flow\" ] ;
  sh:property [ sh:path v:name ; sh:minLength 3 ; sh:severity sh:Warning ] .
v:PartShape a sh:NodeShape ; sh:targetSubjectsOf v:label ;
  sh:property [ sh:path v:label ; sh:maxLength 5 ] .
";

/// Stores shapes and pumps that violate them: 300 flow backwards, one has a short name, and one a part with a long label.
async fn define(server: &TestApp) {
    server.send("PUT", "/api/v1/shapes/pumps", &[TURTLE], SHAPES).await.expect(201);
    let mut body = definition();
    // The mode does not matter, and these objects would be refused in another one.
    body["validation"] = json!({"shapes": ["pumps"], "mode": "off"});
    server.define_object(&body).await;
    let mut pumps: Vec<_> = (0..300).map(|_| json!({"name": "south", "flow": -1})).collect();
    pumps.push(json!({"name": "n", "flow": 1}));
    pumps.push(json!({"name": "west", "flow": 1, "parts": [{"label": "bearing"}]}));
    server.ingest("ADD", &json!(pumps)).await.expect(200);
}

/// Starts a validation, waits until it has ended, and returns its path and its first page.
async fn validate(server: &TestApp) -> (String, Value) {
    let started = server.post_empty(START).await.expect(202);
    let path = started.header("location").to_owned();
    assert_eq!(path, format!("/api/v1/validations/{}", started.json()["id"].text()));
    assert_eq!(started.json()["state"], "queued");
    let report = until_some("the validation has ended", async || {
        Some(server.read(&path).await).filter(|found| !found["endedAt"].is_null())
    })
    .await;
    (path, report)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_has_counts_and_violations_in_json_and_rdf() {
    let server = TestApp::plain().await;
    define(&server).await;
    let (path, report) = validate(&server).await;
    assert_eq!((&report["state"], &report["conforms"]), (&json!("finished"), &json!(false)));
    assert_eq!(report["counts"], json!({"violation": 301, "warning": 1, "info": 0}), "{report}");
    assert_eq!(report["progress"], json!({"validated": 302, "expected": 302}));
    assert_eq!(report["shapes"], json!([{"name": "pumps", "version": 1}]));
    assert_eq!((&report["listed"], &report["otherCount"]), (&json!(302), &json!(0)));
    let component = |name: &str| format!("http://www.w3.org/ns/shacl#{name}ConstraintComponent");
    let count = |shape: &str, name: &str, severity: &str, count: u64| {
        let shape = format!("https://plant.example/{shape}");
        json!({"shape": shape, "constraint": component(name), "severity": severity, "count": count})
    };
    assert_eq!(
        report["constraints"],
        json!([
            count("PumpShape", "MinInclusive", "violation", 300),
            count("PartShape", "MaxLength", "violation", 1),
            count("PumpShape", "MinLength", "warning", 1),
        ])
    );

    // The pages have each violation once.
    let mut violations = server.all(&format!("{path}?limit=200"), 200).await;
    violations.sort_by_key(ToString::to_string);
    violations.dedup();
    assert_eq!(violations.len(), 302);
    let backwards = violations.iter().find(|one| one["message"] == "must flow").unwrap();
    backwards.includes(&json!({
        "value": "-1", "path": "https://plant.example/flow", "severity": "violation",
    }));
    let uri = escaped(backwards["focusNode"].text());
    let object = server.get(&format!("/api/v1/business-objects/Pump/objects/{uri}")).await;
    assert_eq!(object.expect(200).json()["flow"], json!(-1));

    // Every RDF format has all results.
    let results = "http://www.w3.org/ns/shacl#ValidationResult";
    for (accept, format) in [
        ("text/turtle", RdfFormat::Turtle),
        ("application/n-triples", RdfFormat::NTriples),
        ("application/rdf+xml", RdfFormat::RdfXml),
        ("application/ld+json", RdfFormat::JsonLd { profile: oxrdfio::JsonLdProfileSet::empty() }),
    ] {
        let answer = server.get_with(&path, &[("Accept", accept)]).await.expect(200);
        let charset = if accept.starts_with("text/") { "; charset=utf-8" } else { "" };
        assert_eq!(answer.header("content-type"), format!("{accept}{charset}"));
        assert_eq!(answer.header("vary"), "Accept");
        let quads = RdfParser::from_format(format).for_slice(&answer.body);
        let quads: Vec<_> = quads.map(|quad| quad.unwrap().to_string()).collect();
        assert_eq!(quads.iter().filter(|quad| quad.contains(results)).count(), 302, "{accept}");
    }
    let turtle = server.get(&format!("{path}?format=ttl")).await.expect(200);
    assert_eq!(turtle.header("content-type"), "text/turtle; charset=utf-8");
    server.get(&format!("{path}?format=pdf")).await.problem(400);
    server.get_with(&path, &[("Accept", "image/png")]).await.problem(406);

    let metrics = server.page("/metrics").await;
    metrics.has_all(&[
        "penstock_validation_violations{business_object=\"Pump\",severity=\"violation\"} 301",
        "penstock_validation_violations{business_object=\"Pump\",severity=\"warning\"} 1",
        "penstock_validation_runs_total{result=\"finished\"} ",
        "penstock_validation_objects_total ",
        "penstock_validation_seconds_count ",
    ]);

    // What has ended stays after a restart, and cannot be cancelled.
    let dir = server.stop().await.unwrap();
    let server = TestApp::reopen(dir.path()).await;
    assert_eq!(server.read(&path).await, report);
    server.delete(&path).await.problem(409);
    server.delete("/api/v1/validations/none").await.problem(404);
    for wanted in ["Pump", report["businessObject"].text()] {
        let list = format!("/api/v1/validations?businessObject={wanted}&limit=1");
        let list = server.read(&list).await;
        assert_eq!((&list["items"][0]["id"], &list["next"]), (&report["id"], &Value::Null));
    }
    let none = server.items("/api/v1/validations?businessObject=Other").await;
    assert_eq!(json!(none), json!([]));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn corrected_data_conforms_and_keys_for_others_see_nothing() {
    let server = TestApp::plain().await;
    define(&server).await;
    let (path, _) = validate(&server).await;
    let own = server.with_key(Role::Contributor, Some("Pump"));
    own.get(&path).await.expect(200);
    own.post_empty(START).await.expect(202);
    server.define_with(&json!({"name": "Other"})).await;
    let other = server.with_key(Role::Admin, Some("Other"));
    other.get(&path).await.problem(403);
    assert_eq!(own.items("/api/v1/validations").await.len(), 2);
    for all_of in ["", "?businessObject=Pump"] {
        let list = format!("/api/v1/validations{all_of}");
        assert_eq!(json!(other.items(&list).await), json!([]));
    }
    let without = server.post_empty("/api/v1/business-objects/Other/validation").await;
    without.refused(409, "`validation`");

    let lenient =
        SHAPES.replace("minInclusive 0", "minInclusive -1").replace("maxLength 5", "maxLength 50");
    let lenient = lenient.replace("minLength 3", "minLength 1");
    server.send("PUT", "/api/v1/shapes/pumps", &[TURTLE], lenient).await.expect(200);
    let (_, report) = validate(&server).await;
    assert_eq!((&report["conforms"], &report["items"]), (&json!(true), &json!([])), "{report}");
    assert_eq!(report["shapes"], json!([{"name": "pumps", "version": 2}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_sees_no_value_of_a_nested_object_of_others() {
    let server = TestApp::plain().await;
    // The values of hidden objects are at a property, at the end of a path, and a focus node themselves.
    let shapes = "@prefix sh: <http://www.w3.org/ns/shacl#> .\n\
        <urn:Label> a sh:NodeShape ; sh:targetSubjectsOf <urn:label> ; \
          sh:property [ sh:path <urn:label> ; sh:maxLength 3 ] .\n\
        <urn:Text> a sh:NodeShape ; sh:targetObjectsOf <urn:label> ; sh:maxLength 3 .\n\
        <urn:Unit> a sh:NodeShape ; sh:targetObjectsOf <urn:unit> ; sh:nodeKind sh:Literal .\n\
        <urn:Pump> a sh:NodeShape ; sh:targetSubjectsOf <urn:name> ; \
          sh:property [ sh:path <urn:name> ; sh:maxLength 3 ] ; \
          sh:property [ sh:path (<urn:maker> <urn:label>) ; sh:maxLength 3 ] .\n";
    server.send("PUT", "/api/v1/shapes/texts", &[TURTLE], shapes).await.expect(201);
    let label = "fields: {label: {type: string, path: <urn:label>}}";
    let staff = json!({"name": "Staff", "config": format!("type: object\npath: Staff:.\n{label}")});
    let config = format!(
        "type: object\npath: Pump:.\nfields:\n  name: {{type: string, path: <urn:name>}}\n  \
         unit: {{type: resource, path: <urn:unit>}}\n  \
         maker: {{type: object, path: '<urn:maker>/Maker:.', {label}}}"
    );
    let validation = json!({"shapes": ["texts"], "mode": "warn"});
    let pump = json!({"name": "Pump", "config": config, "validation": validation});
    for definition in [&staff, &pump] {
        server.define_object(definition).await;
    }
    let person = json!({"data": [{"uri": "urn:staff-1", "label": "secret"}]});
    server.post("/api/v1/business-objects/Staff", &person).await.expect(200);

    let key = server.with_key(Role::Contributor, Some("Pump"));
    let pumps = json!({"data": [
        {"uri": "urn:p", "name": "north", "unit": "urn:bar", "maker": {"uri": "urn:staff-1"}},
        {"uri": "urn:q", "name": "q", "maker": {"uri": "urn:m", "label": "owned"}},
    ]});
    let answer = key.post("/api/v1/business-objects/Pump", &pumps).await.expect(200).text();
    answer.has_all(&["north", "owned", "urn:staff-1"]);
    assert!(!answer.contains("secret"), "{answer}");

    let (path, report) = validate(&server).await;
    assert!(report.to_string().contains("secret"), "{report}");
    let seen = key.read(&path).await;
    assert_eq!(seen["counts"], report["counts"]);
    assert_eq!(seen["items"].list().len(), report["items"].list().len());
    let turtle = format!("{path}?format=ttl");
    assert!(server.page(&turtle).await.contains("secret"));
    for text in [seen.to_string(), key.page(&turtle).await] {
        text.has_all(&["north", "owned", "urn:staff-1", "must be a literal"]);
        assert!(!text.contains("secret"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_starts_a_validation_and_shows_its_report() {
    let server = TestApp::plain().await;
    let empty = server.page("/admin/quality").await;
    assert!(empty.contains("No Business Object names shapes graphs."), "{empty}");
    define(&server).await;
    let started = server.send("POST", "/admin/quality", &[FORM], "businessObject=Pump").await;
    let page = started.expect(303).header("location").to_owned();
    let api = page.replace("/admin/quality/", "/api/v1/validations/");
    until("it has ended", async || !server.read(&api).await["endedAt"].is_null()).await;
    let shown = server.page(&page).await;
    shown.has_all(&["MinInclusive", "must flow", "/admin/object?uri=", "?format=ttl", "cursor="]);
    let list = server.page("/admin/quality").await;
    assert!(list.contains(&page) && list.contains(">violations<"), "{list}");
    // It has ended, so the notice of the next page says that it cannot be cancelled.
    let cancelled = server.send("POST", &format!("{page}/cancel"), &[FORM], "").await.expect(303);
    assert_eq!(cancelled.header("location"), page);
    server.get("/admin/quality/none").await.expect(404);
}
