//! Listing subjects in the order of their IRIs: a page at a time, and a page in stretches.
//!
//! The subjects of the graph, or without a graph all names, are walked from the start of the page. They are stored
//! in the order of IRIs. If few subjects match some part of the filter, their ids are collected, and only they are tested. If
//! the walk takes longer than it takes to name all of them, they are named and sorted. Either way may test many subjects that
//! do not match. A caller that must not delay commits therefore releases the index between stretches.
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

/// The maximum number of entries whose subjects are collected for a page.
const MAX_COLLECTED_SUBJECTS: usize = 10_000;
/// The number of collected subjects up to which they are named at once.
const FEW_SUBJECTS: usize = if cfg!(test) { 4 } else { 32 };
/// The cost limit of a stretch. Listing a subject without any lookup costs 1.
const MAX_STRETCH_COST: usize = if cfg!(test) { 40 } else { 4_096 };
/// The number of names that a listing reads at once at its beginning. It doubles, because short pages are frequent.
const FIRST_BATCH: usize = 32;
/// The cost of looking up a subject.
const LOOKUP_COST: usize = 32;

pub(super) struct CompiledFilter {
    pub(super) graph: Option<Vec<u8>>,
    pub(super) having: Vec<Having>,
    /// The ids of properties, each with a range of values.
    values: Vec<(u64, ValueRange)>,
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
    /// Collected subjects whose names are being read, as far as they come after an IRI.
    Naming { ids: BTreeSet<u64>, named: Vec<(NamedNode, u64)>, after: Option<String> },
    /// Collected subjects that are being tested.
    Testing(std::vec::IntoIter<(NamedNode, u64)>),
    /// Subjects are walked and tested.
    Walking(Walk),
}

