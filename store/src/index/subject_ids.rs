//! Listing subjects in the order of their ids, in which the quads of one follow those of the other.
//!
//! The ids of few subjects that match some part of the filter are collected. Otherwise they are those of a named object, or
//! of the graph. A filter by literals that many subjects have is answered in the order of IRIs, as is one without parts.
use super::block_source::ReadEntries as _;
use super::key::{Code, KeyBuffer, build_key, tree};
use super::key_scan::KeyScan;
use super::subjects::CompiledFilter;
use super::{BlockHint, View};
use crate::read::collect_first;
use crate::{Error, ListedSubject, SubjectFilter, term};
use oxrdf::NamedNode;

/// Returns the next id; `None` at the end.
type NextId<'n> = dyn FnMut() -> Result<Option<u64>, Error> + 'n;

/// The number of subjects that are tested between looks at the clock.
const TESTED_PER_TIME_CHECK: usize = 256;

impl View<'_> {
    /// Lists the subjects that satisfy `filter`: see [`crate::Read::list_to_read`].
    pub(crate) fn list_to_read(
        &self,
        filter: &SubjectFilter,
        after: Option<&ListedSubject>,
        limit: usize,
    ) -> Result<Vec<ListedSubject>, Error> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        self.track_damage(|| {
            let Some(mut rest) = self.compile_filter(filter)? else { return Ok(Vec::new()) };
            let next = match after {
                Some(after) if after.instance != self.instance => return Err(Error::Reopening),
                Some(after) => after.id + 1,
                None => 0,
            };
            if let Some(ids) = self.collect_rare(&rest)? {
                let mut ids = ids.range(next..);
                return self.list_ids(&rest, limit, &mut || Ok(ids.next().copied()));
            }
            let Some(mut prefix) = take_prefix(&mut rest) else {
                return self.list_by_iri(filter, after.map(|after| after.iri.as_str()), limit);
            };
            let prefix_bytes = prefix.len();
            prefix.extend_number(next);
            let mut keys = KeyScan::new(self.blocks, (prefix, prefix_bytes));
            let mut last = None;
            self.list_ids(&rest, limit, &mut || {
                while keys.advance()? {
                    let id = keys.read_number()?;
                    // Once for each graph.
                    if last.replace(id) != Some(id) {
                        return Ok(Some(id));
                    }
                }
                Ok(None)
            })
        })
    }

    /// Lists those of these subjects that satisfy the rest of a filter.
    fn list_ids(
        &self,
        rest: &CompiledFilter,
        limit: usize,
        next_id: &mut NextId<'_>,
    ) -> Result<Vec<ListedSubject>, Error> {
        let (mut found, mut hint) = (Vec::new(), BlockHint::default());
        let mut tested = 0_usize;
        while found.len() < limit
            && let Some(id) = next_id()?
        {
            if tested.is_multiple_of(TESTED_PER_TIME_CHECK) {
                rest.check_time()?;
            }
            tested += 1;
            if self.satisfies_rest(rest, id)?
                && let Some(iri) = term::to_predicate(self.read_stored_name(id, &mut hint)?)
            {
                found.push(ListedSubject { iri, id, instance: self.instance });
            }
        }
        Ok(found)
    }

    fn satisfies_rest(&self, rest: &CompiledFilter, id: u64) -> Result<bool, Error> {
        if rest.graph.is_none() && rest.having.is_empty() {
            return Ok(true);
        }
        let subject = Code::from_id(id);
        if let Some(graph) = &rest.graph
            && self.blocks.get(&build_key(tree::GS, &[graph, subject.id()]), |_| ())?.is_none()
        {
            return Ok(false);
        }
        self.has_all_values(rest, subject.id())
    }

    /// Lists the subjects that satisfy `filter`: see [`crate::Read::list_subjects`].
    pub(crate) fn list_by_iri(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ListedSubject>, Error> {
        collect_first(limit, |found| {
            self.visit_subjects(filter, after, &mut |iri, id| {
                let iri = NamedNode::new_unchecked(iri);
                found(ListedSubject { iri, id, instance: self.instance })
            })
        })
    }
}

/// Removes a part of the filter whose subjects are in the order of their ids. Returns what their keys begin with.
fn take_prefix(filter: &mut CompiledFilter) -> Option<KeyBuffer> {
    if let Some(at) = filter.having.iter().position(|having| having.object.is_named()) {
        let having = filter.having.swap_remove(at);
        let mut prefix = KeyBuffer::new(tree::POSG);
        // All parts of a quad fit.
        let _ = prefix.extend(&having.predicate) && prefix.extend(&having.object.0);
        return Some(prefix);
    }
    let graph = filter.graph.take()?;
    let mut prefix = KeyBuffer::new(tree::GS);
    prefix.extend(&graph);
    Some(prefix)
}

#[cfg(test)]
mod tests {
    use crate::{Error, ListedSubject, Options, Read, Store, SubjectFilter, SubjectQuads};
    use oxrdf::{GraphName, Literal, NamedNode, NamedNodeRef, Quad, Term, TermRef};
    use std::collections::BTreeSet;
    use std::time::{Duration, Instant};

    fn iri(name: &str) -> NamedNode {
        NamedNode::new_unchecked(format!("https://example.org/{name}"))
    }

