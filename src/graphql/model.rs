//! The GraphQL types of Business Objects, their names, and what each field shows.
//!
//! The type of a nested object is named after its position: `Pump_Address` for the field `address` of `Pump`. Equal
//! nested objects of one Business Object share the type of the first position.
use super::gateway_types::CHANGE_TYPE;
use super::names::{self, UsedNames};
use super::system;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_model::mapping::{FieldKind, Property, Scalar, Shape, Value};
use penstock_model::resource::Compiled;
use std::collections::HashMap;
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
    /// Whether the whole gateway is visible, and not only the Business Objects of an API key.
    pub(super) whole: bool,
}

/// What a field of the query type leads to; the number is an index into [`Model::business`].
#[derive(Debug, Clone, Copy)]
pub(super) enum RootField {
    /// One object by its URI.
    One(usize),
    /// A connection of objects.
    Many(usize),
}

/// A Business Object and its part of the schema.
#[derive(Debug)]
pub(super) struct BusinessObjectTypes {
    pub(super) compiled: Arc<Compiled>,
    /// The type of its objects, as an index into [`Model::objects`].
    pub(super) object: usize,
    /// The name of the query field for one object.
    pub(super) one: String,
    /// The name of the query field for its connection.
    pub(super) many: String,
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

/// The type of a Business Object's objects, or of objects nested in them.
#[derive(Debug)]
pub(super) struct ObjectType {
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
    /// The Business Object that it belongs to, as an index into [`Model::business`].
    pub(super) business: usize,
    /// Its first position: the indexes of the fields that lead to it from the root shape.
    pub(super) path: Vec<usize>,
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
    /// Nested objects, and their type as an index into [`Model::objects`].
    Nested(usize, usize, bool),
    /// The objects that a field of type `resource` refers to.
    Followed(usize, bool),
    /// The nested object as an object of its own Business Object.
    AsObject,
    /// The objects that refer to this object.
    ReferredBy,
}

impl RootField {
    /// Returns the Business Object, as an index into [`Model::business`].
    pub(super) fn business_index(self) -> usize {
        match self {
            Self::One(place) | Self::Many(place) => place,
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
        self.path.is_empty()
    }

    /// Finds its shape in a mapping with this root.
    pub(super) fn find_shape<'s>(&self, root: &'s Shape) -> Option<&'s Shape> {
        self.path.iter().try_fold(root, |shape, place| Some(nested_at(shape, *place)?.1))
    }

