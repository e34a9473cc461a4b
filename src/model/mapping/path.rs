//! The forms of `path` (specification, 2.2).
//!
//! ```text
//! Plant:.            objects of the namespace Plant
//! <iri>              a property
//! <iri>/Plant:.      a property that leads to objects of the namespace Plant
//! ex:name            a property, with a prefix of the root's `prefixes` or a well-known one
//! ex:has/Plant:.     the same, leading to objects
//! ```
//!
//! The name of a namespace may be in angle brackets too (`<Plant>:.`). It cannot be an IRI, because every IRI has a
//! colon.
use super::prefixes::Prefixes;
use crate::namespace::check_name;
use oxrdf::NamedNode;

/// A parsed path; it has a property, a namespace or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) predicate: Option<NamedNode>,
    pub(super) namespace: Option<String>,
}

const PATH_FORMS: &str = "a path is `<IRI>`, `<IRI>/Namespace:.` or `Namespace:.`";

/// Parses a path.
///
/// # Errors
/// Returns the cause and the remedy as text.
pub(super) fn parse_path(text: &str, prefixes: &mut Prefixes) -> Result<Path, String> {
    let (property, namespace) = match split_namespace(text) {
        Some((property, name)) => {
            check_name(name)?;
            (property, Some(name.to_owned()))
        }
        None => (Some(text), None),
    };
    let predicate = match property {
        Some(property) => {
            Some(parse_iri(property, prefixes).map_err(|why| format!("{why}; {PATH_FORMS}"))?)
        }
        None => None,
    };
    Ok(Path { predicate, namespace })
}

/// Parses an IRI in angle brackets, or a name with a prefix.
///
/// # Errors
/// Returns the cause and the remedy as text.
pub(super) fn parse_iri(text: &str, prefixes: &mut Prefixes) -> Result<NamedNode, String> {
    if let Some(rest) = text.strip_prefix('<') {
        return match rest.split_once('>') {
            Some((iri, "")) => NamedNode::new(iri)
                .map_err(|error| format!("`{iri}` is not an absolute IRI: {error}")),
            Some((_, more)) => Err(format!("`{more}` after the IRI is not allowed")),
            None => Err("the `>` that closes the IRI is missing".to_owned()),
        };
    }
    let Some((prefix, local)) = text.split_once(':') else {
        return Err(format!("`{text}` is not an IRI; write it as <IRI>"));
    };
    prefixes.record_use(prefix);
    match prefixes.get(prefix) {
        Some(base) => {
            let iri = format!("{base}{local}");
            NamedNode::new(&iri).map_err(|error| {
                format!("`{text}` is <{iri}>, which is not an absolute IRI: {error}")
            })
        }
        None if NamedNode::new(text).is_ok() && (local.starts_with("//") || prefix == "urn") => {
            Err(format!("write an IRI in angle brackets: <{text}>"))
        }
        None => Err(match prefixes.find_nearest(prefix) {
            Some(near) => {
                format!("the prefix `{prefix}` is not among `prefixes`; did you mean `{near}`?")
            }
            None => format!(
                "the prefix `{prefix}` is not among `prefixes` at the root; add it there, or write the IRI \
                 in angle brackets"
            ),
        }),
    }
}

