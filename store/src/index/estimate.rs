//! How many quads a pattern has, roughly, from a few blocks: to order the patterns of a join.
//!
//! Small answers are counted. Of a longer list, its beginning is counted, and the count is scaled to the whole list by
//! ids: those of the first entry, of the one that was reached, and of the last one, which is looked up. Ids are dense
//! numbers in the order of first appearance, so that is about right unless ids of very different ages behave
//! differently. In the list of a predicate, the quads of one object may be many. Then they are scaled by the ids of
//! their subjects, and the rest of them is skipped.
use super::View;
use super::block::{Block, Name};
use super::block_source::{BlockSource, Reading};
use super::key::{KeyBuffer, damaged_entry, object, tree};
use super::key_scan::{KeyScan, build_prefix};
use super::literal_subjects::LiteralPredicates;
use super::quad_scan::{QuadScan, Sought, first_literal};
use super::term_code::{CodedPattern, TermCode};
use crate::varint::Input;
use crate::{Error, ValueRange};
use oxrdf::Term;
use std::cell::Cell;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// The number of quads that are counted in any case.
const MAX_COUNTED_QUADS: u64 = 128;
/// The number of blocks of a list that are read.
const MAX_BLOCK_READS: u64 = 16;
/// The number of blocks of one object after which the rest of its quads is skipped.
const BLOCKS_PER_OBJECT: u64 = 2;
/// The number of subjects whose literals are counted.
const SAMPLED_SUBJECTS: u64 = 8;
/// Greater than the first byte of any id or object in a key.
const PAST_IDS: u8 = 0xff;

/// Counts the blocks that are read.
struct CountedReads<'a> {
    blocks: &'a dyn BlockSource,
    reads: Cell<u64>,
}

impl<'a> CountedReads<'a> {
    fn new(view: &View<'a>) -> Self {
        Self { blocks: view.blocks, reads: Cell::new(0) }
    }

    fn count_read(&self) -> &'a dyn BlockSource {
        self.reads.set(self.reads.get() + 1);
        self.blocks
    }
}

impl BlockSource for CountedReads<'_> {
    fn find_block(
        &self,
        upper: Bound<&[u8]>,
        key: &[u8],
        reading: Reading,
    ) -> Result<(Name, Arc<Block>), Error> {
        self.count_read().find_block(upper, key, reading)
    }

    fn load_block(&self, name: &[u8], reading: Reading) -> Result<Arc<Block>, Error> {
        self.count_read().load_block(name, reading)
    }
}

/// What was counted of a pattern.
struct Sample {
    is_complete: bool,
    /// The quads that were read, of which some may not match.
    quads: u64,
    matching: u64,
    /// How often the subject changed.
    subjects: u64,
}

/// The entries of one object in the list of a predicate.
struct ObjectEntries {
    object: u64,
    first_subject: u64,
    count: u64,
    /// The number of blocks that had been read before.
    reads: u64,
}

