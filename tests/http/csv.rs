//! CSV over HTTP: streamed in chunks, in the formats that real exports have.
use penstock_test_support::prelude::*;

const PUMP: &str = "/api/v1/business-objects/Pump";

const CONFIG: &str = include_str!("csv.yaml");

async fn start(arguments: &[&str]) -> TestApp {
    let server = TestApp::start(arguments).await;
    let base = json!([{"name": "Pump", "uriBase": "https://plant.example/pumps/"}]);
    server.define_with(&json!({"config": CONFIG, "namespaces": base})).await;
    server
}

async fn send(server: &TestApp, query: &str, media_type: &str, text: impl Into<Vec<u8>>) -> Answer {
    send_with(server, query, &[("Content-Type", media_type)], text).await
}

async fn send_with(
    server: &TestApp,
    query: &str,
    headers: &[(&str, &str)],
    text: impl Into<Vec<u8>>,
) -> Answer {
    let body: Vec<u8> = text.into();
    server.send("POST", &format!("{PUMP}{query}"), headers, body).await
}

/// Returns the stored objects, without their nested URIs.
async fn stored(server: &TestApp) -> Vec<Value> {
    let mut objects = server.items(&format!("{PUMP}/objects")).await;
    for object in &mut objects {
        if let Some(position) = object.get_mut("position") {
            position.as_object_mut().unwrap().remove("uri");
        }
    }
    objects
}

