//! The stored form of a Business Object, and the entries of the catalogue in memory.
use crate::mapping;
use crate::resource::{BusinessObject, Compiled, Definition, condition_to_terms};
use oxrdf::{NamedNode, Term};
use penstock_base::collections;
use penstock_base::table::{AsJson, Row, Table};
use penstock_resources::business_object::{Condition, Validation};
use penstock_store::{Error, Read, Transaction};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// The definitions, by id.
pub(crate) const BUSINESS_OBJECTS: Table<String, AsJson<StoredDefinition>> =
    Table::new(collections::BUSINESS_OBJECTS);

/// The number of documents per read.
const DOCUMENTS_PER_READ: usize = 64;

/// The document of a Business Object.
///
/// Conditions are stored with full IRIs, because older versions do not expand prefixes in them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredDefinition {
    pub(super) object: BusinessObject,
    /// The namespaces that the definition names, so that their use can be checked without compiling the mapping.
    namespaces: Vec<String>,
    /// The namespaces whose objects have a key in the mapping.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keyed_namespaces: Vec<String>,
    /// The conditions as the client gave them, if they differ from the stored form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) given_conditions: Option<Vec<Condition>>,
}

impl StoredDefinition {
    pub(super) fn from_compiled(compiled: &Compiled) -> Self {
        let mut object = compiled.object.clone();
        let mut namespaces: Vec<String> =
            compiled.mapping.namespaces().into_iter().map(str::to_owned).collect();
        for namespace in &object.definition.namespaces {
            if !namespaces.contains(&namespace.name) {
                namespaces.push(namespace.name.clone());
            }
        }
        let expanded = compiled.expand_conditions();
        let given = std::mem::replace(&mut object.definition.conditions, expanded);
        let given_conditions = (given != object.definition.conditions).then_some(given);
        let keyed_namespaces = compiled.mapping.keyed_namespaces();
        Self { object, namespaces, keyed_namespaces, given_conditions }
    }

    /// Returns the Business Object with its conditions as given, and the conditions as terms.
    fn into_parts(self) -> (BusinessObject, Result<Vec<(NamedNode, Term)>, String>) {
        let Self { mut object, given_conditions, .. } = self;
        let Definition { conditions, .. } = &mut object.definition;
        let terms = conditions.iter().map(condition_to_terms).collect();
        if let Some(given) = given_conditions {
            *conditions = given;
        }
        (object, terms)
    }
}

/// What a stored definition uses. Reading it is several times faster than reading the whole definition.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredUse {
    object: User,
    namespaces: Vec<String>,
    #[serde(default)]
    keyed_namespaces: Vec<String>,
}

/// The Business Object of a [`StoredUse`].
#[derive(Debug, Serialize, Deserialize)]
struct User {
    name: String,
    #[serde(default)]
    validation: Option<Validation>,
}

/// A Business Object in memory.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) version: u64,
    pub(super) created_at: String,
    /// `None` if this version cannot compile the stored definition.
    pub(super) compiled: Option<Arc<Compiled>>,
}

impl Entry {
    pub(super) fn from_compiled(compiled: Arc<Compiled>) -> Self {
        let object = &compiled.object;
        Self {
            id: object.id.clone(),
            name: object.definition.name.clone(),
            version: object.version,
            created_at: object.created_at.clone(),
            compiled: Some(compiled),
        }
    }

    fn compile_stored(read: &dyn Read, stored: StoredDefinition) -> Self {
        let object = &stored.object;
        let (id, name) = (object.id.clone(), object.definition.name.clone());
        let (version, created_at) = (object.version, object.created_at.clone());
        let compiled = match compile_definition(read, stored) {
            Ok(compiled) => Some(Arc::new(compiled)),
            Err(why) => {
                tracing::error!(
                    %id, %name, %why,
                    "A stored Business Object did not compile and is not served; replace it."
                );
                None
            }
        };
        Self { id, name, version, created_at, compiled }
    }
}