impl View<'_> {
    /// Estimates the number of quads that match a pattern. It is exact for small numbers.
    pub(crate) fn estimate_count(&self, pattern: CodedPattern<'_>) -> Result<u64, Error> {
        self.track_damage(|| {
            let Some(sought) = Sought::new(pattern) else { return Ok(0) };
            let sample = self.sample_quads(pattern, &sought)?;
            if sample.is_complete {
                return Ok(sample.matching);
            }
            let literal = sought.object.as_ref().and_then(TermCode::literal);
            let total =
                match (sought.subject, sought.predicate, sought.named_object(), sought.graph) {
                    // A lower bound: what was read.
                    (Some(_), ..) => return Ok(sample.matching),
                    (None, predicate, None, _)
                        if let Some(code) = literal.filter(|_| self.values.is_some()) =>
                    {
                        let subjects = self.estimate_literal_subjects(predicate, code)?;
                        scale(subjects, sample.quads, sample.subjects)
                    }
                    (None, Some(predicate), Some(object), _) => {
                        self.estimate_list(&build_prefix(tree::POSG, &[predicate], Some(object)))?
                    }
                    (None, Some(predicate), None, _) => {
                        let named = match literal {
                            Some(_) => 0,
                            None => self.estimate_named(predicate)?,
                        };
                        named.saturating_add(self.estimate_literals(predicate)?)
                    }
                    (None, None, Some(object), _) => self.estimate_objects_quads(object)?,
                    (None, None, None, Some(graph)) if literal.is_none() => {
                        let subjects =
                            self.estimate_list(&build_prefix(tree::GS, &[graph], None))?;
                        return Ok(scale(subjects, sample.matching, sample.subjects));
                    }
                    (None, None, None, _) => {
                        self.estimate_list(&build_prefix(tree::SPOG, &[], None))?
                    }
                };
            let total = total.max(sample.quads);
            if sample.matching == sample.quads {
                return Ok(total);
            }
            // If none of the sample matches, some of the others may.
            Ok(scale(total, sample.matching.max(1), sample.quads).max(1))
        })
    }

    /// Estimates the number of different objects of a predicate. Each literal counts, even if others are equal.
    pub(crate) fn estimate_distinct_objects(&self, predicate: u64) -> Result<u64, Error> {
        self.track_damage(|| {
            let blocks = CountedReads::new(self);
            let prefix = named_prefix(predicate);
            let bytes = prefix.1;
            let mut scan = KeyScan::new(&blocks, prefix.clone());
            let (mut first, mut counted) = (None, 0);
            while scan.advance()? {
                let object = scan.read_number()?;
                let begin = *first.get_or_insert(object);
                if blocks.reads.get() > MAX_BLOCK_READS {
                    let last = last_number(&blocks, &prefix)?.unwrap_or(object);
                    counted = extrapolate(counted, begin, object, last);
                    break;
                }
                counted += 1;
                let (mut next, _) = prefix.clone();
                next.extend_number(object + 1);
                scan.seek((next, bytes))?;
            }
            Ok(counted.saturating_add(self.estimate_literals(predicate)?))
        })
    }

    /// Counts the first quads of a pattern.
    fn sample_quads(&self, pattern: CodedPattern<'_>, sought: &Sought) -> Result<Sample, Error> {
        let blocks = CountedReads::new(self);
        let view = View { blocks: &blocks, ..*self };
        let mut sample = Sample { is_complete: true, quads: 0, matching: 0, subjects: 0 };
        let Some(mut scan) = QuadScan::of_codes(&view, pattern) else { return Ok(sample) };
        let mut subject = None;
        while scan.advance()? {
            let row = scan.row()?;
            sample.quads += 1;
            sample.matching += u64::from(sought.matches(&row));
            if subject != Some(row.subject) {
                subject = Some(row.subject);
                sample.subjects += 1;
            }
            if sample.quads > MAX_COUNTED_QUADS && blocks.reads.get() > MAX_BLOCK_READS {
                sample.is_complete = false;
                break;
            }
        }
        Ok(sample)
    }

    /// Estimates the number of keys with a prefix, after which an id of evenly spread entries follows.
    fn estimate_list(&self, prefix: &Prefix) -> Result<u64, Error> {
        let blocks = CountedReads::new(self);
        let mut scan = KeyScan::new(&blocks, prefix.clone());
        let (mut first, mut counted) = (None, 0);
        while scan.advance()? {
            let reached = scan.read_number()?;
            let begin = *first.get_or_insert(reached);
            if blocks.reads.get() > MAX_BLOCK_READS && reached > begin {
                let last = last_number(&blocks, prefix)?.unwrap_or(reached);
                return Ok(extrapolate(counted, begin, reached, last));
            }
            counted += 1;
        }
        Ok(counted)
    }

    /// Estimates the number of quads of a predicate whose object is not a literal.
    fn estimate_named(&self, predicate: u64) -> Result<u64, Error> {
        let blocks = CountedReads::new(self);
        let prefix = named_prefix(predicate);
        let bytes = prefix.1;
        let mut scan = KeyScan::new(&blocks, prefix.clone());
        let (mut first, mut counted) = (None, 0_u64);
        let mut entries: Option<ObjectEntries> = None;
        while scan.advance()? {
            let (object, subject) = scan.read_numbers()?;
            let reads = blocks.reads.get();
            let begin = *first.get_or_insert(object);
            if entries.as_ref().is_none_or(|entries| entries.object != object) {
                if reads > MAX_BLOCK_READS {
                    let last = last_number(&blocks, &prefix)?.unwrap_or(object);
                    return Ok(extrapolate(counted, begin, object, last));
                }
                entries = Some(ObjectEntries { object, first_subject: subject, count: 0, reads });
            }
            let Some(entries) = &mut entries else { continue };
            counted += 1;
            entries.count += 1;
            if reads <= entries.reads + BLOCKS_PER_OBJECT {
                continue;
            }
            let (mut key, _) = prefix.clone();
            key.extend_number(object);
            let of_object = key.len();
            let last = last_number(&blocks, &(key, of_object))?.unwrap_or(subject);
            let all = extrapolate(entries.count, entries.first_subject, subject + 1, last);
            counted = (counted - entries.count).saturating_add(all);
            let (mut next, _) = prefix.clone();
            next.extend_number(object + 1);
            scan.seek((next, bytes))?;
        }
        Ok(counted)
    }

    /// Estimates the number of quads of a predicate whose object is a literal.
    fn estimate_literals(&self, predicate: u64) -> Result<u64, Error> {
        let (mut key, _) = build_prefix(tree::POSG, &[predicate], None);
        key.extend(&[object::ANY_LITERAL]);
        let bytes = key.len();
        let mut marks = KeyScan::new(self.blocks, (key.clone(), bytes));
        let subjects = self.estimate_list(&(key, bytes))?;
        let (mut sampled, mut literals) = (0, 0);
        while sampled < SAMPLED_SUBJECTS && marks.advance()? {
            sampled += 1;
            let subject = marks.read_number()?;
            let mut values = KeyScan::new(self.blocks, first_literal(subject, predicate));
            let before = literals;
            while literals - before < MAX_COUNTED_QUADS && values.advance()? {
                literals += 1;
            }
        }
        Ok(scale(subjects, literals, sampled))
    }

    /// Estimates the number of subjects that the index of values has for a literal.
    fn estimate_literal_subjects(&self, predicate: Option<u64>, code: &[u8]) -> Result<u64, Error> {
        let Term::Literal(literal) = self.decode_term(code)? else { return Ok(0) };
        let range = ValueRange::with_key_of(literal.as_ref());
        if let Some(predicate) = predicate {
            return Ok(self.estimate_values(predicate, &range)?.unwrap_or_default());
        }
        let mut predicates = LiteralPredicates::new(self);
        let (mut total, mut counted) = (0_u64, 0);
        while counted < MAX_COUNTED_QUADS
            && let Some(predicate) = predicates.next_predicate()?
        {
            let subjects = self.estimate_values(predicate, &range)?.unwrap_or_default();
            total = total.saturating_add(subjects);
            counted += 1;
        }
        Ok(total)
    }

    /// Estimates the number of quads with a named object.
    fn estimate_objects_quads(&self, object: &TermCode) -> Result<u64, Error> {
        let Some(id) = object.id() else { return Ok(0) };
        let mut predicates = KeyScan::new(self.blocks, build_prefix(tree::OP, &[id], None));
        let (mut total, mut counted) = (0_u64, 0);
        while predicates.advance()? {
            let predicate = predicates.read_number()?;
            let prefix = build_prefix(tree::POSG, &[predicate], Some(object));
            total = total.saturating_add(self.estimate_list(&prefix)?);
            counted += 1;
            if counted == SAMPLED_SUBJECTS {
                let rest = self.estimate_list(&build_prefix(tree::OP, &[id], None))?;
                return Ok(scale(total, rest, counted));
            }
        }
        Ok(total)
    }
}

