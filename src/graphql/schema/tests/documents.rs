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

/// The library validates no directives of `__typename` and of variables, takes strings as values of enums, and drops the
/// first of two equal fields of an input object.
#[tokio::test]
async fn invalid_directives_and_literals_are_refused() {
    let fixture = Fixture::with_plant_data(&[]);
    let user = |selection: &str| format!("{{ authenticatedUser {{ id {selection} }} }}");
    let pumps = |arguments: &str| format!("{{ pumpConnection({arguments}) {{ totalCount }} }}");
    for (document, words) in [
        (user("__typename @inclde(if: false)"), "Unknown directive \"inclde\""),
        (user("email @inclde(if: false)"), "Unknown directive \"inclde\""),
        (user("... @inclde(if: false) { email }"), "Unknown directive \"inclde\""),
        (user("... on AuthenticatedUser { __typename @inclde }"), "Unknown directive"),
        (user("__typename @skip"), "\"if\" of type \"Boolean!\" is required"),
        (user("__typename @skip(iff: true)"), "\"if\" of type \"Boolean!\" is required"),
        (user("__typename @skip(if: true, iff: true)"), "Unknown argument \"iff\""),
        (user("__typename @skip(if: true, if: true)"), "only be one argument named \"if\""),
        (user("__typename @skip(if: \"true\")"), "\"true\" is not true or false"),
        (user("__typename @skip(if: null)"), "is required, not null"),
        (user("__typename @skip(if: $x)"), "Variable \"$x\" is not defined"),
        (user("__typename @skip(if: false) @skip(if: true)"), "Duplicate directive \"skip\""),
        (user("__typename @deprecated"), "Directive \"deprecated\" may not be used"),
        (user("__typename { id }"), "takes no arguments and has no fields"),
        (user("__typename(x: 1)"), "takes no arguments and has no fields"),
        (user("... { a: __typename @skip(if: false) a: id }"), "different fields"),
        (
            user("... on AuthenticatedUser { a: __typename @skip(if: false) a: id }"),
            "different fields",
        ),
        ("query @skip(if: true) { __typename }".into(), "may not be used on \"QUERY\""),
        (
            "query($x: Int @inclde) { exports(first: $x) { nodes { id } } }".into(),
            "@inclde is not allowed",
        ),
        (
            "query($x: Int @skip(if: true)) { exports(first: $x) { nodes { id } } }".into(),
            "@skip is not allowed",
        ),
        (
            "{ __typename } fragment F on Query { __typename }".into(),
            "Fragment \"F\" is never used",
        ),
        ("query($x: Boolean) { __typename }".into(), "Variable \"$x\" is not used"),
        (pumps("where: {weight: {eq: 1, eq: 9}}"), "the field eq occurs more than once"),
        (
            pumps("where: {weight: {eq: 1}, or: [{weight: {}, weight: {}}]}"),
            "the field weight occurs more",
        ),
        (
            pumps("orderBy: {field: \"weight\"}"),
            "\"weight\" is a string; a value of the enum PumpOrderField",
        ),
        (pumps("orderBy: {field: weight, direction: \"DESC\"}"), "\"DESC\" is a string"),
        (pumps("orderBy: {field: wieght}"), "the enum PumpOrderField has no value wieght"),
        ("{ exports(status: \"queued\") { nodes { id } } }".into(), "\"queued\" is a string"),
        (
            "query($s: ExportStatus = \"queued\") { exports(status: $s) { nodes { id } } }".into(),
            "\"queued\" is a string",
        ),
        (pumps("where: 5"), "5 is not an object of type PumpFilter"),
        (pumps("where: {site: {eq: 5}}"), "at site.eq: 5 is not a string"),
    ] {
        let answer = fixture.run_query(&document).await;
        assert!(answer.get("data").is_none(), "{document}: {answer}");
        let errors = answer["errors"].as_array().unwrap();
        let has_words = |error: &Json| error["message"].as_str().unwrap().contains(words);
        assert!(errors.iter().any(has_words), "{document}: {answer}");
    }
    let many = user(&format!("__typename {}", "@skip(if: false) ".repeat(1000)));
    assert_eq!(fixture.run_query(&many).await["errors"].as_array().unwrap().len(), 100);
}

#[tokio::test]
async fn a_variable_that_only_a_directive_uses_is_used() {
    let fixture = Fixture::new(&[]);
    let document = "query($x: Boolean!) { authenticatedUser { ...F @skip(if: $x) id __typename @include(if: $x) ... @skip(if: $x) { email } } }
        fragment F on AuthenticatedUser { familyName a: __typename @skip(if: $x) }";
    for (value, expected) in [
        (true, json!({"id": "local", "__typename": "AuthenticatedUser"})),
        (
            false,
            json!({"familyName": null, "a": "AuthenticatedUser", "id": "local", "email": null}),
        ),
    ] {
        let data =
            Fixture::expect_data(fixture.run_query_with(document, &json!({"x": value})).await);
        assert_eq!(data["authenticatedUser"], expected);
    }
    // In introspection, which the library answers.
    let document = "query($x: Boolean!) { __type(name: \"ID\") { name __typename @skip(if: $x) } }";
    let data = Fixture::expect_data(fixture.run_query_with(document, &json!({"x": true})).await);
    assert_eq!(data["__type"], json!({"name": "ID"}));
    let data = Fixture::expect_data(fixture.run_query_with(document, &json!({"x": false})).await);
    assert_eq!(data["__type"], json!({"name": "ID", "__typename": "__Type"}));
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
        "query T($b: Boolean = true) { ... on Query { t: __typename @skip(if: $b) u: __typename @include(if: false) } pumpConnection { totalCount } }",
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
