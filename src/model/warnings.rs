//! Warnings about definitions: what is valid but probably unintended.
//!
//! [`check_definition`] needs no store. [`check_namespaces`] reads the existing namespaces and whether they have data.
use super::mapping::{Codes, Mapping, Property, Value};
use super::namespace::{self, BASE_WITHOUT_URL, KnownNamespaces, Namespace, Overlaps};
use super::resource::{Compiled, Conditions, Definition};
use super::view::find_owning_field;
use oxrdf::vocab::rdf;
use oxrdf::{NamedNode, Term};
use penstock_base::error::{Finding, GatewayError};
use penstock_base::nearest::find_nearest;
use penstock_rdf::compare;
use penstock_store::{Error, Read};
use std::cell::OnceCell;

/// The maximum number of namespaces that one warning names.
const MAX_NAMED: usize = 5;

/// Returns the warnings that do not need the store.
pub fn check_definition(
    definition: &Definition,
    mapping: &Mapping,
    conditions: &Conditions,
) -> Vec<Finding> {
    let mut found: Vec<Finding> = mapping.warnings.clone();
    for warning in &mut found {
        warning.message.insert_str(0, "config: ");
    }
    check_conditions(definition, mapping, conditions, &mut found);
    if definition.push_targets.is_empty() {
        let without = |what: &str| format!("{what}, but without `pushTargets` nothing is exported");
        if definition.schedule.is_some() {
            found.push(Finding::at_pointer("/schedule", without("a schedule is set")));
        }
        if definition.export_on_change {
            found.push(Finding::at_pointer(
                "/exportOnChange",
                without("changes are to be exported"),
            ));
        }
    }
    let named = mapping.namespaces();
    for (index, defined) in definition.namespaces.iter().enumerate() {
        if !named.contains(&defined.name.as_str()) {
            let message = format!("the mapping does not name the namespace `{}`", defined.name);
            found.push(Finding::at_pointer(format!("/namespaces/{index}/name"), message));
        }
    }
    found
}

fn check_conditions(
    definition: &Definition,
    mapping: &Mapping,
    conditions: &Conditions,
    found: &mut Vec<Finding>,
) {
    for (index, (condition, (predicate, value))) in
        definition.conditions.iter().zip(conditions).enumerate()
    {
        let mut iris = vec![("predicate", &condition.predicate, predicate)];
        if let Term::NamedNode(iri) = value {
            iris.push(("value", &condition.value, iri));
        }
        for (member, text, iri) in iris {
            if let Ok(expanded) = mapping.prefixes.expand_iri(text)
                && expanded != *iri
            {
                found.push(Finding::at_pointer(
                    format!("/conditions/{index}/{member}"),
                    format!(
                        "`{text}` was saved as the IRI <{iri}>, before prefixes applied to conditions; save \
                         the definition again to change it to <{expanded}>"
                    ),
                ));
            }
        }
        let earlier = conditions.iter().take(index);
        if let Some(why) = unsatisfiable_reason(mapping, predicate, value, earlier) {
            found.push(Finding::at_pointer(
                format!("/conditions/{index}"),
                format!(
                    "no object written through this mapping satisfies the condition `{}` = `{}`: {why}",
                    condition.predicate,
                    condition.describe_value()
                ),
            ));
        }
    }
}

