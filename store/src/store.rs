//! The store. PLACEHOLDER held in memory, to be replaced by the journal and the index.
use crate::read::{DocumentRange, Pattern, Read, SubjectFilter};
use crate::{Error, Transaction};
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of changed index entries held in memory before a checkpoint writes them out.
    pub write_back_bytes: usize,
    /// Bytes after which the journal begins a new segment.
    pub segment_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { write_back_bytes: 12 << 20, segment_bytes: 8 << 20 }
    }
}

/// How far an opening store has come with replaying its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Frames replayed so far.
    pub done: u64,
    /// Frames to replay in all.
    pub total: u64,
}

/// What a transaction became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commit {
    /// The sequence of its frame; that of the newest frame before it when nothing changed.
    pub sequence: u64,
    /// Quads added.
    pub added: u64,
    /// Quads removed.
    pub removed: u64,
}

/// What the store holds and uses now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// The sequence of the newest frame.
    pub sequence: u64,
    /// Quads held.
    pub quads: u64,
    /// Bytes of the journal on disk.
    pub journal_bytes: u64,
    /// Bytes of the index on disk.
    pub index_bytes: u64,
    /// Bytes of index entries that wait for a checkpoint.
    pub write_back_bytes: u64,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct State {
    pub(crate) quads: HashSet<Quad>,
    pub(crate) documents: BTreeMap<(String, Vec<u8>), Vec<u8>>,
    pub(crate) sequence: u64,
}

/// A durable set of quads and documents. Cheap to clone; all clones are one store.
#[derive(Debug, Clone)]
pub struct Store {
    state: Arc<RwLock<State>>,
    writer: Arc<Mutex<()>>,
}

impl Store {
    /// Opens the store in `dir`, making it when there is none, and replays what the index lacks,
    /// telling `progress` from time to time.
    pub fn open(
        dir: &Path,
        options: Options,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, Error> {
        let _ = (dir, options, progress);
        Ok(Self { state: Arc::default(), writer: Arc::default() })
    }

    /// A view of all whole commits. Keep it briefly: commits wait while it lives.
    pub fn read(&self) -> Reader<'_> {
        Reader { state: self.state.read().unwrap_or_else(std::sync::PoisonError::into_inner) }
    }

    /// Runs `change` alone among the writers and commits what it did as one frame. Returns once the
    /// frame is synced. When `change` fails, nothing of it remains.
    pub fn transact<T, E: From<Error>>(
        &self,
        change: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<(T, Commit), E> {
        let _writer = self.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let before = self.read().state.clone();
        let mut transaction = Transaction {
            store: std::marker::PhantomData,
            state: before,
            added: 0,
            removed: 0,
            documents: 0,
        };
        let value = change(&mut transaction)?;
        if transaction.added + transaction.removed + transaction.documents > 0 {
            transaction.state.sequence += 1;
        }
        let commit = Commit {
            sequence: transaction.state.sequence,
            added: transaction.added,
            removed: transaction.removed,
        };
        *self.state.write().unwrap_or_else(std::sync::PoisonError::into_inner) = transaction.state;
        Ok((value, commit))
    }

    /// Writes what waits in memory to the index and syncs it, so that the next open is quick.
    pub fn checkpoint(&self) -> Result<(), Error> {
        Ok(())
    }

    /// What the store holds and uses now.
    pub fn stats(&self) -> Stats {
        let reader = self.read();
        Stats {
            sequence: reader.state.sequence,
            quads: reader.state.quads.len() as u64,
            ..Stats::default()
        }
    }
}

/// A view of all whole commits at one moment.
#[derive(Debug)]
pub struct Reader<'a> {
    state: RwLockReadGuard<'a, State>,
}

impl Reader<'_> {
    /// The sequence of the newest commit seen.
    pub fn sequence(&self) -> u64 {
        self.state.sequence
    }
}

impl Read for Reader<'_> {
    fn quads_about(&self, subject: &NamedOrBlankNode) -> Result<Vec<Quad>, Error> {
        self.state.quads_about(subject)
    }
    fn for_each(
        &self,
        pattern: &Pattern,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.state.for_each(pattern, visit)
    }
    fn subjects(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<NamedNode>, Error> {
        self.state.subjects(filter, after, limit)
    }
    fn document(&self, collection: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.state.document(collection, key)
    }
    fn documents(
        &self,
        collection: &str,
        range: DocumentRange<'_>,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Error> {
        self.state.documents(collection, range)
    }
}

impl Read for State {
    fn quads_about(&self, subject: &NamedOrBlankNode) -> Result<Vec<Quad>, Error> {
        let mut found: Vec<Quad> =
            self.quads.iter().filter(|q| q.subject == *subject).cloned().collect();
        found.sort_by_cached_key(|q| {
            (q.predicate.to_string(), q.object.to_string(), q.graph_name.to_string())
        });
        Ok(found)
    }

    fn for_each(
        &self,
        pattern: &Pattern,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        for quad in &self.quads {
            if pattern.subject.as_ref().is_none_or(|s| *s == quad.subject)
                && pattern.predicate.as_ref().is_none_or(|p| *p == quad.predicate)
                && pattern.object.as_ref().is_none_or(|o| *o == quad.object)
                && pattern.graph.as_ref().is_none_or(|g| *g == quad.graph_name)
                && visit(quad.clone()).is_break()
            {
                break;
            }
        }
        Ok(())
    }

    fn subjects(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<NamedNode>, Error> {
        let having = |s: &NamedNode, p: &NamedNode, o: &Term| {
            self.quads
                .iter()
                .any(|q| q.predicate == *p && q.object == *o && q.subject == s.clone().into())
        };
        let found: BTreeSet<String> = self
            .quads
            .iter()
            .filter(|q| filter.graph.as_ref().is_none_or(|g: &GraphName| *g == q.graph_name))
            .filter_map(|q| match &q.subject {
                NamedOrBlankNode::NamedNode(s) => Some(s),
                NamedOrBlankNode::BlankNode(_) => None,
            })
            .filter(|s| after.is_none_or(|a| s.as_str() > a))
            .filter(|s| filter.having.iter().all(|(p, o)| having(s, p, o)))
            .map(|s| s.as_str().to_owned())
            .collect();
        Ok(found.into_iter().take(limit).map(NamedNode::new_unchecked).collect())
    }

    fn document(&self, collection: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.documents.get(&(collection.to_owned(), key.to_vec())).cloned())
    }

    fn documents(
        &self,
        collection: &str,
        range: DocumentRange<'_>,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Error> {
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
        Ok(found)
    }
}
