//! Finds the code of a value, and the value of a code that is relative to a base. Adds the codes of values to a list.
use super::{CodeList, Codes};
use crate::mapping::Value;
use crate::namespace::segment::encode_segment;
use crate::natural_key::key_text;
use oxrdf::{NamedNode, Term, TermRef};
use penstock_base::json::Json;
use penstock_rdf::number::NumberKey;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

impl Codes {
    /// Returns the code of a value of a field of this type; `None` if it has none.
    pub(crate) fn find_code(&self, value: &Value, term: TermRef<'_>) -> Option<Cow<'_, Json>> {
        match (self, term) {
            (Self::Listed(list), term) => list.find_code(value, term).map(Cow::Borrowed),
            (Self::Base(base), TermRef::NamedNode(iri)) => {
                let rest = iri.as_str().strip_prefix(base.as_str())?;
                let code = percent_decode_str(rest).decode_utf8().ok()?;
                let is_code = is_short_form(&code) && Cow::from(encode_segment(&code)) == rest;
                is_code.then(|| Cow::Owned(Json::String(code.into_owned())))
            }
            (Self::Base(_), _) => None,
        }
    }

    /// Returns the values of a resource whose codes, or which themselves, are shown as this text.
    pub(crate) fn list_iris_shown_as(&self, text: &str) -> Vec<NamedNode> {
        let iri = NamedNode::new(text).ok();
        match self {
            Self::Base(base) => {
                let expanded = expand_code(base, text).and_then(|iri| NamedNode::new(iri).ok());
                iri.into_iter().chain(expanded).collect()
            }
            Self::Listed(list) => {
                let itself = Json::String(text.to_owned());
                let codes = [Some(&itself), list.find_by_text(text)];
                let terms = codes.iter().flatten().filter_map(|code| list.find_term(code));
                let iris = terms.filter_map(|term| match term {
                    Term::NamedNode(iri) => Some(iri.clone()),
                    _ => None,
                });
                iri.into_iter().chain(iris).collect()
            }
        }
    }

    /// Replaces the IRIs for which `rewrite` returns another one, in a field with values of this type.
    pub(crate) fn rewrite_iris(
        &mut self,
        value: &Value,
        rewrite: &impl Fn(&str) -> Option<String>,
    ) {
        let replace = |iri: &mut NamedNode| {
            if let Some(new) = rewrite(iri.as_str()) {
                *iri = NamedNode::new_unchecked(new);
            }
        };
        match self {
            Self::Base(base) => replace(base),
            Self::Listed(list) => {
                let mut rewritten = CodeList::default();
                for (code, mut term) in std::mem::take(&mut list.codes) {
                    if let Term::NamedNode(iri) = &mut term {
                        replace(iri);
                    }
                    rewritten.add(value, code, term);
                }
                *list = rewritten;
            }
        }
    }
}

impl CodeList {
    /// Adds a code of a value of a field of this type. Returns false if the list has the code already.
    pub(crate) fn add(&mut self, value: &Value, code: Json, term: Term) -> bool {
        if self.find(&code).is_some() {
            return false;
        }
        let index = self.codes.len();
        match &code {
            Json::String(text) => drop(self.strings.insert(text.clone(), index)),
            Json::Number(digits) => {
                let number = NumberKey::parse(digits);
                self.numbers.extend(number.map(|number| (number, index)));
            }
            _ => {}
        }
        if let Some(text) = key_text(value, term.as_ref()) {
            self.by_value.entry(text.into_owned()).or_insert(index);
        }
        self.codes.push((code, term));
        true
    }

    /// Returns the first code of a value of a field of this type; `None` if the value is not listed.
    pub(crate) fn find_code(&self, value: &Value, term: TermRef<'_>) -> Option<&Json> {
        let index = self.by_value.get(&*key_text(value, term)?)?;
        self.codes.get(*index).map(|(code, _)| code)
    }