fn compile_definition(read: &dyn Read, stored: StoredDefinition) -> Result<Compiled, String> {
    let (object, conditions) = stored.into_parts();
    let mut mapping = mapping::compile(&object.definition.config)
        .map_err(|findings| findings.first().map_or_else(String::new, ToString::to_string))?;
    mapping.resolve_namespaces(read).map_err(|error| error.to_string())?;
    Ok(Compiled { object, mapping, conditions: conditions? })
}

/// All Business Objects in memory, by name and by id.
#[derive(Debug, Default)]
pub(super) struct Entries {
    by_name: BTreeMap<String, Entry>,
    names_by_id: BTreeMap<String, String>,
    /// A number that grows with each change.
    pub(super) version: u64,
}

impl Entries {
    pub(super) fn read_all(read: &dyn Read) -> Result<Self, Error> {
        let mut entries = Self::default();
        for row in iter_rows(read) {
            let row = row?;
            match row.value() {
                Ok(stored) => entries.insert(Entry::compile_stored(read, stored)),
                Err(error) => {
                    let id = row.key()?;
                    tracing::error!(%id, %error, "A stored Business Object was not readable and is not served.");
                }
            }
        }
        Ok(entries)
    }

    pub(super) fn find_entry(&self, id_or_name: &str) -> Option<&Entry> {
        let name = self.names_by_id.get(id_or_name).map_or(id_or_name, String::as_str);
        self.find_by_name(name)
    }

    pub(super) fn find_by_name(&self, name: &str) -> Option<&Entry> {
        self.by_name.get(name)
    }

    /// Iterates over all entries, ordered by name.
    pub(super) fn iter_by_name(&self) -> impl Iterator<Item = &Entry> {
        self.by_name.values()
    }

    /// Iterates over the entries after the name `after`, ordered by name.
    pub(super) fn iter_after(&self, after: Option<&str>) -> impl Iterator<Item = &Entry> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_name.range::<str, _>((from, Bound::Unbounded)).map(|(_, entry)| entry)
    }

    /// Inserts an entry, replacing the one with the same id.
    pub(super) fn insert(&mut self, entry: Entry) {
        self.version += 1;
        self.remove(&entry.id);
        self.names_by_id.insert(entry.id.clone(), entry.name.clone());
        self.by_name.insert(entry.name.clone(), entry);
    }

    /// Replaces an entry by one that differs only in the progress of its deletion, which nothing is derived from.
    pub(super) fn update_progress(&mut self, entry: Entry) {
        self.by_name.insert(entry.name.clone(), entry);
    }

    pub(super) fn remove(&mut self, id: &str) {
        self.version += 1;
        if let Some(name) = self.names_by_id.remove(id) {
            self.by_name.remove(&name);
        }
    }
}

/// Returns the name of a Business Object whose definition names this namespace. Ignores the one with the id `except`.
pub(crate) fn find_namespace_user(
    read: &dyn Read,
    namespace: &str,
    except: Option<&str>,
) -> Result<Option<String>, Error> {
    for row in iter_rows(read) {
        let row = row?;
        let id = row.key()?;
        if except == Some(id.as_str()) {
            continue;
        }
        match row.value_as::<AsJson<StoredUse>>() {
            Ok(stored) if !stored.namespaces.iter().any(|name| name == namespace) => {}
            Ok(stored) => return Ok(Some(stored.object.name)),
            // The namespaces of an unreadable definition are unknown, so it counts as a user of every namespace.
            Err(_) => return Ok(Some(id)),
        }
    }
    Ok(None)
}

/// The Business Objects that name shapes graphs.
#[derive(Debug, Default)]
pub(crate) struct ShapesUsers {
    /// The names of the Business Objects that name a shapes graph, by its name.
    pub(crate) by_graph: BTreeMap<String, Vec<String>>,
    /// The ids of the definitions that cannot be read.
    unreadable: Vec<String>,
}

impl ShapesUsers {
    /// Returns the Business Objects that name this shapes graph. One that cannot be read counts, because it may.
    pub(crate) fn into_possible_users(mut self, name: &str) -> Vec<String> {
        let mut users = self.by_graph.remove(name).unwrap_or_default();
        users.extend(self.unreadable);
        users
    }
}

