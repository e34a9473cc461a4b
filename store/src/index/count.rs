//! Counting the triples of a pattern. Quads that differ only in the graph are one triple.
use super::View;
use super::key::tree;
use super::key_scan::{KeyScan, build_prefix};
use super::quad_scan::{QuadScan, list_graphs};
use super::term_code::TermCode;
use crate::Error;
use crate::varint;

/// The number of keys that are read between two checks.
const KEYS_PER_CHECK: u64 = 1_024;
/// The maximum number of graphs whose subjects are merged. Each of them has a block in memory.
const MAX_MERGED_GRAPHS: usize = 16;

/// The subjects of a graph, in order.
struct GraphSubjects<'a> {
    keys: KeyScan<'a>,
    /// The current subject, and the number of its quads in the graph. `None` at the end.
    current: Option<(u64, u64)>,
}

impl<'a> GraphSubjects<'a> {
    fn new(view: &View<'a>, graph: u64) -> Result<Self, Error> {
        let keys = KeyScan::new(view.blocks, build_prefix(tree::GS, &[graph], None));
        let mut subjects = Self { keys, current: None };
        subjects.advance()?;
        Ok(subjects)
    }

    fn advance(&mut self) -> Result<(), Error> {
        let has_more = self.keys.advance()?;
        self.current =
            if has_more { Some((self.keys.read_number()?, self.keys.read_value()?)) } else { None };
        Ok(())
    }
}

impl View<'_> {
    /// Counts the triples that have these terms as subject, predicate and object. Calls `check` now and then.
    pub(crate) fn count_triples(
        &self,
        terms: [Option<&TermCode>; 3],
        check: &mut dyn FnMut(),
    ) -> Result<u64, Error> {
        self.track_damage(|| {
            if terms.iter().all(Option::is_none) {
                let graphs = list_graphs(self)?;
                if graphs.len() <= MAX_MERGED_GRAPHS {
                    return self.count_all_triples(&graphs, check);
                }
            }
            self.count_by_scan(terms, check)
        })
    }

    /// Counts all triples. The index has the number of quads of each subject in each graph, so only subjects in several
    /// graphs are read.
    fn count_all_triples(&self, graphs: &[u64], check: &mut dyn FnMut()) -> Result<u64, Error> {
        let graphs = graphs.iter().map(|graph| GraphSubjects::new(self, *graph));
        let mut graphs = graphs.collect::<Result<Vec<_>, _>>()?;
        let (mut read, mut triples) = (0_u64, 0);
        while let Some(subject) = graphs.iter().filter_map(|graph| Some(graph.current?.0)).min() {
            read += 1;
            if read.is_multiple_of(KEYS_PER_CHECK) {
                check();
            }
            let (mut found, mut quads) = (0, 0);
            for graph in &mut graphs {
                if let Some((current, count)) = graph.current
                    && current == subject
                {
                    found += 1;
                    quads += count;
                    graph.advance()?;
                }
            }
            triples += match found {
                1 => quads,
                _ => self.count_by_scan([Some(&TermCode::from_id(subject)), None, None], check)?,
            };
        }
        Ok(triples)
    }

    fn count_by_scan(
        &self,
        [subject, predicate, object]: [Option<&TermCode>; 3],
        check: &mut dyn FnMut(),
    ) -> Result<u64, Error> {
        let Some(mut scan) = QuadScan::of_codes(self, [subject, predicate, object, None]) else {
            return Ok(0);
        };
        let (mut read, mut triples) = (0_u64, 0);
        let mut last = Vec::new();
        while scan.advance()? {
            read += 1;
            if read.is_multiple_of(KEYS_PER_CHECK) {
                check();
            }
            let Some(graph) = scan.find_match()? else { continue };
            // The graph is the end of the key.
            let graph_bytes = varint::encode_number(graph, <[u8]>::len);
            let key = scan.key();
            let triple = key.get(..key.len() - graph_bytes).unwrap_or_default();
            if last != triple {
                last.clear();
                last.extend_from_slice(triple);
                triples += 1;
            }
        }
        Ok(triples)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Error, Options, Snapshot, Store, TermCode};
    use oxrdf::{GraphName, Literal, NamedNode, Quad};
    use std::collections::HashSet;

    fn iri(name: &str) -> NamedNode {
        NamedNode::new_unchecked(format!("https://example.org/{name}"))
    }

    /// Counts by reading all quads.
    fn count(snapshot: &Snapshot, [s, p, o]: [Option<&TermCode>; 3]) -> u64 {
        let quads = snapshot.codes().scan_codes([s, p, o, None]).map(Result::unwrap);
        quads.map(|[s, p, o, _]| [s, p, o]).collect::<HashSet<_>>().len() as u64
    }

    #[test]
    fn quads_that_differ_only_in_the_graph_count_once() {
        for graphs in [1_u32, 3, 20] {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
            let insert = |t: &mut crate::Transaction<'_>| -> Result<(), Error> {
                for n in 0..2_000_u32 {
                    let subject = iri(&format!("s{}", n % 700));
                    let object = Literal::from(n % 5);
                    let class = iri(&format!("class{}", n % 3));
                    let graph: GraphName = match n % graphs {
                        0 => GraphName::DefaultGraph,
                        graph => iri(&format!("g{graph}")).into(),
                    };
                    for quad in [
                        Quad::new(subject.clone(), iri("value"), object, graph.clone()),
                        Quad::new(subject, iri("type"), class, graph),
                    ] {
                        t.insert(quad.as_ref())?;
                    }
                }
                Ok(())
            };
            store.transact(insert).unwrap();
            let snapshot = store.snapshot().unwrap();
            let codes = snapshot.codes();
            let code = |name: &str| codes.find_code(iri(name).as_ref().into()).unwrap().unwrap();
            let literal = Literal::from(3);
            let literal = codes.find_code(literal.as_ref().into()).unwrap().unwrap();
            let (subject, value, class) = (code("s1"), code("value"), code("class1"));
            for terms in [
                [None, None, None],
                [Some(&subject), None, None],
                [Some(&subject), Some(&value), None],
                [None, Some(&value), None],
                [None, Some(&value), Some(&literal)],
                [None, None, Some(&literal)],
                [None, None, Some(&class)],
                [Some(&literal), None, None],
            ] {
                let counted = codes.count_triples(terms, &mut || ()).unwrap();
                assert_eq!(counted, count(&snapshot, terms), "{graphs} {terms:?}");
            }
        }
    }
}
