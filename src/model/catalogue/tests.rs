use super::entry::StoredDefinition;
use super::*;
use crate::resource::NewDefinition;
use crate::testing::{catalogue_settings, open_store, put_namespace};
use oxrdf::{NamedNode, Quad};
use penstock_base::IfMatch;
use penstock_base::clock::Clock;
use penstock_base::commit::NoClient;
use penstock_base::error::Place;
use penstock_resources::business_object::Review;
use penstock_resources::namespace::Generator;
use penstock_store::{Format, Options, Read};
use serde_json::{Value, json};

struct Fixture {
    _dir: tempfile::TempDir,
    store: Store,
    catalogue: Catalogue,
}

fn defaults(auto_create_namespaces: bool) -> CatalogueSettings {
    CatalogueSettings {
        base_url: Some("https://e.org".to_owned()),
        auto_create_namespaces,
        ..catalogue_settings()
    }
}

fn fixture(auto_create_namespaces: bool) -> Fixture {
    let (dir, store) = open_store();
    let catalogue = Catalogue::open(store.clone(), defaults(auto_create_namespaces)).unwrap();
    Fixture { _dir: dir, store, catalogue }
}

fn body(name: &str, namespace: &str, more: &Value) -> Vec<u8> {
    let mut body = json!({
        "name": name,
        "config": format!(
            "type: object\npath: {namespace}:.\nfields:\n  name: {{type: string, path: <http://e/name>}}\n  \
             unit: {{type: object, path: <http://e/unit>/Unit:., fields: {{x: {{type: string, path: <http://e/x>}}}}}}\n"
        ),
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body.to_string().into_bytes()
}

fn plants_body() -> Vec<u8> {
    body("Plants", "Plant", &json!({}))
}

impl Fixture {
    fn put(&self, body: &[u8], if_match: IfMatch) -> Result<(Arc<Compiled>, bool), GatewayError> {
        let new = CompiledDefinition::from_json(body)?;
        let put = self.catalogue.put(Requester::new(&NoClient, "local"), new, if_match.into())?;
        let is_created = put.is_created();
        Ok((put.into_value(), is_created))
    }

    fn replace(
        &self,
        id: &str,
        body: &[u8],
        if_match: IfMatch,
    ) -> Result<Arc<Compiled>, GatewayError> {
        let new = CompiledDefinition::from_json(body)?;
        self.catalogue.replace(Requester::new(&NoClient, "someone"), id, new, if_match.into())
    }

    fn delete(&self, if_match: IfMatch) -> Result<(), GatewayError> {
        self.catalogue.delete(Requester::new(&NoClient, "local"), "Plants", if_match.into())
    }

    /// Returns what the gateway would serve after a restart.
    fn reopened(&self) -> Vec<Arc<Compiled>> {
        Catalogue::open(self.store.clone(), defaults(true)).unwrap().list()
    }

    fn namespaces(&self) -> Vec<(String, String)> {
        let all = namespace::list(&self.store.read(), None, 99).unwrap();
        all.into_iter().map(|n| (n.name, n.uri_base)).collect()
    }
}

fn kind<T: std::fmt::Debug>(result: Result<T, GatewayError>) -> ErrorClass {
    result.unwrap_err().class
}

#[test]
fn a_batch_shows_its_own_changes() {
    let f = fixture(true);
    let (plants, _) = f.put(&plants_body(), IfMatch::Any).unwrap();
    let by = Requester::new(&NoClient, "local");
    let mut batch = f.catalogue.begin_batch();
    let is_found = |batch: &Batch<'_>| batch.find_definition("Plants").is_some();
    assert!(is_found(&batch));
    assert_eq!(batch.find_definition(&plants.object.id), None, "an id is not a name");
    let new = CompiledDefinition::from_json(&body("Plants", "Pump", &json!({}))).unwrap();
    let prepared = batch.prepare(by, new, &[]).unwrap().unwrap();
    let deleted = f.store.dry_run(|transaction| -> Result<bool, GatewayError> {
        batch.delete(transaction, by, "Plants")?;
        let is_deleted = !is_found(&batch);
        batch.put(transaction, by, &prepared)?;
        Ok(is_deleted && is_found(&batch))
    });
    assert_eq!(deleted, Ok(true));
}

#[test]
fn a_business_object_is_created_with_its_namespaces() {
    let f = fixture(true);
    let (plants, created) = f.put(&plants_body(), IfMatch::Any).unwrap();
    assert!(created);
    assert_eq!(plants.object.version, 1);
    assert_eq!(plants.object.created_namespaces, ["Plant", "Unit"]);
    assert_eq!(plants.object.created_at, plants.object.updated_at);
    assert_eq!(
        f.namespaces(),
        [
            ("Plant".to_owned(), "https://e.org/id/Plant/".to_owned()),
            ("Unit".to_owned(), "https://e.org/id/Unit/".to_owned())
        ]
    );
    let (pumps, _) = f.put(&body("Pumps", "Pump", &json!({})), IfMatch::Any).unwrap();
    assert_eq!(pumps.object.created_namespaces, ["Pump"]);
    assert_eq!(f.catalogue.get("Plants"), Some(plants.clone()));
    assert_eq!(f.catalogue.get(&plants.object.id), Some(plants.clone()));
    assert_eq!(f.catalogue.get("plants"), None);
    assert_eq!(f.catalogue.list(), [plants, pumps]);
    assert_eq!(f.reopened(), f.catalogue.list());
}

#[test]
fn only_a_different_definition_raises_the_version() {
    let f = fixture(true);
    let first = f.put(&plants_body(), IfMatch::Any).unwrap().0;
    let sequence = f.store.stats().sequence;
    assert_eq!(f.put(&plants_body(), IfMatch::Any).unwrap(), (first.clone(), false));
    assert_eq!(f.store.stats().sequence, sequence);

    let (second, created) =
        f.put(&body("Plants", "Plant", &json!({"enabled": false})), IfMatch::Any).unwrap();
    assert!(!created && !second.object.definition.enabled);
    assert_eq!((second.object.version, &second.object.id), (2, &first.object.id));
    assert_eq!(second.object.created_at, first.object.created_at);
    assert!(second.object.created_namespaces.is_empty());
    assert_eq!(f.reopened(), [second]);
}

#[test]
fn a_definition_is_not_dated_before_what_was_stamped_before() {
    let mut f = fixture(true);
    let clock = Clock::open(f.store.clone()).unwrap();
    clock.raise_stamp("2999-01-01T00:00:00.000Z");
    f.catalogue = f.catalogue.with_clock(clock);
    let (plants, _) = f.put(&plants_body(), IfMatch::Any).unwrap();
    assert_eq!(plants.object.updated_at, "2999-01-01T00:00:00.000Z");
}

#[test]
fn if_match_is_honoured() {
    let f = fixture(true);
    let put = |more: &Value, if_match| f.put(&body("Plants", "Plant", more), if_match);
    assert_eq!(kind(put(&json!({}), IfMatch::Exists)), ErrorClass::PreconditionFailed);
    assert_eq!(kind(put(&json!({}), IfMatch::Version(1))), ErrorClass::PreconditionFailed);
    assert!(f.namespaces().is_empty());
    put(&json!({}), IfMatch::Any).unwrap();
    let error = put(&json!({"enabled": false}), IfMatch::Version(7)).unwrap_err();
    assert!(
        error.class == ErrorClass::PreconditionFailed
            && error.detail.contains("has version 1 now, not 7"),
        "{error}"
    );
    assert_eq!(put(&json!({"enabled": false}), IfMatch::Version(1)).unwrap().0.object.version, 2);
    assert_eq!(put(&json!({"enabled": true}), IfMatch::Exists).unwrap().0.object.version, 3);
    assert_eq!(kind(f.delete(IfMatch::Version(2))), ErrorClass::PreconditionFailed);
    f.delete(IfMatch::Version(3)).unwrap();
    assert_eq!(kind(f.delete(IfMatch::Any)), ErrorClass::NotFound);
    assert!(f.reopened().is_empty() && f.catalogue.list().is_empty());
}

#[test]
fn of_concurrent_creations_one_wins() {
    let f = fixture(true);
    let create = || {
        let new = CompiledDefinition::from_json(&plants_body()).unwrap();
        f.catalogue.put(Requester::new(&NoClient, "local"), new, Preconditions::ONLY_IF_NEW)
    };
    let created = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(create)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let (won, lost): (Vec<_>, Vec<_>) = created.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 7));
    assert!(lost.into_iter().all(|lost| kind(lost) == ErrorClass::PreconditionFailed));
}

