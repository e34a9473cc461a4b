mod applicability;
mod lists;
mod protection;

use super::*;
use crate::catalogue::Catalogue;
use crate::ingest::{
    Answer, Body, KeptObjects, Limits, Mode, ObjectCondition, OnError, Request, ReviewStep,
    Submission, ingest, read_record,
};
use crate::resource::Compiled;
use crate::testing::{
    LIMITS, catalogue_settings, list_quads, local_request, open_store, put_definition,
};
use penstock_base::collections;
use penstock_base::commit::{GuardedStore, NoClient};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::hex::encode_hex;
use penstock_base::principal::Principal;
use penstock_base::{IfMatch, Preconditions};
use penstock_resources::change::ChangeState;
use penstock_store::{NEW_COUNTERS, Read as _, Store, Transaction};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use tempfile::TempDir;

/// A gateway with pumps, whose changes can be reviewed.
struct Plant {
    dir: TempDir,
    store: Store,
    catalogue: Catalogue,
    pumps: Arc<Compiled>,
    limits: Limits,
}

fn definition(review: &str, generator: &str) -> Value {
    json!({
        "name": "Pump",
        "config": "type: object\npath: Pump:.\nprefixes: {p: 'http://p/'}\nfields:\n  \
            name: {type: string, path: p:name}\n  \
            flow: {type: integer, path: p:flow}\n  \
            parts: {type: array, path: p:part, elements: {type: object, path: 'Part:.', fields: {label: {type: string, path: p:label}}}}\n",
        "namespaces": [
            {"name": "Pump", "uriBase": "http://x/pump/", "generator": generator},
            {"name": "Part", "uriBase": "http://x/part/", "generator": generator},
        ],
        "review": review,
        "approvers": ["group:shift"],
    })
}

impl Plant {
    fn new(review: &str, generator: &str) -> Self {
        let (dir, store) = open_store();
        let catalogue = Catalogue::open(store.clone(), catalogue_settings()).unwrap();
        let pumps = put_definition(&catalogue, &definition(review, generator));
        Self { dir, store, catalogue, pumps, limits: *LIMITS }
    }

    /// Closes the store and opens it again.
    fn restart(self) -> Self {
        let Self { dir, store, catalogue, pumps, limits } = self;
        drop((store, catalogue));
        let store =
            Store::open(dir.path(), penstock_store::Options::default(), &mut |_| {}).unwrap();
        let catalogue = Catalogue::open(store.clone(), catalogue_settings()).unwrap();
        Self { dir, store, catalogue, pumps, limits }
    }

