//! The GraphQL types of Business Objects, their names, and what each field shows.
//!
//! The type of a nested object is named after its position: `Pump_Address` for the field `address` of `Pump`. Equal
//! nested objects of one Business Object share the type of the first position. That of a group is named in the same way.
use super::gateway_types::CHANGE_TYPE;
use super::names::{self, UsedNames};
use super::system::{self, SUMMARY_ENDING, SUMMARY_TYPE};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_model::mapping::{Entry, FieldKind, Level, Property, Scalar, Shape, Value};
use penstock_model::resource::Compiled;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// The maximum number of fields of one Business Object. A larger one gets no type, because its types would take too
/// much memory.
const MAX_FIELDS_PER_BUSINESS_OBJECT: usize = 1_000;

/// Names of fields that every object or filter has, or that an enum must not contain.
const RESERVED_NAMES: [&str; 9] =
    ["uri", "referredBy", "asObject", "and", "or", "not", "true", "false", "null"];

/// The types of all visible Business Objects.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// The Business Objects, sorted by name.
    pub(super) business_objects: Vec<BusinessObjectTypes>,
    pub(super) object_types: Vec<ObjectType>,
    /// The types of objects by name, as indexes into `objects`.
    pub(super) by_name: HashMap<String, usize>,
    /// The fields of the query type that lead to objects of one Business Object, by name.
    pub(super) roots: HashMap<String, RootField>,
    /// The Business Objects that have no type.
    pub(super) left_out: Vec<LeftOut>,
    /// Whether the names of [`CHANGE_TYPE`] and [`system::CHANGES_FIELD`] are free for them.
    pub(super) has_changes: bool,
    /// Whether Business Objects have summaries: the name of [`SUMMARY_TYPE`] is free for it.
    pub(super) has_summaries: bool,
    /// Whether the whole gateway is visible, and not only the Business Objects of an API key.
    pub(super) whole: bool,
}

/// What a field of the query type leads to; the number is an index into [`Model::business_objects`].
#[derive(Debug, Clone, Copy)]
pub(super) enum RootField {
    /// One object by its URI.
    One(usize),
    /// A connection of objects.
    Many(usize),
    /// The summary of the objects.
    Summary(usize),
}

/// A Business Object and its part of the schema.
#[derive(Debug)]
pub(super) struct BusinessObjectTypes {
    pub(super) compiled: Arc<Compiled>,
    /// The type of its objects, as an index into [`Model::object_types`].
    pub(super) object: usize,
    /// The name of the query field for one object.
    pub(super) one: String,
    /// The name of the query field for its connection.
    pub(super) many: String,
    /// The name of the query field for its summary.
    pub(super) summary: String,
    /// What its objects can be ordered by: the name, and the index of a field in the root shape, or `None` for the
    /// URI.
    pub(super) orders: Vec<(String, Option<usize>)>,
    /// The number of fields of its types.
    pub(super) fields: usize,
}

/// A Business Object that has no type.
#[derive(Debug)]
pub(super) struct LeftOut {
    pub(super) id: String,
    pub(super) name: String,
    /// The name of the query field for one object, if it had one.
    field: String,
    /// The name of the type of its objects, if it had one.
    type_name: String,
    pub(super) why: String,
}

/// The position in a mapping that a type describes.
struct TypePosition<'s> {
    root: &'s Shape,
    shape: &'s Shape,
    /// The members of the type: those of the shape, or of a group in it.
    level: Level<'s>,
    /// The indexes of the fields that lead to the shape from the root.
    path: Vec<usize>,
    /// Whether it is a member of a map, with its name and its value.
    is_member: bool,
}

/// The type of a Business Object's objects, of objects nested in them, or of groups in either.
#[derive(Debug)]
pub(super) struct ObjectType {
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
    /// The Business Object that it belongs to, as an index into [`Model::business_objects`].
    pub(super) business: usize,
    /// Its first position: the indexes of the fields that lead to it from the root shape. That of a group is the position of
    /// the object around it.
    pub(super) path: Vec<usize>,
    /// If it is the type of a group: the indexes of the group's fields in the shape of the object around it.
    pub(super) group: Option<Range<usize>>,
    /// Whether it is the type of the members of a map, with their names and values.
    pub(super) is_member: bool,
}

