//! The triples of an RDF document, in memory.
use crate::data::{TriplePattern, Triples, to_subject};
use oxrdf::{Term, Triple};
use penstock_base::error::GatewayError;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A term's number.
type Number = u32;
/// Returns the triple of an entry of an index.
type Order = fn([Number; 3]) -> [Number; 3];

/// The triples of a document, each once. A triple takes 36 bytes, and each of its terms takes memory once.
#[derive(Debug, Default)]
pub struct Document {
    terms: Vec<Arc<Term>>,
    numbers: HashMap<Arc<Term>, Number>,
    by_subject: Vec<[Number; 3]>,
    by_predicate: Vec<[Number; 3]>,
    by_object: Vec<[Number; 3]>,
}

impl Document {
    /// Returns the subjects, ordered by their text.
    pub fn list_subjects(&self) -> Vec<Term> {
        let mut numbers: Vec<Number> =
            self.by_subject.iter().map(|[subject, ..]| *subject).collect();
        numbers.dedup();
        let mut subjects: Vec<Term> =
            numbers.into_iter().filter_map(|number| self.term(number)).cloned().collect();
        subjects.sort_by_cached_key(ToString::to_string);
        subjects
    }

    /// Returns the number of triples.
    pub fn len(&self) -> usize {
        self.by_subject.len()
    }

    /// Returns whether there is no triple.
    pub fn is_empty(&self) -> bool {
        self.by_subject.is_empty()
    }

    fn term(&self, number: Number) -> Option<&Term> {
        self.terms.get(usize::try_from(number).ok()?).map(AsRef::as_ref)
    }

    fn add_term(&mut self, term: Term) -> Number {
        if let Some(number) = self.numbers.get(&term) {
            return *number;
        }
        let number = Number::try_from(self.terms.len());
        let number = number.expect("the memory of one machine holds fewer than 2^32 terms");
        let term = Arc::new(term);
        self.terms.push(term.clone());
        self.numbers.insert(term, number);
        number
    }

    fn to_triple(&self, [subject, predicate, object]: [Number; 3]) -> Option<Triple> {
        let Term::NamedNode(predicate) = self.term(predicate)? else { return None };
        Some(Triple {
            subject: to_subject(self.term(subject)?)?,
            predicate: predicate.clone(),
            object: self.term(object)?.clone(),
        })
    }
}

impl FromIterator<Triple> for Document {
    fn from_iter<I: IntoIterator<Item = Triple>>(triples: I) -> Self {
        let mut document = Self::default();
        for Triple { subject, predicate, object } in triples {
            let subject = document.add_term(subject.into());
            let predicate = document.add_term(predicate.into());
            let object = document.add_term(object);
            document.by_subject.push([subject, predicate, object]);
        }
        document.by_subject.sort_unstable();
        document.by_subject.dedup();
        document.by_subject.shrink_to_fit();
        document.by_predicate = document.by_subject.iter().map(|&[s, p, o]| [p, o, s]).collect();
        document.by_predicate.sort_unstable();
        document.by_object = document.by_subject.iter().map(|&[s, p, o]| [o, p, s]).collect();
        document.by_object.sort_unstable();
        document
    }
}

impl Triples for Document {
    fn for_each(
        &self,
        pattern: TriplePattern<'_>,
        visit: &mut dyn FnMut(Triple) -> ControlFlow<()>,
    ) -> Result<(), GatewayError> {
        let number = |term: Option<Term>| match term {
            None => Some(None),
            Some(term) => self.numbers.get(&term).map(|number| Some(*number)),
        };
        let sought = (
            number(pattern.subject.cloned().map(Term::from)),
            number(pattern.predicate.cloned().map(Term::from)),
            number(pattern.object.cloned()),
        );
        let (Some(subject), Some(predicate), Some(object)) = sought else { return Ok(()) };
        // The index, its key, and the triple of an entry.
        let (index, key, order): (_, [Option<Number>; 3], Order) =
            match (subject, predicate, object) {
                (Some(_), _, _) | (None, None, None) => {
                    (&self.by_subject, [subject, predicate, object], |entry| entry)
                }
                (None, Some(_), _) => {
                    (&self.by_predicate, [predicate, object, subject], |[p, o, s]| [s, p, o])
                }
                (None, None, Some(_)) => {
                    (&self.by_object, [object, predicate, subject], |[o, p, s]| [s, p, o])
                }
            };
        let prefix: Vec<Number> = key.iter().map_while(|number| *number).collect();
        let start = index.partition_point(|entry| entry.as_slice() < prefix.as_slice());
        for entry in index.iter().skip(start).take_while(|entry| entry.starts_with(&prefix)) {
            let is_match =
                entry.iter().zip(key).all(|(found, sought)| sought.is_none_or(|s| s == *found));
            if is_match
                && let Some(triple) = self.to_triple(order(*entry))
                && visit(triple).is_break()
            {
                break;
            }
        }
        Ok(())
    }
}
