//! Plans what to read of an object, once for all objects of its type. What many objects need is then collected and read
//! together.
use super::document::{Arguments, Document, Selected};
use super::input;
use super::model::{FieldRole, Model};
use super::out::ResultValue;
use super::system::{NODE_TYPE, TEXT_TYPE};
use async_graphql::Name;
use async_graphql::parser::types::SelectionSet;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_model::mapping::Scalar;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::rc::Rc;

/// The selected fields of objects of one type.
pub(super) struct Plan<'d> {
    pub(super) type_name: Name,
    pub(super) steps: Vec<(Name, Step<'d>)>,
}

/// What one field of the answer shows. Each number is the index of a field in the shape.
pub(super) enum Step<'d> {
    TypeName,
    Uri,
    Leaf(usize, &'static Scalar, bool),
    /// The selected members of the texts of a language map.
    Texts(usize, Vec<(Name, TextPart)>),
    Nested(usize, bool, Plan<'d>),
    /// The group of the fields at these indexes.
    Group(Range<usize>, Plan<'d>),
    /// The object that is the value of a member of a map.
    Member(Plan<'d>),
    /// The objects that the field at this index refers to. Without an index: the nested object as an object of its own
    /// Business Object. The flag says whether the field may have several values.
    Follow(Option<(usize, bool)>, FollowedReferences<'d>),
    ReferredBy(Referrers<'d>),
}

/// A field of a text with its language.
pub(super) enum TextPart {
    TypeName,
    Language,
    Value,
}

/// References to objects of Business Objects, resolved by URI.
pub(super) struct FollowedReferences<'d> {
    /// The Business Object to read them as; `None` for the first, by name, that they belong to.
    pub(super) business: Option<usize>,
    pub(super) nodes: Nodes<'d>,
    /// The URIs to resolve.
    pub(super) wanted: RefCell<BTreeSet<String>>,
    /// The resolved objects; null for a URI that belongs to no Business Object.
    pub(super) known: RefCell<HashMap<String, Rc<ResultValue>>>,
}

/// References from other objects.
pub(super) struct Referrers<'d> {
    /// The Business Object to which the search is limited.
    pub(super) business: Option<usize>,
    pub(super) path: Option<String>,
    pub(super) page: Page<'d>,
    pub(super) wanted: RefCell<BTreeSet<String>>,
    pub(super) known: RefCell<HashMap<String, Rc<ResultValue>>>,
}

/// The selections for objects that may be of any type.
pub(super) struct Nodes<'d> {
    sets: Vec<&'d SelectionSet>,
    plans: RefCell<HashMap<usize, Rc<Plan<'d>>>>,
}

/// A page of a connection and its selected fields.
pub(super) struct Page<'d> {
    pub(super) first: usize,
    pub(super) after: Option<String>,
    pub(super) type_name: Name,
    pub(super) parts: Vec<(Name, PagePart<'d>)>,
}

/// A field of a page.
pub(super) enum PagePart<'d> {
    TypeName,
    Nodes(Nodes<'d>),
    Edges(Vec<(Name, EdgePart<'d>)>),
    PageInfo(Vec<(Name, String)>),
    TotalCount,
}

/// A field of an edge.
pub(super) enum EdgePart<'d> {
    TypeName,
    Cursor,
    Node(Nodes<'d>),
    ObjectType,
    Path,
}

impl<'d> Nodes<'d> {
    pub(super) fn new(sets: Vec<&'d SelectionSet>) -> Self {
        Self { sets, plans: RefCell::default() }
    }

    /// Returns the plan for the objects of one Business Object.
    pub(super) fn plan_for(
        &self,
        planner: &Planner<'d>,
        business: usize,
    ) -> Result<Rc<Plan<'d>>, GatewayError> {
        if let Some(plan) = self.plans.borrow().get(&business) {
            return Ok(Rc::clone(plan));
        }
        let object =
            planner.model.business_objects.get(business).map_or(0, |business| business.object);
        let plan = Rc::new(planner.plan_object(object, &self.sets)?);
        self.plans.borrow_mut().insert(business, Rc::clone(&plan));
        Ok(plan)
    }
}

/// Plans the execution of a document.
pub(super) struct Planner<'d> {
    pub(super) model: &'d Model,
    pub(super) document: &'d Document<'d>,
}

impl<'d> Planner<'d> {
    /// Plans the selections for objects of a type.
    pub(super) fn plan_object(
        &self,
        object: usize,
        sets: &[&'d SelectionSet],
    ) -> Result<Plan<'d>, GatewayError> {
        let object_type =
            self.model.object_types.get(object).ok_or_else(unimplemented_field_error)?;
        let is =
            |name: &str| name == object_type.name || (object_type.is_root() && name == NODE_TYPE);
        let mut steps = Vec::new();
        for Selected { key, field, sets } in self.document.collect_fields(sets, &is) {
            let name = field.node.name.node.as_str();
            let role = object_type.find_field(name).map(|field| field.role);
            let arguments = || self.document.resolve_arguments(&field.node);
            let step = match (name, role) {
                ("__typename", _) => Step::TypeName,
                (_, Some(FieldRole::Uri)) => Step::Uri,
                (_, Some(FieldRole::Leaf(place, leaf, many))) => Step::Leaf(place, leaf, many),
                (_, Some(FieldRole::Texts(place, _))) => {
                    Step::Texts(place, self.plan_texts(&sets)?)
                }
                (_, Some(FieldRole::Nested(place, to, many))) => {
                    Step::Nested(place, many, self.plan_object(to, &sets)?)
                }
                (_, Some(FieldRole::Group(to))) => {
                    let group = self.model.object_types.get(to).and_then(|to| to.group.clone());
                    Step::Group(group.unwrap_or_default(), self.plan_object(to, &sets)?)
                }
                (_, Some(FieldRole::Member(to))) => Step::Member(self.plan_object(to, &sets)?),
                (_, Some(FieldRole::Followed(place, many))) => {
                    Step::Follow(Some((place, many)), self.plan_follow(&arguments(), sets)?)
                }
                (_, Some(FieldRole::AsObject)) => {
                    Step::Follow(None, self.plan_follow(&arguments(), sets)?)
                }
                (_, Some(FieldRole::ReferredBy)) => {
                    Step::ReferredBy(self.plan_referrers(&arguments(), &sets)?)
                }
                (_, None) => return Err(unimplemented_field_error()),
            };
            steps.push((key.clone(), step));
        }
        Ok(Plan { type_name: Name::new(&object_type.name), steps })
    }

    /// Plans references, with the type that the argument `as` names.
    pub(super) fn plan_follow(
        &self,
        arguments: &Arguments,
        sets: Vec<&'d SelectionSet>,
    ) -> Result<FollowedReferences<'d>, GatewayError> {
        Ok(FollowedReferences {
            business: self.find_business_object(arguments.get_text("as"))?,
            nodes: Nodes::new(sets),
            wanted: RefCell::default(),
            known: RefCell::default(),
        })
    }

    /// Plans references from other objects.
    pub(super) fn plan_referrers(
        &self,
        arguments: &Arguments,
        sets: &[&'d SelectionSet],
    ) -> Result<Referrers<'d>, GatewayError> {
        Ok(Referrers {
            business: self.find_business_object(arguments.get_text("type"))?,
            path: arguments.get_text("path").map(str::to_owned),
            page: self.plan_page(super::system::REFERRERS_TYPE, "ReferrerEdge", arguments, sets)?,
            wanted: RefCell::default(),
            known: RefCell::default(),
        })
    }

    /// Plans a page of a connection of this type.
    pub(super) fn plan_page(
        &self,
        type_name: &str,
        edge: &str,
        arguments: &Arguments,
        sets: &[&'d SelectionSet],
    ) -> Result<Page<'d>, GatewayError> {
        let mut parts = Vec::new();
        for Selected { key, field, sets } in
            self.document.collect_fields(sets, &|name| name == type_name)
        {
            let part = match field.node.name.node.as_str() {
                "__typename" => PagePart::TypeName,
                "nodes" => PagePart::Nodes(Nodes::new(sets)),
                "edges" => PagePart::Edges(self.plan_edges(edge, &sets)?),
                "pageInfo" => {
                    let fields = self.document.collect_fields(&sets, &|name| name == "PageInfo");
                    let name = |field: &Selected<'_>| field.field.node.name.node.to_string();
                    PagePart::PageInfo(fields.iter().map(|f| (f.key.clone(), name(f))).collect())
                }
                "totalCount" => PagePart::TotalCount,
                _ => return Err(unimplemented_field_error()),
            };
            parts.push((key.clone(), part));
        }
        Ok(Page {
            first: input::parse_first(arguments)?,
            after: arguments.get_text("after").map(str::to_owned),
            type_name: Name::new(type_name),
            parts,
        })
    }

    fn plan_texts(&self, sets: &[&'d SelectionSet]) -> Result<Vec<(Name, TextPart)>, GatewayError> {
        let mut parts = Vec::new();
        for Selected { key, field, .. } in
            self.document.collect_fields(sets, &|name| name == TEXT_TYPE)
        {
            let part = match field.node.name.node.as_str() {
                "__typename" => TextPart::TypeName,
                "language" => TextPart::Language,
                "value" => TextPart::Value,
                _ => return Err(unimplemented_field_error()),
            };
            parts.push((key.clone(), part));
        }
        Ok(parts)
    }

    fn plan_edges(
        &self,
        type_name: &str,
        sets: &[&'d SelectionSet],
    ) -> Result<Vec<(Name, EdgePart<'d>)>, GatewayError> {
        let mut parts = Vec::new();
        for Selected { key, field, sets } in
            self.document.collect_fields(sets, &|name| name == type_name)
        {
            let part = match field.node.name.node.as_str() {
                "__typename" => EdgePart::TypeName,
                "cursor" => EdgePart::Cursor,
                "node" => EdgePart::Node(Nodes::new(sets)),
                "type" => EdgePart::ObjectType,
                "path" => EdgePart::Path,
                _ => return Err(unimplemented_field_error()),
            };
            parts.push((key.clone(), part));
        }
        Ok(parts)
    }

    /// Finds the Business Object whose objects have this type.
    fn find_business_object(&self, type_name: Option<&str>) -> Result<Option<usize>, GatewayError> {
        let Some(name) = type_name else { return Ok(None) };
        let object =
            self.model.by_name.get(name).and_then(|place| self.model.object_types.get(*place));
        match object {
            Some(object) if object.is_root() => Ok(Some(object.business)),
            _ => Err(GatewayError::new(
                ErrorClass::Invalid,
                format!("{name:?} is not the type of a Business Object"),
            )),
        }
    }
}

/// Returns the error for a field that passed the validation but is unknown here.
pub(super) fn unimplemented_field_error() -> GatewayError {
    GatewayError::new(ErrorClass::Internal, "the schema has a field without an implementation")
}