/// A field of an object.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) role: FieldRole,
}

/// What a field shows. The first number is the index of a field in the shape. The flag of each variant says whether
/// there may be several values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldRole {
    /// The object's URI.
    Uri,
    /// Values of this type.
    Leaf(usize, &'static Scalar, bool),
    /// The texts of a language map, whose filter is that of this type.
    Texts(usize, &'static Scalar),
    /// Nested objects, and their type as an index into [`Model::object_types`].
    Nested(usize, usize, bool),
    /// A group of fields, and its type as an index into [`Model::object_types`].
    Group(usize),
    /// The object that is the value of a member of a map, and its type as an index into [`Model::object_types`].
    Member(usize),
    /// The objects that a field of type `resource` refers to.
    Followed(usize, bool),
    /// The nested object as an object of its own Business Object.
    AsObject,
    /// The objects that refer to this object.
    ReferredBy,
}

impl RootField {
    /// Returns the Business Object, as an index into [`Model::business_objects`].
    pub(super) fn business_index(self) -> usize {
        match self {
            Self::One(place) | Self::Many(place) | Self::Summary(place) => place,
        }
    }
}

impl LeftOut {
    /// Returns the error for a document that names it.
    pub(super) fn to_error(&self) -> GatewayError {
        let detail =
            format!("the Business Object {:?} has no type in GraphQL: {}", self.name, self.why);
        GatewayError::new(ErrorClass::Invalid, detail)
    }
}

impl ObjectType {
    /// Returns whether it is the type of a Business Object's own objects, not of nested ones.
    pub(super) fn is_root(&self) -> bool {
        self.path.is_empty() && self.group.is_none()
    }

    /// Finds its shape, or that of the object around the group, in a mapping with this root.
    pub(super) fn find_shape<'s>(&self, root: &'s Shape) -> Option<&'s Shape> {
        self.path.iter().try_fold(root, |shape, place| shape.fields.get(*place)?.shape())
    }

    /// Finds the field of this name.
    pub(super) fn find_field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Model {
    /// Builds the types. Omits the newest Business Objects that do not fit into `max_fields` fields.
    pub(super) fn new(all: &[Arc<Compiled>], max_fields: usize, whole: bool) -> Self {
        let (fitting, left_out) = select_fitting(all, max_fields);
        let mut model = Self { left_out, whole, ..Self::default() };
        let mut types = UsedNames::from_names(&system::list_type_names());
        let mut roots = UsedNames::from_names(&system::SHARED_QUERY_FIELDS);
        let mut named = Vec::new();
        for (compiled, fields) in fitting {
            let name = &compiled.object.definition.name;
            let type_name = types.reserve_family(&names::derive_type_name(name), |name| {
                list_type_family(name).to_vec()
            });
            let one = roots.reserve_family(&names::derive_field_name(name), |name| {
                vec![name.into(), connection_field_name(name)]
            });
            named.push((compiled, fields, type_name, one));
        }
        model.has_changes = types.is_free(CHANGE_TYPE) && roots.is_free(system::CHANGES_FIELD);
        model.has_summaries = !named.is_empty() && types.is_free(SUMMARY_TYPE);
        // Summaries get their names after all other fields, whose names earlier versions have given.
        let summaries: Vec<String> = named
            .iter()
            .map(|(.., one)| roots.reserve_name(&format!("{one}{SUMMARY_ENDING}")))
            .collect();
        let mut named: Vec<_> = named.into_iter().zip(summaries).collect();
        named.sort_by(|((a, ..), _), ((b, ..), _)| {
            a.object.definition.name.cmp(&b.object.definition.name)
        });
        // Types of nested objects get their names after those of all Business Objects.
        for (business, ((compiled, fields, type_name, one), summary)) in
            named.into_iter().enumerate()
        {
            let object = model.object_types.len();
            let root = &compiled.mapping.root;
            let (level, path) = (root.level(), Vec::new());
            let position = TypePosition { root, shape: root, level, path, is_member: false };
            model.add_object_types(position, &type_name, business, &mut types);
            let many = connection_field_name(&one);
            model.roots.insert(one.clone(), RootField::One(business));
            model.roots.insert(many.clone(), RootField::Many(business));
            if model.has_summaries {
                model.roots.insert(summary.clone(), RootField::Summary(business));
            }
            let orders = model.list_orders(object);
            let compiled = Arc::clone(compiled);
            model.business_objects.push(BusinessObjectTypes {
                compiled,
                object,
                one,
                many,
                summary,
                orders,
                fields,
            });
        }
        model.by_name = model
            .object_types
            .iter()
            .enumerate()
            .map(|(i, object)| (object.name.clone(), i))
            .collect();
        model
    }

    /// Adds the type of the objects or groups at a position, and those of what is nested in them.
    fn add_object_types(
        &mut self,
        position: TypePosition<'_>,
        name: &str,
        business: usize,
        types: &mut UsedNames,
    ) {
        let TypePosition { root, shape, level, path, is_member } = position;
        let own = self.object_types.len();
        let mut taken = UsedNames::from_names(&RESERVED_NAMES);
        let mut fields = Vec::new();
        let is_object = level.is_object() && !is_member;
        if is_object {
            fields.push(Field { name: "uri".to_owned(), role: FieldRole::Uri });
        }
        let mut derived = Vec::new();
        // The types of nested objects and groups are added when the names of all fields are known.
        let mut nested = Vec::new();
        let entries =
            if is_member { list_member_entries(shape) } else { level.entries().collect() };
        for (member, entry) in entries {
            let role = match entry {
                Entry::Group(inner) => {
                    let path = path.clone();
                    let position =
                        TypePosition { root, shape, level: inner, path, is_member: false };
                    nested.push((fields.len(), member, position));
                    if is_member { FieldRole::Member(0) } else { FieldRole::Group(0) }
                }
                Entry::Field(place, field) => match &field.kind {
                    FieldKind::Id if member == "uri" => continue,
                    FieldKind::Id => FieldRole::Uri,
                    FieldKind::Property(Property {
                        value: Value::Object(inner),
                        is_array: many,
                        ..
                    }) => {
                        let path = [path.as_slice(), &[place]].concat();
                        let (level, is_member) = (inner.level(), inner.map_member().is_some());
                        let position = TypePosition { root, shape: inner, level, path, is_member };
                        nested.push((fields.len(), member, position));
                        FieldRole::Nested(place, 0, *many)
                    }
                    FieldKind::Property(property) if property.value.language_map().is_some() => {
                        FieldRole::Texts(place, property.graphql())
                    }
                    FieldKind::Property(property) => {
                        if property.value == Value::Resource {
                            derived.push((place, property.is_array));
                        }
                        FieldRole::Leaf(place, property.graphql(), property.is_array)
                    }
                },
            };
            let name = taken.reserve_name(&names::derive_field_name(member));
            fields.push(Field { name, role });
        }
        for (place, is_list) in derived {
            let own =
                fields.iter().find(|f| matches!(f.role, FieldRole::Leaf(p, ..) if p == place));
            let ending = if is_list { "Objects" } else { "Object" };
            let name = own.map_or_else(String::new, |own| format!("{}{ending}", own.name));
            fields.push(Field {
                name: taken.reserve_name(&name),
                role: FieldRole::Followed(place, is_list),
            });
        }
        let last = match (is_object, path.is_empty()) {
            (true, true) => Some(("referredBy", FieldRole::ReferredBy)),
            (true, false) => Some(("asObject", FieldRole::AsObject)),
            (false, _) => None,
        };
        fields.extend(last.map(|(name, role)| Field { name: name.to_owned(), role }));
        let group = (!level.is_object()).then(|| level.places());
        self.object_types.push(ObjectType {
            name: name.to_owned(),
            fields,
            business,
            path,
            group,
            is_member,
        });
        for (at, member, position) in nested {
            let equal = self.find_equal_type(&position, business);
            let object = equal.unwrap_or_else(|| {
                let named = format!("{name}_{}", names::derive_type_name(member));
                let named =
                    types.reserve_family(&named, |name| vec![name.into(), filter_type_name(name)]);
                let object = self.object_types.len();
                self.add_object_types(position, &named, business, types);
                object
            });
            let field = self.object_types.get_mut(own).and_then(|own| own.fields.get_mut(at));
            if let Some(Field {
                role: FieldRole::Nested(_, to, _) | FieldRole::Group(to) | FieldRole::Member(to),
                ..
            }) = field
            {
                *to = object;
            }
        }
    }

    /// Finds the type of an equal nested object of the same Business Object.
    fn find_equal_type(&self, position: &TypePosition<'_>, business: usize) -> Option<usize> {
        let is_equal = |object: &ObjectType| {
            object.business == business
                && object.group.is_none()
                && object.is_member == position.is_member
                && !object.is_root()
                && object.find_shape(position.root) == Some(position.shape)
        };
        if position.level.is_object() { self.object_types.iter().position(is_equal) } else { None }
    }

    /// Returns what objects can be ordered by. The names of fields in groups begin with those of the groups: `limits_low`.
    fn list_orders(&self, object: usize) -> Vec<(String, Option<usize>)> {
        let fields = self.object_types.get(object).map(|object| object.fields.as_slice());
        let orders = fields.unwrap_or_default().iter().flat_map(|field| match field.role {
            FieldRole::Uri if field.name == "uri" => vec![(field.name.clone(), None)],
            FieldRole::Leaf(place, leaf, false) if !leaf.tests.is_empty() => {
                vec![(field.name.clone(), Some(place))]
            }
            FieldRole::Group(to) => {
                let inner = self.list_orders(to).into_iter();
                inner.map(|(name, place)| (format!("{}_{name}", field.name), place)).collect()
            }
            _ => Vec::new(),
        });
        orders.collect()
    }

    /// Returns whether a field of any object has values of this type.
    pub(super) fn has_leaf(&self, type_name: &str) -> bool {
        self.object_types.iter().flat_map(|object| &object.fields).any(
            |field| matches!(field.role, FieldRole::Leaf(_, leaf, _) if leaf.name == type_name),
        )
    }

    /// Returns whether a field of any object has this filter.
    pub(super) fn has_filter(&self, name: &str) -> bool {
        self.object_types.iter().flat_map(|object| &object.fields).any(|field| {
            matches!(field.role, FieldRole::Leaf(_, leaf, _) | FieldRole::Texts(_, leaf) if leaf.filter == name)
        })
    }

    /// Returns whether a field of any object is a language map.
    pub(super) fn has_texts(&self) -> bool {
        let mut fields = self.object_types.iter().flat_map(|object| &object.fields);
        fields.any(|field| matches!(field.role, FieldRole::Texts(..)))
    }

    /// Returns whether this is the name of an input type of a Business Object, or of [`system::OBJECT_TYPE`].
    pub(super) fn is_input(&self, name: &str) -> bool {
        let object = |ending: &str| self.by_name.get(name.strip_suffix(ending)?);
        let root = |place: &usize| self.object_types.get(*place).is_some_and(ObjectType::is_root);
        (name == system::OBJECT_TYPE && !self.business_objects.is_empty())
            || object("Filter").is_some()
            || ["Order", "OrderField"].into_iter().filter_map(object).any(root)
    }

    /// Returns the Business Object that a type belongs to, as an index into [`Model::business_objects`].
    pub(super) fn business_of_type(&self, name: &str) -> Option<usize> {
        let of = |name: &str| Some(self.object_types.get(*self.by_name.get(name)?)?.business);
        let endings = ["Connection", "Edge", "Filter", "Order", "OrderField"];
        of(name).or_else(|| endings.iter().find_map(|ending| of(name.strip_suffix(ending)?)))
    }

    /// Returns the Business Object that a field of the query type would lead to if it had not been left out.
    pub(super) fn left_out_field(&self, name: &str) -> Option<&LeftOut> {
        let endings = ["Connection", SUMMARY_ENDING];
        let one = endings.iter().find_map(|ending| name.strip_suffix(ending));
        self.left_out.iter().find(|left| left.field == name || Some(left.field.as_str()) == one)
    }

    /// Returns the Business Object whose objects would have a type if it had not been left out.
    pub(super) fn left_out_type(&self, name: &str) -> Option<&LeftOut> {
        self.left_out
            .iter()
            .find(|left| list_type_family(&left.type_name).iter().any(|one| one == name))
    }

    /// Returns the type of a Business Object's objects.
    pub(super) fn root_type(&self, business: usize) -> Option<&ObjectType> {
        self.object_types.get(self.business_objects.get(business)?.object)
    }
}

