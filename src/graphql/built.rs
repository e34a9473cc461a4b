//! Builds the schema of one version of the catalogue.
//!
//! The model has the name of every type. The library needs a schema of its own (`dynamic::Schema`), in which a field
//! takes some kilobytes. So the library's schema has only the Business Objects that a document names. Only
//! introspection and the SDL need all of them.
use super::model::Model;
use super::system::{CHANGES_FIELD, SHARED_QUERY_FIELDS};
use super::{system_types, types};
use async_graphql::dynamic;
use async_graphql::parser::types::{BaseType, ExecutableDocument, Selection, SelectionSet, Type};
use parking_lot::{Mutex, MutexGuard};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::memory::Memory;
use penstock_base::nearest::find_nearest;
use penstock_model::resource::Compiled;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// The maximum number of cached schemas for API keys that are limited to certain Business Objects.
const MAX_KEY_SCHEMAS: usize = 8;

/// The maximum number of fields of a cached schema, about 15 MB.
const MAX_CACHED_FIELDS: usize = 2_500;

/// The memory in bytes that a field of the library's schema takes.
const BYTES_PER_FIELD: u64 = 6 << 10;

/// The memory in bytes that a field takes in an answer to introspection.
const BYTES_PER_ANSWERED_FIELD: u64 = 4 << 10;

/// The schema of one version of the catalogue. A request keeps the one that it began with.
pub(super) struct BuiltSchema {
    /// The version of the catalogue that it was built from.
    pub(super) version: u64,
    pub(super) business_objects: Vec<Arc<Compiled>>,
    pub(super) model: Model,
    /// The cached library schema, with the Business Objects that recent documents named.
    cached: Mutex<Option<CachedSchema>>,
    /// Locked while a schema that is too large for the cache is in use.
    large_schema_lock: Mutex<()>,
    /// The schemas for API keys that are limited to certain Business Objects, by the ids of these, newest first.
    key_schemas: Mutex<VecDeque<(Vec<String>, Arc<BuiltSchema>)>>,
}

/// The library's schema of some Business Objects, as indexes into [`Model::business_objects`].
struct CachedSchema {
    of: BTreeSet<usize>,
    dynamic: dynamic::Schema,
}

/// The library's schema, for one document. Only one large schema exists at a time.
pub(super) struct Lease<'b> {
    pub(super) dynamic: dynamic::Schema,
    _only: Option<MutexGuard<'b, ()>>,
}

impl BuiltSchema {
    /// Builds the schema of the given Business Objects: all of them, or the ones that an API key may see.
    pub(super) fn new(
        version: u64,
        business_objects: Vec<Arc<Compiled>>,
        max_fields: usize,
        whole: bool,
    ) -> Self {
        let model = Model::new(&business_objects, max_fields, whole);
        for left in &model.left_out {
            tracing::warn!(
                id = left.id,
                why = left.why,
                "Left a Business Object out of the GraphQL schema."
            );
        }
        Self {
            version,
            business_objects,
            model,
            cached: Mutex::default(),
            large_schema_lock: Mutex::default(),
            key_schemas: Mutex::default(),
        }
    }

    /// Returns the schema with only the Business Objects with these ids.
    pub(super) fn limit_to_business_objects(&self, ids: &[String], max_fields: usize) -> Arc<Self> {
        let mut schemas = self.key_schemas.lock();
        if let Some((_, built)) = schemas.iter().find(|(of, _)| of == ids) {
            return Arc::clone(built);
        }
        let all = self.business_objects.iter().filter(|one| ids.contains(&one.object.id));
        let built = Arc::new(Self::new(self.version, all.cloned().collect(), max_fields, false));
        schemas.push_front((ids.to_vec(), Arc::clone(&built)));
        schemas.truncate(MAX_KEY_SCHEMAS);
        built
    }

