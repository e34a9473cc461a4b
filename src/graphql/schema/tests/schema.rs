//! Which types the schema has, and when they are built.
use super::fixture::{Fixture, PUMP, SITE, service_account_caller};
use async_graphql::parser::parse_query;
use penstock_auth::{Caller, Credential};
use penstock_base::Preconditions;
use penstock_base::commit::NoClient;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::memory::Memory;
use penstock_model::catalogue::Requester;
use serde_json::{Value as Json, json};

#[tokio::test]
async fn the_schema_follows_the_catalogue() {
    let fixture = Fixture::new(&["--service.limits.graphql.fields=20"]);
    let graphql = &fixture.graphql;
    let sdl = || graphql.render_sdl(&Caller::local()).unwrap();
    assert!(!sdl().contains("interface Node"));
    fixture.define("Site", SITE);
    assert!(sdl().contains("type Site implements Node"));
    assert!(sdl().contains("\"\"\"\nAll of Site\n\"\"\"\ntype Site "), "{}", sdl());
    let before = graphql.0.current_schema();
    fixture.define("Site", &SITE.replace("opened:", "since:"));
    assert!(sdl().contains("since: Date"));
    let before = before.lease_all(&Memory::new(None)).unwrap().dynamic.sdl();
    assert!(before.contains("opened: Date"), "running queries keep their schema");
    // A Business Object that does not fit leaves the others unchanged.
    fixture.define("Pump", PUMP);
    assert!(!sdl().contains("type Pump"));
    let listed = Fixture::expect_data(
        fixture.run_query("{ businessObjects { name type typeMissing } }").await,
    );
    assert_eq!(listed["businessObjects"][0]["type"], Json::Null);
    let why = listed["businessObjects"][0]["typeMissing"].as_str().unwrap();
    assert!(why.contains("more than 20 fields"), "{why}");
    assert_eq!(listed["businessObjects"][1]["type"], "Site");
    for document in [
        "{ pump(uri: \"urn:pump:1\") { uri } }",
        "{ pumpConnection { totalCount } }",
        "{ object(uri: \"urn:pump:1\") { ... on Pump { uri } } }",
        "query($where: PumpFilter) { siteConnection(where: $where) { totalCount } }",
        "{ siteConnection { edges { ...E } } } fragment E on PumpEdge { cursor }",
    ] {
        let answer = fixture.run_query(document).await;
        let message = answer["errors"][0]["message"].as_str().unwrap();
        assert_eq!(
            message,
            "the Business Object \"Pump\" has no type in GraphQL: the Business Objects together have more than 20 \
             fields (service.limits.graphql.fields)",
            "{document}"
        );
    }
    let warnings = fixture.graphql.describe_missing_types();
    assert!(
        warnings.iter().any(|warning| warning.contains("\"Pump\" has no type")),
        "{warnings:?}"
    );
    fixture
        .gateway
        .catalogue
        .delete(Requester::new(&NoClient, "local"), "Site", Preconditions::default())
        .unwrap();
    assert!(sdl().contains("type Pump") && !sdl().contains("type Site"));
}

/// The library's schema of all 300 Business Objects, at about 6 KB a field, would take 45 MB.
#[tokio::test]
async fn queries_build_only_the_types_they_need_among_300_business_objects() {
    let fixture = Fixture::new(&[]);
    let fields: Vec<_> = (0..19)
        .map(|field| format!("  f{field}: {{type: string, path: <urn:p:f{field}>}}\n"))
        .collect();
    let fields = fields.concat();
    for number in 0..300 {
        let config =
            format!("type: object\npath: Kind{number}:.\nfields:\n  uri: {{type: id}}\n{fields}");
        fixture.define(&format!("Kind {number}"), &config);
    }
    fixture.send("Kind 299", &json!([{"uri": "urn:k:1", "f18": "last"}]));
    let built = fixture.graphql.0.current_schema();
    assert_eq!(built.model.business_objects.len(), 300);
    assert_eq!(fixture.graphql.describe_missing_types(), None);
    let ask = async |document: &str| Fixture::expect_data(fixture.run_query(document).await);
    for first in (0..300).step_by(20) {
        let counted = (first..first + 20).map(|n| format!("kind{n}Connection {{ totalCount }} "));
        ask(&format!("{{ {} }}", counted.collect::<Vec<_>>().concat())).await;
        assert!(built.cached_fields() <= 2_500, "{}", built.cached_fields());
    }
    let found = ask("{ object(uri: \"urn:k:1\", as: Kind299) { ... on Kind299 { f18 } } }").await;
    assert_eq!(found["object"]["f18"], "last");
    // The error for a misspelled name suggests the right one, although its type was not built before.
    let answer = fixture.run_query("{ kind7Conection { totalCount } }").await;
    let message = answer["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("Did you mean \"kind7Connection\""), "{message}");
    // The schema for introspection has all Business Objects and is not cached.
    let types = ask("{ __schema { types { name } } }").await;
    let types = types["__schema"]["types"].as_array().unwrap().len();
    assert!(types > 1_800, "{types}");
    assert!(built.cached_fields() <= 2_500, "{}", built.cached_fields());
    // Queries still work when memory is short.
    let tight = Memory::new(Some(1 << 20));
    let refused = built.lease_all(&tight).err().unwrap();
    assert!(refused.detail.contains("the whole schema has 6300 fields"), "{}", refused.detail);
    let query = parse_query("{ kind5(uri: \"urn:k:1\") { f1 } }").unwrap();
    built.lease_for(&query, &tight).unwrap();
    // Each answer about the schema takes memory.
    let parts = (0..10).map(|n| format!("a{n}: __schema {{ types {{ name }} }} "));
    let query = parse_query(format!("{{ {} }}", parts.collect::<String>())).unwrap();
    let refused_often = built.lease_for(&query, &tight).err().unwrap();
    let needs = |error: &GatewayError, mib: u64| error.detail.contains(&format!("about {mib} MiB"));
    assert!(needs(&refused, 61) && needs(&refused_often, 283), "{refused} {refused_often}");
}

