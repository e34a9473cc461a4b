//! Changing and deleting an object in forms.
use super::{Plant, hidden};
use serde_json::{Value, json};

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
    let dump = plant.server.dump().await;
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
async fn a_text_that_is_not_json_stays_in_the_form_with_its_error() {
    let plant = Plant::with_pumps(&json!({})).await;
    let path = plant.edit_path("edit", "urn:pump:1");
    let form = plant.page(&path).await;
    let (base, draft) = (hidden(&form, "base"), hidden(&form, "draft"));
    for step in ["save", "remove/marks/0"] {
        let sent = [("base", &*base), ("draft", &*draft), ("j/parts", "[{"), ("do", step)];
        let page = plant.send_form(&path, &sent).await.expect(422).text();
        assert!(page.contains("Correct the JSON first.") && page.contains("[{</textarea>"));
        assert!(page.contains("parts: the JSON cannot be read"), "{page}");
        assert_eq!(hidden(&page, "draft"), draft);
    }
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
    // Short, but with more values than a request may have.
    let many = format!("{{\"uri\":\"urn:pump:1\",\"marks\":[1{}]}}", ",1".repeat(160_000));
    for (base, draft) in [(&base, &large), (&large, &base), (&base, &huge), (&base, &many)] {
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
    plant.person.get("/admin/object?uri=urn:pump:1").await.expect(404);
    plant.person.get("/admin/object?uri=urn:screw:1").await.expect(404);
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

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_of_many_nested_objects_shows_the_first_ones() {
    let plant = Plant::start(&json!({})).await;
    let parts: Vec<Value> = (0..120).map(|at| json!({"label": format!("part {at}")})).collect();
    let pump = json!([{"uri": "urn:pump:1", "name": "Feed pump", "parts": parts}]);
    plant.server.ingest("ADD", &pump).await.expect(200);
    let page = plant.page(&plant.edit_path("delete", "urn:pump:1")).await;
    assert!(page.contains("The object and 120 nested objects"), "{page}");
    assert!(page.contains("and 21 more objects"), "{page}");
}