#[test]
fn a_business_object_may_be_renamed_to_a_free_name() {
    let f = fixture(true);
    let plants = f.put(&plants_body(), IfMatch::Any).unwrap().0;
    f.put(&body("Pumps", "Pump", &json!({})), IfMatch::Any).unwrap();
    let id = &plants.object.id;
    assert_eq!(
        kind(f.replace("None", &body("None", "Plant", &json!({})), IfMatch::Any)),
        ErrorClass::NotFound
    );
    assert_eq!(
        kind(f.replace(id, &body("Pumps", "Plant", &json!({})), IfMatch::Any)),
        ErrorClass::Conflict
    );
    let works = f.replace(id, &body("Works", "Plant", &json!({})), IfMatch::Version(1)).unwrap();
    assert_eq!((&works.object.id, works.object.version), (id, 2));
    assert_eq!(f.catalogue.get("Plants"), None);
    assert_eq!(f.catalogue.get("Works"), Some(works.clone()));
    assert_eq!(f.catalogue.get(id), Some(works));
    // A client may still have version 1 of this name.
    assert_eq!(f.put(&plants_body(), IfMatch::Any).unwrap().0.object.version, 2);
    assert_eq!(f.reopened(), f.catalogue.list());
}

#[test]
fn without_auto_create_an_unknown_namespace_is_an_error() {
    let f = fixture(false);
    let put = || f.put(&plants_body(), IfMatch::Any);
    let error = put().unwrap_err();
    assert_eq!((error.class, error.findings.len()), (ErrorClass::Invalid, 2));
    assert!(
        error.findings[0]
            .message
            .contains("`Plant`, which is not defined; no namespace is defined"),
        "{error}"
    );
    for name in ["Unit", "Other"] {
        put_namespace(&f.store, name, &format!("urn:{name}:"), Generator::Counter);
    }
    let error = put().unwrap_err();
    assert_eq!(error.findings.len(), 1);
    assert!(
        error.findings[0].message.contains("the defined namespaces are `Other`, `Unit`"),
        "{error}"
    );
    assert!(f.catalogue.list().is_empty() && f.reopened().is_empty());
}

