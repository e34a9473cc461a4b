//! The data that is validated, as rudof reads it.
use crate::budget::{Budget, Limits};
use crate::patterns::Pattern;
use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Term, Triple};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::unwind::abort;
use penstock_store::{Pattern as QuadPattern, Read};
use prefixmap::{PrefixMap, PrefixMapError};
use regex::Regex;
use rudof_iri::IriS;
use rudof_rdf::rdf_core::{Any, Matcher, NeighsRDF, Rdf};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::fmt;
use std::ops::{ControlFlow, Deref};
use std::rc::Rc;
use std::sync::Arc;

/// The number of subjects whose triples are kept. A shape reads one subject once for each of its properties.
const KEPT_SUBJECTS: usize = 1000;
/// The number of triples from which a subject is not kept.
const MAX_KEPT_TRIPLES: usize = 1000;
/// The maximum length of all literals of the kept triples, in bytes.
const MAX_KEPT_BYTES: usize = 1 << 20;
/// The maximum number of combinations of the values of one node with the places for them in a `ShEx` shape.
const MAX_COMBINATIONS: usize = 4096;

/// The length of a text from which the clock is read after matching it, in bytes.
const MIN_LONG_TEXT_BYTES: usize = 1 << 10;
/// The maximum product of the length of all values of a node and the size of all regular expressions of a `ShEx` schema.
const MAX_NODE_WORK: u64 = 1 << 33;
/// Preparing an expression for a value costs as much as matching a text of this length.
const PREPARING_BYTES: usize = 64;

/// What the triples that are sought have; `None` is anything.
#[derive(Debug, Clone, Copy, Default)]
pub struct TriplePattern<'p> {
    /// The subject.
    pub subject: Option<&'p NamedOrBlankNode>,
    /// The predicate.
    pub predicate: Option<&'p NamedNode>,
    /// The object.
    pub object: Option<&'p Term>,
}

impl TriplePattern<'_> {
    /// Returns whether a triple has this subject, predicate and object.
    pub(crate) fn matches(self, triple: &Triple) -> bool {
        self.subject.is_none_or(|sought| *sought == triple.subject)
            && self.predicate.is_none_or(|sought| *sought == triple.predicate)
            && self.object.is_none_or(|sought| *sought == triple.object)
    }

    /// Returns the pattern of quads in any graph.
    pub(crate) fn in_any_graph(self) -> QuadPattern {
        QuadPattern {
            subject: self.subject.cloned(),
            predicate: self.predicate.cloned(),
            object: self.object.cloned(),
            graph: None,
        }
    }
}

impl<'p> From<&'p QuadPattern> for TriplePattern<'p> {
    fn from(pattern: &'p QuadPattern) -> Self {
        let QuadPattern { subject, predicate, object, .. } = pattern;
        Self { subject: subject.as_ref(), predicate: predicate.as_ref(), object: object.as_ref() }
    }
}

/// Triples that can be searched. A triple is one of any graph, and is passed once.
pub trait Triples {
    /// Passes the triples that match to `visit`, until it breaks.
    ///
    /// # Errors
    /// If they cannot be read.
    fn for_each(
        &self,
        pattern: TriplePattern<'_>,
        visit: &mut dyn FnMut(Triple) -> ControlFlow<()>,
    ) -> Result<(), GatewayError>;

    /// Returns whether some triple matches.
    ///
    /// # Errors
    /// If they cannot be read.
    fn any(&self, pattern: TriplePattern<'_>) -> Result<bool, GatewayError> {
        let mut found = false;
        self.for_each(pattern, &mut |_| {
            found = true;
            ControlFlow::Break(())
        })?;
        Ok(found)
    }
}

/// The triples of a state of the store, each once whatever the graphs that have it.
#[derive(Debug)]
pub struct StoredTriples<R>(pub R);

impl<P> Triples for P
where
    P: Deref,
    P::Target: Triples,
{
    fn for_each(
        &self,
        pattern: TriplePattern<'_>,
        visit: &mut dyn FnMut(Triple) -> ControlFlow<()>,
    ) -> Result<(), GatewayError> {
        (**self).for_each(pattern, visit)
    }

    fn any(&self, pattern: TriplePattern<'_>) -> Result<bool, GatewayError> {
        (**self).any(pattern)
    }
}

