//! Requests that were sent before a move, and take effect after it: retries of dead letters, and changes under review.
use super::*;

fn review_of<'a>(plant: &'a Plant, id: &'a str) -> Review<'a> {
    Review {
        id,
        check: &NoClient,
        authorize: &|_, _, _| Ok(()),
        on_commit: &|_, _| Ok(()),
        by: "bob",
        if_match: IfMatch::Any,
        comment: None,
        traceparent: None,
        watch: plant.catalogue.watch(),
        events: None,
    }
}

/// Lets a Business Object require a review.
fn require_review(plant: &Plant, name: &str) -> Arc<Compiled> {
    let mut definition = serde_json::to_value(&plant.get(name).object.definition).unwrap();
    definition["review"] = json!("required");
    plant.define(&definition)
}

#[test]
fn a_retry_rewrites_the_uris_that_moved_since_the_rejection() {
    let plant = Plant::new();
    let reject = |plant: &Plant, mode, object: &Value| {
        let (pumps, watch) = (plant.get("Pumps"), plant.catalogue.watch().clone());
        let body = json!({"data": [object]}).to_string();
        let request = local_request(&watch, &pumps, mode, Body::Json(body.as_bytes()));
        let answer = plant.run(&Request { on_error: OnError::Skip, ..request });
        answer.rejected[0].id.clone().unwrap()
    };
    let retry = |plant: &Plant, mode, letter: &str, text: &[u8]| {
        let (pumps, watch) = (plant.get("Pumps"), plant.catalogue.watch().clone());
        let body = Body::Object { text, index: 0, first_line: 1, topic_fields: None };
        let request = local_request(&watch, &pumps, mode, body);
        plant.run(&Request { retried_letter: Some(letter), ..request })
    };
    // The definition does not have the field `flow` yet.
    let object = json!({"uri": format!("{OLD}1"), "flow": OLD, "feeds": format!("{OLD}2")});
    let merged = reject(&plant, Mode::Merge, &object);
    let deleted = reject(&plant, Mode::Delete, &json!({"uri": format!("{OLD}3"), "flow": 1}));
    let (plant, _) = plant.move_to("Pump", "http://between.example/Pump/");
    let (plant, _) = plant.move_to("Pump", NEW);
    let config = PUMPS.replace("  name: {", "  flow: {type: string, path: v:flow}\n  name: {");
    let mut definition = serde_json::to_value(&plant.get("Pumps").object.definition).unwrap();
    definition["config"] = json!(config);
    plant.define(&definition);

    let received = dead_letters::read_text(&plant.store.read(), &merged).unwrap().unwrap();
    let answer = retry(&plant, Mode::Merge, &merged, &received);
    assert_eq!((answer.created, answer.updated), (0, 1));
    assert_eq!(answer.objects[0].uri, format!("{NEW}1"));
    let has_quad = |part: &str| plant.quads().iter().any(|quad| quad.contains(part));
    assert!(has_quad(&format!("<{NEW}1> <http://v.example/feeds> <{NEW}2>")));
    assert!(has_quad(&format!("<http://v.example/flow> \"{OLD}\"")), "a literal stays");
    assert!(!has_quad(&format!("<{OLD}")));
    // The same holds for a corrected text.
    let corrected = json!({"uri": format!("{OLD}3")}).to_string();
    let answer = retry(&plant, Mode::Delete, &deleted, corrected.as_bytes());
    assert_eq!(answer.objects[0].uri, format!("{NEW}3"));
    assert!(answer.deleted > 0);
}

#[test]
fn a_change_that_was_sent_before_a_move_is_rebased_with_the_new_uris() {
    let plant = Plant::new();
    let pumps = require_review(&plant, "Pumps");
    let watch = plant.catalogue.watch().clone();
    let body = json!({"data": [{"name": "new", "feeds": format!("{OLD}2")}]}).to_string();
    let request = local_request(&watch, &pumps, Mode::Add, Body::Json(body.as_bytes()));
    let sent = plant.run(&request);
    assert_eq!(sent.objects[0].uri, format!("{OLD}11"));
    let (plant, _) = plant.move_to("Pump", "http://between.example/Pump/");
    let (plant, _) = plant.move_to("Pump", NEW);

    let (pumps, store) = (plant.get("Pumps"), GuardedStore::from(plant.store.clone()));
    let review = review_of(&plant, &sent.ingestion_id);
    let decision = Decision { business_object: &pumps, write_scope: None, limits: &LIMITS };
    let error = publish_change(&store, &review, decision).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    rebase_change(&store, &review, decision).unwrap();
    publish_change(&store, &review, decision).unwrap();
    let has_quad = |part: &str| plant.quads().iter().any(|quad| quad.contains(part));
    assert!(has_quad(&format!("<{NEW}11> <http://v.example/feeds> <{NEW}2>")));
    assert!(!has_quad(&format!("<{OLD}")));
}

#[test]
fn an_identifier_follows_only_the_moves_after_the_run_that_minted_it() {
    let plant = Plant::new();
    let valves = require_review(&plant, "Valves");
    let watch = plant.catalogue.watch().clone();
    let body = Body::Json(br#"{"data": [{"name": "new"}]}"#);
    let request = local_request(&watch, &valves, Mode::Add, body);
    let sent = plant.run(&request);
    // The valves get the base that the pumps had.
    let (plant, _) = plant.move_to("Pump", NEW);
    let (plant, _) = plant.move_to("Valve", OLD);
    let (valves, store) = (plant.get("Valves"), GuardedStore::from(plant.store.clone()));
    let review = review_of(&plant, &sent.ingestion_id);
    let decision = Decision { business_object: &valves, write_scope: None, limits: &LIMITS };
    rebase_change(&store, &review, decision).unwrap();
    publish_change(&store, &review, decision).unwrap();
    let uri = format!("<{OLD}11> <http://v.example/name> \"new\"");
    assert!(plant.quads().iter().any(|quad| quad.contains(&uri)), "{:?}", plant.quads());
}