#[test]
fn a_namespace_in_use_cannot_be_deleted() {
    let f = fixture(true);
    f.put(&plants_body(), IfMatch::Any).unwrap();
    let error = f.store.transact(|t| namespace::delete(t, "Unit")).unwrap_err();
    assert!(
        error.class == ErrorClass::Conflict
            && error.detail.contains("the Business Object \"Plants\" names it"),
        "{error}"
    );
    let mut changed = namespace::get(&f.store.read(), "Plant").unwrap().unwrap();
    changed.generator = Generator::Counter;
    assert_eq!(kind(f.store.transact(|t| namespace::put(t, changed))), ErrorClass::Conflict);
    f.delete(IfMatch::Any).unwrap();
    f.store.transact(|t| namespace::delete(t, "Unit")).unwrap();
}

#[test]
fn a_refused_definition_stores_nothing() {
    let f = fixture(true);
    let nowhere = |name: &str| Err(format!("{name} leads nowhere"));
    let targets = json!({"pushTargets": [{"bucketName": "abc"}]});
    let new = NewDefinition::from_json(&body("Plants", "Plant", &targets)).unwrap();
    let error = new.compile(&nowhere).unwrap_err();
    assert_eq!(
        error.findings,
        [Finding::at_pointer("/pushTargets/0/bucketName", "abc leads nowhere")]
    );
    assert_eq!(f.store.stats().sequence, 0);

    put_namespace(&f.store, "Taken", "https://e.org/id/Unit/", Generator::Uuid);
    assert_eq!(kind(f.put(&plants_body(), IfMatch::Any)), ErrorClass::Conflict);
    assert!(f.catalogue.list().is_empty());
    assert_eq!(f.namespaces().len(), 1);
}

#[test]
fn concurrent_puts_of_one_name_create_one_business_object() {
    let f = fixture(true);
    let created: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|i| {
                let (f, text) = (&f, format!("by {i}"));
                scope.spawn(move || {
                    f.put(&body("Plants", "Plant", &json!({"description": text})), IfMatch::Any)
                })
            })
            .collect();
        threads.into_iter().map(|t| usize::from(t.join().unwrap().unwrap().1)).sum()
    });
    assert_eq!(created, 1);
    assert_eq!(f.catalogue.get("Plants").unwrap().object.version, 8);
    assert_eq!(f.reopened(), f.catalogue.list());
}

