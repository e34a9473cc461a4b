//! The namespaces that a mapping names, and what its shapes take from the stored ones.
use super::{FieldKind, Mapping, Property, Shape, Value};
use crate::namespace;
use oxrdf::NamedNode;
use penstock_store::{Error, Read};
use std::collections::HashSet;

impl Mapping {
    /// Returns every namespace that the mapping names, each once, the root's first.
    pub fn namespaces(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.collect_namespaces(&mut names, &mut HashSet::new());
        names
    }

    /// Returns every namespace whose objects have a key in this mapping, each once.
    pub(crate) fn keyed_namespaces(&self) -> Vec<String> {
        fn collect(shape: &Shape, names: &mut Vec<String>) {
            if shape.key_fields().is_some() && !names.contains(&shape.namespace) {
                names.push(shape.namespace.clone());
            }
            for (_, _, nested) in shape.iter_nested() {
                collect(nested, names);
            }
        }
        let mut names = Vec::new();
        collect(&self.root, &mut names);
        names
    }

    /// Looks up the namespaces that decide between fields of objects with the same property, and those of the members of maps.
    /// Without it, such objects belong to the first of these fields, and names count in all graphs. It needs to run only once,
    /// because the base of a namespace does not change while a mapping names it.
    pub fn resolve_namespaces(&mut self, read: &dyn Read) -> Result<(), Error> {
        self.root.resolve_namespaces(read)
    }
}

impl Shape {
    fn collect_namespaces<'a>(&'a self, names: &mut Vec<&'a str>, seen: &mut HashSet<&'a str>) {
        if seen.insert(&self.namespace) {
            names.push(&self.namespace);
        }
        for (_, _, nested) in self.iter_nested() {
            nested.collect_namespaces(names, seen);
        }
    }

    fn resolve_namespaces(&mut self, read: &dyn Read) -> Result<(), Error> {
        let (mut seen, mut shared) = (HashSet::new(), HashSet::new());
        for (predicate, _) in self.iter_nested_mut() {
            if !seen.insert(predicate.clone()) {
                shared.insert(predicate.clone());
            }
        }
        for (predicate, nested) in self.iter_nested_mut() {
            let (is_shared, is_map) = (shared.contains(predicate), nested.map_member().is_some());
            if (is_shared || is_map)
                && let Some(namespace) = namespace::get(read, &nested.namespace)?
            {
                nested.uri_prefix = is_shared.then(|| namespace.identifier_prefix());
                nested.name_graph = is_map.then(|| namespace.graph_name().into());
            }
            nested.resolve_namespaces(read)?;
        }
        Ok(())
    }

    /// Returns the shapes of nested objects, each with the property that leads to it.
    fn iter_nested_mut(&mut self) -> impl Iterator<Item = (&NamedNode, &mut Self)> {
        self.fields.iter_mut().filter_map(|field| match &mut field.kind {
            FieldKind::Property(Property { predicate, value: Value::Object(nested), .. }) => {
                Some((&*predicate, nested))
            }
            _ => None,
        })
    }
}
