//! The fields that are read of many objects, for a summary or a table: a tree of the objects that they are in.
use super::budget::{SearchBudget, refuse_past_limits};
use super::errors::invalid_search_error;
use super::field_name::find_field_path;
use super::filter::{ANY_MEMBER, Filter, find_property};
use super::matching::{RequiredQuads, TestedObject};
use super::page_search::PageSearch;
use crate::mapping::{MEMBER_KEY, Property, Shape, Value, format_language_tag};
use crate::resource::Compiled;
use crate::view::{FieldValues, ShownLiteral, ShownValues};
use oxrdf::NamedNode;
use penstock_base::error::GatewayError;
use penstock_base::json::Json;
use penstock_rdf::compare::ValueOrder;
use penstock_rdf::number::PlainNumber;
use penstock_store::Read;
use std::borrow::Cow;
use std::collections::HashSet;

/// The maximum number of digits before or behind the point of a number that is named without an exponent.
const MAX_PLAIN_DIGITS: usize = 400;

/// Returns the name of a number, which is the same for equal numbers. `None` for a text that is no number, or has too many
/// digits.
pub(super) fn name_number(text: &str) -> Option<String> {
    PlainNumber::parse(text, 0, MAX_PLAIN_DIGITS).map(|number| number.to_string())
}

/// A field that leads to nested objects.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    /// The index in [`Shape::fields`].
    field: usize,
    /// The name of the only member that counts, if the field is a map.
    member: Option<String>,
}

/// What is read of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Leaf {
    /// Its URI.
    Uri,
    /// The values of the field at this index.
    Field(usize),
    /// The texts of a language map, in one language if there is one.
    Texts(usize, Option<String>),
}

/// The fields that are read, each once.
#[derive(Debug, Default)]
pub(super) struct Slots(Vec<(Vec<Step>, Leaf)>);

impl Slots {
    /// Adds the field of this name. Returns its index, and how its values compare.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if there is no such field, or it has no values to be compared.
    pub(super) fn add(
        &mut self,
        shape: &Shape,
        name: &str,
    ) -> Result<(usize, ValueOrder), GatewayError> {
        let (index, property) = self.add_shown(shape, name)?;
        let Some(property) = property else { return Ok((index, ValueOrder::Text)) };
        let kind = property.value.kind();
        if !kind.is_searchable() {
            let kind = kind.name;
            return Err(invalid_search_error(format!(
                "the field {name:?} is of the type {kind}, whose values cannot be summarized"
            )));
        }
        Ok((index, property.order()))
    }

    /// Adds the field of this name, whatever its values are. Returns its index, and its property; `None` for a URI.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if there is no such field.
    pub(super) fn add_shown<'s>(
        &mut self,
        shape: &'s Shape,
        name: &str,
    ) -> Result<(usize, Option<&'s Property>), GatewayError> {
        let names = find_field_path(shape, name)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut steps = Vec::new();
        let (leaf, property) = follow_names(shape, &names, &mut steps)?;
        let slot = (steps, leaf);
        let known = self.0.iter().position(|known| *known == slot);
        let index = known.unwrap_or_else(|| {
            self.0.push(slot);
            self.0.len() - 1
        });
        Ok((index, property))
    }
}

/// Follows names from an object to what is read, and adds the fields on the way. Returns the last field too, unless it is the
/// URI of an object.
fn follow_names<'s>(
    shape: &'s Shape,
    names: &[&str],
    steps: &mut Vec<Step>,
) -> Result<(Leaf, Option<&'s Property>), GatewayError> {
    let Some((name, rest)) = names.split_first().filter(|(name, _)| !shape.is_id(name)) else {
        return Ok((Leaf::Uri, None));
    };
    let mut properties = shape.iter_properties();
    let Some((index, _, property)) = properties.find(|(_, field, _)| field.name == **name) else {
        return Err(invalid_search_error(format!("there is no field {name:?}")));
    };
    follow_property((index, property), name, rest, steps)
}

