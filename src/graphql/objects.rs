//! Reads objects in batches, level by level.
//!
//! First the objects of the batch are read, then all objects nested in them, each once and in the order of their
//! URIs, and so on down the plan. References in either direction are collected meanwhile and resolved in the same
//! way afterwards.
use super::execution::Execution;
use super::out::ResultValue;
use super::plan::{FollowedReferences, Plan, Referrers, Step, TextPart};
use super::system::TEXT_TYPE;
use async_graphql::Name;
use async_graphql::dynamic::TypeRef;
use oxrdf::{NamedNode, NamedNodeRef, Quad};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::json::Json;
use penstock_model::list::Lists;
use penstock_model::mapping::{FieldKind, Property, Scalar, Shape, Value};
use penstock_model::members;
use penstock_model::resource::Compiled;
use penstock_model::search::{ReferenceSearch, find_referrers};
use penstock_model::view::{
    FieldValues, NestingPath, ShownValues, find_member_name, order_members, shows_member,
};
use penstock_store::Read;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// The number of objects whose quads are in memory at once.
const OBJECTS_PER_BATCH: usize = 16;

/// The quads about the objects of a batch and those nested in them, and the lists of their ordered arrays.
#[derive(Default)]
struct Quads {
    about: HashMap<NamedNode, Vec<Quad>>,
    lists: Lists,
}

impl Quads {
    fn about(&self, uri: &NamedNode) -> &[Quad] {
        self.about.get(uri).map_or(&[][..], Vec::as_slice)
    }

    /// Returns the values of an object of this shape.
    fn values_of(&self, shape: &Shape, uri: &NamedNode) -> FieldValues<'_> {
        FieldValues::from_quads(shape, self.about(uri)).with_lists(&self.lists)
    }
}

/// An object whose values were read.
struct ReadObject<'b> {
    shape: &'b Shape,
    path: &'b NestingPath<'b>,
    owned: FieldValues<'b>,
    /// Whether it is nested in itself, so that it shows only its URI.
    within_itself: bool,
}