impl<R> Triples for StoredTriples<R>
where
    R: Deref,
    R::Target: Read + Sized,
{
    fn for_each(
        &self,
        pattern: TriplePattern<'_>,
        visit: &mut dyn FnMut(Triple) -> ControlFlow<()>,
    ) -> Result<(), GatewayError> {
        let has_subject = pattern.subject.is_some();
        // Only triples of several graphs can be the same, and most subjects are in one. So those of the graph that comes
        // first need not be remembered.
        let (mut first, mut failed) = (None, None);
        let mut seen = HashSet::new();
        Read::for_each(&*self.0, &pattern.in_any_graph(), &mut |quad| {
            let first: &GraphName = first.get_or_insert_with(|| quad.graph_name.clone());
            if has_subject && *first == quad.graph_name {
                return visit(quad.into());
            }
            let is_in_first = has_subject && {
                let there = QuadPattern {
                    subject: Some(quad.subject.clone()),
                    predicate: Some(quad.predicate.clone()),
                    object: Some(quad.object.clone()),
                    graph: Some(first.clone()),
                };
                match Read::any(&*self.0, &there) {
                    Ok(is_there) => is_there,
                    Err(error) => {
                        failed = Some(error);
                        return ControlFlow::Break(());
                    }
                }
            };
            let triple = Triple::from(quad);
            if !is_in_first && seen.insert(triple.clone()) {
                visit(triple)
            } else {
                ControlFlow::Continue(())
            }
        })?;
        failed.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// What one validation reads, within its limits.
pub struct Data<'t> {
    triples: Box<dyn Triples + 't>,
    budget: Budget,
    /// The triples of the subjects that were read last.
    kept: RefCell<KeptSubjects>,
    /// The regular expressions that were matched, by id, with caches that are dropped with this.
    regexes: RefCell<HashMap<u64, Rc<Regex>>>,
    /// The size of all regular expressions of a `ShEx` schema.
    schema_pattern_bytes: Cell<usize>,
    /// In how many places of a `ShEx` shape the values of a property can be, if it is more than one.
    repeated: RefCell<Arc<HashMap<NamedNode, usize>>>,
}

#[derive(Debug, Default)]
struct KeptSubjects {
    triples: HashMap<NamedOrBlankNode, Rc<[Triple]>>,
    /// The length of their literals.
    bytes: usize,
}

impl KeptSubjects {
    /// Keeps the triples of a subject, unless they are large. Forgets all others when there are too many.
    fn keep(&mut self, subject: &NamedOrBlankNode, triples: &Rc<[Triple]>) {
        let literals = triples.iter().filter_map(|triple| match &triple.object {
            Term::Literal(literal) => Some(literal.value().len()),
            _ => None,
        });
        let bytes = literals.sum::<usize>();
        if triples.len() > MAX_KEPT_TRIPLES || bytes > MAX_KEPT_BYTES {
            return;
        }
        if self.triples.len() >= KEPT_SUBJECTS || self.bytes + bytes > MAX_KEPT_BYTES {
            *self = Self::default();
        }
        self.bytes += bytes;
        self.triples.insert(subject.clone(), triples.clone());
    }
}

impl<'t> Data<'t> {
    /// Begins to count time and memory, on the thread that validates.
    pub fn new(triples: Box<dyn Triples + 't>, limits: Limits) -> Self {
        let budget = Budget::new(limits);
        Self {
            triples,
            budget,
            kept: RefCell::default(),
            regexes: RefCell::default(),
            schema_pattern_bytes: Cell::new(0),
            repeated: RefCell::default(),
        }
    }

    /// Returns whether a text matches a regular expression. Aborts if the text is longer than the expression allows.
    pub(crate) fn is_match(&self, pattern: &Pattern, text: &str) -> bool {
        let max_bytes = pattern.max_text_bytes();
        if text.len() > max_bytes {
            abort(GatewayError::new(
                ErrorClass::Invalid,
                format!(
                    "a value with {} bytes is too long for its sh:pattern, which is for at most {max_bytes}; limit it with sh:maxLength in its place, or simplify the pattern",
                    text.len()
                ),
            ));
        }
        let known = self.regexes.borrow().get(&pattern.id).cloned();
        let regex = known.unwrap_or_else(|| {
            let regex = Rc::new(pattern.regex());
            self.regexes.borrow_mut().insert(pattern.id, regex.clone());
            regex
        });
        let is_match = regex.is_match(text);
        if text.len() > MIN_LONG_TEXT_BYTES {
            self.budget.check_clock().unwrap_or_else(|error| abort(error));
        }
        is_match
    }

    /// Limits the work for the regular expressions of a `ShEx` schema, which have this size together.
    pub(crate) fn limit_schema_patterns(&self, program_bytes: usize) {
        self.schema_pattern_bytes.set(program_bytes);
    }

    /// Checks that matching the values of a node does not take long: they are matched without reading.
    fn check_schema_patterns(&self, node: &dyn fmt::Display, triples: &[Triple]) {
        let program_bytes = self.schema_pattern_bytes.get() as u64;
        if program_bytes == 0 {
            return;
        }
        let length = |triple: &Triple| match &triple.object {
            Term::Literal(literal) => literal.value().len(),
            Term::NamedNode(node) => node.as_str().len(),
            _ => 0,
        };
        let bytes: u64 =
            triples.iter().map(|triple| (length(triple) + PREPARING_BYTES) as u64).sum();
        let max_bytes = MAX_NODE_WORK / program_bytes;
        if bytes > max_bytes {
            abort(GatewayError::new(
                ErrorClass::Invalid,
                format!(
                    "the values of {node} have {bytes} bytes, too many for the regular expressions of the schema, which are for at most {max_bytes} of one object; simplify them"
                ),
            ));
        }
        if bytes > MIN_LONG_TEXT_BYTES as u64 {
            self.budget.check_clock().unwrap_or_else(|error| abort(error));
        }
    }

    /// Limits the combinations of a node's values with the places for them. rudof tries all of them, without reading.
    pub(crate) fn limit_combinations(&self, repeated: Arc<HashMap<NamedNode, usize>>) {
        *self.repeated.borrow_mut() = repeated;
    }

    fn check_combinations(&self, node: &dyn fmt::Display, triples: &[Triple]) {
        let repeated = self.repeated.borrow();
        let places = triples.iter().filter_map(|triple| repeated.get(&triple.predicate));
        let combinations = places.fold(1_usize, |all, places| all.saturating_mul(*places));
        if combinations > MAX_COMBINATIONS {
            let mut names: Vec<&str> = repeated.keys().map(NamedNode::as_str).collect();
            names.sort_unstable();
            abort(GatewayError::new(
                ErrorClass::Invalid,
                format!(
                    "validating {node} needs more than {MAX_COMBINATIONS} combinations of its values, since a shape has several triple constraints for one property; combine those for each of {}, for example with OR",
                    names.join(", ")
                ),
            ));
        }
    }

    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Returns whether some triple matches.
    pub(crate) fn any(&self, pattern: TriplePattern<'_>) -> bool {
        if let Some(subject) = pattern.subject {
            return self.read_subject(subject).iter().any(|triple| pattern.matches(triple));
        }
        self.budget.check_or_abort();
        self.triples.any(pattern).unwrap_or_else(|error| abort(error))
    }

    /// Returns the values of a property of a subject.
    pub(crate) fn objects(&self, subject: &Term, predicate: &NamedNode) -> Vec<Term> {
        let triples = self.read_term(subject);
        let matching = triples.iter().filter(|triple| triple.predicate == *predicate);
        matching.map(|triple| triple.object.clone()).collect()
    }

    /// Returns the triples of a term, of which a literal has none.
    pub(crate) fn read_term(&self, term: &Term) -> Rc<[Triple]> {
        to_subject(term).map_or_else(|| Rc::from([]), |subject| self.read_subject(&subject))
    }

    /// Returns the triples of a subject.
    pub(crate) fn read_subject(&self, subject: &NamedOrBlankNode) -> Rc<[Triple]> {
        self.budget.check_or_abort();
        if let Some(kept) = self.kept.borrow().triples.get(subject) {
            return kept.clone();
        }
        let of_subject = TriplePattern { subject: Some(subject), ..TriplePattern::default() };
        let found: Rc<[Triple]> = self.read(of_subject).into();
        self.kept.borrow_mut().keep(subject, &found);
        found
    }

    /// Reads triples. An error of the store aborts the validation: rudof could take it for "conforms".
    fn read(&self, pattern: TriplePattern<'_>) -> Vec<Triple> {
        let mut found = Vec::new();
        let read = self.triples.for_each(pattern, &mut |triple| {
            self.budget.check_or_abort();
            found.push(triple);
            ControlFlow::Continue(())
        });
        read.unwrap_or_else(|error| abort(error));
        found
    }

    /// Returns the triples that match, for rudof. Checks what it does with those of one node.
    fn list(&self, pattern: TriplePattern<'_>) -> Vec<Triple> {
        if let Some(subject) = pattern.subject {
            let triples = self.read_subject(subject);
            self.check_combinations(subject, &triples);
            self.check_schema_patterns(subject, &triples);
            return triples.iter().filter(|triple| pattern.matches(triple)).cloned().collect();
        }
        let found = self.read(pattern);
        if let Some(object) = pattern.object {
            self.check_combinations(object, &found);
            self.check_schema_patterns(object, &found);
        }
        found
    }
}

pub(crate) fn to_named_node(iri: &IriS) -> NamedNode {
    NamedNode::new_unchecked(iri.as_str())
}

/// Returns the term as a subject; `None` for a literal.
pub fn to_subject(term: &Term) -> Option<NamedOrBlankNode> {
    match term {
        Term::NamedNode(node) => Some(node.clone().into()),
        Term::BlankNode(node) => Some(node.clone().into()),
        _ => None,
    }
}

impl fmt::Debug for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Data").field("budget", &self.budget).finish_non_exhaustive()
    }
}

