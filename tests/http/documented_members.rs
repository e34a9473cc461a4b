//! The OpenAPI document and the readers of JSON bodies agree on every member: each of the document, each of an answer
//! about the same resource, which clients change and send back, and an unknown one.
use penstock_test_support::prelude::*;
use serde_json::Map;

/// A route with a JSON body.
struct Endpoint {
    method: &'static str,
    route: &'static str,
    /// The path of a request. `OPERATOR` becomes the id of an account, and `VIEW` that of a view.
    path: &'static str,
    /// The route whose GET answers with the same resource, if there is one.
    answer: Option<&'static str>,
    /// A body that is accepted. `#` becomes another number in each request.
    body: Value,
    /// The status after the body was accepted, if it is no success.
    status: Option<u16>,
    /// Whether an account sends it, because API keys must not.
    by_account: bool,
}

impl Endpoint {
    fn new(method: &'static str, route: &'static str, body: Value) -> Self {
        Self { method, route, path: route, answer: None, body, status: None, by_account: false }
    }

    fn at(self, path: &'static str) -> Self {
        Self { path, ..self }
    }

    fn answered_by(self, route: &'static str) -> Self {
        Self { answer: Some(route), ..self }
    }

    fn then(self, status: u16) -> Self {
        Self { status: Some(status), ..self }
    }

    fn by_account(self) -> Self {
        Self { by_account: true, ..self }
    }
}

const PASSWORD: &str = "correct horse battery staple";
/// The password of the accounts of [`Person::sign_in`].
const SIGNED_IN_PASSWORD: &str = "of no account";

/// Returns all endpoints whose JSON body has members of its own. The change and the account to sign in do not exist, which
/// the gateway finds after it has read the body.
fn endpoints() -> Vec<Endpoint> {
    let mut all = vec![
        Endpoint::new("PUT", "/api/v1/business-objects", definition())
            .answered_by("/api/v1/business-objects/{id}"),
        Endpoint::new("PUT", "/api/v1/business-objects/{id}", definition())
            .at("/api/v1/business-objects/Pump")
            .answered_by("/api/v1/business-objects/{id}"),
        Endpoint::new("POST", "/api/v1/business-objects/{id}", json!({"data": []}))
            .at("/api/v1/business-objects/Pump?mode=ADD"),
        Endpoint::new("PUT", "/api/v1/namespaces/{name}", json!({}))
            .at("/api/v1/namespaces/Line")
            .answered_by("/api/v1/namespaces"),
        Endpoint::new("PUT", "/api/v1/groups/{name}", json!({"members": []}))
            .at("/api/v1/groups/leaders")
            .answered_by("/api/v1/groups/{name}"),
        Endpoint::new("POST", "/api/v1/views", view("all #")).answered_by("/api/v1/views"),
        Endpoint::new("PUT", "/api/v1/views/{id}", view("all"))
            .at("/api/v1/views/VIEW")
            .answered_by("/api/v1/views/{id}"),
        Endpoint::new("POST", "/api/v1/api-keys", json!({"name": "line", "role": "User"}))
            .answered_by("/api/v1/api-keys"),
        Endpoint::new(
            "POST",
            "/api/v1/users",
            json!({"email": "u#@plant.example", "password": PASSWORD, "roles": ["User"]}),
        )
        .answered_by("/api/v1/users/{id}"),
        Endpoint::new("PUT", "/api/v1/users/{id}", json!({"enabled": true}))
            .at("/api/v1/users/OPERATOR")
            .answered_by("/api/v1/users/{id}"),
        Endpoint::new("PUT", "/api/v1/users/me", json!({"givenName": "Ada"}))
            .answered_by("/api/v1/users/me")
            .by_account(),
        Endpoint::new("POST", "/api/v1/users/{id}/password", json!({"password": PASSWORD}))
            .at("/api/v1/users/OPERATOR/password"),
        Endpoint::new(
            "POST",
            "/api/v1/users/me/password",
            json!({"currentPassword": SIGNED_IN_PASSWORD, "password": SIGNED_IN_PASSWORD}),
        )
        .by_account(),
        Endpoint::new("POST", "/graphql", json!({"query": "{__typename}"})),
        Endpoint::new("POST", "/login", json!({"email": "nobody", "password": PASSWORD})).then(401),
    ];
    for (route, path) in [
        ("/api/v1/changes/{id}/submit", "/api/v1/changes/none/submit"),
        ("/api/v1/changes/{id}/approve", "/api/v1/changes/none/approve"),
        ("/api/v1/changes/{id}/reject", "/api/v1/changes/none/reject"),
        ("/api/v1/changes/{id}/withdraw", "/api/v1/changes/none/withdraw"),
        ("/api/v1/changes/{id}/rebase", "/api/v1/changes/none/rebase"),
    ] {
        let step = Endpoint::new("POST", route, json!({})).at(path);
        all.push(step.answered_by("/api/v1/changes/{id}").then(404));
    }
    all
}

