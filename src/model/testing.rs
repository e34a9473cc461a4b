//! Fixtures for tests and benches of this crate and others: a store in a temporary folder, a Business Object, and
//! requests without a client. The functions panic on an error, except those that return the answer of an ingestion.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a fixture panics on an error")]

use crate::catalogue::{Catalogue, CatalogueSettings, Requester};
use crate::change_feed::Watch;
use crate::ingest::{Answer, Body, Limits, Mode, Request, ingest};
use crate::mapping::{Mapping, Shape};
use crate::namespace::{self, Namespace};
use crate::rdf::Format;
use crate::resource::{BusinessObject, Compiled, CompiledDefinition, Definition};
use crate::shapes_graphs::{GraphMetadata, StoredGraph, TextFormat, store_graph};
use crate::{members, view};
use oxrdf::{NamedNode, Quad, Term};
use penstock_base::Preconditions;
use penstock_base::commit::{GuardedStore, NoClient};
use penstock_base::error::GatewayError;
use penstock_config::ShapesLimits;
use penstock_resources::namespace::Generator;
use penstock_store::{Options, Pattern, Read, Store};
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tempfile::TempDir;

/// The default limits of a gateway, but for more time and memory for a validation.
pub static LIMITS: LazyLock<Limits> = LazyLock::new(|| {
    let shapes = ShapesLimits { time: Duration::from_mins(1), memory: 64 << 20 };
    Limits { shapes, ..Limits::default() }
});

/// Opens a new store in a temporary folder, which must outlive it.
pub fn open_store() -> (TempDir, Store) {
    open_store_with(Options::default())
}

fn open_store_with(options: Options) -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), options, &mut |_| {}).unwrap();
    (dir, store)
}

/// Returns the settings of the catalogue of `https://plant.example`, which creates namespaces.
pub fn catalogue_settings() -> CatalogueSettings {
    CatalogueSettings {
        base_url: Some("https://plant.example".to_owned()),
        gateway_id: "gateway-1".to_owned(),
        auto_create_namespaces: true,
        sources: std::collections::BTreeMap::new(),
    }
}

/// Creates or replaces the Business Object with this definition. Its targets need not exist.
pub fn put_definition(catalogue: &Catalogue, definition: &serde_json::Value) -> Arc<Compiled> {
    let requester = Requester::new(&NoClient, "local");
    let definition = CompiledDefinition::from_json(definition.to_string().as_bytes()).unwrap();
    catalogue.put(requester, definition, Preconditions::default()).unwrap().into_value()
}

/// Returns an enabled Business Object that no catalogue has.
pub fn compile_object(id: &str, name: &str, mapping: Mapping) -> Compiled {
    let definition = Definition { name: name.to_owned(), enabled: true, ..Definition::default() };
    let object = BusinessObject {
        id: id.to_owned(),
        definition,
        version: 1,
        created_at: String::new(),
        updated_at: String::new(),
        updated_by: None,
        created_namespaces: Vec::new(),
        changed_types: false,
        deleting: None,
    };
    Compiled { object, mapping, conditions: Vec::new() }
}

/// Stores a namespace.
pub fn put_namespace(store: &Store, name: &str, uri_base: &str, generator: Generator) {
    let namespace = Namespace {
        name: name.to_owned(),
        uri_base: uri_base.to_owned(),
        generator,
        created_at: String::new(),
    };
    store.transact(|transaction| namespace::put(transaction, namespace)).unwrap();
}

/// Adds a quad as another view would.
pub fn insert_quad(
    store: &Store,
    subject: &str,
    predicate: &str,
    object: impl Into<Term>,
    graph: &str,
) {
    let node = NamedNode::new_unchecked;
    let quad = Quad::new(node(subject), node(predicate), object, node(graph));
    store.transact(|transaction| transaction.insert(quad.as_ref())).unwrap();
}

/// Stores a shapes graph in Turtle.
pub fn put_shapes_graph(store: &Store, name: &str, turtle: &str) {
    let metadata = GraphMetadata {
        name: name.to_owned(),
        format: TextFormat::Rdf(Format::Turtle),
        version: 1,
        created_at: String::new(),
        updated_at: String::new(),
        updated_by: String::new(),
    };
    let graph = StoredGraph { metadata, text: turtle.to_owned() };
    store.transact(|transaction| store_graph(transaction, &graph)).unwrap();
}

/// Returns all quads in N-Quads syntax, sorted.
pub fn list_quads(read: &dyn Read) -> Vec<String> {
    let mut quads = Vec::new();
    let mut visit = |quad: Quad| {
        quads.push(quad.to_string());
        ControlFlow::Continue(())
    };
    read.for_each(&Pattern::default(), &mut visit).unwrap();
    quads.sort();
    quads
}

/// Returns the URIs of all objects that belong to the Business Object.
pub fn list_members(read: &dyn Read, business_object: &Compiled) -> Vec<String> {
    let members = members::list_members(read, business_object, None, usize::MAX).unwrap();
    members.into_iter().map(NamedNode::into_string).collect()
}

