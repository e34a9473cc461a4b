use super::*;
use crate::business_objects::{show_business_object, show_saved_business_object};
use crate::testing::open_gateway;
use penstock_auth::audit::Filter;
use penstock_model::ingest::Mode;
use penstock_model::testing::{ingest_body, list_members, put_definition};
use penstock_resources::business_object::BusinessObject;
use penstock_store::faults::{Failure, Faults};

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_continues_when_the_disk_has_space_again() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let (stop, stopped) = watch::channel(false);
    let worker = tokio::spawn(run_deletions(gateway.clone(), stopped));
    let definition = serde_json::json!({
        "name": "Pump",
        "config": "type: object\npath: Pump:.\nfields: {name: {type: string, path: <urn:name>}}",
    });
    let pumps = put_definition(&gateway.catalogue, &definition);
    let data: Vec<_> =
        (0..1000).map(|name| serde_json::json!({"name": name.to_string()})).collect();
    let body = serde_json::json!({ "data": data }).to_string();
    let watch = gateway.catalogue.watch();
    ingest_body(&gateway.store, watch, &pumps, Mode::Add, &body).unwrap();
    let faults = Faults::inject_below(dir.path());
    // The commit that begins the deletion, and raises the format of the store, takes some of these operations.
    faults.fail_nth(16, Failure::DiskFull, true);
    let begun = begin_deletion(&gateway, &Authorized::local(), "Pump", IfMatch::Any, false).await;
    begun.unwrap();
    while faults.first_failure().is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(gateway.catalogue.get("Pump").unwrap().object.deleting.is_some());
    faults.clear_plan();
    while gateway.catalogue.get("Pump").is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
        // The gateway does this every few seconds.
        if gateway.store.poison_cause().is_some() {
            gateway.store.reopen(&mut |_| {}).unwrap();
        }
    }
    assert_eq!(list_members(&gateway.store.read(), &pumps), Vec::<String>::new());
    let kinds = gateway.auth.audit.list(&Filter::default(), None, 2).unwrap();
    let kinds: Vec<_> = kinds.iter().map(|event| event.what.as_str()).collect();
    assert_eq!(kinds, ["business-object.deleted", "business-object.deletion-begun"]);
    stop.send(true).unwrap();
    worker.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_a_deletion_examines_no_stored_values() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let put = |field: &str| {
        let config = format!("type: object\npath: Pump:.\nfields:\n  state: {{{field}}}\n");
        let definition = serde_json::json!({"name": "Pump", "config": config});
        put_definition(&gateway.catalogue, &definition)
    };
    let pumps = put("type: string, path: <urn:state>");
    let body = r#"{"data": [{"state": "off"}]}"#;
    ingest_body(&gateway.store, gateway.catalogue.watch(), &pumps, Mode::Add, body).unwrap();
    let pumps = put("type: string, path: <urn:state>, values: {off: A}");
    let saved = show_saved_business_object(&gateway, pumps).await.unwrap();
    let begun = begin_deletion(&gateway, &Authorized::local(), "Pump", IfMatch::Any, false).await;
    let begun = show_business_object(&gateway, begun.unwrap()).await.unwrap();
    let is_examined = |shown: &BusinessObject| {
        shown.warnings.iter().any(|warning| warning.to_string().contains("stored value"))
    };
    assert!(is_examined(&saved) && !is_examined(&begun), "{:?}", begun.warnings);
}
