use crate::catalogue::{Catalogue, Change, CompiledDefinition, Requester};
use crate::change_feed;
use crate::ingest::{Body, Limits, Mode, find_write_history, ingest, list_records};
use crate::resource::Compiled;
use crate::testing::{
    LIMITS, catalogue_settings, ingest_body, list_members, list_quads, local_request, open_store,
    put_definition,
};
use penstock_base::commit::{CommitCheck, GuardedStore, NoClient};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::events::EventBus;
use penstock_base::{IfMatch, Preconditions};
use penstock_resources::business_object::DeletionCount;
use penstock_resources::ingestion::RecordMode;
use penstock_store::faults::{Failure, Faults};
use penstock_store::{Error, Options, Read, Store, Transaction};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Pumps with parts. `hot` and `wet` are the conditions of other Business Objects.
const CONFIG: &str = "
type: object
path: Pump:.
fields:
  name: {type: string, path: <urn:name>}
  is: {type: array, path: <urn:is>, elements: resource}
  parts:
    type: array
    path: <urn:part>
    elements:
      type: object
      path: Part:.
      fields:
        code: {type: string, path: <urn:code>}
        seal: {type: object, path: <urn:seal>/Seal:., fields: {size: {type: string, path: <urn:size>}}}
";

struct Fixture {
    store: Store,
    catalogue: Catalogue,
    dir: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        let (dir, store) = open_store();
        let catalogue = Catalogue::open(store.clone(), catalogue_settings()).unwrap();
        Self { store, catalogue, dir }
    }

    /// Defines a Business Object of all pumps, or of those that are something.
    fn define(&self, name: &str, condition: Option<&str>) -> Arc<Compiled> {
        self.define_with(name, condition, &json!({}))
    }

    fn define_with(&self, name: &str, condition: Option<&str>, others: &Value) -> Arc<Compiled> {
        let conditions: Vec<Value> =
            condition.iter().map(|is| json!({"predicate": "urn:is", "value": is})).collect();
        let mut definition = json!({"name": name, "config": CONFIG, "conditions": conditions});
        definition.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
        put_definition(&self.catalogue, &definition)
    }

    fn ingest(&self, business_object: &Compiled, data: &Value) -> Result<(), GatewayError> {
        let (store, watch) = (GuardedStore::from(self.store.clone()), self.catalogue.watch());
        let body = json!({ "data": data }).to_string();
        ingest_body(&store, watch, business_object, Mode::Add, &body).map(drop)
    }

    fn begin(&self, name: &str) -> Result<Arc<Compiled>, GatewayError> {
        self.begin_as(Requester::new(&NoClient, "admin-1"), name)
    }

    fn begin_as(&self, by: Requester<'_>, name: &str) -> Result<Arc<Compiled>, GatewayError> {
        self.catalogue.begin_deletion(by, name, Preconditions::default())
    }

    fn continue_once(&self, id: &str) -> Result<bool, GatewayError> {
        let nothing = |_: &mut Transaction<'_>, _: &Change<'_>| Ok(());
        self.catalogue.continue_deletion(id, 1000, &EventBus::default(), &nothing)
    }

    /// Deletes the Business Object with its objects.
    fn delete(&self, name: &str) {
        let id = self.begin(name).unwrap().object.id.clone();
        while self.continue_once(&id).unwrap() {}
        assert!(self.catalogue.get(name).is_none());
    }

    fn count(&self, business_object: &Compiled) -> DeletionCount {
        self.catalogue.count_deletion(business_object, u64::MAX).unwrap()
    }

    fn subjects(&self) -> Vec<String> {
        let quads = list_quads(&self.store.read());
        let subjects = quads.iter().filter_map(|quad| quad.split(['<', '>']).nth(1));
        let mut subjects: Vec<String> = subjects.map(str::to_owned).collect();
        subjects.dedup();
        subjects
    }
}

fn pump(number: usize, is: &[&str]) -> Value {
    json!({"uri": format!("urn:pump:{number:05}"), "name": "Feed pump", "is": is})
}

fn class_of<T>(result: Result<T, GatewayError>) -> ErrorClass {
    result.err().expect("it is refused").class
}

