//! The subjects that have a literal of a property in a range of values.
use super::View;
use super::filter;
use super::key::damaged_entry;
use super::value_cursor::{KeyRange, RangeKeys};
use super::values::{FrozenValues, class_bounds};
use super::view::Health;
use crate::value::{ESCAPED_ZERO, Interval, Remainder, ValueClass, ValueKey, ValueRange};
use crate::varint::Input;
use crate::{Error, VisitValue, term};
use oxrdf::{NamedNodeRef, NamedOrBlankNode};

/// The number of subjects with one value that a scan in reverse collects. If there are more, it reads them from the first.
const MAX_COLLECTED_SUBJECTS: usize = if cfg!(test) { 4 } else { 256 };
/// The number of blocks of a run from which on an estimate counts blocks, not entries.
const MANY_BLOCKS: usize = 2;
/// The number of entries in memory from which on an estimate does not look at each.
const MANY_RECENT_ENTRIES: usize = 1_024;

/// A value's key, and the id of a subject that has such a value.
pub(crate) type ValueEntry = (ValueKey, u64);

/// The entries of a range: in the order of values or in reverse, and for each value by the ids of the subjects.
pub(crate) struct ValueScan<'a> {
    health: &'a dyn Health,
    interval: IntervalScan<'a>,
    /// The intervals that were not begun, the next one last.
    rest: Vec<Interval>,
    is_reverse: bool,
    in_reverse: InReverse<'a>,
}

/// The entries of one interval of keys.
struct IntervalScan<'a> {
    values: &'a FrozenValues,
    class: ValueClass,
    /// The beginning of all keys of the class, and what follows them.
    bounds: (Vec<u8>, Vec<u8>),
    remainder: Option<Remainder>,
    /// `None` before the first interval.
    keys: Option<RangeKeys<'a>>,
    /// Where the interval begins.
    from: Vec<u8>,
    last: Option<ValueEntry>,
}

/// What a scan in reverse has read ahead.
#[derive(Default)]
struct InReverse<'a> {
    /// The entries of one value, the first of them last.
    collected: Vec<ValueEntry>,
    /// The entry before them.
    next: Option<ValueEntry>,
    /// The entries of a value that has many, in order.
    many: Option<IntervalScan<'a>>,
}

impl<'a> IntervalScan<'a> {
    fn new(values: &'a FrozenValues, property: u64, range: &ValueRange) -> Self {
        Self {
            values,
            class: range.class(),
            bounds: class_bounds(property, range.class()),
            remainder: range.remainder(),
            keys: None,
            from: Vec::new(),
            last: None,
        }
    }

    /// Begins to read an interval.
    fn open(&mut self, interval: &Interval, is_reverse: bool) -> Result<(), Error> {
        let range = key_range(&self.bounds, interval);
        self.from.clone_from(&range.from);
        self.keys = Some(RangeKeys::open(self.values, range, is_reverse)?);
        Ok(())
    }

    /// Returns the next entry in the order of keys, or in their reverse order.
    fn next_entry(&mut self) -> Result<Option<ValueEntry>, Error> {
        let Some(keys) = &mut self.keys else { return Ok(None) };
        while let Some(key) = keys.next_key()? {
            let (entry, remainder) = parse_entry(self.class, self.bounds.0.len(), key)
                .ok_or_else(|| damaged_entry("a value", key))?;
            // Several values of a subject may have the same key.
            let is_meant = self.remainder.is_none() || self.remainder == remainder;
            if is_meant && self.last != Some(entry) {
                self.last = Some(entry);
                return Ok(self.last);
            }
        }
        Ok(None)
    }

    /// Returns the scan of all entries of a value, in order, and continues in reverse before them.
    fn split_off_value(&mut self, value: &ValueKey) -> Result<Self, Error> {
        let mut from = Vec::new();
        value.encode(self.class, &mut from);
        let mut to = from.clone();
        to.push(ESCAPED_ZERO);
        let mut all =
            Self { bounds: self.bounds.clone(), from: Vec::new(), keys: None, last: None, ..*self };
        all.open(&Interval { from: from.clone(), to: Some(to) }, false)?;
        let begin = self.from.get(self.bounds.0.len()..).unwrap_or_default().to_vec();
        self.open(&Interval { from: begin, to: Some(from) }, true)?;
        Ok(all)
    }
}

impl<'a> ValueScan<'a> {
    fn new(
        health: &'a dyn Health,
        interval: IntervalScan<'a>,
        range: &ValueRange,
        is_reverse: bool,
    ) -> Self {
        let mut rest = range.intervals().to_vec();
        if !is_reverse {
            rest.reverse();
        }
        Self { health, interval, rest, is_reverse, in_reverse: InReverse::default() }
    }

    /// Returns the next entry; `None` at the end.
    pub(crate) fn next_entry(&mut self) -> Result<Option<ValueEntry>, Error> {
        let next = if self.is_reverse { self.next_in_reverse() } else { self.next_key() };
        next.inspect_err(|error| self.health.record_damage(error))
    }

    /// Returns the next entry in the order of keys, or in their reverse order.
    fn next_key(&mut self) -> Result<Option<ValueEntry>, Error> {
        loop {
            if let Some(entry) = self.interval.next_entry()? {
                return Ok(Some(entry));
            }
            let Some(interval) = self.rest.pop() else { return Ok(None) };
            self.interval.open(&interval, self.is_reverse)?;
        }
    }

