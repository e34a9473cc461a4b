//! Checks fields of one object that share a property.
use super::definition::Position;
use super::{Checked, Compiler};
use crate::mapping::yaml::Location;
use crate::mapping::{Detail, Field, FieldKind, Kind, Value};
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
        let mut result = Ok(());
        for (at, field) in fields {
            let FieldKind::Property(property) = &field.kind else { continue };
            let predicate = property.predicate.as_str();
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
}

/// The kind of the values of a `resource`: IRIs, not literals.
const RESOURCE_KIND: &str = "IRI";

/// Returns the kinds of values that belong to a field: datatypes, a language, a namespace, or IRIs.
fn list_value_kinds(value: &Value) -> Vec<Cow<'_, str>> {
    match (value, value.detail()) {
        (Value::Resource, _) => vec![RESOURCE_KIND.into()],
        (_, Detail::Objects(shape)) => {
            vec![format!("{RESOURCE_KIND} of {}", shape.namespace).into()]
        }
        (_, Detail::Language(tag)) => vec![format!("@{tag}").into()],
        (_, Detail::Datatype(datatype)) => vec![datatype.as_str().into()],
        (_, Detail::None) => {
            let Kind { datatypes, claimed_datatypes, .. } = value.kind();
            datatypes.iter().chain(*claimed_datatypes).map(|one| one.as_str().into()).collect()
        }
    }
}
