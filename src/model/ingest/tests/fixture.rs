//! A store with namespaces and one Business Object, which tests send requests to.
use crate::change_feed::Watch;
use crate::ingest::{Answer, Body, Limits, Mode, Request, ingest};
use crate::mapping::{Field, FieldKind, Literal, Mapping, Property, Shape, Value};
use crate::namespace::{self, Generator, Namespace};
use crate::resource::{BusinessObject, Compiled, Definition};
use crate::view;
use oxrdf::{NamedNode, Quad, QuadRef};
use penstock_base::commit::{GuardedStore, NoClient};
use penstock_base::error::{ErrorClass, GatewayError, Place};
use penstock_store::{Options, Pattern, Read, Store};
use std::ops::ControlFlow;

pub(super) const LIMITS: Limits = Limits {
    nesting: 128,
    objects: 10_000,
    values: 100_000,
    idempotency_keys: 100,
    idempotency_bytes: 1 << 20,
    history: 100,
};

pub(super) struct Fixture {
    pub(super) store: Store,
    pub(super) business_object: Compiled,
    pub(super) limits: Limits,
    watch: Watch,
    _dir: tempfile::TempDir,
}

impl Fixture {
    /// Creates a fixture with the namespace `http://x/<name>/` for each namespace of the shape.
    pub(super) fn new(root: Shape) -> Self {
        Self::with(root, Generator::Counter)
    }

    pub(super) fn with(root: Shape, generator: Generator) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let mut mapping = Mapping::new(root);
        store
            .transact(|transaction| -> Result<(), GatewayError> {
                for name in mapping.namespaces() {
                    let namespace = Namespace {
                        name: name.to_owned(),
                        uri_base: format!("http://x/{name}/"),
                        generator,
                        created_at: String::new(),
                    };
                    namespace::put(transaction, namespace)?;
                }
                Ok(())
            })
            .unwrap();
        mapping.resolve_namespaces(&store.read()).unwrap();
        let business_object = Compiled {
            object: BusinessObject {
                id: "bo-1".to_owned(),
                definition: Definition {
                    name: "Machine".to_owned(),
                    enabled: true,
                    ..Definition::default()
                },
                version: 1,
                created_at: String::new(),
                updated_at: String::new(),
                updated_by: None,
                created_namespaces: Vec::new(),
            },
            mapping,
            conditions: Vec::new(),
        };
        Self { store, business_object, limits: LIMITS, watch: Watch::default(), _dir: dir }
    }

    pub(super) fn request<'a>(&'a self, mode: Mode, body: Body<'a>) -> Request<'a> {
        Request {
            business_object: &self.business_object,
            mode,
            check: &NoClient,
            caller: "local",
            api_key: None,
            traceparent: None,
            idempotency_key: None,
            lists_objects: true,
            watch: &self.watch,
            events: None,
            body,
        }
    }

    pub(super) fn run(&self, request: &Request<'_>) -> Result<Answer, GatewayError> {
        ingest(&GuardedStore::from(self.store.clone()), &self.limits, request)
    }

    /// Sends the elements of `data`.
    pub(super) fn send(&self, mode: Mode, data: &str) -> Result<Answer, GatewayError> {
        let body = format!("{{\"data\": [{data}]}}");
        self.run(&self.request(mode, Body::Json(body.as_bytes())))
    }

    pub(super) fn add(&self, data: &str) -> Answer {
        self.send(Mode::Add, data).unwrap()
    }

    /// Sends data that must be refused, and checks that nothing was stored. Returns the pointers of the findings.
    pub(super) fn expect_refusal(&self, mode: Mode, data: &str, kind: ErrorClass) -> Vec<String> {
        let (before, sequence) = (self.quads(), self.store.stats().sequence);
        let error = self.send(mode, data).unwrap_err();
        assert_eq!(error.class, kind, "{error}");
        assert!(error.detail.starts_with("Ingestion failed: "), "{}", error.detail);
        assert!(!error.detail.contains("null"), "{}", error.detail);
        assert_eq!(self.quads(), before);
        assert_eq!(self.store.stats().sequence, sequence);
        pointers(&error)
    }

    /// Adds a quad as another view would.
    pub(super) fn insert(&self, s: &str, p: &str, o: impl Into<oxrdf::Term>, g: &str) {
        let node = NamedNode::new_unchecked;
        let quad = Quad::new(node(s), node(p), o, node(g));
        self.store.transact(|transaction| transaction.insert(QuadRef::from(&quad))).unwrap();
    }

    pub(super) fn quads(&self) -> Vec<String> {
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

    pub(super) fn view(&self, uri: &str) -> String {
        let (out, warnings) = self.view_with_warnings(uri);
        assert_eq!(warnings, Vec::<String>::new());
        out
    }

    pub(super) fn view_with_warnings(&self, uri: &str) -> (String, Vec<String>) {
        let (mut out, mut warnings) = (Vec::new(), Vec::new());
        let uri = NamedNode::new_unchecked(uri);
        let root = &self.business_object.mapping.root;
        view::render_object(&self.store.read(), root, &uri, &mut out, &mut warnings).unwrap();
        let warnings = warnings.iter().map(ToString::to_string).collect();
        (String::from_utf8(out).unwrap(), warnings)
    }
}

pub(super) fn pointers(error: &GatewayError) -> Vec<String> {
    error
        .findings
        .iter()
        .map(|finding| match &finding.place {
            Place::Pointer(pointer) => pointer.clone(),
            other => format!("{other:?}"),
        })
        .collect()
}

pub(super) fn shape(namespace: &str, fields: Vec<Field>) -> Shape {
    Shape { namespace: namespace.to_owned(), fields, uri_prefix: None }
}

pub(super) fn field(name: &str, value: Value) -> Field {
    let predicate = NamedNode::new_unchecked(format!("http://p/{name}"));
    let property = Property { predicate, is_array: false, required: false, value };
    Field { name: name.to_owned(), kind: FieldKind::Property(property) }
}

pub(super) fn string(name: &str) -> Field {
    field(name, Value::Literal(Literal::String))
}

pub(super) fn number(name: &str) -> Field {
    field(name, Value::Literal(Literal::Number))
}

pub(super) fn many(mut field: Field) -> Field {
    if let FieldKind::Property(property) = &mut field.kind {
        property.is_array = true;
    }
    field
}

pub(super) fn required(mut field: Field) -> Field {
    if let FieldKind::Property(property) = &mut field.kind {
        property.required = true;
    }
    field
}

/// A machine: name, weight, tags, a single motor (with a maker) and an array of parts.
pub(super) fn machine() -> Shape {
    let maker = shape("Maker", vec![string("name")]);
    let motor = shape(
        "Motor",
        vec![string("name"), number("power"), field("maker", Value::Object(maker.clone()))],
    );
    let part =
        shape("Part", vec![string("name"), number("weight"), field("maker", Value::Object(maker))]);
    shape(
        "Machine",
        vec![
            Field { name: "id".to_owned(), kind: FieldKind::Id },
            string("name"),
            number("weight"),
            many(string("tags")),
            field("site", Value::Resource),
            field("motor", Value::Object(motor)),
            many(field("parts", Value::Object(part))),
        ],
    )
}
