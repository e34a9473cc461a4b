//! Loads an RDF document into the store in commits of bounded size.
use super::skolem::Skolem;
use super::source::{Position, Source};
use super::{Format, dump};
use crate::changes::{self, Watch};
use oxrdf::{GraphName, NamedNode, Quad};
use oxrdfio::{RdfFormat, RdfParseError, RdfParser};
use penstock_base::commit::{CommitCheck, GuardedStore};
use penstock_base::disk::Disk;
use penstock_base::fault::{Fault, Finding, Kind, Place};
use std::io::{Cursor, Read};

/// The maximum number of quads in one commit.
const QUADS: usize = 10_000;
/// The maximum size in bytes of the terms in one commit, which a single quad may exceed.
const BYTES: usize = 4 << 20;
/// The maximum size in bytes of JSON-LD that is parsed as a whole. A longer document must have its members in the
/// order of the streaming form (<https://www.w3.org/TR/json-ld11-streaming/>).
const WHOLE: u64 = 4 << 20;
/// The maximum number of bytes of one literal, and of everything else that a parser holds at once.
const AHEAD: u64 = 16 << 20;

/// The destination of a load.
#[derive(Debug)]
pub struct Target<'a> {
    /// The store.
    pub store: &'a GuardedStore,
    /// The check of the client that loads the document, which runs in each commit.
    pub check: &'a dyn CommitCheck,
    /// The disk of the store, whose reserve is kept free.
    pub disk: &'a Disk,
    /// Records the changed objects for exports on change.
    pub watch: &'a Watch,
}

/// The parameters of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// The format of the document.
    pub format: Format,
    /// The graph for triples that the document has in no graph.
    pub graph: GraphName,
    /// The base of relative IRIs.
    pub base: Option<NamedNode>,
    /// The prefix of the IRIs that replace blank nodes. Without it, blank nodes are refused.
    pub skolemize: Option<NamedNode>,
}

/// The progress of a load. It counts only quads that survive a power cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The number of quads loaded.
    pub quads: u64,
    /// The number of these quads that were not stored before.
    pub added: u64,
    /// The number of commits.
    pub commits: u64,
}

/// Why a load failed, and its progress until then.
#[derive(Debug)]
pub struct Failed {
    /// The cause; an error in the document has its line and column.
    pub fault: Fault,
    /// The progress until then.
    pub loaded: Loaded,
}

/// Loads a document into the store, in addition to the stored quads. It is committed in parts, in the order of the
/// document. `told` is called after each commit, and an error from it stops the load. Blocking.
///
/// # Errors
/// `Kind::Malformed` for an error in the document; `Kind::NoRoom` if the disk is full up to its reserve.
pub fn load(
    target: &Target<'_>,
    what: &Load,
    text: impl Read,
    told: &mut dyn FnMut(Loaded) -> Result<(), Fault>,
) -> Result<Loaded, Failed> {
    let mut loaded = Loaded::default();
    match parts(target, what, text, told, &mut loaded) {
        Ok(()) => Ok(loaded),
        Err(fault) => Err(Failed { fault, loaded }),
    }
}

fn parts(
    target: &Target<'_>,
    what: &Load,
    mut text: impl Read,
    told: &mut dyn FnMut(Loaded) -> Result<(), Fault>,
    loaded: &mut Loaded,
) -> Result<(), Fault> {
    let mut begun = Vec::new();
    let mut format = what.format.of_rdf();
    let mut most_ahead = AHEAD;
    if what.format == Format::JsonLd {
        most_ahead = WHOLE;
        text.by_ref()
            .take(WHOLE + 1)
            .read_to_end(&mut begun)
            .map_err(|error| unreadable(&error))?;
        if begun.len() as u64 > WHOLE {
            format = Format::streaming_json_ld();
        }
    }
    let position = Position::default();
    let by_byte = what.format == Format::RdfXml;
    let text = Cursor::new(begun).chain(text);
    let text = Source::new(text, position.clone(), by_byte, most_ahead);
    let labelled = matches!(what.format, Format::NTriples | Format::NQuads);
    let base = what.skolemize.as_ref().map(|base| base.as_str().to_owned());
    let mut skolem = Skolem::new(base, labelled);
    let mut gathered = Vec::new();
    let mut bytes = 0;
    for quad in parser(what, format)?.for_reader(text) {
        let quad = quad.map_err(|error| fault(error, &position, by_byte))?;
        position.moved();
        let number = loaded.quads + gathered.len() as u64 + 1;
        let quad = skolem
            .quad(quad)
            .map_err(|why| refused(what, &position, by_byte, format!("in quad {number}, {why}")))?;
        bytes += dump::bytes(&quad);
        gathered.push(quad);
        if gathered.len() >= QUADS || bytes >= BYTES {
            commit(target, &gathered, loaded)?;
            told(*loaded)?;
            gathered.clear();
            bytes = 0;
        }
    }
    commit(target, &gathered, loaded)?;
    told(*loaded)
}