/// Returns the reason why no object that is written through the mapping can satisfy a condition.
fn unsatisfiable_reason<'a>(
    mapping: &Mapping,
    predicate: &NamedNode,
    value: &Term,
    earlier: impl Iterator<Item = &'a (NamedNode, Term)>,
) -> Option<String> {
    let is_written_type =
        |iri: &NamedNode| *predicate == rdf::TYPE && mapping.root.types.contains(iri);
    match value {
        Term::NamedNode(iri) if is_written_type(iri) => return None,
        Term::Literal(literal) if compare::is_valid(literal) == Some(false) => {
            return Some(format!(
                "{:?} is no value of the datatype {}",
                literal.value(),
                literal.datatype()
            ));
        }
        _ => {}
    }
    let fields = mapping.root.iter_properties();
    let fields: Vec<_> = fields.filter(|(.., found)| found.predicate == *predicate).collect();
    let Some((_, first, _)) = fields.first() else {
        let of_type = if value.is_literal() { "" } else { " with `type: resource`" };
        return Some(format!(
            "no field of the root has the property <{}>; add one{of_type}, or correct the predicate",
            predicate.as_str()
        ));
    };
    let holds = |property: &Property| match (&property.value, value) {
        (Value::Literal(kind), Term::Literal(literal)) => kind.has_type_of(literal.as_ref()),
        (Value::Literal(_), _) => false,
        (Value::Resource | Value::Object(_), value) => !value.is_literal(),
    };
    // Fields that share a property have a value each.
    let owner = |term: &Term| find_owning_field(&mapping.root, predicate.as_ref(), term.as_ref());
    let own = owner(value);
    let holding = fields.iter().filter(|(.., property)| holds(property));
    let Some((_, field, property)) = holding.min_by_key(|(place, ..)| Some(*place) != own) else {
        let name = &first.name;
        return Some(if let Term::Literal(literal) = value {
            format!(
                "the field `{name}` has values of another type than the condition, whose value is of the datatype {}",
                literal.datatype()
            )
        } else {
            format!(
                "the field `{name}` has literals, but a condition compares with an IRI; use `type: resource`"
            )
        });
    };
    if property.is_ordered {
        return Some(format!(
            "the field `{}` is an ordered array, whose property leads to a list of its elements",
            field.name
        ));
    }
    if let Some(codes) = property.codes.as_deref().and_then(Codes::list)
        && !codes.has_value(&property.value, value.as_ref())
    {
        return Some(format!("the field `{}` has no code for this value", field.name));
    }
    let others = earlier
        .filter(|(other, term)| other == predicate && term != value && owner(term) == own)
        .map(|(_, other)| other);
    let (other, limit) = find_contradiction(property, value, others)?;
    Some(format!("another condition requires {other}, but the field `{}` has {limit}", field.name))
}

/// Returns one of the other values of a field that an object cannot have beside this value, and how many it can have.
fn find_contradiction<'a>(
    property: &Property,
    value: &Term,
    mut others: impl Iterator<Item = &'a Term>,
) -> Option<(&'a Term, &'static str)> {
    match property.value.language_map() {
        None if property.is_array => None,
        None => Some((others.next()?, "one value")),
        Some(map) if map.has_arrays => None,
        Some(_) => {
            let other = others.find(|other| have_same_language(other, value))?;
            Some((other, "one text in each language"))
        }
    }
}

fn have_same_language(one: &Term, other: &Term) -> bool {
    let (Term::Literal(one), Term::Literal(other)) = (one, other) else { return false };
    let languages = one.language().zip(other.language());
    languages.is_some_and(|(one, other)| one.eq_ignore_ascii_case(other))
}

/// The namespaces, for the warnings about several definitions.
#[derive(Debug)]
pub struct WarningContext<'k> {
    known: &'k KnownNamespaces,
    /// The names of those with data, once a warning needs them.
    with_data: OnceCell<Vec<&'k str>>,
}

impl<'k> WarningContext<'k> {
    /// Creates the context of warnings about definitions that use these namespaces.
    pub fn new(known: &'k KnownNamespaces) -> Self {
        Self { known, with_data: OnceCell::new() }
    }

    fn list_with_data(&self, read: &dyn Read) -> Result<&[&'k str], Error> {
        if let Some(found) = self.with_data.get() {
            return Ok(found);
        }
        let mut found = Vec::new();
        for namespace in self.known.iter() {
            if namespace::has_data(read, namespace)? {
                found.push(namespace.name.as_str());
            }
        }
        Ok(self.with_data.get_or_init(|| found))
    }

    /// Returns the namespace with data whose name is most similar to this one's.
    fn find_similar_with_data(
        &self,
        read: &dyn Read,
        root: &Namespace,
    ) -> Result<Option<&'k str>, Error> {
        let others = self.list_with_data(read)?.iter().filter(|name| **name != root.name);
        Ok(find_nearest(&root.name, others.copied()))
    }
}