fn follow_property<'s>(
    (field, property): (usize, &'s Property),
    name: &str,
    names: &[&str],
    steps: &mut Vec<Step>,
) -> Result<(Leaf, Option<&'s Property>), GatewayError> {
    if let Some((shape, map)) = property.map() {
        let Some((member, rest)) = names.split_first() else {
            let error = format!("the field {name:?} is a map; name a member of it, or `*` for all");
            return Err(invalid_search_error(error));
        };
        if *member == MEMBER_KEY {
            steps.push(Step { field, member: None });
            return Ok((Leaf::Field(map.key_index), Some(map.key)));
        }
        let member = (*member != ANY_MEMBER).then(|| (*member).to_owned());
        steps.push(Step { field, member });
        return match map.value {
            Some(value) => follow_property(value, name, rest, steps),
            None => follow_names(shape, rest, steps),
        };
    }
    if let Value::Object(shape) = &property.value {
        steps.push(Step { field, member: None });
        return follow_names(shape, names, steps);
    }
    let leaf = if property.value.language_map().is_some() {
        let language = names.first().map(|tag| format_language_tag(tag).into_owned());
        Leaf::Texts(field, language)
    } else {
        Leaf::Field(field)
    };
    Ok((leaf, Some(property)))
}

/// The fields that are read, as a tree.
#[derive(Debug)]
pub(super) struct FieldTree {
    root: Branch,
    /// Where each of the fields is.
    routes: Vec<Route>,
}

/// Where a field is in the tree.
#[derive(Debug, Clone, Default)]
struct Route {
    /// The indexes in [`Branch::nested`] that lead to it.
    steps: Vec<usize>,
    /// Its index in [`Branch::leaves`].
    leaf: usize,
}

/// What is read of an object, and of the objects nested in it.
#[derive(Debug)]
struct Branch {
    needs: RequiredQuads,
    leaves: Vec<Leaf>,
    nested: Vec<(Step, Branch)>,
}

impl FieldTree {
    /// Builds the tree of these fields of objects of a shape.
    pub(super) fn build(shape: &Shape, slots: &Slots) -> Result<Self, GatewayError> {
        let mut routes = vec![Route::default(); slots.0.len()];
        let all = slots.0.iter().map(|(steps, leaf)| (steps.as_slice(), leaf));
        let all: Vec<_> = all.enumerate().collect();
        let root = Branch::build(shape, &all, None, &mut routes)?;
        Ok(Self { root, routes })
    }

    /// Reads an object that was counted already.
    pub(super) fn read_root(
        &self,
        object: &TestedObject<'_>,
    ) -> Result<Element<'static>, GatewayError> {
        object.with_values(&self.root.needs, |values| {
            self.root.read_element(object, values).map(Element::into_owned)
        })
    }

    /// Reads each object of a Business Object once, and calls `visit` with those that pass the filter and their URIs. The
    /// order of the objects has no meaning.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if the filter does not fit the Business Object, or if this would examine more objects than
    /// the bounds allow; the errors of the store and of `visit`.
    pub(super) fn for_each_object(
        &self,
        read: &dyn Read,
        business_object: &Compiled,
        filter: Option<&Filter>,
        bounds: &SearchBudget,
        visit: &mut dyn FnMut(&Element<'_>, &NamedNode) -> Result<(), GatewayError>,
    ) -> Result<(), GatewayError> {
        let run = PageSearch::new(read, business_object, filter, bounds);
        let visited = run.and_then(|run| {
            run.for_each_read(&self.root.needs, &mut |object, values| {
                visit(&self.root.read_element(object, values)?, object.path.uri)
            })
        });
        visited.map_err(refuse_past_limits)
    }

    /// Lists the values of a field of an object, and where they are. If there is none somewhere, the list says where.
    pub(super) fn list_instances<'e>(
        &self,
        object: &'e Element<'_>,
        slot: usize,
    ) -> Vec<Instance<'e>> {
        let mut instances = Vec::new();
        if let Some(route) = self.routes.get(slot) {
            object.add_instances(&route.steps, route.leaf, &mut Vec::new(), &mut instances);
        }
        instances
    }

    /// Passes the values of a field of an object to `visit`, as texts.
    pub(super) fn visit_texts(
        &self,
        object: &Element<'_>,
        slot: usize,
        visit: &mut dyn FnMut(&str),
    ) {
        if let Some(route) = self.routes.get(slot) {
            object.visit_texts(&route.steps, route.leaf, visit);
        }
    }

    /// Returns how many nested objects on the way to two fields are the same.
    pub(super) fn count_shared_steps(&self, one: usize, other: usize) -> usize {
        let steps = |slot: usize| self.routes.get(slot).map_or(&[][..], |route| &route.steps);
        steps(one).iter().zip(steps(other)).take_while(|(one, other)| one == other).count()
    }
}

