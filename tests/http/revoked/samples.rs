//! A request for each changing route.
use super::*;
use crate::sources::store_messages;

impl Fixture {
    /// Returns a request for each changing route that would succeed.
    pub(super) async fn samples(&self) -> Vec<Sample> {
        let server = &self.server;
        for name in ["Changed", "Gone", "Shown", "Removed"] {
            let path = format!("/api/v1/namespaces/{name}");
            server.json("PUT", &path, &json!({})).await.expect(201);
        }
        for name in ["Gone", "Shown", "Removed"] {
            let path = format!("/api/v1/shapes/{name}");
            let headers = [("Content-Type", "text/turtle")];
            server.send("PUT", &path, &headers, SHAPES).await.expect(201);
        }
        for name in ["NewGroup", "GoneGroup", "ShownGroup", "RemovedGroup"] {
            server.json("PUT", &format!("/api/v1/groups/{name}"), &json!({})).await.expect(201);
        }
        let mut reviewed = definition();
        reviewed["name"] = json!("Reviewed");
        reviewed["review"] = json!("optional");
        server.json("PUT", "/api/v1/business-objects", &reviewed).await.expect(201);
        let (mut changes, mut shown_changes) = (Vec::new(), Vec::new());
        for (action, parameter) in [
            ("submit", "draft=true"),
            ("approve", "review=true"),
            ("reject", "review=true"),
            ("withdraw", "review=true"),
            ("rebase", "review=true"),
        ] {
            changes.push(format!("/api/v1/changes/{}/{action}", self.change(parameter).await));
            shown_changes.push(format!("/admin/changes/{}/{action}", self.change(parameter).await));
        }
        let mut objects = Vec::new();
        for name in ["Replaced", "Deleted", "Edited", "Dropped"] {
            let mut body = definition();
            body["name"] = json!(name);
            let made = server.json("PUT", "/api/v1/business-objects", &body).await.expect(201);
            objects.push(made.json()["id"].as_str().unwrap().to_owned());
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
        let form = |fields: &[(&str, &str)]| {
            let pairs = fields.iter().map(|(name, value)| format!("{name}={}", escaped(value)));
            pairs.collect::<Vec<_>>().join("&")
        };
        let shapes_form = form(&[
            ("format", "text/turtle"),
            ("version", "1"),
            ("text", &format!("{SHAPES} # new")),
        ]);
        let new_shapes = form(&[("name", "Newer"), ("format", "text/turtle"), ("text", SHAPES)]);
        let skipping = "/api/v1/business-objects/Pump?onError=skip";
        let rejected = server.json("POST", skipping, &json!({"data": [1, 2, 3, 4]})).await;
        let rejected = rejected.expect(200).json();
        let letter = |n: usize| rejected["rejected"][n]["id"].as_str().unwrap().to_owned();
        let letter_path = |n: usize, rest: &str| {
            let ingestion = rejected["ingestionId"].as_str().unwrap();
            format!("/api/v1/ingestions/{ingestion}/rejected/{}{rest}", letter(n))
        };
        let messages = [("pumps", "1"), ("pumps", "2")];
        store_messages(server.gateway(), "line", "Pump", &messages).unwrap();
        let of_source = server.get("/api/v1/sources/line/rejected").await.expect(200).lines();
        let source_path = |n: usize, rest: &str| {
            let id = of_source[n]["id"].as_str().unwrap();
            format!("/api/v1/sources/line/rejected/{id}{rest}")
        };
        let letter_page = |n: usize, rest: &str| format!("/admin/rejected/{}{rest}", letter(n));
        let corrected = form(&[("text", r#"{"name": "six"}"#)]);
        let config = definition()["config"].as_str().unwrap().to_owned();
        let draft = |name: &str| {
            let description = ("description", "by somebody who may not");
            form(&[("name", name), ("config", &config), description, ("enabled", "on")])
        };
        let user = |email: &str| {
            json!({"email": email, "roles": ["Admin"], "password": OTHER}).to_string()
        };
        let person = form(&[
            ("givenName", "Eve"),
            ("email", "eve@plant.example"),
            ("roles", "Admin"),
            ("enabled", "on"),
            ("password", OTHER),
        ]);
        let changed_person = form(&[
            ("givenName", "Eve"),
            ("roles", "Admin"),
            ("email", "e@plant.example"),
            ("enabled", "on"),
        ]);
        let passwords = form(&[("password", OTHER), ("again", OTHER)]);
        let own_passwords =
            form(&[("currentPassword", PASSWORD), ("password", OTHER), ("again", OTHER)]);
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
        let object_form = |number: &str, page: &str| {
            let uri = escaped(&format!("https://plant.example/p/{number}"));
            format!("/admin/object/{page}?uri={uri}&view=Pump")
        };
        let changed_view = views[0].replace("shown", "changed");
        let edit = form(&[("base", &views[0]), ("draft", &changed_view), ("do", "save")]);
        let line = r#"{"uri": "https://plant.example/p/3", "name": "three"}"#;
        let key = r#"{"name": "theirs", "role": "Admin"}"#;
        let comment = r#"{"comment": "by somebody who may not"}"#;
        let decision = "version=1&comment=by+somebody+who+may+not";
        let group_form = "version=1&claimValues=x";
        let graphql = r#"{"query": "{ businessObjects { name } }"}"#;
        let sample = |method, route, path: &str, media_type, body: &str| Sample {
            method,
            route,
            path: if path.is_empty() { str::to_owned(route) } else { path.to_owned() },
            media_type,
            body: body.to_owned(),
            changes: true,
            if_match: None,
        };
        let api =
            |method, route, path: String, body: &str| sample(method, route, &path, JSON, body);
        let page = |route, path: String, body: &str| sample("POST", route, &path, FORM, body);
        let reads = |sample: Sample| Sample { changes: false, ..sample };
        let graph = "/sparql/graphs?graph=urn:g";
        let none = String::new;
        let pump = || "/api/v1/business-objects/Pump".to_owned();
        let push = || format!("{}/push", pump());
        let validation = || format!("{}/validation", pump());
        let export = |id: &str, act: &str| format!("/api/v1/exports/{id}/{act}");
        let shown_export = |id: &str, act: &str| format!("/admin/exports/{id}/{act}");
        let user_path = |n: usize, rest: &str| format!("/api/v1/users/{}{rest}", victims[n]);
        let user_page = |n: usize, rest: &str| format!("/admin/users/{}{rest}", victims[n]);
        let object_page = |id: &str, rest: &str| format!("/admin/business-objects/{id}{rest}");
        vec![
            api("PUT", "/api/v1/business-objects", none(), &new_definition("Made")),
            api(
                "PUT",
                "/api/v1/business-objects/{id}",
                format!("/api/v1/business-objects/{replaced}"),
                &new_definition("Replaced"),
            ),
            api(
                "DELETE",
                "/api/v1/business-objects/{id}",
                format!("/api/v1/business-objects/{deleted}"),
                "",
            ),
            api("POST", "/api/v1/business-objects/{id}", pump(), object),
            sample("POST", "/api/v1/business-objects/{id}", &pump(), LINES, line),
            api(
                "POST",
                "/api/v1/ingestions/{id}/rejected/{letter}/retry",
                letter_path(0, "/retry"),
                r#"{"name": "five"}"#,
            ),
            api("DELETE", "/api/v1/ingestions/{id}/rejected/{letter}", letter_path(1, ""), ""),
            api(
                "POST",
                "/api/v1/sources/{name}/rejected/{letter}/retry",
                source_path(0, "/retry"),
                r#"{"name": "six"}"#,
            ),
            api("DELETE", "/api/v1/sources/{name}/rejected/{letter}", source_path(1, ""), ""),
            reads(api(
                "POST",
                "/api/v1/sources/{name}/test",
                "/api/v1/sources/line/test".to_owned(),
                "",
            )),
            reads(page("/admin/sources/{name}/test", "/admin/sources/line/test".to_owned(), "x=1")),
            reads(api(
                "POST",
                "/api/v1/webhooks/{name}/test",
                "/api/v1/webhooks/ops/test".to_owned(),
                "",
            )),
            reads(page(
                "/admin/webhooks/{name}/test",
                "/admin/webhooks/ops/test".to_owned(),
                "x=1",
            )),
            page("/admin/object/edit", object_form("10", "edit"), &edit),
            page("/admin/object/delete", object_form("11", "delete"), &form(&[("etag", &tags[1])])),
            page("/admin/rejected/{id}/retry", letter_page(2, "/retry"), &corrected),
            page("/admin/rejected/{id}/delete", letter_page(3, "/delete"), "x=1"),
            api("PUT", "/api/v1/namespaces/{name}", "/api/v1/namespaces/New".to_owned(), "{}"),
            api("DELETE", "/api/v1/namespaces/{name}", "/api/v1/namespaces/Gone".to_owned(), ""),
            api("POST", "/api/v1/changes/{id}/submit", changes[0].clone(), comment),
            Sample {
                if_match: Some("\"1\""),
                ..api("POST", "/api/v1/changes/{id}/approve", changes[1].clone(), comment)
            },
            api("POST", "/api/v1/changes/{id}/reject", changes[2].clone(), comment),
            api("POST", "/api/v1/changes/{id}/withdraw", changes[3].clone(), comment),
            api("POST", "/api/v1/changes/{id}/rebase", changes[4].clone(), comment),
            api(
                "PUT",
                "/api/v1/groups/{name}",
                "/api/v1/groups/NewGroup".to_owned(),
                r#"{"claimValues": ["x"]}"#,
            ),
            api("DELETE", "/api/v1/groups/{name}", "/api/v1/groups/GoneGroup".to_owned(), ""),
            page("/admin/changes/{id}/submit", shown_changes[0].clone(), decision),
            page("/admin/changes/{id}/approve", shown_changes[1].clone(), decision),
            page("/admin/changes/{id}/reject", shown_changes[2].clone(), decision),
            page("/admin/changes/{id}/withdraw", shown_changes[3].clone(), decision),
            page("/admin/changes/{id}/rebase", shown_changes[4].clone(), decision),
            page("/admin/groups/{name}", "/admin/groups/ShownGroup".to_owned(), group_form),
            page(
                "/admin/groups/{name}/delete",
                "/admin/groups/RemovedGroup/delete".to_owned(),
                "version=1",
            ),
            page("/admin/new-group", none(), "name=NewerGroup&claimValues=x"),
            sample("PUT", "/api/v1/shapes/{name}", "/api/v1/shapes/New", "text/turtle", SHAPES),
            api("DELETE", "/api/v1/shapes/{name}", "/api/v1/shapes/Gone".to_owned(), ""),
            page("/admin/shapes/{name}", "/admin/shapes/Shown".to_owned(), &shapes_form),
            page("/admin/shapes/{name}/delete", "/admin/shapes/Removed/delete".to_owned(), "x=1"),
            page("/admin/new-shapes", none(), &new_shapes),
            api("POST", "/api/v1/exports/{id}/park", export(waiting, "park"), ""),
            api("POST", "/api/v1/exports/{id}/retry", export(waiting, "retry"), ""),
            api("POST", "/api/v1/exports/{id}/replay", export(delivered, "replay"), ""),
            page("/admin/exports/{id}/park", shown_export(waiting, "park"), "x=1"),
            page("/admin/exports/{id}/retry", shown_export(waiting, "retry"), "x=1"),
            page("/admin/exports/{id}/replay", shown_export(delivered, "replay"), "x=1"),
            api("GET", "/api/v1/business-objects/{id}/push", push(), ""),
            api("POST", "/api/v1/business-objects/{id}/push", push(), ""),
            page("/admin/business-objects/{id}/push", object_page("Pump", "/push"), "x=1"),
            reads(api(
                "POST",
                "/api/v1/targets/{bucketName}/test",
                "/api/v1/targets/away/test".to_owned(),
                "",
            )),
            reads(page(
                "/admin/targets/{bucketName}/test",
                "/admin/targets/away/test".to_owned(),
                "x=1",
            )),
            api("POST", "/api/v1/users", none(), &user("mallory@plant.example")),
            api("PUT", "/api/v1/users/{id}", user_path(0, ""), r#"{"givenName": "Eve"}"#),
            api("DELETE", "/api/v1/users/{id}", user_path(1, ""), ""),
            api(
                "POST",
                "/api/v1/users/{id}/password",
                user_path(2, "/password"),
                &json!({"password": OTHER}).to_string(),
            ),
            api("PUT", "/api/v1/users/me", none(), r#"{"givenName": "Eve"}"#),
            api(
                "POST",
                "/api/v1/users/me/password",
                none(),
                &json!({"currentPassword": PASSWORD, "password": OTHER}).to_string(),
            ),
            api("POST", "/api/v1/api-keys", none(), key),
            api("DELETE", "/api/v1/api-keys/{id}", format!("/api/v1/api-keys/{}", keys[0]), ""),
            reads(api("POST", "/graphql", none(), graphql)),
            reads(sample("POST", "/sparql", "", "application/sparql-query", "ASK {}")),
            sample(
                "POST",
                "/sparql/update",
                "",
                "application/sparql-update",
                "INSERT DATA { <urn:a> <urn:b> 1 }",
            ),
            sample("PUT", "/sparql/graphs", graph, "text/turtle", "<urn:a> <urn:b> 2 ."),
            sample("POST", "/sparql/graphs", graph, "text/turtle", "<urn:a> <urn:b> 3 ."),
            sample("DELETE", "/sparql/graphs", graph, "text/turtle", ""),
            page("/admin/profile", none(), &form(&[("givenName", "Eva")])),
            page("/admin/profile/password", none(), &own_passwords),
            page(
                "/admin/namespaces/{name}",
                "/admin/namespaces/Shown".to_owned(),
                &form(&[("generator", "counter")]),
            ),
            page(
                "/admin/namespaces/{name}/delete",
                "/admin/namespaces/Removed/delete".to_owned(),
                "x=1",
            ),
            page("/admin/new-namespace", none(), "name=Newer"),
            page("/admin/keys/new", none(), "name=theirs&role=Admin"),
            page("/admin/keys/{id}/revoke", format!("/admin/keys/{}/revoke", keys[1]), "x=1"),
            page("/admin/users/new", none(), &person),
            page("/admin/users/{id}", user_page(3, ""), &changed_person),
            page("/admin/users/{id}/password", user_page(4, "/password"), &passwords),
            page("/admin/users/{id}/delete", user_page(5, "/delete"), "x=1"),
            reads(page("/admin/business-objects/derive", none(), "name=Tank&sample=[{\"a\":1}]")),
            page("/admin/business-objects/new", none(), &draft("Drafted")),
            reads(page("/admin/business-objects/check", none(), &draft("Checked"))),
            page(
                "/admin/business-objects/{id}/edit",
                object_page(&edited, "/edit"),
                &draft("Edited"),
            ),
            page("/admin/business-objects/{id}/delete", object_page(&dropped, "/delete"), "x=1"),
            // These change nothing that is stored.
            reads(api("POST", "/api/v1/business-objects/{id}/validation", validation(), "")),
            reads(api("DELETE", "/api/v1/validations/{id}", none(), "")),
            reads(page("/admin/quality", none(), "businessObject=Pump")),
            reads(page("/admin/quality/{id}/cancel", none(), "x=1")),
            reads(page(
                "/admin/query",
                none(),
                &form(&[("query", "{ businessObjects { name } }")]),
            )),
            reads(page("/admin/sparql", none(), &form(&[("query", "ASK {}")]))),
        ]
    }
}