#[test]
fn every_member_is_deleted_in_commits_of_bounded_size_with_one_record() {
    let fixture = Fixture::new();
    let pumps = fixture.define("Pump", None);
    let data: Vec<Value> = (0..450).map(|number| pump(number, &[])).collect();
    fixture.ingest(&pumps, &json!(data)).unwrap();
    assert_eq!(fixture.count(&pumps), DeletionCount { objects: 450, kept: 0 });

    let begun = fixture.begin("Pump").unwrap();
    assert!(!begun.object.definition.enabled);
    assert_eq!((begun.object.version, begun.object.updated_by.as_deref()), (2, Some("admin-1")));
    assert_eq!(begun.object.deleting.as_ref().unwrap().remaining, 450);
    let remaining = || Some(fixture.catalogue.get("Pump")?.object.deleting.clone()?.remaining);
    let mut seen = vec![remaining()];
    while fixture.continue_once(&pumps.object.id).unwrap() {
        assert_eq!(fixture.catalogue.get("Pump").unwrap().object.version, 2);
        seen.push(remaining());
    }
    assert_eq!(seen, [Some(450), Some(250), Some(50), Some(0)]);
    assert!(fixture.catalogue.get("Pump").is_none());
    assert_eq!(list_quads(&fixture.store.read()), Vec::<String>::new());
    let records = list_records(&fixture.store, None, 10).unwrap();
    let deletions: Vec<_> = records
        .iter()
        .filter(|record| record.mode == RecordMode::Ingestion(Mode::Delete))
        .collect();
    assert_eq!(deletions.iter().map(|record| record.deleted).collect::<Vec<_>>(), [450]);
    assert!(deletions.iter().all(|record| record.caller == "admin-1"));
    // The name is free again.
    fixture.define("Pump", None);
}

/// Stores three pumps, each of which is more than one commit deletes.
fn ingest_large_pumps(fixture: &Fixture, pumps: &Compiled) {
    let parts: Vec<Value> = (0..3000).map(|code| json!({"code": code.to_string()})).collect();
    for number in 0..3 {
        let mut large = pump(number, &[]);
        large["parts"] = json!(parts);
        fixture.ingest(pumps, &json!([large])).unwrap();
    }
}

#[test]
fn a_large_object_ends_a_commit() {
    let fixture = Fixture::new();
    let pumps = fixture.define("Pump", None);
    ingest_large_pumps(&fixture, &pumps);
    let id = fixture.begin("Pump").unwrap().object.id.clone();
    let mut members = Vec::new();
    while fixture.continue_once(&id).unwrap() {
        members.push(list_members(&fixture.store.read(), &pumps).len());
    }
    // 6,000 quads each: the second object exceeds the limit of 10,000.
    assert_eq!(members, [1, 0]);
    assert_eq!(fixture.subjects(), Vec::<String>::new());
}

#[test]
fn members_of_another_business_object_stay() {
    let fixture = Fixture::new();
    let pumps = fixture.define("Pump", None);
    let hot = fixture.define("Hot", Some("urn:hot"));
    let data = [pump(1, &[]), pump(2, &["urn:hot"]), pump(3, &["urn:wet"])];
    fixture.ingest(&pumps, &json!(data)).unwrap();
    assert_eq!(fixture.count(&pumps), DeletionCount { objects: 2, kept: 1 });
    assert_eq!(fixture.count(&hot), DeletionCount { objects: 0, kept: 1 });
    let before = fixture.store.stats().quads;
    fixture.delete("Hot");
    assert_eq!(fixture.store.stats().quads, before);
    let hot = fixture.define("Hot", Some("urn:hot"));
    fixture.delete("Pump");
    assert_eq!(fixture.subjects(), ["urn:pump:00002"]);
    assert_eq!(list_members(&fixture.store.read(), &hot), ["urn:pump:00002"]);
}

#[test]
fn business_objects_that_are_deleted_at_the_same_time_keep_nothing_for_each_other() {
    let fixture = Fixture::new();
    let pumps = fixture.define("Pump", None);
    let hot = fixture.define("Hot", Some("urn:hot"));
    let data: Vec<Value> = (0..300).map(|number| pump(number, &["urn:hot"])).collect();
    fixture.ingest(&pumps, &json!(data)).unwrap();
    fixture.begin("Pump").unwrap();
    fixture.begin("Hot").unwrap();
    while [&hot, &pumps].map(|object| fixture.continue_once(&object.object.id).unwrap())
        != [false; 2]
    {}
    assert_eq!(fixture.subjects(), Vec::<String>::new());
    assert_eq!(fixture.catalogue.list().len(), 0);
}

