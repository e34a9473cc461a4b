//! Tests an export whose Business Object is deleted while it is rendered.
use super::*;
use crate::builder::ExportBuilder;
use crate::make::all_targets;
use penstock_base::Preconditions;
use penstock_base::error::ErrorClass;
use penstock_model::catalogue::Requester;
use penstock_resources::export::Export;
use std::collections::BTreeSet;
use std::time::Instant;

#[test]
fn old_content_is_not_queued_after_the_exports_of_a_new_business_object_with_its_name() {
    let mut fixture = Fixture::new();
    fixture.ingest_objects(0, Mode::Add, &[(0, 1, vec![])]);
    let (inner, old) = (fixture.exporter_inner(), fixture.catalogue.get(NAMES[0]).unwrap());
    let targets = all_targets(&old);
    let mut builder = ExportBuilder::new(&inner, &old, &targets);
    let outputs = builder.add_file();
    let rendered = builder.render_full(&outputs).unwrap();

    let by = Requester::new(&NoClient, "local");
    fixture.catalogue.delete(by, NAMES[0], Preconditions::default()).unwrap();
    fixture.define_object(0, &TestDefinition::exporting_to(&[0, 1]));
    let new = fixture.catalogue.get(NAMES[0]).unwrap();
    let pushed = fixture.exporter.push(&new, ExportRequester::gateway()).unwrap().exports;
    assert_eq!(pushed.len(), 2);

    let files = vec![(ExportKind::Full, rendered)];
    let refused = builder.enqueue(files, None, &mut |_, _| Ok(()), Instant::now()).unwrap_err();
    assert_eq!(refused.class, ErrorClass::Conflict, "{refused}");
    let ids = |entries: &[Export]| -> BTreeSet<String> {
        entries.iter().map(|entry| entry.id.clone()).collect()
    };
    assert_eq!(ids(&fixture.exporter.list(None, 10).unwrap()), ids(&pushed));
    let spooled = std::fs::read_dir(fixture.exporter.spool_folder()).unwrap().count();
    assert_eq!(spooled, pushed.len());
}