#[test]
fn an_uncompilable_definition_stays_stored_until_it_is_replaced() {
    let f = fixture(true);
    let plants = f.put(&plants_body(), IfMatch::Any).unwrap().0;
    let mut compiled = Compiled::clone(&plants);
    compiled.object.definition.config = "type: tree".to_owned();
    let stored = StoredDefinition::from_compiled(&compiled);
    let unreadable = ("0", b"{\"of\": \"another version\"}");
    f.store
        .transact(|t| {
            BUSINESS_OBJECTS.put(t, &plants.object.id, &stored)?;
            t.put_document("business-objects", unreadable.0.as_bytes(), unreadable.1)
        })
        .unwrap();
    let reopened = Fixture {
        catalogue: Catalogue::open(f.store.clone(), defaults(true)).unwrap(),
        store: f.store.clone(),
        _dir: tempfile::tempdir().unwrap(),
    };
    assert_eq!(reopened.catalogue.get("Plants"), None);
    assert!(reopened.catalogue.list().is_empty());
    let (replaced, created) = reopened.put(&plants_body(), IfMatch::Version(1)).unwrap();
    assert!(!created);
    assert_eq!((&replaced.object.id, replaced.object.version), (&plants.object.id, 2));
    let kept = f.store.read().read_document("business-objects", b"0").unwrap();
    assert_eq!(kept.as_deref(), Some(unreadable.1.as_slice()));
}

#[test]
fn a_definition_that_does_not_compile_keeps_its_protections() {
    let f = fixture(true);
    let protected = json!({"review": "required", "approvers": ["user:ada"]});
    let plants = f.put(&body("Plants", "Plant", &protected), IfMatch::Any).unwrap().0;
    let mut compiled = Compiled::clone(&plants);
    compiled.object.definition.config = "type: tree".to_owned();
    let stored = StoredDefinition::from_compiled(&compiled);
    f.store.transact(|t| BUSINESS_OBJECTS.put(t, &plants.object.id, &stored)).unwrap();
    let catalogue = Catalogue::open(f.store.clone(), defaults(true)).unwrap();
    let put = |more: &Value, force| {
        let new = CompiledDefinition::from_json(&body("Plants", "Plant", more)).unwrap();
        let by = Requester { force, ..Requester::new(&NoClient, "local") };
        catalogue.put(by, new, Preconditions::default())
    };
    let error = put(&json!({}), false).unwrap_err();
    assert_eq!(error.class, ErrorClass::Unconfirmed);
    assert!(error.detail.contains("review") && error.detail.contains("approvers"), "{error}");
    assert_eq!(
        put(&protected, false).unwrap().value().object.definition.review(),
        Review::Required
    );
    assert!(put(&json!({}), true).is_ok());
}

#[test]
fn more_than_one_page_is_read() {
    let f = fixture(true);
    for i in 0..129 {
        f.put(&body(&format!("P{i:03}"), "Plant", &json!({})), IfMatch::Any).unwrap();
    }
    assert_eq!(f.reopened().len(), 129);
    assert_eq!(f.reopened(), f.catalogue.list());
}

#[test]
fn everything_is_restored_after_a_restart() {
    let Fixture { _dir: dir, store, catalogue } = fixture(true);
    let new = CompiledDefinition::from_json(&plants_body()).unwrap();
    let by = Requester::new(&NoClient, "local");
    let plants = catalogue.put(by, new, Preconditions::default()).unwrap().into_value();
    let counter = Namespace {
        name: "C".to_owned(),
        uri_base: "urn:c:".to_owned(),
        generator: Generator::Counter,
        created_at: String::new(),
    };
    let counter = store.transact(|t| namespace::put(t, counter)).unwrap().0.into_value();
    store.transact(|t| namespace::mint_identifier(t, &counter)).unwrap();
    drop((store, catalogue));

    let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
    let catalogue = Catalogue::open(store.clone(), defaults(true)).unwrap();
    assert_eq!(catalogue.list(), [plants]);
    assert_eq!(namespace::get(&store.read(), "C").unwrap(), Some(counter.clone()));
    let (second, _) = store.transact(|t| namespace::mint_identifier(t, &counter)).unwrap();
    assert_eq!(second.as_str(), "urn:c:2");
}