#[test]
fn business_objects_that_are_deleted_protect_nothing_any_more() {
    let fixture = Fixture::new();
    let pumps = fixture.define("Pump", None);
    fixture.ingest(&pumps, &json!([pump(1, &["urn:hot"]), pump(2, &[])])).unwrap();
    let reviewed = json!({"review": "required"});
    let pumps = fixture.define_with("Pump", None, &reviewed);
    let hot = fixture.define_with("Hot", Some("urn:hot"), &reviewed);
    let wet = fixture.define("Wet", Some("urn:wet"));
    let bypass = Requester { bypass: true, ..Requester::new(&NoClient, "admin-1") };
    fixture.begin_as(bypass, "Pump").unwrap();
    fixture.begin_as(bypass, "Hot").unwrap();
    // It is also a pump.
    fixture.ingest(&wet, &json!([pump(3, &["urn:wet"])])).unwrap();
    let ids = [&hot, &pumps].map(|object| object.object.id.as_str());
    while ids.map(|id| fixture.continue_once(id).unwrap()) != [false; 2] {}
    assert_eq!(fixture.subjects(), ["urn:pump:00003"]);
    let read = fixture.store.read();
    let definitions = fixture.catalogue.watch().current_definitions(&read).unwrap();
    assert_eq!(ids.map(|id| definitions.version_of(id)), [None; 2]);
}

#[test]
fn nested_objects_go_unless_something_refers_to_them_or_they_belong_to_another_business_object() {
    let fixture = Fixture::new();
    let pumps = fixture.define("Pump", None);
    let definition = json!({
        "name": "Seal",
        "config": "type: object\npath: Seal:.\nfields: {size: {type: string, path: <urn:size>}}",
        "conditions": [{"predicate": "urn:size", "value": "urn:large"}],
    });
    put_definition(&fixture.catalogue, &definition);
    let data = json!([
        {"uri": "urn:pump:1", "parts": [
            {"uri": "urn:part:own", "code": "a", "seal": {"uri": "urn:seal:own", "size": "small"}},
            {"uri": "urn:part:kept", "code": "b", "seal": {"uri": "urn:seal:kept", "size": "large"}},
        ]},
        {"uri": "urn:pump:2", "parts": [{"uri": "urn:part:own"}]},
    ]);
    fixture.ingest(&pumps, &data).unwrap();
    let insert = |subject: &str, predicate: &str, object: &str| {
        let node = oxrdf::NamedNode::new_unchecked;
        crate::testing::insert_quad(&fixture.store, subject, predicate, node(object), "urn:other");
    };
    insert("urn:seal:kept", "urn:size", "urn:large");
    insert("urn:somebody", "urn:refers", "urn:part:kept");
    fixture.delete("Pump");
    assert_eq!(fixture.subjects(), ["urn:part:kept", "urn:seal:kept", "urn:somebody"]);
}

#[test]
fn an_unreferenced_nested_object_that_belongs_to_another_business_object_stays() {
    let fixture = Fixture::new();
    let pumps = fixture.define("Pump", None);
    let definition = json!({
        "name": "Part",
        "config": "type: object\npath: Part:.\nfields: {code: {type: string, path: <urn:code>}}",
    });
    put_definition(&fixture.catalogue, &definition);
    let part =
        json!({"uri": "urn:part:1", "code": "a", "seal": {"uri": "urn:seal:1", "size": "small"}});
    fixture.ingest(&pumps, &json!([{"uri": "urn:pump:1", "parts": [part]}])).unwrap();
    fixture.delete("Pump");
    assert_eq!(fixture.subjects(), ["urn:part:1", "urn:seal:1"]);
}

#[test]
fn meanwhile_it_can_neither_be_changed_nor_filled() {
    let fixture = Fixture::new();
    let pumps = fixture.define("Pump", None);
    fixture.ingest(&pumps, &json!([pump(1, &[])])).unwrap();
    let begun = fixture.begin("Pump").unwrap();
    let id = begun.object.id.as_str();
    let by = Requester { force: true, ..Requester::new(&NoClient, "local") };
    let new = |name: &str| {
        let definition = json!({"name": name, "config": CONFIG}).to_string();
        CompiledDefinition::from_json(definition.as_bytes()).unwrap()
    };
    let catalogue = &fixture.catalogue;
    for refused in [
        catalogue.put(by, new("Pump"), Preconditions::default()).map(drop),
        catalogue.replace(by, id, new("Valve"), Preconditions::default()).map(drop),
        catalogue.delete(by, "Pump", Preconditions::default()),
        // A request that has read the definition before.
        fixture.ingest(&pumps, &json!([pump(2, &[])])),
        fixture.ingest(&begun, &json!([pump(2, &[])])),
    ] {
        assert_eq!(class_of(refused), ErrorClass::Conflict);
    }
    // The same request again changes nothing.
    let sequence = fixture.store.stats().sequence;
    let again = catalogue.begin_deletion(
        Requester::new(&NoClient, "other"),
        id,
        IfMatch::Version(1).into(),
    );
    assert_eq!(again.unwrap(), begun);
    assert_eq!(fixture.store.stats().sequence, sequence);

    while fixture.continue_once(id).unwrap() {}
    assert_eq!(class_of(fixture.ingest(&pumps, &json!([pump(3, &[])]))), ErrorClass::Conflict);
    assert_eq!(fixture.subjects(), Vec::<String>::new());
    assert!(!fixture.continue_once(id).unwrap());
    assert_eq!(class_of(fixture.begin(id)), ErrorClass::NotFound);
}

