//! What the schema says of Business Objects: their types, the names of those, and what stands behind each field.
//!
//! A nested object's type is named after where it stands: `Pump_Address` for the field `address` of `Pump`. Equal
//! nested objects of one Business Object share the type of the first place.
use super::names::{self, Taken};
use super::system;
use penstock_base::fault::{Fault, Kind};
use penstock_model::mapping::{FieldKind, Literal, Property, Shape, Value};
use penstock_model::resource::Compiled;
use std::collections::HashMap;
use std::sync::Arc;

/// The most fields of one Business Object; the types of a larger one would cost more memory than they are worth.
const FIELDS: usize = 1_000;

/// Names of fields that every object has, that filters have, or that no enumeration may hold.
const RESERVED: [&str; 9] =
    ["uri", "referredBy", "asObject", "and", "or", "not", "true", "false", "null"];

/// The types of all Business Objects that are seen.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// By their names.
    pub(super) business: Vec<Business>,
    pub(super) objects: Vec<ObjectType>,
    /// The types of objects by their names: places in `objects`.
    pub(super) by_name: HashMap<String, usize>,
    /// The fields of the query type that lead to objects of one Business Object.
    pub(super) roots: HashMap<String, Root>,
    /// The Business Objects that have no types.
    pub(super) left_out: Vec<LeftOut>,
    /// Whether all of the gateway is seen, and not one Business Object alone.
    pub(super) whole: bool,
}

/// What a field of the query type leads to; the number is a place in [`Model::business`].
#[derive(Debug, Clone, Copy)]
pub(super) enum Root {
    /// One object by its URI.
    One(usize),
    /// A connection.
    Many(usize),
}

/// A Business Object.
#[derive(Debug)]
pub(super) struct Business {
    pub(super) compiled: Arc<Compiled>,
    /// Its type: a place in [`Model::objects`].
    pub(super) object: usize,
    /// The field of the query type for one object.
    pub(super) one: String,
    /// The field of the query type for its connection.
    pub(super) many: String,
    /// What it can be ordered by: a name, and a place in the root shape, or the URI.
    pub(super) orders: Vec<(String, Option<usize>)>,
    /// How many fields its types have.
    pub(super) fields: usize,
}

/// A Business Object that has no types.
#[derive(Debug)]
pub(super) struct LeftOut {
    pub(super) id: String,
    pub(super) name: String,
    /// The field of the query type for one object, if it had one.
    field: String,
    /// The type of its objects, if it had one.
    type_name: String,
    pub(super) why: String,
}

/// The type of a Business Object's objects, or of objects nested in them.
#[derive(Debug)]
pub(super) struct ObjectType {
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
    /// Whose it is: a place in [`Model::business`].
    pub(super) business: usize,
    /// Where it stands first, from the root shape on: places of fields.
    pub(super) path: Vec<usize>,
}

/// A field of an object.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) role: Role,
}

/// What stands behind a field; the first number is a place in the shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The object's URI.
    Uri,
    /// Values.
    Leaf(usize, Leaf, bool),
    /// Nested objects, and their type: a place in [`Model::objects`].
    Nested(usize, usize, bool),
    /// The objects that a resource leads to.
    Followed(usize, bool),
    /// The nested object as an object of a Business Object of its own.
    AsObject,
    /// What refers to the object.
    ReferredBy,
}

/// The kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaf {
    String,
    Iri,
    Number,
    Integer,
    Boolean,
    Date,
    DateTime,
}

impl Root {
    /// The Business Object: a place in [`Model::business`].
    pub(super) fn business(self) -> usize {
        match self {
            Self::One(place) | Self::Many(place) => place,
        }
    }
}

impl LeftOut {
    /// The error for a document that names it.
    pub(super) fn fault(&self) -> Fault {
        let detail =
            format!("the Business Object {:?} has no type in GraphQL: {}", self.name, self.why);
        Fault::new(Kind::Invalid, detail)
    }
}

impl Leaf {
    fn of(value: &Value) -> Self {
        match value {
            Value::Literal(Literal::Number) => Self::Number,
            Value::Literal(Literal::Integer) => Self::Integer,
            Value::Literal(Literal::Boolean) => Self::Boolean,
            Value::Literal(Literal::Date) => Self::Date,
            Value::Literal(Literal::DateTime) => Self::DateTime,
            Value::Literal(Literal::String | Literal::Typed(_) | Literal::Language(_)) => {
                Self::String
            }
            Value::Resource | Value::Object(_) => Self::Iri,
        }
    }

    /// The type of its values.
    pub(super) fn type_name(self) -> &'static str {
        match self {
            Self::String => "String",
            Self::Iri => "IRI",
            Self::Number => "Number",
            Self::Integer => "Integer",
            Self::Boolean => "Boolean",
            Self::Date => "Date",
            Self::DateTime => "DateTime",
        }
    }
}