    /// Finds the field of this name.
    pub(super) fn find_field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// A shape in the mapping of a Business Object, and the places of the fields that lead to it.
struct PlacedShape<'s> {
    root: &'s Shape,
    shape: &'s Shape,
    path: Vec<usize>,
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
        named.sort_by(|(a, ..), (b, ..)| a.object.definition.name.cmp(&b.object.definition.name));
        // Types of nested objects get their names after those of all Business Objects.
        for (business, (compiled, fields, type_name, one)) in named.into_iter().enumerate() {
            let object = model.object_types.len();
            let root = &compiled.mapping.root;
            let placed = PlacedShape { root, shape: root, path: Vec::new() };
            model.add_object_types(placed, &type_name, business, &mut types);
            let many = connection_field_name(&one);
            model.roots.insert(one.clone(), RootField::One(business));
            model.roots.insert(many.clone(), RootField::Many(business));
            let orders = model.list_orders(object);
            let compiled = Arc::clone(compiled);
            model.business_objects.push(BusinessObjectTypes {
                compiled,
                object,
                one,
                many,
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

    /// Adds the type of a shape, and those of the objects nested in it.
    fn add_object_types(
        &mut self,
        PlacedShape { root, shape, path }: PlacedShape<'_>,
        name: &str,
        business: usize,
        types: &mut UsedNames,
    ) {
        let own = self.object_types.len();
        let mut taken = UsedNames::from_names(&RESERVED_NAMES);
        let mut fields = vec![Field { name: "uri".to_owned(), role: FieldRole::Uri }];
        let mut derived = Vec::new();
        // The types of nested objects are added when the names of all fields are known.
        let mut nested = Vec::new();
        for (place, field) in shape.fields.iter().enumerate() {
            let role = match &field.kind {
                FieldKind::Id if field.name == "uri" => continue,
                FieldKind::Id => FieldRole::Uri,
                FieldKind::Property(Property {
                    value: Value::Object(_), is_array: many, ..
                }) => {
                    nested.push(fields.len());
                    FieldRole::Nested(place, 0, *many)
                }
                FieldKind::Property(Property { value, is_array: many, .. }) => {
                    if *value == Value::Resource {
                        derived.push((place, *many));
                    }
                    FieldRole::Leaf(place, &value.kind().graphql, *many)
                }
            };
            fields.push(Field {
                name: taken.reserve_name(&names::derive_field_name(&field.name)),
                role,
            });
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
        let last = if path.is_empty() {
            ("referredBy", FieldRole::ReferredBy)
        } else {
            ("asObject", FieldRole::AsObject)
        };
        fields.push(Field { name: last.0.to_owned(), role: last.1 });
        self.object_types.push(ObjectType {
            name: name.to_owned(),
            fields,
            business,
            path: path.clone(),
        });
        for at in nested {
            let Some(Field { role: FieldRole::Nested(place, ..), .. }) =
                self.object_types.get(own).and_then(|object| object.fields.get(at))
            else {
                continue;
            };
            let place = *place;
            let Some((field, inner)) = nested_at(shape, place) else { continue };
            let equal = self.find_equal_type(root, inner, business);
            let object = equal.unwrap_or_else(|| {
                let named = format!("{name}_{}", names::derive_type_name(field));
                let named =
                    types.reserve_family(&named, |name| vec![name.into(), filter_type_name(name)]);
                let object = self.object_types.len();
                let path = path.iter().copied().chain([place]).collect();
                let placed = PlacedShape { root, shape: inner, path };
                self.add_object_types(placed, &named, business, types);
                object
            });
            if let Some(Field { role: FieldRole::Nested(_, to, _), .. }) =
                self.object_types.get_mut(own).and_then(|own| own.fields.get_mut(at))
            {
                *to = object;
            }
        }
    }

    /// Finds the type of an equal nested object of the same Business Object.
    fn find_equal_type(&self, root: &Shape, shape: &Shape, business: usize) -> Option<usize> {
        self.object_types.iter().position(|object| {
            object.business == business
                && !object.is_root()
                && object.find_shape(root) == Some(shape)
        })
    }

    fn list_orders(&self, object: usize) -> Vec<(String, Option<usize>)> {
        let fields = self.object_types.get(object).map(|object| object.fields.as_slice());
        let orders = fields.unwrap_or_default().iter().filter_map(|field| match field.role {
            FieldRole::Uri if field.name == "uri" => Some((field.name.clone(), None)),
            FieldRole::Leaf(place, _, false) => Some((field.name.clone(), Some(place))),
            _ => None,
        });
        orders.collect()
    }

    /// Returns whether a field of any object has values of this type.
    pub(super) fn has_leaf(&self, type_name: &str) -> bool {
        self.object_types.iter().flat_map(|object| &object.fields).any(
            |field| matches!(field.role, FieldRole::Leaf(_, leaf, _) if leaf.name == type_name),
        )
    }

    /// Returns whether this is the name of an input type of a Business Object, or of [`system::OBJECT_TYPE`].
    pub(super) fn is_input(&self, name: &str) -> bool {
        let object = |ending: &str| self.by_name.get(name.strip_suffix(ending)?);
        let root = |place: &usize| self.object_types.get(*place).is_some_and(ObjectType::is_root);
        (name == system::OBJECT_TYPE && !self.business_objects.is_empty())
            || object("Filter").is_some()
            || ["Order", "OrderField"].into_iter().filter_map(object).any(root)
    }

    /// Returns the Business Object that a type belongs to, as an index into [`Model::business`].
    pub(super) fn business_of_type(&self, name: &str) -> Option<usize> {
        let of = |name: &str| Some(self.object_types.get(*self.by_name.get(name)?)?.business);
        let endings = ["Connection", "Edge", "Filter", "Order", "OrderField"];
        of(name).or_else(|| endings.iter().find_map(|ending| of(name.strip_suffix(ending)?)))
    }

    /// Returns the Business Object that a field of the query type would lead to if it had not been left out.
    pub(super) fn left_out_field(&self, name: &str) -> Option<&LeftOut> {
        let one = name.strip_suffix("Connection").unwrap_or(name);
        self.left_out.iter().find(|left| left.field == one)
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
        let fields = count_fields(&compiled.mapping.root, MAX_FIELDS_PER_BUSINESS_OBJECT + 1);
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

/// Returns the name of the field at this index, and the shape of the objects nested there.
fn nested_at(shape: &Shape, place: usize) -> Option<(&str, &Shape)> {
    let field = shape.fields.get(place)?;
    Some((&field.name, field.shape()?))
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

/// Counts the fields of a shape and of everything nested in it, up to `max_fields`.
fn count_fields(shape: &Shape, max_fields: usize) -> usize {
    let mut fields = 1;
    for field in &shape.fields {
        fields += 1;
        if let Some(nested) = field.shape() {
            fields += count_fields(nested, max_fields.saturating_sub(fields));
        }
        if fields >= max_fields {
            return max_fields;
        }
    }
    fields
}