#[tokio::test]
async fn the_memory_of_answers_about_a_small_schema_is_checked_too() {
    let fixture = Fixture::with_plant_data(&[]);
    let (built, tight) = (fixture.graphql.0.current_schema(), Memory::new(Some(1)));
    let query = |text: &str| parse_query(text).unwrap();
    built.lease_for(&query("{ __typename pumpConnection { totalCount } }"), &tight).unwrap();
    let asked = query("{ __schema { queryType { name } } }");
    let refused = built.lease_for(&asked, &tight).err().unwrap();
    assert!(matches!(refused.class, ErrorClass::Unavailable(_)), "{refused}");
}

#[tokio::test]
async fn a_key_for_one_business_object_sees_only_that_one() {
    let fixture = Fixture::with_plant_data(&[]);
    let id = fixture.gateway.catalogue.get("Site").unwrap().object.id.clone();
    let credential = Credential::ApiKey { id: "k".into(), business_objects: Some([id].into()) };
    let caller = Caller { credential, ..service_account_caller() };
    let sdl = fixture.graphql.render_sdl(&caller).unwrap();
    assert!(
        sdl.contains("type Site") && !sdl.contains("Pump") && !sdl.contains("\ttargets:"),
        "{sdl}"
    );
    let document = "{ businessObjects { name } siteConnection { nodes { uri referredBy { nodes { uri } } } } object(uri: \"urn:pump:1\") { uri } }";
    assert_eq!(
        Fixture::expect_data(fixture.run_query_as(document, &caller).await),
        json!({"businessObjects": [{"name": "Site"}],
               "siteConnection": {"nodes": [{"uri": "urn:site:1", "referredBy": {"nodes": []}},
                                            {"uri": "urn:site:2", "referredBy": {"nodes": []}}]},
               "object": null})
    );
    for hidden in ["{ pumpConnection { nodes { uri } } }", "{ targets { name } }"] {
        assert!(fixture.run_query_as(hidden, &caller).await.get("data").is_none(), "{hidden}");
    }
}

#[tokio::test]
async fn tools_can_introspect_the_schema() {
    // The introspection query of GraphiQL, as far as its cost matters: nine levels of ofType.
    let of_type = "ofType { name kind ".repeat(9) + &"}".repeat(9);
    let document = format!(
        "{{ __schema {{ queryType {{ name }} types {{ ...T }} directives {{ name locations args {{ ...I }} }} }} }} \
         fragment T on __Type {{ kind name description fields(includeDeprecated: true) {{ name args {{ ...I }} type {{ ...R }} }} \
         inputFields {{ ...I }} interfaces {{ ...R }} enumValues {{ name }} possibleTypes {{ ...R }} }} \
         fragment I on __InputValue {{ name type {{ ...R }} defaultValue }} \
         fragment R on __Type {{ kind name {of_type} }}"
    );
    let fixture = Fixture::with_plant_data(&[]);
    let answer = fixture.run_query(&document).await;
    assert!(answer["data"]["__schema"]["types"].is_array(), "{answer}");
    let sdl = fixture.graphql.render_sdl(&Caller::local()).unwrap();
    assert!(sdl.contains("authenticatedUser: AuthenticatedUser!"));
}
