//! Converts maps: JSON objects whose member names are data.
use super::{Converter, GivenField, GivenObject, GivenValue, quote_excerpt, to_term};
use crate::ingest::node::{Partial, RemovedMembers};
use crate::mapping::{Form, MapMember, Property, Shape};
use crate::natural_key;
use oxrdf::Term;
use penstock_base::json::{self, Json};
use std::collections::HashSet;

/// A member of a map.
enum Member<'m> {
    /// One with a value.
    Given(GivenObject<'m>),
    /// One without a value, which is not stored.
    Absent,
    /// One of which a MERGE gives nothing, or one with an error, which was reported.
    Skipped,
}

impl Converter<'_> {
    /// Converts the members of a map that a MERGE gives. The others stay.
    pub(super) fn convert_given_members<'m>(
        &mut self,
        place: usize,
        property: &'m Property,
        members: Vec<(String, Json)>,
    ) -> GivenField<'m> {
        let mut removed = RemovedMembers::default();
        let values = self.convert_map(property, members, &mut removed.keys);
        let partial = Some(Box::new(Partial::Members(removed)));
        GivenField { partial, ..GivenField::new(place, values) }
    }

    /// Converts the members of a map. Those without a value are added to `absent`, each with only its key.
    pub(super) fn convert_map<'m>(
        &mut self,
        property: &'m Property,
        members: Vec<(String, Json)>,
        absent: &mut Vec<GivenObject<'m>>,
    ) -> Vec<GivenValue<'m>> {
        let Some((shape, member)) = property.map() else { return Vec::new() };
        let mut values = Vec::with_capacity(members.len());
        // The reader of JSON refuses equal names, but different ones can be the same number.
        let is_number = member.key.value.kind().form == Form::Number;
        let mut keys = HashSet::new();
        for (name, value) in members {
            self.with_pointer(&name, |here| {
                let key = read_name(&member, &name).and_then(|(text, key)| {
                    let is_new = !is_number || keys.insert(text);
                    is_new.then_some(key).ok_or_else(|| "another name is the same key".to_owned())
                });
                let key = match key {
                    Ok(key) => GivenField::new(member.key_index, vec![GivenValue::Term(key)]),
                    Err(why) => {
                        let name = quote_excerpt(&name);
                        let message = format!("{name} cannot be the name of a member here: {why}");
                        return here.report_invalid(message);
                    }
                };
                match here.convert_member(property, (shape, member), value) {
                    Member::Given(mut object) => {
                        // The key is the last field.
                        object.given.push(key);
                        values.push(GivenValue::Object(object));
                    }
                    Member::Absent => {
                        let (pointer, given) = (here.pointer.clone(), vec![key]);
                        absent.push(GivenObject { shape, pointer, uri: None, given });
                    }
                    Member::Skipped => {}
                }
            });
        }
        values
    }

    fn convert_member<'m>(
        &mut self,
        map: &Property,
        (shape, member): (&'m Shape, MapMember<'m>),
        value: Json,
    ) -> Member<'m> {
        if value == Json::Null || map.is_absent(&value) {
            return Member::Absent;
        }
        let Some((place, property)) = member.value else {
            return self.convert_object(shape, value).map_or(Member::Skipped, Member::Given);
        };
        let before = self.findings.count();
        let pointer = self.pointer.clone();
        let mut object = GivenObject { shape, pointer, uri: None, given: Vec::new() };
        self.convert_property(&mut object, place, property, value);
        if self.findings.count() > before {
            return Member::Skipped;
        }
        match object.given.first() {
            Some(given) if !given.values.is_empty() || given.removes_some() => {
                Member::Given(object)
            }
            Some(given) if given.keeps_others() => Member::Skipped,
            _ => Member::Absent,
        }
    }
}

/// Returns the text of a name as a key, and the value that is stored.
///
/// # Errors
/// Returns why it cannot be a key.
fn read_name(member: &MapMember<'_>, name: &str) -> Result<(String, Term), String> {
    let key = &member.key.value;
    let json = match key.kind().form {
        Form::Number => match json::parse(name.as_bytes(), 0) {
            Ok(Json::Number(digits)) if digits == name => Json::Number(digits),
            _ => return Err("it is no number as JSON writes it, without leading zeros".to_owned()),
        },
        _ => Json::String(name.to_owned()),
    };
    let term = to_term(key, json)?;
    let text = natural_key::key_text(key, term.as_ref()).unwrap_or_default().into_owned();
    match natural_key::unusable_reason(&text) {
        Some(why) => Err(why.to_owned()),
        None => Ok((text, term)),
    }
}