impl ObjectType {
    /// Whether it is a Business Object's own.
    pub(super) fn is_root(&self) -> bool {
        self.path.is_empty()
    }

    /// Its shape, in a mapping of this root.
    pub(super) fn shape<'s>(&self, root: &'s Shape) -> Option<&'s Shape> {
        self.path.iter().try_fold(root, |shape, place| Some(nested_at(shape, *place)?.1))
    }

    /// The field of this name.
    pub(super) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Model {
    /// Of these Business Objects; those that do not fit into `most` fields, the newest first, are left out.
    pub(super) fn new(all: &[Arc<Compiled>], most: usize, whole: bool) -> Self {
        let (fitting, left_out) = fitting(all, most);
        let mut model = Self { left_out, whole, ..Self::default() };
        let mut types = Taken::of(&system::names());
        let mut roots = Taken::of(&system::QUERIES);
        let mut named = Vec::new();
        for (compiled, fields) in fitting {
            let name = &compiled.object.definition.name;
            let type_name = types.take_family(&names::of_type(name), |name| family(name).to_vec());
            let one = roots.take_family(&names::field(name), |name| vec![name.into(), many(name)]);
            named.push((compiled, fields, type_name, one));
        }
        named.sort_by(|(a, ..), (b, ..)| a.object.definition.name.cmp(&b.object.definition.name));
        // The types of nested objects come after those of all Business Objects.
        for (business, (compiled, fields, type_name, one)) in named.into_iter().enumerate() {
            let object = model.objects.len();
            let root = &compiled.mapping.root;
            model.push(root, root, &type_name, business, &[], &mut types);
            let many = many(&one);
            model.roots.insert(one.clone(), Root::One(business));
            model.roots.insert(many.clone(), Root::Many(business));
            let orders = model.orders(object);
            let compiled = Arc::clone(compiled);
            model.business.push(Business { compiled, object, one, many, orders, fields });
        }
        model.by_name =
            model.objects.iter().enumerate().map(|(i, object)| (object.name.clone(), i)).collect();
        model
    }

    /// Makes the type of a shape, and of those nested in it.
    fn push(
        &mut self,
        root: &Shape,
        shape: &Shape,
        name: &str,
        business: usize,
        path: &[usize],
        types: &mut Taken,
    ) {
        let own = self.objects.len();
        let mut taken = Taken::of(&RESERVED);
        let mut fields = vec![Field { name: "uri".to_owned(), role: Role::Uri }];
        let mut derived = Vec::new();
        // The types of nested objects are made when the names of all fields are known.
        let mut nested = Vec::new();
        for (place, field) in shape.fields.iter().enumerate() {
            let role = match &field.kind {
                FieldKind::Id if field.name == "uri" => continue,
                FieldKind::Id => Role::Uri,
                FieldKind::Property(Property { value: Value::Object(_), many, .. }) => {
                    nested.push(fields.len());
                    Role::Nested(place, 0, *many)
                }
                FieldKind::Property(Property { value, many, .. }) => {
                    if *value == Value::Resource {
                        derived.push((place, *many));
                    }
                    Role::Leaf(place, Leaf::of(value), *many)
                }
            };
            fields.push(Field { name: taken.take(&names::field(&field.name)), role });
        }
        for (place, is_list) in derived {
            let own = fields.iter().find(|f| matches!(f.role, Role::Leaf(p, ..) if p == place));
            let ending = if is_list { "Objects" } else { "Object" };
            let name = own.map_or_else(String::new, |own| format!("{}{ending}", own.name));
            fields.push(Field { name: taken.take(&name), role: Role::Followed(place, is_list) });
        }
        let last = if path.is_empty() {
            ("referredBy", Role::ReferredBy)
        } else {
            ("asObject", Role::AsObject)
        };
        fields.push(Field { name: last.0.to_owned(), role: last.1 });
        let path = path.to_vec();
        self.objects.push(ObjectType {
            name: name.to_owned(),
            fields,
            business,
            path: path.clone(),
        });
        for at in nested {
            let Some(Field { role: Role::Nested(place, ..), .. }) =
                self.objects.get(own).and_then(|object| object.fields.get(at))
            else {
                continue;
            };
            let place = *place;
            let Some((field, inner)) = nested_at(shape, place) else { continue };
            let mut inner_path = path.clone();
            inner_path.push(place);
            let equal = self.equal(root, inner, business);
            let object = equal.unwrap_or_else(|| {
                let named = format!("{name}_{}", names::of_type(field));
                let named = types.take_family(&named, |name| vec![name.into(), filter(name)]);
                let object = self.objects.len();
                self.push(root, inner, &named, business, &inner_path, types);
                object
            });
            if let Some(Field { role: Role::Nested(_, to, _), .. }) =
                self.objects.get_mut(own).and_then(|own| own.fields.get_mut(at))
            {
                *to = object;
            }
        }
    }

    /// The type of an equal nested object of the same Business Object.
    fn equal(&self, root: &Shape, shape: &Shape, business: usize) -> Option<usize> {
        self.objects.iter().position(|object| {
            object.business == business && !object.is_root() && object.shape(root) == Some(shape)
        })
    }

    fn orders(&self, object: usize) -> Vec<(String, Option<usize>)> {
        let fields = self.objects.get(object).map(|object| object.fields.as_slice());
        let orders = fields.unwrap_or_default().iter().filter_map(|field| match field.role {
            Role::Uri if field.name == "uri" => Some((field.name.clone(), None)),
            Role::Leaf(place, _, false) => Some((field.name.clone(), Some(place))),
            _ => None,
        });
        orders.collect()
    }

    /// Whether some object has values of this type.
    pub(super) fn has_leaf(&self, type_name: &str) -> bool {
        self.objects.iter().flat_map(|object| &object.fields).any(
            |field| matches!(field.role, Role::Leaf(_, leaf, _) if leaf.type_name() == type_name),
        )
    }

    /// Whether a type of Business Objects is one of values.
    pub(super) fn is_input(&self, name: &str) -> bool {
        let object = |ending: &str| self.by_name.get(name.strip_suffix(ending)?);
        let root = |place: &usize| self.objects.get(*place).is_some_and(ObjectType::is_root);
        (name == system::OBJECT_TYPE && !self.business.is_empty())
            || object("Filter").is_some()
            || ["Order", "OrderField"].into_iter().filter_map(object).any(root)
    }

    /// Returns the Business Object that a type belongs to: a place in [`Model::business`].
    pub(super) fn business_of_type(&self, name: &str) -> Option<usize> {
        let of = |name: &str| Some(self.objects.get(*self.by_name.get(name)?)?.business);
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
        self.left_out.iter().find(|left| family(&left.type_name).iter().any(|one| one == name))
    }

    /// The type of a Business Object's objects.
    pub(super) fn root_type(&self, business: usize) -> Option<&ObjectType> {
        self.objects.get(self.business.get(business)?.object)
    }
}

