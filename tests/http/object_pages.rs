//! The pages of objects: lists with filters and an order, the tabs of an object, changing and deleting it.
use crate::person::Person;
use crate::server::{Answer, Server, escaped};
use penstock_auth::Role;
use serde_json::{Value, json};

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

const CONFIG: &str = "
prefixes: {v: 'https://plant.example/v/'}
type: object
path: Pump:.
fields:
  name: {type: string, path: v:name, required: true}
  flow: {type: number, path: v:flow}
  built: {type: date, path: v:built}
  marks: {type: array, path: v:mark}
  next: {type: resource, path: v:next}
  place: {type: object, path: 'v:place/Place:.', fields: {room: {type: string, path: v:room}}}
  parts:
    type: array
    path: v:part
    elements:
      type: object
      path: Part:.
      fields:
        label: {type: string, path: v:label}
        seen: {type: dateTime, path: v:seen}
        screws: {type: array, path: v:screw, elements: {type: object, path: Screw:., fields: {size: {type: integer, path: v:size}}}}
  readings:
    type: array
    path: v:reading
    elements: {type: object, path: Reading:., fields: {at: {type: dateTime, path: v:at}, value: {type: number, path: v:value}}}
";

/// A gateway with two pumps, and a Contributor.
struct Plant {
    server: Server,
    person: Person,
    /// The id of the Business Object.
    id: String,
}

impl Plant {
    async fn start(others: &Value) -> Self {
        let server = Server::start(&[]).await;
        let mut definition = json!({"name": "Pump", "config": CONFIG});
        definition.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
        let defined = server.json("PUT", "/api/v1/business-objects", &definition).await;
        let id = defined.expect(201).json()["id"].as_str().unwrap().to_owned();
        let person = Person::sign_in(&server, Role::Contributor).await;
        Self { server, person, id }
    }

    async fn with_pumps(others: &Value) -> Self {
        let plant = Self::start(&json!({})).await;
        let readings: Vec<Value> = (10..60)
            .map(|at| json!({"at": format!("2026-03-01T12:{at}:00Z"), "value": at}))
            .collect();
        let pumps = json!([
            {"uri": "urn:pump:1", "name": "Feed pump", "flow": 1.5, "built": "2001-02-03", "marks": ["a", "b"],
             "next": "urn:pump:2", "place": {"uri": "urn:place:1", "room": "R1"}, "readings": readings,
             "parts": [{"uri": "urn:part:1", "label": "seal", "screws": [{"uri": "urn:screw:1", "size": 8}]}]},
            {"uri": "urn:pump:2", "name": "Drain pump", "flow": 20, "built": "2020-01-01"},
        ]);
        plant.server.ingest("ADD", &pumps).await.expect(200);
        let mut definition = json!({"name": "Pump", "config": CONFIG});
        definition.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
        plant.server.json("PUT", "/api/v1/business-objects", &definition).await.expect(200);
        plant
    }

    async fn page(&self, path: &str) -> String {
        self.person.get(&self.server, path).await.expect(200).text()
    }

    fn edit_path(&self, page: &str, uri: &str) -> String {
        format!("/admin/object/{page}?uri={}&view={}", escaped(uri), self.id)
    }

    async fn send_form(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let token = self.person.headers.iter().find(|(name, _)| *name == "X-CSRF-Token").unwrap();
        let all = fields.iter().copied().chain([("_csrf", token.1.as_str())]);
        let body: Vec<_> =
            all.map(|(name, value)| format!("{}={}", escaped(name), escaped(value))).collect();
        let headers = [FORM, ("Accept", "text/html")];
        self.person.send(&self.server, "POST", path, &headers, &body.join("&")).await
    }

    async fn view(&self, uri: &str) -> Value {
        let path = format!("/api/v1/business-objects/Pump/objects?uri={}", escaped(uri));
        self.server.get(&path).await.expect(200).json()
    }
}

