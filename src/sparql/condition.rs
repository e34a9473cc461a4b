//! What the object of a triple pattern has to meet, see [`crate::prefilter`].
use crate::dataset::value_source::ValueSource;
use crate::internal_term::InternalTerm;
use crate::ranges::ValueSet;
use crate::value::Value;
use oxsdatatypes::{Decimal, Double};
use penstock_store::TermCode;
use spareval::ExpressionTerm;
use std::cell::{OnceCell, RefCell};
use std::cmp::Ordering;
use std::rc::Rc;

/// A condition on a term.
pub(crate) enum Condition {
    /// A number that compares with this one in one of these ways.
    Compares(ExpressionTerm, &'static [Ordering]),
    /// A string that has this text in it.
    Contains(String),
    StartsWith(String),
    EndsWith(String),
    /// This IRI.
    Is(InternalTerm),
    /// A value of this set, if the index of values finds them. Others are left to the evaluator.
    IsIn(ValueSet),
    /// A value that may still be among the first ones of the ordered result.
    IsWithin(Rc<Bound>),
}

impl Condition {
    /// Returns whether a term does not meet the condition. `read_number` reads the term if it is a number of the most
    /// frequent types, `read_value` any term.
    pub(crate) fn excludes(
        &self,
        term: &InternalTerm,
        read_number: impl FnOnce() -> Option<ExpressionTerm>,
        read_value: impl FnOnce() -> ExpressionTerm,
    ) -> bool {
        match self {
            Self::Compares(number, expected) => match read_number() {
                Some(value) => match compare_numbers(&value, number) {
                    Some(ordering) => !expected.contains(&ordering),
                    // NaN compares with nothing.
                    None => matches!(value, ExpressionTerm::DoubleLiteral(_)),
                },
                None => false,
            },
            Self::Contains(text) => {
                read_string(term, read_value).is_some_and(|value| !value.contains(text))
            }
            Self::StartsWith(text) => {
                read_string(term, read_value).is_some_and(|value| !value.starts_with(text))
            }
            Self::EndsWith(text) => {
                read_string(term, read_value).is_some_and(|value| !value.ends_with(text))
            }
            Self::Is(iri) => term != iri,
            Self::IsIn(_) => false,
            Self::IsWithin(bound) => bound.excludes(read_value),
        }
    }
}

/// What the objects of a pattern have to meet.
pub(crate) struct Conditions {
    pub(crate) tests: Vec<Condition>,
    /// The property of the pattern, unless its predicate is a variable.
    pub(crate) property: Option<InternalTerm>,
    /// The graph that is read, and what the index of values reads of the property if that takes less than reading all.
    pub(crate) source: OnceCell<(Option<TermCode>, Option<Rc<ValueSource>>)>,
}

impl Conditions {
    /// Returns the only object that meets them, if they name it.
    pub(crate) fn find_object(&self) -> Option<&InternalTerm> {
        self.tests.iter().find_map(|condition| match condition {
            Condition::Is(object) => Some(object),
            _ => None,
        })
    }
}

/// What the first key of a row must not exceed to be among those that the LIMIT can return.
pub(crate) struct Bound {
    is_descending: bool,
    /// The number of rows that can be returned.
    rows: usize,
    is_only_key: bool,
    last: RefCell<Option<Value>>,
    /// What is read of a property to get its objects in this order.
    source: RefCell<Option<(TermCode, Rc<ValueSource>)>>,
}

impl Bound {
    /// Creates a bound of that many rows, which excludes nothing yet.
    pub(crate) fn new(is_descending: bool, rows: usize) -> Self {
        let (last, source) = (RefCell::default(), RefCell::default());
        Self { is_descending, rows, is_only_key: false, last, source }
    }

    /// Makes it exclude rows with the key of the last one that is kept too: no other key orders them, and they come later.
    pub(crate) fn of_only_key(self) -> Self {
        Self { is_only_key: true, ..self }
    }

    pub(crate) fn is_descending(&self) -> bool {
        self.is_descending
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Sets the first key of the last row that is kept.
    pub(crate) fn set_last(&self, key: Value) {
        self.last.replace(Some(key));
    }

    /// Sets what is read of a property to get its objects in this order.
    pub(crate) fn set_source(&self, source: Option<(TermCode, Rc<ValueSource>)>) {
        self.source.replace(source);
    }

    /// Returns whether the objects of a property are read in this order.
    pub(crate) fn has_source(&self) -> bool {
        self.source.borrow().is_some()
    }

    /// Returns what is read of this property to get its objects in this order.
    pub(crate) fn find_source(&self, property: &TermCode) -> Option<Rc<ValueSource>> {
        let source = self.source.borrow();
        source.as_ref().filter(|(of, _)| of == property).map(|(_, source)| source.clone())
    }

    /// Returns whether rows with this first key come after all that are kept.
    pub(crate) fn excludes(&self, read_key: impl FnOnce() -> ExpressionTerm) -> bool {
        // Reads no key before there is a last one.
        self.last.borrow().is_some() && self.excludes_value(&Value::new(Some(read_key())))
    }

    /// As [`Self::excludes`].
    pub(crate) fn excludes_value(&self, key: &Value) -> bool {
        let last = self.last.borrow();
        let Some(last) = &*last else { return false };
        let ordering = if self.is_descending { last.cmp(key) } else { key.cmp(last) };
        ordering.is_gt() || self.is_only_key && ordering.is_eq()
    }
}

/// Compares numbers of the most frequent types as the evaluator does.
fn compare_numbers(left: &ExpressionTerm, right: &ExpressionTerm) -> Option<Ordering> {
    use ExpressionTerm::{DecimalLiteral, DoubleLiteral, IntegerLiteral};
    match (left, right) {
        (IntegerLiteral(left), IntegerLiteral(right)) => left.partial_cmp(right),
        (IntegerLiteral(left), DecimalLiteral(right)) => Decimal::from(*left).partial_cmp(right),
        (DecimalLiteral(left), IntegerLiteral(right)) => left.partial_cmp(&Decimal::from(*right)),
        (DecimalLiteral(left), DecimalLiteral(right)) => left.partial_cmp(right),
        (DoubleLiteral(left), IntegerLiteral(right)) => left.partial_cmp(&Double::from(*right)),
        (DoubleLiteral(left), DecimalLiteral(right)) => left.partial_cmp(&Double::from(*right)),
        (IntegerLiteral(left), DoubleLiteral(right)) => Double::from(*left).partial_cmp(right),
        (DecimalLiteral(left), DoubleLiteral(right)) => Double::from(*left).partial_cmp(right),
        (DoubleLiteral(left), DoubleLiteral(right)) => left.partial_cmp(right),
        _ => None,
    }
}

/// Reads the text of a string, with a language or without.
fn read_string(term: &InternalTerm, read_value: impl FnOnce() -> ExpressionTerm) -> Option<String> {
    if term.is_name() {
        return None;
    }
    match read_value() {
        ExpressionTerm::StringLiteral(value) | ExpressionTerm::LangStringLiteral { value, .. } => {
            Some(value)
        }
        _ => None,
    }
}
