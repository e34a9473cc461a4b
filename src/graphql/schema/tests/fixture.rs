//! A gateway with the Business Objects `Site` and `Pump`.
use crate::query::Query;
use crate::schema::GraphqlService;
use penstock_auth::{Account, Caller, Role};
use penstock_config as config;
use penstock_model::ingest::Mode;
use penstock_model::testing::{ingest_body, put_definition};
use penstock_service::gateway::Gateway;
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::Arc;

/// A gateway with test data.
pub(super) struct Fixture {
    pub(super) gateway: Gateway,
    pub(super) graphql: GraphqlService,
    dir: tempfile::TempDir,
}

pub(super) const SITE: &str = "
type: object
path: Site:.
fields:
  uri: {type: id}
  name: {type: string, path: <urn:p:name>}
  opened: {type: date, path: <urn:p:opened>}
";

pub(super) const PUMP: &str = "
type: object
path: Pump:.
fields:
  uri: {type: id}
  serial number: {type: string, path: <urn:p:serial>, required: true}
  weight: {type: number, path: <urn:p:weight>}
  runs: {type: integer, path: <urn:p:runs>}
  active: {type: boolean, path: <urn:p:active>}
  built: {type: dateTime, path: <urn:p:built>}
  site: {type: resource, path: <urn:p:site>}
  tags: {type: array, path: <urn:p:tag>}
  readings:
    type: array
    path: <urn:p:reading>
    elements:
      type: object
      path: Reading:.
      fields:
        uri: {type: id}
        value: {type: number, path: <urn:p:value>}
        sensor: {type: resource, path: <urn:p:sensor>}
  motor:
    type: object
    path: <urn:p:motor>/Motor:.
    fields:
      maker: {type: string, path: <urn:p:maker>}
";

impl Fixture {
    pub(super) fn new(arguments: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut all = vec![format!("--service.data-dir={}", dir.path().display())];
        all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        let loaded = config::load(&config::Sources { arguments: all, ..Default::default() });
        let gateway = Gateway::open(Arc::new(loaded.unwrap().settings), &mut |_| {}).unwrap();
        let graphql = GraphqlService::new(&gateway);
        Self { gateway, graphql, dir }
    }

    pub(super) fn data_dir(&self) -> &Path {
        self.dir.path()
    }

    /// Adds sites and pumps.
    pub(super) fn with_plant_data(arguments: &[&str]) -> Self {
        let fixture = Self::new(arguments);
        fixture.define("Site", SITE);
        fixture.define("Pump", PUMP);
        fixture.send(
            "Site",
            &json!([
                {"uri": "urn:site:1", "name": "North", "opened": "2020-02-29"},
                {"uri": "urn:site:2", "name": "South"},
            ]),
        );
        fixture.send("Pump", &json!([
            {"uri": "urn:pump:1", "serial number": "A1", "weight": 10.50, "runs": 12_345_678_901_u64,
             "active": true, "built": "2024-01-01T00:00:00Z", "site": "urn:site:1", "tags": ["b", "a"],
             "readings": [{"uri": "urn:reading:1", "value": 1.0, "sensor": "urn:sensor:1"},
                          {"uri": "urn:reading:2", "value": 2}],
             "motor": {"uri": "urn:motor:1", "maker": "Acme"}},
            {"uri": "urn:pump:2", "serial number": "A2", "weight": 9, "active": false,
             "built": "2024-01-01T00:30:00+01:00", "site": "urn:site:1", "tags": [],
             "readings": [], "motor": {"uri": "urn:motor:2", "maker": "Other"}},
            {"uri": "urn:pump:3", "serial number": "B1", "site": "urn:nowhere", "tags": ["c"],
             "readings": [{"uri": "urn:reading:3", "value": -5, "sensor": "urn:sensor:2"}]},
        ]));
        fixture
    }

    pub(super) fn define(&self, name: &str, config: &str) {
        let definition =
            json!({"name": name, "description": format!("All of {name}"), "config": config});
        put_definition(&self.gateway.catalogue, &definition);
    }

    pub(super) fn send(&self, name: &str, data: &Json) {
        send(&self.gateway, name, Mode::Add, data);
    }

    pub(super) async fn run_query(&self, document: &str) -> Json {
        self.run_query_as(document, &Caller::local()).await
    }

    pub(super) async fn run_query_with(&self, document: &str, variables: &Json) -> Json {
        let query = Query::new(document.into(), variables.clone()).unwrap();
        serde_json::to_value(self.graphql.execute(query, &Caller::local()).await).unwrap()
    }

    pub(super) async fn run_query_as(&self, document: &str, caller: &Caller) -> Json {
        let query = Query { document: document.into(), ..Query::default() };
        serde_json::to_value(self.graphql.execute(query, caller).await).unwrap()
    }

    /// Returns the result of a document that must not fail.
    #[track_caller]
    pub(super) fn expect_data(mut answer: Json) -> Json {
        assert_eq!(answer.get("errors"), None, "{answer}");
        answer["data"].take()
    }

    /// Returns the URIs on a page of pumps.
    pub(super) async fn find_pumps(&self, arguments: &str) -> Vec<String> {
        let document = format!("{{ pumpConnection({arguments}) {{ nodes {{ uri }} }} }}");
        let data = Self::expect_data(self.run_query(&document).await);
        let nodes = data["pumpConnection"]["nodes"].as_array().unwrap().iter();
        nodes.map(|node| node["uri"].as_str().unwrap().replace("urn:pump:", "")).collect()
    }
}

/// Ingests an array of objects.
pub(super) fn send(gateway: &Gateway, name: &str, mode: Mode, data: &Json) {
    let business_object = gateway.catalogue.get(name).unwrap();
    let body = json!({ "data": data }).to_string();
    let watch = gateway.catalogue.watch();
    ingest_body(&gateway.store, watch, &business_object, mode, &body).unwrap();
}

pub(super) fn service_account_caller() -> Caller {
    let account: Account = serde_json::from_value(json!({
        "id": "0199c1d2-7d3e-7000-8000-000000000001",
        "familyName": "Plant",
        "email": "s@machines.example",
        "role": "Contributor",
        "enabled": true,
        "identity": {"source": "service-account", "issuer": "https://idp.example", "name": "s"},
        "clientId": "plant",
        "version": 1,
        "createdAt": "2026-03-01T12:00:00.000Z",
    }))
    .unwrap();
    Caller { account: Some(Arc::new(account)), role: Role::User, ..Caller::local() }
}