    fn next_in_reverse(&mut self) -> Result<Option<ValueEntry>, Error> {
        if self.in_reverse.many.is_none() && self.in_reverse.collected.is_empty() {
            self.collect_value()?;
        }
        if let Some(many) = &mut self.in_reverse.many {
            if let Some(entry) = many.next_entry()? {
                return Ok(Some(entry));
            }
            self.in_reverse.many = None;
            self.collect_value()?;
            if self.in_reverse.many.is_some() {
                return self.next_in_reverse();
            }
        }
        Ok(self.in_reverse.collected.pop())
    }

    /// Collects the entries of the value before. If there are many, begins to read them in order.
    fn collect_value(&mut self) -> Result<(), Error> {
        let ahead = self.in_reverse.next.take();
        let Some(last) = ahead.map_or_else(|| self.next_key(), |entry| Ok(Some(entry)))? else {
            return Ok(());
        };
        self.in_reverse.collected.push(last);
        while let Some(entry) = self.next_key()? {
            if entry.0 != last.0 {
                self.in_reverse.next = Some(entry);
                break;
            }
            if self.in_reverse.collected.len() == MAX_COLLECTED_SUBJECTS {
                self.in_reverse.collected.clear();
                self.in_reverse.many = Some(self.interval.split_off_value(&last.0)?);
                break;
            }
            self.in_reverse.collected.push(entry);
        }
        Ok(())
    }
}

/// Returns the keys of an interval.
fn key_range((prefix, end): &(Vec<u8>, Vec<u8>), interval: &Interval) -> KeyRange {
    let from = [prefix.as_slice(), &interval.from].concat();
    let to = match &interval.to {
        Some(to) => [prefix.as_slice(), to].concat(),
        None => end.clone(),
    };
    let is_value = to.strip_prefix(from.as_slice()) == Some(&[ESCAPED_ZERO]);
    KeyRange { hash: is_value.then(|| filter::hash_key(&from)), from, to }
}

fn parse_entry(
    class: ValueClass,
    prefix_bytes: usize,
    key: &[u8],
) -> Option<(ValueEntry, Option<Remainder>)> {
    let mut input = Input::new(key.get(prefix_bytes..)?);
    let value = ValueKey::decode(class, &mut input)?;
    let subject = input.read_number()?;
    let has_remainder = !input.is_empty() || value.is_cut(class);
    let remainder =
        if has_remainder { Some(Remainder::decode(class, &value, input.rest())?) } else { None };
    Some(((value, subject), remainder))
}

impl<'a> View<'a> {
    /// Begins to read the entries of a property in a range. Returns `None` without an index of values.
    pub(crate) fn scan_values(
        &self,
        property: u64,
        range: &ValueRange,
        is_reverse: bool,
    ) -> Result<Option<ValueScan<'a>>, Error> {
        self.health.check_usable()?;
        let scan = |values| {
            let interval = IntervalScan::new(values, property, range);
            ValueScan::new(self.health, interval, range, is_reverse)
        };
        Ok(self.values.map(scan))
    }

    /// Passes the subjects of a range to `visit`: see [`crate::Read::visit_values`].
    pub(crate) fn visit_values(
        &self,
        property: NamedNodeRef<'_>,
        (range, is_reverse): (&ValueRange, bool),
        visit: &mut VisitValue<'_>,
    ) -> Result<bool, Error> {
        if self.values.is_none() {
            return Ok(false);
        }
        let Some(code) = self.find_code(property.into())? else { return Ok(true) };
        let Some(mut scan) =
            self.scan_values(code.to_number().unwrap_or_default(), range, is_reverse)?
        else {
            return Ok(false);
        };
        self.track_damage(|| {
            while let Some((value, id)) = scan.next_entry()? {
                let subject = self.load_subject(id)?;
                // It is probably read next, by its name.
                self.cache_id(subject.as_ref(), id);
                if visit(&value, subject).is_break() {
                    break;
                }
            }
            Ok(true)
        })
    }

    /// Returns the subject of an id.
    pub(crate) fn load_subject(&self, id: u64) -> Result<NamedOrBlankNode, Error> {
        let subject = term::to_subject(self.load_name(id)?);
        subject.ok_or_else(|| damaged_entry("a subject", &id.to_be_bytes()))
    }

    /// Estimates the number of entries of a range: see [`crate::Read::estimate_values`].
    pub(crate) fn estimate_values(
        &self,
        property: u64,
        range: &ValueRange,
    ) -> Result<Option<u64>, Error> {
        let Some(values) = self.values else { return Ok(None) };
        self.health.check_usable()?;
        let bounds = class_bounds(property, range.class());
        let (mut estimate, mut is_large) = (0, false);
        for interval in range.intervals() {
            let range = key_range(&bounds, interval);
            let recent = values.recent.iter().map(|entries| entries.find(range.bounds()).len());
            let recent: usize = recent.sum();
            estimate += recent as u64;
            is_large |= recent > MANY_RECENT_ENTRIES;
            for run in values.written.iter().filter(|run| range.may_be_in(run)) {
                let number = |key: &[u8]| run.find_block(key).unwrap_or(0);
                let blocks = number(&range.to) - number(&range.from);
                is_large |= blocks >= MANY_BLOCKS;
                estimate += run.entries * blocks as u64 / run.block_count().max(1) as u64;
            }
        }
        if is_large {
            return Ok(Some(estimate));
        }
        let mut count = 0;
        let Some(mut scan) = self.scan_values(property, range, false)? else { return Ok(None) };
        while scan.next_entry()?.is_some() {
            count += 1;
        }
        Ok(Some(count))
    }
}

#[cfg(test)]
mod tests;
