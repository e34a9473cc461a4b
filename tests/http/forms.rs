//! A form of the administration interface is accepted only with the token of its session, or from a page of the
//! gateway.
use penstock_auth::sessions::Sessions;
use penstock_test_support::prelude::*;

const NEW: &str = "/admin/new-namespace";

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_another_site_is_refused() {
    let server = TestApp::plain().await;
    let cookie = server.sign_in(Role::Contributor);
    let token = Sessions::csrf_token(cookie.split_once('=').unwrap().1);
    let other = server.sign_in(Role::Contributor);
    let foreign = Sessions::csrf_token(other.split_once('=').unwrap().1);
    let send = async |site: Option<&str>, token: &str, name: &str| {
        let mut headers = vec![("Cookie", cookie.as_str()), HTML, FORM];
        headers.extend(site.map(|site| ("Sec-Fetch-Site", site)));
        let body = format!("_csrf={token}&name={name}");
        connect(server.address, "POST", NEW, &headers, body).await
    };
    for (site, token) in [
        (None, ""),
        (None, foreign.as_str()),
        (Some("cross-site"), ""),
        (Some("same-site"), foreign.as_str()),
    ] {
        let refused = send(site, token, "Tank").await.expect(403);
        assert!(refused.text().contains("You are not allowed to do this"), "{site:?}");
        server.get("/api/v1/namespaces/Tank").await.expect(404);
    }
    // With its token, a form is accepted from any origin, and the answer redirects to a GET.
    let done = send(None, &token, "Tank").await.expect(303);
    assert_eq!(done.header("location"), "/admin/namespaces");
    server.get("/api/v1/namespaces/Tank").await.expect(200);
    send(Some("same-origin"), "", "Valve").await.expect(303);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_taken_is_refused_by_the_form_of_each_kind() {
    let server = TestApp::plain().await;
    let config = "type: object\npath: Tank:.\nfields:\n  name: {type: string, path: <urn:name>}\n";
    for (path, more) in [
        (NEW, &[][..]),
        ("/admin/new-group", &[]),
        ("/admin/business-objects/new", &[("config", config), ("validation", "off")]),
    ] {
        let fields = [&[("name", "Tank")], more].concat();
        server.form(path, &fields).await.expect(303);
        let refused = server.form(path, &fields).await.expect(412).text();
        assert!(refused.contains("this name is taken already"), "{path}: {refused}");
    }
    // What a deletion means names the namespace and its base.
    let asked = server.page("/admin/namespaces/Tank/delete").await;
    let base = server.read("/api/v1/namespaces/Tank").await["uriBase"].string();
    asked.has_all(&["<strong>Tank</strong>", &format!("<code>{base}</code>")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_of_a_deleted_definition_becomes_that_of_a_new_one() {
    let server = TestApp::plain().await;
    let config = "type: object\npath: Tank:.\nfields:\n  name: {type: string, path: <urn:name>}\n";
    for (create, list, more) in [
        (NEW, "/admin/namespaces", &[("uriBase", "https://plant.example/typed/")][..]),
        ("/admin/new-group", "/admin/groups", &[("claimValues", "typed")]),
        (
            "/admin/business-objects/new",
            "/admin/business-objects",
            &[("config", config), ("validation", "off"), ("description", "typed")],
        ),
    ] {
        let fields = [&[("name", "Tank")], more].concat();
        let created = server.form(create, &fields).await.expect(303);
        let (page, edit) = match created.header("location") {
            to_list if to_list == list => (format!("{list}/Tank"), ""),
            to_page => (to_page.to_owned(), "/edit"),
        };
        server.form(&format!("{page}/delete"), &[]).await.expect(303);
        let sent = [&fields[..], &[("version", "1")]].concat();
        let refused = server.form(&format!("{page}{edit}"), &sent).await.expect(409).text();
        refused.has_all(&[
            "Another user has deleted this",
            &format!("action=\"{create}\""),
            "name=\"name\" value=\"Tank\"",
            "typed",
        ]);
        assert!(!refused.contains("name=\"version\""), "{refused}");
        server.form(create, &fields).await.expect(303);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_editor_keeps_the_white_space_of_a_condition() {
    let server = TestApp::plain().await;
    let predicate = "https://plant.example/v/kind";
    let conditions = json!([{"predicate": predicate, "value": "PUMP  "}, {"predicate": predicate, "value": "a"}]);
    server.define_with(&json!({"conditions": conditions})).await;
    let read = async || server.items("/api/v1/business-objects").await.remove(0);
    let defined = read().await;
    let path = format!("/admin/business-objects/{}/edit", defined["id"].text());
    let page = server.page(&path).await;
    page.has_all(&["name=\"condition.0.stored\" value=\"&#34;PUMP  &#34;\""]);
    assert!(!page.contains("condition.1.stored"), "{page}");
    let fields = [
        ("name", "Pump"),
        ("description", "another one"),
        ("enabled", "true"),
        ("config", defined["config"].text()),
        ("validation", "off"),
        ("review", "off"),
        ("condition.0.predicate", predicate),
        ("condition.0.value", "PUMP  "),
        ("condition.0.stored", "\"PUMP  \""),
        ("condition.1.predicate", predicate),
        ("condition.1.value", " a "),
        ("version", "1"),
    ];
    server.form(&path, &fields).await.expect(303);
    let saved = read().await;
    assert_eq!((&saved["description"], &saved["conditions"]), (&json!("another one"), &conditions));
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_pages_for_browsers_and_problems_for_programs() {
    let server = TestApp::plain().await;
    let cookie = server.sign_in(Role::User);
    let session = ("Cookie", cookie.as_str());
    for (method, path, status, words) in [
        ("GET", "/admin/users", 403, "this request needs the role Admin"),
        ("POST", "/admin/users/new", 403, "this request needs the role Admin"),
        ("GET", "/admin/nothing", 404, "there is nothing at"),
        ("PUT", "/admin", 405, "does not allow PUT"),
        ("GET", "/admin?x=1", 400, "no query parameter"),
    ] {
        let page = connect(server.address, method, path, &[session, HTML], "").await;
        let page = page.expect(status);
        assert!(page.header("content-type").starts_with("text/html"), "{method} {path}");
        let text = page.text();
        assert!(text.contains(words) && text.contains("aria-label=\"Main\""), "{text}");
        connect(server.address, method, path, &[session], "").await.refused(status, words);
    }
    // Addresses outside `/admin` have no error pages.
    server.get_with("/api/v1/users", &[session, HTML]).await.problem(403);
    // A form of an ended session gets 401, and a page with a link to the sign-in.
    let over = connect(server.address, "POST", NEW, &[HTML, FORM], "name=Tank").await.expect(401);
    over.text().has_all(&[
        "href=\"/login?return=/admin\"",
        "sign in in another tab, and reload this page",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_forbids_foreign_scripts_and_styles() {
    let server = TestApp::plain().await;
    let person = server.cookie_of(Role::Admin);
    for path in ["", "/changes", "/groups", "/users", "/settings", "/audit", "/nothing"] {
        let path = format!("/admin{path}");
        let page = person.get_with(&path, &[HTML]).await;
        let policy = page.header("content-security-policy");
        policy.has_all(&["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"]);
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{path}: {policy}");
        let text = page.text();
        for inline in [" style=", "<style", "onclick=", "javascript:"] {
            assert!(!text.contains(inline), "{path} has {inline}");
        }
    }
    // Assets that are cached forever have an address of their own for each version.
    let text = person.get_with("/admin", &[HTML]).await.text();
    let (_, rest) = text.split_once("<link rel=\"stylesheet\" href=\"").unwrap();
    let style = rest.split('"').next().unwrap();
    let answer = server.anonymous().get(style).await.expect(200);
    assert!(answer.header("cache-control").contains("immutable"));
    let old = style.replace(style.split('/').nth(3).unwrap(), "0000000000000000");
    server.anonymous().get(&old).await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mapping_is_derived_from_a_sample_of_many_objects() {
    let server = TestApp::plain().await;
    let person = server.session(Role::Admin);
    let derive = async |sample: &str| {
        let fields = [("name", "Meter"), ("sample", sample)];
        person.form("/admin/business-objects/derive", &fields).await
    };
    let object = |n: usize, remark: &str| {
        format!(r#"{{"uri": "urn:meter:{n}", "reading": {n}.5, "remark": "{remark}"}}"#)
    };
    let few: Vec<String> = (0..100).map(|n| object(n, "none")).collect();
    let page = derive(&few.join("\n")).await.expect(200).text();
    assert!(page.contains("The sample matches") && !page.contains("even distances"), "{page}");

    let many: Vec<String> = (0..150).map(|n| object(n, "none")).collect();
    // Together the samples have more than 1 MiB.
    let long: Vec<String> = (0..2000).map(|n| object(n, &"x".repeat(1000))).collect();
    for (objects, sampled) in [
        (&many, "The sample is 75 of the 150 objects, taken at even distances."),
        (&long, "The sample is 63 of the 2000 objects, taken at even distances."),
    ] {
        for text in [format!("[{}]", objects.join(",")), objects.join("\n")] {
            let page = derive(&text).await.expect(200).text();
            assert!(page.contains(sampled) && page.contains("The sample matches"), "{page}");
            assert!(page.contains("reading:") && page.contains("type: number"), "{page}");
        }
    }
    let series = format!(r#"{{"values": [{}]}}"#, vec!["1"; 50_000].join(","));
    let page = derive(&series).await.expect(200).text();
    assert!(page.contains("Longer arrays are cut to at most 100 elements."), "{page}");
    assert!(page.contains("The sample matches"), "{page}");

    // A document with more objects than a sample may have.
    let document = format!(r#"{{"sent": 1, "metrics": [{}]}}"#, many.join(","));
    let page = derive(&document).await.expect(200).text();
    page.has_all(&["/metrics/*", "form=document", "left out: sent.", "The sample matches"]);

    // The editor also uses a sample of many pasted objects.
    let config = "type: object\npath: Meter:.\nfields: {reading: {type: number, path: <urn:r>}, remark: {type: string, path: <urn:t>}}";
    let fields = [("config", config), ("sample", &many.join("\n"))];
    let checked = person.form("/admin/business-objects/check", &fields).await.expect(200).text();
    checked.has_all(&["The sample matches", "75 of the 150"]);
    // Twenty views would be longer than the rest of the page.
    checked.has_all(&[
        "<details open>\n<summary>Object 1, new</summary>",
        "<details>\n<summary>Object 2, new</summary>",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sample_of_csv_has_the_errors_of_an_ingestion() {
    let server = TestApp::plain().await;
    let person = server.session(Role::Admin);
    let config = "type: object\npath: Meter:.\nfields:\n  tag: {type: string, required: true, path: <urn:t>}\n  \
                  reading: {type: number, path: <urn:r>}\n";
    let definition = json!({"name": "Meter", "config": config});
    server.define_object(&definition).await;
    let check = async |sample: &str| {
        let fields = [("config", config), ("sample", sample)];
        person.form("/admin/business-objects/check", &fields).await.expect(200).text()
    };
    let page = check("tag,reading\nM-1,1.50\n\n\"M\n2\",2\n").await;
    assert!(page.contains("The sample matches: 4 new quads"), "{page}");
    assert!(page.contains("1.50"), "{page}");
    for (sample, place) in [
        ("tag,reading\nM-1,1\n\n\"\",x\n", "line 4, object 2, /reading"),
        ("tag,reading\n\"M\n1\",1\nM-2,1,2\n", "line 4, column 1"),
        ("tag,raeding\nM-1,1\n", "line 1, column 5"),
    ] {
        let page = check(sample).await;
        assert!(page.contains(&format!("<strong>{place}</strong>")), "{place}: {page}");
        let path = "/api/v1/business-objects/Meter?mode=VALIDATE";
        let sent = server.send("POST", path, &[("Content-Type", "text/csv")], sample).await;
        let problem = sent.json();
        let errors = problem["errors"].list();
        assert!(!errors.is_empty(), "{problem}");
        for error in errors {
            let message = error["message"].text();
            let message = message.replace('"', "&#34;").replace('\'', "&#39;");
            assert!(page.contains(&message), "{message}: {page}");
        }
    }
}
