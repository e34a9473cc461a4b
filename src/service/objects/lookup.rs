//! Finds objects of all Business Objects by what people call them: the URI, a value of the key, or a part of the label.
use super::labels::read_labels;
use super::search::acquire_permit;
use crate::gateway::Gateway;
use oxrdf::NamedNode;
use penstock_auth::Caller;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_model::mapping::Mapping;
use penstock_model::resource::Compiled;
use penstock_model::search::{self, Filter, FoundObject, Search, SearchBudget, ValueTest};
use penstock_model::view::{self, FieldValues};
use penstock_store::{Read as _, Snapshot, SubjectQuads};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The maximum number of objects that are examined of each Business Object.
const MAX_EXAMINED_EACH: u64 = 20_000;
/// The maximum time for all of them.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

/// The objects that were found.
#[derive(Debug, Default)]
pub struct FoundObjects {
    /// The objects; first the one with this URI, then those with this value in their key.
    pub objects: Vec<NamedObject>,
    /// The names of the Business Objects that may have more.
    pub incomplete: BTreeSet<String>,
}

/// An object, and what people call it.
#[derive(Debug)]
pub struct NamedObject {
    /// Its URI.
    pub uri: String,
    /// Its label, if it has one.
    pub label: Option<String>,
    /// The Business Object in which it was found; `None` if it was found by its URI.
    pub business_object: Option<Arc<Compiled>>,
}

/// Finds objects by their URI, a value of their key, or a part of their label in any case: at most `limit_each` of each
/// Business Object.
///
/// # Errors
/// `ErrorClass::Unavailable` if too many searches and queries are running; the errors of the store.
pub async fn look_up_objects(
    gateway: &Gateway,
    by: &Caller,
    text: &str,
    limit_each: usize,
) -> Result<FoundObjects, GatewayError> {
    let permit = acquire_permit(gateway, by).await?;
    let text = text.to_owned();
    gateway
        .read(move |gateway| {
            let _permit = permit;
            let snapshot = gateway.store.snapshot()?;
            let mut lookup = Lookup::new(&snapshot, limit_each);
            for (uri, label) in read_labels(gateway, &snapshot, NamedNode::new(&text).into_iter())?
            {
                lookup.add(uri.clone(), Some(label).filter(|label| *label != uri), None);
            }
            let all = gateway.catalogue.list();
            for build_filter in [build_key_filter, build_label_filter] {
                for compiled in &all {
                    if let Some(filter) = build_filter(&compiled.mapping, &text) {
                        lookup.find(compiled, &filter)?;
                    }
                }
            }
            Ok(lookup.found)
        })
        .await
}

struct Lookup<'l> {
    snapshot: &'l Snapshot,
    limit_each: usize,
    deadline: Instant,
    seen: HashSet<String>,
    found: FoundObjects,
}

impl<'l> Lookup<'l> {
    fn new(snapshot: &'l Snapshot, limit_each: usize) -> Self {
        Self {
            snapshot,
            limit_each,
            deadline: Instant::now() + LOOKUP_TIMEOUT,
            seen: HashSet::new(),
            found: FoundObjects::default(),
        }
    }

    fn add(&mut self, uri: String, label: Option<String>, business_object: Option<Arc<Compiled>>) {
        if self.seen.insert(uri.clone()) {
            self.found.objects.push(NamedObject { uri, label, business_object });
        }
    }

    /// Finds the first objects of a Business Object that pass this filter.
    fn find(&mut self, compiled: &Arc<Compiled>, filter: &Filter) -> Result<(), GatewayError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let budget = SearchBudget::new(MAX_EXAMINED_EACH, left);
        let search = Search { filter: Some(filter), limit: self.limit_each, ..Search::default() };
        let page = match search::find_page(self.snapshot, compiled, &search, &budget) {
            Ok(page) => page,
            Err(error) if error.class == ErrorClass::TooLarge => {
                self.found.incomplete.insert(compiled.object.definition.name.clone());
                return Ok(());
            }
            // Its namespace is not defined, so it has no objects.
            Err(error) if error.class == ErrorClass::Conflict => return Ok(()),
            Err(error) => return Err(error),
        };
        if page.more {
            self.found.incomplete.insert(compiled.object.definition.name.clone());
        }
        let mapping = &compiled.mapping;
        let mut quads = SubjectQuads::default();
        for FoundObject { uri, .. } in page.found {
            self.snapshot.read_subject(uri.as_ref().into(), &mut quads)?;
            let values = FieldValues::from_subject(&mapping.root, &quads);
            let label = view::find_label(mapping, &values);
            self.add(uri.into_string(), label, Some(compiled.clone()));
        }
        Ok(())
    }
}

/// Returns the filter of objects with this value in a field of their key; `None` if the key cannot have it.
fn build_key_filter(mapping: &Mapping, text: &str) -> Option<Filter> {
    let root = &mapping.root;
    let can_be = |index: &&usize| {
        root.property_at(**index)
            .is_some_and(|property| property.is_orderable() && property.order().can_parse(text))
    };
    let fields = root.key_fields()?.indexes.iter().filter(can_be);
    let tests: Vec<_> = fields
        .map(|field| Filter::Field { field: *field, test: ValueTest::In(vec![text.to_owned()]) })
        .collect();
    (!tests.is_empty()).then_some(Filter::Any(tests))
}

/// Returns the filter of objects whose label contains this text; `None` if they have no label.
fn build_label_filter(mapping: &Mapping, text: &str) -> Option<Filter> {
    let (field, _) = mapping.find_label_field()?;
    Some(Filter::Field { field, test: ValueTest::ContainsAnyCase(text.to_owned()) })
}