impl Branch {
    /// Builds a branch. Each field has its index among all, the steps that lead to it from here, and what is read there.
    fn build(
        shape: &Shape,
        fields: &[(usize, (&[Step], &Leaf))],
        key: Option<usize>,
        routes: &mut [Route],
    ) -> Result<Self, GatewayError> {
        let (mut leaves, mut steps) = (Vec::new(), Vec::<&Step>::new());
        let mut needed: HashSet<usize> = key.into_iter().collect();
        for (slot, (path, leaf)) in fields {
            let Some(route) = routes.get_mut(*slot) else { continue };
            match path.first() {
                None => {
                    route.leaf = leaves.len();
                    leaves.push((*leaf).clone());
                    match leaf {
                        Leaf::Uri => {}
                        Leaf::Field(index) | Leaf::Texts(index, _) => {
                            needed.insert(*index);
                        }
                    }
                }
                Some(step) => {
                    let known = steps.iter().position(|known| *known == step);
                    route.steps.push(known.unwrap_or(steps.len()));
                    if known.is_none() {
                        steps.push(step);
                    }
                    needed.insert(step.field);
                }
            }
        }
        let mut nested = Vec::with_capacity(steps.len());
        for step in steps {
            let Some(inner) = find_property(shape, step.field)?.1.value.shape() else { continue };
            let below = fields.iter().filter_map(|(slot, (path, leaf))| {
                let (first, rest) = path.split_first()?;
                (first == step).then_some((*slot, (rest, *leaf)))
            });
            let below: Vec<_> = below.collect();
            let key = inner.map_member().map(|map| map.key_index);
            let key = key.filter(|_| step.member.is_some());
            nested.push((step.clone(), Self::build(inner, &below, key, routes)?));
        }
        Ok(Self { needs: RequiredQuads::for_fields(shape, needed), leaves, nested })
    }

    /// Reads an object with these values, and what is nested in it.
    fn read_element<'v>(
        &self,
        object: &TestedObject<'v>,
        values: &FieldValues<'v>,
    ) -> Result<Element<'v>, GatewayError> {
        let mut found = Vec::with_capacity(self.leaves.len());
        for (at, leaf) in self.leaves.iter().enumerate() {
            read_leaf(leaf, object, values, &mut |value| found.push((at, value)))?;
        }
        let mut nested = Vec::with_capacity(self.nested.len());
        for (step, branch) in &self.nested {
            nested.push(branch.read_nested(step, object, values)?);
        }
        Ok(Element { values: found, nested })
    }

    fn read_nested(
        &self,
        step: &Step,
        object: &TestedObject<'_>,
        values: &FieldValues<'_>,
    ) -> Result<Vec<Element<'static>>, GatewayError> {
        let (_, property) = find_property(object.shape, step.field)?;
        let (Value::Object(shape), ShownValues::Iris(iris)) =
            (&property.value, values.collect_shown(step.field, property))
        else {
            return Ok(Vec::new());
        };
        object.find_nested((shape, iris.as_slice()), &self.needs, usize::MAX, |nested, values| {
            if let (Some(name), Some(map)) = (&step.member, shape.map_member()) {
                let names = values.collect_shown(map.key_index, map.key);
                if !names.texts().any(|text| text == name) {
                    return Ok(None);
                }
            }
            Ok(Some(self.read_element(nested, values)?.into_owned()))
        })
    }
}

