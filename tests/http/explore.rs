//! The page "Explore": its filters, charts, facets, suggestions, columns and requests, all of them by the address.
use penstock_test_support::prelude::*;

const CONFIG: &str = "
type: object
path: Sensor:.
key: tag
prefixes: {v: 'https://plant.example/v/'}
fields:
  tag: {type: string, path: v:tag, required: true}
  line: {type: string, path: v:line}
  state: {type: string, path: v:state, values: {RUN: running, STOP: stopped}}
  temperature: {type: number, path: v:temperature}
  measured: {type: dateTime, path: v:measured}
  pump: {type: resource, path: v:pump}
  place: {type: object, path: 'v:place/Place:.', fields: {room: {type: string, path: v:room}}}
";

struct Plant {
    server: TestApp,
    /// The path of the page.
    path: String,
}

impl Plant {
    /// Starts a gateway with 30 sensors, of which each has a measurement an hour later than the one before.
    async fn start() -> Self {
        Self::start_with(&[]).await
    }

    async fn start_with(settings: &[&str]) -> Self {
        let server = TestApp::start(settings).await;
        let definition = json!({"name": "Sensor", "config": CONFIG, "timezone": "Europe/Berlin"});
        let defined = server.define_object(&definition).await;
        let (lines, states) = (["North", "South <1>"], ["STOP", "RUN", "RUN"]);
        let sensors: Vec<Value> = (0..30)
            .map(|at| {
                json!({
                    "tag": format!("TE-{at:02}"), "line": lines[at % 2], "state": states[at % 3],
                    "temperature": at, "measured": format!("2024-03-{:02}T{:02}:30:00Z", 30 + at / 24, at % 24),
                    "pump": "urn:pump:1", "place": {"uri": format!("urn:place:{}", at % 4), "room": format!("R{}", at % 4)},
                })
            })
            .collect();
        let path = "/api/v1/business-objects/Sensor?mode=ADD";
        server.post(path, &json!({"data": sensors})).await.expect(200);
        Self { server, path: format!("/admin/objects/{}", defined["id"].text()) }
    }

