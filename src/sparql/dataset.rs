//! The store as spareval reads it: quads as codes. A term is decoded only if a result or an expression needs it.
//!
//! Errors of the store abort the request, see [`crate::budget`]. So do exceeded limits: each quad that is read and each
//! term that is converted is a check.
mod conditions;
mod statistics;
mod value_order;
mod value_scan;

pub(crate) use statistics::{FAR_LOOKUP, Statistics, to_float};
pub(crate) use value_scan::ValueSource;

use crate::budget::Budget;
use crate::delta::CodedDelta;
use crate::form::{restore_form, to_expression_term};
use crate::graphs::Graphs;
use crate::internal_term::{CHECK, InternalTerm, to_conditions};
use conditions::Conditions;
use oxrdf::vocab::xsd;
use oxrdf::{BlankNode, NamedNodeRef, Term};
use penstock_base::unwind::abort;
use penstock_rdf::number::check_float;
use penstock_store::{CodeReader, CodedQuad, CodedQuads, Error, TermCode};
use spareval::{ExpressionTerm, InternalQuad, QuerySolution, QueryableDataset};
use spargebra::term::NamedNodePattern;
use statistics::Estimates;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::rc::Rc;
use value_scan::ValueScan;

/// Terms that the request names or computes and that no quad of the store can have.
#[derive(Default)]
struct Computed {
    terms: Vec<Term>,
    numbers: HashMap<Term, u32>,
}

/// A state of the store and the graphs that a request reads.
pub(crate) struct Dataset<'s> {
    /// The terms of a row that the evaluator returns undecoded, see [`Self::return_codes`].
    returned: RefCell<Option<Vec<InternalTerm>>>,
    codes: CodeReader<'s>,
    budget: &'s Budget,
    graphs: Graphs,
    /// What the request itself has changed.
    delta: Option<CodedDelta>,
    computed: RefCell<Computed>,
    /// The conditions of patterns, by their number.
    conditions: RefCell<Vec<Rc<Conditions>>>,
    estimates: Estimates,
    number_types: OnceCell<[(Option<TermCode>, NumberType); 3]>,
    /// Whether expressions see the form of literals, see [`Self::keep_forms`].
    keeps_forms: Cell<bool>,
}

#[derive(Clone, Copy)]
enum NumberType {
    Integer,
    Decimal,
    Double,
}

impl<'s> Dataset<'s> {
    /// Creates a dataset of all graphs.
    pub(crate) fn new(codes: CodeReader<'s>, budget: &'s Budget) -> Self {
        Self {
            returned: RefCell::default(),
            codes,
            budget,
            graphs: Graphs::default(),
            delta: None,
            computed: RefCell::default(),
            conditions: RefCell::default(),
            estimates: Estimates::default(),
            number_types: OnceCell::new(),
            keeps_forms: Cell::new(false),
        }
    }

    /// Restricts the graphs that patterns read.
    pub(crate) fn set_graphs(&mut self, graphs: Graphs) {
        self.graphs = graphs;
    }

    /// Adds changes that are not in the store.
    pub(crate) fn set_delta(&mut self, delta: CodedDelta) {
        self.delta = Some(delta);
    }

    /// Makes the evaluator return rows with placeholders, for [`Self::take_codes`].
    pub(crate) fn return_codes(&self) {
        self.returned.replace(Some(Vec::new()));
    }

    /// Makes the evaluator return terms again.
    pub(crate) fn return_terms(&self) {
        self.returned.replace(None);
    }

    /// Returns the terms of a row in place of its placeholders. It must be the row that was returned last.
    pub(crate) fn take_codes(&self, row: &QuerySolution) -> Vec<Option<InternalTerm>> {
        let mut returned = self.returned.borrow_mut();
        let mut terms = returned.iter_mut().flat_map(|terms| terms.drain(..));
        row.values().iter().map(|value| value.as_ref().and_then(|_| terms.next())).collect()
    }

    /// Returns the graph that patterns read within a name of GRAPH, or outside of it, if it is one graph.
    pub(crate) fn find_graph(&self, name: Option<&NamedNodePattern>) -> Option<TermCode> {
        let graphs = match name {
            Some(NamedNodePattern::NamedNode(graph)) => {
                Some(vec![self.encode(graph.clone().into())])
            }
            Some(NamedNodePattern::Variable(_)) => self.graphs.named.clone(),
            None => self.graphs.default.clone(),
        };
        match graphs.as_deref() {
            Some([InternalTerm::Stored(code)]) => Some(code.clone()),
            _ => None,
        }
    }

    /// Checks the limits of the request.
    pub(crate) fn check_limits(&self) {
        self.budget.check();
    }

    /// Lets expressions see literals in the form in which they are stored. The evaluator then computes with the canonical
    /// ones only; [`crate::operators`] does with all.
    pub(crate) fn keep_forms(&self) {
        self.keeps_forms.set(true);
    }

