//! The quads of a property with objects in ranges of values, by the index of values.
//!
//! The index has the subjects of a range in the order of the values. They are taken in batches and looked up in the order of
//! subjects, because the quads of near subjects are in the same block. A quad is returned for the entry with the key of its
//! object, so once.
//!
//! With a [`Bound`], batches grow from a small one. An object that comes after all rows that are kept ends the reading, if
//! all those after it in the index come after it in the order of SPARQL too ([`is_in_order`]). If that takes long, the rest of
//! the property's quads is read without the index of values.
use super::value_source::{Segment, ValueSource, is_in_order};
use crate::condition::Bound;
use crate::form::to_expression_term;
use crate::value::Value;
use oxrdf::Term;
use penstock_store::{
    CodeReader, CodedQuad, CodedQuads, CodedValues, Error, TermCode, ValueClass, ValueKey,
};
use std::iter::Peekable;
use std::rc::Rc;
use std::vec::IntoIter;

/// The maximum number of entries of a batch.
const MAX_BATCH_ENTRIES: usize = 4_096;
/// The minimum number of entries of the first batch in an order.
pub(super) const MIN_BATCH_ENTRIES: usize = 64;

/// The subject and the value of an entry.
struct Entry {
    subject: TermCode,
    value: (ValueClass, ValueKey),
}

/// What quads are read from.
#[derive(Clone, Copy)]
enum Part {
    Names,
    /// A subject of the batch.
    Subject,
    /// The whole property.
    Rest,
}

/// The quads of a [`ValueSource`].
pub(crate) struct ValueScan<'s> {
    codes: CodeReader<'s>,
    property: TermCode,
    graph: Option<TermCode>,
    source: Rc<ValueSource>,
    /// What the segments are read for, if they are read in the order of SPARQL.
    bound: Option<Rc<Bound>>,
    /// The number of segments that were opened.
    opened: usize,
    /// The entries of the segment that is read.
    entries: Option<(ValueClass, CodedValues<'s>)>,
    /// The number of entries that were read.
    taken: usize,
    batch_entries: usize,
    /// What is left of a batch, by subject.
    batch: Peekable<IntoIter<Entry>>,
    /// The last entry of the batch in the order of the index, with the place of its subject.
    last: Option<((ValueClass, ValueKey), Option<u64>)>,
    /// The key after which no object of the class is needed.
    end: Option<ValueKey>,
    is_over: bool,
    quads: Option<CodedQuads<'s>>,
    part: Part,
    /// The values of the batch's current subject.
    values: Vec<(ValueClass, ValueKey)>,
}

impl<'s> ValueScan<'s> {
    /// Begins to read the quads of a property, in one graph or in all. With a bound, in its order.
    pub(super) fn new(
        codes: CodeReader<'s>,
        property: TermCode,
        graph: Option<TermCode>,
        source: Rc<ValueSource>,
        bound: Option<Rc<Bound>>,
    ) -> Self {
        let first = bound.as_ref().map_or(MAX_BATCH_ENTRIES, |bound| bound.rows());
        Self {
            codes,
            property,
            graph,
            source,
            bound,
            opened: 0,
            entries: None,
            taken: 0,
            batch_entries: first.clamp(MIN_BATCH_ENTRIES, MAX_BATCH_ENTRIES),
            batch: Vec::new().into_iter().peekable(),
            last: None,
            end: None,
            is_over: false,
            quads: None,
            part: Part::Subject,
            values: Vec::new(),
        }
    }

    /// Returns the next quad. Calls `check` for each entry and each quad before it that is read.
    pub(super) fn next_with_checks(
        &mut self,
        check: &mut dyn FnMut(),
    ) -> Option<Result<CodedQuad, Error>> {
        self.find_next(check).transpose()
    }

    fn find_next(&mut self, check: &mut dyn FnMut()) -> Result<Option<CodedQuad>, Error> {
        loop {
            let Some(quads) = &mut self.quads else {
                if !self.open_next(check)? {
                    return Ok(None);
                }
                continue;
            };
            match quads.next_with_checks(check).transpose()? {
                None => self.quads = None,
                Some(quad) if self.accepts(&quad)? => return Ok(Some(quad)),
                Some(_) => check(),
            }
        }
    }

    /// Opens the next quads. Returns false at the end.
    fn open_next(&mut self, check: &mut dyn FnMut()) -> Result<bool, Error> {
        loop {
            if let Some(Entry { subject, value }) = self.batch.next() {
                self.values.clear();
                self.values.push(value);
                while let Some(entry) = self.batch.next_if(|entry| entry.subject == subject) {
                    self.values.push(entry.value);
                }
                if self.values.iter().all(|(_, key)| self.is_past_end(key)) {
                    continue;
                }
                self.open(Some(&subject), Part::Subject);
                return Ok(true);
            }
            if self.is_over || matches!(self.part, Part::Rest) {
                return Ok(false);
            }
            if self.taken > self.source.max_entries {
                self.open(None, Part::Rest);
                return Ok(true);
            }
            self.read_batch(check)?;
            if self.batch.peek().is_none() && !self.is_over {
                if !matches!(self.source.segments.get(self.opened), Some(Segment::Names)) {
                    return Ok(false);
                }
                self.opened += 1;
                self.open(None, Part::Names);
                return Ok(true);
            }
        }
    }

