//! A document of RDF, brought into the store in commits of bounded size.
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

/// Quads of one commit.
const QUADS: usize = 10_000;
/// Bytes of one commit's terms, but for one larger quad.
const BYTES: usize = 4 << 20;
/// JSON-LD that is parsed as a whole. A longer document must have its members in the order of the
/// streaming form (<https://www.w3.org/TR/json-ld11-streaming/>).
const WHOLE: u64 = 4 << 20;
/// Bytes of one literal and of what else a parser holds at once.
const AHEAD: u64 = 16 << 20;

/// What a document is loaded into.
#[derive(Debug)]
pub struct Target<'a> {
    /// The store.
    pub store: &'a GuardedStore,
    /// The check of whoever loads it, made in each commit.
    pub check: &'a dyn CommitCheck,
    /// Its disk, whose reserve is kept.
    pub disk: &'a Disk,
    /// Where the objects that change are noted, so that exports on change have them.
    pub watch: &'a Watch,
}

/// What a document is taken for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// How it is written.
    pub format: Format,
    /// The graph of what stands in no graph of its own.
    pub graph: GraphName,
    /// What relative IRIs are relative to.
    pub base: Option<NamedNode>,
    /// What the IRIs begin with that take the place of blank nodes; without it those are refused.
    pub skolemize: Option<NamedNode>,
}

/// How far a document is loaded: it would survive a power cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Its quads.
    pub quads: u64,
    /// Those of them that were not there before.
    pub added: u64,
    /// Commits.
    pub commits: u64,
}

/// Why a document was not loaded to its end, and how far it was.
#[derive(Debug)]
pub struct Failed {
    /// Why; a fault of the document has its line and column.
    pub fault: Fault,
    /// How far it was.
    pub loaded: Loaded,
}

/// Brings a document into the store, quads that are there staying as they are. It is committed in parts,
/// in the order of the document; `told` is told after each, and may end it. Blocks.
///
/// # Errors
/// `Kind::Malformed` for a fault of the document; `Kind::NoRoom` when the disk is full up to its reserve.
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
            Fault::new(Kind::Malformed, format!("the base {base} is no absolute IRI: {error}"))
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

/// The fault of a quad that is not taken for its blank node.
fn refused(what: &Load, position: &Position, is_exact: bool, why: String) -> Fault {
    let has_places = !matches!(what.format, Format::RdfXml | Format::JsonLd);
    // Without --skolemize the first one is refused.
    match position.first_blank_node().filter(|_| has_places && what.skolemize.is_none()) {
        Some((line, column)) => {
            let errors = vec![Finding::line(line, column, why)];
            Fault::with(Kind::Malformed, "the document cannot be loaded", errors)
        }
        None => at(position, is_exact, why),
    }
}

/// A fault of the document where the parser is.
fn at(position: &Position, is_exact: bool, why: impl Into<String>) -> Fault {
    let (line, column) = position.place();
    let place = if is_exact {
        Place::Line { line, column }
    } else {
        // The parser had read on by up to a buffer.
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

/// The words of a fault without the place that they begin with, which is told apart.
fn words(text: &str) -> String {
    let rest = text.strip_prefix("Parser error at line ").and_then(|text| text.split_once(": "));
    rest.map_or(text, |(_, rest)| rest).to_owned()
}

fn unreadable(error: &std::io::Error) -> Fault {
    Fault::new(Kind::Malformed, format!("the document cannot be read: {error}"))
}