/// Business Objects, each with its number of fields.
type CountedBusinessObjects<'a> = Vec<(&'a Arc<Compiled>, usize)>;

/// Selects the Business Objects that fit into `max_fields` fields in total, the oldest first.
pub(super) fn select_fitting(
    all: &[Arc<Compiled>],
    max_fields: usize,
) -> (CountedBusinessObjects<'_>, Vec<LeftOut>) {
    let mut oldest_first: Vec<_> = all.iter().collect();
    // Ids are ordered by time, so a new Business Object never takes the name of an older one.
    oldest_first.sort_unstable_by(|a, b| a.object.id.cmp(&b.object.id));
    let mut left = max_fields;
    let (mut fitting, mut left_out) = (Vec::new(), Vec::new());
    for compiled in oldest_first {
        let fields =
            count_fields(compiled.mapping.root.level(), MAX_FIELDS_PER_BUSINESS_OBJECT + 1);
        let why = if fields > MAX_FIELDS_PER_BUSINESS_OBJECT {
            format!(
                "its mapping has more than {MAX_FIELDS_PER_BUSINESS_OBJECT} fields, the maximum in GraphQL"
            )
        } else if fields > left {
            format!(
                "the Business Objects together have more than {max_fields} fields (service.limits.graphql.fields)"
            )
        } else {
            left -= fields;
            fitting.push((compiled, fields));
            continue;
        };
        let name = compiled.object.definition.name.clone();
        left_out.push(LeftOut {
            id: compiled.object.id.clone(),
            field: names::derive_field_name(&name),
            type_name: names::derive_type_name(&name),
            name,
            why,
        });
    }
    (fitting, left_out)
}

