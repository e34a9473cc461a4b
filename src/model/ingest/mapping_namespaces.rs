//! The namespaces of a mapping, read once per request.
use crate::mapping::{Mapping, Shape};
use crate::namespace::{self, Generator, Namespace};
use oxrdf::{GraphName, NamedNode};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::Read;
use std::collections::HashMap;

/// The namespaces of a mapping and their graphs, by name.
#[derive(Debug)]
pub(super) struct MappingNamespaces(HashMap<String, (Namespace, GraphName)>);

impl MappingNamespaces {
    /// Reads the namespaces of a mapping.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if a namespace of the mapping is not defined.
    pub(super) fn read(read: &impl Read, mapping: &Mapping) -> Result<Self, GatewayError> {
        let mut spaces = HashMap::new();
        for name in mapping.namespaces() {
            let Some(namespace) = namespace::get(read, name)? else {
                return Err(GatewayError::new(
                    ErrorClass::Invalid,
                    format!(
                        "the mapping names the namespace {name:?}, which is not defined; create it with PUT /api/v1/namespaces/{name}"
                    ),
                ));
            };
            let graph = namespace.graph_name().into();
            spaces.insert(name.to_owned(), (namespace, graph));
        }
        Ok(Self(spaces))
    }

    /// Returns whether a counter may mint this URI later. Counters are the only generators with predictable results.
    pub(super) fn may_mint_later(&self, uri: &NamedNode) -> bool {
        self.0.values().any(|(namespace, _)| {
            namespace.generator == Generator::Counter
                && uri.as_str().starts_with(&namespace.uri_base)
        })
    }

    /// Returns the namespace of a shape of the mapping, and its graph.
    pub(super) fn namespace_of(&self, shape: &Shape) -> (&Namespace, &GraphName) {
        let (namespace, graph) =
            self.0.get(&shape.namespace).expect("every namespace of the mapping was read");
        (namespace, graph)
    }
}
