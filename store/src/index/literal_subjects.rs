//! The subjects that may have a literal, whatever their predicates, from the index of values.
use super::View;
use super::key::{KeyBuffer, damaged_entry, object, tree};
use super::key_scan::{KeyScan, build_prefix};
use super::term_code::TermCode;
use super::value_scan::ValueScan;
use crate::varint::Input;
use crate::{Error, ValueRange};
use oxrdf::Term;

/// The predicates that have literals, in the order of their ids.
pub(super) struct LiteralPredicates<'a> {
    /// The keys of the tree by predicate and object, from `next` on.
    keys: KeyScan<'a>,
    next: u64,
}

impl<'a> LiteralPredicates<'a> {
    pub(super) fn new(view: &View<'a>) -> Self {
        Self { keys: KeyScan::new(view.blocks, literals_of(0)), next: 0 }
    }

    /// Returns the next predicate; `None` at the end.
    pub(super) fn next_predicate(&mut self) -> Result<Option<u64>, Error> {
        loop {
            self.keys.seek(literals_of(self.next))?;
            if !self.keys.advance()? {
                return Ok(None);
            }
            let mut rest = Input::new(self.keys.key().get(1..).unwrap_or_default());
            match (rest.read_number(), rest.read_byte()) {
                (Some(found), Some(object::NAMED)) => self.next = found,
                (Some(found), Some(object::ANY_LITERAL)) if found < u64::MAX => {
                    self.next = found + 1;
                    return Ok(Some(found));
                }
                // To continue at its predicate would find it again.
                _ => return Err(damaged_entry("a quad", self.keys.key())),
            }
        }
    }
}

/// Returns the key before the literals of a predicate, and the length of its part that all predicates have.
fn literals_of(predicate: u64) -> (KeyBuffer, usize) {
    let (mut key, _) = build_prefix(tree::POSG, &[predicate], None);
    key.extend(&[object::ANY_LITERAL]);
    (key, 1)
}

/// The predicates and subjects that have a literal with the key of a certain one.
pub(super) struct LiteralSubjects<'a> {
    view: View<'a>,
    literal: TermCode,
    /// The values to look for, once they were read.
    range: Option<ValueRange>,
    /// The predicates to continue with, unless there is only one.
    predicates: Option<LiteralPredicates<'a>>,
    predicate: u64,
    subjects: Option<ValueScan<'a>>,
    subject: u64,
}

impl<'a> LiteralSubjects<'a> {
    /// Begins before the first subject. Without a predicate, all that have literals are looked at.
    pub(super) fn new(view: View<'a>, predicate: Option<u64>, literal: TermCode) -> Self {
        Self {
            view,
            literal,
            range: None,
            predicates: predicate.is_none().then(|| LiteralPredicates::new(&view)),
            predicate: predicate.unwrap_or_default(),
            subjects: None,
            subject: 0,
        }
    }

    /// Returns the current predicate and subject.
    pub(super) fn current(&self) -> (u64, u64) {
        (self.predicate, self.subject)
    }

    /// Moves to the next subject. Returns false at the end.
    pub(super) fn advance(&mut self) -> Result<bool, Error> {
        let is_first = self.range.is_none();
        let range = match self.range.take() {
            Some(range) => range,
            None => match self.view.decode_code(&self.literal)? {
                Term::Literal(literal) => ValueRange::with_key_of(literal.as_ref()),
                _ => return Ok(false),
            },
        };
        let range = self.range.insert(range);
        if is_first && self.predicates.is_none() {
            self.subjects = self.view.scan_values(self.predicate, range, false)?;
        }
        loop {
            if let Some(subjects) = &mut self.subjects {
                if let Some((_, subject)) = subjects.next_entry()? {
                    self.subject = subject;
                    return Ok(true);
                }
                self.subjects = None;
            }
            let Some(predicates) = &mut self.predicates else { return Ok(false) };
            let Some(predicate) = predicates.next_predicate()? else { return Ok(false) };
            self.predicate = predicate;
            self.subjects = self.view.scan_values(predicate, range, false)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Store};

    #[test]
    fn a_damaged_key_ends_the_search_for_predicates() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let mut index = store.inner().lock_index_mut();
        index.blocks.insert(&[tree::POSG, 5, object::ANY_LITERAL + 1], &[]).unwrap();
        let view = index.view();
        let found = LiteralPredicates::new(&view).next_predicate();
        assert!(matches!(found, Err(Error::Index(_))));
    }
}
