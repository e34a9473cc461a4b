//! The schema, and how a document is executed.
use super::{COMPLEXITY, DEPTH, cost, user};
use crate::auth::Caller;
use crate::fault::{Fault, Kind};
use async_graphql::dynamic::{self, Object, ResolverContext};
use async_graphql::parser::parse_query;
use async_graphql::parser::types::OperationType;
use async_graphql::{Name, Request, ServerError, Value, Variables};
use serde::Serialize;

const QUERY: &str = "Query";

/// The schema. Cheap to clone.
#[derive(Clone)]
pub struct Schema(dynamic::Schema);

/// What is asked.
#[derive(Debug, Default)]
pub struct Query {
    /// The document.
    pub document: String,
    /// Which of its operations, where it has more than one.
    pub operation: Option<String>,
    /// The values of its variables.
    pub variables: serde_json::Map<String, serde_json::Value>,
    /// Whether only what changes nothing is done.
    pub reads_only: bool,
}

/// What is answered: `data`, unless the document was not executed; `errors`, if there are any.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// The result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ServerError>,
    /// Whether it was refused because it changes something.
    #[serde(skip)]
    pub would_change: bool,
}

impl Schema {
    /// Puts the types together.
    ///
    /// # Errors
    /// `Kind::Internal` when they do not fit together.
    pub fn new() -> Result<Self, Fault> {
        let query = Object::new(QUERY).description("What can be read.").field(user::query());
        dynamic::Schema::build(QUERY, None, None)
            .register(query)
            .register(user::object())
            .limit_depth(DEPTH)
            .limit_complexity(COMPLEXITY)
            .limit_directives(50)
            .finish()
            .map(Self)
            .map_err(|error| Fault::new(Kind::Internal, format!("the GraphQL schema: {error}")))
    }

    /// The schema in the language that GraphQL has for it.
    pub fn sdl(&self) -> String {
        self.0.sdl()
    }

    /// Executes a document on behalf of somebody.
    pub async fn execute(&self, query: Query, caller: &Caller) -> Answer {
        if let Err(why) = cost::check_text(&query.document) {
            return Answer::refused(why);
        }
        let document = match parse_query(&query.document) {
            Ok(document) => document,
            Err(error) => return Answer { errors: vec![error.into()], ..Answer::refused("") },
        };
        if let Err(why) = cost::check(&document) {
            return Answer::refused(why);
        }
        let changes = document.operations.iter().any(|(name, operation)| {
            operation.node.ty == OperationType::Mutation
                && query
                    .operation
                    .as_ref()
                    .is_none_or(|asked| name.is_none_or(|name| name == asked))
        });
        if query.reads_only && changes {
            let refused = Answer::refused("a mutation must be sent by POST");
            return Answer { would_change: true, ..refused };
        }
        let mut request =
            Request::new(query.document).variables(variables(query.variables)).data(caller.clone());
        request.operation_name = query.operation;
        request.set_parsed_query(document);
        let response = self.0.execute(request).await;
        // What fails while it is executed has a path; what fails before has no result.
        let was_executed = response.errors.is_empty()
            || response.data != Value::Null
            || response.errors.iter().any(|error| !error.path.is_empty());
        Answer {
            data: was_executed.then_some(response.data),
            errors: response.errors,
            would_change: false,
        }
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Schema")
    }
}

impl Answer {
    /// Nothing was executed, for this reason.
    pub fn refused(why: impl Into<String>) -> Self {
        Self { data: None, errors: vec![ServerError::new(why, None)], would_change: false }
    }
}

/// The library would read them by serde, which shows the numbers of `serde_json`, kept digit by digit here,
/// as objects.
fn variables(values: serde_json::Map<String, serde_json::Value>) -> Variables {
    let mut variables = Variables::default();
    variables.extend(values.into_iter().map(|(name, value)| (Name::new(name), variable(value))));
    variables
}

fn variable(value: serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Boolean(flag),
        Json::Number(number) => Value::Number(number),
        Json::String(text) => Value::String(text),
        Json::Array(items) => Value::List(items.into_iter().map(variable).collect()),
        Json::Object(members) => Value::Object(
            members.into_iter().map(|(name, value)| (Name::new(name), variable(value))).collect(),
        ),
    }
}