/// Splits off `Namespace:.` at the end, and returns the text before it, if there is any, and the name.
///
/// A name has no `/` and no `>`, so the last `/` after the brackets separates the two.
fn split_namespace(text: &str) -> Option<(Option<&str>, &str)> {
    let text = text.strip_suffix(":.")?;
    if let Some(bracketed) = text.strip_suffix('>') {
        let (head, name) = bracketed.rsplit_once('<').filter(|(_, name)| !name.contains(':'))?;
        return match head {
            "" => Some((None, name)),
            _ => Some((Some(head.strip_suffix('/')?), name)),
        };
    }
    let bracket = text.rfind('>').map_or(0, |at| at + 1);
    let (head, tail) = text.split_at(bracket);
    match tail.rfind('/') {
        Some(slash) => {
            Some((Some(text.get(..head.len() + slash)?), text.get(head.len() + slash + 1..)?))
        }
        None if head.is_empty() => Some((None, tail)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes() -> Prefixes {
        let mut prefixes = Prefixes::default();
        for (prefix, iri) in
            [("ex", "http://example.org/"), ("", "http://empty.org/"), ("broken", "not an iri ")]
        {
            prefixes.declare(prefix.to_owned(), iri.to_owned());
        }
        prefixes
    }

    fn read(text: &str) -> (Option<String>, Option<String>) {
        let path = parse_path(text, &mut prefixes()).unwrap();
        (path.predicate.map(NamedNode::into_string), path.namespace)
    }

    #[track_caller]
    fn assert_path(text: &str, predicate: Option<&str>, namespace: Option<&str>) {
        assert_eq!(
            read(text),
            (predicate.map(ToOwned::to_owned), namespace.map(ToOwned::to_owned)),
            "{text}"
        );
    }

    #[track_caller]
    fn assert_error(text: &str, words: &str) {
        let why = parse_path(text, &mut prefixes()).unwrap_err();
        assert!(why.contains(words), "{text}: {why}");
    }

    #[test]
    fn parses_every_form() {
        assert_path("Plant:.", None, Some("Plant"));
        assert_path("Pump Räder:.", None, Some("Pump Räder"));
        assert_path("<http://e/p>", Some("http://e/p"), None);
        assert_path("<http://e/p:.>", Some("http://e/p:."), None);
        assert_path("<urn:p:has>/Plant:.", Some("urn:p:has"), Some("Plant"));
        assert_path("<http://e/p?a/b>/Plant:.", Some("http://e/p?a/b"), Some("Plant"));
        assert_path("ex:name", Some("http://example.org/name"), None);
        assert_path("ex:", Some("http://example.org/"), None);
        assert_path(":name", Some("http://empty.org/name"), None);
        assert_path("ex:has/Plant:.", Some("http://example.org/has"), Some("Plant"));
        assert_path("ex:a/b/Plant:.", Some("http://example.org/a/b"), Some("Plant"));
        assert_path("ex:.", None, Some("ex"));
        assert_path("<Plant>:.", None, Some("Plant"));
        assert_path("<Pump Räder>:.", None, Some("Pump Räder"));
        assert_path("<http://e/p>/<Plant>:.", Some("http://e/p"), Some("Plant"));
        assert_path("ex:has/<Plant>:.", Some("http://example.org/has"), Some("Plant"));
        assert_path("rdf:type", Some("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), None);
        assert_path("schema:.", None, Some("schema"));
    }

    #[test]
    fn errors_name_the_cause_and_the_remedy() {
        assert_error("", "is not an IRI");
        assert_error("name", "a path is `<IRI>`");
        assert_error("<>", "not an absolute IRI");
        assert_error("<name>", "`name` is not an absolute IRI");
        assert_error("<http://e/a b>", "not an absolute IRI");
        assert_error("<http://e/p", "the `>` that closes the IRI is missing");
        assert_error("<http://e/p>x", "`x` after the IRI");
        assert_error("<http://e/p>/Plant", "a path is `<IRI>`, `<IRI>/Namespace:.`");
        assert_error("<http://e/p>Plant:.", "`Plant:.` after the IRI");
        assert_error("http://e/p", "write an IRI in angle brackets: <http://e/p>");
        assert_error("urn:e:p", "in angle brackets: <urn:e:p>");
        assert_error("exx:name", "did you mean `ex`?");
        assert_error("other:name", "not among `prefixes`");
        assert_error("broken:x", "not an absolute IRI");
        assert_error("a:b:.", "cannot be the name of a namespace");
        assert_error(":.", "it is empty");
        assert_error("<>:.", "it is empty");
        assert_error("<Pl/ant>:.", "the character '/' is not allowed");
        assert_error("<http://e/p>:.", "`:.` after the IRI");
        assert_error("<http://e/p><Plant>:.", "after the IRI");
        assert_error("<http://e/p>/:.", "it is empty");
        assert_error("Plant :.", "white space");
    }
}