#[test]
fn the_warning_of_a_default_base_says_whether_it_is_there_and_why() {
    let f = fixture(true);
    let (plants, _) = f.put(&plants_body(), IfMatch::Any).unwrap();
    let assert_says = |found: &[Finding], text: &str| {
        assert!(found.iter().any(|warning| warning.message.contains(text)), "{found:?}");
    };
    let stored = f.catalogue.collect_warnings(std::slice::from_ref(&plants)).unwrap().remove(0);
    assert_says(
        &stored,
        "`Plant` was created with the default base <https://e.org/id/Plant/>; until",
    );
    let (_dir, store) = open_store();
    let settings = CatalogueSettings { base_url: None, ..defaults(true) };
    let catalogue = Catalogue::open(store, settings).unwrap();
    let ((), tried) = catalogue.dry_run(&plants, |_| Ok(())).unwrap();
    assert_says(
        &tried,
        "`Plant` will be created with the default base <urn:penstock:gateway-1:Plant:>, because `service.base-url` is not set",
    );
}

/// A record of a version without namespaces in definitions and without prefixes in conditions.
fn earlier_record(id: &str) -> Vec<u8> {
    let config = "type: object\npath: Plant:.\nfields:\n  kind: {type: resource, path: \
                  <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>}\n";
    json!({
        "object": {
            "id": id,
            "name": "Plants",
            "description": "",
            "enabled": true,
            "config": config,
            "conditions": [{"predicate": "rdf:type", "value": "http://e/Plant"}],
            "pushTargets": [],
            "exportOnChange": false,
            "version": 3,
            "createdAt": "2026-03-01T12:00:00Z",
            "updatedAt": "2026-03-02T12:00:00Z",
            "createdNamespaces": ["Plant"],
        },
        "namespaces": ["Plant"],
    })
    .to_string()
    .into_bytes()
}

#[test]
fn a_definition_without_prefixes_keeps_its_meaning_until_it_is_saved() {
    let f = fixture(true);
    let id = "0199d0c0-0000-7000-8000-000000000000";
    f.store
        .transact::<_, Error>(|t| {
            t.put_document("business-objects", id.as_bytes(), &earlier_record(id))
        })
        .unwrap();
    let catalogue = Catalogue::open(f.store.clone(), defaults(true)).unwrap();
    let there = catalogue.get("Plants").unwrap();
    assert_eq!((there.object.version, there.object.definition.namespaces.len()), (3, 0));
    assert_eq!(there.conditions[0].0.as_str(), "rdf:type");
    let warnings = |of: &Arc<Compiled>| {
        catalogue.collect_warnings(std::slice::from_ref(of)).unwrap().remove(0)
    };
    let found = warnings(&there);
    let rdf_type = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
    assert!(
        found
            .iter()
            .any(|warning| warning.place == Place::Pointer("/conditions/0/predicate".to_owned())
                && warning.message.contains("save the definition again")
                && warning.message.contains(rdf_type)),
        "{found:?}"
    );

    let body = serde_json::to_vec(&there.object.definition).unwrap();
    let new = CompiledDefinition::from_json(&body).unwrap();
    let by = Requester::new(&NoClient, "local");
    let saved = catalogue.put(by, new, Preconditions::default()).unwrap().into_value();
    assert_eq!(saved.object.version, 4);
    assert_eq!(saved.object.definition, there.object.definition);
    assert_eq!(saved.conditions[0].0.as_str(), rdf_type);
    assert!(!warnings(&saved).iter().any(|w| w.message.contains("again")));
    assert_eq!(f.reopened(), std::slice::from_ref(&saved));

    // Older versions do not expand prefixes in conditions and need the full IRI.
    let stored = f.store.read().read_document("business-objects", id.as_bytes()).unwrap().unwrap();
    let stored: Value = serde_json::from_slice(&stored).unwrap();
    assert_eq!(stored["object"]["conditions"][0]["predicate"], rdf_type);
}