/// Returns the names of the types that belong to the type of a Business Object's objects, which comes first.
pub(super) fn list_type_family(name: &str) -> [String; 6] {
    [
        name.to_owned(),
        connection_type_name(name),
        format!("{name}Edge"),
        filter_type_name(name),
        format!("{name}Order"),
        format!("{name}OrderField"),
    ]
}

pub(super) fn connection_type_name(name: &str) -> String {
    format!("{name}Connection")
}

pub(super) fn filter_type_name(name: &str) -> String {
    format!("{name}Filter")
}

fn connection_field_name(one: &str) -> String {
    format!("{one}Connection")
}

/// Returns the members of the type of the members of a map: the name, and the value. A value with fields is the object itself.
fn list_member_entries(shape: &Shape) -> Vec<(&str, Entry<'_>)> {
    let Some(map) = shape.map_member() else { return Vec::new() };
    let field_at = |place: usize| Some(Entry::Field(place, shape.fields.get(place)?));
    let value = match map.value {
        Some((place, _)) => field_at(place),
        None => Some(Entry::Group(shape.level())),
    };
    let entries = [("key", field_at(map.key_index)), ("value", value)];
    entries.into_iter().filter_map(|(name, entry)| Some((name, entry?))).collect()
}

/// Counts the members of an object or a group and of everything nested in it, up to `max_fields`.
fn count_fields(level: Level<'_>, max_fields: usize) -> usize {
    let mut fields = 1;
    for (_, entry) in level.entries() {
        fields += 1;
        let nested = match entry {
            Entry::Field(_, field) => {
                let shape = field.shape();
                fields +=
                    if shape.is_some_and(|shape| shape.map_member().is_some()) { 3 } else { 0 };
                shape.map(Shape::level)
            }
            Entry::Group(inner) => Some(inner),
        };
        if let Some(nested) = nested {
            fields += count_fields(nested, max_fields.saturating_sub(fields));
        }
        if fields >= max_fields {
            return max_fields;
        }
    }
    fields
}
