//! What becomes of a message does not depend on the other messages of its batch.
use super::store::MAX_INTERNAL_ATTEMPTS;
use super::*;
use crate::testing::open_gateway;
use bytes::Bytes;
use oxrdf::{Literal, NamedNode};
use penstock_base::Preconditions;
use penstock_base::commit::NoClient;
use penstock_model::catalogue::Requester;
use penstock_model::dead_letters::{DeadLetter, Origin, list_oldest_letters, read_text};
use penstock_model::namespace::COUNTERS;
use penstock_model::shapes_graphs::{NewGraph, TextFormat};
use penstock_model::testing::put_definition;
use penstock_store::faults::{Failure, Faults};
use penstock_store::{Pattern, Read as _, Transaction};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::slice;
use std::sync::Arc;
use tempfile::TempDir;

const READINGS: &str = "\
type: object
path: 'Readings:.'
key: [site, tag]
fields:
  site: {type: string, path: <urn:site>, required: true}
  tag: {type: string, path: <urn:tag>, required: true}
  value: {type: string, path: <urn:value>}
  line: {type: string, path: <urn:line>}
  kind: {type: resource, path: <urn:kind>}
";
/// The base of the namespace of parts.
const PARTS_BASE: &str = "http://x/parts/";
const SHAPES: &str = "\
@prefix sh: <http://www.w3.org/ns/shacl#> .
<urn:shape> a sh:NodeShape ; sh:targetSubjectsOf <urn:tag> ;
    sh:property [ sh:path <urn:value> ; sh:maxLength 3 ] .";

/// A gateway with the source `line`, which takes the site of readings from the topic.
struct Fixture {
    gateway: Arc<Gateway>,
    dir: TempDir,
}

impl Fixture {
    fn new(settings: &[&str], validation: &Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let source = [
            "type=mqtt",
            "url=mqtt://127.0.0.1:9",
            "subscriptions[0].topic=plant/+",
            "subscriptions[0].business-object=Readings",
            "subscriptions[0].fields.site={2}",
        ];
        let mut more: Vec<_> =
            source.iter().map(|setting| format!("--service.sources.line.{setting}")).collect();
        more.extend(settings.iter().map(|setting| format!("--service.{setting}")));
        let gateway = open_gateway(dir.path(), &more);
        let turtle = TextFormat::from_media_type("text/turtle").unwrap();
        let graph = NewGraph::check("short", SHAPES.as_bytes(), turtle).unwrap();
        let by = Requester::new(&NoClient, "local");
        let saved = gateway.catalogue.put_shapes_graph(
            by,
            &graph,
            Preconditions::ONLY_IF_NEW,
            &|_, _, _| Ok(()),
        );
        saved.map(drop).unwrap();
        let mut definition = json!({"name": "Readings", "config": READINGS});
        definition.as_object_mut().unwrap().extend(validation.as_object().unwrap().clone());
        put_definition(&gateway.catalogue, &definition);
        Self { gateway: Arc::new(gateway), dir }
    }

    fn with_mode(mode: &str) -> Self {
        Self::new(&[&format!("sources.line.subscriptions[0].mode={mode}")], &json!({}))
    }

    fn try_store(&self, messages: &[Message]) -> Result<Stored, NotStored> {
        store_messages(&self.gateway, "line", "Readings", messages)
    }

    /// Stores messages with these payloads. Returns the numbers of objects and of dead letters.
    fn store(&self, payloads: &[&str]) -> (u64, u64) {
        let messages: Vec<Message> = payloads.iter().map(|one| message("plant/n", one)).collect();
        let stored = self.try_store(&messages).unwrap();
        assert_eq!((stored.messages, stored.dropped), (payloads.len(), 0));
        (stored.objects, stored.dead_letters)
    }

    fn has_quad(&self, predicate: &str, value: &str) -> bool {
        let pattern = Pattern {
            predicate: Some(NamedNode::new_unchecked(predicate)),
            object: Some(Literal::new_simple_literal(value).into()),
            ..Pattern::default()
        };
        self.gateway.store.read().any(&pattern).unwrap()
    }

