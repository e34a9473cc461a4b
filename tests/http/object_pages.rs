//! The pages of objects: lists with filters and an order, the tabs of an object, changing and deleting it.
use penstock_test_support::prelude::*;

mod changing;

const CONFIG: &str = include_str!("object_pages.yaml");

/// A gateway with two pumps, and a Contributor.
struct Plant {
    server: TestApp,
    person: Person,
    /// The id of the Business Object.
    id: String,
}

impl Plant {
    async fn start(others: &Value) -> Self {
        let server = TestApp::plain().await;
        let mut definition = json!({"name": "Pump", "config": CONFIG});
        definition.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
        let defined = server.put("/api/v1/business-objects", &definition).await;
        let id = defined.expect(201).json()["id"].string();
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
        plant.server.put("/api/v1/business-objects", &definition).await.expect(200);
        plant
    }

    async fn page(&self, path: &str) -> String {
        self.person.page(path).await
    }

    fn edit_path(&self, page: &str, uri: &str) -> String {
        format!("/admin/object/{page}?uri={}&view={}", escaped(uri), self.id)
    }

    async fn send_form(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.person.form(path, fields).await
    }

    async fn view(&self, uri: &str) -> Value {
        let path = format!("/api/v1/business-objects/Pump/objects?uri={}", escaped(uri));
        self.server.read(&path).await
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
    let link = format!("/admin/object?uri=urn%3Apump%3A1&#38;view={}\"", plant.id);
    assert!(all.contains(&link), "{link} is not in {all}");
    // The newest first, with the first click on a time.
    assert!(all.contains(&format!("href=\"{list}?orderBy=-built\"")), "{all}");
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
    both.has_all(&["name contains pump", "Remove the filter flow is before or less than 2"]);
    for wrong in ["sort=marks", "sort=nothing", "field=/none&text=x", "cursor=x"] {
        let refused = plant.person.get(&format!("{list}?{wrong}")).await;
        assert!(refused.expect(422).text().contains("role=\"alert\""), "{wrong}");
    }
    plant.person.get(&format!("{list}?order=name")).await.expect(400);
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
    page.has_all(&[
        "<h1>Feed pump</h1>",
        "<span class=\"faint small\">number</span></span> <span class=\"value\"><span>1.5</span>",
        ">Drain pump</a>",
        "aria-current=\"page\">Fields</a>",
        "newest first, by at",
        "Page of seal",
        "readings: 6 to 25 of 50",
    ]);
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
        plant.person.get(&path).await.expect(400);
    }
    plant.person.get("/admin/object?uri=urn:pump:9").await.expect(404);
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
    assert!(history.contains("ADD into Pump</a> by") && !history.contains("/api/v1/"), "{history}");
    let references = tab("urn:pump:2", "references").await;
    references.has_all(&[">Feed pump</a> <span class=\"faint\">(Pump, next)"]);
    let graph = tab("urn:pump:1", "graph").await;
    assert_eq!(graph.matches("<svg").count(), 2);
    graph.has_all(&[
        "href=\"/admin/object?uri=urn%3Apump%3A2&#38;tab=graph\"",
        ">and 44 more</text>",
        "<text class=\"edge\"",
        ">readings</text>",
    ]);
    // What is left out can be drawn, too.
    let more = graph.split("href=\"").find(|rest| rest.contains(">and 44 more</text>")).unwrap();
    let (link, _) = more.split_once('"').unwrap();
    let expanded = plant.page(&link.replace("&#38;", "&")).await;
    let count = |page: &str| page.matches("<rect").count();
    assert_eq!(count(&expanded) - count(&graph), 2 * (50 - 7), "{link}");
    assert!(!expanded.contains(" more</text>"), "{expanded}");
    let lonely = json!([{"uri": "urn:pump:3", "name": "Lonely pump"}]);
    plant.server.ingest("ADD", &lonely).await.expect(200);
    assert!(tab("urn:pump:3", "graph").await.contains("It refers to no object"));
}

#[tokio::test(flavor = "multi_thread")]
async fn large_objects_are_cut_and_the_page_says_so() {
    let plant = Plant::start(&json!({})).await;
    let marks: Vec<String> = (0..2_100).map(|mark| format!("m{mark}")).collect();
    let pump = json!([{"uri": "urn:pump:1", "name": "x".repeat(300_000), "marks": marks}]);
    plant.server.ingest("ADD", &pump).await.expect(200);
    let path = "/admin/object?uri=urn:pump:1";
    let fields = plant.page(path).await;
    let whole = "<a href=\"/admin/object?uri=urn%3Apump%3A1&#38;tab=rdf\">whole text</a>";
    assert!(fields.contains(whole) && fields.len() < 20_000, "{fields}");
    let rdf = plant.page(&format!("{path}&tab=rdf")).await;
    assert!(rdf.contains("more triples are not shown here.") && rdf.len() < 300_000);
    assert!(rdf.contains("this page shows at most 256 KiB"));
    let edit = plant.edit_path("edit", "urn:pump:1");
    let edit = plant.person.get(&edit).await.expect(413).text();
    assert!(edit.contains("change it with the API"), "{edit}");
}