/// Who sent the request.
pub(super) fn caller<'a>(ctx: &ResolverContext<'a>) -> async_graphql::Result<&'a Caller> {
    ctx.data::<Caller>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Account, Credential, Role};
    use crate::graphql::LONGEST;
    use serde_json::{Value as Json, json};
    use std::sync::Arc;

    fn plant() -> Caller {
        let account: Account = serde_json::from_value(json!({
            "id": "0199c1d2-7d3e-7000-8000-000000000001",
            "familyName": "Plant",
            "email": "s@machines.example",
            "role": "Contributor",
            "enabled": true,
            "identity": {"source": "service-account", "issuer": "https://idp.example", "name": "s"},
            "clientId": "plant",
            "version": 1,
            "createdAt": "2026-03-01T12:00:00.000Z",
        }))
        .unwrap();
        Caller {
            account: Some(Arc::new(account)),
            role: Role::User,
            credential: Credential::Bearer,
            from: None,
        }
    }

    async fn ask(document: &str, caller: &Caller) -> Json {
        let query = Query { document: document.into(), ..Query::default() };
        serde_json::to_value(Schema::new().unwrap().execute(query, caller).await).unwrap()
    }

    #[tokio::test]
    async fn the_user_is_told() {
        let document = "{ authenticatedUser { id givenName familyName email organization roles serviceAccount } }";
        assert_eq!(
            ask(document, &plant()).await,
            json!({"data": {"authenticatedUser": {
                "id": "0199c1d2-7d3e-7000-8000-000000000001",
                "givenName": null,
                "familyName": "Plant",
                "email": "s@machines.example",
                "organization": null,
                "roles": ["Contributor"],
                "serviceAccount": true,
            }}})
        );
        let local = ask(document, &Caller::local()).await;
        assert_eq!(local["data"]["authenticatedUser"]["id"], "local");
        assert_eq!(local["data"]["authenticatedUser"]["roles"], json!(["Admin"]));
        assert_eq!(local["data"]["authenticatedUser"]["email"], Json::Null);
    }

    #[tokio::test]
    async fn what_is_not_executed_has_no_data() {
        for document in [
            "",
            "{",
            "{ nothing }",
            "query A { __typename } query B { __typename }",
            "subscription { a }",
        ] {
            let answer = ask(document, &plant()).await;
            assert!(answer.get("data").is_none(), "{document}: {answer}");
            assert!(answer["errors"][0]["message"].is_string(), "{answer}");
        }
    }

    #[tokio::test]
    async fn variables_keep_their_kinds() {
        let document = "query($yes: Boolean!, $list: [Float]) { __typename @include(if: $yes) a: __typename @skip(if: $list) }";
        let Json::Object(values) = json!({"yes": true, "list": [1, 2.5, null]}) else { panic!() };
        assert_eq!(
            variable(values["list"].clone()),
            Value::List(vec![1.into(), 2.5.into(), Value::Null])
        );
        let query = Query { document: document.into(), variables: values, ..Query::default() };
        let answer = Schema::new().unwrap().execute(query, &plant()).await;
        // A list where a flag is asked for: the variables were read as what they are.
        assert!(answer.data.is_none(), "{answer:?}");
    }

    #[tokio::test]
    async fn a_mutation_is_told_from_what_reads() {
        let query = |document: &str, operation: Option<&str>| Query {
            document: document.into(),
            operation: operation.map(str::to_owned),
            reads_only: true,
            ..Query::default()
        };
        let both = "query Q { __typename } mutation M { a }";
        let schema = Schema::new().unwrap();
        assert!(schema.execute(query("mutation { a }", None), &plant()).await.would_change);
        assert!(schema.execute(query(both, Some("M")), &plant()).await.would_change);
        assert!(!schema.execute(query(both, Some("Q")), &plant()).await.would_change);
    }

    #[tokio::test]
    async fn no_document_is_too_much() {
        let repeated = |part: &str| part.repeat(LONGEST / part.len() / 2);
        let fragments = (0..1000).map(|i| format!("fragment f{i} on Query {{ ...f{} }} ", i + 1));
        let fragments = fragments.collect::<Vec<_>>().concat();
        let aliases = (0..2000).map(|i| format!("a{i}: __typename ")).collect::<Vec<_>>().concat();
        for document in [
            format!("{{{}}}", repeated("__typename ")),
            format!("query({}) {{ __typename }}", repeated("$a: Int ")),
            format!("{{ __typename {} }}", repeated("@skip(if: false) ")),
            format!("{{{}", repeated("a{")),
            format!("{{ a(x: {}", repeated("[")),
            format!("query($a: {}", repeated("[")),
            repeated("\u{0}"),
            repeated("\""),
            format!("{{ {} }}", repeated("# comment\n")),
            format!("{{ a(x: \"{}\") }}", repeated("\\u0041")),
            format!("{{ ...f0 }} {fragments}"),
            format!("{{ {aliases} }}"),
            "{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }".to_owned(),
        ] {
            let answer = ask(&document, &plant()).await;
            assert!(answer.get("data").is_none(), "{answer}");
        }
    }

    #[tokio::test]
    async fn tools_can_ask_for_the_schema() {
        // What GraphiQL asks, as far as it costs: nine levels of ofType.
        let of_type = "ofType { name kind ".repeat(9) + &"}".repeat(9);
        let document = format!(
            "{{ __schema {{ queryType {{ name }} types {{ ...T }} directives {{ name locations args {{ ...I }} }} }} }} \
             fragment T on __Type {{ kind name description fields(includeDeprecated: true) {{ name args {{ ...I }} type {{ ...R }} }} \
             inputFields {{ ...I }} interfaces {{ ...R }} enumValues {{ name }} possibleTypes {{ ...R }} }} \
             fragment I on __InputValue {{ name type {{ ...R }} defaultValue }} \
             fragment R on __Type {{ kind name {of_type} }}"
        );
        let answer = ask(&document, &plant()).await;
        assert!(answer["data"]["__schema"]["types"].is_array(), "{answer}");
        assert!(Schema::new().unwrap().sdl().contains("authenticatedUser: AuthenticatedUser!"));
    }
}
