//! The state of a running operation: what its fields share, and how much of the limits its answer has taken.
use super::document::Selected;
use super::gateway_types::{find_members, inner_type};
use super::model::BusinessObjectTypes;
use super::out::ResultValue;
use super::plan::{Planner, unimplemented_field_error};
use super::sources::GraphqlSources;
use async_graphql::Name;
use async_graphql::parser::types::SelectionSet;
use penstock_auth::Caller;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_config::GraphqlLimits;
use penstock_model::resource::Compiled;
use penstock_model::search::SearchBudget;
use penstock_model::visible::VisibleObjects;
use penstock_resources::change::Change;
use penstock_store::{Error, Snapshot};
use serde_json::Value as Json;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// The state of a running operation, on a blocking thread.
pub(super) struct Execution<'d> {
    pub(super) planner: Planner<'d>,
    pub(super) sources: &'d GraphqlSources,
    /// What the answer shows of the stored graph. Opened for the first field that reads it.
    snapshot: OnceCell<Result<VisibleObjects<'d, Snapshot>, GatewayError>>,
    pub(super) limits: GraphqlLimits,
    pub(super) budget: SearchBudget,
    /// The number of objects in the answer so far.
    rows: Cell<u64>,
    /// The approximate size of the answer so far, in bytes.
    bytes: Cell<u64>,
    /// The open changes that were listed so far, by the Business Object that limits them.
    pub(super) pending_changes: RefCell<HashMap<Option<String>, Rc<[Change]>>>,
    pub(super) caller: &'d Caller,
    /// The Business Objects that the caller may see.
    pub(super) all: &'d [Arc<Compiled>],
}

impl<'d> Execution<'d> {
    /// Begins to answer an operation.
    pub(super) fn new(
        planner: Planner<'d>,
        all: &'d [Arc<Compiled>],
        sources: &'d GraphqlSources,
        limits: GraphqlLimits,
        caller: &'d Caller,
    ) -> Self {
        Self {
            planner,
            snapshot: OnceCell::new(),
            sources,
            limits,
            budget: SearchBudget::new(limits.scan, limits.time),
            rows: Cell::new(0),
            bytes: Cell::new(0),
            pending_changes: RefCell::default(),
            caller,
            all,
        }
    }

    /// Returns the state that all fields show, as far as the caller sees it.
    pub(super) fn snapshot(&self) -> Result<&VisibleObjects<'d, Snapshot>, GatewayError> {
        let open = || {
            // The schema of a limited key has only its Business Objects.
            let is_limited = self.caller.business_objects().is_some();
            let scope = is_limited.then(|| self.all.iter().map(|one| &**one));
            VisibleObjects::new(
                self.sources.store.snapshot()?,
                self.sources.catalogue.watch(),
                scope,
            )
        };
        self.snapshot.get_or_init(open).as_ref().map_err(Clone::clone)
    }

    /// Returns why that state could not be read, if so.
    pub(super) fn snapshot_error(&self) -> Option<GatewayError> {
        match self.snapshot.get()? {
            Ok(snapshot) => {
                snapshot.unlimited().lost_cause().map(|cause| Error::SnapshotLost { cause }.into())
            }
            Err(error) => Some(error.clone()),
        }
    }

    /// Selects the requested members of one of the gateway's own types, and counts their bytes.
    pub(super) fn select_members(
        &self,
        type_name: &str,
        value: &Json,
        sets: &[&'d SelectionSet],
    ) -> Result<ResultValue, GatewayError> {
        let known = find_members(type_name).unwrap_or_default();
        let fields = self.planner.document.collect_fields(sets, &|name| name == type_name);
        let members = fields.into_iter().map(|Selected { key, field, sets }| {
            let name = field.node.name.node.as_str();
            let member = known.iter().find(|member| member.name == name);
            let (inner, _) = inner_type(member.map_or("", |member| &member.kind));
            let composite = find_members(inner).is_some();
            let out = match value.get(name) {
                _ if name == "__typename" => ResultValue::from_text(type_name),
                None | Some(Json::Null) => ResultValue::Null,
                Some(Json::Array(items)) if composite => {
                    let items = items.iter().map(|item| self.select_members(inner, item, &sets));
                    ResultValue::List(items.collect::<Result<_, GatewayError>>()?)
                }
                Some(one) if composite => self.select_members(inner, one, &sets)?,
                Some(leaf) => ResultValue::from_json(leaf),
            };
            self.count_bytes(key, &out)?;
            Ok((key.clone(), out))
        });
        Ok(ResultValue::Object(members.collect::<Result<_, GatewayError>>()?))
    }

    pub(super) fn business_object_types(
        &self,
        place: usize,
    ) -> Result<&'d BusinessObjectTypes, GatewayError> {
        self.planner.model.business_objects.get(place).ok_or_else(unimplemented_field_error)
    }

    /// Counts an object of the answer.
    pub(super) fn count_object(&self) -> Result<(), GatewayError> {
        let rows = self.rows.get() + 1;
        self.rows.set(rows);
        if rows > self.limits.rows { Err(self.too_many_objects_error()) } else { Ok(()) }
    }

    pub(super) fn too_many_objects_error(&self) -> GatewayError {
        GatewayError::new(
            ErrorClass::TooLarge,
            format!(
                "the answer has more than {} objects, including nested ones, which is the limit \
                 (service.limits.graphql.rows); ask for smaller pages",
                self.limits.rows
            ),
        )
    }

    /// Counts the bytes of a member. Objects within it were counted when they were built.
    pub(super) fn count_bytes(&self, key: &Name, out: &ResultValue) -> Result<(), GatewayError> {
        let own = |out: &ResultValue| match out {
            ResultValue::Raw(text) | ResultValue::Text(text) => text.len() + 3,
            ResultValue::Shared(shared) => shared.count_bytes(),
            _ => 2,
        };
        let value = match out {
            ResultValue::List(items) => items.iter().map(own).sum(),
            other => own(other),
        };
        self.add_bytes(key.len() + 4 + value)
    }

    /// Counts bytes of the answer.
    fn add_bytes(&self, more: usize) -> Result<(), GatewayError> {
        let bytes = self.bytes.get() + more as u64;
        self.bytes.set(bytes);
        if bytes <= self.limits.answer {
            return self.budget.check_time();
        }
        Err(GatewayError::new(
            ErrorClass::TooLarge,
            format!(
                "the answer is longer than {} bytes, which is the limit (service.limits.graphql.answer); ask for \
                 smaller pages or fewer fields",
                self.limits.answer
            ),
        ))
    }
}

pub(super) fn to_json(value: &impl serde::Serialize) -> Result<Json, GatewayError> {
    serde_json::to_value(value).map_err(|error| {
        GatewayError::new(ErrorClass::Internal, format!("serializing to JSON failed: {error}"))
    })
}