    /// Returns the internal form of a term.
    pub(crate) fn encode(&self, term: Term) -> InternalTerm {
        self.budget.check();
        let term = restore_form(term);
        if matches!(&term, Term::NamedNode(node) if node.as_ref() == CHECK) {
            return InternalTerm::Check;
        }
        if let Term::NamedNode(node) = &term
            && let Some(number) = to_conditions(node)
        {
            return InternalTerm::Conditions(number);
        }
        if let Some(code) = unwrap(self.codes.find_code(term.as_ref())) {
            return InternalTerm::Stored(code);
        }
        let mut computed = self.computed.borrow_mut();
        if let Some(number) = computed.numbers.get(&term) {
            return InternalTerm::Computed(*number);
        }
        let number = u32::try_from(computed.terms.len()).unwrap_or(u32::MAX);
        computed.terms.push(term.clone());
        computed.numbers.insert(term, number);
        InternalTerm::Computed(number)
    }

    /// Returns the term of an internal form.
    pub(crate) fn decode(&self, term: &InternalTerm) -> Term {
        self.budget.check_term();
        match term {
            InternalTerm::Stored(code) => unwrap(self.codes.decode_code(code)),
            InternalTerm::Computed(number) => {
                let computed = self.computed.borrow();
                match computed.terms.get(*number as usize) {
                    Some(term) => term.clone(),
                    None => CHECK.into_owned().into(),
                }
            }
            InternalTerm::Check | InternalTerm::Conditions(_) => CHECK.into_owned().into(),
        }
    }

    /// Returns the value of an internal form.
    pub(crate) fn decode_value(&self, term: &InternalTerm) -> ExpressionTerm {
        self.decode_number(term).unwrap_or_else(|| to_expression_term(self.decode(term), false))
    }

    /// Returns an internal form as expressions see it.
    fn decode_expression(&self, term: &InternalTerm) -> ExpressionTerm {
        if !self.keeps_forms.get() || term.is_name() {
            return self.decode_value(term);
        }
        let InternalTerm::Stored(code) = term else {
            return to_expression_term(self.decode(term), true);
        };
        match self.decode_number(term) {
            Some(value)
                if code.typed_literal().is_some_and(|(_, text)| is_canonical(text, &value)) =>
            {
                value
            }
            _ => to_expression_term(self.decode(term), true),
        }
    }

    /// Returns the value of a number of the most frequent types, without its term.
    fn decode_number(&self, term: &InternalTerm) -> Option<ExpressionTerm> {
        let InternalTerm::Stored(code) = term else { return None };
        let (datatype, value) = code.typed_literal()?;
        self.budget.check();
        let number_types = self.number_types.get_or_init(|| {
            let find = |iri: NamedNodeRef<'_>| unwrap(self.codes.find_code(iri.into()));
            [
                (find(xsd::INTEGER), NumberType::Integer),
                (find(xsd::DECIMAL), NumberType::Decimal),
                (find(xsd::DOUBLE), NumberType::Double),
            ]
        });
        let known = number_types.iter().find(|(known, _)| known.as_ref() == Some(&datatype));
        match known?.1 {
            NumberType::Integer => value.parse().ok().map(ExpressionTerm::IntegerLiteral),
            NumberType::Decimal => value.parse().ok().map(ExpressionTerm::DecimalLiteral),
            NumberType::Double => {
                check_float(value)?.parse().ok().map(ExpressionTerm::DoubleLiteral)
            }
        }
    }

    /// Returns the quads of the store and of the delta that match a pattern.
    fn scan(
        &self,
        subject: Option<&InternalTerm>,
        predicate: Option<&InternalTerm>,
        object: Option<&InternalTerm>,
        graph: Option<&InternalTerm>,
    ) -> (Option<CodedQuads<'s>>, Vec<[InternalTerm; 4]>) {
        let pattern = [subject, predicate, object, graph];
        let added = self.delta.as_ref().map(|delta| delta.find_added(pattern)).unwrap_or_default();
        let codes = pattern.map(|term| match term {
            None => Some(None),
            Some(InternalTerm::Stored(code)) => Some(Some(code)),
            Some(_) => None,
        });
        let [Some(subject), Some(predicate), Some(object), Some(graph)] = codes else {
            return (None, added);
        };
        (Some(self.codes.scan_codes([subject, predicate, object, graph])), added)
    }
}

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
            by_value.unwrap_or(StoredQuads::All(stored))
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

/// Returns whether the evaluator writes a number with this text.
fn is_canonical(text: &str, number: &ExpressionTerm) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_whole = |digits: &str| !digits.starts_with(['+', '0']) || text == "0";
    match number {
        ExpressionTerm::IntegerLiteral(_) => is_whole(digits),
        ExpressionTerm::DecimalLiteral(_) => match digits.split_once('.') {
            None => is_whole(digits),
            Some((whole, fraction)) => {
                !fraction.is_empty()
                    && !fraction.ends_with('0')
                    && !whole.is_empty()
                    && (whole == "0" || is_whole(whole))
            }
        },
        ExpressionTerm::DoubleLiteral(value) => value.to_string() == text,
        _ => false,
    }
}

/// Returns the value of a read, or aborts the request.
pub(crate) fn unwrap<T>(result: Result<T, Error>) -> T {
    result.unwrap_or_else(|error| abort(error.into()))
}
