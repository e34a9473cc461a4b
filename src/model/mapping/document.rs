//! The documents that senders send: where the objects are in them, and what these take from around them.
use penstock_base::json::{Json, push_pointer, unescape_token};
use std::fmt;

/// Where the objects are in a document, and what they take from around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentForm {
    /// The way from the document to the objects: `items`.
    pub items: Vec<Step>,
    /// What fields of the root take if the object has no value of its own, each with the index of the field.
    pub outer: Vec<(usize, Outer)>,
}

/// A step on the way to the objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// `*`: each element of an array, or member of an object.
    Each,
    /// The member of this name, or the element with this index.
    Name(String),
}

/// What a field takes from around its object: `outer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outer {
    /// The member of this name of the nearest object around that has one.
    Nearest(String),
    /// The value that these names lead to from the document.
    At(Vec<String>),
    /// The name of the member that a star of `items` matches; the first star is 0.
    Star(usize),
}

impl fmt::Display for Outer {
    /// Writes it as in a mapping.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nearest(name) => f.write_str(name),
            Self::At(names) => {
                let mut pointer = String::new();
                for name in names {
                    push_pointer(&mut pointer, name);
                }
                f.write_str(&pointer)
            }
            Self::Star(star) => write!(f, "*{}", star + 1),
        }
    }
}

/// Parses the text of `items`; `None` if it is no JSON Pointer to something in the document.
pub(super) fn parse_items(text: &str) -> Option<Vec<Step>> {
    let names = parse_pointer(text)?.into_iter();
    Some(names.map(|name| if name == "*" { Step::Each } else { Step::Name(name) }).collect())
}

/// Parses the text of `outer`, which is for documents with these `items`.
///
/// # Errors
/// Returns what is wrong with it.
pub(super) fn parse_outer(text: &str, items: &[Step]) -> Result<Outer, String> {
    if text.starts_with('/') {
        let names = parse_pointer(text)
            .ok_or("it is no JSON Pointer: after `~` comes `0` (a `~`) or `1` (a `/`)")?;
        return Ok(Outer::At(names));
    }
    let Some(number) = text.strip_prefix('*') else {
        return match text {
            "" => Err("it is empty; write the name of a member around the object".to_owned()),
            name => Ok(Outer::Nearest(name.to_owned())),
        };
    };
    let stars = items.iter().filter(|step| **step == Step::Each).count();
    let number = match number {
        "" => stars,
        number => number.parse().map_err(|_| {
            "after `*` comes the number of a star in `items`, from 1; a member whose name begins with `*` needs a pointer, \
             such as `/*a`"
        })?,
    };
    match number.checked_sub(1) {
        Some(star) if star < stars => Ok(Outer::Star(star)),
        _ => Err(format!(
            "the number of stars in `items` is {stars}; add one there, or write the name of a member"
        )),
    }
}

/// Parses a JSON Pointer (RFC 6901) that is not empty.
fn parse_pointer(text: &str) -> Option<Vec<String>> {
    let parse = |token: &str| {
        let escapes = token.matches("~0").count() + token.matches("~1").count();
        (token.matches('~').count() == escapes).then(|| unescape_token(token))
    };
    text.strip_prefix('/')?.split('/').map(parse).collect()
}

/// Returns the member of this name, or the element with this index.
pub(crate) fn find_inner<'j>(json: &'j Json, name: &str) -> Option<&'j Json> {
    let Json::Array(elements) = json else { return json.member(name) };
    let index: usize = name.parse().ok()?;
    // RFC 6901, 4: without leading zeros.
    (index.to_string() == name).then(|| elements.get(index))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_a_pointer_with_stars() {
        let name = |name: &str| Step::Name(name.to_owned());
        assert_eq!(parse_items("/a~1b/*/c"), Some(vec![name("a/b"), Step::Each, name("c")]));
        assert_eq!(parse_items("/*"), Some(vec![Step::Each]));
        for wrong in ["", "a", "*", "/a~2", "/~"] {
            assert_eq!(parse_items(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn outer_is_a_name_a_pointer_or_a_star() {
        let items = parse_items("/*/metrics/*").unwrap();
        let parse = |text| parse_outer(text, &items);
        assert_eq!(parse("time"), Ok(Outer::Nearest("time".to_owned())));
        assert_eq!(parse("/a/b"), Ok(Outer::At(vec!["a".to_owned(), "b".to_owned()])));
        assert_eq!(parse("*"), Ok(Outer::Star(1)));
        assert_eq!(parse("*1"), Ok(Outer::Star(0)));
        for wrong in ["", "*0", "*3", "*x", "/~x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse_outer("*", &[]).unwrap_err().contains("is 0"));
    }

    #[test]
    fn a_name_leads_to_a_member_or_an_element() {
        let json = penstock_base::json::parse(br#"{"a": [1, 2], "0": 3}"#, 10).unwrap();
        let list = find_inner(&json, "a").unwrap();
        assert_eq!(find_inner(list, "1"), Some(&Json::Number("2".to_owned())));
        assert_eq!(find_inner(&json, "0"), Some(&Json::Number("3".to_owned())));
        for none in ["2", "01", "+1", "x"] {
            assert_eq!(find_inner(list, none), None, "{none}");
        }
    }
}