/// Returns the value of the hidden field of this name, without the escapes of HTML.
fn hidden(page: &str, name: &str) -> String {
    let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
    let (text, _) = rest.split_once('"').unwrap();
    let escapes = [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")];
    escapes.iter().fold(text.to_owned(), |text, (escape, plain)| text.replace(escape, plain))
}

fn position(page: &str, text: &str) -> usize {
    page.find(text).unwrap_or_else(|| panic!("{text} is not in {page}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_filters_an_order_and_a_total_in_its_address() {
    let plant = Plant::with_pumps(&json!({})).await;
    let list = format!("/admin/objects/{}", plant.id);
    let all = plant.page(&list).await;
    assert!(all.contains("2 objects"), "{all}");
    // The newest first, with the first click on a time.
    assert!(all.contains(&format!("href=\"{list}?sort=-built\"")), "{all}");
    let newest = plant.page(&format!("{list}?sort=-built")).await;
    assert!(newest.contains("aria-sort=\"descending\""), "{newest}");
    assert!(position(&newest, "Drain pump") < position(&newest, "Feed pump"));
    let lowest = plant.page(&format!("{list}?sort=flow")).await;
    assert!(position(&lowest, "Feed pump") < position(&lowest, "Drain pump"));
    // A reference shows the label of its object, and leads to it.
    let both =
        format!("{list}?field=/name&test=contains&text=pump&field2=/flow&test2=before&text2=2");
    let both = plant.page(&both).await;
    assert!(both.contains("1 object matches") && !both.contains("urn:pump:2</a></th>"), "{both}");
    assert!(both.contains("value=\"pump\"") && both.contains("id=\"text3\""), "{both}");
    for wrong in ["sort=marks", "sort=nothing", "field=/none&text=x", "cursor=x"] {
        let refused = plant.person.get(&plant.server, &format!("{list}?{wrong}")).await;
        assert!(refused.expect(422).text().contains("role=\"alert\""), "{wrong}");
    }
    plant.person.get(&plant.server, &format!("{list}?order=name")).await.expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_list_keep_the_filters_and_the_order() {
    let plant = Plant::start(&json!({})).await;
    let pumps: Vec<Value> =
        (0..120).map(|n| json!({"name": format!("pump {n:03}"), "flow": 1000 - n})).collect();
    plant.server.ingest("ADD", &json!(pumps)).await.expect(200);
    let mut path =
        format!("/admin/objects/{}?field=/name&test=contains&text=pump&sort=-flow", plant.id);
    let mut names = Vec::new();
    for _ in 0..3 {
        let page = plant.page(&path).await;
        assert!(page.contains("120 objects match"), "{page}");
        names.extend((0..120).filter(|n| page.contains(&format!(">pump {n:03}</a>"))));
        let Some(end) = page.find("\">Next page") else { break };
        let begin = page[..end].rfind("href=\"").unwrap() + 6;
        path = page[begin..end].replace("&#38;", "&");
    }
    assert_eq!(names, (0..120).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fields_of_an_object_fold_and_long_arrays_have_pages() {
    let plant = Plant::with_pumps(&json!({})).await;
    let page = plant.page("/admin/object?uri=urn:pump:1").await;
    for part in [
        "<h1>Feed pump</h1>",
        "<span class=\"faint small\">number</span></span> <span class=\"value\"><span>1.5</span>",
        ">Drain pump</a>",
        "aria-current=\"page\">Fields</a>",
        "newest first, by at",
        "Page of seal",
        "readings: 6 to 25 of 50",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(page.contains("2026-03-01T12:59:00Z") && !page.contains("2026-03-01T12:54:00Z"));
    let next = plant.page("/admin/object?uri=urn:pump:1&field=readings&from=40").await;
    assert!(next.contains("2026-03-01T12:19:00Z") && !next.contains("2026-03-01T12:20:00Z"));
    assert!(next.contains("readings: 21 to 40<") && next.contains("All fields"), "{next}");
    assert!(!next.contains("1.5"), "{next}");
    let none = plant.page("/admin/object?uri=urn:pump:1&field=nothing").await;
    assert!(none.contains("There is no such field."), "{none}");
    // A nested object has a page of its own, which says where it is.
    let screw = plant.page("/admin/object?uri=urn:screw:1").await;
    let crumbs = [
        "Business Objects</a>",
        "Pump</a>",
        "Feed pump</a>",
        "parts</a>",
        "seal</a>",
        "screws</a>",
    ];
    let places: Vec<_> =
        crumbs.iter().map(|crumb| position(&screw, &format!(">{crumb}"))).collect();
    assert!(places.is_sorted(), "{screw}");
    assert!(screw.contains("It is changed with"), "{screw}");
    for wrong in ["tab=nothing", "x=1"] {
        let path = format!("/admin/object?uri=urn:pump:1&{wrong}");
        plant.person.get(&plant.server, &path).await.expect(400);
    }
    plant.person.get(&plant.server, "/admin/object?uri=urn:pump:9").await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_tabs_show_rdf_history_references_and_a_drawing() {
    let plant = Plant::with_pumps(&json!({})).await;
    let tab = async |uri: &str, name: &str| {
        plant.page(&format!("/admin/object?uri={uri}&tab={name}")).await
    };
    let rdf = tab("urn:pump:1", "rdf").await;
    assert!(rdf.contains("@prefix v: &#60;https://plant.example/v/&#62; ."), "{rdf}");
    assert!(rdf.contains("v:name &#34;Feed pump&#34;") && rdf.contains("&#34;flow&#34;: 1.5"));
    let history = tab("urn:pump:1", "history").await;
    assert!(history.contains("ADD into Pump by") && !history.contains("/api/v1/"), "{history}");
    let references = tab("urn:pump:2", "references").await;
    assert!(
        references.contains(">Feed pump</a> <span class=\"faint\">(Pump, next)"),
        "{references}"
    );
    let graph = tab("urn:pump:1", "graph").await;
    assert_eq!(graph.matches("<svg").count(), 2);
    for part in [
        "href=\"/admin/object?uri=urn%3Apump%3A2&#38;tab=graph\"",
        ">and 44 more</text>",
        "<text class=\"edge\"",
        ">readings</text>",
    ] {
        assert!(graph.contains(part), "{part}: {graph}");
    }
    let lonely = json!([{"uri": "urn:pump:3", "name": "Lonely pump"}]);
    plant.server.ingest("ADD", &lonely).await.expect(200);
    assert!(tab("urn:pump:3", "graph").await.contains("It refers to no object"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_is_shown_before_it_is_saved_and_keeps_everything_else() {
    let plant = Plant::with_pumps(&json!({})).await;
    // A value that the view does not show, because the field is no array.
    let hidden_value = "<urn:pump:1> <https://plant.example/v/name> \"Other name\" <urn:g> .";
    plant.server.control("POST", "/control/load?format=nq", &[], hidden_value).await.expect(200);
    let before = plant.view("urn:pump:1").await;
    let path = plant.edit_path("edit", "urn:pump:1");
    let form = plant.page(&path).await;
    let (base, draft) = (hidden(&form, "base"), hidden(&form, "draft"));
    assert_eq!(serde_json::from_str::<Value>(&base).unwrap(), before);
    assert!(form.contains("name=\"v/flow\" value=\"1.5\""), "{form}");
    assert!(form.contains("name=\"j/parts\"") && form.contains("name=\"v/place/room\""), "{form}");
    // It would lose the other name.
    assert!(form.contains("Several values are stored") && !form.contains("name=\"v/name\""));
    let renamed = draft.replace("Feed pump", "Main pump");
    let renamed = [("base", &*base), ("draft", &*renamed), ("do", "save")];
    let renamed = plant.send_form(&path, &renamed).await.expect(409).text();
    assert!(renamed.contains("would lose") || renamed.contains("Several values"), "{renamed}");

    let given = [("base", &*base), ("draft", &*draft), ("v/flow", "2.75")];
    let twice = [&given[..], &[("v/flow", "2,75"), ("do", "review")]].concat();
    assert_eq!(plant.send_form(&path, &twice).await.status, 400, "a field occurs once");
    let wrong = [("base", &*base), ("draft", &*draft), ("v/flow", "2,75"), ("do", "review")];
    let wrong = plant.send_form(&path, &wrong).await.expect(422).text();
    assert!(wrong.contains("&#34;2,75&#34; is not a number"), "{wrong}");
    assert!(wrong.contains("value=\"2,75\"") && wrong.contains("aria-invalid=\"true\""), "{wrong}");

    let review = plant.send_form(&path, &[&given[..], &[("do", "review")]].concat()).await;
    let review = review.expect(200).text();
    assert!(review.contains("<del>1.5</del>") && review.contains("<ins>2.75</ins>"), "{review}");
    assert_eq!(review.matches("<del>").count(), 1, "{review}");
    assert_eq!(plant.view("urn:pump:1").await, before);
    let draft = hidden(&review, "draft");
    let saved = [("base", &*base), ("draft", &*draft), ("do", "save")];
    let saved = plant.send_form(&path, &saved).await.expect(303);
    let address = format!("/admin/object?uri=urn%3Apump%3A1&view={}", plant.id);
    assert_eq!(saved.header("location"), address);
    let mut expected = before.clone();
    expected["flow"] = json!(2.75);
    assert_eq!(plant.view("urn:pump:1").await, expected);
    let dump = plant.server.control("GET", "/control/dump?format=nq", &[], "").await.text();
    assert!(dump.contains("\"Other name\""), "{dump}");

    let nothing = plant.page(&path).await;
    let fields = [("base", hidden(&nothing, "base")), ("draft", hidden(&nothing, "draft"))];
    let fields = [("base", &*fields[0].1), ("draft", &*fields[1].1), ("do", "save")];
    let nothing = plant.send_form(&path, &fields).await.expect(200).text();
    assert!(nothing.contains("Nothing is changed yet."), "{nothing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_added_and_removed_without_script() {
    let plant = Plant::with_pumps(&json!({})).await;
    let path = plant.edit_path("edit", "urn:pump:1");
    let form = plant.page(&path).await;
    let base = hidden(&form, "base");
    let first = [("base", &*base), ("draft", &*hidden(&form, "draft")), ("do", "add/marks")];
    let added = plant.send_form(&path, &first).await.expect(200).text();
    assert!(added.contains("name=\"v/marks/2\" value=\"\""), "{added}");
    let draft = hidden(&added, "draft");
    let second =
        [("base", &*base), ("draft", &*draft), ("v/marks/2", "c"), ("do", "remove/marks/0")];
    let removed = plant.send_form(&path, &second).await.expect(200).text();
    let draft = hidden(&removed, "draft");
    let third = [("base", &*base), ("draft", &*draft), ("do", "remove/place")];
    let removed = plant.send_form(&path, &third).await.expect(200).text();
    let draft = hidden(&removed, "draft");
    let saved = [("base", &*base), ("draft", &*draft), ("do", "save")];
    plant.send_form(&path, &saved).await.expect(303);
    let view = plant.view("urn:pump:1").await;
    assert_eq!(view["marks"], json!(["b", "c"]));
    assert_eq!(view.get("place"), None);
    assert_eq!(view["parts"][0]["screws"][0]["size"], 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_changed_meanwhile_is_shown_and_the_input_is_kept() {
    let plant = Plant::with_pumps(&json!({})).await;
    let path = plant.edit_path("edit", "urn:pump:1");
    let form = plant.page(&path).await;
    let (base, draft) = (hidden(&form, "base"), hidden(&form, "draft"));
    let meanwhile = json!([{"uri": "urn:pump:1", "name": "Main pump"}]);
    plant.server.ingest("MERGE", &meanwhile).await.expect(200);
    for step in ["review", "save"] {
        let sent = [("base", &*base), ("draft", &*draft), ("v/flow", "2.75"), ("do", step)];
        let page = plant.send_form(&path, &sent).await.expect(412).text();
        assert!(page.contains("<del>Feed pump</del>") && page.contains("<ins>Main pump</ins>"));
        assert!(page.contains("name=\"v/flow\" value=\"2.75\""), "{page}");
        assert!(page.contains("name=\"v/name\" value=\"Main pump\""), "{page}");
        assert_eq!(plant.view("urn:pump:1").await["flow"], json!(1.5));
        if step == "save" {
            let (base, draft) = (hidden(&page, "base"), hidden(&page, "draft"));
            let again = [("base", &*base), ("draft", &*draft), ("do", "save")];
            plant.send_form(&path, &again).await.expect(303);
        }
    }
    let view = plant.view("urn:pump:1").await;
    assert_eq!((&view["name"], &view["flow"]), (&json!("Main pump"), &json!(2.75)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_input_is_kept_if_the_object_was_deleted_meanwhile() {
    let plant = Plant::with_pumps(&json!({})).await;
    let path = plant.edit_path("edit", "urn:pump:1");
    let form = plant.page(&path).await;
    let (base, draft) = (hidden(&form, "base"), hidden(&form, "draft"));
    plant.server.ingest("DELETE", &json!([{"uri": "urn:pump:1"}])).await.expect(200);
    let sent = [("base", &*base), ("draft", &*draft), ("v/flow", "2.75"), ("do", "save")];
    let page = plant.send_form(&path, &sent).await.expect(404).text();
    assert!(page.contains("Nothing was saved") && page.contains("value=\"2.75\""), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_too_large_is_refused() {
    let plant = Plant::with_pumps(&json!({})).await;
    let path = plant.edit_path("edit", "urn:pump:1");
    let base = hidden(&plant.page(&path).await, "base");
    let large = format!("{{\"uri\":\"urn:pump:1\",\"name\":\"{}\"}}", "x".repeat(600 << 10));
    let huge = "x".repeat(3 << 20);
    for (base, draft) in [(&base, &large), (&large, &base), (&base, &huge)] {
        let sent = [("base", &**base), ("draft", &**draft), ("do", "review")];
        plant.send_form(&path, &sent).await.expect(413);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_sent_twice_counts_once() {
    for definition in [json!({}), json!({"review": "required"})] {
        let plant = Plant::with_pumps(&definition).await;
        let path = plant.edit_path("edit", "urn:pump:1");
        let form = plant.page(&path).await;
        let (base, draft) = (hidden(&form, "base"), hidden(&form, "draft"));
        let sent = [("base", &*base), ("draft", &*draft), ("v/flow", "2.75"), ("do", "review")];
        let review = plant.send_form(&path, &sent).await.expect(200).text();
        let (draft, key) = (hidden(&review, "draft"), hidden(&review, "key"));
        let sent = [("base", &*base), ("draft", &*draft), ("key", &*key), ("do", "save")];
        let first = plant.send_form(&path, &sent).await.expect(303);
        let second = plant.send_form(&path, &sent).await.expect(303);
        assert_eq!(first.header("location"), second.header("location"));
        let changes = plant.page("/admin/changes").await;
        let count = usize::from(definition != json!({}));
        assert_eq!(changes.matches("data-label=\"Sent by\"").count(), count, "{changes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_deleted_as_the_page_has_shown_it() {
    let plant = Plant::with_pumps(&json!({})).await;
    let path = plant.edit_path("delete", "urn:pump:1");
    let page = plant.page(&path).await;
    assert!(page.contains("The object and 53 nested objects that nothing else"), "{page}");
    let etag = hidden(&page, "etag");
    let refers = plant.page(&plant.edit_path("delete", "urn:pump:2")).await;
    assert!(refers.contains("Feed pump (Pump, next)"), "{refers}");
    let meanwhile = json!([{"uri": "urn:pump:1", "name": "Main pump"}]);
    plant.server.ingest("MERGE", &meanwhile).await.expect(200);
    let outdated = plant.send_form(&path, &[("etag", &etag)]).await.expect(412).text();
    assert!(outdated.contains("Nothing was deleted."), "{outdated}");
    let etag = hidden(&outdated, "etag");
    let deleted = plant.send_form(&path, &[("etag", &etag)]).await.expect(303);
    assert_eq!(deleted.header("location"), format!("/admin/objects/{}", plant.id));
    plant.person.get(&plant.server, "/admin/object?uri=urn:pump:1").await.expect(404);
    plant.person.get(&plant.server, "/admin/object?uri=urn:screw:1").await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_review_is_required_saving_and_deleting_send_a_change() {
    let plant = Plant::with_pumps(&json!({"review": "required"})).await;
    let path = plant.edit_path("edit", "urn:pump:1");
    let form = plant.page(&path).await;
    let (base, draft) = (hidden(&form, "base"), hidden(&form, "draft"));
    let sent = [("base", &*base), ("draft", &*draft), ("v/flow", "2.75"), ("do", "review")];
    let review = plant.send_form(&path, &sent).await.expect(200).text();
    assert!(review.contains("Send for review"), "{review}");
    let sent = [("base", &*base), ("draft", &*draft), ("v/flow", "2.75"), ("do", "save")];
    let sent = plant.send_form(&path, &sent).await.expect(303);
    assert!(sent.header("location").starts_with("/admin/changes/"));
    assert_eq!(plant.view("urn:pump:1").await["flow"], json!(1.5));
    let change = plant.page(sent.header("location")).await;
    assert!(change.contains("<ins>2.75</ins>"), "{change}");
    // The page of the object leads to it.
    let object = plant.page("/admin/object?uri=urn:pump:1").await;
    assert!(object.contains("Pending changes"), "{object}");
    let path = plant.edit_path("delete", "urn:pump:2");
    let etag = hidden(&plant.page(&path).await, "etag");
    let sent = plant.send_form(&path, &[("etag", &etag)]).await.expect(303);
    assert!(sent.header("location").starts_with("/admin/changes/"));
    plant.view("urn:pump:2").await;
    // Somebody changes the object meanwhile, so the form is refused.
    let outdated = [("base", &*base.replace("1.5", "1.25")), ("draft", &*draft), ("do", "save")];
    plant.send_form(&plant.edit_path("edit", "urn:pump:1"), &outdated).await.expect(412);
}