/// A walk through names.
struct Walk {
    /// The last IRI.
    after: Option<String>,
    /// The number of names that are read at once.
    batch: usize,
    /// The collected subjects, of which the others are none.
    among: Option<BTreeSet<u64>>,
    /// The number of names that were passed.
    passed: usize,
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
            while self.continue_listing(&mut listing, visit)?.is_continue() {}
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
            let after = after.map(str::to_owned);
            let stage = match self.collect_rare(&wanted)? {
                Some(ids) if ids.len() <= FEW_SUBJECTS => {
                    ListingStage::Naming { ids, named: Vec::new(), after }
                }
                among => {
                    ListingStage::Walking(Walk { after, batch: FIRST_BATCH, among, passed: 0 })
                }
            };
            Ok(Some(Listing { filter: wanted, stage, instance: self.instance }))
        })
    }

    /// Lists a stretch, before the deadline of the filter. Breaks when all were listed, or when `visit` broke.
    pub(crate) fn continue_listing(
        &self,
        listing: &mut Listing,
        visit: &mut VisitIri<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        self.track_damage(|| {
            if listing.instance != self.instance {
                return Err(Error::Reopening);
            }
            listing.filter.check_time()?;
            match &mut listing.stage {
                ListingStage::Naming { ids, named, after } => {
                    for _ in 0..MAX_STRETCH_COST / LOOKUP_COST {
                        let Some(id) = ids.pop_first() else {
                            named.sort_unstable_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
                            listing.stage =
                                ListingStage::Testing(std::mem::take(named).into_iter());
                            break;
                        };
                        if let Some(iri) = term::to_predicate(self.load_name(id)?)
                            && after.as_deref().is_none_or(|after| iri.as_str() > after)
                        {
                            named.push((iri, id));
                        }
                    }
                    Ok(ControlFlow::Continue(()))
                }
                ListingStage::Testing(named) => {
                    for (iri, id) in named.take(MAX_STRETCH_COST / LOOKUP_COST) {
                        let subject = Code::from_id(id);
                        if self.satisfies_filter(&listing.filter, subject.id())?
                            && visit(iri.as_str(), id).is_break()
                        {
                            return Ok(ControlFlow::Break(()));
                        }
                    }
                    let done = named.as_slice().is_empty();
                    Ok(if done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
                }
                ListingStage::Walking(walk) => {
                    let flow = self.walk_names(&listing.filter, walk, visit)?;
                    if let Some(among) = &mut walk.among
                        && walk.passed > among.len() * LOOKUP_COST
                    {
                        let (ids, after) = (std::mem::take(among), walk.after.take());
                        let named = Vec::new();
                        listing.stage = ListingStage::Naming { ids, named, after };
                    }
                    Ok(flow)
                }
            }
        })
    }

    pub(super) fn compile_filter(
        &self,
        filter: &SubjectFilter,
    ) -> Result<Option<CompiledFilter>, Error> {
        let mut wanted = CompiledFilter {
            graph: None,
            having: Vec::new(),
            values: Vec::new(),
            deadline: filter.deadline,
        };
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
        for (property, range) in &filter.having_values {
            let code = self.find_code(property.as_ref().into())?;
            let number = code.and_then(|code| code.to_number());
            wanted.values.extend(number.map(|number| (number, range.clone())));
        }
        let is_unknown = wanted.values.is_empty() && !filter.having_values.is_empty();
        Ok((!is_unknown || self.values.is_none()).then_some(wanted))
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
    ) -> Result<Option<BTreeSet<u64>>, Error> {
        let mut narrowest = self.collect_valued(&wanted.values)?;
        for having in &wanted.having {
            let mut most = narrowest.as_ref().map_or(MAX_COLLECTED_SUBJECTS, BTreeSet::len);
            if let Some(values) = self.scan_having(having)? {
                let mut found = BTreeSet::new();
                if collect_values(values, &mut most, &mut found)? {
                    narrowest = Some(found);
                }
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
                let subject = Input::new(rest).read_number();
                found.insert(subject.ok_or_else(|| damaged_entry("a subject", key))?);
                Ok(ControlFlow::Continue(()))
            })?;
            if whole {
                narrowest = Some(found);
            }
        }
        Ok(narrowest)
    }

    /// Returns the ids of all subjects with a value in one of these ranges, if there is a range and they have few values there.
    fn collect_valued(&self, values: &[(u64, ValueRange)]) -> Result<Option<BTreeSet<u64>>, Error> {
        let (mut found, mut left) = (BTreeSet::new(), MAX_COLLECTED_SUBJECTS);
        for (property, range) in values {
            let Some(scan) = self.scan_values(*property, range, false)? else { return Ok(None) };
            if !collect_values(scan, &mut left, &mut found)? {
                return Ok(None);
            }
        }
        Ok((!values.is_empty()).then_some(found))
    }

    /// Begins to read the subjects that may have a literal. `None` for another object, or without an index of values.
    fn scan_having(&self, having: &Having) -> Result<Option<ValueScan<'_>>, Error> {
        let predicate = Input::new(&having.predicate).read_number();
        let (Some(values), Some(predicate)) = (&having.values, predicate) else { return Ok(None) };
        self.scan_values(predicate, values, false)
    }

    /// Continues a walk by a stretch.
    fn walk_names(
        &self,
        wanted: &CompiledFilter,
        walk: &mut Walk,
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
        if let Some(after) = &walk.after {
            start.extend_from_slice(after.as_bytes());
            // The first name that sorts after it.
            start.push(0);
        }
        let cost_of_all = if walk.among.is_some() { 1 } else { cost };
        let most = MAX_STRETCH_COST.div_ceil(cost_of_all).min(walk.batch);
        walk.batch = walk.batch.saturating_mul(2);
        let names = self.runs.list_names(&prefix, &start, most)?;
        let mut is_end = names.len() < most;
        let mut left = MAX_STRETCH_COST;
        for (at, (key, id)) in names.iter().enumerate() {
            let name = key.get(prefix.len()..).unwrap_or_default();
            let iri = std::str::from_utf8(name).map_err(|_| damaged_entry("an IRI", name))?;
            walk.passed += 1;
            let is_sought = walk.among.as_ref().is_none_or(|among| among.contains(id));
            let subject = Code::from_id(*id);
            let there = is_sought
                && match &wanted.graph {
                    Some(_) => self.has_all_values(wanted, subject.id())?,
                    None => self.satisfies_filter(wanted, subject.id())?,
                };
            if there && visit(iri, *id).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            left = left.saturating_sub(if is_sought { cost } else { 1 });
            if left == 0 || at + 1 == names.len() {
                walk.after = Some(iri.to_owned());
                is_end &= at + 1 == names.len();
                break;
            }
        }
        Ok(if is_end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

/// Adds the ids of the subjects. Returns false if there are more entries than are left. A subject may have many.
fn collect_values(
    mut values: ValueScan<'_>,
    left: &mut usize,
    found: &mut BTreeSet<u64>,
) -> Result<bool, Error> {
    while let Some((_, subject)) = values.next_entry()? {
        let Some(rest) = left.checked_sub(1) else { return Ok(false) };
        *left = rest;
        found.insert(subject);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Read as _, Store};
    use oxrdf::{GraphName, Literal, Quad};

    type Belongs = fn(u32) -> bool;

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
    fn subjects_with_a_value_are_listed_by_iri_however_many_there_are() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let graph = GraphName::from(iri("g"));
        let add_values = |subjects: std::ops::Range<u32>| {
            store
                .transact::<_, Error>(|change| {
                    for n in subjects {
                        let graph = if n % 2 == 0 { graph.clone() } else { iri("h").into() };
                        let quad = |property: &str, value: u32| {
                            let value = Literal::from(i64::from(value));
                            Quad::new(subject(n), iri(property), value, graph.clone())
                        };
                        change.insert(quad("level", n % 5).as_ref())?;
                        change.insert(quad("rare", n % 300).as_ref())?;
                    }
                    Ok(())
                })
                .unwrap();
        };
        add_values(0..1_000);
        store.checkpoint().unwrap();
        add_values(1_000..2_000);
        let equal = |value: i64| ValueRange::equal_to(Literal::from(value).as_ref());
        let levels = vec![(iri("level"), equal(3)), (iri("level"), equal(4))];
        let rare = vec![(iri("rare"), equal(8))];
        let unknown = vec![(iri("unknown"), equal(8)), (iri("level"), equal(7))];
        for (having_values, belongs) in
            [(levels, (|n| n % 5 >= 3) as Belongs), (rare, |n| n % 300 == 8), (unknown, |_| false)]
        {
            for graph in [None, Some(graph.clone())] {
                let expected = expected(2_000, |n| belongs(n) && (graph.is_none() || n % 2 == 0));
                let having_values = having_values.clone();
                let filter = SubjectFilter { graph, having_values, ..SubjectFilter::default() };
                let snapshot = store.snapshot().unwrap();
                for limit in [2, 70] {
                    let (mut found, mut after) = (Vec::new(), None::<String>);
                    loop {
                        let page = store.list_subjects(&filter, after.as_deref(), limit).unwrap();
                        assert_eq!(
                            page,
                            snapshot.list_subjects(&filter, after.as_deref(), limit).unwrap()
                        );
                        let Some(last) = page.last() else { break };
                        after = Some(last.as_str().to_owned());
                        found.extend(page);
                    }
                    assert_eq!(found, expected);
                }
                let mut to_read = snapshot.list_to_read(&filter, None, 2_000).unwrap();
                to_read.sort_by(|a, b| a.iri.as_str().cmp(b.iri.as_str()));
                assert_eq!(to_read.into_iter().map(|one| one.iri).collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn a_listing_begins_without_reading_the_many_values_of_few_subjects() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let values = [("a", MAX_COLLECTED_SUBJECTS), ("b", 1)];
        store
            .transact::<_, Error>(|change| {
                for (subject, count) in values {
                    for value in 0..count {
                        let value = Literal::from(value.to_string());
                        let quad = Quad::new(iri(subject), iri("p"), value, iri("g"));
                        change.insert(quad.as_ref())?;
                    }
                }
                let other = Quad::new(iri("c"), iri("p"), iri("o"), iri("g"));
                change.insert(other.as_ref())
            })
            .unwrap();
        let listed = |class| {
            let having_values = vec![(iri("p"), class)];
            let filter = SubjectFilter { having_values, ..SubjectFilter::default() };
            let index = store.inner().lock_index();
            let wanted = index.view().compile_filter(&filter).unwrap().unwrap();
            index.view().collect_rare(&wanted).unwrap().map(|ids| ids.len())
        };
        assert_eq!(listed(ValueRange::of_class(crate::ValueClass::Text)), None);
        assert_eq!(listed(ValueRange::equal_to(Literal::from("0").as_ref())), Some(2));
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
        assert!(index().view().continue_listing(&mut listing, &mut visit).unwrap().is_continue());
        let mut stretches = 1;
        add(&store, 2_000..4_000);
        while index().view().continue_listing(&mut listing, &mut visit).unwrap().is_continue() {
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