    /// Adds subjects whose ids are in another order than their IRIs. More have an object than are collected.
    fn add(store: &Store) {
        let add = |change: &mut crate::Transaction<'_>| -> Result<(), Error> {
            for n in 0..10_500_u32 {
                let subject = iri(&format!("{:08x}", n.wrapping_mul(0x9e37_79b9)));
                let graph =
                    |is_in: bool| if is_in { iri("g").into() } else { GraphName::DefaultGraph };
                let rare = iri(if n % 50 == 0 { "rare" } else { "other" });
                let mut insert = |predicate: &str, object: Term, graph: GraphName| {
                    change
                        .insert(Quad::new(subject.clone(), iri(predicate), object, graph).as_ref())
                };
                insert("type", iri("Thing").into(), graph(true))?;
                insert("type", iri("Thing").into(), graph(false))?;
                insert("state", Literal::from("RUN").into(), graph(n % 3 == 0))?;
                insert("link", rare.into(), graph(n % 3 == 0))?;
            }
            Ok(())
        };
        store.transact(add).unwrap();
    }

    fn to_texts<'q>(
        quads: impl Iterator<Item = (NamedNodeRef<'q>, TermRef<'q>)>,
    ) -> BTreeSet<String> {
        quads.map(|(predicate, object)| format!("{predicate} {object}")).collect()
    }

    #[test]
    fn a_listing_ends_at_its_deadline() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        add(&store);
        // Too many have each of the values for them to be collected.
        let having = [("type", "Thing"), ("link", "other")];
        let having = having.map(|(predicate, object)| (iri(predicate), Term::from(iri(object))));
        let filter = SubjectFilter {
            graph: Some(iri("g").into()),
            having: having.into(),
            deadline: Some(Instant::now()),
            ..SubjectFilter::default()
        };
        let snapshot = store.snapshot().unwrap();
        let listed = [
            snapshot.list_subjects(&filter, None, 1).map(drop),
            snapshot.list_to_read(&filter, None, 1).map(drop),
            store.list_subjects(&filter, None, 1).map(drop),
        ];
        assert!(listed.iter().all(|one| matches!(one, Err(Error::TimedOut))), "{listed:?}");
        let later = Some(Instant::now() + Duration::from_mins(1));
        let filter = SubjectFilter { deadline: later, ..filter };
        assert_eq!(snapshot.list_subjects(&filter, None, 1).unwrap().len(), 1);
        assert_eq!(snapshot.list_to_read(&filter, None, 1).unwrap().len(), 1);
    }

    #[test]
    fn every_subject_is_listed_once_and_read_as_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        add(&store);
        let snapshot = store.snapshot().unwrap();
        let graph = || Some(GraphName::from(iri("g")));
        let thing = || (iri("type"), Term::from(iri("Thing")));
        let running = || (iri("state"), Term::from(Literal::from("RUN")));
        let rare = || (iri("link"), Term::from(iri("rare")));
        for (graph, having) in [
            (graph(), vec![]),
            (graph(), vec![rare()]),
            (graph(), vec![running()]),
            (None, vec![thing()]),
            (None, vec![thing(), running()]),
            (None, vec![rare(), thing()]),
            (None, vec![running()]),
            (None, vec![]),
            (Some(iri("none").into()), vec![]),
        ] {
            let filter = SubjectFilter { graph, having, ..SubjectFilter::default() };
            let (mut found, mut after) = (Vec::new(), None::<ListedSubject>);
            loop {
                let page = snapshot.list_to_read(&filter, after.as_ref(), 700).unwrap();
                let Some(last) = page.last() else { break };
                after = Some(last.clone());
                found.extend(page);
            }
            let iris: BTreeSet<&str> = found.iter().map(|one| one.iri.as_str()).collect();
            let expected = snapshot.list_subjects(&filter, None, usize::MAX).unwrap();
            assert_eq!(found.len(), expected.len(), "{filter:?}");
            assert!(expected.iter().all(|iri| iris.contains(iri.as_str())), "{filter:?}");
            let mut few = SubjectQuads::limited_to(vec![iri("link"), iri("nothing"), iri("state")]);
            let mut all = SubjectQuads::default();
            for one in found.iter().step_by(97) {
                snapshot.read_listed(one, &mut few).unwrap();
                snapshot.read_subject(one.iri.as_ref().into(), &mut all).unwrap();
                let wanted = all.iter().filter(|(predicate, _)| *predicate != iri("type"));
                assert_eq!(few.iter().count(), 2);
                assert_eq!(to_texts(few.iter()), to_texts(wanted));
                let graph = GraphName::from(iri("g"));
                let quads = snapshot.quads_about(&one.iri.clone().into()).unwrap();
                let mut few_quads = quads.iter().filter(|quad| quad.predicate != iri("type"));
                let is_in_graph = few_quads.any(|quad| quad.graph_name == graph);
                assert_eq!(few.is_in_graph(graph.as_ref()), is_in_graph);
            }
        }
        let other = ListedSubject::from(iri("other"));
        let filter = SubjectFilter { graph: graph(), having: vec![], ..SubjectFilter::default() };
        assert!(matches!(snapshot.list_to_read(&filter, Some(&other), 1), Err(Error::Reopening)));
    }
}