/// Passes each value of an object to `add` that is read of it.
fn read_leaf<'v>(
    leaf: &Leaf,
    object: &TestedObject<'v>,
    values: &FieldValues<'v>,
    add: &mut dyn FnMut(FoundValue<'v>),
) -> Result<(), GatewayError> {
    let (index, language) = match leaf {
        Leaf::Uri => {
            add(FoundValue { text: Cow::Borrowed(object.path.uri.as_str()), is_json: false });
            return Ok(());
        }
        Leaf::Field(index) => (*index, &None),
        Leaf::Texts(index, language) => (*index, language),
    };
    let (_, property) = find_property(object.shape, index)?;
    let mut add_literal = |literal: ShownLiteral<'v>| {
        if language.is_none() || literal.language().as_deref() == language.as_deref() {
            add(FoundValue { text: literal.text, is_json: literal.raw });
        }
    };
    if let Some(only) = values.find_only_literal(index, property) {
        add_literal(only);
        return Ok(());
    }
    match values.collect_shown(index, property) {
        ShownValues::Literals(literals) => literals.into_iter().for_each(add_literal),
        ShownValues::Iris(iris) => {
            for iri in iris {
                add(FoundValue { text: Cow::Borrowed(iri.as_str()), is_json: false });
            }
        }
        ShownValues::Codes(codes) => {
            for code in codes {
                let is_json = !matches!(code.json, Json::String(_));
                add(FoundValue { text: Cow::Owned(code.text().to_owned()), is_json });
            }
        }
    }
    Ok(())
}

/// What was read of an object. Only what is nested in it was copied.
#[derive(Debug)]
pub(super) struct Element<'v> {
    /// The values, each with its index in [`Branch::leaves`], sorted by that index.
    values: Vec<(usize, FoundValue<'v>)>,
    /// The objects in each of [`Branch::nested`].
    nested: Vec<Vec<Element<'static>>>,
}

/// A value as the view shows it.
#[derive(Debug)]
pub(super) struct FoundValue<'v> {
    pub(super) text: Cow<'v, str>,
    /// Whether the text is JSON: a number, or `true` or `false`.
    pub(super) is_json: bool,
}

/// A value of a field, or that there is none.
#[derive(Debug)]
pub(super) struct Instance<'e> {
    /// The indexes of the nested objects that lead to it, each in its array.
    chain: Vec<usize>,
    pub(super) value: Option<&'e FoundValue<'e>>,
}

impl Instance<'_> {
    /// Returns whether two values are in the same nested objects, as far as this many of them are on the way to both.
    pub(super) fn is_compatible(&self, other: &Instance<'_>, shared_steps: usize) -> bool {
        self.chain.iter().take(shared_steps).eq(other.chain.iter().take(shared_steps))
    }
}

impl<'v> Element<'v> {
    fn into_owned(self) -> Element<'static> {
        let values = self.values.into_iter().map(|(leaf, FoundValue { text, is_json })| {
            (leaf, FoundValue { text: Cow::Owned(text.into_owned()), is_json })
        });
        Element { values: values.collect(), nested: self.nested }
    }

    fn values_of(&self, leaf: usize) -> impl Iterator<Item = &FoundValue<'v>> {
        let first = self.values.partition_point(|(found, _)| *found < leaf);
        let rest = self.values.iter().skip(first);
        rest.take_while(move |(found, _)| *found == leaf).map(|(_, value)| value)
    }

    fn visit_texts(&self, steps: &[usize], leaf: usize, visit: &mut dyn FnMut(&str)) {
        if let Some((step, rest)) = steps.split_first() {
            for element in self.nested.get(*step).into_iter().flatten() {
                element.visit_texts(rest, leaf, visit);
            }
        } else {
            for value in self.values_of(leaf) {
                visit(&value.text);
            }
        }
    }

    fn add_instances<'e>(
        &'e self,
        steps: &[usize],
        leaf: usize,
        chain: &mut Vec<usize>,
        instances: &mut Vec<Instance<'e>>,
    ) {
        let before = instances.len();
        if let Some((step, rest)) = steps.split_first() {
            for (index, element) in self.nested.get(*step).into_iter().flatten().enumerate() {
                chain.push(index);
                element.add_instances(rest, leaf, chain, instances);
                chain.pop();
            }
        } else {
            let values = self.values_of(leaf);
            instances
                .extend(values.map(|value| Instance { chain: chain.clone(), value: Some(value) }));
        }
        if instances.len() == before {
            instances.push(Instance { chain: chain.clone(), value: None });
        }
    }
}
