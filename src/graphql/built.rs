//! The schema of one version of the catalogue.
//!
//! The model names every type. The library's schema takes some kilobytes a field, so it is made of the Business
//! Objects that a document names; only introspection and the SDL need all of them.
use super::model::Model;
use super::{system, types};
use async_graphql::dynamic;
use async_graphql::parser::types::{BaseType, ExecutableDocument, Selection, SelectionSet, Type};
use penstock_base::fault::{Fault, Kind};
use penstock_base::memory::Memory;
use penstock_base::nearest::nearest;
use penstock_model::resource::Compiled;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Schemas of keys that are for one Business Object alone that are kept.
const OWN: usize = 8;

/// The maximum number of fields of a schema that is kept for the next document, about 15 MB.
const MAX_KEPT_FIELDS: usize = 2_500;

/// The bytes of memory that a field of the library's schema takes, with its part of an answer to introspection.
const BYTES_PER_FIELD: u64 = 10 << 10;

/// A schema. Whoever began with one goes on with it.
pub(super) struct Built {
    /// That of the catalogue when it was made.
    pub(super) version: u64,
    pub(super) all: Vec<Arc<Compiled>>,
    pub(super) model: Model,
    /// The library's schema of the Business Objects that documents named lately.
    kept: Mutex<Option<Part>>,
    /// Held while a schema is used that is too large to be kept.
    large: Mutex<()>,
    /// Those of keys that are for one Business Object, the newest first, by its id.
    own: Mutex<VecDeque<(String, Arc<Built>)>>,
}

/// The library's schema of some Business Objects: places in [`Model::business`].
struct Part {
    of: BTreeSet<usize>,
    dynamic: dynamic::Schema,
}

/// The library's schema, for one document. There is only one large one at a time.
pub(super) struct Lease<'b> {
    pub(super) dynamic: dynamic::Schema,
    _only: Option<MutexGuard<'b, ()>>,
}

impl Built {
    /// Of these Business Objects, which are all of them, or those that a key sees.
    pub(super) fn new(version: u64, all: Vec<Arc<Compiled>>, fields: usize, whole: bool) -> Self {
        let model = Model::new(&all, fields, whole);
        for left in &model.left_out {
            tracing::warn!(
                id = left.id,
                why = left.why,
                "GraphQL got no type for a Business Object."
            );
        }
        Self {
            version,
            all,
            model,
            kept: Mutex::default(),
            large: Mutex::default(),
            own: Mutex::default(),
        }
    }