    async fn page(&self, rest: &str) -> String {
        self.server.page(&format!("{}{rest}", self.path)).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_has_chips_a_table_and_links_to_what_it_shows() {
    let plant = Plant::start().await;
    let path = &plant.path;
    let page =
        plant.page("?filter.temperature.after=20&filter.line=North&orderBy=-temperature").await;
    page.has_all(&[
        "<h1>Explore Sensor</h1>",
        "4 objects match",
        "temperature is after or greater than 20",
        &format!("href=\"{path}?filter.line=North&#38;orderBy=-temperature\" aria-label=\"Remove the filter temperature"),
        &format!("<a href=\"{path}?orderBy=-temperature\">Remove all</a>"),
        // A value of the table adds a filter.
        "filter.state=RUN&#38;orderBy=-temperature\">RUN</a>",
        "class=\"number\"",
        // A time is in the time zone of the Business Object, beside the original.
        "title=\"2024-03-31T04:30:00Z\">2024-03-31 06:30:00</a>",
        "Times in Europe/Berlin.",
        "/objects?format=csv&#38;arrayEscape=true&#38;filter.line=North&#38;filter.temperature.after=20&#38;orderBy=-temperature\">CSV</a>",
        "/objects?format=csv&#38;arrayEscape=true&#38;spreadsheet=true&#38;filter.line=North&#38;filter.temperature.after=20&#38;orderBy=-temperature\">CSV for spreadsheets</a>",
        &format!("data-part=\"{path}/histogram?filter.line=North&#38;filter.temperature.after=20&#38;orderBy=-temperature\""),
        "<noscript>",
        // On a phone these are far below the table.
        "<a href=\"#take\">",
        "<h2 id=\"take\">",
        "<a href=\"#values\">",
        "id=\"values\"",
    ]);
    assert!(!page.contains("CSV leaves out"), "{page}");
    assert!(!page.contains("<figure"), "the parts load on their own");
    let whole = plant.page("?number=temperature&show=parts").await;
    assert_eq!(whole.matches("<figure class=\"plot\"").count(), 2, "{whole}");
    assert!(whole.contains("<h3>state</h3>") && !whole.contains("<noscript>"));
    // A form has the parameters of its page in one field.
    let form = "?address=filter.line%3DNorth%26orderBy%3D-temperature&field=state&test=is&text=RUN";
    plant.page(form).await.has_all(&[
        "Remove the filter line is North",
        "Remove the filter state is RUN",
        "name=\"address\" value=\"filter.line=North&#38;filter.state=RUN&#38;orderBy=-temperature\"",
    ]);
    // What does not fit is said beside what the address has, so that it can be removed.
    for wrong in
        ["filter.gone=1", "filter.line.after=1", "filter.temperature.after=high", "orderBy=place"]
    {
        let refused = plant.server.get(&format!("{path}?{wrong}")).await;
        let page = refused.expect(422).text();
        assert!(page.contains("role=\"alert\""), "{wrong}: {page}");
    }
    // A filter of the form stays in the form, and the table has the others.
    let form = "?address=filter.line%3DNorth&field=temperature&test=after&text=high";
    let refused = plant.server.get(&format!("{path}{form}")).await.expect(422).text();
    refused.has_all(&[
        "15 objects match",
        "Remove the filter line is North",
        "<option value=\"temperature\" selected>",
        "<option value=\"after\" selected>",
        "id=\"text-fault\" role=\"alert\"",
        "name=\"text\" value=\"high\"",
    ]);
    assert!(!refused.contains("Remove the filter temperature"), "{refused}");
    for unknown in ["filters.line=1", "orderBy=line&orderBy=tag"] {
        plant.server.get(&format!("{path}?{unknown}")).await.expect(400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_names_what_csv_leaves_out() {
    let server = TestApp::plain().await;
    let pump = server.define().await;
    let page = server.page(&format!("/admin/objects/{}", pump["id"].text())).await;
    page.has_all(&[
        "CSV leaves out parts: arrays of objects and maps are only in NDJSON and JSON.",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_that_wait_too_long_leave_the_rest_of_the_page() {
    let plant = Plant::start_with(&["--service.limits.graphql.time=100ms"]).await;
    let permits = plant.server.gateway().query_permits.clone();
    let mut held = Vec::new();
    for account in ["a", "b"] {
        while let Some(permit) = permits.try_acquire(account, 1) {
            held.push(permit);
        }
    }
    let query = "?show=parts&columns=pump&number=temperature";
    let busy = plant.page(query).await;
    assert_eq!(busy.matches("This part is missing: too many searches").count(), 3, "{busy}");
    busy.has_all(&["<th scope=\"col\"", "urn:pump:1"]);
    plant.server.get(&format!("{}/facets", plant.path)).await.problem(503);
    let further = "?filter.line=North&show=parts&cursor=urn:a";
    let filtered = plant.server.get(&format!("{}{further}", plant.path)).await.expect(503);
    assert!(!filtered.header("retry-after").is_empty());
    filtered.text().has_all(&[
        "The table is missing: too many searches",
        "line is North",
        "data-part=",
        "cursor=urn%3Aa\">Retry</a>",
    ]);
    drop(held);
    until("every part is there", async || {
        !plant.page(query).await.contains("This part is missing")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_without_objects_says_what_to_do() {
    let plant = Plant::start().await;
    let none = plant.page("?filter.temperature.after=20&filter.state=STOP&filter.line=East").await;
    none.has_all(&[
        "No object matches.",
        "3 objects match without <a",
        "0 objects match without <a",
    ]);
    let empty = plant.server.define_object(&json!({"name": "Pump", "config": "type: object\npath: Pump:.\nfields: {name: {type: string, path: <urn:n>}}\n"})).await;
    let page = plant.server.page(&format!("/admin/objects/{}", empty["id"].text())).await;
    page.has_all(&["There are no objects yet.", "curl -H", "/admin/keys/new?businessObject="]);
    let parts = format!("/admin/objects/{}?show=parts", empty["id"].text());
    plant.server.page(&parts).await.has_all(&["Distribution", "No object has a value to choose."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn bars_show_objects_over_time_or_over_numbers() {
    let plant = Plant::start().await;
    let hours = plant.page("/histogram").await;
    hours.has_all(&[
        "<h2>Objects per hour, by measured</h2>",
        "objects: 30 in total",
        "role=\"img\" aria-label=\"Objects per hour, by measured: objects: 30 in total; highest value 1\"",
        "data-least=\"filter.measured.atLeast\" data-before=\"filter.measured.before\"",
        // The clocks are set forward, so that an hour is skipped.
        ">2024-03-31 01:00</a>",
        ">2024-03-31 03:00</a>",
        "?filter.measured.atLeast=2024-03-31T01%3A00%3A00Z&#38;filter.measured.before=2024-03-31T02%3A00%3A00Z\">2024-03-31 03:00</a>",
    ]);
    assert!(!hours.contains(">2024-03-31 02:00</a>"), "{hours}");
    // Two dates narrow the page to whole days in the time zone.
    let day = plant.page("?from=2024-03-31&to=2024-03-31").await;
    day.has_all(&["7 objects match", "measured is at least 2024-03-30T23:00:00Z"]);
    let numbers = plant.page("/histogram?time=&number=temperature").await;
    numbers.has_all(&[
        "<h2>Values of temperature</h2>",
        "filter.temperature.atLeast=2&#38;filter.temperature.before=4",
    ]);
    let without = plant.page("/histogram?time=&filter.temperature.exists=false").await;
    assert!(without.contains("No object has a number in temperature."), "{without}");
    let fault = plant.page("/histogram?time=line").await;
    assert!(
        fault.contains(
            "The distribution is not shown: the field &#34;line&#34; has no dates or times"
        ),
        "{fault}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn days_have_their_dates_with_offsets_too() {
    let server = TestApp::plain().await;
    let config = "type: object\npath: Round:.\nfields: {day: {type: date, path: <urn:day>}}\n";
    let defined = server.define_object(&json!({"name": "Round", "config": config})).await;
    let days =
        ["2024-03-30+13:00", "2024-03-31+13:00", "2024-03-31-10:00", "2024-03-31", "2024-04-01"];
    let data = days.map(|day| json!({"day": day}));
    server
        .post("/api/v1/business-objects/Round?mode=ADD", &json!({"data": data}))
        .await
        .expect(200);
    let path = format!("/admin/objects/{}", defined["id"].text());
    let bars = server.page(&format!("{path}/histogram")).await;
    bars.has_all(&["<input type=\"hidden\" name=\"offset\" value=\"+13:00\">"]);
    let narrowed =
        server.page(&format!("{path}?from=2024-03-31&to=2024-03-31&offset=%2B13:00")).await;
    narrowed.has_all(&["3 objects match", "day is at least 2024-03-31+13:00"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_has_a_line_for_each_frequent_value() {
    let plant = Plant::start().await;
    let one = plant.page("/chart?number=temperature").await;
    one.has_all(&[
        "temperature per hour: least, average and greatest",
        "<polygon class=\"area\"",
        "<th scope=\"col\" class=\"number\">Greatest</th>",
    ]);
    let two = plant.page("/chart?number=temperature&lines=line").await;
    two.has_all(&[
        "class=\"line-2\"",
        ">South &#60;1&#62;</a>",
        "?filter.line=North&#38;number=temperature&#38;lines=line\">North</a>",
    ]);
    assert!(!two.contains("<polygon"), "{two}");
    let fault = plant.page("/chart?number=line").await;
    assert!(fault.contains("The chart is not shown: the measure"), "{fault}");
    plant.server.get(&format!("{}/chart", plant.path)).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn facets_and_suggestions_are_values_that_the_credential_sees() {
    let plant = Plant::start().await;
    let facets = plant.page("/facets").await;
    facets.has_all(&[
        "<h3>state</h3>",
        ">RUN</a> <span class=\"number faint\">20</span>",
        "?filter.state=STOP\">STOP</a>",
        "<h3>temperature</h3>\n<p>0 to 29",
        "2024-03-30 01:30:00 to 2024-03-31 07:30:00",
    ]);
    assert!(!facets.contains("<h3>tag</h3>"), "what names objects is no facet");
    let narrow = plant.page("/facets?filter.state=STOP").await;
    assert!(narrow.contains("<span>STOP</span>") && !narrow.contains(">RUN<"), "{narrow}");

    let suggest = async |caller: &Caller, query: &str| -> Vec<String> {
        let text = caller.page(&format!("{}/suggestions?{query}", plant.path)).await;
        let values = text.split("<option value=\"").skip(1);
        values.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    };
    let server = &plant.server;
    assert_eq!(suggest(server, "field=tag&text=TE-1").await.len(), 10);
    assert_eq!(suggest(server, "field=line&text=").await, ["North", "South &#60;1&#62;"]);
    assert_eq!(suggest(server, "field=state&text=S").await, ["STOP"]);
    assert_eq!(suggest(server, "field=place.room&text=R").await, ["R0", "R1", "R2", "R3"]);
    assert_eq!(suggest(server, "field=gone&text=R").await, Vec::<String>::new());
    // The form would send these in another form.
    let lines = ["B", " B", "B ", "B\n1", "B\r"].into_iter().enumerate();
    let data: Vec<Value> =
        lines.map(|(at, line)| json!({"tag": format!("B-{at}"), "line": line})).collect();
    let path = "/api/v1/business-objects/Sensor?mode=ADD";
    server.post(path, &json!({"data": data})).await.expect(200);
    assert_eq!(suggest(server, "field=line&text=B").await, ["B"]);
    let other = "type: object\npath: Room:.\nfields:\n  name: {type: string, path: <https://plant.example/v/room>}\n";
    server.define_object(&json!({"name": "Room", "config": other})).await;
    let rooms = json!({"data": [{"uri": "urn:room:1", "name": "R9"}]});
    server.post("/api/v1/business-objects/Room", &rooms).await.expect(200);
    let sensor = json!({"data": [{"tag": "TE-99", "place": {"uri": "urn:room:1"}}]});
    server.post("/api/v1/business-objects/Sensor?mode=ADD", &sensor).await.expect(200);
    assert_eq!(suggest(server, "field=place.room&text=R9").await, ["R9"]);
    // Such a key has no pages at all.
    let limited = server.with_key(Role::User, Some("Sensor"));
    let path = format!("{}/suggestions?field=place.room&text=R9", plant.path);
    limited.get(&path).await.expect(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_chosen_and_the_browser_keeps_them() {
    let plant = Plant::start().await;
    let person = Person::sign_in(&plant.server, Role::User).await;
    let path = format!("{}/columns", plant.path);
    let fields = [("address", "columns=line&columns=state&orderBy=line"), ("add", "place.room")];
    let added = person.form(&path, &fields).await.expect(303);
    let query = "?orderBy=line&columns=line&columns=state&columns=place.room";
    assert_eq!(added.header("location"), format!("{}{query}", plant.path));
    let cookie = added.header("set-cookie");
    assert!(
        cookie.starts_with("penstock_columns=line%0Astate%0Aplace%2Eroom; ")
            && cookie.contains(&format!("Path={};", plant.path)),
        "{cookie}"
    );
    let page = person.page(&format!("{}{query}", plant.path)).await;
    page.has_all(&["<th scope=\"col\">place.room</th>", "data-label=\"place.room\"", ">R1</a>"]);
    let moved = [("address", "columns=line&columns=state"), ("left", "1")];
    let moved = person.form(&path, &moved).await.expect(303);
    assert!(moved.header("location").ends_with("?columns=state&columns=line"));
    // A button leads back to those of the mapping, and the browser forgets the others.
    let page = person.page(&format!("{}?columns=line", plant.path)).await;
    assert!(page.contains("Default columns"), "{page}");
    let default = [("address", "columns=line&orderBy=line"), ("default", "true")];
    let default = person.form(&path, &default).await.expect(303);
    assert_eq!(default.header("location"), format!("{}?orderBy=line", plant.path));
    assert!(default.header("set-cookie").contains("Max-Age=0"), "{default:?}");
    assert!(!person.page(&plant.path).await.contains("Default columns"));
    // The cookie counts where the address does not say it.
    let session = plant.server.sign_in(Role::User);
    let kept = format!("{session}; penstock_columns=pump");
    let page = plant.server.get_with(&plant.path, &[("Cookie", &kept), HTML]).await;
    let page = page.expect(200).text();
    assert!(
        page.contains("<th scope=\"col\"><a href") && page.contains("data-label=\"pump\""),
        "{page}"
    );
    assert!(!page.contains("data-label=\"line\""), "{page}");
    let zone = format!("{session}; penstock_zone=Asia%2FTokyo");
    let page = plant.server.get_with(&plant.path, &[("Cookie", &zone), HTML]).await;
    let page = page.expect(200).text();
    assert!(page.contains("Times in Asia/Tokyo."), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_requests_find_what_the_page_shows() {
    let plant = Plant::start().await;
    let query = "?filter.temperature.after=20&filter.place.room=R1&orderBy=-temperature";
    let page = plant.page(&format!("/requests{query}")).await;
    page.has_all(&["<h2 id=\"curl\">curl</h2>", "<h2 id=\"python\">Python</h2>", "format=ndjson"]);
    let text_of = |id: &str| -> String {
        let (_, rest) = page.split_once(&format!("<pre id=\"{id}-text\"")).unwrap();
        let (_, rest) = rest.split_once('>').unwrap();
        let (text, _) = rest.split_once("</pre>").unwrap();
        let escapes =
            [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")];
        escapes.iter().fold(text.to_owned(), |text, (escape, plain)| text.replace(escape, plain))
    };
    let graphql = json!({"query": text_of("graphql")});
    let answer = plant.server.post("/graphql", &graphql).await.expect(200).json();
    let nodes = answer["data"]["sensorConnection"]["nodes"].list().to_vec();
    let tags: Vec<String> = nodes.iter().map(|node| node["tag"].string()).collect();
    assert_eq!(tags, ["TE-29", "TE-25", "TE-21"], "{answer}");
    let sparql = [
        ("Content-Type", "application/sparql-query"),
        ("Accept", "application/sparql-results+json"),
    ];
    let answer =
        plant.server.send("POST", "/sparql", &sparql, text_of("sparql")).await.expect(200).json();
    let rows = answer["results"]["bindings"].list().to_vec();
    let tags: Vec<String> = rows.iter().map(|row| row["column1"]["value"].string()).collect();
    assert_eq!(tags, ["TE-29", "TE-25", "TE-21"], "{answer}");
    let refused = plant.server.get(&format!("{}/requests?filter.gone=1", plant.path)).await;
    assert!(refused.expect(422).text().contains("role=\"alert\""));
}
