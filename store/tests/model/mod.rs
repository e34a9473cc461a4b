//! The expected content of a store, in sets and maps, and helpers to compare it with a store.
#![expect(dead_code, reason = "each test uses its part of it")]
use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use penstock_store::{
    DocumentRange, Options, Pattern, Read, Store, SubjectFilter, ValueClass, ValueKey, ValueRange,
};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::path::Path;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) quads: HashSet<Quad>,
    pub(crate) documents: BTreeMap<(String, Vec<u8>), Vec<u8>>,
}

impl Model {
    /// Reads the whole content of a store.
    pub(crate) fn of(read: &impl Read, collections: &[&str]) -> Self {
        let mut model = Self { quads: matching(read, &Pattern::default()), ..Self::default() };
        for collection in collections {
            let range = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
            for (key, value) in read.read_documents(collection, range).unwrap() {
                model.documents.insert(((*collection).to_owned(), key), value);
            }
        }
        model
    }

    pub(crate) fn matching(&self, pattern: &Pattern) -> HashSet<Quad> {
        self.quads
            .iter()
            .filter(|quad| {
                pattern.subject.as_ref().is_none_or(|s| *s == quad.subject)
                    && pattern.predicate.as_ref().is_none_or(|p| *p == quad.predicate)
                    && pattern.object.as_ref().is_none_or(|o| *o == quad.object)
                    && pattern.graph.as_ref().is_none_or(|g| *g == quad.graph_name)
            })
            .cloned()
            .collect()
    }

    pub(crate) fn subjects(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Vec<NamedNode> {
        let found: BTreeSet<&str> = self
            .quads
            .iter()
            .filter(|q| filter.graph.as_ref().is_none_or(|g| *g == q.graph_name))
            .filter_map(|q| match &q.subject {
                NamedOrBlankNode::NamedNode(s) => Some(s.as_str()),
                NamedOrBlankNode::BlankNode(_) => None,
            })
            .filter(|s| after.is_none_or(|a| *s > a))
            .filter(|s| {
                filter.having.iter().all(|(p, o)| {
                    self.quads.iter().any(|q| {
                        q.predicate == *p
                            && q.object == *o
                            && q.subject == NamedNode::new_unchecked(*s).into()
                    })
                })
            })
            .collect();
        found.into_iter().take(limit).map(NamedNode::new_unchecked).collect()
    }

    pub(crate) fn documents(
        &self,
        collection: &str,
        range: DocumentRange<'_>,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut found: Vec<_> = self
            .documents
            .iter()
            .filter(|((c, k), _)| {
                c == collection
                    && k.starts_with(range.prefix)
                    && range.after.is_none_or(|a| if range.reverse { **k < *a } else { **k > *a })
            })
            .map(|((_, k), v)| (k.clone(), v.clone()))
            .collect();
        if range.reverse {
            found.reverse();
        }
        found.truncate(range.limit);
        found
    }
}

/// The subjects that have a value, for each key of values in ascending order.
pub(crate) type Values = Vec<(ValueKey, Vec<NamedOrBlankNode>)>;

impl Model {
    /// Returns the values of a property and class, with their subjects in any order.
    pub(crate) fn values(
        &self,
        property: &NamedNode,
        class: ValueClass,
    ) -> BTreeMap<ValueKey, HashSet<NamedOrBlankNode>> {
        let mut found = BTreeMap::<_, HashSet<_>>::new();
        for quad in self.quads.iter().filter(|quad| quad.predicate == *property) {
            if let Term::Literal(literal) = &quad.object
                && let (found_class, key) = ValueKey::of(literal.as_ref())
                && found_class == class
            {
                found.entry(key).or_default().insert(quad.subject.clone());
            }
        }
        found
    }
}

/// Reads a range of values in both directions, which must agree. `None` without an index of values.
pub(crate) fn read_values(
    read: &impl Read,
    property: &NamedNode,
    range: &ValueRange,
) -> Option<Values> {
    let list = |reverse| {
        let mut found = Values::new();
        let visit = &mut |key: &ValueKey, subject| {
            match found.last_mut() {
                Some((last, subjects)) if last == key => subjects.push(subject),
                _ => found.push((*key, vec![subject])),
            }
            ControlFlow::Continue(())
        };
        let is_there = read.visit_values(property.as_ref(), range, reverse, visit).unwrap();
        is_there.then_some(found)
    };
    let (found, mut reversed) = (list(false)?, list(true)?);
    reversed.reverse();
    assert_eq!(found, reversed, "{range:?}");
    assert!(found.is_sorted_by(|(one, _), (other, _)| one < other), "{found:?}");
    Some(found)
}

pub(crate) fn matching(read: &impl Read, pattern: &Pattern) -> HashSet<Quad> {
    let mut found = HashSet::new();
    read.for_each(pattern, &mut |quad| {
        assert!(found.insert(quad), "a quad came twice");
        ControlFlow::Continue(())
    })
    .unwrap();
    found
}

/// A folder on an in-memory file system if there is one: for tests that need no real disk.
pub(crate) fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

pub(crate) fn open(dir: &Path) -> Store {
    Store::open(dir, Options::default(), &mut |_| {}).unwrap()
}

pub(crate) fn iri(name: &str) -> NamedNode {
    NamedNode::new(format!("https://example.org/{name}")).unwrap()
}

pub(crate) fn quad(subject: &str, predicate: &str, object: impl Into<Term>) -> Quad {
    Quad::new(iri(subject), iri(predicate), object, GraphName::DefaultGraph)
}

pub(crate) fn text(value: &str) -> Literal {
    Literal::new_simple_literal(value)
}

pub(crate) fn blank(name: &str) -> BlankNode {
    BlankNode::new_unchecked(name)
}

/// Adds quads in one commit.
pub(crate) fn add(store: &Store, quads: &[Quad]) -> u64 {
    let ((), commit) = store
        .transact::<_, penstock_store::Error>(|change| {
            for quad in quads {
                change.insert(quad.as_ref())?;
            }
            Ok(())
        })
        .unwrap();
    commit.sequence
}

/// Returns the newest segment of the journal.
pub(crate) fn newest_segment(dir: &Path) -> std::path::PathBuf {
    segments(dir).pop().unwrap()
}

pub(crate) fn segments(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut found: Vec<_> =
        std::fs::read_dir(dir.join("journal")).unwrap().map(|e| e.unwrap().path()).collect();
    found.sort();
    found
}

/// Copies a data directory as it is on the medium now.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            // A file that the store removes meanwhile is no longer on the medium.
            match std::fs::copy(&path, &target) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                copied => drop(copied.unwrap()),
            }
        }
    }
}