    /// Returns whether an ingestion of the code of a value writes the same value.
    pub(crate) fn has_value(&self, value: &Value, term: TermRef<'_>) -> bool {
        let code = self.find_code(value, term);
        code.and_then(|code| self.find_term(code)).is_some_and(|found| found.as_ref() == term)
    }
}

/// Returns the IRI of a code that is relative to a base; `None` if the text is an IRI itself, or empty.
pub(crate) fn expand_code(base: &NamedNode, code: &str) -> Option<String> {
    is_short_form(code).then(|| format!("{}{}", base.as_str(), encode_segment(code)))
}

fn is_short_form(text: &str) -> bool {
    !text.is_empty() && !text.contains(':')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::{CODE_SCALAR, Literal};
    use penstock_rdf::compare::ValueOrder;

    fn resource(iri: &str) -> Term {
        NamedNode::new_unchecked(iri).into()
    }

    #[test]
    fn a_base_is_left_out_where_the_rest_is_its_own_encoding() {
        let codes = Codes::Base(NamedNode::new_unchecked("http://e/id/"));
        for (code, iri) in [
            ("KSB", "http://e/id/KSB"),
            ("a b/ß", "http://e/id/a%20b%2F%C3%9F"),
            (".", "http://e/id/."),
        ] {
            let Codes::Base(base) = &codes else { panic!() };
            assert_eq!(expand_code(base, code).as_deref(), Some(iri));
            let found = codes.find_code(&Value::Resource, resource(iri).as_ref());
            assert_eq!(found.as_deref(), Some(&Json::String(code.to_owned())));
        }
        for whole in [
            "http://other/KSB",
            "http://e/id/",
            "http://e/id/a:b",
            "http://e/id/a%3Ab",
            "http://e/id/a/b",
            "http://e/id/%c3%9f",
            "http://e/id/%FF",
            "http://e/id/ß",
        ] {
            assert_eq!(
                codes.find_code(&Value::Resource, resource(whole).as_ref()),
                None,
                "{whole}"
            );
        }
        let Codes::Base(base) = &codes else { panic!() };
        assert_eq!(expand_code(base, "urn:a"), None);
        assert_eq!(expand_code(base, ""), None);
    }

    #[test]
    fn listed_codes_are_found_in_both_directions() {
        let value = Value::Literal(Literal::String);
        let text = |text: &str| Term::from(oxrdf::Literal::new_simple_literal(text));
        let number = |digits: &str| Json::Number(digits.to_owned());
        let mut list = CodeList::default();
        assert!(list.add(&value, number("0"), text("off")));
        assert!(list.add(&value, Json::Bool(false), text("off")));
        assert!(list.add(&value, Json::String("0".to_owned()), text("zero")));
        assert!(!list.add(&value, number("0.0"), text("none")));
        assert_eq!(list.find_term(&number("0e1")), Some(&text("off")));
        assert_eq!(list.find_term(&Json::Bool(false)), Some(&text("off")));
        assert_eq!(list.find_term(&Json::Bool(true)), None);
        assert_eq!(list.find_code(&value, text("off").as_ref()), Some(&number("0")));
        assert_eq!(list.find_code(&value, text("on").as_ref()), None);
        let shown: Vec<&Term> = list.shown().map(|(_, term)| term).collect();
        assert_eq!(shown, [&text("off"), &text("zero")]);
        assert_eq!(list.find_by_text(" false "), Some(&Json::Bool(false)));
        assert_eq!(list.find_by_text("true"), None);
        assert_eq!(list.find_by_text("0"), Some(&Json::String("0".to_owned())));
        assert_eq!(list.find_by_text("0.0"), Some(&number("0")));
        let codes = Codes::Listed(list);
        assert_eq!(codes.graphql(value.kind()), CODE_SCALAR);
        assert!(codes.lists(&number("0")) && !codes.lists(&number("1")));
        assert_eq!(codes.order(), ValueOrder::Text);
    }

    #[test]
    fn strings_that_are_codes_of_numbers_are_any_json() {
        let value = Value::Literal(Literal::Integer);
        let graphql = |codes: &[(Json, &str)]| {
            let mut list = CodeList::default();
            for (code, digits) in codes {
                let integer =
                    oxrdf::Literal::new_typed_literal(*digits, oxrdf::vocab::xsd::INTEGER);
                list.add(&value, code.clone(), integer.into());
            }
            Codes::Listed(list).graphql(value.kind()).name
        };
        let text = |text: &str| Json::String(text.to_owned());
        let number = |digits: &str| Json::Number(digits.to_owned());
        // A stored 7 has no code, and is shown as a number.
        assert_eq!(graphql(&[(text("low"), "1"), (text("high"), "2")]), CODE_SCALAR.name);
        assert_eq!(graphql(&[(text("1"), "1")]), CODE_SCALAR.name);
        assert_eq!(graphql(&[(number("1"), "1"), (number("2"), "2")]), value.kind().graphql.name);
    }

    #[test]
    fn iris_are_rewritten() {
        let rewrite =
            |iri: &str| iri.strip_prefix("http://old/").map(|rest| format!("http://new/{rest}"));
        let mut base = Codes::Base(NamedNode::new_unchecked("http://old/"));
        base.rewrite_iris(&Value::Resource, &rewrite);
        assert_eq!(base, Codes::Base(NamedNode::new_unchecked("http://new/")));
        let code = || Json::String("a".to_owned());
        let list_with = |iri: &str| {
            let mut list = CodeList::default();
            list.add(&Value::Resource, code(), resource(iri));
            Codes::Listed(list)
        };
        let mut list = list_with("http://old/1");
        list.rewrite_iris(&Value::Resource, &rewrite);
        assert_eq!(list, list_with("http://new/1"));
        let found = list.find_code(&Value::Resource, resource("http://new/1").as_ref());
        assert_eq!(found.as_deref(), Some(&code()));
    }
}
