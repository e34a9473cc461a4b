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
use super::change_feed::Watch;
use super::members::{build_member_filter, satisfies_any};
use super::namespace::{KnownNamespaces, Namespace};
use super::resource::Compiled;
use oxrdf::{GraphName, NamedNode, Quad};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::{Error, Pattern, Read, SubjectFilter};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

/// The objects and quads that a request may change.
#[derive(Debug, Clone)]
pub(crate) struct WriteScope<'r>(Option<Rc<Limited<'r>>>);

/// A scope of some Business Objects only.
#[derive(Debug)]
struct Limited<'r> {
    business_objects: Vec<&'r Compiled>,
    /// The graphs of the namespaces that their mappings name.
    graphs: HashSet<GraphName>,
    /// What the objects of each Business Object satisfy.
    members: Vec<SubjectFilter>,
    /// Every namespace that is defined.
    namespaces: Arc<KnownNamespaces>,
}

impl<'r> WriteScope<'r> {
    /// The scope without limits.
    pub(crate) const ALL: Self = Self(None);

    /// Returns the scope of a credential that is limited to these Business Objects.
    pub(crate) fn limited_to(
        read: &dyn Read,
        watch: &Watch,
        business_objects: impl IntoIterator<Item = &'r Compiled>,
    ) -> Result<Self, GatewayError> {
        let business_objects: Vec<_> = business_objects.into_iter().collect();
        let namespaces = watch.namespaces().current(read)?;
        let named: HashSet<&str> = business_objects
            .iter()
            .flat_map(|business_object| business_object.mapping.namespaces())
            .collect();
        let named = named.into_iter().filter_map(|name| namespaces.get(name));
        let graphs = named.map(|namespace| namespace.graph_name().into()).collect();
        let mut members = Vec::with_capacity(business_objects.len());
        for business_object in &business_objects {
            match build_member_filter(read, business_object) {
                Ok(filter) => members.push(filter),
                // Its namespace is not defined, so it has no objects.
                Err(error) if error.class == ErrorClass::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        let limited = Limited { business_objects, graphs, members, namespaces };
        Ok(Self(Some(Rc::new(limited))))
    }

    /// Returns whether this is the scope without limits.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether the request may remove this quad. Quads that it adds are always in the graphs of its mapping's
    /// namespaces.
    pub(crate) fn contains(&self, quad: &Quad) -> bool {
        self.0.as_ref().is_none_or(|limited| limited.graphs.contains(&quad.graph_name))
    }

    /// Returns the reason why the request may not change an object with the stored `quads`, if there is one.
    pub(crate) fn refusal_reason(
        &self,
        read: &dyn Read,
        uri: &NamedNode,
        quads: &[Quad],
    ) -> Result<Option<String>, Error> {
        let Some(limited) = &self.0 else { return Ok(None) };
        let why = match limited.foreign_reason(read, uri, quads)? {
            None if quads.iter().any(|quad| self.contains(quad)) => return Ok(None),
            // The answer is the same whether there is such an object or not.
            why => limited
                .namespace_of(uri)
                .map(|namespace| {
                    format!(
                        "lies in the namespace {:?}, which {}",
                        namespace.name,
                        limited.not_named()
                    )
                })
                .or(why),
        };
        Ok(why.map(|why| limited.refusal_message(&format!("{} {why}", uri.as_str()))))
    }

    /// Returns whether a quad about an object is in the scope.
    pub(crate) fn has_part_of(&self, read: &dyn Read, uri: &NamedNode) -> Result<bool, Error> {
        let Some(limited) = &self.0 else { return Ok(true) };
        for graph in &limited.graphs {
            let (subject, graph) = (Some(uri.clone().into()), Some(graph.clone()));
            if read.any(&Pattern { subject, graph, ..Pattern::default() })? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether the request may not change an existing object.
    pub(crate) fn is_foreign(&self, read: &dyn Read, uri: &NamedNode) -> Result<bool, Error> {
        let Some(limited) = &self.0 else { return Ok(false) };
        let quads = read.quads_about(&uri.clone().into())?;
        Ok(limited.foreign_reason(read, uri, &quads)?.is_some())
    }

    /// Returns whether the credential may not see what is stored about an object: it could not change it, and it belongs
    /// to none of the Business Objects.
    pub(crate) fn hides(&self, read: &dyn Read, uri: &NamedNode) -> Result<bool, Error> {
        let Some(limited) = &self.0 else { return Ok(false) };
        let quads = read.quads_about(&uri.clone().into())?;
        Ok(!quads.is_empty()
            && self.refusal_reason(read, uri, &quads)?.is_some()
            && !satisfies_any(read, &limited.members, uri)?)
    }
}

impl Limited<'_> {
    /// Returns what makes an object foreign, as words that follow its URI in a message.
    fn foreign_reason(
        &self,
        read: &dyn Read,
        uri: &NamedNode,
        quads: &[Quad],
    ) -> Result<Option<String>, Error> {
        let is_outside = |quad: &&Quad| {
            !quad.graph_name.is_default_graph() && !self.graphs.contains(&quad.graph_name)
        };
        let mut outside = quads.iter().filter(is_outside).peekable();
        if outside.peek().is_none() {
            return Ok(None);
        }
        for quad in outside {
            let GraphName::NamedNode(graph) = &quad.graph_name else { continue };
            if let Some(other) = self.namespaces.find_by_base(graph.as_str()) {
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
        if satisfies_any(read, &self.members, uri)? {
            return Ok(None);
        }
        let names = if self.business_objects.len() == 1 {
            "the mapping names"
        } else {
            "the mappings of the credential name"
        };
        Ok(Some(format!("has data outside the namespaces that {names}")))
    }

    /// Returns the namespace that a URI lies in, unless it is in the scope.
    fn namespace_of(&self, uri: &NamedNode) -> Option<&Namespace> {
        self.namespaces
            .find_containing(uri.as_ref())
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