fn records(range: std::ops::Range<usize>) -> String {
    range.map(|number| format!("P-{number},{number}.50\n")).collect::<Vec<_>>().concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_of_a_laboratory_is_stored_with_its_types() {
    let server = start(&[]).await;
    // Windows-1252, semicolons, decimal commas, CRLF, line breaks and semicolons in quotes, empty cells and rows.
    let text =
        b"tag;note;flow;stages;running;built;aliases;position.latitude;position.longitude\r\n\
        P-1;\"M\xFCller; 5\"\" pipe\r\nsecond line\";12,50;+3;WAHR;;a|b;47,10;8\r\n\
        ;;;;;;;;\r\n\
        P-2;;-0,5;;TRUE;2019-05-04;;;\r\n";
    let query = "?delimiter=%3B&arrayDelimiter=%7C&decimalComma=true";
    let refused = send(&server, query, "text/csv; charset=windows-1252", text.as_slice()).await;
    let refused = refused.problem(422);
    refused["errors"][0].includes(&json!({"line": 2, "pointer": "/data/0/running"}));
    let text = String::from_utf8(text.iter().map(|byte| byte & 0x7F).collect()).unwrap();
    let text = text.replace("WAHR", "1").replace("M|ller", "M\u{fc}ller");
    let latin: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let utf_16: Vec<u8> =
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let utf_8 = format!("\u{feff}{text}").into_bytes();
    for (media_type, body, status) in [
        ("text/csv; charset=windows-1252", latin, "created"),
        ("text/csv; charset=utf-16", utf_16, "unchanged"),
        ("text/csv", utf_8, "unchanged"),
    ] {
        let answer = send(&server, query, media_type, body).await.expect(200);
        assert_eq!(answer.header("content-type"), "application/x-ndjson");
        assert_eq!(answer.lines()[0][status], 2, "{}", answer.text());
    }
    let objects = stored(&server).await;
    let numbers: Vec<String> = objects.iter().map(|object| object["flow"].to_string()).collect();
    assert_eq!(numbers, ["12.50", "-0.5"], "numbers keep their digits");
    assert_eq!(objects[0]["note"], "M\u{fc}ller; 5\" pipe\r\nsecond line");
    assert_eq!(objects[0]["aliases"], json!(["a", "b"]));
    let position = &objects[0]["position"];
    assert_eq!(
        (position["latitude"].to_string(), &position["longitude"]),
        ("47.10".into(), &json!(8))
    );
    assert_eq!((&objects[0]["stages"], &objects[1]["running"]), (&json!(3), &json!(true)));
    assert_eq!((objects[1].get("position"), &objects[1]["built"]), (None, &json!("2019-05-04")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_a_spreadsheet_may_name_its_delimiter_and_end_its_records_with_it() {
    let server = start(&[]).await;
    let text = "sep=;\r\ntag;flow;\r\nP-1;1,5;\r\nP-2;2,5;x\r\n";
    let query = "?decimalComma=true&onError=skip";
    let lines = send(&server, query, "text/csv", text).await.expect(200).lines();
    assert_eq!(lines[0]["created"], 1, "{lines:?}");
    assert_eq!(lines[0]["rejected"][0]["line"], 4, "{lines:?}");
    assert!(lines[0]["rejected"].to_string().contains("the column 3"), "{lines:?}");
    let objects = stored(&server).await;
    assert_eq!((&objects[0]["tag"], objects[0]["flow"].to_string()), (&json!("P-1"), "1.5".into()));
    // The header that a dead letter keeps has the delimiter too.
    let id = lines[0]["rejected"][0]["id"].text();
    let path = format!("/api/v1/ingestions/{}/rejected/{id}/retry", lines[0]["ingestionId"].text());
    let csv = [("Content-Type", "text/csv")];
    server.send("POST", &path, &csv, "P-2;2,5;").await.expect(200);
    assert_eq!(stored(&server).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_chunk_has_its_line_and_a_key_makes_the_stream_repeatable() {
    let server = start(&[]).await;
    let text = format!("tag,flow\n{}", records(0..2500));
    let headers = [("Content-Type", "text/csv"), ("Idempotency-Key", "k")];
    let lines = send_with(&server, "", &headers, text.clone()).await.expect(200).lines();
    let ranges: Vec<_> = lines.iter().map(|line| line["lastIndex"].as_u64().unwrap()).collect();
    assert_eq!(ranges, [999, 1999, 2499]);
    assert_eq!(lines[2]["created"], 500);
    let again = send_with(&server, "", &headers, text.clone()).await.expect(200).lines();
    assert_eq!(again, lines);
    // The same records below another header are another body.
    let other = text.replacen("flow", "stages", 1);
    send_with(&server, "", &headers, other).await.problem(409);
    let answer = send(&server, "?mode=DELETE", "text/csv", "tag\nP-7\n").await.expect(200);
    assert_eq!(answer.lines()[0]["deleted"], 1);
    assert!(send(&server, "", "text/csv", "tag,flow\n \n").await.expect(200).body.is_empty());
    assert!(send(&server, "", "text/csv", "").await.expect(200).body.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_with_errors_stores_nothing() {
    let server = start(&[]).await;
    for (text, column, words) in [
        ("tag,flwo\nP-1,1\n", 5, "did you mean \\\"flow\\\"?"),
        ("tag,tag\nP-1,1\n", 5, "the same name"),
        ("tag,,flow\nP-1,1,2\n", 5, "has no name"),
        ("tag,position\nP-1,1\n", 5, "position.latitude"),
        ("tag;flow\nP-1;1\n", 1, "?delimiter=%3B"),
        // The header is checked without any record too.
        ("tag,flwo", 5, "did you mean"),
    ] {
        for query in ["", "?onError=skip"] {
            let problem = send(&server, query, "text/csv", text).await.problem(422);
            let error = &problem["errors"][0];
            error.includes(&json!({"line": 1, "column": column}));
            assert!(problem.to_string().contains(words), "{problem}");
            assert!(problem["detail"].text().starts_with("Ingestion failed: "));
        }
    }
    assert_eq!(server.get("/api/v1/status").await.json()["store"]["quads"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_for_another_business_object_learns_nothing_of_the_fields() {
    let server = start(&[]).await;
    let other = json!({"name": "Other", "config": CONFIG.replace("Pump:.", "Other:.")});
    server.define_object(&other).await;
    let caller = server.with_key(Role::Contributor, Some("Other"));
    let csv = [("Content-Type", "text/csv")];
    let problem = caller.send("POST", PUMP, &csv, "tag,flwo\nP-1,1\n").await.problem(403);
    assert!(!problem.to_string().contains("flow"), "{problem}");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_with_errors_become_dead_letters_that_can_be_retried() {
    let server = start(&[]).await;
    let text = b"tag;flow;next\nP-1;1,5;\n\"P\n2\";x;\nP-3;1;2;3\nP-4;1,0;https://plant.example/pumps/P%0A2\n\xFC;1;\n";
    let query = "?onError=skip&delimiter=%3B&decimalComma=true";
    let lines = send(&server, query, "text/csv", text.as_slice()).await.expect(200).lines();
    assert_eq!((lines.len(), &lines[0]["created"]), (1, &json!(1)), "{lines:?}");
    let rejected = lines[0]["rejected"].list();
    let places: Vec<_> =
        rejected.iter().map(|one| (one["index"].clone(), one["line"].clone())).collect();
    let expected =
        [(1, 3), (2, 5), (3, 6), (4, 7)].map(|(index, line)| (json!(index), json!(line)));
    assert_eq!(places, expected, "{rejected:?}");
    let list = format!("/api/v1/ingestions/{}/rejected", lines[0]["ingestionId"].text());
    let letters = server.get(&list).await.expect(200).lines();
    letters[0].includes(&json!({"text": "\"P\n2\";x;", "csvHeader": "tag;flow;next"}));
    assert_eq!(letters[3]["textBase64"], "/DsxOw==");
    let retry = |letter: &Value| format!("{list}/{}/retry", letter["id"].text());
    // As received, the error is the same. A corrected record or object replaces it.
    let problem = server.post_empty(&retry(&letters[0])).await.problem(422);
    assert_eq!(problem["errors"][0]["pointer"], "/data/1/flow", "{problem}");
    let csv = [("Content-Type", "text/csv")];
    let latin = [("Content-Type", "text/csv; charset=latin1")];
    server.send("POST", &retry(&letters[0]), &latin, "x").await.problem(415);
    // With a header, the record would be the second one.
    let both = "tag;flow;next\nP-9;2,5;\n";
    server.send("POST", &retry(&letters[0]), &csv, both).await.refused(400, "without its header");
    // The page sends the text with other line ends: an uncorrected text is retried as received.
    let page = format!("/admin/rejected/{}/retry", letters[0]["id"].text());
    let person = server.session(Role::Contributor);
    let page = person.form(&page, &[("text", "\"P\r\n2\";x;")]).await.expect(422).text();
    assert!(page.contains("not the string &#34;x&#34;"), "{page}");
    server.send("POST", &retry(&letters[0]), &csv, "\"P\n2\";2,5;").await.expect(200);
    let object = json!({"tag": "P-3", "flow": 1});
    server.post(&retry(&letters[1]), &object).await.expect(200);
    // The record that refers to the first one is valid now.
    server.post_empty(&retry(&letters[2])).await.expect(200);
    let tags: Vec<Value> =
        stored(&server).await.iter().map(|object| object["tag"].clone()).collect();
    assert_eq!(tags, ["P\n2", "P-1", "P-3", "P-4"]);
    assert_eq!(server.get(&list).await.expect(200).lines().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_quote_ends_the_stream_with_an_error_line() {
    let server = start(&[]).await;
    let text = format!("tag,flow\n{}\"P-x,1\n{}", records(0..1500), records(1500..1600));
    for query in ["", "?onError=skip"] {
        let lines = send(&server, query, "text/csv", text.clone()).await.expect(200).lines();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!((&lines[1]["lastIndex"], &lines[2]["status"]), (&json!(1499), &json!(400)));
        assert_eq!(lines[2]["firstIndex"], 1500);
        assert_eq!(lines[2]["errors"][0]["line"], 1502, "{}", lines[2]);
    }
    let problem = send(&server, "", "text/csv", "tag,flow\n\"P-x,1\n").await.problem(400);
    assert_eq!(problem["errors"][0]["line"], 2);
    assert_eq!(stored_count(&server).await, 1500);
}

#[tokio::test(flavor = "multi_thread")]
async fn wide_records_are_ingested_in_short_chunks() {
    let server = TestApp::start(&["--service.limits.values=10000"]).await;
    let config = "type: object\npath: Pump:.\nunknownFields: ignore\nfields:\n  a0: {type: string, path: <urn:a>}\n";
    server.define_with(&json!({"config": config})).await;
    let names: Vec<String> = (0..400).map(|number| format!("a{number}")).collect();
    let record = "1".to_owned() + &",2".repeat(399) + "\n";
    let text = names.join(",") + "\n" + &record.repeat(100);
    let lines = send(&server, "?mode=ADD", "text/csv", text).await.expect(200).lines();
    let created = lines.iter().map(|line| line["created"].as_u64().unwrap());
    assert_eq!((created.sum::<u64>(), lines.len()), (100, 9), "{lines:?}");
}

async fn stored_count(server: &TestApp) -> u64 {
    let status = server.get("/api/v1/status").await.json();
    status["store"]["quads"].as_u64().unwrap() / 2
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_beyond_the_limits_ends_the_stream() {
    let server = start(&["--service.limits.body=100000", "--service.limits.values=3000"]).await;
    let long = format!("tag,note\n{}P-x,\"{}", records(0..1000), "x".repeat(200_000));
    let lines = send(&server, "", "text/csv", long.replace(".50", "")).await.expect(200).lines();
    assert_eq!((&lines[1]["status"], &lines[1]["firstIndex"]), (&json!(413), &json!(1000)));
    let many = format!("tag,aliases\nP,{}\n", "a|".repeat(3000));
    send(&server, "?arrayDelimiter=%7C", "text/csv", many).await.problem(413);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_csv_cannot_be_combined_with_is_refused() {
    let server = start(&[]).await;
    let text = "tag\nP-1\n";
    for query in
        ["?delimiter=ab", "?delimiter=%22", "?delimiter=", "?delimiter=%C3%A4", "?arrayDelimiter=,"]
    {
        send(&server, query, "text/csv", text).await.problem(400);
    }
    send(&server, "?decimalComma=true", "application/x-ndjson", "{}")
        .await
        .refused(400, "text/csv");
    send(&server, "", "text/csv; charset=klingon", text).await.problem(415);
    let headers = [("Content-Type", "text/csv"), ("If-Match", "*")];
    send_with(&server, "", &headers, text).await.problem(400);
    let base = json!([{"name": "Pump", "uriBase": "https://plant.example/pumps/"}]);
    server.define_with(&json!({"config": CONFIG, "namespaces": base, "review": "optional"})).await;
    send(&server, "?review=true", "text/csv", text).await.problem(415);
    send(&server, "", "text/csv", text).await.expect(200);
}

const SHAPE: &str = "@prefix sh: <http://www.w3.org/ns/shacl#> .\n\
    <urn:Pump> a sh:NodeShape ; sh:targetSubjectsOf <https://plant.example/tag> ;\n\
      sh:property [ sh:path <https://plant.example/flow> ; sh:maxInclusive 100 ] .\n";

#[tokio::test(flavor = "multi_thread")]
async fn errors_that_are_found_after_reading_have_the_line_of_their_record() {
    let server = start(&[]).await;
    server.send("PUT", "/api/v1/shapes/limits", &[TURTLE], SHAPE).await.expect(201);
    let base = json!([{"name": "Pump", "uriBase": "https://plant.example/pumps/"}]);
    let validation = json!({"shapes": ["limits"], "mode": "reject"});
    server
        .define_with(&json!({"config": CONFIG, "namespaces": base, "validation": validation}))
        .await;
    let shape = "tag,flow\n\"P\n1\",1\nP-2,101\n";
    send(&server, "", "text/csv", "tag,flow\nP-5,5\n").await.expect(200);
    let stored = "tag,flow\n\n\"P\n1\",1\nP-5,6\n";
    for (text, line, status) in [(shape, 4, 422), (stored, 5, 409)] {
        let problem = send(&server, "", "text/csv", text).await.problem(status);
        let error = &problem["errors"][0];
        assert_eq!((&error["line"], &error["pointer"]), (&json!(line), &json!("/data/1/flow")));
        let lines = send(&server, "?onError=skip&mode=VALIDATE", "text/csv", text).await.lines();
        let rejected = &lines[0]["rejected"][0];
        assert_eq!(
            (&rejected["line"], &rejected["errors"][0]["line"]),
            (&json!(line), &json!(line)),
            "{rejected}"
        );
    }
    // A record that refers to a rejected one.
    let text = "tag,flow,next\n\"P\n7\",101,\nP-8,1,https://plant.example/pumps/P%0A7\n";
    let lines = send(&server, "?onError=skip", "text/csv", text).await.expect(200).lines();
    let rejected = lines[0]["rejected"].list();
    let places: Vec<_> = rejected.iter().map(|one| &one["errors"][0]["line"]).collect();
    assert_eq!(places, [&json!(2), &json!(4)], "{rejected:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_with_a_comma_gets_a_hint() {
    let server = start(&[]).await;
    let hint = "send ?decimalComma=true";
    let problem = send(&server, "?delimiter=%3B", "text/csv", "tag;flow\nP-1;1,5\n").await;
    let message = problem.problem(422)["errors"][0]["message"].to_string();
    assert!(message.contains(hint), "{message}");
    for (query, cell) in [("?delimiter=%3B", "1.000,5"), ("?delimiter=%3B&decimalComma=true", "x")]
    {
        let problem = send(&server, query, "text/csv", format!("tag;flow\nP-1;{cell}\n")).await;
        let problem = problem.problem(422).to_string();
        assert!(!problem.contains(hint), "{problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quoted_blank_record_counts_and_a_byte_order_mark_does_not() {
    let server = start(&[]).await;
    let text = "\u{feff}\"tag\";\"note\"\r\n\r\n\"P-1\";x\r\n;\r\n\"\";\r\n";
    let query = "?delimiter=%3B&onError=skip";
    let lines = send(&server, query, "text/csv", text).await.expect(200).lines();
    assert_eq!((&lines[0]["created"], &lines[0]["lastIndex"]), (&json!(1), &json!(1)), "{lines:?}");
    assert_eq!(lines[0]["rejected"][0]["line"], 5, "{lines:?}");
    assert!(lines[0]["rejected"].to_string().contains("/data/1"), "{lines:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_for_a_chunk_of_wrong_records_is_bounded() {
    let server = start(&[]).await;
    let columns = "tag,flow,stages,running,built,next,position.latitude,position.longitude";
    let wrong = "y".repeat(100);
    let record = format!("\"{wrong}\"{}\n", format!(",{wrong}").repeat(7));
    // 625 records are a chunk: 5,000 cells.
    let text = format!("{columns}\n{}", record.repeat(1250));
    let answer = send(&server, "?onError=skip", "text/csv", text).await.expect(200);
    let lines = answer.lines();
    assert_eq!(lines.len(), 2);
    for line in &lines {
        let rejected = line["rejected"].list();
        assert_eq!((&line["created"], rejected.len()), (&json!(0), 625));
        let has_error = |one: &Value| !one["errors"].list().is_empty();
        assert!(rejected.iter().all(has_error));
        assert_eq!(rejected[0]["errors"].list().len(), 7, "{}", rejected[0]);
        assert!(line.to_string().len() < 3 << 20, "{}", line.to_string().len());
    }
}
