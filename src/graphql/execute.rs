//! Executes an operation.
//!
//! The library validates documents and answers introspection. This module answers what is stored. The library's
//! executor resolves one field at a time and omits fields that fail, although they should be null (GraphQL, 6.4.4).
//! Here everything that is selected of many objects is known in advance and read together.
use super::document::{Arguments, Document, Selected};
use super::model::{Business, Model, Root};
use super::out::Out;
use super::pages::Item;
use super::plan::{Part, Planner, iri, unknown};
use super::schema::Sources;
use super::system::{self, QUERY};
use super::{input, user};
use async_graphql::Value;
use async_graphql::parser::types::SelectionSet;
use penstock_auth::{Caller, Credential};
use penstock_base::fault::{Fault, Kind};
use penstock_config::GraphqlLimits;
use penstock_model::resource::Compiled;
use penstock_model::search::{self, Bounds, Search};
use serde_json::Value as Json;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The number of exports read at a time.
const EXPORTS: usize = 200;

/// The state of a running operation, on a blocking thread.
pub(super) struct Execution<'d> {
    pub(super) planner: Planner<'d>,
    pub(super) sources: &'d Sources,
    pub(super) limits: GraphqlLimits,
    pub(super) bounds: Bounds,
    /// The number of objects in the answer so far.
    pub(super) rows: Cell<u64>,
    /// The approximate size of the answer so far, in bytes.
    pub(super) bytes: Cell<u64>,
    caller: &'d Caller,
    all: &'d [Arc<Compiled>],
}

impl<'d> Execution<'d> {
    pub(super) fn new(
        model: &'d Model,
        all: &'d [Arc<Compiled>],
        document: &'d Document<'d>,
        sources: &'d Sources,
        limits: GraphqlLimits,
        caller: &'d Caller,
    ) -> Self {
        Self {
            planner: Planner { model, document },
            sources,
            limits,
            bounds: Bounds::new(limits.scan, limits.time),
            rows: Cell::new(0),
            bytes: Cell::new(0),
            caller,
            all,
        }
    }

    /// Returns the result. A field that fails is null. `introspected` is the library's answer to introspection.
    pub(super) fn run(&self, introspected: &Value) -> Out {
        let document = self.planner.document;
        let sets = [&document.operation.selection_set.node];
        let fields = document.collect(&sets, &|name| name == QUERY);
        let members = fields.into_iter().map(|selected| {
            let key = selected.key.clone();
            let out = match selected.field.node.name.node.as_str() {
                "__typename" => Ok(Out::text(QUERY)),
                "__schema" | "__type" => Ok(member(introspected, &key)),
                name => self.root(name, &selected),
            };
            (key, out.unwrap_or_else(|fault| Out::Failed(Box::new(fault))))
        });
        Out::Object(members.collect())
    }

    fn root(&self, name: &str, selected: &Selected<'d>) -> Result<Out, Fault> {
        let arguments = self.planner.document.arguments(&selected.field.node);
        let sets = &selected.sets;
        match self.planner.model.roots.get(name) {
            Some(Root::One(business)) => return self.one(*business, &arguments, sets),
            Some(Root::Many(business)) => return self.many(*business, &arguments, sets),
            None => {}
        }
        match name {
            "authenticatedUser" => {
                Ok(self.members("AuthenticatedUser", &user::members(self.caller), sets))
            }
            "businessObjects" => Ok(Out::List(
                self.all
                    .iter()
                    .map(|one| self.business_object(one, sets))
                    .collect::<Result<_, _>>()?,
            )),
            "targets" => {
                let targets = self.sources.exporter.targets()?;
                let targets =
                    targets.iter().map(|target| Ok(self.members("Target", &json(target)?, sets)));
                Ok(Out::List(targets.collect::<Result<_, Fault>>()?))
            }
            "exports" => self.exports(&arguments, sets),
            "object" => self.any(&arguments, sets),
            "referredBy" => self.referred_by(&arguments, sets),
            _ => Err(unknown()),
        }
    }

