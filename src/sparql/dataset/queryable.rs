//! How spareval reads a dataset: the quads of a pattern, the graphs, and the terms.
use super::value_scan::ValueScan;
use super::{Dataset, unwrap};
use crate::condition::Conditions;
use crate::delta::CodedDelta;
use crate::internal_term::InternalTerm;
use oxrdf::{BlankNode, Term};
use penstock_store::{CodedQuad, CodedQuads, Error};
use spareval::{ExpressionTerm, InternalQuad, QueryableDataset};
use std::collections::HashSet;
use std::convert::Infallible;
use std::rc::Rc;

/// Which quads of a scan belong to the graphs that a pattern reads.
enum GraphFilter {
    /// The quads of the default graph, each triple once.
    Default(Seen),
    /// The quads of all named graphs.
    Named,
    /// All: the pattern has one named graph.
    Single,
}

/// The triples that were returned. Quads of the store that differ only in the graph follow each other, so the last triple
/// is enough without a delta.
enum Seen {
    Last(Option<[InternalTerm; 3]>),
    All(HashSet<[InternalTerm; 3]>),
}

impl Seen {
    /// Adds a triple. Returns false if it was there.
    fn add(&mut self, triple: [&InternalTerm; 3]) -> bool {
        match self {
            // The objects first: they differ most often.
            Self::Last(Some([subject, predicate, object]))
                if [&*object, &*subject, &*predicate] == [triple[2], triple[0], triple[1]] =>
            {
                false
            }
            Self::Last(last) => {
                *last = Some(triple.map(InternalTerm::clone));
                true
            }
            Self::All(seen) => seen.insert(triple.map(InternalTerm::clone)),
        }
    }
}

/// Quads of the store.
#[expect(
    clippy::large_enum_variant,
    reason = "each lookup of a join creates one, and an allocation would cost more"
)]
enum StoredQuads<'s> {
    /// All that match a pattern.
    All(CodedQuads<'s>),
    /// Those of a property that the index of values finds.
    ByValue(Box<ValueScan<'s>>),
}

impl StoredQuads<'_> {
    fn next_with_checks(&mut self, check: &mut dyn FnMut()) -> Option<Result<CodedQuad, Error>> {
        match self {
            Self::All(quads) => quads.next_with_checks(check),
            Self::ByValue(scan) => scan.next_with_checks(check),
        }
    }
}

/// The quads of a pattern.
struct Quads<'s> {
    dataset: &'s Dataset<'s>,
    filter: GraphFilter,
    stored: Option<StoredQuads<'s>>,
    added: std::vec::IntoIter<[InternalTerm; 4]>,
    /// Whether to return the one quad of a check.
    is_check: bool,
    /// The conditions of the pattern, with their name.
    conditions: Option<(InternalTerm, Rc<Conditions>)>,
}

impl Quads<'_> {
    fn next_quad(&mut self) -> Option<[InternalTerm; 4]> {
        if let Some(stored) = &mut self.stored {
            let budget = self.dataset.budget;
            while let Some(quad) = stored.next_with_checks(&mut || budget.check()) {
                budget.check();
                let quad = unwrap(quad).map(InternalTerm::Stored);
                match &self.dataset.delta {
                    Some(delta) if delta.is_removed(&quad) => {}
                    _ => return Some(quad),
                }
            }
            self.stored = None;
        }
        self.dataset.budget.check();
        self.added.next()
    }
}

impl Iterator for Quads<'_> {
    type Item = Result<InternalQuad<InternalTerm>, Infallible>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_check {
            self.is_check = false;
            self.dataset.budget.check();
            let [subject, predicate, object] = [const { InternalTerm::Check }; 3];
            let graph_name = Some(InternalTerm::Check);
            return Some(Ok(InternalQuad { subject, predicate, object, graph_name }));
        }
        loop {
            let [subject, predicate, object, graph] = self.next_quad()?;
            let graph_name = (graph != InternalTerm::DEFAULT_GRAPH).then_some(graph);
            if let Some((_, conditions)) = &self.conditions
                && self.dataset.excludes(conditions, &object)
            {
                continue;
            }
            match &mut self.filter {
                GraphFilter::Single => {}
                GraphFilter::Named => match &graph_name {
                    Some(graph) if self.dataset.graphs.is_named(graph) => {}
                    _ => continue,
                },
                GraphFilter::Default(seen) => {
                    if !self.dataset.graphs.is_default(graph_name.as_ref()) {
                        continue;
                    }
                    if !seen.add([&subject, &predicate, &object]) {
                        continue;
                    }
                }
            }
            let mut quad = InternalQuad { subject, predicate, object, graph_name };
            match &self.conditions {
                Some((name, conditions)) if conditions.property.is_some() => {
                    quad.predicate = name.clone();
                }
                Some((name, _)) => quad.graph_name = Some(name.clone()),
                None => {}
            }
            return Some(Ok(quad));
        }
    }
}