    /// The schema of one Business Object alone.
    pub(super) fn own(&self, id: &str, fields: usize) -> Arc<Self> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, built)) = own.iter().find(|(of, _)| of == id) {
            return Arc::clone(built);
        }
        let all = self.all.iter().filter(|one| one.object.id == *id).cloned().collect();
        let built = Arc::new(Self::new(self.version, all, fields, false));
        own.push_front((id.to_owned(), Arc::clone(&built)));
        own.truncate(OWN);
        built
    }

    /// Returns the library's schema with all types that a document names.
    ///
    /// # Errors
    /// As [`Built::lease`]; `Kind::Invalid` when the document names a Business Object that was left out.
    pub(super) fn lease_for(
        &self,
        document: &ExecutableDocument,
        memory: &Memory,
    ) -> Result<Lease<'_>, Fault> {
        let mut named = Named { model: &self.model, places: BTreeSet::new(), all: false };
        named.document(document)?;
        if named.all { self.lease_all(memory) } else { self.lease(named.places, memory) }
    }

    /// Returns the library's schema with all types.
    ///
    /// # Errors
    /// As [`Built::lease`].
    pub(super) fn lease_all(&self, memory: &Memory) -> Result<Lease<'_>, Fault> {
        self.lease((0..self.model.business.len()).collect(), memory)
    }

    /// Returns the library's schema with the types of these Business Objects, and of others that were needed lately.
    ///
    /// # Errors
    /// `Kind::Unavailable` when there is not enough memory for a large one; `Kind::Internal` when the types do not fit
    /// together.
    fn lease(&self, needed: BTreeSet<usize>, memory: &Memory) -> Result<Lease<'_>, Fault> {
        let fields = self.fields(&needed);
        if fields > MAX_KEPT_FIELDS {
            let only = self.large.lock().unwrap_or_else(PoisonError::into_inner);
            check_memory(fields, memory)?;
            let (_, dynamic) = self.fitting_schema(needed)?;
            return Ok(Lease { dynamic, _only: Some(only) });
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = kept.as_ref().filter(|part| part.of.is_superset(&needed)) {
            return Ok(Lease { dynamic: part.dynamic.clone(), _only: None });
        }
        // The old one goes before the new one is made, unless somebody uses it.
        let before = kept.take().map(|part| part.of).unwrap_or_default();
        let joined: BTreeSet<usize> = before.union(&needed).copied().collect();
        let of = if self.fields(&joined) <= MAX_KEPT_FIELDS { joined } else { needed };
        let (of, dynamic) = self.fitting_schema(of)?;
        *kept = Some(Part { of, dynamic: dynamic.clone() });
        Ok(Lease { dynamic, _only: None })
    }

    /// Makes the library's schema. A Business Object that no schema can be made of is left out.
    fn fitting_schema(
        &self,
        of: BTreeSet<usize>,
    ) -> Result<(BTreeSet<usize>, dynamic::Schema), Fault> {
        let error = match types::schema(&self.model, &of) {
            Ok(dynamic) => return Ok((of, dynamic)),
            Err(error) => error,
        };
        tracing::error!(%error, "The GraphQL schema did not fit together; what does is served.");
        let fits = |place: &usize| types::schema(&self.model, &BTreeSet::from([*place])).is_ok();
        let of: BTreeSet<usize> = of.into_iter().filter(fits).collect();
        let dynamic = types::schema(&self.model, &of).map_err(|error| {
            Fault::new(Kind::Internal, format!("the GraphQL schema does not fit together: {error}"))
        })?;
        Ok((of, dynamic))
    }

    /// Returns the number of fields of the schema that is kept.
    #[cfg(test)]
    pub(super) fn kept_fields(&self) -> usize {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().map_or(0, |part| self.fields(&part.of))
    }

    fn fields(&self, of: &BTreeSet<usize>) -> usize {
        of.iter().filter_map(|place| self.model.business.get(*place)).map(|one| one.fields).sum()
    }

    /// The library takes it for granted that the types of variables are there.
    pub(super) fn check_variables(&self, document: &ExecutableDocument) -> Result<(), String> {
        for (_, operation) in document.operations.iter() {
            for definition in &operation.node.variable_definitions {
                let named = named(&definition.node.var_type.node);
                if !system::is_input(&self.model, named) && !self.model.is_input(named) {
                    let name = &definition.node.name.node;
                    return Err(format!(
                        "the variable ${name} has the type {named}, and there is no such type of values"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Checks that so many fields fit into the memory that is left.
fn check_memory(fields: usize, memory: &Memory) -> Result<(), Fault> {
    let wanted = BYTES_PER_FIELD.saturating_mul(fields as u64);
    match memory.left() {
        Some(left) if left < wanted => Err(Fault::new(
            Kind::Unavailable(Duration::from_secs(5)),
            format!(
                "the whole schema has {fields} fields and takes about {} MiB of memory while it is written, and {} MiB \
                 are left (service.limits.memory, or the limit of the gateway's control group); queries need only the \
                 types that they name and go on",
                wanted >> 20,
                left >> 20
            ),
        )),
        _ => Ok(()),
    }
}

/// Gathers the Business Objects that a document names.
struct Named<'m> {
    model: &'m Model,
    places: BTreeSet<usize>,
    /// Whether it needs all of them: it asks for the schema.
    all: bool,
}

impl Named<'_> {
    fn document(&mut self, document: &ExecutableDocument) -> Result<(), Fault> {
        for (_, operation) in document.operations.iter() {
            for definition in &operation.node.variable_definitions {
                self.type_name(named(&definition.node.var_type.node))?;
            }
            let set = &operation.node.selection_set.node;
            for item in &set.items {
                if let Selection::Field(field) = &item.node {
                    self.root(field.node.name.node.as_str())?;
                }
            }
            self.selection(set)?;
        }
        for fragment in document.fragments.values() {
            self.type_name(fragment.node.type_condition.node.on.node.as_str())?;
            self.selection(&fragment.node.selection_set.node)?;
        }
        Ok(())
    }

    /// A field of the query type. One that is not there may be mistyped: the type that was meant is what the library
    /// suggests.
    fn root(&mut self, name: &str) -> Result<(), Fault> {
        let roots = &self.model.roots;
        if roots.contains_key(name) || system::QUERIES.contains(&name) || name.starts_with("__") {
            return Ok(());
        }
        if let Some(left) = self.model.left_out_field(name) {
            return Err(left.fault());
        }
        if let Some(root) = nearest(name, roots.keys()).and_then(|near| roots.get(near)) {
            self.places.insert(root.business());
        }
        Ok(())
    }

    /// Fields are gathered by their names at every level: one that is none of the query type costs some types that
    /// are not needed.
    fn selection(&mut self, set: &SelectionSet) -> Result<(), Fault> {
        for item in &set.items {
            match &item.node {
                Selection::Field(field) => {
                    let name = field.node.name.node.as_str();
                    self.all |= matches!(name, "__schema" | "__type");
                    self.places.extend(self.model.roots.get(name).map(|root| root.business()));
                    self.selection(&field.node.selection_set.node)?;
                }
                Selection::InlineFragment(fragment) => {
                    if let Some(on) = &fragment.node.type_condition {
                        self.type_name(on.node.on.node.as_str())?;
                    }
                    self.selection(&fragment.node.selection_set.node)?;
                }
                Selection::FragmentSpread(_) => {}
            }
        }
        Ok(())
    }

    fn type_name(&mut self, name: &str) -> Result<(), Fault> {
        let place = self.model.business_of_type(name);
        if place.is_none()
            && let Some(left) = self.model.left_out_type(name)
        {
            return Err(left.fault());
        }
        self.places.extend(place);
        Ok(())
    }
}

fn named(of: &Type) -> &str {
    match &of.base {
        BaseType::Named(name) => name,
        BaseType::List(inner) => named(inner),
    }
}

impl std::fmt::Debug for Built {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Built").field("version", &self.version).finish_non_exhaustive()
    }
}
