//! An incremental export has exactly what changed since the last export.
use crate::agreement::{get, read_data, send, string, view_all, with_gateway};
use crate::{any_shape, data, documents, text};
use penstock_base::json::{self, Json};
use penstock_model::change_feed::{has_changes, read_cursor};
use penstock_model::ingest::{Body, BodyForm, Mode, Request, ingest};
use penstock_model::mapping::Shape;
use penstock_model::resource::Compiled;
use penstock_model::testing::{LIMITS, local_request};
use penstock_resources::export::ExportKind;
use penstock_service::gateway::Gateway;
use penstock_test_support::{exports, until};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use tokio::runtime::Runtime;

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn an_incremental_export_has_exactly_what_changed(
        (shape, [old, new]) in data::with(any_shape(), data::unnamed_versions),
        seed in 1..u64::MAX,
    ) {
        // The root has a namespace of its own, so that nested objects do not belong to the Business Object.
        let shape = Shape { namespace: "Root".to_owned(), ..shape };
        with_gateway(&shape, true, |runtime, gateway, business_object| {
            check_increment(runtime, gateway, business_object, [&old, &new], seed);
        });
    }
}

/// Exports the old objects, removes some, changes some, and sends others again. Then checks what is exported.
fn check_increment(
    runtime: &Runtime,
    gateway: &Gateway,
    business_object: &Compiled,
    [old, new]: [&[Json]; 2],
    mut seed: u64,
) {
    send(gateway, business_object, Mode::Add, &text::elements(old));
    let running = exports::run(&gateway.exporter);
    runtime.block_on(until_exported(gateway, business_object));

    let before: BTreeMap<String, String> = view_all(gateway, business_object).into_iter().collect();
    let mut replaced = BTreeSet::new();
    for ((uri, shown), new) in before.iter().zip(new) {
        match data::draw(&mut seed, 4) {
            0 => send(gateway, business_object, Mode::Delete, &format!("{{\"uri\":\"{uri}\"}}")),
            1 => send(gateway, business_object, Mode::Add, shown),
            number => {
                replaced.insert(uri.clone());
                if number == 2 {
                    send(gateway, business_object, Mode::Replace, &text::write(new));
                } else {
                    replace_in_document(gateway, business_object, new);
                }
            }
        }
    }
    runtime.block_on(until_exported(gateway, business_object));
    runtime.block_on(running.stop());

    let after: BTreeMap<String, String> = view_all(gateway, business_object).into_iter().collect();
    let (mut changed, removed) = read_changes(gateway);
    // The file may have an object whose replacement is the same.
    changed.retain(|uri, shown| !replaced.contains(uri) || before.get(uri) != Some(&*shown));
    let is_removed = |uri: &&String| !after.contains_key(*uri);
    let expected: BTreeSet<String> = before.keys().filter(is_removed).cloned().collect();
    assert_eq!(removed, expected);
    let is_changed = |(uri, shown): &(&String, &String)| before.get(*uri) != Some(*shown);
    let expected = after.iter().filter(is_changed);
    let expected: BTreeMap<String, String> =
        expected.map(|(uri, shown)| (uri.clone(), shown.clone())).collect();
    assert_eq!(changed, expected);
}

/// Waits until every change is in an export.
async fn until_exported(gateway: &Gateway, business_object: &Compiled) {
    let id = &business_object.object.id;
    until("every change is in an export", async || {
        let read = gateway.store.read();
        let cursor = read_cursor(&read, id).unwrap().filter(|cursor| !cursor.targets.is_empty());
        cursor.is_some_and(|cursor| !has_changes(&read, id, &cursor).unwrap())
    })
    .await;
}

fn replace_in_document(gateway: &Gateway, business_object: &Compiled, new: &Json) {
    let mut with_document = business_object.clone();
    let mapping = &mut with_document.mapping;
    let form = documents::form_of(&mapping.root);
    let document = documents::write(&mapping.root, &form, std::slice::from_ref(new));
    mapping.document = Some(Box::new(form));
    let body = Body::Json(document.as_bytes());
    let request = local_request(gateway.catalogue.watch(), &with_document, Mode::Replace, body);
    let request = Request { form: BodyForm::Document, ..request };
    ingest(&gateway.store, &LIMITS, &request).unwrap();
}

/// Reads the changed objects, as they were exported last, and the URIs of the removed ones.
fn read_changes(gateway: &Gateway) -> (BTreeMap<String, String>, BTreeSet<String>) {
    let (mut changed, mut removed) = (BTreeMap::new(), BTreeSet::new());
    let exports = gateway.exporter.list(None, 100).unwrap();
    for export in exports.iter().rev().filter(|export| export.kind != ExportKind::Full) {
        let data = json::parse(read_data(gateway, &export.id).as_bytes(), 128).unwrap();
        let Json::Array(objects) = data else { panic!("{data} is no list") };
        for object in objects {
            let uri = string(get(&object, "uri"));
            if export.kind == ExportKind::Deleted {
                removed.insert(uri);
            } else {
                changed.insert(uri, text::write(&object));
            }
        }
    }
    (changed, removed)
}
