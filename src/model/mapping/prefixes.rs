//! The prefixes of a mapping: declared ones, and well-known ones that need no declaration.
use oxrdf::NamedNode;
use penstock_base::nearest::find_nearest;
use penstock_base::prefixes::WELL_KNOWN_PREFIXES;
use std::collections::BTreeMap;

/// The schemes of IRIs that are never read as prefixes where an IRI may be written without angle brackets.
const IRI_SCHEMES: &[&str] = &["http", "https", "urn"];

/// The prefixes of a mapping.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefixes {
    declared: BTreeMap<String, String>,
    /// Whether the mapping uses a well-known prefix that it does not declare.
    uses_well_known: bool,
}

impl Prefixes {
    /// Declares a prefix.
    pub(super) fn declare(&mut self, prefix: String, iri: String) {
        self.declared.insert(prefix, iri);
    }

    /// Returns the declared prefixes with their IRIs, by name.
    pub fn declared(&self) -> impl Iterator<Item = (&str, &str)> {
        self.declared.iter().map(|(prefix, iri)| (prefix.as_str(), iri.as_str()))
    }

    /// Records that the mapping uses a prefix.
    pub(super) fn record_use(&mut self, prefix: &str) {
        self.uses_well_known |= !self.declared.contains_key(prefix) && self.get(prefix).is_some();
    }

    /// Returns whether the mapping uses a well-known prefix that it does not declare.
    pub(super) fn uses_well_known(&self) -> bool {
        self.uses_well_known
    }

    /// Returns the IRI of a prefix.
    pub(super) fn get(&self, prefix: &str) -> Option<&str> {
        self.declared.get(prefix).map(String::as_str).or_else(|| {
            WELL_KNOWN_PREFIXES.iter().find(|(known, _)| *known == prefix).map(|(_, iri)| *iri)
        })
    }

    /// Returns the prefix that is most similar to a mistyped one.
    pub(super) fn find_nearest(&self, prefix: &str) -> Option<&str> {
        let well_known = WELL_KNOWN_PREFIXES.iter().map(|(known, _)| *known);
        find_nearest(prefix, self.declared.keys().map(String::as_str).chain(well_known))
    }

    /// Parses an IRI without angle brackets, or a name with a prefix. `http`, `https` and `urn` are never prefixes, and
    /// text with `//` after its first colon is an IRI.
    ///
    /// # Errors
    /// Returns the reason why the text is neither, and the remedy.
    pub fn expand_iri(&self, text: &str) -> Result<NamedNode, String> {
        if let Some((prefix, local)) = text.split_once(':')
            && !IRI_SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(prefix))
            && !local.starts_with("//")
            && let Some(base) = self.get(prefix)
        {
            let iri = format!("{base}{local}");
            return NamedNode::new(&iri).map_err(|error| {
                format!("{text:?} is <{iri}>, which is not an absolute IRI: {error}")
            });
        }
        NamedNode::new(text).map_err(|error| {
            if text.starts_with('<') && text.ends_with('>') {
                format!("`{text}` is in angle brackets; leave them out here")
            } else {
                format!("{text:?} is not an absolute IRI: {error}")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes() -> Prefixes {
        let mut prefixes = Prefixes::default();
        for (prefix, iri) in [
            ("ex", "http://example.org/"),
            ("", "http://empty.org/"),
            ("rdfs", "urn:own:"),
            ("urn", "http://never.org/"),
            ("http", "http://never.org/"),
            ("bad", "http://e/a b"),
        ] {
            prefixes.declare(prefix.to_owned(), iri.to_owned());
        }
        prefixes
    }

    #[test]
    fn prefixes_are_expanded_and_schemes_are_not() {
        let prefixes = prefixes();
        for (text, iri) in [
            ("ex:Pump", "http://example.org/Pump"),
            (":Pump", "http://empty.org/Pump"),
            ("rdf:type", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"),
            ("rdfs:label", "urn:own:label"),
            ("urn:x:y", "urn:x:y"),
            ("URN:x:y", "URN:x:y"),
            ("http:x", "http:x"),
            ("http://example.org/a", "http://example.org/a"),
            ("https://example.org/a", "https://example.org/a"),
            ("ex://host/a", "ex://host/a"),
            ("mailto:a@b.example", "mailto:a@b.example"),
        ] {
            assert_eq!(prefixes.expand_iri(text).unwrap().as_str(), iri, "{text}");
        }
        for (text, words) in [
            ("Pump", "not an absolute IRI"),
            ("<http://e/a>", "leave them out here"),
            ("ex:a b", "which is not an absolute IRI"),
            ("bad:x", "which is not an absolute IRI"),
        ] {
            let why = prefixes.expand_iri(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }

    #[test]
    fn well_known_prefixes_end_in_a_separator() {
        for (prefix, iri) in WELL_KNOWN_PREFIXES {
            assert!(iri.ends_with(['/', '#']), "{prefix}");
            let expanded = Prefixes::default().expand_iri(&format!("{prefix}:a")).unwrap();
            assert_eq!(expanded.as_str(), format!("{iri}a"));
        }
        assert_eq!(Prefixes::default().find_nearest("skoss"), Some("skos"));
    }
}
