//! Executes an operation.
//!
//! The library validates documents and answers introspection. This module answers what is stored. The library's
//! executor resolves one field at a time and omits fields that fail, although they should be null (GraphQL, 6.4.4).
//! Here everything that is selected of many objects is known in advance and read together.
use super::document::{Arguments, Selected};
use super::fields::inner_type;
use super::gateway_types::{CHANGE_TYPE, find_members};
use super::model::{BusinessObjectTypes, RootField};
use super::out::ResultValue;
use super::pages::PageItem;
use super::plan::{PagePart, Planner, unimplemented_field_error};
use super::schema::GraphqlSources;
use super::system::{self, QUERY_TYPE};
use super::{input, user};
use async_graphql::parser::types::SelectionSet;
use async_graphql::{PathSegment, Value};
use penstock_auth::Caller;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_config::GraphqlLimits;
use penstock_model::resource::Compiled;
use penstock_model::search::{self, Search, SearchBudget};
use penstock_model::visible::VisibleObjects;
use penstock_resources::change::Change;
use penstock_service::business_objects::find_business_object_id;
use penstock_service::changes::{ChangeFilter, list_visible};
use penstock_service::objects::parse_uri;
use penstock_store::{Error, Snapshot};
use serde_json::Value as Json;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// The maximum number of pending changes in an answer.
const MAX_PENDING_CHANGES: usize = 1000;