fn view(name: &str) -> Value {
    json!({"name": name, "businessObject": "Pump", "shared": true})
}

/// Returns a valid value of a documented member.
fn sample(member: &str) -> Value {
    match member {
        "data" | "conditions" | "namespaces" | "members" | "claimValues" | "approvers"
        | "filters" | "columns" => json!([]),
        "orderBy" => json!("name"),
        "chart" => json!({"number": "flow"}),
        "pushTargets" => json!([{"bucketName": "plant-exports"}]),
        "email" => json!("u#@plant.example"),
        "enabled" | "exportOnChange" => json!(true),
        "schedule" => json!("0 3 * * *"),
        "timezone" => json!("Europe/Berlin"),
        "debounce" => json!("5s"),
        "retention" => json!("P1D"),
        "validation" => json!({"shapes": [], "mode": "off"}),
        "review" => json!("off"),
        "roles" => json!(["User"]),
        "expiresAt" => json!("2099-01-31T12:00:00Z"),
        "businessObject" => json!("Pump"),
        "businessObjects" => json!(["Pump"]),
        "uriBase" => json!("https://plant.example/id/Line/"),
        "generator" => json!("uuid"),
        "metadata" => json!({
            "object_type": "Pump",
            "object_count": 0,
            "checksum_algorithm": "SHA-256",
            "data_checksum": "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945",
        }),
        "variables" | "extensions" => json!({}),
        "deleting" => json!({"remaining": 7}),
        "operationName" => Value::Null,
        _ => json!("text"),
    }
}

struct Document(Value);

impl Document {
    /// Returns what a schema refers to.
    fn resolve<'d>(&'d self, schema: &'d Value) -> &'d Value {
        match schema["$ref"].as_str() {
            Some(reference) => self.0.pointer(reference.trim_start_matches('#')).unwrap(),
            None => schema,
        }
    }

    /// Returns the schema of the JSON body of a route, if it has members.
    fn body(&self, method: &str, route: &str) -> Option<&Value> {
        let operation = &self.0["paths"][route][method.to_lowercase()];
        let schema =
            self.resolve(&operation["requestBody"]["content"]["application/json"]["schema"]);
        schema["properties"].is_object().then_some(schema)
    }

    /// Returns the members of an answer; of its items, if it is a list.
    fn answer_members(&self, route: &str) -> Vec<&String> {
        let answer = &self.0["paths"][route]["get"]["responses"]["200"]["content"];
        let mut schema = self.resolve(&answer["application/json"]["schema"]);
        if schema["properties"]["items"].is_object() {
            schema = self.resolve(&schema["properties"]["items"]["items"]);
        }
        let members =
            schema["properties"].as_object().unwrap_or_else(|| panic!("{route}: {schema}"));
        members.keys().collect()
    }

    /// Returns whether a value has the form of a schema, as far as the schemas of bodies say more than any value.
    fn allows(&self, schema: &Value, value: &Value) -> bool {
        let schema = self.resolve(schema);
        let is_type = |name: &Value| match name.text() {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" | "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("the type {other}"),
        };
        let has_type = match &schema["type"] {
            Value::Null => true,
            Value::Array(names) => names.iter().any(is_type),
            name => is_type(name),
        };
        let alternatives = |name: &str| {
            schema[name].as_array().is_none_or(|all| all.iter().any(|one| self.allows(one, value)))
        };
        let items = value.as_array().is_none_or(|items| {
            schema["items"].is_null()
                || items.iter().all(|item| self.allows(&schema["items"], item))
        });
        has_type
            && alternatives("oneOf")
            && alternatives("anyOf")
            && items
            && schema["enum"].as_array().is_none_or(|all| all.contains(value))
            && value.as_object().is_none_or(|members| self.allows_members(schema, members))
    }

