//! Dumps the stored graph.
use super::Format;
use super::xml::{self, References};
use oxrdf::{GraphName, Quad, TermRef, TripleRef};
use oxrdfio::RdfSerializer;
use penstock_base::fault::{Fault, Kind};
use penstock_store::{Place, ReadStore};
use std::io::{self, Write};
use std::ops::ControlFlow;

/// The number of quads from which a page ends with its current subject.
const PAGE: usize = 256;
/// The maximum number of quads that are examined with one reader, also within one subject.
const MOST: usize = 10_000;
/// The maximum size of a page in bytes, which a single quad may exceed.
const BYTES: usize = 1 << 20;

/// The parameters of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dump {
    /// The format of the output.
    pub format: Format,
    /// The only graph to dump. A format without graphs requires it.
    pub graph: Option<GraphName>,
}

/// Writes the quads to `out`, and returns their number. They are in the order of the index, subject by subject. Each
/// subject is as of one moment, unless it has more than 10,000 quads. If there are commits meanwhile, different
/// subjects are as of different moments. `told` is called with the number of quads so far.
///
/// # Errors
/// - `Kind::Invalid` if the format holds one graph and none is named, and for terms that RDF/XML cannot write
/// - `Kind::NoRoom` if the disk is full
/// - `Kind::Internal` if writing the output fails in another way
pub fn dump(
    store: &ReadStore,
    what: &Dump,
    out: impl Write,
    told: &mut dyn FnMut(u64),
) -> Result<u64, Fault> {
    let Dump { format, graph } = what;
    if graph.is_none() && !format.has_graphs() {
        return Err(Fault::new(
            Kind::Invalid,
            format!(
                "the format {} holds one graph: name it (or `default`), or use nq, trig or jsonld, which hold all \
                 graphs",
                format.name()
            ),
        ));
    }
    let mut writer = RdfSerializer::from_format(format.of_rdf()).for_writer(Out::new(*format, out));
    let mut written = 0;
    let mut place = Some(Place::default());
    while let Some(from) = place {
        let mut page = Page::default();
        place = store.read().quads_from(&from, &mut |quad| page.take(quad, graph.as_ref()))?;
        for quad in &page.quads {
            if *format == Format::RdfXml
                && let Some(why) = xml::refusal(quad)
            {
                return Err(Fault::new(Kind::Invalid, format!("{why}; use another format")));
            }
            let result = if format.has_graphs() {
                writer.serialize_quad(quad)
            } else {
                writer.serialize_triple(TripleRef::from(quad.as_ref()))
            };
            result.map_err(|error| not_written(&error))?;
        }
        written += page.quads.len() as u64;
        told(written);
    }
    let ended = writer.finish().and_then(|mut out| out.flush());
    ended.map_err(|error| not_written(&error))?;
    Ok(written)
}

fn not_written(error: &io::Error) -> Fault {
    let kind =
        if error.kind() == io::ErrorKind::StorageFull { Kind::NoRoom } else { Kind::Internal };
    Fault::new(kind, format!("writing the dump failed: {error}"))
}

/// Quads that are read with one reader.
#[derive(Default)]
struct Page {
    quads: Vec<Quad>,
    looked_at: usize,
    bytes: usize,
}

impl Page {
    fn take(&mut self, quad: Quad, graph: Option<&GraphName>) -> ControlFlow<()> {
        let is_full = self.looked_at >= MOST
            || self.bytes >= BYTES
            || self.quads.len() >= PAGE
                && self.quads.last().is_some_and(|last| last.subject != quad.subject);
        if is_full {
            return ControlFlow::Break(());
        }
        self.looked_at += 1;
        if graph.is_none_or(|graph| *graph == quad.graph_name) {
            self.bytes += bytes(&quad);
            self.quads.push(quad);
        }
        ControlFlow::Continue(())
    }
}

/// Estimates the memory in bytes of the terms that a quad rarely shares with other quads of a page.
pub(super) fn bytes(quad: &Quad) -> usize {
    let object = match quad.object.as_ref() {
        TermRef::NamedNode(iri) => iri.as_str().len(),
        TermRef::BlankNode(node) => node.as_str().len(),
        TermRef::Literal(literal) => literal.value().len(),
    };
    // The constant is the size of the four terms themselves.
    object + 200
}

/// The output of a format.
enum Out<W> {
    AsIs(W),
    Xml(References<W>),
}

impl<W: Write> Out<W> {
    fn new(format: Format, out: W) -> Self {
        if format == Format::RdfXml { Self::Xml(References(out)) } else { Self::AsIs(out) }
    }
}

impl<W: Write> Write for Out<W> {
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
