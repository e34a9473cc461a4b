//! Partial acceptance and dead letters: what `onError=skip` answers, and how dead letters are read, retried and deleted.
use penstock_test_support::prelude::*;

const SKIP: &str = "/api/v1/business-objects/Pump?onError=skip";

async fn skip(server: &TestApp, data: &Value) -> Value {
    server.post(SKIP, &json!({"data": data})).await.expect(200).json()
}

fn rejected_path(answer: &Value) -> String {
    format!("/api/v1/ingestions/{}/rejected", answer["ingestionId"].text())
}

fn letter_path(answer: &Value, n: usize) -> String {
    format!("{}/{}", rejected_path(answer), answer["rejected"][n]["id"].text())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_valid_objects_are_stored_and_the_others_listed() {
    let server = TestApp::with_pumps().await;
    let text = "{\"data\": [{\"name\": \"a\"}, {\"name\":1 }, {\"flow\": \"x\", \"color\": 1}]}";
    let answer = server.send("POST", SKIP, &[JSON], text).await.expect(200).json();
    assert_eq!((&answer["created"], &answer["objects"][0]["index"]), (&json!(1), &json!(0)));
    let rejected = answer["rejected"].list();
    assert_eq!((&rejected[0]["index"], &rejected[1]["index"]), (&json!(1), &json!(2)));
    assert_eq!(rejected[1]["errors"][1]["pointer"], "/data/2/color");
    assert!(rejected[0].get("line").is_none(), "{answer}");

    let listed = server.get(&rejected_path(&answer)).await.expect(200);
    assert_eq!(listed.header("content-type"), "application/x-ndjson");
    let lines = listed.lines();
    assert_eq!((lines.len(), &lines[0]["text"]), (2, &json!("{\"name\":1 }")));
    for (line, rejected) in lines.iter().zip(rejected) {
        assert_eq!((&line["id"], &line["errors"]), (&rejected["id"], &rejected["errors"]));
    }
    let id = answer["ingestionId"].text();
    let record = server.get(&format!("/api/v1/ingestions/{id}")).await.json();
    assert_eq!((&record["created"], &record["rejected"]), (&json!(1), &json!(2)));
    let status = server.get("/api/v1/status").await.json();
    status["rejected"].includes(&json!({"deadLetters": 2, "limitBytes": 64 << 20}));
    let limits = server.get("/api/v1/limits").await.json();
    assert_eq!(limits["rejectedAgeSeconds"], 30 * 24 * 3600);
    let metrics = server.get("/metrics").await.text();
    assert!(metrics.contains("penstock_dead_letters 2\n"), "{metrics}");

    let refused = server.send("POST", &SKIP.replace("skip", "ignore"), &[JSON], text).await;
    assert!(refused.problem(400)["detail"].has("must be abort or skip"));
    let all = server.send("POST", SKIP, &[JSON], "{\"data\": [1]}").await.expect(200).json();
    assert_eq!((&all["created"], all["rejected"].list().len()), (&json!(0), 1));
    server.send("POST", SKIP, &[JSON], "{\"data\": [1, {]}").await.problem(400);
    let none = skip(&server, &json!([{"name": "b"}])).await;
    assert_eq!(none["rejected"], json!([]));
    let listed = server.get(&rejected_path(&none)).await.expect(200);
    assert!(listed.body.is_empty());
    server.get("/api/v1/ingestions/none/rejected").await.problem(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_count_from_the_start_of_the_stream() {
    let server = TestApp::with_pumps().await;
    let mut text = String::new();
    for number in 1..=2500 {
        text.push_str(match number {
            10 | 1500 => "\n",
            20 => "{\"name\":\n",
            1600 => "{\"name\": 1}\r\n",
            2500 => "[]\n",
            _ => "{\"name\": \"a\"}\n",
        });
    }
    let answer = server.send("POST", SKIP, &[NDJSON], text.clone()).await.expect(200).lines();
    let created: u64 = answer.iter().map(|line| line["created"].as_u64().unwrap()).sum();
    assert_eq!((answer.len(), created), (3, 2495));
    let found: Vec<_> = answer
        .iter()
        .flat_map(|line| line["rejected"].list())
        .map(|rejected| (rejected["index"].clone(), rejected["line"].clone()))
        .collect();
    let expected = [(18, 20), (1597, 1600), (2497, 2500)];
    assert_eq!(found, expected.map(|(index, line)| (json!(index), json!(line))));
    assert_eq!(answer[0]["rejected"][0]["errors"][0]["line"], 20);
    assert_eq!(server.get(&rejected_path(&answer[1])).await.lines()[0]["text"], "{\"name\": 1}");
    // Without `skip`, an error names its line in the stream, too.
    let path = SKIP.replace("skip", "abort");
    let refused = server.send("POST", &path, &[NDJSON], "\n\n{\"name\": \"a\"}\n\n{").await;
    assert_eq!(refused.problem(400)["errors"][0]["line"], 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_gets_the_same_answer() {
    let server = TestApp::with_pumps().await;
    let headers = [JSON, ("Idempotency-Key", "k")];
    let send = async || {
        server.send("POST", SKIP, &headers, "{\"data\": [1, {\"name\": \"a\"}]}").await.json()
    };
    let first = send().await;
    assert!(first["rejected"][0]["id"].is_string());
    assert_eq!(send().await, first);
    assert_eq!(server.get("/api/v1/status").await.json()["rejected"]["deadLetters"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_is_corrected_retried_and_deleted() {
    let server = TestApp::with_pumps().await;
    let answer = skip(&server, &json!([{"name": 1}, {"name": 2}, {"name": 3}])).await;
    let [first, second, third] = [0, 1, 2].map(|n| letter_path(&answer, n));
    let retry = async |path: &str, headers: &[(&str, &str)], body: &str| -> Answer {
        server.send("POST", &format!("{path}/retry"), headers, body.to_owned()).await
    };
    let refused = retry(&first, &[], "").await.problem(422);
    assert_eq!(refused["errors"][0]["pointer"], "/data/0/name");
    retry(&first, &[], "{\"name\": \"a\"}").await.problem(415);
    retry(&first, &[NDJSON], "{\"name\": \"a\"}").await.problem(415);
    let refused = retry(&second, &[JSON], "{\"name\": \"b\", \"flow\": \"x\"}").await.problem(422);
    assert_eq!(refused["errors"][0]["pointer"], "/data/1/flow");
    let lines = server.get(&rejected_path(&answer)).await.lines();
    assert_eq!((lines.len(), &lines[1]["text"]), (3, &json!("{\"name\":2}")));
    assert_eq!(lines[1]["errors"], refused["errors"], "the errors are the new ones");

    let done = retry(&second, &[JSON], "\n{\"name\": \"b\"}\n").await.expect(200).json();
    assert_eq!((&done["created"], &done["mode"]), (&json!(1), &json!("ADD")));
    server.get(&format!("/api/v1/ingestions/{}", done["ingestionId"].text())).await.expect(200);
    retry(&second, &[JSON], "{\"name\": \"b\"}").await.problem(404);
    server.delete(&third).await.expect(204);
    server.delete(&third).await.problem(404);
    assert_eq!(server.get(&rejected_path(&answer)).await.lines().len(), 1);
    // The ingestion in the path must be that of the dead letter.
    let id = first.rsplit('/').next().unwrap();
    server.delete(&format!("{}/{id}", rejected_path(&done))).await.problem(404);
    let objects = server.get("/api/v1/business-objects/Pump/objects").await.json();
    assert_eq!(objects["items"].list().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_with_a_write_scope_sees_what_it_sent() {
    let server = TestApp::with_pumps().await;
    server.define_with(&json!({"name": "Other"})).await;
    let pump = Some("Pump");
    let (own, same) =
        (server.with_key(Role::Contributor, pump), server.with_key(Role::Contributor, pump));
    let (all, user) = (server.with_key(Role::Contributor, None), server.with_key(Role::User, None));
    let send = async |caller: &Caller, method: &str, path: &str, body: &str| {
        caller.send(method, path, &[JSON], body.to_owned()).await
    };
    let answer = send(&own, "POST", SKIP, "{\"data\": [1, 2]}").await.expect(200).json();
    let (list, letter) = (rejected_path(&answer), letter_path(&answer, 0));
    let retry = format!("{letter}/retry");
    for (key, status) in [(&own, 200), (&all, 200), (&same, 404), (&user, 403)] {
        assert_eq!(send(key, "GET", &list, "").await.status, status);
    }
    for (method, path) in [("POST", &retry), ("DELETE", &letter)] {
        send(&same, method, path, "{\"name\": \"x\"}").await.problem(404);
        send(&user, method, path, "{\"name\": \"x\"}").await.problem(403);
    }
    // The rights are those of the caller.
    let theirs = server.post(&SKIP.replace("Pump", "Other"), &json!({"data": [1]})).await;
    let theirs = theirs.expect(200).json();
    send(&own, "GET", &rejected_path(&theirs), "").await.problem(404);
    send(&own, "POST", &retry, "{\"name\": \"x\"}").await.expect(200);
    send(&own, "DELETE", &letter_path(&answer, 1), "").await.expect(204);
    assert!(send(&own, "GET", &list, "").await.expect(200).body.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_dead_letters_are_listed_in_pieces() {
    let server = TestApp::with_pumps().await;
    let mut data: Vec<Value> = (0..450).map(|n| json!("x".repeat(n * 10))).collect();
    for large in [3, 4, 449] {
        data[large] = json!("x".repeat(200_000));
    }
    let answer = skip(&server, &json!(data)).await;
    let lines = server.get(&rejected_path(&answer)).await.lines();
    let indexes: Vec<_> = lines.iter().map(|line| line["index"].as_u64().unwrap()).collect();
    assert_eq!(indexes, (0..450).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_show_correct_retry_and_delete_dead_letters() {
    let server = TestApp::with_pumps().await;
    let person = server.session(Role::Contributor);
    let get = async |path: &str| person.get_with(path, &[HTML]).await;
    let post = async |path: &str, fields: &str| {
        person.send("POST", path, &[FORM, HTML], fields.to_owned()).await
    };
    assert!(get("/admin/rejected").await.expect(200).text().contains("There are no dead letters."));
    let large = format!("\"{}\"", "y".repeat(60_000));
    let answer = skip(&server, &json!([{"name": 1}, "<b>", large])).await;
    let id = |n: usize| answer["rejected"][n]["id"].string();
    let page = |n: usize| format!("/admin/rejected/{}", id(n));
    let overview = get("/admin").await.expect(200).text();
    assert!(overview.contains("3 dead letters."), "{overview}");
    assert!(overview.contains("href=\"/admin/rejected\""), "{overview}");
    let list = get("/admin/rejected").await.expect(200).text();
    assert!(list.contains(&page(0)) && list.contains("Object 2"), "{list}");
    let ingestion = answer["ingestionId"].text();
    let list = get(&format!("/admin/rejected?ingestion={ingestion}")).await.expect(200).text();
    assert!(list.contains(&page(1)), "{list}");

    let shown = get(&page(1)).await.expect(200).text();
    assert!(shown.contains("&#34;&#60;b&#62;&#34;</textarea>"), "{shown}");
    let wrong = post(&format!("{}/retry", page(1)), "text=%7B%22flow%22%3A%22z%22%7D").await;
    let wrong = wrong.expect(422).text();
    assert!(wrong.contains("/data/1/flow") && wrong.contains("flow&"), "{wrong}");
    // An emptied text is not retried as received.
    let empty = post(&format!("{}/retry", page(1)), "text=+%0D%0A").await.expect(422).text();
    assert!(empty.contains("the text is empty"), "{empty}");
    assert!(empty.contains("/data/1/flow"), "the errors of the last attempt stay: {empty}");
    let text = escaped("{\r\n\"name\": \"corrected\"}");
    let done = post(&format!("{}/retry", page(1)), &format!("text={text}")).await.expect(303);
    assert_eq!(done.header("location"), "/admin/rejected");
    get(&page(1)).await.expect(404);
    let shown = get(&page(2)).await.expect(200).text();
    assert!(shown.contains("Retry as received") && shown.len() < 60_000, "{}", shown.len());
    post(&format!("{}/retry", page(2)), "x=1").await.expect(422);
    post(&format!("{}/delete", page(2)), "x=1").await.expect(303);
    get(&page(2)).await.expect(404);
    assert_eq!(server.get("/api/v1/status").await.json()["rejected"]["deadLetters"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_keeps_a_corrected_text_if_the_business_object_was_deleted_meanwhile() {
    let server = TestApp::with_pumps().await;
    let answer = skip(&server, &json!([{"name": 1}])).await;
    let page = format!("/admin/rejected/{}", answer["rejected"][0]["id"].text());
    let shown = server.page(&page).await;
    assert!(shown.contains("\">Pump</a></dd>"), "{shown}");
    server.delete("/api/v1/business-objects/Pump").await.expect(204);
    let shown = server.page(&page).await;
    assert!(shown.contains("<dd>Pump (deleted)</dd>"), "{shown}");
    let retry = format!("{page}/retry");
    let refused = server.form(&retry, &[("text", "{\"name\": \"mine\"}")]).await.expect(404).text();
    refused.has_all(&["has been deleted meanwhile", "mine&#34;}</textarea>"]);
    server.form(&format!("{page}/delete"), &[("x", "1")]).await.expect(303);
    server.form(&retry, &[("text", "{}")]).await.expect(404);
}