/// Business Objects, each with how many fields it has.
type Counted<'a> = Vec<(&'a Arc<Compiled>, usize)>;

/// Tells those that fit into `most` fields together from those that do not.
pub(super) fn fitting(all: &[Arc<Compiled>], most: usize) -> (Counted<'_>, Vec<LeftOut>) {
    let mut oldest_first: Vec<_> = all.iter().collect();
    // Ids are ordered by time, so that a new one never takes the name of an older one away.
    oldest_first.sort_unstable_by(|a, b| a.object.id.cmp(&b.object.id));
    let mut left = most;
    let (mut fitting, mut left_out) = (Vec::new(), Vec::new());
    for compiled in oldest_first {
        let fields = count(&compiled.mapping.root, FIELDS + 1);
        let why = if fields > FIELDS {
            format!(
                "its mapping has more than {FIELDS} fields, and a Business Object may have no more in GraphQL"
            )
        } else if fields > left {
            format!(
                "the Business Objects together have more than {most} fields (service.limits.graphql.fields)"
            )
        } else {
            left -= fields;
            fitting.push((compiled, fields));
            continue;
        };
        let name = compiled.object.definition.name.clone();
        left_out.push(LeftOut {
            id: compiled.object.id.clone(),
            field: names::field(&name),
            type_name: names::of_type(&name),
            name,
            why,
        });
    }
    (fitting, left_out)
}

/// The field at this place, and the objects nested there.
fn nested_at(shape: &Shape, place: usize) -> Option<(&str, &Shape)> {
    let field = shape.fields.get(place)?;
    match &field.kind {
        FieldKind::Property(Property { value: Value::Object(nested), .. }) => {
            Some((&field.name, nested))
        }
        _ => None,
    }
}

/// The types that belong to that of a Business Object's objects, itself first.
pub(super) fn family(name: &str) -> [String; 6] {
    [
        name.to_owned(),
        connection(name),
        format!("{name}Edge"),
        filter(name),
        format!("{name}Order"),
        format!("{name}OrderField"),
    ]
}

pub(super) fn connection(name: &str) -> String {
    format!("{name}Connection")
}

pub(super) fn filter(name: &str) -> String {
    format!("{name}Filter")
}

fn many(one: &str) -> String {
    format!("{one}Connection")
}

/// Fields of a shape and all that is nested in it; it stops counting at `most`.
fn count(shape: &Shape, most: usize) -> usize {
    let mut fields = 1;
    for field in &shape.fields {
        fields += 1;
        if let FieldKind::Property(Property { value: Value::Object(nested), .. }) = &field.kind {
            fields += count(nested, most.saturating_sub(fields));
        }
        if fields >= most {
            return most;
        }
    }
    fields
}
