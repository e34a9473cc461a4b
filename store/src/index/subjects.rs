//! Listing subjects in the order of their IRIs: a page at a time, and a page in stretches.
//!
//! If few subjects match some part of the filter, these are collected, named, sorted and tested. Otherwise the
//! subjects of the graph, or without a graph all names, are walked from the start of the page. They are stored
//! in the order of IRIs. Either way may test many subjects that do not match. A caller that must not delay
//! commits therefore releases the index between stretches.
use super::View;
use super::block_source::ReadEntries as _;
use super::key::{Code, build_key, damaged_entry, object, tree};
use super::value_scan::ValueScan;
use crate::varint::Input;
use crate::{Error, SubjectFilter, ValueRange, term};
use oxrdf::{NamedNode, Term};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Instant;

/// The maximum number of subjects that are collected and sorted for a page.
const MAX_COLLECTED_SUBJECTS: usize = 10_000;
/// The cost limit of a stretch. Listing a subject without any lookup costs 1.
const MAX_STRETCH_COST: usize = if cfg!(test) { 40 } else { 4_096 };
/// The number of names that a listing reads at once at its beginning. It doubles, because short pages are frequent.
const FIRST_BATCH: usize = 32;
/// The cost of looking up a subject.
const LOOKUP_COST: usize = 32;

pub(super) struct CompiledFilter {
    pub(super) graph: Option<Vec<u8>>,
    pub(super) having: Vec<Having>,
    deadline: Option<Instant>,
}

impl CompiledFilter {
    /// Fails with [`Error::TimedOut`] after the deadline.
    pub(super) fn check_time(&self) -> Result<(), Error> {
        let is_over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_over { Err(Error::TimedOut) } else { Ok(()) }
    }
}

/// A quad that a subject must have.
pub(super) struct Having {
    /// The id of the predicate.
    pub(super) predicate: Vec<u8>,
    pub(super) object: Code,
    /// The values with the key of the object, if it is a literal.
    values: Option<ValueRange>,
}

/// A listing in progress. Subjects that commits change meanwhile are listed in their old or new state.
pub(crate) struct Listing {
    filter: CompiledFilter,
    stage: ListingStage,
    /// The instance of the index to which the ids belong.
    instance: u64,
}

enum ListingStage {
    /// Collected subjects whose names are being read.
    Naming { ids: BTreeSet<Vec<u8>>, named: Vec<(NamedNode, Vec<u8>)> },
    /// Collected subjects that are being tested.
    Testing(std::vec::IntoIter<(NamedNode, Vec<u8>)>),
    /// Subjects are walked and tested.
    Walking {
        /// The last IRI.
        after: Option<String>,
        /// The number of names that are read at once.
        batch: usize,
    },
}

/// The callback for each matching subject, with its IRI and id.
type VisitIri<'v> = dyn FnMut(&str, u64) -> ControlFlow<()> + 'v;

