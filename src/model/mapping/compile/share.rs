//! Checks fields of one object that share a property.
use super::compiler::{Checked, Compiler};
use super::position::Position;
use crate::mapping::yaml::Location;
use crate::mapping::{Detail, Field, FieldKind, Kind, Value};
use penstock_base::json::Json;
use std::borrow::Cow;
use std::collections::HashMap;

impl Compiler {
    /// Checks that each stored value of a shared property belongs to only one field. The datatype, the language or, for
    /// objects, the namespace decides it. A `string` field gets the values that belong to no other field.
    pub(super) fn check_shared(
        &mut self,
        fields: &[(Location, Field)],
        place: &Position<'_>,
    ) -> Checked<()> {
        let mut owners: HashMap<(&str, Cow<'_, str>), &str> = HashMap::new();
        // The first field with objects of each property.
        let mut objects: HashMap<&str, &str> = HashMap::new();
        // The first field of each property, and whether it or one after it is an ordered array.
        let mut firsts: HashMap<&str, (&str, bool)> = HashMap::new();
        let mut result = Ok(());
        for (at, field) in fields {
            let FieldKind::Property(property) = &field.kind else { continue };
            let predicate = property.predicate.as_str();
            let (first, is_ordered) =
                firsts.entry(predicate).or_insert((field.name.as_str(), property.is_ordered));
            *is_ordered |= property.is_ordered;
            if *first != field.name && *is_ordered {
                let message = format!(
                    "it has the property {} in common with the field `{first}`, and an ordered array is the only field of its \
                     property; give one of them another property",
                    property.predicate
                );
                result = Err(self.report_error(*at, &Position::Field(place, &field.name), message));
                continue;
            }
            // A resource may be any IRI, including one in a namespace.
            let mut owner = match &property.value {
                Value::Resource => objects.get(predicate).copied(),
                Value::Object(_) => {
                    objects.entry(predicate).or_insert(&field.name);
                    owners.get(&(predicate, RESOURCE_KIND.into())).copied()
                }
                Value::Literal(_) => None,
            };
            for kind in list_value_kinds(&property.value) {
                let first =
                    *owners.entry((property.predicate.as_str(), kind)).or_insert(&field.name);
                if first != field.name {
                    owner = Some(first);
                }
            }
            if let Some(first) = owner {
                let message = format!(
                    "it has the property {} in common with the field `{first}`, and the gateway could not tell their values \
                     apart; give one of them another property, datatype or language, or objects another namespace",
                    property.predicate
                );
                result = Err(self.report_error(*at, &Position::Field(place, &field.name), message));
            }
        }
        result
    }

    /// Checks that the default of a language map has no text in a language that another field has on its property.
    pub(super) fn check_defaults(
        &mut self,
        fields: &[(Location, Field)],
        place: &Position<'_>,
    ) -> Checked<()> {
        let mut result = Ok(());
        for (at, field) in fields {
            let Some(property) = field.property() else { continue };
            let (Some(_), Some(Json::Object(texts))) =
                (property.value.language_map(), property.default_value())
            else {
                continue;
            };
            let find_owner = |tag: &str| {
                let mut others = fields.iter().map(|(_, other)| other);
                others.find(|other| {
                    other.property().is_some_and(|other| other.owns_language(property, tag))
                })
            };
            let owned = texts.iter().find_map(|(tag, _)| Some((tag, &find_owner(tag)?.name)));
            if let Some((tag, owner)) = owned {
                let message = format!(
                    "`default` has a text in the language {tag:?}, which the field `{owner}` has on the same property; write it \
                     as the `default` there"
                );
                result = Err(self.report_error(*at, &Position::Field(place, &field.name), message));
            }
        }
        result
    }
}

/// The kind of the values of a `resource`: IRIs, not literals.
const RESOURCE_KIND: &str = "IRI";

/// The kind of the texts of a `languageMap`: those in languages that no other field has.
const LANGUAGES_KIND: &str = "texts in other languages";

/// Returns the kinds of values that belong to a field: datatypes, a language, a namespace, or IRIs.
fn list_value_kinds(value: &Value) -> Vec<Cow<'_, str>> {
    match (value, value.detail()) {
        (Value::Resource, _) => vec![RESOURCE_KIND.into()],
        (_, Detail::Objects(shape)) => {
            vec![format!("{RESOURCE_KIND} of {}", shape.namespace).into()]
        }
        (_, Detail::Language(tag)) => vec![format!("@{tag}").into()],
        (_, Detail::Datatype(datatype)) => vec![datatype.as_str().into()],
        (_, Detail::None) if value.language_map().is_some() => vec![LANGUAGES_KIND.into()],
        (_, Detail::None) => {
            let Kind { datatypes, claimed_datatypes, .. } = value.kind();
            datatypes.iter().chain(*claimed_datatypes).map(|one| one.as_str().into()).collect()
        }
    }
}