#[derive(Debug)]
struct Revoked;

impl CommitCheck for Revoked {
    fn check_commit(&self, _: &Transaction<'_>) -> Result<(), GatewayError> {
        Err(GatewayError::new(ErrorClass::Forbidden, "the role was taken away"))
    }
}

#[test]
fn the_commit_that_begins_it_checks_the_requester_and_the_version() {
    let fixture = Fixture::new();
    let pumps = fixture.define("Pump", None);
    let begin = |check, if_match: IfMatch| {
        let by = Requester::new(check, "admin-1");
        fixture.catalogue.begin_deletion(by, "Pump", if_match.into())
    };
    assert_eq!(class_of(begin(&Revoked, IfMatch::Any)), ErrorClass::Forbidden);
    assert_eq!(class_of(begin(&NoClient, IfMatch::Version(7))), ErrorClass::PreconditionFailed);
    assert_eq!(fixture.catalogue.get("Pump"), Some(pumps.clone()));
    fixture.ingest(&pumps, &json!([pump(1, &[])])).unwrap();
    begin(&NoClient, IfMatch::Version(1)).unwrap();
    // The request again, by somebody who may no longer make it.
    assert_eq!(class_of(begin(&Revoked, IfMatch::Any)), ErrorClass::Forbidden);
}

#[test]
fn it_does_not_begin_while_the_members_of_another_business_object_are_unknown() {
    let fixture = Fixture::new();
    let pumps = fixture.define("Pump", None);
    fixture.define("Broken", None);
    let broken = fixture.catalogue.get("Broken").unwrap().object.id.clone();
    fixture
        .store
        .transact::<_, Error>(|t| {
            let document = t.read_document("business-objects", broken.as_bytes())?.unwrap();
            let text = String::from_utf8(document).unwrap().replace("path: Pump:.", "path: Pump");
            t.put_document("business-objects", broken.as_bytes(), text.as_bytes())
        })
        .unwrap();
    let reopened = Catalogue::open(fixture.store.clone(), catalogue_settings()).unwrap();
    let by = Requester::new(&NoClient, "local");
    let error = reopened.begin_deletion(by, "Pump", Preconditions::default()).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(error.detail.contains("\"Broken\" does not compile"), "{}", error.detail);
    assert_eq!(class_of(reopened.count_deletion(&pumps, u64::MAX)), ErrorClass::Conflict);
}

#[test]
fn the_deleted_objects_are_changes_of_other_business_objects_and_not_of_this_one() {
    let fixture = Fixture::new();
    let automatic = json!({"exportOnChange": true, "pushTargets": [{"bucketName": "plant"}]});
    let pumps = fixture.define_with("Pump", None, &automatic);
    let config = "type: object\npath: Plant:.\nfields:\n  pump: {type: object, path: <urn:pump>/Pump:., \
                  fields: {name: {type: string, path: <urn:name>}}}";
    let mut plants = json!({"name": "Plant", "config": config});
    plants.as_object_mut().unwrap().extend(automatic.as_object().unwrap().clone());
    let plants = put_definition(&fixture.catalogue, &plants);
    fixture.ingest(&pumps, &json!([pump(1, &[]), pump(2, &[])])).unwrap();
    let holder = json!([{"uri": "urn:plant:1", "pump": {"uri": "urn:pump:00001"}}]);
    fixture.ingest(&plants, &holder).unwrap();
    let store = &fixture.store;
    let closed = change_feed::close_generation(store, &plants.object.id).unwrap().unwrap();
    fixture.delete("Pump");
    let changed = |id: &str| {
        let found = change_feed::list_changed(&store.read(), id, closed.open, None, 10).unwrap();
        found.into_iter().map(|object| object.uri).collect::<Vec<_>>()
    };
    assert_eq!(changed(&plants.object.id), ["urn:plant:1"]);
    assert_eq!(change_feed::read_cursor(&store.read(), &pumps.object.id).unwrap(), None);
}

