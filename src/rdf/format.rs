//! The formats and their names.
use oxrdfio::{JsonLdProfile, JsonLdProfileSet, RdfFormat};
use std::path::Path;
use std::str::FromStr;

/// An RDF format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// RDF 1.1 Turtle
    Turtle,
    /// RDF 1.1 N-Triples
    NTriples,
    /// RDF 1.1 N-Quads
    NQuads,
    /// RDF 1.1 `TriG`
    TriG,
    /// RDF 1.1 XML Syntax
    RdfXml,
    /// JSON-LD 1.1
    JsonLd,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 6] =
        [Self::Turtle, Self::NTriples, Self::NQuads, Self::TriG, Self::RdfXml, Self::JsonLd];

    /// Returns the name, which is also the extension of file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turtle => "ttl",
            Self::NTriples => "nt",
            Self::NQuads => "nq",
            Self::TriG => "trig",
            Self::RdfXml => "rdf",
            Self::JsonLd => "jsonld",
        }
    }

    /// Returns the format by the extension of a file name, ignoring `.zst`.
    pub fn from_file_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let name = name.strip_suffix(".zst").unwrap_or(name);
        name.rsplit_once('.')?.1.parse().ok()
    }

    /// Returns the media type.
    pub fn media_type(self) -> &'static str {
        self.to_rdf_format().media_type()
    }

    /// Returns whether the format can hold several graphs; the others hold one.
    pub fn has_graphs(self) -> bool {
        matches!(self, Self::NQuads | Self::TriG | Self::JsonLd)
    }

    /// Returns the format as the serializers and parsers know it.
    pub fn to_rdf_format(self) -> RdfFormat {
        match self {
            Self::Turtle => RdfFormat::Turtle,
            Self::NTriples => RdfFormat::NTriples,
            Self::NQuads => RdfFormat::NQuads,
            Self::TriG => RdfFormat::TriG,
            Self::RdfXml => RdfFormat::RdfXml,
            Self::JsonLd => RdfFormat::JsonLd { profile: JsonLdProfileSet::empty() },
        }
    }

    /// Returns JSON-LD with members in an order that can be parsed without looking ahead.
    pub(crate) fn streaming_json_ld() -> RdfFormat {
        RdfFormat::JsonLd { profile: JsonLdProfile::Streaming.into() }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.to_ascii_lowercase();
        match text.as_str() {
            "turtle" => return Ok(Self::Turtle),
            "ntriples" => return Ok(Self::NTriples),
            "nquads" => return Ok(Self::NQuads),
            "rdfxml" | "xml" => return Ok(Self::RdfXml),
            "json" => return Ok(Self::JsonLd),
            _ => {}
        }
        Self::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| {
            format!("{text:?} is not a format; use one of {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_name_gives_the_format() {
        assert_eq!(Format::from_file_name(Path::new("a/b.nq")), Some(Format::NQuads));
        assert_eq!(Format::from_file_name(Path::new("b.TTL.zst")), Some(Format::Turtle));
        assert_eq!(Format::from_file_name(Path::new("b.ttl.zst")), Some(Format::Turtle));
        assert_eq!(Format::from_file_name(Path::new("-")), None);
        assert!("n3".parse::<Format>().unwrap_err().contains("jsonld"));
    }
}
