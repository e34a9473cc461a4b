//! Documents that are not executed.
use super::fixture::{Fixture, service_account_caller};
use crate::query::Query;
use penstock_auth::Caller;
use serde_json::{Value as Json, json};

#[tokio::test]
async fn documents_that_are_not_executed_have_no_data() {
    let fixture = Fixture::new(&[]);
    for document in [
        "",
        "{",
        "{ nothing }",
        "query A { __typename } query B { __typename }",
        "subscription { a }",
        "query($x: [Foo] = [1]) { __typename }",
        "query($x: Foo = 1) { __typename }",
        "query($x: AuthenticatedUser) { __typename }",
        "query($x: [NumberFilter] = [{eq: 1}]) { __typename }",
        "query($x: [Direction] = [ASC]) { __typename }",
        "query($x: [[Foo!]!]! = [[1]]) { __typename @include(if: $x) }",
    ] {
        let answer = fixture.run_query(document).await;
        assert!(answer.get("data").is_none(), "{document}: {answer}");
        assert!(answer["errors"][0]["message"].is_string(), "{answer}");
    }
}

#[tokio::test]
async fn strings_have_escapes_of_all_characters() {
    let fixture = Fixture::with_plant_data(&[]);
    fixture.send("Site", &json!([{"uri": "urn:site:3", "name": "North 😀"}]));
    for name in ["North \\uD83D\\uDE00", "North \\u{1F600}", "North 😀"] {
        let document = format!(
            "{{ siteConnection(where: {{name: {{eq: \"{name}\"}}}}) {{ nodes {{ uri }} }} }}"
        );
        let data = Fixture::expect_data(fixture.run_query(&document).await);
        assert_eq!(data["siteConnection"]["nodes"], json!([{"uri": "urn:site:3"}]), "{name}");
    }
    let document = "{ siteConnection(where: {name: {eq: \"\\uD83D\"}}) { totalCount } }";
    let answer = fixture.run_query(document).await;
    assert!(answer.get("data").is_none(), "{answer}");
    assert_eq!(answer["errors"][0]["locations"], json!([{"line": 1, "column": 38}]), "{answer}");
    // Positions after such a string are those of the document that was sent.
    let document = "{ siteConnection(after: \"\\uD83D\\uDE00\") { nothing } }";
    let answer = fixture.run_query(document).await;
    assert_eq!(answer["errors"][0]["locations"][0]["column"], 43, "{answer}");
}

#[tokio::test]
async fn mutations_are_distinguished_from_queries() {
    let query = |document: &str, operation: Option<&str>| Query {
        document: document.into(),
        operation: operation.map(str::to_owned),
        reads_only: true,
        ..Query::default()
    };
    let both = "query Q { __typename } mutation M { a }";
    let schema = Fixture::new(&[]).graphql;
    assert!(
        schema.execute(query("mutation { a }", None), &service_account_caller()).await.would_change
    );
    assert!(schema.execute(query(both, Some("M")), &service_account_caller()).await.would_change);
    assert!(!schema.execute(query(both, Some("Q")), &service_account_caller()).await.would_change);
}

/// A panic of the library would end the gateway. `PENSTOCK_FUZZ_ROUNDS` sets the number of rounds.
#[tokio::test]
async fn mutated_documents_never_panic() {
    let fixture = Fixture::with_plant_data(&[]);
    let documents = [
        "query Q($n: Int = 1, $w: PumpFilter, $l: [String!]! = [\"a\"]) { pumpConnection(first: $n, where: $w) { nodes { ...P } totalCount } }",
        "fragment P on Pump { uri weight readings { value asObject { uri } } siteObject(as: Site) { ... on Site { name } __typename } }",
        "{ a: pumpConnection(where: {or: [{weight: {after: 1.5e3}}, {not: {tags: {in: [\"a\"]}}}]}, orderBy: {field: uri, direction: DESC}) { edges { cursor node { ...P } } pageInfo { endCursor } } }",
        "{ referredBy(uri: \"urn:site:1\", type: Pump) { nodes { uri ... on Pump { motor { maker } } } edges { type path } } }",
        "{ __schema { types { name fields { name type { ofType { name } } } } } __type(name: \"Pump\") { kind } businessObjects { name } exports(status: queued) { nodes { id } } }",
        "{ authenticatedUser { id @include(if: true) roles @skip(if: false) } object(uri: \"urn:pump:1\") { __typename ... on Node { uri } } }",
        "mutation M { a } subscription S { b } query R($x: [[Foo!]] = [[1]]) { __typename }",
    ];
    let tokens: Vec<Vec<&str>> = documents.iter().map(|document| split_tokens(document)).collect();
    let rounds =
        std::env::var("PENSTOCK_FUZZ_ROUNDS").map_or(500, |rounds| rounds.parse().unwrap());
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % below as u64).unwrap()
    };
    for _ in 0..rounds {
        let mut all = tokens[draw(tokens.len())].clone();
        all.extend(&tokens[1]);
        for _ in 0..draw(4) {
            let (from, to) = (draw(all.len()), draw(all.len()));
            let other = &tokens[draw(tokens.len())];
            match draw(5) {
                0 => drop(all.remove(from)),
                1 => all.swap(from, to),
                2 => all.insert(from, other[draw(other.len())]),
                3 => all[from] = other[draw(other.len())],
                _ => all.insert(to, all[from]),
            }
        }
        let document = all.join(" ");
        let eq = [json!(1), json!("x"), Json::Null][draw(3)].clone();
        let variables = json!({"n": draw(3), "w": {"weight": {"eq": eq}}, "x": [null]});
        let Json::Object(variables) = variables else { unreachable!() };
        let query = Query { document, variables, ..Query::default() };
        let answer = fixture.graphql.execute(query, &Caller::local()).await;
        assert!(answer.data.is_some() || !answer.errors.is_empty());
    }
}

/// Splits a document into words, numbers and punctuation.
fn split_tokens(document: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = document.trim_start();
    while !rest.is_empty() {
        let length = match rest.chars().next().unwrap() {
            '"' => rest.char_indices().skip(1).find(|(_, c)| *c == '"').unwrap().0 + 1,
            c if c.is_alphanumeric() || c == '_' || c == '$' => rest
                .char_indices()
                .skip(1)
                .find(|(_, c)| !c.is_alphanumeric() && *c != '_' && *c != '.')
                .map_or(rest.len(), |(end, _)| end),
            '.' => 3,
            c => c.len_utf8(),
        };
        let (token, more) = rest.split_at(length);
        tokens.push(token);
        rest = more.trim_start();
    }
    tokens
}
