//! The store as spareval reads it: quads as codes. A term is decoded only if a result or an expression needs it.
//!
//! Errors of the store abort the request, see [`crate::budget`]. So do exceeded limits: each quad that is read and each
//! term that is converted is a check.
mod conditions;
mod estimate;
mod queryable;
mod statistics;
mod value_order;
mod value_scan;
pub(crate) mod value_source;

pub(crate) use statistics::{FAR_LOOKUP, Statistics, to_float};

use crate::budget::Budget;
use crate::condition::Conditions;
use crate::delta::CodedDelta;
use crate::form::{restore_form, to_expression_term};
use crate::graphs::Graphs;
use crate::internal_term::{CHECK, InternalTerm, to_conditions};
use oxrdf::vocab::xsd;
use oxrdf::{NamedNodeRef, Term};
use penstock_base::unwind::abort;
use penstock_rdf::number::check_float;
use penstock_store::{CodeReader, CodedQuads, Error, TermCode};
use spareval::{ExpressionTerm, QuerySolution};
use spargebra::term::NamedNodePattern;
use statistics::Estimates;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

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
