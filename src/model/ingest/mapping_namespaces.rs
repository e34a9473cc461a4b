//! The namespaces of a mapping, read once per request.
use crate::change_feed::WatchedDefinitions;
use crate::mapping::{Mapping, Shape};
use crate::namespace::{self, Namespace};
use crate::natural_key::{self, NaturalKey};
use oxrdf::{GraphName, NamedNode};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::namespace::Generator;
use penstock_store::{FastMap, Read};

/// The namespaces of a mapping, by name.
#[derive(Debug)]
pub(super) struct MappingNamespaces(FastMap<String, MappingNamespace>);

#[derive(Debug)]
struct MappingNamespace {
    namespace: Namespace,
    graph: GraphName,
    /// The key of its objects, and whether the index has entries of it.
    key: Option<(NaturalKey, bool)>,
}

impl MappingNamespaces {
    /// Reads the namespaces of a mapping, and their natural keys in this mapping and in the stored ones.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if a namespace of the mapping is not defined.
    pub(super) fn read(
        read: &dyn Read,
        mapping: &Mapping,
        definitions: &WatchedDefinitions,
    ) -> Result<Self, GatewayError> {
        let mut keys = natural_key::collect_keys(read, mapping)?;
        for key in &definitions.keys {
            if keys.iter().any(|own| own.namespace() == key.namespace()) {
                natural_key::merge_key(&mut keys, key.clone());
            }
        }
        let mut spaces = FastMap::default();
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
            let key = match keys.iter().position(|key| *key.namespace() == namespace) {
                Some(at) => {
                    let key = keys.swap_remove(at);
                    let is_indexed = key.has_entries(read)?;
                    Some((key, is_indexed))
                }
                None => None,
            };
            spaces.insert(name.to_owned(), MappingNamespace { namespace, graph, key });
        }
        Ok(Self(spaces))
    }

    /// Returns the natural key of a shape of the mapping.
    pub(super) fn key_of(&self, shape: &Shape) -> Option<&NaturalKey> {
        shape.key_fields()?;
        self.get(shape).key.as_ref().map(|(key, _)| key)
    }

    /// Returns the natural keys of the mapping.
    pub(super) fn keys(&self) -> Vec<&NaturalKey> {
        self.0.values().filter_map(|namespace| Some(&namespace.key.as_ref()?.0)).collect()
    }

    /// Returns whether the index had entries of the shape's natural key before the request.
    pub(super) fn is_key_indexed(&self, shape: &Shape) -> bool {
        self.get(shape).key.as_ref().is_some_and(|(_, is_indexed)| *is_indexed)
    }

    fn get(&self, shape: &Shape) -> &MappingNamespace {
        self.0.get(&shape.namespace).expect("every namespace of the mapping was read")
    }

    /// Returns whether a counter may mint this URI later. Counters are the only generators with predictable results.
    pub(super) fn may_mint_later(&self, uri: &NamedNode) -> bool {
        self.0.values().any(|MappingNamespace { namespace, .. }| {
            namespace.generator == Generator::Counter
                && uri.as_str().starts_with(&namespace.uri_base)
        })
    }

    /// Splits an IRI into the name of the namespace that has it, and its identifier there, which a move of the namespace does not
    /// change. Without one in the mapping, the name is empty, and the identifier is the IRI.
    pub(super) fn split_iri<'i>(&'i self, iri: &'i NamedNode) -> (&'i str, &'i str) {
        let identifiers = self.0.values().filter_map(|MappingNamespace { namespace, .. }| {
            let identifier = iri.as_str().strip_prefix(&namespace.identifier_prefix())?;
            Some((namespace.name.as_str(), identifier))
        });
        identifiers.min_by_key(|(_, identifier)| identifier.len()).unwrap_or(("", iri.as_str()))
    }

    /// Returns the namespace of a shape of the mapping, and its graph.
    pub(super) fn namespace_of(&self, shape: &Shape) -> (&Namespace, &GraphName) {
        let MappingNamespace { namespace, graph, .. } = self.get(shape);
        (namespace, graph)
    }
}