    /// Answers with one object by its URI.
    fn one(
        &self,
        business: usize,
        arguments: &Arguments,
        sets: &[&'d SelectionSet],
    ) -> Result<Out, Fault> {
        let uri = iri(arguments.text("uri").unwrap_or_default())?.into_string();
        let object = self.business(business)?.object;
        let plan = self.planner.plan(object, sets)?;
        let mut found = self.objects(business, &plan, &BTreeSet::from([uri.clone()]))?;
        Ok(Out::or_null(found.remove(&uri).map(Out::Shared)))
    }

    /// Answers with a page of the objects of a Business Object.
    fn many(
        &self,
        place: usize,
        arguments: &Arguments,
        sets: &[&'d SelectionSet],
    ) -> Result<Out, Fault> {
        let model = self.planner.model;
        let business = self.business(place)?;
        let object = model.objects.get(business.object).ok_or_else(unknown)?;
        let connection = super::model::connection(&object.name);
        let edge = format!("{}Edge", object.name);
        let page = self.planner.page(&connection, &edge, arguments, sets)?;
        let filter = input::filter(model, object, arguments)?;
        let (store, compiled) = (&self.sources.store, &business.compiled);
        let search = Search {
            filter: filter.as_ref(),
            order: input::order(business, arguments)?,
            after: page.after.as_deref(),
            limit: page.first,
        };
        // Skip the search if only the count is requested.
        let lists = |(_, part): &(_, Part<'_>)| !matches!(part, Part::TypeName | Part::TotalCount);
        let (items, more) = if page.parts.iter().any(lists) {
            let found = search::page(store, compiled, &search, &self.bounds)?;
            let items = found.found.into_iter().map(|found| Item {
                business: place,
                uri: found.uri.into_string(),
                cursor: found.cursor,
                path: None,
            });
            (items.collect::<Vec<_>>(), found.more)
        } else {
            (Vec::new(), false)
        };
        let loaded = self.load(&page, &items.iter())?;
        let total = || {
            let count = search::count(store, compiled, filter.as_ref(), &self.bounds)?;
            Ok(Out::Raw(count.to_string()))
        };
        self.connect(&page, &items, more, &loaded, &total)
    }

    /// Answers with an object of any Business Object.
    fn any(&self, arguments: &Arguments, sets: &[&'d SelectionSet]) -> Result<Out, Fault> {
        let uri = iri(arguments.text("uri").unwrap_or_default())?.into_string();
        let follow = self.planner.follow(arguments, sets.to_vec())?;
        let Some(business) = self.belongs(&uri, follow.business)? else { return Ok(Out::Null) };
        let plan = follow.nodes.plan(&self.planner, business)?;
        let mut found = self.objects(business, &plan, &BTreeSet::from([uri.clone()]))?;
        Ok(Out::or_null(found.remove(&uri).map(Out::Shared)))
    }

    fn referred_by(&self, arguments: &Arguments, sets: &[&'d SelectionSet]) -> Result<Out, Fault> {
        let uri = iri(arguments.text("uri").unwrap_or_default())?.into_string();
        let refer = self.planner.refer(arguments, sets)?;
        let pages = self.referrers(&refer, &BTreeSet::from([uri]))?;
        Ok(Out::or_null(pages.into_iter().next().map(|(_, out)| out)))
    }

    fn business_object(
        &self,
        compiled: &Compiled,
        sets: &[&'d SelectionSet],
    ) -> Result<Out, Fault> {
        let model = self.planner.model;
        let mut members = json(&compiled.object)?;
        let id = &compiled.object.id;
        let place = model.business.iter().position(|one| one.compiled.object.id == *id);
        let of = place.and_then(|place| model.root_type(place));
        if let Json::Object(members) = &mut members {
            members.insert("type".to_owned(), of.map_or(Json::Null, |of| of.name.clone().into()));
            let left_out = model.left_out.iter().find(|left| left.id == *id);
            let missing = left_out.map_or(Json::Null, |left| left.why.clone().into());
            members.insert("typeMissing".to_owned(), missing);
        }
        Ok(self.members("BusinessObject", &members, sets))
    }

    /// Answers with a page of exports.
    fn exports(&self, arguments: &Arguments, sets: &[&'d SelectionSet]) -> Result<Out, Fault> {
        let first = input::first(arguments)?;
        let after = arguments.text("after").map(str::to_owned);
        if after.as_ref().is_some_and(|id| uuid::Uuid::parse_str(id).is_err()) {
            return Err(Fault::new(
                Kind::Malformed,
                "`after` is not a cursor of a page of exports",
            ));
        }
        // An API key for one Business Object sees only the exports of this one.
        let own = match &self.caller.credential {
            Credential::ApiKey { business_object, .. } => business_object.as_deref(),
            _ => None,
        };
        let (target, status) = (arguments.text("target"), arguments.text("status"));
        let of = arguments.text("businessObject");
        let (mut from, mut items, mut more) = (after.clone(), Vec::new(), false);
        'pages: loop {
            self.bounds.check_time()?;
            let page = self.sources.exporter.list(from.as_deref(), EXPORTS)?;
            let Some(last) = page.last() else { break };
            from = Some(last.id.clone());
            for entry in page {
                if own.is_some_and(|own| own != entry.business_object)
                    || of.is_some_and(|of| {
                        of != entry.business_object && of != entry.business_object_name
                    })
                    || target.is_some_and(|target| target != entry.target)
                {
                    continue;
                }
                let members = json(&entry)?;
                if status.is_some_and(|status| {
                    members.get("status").and_then(Json::as_str) != Some(status)
                }) {
                    continue;
                }
                if items.len() == first {
                    more = true;
                    break 'pages;
                }
                items.push((entry.id, members));
            }
        }
        let cursor = |item: Option<&(String, Json)>| item.map(|(id, _)| id.clone());
        let (start, end) = (cursor(items.first()), cursor(items.last()));
        let edges = items.iter().map(|(id, node)| serde_json::json!({"cursor": id, "node": node}));
        let connection = serde_json::json!({
            "edges": edges.collect::<Vec<_>>(),
            "nodes": items.iter().map(|(_, node)| node).collect::<Vec<_>>(),
            "pageInfo": {
                "hasNextPage": more,
                "hasPreviousPage": after.is_some(),
                "startCursor": start,
                "endCursor": end,
            },
        });
        Ok(self.members("ExportConnection", &connection, sets))
    }

    /// Selects the requested members of one of the gateway's own types.
    fn members(&self, type_name: &str, value: &Json, sets: &[&'d SelectionSet]) -> Out {
        let known = system::members(type_name).unwrap_or_default();
        let fields = self.planner.document.collect(sets, &|name| name == type_name);
        let members = fields.into_iter().map(|Selected { key, field, sets }| {
            let name = field.node.name.node.as_str();
            let kind = known.iter().find(|(member, ..)| *member == name).map(|(_, kind, _)| *kind);
            let (inner, _) = system::inner(kind.unwrap_or_default());
            let composite = system::members(inner).is_some();
            let out = match value.get(name) {
                _ if name == "__typename" => Out::text(type_name),
                Some(Json::Array(items)) if composite => {
                    Out::List(items.iter().map(|item| self.members(inner, item, &sets)).collect())
                }
                Some(one) if composite => self.members(inner, one, &sets),
                Some(leaf) => Out::json(leaf),
                None => Out::Null,
            };
            (key.clone(), out)
        });
        Out::Object(members.collect())
    }

    fn business(&self, place: usize) -> Result<&'d Business, Fault> {
        self.planner.model.business.get(place).ok_or_else(unknown)
    }
}

/// Returns a member of the library's answer.
fn member(introspected: &Value, key: &str) -> Out {
    let value = match introspected {
        Value::Object(members) => members.get(key),
        _ => None,
    };
    let json = value.and_then(|value| serde_json::to_string(value).ok());
    json.map_or(Out::Null, Out::Raw)
}

fn json(value: &impl serde::Serialize) -> Result<Json, Fault> {
    serde_json::to_value(value)
        .map_err(|error| Fault::new(Kind::Internal, format!("serializing to JSON failed: {error}")))
}
