//! A store with the namespaces of a mapping, as the fixture of these tests.
use oxrdf::NamedNode;
use penstock_base::commit::{GuardedStore, NoClient};
use penstock_base::error::GatewayError;
use penstock_base::json::Json;
use penstock_model::change_feed::Watch;
use penstock_model::ingest::{Answer, Body, Limits, Mode, Request, ingest};
use penstock_model::mapping::{Mapping, Shape};
use penstock_model::namespace::{self, Generator, Namespace};
use penstock_model::resource::{BusinessObject, Compiled, Definition};
use penstock_model::{members, view};
use penstock_store::{Options, Pattern, Read, ReadStore, Store};
use std::ops::ControlFlow;

pub(crate) struct Fixture {
    store: Store,
    business_object: Compiled,
    _dir: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn new(root: &Shape) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let mapping = Mapping::new(root.clone());
        store
            .transact(|transaction| -> Result<(), GatewayError> {
                for name in mapping.namespaces() {
                    let namespace = Namespace {
                        name: name.to_owned(),
                        uri_base: format!("http://x/{name}/"),
                        generator: Generator::Uuid,
                        created_at: String::new(),
                    };
                    namespace::put(transaction, namespace)?;
                }
                Ok(())
            })
            .unwrap();
        let object = BusinessObject {
            id: "bo".to_owned(),
            definition: Definition { enabled: true, ..Definition::default() },
            version: 1,
            created_at: String::new(),
            updated_at: String::new(),
            updated_by: None,
            created_namespaces: Vec::new(),
        };
        let business_object = Compiled { object, mapping, conditions: Vec::new() };
        Self { store, business_object, _dir: dir }
    }

    pub(crate) fn send(&self, mode: Mode, objects: &[Json]) -> Result<Answer, GatewayError> {
        let data = crate::text::write(&Json::Array(objects.to_vec()));
        self.send_text(mode, &format!("{{\"data\":{data}}}"))
    }

    pub(crate) fn send_text(&self, mode: Mode, body: &str) -> Result<Answer, GatewayError> {
        send(&self.store.clone().into(), &self.business_object, mode, body)
    }

    pub(crate) fn view(&self, uri: &str) -> String {
        view(&self.store, &self.business_object, uri)
    }

    pub(crate) fn export(&self) -> Vec<String> {
        let uris = members(&self.store, &self.business_object);
        uris.iter().map(|uri| self.view(uri)).collect()
    }

    pub(crate) fn quads(&self) -> Vec<String> {
        let mut quads = Vec::new();
        self.store
            .read()
            .for_each(&Pattern::default(), &mut |quad| {
                quads.push(quad.to_string());
                ControlFlow::Continue(())
            })
            .unwrap();
        quads.sort();
        quads
    }
}

/// Sends a request to a Business Object.
pub(crate) fn send(
    store: &GuardedStore,
    business_object: &Compiled,
    mode: Mode,
    body: &str,
) -> Result<Answer, GatewayError> {
    let limits = Limits {
        nesting: 128,
        objects: 10_000,
        values: 1_000_000,
        idempotency_keys: 0,
        idempotency_bytes: 0,
        history: 10,
    };
    let request = Request {
        business_object,
        mode,
        check: &NoClient,
        caller: "local",
        api_key: None,
        traceparent: None,
        idempotency_key: None,
        lists_objects: true,
        watch: &Watch::default(),
        events: None,
        body: Body::Json(body.as_bytes()),
    };
    ingest(store, &limits, &request)
}

/// Returns the URIs of all objects that belong to the Business Object.
pub(crate) fn members(store: &ReadStore, business_object: &Compiled) -> Vec<String> {
    let uris = members::list_members(&store.read(), business_object, None, usize::MAX).unwrap();
    uris.into_iter().map(NamedNode::into_string).collect()
}

/// Returns an object in the form of the view.
pub(crate) fn view(store: &ReadStore, business_object: &Compiled, uri: &str) -> String {
    let (mut out, mut warnings) = (Vec::new(), Vec::new());
    let uri = NamedNode::new(uri).unwrap();
    let root = &business_object.mapping.root;
    view::render_object(&store.read(), root, &uri, &mut out, &mut warnings).unwrap();
    assert_eq!(warnings, []);
    String::from_utf8(out).unwrap()
}
