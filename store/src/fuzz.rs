//! Fuzz tests: decoders get arbitrary bytes and mutated valid ones. They may refuse them but must not panic.
//!
//! `PENSTOCK_FUZZ_ROUNDS` sets how many inputs each decoder gets.
use crate::frame::{self, Change, CommitCounts};
use crate::term;
use crate::varint::Input;
use oxrdf::{BlankNodeRef, LiteralRef, NamedNodeRef, TermRef};
use std::hash::{BuildHasher as _, RandomState};

const ROUNDS: usize = 20_000;

/// A pseudo-random number generator (xorshift).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // 32 bits, because `usize` has 32 on armhf.
        usize::try_from(self.0 >> 32).unwrap() % bound.max(1)
    }

    fn byte(&mut self) -> u8 {
        // Boundary values of numbers, kinds and lengths are more frequent than others.
        const EDGES: [u8; 8] = [0, 1, 2, 3, 4, 0x7f, 0x80, 0xff];
        let any = self.below(512);
        u8::try_from(any).unwrap_or_else(|_| EDGES[any % EDGES.len()])
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            let to = (at + self.below(24)).min(bytes.len());
            match self.below(6) {
                0 => bytes.truncate(at),
                1 => drop(bytes.drain(at..to)),
                2 => bytes.insert(at, self.byte()),
                3 => bytes.extend_from_within(at..to),
                _ if at < bytes.len() => bytes[at] = self.byte(),
                _ => {}
            }
        }
    }
}

/// Prints the input at which a decoder panicked.
struct Shown<'a>(&'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("the input was {:?}", self.0);
        }
    }
}

/// Passes bytes to a decoder: arbitrary ones, and mutated valid ones.
pub(crate) fn run(valid: &[Vec<u8>], decode: &mut dyn FnMut(&mut Random, &[u8])) {
    let rounds = std::env::var("PENSTOCK_FUZZ_ROUNDS").map_or(ROUNDS, |n| n.parse().unwrap());
    let mut random = Random(RandomState::new().hash_one(1) | 1);
    for round in 0..rounds {
        let mut bytes: Vec<u8> = match valid.get(round % (valid.len() + 1)) {
            Some(valid) => valid.clone(),
            None => (0..random.below(120)).map(|_| random.byte()).collect(),
        };
        if round >= valid.len() {
            random.mutate(&mut bytes);
        }
        let shown = Shown(&bytes);
        decode(&mut random, &bytes);
        drop(shown);
    }
}

/// Returns valid payloads of commits.
pub(crate) fn payloads() -> Vec<Vec<u8>> {
    let datatype = NamedNodeRef::new_unchecked("https://example.org/type");
    let terms = vec![
        TermRef::from(datatype),
        BlankNodeRef::new_unchecked("b").into(),
        LiteralRef::new_simple_literal("text").into(),
        LiteralRef::new_language_tagged_literal_unchecked("Wert", "de").into(),
        LiteralRef::new_typed_literal("01", datatype).into(),
    ];
    let full = Change {
        unsynced_frames: 3,
        terms,
        removed: vec![[1, 1, 3, 0], [2, 1, 4, 1]],
        added: vec![[1, 1, 5, 2], [2, 1, 1, 0]],
        documents: vec![("c", b"key", Some(b"value")), ("c", b"gone", None)],
    };
    [Change::default(), full].map(|change| change.encode(&vec![1; change.terms.len()])).to_vec()
}

#[test]
fn payloads_of_frames() {
    run(&payloads(), &mut |_, bytes| {
        let _ = frame::read_unsynced_frames(bytes);
        let mut documents = Vec::new();
        let checked = CommitCounts::read(bytes, &mut |document| documents.push(document));
        let decoded = Change::decode(bytes);
        assert_eq!(checked.as_ref().err(), decoded.as_ref().err(), "both check the same");
        if let Ok(change) = decoded {
            let quads = (change.added.len() + change.removed.len()) as u64;
            let counts = CommitCounts { quads, documents: change.documents.len() as u64 };
            assert_eq!((checked, &documents), (Ok(counts), &change.documents));
            // A payload that decodes must have the same meaning when it is encoded again.
            let number_of_datatype = |term: &TermRef<'_>| {
                let TermRef::Literal(literal) = term else { return 0 };
                let datatype = TermRef::from(literal.datatype());
                let at = change.terms.iter().position(|term| *term == datatype);
                at.map_or(0, |at| u32::try_from(at + 1).unwrap())
            };
            let datatypes: Vec<u32> = change.terms.iter().map(number_of_datatype).collect();
            let again = change.encode(&datatypes);
            let read = Change::decode(&again).unwrap();
            assert_eq!((read.terms, read.added), (change.terms, change.added));
            assert_eq!((read.removed, read.documents), (change.removed, change.documents));
        }
    });
}

#[test]
fn terms() {
    let mut valid = Vec::new();
    let payload = payloads().pop().unwrap();
    for term in Change::decode(&payload).unwrap().terms {
        let mut bytes = Vec::new();
        term::encode(&mut bytes, term).unwrap();
        valid.push(bytes);
    }
    run(&valid, &mut |_, bytes| {
        if let Some(term) = term::decode(bytes) {
            let mut again = Vec::new();
            term::encode(&mut again, term).unwrap();
            assert_eq!(term::decode(&again), Some(term));
        }
    });
}

#[test]
fn numbers() {
    run(&[], &mut |random, bytes| {
        let mut input = Input::new(bytes);
        while !input.is_empty() {
            let read = match random.below(4) {
                0 => input.read_number().is_some(),
                1 => input.read_bytes().is_some(),
                2 => input.read_text().is_some(),
                _ => input.read_length().is_some(),
            };
            if !read {
                break;
            }
        }
    });
}