    /// Returns the dead letters with their texts, oldest first.
    fn letters(&self) -> Vec<(DeadLetter, String)> {
        let origin = Origin::Source("line".to_owned());
        let listed = list_oldest_letters(&self.gateway.store, &origin, None, 10_000).unwrap();
        let text = |id: &str| read_text(&self.gateway.store.read(), id).unwrap().unwrap();
        let letters = listed.letters.into_iter();
        letters
            .map(|letter| {
                let text = String::from_utf8(text(&letter.id)).unwrap();
                (letter, text)
            })
            .collect()
    }
}

fn message(topic: &str, payload: &str) -> Message {
    Message {
        topic: topic.to_owned(),
        payload: Bytes::copy_from_slice(payload.as_bytes()),
        truncated: None,
        subscription: Some(0),
        received_at: Timestamp::now(),
    }
}

#[test]
fn the_last_message_about_an_object_counts_in_every_mode() {
    let [first, second] = [r#"{"tag": "a", "value": "1"}"#, r#"{"tag": "a", "value": "2"}"#];
    for mode in ["MERGE", "REPLACE"] {
        let fixture = Fixture::with_mode(mode);
        assert_eq!(fixture.store(&[first, second, first]), (3, 0), "{mode}");
        assert!(fixture.has_quad("urn:value", "1"), "{mode}");
        assert!(!fixture.has_quad("urn:value", "2"), "{mode}");
        // Within one message that is a contradiction of REPLACE.
        let both = format!("[{first}, {second}]");
        let expected = if mode == "MERGE" { (2, 0) } else { (1, 1) };
        assert_eq!(fixture.store(&[&both]), expected, "{mode}");
    }
    // A field with one value has one already, also in the next batch.
    assert_eq!(Fixture::with_mode("ADD").store(&[first, second, first]), (2, 1));
    // UPDATE changes only what is stored.
    assert_eq!(Fixture::with_mode("UPDATE").store(&[first, second]), (0, 2));
    // DELETE finds an object only by the key of a stored one.
    assert_eq!(Fixture::with_mode("DELETE").store(&[first, second]), (0, 2));
}

#[test]
fn the_newer_of_two_updates_of_an_object_is_stored() {
    let fixture = Fixture::new(
        &[
            "sources.line.subscriptions[1].topic=change/+",
            "sources.line.subscriptions[1].business-object=Readings",
            "sources.line.subscriptions[1].fields.site={2}",
            "sources.line.subscriptions[1].mode=UPDATE",
        ],
        &json!({}),
    );
    fixture.store(&[r#"{"tag": "a", "value": "0"}"#]);
    let update = |value: u8| Message {
        subscription: Some(1),
        ..message("change/n", &format!(r#"{{"tag": "a", "value": "{value}"}}"#))
    };
    let stored = fixture.try_store(&[update(1), update(2), update(1), update(3)]).unwrap();
    assert_eq!((stored.objects, stored.dead_letters), (4, 0));
    assert!(fixture.has_quad("urn:value", "3"));
    assert!(!fixture.has_quad("urn:value", "1"));
}

#[test]
fn a_message_that_refers_to_an_object_of_an_invalid_message_is_stored() {
    let fixture = Fixture::new(&[], &json!({}));
    let invalid = r#"{"uri": "urn:a", "tag": "a", "value": 1}"#;
    let dependent = r#"{"tag": "b", "kind": "urn:a"}"#;
    assert_eq!(fixture.store(&[invalid, dependent]), (1, 1));
    let both = format!("[{invalid}, {}]", dependent.replace("\"b\"", "\"c\""));
    assert_eq!(fixture.store(&[&both]), (0, 2));
}

#[test]
fn a_violation_rejects_the_message_that_causes_it() {
    let validation = json!({"validation": {"shapes": ["short"], "mode": "reject"}});
    let fixture = Fixture::new(&[], &validation);
    // The second message mentions the object last, and is valid.
    let long = r#"{"tag": "a", "value": "12345"}"#;
    let batch = [long, r#"{"tag": "a", "line": "1"}"#, r#"{"tag": "b", "value": "5"}"#];
    assert_eq!(fixture.store(&batch), (2, 1));
    assert_eq!(fixture.letters()[0].1, long);
    assert!(fixture.has_quad("urn:line", "1") && !fixture.has_quad("urn:value", "12345"));
}

#[test]
fn the_copies_of_long_topics_are_bounded() {
    let fixture = Fixture::new(&[], &json!({}));
    let many = format!("[1{}]", ",1".repeat(9_999));
    let long = message(&format!("plant/{}", "t".repeat(60_000)), &many);
    let stored = fixture.try_store(&[long]).unwrap();
    assert_eq!((stored.objects, stored.dead_letters), (0, 1));
    assert_eq!(fixture.letters()[0].1, many);
    // Each of these is below the limit.
    let several = format!("[1{}]", ",1".repeat(299));
    let long = message(&format!("plant/{}", "t".repeat(4_000)), &several);
    let stored = fixture.try_store(&vec![long; 6]).unwrap();
    assert_eq!((stored.messages, stored.dead_letters), (6, 1_800));
    let ingestions: BTreeSet<String> =
        fixture.letters().into_iter().map(|(letter, _)| letter.ingestion_id).collect();
    assert!(ingestions.len() > 3, "{}", ingestions.len());
}

#[test]
fn a_message_without_a_subscription_is_a_dead_letter() {
    let fixture = Fixture::new(&[], &json!({}));
    let unknown = Message { subscription: None, ..message("hall/1", "{}") };
    assert_eq!(fixture.try_store(&[unknown]).unwrap().dead_letters, 1);
    let (letter, _) = fixture.letters().remove(0);
    assert!(letter.errors[0].message.contains("no subscription"), "{letter:?}");
}

/// A publisher clears a retained message with an empty payload.
#[test]
fn an_empty_message_changes_nothing() {
    let fixture = Fixture::with_mode("MERGE");
    assert_eq!(fixture.store(&["", r#"{"tag": "a"}"#, "", "{"]), (1, 1));
    assert_eq!(fixture.store(&["", ""]), (0, 0));
    let document = Fixture::new(&["sources.line.subscriptions[0].form=document"], &json!({}));
    assert_eq!(document.store(&[""]), (0, 0));
    assert_eq!(fixture.letters().len(), 1);
    assert!(document.letters().is_empty());
}

/// Returns a gateway on which storing a message with a part fails with an internal error.
fn with_damaged_counter(settings: &[&str]) -> Fixture {
    let part = "path: '<urn:part>/Parts:.', fields: {name: {type: string, path: <urn:name>}}";
    let definition = json!({
        "config": format!("{READINGS}  part: {{type: object, {part}}}\n"),
        "namespaces": [{"name": "Parts", "uriBase": PARTS_BASE, "generator": "counter"}],
    });
    let fixture = Fixture::new(settings, &definition);
    let damaged = COUNTERS.with_values::<Vec<u8>>();
    let damage =
        |transaction: &mut Transaction<'_>| Ok(damaged.put(transaction, PARTS_BASE, b"damaged")?);
    fixture.gateway.store.commit::<_, GatewayError>(&NoClient, damage).unwrap();
    fixture
}

#[test]
fn a_message_that_fails_in_every_attempt_becomes_a_dead_letter_and_the_others_are_stored() {
    let fixture = with_damaged_counter(&[]);
    let failing = ["b", "d"].map(|tag| format!(r#"{{"tag": "{tag}", "part": {{"name": "x"}}}}"#));
    let payloads = [r#"{"tag": "a"}"#, &failing[0], r#"{"tag": "c"}"#, &failing[1]];
    let messages = payloads.map(|payload| message("plant/n", payload));
    // Each of them gets its own attempts.
    let mut rest = &messages[..];
    for text in &failing {
        for _ in 1..MAX_INTERNAL_ATTEMPTS {
            assert_eq!(fixture.try_store(rest).unwrap_err().code, NotStoredCode::Internal);
        }
        let stored = fixture.try_store(rest).unwrap();
        assert_eq!(stored, Stored { messages: 2, objects: 1, dead_letters: 1, dropped: 0 });
        rest = &rest[2..];
        let (letter, kept) = fixture.letters().pop().unwrap();
        assert_eq!(kept, *text);
        let why = &letter.errors[0].message;
        assert!(why.contains("counter") && why.contains("internal error"), "{why}");
    }
    assert!(rest.is_empty());
    assert!(fixture.has_quad("urn:tag", "a") && fixture.has_quad("urn:tag", "c"));
    assert!(!fixture.has_quad("urn:tag", "b"));
}

#[test]
fn a_message_that_fails_in_every_attempt_waits_while_it_cannot_be_kept() {
    let fixture = with_damaged_counter(&["limits.rejected.bytes=0"]);
    let failing = [message("plant/n", r#"{"tag": "a", "part": {"name": "x"}}"#)];
    for _ in 0..=MAX_INTERNAL_ATTEMPTS {
        assert_eq!(fixture.try_store(&failing).unwrap_err().code, NotStoredCode::Internal);
    }
    let why = fixture.try_store(&failing).unwrap_err().message;
    assert!(why.contains("service.limits.rejected.bytes"), "{why}");
}

#[test]
fn each_object_of_a_message_that_is_given_up_becomes_a_dead_letter() {
    let fixture = with_damaged_counter(&[]);
    let objects = ["a", "b"].map(|tag| format!(r#"{{"tag": "{tag}", "part": {{"name": "x"}}}}"#));
    let messages = [message("plant/n", &format!(r#"{{"data": [{}]}}"#, objects.join(", ")))];
    for _ in 1..MAX_INTERNAL_ATTEMPTS {
        assert_eq!(fixture.try_store(&messages).unwrap_err().code, NotStoredCode::Internal);
    }
    let expected = Stored { messages: 1, dead_letters: 2, ..Stored::default() };
    assert_eq!(fixture.try_store(&messages), Ok(expected));
    // A retry takes one object.
    let kept: Vec<String> = fixture.letters().into_iter().map(|(_, text)| text).collect();
    assert_eq!(kept, objects);
}

#[test]
fn a_message_in_a_later_batch_gets_its_own_attempts() {
    let fixture = with_damaged_counter(&["limits.body=1KiB"]);
    let failing = message("plant/n", r#"{"tag": "a", "part": {"name": "x"}}"#);
    for _ in 1..MAX_INTERNAL_ATTEMPTS {
        let refused = fixture.try_store(slice::from_ref(&failing)).unwrap_err();
        assert_eq!(refused.code, NotStoredCode::Internal);
    }
    // Together they are too long for one batch.
    let valid = message("plant/n", &format!(r#"{{"tag": "{}"}}"#, "b".repeat(1_000)));
    let expected = Stored { messages: 1, objects: 1, ..Stored::default() };
    assert_eq!(fixture.try_store(&[valid, failing]), Ok(expected));
    assert!(fixture.letters().is_empty());
}

#[test]
fn a_disk_that_fails_is_no_attempt() {
    let fixture = Fixture::new(&[], &json!({}));
    fixture.store(&[r#"{"tag": "a"}"#]);
    let faults = Faults::inject_below(fixture.dir.path());
    faults.fail_nth(1, Failure::Io, true);
    assert!(fixture.try_store(&[message("plant/n", r#"{"tag": "b"}"#)]).is_err());
    assert!(faults.first_failure().is_some());
    let (_, state, _) = fixture.gateway.sources.list("line").remove(0);
    assert_eq!(state.internal_failures, 0);
}

#[test]
fn invalid_messages_that_cannot_be_kept_are_counted() {
    let fixture = Fixture::new(&["limits.rejected.bytes=0"], &json!({}));
    let messages = [message("plant/n", "x"), message("plant/n", r#"{"tag": "a"}"#)];
    let expected = Stored { messages: 2, objects: 1, dead_letters: 0, dropped: 1 };
    assert_eq!(fixture.try_store(&messages), Ok(expected));
    let info = collect_sources(&fixture.gateway).remove(0);
    assert!(
        info.warnings.iter().any(|warning| warning.message.contains("rejected.bytes")),
        "{info:?}"
    );
}

#[test]
fn a_message_can_be_a_document() {
    let config =
        READINGS.replace("<urn:value>", "<urn:value>, outer: unit") + "items: /metrics/*\n";
    let form = "sources.line.subscriptions[0].form=document";
    let fixture = Fixture::new(&[form, "limits.body=1KiB"], &json!({"config": config}));
    let document = r#"{"unit": "bar", "metrics": [{"tag": "a"}, {"tag": "b", "value": 5}]}"#;
    let empty = r#"{"metrics": []}"#;
    let last = r#"{"metrics": [{"tag": "c", "value": true}]}"#;
    assert_eq!(fixture.store(&[document, "{\"unit\":", empty, last]), (1, 3));
    assert!(fixture.has_quad("urn:value", "bar"));
    let pointer = |letter: &DeadLetter| letter.errors[0].pointer.clone();
    let letters = fixture.letters();
    let found: Vec<_> =
        letters.iter().map(|(letter, text)| (pointer(letter), text.as_str())).collect();
    let at = |pointer: &str| Some(pointer.to_owned());
    assert_eq!(
        found,
        [
            (at("/metrics/1/value"), r#"{"tag":"b","value":5}"#),
            (None, "{\"unit\":"),
            (at("/metrics/0/value"), r#"{"tag":"c","value":true}"#),
        ]
    );
    // What the objects take counts each time.
    let metrics = r#"{"tag": "d"}, "#.repeat(20);
    let unit = "u".repeat(100);
    let large = format!(r#"{{"unit": "{unit}", "metrics": [{metrics}{{"tag": "e"}}]}}"#);
    assert!(large.len() < 1024);
    assert_eq!(fixture.store(&[document, &large]), (1, 2));
    let (letter, text) = fixture.letters().pop().unwrap();
    assert_eq!(text, large);
    assert!(letter.errors[0].message.contains("service.limits.body"), "{letter:?}");
}

#[test]
fn large_batches_wait_while_memory_is_short() {
    // More than that is always in use.
    let fixture = Fixture::new(&["limits.memory=1MiB"], &json!({}));
    let large = message("plant/n", &format!(r#"{{"tag": "{}"}}"#, "t".repeat(2 << 20)));
    let refused = fixture.try_store(&[large]).unwrap_err();
    assert_eq!(refused.code, NotStoredCode::Unavailable);
    let check = |bytes| check_storable(&fixture.gateway, "line", "Readings", bytes);
    assert_eq!(check(2 << 20).unwrap_err().code, NotStoredCode::Unavailable);
    assert_eq!(check(1 << 20), Ok(()));
    assert_eq!(fixture.store(&[r#"{"tag": "a"}"#]), (1, 0));
}

#[test]
fn messages_can_be_stored_while_their_business_object_is_enabled() {
    let fixture = Fixture::new(&[], &json!({}));
    let check = || check_storable(&fixture.gateway, "line", "Readings", 1);
    assert_eq!(check(), Ok(()));
    let disabled = json!({"name": "Readings", "config": READINGS, "enabled": false});
    put_definition(&fixture.gateway.catalogue, &disabled);
    assert_eq!(check().unwrap_err().code, NotStoredCode::Disabled);
}

#[test]
fn sessions_of_two_sources_with_one_client_id_are_kept_apart() {
    let fixture = Fixture::new(&[], &json!({}));
    let id = |source: &str| SessionId { source: source.to_owned(), client_id: "same".to_owned() };
    let session = StoredSession { topics: BTreeSet::from(["a".to_owned()]), ..Default::default() };
    store_session(&fixture.gateway, &id("line"), Some(&session)).unwrap();
    store_session(&fixture.gateway, &id("other"), Some(&StoredSession::default())).unwrap();
    assert_eq!(load_session(&fixture.gateway, &id("line")).unwrap(), Some(session));
    assert_eq!(list_sessions(&fixture.gateway).unwrap(), [id("line"), id("other")]);
    store_session(&fixture.gateway, &id("other"), None).unwrap();
    assert_eq!(list_sessions(&fixture.gateway).unwrap(), [id("line")]);
}