/// The namespaces that saving a definition created, or in a dry run would create.
#[derive(Debug, Clone, Copy)]
pub struct CreatedNamespaces<'n> {
    /// Their names.
    pub names: &'n [String],
    /// Whether this is a dry run, which creates none of them.
    pub is_dry_run: bool,
}

/// Returns the warnings that depend on namespaces. `default_base` returns the base of a namespace without one.
pub fn check_namespaces(
    read: &dyn Read,
    context: &WarningContext<'_>,
    compiled: &Compiled,
    created: CreatedNamespaces<'_>,
    default_base: &dyn Fn(&str) -> String,
) -> Result<Vec<Finding>, GatewayError> {
    let known = context.known;
    let mut found = Vec::new();
    let definition = &compiled.object.definition;
    if compiled.object.changed_types {
        let message = "the `types` changed; they are written with each object from now on, and objects stored before keep \
                       the types that they have";
        found.push(Finding::at_pointer("/config", message));
    }
    for namespace in created.names.iter().filter_map(|name| known.get(name)) {
        let Namespace { name, uri_base, .. } = namespace;
        if *uri_base == default_base(name)
            && !definition.has_base_for(name)
            && !namespace::has_data(read, namespace)?
        {
            let tense = if created.is_dry_run { "will be" } else { "was" };
            let has_base_url = !uri_base.starts_with(BASE_WITHOUT_URL);
            let why = if has_base_url { "" } else { ", because `service.base-url` is not set" };
            found.push(Finding::at_pointer(
                "/config",
                format!(
                    "the namespace `{name}` {tense} created with the default base <{uri_base}>{why}; until it has data, \
                     another one can be set with `namespaces: [{{\"name\": …, \"uriBase\": …}}]` in this definition"
                ),
            ));
        }
    }
    // Each pair of namespaces of the mapping is compared once.
    let mut compared = Vec::new();
    for namespace in compiled.mapping.namespaces().into_iter().filter_map(|name| known.get(name)) {
        found.extend(
            overlap_warning(namespace, known, &compared)
                .map(|message| Finding::at_pointer("/config", message)),
        );
        compared.push(namespace.name.as_str());
    }
    if let Some(root) = known.get(&compiled.mapping.root.namespace)
        && !namespace::has_data(read, root)?
        && let Some(similar) = context.find_similar_with_data(read, root)?
    {
        found.push(Finding::at_pointer(
            "/config",
            format!(
                "the root namespace `{}` has no objects, but `{similar}` has some; check the name",
                root.name
            ),
        ));
    }
    Ok(found)
}

/// Returns a warning if the base of a namespace is a prefix of the base of another one, or begins with it. Those of the
/// names `except` do not count.
pub fn overlap_warning(
    namespace: &Namespace,
    known: &KnownNamespaces,
    except: &[&str],
) -> Option<String> {
    let Overlaps { inside, around } = known.find_overlaps(namespace, except);
    let Namespace { name, uri_base, .. } = namespace;
    let bases = |found: &[&Namespace]| {
        let named: Vec<String> = found
            .iter()
            .take(MAX_NAMED)
            .map(|other| format!("`{}` (<{}>)", other.name, other.uri_base))
            .collect();
        let more = if found.len() > MAX_NAMED { " and others" } else { "" };
        format!("{}{more}", named.join(", "))
    };
    let mut parts = Vec::new();
    if !inside.is_empty() {
        parts.push(format!(
            "the base <{uri_base}> of the namespace `{name}` is a prefix of the base of {}",
            bases(&inside)
        ));
    }
    if !around.is_empty() {
        parts.push(format!(
            "the base <{uri_base}> of the namespace `{name}` begins with the base of {}",
            bases(&around)
        ));
    }
    (!parts.is_empty())
        .then(|| format!("{}: their URIs are hard to distinguish", parts.join(", and ")))
}