/// A key and the number of its bytes.
type Prefix = (KeyBuffer, usize);

fn named_prefix(predicate: u64) -> Prefix {
    let (mut key, _) = build_prefix(tree::POSG, &[predicate], None);
    key.extend(&[object::NAMED]);
    let bytes = key.len();
    (key, bytes)
}

/// Returns the number that follows the prefix in the last key of that prefix, if its block has it.
fn last_number(blocks: &dyn BlockSource, (key, bytes): &Prefix) -> Result<Option<u64>, Error> {
    let mut end = key.clone();
    end.extend(&[PAST_IDS]);
    let (_, block) = blocks.find_block(Bound::Excluded(&end), &end, Reading::Once)?;
    let mut last = None;
    let _ = block.scan(key, &mut |found, _| {
        if !found.starts_with(key) {
            return Ok(ControlFlow::Break(()));
        }
        let rest = found.get(*bytes..).unwrap_or_default();
        let number = Input::new(rest).read_number();
        last = Some(number.ok_or_else(|| damaged_entry("a number in", found))?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(last)
}

/// Scales what was counted from `first` up to `reached`, exclusive, to all up to `last`.
fn extrapolate(counted: u64, first: u64, reached: u64, last: u64) -> u64 {
    let all = last.max(reached).saturating_sub(first).saturating_add(1);
    scale(counted, all, reached.saturating_sub(first).max(1))
}

/// Returns `count * numerator / denominator`.
fn scale(count: u64, numerator: u64, denominator: u64) -> u64 {
    let scaled = u128::from(count) * u128::from(numerator) / u128::from(denominator.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use crate::{Error, Options, Snapshot, Store, TermCode};
    use oxrdf::{GraphName, Literal, NamedNode, Quad};

    fn iri(name: &str) -> NamedNode {
        NamedNode::new_unchecked(format!("https://example.org/{name}"))
    }

    fn count(snapshot: &Snapshot, pattern: [Option<&TermCode>; 4]) -> u64 {
        snapshot.codes().scan_codes(pattern).map(Result::unwrap).count() as u64
    }

    #[test]
    fn an_estimate_is_exact_if_small_and_within_a_factor_of_four_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        for first in (0..6_000_u32).step_by(1_000) {
            let insert = |t: &mut crate::Transaction<'_>| -> Result<(), Error> {
                for n in first..first + 1_000 {
                    let subject = iri(&format!("s{:08x}", n.wrapping_mul(0x9e37_79b9)));
                    let graph: GraphName =
                        if n % 4 == 0 { iri("g").into() } else { GraphName::DefaultGraph };
                    let mut add = |predicate: &str, object: oxrdf::Term| {
                        let graph = graph.clone();
                        let quad = Quad::new(subject.clone(), iri(predicate), object, graph);
                        t.insert(quad.as_ref()).map(drop)
                    };
                    add("type", iri(&format!("class{}", n % 3)).into())?;
                    add("shared", iri(&format!("v{}", n % 200)).into())?;
                    add("unique", iri(&format!("u{n}")).into())?;
                    add("label", Literal::from(format!("label {n}")).into())?;
                    add("label", Literal::from(format!("other label {n}")).into())?;
                    add("state", Literal::from(format!("{}", n % 5)).into())?;
                    if n % 100 == 0 {
                        add("rare", iri("class0").into())?;
                        add("rare literal", Literal::from(n.to_string()).into())?;
                    }
                }
                Ok(())
            };
            store.transact(insert).unwrap();
            if first == 3_000 {
                store.checkpoint().unwrap();
            }
        }
        let snapshot = store.snapshot().unwrap();
        let code =
            |name: &str| snapshot.codes().find_code(iri(name).as_ref().into()).unwrap().unwrap();
        let literal = Literal::from("3");
        let literal = snapshot.codes().find_code(literal.as_ref().into()).unwrap().unwrap();
        let (predicates, objects): (Vec<_>, Vec<_>) = (
            ["type", "shared", "unique", "label", "state", "rare", "rare literal"].map(code).into(),
            [code("class0"), code("v7"), code("u5"), literal].into(),
        );
        let subject = code(&format!("s{:08x}", 0));
        let graph = code("g");
        let options = |codes: &[TermCode]| {
            std::iter::once(None).chain(codes.iter().cloned().map(Some)).collect::<Vec<_>>()
        };
        let (mut exact, mut estimated) = (0, 0);
        for subject in options(&[subject]) {
            for predicate in options(&predicates) {
                for object in options(&objects) {
                    for graph in options(&[graph.clone(), TermCode::DEFAULT_GRAPH]) {
                        let pattern = [&subject, &predicate, &object, &graph].map(Option::as_ref);
                        let real = count(&snapshot, pattern);
                        let estimate = snapshot.codes().estimate_count(pattern).unwrap();
                        let is_filtered = graph.is_some();
                        if real < 100 && !is_filtered {
                            assert_eq!(estimate, real, "{pattern:?}");
                            exact += 1;
                        } else if real >= 100 {
                            let message = format!("{estimate}, not {real}: {pattern:?}");
                            assert!(estimate <= real * 4 && estimate >= real / 4, "{message}");
                            estimated += 1;
                        }
                    }
                }
            }
        }
        assert!(exact > 20 && estimated > 20, "{exact} exact, {estimated} estimated");
        for (name, real) in [("type", 3), ("shared", 200), ("unique", 6_000), ("label", 12_000)] {
            let estimate = snapshot.codes().estimate_distinct_objects(&code(name)).unwrap();
            assert!(estimate <= real * 4 && estimate >= real / 4, "{name}: {estimate}, not {real}");
        }
    }
}