/// rudof takes only data that borrows nothing.
impl Rdf for Data<'static> {
    type Subject = NamedOrBlankNode;
    type IRI = NamedNode;
    type Term = Term;
    type BNode = BlankNode;
    type Literal = Literal;
    type Triple = Triple;
    type Err = Infallible;

    fn qualify_iri(&self, iri: &NamedNode) -> String {
        iri.to_string()
    }

    fn qualify_subject(&self, subject: &NamedOrBlankNode) -> String {
        subject.to_string()
    }

    fn qualify_term(&self, term: &Term) -> String {
        term.to_string()
    }

    fn prefixmap(&self) -> Option<PrefixMap> {
        None
    }

    fn resolve_prefix_local(&self, prefix: &str, local: &str) -> Result<IriS, PrefixMapError> {
        PrefixMap::default().resolve_prefix_local(prefix, local)
    }
}

impl NeighsRDF for Data<'static> {
    fn triples(&self) -> Result<impl Iterator<Item = Triple>, Infallible> {
        self.triples_matching(&Any, &Any, &Any)
    }

    fn contains<S, P, O>(&self, subject: &S, predicate: &P, object: &O) -> Result<bool, Infallible>
    where
        S: Matcher<NamedOrBlankNode>,
        P: Matcher<NamedNode>,
        O: Matcher<Term>,
    {
        let (subject, predicate, object) = (subject.value(), predicate.value(), object.value());
        Ok(self.any(TriplePattern { subject, predicate, object }))
    }

    fn triples_matching<S, P, O>(
        &self,
        subject: &S,
        predicate: &P,
        object: &O,
    ) -> Result<impl Iterator<Item = Triple> + '_, Infallible>
    where
        S: Matcher<NamedOrBlankNode>,
        P: Matcher<NamedNode>,
        O: Matcher<Term>,
    {
        let (subject, predicate, object) = (subject.value(), predicate.value(), object.value());
        Ok(self.list(TriplePattern { subject, predicate, object }).into_iter())
    }
}
