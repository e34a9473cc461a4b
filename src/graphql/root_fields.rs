//! Executes an operation: answers the fields of the query type.
//!
//! The library validates documents and answers introspection. This module answers what is stored. The library's
//! executor resolves one field at a time and omits fields that fail, although they should be null (GraphQL, 6.4.4).
//! Here everything that is selected of many objects is known in advance and read together.
use super::document::{Arguments, Selected};
use super::execution::{Execution, to_json};
use super::gateway_types::CHANGE_TYPE;
use super::model::RootField;
use super::out::ResultValue;
use super::pages::PageItem;
use super::plan::{PagePart, unimplemented_field_error};
use super::system::{self, QUERY_TYPE};
use super::{input, user};
use async_graphql::parser::types::SelectionSet;
use async_graphql::{PathSegment, Value};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_model::search::{self, Search};
use penstock_resources::change::Change;
use penstock_service::business_objects::find_business_object_id;
use penstock_service::changes::{ChangeFilter, list_visible};
use penstock_service::objects::parse_uri;
use std::collections::BTreeSet;
use std::rc::Rc;

/// The maximum number of pending changes in an answer.
const MAX_PENDING_CHANGES: usize = 1000;

impl<'d> Execution<'d> {
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
