//! Templates of the graphs of a SPARQL target (`service.export.targets.<bucketName>.graph`): an IRI with placeholders.
use oxrdf::NamedNode;
use std::fmt;
use std::str::FromStr;

/// The template of targets without one of their own.
const DEFAULT_TEMPLATE: &str = "urn:penstock:{gateway}:export:{name}";
/// The maximum length of a template in bytes.
const MAX_TEMPLATE_BYTES: usize = 512;
const GATEWAY: &str = "{gateway}";
const NAME: &str = "{name}";

/// A valid template of graphs. It has both placeholders, so each gateway and each Business Object has a graph of its own.
///
/// The values of the placeholders are percent-encoded. Between the placeholders is a character that no value has, so two
/// different pairs of values never lead to the same graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphTemplate(String);

/// Why a text is not a template of graphs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphTemplateError {
    /// The template is too long.
    #[error("has more than {MAX_TEMPLATE_BYTES} bytes")]
    TooLong,
    /// A brace belongs to none of the two placeholders, or a placeholder occurs twice.
    #[error("has braces other than those of one `{GATEWAY}` and one `{NAME}`")]
    UnknownBrace,
    /// Nothing separates the placeholders, so that it is unclear where the first value ends.
    #[error("has none of `:`, `/`, `#` and `?` between `{GATEWAY}` and `{NAME}`")]
    NotSeparated,
    /// The template is not an absolute IRI.
    #[error("is not an absolute IRI: {0}")]
    NotAnIri(String),
}

impl GraphTemplate {
    /// Returns the graph of a Business Object. Both values are percent-encoded already.
    pub fn build_graph(&self, gateway: &str, name: &str) -> String {
        self.0.replace(GATEWAY, gateway).replace(NAME, name)
    }
}

impl FromStr for GraphTemplate {
    type Err = GraphTemplateError;

    /// Parses a template. A placeholder that it lacks is appended after a colon.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut template = text.to_owned();
        for placeholder in [GATEWAY, NAME] {
            if !template.contains(placeholder) {
                template.push(':');
                template.push_str(placeholder);
            }
        }
        if template.len() > MAX_TEMPLATE_BYTES {
            return Err(GraphTemplateError::TooLong);
        }
        let without = template.replacen(GATEWAY, "", 1).replacen(NAME, "", 1);
        if without.contains(['{', '}']) {
            return Err(GraphTemplateError::UnknownBrace);
        }
        let graph = Self(template);
        if !graph.separates_placeholders() {
            return Err(GraphTemplateError::NotSeparated);
        }
        // Appending a colon makes an IRI of any word, so the text itself must be one.
        for iri in [Self(text.to_owned()).build_graph("x", "x"), graph.build_graph("x", "x")] {
            NamedNode::new(iri).map_err(|error| GraphTemplateError::NotAnIri(error.to_string()))?;
        }
        Ok(graph)
    }
}

impl GraphTemplate {
    fn separates_placeholders(&self) -> bool {
        let (Some(gateway), Some(name)) = (self.0.find(GATEWAY), self.0.find(NAME)) else {
            return false;
        };
        let between = if gateway < name {
            self.0.get(gateway + GATEWAY.len()..name)
        } else {
            self.0.get(name + NAME.len()..gateway)
        };
        between.is_some_and(|text| text.contains([':', '/', '#', '?']))
    }
}

impl Default for GraphTemplate {
    fn default() -> Self {
        Self(DEFAULT_TEMPLATE.to_owned())
    }
}

impl fmt::Display for GraphTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gateway_and_business_object_has_a_graph_of_its_own() {
        for (text, graph) in [
            (DEFAULT_TEMPLATE, "urn:penstock:gw-1:export:Pumps"),
            ("https://c.example/plants", "https://c.example/plants:gw-1:Pumps"),
            ("https://c.example/{name}", "https://c.example/Pumps:gw-1"),
            ("https://c.example/{name}/of/{gateway}#x", "https://c.example/Pumps/of/gw-1#x"),
        ] {
            let template: GraphTemplate = text.parse().unwrap();
            assert_eq!(template.build_graph("gw-1", "Pumps"), graph);
            assert_eq!(template.to_string().parse::<GraphTemplate>().unwrap(), template);
        }
        assert_eq!(GraphTemplate::default(), DEFAULT_TEMPLATE.parse().unwrap());
    }

    #[test]
    fn other_texts_are_refused_with_the_reason() {
        use GraphTemplateError::{NotSeparated, TooLong, UnknownBrace};
        for (text, error) in [
            ("urn:{gateway}-{name}", NotSeparated),
            ("urn:{gateway}{name}", NotSeparated),
            ("urn:{tenant}", UnknownBrace),
            ("urn:{name}:{name}", UnknownBrace),
            ("urn:}", UnknownBrace),
        ] {
            assert_eq!(text.parse::<GraphTemplate>(), Err(error), "{text}");
        }
        assert_eq!(format!("urn:{}", "x".repeat(600)).parse::<GraphTemplate>(), Err(TooLong));
        for text in ["plants", "/plants", "urn:a b", "urn:<a>"] {
            let refused = text.parse::<GraphTemplate>();
            assert!(matches!(refused, Err(GraphTemplateError::NotAnIri(_))), "{text}: {refused:?}");
        }
    }
}