/// An object to read, its shape, and its plan.
type PlannedObject<'a, 'd> = (NamedNode, &'a Shape, &'a Plan<'d>);

impl<'d> Execution<'d> {
    /// Reads the objects with these URIs that belong to a Business Object.
    pub(super) fn read_objects(
        &self,
        business: usize,
        plan: &Plan<'d>,
        uris: &BTreeSet<String>,
    ) -> Result<HashMap<String, Rc<ResultValue>>, GatewayError> {
        let mut objects = HashMap::new();
        let Some(business) = self.planner.model.business_objects.get(business) else {
            return Ok(objects);
        };
        let shape = &business.compiled.mapping.root;
        let uris: Vec<NamedNode> = uris.iter().map(NamedNode::new_unchecked).collect();
        for chunk in uris.chunks(OBJECTS_PER_BATCH) {
            self.budget.count_examined(chunk.len())?;
            let (quads, present) = self.read_quads(&business.compiled, plan, chunk)?;
            self.resolve_references(plan)?;
            for uri in present {
                let out =
                    self.build_object(plan, shape, &NestingPath { uri, above: None }, &quads)?;
                objects.insert(uri.as_str().to_owned(), Rc::new(out));
            }
        }
        Ok(objects)
    }

    /// Selects the URIs whose objects belong to the Business Object. Reads the quads that the plan needs of these
    /// objects.
    fn read_quads<'u>(
        &self,
        compiled: &Compiled,
        plan: &Plan<'d>,
        uris: &'u [NamedNode],
    ) -> Result<(Quads, Vec<&'u NamedNode>), GatewayError> {
        let read = self.snapshot()?;
        let mut present = Vec::new();
        for uri in uris {
            if members::is_member(read, compiled, uri)? {
                present.push(uri);
            }
        }
        let mut quads = Quads::default();
        let root = &compiled.mapping.root;
        let mut level: Vec<PlannedObject<'_, 'd>> =
            present.iter().map(|uri| ((*uri).clone(), root, plan)).collect();
        let mut seen = HashSet::new();
        while !level.is_empty() {
            level.sort_by(|(a, ..), (b, ..)| a.cmp(b));
            let mut next = Vec::new();
            for (uri, shape, plan) in level {
                // The quads about a member of a map have its name.
                if !plan.needs_quads() && shape.map_member().is_none() {
                    collect_references(plan, &uri, shape, &FieldValues::from_quads(shape, &[]));
                    continue;
                }
                self.read_object(shape, &uri, &mut quads)?;
                let owned = quads.values_of(shape, &uri);
                collect_references(plan, &uri, shape, &owned);
                for (nested, shape, plan) in list_nested(plan, shape, &owned) {
                    if seen.insert((nested.clone(), std::ptr::from_ref(plan))) {
                        next.push((nested, shape, plan));
                    }
                }
            }
            level = next;
        }
        Ok((quads, present))
    }

    /// Adds the quads about an object of this shape, and its lists.
    fn read_object(
        &self,
        shape: &Shape,
        uri: &NamedNode,
        quads: &mut Quads,
    ) -> Result<(), GatewayError> {
        let read = self.snapshot()?;
        if !quads.about.contains_key(uri) {
            self.budget.count_examined(1)?;
            if quads.about.len() as u64 >= self.limits.rows {
                return Err(self.too_many_objects_error());
            }
            quads.about.insert(uri.clone(), read.quads_about(&uri.clone().into())?);
        }
        let Quads { about, lists } = quads;
        let about = about.get(uri).into_iter().flatten();
        let about = about.map(|quad| (quad.predicate.as_ref(), quad.object.as_ref()));
        let nodes = lists.add_object(read, shape, about)?;
        if nodes > 0 {
            self.budget.count_examined(nodes)?;
        }
        Ok(())
    }

    /// Returns the objects in a field, in the order of the view. A map shows only members with a name, and those that are values
    /// only with a value.
    fn order_objects<'q>(
        &self,
        shape: &Shape,
        uris: Vec<NamedNodeRef<'q>>,
        path: &NestingPath<'_>,
        quads: &Quads,
    ) -> Result<Vec<NamedNodeRef<'q>>, GatewayError> {
        let Some(map) = shape.map_member() else { return Ok(uris) };
        let read_name = |uri| (find_member_name(shape, quads.about(&NamedNode::from(uri))), uri);
        let named = uris.into_iter().map(read_name).collect();
        let mut shown = Vec::new();
        for (_, uri) in order_members(named, &mut |_, _| {}) {
            let node = NamedNode::from(uri);
            let member = NestingPath { uri: &node, above: Some(path) };
            let is_shown = map.value.is_none()
                || shows_member(self.snapshot()?, shape, &member, &quads.values_of(shape, &node))?;
            if is_shown {
                shown.push(uri);
            }
        }
        Ok(shown)
    }

    /// Resolves the references in either direction of the objects that were read.
    fn resolve_references(&self, plan: &Plan<'d>) -> Result<(), GatewayError> {
        for (_, step) in &plan.steps {
            match step {
                Step::Nested(_, _, plan) | Step::Group(_, plan) | Step::Member(plan) => {
                    self.resolve_references(plan)?;
                }
                Step::Follow(_, follow) => self.resolve_follow(follow)?,
                Step::ReferredBy(refer) => self.resolve_referrers(refer)?,
                Step::TypeName | Step::Uri | Step::Leaf(..) | Step::Texts(..) => {}
            }
        }
        Ok(())
    }

    fn resolve_follow(&self, follow: &FollowedReferences<'d>) -> Result<(), GatewayError> {
        let mut wanted = std::mem::take(&mut *follow.wanted.borrow_mut());
        wanted.retain(|uri| !follow.known.borrow().contains_key(uri));
        let mut uris_by_business: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for uri in &wanted {
            if let Some(business) = self.find_business_object(uri, follow.business)? {
                uris_by_business.entry(business).or_default().insert(uri.clone());
            }
        }
        let mut found = HashMap::new();
        for (business, uris) in uris_by_business {
            let plan = follow.nodes.plan_for(&self.planner, business)?;
            found.extend(self.read_objects(business, &plan, &uris)?);
        }
        let mut known = follow.known.borrow_mut();
        for uri in wanted {
            let out = found.remove(&uri).unwrap_or_else(|| Rc::new(ResultValue::Null));
            known.insert(uri, out);
        }
        Ok(())
    }

    /// Finds the first Business Object, by name, that an object belongs to. With `only`, considers only this one.
    pub(super) fn find_business_object(
        &self,
        uri: &str,
        only: Option<usize>,
    ) -> Result<Option<usize>, GatewayError> {
        self.budget.count_examined(1)?;
        let uri = NamedNode::new_unchecked(uri);
        let read = self.snapshot()?;
        for (place, business) in self.planner.model.business_objects.iter().enumerate() {
            if only.is_none_or(|only| only == place)
                && members::is_member(read, &business.compiled, &uri)?
            {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    fn resolve_referrers(&self, refer: &Referrers<'d>) -> Result<(), GatewayError> {
        let mut wanted = std::mem::take(&mut *refer.wanted.borrow_mut());
        wanted.retain(|uri| !refer.known.borrow().contains_key(uri));
        for page in self.find_referrers(refer, &wanted)? {
            refer.known.borrow_mut().insert(page.0, Rc::new(page.1));
        }
        Ok(())
    }

    /// Finds the objects that refer to each of these URIs. Returns a page for each of them.
    pub(super) fn find_referrers(
        &self,
        refer: &Referrers<'d>,
        uris: &BTreeSet<String>,
    ) -> Result<Vec<(String, ResultValue)>, GatewayError> {
        let model = self.planner.model;
        let all: Vec<_> = model.business_objects.iter().map(|one| one.compiled.clone()).collect();
        let place =
            |id: &str| model.business_objects.iter().position(|b| b.compiled.object.id == id);
        let only = refer.business.and_then(|place| model.business_objects.get(place));
        let page = &refer.page;
        let search = ReferenceSearch {
            business_object: only.map(|only| only.compiled.object.id.as_str()),
            path: refer.path.as_deref(),
            after: page.after.as_deref(),
            limit: page.first,
        };
        let mut pages = Vec::new();
        for uri in uris {
            let node = NamedNode::new_unchecked(uri);
            let found = find_referrers(self.snapshot()?, &all, &node, search, &self.budget)?;
            let items = found.found.into_iter().filter_map(|one| {
                Some(super::pages::PageItem {
                    business: place(&one.business_object.object.id)?,
                    uri: one.uri.into_string(),
                    cursor: one.cursor,
                    path: Some(one.path),
                })
            });
            pages.push((uri.clone(), items.collect::<Vec<_>>(), found.more));
        }
        // Objects that several pages share are read once.
        let loaded = self.load_page(page, &pages.iter().flat_map(|(_, items, _)| items))?;
        let pages = pages.into_iter().map(|(uri, items, more)| {
            let out = self.build_page(page, &items, more, &loaded, &|| Ok(ResultValue::Null))?;
            Ok((uri, out))
        });
        pages.collect()
    }

    /// Builds one object of the answer from the quads that were read.
    fn build_object(
        &self,
        plan: &Plan<'d>,
        shape: &Shape,
        path: &NestingPath<'_>,
        quads: &Quads,
    ) -> Result<ResultValue, GatewayError> {
        self.count_object()?;
        // An object nested in itself shows only its URI.
        let within_itself = path.is_within_itself();
        let owned = if within_itself {
            FieldValues::from_quads(shape, &[])
        } else {
            quads.values_of(shape, path.uri)
        };
        self.build_members(plan, &ReadObject { shape, path, owned, within_itself }, quads)
    }

    /// Builds the selected members of an object, or of a group in it.
    fn build_members(
        &self,
        plan: &Plan<'d>,
        object: &ReadObject<'_>,
        quads: &Quads,
    ) -> Result<ResultValue, GatewayError> {
        let ReadObject { shape, path, within_itself, .. } = *object;
        let owned = &object.owned;
        let mut members = Vec::with_capacity(plan.steps.len());
        for (key, step) in &plan.steps {
            let out = match step {
                Step::TypeName => ResultValue::from_text(plan.type_name.as_str()),
                Step::Uri => ResultValue::from_text(path.uri.as_str()),
                Step::Leaf(..) | Step::Texts(..) | Step::Nested(..) | Step::Group(..)
                    if within_itself =>
                {
                    ResultValue::Null
                }
                Step::Leaf(place, leaf, many) => {
                    let values = find_shown_values(shape, *place, owned);
                    let mut outs =
                        values.map_or_else(Vec::new, |(_, values)| render_values(leaf, &values));
                    if *many {
                        ResultValue::list_non_null(outs)
                    } else {
                        ResultValue::or_null(outs.pop())
                    }
                }
                Step::Texts(place, parts) => {
                    let mut outs = Vec::new();
                    if let Some((_, ShownValues::Literals(texts))) =
                        find_shown_values(shape, *place, owned)
                    {
                        for text in &texts {
                            let language = text.language().unwrap_or_default();
                            outs.push(self.build_text(parts, &language, &text.text)?);
                        }
                    }
                    ResultValue::List(outs)
                }
                Step::Nested(place, many, plan) => {
                    let mut outs = Vec::new();
                    if let Some((Value::Object(shape), ShownValues::Iris(iris))) =
                        find_shown_values(shape, *place, owned)
                    {
                        for uri in self.order_objects(shape, iris, path, quads)? {
                            let path = NestingPath { uri: &uri.into_owned(), above: Some(path) };
                            outs.push(self.build_object(plan, shape, &path, quads)?);
                        }
                    }
                    if *many { ResultValue::List(outs) } else { ResultValue::or_null(outs.pop()) }
                }
                Step::Member(plan) => self.build_members(plan, object, quads)?,
                Step::Group(places, plan) => {
                    let mut has_value = false;
                    for place in places.clone() {
                        has_value = has_value || self.shows_value(place, object)?;
                    }
                    if has_value {
                        self.build_members(plan, object, quads)?
                    } else {
                        ResultValue::Null
                    }
                }
                Step::Follow(None, follow) => get_known(&follow.known.borrow(), path.uri.as_str()),
                Step::Follow(Some((place, many)), follow) => {
                    let follows = follow.known.borrow();
                    let mut outs = Vec::new();
                    if let Some((_, values)) = find_shown_values(shape, *place, owned) {
                        outs.extend(values.iris().map(|uri| get_known(&follows, uri.as_str())));
                    }
                    if *many { ResultValue::List(outs) } else { ResultValue::or_null(outs.pop()) }
                }
                Step::ReferredBy(refer) => get_known(&refer.known.borrow(), path.uri.as_str()),
            };
            self.count_bytes(key, &out)?;
            members.push((key.clone(), out));
        }
        Ok(ResultValue::Object(members))
    }

    /// Returns whether the field at an index shows a value. A map does if it shows a member, which is read here because
    /// the query may not select it.
    fn shows_value(&self, place: usize, object: &ReadObject<'_>) -> Result<bool, GatewayError> {
        let Some((value, shown)) = find_shown_values(object.shape, place, &object.owned) else {
            return Ok(false);
        };
        let (Value::Object(shape), ShownValues::Iris(iris)) = (value, &shown) else {
            return Ok(shown.texts().next().is_some());
        };
        if shape.map_member().is_none() {
            return Ok(!iris.is_empty());
        }
        // Of several members with one name only the first counts.
        let mut names = HashSet::new();
        for uri in iris {
            let (node, mut quads) = (NamedNode::from(*uri), Quads::default());
            self.read_object(shape, &node, &mut quads)?;
            if names.insert(find_member_name(shape, quads.about(&node)))
                && !self.order_objects(shape, vec![*uri], object.path, &quads)?.is_empty()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Builds the selected members of a text with its language.
    fn build_text(
        &self,
        parts: &[(Name, TextPart)],
        language: &str,
        text: &str,
    ) -> Result<ResultValue, GatewayError> {
        let mut members = Vec::with_capacity(parts.len());
        for (key, part) in parts {
            let out = ResultValue::from_text(match part {
                TextPart::TypeName => TEXT_TYPE,
                TextPart::Language => language,
                TextPart::Value => text,
            });
            self.count_bytes(key, &out)?;
            members.push((key.clone(), out));
        }
        Ok(ResultValue::Object(members))
    }
}

impl Plan<'_> {
    /// Returns whether the quads about an object have to be read.
    fn needs_quads(&self) -> bool {
        self.steps.iter().any(|(_, step)| match step {
            Step::Leaf(..)
            | Step::Texts(..)
            | Step::Nested(..)
            | Step::Group(..)
            | Step::Member(_)
            | Step::Follow(Some(_), _) => true,
            Step::TypeName | Step::Uri | Step::Follow(None, _) | Step::ReferredBy(_) => false,
        })
    }
}

/// Collects the references that the plan needs of an object.
fn collect_references(plan: &Plan<'_>, uri: &NamedNode, shape: &Shape, owned: &FieldValues<'_>) {
    for (_, step) in &plan.steps {
        match step {
            Step::Follow(None, follow) => {
                follow.wanted.borrow_mut().insert(uri.as_str().to_owned());
            }
            Step::Follow(Some((place, _)), follow) => {
                if let Some((_, values)) = find_shown_values(shape, *place, owned) {
                    let uris = values.iris().map(|iri| iri.as_str().to_owned());
                    follow.wanted.borrow_mut().extend(uris);
                }
            }
            Step::ReferredBy(refer) => {
                refer.wanted.borrow_mut().insert(uri.as_str().to_owned());
            }
            Step::Group(_, plan) | Step::Member(plan) => {
                collect_references(plan, uri, shape, owned);
            }
            Step::TypeName | Step::Uri | Step::Leaf(..) | Step::Texts(..) | Step::Nested(..) => {}
        }
    }
}

/// Lists the objects nested in an object.
fn list_nested<'a, 'd>(
    plan: &'a Plan<'d>,
    shape: &'a Shape,
    owned: &FieldValues<'_>,
) -> Vec<PlannedObject<'a, 'd>> {
    let mut all = Vec::new();
    for (_, step) in &plan.steps {
        if let Step::Group(_, plan) | Step::Member(plan) = step {
            all.extend(list_nested(plan, shape, owned));
        } else if let Step::Nested(place, _, plan) = step
            && let Some((Value::Object(shape), ShownValues::Iris(iris))) =
                find_shown_values(shape, *place, owned)
        {
            all.extend(iris.into_iter().map(|uri| (uri.into_owned(), shape, plan)));
        }
    }
    all
}

/// Returns the type of the field at an index, and the values that it shows.
fn find_shown_values<'s, 'q>(
    shape: &'s Shape,
    place: usize,
    owned: &FieldValues<'q>,
) -> Option<(&'s Value, ShownValues<'q>)> {
    let FieldKind::Property(property) = &shape.fields.get(place)?.kind else { return None };
    let Property { value, .. } = property;
    Some((value, owned.collect_shown(place, property)))
}

fn get_known(known: &HashMap<String, Rc<ResultValue>>, uri: &str) -> ResultValue {
    ResultValue::or_null(known.get(uri).map(|out| ResultValue::Shared(Rc::clone(out))))
}

/// Writes values as the view does.
fn render_values(leaf: &Scalar, values: &ShownValues<'_>) -> Vec<ResultValue> {
    match values {
        ShownValues::Iris(iris) => {
            iris.iter().map(|iri| ResultValue::from_text(iri.as_str())).collect()
        }
        ShownValues::Codes(codes) => codes
            .iter()
            .map(|code| match &code.json {
                Json::String(text) => ResultValue::from_text(text.as_str()),
                _ => ResultValue::Raw(code.text().to_owned()),
            })
            .collect(),
        ShownValues::Literals(shown) => shown
            .iter()
            // Its GraphQL type allows no other values.
            .map(|shown| match (shown.raw, leaf.name == TypeRef::BOOLEAN) {
                (true, _) => ResultValue::Raw(shown.text.to_string()),
                (false, false) => ResultValue::from_text(shown.text.as_ref()),
                (false, true) => ResultValue::Failed(Box::new(GatewayError::new(
                    ErrorClass::Invalid,
                    format!("the stored value {:?} is neither true nor false", shown.text),
                ))),
            })
            .collect(),
    }
}