/// Returns the JSON of an object and the warnings of the view.
pub fn render_object(
    read: &dyn Read,
    business_object: &Compiled,
    uri: &str,
) -> (String, Vec<String>) {
    let (mut out, mut warnings) = (Vec::new(), Vec::new());
    let uri = NamedNode::new_unchecked(uri);
    view::render_object(read, &business_object.mapping.root, &uri, &mut out, &mut warnings)
        .unwrap();
    (String::from_utf8(out).unwrap(), warnings.iter().map(ToString::to_string).collect())
}

/// Returns a request of local administration.
pub fn local_request<'a>(
    watch: &'a Watch,
    business_object: &'a Compiled,
    mode: Mode,
    body: Body<'a>,
) -> Request<'a> {
    Request::of_gateway(business_object, mode, "local", watch, body)
}

/// Ingests a body with the objects in `data`, as local administration does.
///
/// # Errors
/// Returns the errors of [`ingest`].
pub fn ingest_body(
    store: &GuardedStore,
    watch: &Watch,
    business_object: &Compiled,
    mode: Mode,
    body: &str,
) -> Result<Answer, GatewayError> {
    let request = local_request(watch, business_object, mode, Body::Json(body.as_bytes()));
    ingest(store, &LIMITS, &request)
}

/// A store with the namespaces of one Business Object, which tests send requests to.
#[derive(Debug)]
pub struct Fixture {
    /// The store.
    pub store: Store,
    /// The Business Object.
    pub business_object: Compiled,
    /// The limits of requests.
    pub limits: Limits,
    /// Records the changes of requests.
    pub watch: Watch,
    dir: TempDir,
}

impl Fixture {
    /// Creates a fixture with the namespace `http://x/<name>/` for each namespace of the shape. Each counts its objects.
    pub fn new(root: Shape) -> Self {
        Self::with_generator(root, Generator::Counter)
    }

    /// Creates a fixture as [`Self::new`] does, whose namespaces have this generator.
    pub fn with_generator(root: Shape, generator: Generator) -> Self {
        Self::with_options(root, generator, Options::default())
    }

    /// Creates a fixture as [`Self::with_generator`] does, whose store has these options.
    pub fn with_options(root: Shape, generator: Generator, options: Options) -> Self {
        let (dir, store) = open_store_with(options);
        let mut mapping = Mapping::new(root);
        for name in mapping.namespaces() {
            put_namespace(&store, name, &format!("http://x/{name}/"), generator);
        }
        mapping.resolve_namespaces(&store.read()).unwrap();
        let business_object = compile_object("bo-1", "Machine", mapping);
        Self { store, business_object, limits: *LIMITS, watch: Watch::default(), dir }
    }

    /// Creates a fixture with the Business Object of this definition.
    pub fn with_definition(definition: &serde_json::Value) -> Self {
        Self::with_store(open_store(), definition)
    }

    fn with_store((dir, store): (TempDir, Store), definition: &serde_json::Value) -> Self {
        let catalogue = Catalogue::open(store.clone(), catalogue_settings()).unwrap();
        let business_object = (*put_definition(&catalogue, definition)).clone();
        let watch = catalogue.watch().clone();
        Self { store, business_object, limits: *LIMITS, watch, dir }
    }

    /// Creates a fixture with the Business Object of this definition, which can name a shapes graph in Turtle.
    pub fn with_shapes(name: &str, turtle: &str, definition: &serde_json::Value) -> Self {
        let (dir, store) = open_store();
        put_shapes_graph(&store, name, turtle);
        Self::with_store((dir, store), definition)
    }

    /// Returns the folder of the store.
    pub fn dir(&self) -> &std::path::Path {
        self.dir.path()
    }

    /// Returns a request to the Business Object.
    pub fn request<'a>(&'a self, mode: Mode, body: Body<'a>) -> Request<'a> {
        local_request(&self.watch, &self.business_object, mode, body)
    }

    /// Runs a request with the limits of the fixture.
    ///
    /// # Errors
    /// Returns the errors of [`ingest`].
    pub fn run(&self, request: &Request<'_>) -> Result<Answer, GatewayError> {
        ingest(&GuardedStore::from(self.store.clone()), &self.limits, request)
    }

    /// Sends the elements of `data`, separated by commas.
    ///
    /// # Errors
    /// Returns the errors of [`ingest`].
    pub fn send(&self, mode: Mode, elements: &str) -> Result<Answer, GatewayError> {
        let body = format!("{{\"data\": [{elements}]}}");
        self.run(&self.request(mode, Body::Json(body.as_bytes())))
    }

    /// Returns all quads in N-Quads syntax, sorted.
    pub fn quads(&self) -> Vec<String> {
        list_quads(&self.store.read())
    }

    /// Returns the URIs of all objects that belong to the Business Object.
    pub fn members(&self) -> Vec<String> {
        list_members(&self.store.read(), &self.business_object)
    }

    /// Returns the JSON of an object, which must have no warnings.
    pub fn view(&self, uri: &str) -> String {
        let (json, warnings) = self.view_with_warnings(uri);
        assert_eq!(warnings, Vec::<String>::new());
        json
    }

    /// Returns the JSON of an object and the warnings of the view.
    pub fn view_with_warnings(&self, uri: &str) -> (String, Vec<String>) {
        render_object(&self.store.read(), &self.business_object, uri)
    }
}
