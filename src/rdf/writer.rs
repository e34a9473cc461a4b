//! Writes quads as a document that gives the same quads when it is read again.
use crate::format::Format;
use crate::xml::{ReferenceWriter, find_refusal};
use oxrdf::{QuadRef, TripleRef};
use oxrdfio::{RdfSerializer, WriterQuadSerializer};
use penstock_base::error::{ErrorClass, GatewayError};
use std::io::{self, Write};

/// Writes a document quad by quad.
pub struct QuadWriter<W: Write> {
    format: Format,
    quads: WriterQuadSerializer<DocumentOutput<W>>,
}

/// Why a quad cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The format cannot express the quad.
    #[error("{0}; use another format")]
    Inexpressible(String),
    /// The output failed.
    #[error("writing the document failed: {0}")]
    Output(#[from] io::Error),
}

impl<W: Write> QuadWriter<W> {
    /// Begins a document. A prefix that the format does not take is left out.
    pub fn new<'a>(
        out: W,
        format: Format,
        prefixes: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let mut serializer = RdfSerializer::from_format(format.to_rdf_format());
        for (name, iri) in prefixes {
            if let Ok(with_prefix) = serializer.clone().with_prefix(name, iri) {
                serializer = with_prefix;
            }
        }
        Self { format, quads: serializer.for_writer(DocumentOutput::new(format, out)) }
    }

    /// Writes a quad.
    ///
    /// # Errors
    /// If the format cannot express it, or the output fails.
    pub fn write_quad<'a>(&mut self, quad: impl Into<QuadRef<'a>>) -> Result<(), WriteError> {
        let quad = quad.into();
        self.check(quad.into())?;
        Ok(self.quads.serialize_quad(quad)?)
    }

    /// Writes a triple, in the default graph if the format has graphs.
    ///
    /// # Errors
    /// If the format cannot express it, or the output fails.
    pub fn write_triple<'a>(&mut self, triple: impl Into<TripleRef<'a>>) -> Result<(), WriteError> {
        let triple = triple.into();
        self.check(triple)?;
        Ok(self.quads.serialize_triple(triple)?)
    }

    /// Ends the document, and returns the output.
    ///
    /// # Errors
    /// If the output fails.
    pub fn finish(self) -> Result<W, WriteError> {
        let mut output = self.quads.finish()?;
        output.flush()?;
        Ok(output.into_inner())
    }

    fn check(&self, triple: TripleRef<'_>) -> Result<(), WriteError> {
        match self.format {
            Format::RdfXml => {
                find_refusal(triple).map_or(Ok(()), |why| Err(WriteError::Inexpressible(why)))
            }
            _ => Ok(()),
        }
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Output(error) => error,
            error @ WriteError::Inexpressible(_) => Self::new(io::ErrorKind::InvalidData, error),
        }
    }
}

impl From<WriteError> for GatewayError {
    fn from(error: WriteError) -> Self {
        let class = match &error {
            WriteError::Inexpressible(_) => ErrorClass::Invalid,
            WriteError::Output(error) if error.kind() == io::ErrorKind::StorageFull => {
                ErrorClass::InsufficientStorage
            }
            WriteError::Output(_) => ErrorClass::Internal,
        };
        Self::new(class, error.to_string())
    }
}

/// The output of a format.
enum DocumentOutput<W> {
    AsIs(W),
    Xml(ReferenceWriter<W>),
}

impl<W: Write> DocumentOutput<W> {
    fn new(format: Format, out: W) -> Self {
        if format == Format::RdfXml { Self::Xml(ReferenceWriter(out)) } else { Self::AsIs(out) }
    }

    fn into_inner(self) -> W {
        match self {
            Self::AsIs(out) | Self::Xml(ReferenceWriter(out)) => out,
        }
    }
}

impl<W: Write> Write for DocumentOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::AsIs(out) => out.write(bytes),
            Self::Xml(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::AsIs(out) => out.flush(),
            Self::Xml(out) => out.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{QuadReader, ReadOptions};
    use oxrdf::{Literal, NamedNode, Quad, Triple};

    fn triple(predicate: &str, value: &str) -> Triple {
        Triple::new(
            NamedNode::new_unchecked("urn:s"),
            NamedNode::new_unchecked(predicate),
            Literal::from(value),
        )
    }

    fn write(format: Format, triple: &Triple) -> Result<Vec<u8>, WriteError> {
        let mut writer = QuadWriter::new(Vec::new(), format, []);
        writer.write_triple(triple)?;
        writer.finish()
    }

    #[test]
    fn what_is_written_is_read_again() {
        for predicate in
            ["http://v.example/p", "http://v.example/größe", "urn:e:_1", "http://v.example/#é1"]
        {
            for value in ["a\rb\r\n", "<&>\"'", "\u{85}\u{2028}", ""] {
                let written = triple(predicate, value);
                for format in Format::ALL {
                    let bytes = write(format, &written).unwrap();
                    let mut reader =
                        QuadReader::new(bytes.as_slice(), format, &ReadOptions::default()).unwrap();
                    let read: Quad = reader.next_quad().unwrap().unwrap();
                    assert_eq!(Triple::from(read), written, "{format:?}");
                    assert!(reader.next_quad().unwrap().is_none());
                }
            }
        }
    }

    #[test]
    fn rdf_xml_refuses_what_it_cannot_express() {
        let rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
        for (predicate, value) in [
            ("http://v.example/123", "1"),
            ("http://v.example/", "1"),
            (&format!("{rdf}li"), "1"),
            (&format!("{rdf}Description"), "1"),
            ("http://v.example/p", "a\u{1}"),
            ("http://v.example/p", "\u{fffe}"),
        ] {
            let error = write(Format::RdfXml, &triple(predicate, value)).unwrap_err();
            assert!(matches!(error, WriteError::Inexpressible(_)), "{predicate} {error}");
            write(Format::Turtle, &triple(predicate, value)).unwrap();
        }
    }
}