/// The state of a running operation, on a blocking thread.
pub(super) struct Execution<'d> {
    pub(super) planner: Planner<'d>,
    pub(super) sources: &'d GraphqlSources,
    /// What the answer shows of the stored graph. Opened for the first field that reads it.
    snapshot: OnceCell<Result<VisibleObjects<'d, Snapshot>, GatewayError>>,
    pub(super) limits: GraphqlLimits,
    pub(super) budget: SearchBudget,
    /// The number of objects in the answer so far.
    pub(super) rows: Cell<u64>,
    /// The approximate size of the answer so far, in bytes.
    pub(super) bytes: Cell<u64>,
    /// The open changes that were listed so far, by the Business Object that limits them.
    pending_changes: RefCell<HashMap<Option<String>, Rc<[Change]>>>,
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

    /// Returns the result. A field that fails is null; the whole result is if the field must not be. `introspected` is the
    /// library's answer to introspection.
    pub(super) fn answer_operation(&self, introspected: &Value) -> ResultValue {
        let document = self.planner.document;
        let sets = [&document.operation.selection_set.node];
        let fields = document.collect_fields(&sets, &|name| name == QUERY_TYPE);
        let mut members = Vec::with_capacity(fields.len());
        for selected in fields {
            let (key, name) = (selected.key.clone(), selected.field.node.name.node.as_str());
            let out = match name {
                "__typename" => Ok(ResultValue::from_text(QUERY_TYPE)),
                "__schema" | "__type" => Ok(get_introspected_member(introspected, &key)),
                name => self.answer_root_field(name, &selected),
            };
            let out = match out {
                Ok(out) => out,
                Err(error) if self.is_non_null(name) => {
                    let place = PathSegment::Field(key.to_string());
                    return ResultValue::FailedBelow(place, Box::new(error));
                }
                Err(error) => ResultValue::Failed(Box::new(error)),
            };
            members.push((key, out));
        }
        ResultValue::Object(members)
    }

    /// Whether a field of the query type must not be null.
    fn is_non_null(&self, name: &str) -> bool {
        !self.planner.model.roots.contains_key(name)
            && system::NON_NULL_QUERY_FIELDS.contains(&name)
    }

    fn answer_root_field(
        &self,
        name: &str,
        selected: &Selected<'d>,
    ) -> Result<ResultValue, GatewayError> {
        let arguments = self.planner.document.resolve_arguments(&selected.field.node);
        let sets = &selected.sets;
        match self.planner.model.roots.get(name) {
            Some(RootField::One(business)) => {
                return self.answer_object(*business, &arguments, sets);
            }
            Some(RootField::Many(business)) => {
                return self.answer_connection(*business, &arguments, sets);
            }
            Some(RootField::Summary(business)) => {
                return self.answer_summary(*business, &arguments, sets);
            }
            None => {}
        }
        match name {
            "authenticatedUser" => self.select_members(
                "AuthenticatedUser",
                &user::caller_to_json(&self.sources.gateway, self.caller),
                sets,
            ),
            "businessObjects" => self.answer_business_objects(sets),
            "targets" => {
                let targets = self.sources.exporter.list_targets()?;
                let targets = targets
                    .iter()
                    .map(|target| self.select_members("Target", &to_json(target)?, sets));
                Ok(ResultValue::List(targets.collect::<Result<_, GatewayError>>()?))
            }
            "exports" => self.answer_exports(&arguments, sets),
            system::CHANGES_FIELD => self.answer_pending_changes(&arguments, sets),
            "object" => self.answer_any_object(&arguments, sets),
            "referredBy" => self.answer_referred_by(&arguments, sets),
            _ => Err(unimplemented_field_error()),
        }
    }

    /// Answers with one object by its URI.
    fn answer_object(
        &self,
        business: usize,
        arguments: &Arguments,
        sets: &[&'d SelectionSet],
    ) -> Result<ResultValue, GatewayError> {
        let uri = parse_uri(arguments.require_text("uri")?)?.into_string();
        let object = self.business_object_types(business)?.object;
        let plan = self.planner.plan_object(object, sets)?;
        let mut found = self.read_objects(business, &plan, &BTreeSet::from([uri.clone()]))?;
        Ok(ResultValue::or_null(found.remove(&uri).map(ResultValue::Shared)))
    }

    /// Answers with a page of the objects of a Business Object.
    fn answer_connection(
        &self,
        place: usize,
        arguments: &Arguments,
        sets: &[&'d SelectionSet],
    ) -> Result<ResultValue, GatewayError> {
        let model = self.planner.model;
        let business = self.business_object_types(place)?;
        let object =
            model.object_types.get(business.object).ok_or_else(unimplemented_field_error)?;
        let connection = super::model::connection_type_name(&object.name);
        let edge = format!("{}Edge", object.name);
        let page = self.planner.plan_page(&connection, &edge, arguments, sets)?;
        let filter = input::parse_filter(model, object, arguments)?;
        let (snapshot, compiled) = (self.snapshot()?, &business.compiled);
        let search = Search {
            filter: filter.as_ref(),
            order: input::parse_order(business, arguments)?,
            after: page.after.as_deref(),
            limit: page.first,
        };
        // Skip the search if only the count is requested.
        let lists = |(_, part): &(_, PagePart<'_>)| {
            !matches!(part, PagePart::TypeName | PagePart::TotalCount)
        };
        let (items, more) = if page.parts.iter().any(lists) {
            let found = search::find_page(snapshot, compiled, &search, &self.budget)?;
            let items = found.found.into_iter().map(|found| PageItem {
                business: place,
                uri: found.uri.into_string(),
                cursor: found.cursor,
                path: None,
            });
            (items.collect::<Vec<_>>(), found.more)
        } else {
            (Vec::new(), false)
        };
        let loaded = self.load_page(&page, &items.iter())?;
        let total = || {
            let count = search::count_objects(snapshot, compiled, filter.as_ref(), &self.budget)?;
            Ok(ResultValue::Raw(count.to_string()))
        };
        self.build_page(&page, &items, more, &loaded, &total)
    }

    /// Answers with an object of any Business Object.
    fn answer_any_object(
        &self,
        arguments: &Arguments,
        sets: &[&'d SelectionSet],
    ) -> Result<ResultValue, GatewayError> {
        let uri = parse_uri(arguments.require_text("uri")?)?.into_string();
        let follow = self.planner.plan_follow(arguments, sets.to_vec())?;
        let Some(business) = self.find_business_object(&uri, follow.business)? else {
            return Ok(ResultValue::Null);
        };
        let plan = follow.nodes.plan_for(&self.planner, business)?;
        let mut found = self.read_objects(business, &plan, &BTreeSet::from([uri.clone()]))?;
        Ok(ResultValue::or_null(found.remove(&uri).map(ResultValue::Shared)))
    }

    fn answer_referred_by(
        &self,
        arguments: &Arguments,
        sets: &[&'d SelectionSet],
    ) -> Result<ResultValue, GatewayError> {
        let uri = parse_uri(arguments.require_text("uri")?)?.into_string();
        let refer = self.planner.plan_referrers(arguments, sets)?;
        let pages = self.find_referrers(&refer, &BTreeSet::from([uri]))?;
        Ok(ResultValue::or_null(pages.into_iter().next().map(|(_, out)| out)))
    }

    /// Answers with the open changes that the caller may see.
    fn answer_pending_changes(
        &self,
        arguments: &Arguments,
        sets: &[&'d SelectionSet],
    ) -> Result<ResultValue, GatewayError> {
        let gateway = &self.sources.gateway;
        let business_object = arguments
            .get_text("businessObject")
            .map(|id_or_name| find_business_object_id(gateway, id_or_name));
        let changes = self.list_pending_changes(business_object)?;
        let show = |change: &Change| {
            self.count_object()?;
            self.select_members(CHANGE_TYPE, &to_json(change)?, sets)
        };
        Ok(ResultValue::List(changes.iter().map(show).collect::<Result<_, GatewayError>>()?))
    }

    /// Returns the open changes that the caller may see, or those of the Business Object with this id. Fields of one
    /// operation share them, because each list reads all open changes.
    fn list_pending_changes(
        &self,
        business_object: Option<String>,
    ) -> Result<Rc<[Change]>, GatewayError> {
        if let Some(known) = self.pending_changes.borrow().get(&business_object) {
            return Ok(Rc::clone(known));
        }
        let filter = ChangeFilter {
            only_open: true,
            business_object: business_object.clone(),
            ..ChangeFilter::default()
        };
        let mut changes: Vec<Change> = Vec::new();
        loop {
            self.budget.check_time()?;
            let after = changes.last().map(|last| last.id.clone());
            let limit = MAX_PENDING_CHANGES + 1 - changes.len();
            // A page of large changes has fewer than the limit.
            let page =
                list_visible(&self.sources.gateway, self.caller, &filter, after.as_deref(), limit)?;
            changes.extend(page.changes.into_iter().map(Change::from));
            if changes.len() > MAX_PENDING_CHANGES {
                return Err(GatewayError::new(
                    ErrorClass::Malformed,
                    format!(
                        "there are more than {MAX_PENDING_CHANGES} open changes that the caller may see; limit them with `businessObject`, or read GET /api/v1/changes in pages"
                    ),
                ));
            }
            if !page.has_more {
                let changes: Rc<[Change]> = changes.into();
                self.pending_changes.borrow_mut().insert(business_object, Rc::clone(&changes));
                return Ok(changes);
            }
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
}

/// Returns a member of the library's answer.
fn get_introspected_member(introspected: &Value, key: &str) -> ResultValue {
    let value = match introspected {
        Value::Object(members) => members.get(key),
        _ => None,
    };
    let json = value.and_then(|value| serde_json::to_string(value).ok());
    json.map_or(ResultValue::Null, ResultValue::Raw)
}

pub(super) fn to_json(value: &impl serde::Serialize) -> Result<Json, GatewayError> {
    serde_json::to_value(value).map_err(|error| {
        GatewayError::new(ErrorClass::Internal, format!("serializing to JSON failed: {error}"))
    })
}