    fn open(&mut self, subject: Option<&TermCode>, part: Part) {
        let pattern = [subject, Some(&self.property), None, self.graph.as_ref()];
        self.quads = Some(self.codes.scan_codes(pattern));
        self.part = part;
    }

    /// Reads the entries of the next batch, up to the next names. In an order, a batch is of one segment.
    fn read_batch(&mut self, check: &mut dyn FnMut()) -> Result<(), Error> {
        let mut batch: Vec<Entry> = Vec::new();
        while batch.len() < self.batch_entries {
            let Some((class, entries)) = &mut self.entries else {
                let is_whole = self.bound.is_some() && !batch.is_empty();
                if is_whole || !self.open_values()? {
                    break;
                }
                continue;
            };
            check();
            let Some((key, subject)) = entries.next().transpose()? else {
                self.entries = None;
                continue;
            };
            let value = (*class, key);
            if self.is_past_end(&key) {
                self.is_over = true;
                break;
            }
            batch.push(Entry { subject, value });
        }
        if let Some(Entry { subject, value }) = batch.last() {
            self.last = Some((*value, subject.subject_order()));
        }
        self.taken += batch.len();
        if batch.len() >= self.batch_entries {
            self.batch_entries = (self.batch_entries * 2).min(MAX_BATCH_ENTRIES);
        }
        batch.sort_by_key(|entry| entry.subject.subject_order());
        self.batch = batch.into_iter().peekable();
        Ok(())
    }

    /// Opens the next segment if it has literals that are needed.
    fn open_values(&mut self) -> Result<bool, Error> {
        if self.end.is_some() {
            // What ends a class comes before the classes after it.
            self.is_over = true;
            return Ok(false);
        }
        let Some(Segment::Values(range)) = self.source.segments.get(self.opened) else {
            return Ok(false);
        };
        let entries = self.codes.scan_values(&self.property, range, self.is_reverse())?;
        self.entries = entries.map(|entries| (range.class(), entries));
        self.opened += 1;
        Ok(true)
    }

    fn is_reverse(&self) -> bool {
        self.bound.as_ref().is_some_and(|bound| bound.is_descending())
    }

    /// Returns whether one key comes after another as they are read.
    fn is_after(&self, key: &ValueKey, other: &ValueKey) -> bool {
        if self.is_reverse() { key < other } else { key > other }
    }

    fn is_past_end(&self, key: &ValueKey) -> bool {
        self.end.as_ref().is_some_and(|end| self.is_after(key, end))
    }

    /// Returns whether a quad that was read belongs to the part that is read.
    fn accepts(&mut self, quad: &CodedQuad) -> Result<bool, Error> {
        let [subject, _, object, _] = quad;
        let literal = match object.subject_order() {
            Some(_) => None,
            None => match self.codes.decode_code(object)? {
                Term::Literal(literal) => Some(literal),
                _ => return Ok(false),
            },
        };
        let value = literal.as_ref().map(|literal| ValueKey::of(literal.as_ref()));
        Ok(match (self.part, value, literal) {
            (Part::Names, None, _) => true,
            (Part::Names, Some(_), _) => {
                // Names come before literals.
                self.quads = None;
                false
            }
            (Part::Subject, Some(value), Some(literal)) if self.values.contains(&value) => {
                !self.is_excluded(literal.into(), value)
            }
            (Part::Subject, ..) => false,
            (Part::Rest, value, _) => !self.was_read(value, subject),
        })
    }

    /// Returns whether a literal comes after all rows that are kept. Notes if those after it in its class do so too.
    fn is_excluded(&mut self, literal: Term, (class, key): (ValueClass, ValueKey)) -> bool {
        let Some(bound) = &self.bound else { return false };
        let value = Value::new(Some(to_expression_term(literal, false)));
        if !bound.excludes_value(&value) {
            return false;
        }
        if is_in_order(class) && self.end.as_ref().is_none_or(|end| self.is_after(end, &key)) {
            self.end = Some(key);
        }
        true
    }

    /// Returns whether quads with such an object were read before the rest, or are in no segment.
    fn was_read(&self, value: Option<(ValueClass, ValueKey)>, subject: &TermCode) -> bool {
        let class = value.map(|(class, _)| class);
        let place = self.source.segments.iter().position(|segment| segment.has(class));
        let Some(place) = place.filter(|place| *place < self.opened) else {
            return place.is_none();
        };
        match (value, &self.last) {
            (Some((class, key)), Some(((last_class, last_key), last_subject)))
                if class == *last_class && place + 1 == self.opened =>
            {
                let is_later = self.is_after(&key, last_key)
                    || key == *last_key && subject.subject_order() > *last_subject;
                !is_later
            }
            _ => true,
        }
    }
}
