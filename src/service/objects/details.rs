//! What is known about one object, a part at a time.
use super::graph::{ObjectGraph, read_graph};
use super::header::{ObjectHeader, collect_header};
use super::labels::read_labels;
use super::parse_uri;
use super::resolve::write_rdf;
use super::search::{acquire_permit, new_budget};
use crate::gateway::Gateway;
use oxrdf::{NamedNode, NamedOrBlankNode, Quad, Term};
use penstock_auth::Caller;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_model::ingest::{WriteHistory, find_write_history};
use penstock_model::rdf::Format;
use penstock_model::resource::Compiled;
use penstock_model::search::{self, ReferenceSearch, Referrer};
use penstock_model::tree::{FieldWindow, ObjectTree, TreeField, TreeValue, read_tree};
use penstock_model::view::{self, FieldValues};
use penstock_store::{Read as _, Snapshot, SubjectQuads};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The number of referring objects on a page.
const REFERRERS_PER_PAGE: usize = 50;
/// The maximum number of quads that a page shows as Turtle.
const MAX_SHOWN_QUADS: usize = 2_000;
/// The maximum number of bytes of their properties and values.
const MAX_SHOWN_TURTLE_BYTES: usize = 256 << 10;
/// The maximum number of bytes of JSON that a page shows.
const MAX_SHOWN_JSON_BYTES: usize = 256 << 10;
/// The part of what is known that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectPart {
    /// Its fields, or some elements of one.
    Fields(Option<FieldWindow>),
    /// The objects around it, with more of those that this property links.
    Graph(Option<String>),
    /// Its quads as Turtle, and its JSON.
    Rdf,
    /// The ingestions that wrote it.
    History,
    /// What refers to it, after this cursor.
    References(Option<String>),
}

/// An object, with a part of what is known about it.
#[derive(Debug)]
pub struct ObjectDetails {
    /// What every page about it shows.
    pub header: ObjectHeader,
    /// The part that was asked for.
    pub content: PartContent,
}

/// A part of what is known about an object.
#[derive(Debug)]
pub enum PartContent {
    /// Its fields, if a Business Object shows it, and the labels of the IRIs in them.
    Fields(Option<ObjectTree>, HashMap<String, String>),
    /// The objects around it.
    Graph(ObjectGraph),
    /// Its quads as Turtle; its JSON, if a Business Object shows it; and the warnings of that view. An error says that it is
    /// too large.
    Rdf {
        /// The quads, or the first ones.
        turtle: String,
        /// How many further quads there are.
        omitted_quads: usize,
        /// The JSON.
        json: Option<Result<Vec<u8>, GatewayError>>,
        /// The warnings.
        warnings: Vec<Finding>,
    },
    /// The recorded ingestions that wrote it.
    History(Box<WriteHistory>),
    /// What refers to it. `ErrorClass::TooLarge` if finding that would read too many objects or take too long.
    References(Result<ReferringObjects, GatewayError>),
}