#[test]
fn a_definition_that_earlier_versions_misread_raises_the_format() {
    let root = "type: object\npath: Plant:.\nprefixes: {rdf: 'http://own.example/'}\nfields:\n  ";
    let known = format!("{root}name: {{type: string, path: rdf:name, datatype: rdf:text}}");
    let full = json!([{"predicate": "http://e/a", "value": "urn:x:y"}]);
    for (config, conditions, format) in [
        (known.clone(), full, Format::V2),
        (known.clone(), json!([{"predicate": "rdf:a", "value": "urn:x:y"}]), Format::V3),
        (known.clone(), json!([{"predicate": "http://e/a", "value": "saref:Pump"}]), Format::V3),
        (format!("{root}name: {{type: string, path: saref:name}}"), json!([]), Format::V3),
        (
            format!("{root}name: {{type: string, path: rdf:name, datatype: xsd:token}}"),
            json!([]),
            Format::V3,
        ),
        (format!("{known}\nlabel: name"), json!([]), Format::V3),
        (format!("{known}\nunknownFields: ignore"), json!([]), Format::V3),
        (format!("{known}\ntypes: [rdf:Plant]"), json!([]), Format::V3),
        (
            format!("{root}name: {{type: string, required: true, path: rdf:name}}\nkey: name"),
            json!([]),
            Format::V3,
        ),
        (known.clone(), json!([{"predicate": "http://e/a", "value": "released"}]), Format::V4),
        (
            known.clone(),
            json!([{"predicate": "rdf:a", "value": "1", "datatype": "xsd:integer"}]),
            Format::V4,
        ),
        (format!("{known}\nabsent: ''\nlabel: name"), json!([]), Format::V4),
        (
            format!("{root}name: {{type: string, path: rdf:name, accept: scalar}}"),
            json!([]),
            Format::V4,
        ),
    ] {
        let f = fixture(true);
        let body = json!({"name": "Plants", "config": config, "conditions": conditions});
        f.put(body.to_string().as_bytes(), IfMatch::Any).unwrap();
        assert_eq!(f.store.format(), format, "{body}");
    }
}

#[test]
fn losing_ten_thousand_objects_always_needs_a_confirmation() {
    let f = fixture(true);
    let kind = NamedNode::new_unchecked("http://e/kind");
    let ingest = |from: u32, to: u32, value: &str| {
        let value = NamedNode::new_unchecked(value);
        let graph = NamedNode::new_unchecked("https://e.org/id/Plant/");
        f.store
            .transact::<_, Error>(|t| {
                for number in from..to {
                    let subject =
                        NamedNode::new_unchecked(format!("https://e.org/id/Plant/{number}"));
                    let quad = Quad::new(subject, kind.clone(), value.clone(), graph.clone());
                    t.insert(quad.as_ref())?;
                }
                Ok(())
            })
            .unwrap();
    };
    let with = |value: &str| {
        let conditions = json!({"conditions": [{"predicate": kind.as_str(), "value": value}]});
        body("Plants", "Plant", &conditions)
    };
    f.put(&plants_body(), IfMatch::Any).unwrap();
    ingest(0, 10_001, "http://e/a");
    ingest(10_001, 20_000, "http://e/b");
    let error = f.put(&with("http://e/a"), IfMatch::Any).err();
    assert_eq!(error, None, "9,999 of 20,000 are less than half of them");
    f.put(&plants_body(), IfMatch::Any).unwrap();
    ingest(20_000, 20_001, "http://e/b");
    let error = f.put(&with("http://e/a"), IfMatch::Any).unwrap_err();
    assert_eq!(error.class, ErrorClass::Unconfirmed);
    assert!(error.detail.contains("at least 10000 objects"), "{error}");
    let by = Requester { force: true, ..Requester::new(&NoClient, "local") };
    let new = CompiledDefinition::from_json(&with("http://e/a")).unwrap();
    f.catalogue.put(by, new, Preconditions::default()).unwrap();
}

#[test]
fn pages_are_parts_of_the_sorted_whole() {
    let f = fixture(true);
    for name in ["Pumps", "Lines", "Plants", "Areas"] {
        f.put(&body(name, name, &json!({})), IfMatch::Any).unwrap();
    }
    let all = f.catalogue.list();
    assert_eq!(f.catalogue.list_page(None, 3), all[..3]);
    for (index, after) in all.iter().enumerate() {
        let after = after.object.definition.name.as_str();
        assert_eq!(f.catalogue.list_page(Some(after), 9), all[index + 1..]);
        assert_eq!(
            f.catalogue.list_page(Some(after), 1),
            all[index + 1..].iter().take(1).cloned().collect::<Vec<_>>()
        );
    }
    assert_eq!(f.catalogue.list_page(Some("Lz"), 9), all[2..]);
}

#[test]
fn saving_a_definition_reads_no_other_one() {
    let f = fixture(true);
    let mut enabled = true;
    let mut steps_of_save = || {
        enabled = !enabled;
        let before = f.store.step_count();
        f.put(&body("Plants", "Plant", &json!({"enabled": enabled})), IfMatch::Any).unwrap();
        f.store.step_count() - before
    };
    steps_of_save();
    let alone = steps_of_save();
    for index in 0..20 {
        f.put(&body(&format!("Pumps {index}"), &format!("Pump{index}"), &json!({})), IfMatch::Any)
            .unwrap();
    }
    assert_eq!(steps_of_save(), alone);
}