    fn allows_members(&self, schema: &Value, members: &Map<String, Value>) -> bool {
        let required = schema["required"].as_array().into_iter().flatten();
        required.map(JsonExt::text).all(|name| members.contains_key(name))
            && members.iter().all(|(name, value)| match schema["properties"].get(name) {
                Some(property) => self.allows(property, value),
                None => schema["additionalProperties"] != json!(false),
            })
    }
}

/// Sends a body, and returns whether the reader accepted it.
async fn is_accepted(
    (server, person, ids): (&TestApp, &Person, &[(&str, &str)]),
    endpoint: &Endpoint,
    body: &str,
) -> bool {
    let fill = |path: String, (name, id): &(&str, &str)| path.replace(name, id);
    let path = ids.iter().fold(endpoint.path.to_owned(), fill);
    let answer: Answer = if endpoint.by_account {
        person.send(endpoint.method, &path, &[JSON], body.to_owned()).await
    } else {
        let headers = [JSON, ("If-Match", "\"1\"")];
        let headers =
            if endpoint.route.contains("/changes/") { &headers[..] } else { &headers[..1] };
        server.send(endpoint.method, &path, headers, body.to_owned()).await
    };
    let accepted = match endpoint.status {
        Some(status) => answer.status == status,
        // An account may send its email and role back, and may not change them.
        None => {
            (200..300).contains(&answer.status) || (endpoint.by_account && answer.status == 403)
        }
    };
    assert!(accepted || matches!(answer.status, 400 | 422), "{body}: {answer:?}");
    accepted
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_and_the_readers_accept_the_same_members() {
    let server = TestApp::plain().await;
    let person = Person::sign_in(&server, Role::Admin).await;
    let operator =
        json!({"email": "operator@plant.example", "password": PASSWORD, "roles": ["User"]});
    let operator = server.post("/api/v1/users", &operator).await.expect(201).json();
    let operator = operator["id"].text();
    server.define().await;
    let saved = server.post("/api/v1/views", &view("all")).await.expect(201).json();
    let ids = [("OPERATOR", operator), ("VIEW", saved["id"].text())];
    let document = Document(server.read("/api-doc/openapi.json").await);

    let endpoints = endpoints();
    for (route, path) in document.0["paths"].as_object().unwrap() {
        for method in path.as_object().unwrap().keys().map(|method| method.to_uppercase()) {
            let is_tested = endpoints.iter().any(|one| one.method == method && one.route == route);
            let has_body = document.body(&method, route).is_some();
            assert_eq!(has_body, is_tested, "{method} {route} has members, or a test here");
        }
    }

    let mut different = Vec::new();
    let mut number = 0;
    for endpoint in &endpoints {
        let Endpoint { method, route, .. } = endpoint;
        let schema = document.body(method, route).unwrap();
        let mut members: Vec<&str> = vec!["unheardOf"];
        members.extend(schema["properties"].as_object().unwrap().keys().map(String::as_str));
        let answered = endpoint.answer.map(|route| document.answer_members(route));
        members.extend(answered.iter().flatten().map(|name| name.as_str()));
        members.sort_unstable();
        members.dedup();
        for member in members {
            number += 1;
            let mut body = endpoint.body.clone();
            body.as_object_mut().unwrap().entry(member).or_insert_with(|| sample(member));
            if member == "name" && route.contains("{name}") {
                body["name"] = endpoint.path.rsplit('/').next().into();
            }
            let allowed = document.allows(schema, &body);
            let body = body.to_string().replace('#', &number.to_string());
            let accepted = is_accepted((&server, &person, &ids[..]), endpoint, &body).await;
            if allowed != accepted {
                let who = if allowed { "only the document" } else { "only the reader" };
                different.push(format!("{method} {route}: {who} accepts {member:?}"));
            }
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}