impl View<'_> {
    /// Passes the IRIs of the subjects that satisfy `filter`, starting after `after`, to `visit` in code
    /// point order, until it breaks.
    pub(crate) fn visit_subjects(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        visit: &mut VisitIri<'_>,
    ) -> Result<(), Error> {
        if let Some(mut listing) = self.begin_listing(filter, after)? {
            while self.continue_listing(&mut listing, after, visit)?.is_continue() {}
        }
        Ok(())
    }

    /// Begins to list the subjects that satisfy `filter`, starting after `after`. Returns `None` if no
    /// subject can match.
    pub(crate) fn begin_listing(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
    ) -> Result<Option<Listing>, Error> {
        self.track_damage(|| {
            let Some(wanted) = self.compile_filter(filter)? else { return Ok(None) };
            let stage = match self.collect_rare(&wanted)? {
                Some(ids) => ListingStage::Naming { ids, named: Vec::new() },
                None => {
                    ListingStage::Walking { after: after.map(str::to_owned), batch: FIRST_BATCH }
                }
            };
            Ok(Some(Listing { filter: wanted, stage, instance: self.instance }))
        })
    }

    /// Lists a stretch, before the deadline of the filter. Breaks when all were listed, or when `visit` broke.
    pub(crate) fn continue_listing(
        &self,
        listing: &mut Listing,
        after: Option<&str>,
        visit: &mut VisitIri<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        self.track_damage(|| {
            if listing.instance != self.instance {
                return Err(Error::Reopening);
            }
            listing.filter.check_time()?;
            match &mut listing.stage {
                ListingStage::Naming { ids, named } => {
                    for _ in 0..MAX_STRETCH_COST / LOOKUP_COST {
                        let Some(subject) = ids.pop_first() else {
                            named.sort_unstable_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
                            listing.stage =
                                ListingStage::Testing(std::mem::take(named).into_iter());
                            break;
                        };
                        let id = Input::new(&subject).read_number();
                        let id = id.ok_or_else(|| damaged_entry("an id", &subject))?;
                        if let Some(iri) = term::to_predicate(self.load_name(id)?)
                            && after.is_none_or(|after| iri.as_str() > after)
                        {
                            named.push((iri, subject));
                        }
                    }
                    Ok(ControlFlow::Continue(()))
                }
                ListingStage::Testing(named) => {
                    for (iri, subject) in named.take(MAX_STRETCH_COST / LOOKUP_COST) {
                        let id = Input::new(&subject).read_number();
                        let id = id.ok_or_else(|| damaged_entry("an id", &subject))?;
                        if self.satisfies_filter(&listing.filter, &subject)?
                            && visit(iri.as_str(), id).is_break()
                        {
                            return Ok(ControlFlow::Break(()));
                        }
                    }
                    let done = named.as_slice().is_empty();
                    Ok(if done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
                }
                ListingStage::Walking { after, batch } => {
                    self.walk_names(&listing.filter, after, batch, visit)
                }
            }
        })
    }

    pub(super) fn compile_filter(
        &self,
        filter: &SubjectFilter,
    ) -> Result<Option<CompiledFilter>, Error> {
        let mut wanted =
            CompiledFilter { graph: None, having: Vec::new(), deadline: filter.deadline };
        if let Some(graph) = &filter.graph {
            let Some(code) = self.graph_code(graph)? else { return Ok(None) };
            wanted.graph = Some(code.id().to_vec());
        }
        for (predicate, object) in &filter.having {
            let Some(predicate) = self.find_code(predicate.as_ref().into())? else {
                return Ok(None);
            };
            let Some(code) = self.find_code(object.as_ref())? else { return Ok(None) };
            let values = match object {
                Term::Literal(literal) => Some(ValueRange::with_key_of(literal.as_ref())),
                _ => None,
            };
            let predicate = predicate.id().to_vec();
            wanted.having.push(Having { predicate, object: code, values });
        }
        Ok(Some(wanted))
    }

    /// Returns whether the subject satisfies the filter apart from its graph.
    pub(super) fn has_all_values(
        &self,
        wanted: &CompiledFilter,
        subject: &[u8],
    ) -> Result<bool, Error> {
        for Having { predicate, object, .. } in &wanted.having {
            if !self.has_triple(subject, predicate, &object.0)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn satisfies_filter(&self, wanted: &CompiledFilter, subject: &[u8]) -> Result<bool, Error> {
        let there = match &wanted.graph {
            Some(graph) => {
                self.blocks.get(&build_key(tree::GS, &[graph, subject]), |_| ())?.is_some()
            }
            None => self.blocks.contains_prefix(&build_key(tree::SPOG, &[subject]))?,
        };
        Ok(there && self.has_all_values(wanted, subject)?)
    }

    /// Returns the ids of all subjects that match the rarest part of the filter, if they are few.
    pub(super) fn collect_rare(
        &self,
        wanted: &CompiledFilter,
    ) -> Result<Option<BTreeSet<Vec<u8>>>, Error> {
        let mut narrowest: Option<BTreeSet<Vec<u8>>> = None;
        for having in &wanted.having {
            let most = narrowest.as_ref().map_or(MAX_COLLECTED_SUBJECTS, BTreeSet::len);
            if let Some(values) = self.scan_having(having)? {
                narrowest = collect_values(values, most)?.or(narrowest);
                continue;
            }
            let is_named = having.object.is_named();
            let object = if is_named { having.object.0.as_slice() } else { &[object::ANY_LITERAL] };
            let prefix = build_key(tree::POSG, &[&having.predicate, object]);
            let mut found = BTreeSet::new();
            let mut scanned = 0;
            let mut whole = true;
            self.blocks.scan_prefix(&prefix, &mut |key, _| {
                scanned += 1;
                if scanned > most {
                    whole = false;
                    return Ok(ControlFlow::Break(()));
                }
                let rest = key.get(prefix.len()..).unwrap_or_default();
                let subject = super::key::read_number_bytes(&mut Input::new(rest));
                found.insert(subject.ok_or_else(|| damaged_entry("a subject", key))?.to_vec());
                Ok(ControlFlow::Continue(()))
            })?;
            if whole {
                narrowest = Some(found);
            }
        }
        Ok(narrowest)
    }

    /// Begins to read the subjects that may have a literal. `None` for another object, or without an index of values.
    fn scan_having(&self, having: &Having) -> Result<Option<ValueScan<'_>>, Error> {
        let predicate = Input::new(&having.predicate).read_number();
        let (Some(values), Some(predicate)) = (&having.values, predicate) else { return Ok(None) };
        self.scan_values(predicate, values, false)
    }

    /// Continues a walk after an IRI, which is updated to the last one visited.
    fn walk_names(
        &self,
        wanted: &CompiledFilter,
        after: &mut Option<String>,
        batch: &mut usize,
        visit: &mut VisitIri<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let prefix = match &wanted.graph {
            Some(graph) => build_key(tree::GRAPH_IRI, &[graph]),
            None => build_key(tree::NAME_ID, &[&[term::kind::IRI]]),
        };
        let cost = match &wanted.graph {
            Some(_) => 1 + wanted.having.len() * LOOKUP_COST,
            None => (1 + wanted.having.len()) * LOOKUP_COST,
        };
        let mut start = prefix.clone();
        if let Some(after) = &after {
            start.extend_from_slice(after.as_bytes());
            // The first name that sorts after it.
            start.push(0);
        }
        let most = MAX_STRETCH_COST.div_ceil(cost).min(*batch);
        *batch = batch.saturating_mul(2);
        let names = self.runs.list_names(&prefix, &start, most)?;
        let is_end = names.len() < most;
        for (key, id) in &names {
            let name = key.get(prefix.len()..).unwrap_or_default();
            let iri = std::str::from_utf8(name).map_err(|_| damaged_entry("an IRI", name))?;
            let subject = Code::from_id(*id);
            let there = match &wanted.graph {
                Some(_) => self.has_all_values(wanted, subject.id())?,
                None => self.satisfies_filter(wanted, subject.id())?,
            };
            *after = Some(iri.to_owned());
            if there && visit(iri, *id).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(if is_end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

/// Returns the ids of the subjects if they are not more than `most`.
fn collect_values(
    mut values: ValueScan<'_>,
    most: usize,
) -> Result<Option<BTreeSet<Vec<u8>>>, Error> {
    let mut found = BTreeSet::new();
    while let Some((_, subject)) = values.next_entry()? {
        if found.len() == most {
            return Ok(None);
        }
        found.insert(Code::from_id(subject).id().to_vec());
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Store};
    use oxrdf::{GraphName, Quad};

    fn iri(name: &str) -> NamedNode {
        NamedNode::new_unchecked(format!("https://example.org/{name}"))
    }

    fn subject(n: u32) -> NamedNode {
        iri(&format!("{:08x}", n.wrapping_mul(0x9e37_79b9)))
    }

    /// Every third subject is in the graph, every fifth has the object.
    fn add(store: &Store, subjects: std::ops::Range<u32>) {
        store
            .transact::<_, Error>(|change| {
                for n in subjects {
                    let graph: GraphName =
                        if n % 3 == 0 { iri("g").into() } else { GraphName::DefaultGraph };
                    let object = if n % 5 == 0 { iri("sought") } else { iri("other") };
                    change.insert(Quad::new(subject(n), iri("p"), object, graph).as_ref())?;
                }
                Ok(())
            })
            .unwrap();
    }

    fn expected(subjects: u32, belongs: impl Fn(u32) -> bool) -> Vec<NamedNode> {
        let mut found: Vec<_> = (0..subjects).filter(|n| belongs(*n)).map(subject).collect();
        found.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        found
    }

    #[test]
    fn listings_in_stretches_are_complete_and_commits_run_between_them() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        add(&store, 0..1_000);
        store.checkpoint().unwrap();
        add(&store, 1_000..2_000);
        let graph = Some(GraphName::from(iri("g")));
        let having = vec![(iri("p"), iri("sought").into())];
        let all = |filter: &SubjectFilter| {
            let (mut found, mut after) = (Vec::new(), None::<String>);
            loop {
                let page = store.list_subjects(filter, after.as_deref(), 70).unwrap();
                let Some(last) = page.last() else { return found };
                after = Some(last.as_str().to_owned());
                found.extend(page);
            }
        };
        let none = SubjectFilter {
            graph: Some(iri("none").into()),
            having: Vec::new(),
            ..SubjectFilter::default()
        };
        assert!(all(&none).is_empty());
        let in_graph =
            SubjectFilter { graph: graph.clone(), having: Vec::new(), ..SubjectFilter::default() };
        assert_eq!(all(&in_graph), expected(2_000, |n| n % 3 == 0));
        let both = SubjectFilter { graph, having: having.clone(), ..SubjectFilter::default() };
        assert_eq!(all(&both), expected(2_000, |n| n % 15 == 0));
        let sought = SubjectFilter { graph: None, having, ..SubjectFilter::default() };
        assert_eq!(all(&sought), expected(2_000, |n| n % 5 == 0));
        assert_eq!(all(&SubjectFilter::default()), expected(2_000, |_| true));

        // One stretch, a commit, and then the rest.
        let mut found = Vec::new();
        let mut visit = |iri: &str, _: u64| {
            found.push(NamedNode::new_unchecked(iri));
            ControlFlow::Continue(())
        };
        let index = || store.inner().lock_index();
        let mut listing =
            index().view().begin_listing(&SubjectFilter::default(), None).unwrap().unwrap();
        assert!(
            index().view().continue_listing(&mut listing, None, &mut visit).unwrap().is_continue()
        );
        let mut stretches = 1;
        add(&store, 2_000..4_000);
        while index().view().continue_listing(&mut listing, None, &mut visit).unwrap().is_continue()
        {
            stretches += 1;
        }
        assert!(
            stretches > 1_000,
            "only {stretches} stretches: each is too long to let commits run"
        );
        assert!(found.is_sorted_by(|a, b| a.as_str() < b.as_str()));
        let there = |n: &u32| found.contains(&subject(*n));
        assert!((0..2_000).all(|n| there(&n)), "a subject that always existed must be listed");
        assert!(
            (2_000..4_000).filter(there).count() > 1_500,
            "too few of the added subjects are listed"
        );
    }
}