    fn send(&self, mode: Mode, data: &str, review: ReviewStep<'_>) -> Result<Answer, GatewayError> {
        let body = format!(r#"{{"data": [{data}]}}"#);
        let request = self.request(mode, Body::Json(body.as_bytes()));
        self.run(&Request { review, caller: "ada", ..request })
    }

    /// Returns a request for the pumps.
    fn request<'a>(&'a self, mode: Mode, body: Body<'a>) -> Request<'a> {
        local_request(self.catalogue.watch(), &self.pumps, mode, body)
    }

    fn run(&self, request: &Request<'_>) -> Result<Answer, GatewayError> {
        ingest(&GuardedStore::from(self.store.clone()), &self.limits, request)
    }

    /// Ingests into any Business Object, and overrides the reviews of others.
    fn bypass(&self, name: &str, mode: Mode, data: &str) -> Result<Answer, GatewayError> {
        let body = format!(r#"{{"data": [{data}]}}"#);
        let business_object = self.catalogue.get(name).unwrap();
        let watch = self.catalogue.watch();
        let request = local_request(watch, &business_object, mode, Body::Json(body.as_bytes()));
        self.run(&Request { bypass: true, ..request })
    }

    fn submit(&self, mode: Mode, data: &str) -> Answer {
        self.send(mode, data, ReviewStep::Submit(Submission::default())).unwrap()
    }

    fn ingest(&self, mode: Mode, data: &str) -> Answer {
        self.send(mode, data, ReviewStep::None).unwrap()
    }

    fn take(
        &self,
        id: &str,
        action: ChangeAction,
        if_match: IfMatch,
    ) -> Result<Change, GatewayError> {
        self.take_as(id, action, if_match, Some("seen"))
    }

    fn take_as(
        &self,
        id: &str,
        action: ChangeAction,
        if_match: IfMatch,
        comment: Option<&str>,
    ) -> Result<Change, GatewayError> {
        self.review(id, if_match, comment, |store, review, decision| match action {
            ChangeAction::Approve => publish_change(store, review, decision),
            ChangeAction::Rebase => rebase_change(store, review, decision),
            action => take_step(store, review, action),
        })
    }

    fn review<T>(
        &self,
        id: &str,
        if_match: IfMatch,
        comment: Option<&str>,
        run: impl FnOnce(&GuardedStore, &Review<'_>, Decision<'_>) -> T,
    ) -> T {
        let review = Review {
            id,
            check: &NoClient,
            authorize: &|_, _, _| Ok(()),
            on_commit: &|_: &mut Transaction<'_>, _| Ok(()),
            by: "bob",
            if_match,
            comment,
            traceparent: None,
            watch: self.catalogue.watch(),
            events: None,
        };
        let limits = &self.limits;
        let decision = Decision { business_object: &self.pumps, write_scope: None, limits };
        run(&GuardedStore::from(self.store.clone()), &review, decision)
    }

    fn approve(&self, id: &str) -> Result<Change, GatewayError> {
        let seen = self.find(id).version;
        self.take(id, ChangeAction::Approve, IfMatch::Version(seen))
    }

    fn find(&self, id: &str) -> Change {
        find_change(&self.store.read(), id).unwrap().unwrap()
    }

    fn difference(&self, id: &str) -> Vec<DifferenceItem> {
        let change = self.find(id);
        let read = self.store.read();
        (0..change.pages).flat_map(|page| read_difference(&read, &change, page).unwrap()).collect()
    }

    fn quads(&self) -> Vec<String> {
        list_quads(&self.store.read())
    }
}

const PUMP: &str = r#"{"name": "north", "parts": [{"label": "seal"}, {"label": "shaft"}]}"#;

#[test]
fn a_change_reaches_the_graph_only_when_it_is_approved_and_then_exactly_as_shown() {
    let direct = Plant::new("off", "counter");
    direct.ingest(Mode::Add, PUMP);

    let plant = Plant::new("required", "counter");
    let answer = plant.ingest(Mode::Add, PUMP);
    assert_eq!((answer.change, answer.created), (Some(ChangeState::Submitted), 1));
    assert_eq!(answer.objects[0].uri, "http://x/pump/1");
    let id = answer.ingestion_id.as_str();
    assert_eq!(plant.quads(), Vec::<String>::new());
    assert!(read_record(&plant.store, id).unwrap().is_none());

    let plant = plant.restart();
    let shown = plant.difference(id);
    let uris: Vec<_> = shown.iter().map(|item| item.uri.as_str()).collect();
    assert_eq!(uris, ["http://x/pump/1", "http://x/part/1", "http://x/part/2"]);
    assert!(shown[0].before.is_none() && shown[0].after.as_ref().unwrap().get().contains("seal"));
    let mut added: Vec<String> = shown.iter().flat_map(|item| item.added.clone()).collect();
    added.sort();

    let stale = plant.take(id, ChangeAction::Approve, IfMatch::Version(7)).unwrap_err();
    assert_eq!(stale.class, ErrorClass::PreconditionFailed);
    let approved = plant.approve(id).unwrap();
    assert_eq!((approved.state, approved.approved_by()), (ChangeState::Approved, Some("bob")));
    let stored: Vec<String> = plant.quads().iter().map(|quad| format!("{quad} .")).collect();
    assert_eq!(stored, added);
    assert_eq!(plant.quads(), direct.quads());
    let record = read_record(&plant.store, id).unwrap().unwrap();
    assert_eq!(
        (record.author.as_deref(), record.approved_by.as_deref()),
        (Some("ada"), Some("bob"))
    );
    assert_eq!((record.caller.as_str(), record.created), ("ada", 1));

    // Repeating it answers the same, also with the version that was seen first.
    let again = plant.restart().take(id, ChangeAction::Approve, IfMatch::Version(1)).unwrap();
    assert_eq!(again, approved);
}

#[test]
fn what_would_be_removed_is_shown_and_what_repeats_is_the_same_change() {
    let plant = Plant::new("optional", "counter");
    plant.ingest(Mode::Add, PUMP);
    let answer = plant.submit(Mode::Delete, r#"{"uri": "http://x/pump/1"}"#);
    let shown = plant.difference(&answer.ingestion_id);
    let orphans: Vec<_> = shown.iter().filter(|item| item.orphaned).map(|item| &item.uri).collect();
    assert_eq!(orphans, ["http://x/part/1", "http://x/part/2"]);
    assert!(shown[0].after.is_none() && shown[0].added.is_empty());
    assert_eq!(shown.iter().map(|item| item.removed.len()).sum::<usize>(), plant.quads().len());
    plant.approve(&answer.ingestion_id).unwrap();
    assert_eq!(plant.quads(), Vec::<String>::new());
}

#[test]
fn identifiers_of_a_change_are_never_minted_again() {
    let plant = Plant::new("optional", "counter");
    let first = plant.submit(Mode::Add, r#"{"name": "a"}"#);
    let second = plant.submit(Mode::Add, r#"{"name": "b"}"#);
    let direct = plant.ingest(Mode::Add, r#"{"name": "c"}"#);
    let uris = [&first, &second, &direct].map(|answer| answer.objects[0].uri.as_str());
    assert_eq!(uris, ["http://x/pump/1", "http://x/pump/2", "http://x/pump/3"]);
    let plant = plant.restart();
    plant.take(&first.ingestion_id, ChangeAction::Reject, IfMatch::Any).unwrap();
    plant.approve(&second.ingestion_id).unwrap();
    assert_eq!(plant.ingest(Mode::Add, r#"{"name": "d"}"#).objects[0].uri, "http://x/pump/4");
    assert!(plant.quads().iter().any(|quad| quad.starts_with("<http://x/pump/2> ")));

    let plant = Plant::new("optional", "alphanumeric");
    let answer = plant.submit(Mode::Add, r#"{"name": "a"}"#);
    let uri = &answer.objects[0].uri;
    plant.take(&answer.ingestion_id, ChangeAction::Withdraw, IfMatch::Any).unwrap();
    assert!(crate::namespace::RESERVED.contains(&plant.store.read(), uri).unwrap());
}

#[test]
fn a_change_that_would_do_something_else_is_refused_until_it_is_rebased() {
    let plant = Plant::new("optional", "counter");
    plant.ingest(Mode::Add, r#"{"name": "old"}"#);
    let rename = r#"{"uri": "http://x/pump/1", "name": "new"}"#;
    let id = plant.submit(Mode::Update, rename).ingestion_id;
    plant.ingest(Mode::Update, r#"{"uri": "http://x/pump/1", "name": "other"}"#);
    let error = plant.approve(&id).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(error.detail.contains("rebase"), "{error}");
    let before = plant.find(&id);
    let rebased = plant.take(&id, ChangeAction::Rebase, IfMatch::Version(1)).unwrap();
    assert_eq!((rebased.state, rebased.version), (ChangeState::Submitted, 2));
    assert!(rebased.base > before.base && rebased.history[1].rebased);
    assert!(plant.difference(&id)[0].before.as_ref().unwrap().get().contains("other"));
    plant.approve(&id).unwrap();
    assert!(plant.quads()[0].contains("\"new\""), "{:?}", plant.quads());

    // A change that is no longer valid stays as it is.
    let id = plant.submit(Mode::Update, rename).ingestion_id;
    plant.ingest(Mode::Delete, r#"{"uri": "http://x/pump/1"}"#);
    let error = plant.approve(&id).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert_eq!((plant.find(&id).state, plant.find(&id).version), (ChangeState::Submitted, 1));
}

#[test]
fn a_change_from_an_export_file_can_be_approved_after_its_business_object_was_renamed() {
    let mut plant = Plant::new("optional", "counter");
    let data = r#"[{"uri":"http://x/pump/9","name":"north"}]"#;
    let checksum = encode_hex(&Sha256::digest(data));
    let body = format!(
        r#"{{"metadata":{{"object_type":"Pump","object_count":1,"data_checksum":"{checksum}","checksum_algorithm":"SHA-256"}},"data":{data}}}"#
    );
    let review = ReviewStep::Submit(Submission::default());
    let request = plant.request(Mode::Add, Body::Json(body.as_bytes()));
    let id = plant.run(&Request { review, caller: "ada", ..request }).unwrap().ingestion_id;
    let mut renamed = definition("optional", "counter");
    renamed["name"] = json!("Feed pump");
    let renamed = crate::resource::CompiledDefinition::from_json(renamed.to_string().as_bytes());
    let requester = crate::catalogue::Requester::new(&NoClient, "local");
    let object = plant.pumps.object.id.clone();
    let any = IfMatch::Any.into();
    plant.pumps = plant.catalogue.replace(requester, &object, renamed.unwrap(), any).unwrap();
    plant.approve(&id).unwrap();
    assert!(plant.quads()[0].contains("\"north\""), "{:?}", plant.quads());
    // A new request needs the new name.
    let request = plant.request(Mode::Merge, Body::Json(body.as_bytes()));
    assert_eq!(plant.run(&request).unwrap_err().class, ErrorClass::Invalid);
}

#[test]
fn rebases_without_an_effect_change_nothing_and_no_comment_is_lost() {
    let plant = Plant::new("optional", "counter");
    plant.ingest(Mode::Add, r#"{"name": "old"}"#);
    let rename = r#"{"uri": "http://x/pump/1", "name": "new"}"#;
    let id = plant.submit(Mode::Update, rename).ingestion_id;
    let rebase =
        |comment: Option<&str>| plant.take_as(&id, ChangeAction::Rebase, IfMatch::Any, comment);
    let before = plant.find(&id);
    assert_eq!(rebase(None).unwrap(), before);
    assert_eq!(rebase(Some("first")).unwrap().version, 2);
    // Each of these changes what the next one computes.
    for number in 0..120 {
        let flow = format!(r#"{{"uri": "http://x/pump/1", "flow": {number}}}"#);
        plant.ingest(Mode::Update, &flow);
        rebase(None).unwrap();
    }
    let history = plant.find(&id).history;
    assert_eq!((history.len(), history[1].comment.as_deref()), (100, Some("first")));
    assert_eq!(history[0].state, ChangeState::Submitted);
    let error = (0..200).find_map(|_| rebase(Some("again")).err()).unwrap();
    assert_eq!(error.class, ErrorClass::Conflict);
    plant.approve(&id).unwrap();
}

#[test]
fn a_state_allows_only_its_actions() {
    use ChangeAction::{Approve, Rebase, Reject, Submit, Withdraw};
    let plant = Plant::new("optional", "counter");
    let draft = ReviewStep::Submit(Submission { owners: &[], is_draft: true });
    let taken = |id: &str, action| plant.take(id, action, IfMatch::Any).map(|change| change.state);
    for (closing, closed) in [
        (Approve, ChangeState::Approved),
        (Reject, ChangeState::Rejected),
        (Withdraw, ChangeState::Withdrawn),
    ] {
        let id = plant.send(Mode::Add, r#"{"name": "a"}"#, draft).unwrap().ingestion_id;
        assert_eq!(plant.find(&id).state, ChangeState::Draft);
        for action in [Approve, Reject] {
            assert_eq!(taken(&id, action).unwrap_err().class, ErrorClass::Conflict, "{action:?}");
        }
        assert_eq!(taken(&id, Submit), Ok(ChangeState::Submitted));
        let version = plant.find(&id).version;
        assert_eq!(taken(&id, Submit), Ok(ChangeState::Submitted));
        assert_eq!(plant.find(&id).version, version, "a repeated action changes nothing");
        assert_eq!(taken(&id, closing), Ok(closed));
        for action in ChangeAction::ALL {
            let result = taken(&id, action);
            if action == closing {
                assert_eq!(result, Ok(closed));
            } else {
                assert_eq!(result.unwrap_err().class, ErrorClass::Conflict, "{action:?}");
            }
        }
        assert!([Rebase, Withdraw].iter().all(|action| !action.state().name().is_empty()));
    }
}

#[test]
fn withdrawn_changes_make_room_and_past_the_limits_others_are_refused() {
    let mut plant = Plant::new("required", "counter");
    plant.limits.changes = 30;
    let ids: Vec<String> =
        (0..3).map(|_| plant.ingest(Mode::Add, r#"{"name": "a"}"#).ingestion_id).collect();
    let error = plant.send(Mode::Add, r#"{"name": "a"}"#, ReviewStep::None).unwrap_err();
    assert!(matches!(error.class, ErrorClass::TooManyRequests(_)), "{error}");
    plant.take(&ids[0], ChangeAction::Reject, IfMatch::Any).unwrap();
    plant.ingest(Mode::Add, r#"{"name": "a"}"#);
    let totals = read_totals(&plant.store.read()).unwrap();
    assert_eq!((totals.open, totals.closed), (3, 1));

    // The account may have about as many bytes as it has now.
    plant.limits.change_bytes = (totals.bytes() + 200) * 10;
    plant.take(&ids[1], ChangeAction::Withdraw, IfMatch::Any).unwrap();
    plant.ingest(Mode::Add, r#"{"name": "a"}"#);
    let read = plant.store.read();
    assert!(find_change(&read, &ids[0]).unwrap().is_some(), "an approver has decided about it");
    assert!(find_change(&read, &ids[1]).unwrap().is_none(), "it was withdrawn");
    drop(read);
    plant.take(&ids[2], ChangeAction::Reject, IfMatch::Any).unwrap();
    let error = plant.send(Mode::Add, r#"{"name": "a"}"#, ReviewStep::None).unwrap_err();
    assert!(matches!(error.class, ErrorClass::TooManyRequests(_)), "{error}");
    plant.limits.change_bytes = 5000;
    let error = plant.send(Mode::Add, r#"{"name": "a"}"#, ReviewStep::None).unwrap_err();
    assert_eq!(error.class, ErrorClass::TooLarge);
    let store = GuardedStore::from(plant.store.clone());
    let now = plant.catalogue.watch().elapsed();
    assert_eq!(expire_changes(&store, now, 60_000).unwrap(), 0);
    assert_eq!(expire_changes(&store, now + 60_001, 60_000).unwrap(), 2);
    assert_eq!(read_totals(&store.read()).unwrap().closed, 0);
}

#[test]
fn deleting_the_business_object_withdraws_its_changes() {
    let plant = Plant::new("optional", "counter");
    let id = plant.submit(Mode::Add, r#"{"name": "a"}"#).ingestion_id;
    let requester = crate::catalogue::Requester::new(&NoClient, "local");
    plant.catalogue.delete(requester, "Pump", Preconditions::default()).unwrap();
    assert_eq!(plant.find(&id).state, ChangeState::Withdrawn, "before it is stored");
    let events = penstock_base::events::EventBus::default();
    let store = GuardedStore::from(plant.store.clone());
    let withdraw = || withdraw_abandoned(&store, plant.catalogue.watch(), &events, &|_, _| Ok(()));
    assert_eq!((withdraw().unwrap(), withdraw().unwrap()), (1, 0));
    assert_eq!(plant.find(&id).state, ChangeState::Withdrawn);
    assert_eq!(read_totals(&plant.store.read()).unwrap().open, 0);
}

#[test]
fn a_large_difference_has_pages_and_the_current_approvers_decide() {
    let plant = Plant::new("required", "counter");
    let data: Vec<String> = (0..250).map(|n| format!(r#"{{"name": "pump {n}"}}"#)).collect();
    let id = plant.ingest(Mode::Add, &data.join(",")).ingestion_id;
    let change = plant.find(&id);
    assert_eq!((change.items, change.pages), (250, 3));
    assert_eq!(plant.difference(&id).len(), 250);
    let approvers = current_approvers(&plant.store.read(), plant.catalogue.watch(), &change);
    assert_eq!(approvers.unwrap(), [Principal::Group("shift".to_owned())]);
    let mut other = definition("required", "counter");
    other["approvers"] = json!(["user:eve"]);
    put_definition(&plant.catalogue, &other);
    let approvers = current_approvers(&plant.store.read(), plant.catalogue.watch(), &change);
    assert_eq!(approvers.unwrap(), [Principal::User("eve".to_owned())]);
}

#[test]
fn what_cannot_be_reviewed_is_refused() {
    let plant = Plant::new("off", "counter");
    let error = plant.send(Mode::Add, PUMP, ReviewStep::Submit(Submission::default())).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    let plant = Plant::new("required", "counter");
    let lines = Body::Lines { text: b"{}\n", first: 0, line_numbers: &[1] };
    let error = plant.run(&plant.request(Mode::Add, lines)).unwrap_err();
    assert_eq!(error.class, ErrorClass::UnsupportedMediaType);
    let request = plant.request(Mode::Add, Body::Json(br#"{"data": []}"#));
    let error = plant.run(&Request { on_error: OnError::Skip, ..request }).unwrap_err();
    assert_eq!(error.class, ErrorClass::Malformed);
    let exists = ObjectCondition::Exists;
    let error = plant.run(&Request { condition: Some(&exists), ..request }).unwrap_err();
    assert_eq!(error.class, ErrorClass::Malformed);
    assert!(error.detail.contains("If-Match"), "{error}");
    // VALIDATE stores nothing in any case.
    assert_eq!(plant.ingest(Mode::Validate, PUMP).change, None);
}

#[test]
fn a_change_of_an_object_as_shown_is_refused_if_it_has_changed_meanwhile() {
    let plant = Plant::new("required", "counter");
    let tag = crate::view::compute_etag(b"what a person has seen");
    let condition = ObjectCondition::IsAsShown(tag);
    let body = Body::Json(br#"{"data": [{"uri": "urn:pump:9", "name": "a"}]}"#);
    let request = plant.request(Mode::Merge, body);
    let error = plant.run(&Request { condition: Some(&condition), ..request }).unwrap_err();
    assert_eq!(error.class, ErrorClass::PreconditionFailed);
    assert!(error.detail.contains("has been deleted meanwhile"), "{error}");
}

#[test]
fn identifiers_with_an_earlier_base_are_not_used_again() {
    let mut plant = Plant::new("optional", "uuid");
    let id = plant.submit(Mode::Add, r#"{"name": "a"}"#).ingestion_id;
    assert!(plant.difference(&id)[0].uri.starts_with("http://x/pump/"));
    let mut moved = definition("optional", "uuid");
    moved["namespaces"][0]["uriBase"] = json!("http://y/pump/");
    plant.pumps = put_definition(&plant.catalogue, &moved);
    plant.take(&id, ChangeAction::Rebase, IfMatch::Any).unwrap();
    let uri = plant.difference(&id)[0].uri.clone();
    assert!(uri.starts_with("http://y/pump/"), "{uri}");
    plant.approve(&id).unwrap();
    assert!(plant.quads()[0].starts_with(&format!("<{uri}>")), "{:?}", plant.quads());
}

#[test]
fn a_reservation_ends_when_its_change_is_published_or_removed() {
    let plant = Plant::new("optional", "alphanumeric");
    let reserved = |plant: &Plant| {
        crate::namespace::RESERVED.scan().read_all(&plant.store.read()).unwrap().len()
    };
    let first = plant.submit(Mode::Add, r#"{"name": "a"}"#);
    let second = plant.submit(Mode::Add, r#"{"name": "b"}"#).ingestion_id;
    assert_eq!(reserved(&plant), 2);
    plant.approve(&first.ingestion_id).unwrap();
    assert_eq!(reserved(&plant), 1);
    assert!(plant.quads()[0].starts_with(&format!("<{}>", first.objects[0].uri)));
    plant.take(&second, ChangeAction::Reject, IfMatch::Any).unwrap();
    assert_eq!(reserved(&plant), 1);
    let store = GuardedStore::from(plant.store.clone());
    let later = plant.catalogue.watch().elapsed() + 60_001;
    assert_eq!(expire_changes(&store, later, 60_000).unwrap(), 2);
    assert_eq!(reserved(&plant), 0);
}

#[test]
fn the_index_has_exactly_the_open_changes_and_each_knows_its_objects() {
    let plant = Plant::new("optional", "counter");
    let ids: Vec<String> = (0..4)
        .map(|n| plant.submit(Mode::Add, &format!(r#"{{"name": "{n}"}}"#)).ingestion_id)
        .collect();
    let nested = plant.submit(Mode::Add, PUMP).ingestion_id;
    let object = plant.pumps.object.id.clone();
    let list = |plant: &Plant| {
        let show = |one: Result<OpenChange, GatewayError>| {
            let one = one.unwrap();
            assert_eq!(one.business_object, object);
            (one.id, one.state, one.author)
        };
        iter_open_changes(&plant.store).map(show).collect::<Vec<_>>()
    };
    let open = |id: &str| (id.to_owned(), ChangeState::Submitted, "ada".to_owned());
    let all = [&nested, &ids[3], &ids[2], &ids[1], &ids[0]].map(|id| open(id));
    assert_eq!(list(&plant), all);

    let is_touched = |plant: &Plant, id: &str, uri: &str| {
        let change = plant.find(id);
        let read = plant.store.read();
        let object = SubjectHashes::of_object(&read, uri).unwrap();
        is_touched(&read, &change, &object).unwrap()
    };
    for (uri, expected) in
        [("http://x/pump/5", true), ("http://x/part/2", true), ("http://x/pump/1", false)]
    {
        assert_eq!(is_touched(&plant, &nested, uri), expected, "{uri}");
    }

    let plant = plant.restart();
    plant.take(&ids[0], ChangeAction::Reject, IfMatch::Any).unwrap();
    plant.take(&ids[1], ChangeAction::Withdraw, IfMatch::Any).unwrap();
    plant.approve(&ids[2]).unwrap();
    plant.take(&nested, ChangeAction::Rebase, IfMatch::Any).unwrap();
    assert_eq!(list(&plant), [open(&nested), open(&ids[3])]);
    assert!(is_touched(&plant, &nested, "http://x/part/1"));
}

#[test]
fn a_restored_change_gets_no_version_that_was_lost() {
    let plant = Plant::new("optional", "counter");
    let id = plant.submit(Mode::Add, r#"{"name": "a"}"#).ingestion_id;
    let begin = 1_000_000_u64.to_be_bytes();
    let name = collections::COUNTERS.name;
    plant
        .store
        .transact::<_, GatewayError>(|t| Ok(t.put_document(name, NEW_COUNTERS, &begin)?))
        .unwrap();
    let rejected = plant.take(&id, ChangeAction::Reject, IfMatch::Version(1)).unwrap();
    assert_eq!(rejected.version, 1_000_001);
}
