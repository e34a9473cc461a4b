//! The texts by which people recognise objects.
use super::resolve::{PlaceFinder, list_prefixes};
use super::search::acquire_permit;
use crate::gateway::Gateway;
use oxrdf::vocab::rdfs;
use oxrdf::{NamedNode, NamedOrBlankNode, Quad, Term};
use penstock_auth::Caller;
use penstock_base::error::GatewayError;
use penstock_model::search::SearchBudget;
use penstock_model::view::{self, FieldValues};
use penstock_store::{Pattern, Read, Snapshot};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::time::Duration;

/// The maximum number of objects whose labels are read for one page. Further ones are shown by their URIs.
const MAX_LABELS: usize = 300;
/// The maximum number of IRIs of one page that are looked up.
const MAX_LOOKED_UP: u64 = 3_000;
/// The maximum time in which the labels of one page are read.
const LABELS_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum number of quads that are read of an object to find its label.
const MAX_LABEL_QUADS: usize = 2_000;
/// The maximum number of characters of a label.
const MAX_LABEL_CHARS: usize = 200;

/// Short forms of IRIs, by the prefixes of the mappings.
#[derive(Debug)]
pub struct IriNames(BTreeMap<String, String>);

impl IriNames {
    /// Reads the prefixes of all mappings, and the well-known ones.
    pub fn new(gateway: &Gateway) -> Self {
        Self(list_prefixes(gateway))
    }

    /// Returns the IRI with the longest prefix that fits; `None` if none does.
    pub fn shorten(&self, iri: &str) -> Option<String> {
        let fitting = self.0.iter().filter_map(|(prefix, base)| {
            let local = iri.strip_prefix(base.as_str())?;
            let is_name = !local.is_empty() && !local.contains(['/', '#', '?']);
            (!base.is_empty() && is_name).then_some((base.len(), prefix, local))
        });
        fitting.max().map(|(_, prefix, local)| format!("{prefix}:{local}"))
    }
}

/// Finds the labels of those of these IRIs that are stored objects: the URI of one without a label. Only some hundred labels
/// are read.
///
/// # Errors
/// `ErrorClass::Unavailable` if too many searches and queries are running; the errors of the store.
pub async fn find_labels(
    gateway: &Gateway,
    by: &Caller,
    iris: BTreeSet<String>,
) -> Result<HashMap<String, String>, GatewayError> {
    if iris.is_empty() {
        return Ok(HashMap::new());
    }
    let permit = acquire_permit(gateway, by).await?;
    gateway
        .read(move |gateway| {
            let _permit = permit;
            let read = gateway.store.snapshot()?;
            let iris = iris.iter().filter_map(|iri| NamedNode::new(iri).ok());
            read_labels(gateway, &read, iris)
        })
        .await
}

/// As [`find_labels`], of the objects in a snapshot.
pub(super) fn read_labels(
    gateway: &Gateway,
    read: &Snapshot,
    iris: impl Iterator<Item = NamedNode>,
) -> Result<HashMap<String, String>, GatewayError> {
    let budget = SearchBudget::new(MAX_LOOKED_UP, LABELS_TIMEOUT);
    let mut finder = PlaceFinder::new(gateway, read, None);
    let mut labels = HashMap::new();
    let mut read_count = 0;
    for iri in iris {
        if budget.count_examined(1).is_err() {
            break;
        }
        // Of further ones, only whether they are stored.
        let limit = if read_count < MAX_LABELS { MAX_LABEL_QUADS } else { 1 };
        let quads = read_first_quads(read, &iri, limit)?;
        if quads.is_empty() {
            continue;
        }
        let label = if read_count < MAX_LABELS {
            read_count += 1;
            find_label(&mut finder, &iri, &quads)?
        } else {
            None
        };
        let iri = iri.into_string();
        labels.insert(iri.clone(), label.map_or(iri, |label| cut_label(&label)));
    }
    Ok(labels)
}

/// Reads the first quads about an object.
fn read_first_quads(
    read: &dyn Read,
    uri: &NamedNode,
    limit: usize,
) -> Result<Vec<Quad>, GatewayError> {
    let subject = Some(NamedOrBlankNode::from(uri.clone()));
    let mut quads = Vec::new();
    read.for_each(&Pattern { subject, ..Pattern::default() }, &mut |quad| {
        quads.push(quad);
        if quads.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(quads)
}

/// Shortens a label to what a page can show.
pub(super) fn cut_label(label: &str) -> String {
    match label.char_indices().nth(MAX_LABEL_CHARS) {
        Some((end, _)) => format!("{}…", label.get(..end).unwrap_or_default()),
        None => label.to_owned(),
    }
}

/// Returns the label of the object with these quads: that of its mapping, otherwise its first `rdfs:label`.
pub(super) fn find_label(
    finder: &mut PlaceFinder<'_>,
    uri: &NamedNode,
    quads: &[Quad],
) -> Result<Option<String>, GatewayError> {
    if quads.is_empty() {
        return Ok(None);
    }
    if let Some(place) = finder.find_place(uri, quads)? {
        let values = FieldValues::from_quads(place.shape(), quads);
        let label = if place.steps.is_empty() {
            view::find_label(&place.business_object.mapping, &values)
        } else {
            view::find_nested_label(place.shape(), &values)
        };
        if label.is_some() {
            return Ok(label);
        }
    }
    let named = quads.iter().filter(|quad| quad.predicate == rdfs::LABEL);
    let texts = named.filter_map(|quad| match &quad.object {
        Term::Literal(literal) => Some(literal.value().to_owned()),
        _ => None,
    });
    Ok(texts.filter(|text| !text.trim().is_empty()).min())
}