/// Returns which stored definitions name which shapes graphs.
pub(crate) fn list_shapes_users(read: &dyn Read) -> Result<ShapesUsers, Error> {
    let mut users = ShapesUsers::default();
    for row in iter_rows(read) {
        let row = row?;
        match row.value_as::<AsJson<StoredUse>>() {
            Ok(StoredUse { object: User { name, validation }, .. }) => {
                for graph in validation.into_iter().flat_map(|validation| validation.shapes) {
                    users.by_graph.entry(graph).or_default().push(name.clone());
                }
            }
            Err(_) => users.unreadable.push(row.key()?),
        }
    }
    for names in users.by_graph.values_mut() {
        names.sort_unstable();
    }
    Ok(users)
}

/// Returns each namespace whose objects have a key in a stored definition, with the name of its Business Object.
pub(crate) fn list_keyed_namespaces(read: &dyn Read) -> Result<Vec<(String, String)>, Error> {
    let mut all = Vec::new();
    for row in iter_rows(read) {
        if let Ok(stored) = row?.value_as::<AsJson<StoredUse>>() {
            let name = &stored.object.name;
            all.extend(stored.keyed_namespaces.into_iter().map(|keyed| (keyed, name.clone())));
        }
    }
    Ok(all)
}

/// Returns every stored definition that compiles and gives the objects of one of these namespaces a key.
pub(crate) fn list_definitions_with_key(
    read: &dyn Read,
    namespaces: &BTreeSet<&str>,
) -> Result<Vec<Compiled>, Error> {
    let mut all = Vec::new();
    for row in iter_rows(read) {
        let row = row?;
        let is_keyed = |name: &String| namespaces.contains(name.as_str());
        if row
            .value_as::<AsJson<StoredUse>>()
            .is_ok_and(|stored| stored.keyed_namespaces.iter().any(is_keyed))
            && let Ok(stored) = row.value()
        {
            all.extend(compile_definition(read, stored));
        }
    }
    Ok(all)
}

/// Returns every stored definition that can be read, compiled if possible.
pub(crate) fn list_stored(
    read: &dyn Read,
) -> Result<Vec<(BusinessObject, Option<Compiled>)>, Error> {
    let mut all = Vec::new();
    for row in iter_rows(read) {
        // Catalogue::open has logged the ones that cannot be read.
        if let Ok(stored) = row?.value() {
            let object = stored.object.clone();
            all.push((object, compile_definition(read, stored).ok()));
        }
    }
    Ok(all)
}

/// Returns the namespaces that a stored definition names, also if it does not compile.
pub(crate) fn list_named_namespaces(read: &dyn Read, id: &str) -> Result<Vec<String>, Error> {
    Ok(BUSINESS_OBJECTS.get_readable(read, id)?.map(|stored| stored.namespaces).unwrap_or_default())
}

/// Stores a definition.
pub(crate) fn store_definition(
    transaction: &mut Transaction<'_>,
    compiled: &Compiled,
) -> Result<(), Error> {
    let stored = StoredDefinition::from_compiled(compiled);
    BUSINESS_OBJECTS.put(transaction, &compiled.object.id, &stored)
}

/// Returns whether the definition of a Business Object was neither replaced nor deleted since it was read.
///
/// # Errors
/// The errors of the store.
pub fn is_current(read: &dyn Read, object: &BusinessObject) -> Result<bool, Error> {
    let stored = BUSINESS_OBJECTS.get_readable(read, &object.id)?;
    Ok(stored.is_some_and(|stored| stored.object.version == object.version))
}

/// Iterates over all stored definitions.
pub(super) fn iter_rows(
    read: &dyn Read,
) -> impl Iterator<Item = Result<Row<String, AsJson<StoredDefinition>>, Error>> {
    BUSINESS_OBJECTS.scan().pages(move || read, DOCUMENTS_PER_READ)
}