    /// Returns the library's schema with all types that a document names.
    ///
    /// # Errors
    /// As [`Self::lease_types`]; `ErrorClass::Invalid` when the document names a Business Object that was left out.
    pub(super) fn lease_for(
        &self,
        document: &ExecutableDocument,
        memory: &Memory,
    ) -> Result<Lease<'_>, GatewayError> {
        let mut named =
            NameCollector { model: &self.model, places: BTreeSet::new(), introspections: 0 };
        named.visit_document(document)?;
        match named.introspections {
            0 => self.lease_types(named.places, 0, memory),
            answers => self.lease_types(self.all_places(), answers, memory),
        }
    }

    /// Returns the library's schema with all types.
    ///
    /// # Errors
    /// As [`Self::lease_types`].
    pub(super) fn lease_all(&self, memory: &Memory) -> Result<Lease<'_>, GatewayError> {
        self.lease_types(self.all_places(), 1, memory)
    }

    fn all_places(&self) -> BTreeSet<usize> {
        (0..self.model.business_objects.len()).collect()
    }

    /// Returns the library's schema with the types of these Business Objects, and of others that recent documents
    /// needed. It is for this number of answers about the schema.
    ///
    /// # Errors
    /// `ErrorClass::Unavailable` when there is not enough memory for a large schema, or for the answers;
    /// `ErrorClass::Internal` when the types are inconsistent.
    fn lease_types(
        &self,
        needed: BTreeSet<usize>,
        answers: usize,
        memory: &Memory,
    ) -> Result<Lease<'_>, GatewayError> {
        let fields = self.count_fields(&needed);
        let only = (fields > MAX_CACHED_FIELDS).then(|| self.large_schema_lock.lock());
        if only.is_some() || answers > 0 {
            check_memory(fields, answers, memory)?;
        }
        if only.is_some() {
            let (_, dynamic) = self.build_valid_schema(needed)?;
            return Ok(Lease { dynamic, _only: only });
        }
        let mut kept = self.cached.lock();
        if let Some(part) = kept.as_ref().filter(|part| part.of.is_superset(&needed)) {
            return Ok(Lease { dynamic: part.dynamic.clone(), _only: None });
        }
        // Drop the old schema before the new one is built. It stays in memory only while a query uses it.
        let before = kept.take().map(|part| part.of).unwrap_or_default();
        let joined: BTreeSet<usize> = before.union(&needed).copied().collect();
        let of = if self.count_fields(&joined) <= MAX_CACHED_FIELDS { joined } else { needed };
        let (of, dynamic) = self.build_valid_schema(of)?;
        *kept = Some(CachedSchema { of, dynamic: dynamic.clone() });
        Ok(Lease { dynamic, _only: None })
    }

    /// Builds the library's schema. Omits Business Objects whose types are invalid.
    fn build_valid_schema(
        &self,
        of: BTreeSet<usize>,
    ) -> Result<(BTreeSet<usize>, dynamic::Schema), GatewayError> {
        let error = match types::build_schema(&self.model, &of) {
            Ok(dynamic) => return Ok((of, dynamic)),
            Err(error) => error,
        };
        tracing::error!(%error, "Building the GraphQL schema failed; invalid types are left out.");
        let fits =
            |place: &usize| types::build_schema(&self.model, &BTreeSet::from([*place])).is_ok();
        let of: BTreeSet<usize> = of.into_iter().filter(fits).collect();
        let dynamic = types::build_schema(&self.model, &of).map_err(|error| {
            GatewayError::new(
                ErrorClass::Internal,
                format!("building the GraphQL schema failed: {error}"),
            )
        })?;
        Ok((of, dynamic))
    }

    /// Returns the number of fields of the cached schema.
    #[cfg(test)]
    pub(super) fn cached_fields(&self) -> usize {
        let kept = self.cached.lock();
        kept.as_ref().map_or(0, |part| self.count_fields(&part.of))
    }

    fn count_fields(&self, of: &BTreeSet<usize>) -> usize {
        of.iter()
            .filter_map(|place| self.model.business_objects.get(*place))
            .map(|one| one.fields)
            .sum()
    }

    /// Checks that the types of all variables exist, which the library takes for granted.
    pub(super) fn check_variables(&self, document: &ExecutableDocument) -> Result<(), String> {
        for (_, operation) in document.operations.iter() {
            for definition in &operation.node.variable_definitions {
                let named = innermost_type_name(&definition.node.var_type.node);
                if !system_types::is_input(&self.model, named) && !self.model.is_input(named) {
                    let name = &definition.node.name.node;
                    return Err(format!(
                        "the variable ${name} has the type {named}, which is not an input type of this schema"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Checks that the available memory suffices for a schema with this number of fields, and for answers that have all of them.
fn check_memory(fields: usize, answers: usize, memory: &Memory) -> Result<(), GatewayError> {
    let bytes_per_field = BYTES_PER_FIELD + BYTES_PER_ANSWERED_FIELD.saturating_mul(answers as u64);
    let wanted = bytes_per_field.saturating_mul(fields as u64);
    match memory.remaining_bytes() {
        Some(left) if left < wanted => Err(GatewayError::new(
            ErrorClass::Unavailable(Duration::from_secs(5)),
            format!(
                "the whole schema has {fields} fields and needs about {} MiB of memory with the answer, but only {} MiB are \
                 available (service.limits.memory, or the limit of the gateway's control group); queries still \
                 work, because they need only the types that they name",
                wanted >> 20,
                left >> 20
            ),
        )),
        _ => Ok(()),
    }
}

/// Collects the Business Objects that a document names.
struct NameCollector<'m> {
    model: &'m Model,
    places: BTreeSet<usize>,
    /// How often the document asks for the schema, so that it needs all of them.
    introspections: usize,
}

impl NameCollector<'_> {
    fn visit_document(&mut self, document: &ExecutableDocument) -> Result<(), GatewayError> {
        for (_, operation) in document.operations.iter() {
            for definition in &operation.node.variable_definitions {
                self.visit_type_name(innermost_type_name(&definition.node.var_type.node))?;
            }
            let set = &operation.node.selection_set.node;
            for item in &set.items {
                if let Selection::Field(field) = &item.node {
                    self.visit_root_field(field.node.name.node.as_str())?;
                }
            }
            self.visit_selection(set)?;
        }
        for fragment in document.fragments.values() {
            self.visit_type_name(fragment.node.type_condition.node.on.node.as_str())?;
            self.visit_selection(&fragment.node.selection_set.node)?;
        }
        Ok(())
    }

    /// Collects the Business Object of a field of the query type. An unknown field may be a typing error; the schema
    /// then includes the type with the nearest name, so that the library can suggest it.
    fn visit_root_field(&mut self, name: &str) -> Result<(), GatewayError> {
        let roots = &self.model.roots;
        if roots.contains_key(name)
            || SHARED_QUERY_FIELDS.contains(&name)
            || name == CHANGES_FIELD
            || name.starts_with("__")
        {
            return Ok(());
        }
        if let Some(left) = self.model.left_out_field(name) {
            return Err(left.to_error());
        }
        if let Some(root) = find_nearest(name, roots.keys()).and_then(|near| roots.get(near)) {
            self.places.insert(root.business_index());
        }
        Ok(())
    }

    /// Collects Business Objects by field names at every level. A nested field with the name of a root field can add
    /// types that are not needed.
    fn visit_selection(&mut self, set: &SelectionSet) -> Result<(), GatewayError> {
        for item in &set.items {
            match &item.node {
                Selection::Field(field) => {
                    let name = field.node.name.node.as_str();
                    self.introspections += usize::from(matches!(name, "__schema" | "__type"));
                    self.places
                        .extend(self.model.roots.get(name).map(|root| root.business_index()));
                    self.visit_selection(&field.node.selection_set.node)?;
                }
                Selection::InlineFragment(fragment) => {
                    if let Some(on) = &fragment.node.type_condition {
                        self.visit_type_name(on.node.on.node.as_str())?;
                    }
                    self.visit_selection(&fragment.node.selection_set.node)?;
                }
                Selection::FragmentSpread(_) => {}
            }
        }
        Ok(())
    }

    fn visit_type_name(&mut self, name: &str) -> Result<(), GatewayError> {
        let place = self.model.business_of_type(name);
        if place.is_none()
            && let Some(left) = self.model.left_out_type(name)
        {
            return Err(left.to_error());
        }
        self.places.extend(place);
        Ok(())
    }
}

fn innermost_type_name(of: &Type) -> &str {
    match &of.base {
        BaseType::Named(name) => name,
        BaseType::List(inner) => innermost_type_name(inner),
    }
}

impl std::fmt::Debug for BuiltSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Built").field("version", &self.version).finish_non_exhaustive()
    }
}