/// Deletes 450 pumps, of which 50 are also hot, while the store fails or the process ends at every operation in turn.
/// The result is always the same.
#[test]
fn it_continues_after_a_crash_at_any_operation() {
    let options = || Options { background_maintenance: false, ..Options::default() };
    let open = |dir: &Path| {
        let store = Store::open(dir, options(), &mut |_| {}).unwrap();
        let catalogue = Catalogue::open(store.clone(), catalogue_settings()).unwrap();
        (store, catalogue)
    };
    let mut operations = 0;
    for (failure, nth) in [Failure::Io, Failure::ShortWriteDiskFull]
        .into_iter()
        .flat_map(|failure| (1..).map(move |nth| (failure, nth)).take(25))
    {
        let fixture = Fixture::new();
        let pumps = fixture.define("Pump", None);
        let hot = fixture.define("Hot", Some("urn:hot"));
        let data: Vec<Value> = (0..450)
            .map(|number| pump(number, if number % 9 == 0 { &["urn:hot"] } else { &[] }))
            .collect();
        fixture.ingest(&pumps, &json!(data)).unwrap();
        let Fixture { store, catalogue, dir } = fixture;
        drop((store, catalogue));
        let (store, catalogue) = open(dir.path());
        let faults = Faults::inject_below(dir.path());
        faults.fail_nth(nth, failure, true);
        let fixture = Fixture { store, catalogue, dir };
        let ended = fixture.begin("Pump").and_then(|begun| {
            while fixture.continue_once(&begun.object.id)? {}
            Ok(())
        });
        operations = operations.max(faults.operation_count());
        let has_failed = faults.first_failure().is_some();
        assert_eq!(ended.is_err(), has_failed);
        faults.clear_plan();
        let Fixture { store, catalogue, dir } = fixture;
        drop((store, catalogue));

        let (store, catalogue) = open(dir.path());
        let fixture = Fixture { store, catalogue, dir };
        let found = fixture.catalogue.get("Pump");
        if found.is_some_and(|found| found.object.deleting.is_none()) {
            // The first commit failed, so nothing has happened.
            assert_eq!(fixture.store.stats().quads, 500);
            fixture.begin("Pump").unwrap();
        }
        for id in fixture.catalogue.list_deletions() {
            while fixture.continue_once(&id).unwrap() {}
        }
        assert!(fixture.catalogue.get("Pump").is_none(), "{failure:?} {nth}");
        assert_eq!(list_members(&fixture.store.read(), &hot).len(), 50);
        assert_eq!(fixture.store.stats().quads, 100, "{failure:?} {nth}");
        if !has_failed {
            break;
        }
    }
    assert!(operations > 4, "{operations} operations");
}

#[test]
fn the_record_of_a_deletion_names_few_members_even_after_several_commits() {
    let fixture = Fixture::new();
    let pumps = fixture.define("Pump", None);
    ingest_large_pumps(&fixture, &pumps);
    fixture.delete("Pump");
    for number in 0..3 {
        let uri = format!("urn:pump:{number:05}");
        let history = find_write_history(&fixture.store, &uri).unwrap();
        assert_eq!(history.named_by[0].mode, RecordMode::Ingestion(Mode::Delete));
        assert_eq!(history.named_by[0].deleted, 3 * 3001);
    }
}

#[test]
fn a_record_of_a_deletion_that_was_removed_does_not_return() {
    let fixture = Fixture::new();
    let pumps = fixture.define("Pump", None);
    let data: Vec<Value> = (0..450).map(|number| pump(number, &[])).collect();
    fixture.ingest(&pumps, &json!(data)).unwrap();
    let other = fixture.define("Hot", Some("urn:hot"));
    let id = fixture.begin("Pump").unwrap().object.id.clone();
    let nothing = |_: &mut Transaction<'_>, _: &Change<'_>| Ok(());
    let step =
        |history| fixture.catalogue.continue_deletion(&id, history, &EventBus::default(), &nothing);
    assert!(step(1).unwrap());
    let store = GuardedStore::from(fixture.store.clone());
    let body = json!({"data": [pump(500, &["urn:hot"])]}).to_string();
    let watch = fixture.catalogue.watch();
    let request = local_request(watch, &other, Mode::Add, Body::Json(body.as_bytes()));
    ingest(&store, &Limits { history: 1, ..*LIMITS }, &request).unwrap();
    let newest = list_records(&fixture.store, None, 10).unwrap();
    assert_eq!((newest.len(), newest[0].mode), (1, RecordMode::Ingestion(Mode::Add)));
    while step(1).unwrap() {}
    assert_eq!(list_records(&fixture.store, None, 10).unwrap(), newest);
}
