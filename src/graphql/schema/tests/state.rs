//! The gateway's own types have the members of the REST API.
use super::fixture::{Fixture, SITE};
use penstock_base::Preconditions;
use penstock_base::commit::NoClient;
use penstock_base::events::EventBus;
use penstock_export::ExportRequester;
use penstock_model::catalogue::{Change, Requester};
use penstock_model::testing::put_definition;
use penstock_store::Transaction;
use serde_json::{Value as Json, json};

const DEFINITIONS: &str =
    "{ businessObjects { name validation { shapes mode } review approvers deleting { remaining }
    warnings { line column pointer message } } }";

#[tokio::test]
async fn definitions_have_their_protection_and_warnings() {
    let fixture = Fixture::new(&[]);
    fixture.define("Plain", &SITE.replace("Site", "Plain"));
    let definition = json!({
        "name": "Site", "config": SITE, "schedule": "0 3 * * *", "review": "required",
        "validation": {"shapes": [], "mode": "warn"}, "approvers": ["group:shift", "user:ada@plant.example"],
    });
    put_definition(&fixture.gateway.catalogue, &definition);
    let data = Fixture::expect_data(fixture.run_query(DEFINITIONS).await);
    let plain = &data["businessObjects"][0];
    for member in ["validation", "review", "approvers", "deleting"] {
        assert_eq!(plain[member], Json::Null, "{plain}");
    }
    // The namespace was created.
    assert_eq!(plain["warnings"].as_array().unwrap().len(), 1);
    assert_eq!(plain["warnings"][0]["pointer"], "/config");
    assert_eq!(plain["warnings"][0]["line"], Json::Null);
    let site = &data["businessObjects"][1];
    assert_eq!(site["validation"], json!({"shapes": [], "mode": "warn"}));
    assert_eq!(site["review"], "required");
    assert_eq!(site["approvers"], json!(["group:shift", "user:ada@plant.example"]));
    for (pointer, words) in
        [("/schedule", "without `pushTargets`"), ("/approvers", "no enabled account could approve")]
    {
        let mut warnings = site["warnings"].as_array().unwrap().iter();
        let warning = warnings.find(|warning| warning["pointer"] == pointer).unwrap();
        assert!(warning["message"].as_str().unwrap().contains(words), "{warning}");
    }
}

#[tokio::test]
async fn the_progress_of_a_deletion_is_current() {
    let fixture = Fixture::with_plant_data(&[]);
    let catalogue = &fixture.gateway.catalogue;
    let by = Requester::new(&NoClient, "local");
    let id =
        catalogue.begin_deletion(by, "Site", Preconditions::default()).unwrap().object.id.clone();
    let query = "{ businessObjects { name deleting { remaining } } }";
    let shown = async |remaining: u64| {
        let data = Fixture::expect_data(fixture.run_query(query).await);
        let expected = json!([{"name": "Pump", "deleting": null},
                              {"name": "Site", "deleting": {"remaining": remaining}}]);
        assert_eq!(data["businessObjects"], expected);
    };
    shown(2).await;
    let nothing = |_: &mut Transaction<'_>, _: &Change<'_>| Ok(());
    assert!(catalogue.continue_deletion(&id, 1000, &EventBus::default(), &nothing).unwrap());
    shown(0).await;
}

#[tokio::test]
async fn exports_have_their_trace_and_targets_the_age_of_their_queues() {
    let target = "--service.export.targets.away";
    let fixture = Fixture::new(&[
        &format!("{target}.type=s3"),
        &format!("{target}.endpoint=http://127.0.0.1:9"),
        &format!("{target}.access-key-id=key"),
        &format!("{target}.secret-access-key=secret"),
    ]);
    let definition =
        json!({"name": "Site", "config": SITE, "pushTargets": [{"bucketName": "away"}]});
    let compiled = put_definition(&fixture.gateway.catalogue, &definition);
    fixture.send("Site", &json!([{"uri": "urn:site:1", "name": "North"}]));
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let by = ExportRequester { traceparent: Some(traceparent), ..ExportRequester::gateway() };
    fixture.gateway.exporter.push(&compiled, by).unwrap();
    let query = "{ exports { nodes { target traceparent clock } } targets { name oldest oldestAgeSeconds } }";
    let data = Fixture::expect_data(fixture.run_query(query).await);
    let export = &data["exports"]["nodes"][0];
    assert_eq!((&export["target"], &export["traceparent"]), (&json!("away"), &json!(traceparent)));
    assert!(export["clock"].is_null() || export["clock"] == "unsynchronised", "{export}");
    let target = &data["targets"][0];
    assert!(target["oldest"].is_string() && target["oldestAgeSeconds"].is_u64(), "{target}");
}
