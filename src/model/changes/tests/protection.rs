//! What protects the members of Business Objects that require a review.
use super::*;

/// Defines a Business Object over the parts.
fn define_parts(plant: &Plant, name: &str, review: &str) -> Arc<Compiled> {
    let config =
        "type: object\npath: Part:.\nfields: {label: {type: string, path: <http://p/label>}}\n";
    put_definition(&plant.catalogue, &json!({"name": name, "config": config, "review": review}))
}

#[test]
fn removals_by_others_leave_objects_that_require_a_review_in_place() {
    let plant = Plant::new("off", "counter");
    plant.ingest(Mode::Add, PUMP);
    let pieces = define_parts(&plant, "Piece", "off");
    define_parts(&plant, "Part", "required");
    let parts = |plant: &Plant| {
        plant.quads().iter().filter(|quad| quad.starts_with("<http://x/part/")).count()
    };
    let stored = parts(&plant);
    let answer = plant.ingest(Mode::Replace, r#"{"uri": "http://x/pump/1", "name": "north"}"#);
    assert_eq!((answer.deleted, parts(&plant)), (0, stored));
    assert_eq!(answer.warnings.len(), 2);
    assert!(answer.warnings[0].message.contains("requires a review"), "{:?}", answer.warnings);

    // An ingestion that changes them is refused, whatever it goes into.
    let with_part = r#"{"uri": "http://x/pump/1", "parts": [{"label": "new"}]}"#;
    let error = plant.send(Mode::Add, with_part, ReviewStep::None).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(error.detail.contains("\"Part\"") && error.detail.contains("bypass=true"), "{error}");

    // So does the retention of another Business Object, and of one that has them nested.
    assert_eq!(expire(&plant, &pieces, "http://x/part/1"), kept(1, "http://x/part/1"));
    assert_eq!(parts(&plant), stored);
    assert_eq!(expire(&plant, &plant.pumps, "http://x/pump/1"), KeptObjects::default());
    assert_eq!((parts(&plant), plant.quads().len()), (stored, stored));
    ingest_with_parts(&plant);
    assert_eq!(expire(&plant, &plant.pumps, "http://x/pump/2"), kept(2, "http://x/part/3"));
    assert_eq!(parts(&plant), stored + 2);
    // Its own retention removes them.
    let required = plant.catalogue.get("Part").unwrap();
    assert_eq!(expire(&plant, &required, "http://x/part/1"), KeptObjects::default());
    assert_eq!(parts(&plant), stored + 1);
}

/// Ingests a pump with two parts, whichever reviews there are.
fn ingest_with_parts(plant: &Plant) {
    assert_eq!(plant.bypass("Pump", Mode::Add, PUMP).unwrap().created, 1);
}

fn kept(count: u64, first: &str) -> KeptObjects {
    KeptObjects { count, first: Some(first.to_owned()) }
}

/// Removes an object as the retention does, and returns what stays.
fn expire(plant: &Plant, business_object: &Compiled, uri: &str) -> KeptObjects {
    let watch = plant.catalogue.watch();
    let request = local_request(watch, business_object, Mode::Delete, Body::Json(b""));
    let uris = [oxrdf::NamedNode::new_unchecked(uri)];
    let always = &mut |_: &Transaction<'_>, _: &oxrdf::NamedNode| Ok(true);
    let kept = crate::ingest::remove_expired(&plant.store, &LIMITS, &request, &uris, always);
    kept.unwrap().expect("the definition is current")
}

#[test]
fn a_limited_credential_is_refused_without_the_names_of_others() {
    let plant = Plant::new("off", "counter");
    let part = define_parts(&plant, "Part", "required");
    let body = format!(r#"{{"data": [{PUMP}]}}"#);
    let request = plant.request(Mode::Add, Body::Json(body.as_bytes()));
    for (scope, is_named) in
        [(&[&*plant.pumps] as &[&Compiled], false), (&[&*plant.pumps, &*part], true)]
    {
        let error = plant.run(&Request { write_scope: Some(scope), ..request }).unwrap_err();
        assert_eq!(error.class, ErrorClass::Conflict, "{error}");
        assert_eq!(error.detail.contains("\"Part\""), is_named, "{error}");
        assert_eq!(error.detail.contains("another Business Object"), !is_named, "{error}");
        let overriding = Request { write_scope: Some(scope), bypass: true, ..request };
        let warnings = plant.run(&overriding).unwrap().warnings;
        let warning = warnings.iter().find(|one| one.message.contains("bypass=true")).unwrap();
        assert_eq!(warning.message.contains("\"Part\""), is_named, "{warnings:?}");
    }
}

#[test]
fn two_business_objects_that_require_reviews_of_the_same_objects_bypass_each_other() {
    let plant = Plant::new("required", "counter");
    define_parts(&plant, "Part", "required");
    let error = plant.send(Mode::Add, PUMP, ReviewStep::None).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(error.detail.contains("bypass=true"), "{error}");
    let sent = plant.bypass("Pump", Mode::Add, PUMP).unwrap();
    assert_eq!(sent.change, Some(ChangeState::Submitted), "its own review is not bypassed");
    let warnings = |answer: &Answer| -> Vec<String> {
        answer.warnings.iter().map(|warning| warning.message.clone()).collect()
    };
    assert!(warnings(&sent)[0].contains("\"Part\""), "{sent:?}");
    let names = |id: &str| plant.find(id).bypassed;
    assert_eq!(names(&sent.ingestion_id), Some(vec!["Part".to_owned()]));
    assert_eq!(plant.quads(), Vec::<String>::new());
    plant.approve(&sent.ingestion_id).unwrap();
    assert!(!plant.quads().is_empty());

    // The same objects through the other one.
    let part = r#"{"uri": "http://x/part/1", "label": "new"}"#;
    let sent = plant.bypass("Part", Mode::Update, part).unwrap();
    assert_eq!(names(&sent.ingestion_id), Some(vec!["Pump".to_owned()]));
    // What it overrides must be what was seen.
    define_parts(&plant, "Piece", "off");
    let id = plant.bypass("Pump", Mode::Add, PUMP).unwrap().ingestion_id;
    define_parts(&plant, "Piece", "required");
    let error = plant.approve(&id).unwrap_err();
    assert!(error.detail.contains("rebase"), "{error}");
    plant.take(&id, ChangeAction::Rebase, IfMatch::Any).unwrap();
    assert_eq!(names(&id), Some(vec!["Part".to_owned(), "Piece".to_owned()]));
    plant.approve(&id).unwrap();

    // A change without it overrides no review. Its warnings say what would be.
    let sent = plant.ingest(Mode::Replace, r#"{"uri": "http://x/pump/1", "name": "north"}"#);
    assert_eq!(names(&sent.ingestion_id), None);
    let texts = warnings(&sent);
    assert!(texts.len() == 2 && texts[0].contains("would stay stored"), "{texts:?}");
}

#[test]
fn a_business_object_that_does_not_compile_protects_only_its_namespaces() {
    let plant = Plant::new("off", "counter");
    let parts = define_parts(&plant, "Part", "required");
    let valve = json!({
        "name": "Valve",
        "config": "type: object\npath: Valve:.\nfields: {name: {type: string, path: <http://p/name>}}\n",
        "namespaces": [{"name": "Valve", "generator": "counter"}],
    });
    let valves = put_definition(&plant.catalogue, &valve);
    damage_definition(&plant, &parts, "type: object", "type: tree");
    let plant = plant.restart();
    assert!(plant.catalogue.get("Part").is_none());
    let ingest = |business_object: &Compiled, data: &str| {
        let body = format!(r#"{{"data": [{data}]}}"#);
        let watch = plant.catalogue.watch();
        let body = Body::Json(body.as_bytes());
        let request = local_request(watch, business_object, Mode::Add, body);
        plant.run(&request)
    };
    let valve = ingest(&valves, r#"{"name": "a"}"#).unwrap().objects[0].uri.clone();
    ingest(&plant.pumps, r#"{"name": "without parts"}"#).unwrap();
    let error = ingest(&plant.pumps, PUMP).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(
        error.detail.contains("\"Part\"") && error.detail.contains("does not compile"),
        "{error}"
    );
    // So does retention.
    assert_eq!(expire(&plant, &valves, &valve), KeptObjects::default());
    ingest_with_parts(&plant);
    assert_eq!(expire(&plant, &plant.pumps, "http://x/pump/2").count, 2);
}

/// Replaces a text in a stored definition, as another version could have stored it.
fn damage_definition(plant: &Plant, business_object: &Compiled, from: &str, to: &str) {
    let id = business_object.object.id.as_bytes();
    let damage = |transaction: &mut Transaction<'_>| {
        let stored = transaction.read_document("business-objects", id)?.unwrap();
        let text = String::from_utf8(stored).unwrap().replace(from, to);
        transaction.put_document("business-objects", id, text.as_bytes())
    };
    plant.store.transact(damage).unwrap();
}

/// Replaces a definition although members are lost.
fn put_forced(plant: &Plant, definition: &Value) {
    let definition =
        crate::resource::CompiledDefinition::from_json(definition.to_string().as_bytes());
    let requester = crate::catalogue::Requester::new(&NoClient, "local");
    let requester = crate::catalogue::Requester { force: true, ..requester };
    plant.catalogue.put(requester, definition.unwrap(), Preconditions::default()).unwrap();
}

#[test]
fn only_members_count_as_holders_of_a_changed_object() {
    let plant = Plant::new("off", "counter");
    plant.ingest(Mode::Add, PUMP);
    let pieces = define_parts(&plant, "Piece", "off");
    let mut others = definition("required", "counter");
    others["conditions"] = json!([{"predicate": "http://p/is", "value": "http://x/other"}]);
    // More objects than may hold it refer to the part by the same property, and none is a pump.
    let iri = |text: &str| oxrdf::NamedNode::new_unchecked(text);
    let refer = |transaction: &mut Transaction<'_>| {
        for number in 0..10_050 {
            let subject = iri(&format!("http://x/box/{number}"));
            let (part, graph) = (iri("http://x/part/1"), iri("http://x/box/"));
            let quad = oxrdf::Quad::new(subject, iri("http://p/part"), part, graph);
            transaction.insert(quad.as_ref())?;
        }
        Ok::<_, penstock_store::Error>(())
    };
    plant.store.transact(refer).unwrap();
    put_forced(&plant, &others);
    let body = Body::Json(br#"{"data": [{"uri": "http://x/part/1", "label": "new"}]}"#);
    let watch = plant.catalogue.watch();
    let request = local_request(watch, &pieces, Mode::Update, body);
    let update = || plant.run(&request);
    assert_eq!(update().unwrap().updated, 1);
    assert_eq!(expire(&plant, &pieces, "http://x/part/2"), KeptObjects::default());
    // One pump among them is enough.
    put_forced(&plant, &definition("required", "counter"));
    assert_eq!(expire(&plant, &pieces, "http://x/part/1").count, 1);
    let body = Body::Json(br#"{"data": [{"uri": "http://x/part/1", "label": "newer"}]}"#);
    let request = local_request(watch, &pieces, Mode::Update, body);
    let error = plant.run(&request).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
}

#[test]
fn a_deletion_counts_what_objects_under_review_hold() {
    let plant = Plant::new("off", "counter");
    plant.ingest(Mode::Add, PUMP);
    put_definition(&plant.catalogue, &definition("required", "counter"));
    let pieces = define_parts(&plant, "Piece", "off");
    let count = plant.catalogue.count_deletion(&pieces, u64::MAX).unwrap();
    assert_eq!((count.objects, count.kept), (0, 2));
}

#[test]
fn deleting_with_objects_needs_a_bypass_where_a_review_is_required() {
    let plant = Plant::new("required", "counter");
    let requester = crate::catalogue::Requester::new(&NoClient, "local");
    let begin = |bypass| {
        let requester = crate::catalogue::Requester { bypass, ..requester };
        plant.catalogue.begin_deletion(requester, "Pump", Preconditions::default())
    };
    let error = begin(false).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    assert!(error.detail.contains("bypass=true"), "{error}");
    assert!(begin(true).is_ok());
    // Only what it overrides is in the audit trail.
    for (review, is_bypassed) in [("required", true), ("off", false)] {
        let plant = Plant::new(review, "counter");
        let bypassed = std::cell::Cell::new(None);
        let on_commit = |_: &mut Transaction<'_>, change: &crate::catalogue::Change<'_>| {
            bypassed.set(Some(change.bypassed));
            Ok(())
        };
        let on_commit: crate::catalogue::CommitHook<'_> = &on_commit;
        let requester = crate::catalogue::Requester {
            bypass: true,
            on_commit: Some(on_commit),
            ..crate::catalogue::Requester::new(&NoClient, "local")
        };
        plant.catalogue.begin_deletion(requester, "Pump", Preconditions::default()).unwrap();
        assert_eq!(bypassed.get(), Some(is_bypassed));
    }
}