fn parser(what: &Load, format: RdfFormat) -> Result<RdfParser, Fault> {
    let parser = RdfParser::from_format(format).with_default_graph(what.graph.clone());
    match &what.base {
        None => Ok(parser),
        Some(base) => parser.with_base_iri(base.as_str()).map_err(|error| {
            Fault::new(Kind::Malformed, format!("the base {base} is not an absolute IRI: {error}"))
        }),
    }
}

fn commit(target: &Target<'_>, quads: &[Quad], loaded: &mut Loaded) -> Result<(), Fault> {
    if quads.is_empty() {
        return Ok(());
    }
    target.disk.take_in()?;
    let (added, _) = target.store.commit(target.check, |transaction| {
        let mut added = 0;
        for quad in quads {
            added += u64::from(transaction.insert(quad.as_ref())?);
        }
        changes::note(transaction, target.watch)?;
        Ok::<_, Fault>(added)
    })?;
    loaded.quads += quads.len() as u64;
    loaded.added += added;
    loaded.commits += 1;
    Ok(())
}

/// Creates the error for a quad that is refused because of a blank node.
fn refused(what: &Load, position: &Position, is_exact: bool, why: String) -> Fault {
    let has_places = !matches!(what.format, Format::RdfXml | Format::JsonLd);
    // Without --skolemize the first blank node is refused, so its position is that of the quad.
    match position.first_blank_node().filter(|_| has_places && what.skolemize.is_none()) {
        Some((line, column)) => {
            let errors = vec![Finding::line(line, column, why)];
            Fault::with(Kind::Malformed, "the document cannot be loaded", errors)
        }
        None => at(position, is_exact, why),
    }
}

/// Creates an error in the document at the position of the parser.
fn at(position: &Position, is_exact: bool, why: impl Into<String>) -> Fault {
    let (line, column) = position.place();
    let place = if is_exact {
        Place::Line { line, column }
    } else {
        // The parser may have read ahead by up to a buffer.
        Place::Whole
    };
    let errors = vec![Finding { place, message: why.into() }];
    Fault::with(Kind::Malformed, "the document cannot be loaded", errors)
}

fn fault(error: RdfParseError, position: &Position, by_byte: bool) -> Fault {
    let error = match error {
        RdfParseError::Io(error) => return unreadable(&error),
        RdfParseError::Syntax(error) => error,
    };
    match error.location() {
        Some(location) => {
            let (line, column) = (location.start.line + 1, location.start.column + 1);
            let errors = vec![Finding::line(line, column, words(&error.to_string()))];
            Fault::with(Kind::Malformed, "the document cannot be loaded", errors)
        }
        None => at(position, by_byte, words(&error.to_string())),
    }
}

/// Returns the message of an error without the leading position, which is reported separately.
fn words(text: &str) -> String {
    let rest = text.strip_prefix("Parser error at line ").and_then(|text| text.split_once(": "));
    rest.map_or(text, |(_, rest)| rest).to_owned()
}

fn unreadable(error: &std::io::Error) -> Fault {
    Fault::new(Kind::Malformed, format!("the document cannot be read: {error}"))
}
