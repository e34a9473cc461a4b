//! The schema of one version of the catalogue.
use super::model::Model;
use super::{system, types};
use crate::business_object::resource::Compiled;
use crate::fault::{Fault, Kind};
use async_graphql::dynamic;
use async_graphql::parser::types::{BaseType, ExecutableDocument, Type};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Schemas of keys that are for one Business Object alone that are kept.
const OWN: usize = 8;

/// A schema. Whoever began with one goes on with it.
pub(super) struct Built {
    /// That of the catalogue when it was made.
    pub(super) version: u64,
    pub(super) all: Vec<Arc<Compiled>>,
    pub(super) model: Model,
    pub(super) dynamic: dynamic::Schema,
    /// Those of keys that are for one Business Object, the newest first, by its id.
    own: Mutex<VecDeque<(String, Arc<Built>)>>,
}

impl Built {
    /// Of these Business Objects, which are all of them, or those that a key sees.
    ///
    /// # Errors
    /// `Kind::Internal` when not even the types that are there always fit together.
    pub(super) fn new(
        version: u64,
        all: Vec<Arc<Compiled>>,
        fields: usize,
        whole: bool,
    ) -> Result<Self, Fault> {
        let model = Model::new(&all, fields, whole);
        for (id, why) in &model.left_out {
            tracing::warn!(id, why, "GraphQL got no type for a Business Object.");
        }
        let (model, dynamic) = match types::schema(&model) {
            Ok(dynamic) => (model, dynamic),
            Err(error) => fitting(&all, fields, whole, &error)?,
        };
        Ok(Self { version, all, model, dynamic, own: Mutex::default() })
    }

    /// The schema of one Business Object alone.
    pub(super) fn own(&self, id: &str, fields: usize) -> Result<Arc<Self>, Fault> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, built)) = own.iter().find(|(of, _)| of == id) {
            return Ok(Arc::clone(built));
        }
        let all = self.all.iter().filter(|one| one.object.id == *id).cloned().collect();
        let built = Arc::new(Self::new(self.version, all, fields, false)?);
        own.push_front((id.to_owned(), Arc::clone(&built)));
        own.truncate(OWN);
        Ok(built)
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

/// What no schema can be made of alone is left out of that of all.
fn fitting(
    all: &[Arc<Compiled>],
    fields: usize,
    whole: bool,
    error: &dynamic::SchemaError,
) -> Result<(Model, dynamic::Schema), Fault> {
    tracing::error!(%error, "The GraphQL schema did not fit together; what does is served.");
    let alone = |one: &Arc<Compiled>| {
        types::schema(&Model::new(std::slice::from_ref(one), fields, whole)).map(|_| ())
    };
    let mut left_out = Vec::new();
    let fit = |one: &&Arc<Compiled>| match alone(one) {
        Ok(()) => true,
        Err(error) => {
            left_out.push((one.object.id.clone(), error.to_string()));
            false
        }
    };
    let some: Vec<_> = all.iter().filter(fit).cloned().collect();
    for some in [some.as_slice(), &[]] {
        let mut model = Model::new(some, fields, whole);
        model.left_out.extend(left_out.iter().cloned());
        if let Ok(dynamic) = types::schema(&model) {
            return Ok((model, dynamic));
        }
    }
    Err(Fault::new(Kind::Internal, format!("the GraphQL schema: {error}")))
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
