//! Dumps the stored graph.
use super::Format;
use oxrdf::vocab::xsd;
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, TermRef, TripleRef};
use penstock_base::error::{ErrorClass, GatewayError, describe_lost_snapshot};
use penstock_rdf::QuadWriter;
use penstock_store::{Error, LostCause, Pattern, QuadPosition, Read, ReadStore, SubjectFilter};
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;

/// The number of quads after which a page ends, once its current subject is complete.
const PAGE_QUADS: usize = 256;
/// The subjects of a graph that are listed at once.
const SUBJECTS_AT_ONCE: usize = 64;
/// The maximum number of quads that are examined for a page. A subject with more is split.
const MAX_EXAMINED_QUADS: usize = 10_000;
/// The maximum size of a page in bytes, which a single quad may exceed.
const PAGE_BYTES: usize = 1 << 20;

/// The parameters of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpOptions {
    /// The format of the output.
    pub format: Format,
    /// The only graph to dump. A format without graphs requires it.
    pub graph: Option<GraphName>,
}

impl DumpOptions {
    /// Checks that the format can hold what is dumped.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if the format holds one graph and none is named
    pub fn check(&self) -> Result<(), GatewayError> {
        if self.graph.is_some() || self.format.has_graphs() {
            return Ok(());
        }
        Err(GatewayError::new(
            ErrorClass::Invalid,
            format!(
                "the format {} holds one graph: name it with --graph=IRI (or --graph=default), or use nq, trig or \
                 jsonld, which hold all graphs",
                self.format.name()
            ),
        ))
    }
}

/// A complete dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dumped {
    /// The number of quads.
    pub quads: u64,
    /// Why the dump may mix several commits, if so.
    pub mixed_cause: Option<LostCause>,
}

impl Dumped {
    /// Returns a warning if the dump may mix several commits.
    pub fn to_warning(self) -> Option<String> {
        let why = describe_lost_snapshot(self.mixed_cause?);
        Some(format!("the dump may mix several commits, because {why}"))
    }
}

/// Writes quads as triples, without their graphs, as the views show them. Turtle has those of the prefixes that it uses;
/// other formats have none.
///
/// # Errors
/// `ErrorClass::Invalid` for terms that RDF/XML cannot write
pub fn write_triples(
    format: Format,
    quads: &[Quad],
    prefixes: &BTreeMap<String, String>,
) -> Result<Vec<u8>, GatewayError> {
    let used = prefixes.iter().filter(|(_, iri)| format == Format::Turtle && is_used(iri, quads));
    let used = used.map(|(name, iri)| (name.as_str(), iri.as_str()));
    let mut writer = QuadWriter::new(Vec::new(), format, used);
    for Quad { subject, predicate, object, .. } in quads {
        writer.write_triple(TripleRef::new(subject, predicate, object))?;
    }
    Ok(writer.finish()?)
}

/// Returns whether an IRI of these quads begins with this one.
fn is_used(iri: &str, quads: &[Quad]) -> bool {
    let begins = |text: &str| text.starts_with(iri);
    !iri.is_empty()
        && quads.iter().any(|quad| {
            let subject = match &quad.subject {
                NamedOrBlankNode::NamedNode(node) => begins(node.as_str()),
                NamedOrBlankNode::BlankNode(_) => false,
            };
            let object = match quad.object.as_ref() {
                TermRef::NamedNode(node) => begins(node.as_str()),
                // Strings are written without their datatypes.
                TermRef::Literal(literal) => {
                    let datatype = literal.datatype();
                    let is_string = datatype == xsd::STRING || literal.language().is_some();
                    !is_string && begins(datatype.as_str())
                }
                _ => false,
            };
            subject || object || begins(quad.predicate.as_str())
        })
}

/// Writes quads of the default graph with prefixes. A prefix that the format does not take is left out.
///
/// # Errors
/// `ErrorClass::Invalid` for terms that RDF/XML cannot write
pub fn write_document(
    format: Format,
    quads: &[Quad],
    prefixes: &[(&str, &str)],
) -> Result<Vec<u8>, GatewayError> {
    let mut writer = QuadWriter::new(Vec::new(), format, prefixes.iter().copied());
    for quad in quads {
        writer.write_quad(quad)?;
    }
    Ok(writer.finish()?)
}

/// Writes the quads to `out` as they are after the newest commit. They are in the order of the index, subject by subject.
/// Commits continue meanwhile. If they change so much that the state cannot be kept, the rest is written page by page as
/// it is when it is read ([`Dumped::mixed_cause`]): a quad that changes meanwhile is written as it was or as it is, twice,
/// or not at all. `on_progress` is called with the number of quads so far.
///
/// # Errors
/// - `ErrorClass::Invalid` as [`DumpOptions::check`], and for terms that RDF/XML cannot write
/// - `ErrorClass::InsufficientStorage` if the disk is full
/// - `ErrorClass::Internal` if writing the output fails in another way
pub fn write_dump(
    store: &ReadStore,
    options: &DumpOptions,
    out: impl Write,
    on_progress: &mut dyn FnMut(u64),
) -> Result<Dumped, GatewayError> {
    options.check()?;
    let DumpOptions { format, graph } = options;
    let mut writer = QuadWriter::new(out, *format, []);
    let mut dumped = Dumped { quads: 0, mixed_cause: None };
    let snapshot = store.snapshot()?;
    let instance = snapshot.instance();
    let mut snapshot = Some(snapshot);
    let mut place = Some(QuadPosition::default());
    while let Some(from) = place {
        let mut page = QuadPage::default();
        let add = &mut |quad| page.add_quad(quad, graph.as_ref());
        let read = match &snapshot {
            Some(snapshot) => snapshot.visit_quads_from(&from, add),
            None => read_newest(store, instance, &from, add),
        };
        place = match read {
            Err(Error::SnapshotLost { cause }) => {
                snapshot = None;
                dumped.mixed_cause = Some(cause);
                place = Some(from);
                continue;
            }
            read => read?,
        };
        for quad in &page.quads {
            let written = if format.has_graphs() {
                writer.write_quad(quad)
            } else {
                writer.write_triple(TripleRef::from(quad.as_ref()))
            };
            written?;
        }
        dumped.quads += page.quads.len() as u64;
        on_progress(dumped.quads);
    }
    drop(snapshot);
    writer.finish()?;
    Ok(dumped)
}

