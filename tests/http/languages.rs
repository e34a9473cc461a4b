//! Language maps and values of any type: in JSON, CSV, GraphQL, exports of shapes, and the schemas.
use penstock_test_support::prelude::*;

const PUMP: &str = "/api/v1/business-objects/Pump";

const CONFIG: &str = "
type: object
path: Pump:.
prefixes: {v: 'https://plant.example/v/'}
fields:
  name: {type: languageMap, path: v:name}
  notes: {type: languageMap, path: v:note, languages: [en, de-AT], elements: array}
  setting: {type: scalar, path: v:setting}
  curve: {type: json, path: v:curve}
";

async fn define(server: &TestApp) {
    let namespaces = json!([{"name": "Pump", "uriBase": "https://plant.example/pumps/"}]);
    let definition = json!({"name": "Pump", "config": CONFIG, "namespaces": namespaces});
    server.put("/api/v1/business-objects", &definition).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_surface_has_language_maps_and_values_of_any_type() {
    let server = TestApp::plain().await;
    define(&server).await;
    let records = "uri,name.en,name.de-at,notes.en,setting,curve\n\
                   urn:p:1,Feed pump,Speisepumpe,a|b,7.50,\"[[0, 12.50],[10,null]]\"\n\
                   urn:p:2,Drain,,,\"\"\"7\"\"\",open\n";
    let path = format!("{PUMP}?mode=ADD&arrayDelimiter=%7C");
    server.send("POST", &path, &[("Content-Type", "text/csv")], records).await.expect(200);
    let view = server.get(&format!("{PUMP}/objects")).await.expect(200).text();
    for part in [
        r#""name":{"de-AT":"Speisepumpe","en":"Feed pump"},"notes":{"en":["a","b"]},"setting":7.50,"curve":[[0,12.50],[10,null]]"#,
        r#""name":{"en":"Drain"},"setting":"7","curve":"open""#,
    ] {
        assert!(view.contains(part), "{part}: {view}");
    }

    let data = server
        .graphql(
        r#"{
            all: pumpConnection { nodes { name { language value } notes { language value } setting curve } }
            german: pumpConnection(where: {name: {language: "DE-AT", contains: "pumpe"}}) { nodes { uri } }
            translated: pumpConnection(where: {name: {language: "de-at"}}) { nodes { uri } }
            other: pumpConnection(where: {name: {language: "en", contains: "Speise"}}) { nodes { uri } }
            any: pumpConnection(where: {name: {eq: "Drain"}}) { nodes { uri } }
            set: pumpConnection(where: {setting: {after: 7.2}}) { nodes { uri } }
            ordered: pumpConnection(orderBy: {field: setting}) { nodes { uri } }
        }"#,
        )
        .await;
    let first = json!({"nodes": [{"uri": "urn:p:1"}]});
    let all = json!([
        {
            "name": [{"language": "de-AT", "value": "Speisepumpe"}, {"language": "en", "value": "Feed pump"}],
            "notes": [{"language": "en", "value": "a"}, {"language": "en", "value": "b"}],
            "setting": serde_json::from_str::<Value>("7.50").unwrap(),
            "curve": serde_json::from_str::<Value>("[[0,12.50],[10,null]]").unwrap(),
        },
        {"name": [{"language": "en", "value": "Drain"}], "notes": [], "setting": "7", "curve": "open"},
    ]);
    assert_eq!(data["all"]["nodes"], all);
    assert_eq!(data["german"], first);
    assert_eq!(data["translated"], first);
    assert_eq!(data["other"], json!({"nodes": []}));
    assert_eq!(data["any"], json!({"nodes": [{"uri": "urn:p:2"}]}));
    assert_eq!(data["set"], first);
    assert_eq!(data["ordered"], json!({"nodes": [{"uri": "urn:p:2"}, {"uri": "urn:p:1"}]}));

    let schema = server.read(&format!("{PUMP}/schema")).await;
    let properties = &schema["properties"];
    assert_eq!(properties["name"]["type"], json!(["object", "null"]));
    assert_eq!(properties["name"]["additionalProperties"], json!({"type": ["string", "null"]}));
    let texts = json!({"type": ["array", "null"], "items": {"type": "string"}});
    assert_eq!(properties["notes"]["properties"], json!({"en": texts, "de-AT": texts}));
    assert_eq!(properties["notes"]["additionalProperties"], false);
    assert_eq!(properties["setting"]["type"], json!(["string", "number", "boolean", "null"]));
    let any = json!(["object", "array", "string", "number", "boolean", "null"]);
    assert_eq!(properties["curve"]["type"], any);

    let shex = server.send("GET", &format!("{PUMP}/shapes"), &[("Accept", "text/shex")], "").await;
    let shex = shex.expect(200).text();
    shex.has_all(&["v:name rdf:langString * ;", "[@en @de-at] * ;", "rdf:JSON ? ;"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_names_the_languages_of_a_map() {
    let server = TestApp::plain().await;
    define(&server).await;
    let path = format!("{PUMP}?mode=ADD");
    for (header, part) in [
        ("name", "name a language of it, such as name.en"),
        ("notes.fr", "name a language of it, such as notes.en"),
        ("name.e n", "name a language of it, such as name.en"),
    ] {
        let records = format!("uri,{header}\nurn:p:1,x\n");
        let answer = server.send("POST", &path, &[("Content-Type", "text/csv")], records).await;
        answer.refused(422, part);
    }
    server.stop().await;
}
