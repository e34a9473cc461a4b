//! The namespaces of a mapping, read once a request.
use crate::mapping::{Mapping, Shape};
use crate::namespace::{self, Generator, Namespace};
use oxrdf::{GraphName, NamedNode};
use penstock_base::fault::{Fault, Kind};
use penstock_store::Read;
use std::collections::HashMap;

/// Each namespace of a mapping with its graph, by name.
#[derive(Debug)]
pub(super) struct Spaces(HashMap<String, (Namespace, GraphName)>);

impl Spaces {
    /// # Errors
    /// `Kind::Invalid` when a namespace of the mapping is not defined.
    pub(super) fn read(read: &impl Read, mapping: &Mapping) -> Result<Self, Fault> {
        let mut spaces = HashMap::new();
        for name in mapping.namespaces() {
            let Some(namespace) = namespace::get(read, name)? else {
                return Err(Fault::new(
                    Kind::Invalid,
                    format!(
                        "the mapping names the namespace {name:?}, which is not defined; define it with PUT /api/v1/namespaces/{name}"
                    ),
                ));
            };
            let graph = namespace.graph().into();
            spaces.insert(name.to_owned(), (namespace, graph));
        }
        Ok(Self(spaces))
    }

    /// Whether a counter may come to mint this URI: it is the only generator whose next one can be known.
    pub(super) fn may_count_to(&self, uri: &NamedNode) -> bool {
        self.0.values().any(|(namespace, _)| {
            namespace.generator == Generator::Counter
                && uri.as_str().starts_with(&namespace.uri_base)
        })
    }

    /// The namespace of a shape of the mapping, and its graph.
    pub(super) fn of(&self, shape: &Shape) -> (&Namespace, &GraphName) {
        let (namespace, graph) =
            self.0.get(&shape.namespace).expect("every namespace of the mapping was read");
        (namespace, graph)
    }
}