impl<'s> QueryableDataset<'s> for &'s Dataset<'s> {
    type InternalTerm = InternalTerm;
    type Error = Infallible;

    fn internal_quads_for_pattern(
        &self,
        subject: Option<&InternalTerm>,
        predicate: Option<&InternalTerm>,
        object: Option<&InternalTerm>,
        graph_name: Option<Option<&InternalTerm>>,
    ) -> impl Iterator<Item = Result<InternalQuad<InternalTerm>, Infallible>> + use<'s> {
        let dataset: &'s Dataset<'s> = self;
        let is_check = matches!(graph_name, Some(Some(InternalTerm::Check)));
        let conditions = dataset.find_conditions(predicate, graph_name.flatten());
        let met = conditions.as_ref().map(|(_, conditions)| conditions);
        let property = met.and_then(|conditions| conditions.property.clone());
        let only_object = met.and_then(|conditions| conditions.find_object().cloned());
        let is_graph = conditions.is_some() && property.is_none();
        let graph_name = if is_graph { Some(None) } else { graph_name };
        let predicate = property.as_ref().or(predicate);
        let object = object.or(only_object.as_ref());
        let mut quads = Quads {
            dataset,
            filter: GraphFilter::Single,
            stored: None,
            added: Vec::new().into_iter(),
            is_check,
            conditions,
        };
        let graph = match graph_name {
            _ if is_check => return quads,
            Some(Some(graph)) if dataset.graphs.is_named(graph) => Some(graph),
            Some(Some(_)) => return quads,
            Some(None) => {
                quads.filter = GraphFilter::Default(match dataset.delta {
                    None => Seen::Last(None),
                    Some(_) => Seen::All(HashSet::new()),
                });
                match dataset.graphs.default.as_deref() {
                    Some([graph]) => Some(graph),
                    Some([]) => return quads,
                    _ => None,
                }
            }
            None => {
                quads.filter = GraphFilter::Named;
                match dataset.graphs.named.as_deref() {
                    Some([graph]) => Some(graph),
                    Some([]) => return quads,
                    _ => None,
                }
            }
        };
        let (stored, added) = dataset.scan(subject, predicate, object, graph);
        quads.added = added.into_iter();
        quads.stored = stored.map(|stored| {
            let by_value = match (&quads.conditions, subject, object) {
                (Some((_, conditions)), None, None) => dataset.scan_values(conditions, graph),
                _ => None,
            };
            match by_value {
                Some(scan) => StoredQuads::ByValue(Box::new(scan)),
                None => StoredQuads::All(stored),
            }
        });
        quads
    }

    fn internal_named_graphs(
        &self,
    ) -> impl Iterator<Item = Result<InternalTerm, Infallible>> + use<'s> {
        let graphs: HashSet<_> = if let Some(named) = &self.graphs.named {
            named.iter().cloned().collect()
        } else {
            let stored = unwrap(self.codes.list_graphs()).into_iter().map(InternalTerm::Stored);
            let added = self.delta.iter().flat_map(CodedDelta::added_graphs);
            stored.chain(added).filter(|graph| self.has_graph(graph)).collect()
        };
        graphs.into_iter().map(Ok)
    }

    fn contains_internal_graph_name(&self, graph: &InternalTerm) -> Result<bool, Infallible> {
        let is_listed = match &self.graphs.named {
            Some(named) => named.contains(graph),
            None => self.has_graph(graph),
        };
        let is_own = matches!(graph, InternalTerm::Check | InternalTerm::Conditions(_));
        Ok(is_listed || is_own)
    }

    fn internalize_term(&self, term: Term) -> Result<InternalTerm, Infallible> {
        Ok(self.encode(term))
    }

    fn externalize_term(&self, term: InternalTerm) -> Result<Term, Infallible> {
        if let Some(returned) = self.returned.borrow_mut().as_mut() {
            self.budget.check_term();
            returned.push(term);
            return Ok(BlankNode::new_from_unique_id(0).into());
        }
        Ok(self.decode(&term))
    }

    fn externalize_expression_term(
        &self,
        term: InternalTerm,
    ) -> Result<ExpressionTerm, Infallible> {
        Ok(self.decode_expression(&term))
    }
}

impl Dataset<'_> {
    /// Returns whether a named graph of the request has quads.
    fn has_graph(&self, graph: &InternalTerm) -> bool {
        self.budget.check();
        let (stored, added) = self.scan(None, None, None, Some(graph));
        let is_removed = |quad: &[InternalTerm; 4]| {
            self.delta.as_ref().is_some_and(|delta| delta.is_removed(quad))
        };
        self.graphs.is_named(graph)
            && (!added.is_empty()
                || stored.is_some_and(|mut quads| {
                    quads.any(|quad| !is_removed(&unwrap(quad).map(InternalTerm::Stored)))
                }))
    }
}
