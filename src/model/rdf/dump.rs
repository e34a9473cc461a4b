//! The graph, written as it stands in the store.
use super::Format;
use super::xml::{self, References};
use oxrdf::{GraphName, Quad, TermRef, TripleRef};
use oxrdfio::RdfSerializer;
use penstock_base::fault::{Fault, Kind};
use penstock_store::{Place, ReadStore};
use std::io::{self, Write};
use std::ops::ControlFlow;

/// Quads after which a page ends with the subject that it is in.
const PAGE: usize = 256;
/// Quads of one subject, and quads looked at, under one read.
const MOST: usize = 10_000;
/// Bytes of one page, but for one larger quad.
const BYTES: usize = 1 << 20;

/// What to dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dump {
    /// How it is written.
    pub format: Format,
    /// One graph alone; a format without graphs needs it.
    pub graph: Option<GraphName>,
}

/// Writes the quads, and gives their number. They come in the order of the index: subject by subject,
/// each whole as of one moment (but for one of more than 10,000 quads), and different subjects as of
/// different moments, when commits go on meanwhile. `told` is told how many there are so far.
///
/// # Errors
/// `Kind::Invalid` for a format without graphs when no graph is named, and for what RDF/XML cannot hold;
/// `Kind::Internal` when the output takes no more.
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
                "the format {} holds one graph: name it (or `default`), or take nq, trig or jsonld, which \
                 hold all of them",
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
                return Err(Fault::new(Kind::Invalid, format!("{why}; take another format")));
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
    Fault::new(kind, format!("the dump could not be written: {error}"))
}

/// Quads that are read together.
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

/// About what the terms take that are seldom shared with other quads of a page.
pub(super) fn bytes(quad: &Quad) -> usize {
    let object = match quad.object.as_ref() {
        TermRef::NamedNode(iri) => iri.as_str().len(),
        TermRef::BlankNode(node) => node.as_str().len(),
        TermRef::Literal(literal) => literal.value().len(),
    };
    // The fixed part is that of the four terms themselves.
    object + 200
}

/// What a format is written to.
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