/// A page of the objects that refer to an object.
#[derive(Debug)]
pub struct ReferringObjects {
    /// The objects.
    pub found: Vec<ReferringObject>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// An object that refers to another one.
#[derive(Debug)]
pub struct ReferringObject {
    /// The object, and the fields that lead to the other one.
    pub referrer: Referrer,
    /// Its label, if it has one.
    pub label: Option<String>,
}

/// Collects a part of what is known about an object. `preferred` is the id of the Business Object that should show it, if it
/// belongs to several.
///
/// # Errors
/// - `ErrorClass::Malformed` if `uri` is not an IRI, or the cursor is not from this list
/// - `ErrorClass::NotFound` if no such object is stored
/// - `ErrorClass::Unavailable` if too many other searches and queries are running
pub async fn describe_object(
    gateway: &Gateway,
    by: &Caller,
    uri: &str,
    preferred: Option<String>,
    part: ObjectPart,
) -> Result<ObjectDetails, GatewayError> {
    let uri = parse_uri(uri)?;
    let permit = acquire_permit(gateway, by).await?;
    gateway
        .read(move |gateway| {
            let _permit = permit;
            collect_details(gateway, uri, preferred.as_deref(), part)
        })
        .await
}

fn collect_details(
    gateway: &Gateway,
    uri: NamedNode,
    preferred: Option<&str>,
    part: ObjectPart,
) -> Result<ObjectDetails, GatewayError> {
    let read = gateway.store.snapshot()?;
    let quads = read.quads_about(&NamedOrBlankNode::from(uri.clone()))?;
    if quads.is_empty() {
        return Err(GatewayError::new(
            ErrorClass::NotFound,
            format!("No object {} is stored.", uri.as_str()),
        ));
    }
    let header = collect_header(gateway, &read, uri, &quads, preferred)?;
    let content = match part {
        ObjectPart::Fields(window) => read_fields(gateway, &read, &header, window.as_ref())?,
        ObjectPart::Graph(expanded) => {
            PartContent::Graph(read_graph(gateway, &read, &header, &quads, expanded.as_deref())?)
        }
        ObjectPart::Rdf => read_rdf(gateway, &read, &header, &quads)?,
        ObjectPart::History => {
            let history = find_write_history(&gateway.store, header.uri.as_str())?;
            PartContent::History(Box::new(history))
        }
        ObjectPart::References(after) => {
            let all = gateway.catalogue.list();
            match find_referrers(&read, &all, &header.uri, after.as_deref()) {
                Err(error) if error.class != ErrorClass::TooLarge => return Err(error),
                found => PartContent::References(found),
            }
        }
    };
    Ok(ObjectDetails { header, content })
}

fn read_fields(
    gateway: &Gateway,
    read: &Snapshot,
    header: &ObjectHeader,
    window: Option<&FieldWindow>,
) -> Result<PartContent, GatewayError> {
    let Some(place) = &header.place else { return Ok(PartContent::Fields(None, HashMap::new())) };
    let tree = read_tree(read, place.shape(), &header.uri, window)?;
    let mut iris = BTreeSet::new();
    collect_iris(&tree, &mut iris);
    let labels = read_labels(gateway, read, iris.into_iter().cloned())?;
    Ok(PartContent::Fields(Some(tree), labels))
}

fn collect_iris<'t>(tree: &'t ObjectTree, iris: &mut BTreeSet<&'t NamedNode>) {
    for TreeField { values, .. } in tree.fields.iter().flatten() {
        for value in values {
            match value {
                TreeValue::Literal { .. } => {}
                TreeValue::Resource(iri) => {
                    iris.insert(iri);
                }
                TreeValue::Object(nested) => collect_iris(nested, iris),
            }
        }
    }
}

fn read_rdf(
    gateway: &Gateway,
    read: &Snapshot,
    header: &ObjectHeader,
    quads: &[Quad],
) -> Result<PartContent, GatewayError> {
    let shown = count_shown_quads(quads);
    let turtle = write_rdf(gateway, Format::Turtle, quads.get(..shown).unwrap_or(quads))?;
    let mut warnings = Vec::new();
    let json = header.place.as_ref().map(|place| -> Result<Vec<u8>, GatewayError> {
        let mut json = Vec::new();
        view::render_object(read, place.shape(), &header.uri, &mut json, &mut warnings)?;
        if json.len() > MAX_SHOWN_JSON_BYTES {
            return Err(GatewayError::new(
                ErrorClass::TooLarge,
                format!(
                    "The object has {} KiB of JSON; this page shows at most {} KiB. The API has the whole.",
                    json.len() >> 10,
                    MAX_SHOWN_JSON_BYTES >> 10
                ),
            ));
        }
        Ok(json)
    });
    // The serializer writes UTF-8.
    let turtle = String::from_utf8_lossy(&turtle).into_owned();
    let omitted_quads = quads.len() - shown;
    Ok(PartContent::Rdf { turtle, omitted_quads, json, warnings })
}

/// Returns how many of these quads a page shows.
fn count_shown_quads(quads: &[Quad]) -> usize {
    let mut bytes = 0;
    let fits = |quad: &&Quad| {
        bytes += quad.predicate.as_str().len()
            + match &quad.object {
                Term::NamedNode(iri) => iri.as_str().len(),
                Term::Literal(literal) => literal.value().len(),
                _ => 0,
            };
        bytes <= MAX_SHOWN_TURTLE_BYTES
    };
    quads.iter().take(MAX_SHOWN_QUADS).take_while(fits).count()
}

/// Finds a page of the other objects that refer to an object.
fn find_referrers(
    read: &Snapshot,
    all: &[Arc<Compiled>],
    uri: &NamedNode,
    after: Option<&str>,
) -> Result<ReferringObjects, GatewayError> {
    let all_references = ReferenceSearch::all(after, REFERRERS_PER_PAGE);
    let page = search::find_referrers(read, all, uri, all_references, &new_budget())?;
    let next = page.found.last().filter(|_| page.more).map(|last| last.cursor.clone());
    let mut quads = SubjectQuads::default();
    // The object's own view contains its URI, which is not a reference.
    let others = page.found.into_iter().filter(|referrer| referrer.uri != *uri);
    let found = others.map(|referrer| {
        let mapping = &referrer.business_object.mapping;
        read.read_subject(referrer.uri.as_ref().into(), &mut quads)?;
        let label = view::find_label(mapping, &FieldValues::from_subject(&mapping.root, &quads));
        Ok(ReferringObject { referrer, label })
    });
    Ok(ReferringObjects { found: found.collect::<Result<_, GatewayError>>()?, next })
}
