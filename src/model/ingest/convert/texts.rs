//! Converts language maps: JSON objects whose names are language tags.
use super::{Converter, GivenValue, describe_mismatch, format_value, quote_excerpt};
use crate::mapping::{Field, LanguageMap, Property, Shape, format_language_tag};
use oxrdf::{Literal, Term};
use penstock_base::json::Json;
use penstock_rdf::MAX_IRI_BYTES;
use penstock_store::{FastMap, FastSet};
use std::collections::HashSet;

impl Converter<'_> {
    /// Converts the texts of a language map.
    pub(super) fn convert_texts<'m>(
        &mut self,
        property: &'m Property,
        map: &LanguageMap,
        json: Json,
    ) -> Vec<GivenValue<'m>> {
        let Json::Object(members) = json else {
            let expected = "an object whose names are language tags";
            self.report_invalid(describe_mismatch(expected, &json));
            return Vec::new();
        };
        let mut values = Vec::with_capacity(members.len());
        let mut languages = HashSet::with_capacity(members.len());
        for (tag, value) in members {
            let is_new = languages.insert(tag.to_ascii_lowercase());
            self.with_pointer(&tag, |here| {
                if !is_new {
                    let tag = quote_excerpt(&tag);
                    here.report_invalid(format!(
                        "{tag} is the language of another name of this object; send a language once"
                    ));
                } else if !map.accepts(&tag) {
                    here.report_invalid(describe_unknown_language(map, &tag));
                } else if map.has_arrays {
                    here.convert_text_array(property, &tag, value, &mut values);
                } else if !property.is_absent(&value) {
                    values.extend(here.convert_text(&tag, value).map(GivenValue::Term));
                }
            });
        }
        values
    }

    /// Converts the texts in one language, and drops repeated ones.
    fn convert_text_array(
        &mut self,
        property: &Property,
        tag: &str,
        json: Json,
        values: &mut Vec<GivenValue<'_>>,
    ) {
        let elements = match json {
            Json::Array(elements) => elements,
            Json::Null => return,
            other if property.is_absent(&other) => return,
            other => return self.report_invalid(describe_mismatch("an array", &other)),
        };
        let mut known = HashSet::with_capacity(elements.len());
        for (index, element) in elements.into_iter().enumerate() {
            if property.is_absent(&element) {
                continue;
            }
            self.with_pointer(&index.to_string(), |here| {
                let Some(text) = here.convert_text(tag, element) else { return };
                if known.insert(text.clone()) {
                    values.push(GivenValue::Term(text));
                } else {
                    here.warn_of_repeated(&format_value(&text));
                }
            });
        }
    }

    /// Converts one text; `None` for `null`, or for an error that was reported.
    fn convert_text(&mut self, tag: &str, json: Json) -> Option<Term> {
        let text = match json {
            Json::String(text) => text,
            Json::Null => return None,
            other => {
                self.report_invalid(describe_mismatch("a string", &other));
                return None;
            }
        };
        if tag.len() > MAX_IRI_BYTES {
            let (length, tag) = (tag.len(), quote_excerpt(tag));
            self.report_invalid(format!(
                "{tag} is a language tag of {length} bytes; the maximum is {MAX_IRI_BYTES}"
            ));
            return None;
        }
        match Literal::new_language_tagged_literal(text, tag) {
            Ok(literal) => Some(literal.into()),
            Err(error) => {
                let tag = quote_excerpt(tag);
                self.report_invalid(format!(
                    "{tag} is not a language tag ({error}); send one such as \"en\" or \"de-AT\""
                ));
                None
            }
        }
    }

    /// Reports the languages of a language map that other fields of the object have.
    pub(super) fn check_languages(&mut self, shape: &Shape, property: &Property, json: &Json) {
        let (Some(_), Json::Object(members)) = (property.value.language_map(), json) else {
            return;
        };
        let others = shape.iter_properties();
        let others = others.filter(|(_, _, other)| other.predicate == property.predicate);
        let owners: FastMap<String, &Field> = others
            .filter_map(|(_, field, other)| {
                Some((other.value.language()?.to_ascii_lowercase(), field))
            })
            .collect();
        if owners.is_empty() {
            return;
        }
        for (tag, _) in members {
            if let Some(owner) = owners.get(&tag.to_ascii_lowercase()) {
                let (tag_text, owner) = (quote_excerpt(tag), quote_excerpt(&owner.name));
                let message = format!(
                    "{tag_text} is the language of the field {owner}, which has the same property; send the text there"
                );
                self.with_pointer(tag, |here| here.report_invalid(message));
            }
        }
    }

    /// Returns the languages that a MERGE gives of a language map, in lower case; `None` for other fields and modes.
    pub(super) fn list_languages(
        &self,
        property: &Property,
        json: &Json,
    ) -> Option<FastSet<String>> {
        let (Some(_), Json::Object(members)) = (property.value.language_map(), json) else {
            return None;
        };
        let languages = members.iter().map(|(tag, _)| tag.to_ascii_lowercase());
        self.null_clears.then(|| languages.collect())
    }
}

fn describe_unknown_language(map: &LanguageMap, tag: &str) -> String {
    let known: Vec<_> = map.languages.iter().take(20).map(|tag| format_language_tag(tag)).collect();
    format!("{} is not a language of the field; it has {}", quote_excerpt(tag), known.join(", "))
}
