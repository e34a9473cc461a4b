//! Dumps the stored graph.
use super::Format;
use super::xml::{self, ReferenceWriter};
use oxrdf::{GraphName, Quad, TripleRef};
use oxrdfio::RdfSerializer;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::{Pattern, Read as _, ReadStore};
use std::io::{self, Write};
use std::ops::ControlFlow;

/// The number of quads between two reports of the progress.
const PROGRESS_QUADS: u64 = 256;

/// The parameters of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpOptions {
    /// The format of the output.
    pub format: Format,
    /// The only graph to dump. A format without graphs requires it.
    pub graph: Option<GraphName>,
}

/// Writes quads as triples, without their graphs, as the views show them.
///
/// # Errors
/// `ErrorClass::Internal` if the format cannot express one of them.
pub fn write_triples(format: Format, quads: &[Quad]) -> Result<Vec<u8>, GatewayError> {
    let mut writer = RdfSerializer::from_format(format.to_rdf_format()).for_writer(Vec::new());
    let written = quads.iter().try_for_each(|quad| {
        let Quad { subject, predicate, object, .. } = quad;
        writer.serialize_triple(TripleRef::new(subject, predicate, object))
    });
    written.and_then(|()| writer.finish()).map_err(|error| {
        tracing::error!(%error, "An object could not be written as RDF.");
        GatewayError::new(
            ErrorClass::Internal,
            "the object could not be written; the gateway's log says why",
        )
    })
}

/// Writes the quads to `out` as they are after one commit, and returns their number. They are in the order of the index,
/// subject by subject. Commits continue meanwhile. `on_progress` is called with the number of quads so far.
///
/// # Errors
/// - `ErrorClass::Invalid` if the format holds one graph and none is named, and for terms that RDF/XML cannot write
/// - `ErrorClass::InsufficientStorage` if the disk is full
/// - `ErrorClass::Internal` if writing the output fails in another way
pub fn write_dump(
    store: &ReadStore,
    options: &DumpOptions,
    out: impl Write,
    on_progress: &mut dyn FnMut(u64),
) -> Result<u64, GatewayError> {
    let DumpOptions { format, graph } = options;
    if graph.is_none() && !format.has_graphs() {
        return Err(GatewayError::new(
            ErrorClass::Invalid,
            format!(
                "the format {} holds one graph: name it (or `default`), or use nq, trig or jsonld, which hold all \
                 graphs",
                format.name()
            ),
        ));
    }
    let mut writer = RdfSerializer::from_format(format.to_rdf_format())
        .for_writer(DumpOutput::new(*format, out));
    let mut written = 0;
    let pattern = Pattern { graph: graph.clone(), ..Pattern::default() };
    let mut failed = None;
    store.snapshot()?.for_each(&pattern, &mut |quad| {
        let result = match xml::find_refusal(&quad).filter(|_| *format == Format::RdfXml) {
            Some(why) => {
                Err(GatewayError::new(ErrorClass::Invalid, format!("{why}; use another format")))
            }
            None if format.has_graphs() => {
                writer.serialize_quad(&quad).map_err(|error| write_error(&error))
            }
            None => writer
                .serialize_triple(TripleRef::from(quad.as_ref()))
                .map_err(|error| write_error(&error)),
        };
        if let Err(error) = result {
            failed = Some(error);
            return ControlFlow::Break(());
        }
        written += 1;
        if written % PROGRESS_QUADS == 0 {
            on_progress(written);
        }
        ControlFlow::Continue(())
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    on_progress(written);
    let ended = writer.finish().and_then(|mut out| out.flush());
    ended.map_err(|error| write_error(&error))?;
    Ok(written)
}

fn write_error(error: &io::Error) -> GatewayError {
    let kind = if error.kind() == io::ErrorKind::StorageFull {
        ErrorClass::InsufficientStorage
    } else {
        ErrorClass::Internal
    };
    GatewayError::new(kind, format!("writing the dump failed: {error}"))
}

/// The output of a format.
enum DumpOutput<W> {
    AsIs(W),
    Xml(ReferenceWriter<W>),
}

impl<W: Write> DumpOutput<W> {
    fn new(format: Format, out: W) -> Self {
        if format == Format::RdfXml { Self::Xml(ReferenceWriter(out)) } else { Self::AsIs(out) }
    }
}

impl<W: Write> Write for DumpOutput<W> {
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
