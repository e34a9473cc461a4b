//! A request for each changing route.
use super::*;
use crate::sources::store_messages;

const OBJECT: &str = "/api/v1/business-objects/{id}";
const PUSH: &str = "/api/v1/business-objects/{id}/push";
const REJECTED: &str = "/api/v1/ingestions/{id}/rejected/{letter}";
const RETRY: &str = "/api/v1/ingestions/{id}/rejected/{letter}/retry";
const OF_SOURCE: &str = "/api/v1/sources/{name}/rejected/{letter}";
const RETRY_OF_SOURCE: &str = "/api/v1/sources/{name}/rejected/{letter}/retry";

/// Returns the path of a route with these values of its parameters.
fn fill(route: &str, values: &[&str]) -> String {
    let mut values = values.iter();
    let mut path = Vec::new();
    for part in route.split('/') {
        path.push(if part.starts_with('{') { values.next().unwrap() } else { part });
    }
    path.join("/")
}

impl Fixture {
    /// Returns a request for each changing route that would succeed.
    pub(super) async fn samples(&self) -> Vec<Sample> {
        let server = &self.server;
        for name in ["Changed", "Gone", "Shown", "Removed"] {
            server.put(&format!("/api/v1/namespaces/{name}"), &json!({})).await.expect(201);
            server.put(&format!("/api/v1/groups/{name}Group"), &json!({})).await.expect(201);
            let path = format!("/api/v1/shapes/{name}");
            server.send("PUT", &path, &[TURTLE], SHAPES).await.expect(201);
        }
        server.define_with(&json!({"name": "Reviewed", "review": "optional"})).await;
        let (mut changes, mut shown_changes) = (Vec::new(), Vec::new());
        for parameter in ["draft=true", "review=true", "review=true", "review=true", "review=true"]
        {
            changes.push(self.change(parameter).await);
            shown_changes.push(self.change(parameter).await);
        }
        let mut objects = Vec::new();
        for name in ["Replaced", "Deleted", "Edited", "Dropped"] {
            let mut body = definition();
            body["name"] = json!(name);
            objects.push(server.define_object(&body).await["id"].string());
        }
        let [replaced, deleted, edited, dropped] = objects.try_into().unwrap();
        let victims: Vec<String> = (0..6).map(|_| self.account().id.clone()).collect();
        let keys: Vec<String> = (0..2).map(|_| self.key(self.account()).id).collect();
        let [delivered, waiting] = &self.exports;
        let new_definition = |name: &str| {
            let mut body = definition();
            body["name"] = json!(name);
            body["description"] = json!("by somebody who may not");
            body.to_string()
        };
        let turtle = ("format", "text/turtle");
        let newer = format!("{SHAPES} # new");
        let shapes_form = encode_form(&[turtle, ("version", "1"), ("text", &newer)]);
        let new_shapes = encode_form(&[("name", "Newer"), turtle, ("text", SHAPES)]);
        let skipping = "/api/v1/business-objects/Pump?onError=skip";
        let rejected = server.post(skipping, &json!({"data": [1, 2, 3, 4]})).await;
        let rejected = rejected.expect(200).json();
        let ingestion = rejected["ingestionId"].text();
        let letter = |n: usize| rejected["rejected"][n]["id"].text();
        let messages = [("pumps", "1"), ("pumps", "2")];
        store_messages(server.gateway(), "line", "Pump", &messages).unwrap();
        let of_source = server.get("/api/v1/sources/line/rejected").await.expect(200).lines();
        let source_letter = |n: usize| of_source[n]["id"].text();
        let corrected = encode_form(&[("text", r#"{"name": "six"}"#)]);
        let mut saved = Vec::new();
        for name in ["first", "second", "third"] {
            let view = json!({"name": name, "businessObject": "Pump", "shared": true});
            let saved_view = server.post("/api/v1/views", &view).await.expect(201).json();
            saved.push(saved_view["id"].string());
        }
        let view =
            json!({"name": "by somebody who may not", "businessObject": "Pump", "shared": true});
        let view = view.to_string();
        let config = definition()["config"].string();
        let draft = |name: &str| {
            let description = ("description", "by somebody who may not");
            encode_form(&[("name", name), ("config", &config), description, ("enabled", "on")])
        };
        let user = json!({"email": "mallory@plant.example", "roles": ["Admin"], "password": OTHER});
        let eve = [("givenName", "Eve"), ("roles", "Admin"), ("enabled", "on")];
        let person = [("email", "eve@plant.example"), ("password", OTHER)];
        let person = encode_form(&[&eve[..], &person].concat());
        let changed_person = encode_form(&[&eve[..], &[("email", "e@plant.example")]].concat());
        let given_name = r#"{"givenName": "Eve"}"#;
        let password = json!({"password": OTHER}).to_string();
        let own_password = json!({"currentPassword": PASSWORD, "password": OTHER}).to_string();
        let passwords = [("currentPassword", PASSWORD), ("password", OTHER), ("again", OTHER)];
        let own_passwords = encode_form(&passwords);
        let passwords = encode_form(&passwords[1..]);
        let object = r#"{"data": [{"uri": "https://plant.example/p/2", "name": "two"}]}"#;
        let (mut views, mut tags) = (Vec::new(), Vec::new());
        for number in ["10", "11"] {
            let uri = format!("https://plant.example/p/{number}");
            server.ingest("ADD", &json!([{"uri": uri, "name": "shown"}])).await.expect(200);
            let view = format!("/api/v1/business-objects/Pump/objects?uri={uri}");
            let view = server.get(&view).await.expect(200);
            tags.push(view.header("etag").to_owned());
            views.push(view.text());
        }
        let changed_view = views[0].replace("shown", "changed");
        let edit = encode_form(&[("base", &views[0]), ("draft", &changed_view), ("do", "save")]);
        let line = r#"{"uri": "https://plant.example/p/3", "name": "three"}"#;
        let key = r#"{"name": "theirs", "role": "Admin"}"#;
        let comment = r#"{"comment": "by somebody who may not"}"#;
        let decision = "version=1&comment=by+somebody+who+may+not";
        let claims = r#"{"claimValues": ["x"]}"#;
        let graphql = r#"{"query": "{ businessObjects { name } }"}"#;
        let query = encode_form(&[("query", "{ businessObjects { name } }")]);
        let sample = |method, route, values: &[&str], media_type, body: &str| Sample {
            method,
            route,
            path: fill(route, values),
            media_type,
            body: body.to_owned(),
            changes: true,
            if_match: None,
        };
        let api = |method, route, values: &[&str], body: &str| {
            sample(method, route, values, JSON.1, body)
        };
        let post = |route, values: &[&str], body: &str| api("POST", route, values, body);
        let page = |route, values: &[&str], body: &str| sample("POST", route, values, FORM.1, body);
        let reads = |sample: Sample| Sample { changes: false, ..sample };
        let graph = |method, body: &str| Sample {
            path: "/sparql/graphs?graph=urn:g".to_owned(),
            ..sample(method, "/sparql/graphs", &[], TURTLE.1, body)
        };
        let object_page = |route, number: &str, body: &str| {
            let uri = escaped(&format!("https://plant.example/p/{number}"));
            Sample { path: format!("{route}?uri={uri}&view=Pump"), ..page(route, &[], body) }
        };
        let update = "INSERT DATA { <urn:a> <urn:b> 1 }";
        vec![
            api("PUT", "/api/v1/business-objects", &[], &new_definition("Made")),
            api("PUT", OBJECT, &[&replaced], &new_definition("Replaced")),
            api("DELETE", OBJECT, &[&deleted], ""),
            post(OBJECT, &["Pump"], object),
            sample("POST", OBJECT, &["Pump"], NDJSON.1, line),
            post(RETRY, &[ingestion, letter(0)], r#"{"name": "five"}"#),
            api("DELETE", REJECTED, &[ingestion, letter(1)], ""),
            post(RETRY_OF_SOURCE, &["line", source_letter(0)], r#"{"name": "six"}"#),
            api("DELETE", OF_SOURCE, &["line", source_letter(1)], ""),
            reads(post("/api/v1/sources/{name}/test", &["line"], "")),
            reads(page("/admin/sources/{name}/test", &["line"], "x=1")),
            reads(post("/api/v1/webhooks/{name}/test", &["ops"], "")),
            reads(page("/admin/webhooks/{name}/test", &["ops"], "x=1")),
            object_page("/admin/object/edit", "10", &edit),
            object_page("/admin/object/delete", "11", &encode_form(&[("etag", &tags[1])])),
            page("/admin/rejected/{id}/retry", &[letter(2)], &corrected),
            page("/admin/rejected/{id}/delete", &[letter(3)], "x=1"),
            api("PUT", "/api/v1/namespaces/{name}", &["New"], "{}"),
            api("DELETE", "/api/v1/namespaces/{name}", &["Gone"], ""),
            post("/api/v1/changes/{id}/submit", &[&changes[0]], comment),
            Sample {
                if_match: Some("\"1\""),
                ..post("/api/v1/changes/{id}/approve", &[&changes[1]], comment)
            },
            post("/api/v1/changes/{id}/reject", &[&changes[2]], comment),
            post("/api/v1/changes/{id}/withdraw", &[&changes[3]], comment),
            post("/api/v1/changes/{id}/rebase", &[&changes[4]], comment),
            api("PUT", "/api/v1/groups/{name}", &["NewGroup"], claims),
            api("DELETE", "/api/v1/groups/{name}", &["GoneGroup"], ""),
            page("/admin/changes/{id}/submit", &[&shown_changes[0]], decision),
            page("/admin/changes/{id}/approve", &[&shown_changes[1]], decision),
            page("/admin/changes/{id}/reject", &[&shown_changes[2]], decision),
            page("/admin/changes/{id}/withdraw", &[&shown_changes[3]], decision),
            page("/admin/changes/{id}/rebase", &[&shown_changes[4]], decision),
            page("/admin/groups/{name}", &["ShownGroup"], "version=1&claimValues=x"),
            page("/admin/groups/{name}/delete", &["RemovedGroup"], "version=1"),
            page("/admin/new-group", &[], "name=NewerGroup&claimValues=x"),
            sample("PUT", "/api/v1/shapes/{name}", &["New"], TURTLE.1, SHAPES),
            api("DELETE", "/api/v1/shapes/{name}", &["Gone"], ""),
            page("/admin/shapes/{name}", &["Shown"], &shapes_form),
            page("/admin/shapes/{name}/delete", &["Removed"], "x=1"),
            page("/admin/new-shapes", &[], &new_shapes),
            post("/api/v1/exports/{id}/park", &[waiting], ""),
            post("/api/v1/exports/{id}/retry", &[waiting], ""),
            post("/api/v1/exports/{id}/replay", &[delivered], ""),
            page("/admin/exports/{id}/park", &[waiting], "x=1"),
            page("/admin/exports/{id}/retry", &[waiting], "x=1"),
            page("/admin/exports/{id}/replay", &[delivered], "x=1"),
            api("GET", PUSH, &["Pump"], ""),
            post(PUSH, &["Pump"], ""),
            page("/admin/business-objects/{id}/push", &["Pump"], "x=1"),
            reads(post("/api/v1/targets/{bucketName}/test", &["away"], "")),
            reads(page("/admin/targets/{bucketName}/test", &["away"], "x=1")),
            post("/api/v1/views", &[], &view),
            api("PUT", "/api/v1/views/{id}", &[&saved[0]], &view),
            api("DELETE", "/api/v1/views/{id}", &[&saved[1]], ""),
            reads(page("/admin/objects/{id}/columns", &["Pump"], "add=name")),
            page("/admin/views", &[], "name=theirs&businessObject=Pump"),
            page("/admin/views/{id}/delete", &[&saved[2]], "version=1"),
            post("/api/v1/users", &[], &user.to_string()),
            api("PUT", "/api/v1/users/{id}", &[&victims[0]], given_name),
            api("DELETE", "/api/v1/users/{id}", &[&victims[1]], ""),
            post("/api/v1/users/{id}/password", &[&victims[2]], &password),
            api("PUT", "/api/v1/users/me", &[], given_name),
            post("/api/v1/users/me/password", &[], &own_password),
            post("/api/v1/api-keys", &[], key),
            api("DELETE", "/api/v1/api-keys/{id}", &[&keys[0]], ""),
            reads(post("/graphql", &[], graphql)),
            reads(sample("POST", "/sparql", &[], "application/sparql-query", "ASK {}")),
            sample("POST", "/sparql/update", &[], "application/sparql-update", update),
            graph("PUT", "<urn:a> <urn:b> 2 ."),
            graph("POST", "<urn:a> <urn:b> 3 ."),
            graph("DELETE", ""),
            page("/admin/profile", &[], "givenName=Eva"),
            page("/admin/profile/password", &[], &own_passwords),
            page("/admin/namespaces/{name}", &["Shown"], "generator=counter"),
            page("/admin/namespaces/{name}/delete", &["Removed"], "x=1"),
            page("/admin/new-namespace", &[], "name=Newer"),
            page("/admin/keys/new", &[], "name=theirs&role=Admin"),
            page("/admin/keys/{id}/revoke", &[&keys[1]], "x=1"),
            page("/admin/users/new", &[], &person),
            page("/admin/users/{id}", &[&victims[3]], &changed_person),
            page("/admin/users/{id}/password", &[&victims[4]], &passwords),
            page("/admin/users/{id}/delete", &[&victims[5]], "x=1"),
            reads(page("/admin/business-objects/derive", &[], "name=Tank&sample=[{\"a\":1}]")),
            page("/admin/business-objects/new", &[], &draft("Drafted")),
            reads(page("/admin/business-objects/check", &[], &draft("Checked"))),
            page("/admin/business-objects/{id}/edit", &[&edited], &draft("Edited")),
            page("/admin/business-objects/{id}/delete", &[&dropped], "x=1"),
            // These change nothing that is stored.
            reads(post("/api/v1/business-objects/{id}/validation", &["Pump"], "")),
            reads(api("DELETE", "/api/v1/validations/{id}", &["none"], "")),
            reads(page("/admin/quality", &[], "businessObject=Pump")),
            reads(page("/admin/quality/{id}/cancel", &["none"], "x=1")),
            reads(page("/admin/query", &[], &query)),
            reads(page("/admin/sparql", &[], "query=ASK+%7B%7D")),
        ]
    }
}
