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
//! The name of a namespace may stand in angle brackets too (`<Plant>:.`): no IRI is without a colon.
use super::prefixes::Prefixes;
use crate::namespace::check_name;
use oxrdf::NamedNode;

/// A path taken apart; at least one of the two is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) predicate: Option<NamedNode>,
    pub(super) namespace: Option<String>,
}

const FORMS: &str = "a path is `<IRI>`, `<IRI>/Namespace:.` or `Namespace:.`";

/// Reads a path.
///
/// # Errors
/// The cause and the mend, in words.
pub(super) fn parse(text: &str, prefixes: &Prefixes) -> Result<Path, String> {
    let (property, namespace) = match split_namespace(text) {
        Some((property, name)) => {
            check_name(name)?;
            (property, Some(name.to_owned()))
        }
        None => (Some(text), None),
    };
    let predicate = match property {
        Some(property) => Some(iri(property, prefixes).map_err(|why| format!("{why}; {FORMS}"))?),
        None => None,
    };
    Ok(Path { predicate, namespace })
}

/// Reads an IRI: in angle brackets, or a name with a prefix.
///
/// # Errors
/// The cause and the mend, in words.
pub(super) fn iri(text: &str, prefixes: &Prefixes) -> Result<NamedNode, String> {
    if let Some(rest) = text.strip_prefix('<') {
        return match rest.split_once('>') {
            Some((iri, "")) => {
                NamedNode::new(iri).map_err(|error| format!("`{iri}` is no absolute IRI: {error}"))
            }
            Some((_, more)) => Err(format!("`{more}` stands after the IRI")),
            None => Err("the `>` that closes the IRI is missing".to_owned()),
        };
    }
    let Some((prefix, local)) = text.split_once(':') else {
        return Err(format!("`{text}` is no IRI; write it as <IRI>"));
    };
    match prefixes.get(prefix) {
        Some(base) => {
            let iri = format!("{base}{local}");
            NamedNode::new(&iri)
                .map_err(|error| format!("`{text}` is <{iri}>, which is no absolute IRI: {error}"))
        }
        None if NamedNode::new(text).is_ok() && (local.starts_with("//") || prefix == "urn") => {
            Err(format!("an IRI stands in angle brackets: <{text}>"))
        }
        None => Err(match prefixes.nearest(prefix) {
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

/// Splits off `Namespace:.` at the end: what stands before it, if anything does, and the name.
///
/// A name has no `/` and no `>`, so the last `/` behind the brackets is the one between the two.
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
        let path = parse(text, &prefixes()).unwrap();
        (path.predicate.map(NamedNode::into_string), path.namespace)
    }

    #[track_caller]
    fn good(text: &str, predicate: Option<&str>, namespace: Option<&str>) {
        assert_eq!(
            read(text),
            (predicate.map(ToOwned::to_owned), namespace.map(ToOwned::to_owned)),
            "{text}"
        );
    }

    #[track_caller]
    fn bad(text: &str, words: &str) {
        let why = parse(text, &prefixes()).unwrap_err();
        assert!(why.contains(words), "{text}: {why}");
    }

    #[test]
    fn reads_every_form() {
        good("Plant:.", None, Some("Plant"));
        good("Pump Räder:.", None, Some("Pump Räder"));
        good("<http://e/p>", Some("http://e/p"), None);
        good("<http://e/p:.>", Some("http://e/p:."), None);
        good("<urn:p:has>/Plant:.", Some("urn:p:has"), Some("Plant"));
        good("<http://e/p?a/b>/Plant:.", Some("http://e/p?a/b"), Some("Plant"));
        good("ex:name", Some("http://example.org/name"), None);
        good("ex:", Some("http://example.org/"), None);
        good(":name", Some("http://empty.org/name"), None);
        good("ex:has/Plant:.", Some("http://example.org/has"), Some("Plant"));
        good("ex:a/b/Plant:.", Some("http://example.org/a/b"), Some("Plant"));
        good("ex:.", None, Some("ex"));
        good("<Plant>:.", None, Some("Plant"));
        good("<Pump Räder>:.", None, Some("Pump Räder"));
        good("<http://e/p>/<Plant>:.", Some("http://e/p"), Some("Plant"));
        good("ex:has/<Plant>:.", Some("http://example.org/has"), Some("Plant"));
        good("rdf:type", Some("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), None);
        good("schema:.", None, Some("schema"));
    }

    #[test]
    fn says_what_is_wrong_and_how_to_mend_it() {
        bad("", "is no IRI");
        bad("name", "a path is `<IRI>`");
        bad("<>", "no absolute IRI");
        bad("<name>", "`name` is no absolute IRI");
        bad("<http://e/a b>", "no absolute IRI");
        bad("<http://e/p", "the `>` that closes the IRI is missing");
        bad("<http://e/p>x", "`x` stands after the IRI");
        bad("<http://e/p>/Plant", "a path is `<IRI>`, `<IRI>/Namespace:.`");
        bad("<http://e/p>Plant:.", "`Plant:.` stands after the IRI");
        bad("http://e/p", "an IRI stands in angle brackets: <http://e/p>");
        bad("urn:e:p", "in angle brackets: <urn:e:p>");
        bad("exx:name", "did you mean `ex`?");
        bad("other:name", "not among `prefixes`");
        bad("broken:x", "no absolute IRI");
        bad("a:b:.", "no name of a namespace");
        bad(":.", "it is empty");
        bad("<>:.", "it is empty");
        bad("<Pl/ant>:.", "'/' is none of its characters");
        bad("<http://e/p>:.", "`:.` stands after the IRI");
        bad("<http://e/p><Plant>:.", "stands after the IRI");
        bad("<http://e/p>/:.", "it is empty");
        bad("Plant :.", "white space");
    }
}