/// Passes the quads of the newest commit on to `visit`, from a position in an index.
fn read_newest(
    store: &ReadStore,
    instance: u64,
    from: &QuadPosition,
    visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
) -> Result<Option<QuadPosition>, Error> {
    let read = store.read();
    // The position has ids of that index.
    if read.instance() != instance {
        return Err(Error::Reopening);
    }
    read.visit_quads_from(from, visit)
}

/// Writes the triples of one graph to `out`, subject by subject, as they are after the newest commit, and returns their
/// number. If the state cannot be kept, it continues as [`write_dump`] does.
///
/// # Errors
/// As [`write_dump`].
pub fn write_graph_triples(
    store: &ReadStore,
    format: Format,
    graph: &GraphName,
    out: impl Write,
) -> Result<u64, GatewayError> {
    let mut writer = QuadWriter::new(out, format, []);
    let mut snapshot = Some(store.snapshot()?);
    let filter = SubjectFilter { graph: Some(graph.clone()), ..SubjectFilter::default() };
    let (mut written, mut after): (u64, Option<NamedNode>) = (0, None);
    loop {
        let from = after.as_ref().map(NamedNode::as_str);
        let subjects = match &snapshot {
            Some(snapshot) => snapshot.list_subjects(&filter, from, SUBJECTS_AT_ONCE),
            None => store.read().list_subjects(&filter, from, SUBJECTS_AT_ONCE),
        };
        let subjects = subjects.and_then(|subjects| {
            for subject in &subjects {
                let (named, graph) = (Some(subject.clone().into()), Some(graph.clone()));
                let pattern = Pattern { subject: named, graph, ..Pattern::default() };
                let mut result = Ok(());
                let mut write = |quad: Quad| {
                    written += 1;
                    result = writer.write_triple(TripleRef::from(quad.as_ref()));
                    if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                };
                if let Some(snapshot) = &snapshot {
                    snapshot.for_each(&pattern, &mut write)?;
                } else {
                    // Nothing is written while a reader delays commits.
                    let mut quads = Vec::new();
                    store.read().for_each(&pattern, &mut |quad| {
                        quads.push(quad);
                        ControlFlow::Continue(())
                    })?;
                    for quad in quads {
                        if write(quad).is_break() {
                            break;
                        }
                    }
                }
                if let Err(error) = result {
                    return Ok(Err(GatewayError::from(error)));
                }
                after = Some(subject.clone());
            }
            Ok(Ok(subjects.is_empty()))
        });
        match subjects {
            Ok(is_complete) => {
                if is_complete? {
                    break;
                }
            }
            // The triples of one subject may then be written twice, which makes no difference to a graph.
            Err(Error::SnapshotLost { cause }) => {
                tracing::warn!(?cause, "The rest of a graph shows later commits too.");
                snapshot = None;
            }
            Err(error) => return Err(error.into()),
        }
    }
    drop(snapshot);
    writer.finish()?;
    Ok(written)
}

/// Quads that are read before they are written.
#[derive(Default)]
struct QuadPage {
    quads: Vec<Quad>,
    examined: usize,
    bytes: usize,
}

impl QuadPage {
    fn add_quad(&mut self, quad: Quad, graph: Option<&GraphName>) -> ControlFlow<()> {
        let is_full = self.examined >= MAX_EXAMINED_QUADS
            || self.bytes >= PAGE_BYTES
            || self.quads.len() >= PAGE_QUADS
                && self.quads.last().is_some_and(|last| last.subject != quad.subject);
        if is_full {
            return ControlFlow::Break(());
        }
        self.examined += 1;
        if graph.is_none_or(|graph| *graph == quad.graph_name) {
            self.bytes += estimate_bytes(&quad);
            self.quads.push(quad);
        }
        ControlFlow::Continue(())
    }
}

/// Estimates the memory in bytes of the terms that a quad rarely shares with other quads of a page.
pub(crate) fn estimate_bytes(quad: &Quad) -> usize {
    let object = match quad.object.as_ref() {
        TermRef::NamedNode(iri) => iri.as_str().len(),
        TermRef::BlankNode(node) => node.as_str().len(),
        TermRef::Literal(literal) => literal.value().len(),
        // The store refuses it.
        TermRef::Triple(_) => 0,
    };
    // The constant is the size of the four terms themselves.
    object + 200
}
