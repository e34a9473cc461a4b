//! Defines which objects and quads a request may change.
//!
//! A scoped credential, such as an API key for certain Business Objects, writes only into the graphs of the namespaces that
//! the mappings of its Business Objects name. An object with quads in another namespace's graph is foreign: the
//! credential can refer to it but cannot change it.
//!
//! A new object must not lie in another namespace, so that no credential claims a URI before its namespace's own
//! writers use it.
//!
//! The unnamed graph belongs to no Business Object: its quads make no object foreign, and a scoped credential never
//! changes them.
use crate::members;
use crate::namespace::{self, Namespace};
use crate::resource::Compiled;
use oxrdf::{GraphName, NamedNode, Quad};
use penstock_base::error::GatewayError;
use penstock_store::Read;
use std::collections::HashSet;

/// The objects and quads that a request may change.
#[derive(Debug)]
pub(super) struct WriteScope<'r>(Option<Limited<'r>>);

/// A scope of some Business Objects only.
#[derive(Debug)]
struct Limited<'r> {
    business_objects: &'r [&'r Compiled],
    /// The graphs of the namespaces that their mappings name.
    graphs: HashSet<GraphName>,
    /// Every namespace that is defined.
    namespaces: Vec<Namespace>,
}

impl<'r> WriteScope<'r> {
    /// The scope without limits.
    pub(super) const ALL: Self = Self(None);

    /// Returns the scope of a credential that is limited to these Business Objects.
    pub(super) fn limited_to(
        read: &impl Read,
        business_objects: &'r [&'r Compiled],
    ) -> Result<Self, GatewayError> {
        let namespaces = namespace::list(read, None, usize::MAX)?;
        let named: HashSet<&str> = business_objects
            .iter()
            .flat_map(|business_object| business_object.mapping.namespaces())
            .collect();
        let graphs = namespaces
            .iter()
            .filter(|namespace| named.contains(namespace.name.as_str()))
            .map(|namespace| namespace.graph_name().into())
            .collect();
        Ok(Self(Some(Limited { business_objects, graphs, namespaces })))
    }

    /// Returns whether the request may remove this quad. Quads that it adds are always in the graphs of its mapping's
    /// namespaces.
    pub(super) fn contains(&self, quad: &Quad) -> bool {
        self.0.as_ref().is_none_or(|limited| limited.graphs.contains(&quad.graph_name))
    }

    /// Returns the reason why the request may not change an object with the stored `quads`, if there is one.
    pub(super) fn refusal_reason(
        &self,
        read: &impl Read,
        uri: &NamedNode,
        quads: &[Quad],
    ) -> Result<Option<String>, GatewayError> {
        let Some(limited) = &self.0 else { return Ok(None) };
        if let Some(why) = limited.foreign_reason(read, uri, quads)? {
            return Ok(Some(limited.refusal_message(&format!("{} {why}", uri.as_str()))));
        }
        if quads.iter().any(|quad| self.contains(quad)) {
            return Ok(None);
        }
        Ok(limited.namespace_of(uri).map(|namespace| {
            limited.refusal_message(&format!(
                "the new URI {} lies in the namespace {:?}, which {}",
                uri.as_str(),
                namespace.name,
                limited.not_named()
            ))
        }))
    }

    /// Returns whether the request may not change an existing object.
    pub(super) fn is_foreign(
        &self,
        read: &impl Read,
        uri: &NamedNode,
    ) -> Result<bool, GatewayError> {
        let Some(limited) = &self.0 else { return Ok(false) };
        let quads = read.quads_about(&uri.clone().into())?;
        Ok(limited.foreign_reason(read, uri, &quads)?.is_some())
    }
}

impl Limited<'_> {
    /// Returns what makes an object foreign, as words that follow its URI in a message.
    fn foreign_reason(
        &self,
        read: &impl Read,
        uri: &NamedNode,
        quads: &[Quad],
    ) -> Result<Option<String>, GatewayError> {
        let is_outside = |quad: &&Quad| {
            !quad.graph_name.is_default_graph() && !self.graphs.contains(&quad.graph_name)
        };
        let mut outside = quads.iter().filter(is_outside).peekable();
        if outside.peek().is_none() {
            return Ok(None);
        }
        for quad in outside {
            let GraphName::NamedNode(graph) = &quad.graph_name else { continue };
            if let Some(other) =
                self.namespaces.iter().find(|other| other.uri_base == graph.as_str())
            {
                return Ok(Some(format!(
                    "has data in the namespace {:?}, which {}",
                    other.name,
                    self.not_named()
                )));
            }
        }
        // A graph of no namespace can have values that another client added to an object, or the whole object.
        if quads.iter().any(|quad| self.graphs.contains(&quad.graph_name)) {
            return Ok(None);
        }
        for business_object in self.business_objects {
            if members::is_member(read, business_object, uri)? {
                return Ok(None);
            }
        }
        let names = if self.business_objects.len() == 1 {
            "the mapping names"
        } else {
            "the mappings of the credential name"
        };
        Ok(Some(format!("has data outside the namespaces that {names}")))
    }

    /// Returns the namespace that a URI lies in, unless it is in the scope. Of the namespaces whose base matches, it is
    /// the one with the longest base.
    fn namespace_of(&self, uri: &NamedNode) -> Option<&Namespace> {
        self.namespaces
            .iter()
            .filter(|namespace| namespace.contains(uri.as_ref()))
            .max_by_key(|namespace| namespace.uri_base.len())
            .filter(|namespace| !self.graphs.contains(&namespace.graph_name().into()))
    }

    /// Returns what is said of a namespace outside the scope, after "which".
    fn not_named(&self) -> &'static str {
        if self.business_objects.len() == 1 {
            "the mapping does not name"
        } else {
            "no mapping of the credential names"
        }
    }

    fn refusal_message(&self, why: &str) -> String {
        let names: Vec<String> = self
            .business_objects
            .iter()
            .map(|business_object| format!("{:?}", business_object.object.definition.name))
            .collect();
        format!(
            "{why}. This credential can only change objects of {}; refer to this one as {{\"uri\": ...}} without other \
             fields, or change it with an API key that is not limited to Business Objects",
            names.join(", ")
        )
    }
}
