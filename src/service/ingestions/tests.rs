use super::*;
use crate::exports::list_exports;
use crate::testing::open_gateway;
use penstock_auth::keys::NewApiKey;
use penstock_base::commit::NoClient;
use penstock_model::testing::put_definition;
use penstock_store::Read as _;
use serde_json::{Value, json};

#[test]
fn a_bypass_needs_an_admin_in_its_commit() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let pumps = put_definition(
        &gateway.catalogue,
        &json!({
            "name": "Pump",
            "config": "type: object\npath: Pump:.\nfields: {name: {type: string, path: <urn:name>}}",
        }),
    );
    let new = NewApiKey::from_json(br#"{"name": "line 4", "role": "Admin"}"#).unwrap();
    let (key, secret) = gateway.auth.keys.create_key(&Authorized::local(), new).unwrap();
    let caller = gateway.auth.keys.authenticate_key(&secret).unwrap();
    let by = gateway.auth.authorize(caller, Role::Contributor).unwrap();
    let request = |bypass| IngestionRequest {
        bypass,
        ..IngestionRequest::new(&pumps.object, Mode::Add, Trace::from_header(None))
    };
    let ingest = |bypass| {
        let body = Body::Json(br#"{"data": [{"name": "a"}]}"#);
        ingest_objects(&gateway, &by, &request(bypass), body)
    };
    assert_eq!(ingest(true).unwrap().created, 1);
    // The role is lower in the store, and memory does not know it yet.
    let demote = |transaction: &mut Transaction<'_>| {
        let id = key.id.as_bytes();
        let stored = transaction.read_document("api-keys", id)?.unwrap();
        let mut document: Value = serde_json::from_slice(&stored).unwrap();
        document["role"] = json!("Contributor");
        let document = document.to_string();
        Ok(transaction.put_document("api-keys", id, document.as_bytes())?)
    };
    gateway.store.commit::<_, GatewayError>(&NoClient, demote).unwrap();
    assert_eq!(ingest(true).unwrap_err().class, ErrorClass::Forbidden);
    assert_eq!(ingest(false).unwrap().created, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_after_a_place_that_is_no_longer_known_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let gateway = open_gateway(dir.path(), &[]);
    let (by, place) = (Authorized::local(), uuid::Uuid::now_v7().to_string());
    let ingestions = list_ingestions(&gateway, &by, Some(place.clone()), 1).await.unwrap_err();
    let exports = list_exports(&gateway, &by, Some(place), 1).await.unwrap_err();
    for error in [ingestions, exports] {
        assert_eq!(error.class, ErrorClass::Malformed);
        assert!(error.detail.contains("start again without"), "{error}");
    }
}
