//! Verifying a store that no process has open: every frame, every block, and the index against the journal.
use crate::data_dir::{SCRATCH_FOLDER, discard_scratch, lock_data_dir, refuse_unfinished_restore};
use crate::digest::{self, Digest};
use crate::index::{self, Index, InspectedIndex, LOADING_SEQUENCE};
use crate::journal::{self, CheckedJournal};
use crate::replay::Replay;
use crate::steps::WriterSteps;
use crate::{Error, FastSet, Format, Options, Pattern, Progress, files};
use oxrdf::Quad;
use std::collections::HashMap;
use std::fs;
use std::hash::Hash;
use std::ops::ControlFlow;
use std::path::Path;

/// The maximum number of predicates, of graphs and of objects for which the answer to a pattern is compared.
const MAX_COMPARED_TERMS: usize = 4_096;

/// The result of a verification.
#[non_exhaustive]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// The damage found, with its position. Empty for an intact store.
    pub damage: Vec<String>,
    /// What the next open will do, such as replaying frames that the index lacks.
    pub notes: Vec<String>,
    /// The number of parts read in the journal's base.
    pub parts: u64,
    /// The number of segments read.
    pub segments: u64,
    /// The number of frames in the segments.
    pub frames: u64,
    /// The size of the base and the segments, in bytes.
    pub bytes: u64,
    /// The format of the store.
    pub format: Format,
    /// The sequence of the newest commit.
    pub sequence: u64,
    /// The number of quads in the journal; 0 if it is damaged.
    pub quads: u64,
    /// The number of documents in the journal; 0 if it is damaged.
    pub documents: u64,
}

/// Reads a whole store without changing its data. Meanwhile it needs disk space for a second index in the
/// folder, and about the memory of an open store.
///
/// The result lists the damage. It fails if it cannot read, or if another process has the store open.
pub fn verify_store(dir: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Verified, Error> {
    refuse_unfinished_restore(dir)?;
    let folder = dir.join("journal");
    fs::metadata(&folder).map_err(files::io_error("reading", &folder))?;
    let _lock = lock_data_dir(dir)?;
    discard_scratch(dir)?;
    let mut verified = Verified::default();
    let (found, noted) = index::inspect_index(dir)?;
    let index = match found {
        InspectedIndex::None => add_note(
            &mut verified,
            "there is no quad index, or it is empty; the next open builds it",
        ),
        InspectedIndex::Unfinished => add_note(
            &mut verified,
            "a checkpoint was interrupted; the next open finishes it, or rebuilds the quad index",
        ),
        InspectedIndex::OtherVersion => add_note(
            &mut verified,
            "the quad index is of another version; the next open rebuilds it",
        ),
        InspectedIndex::Unusable(cause) => {
            verified.damage.push(format!("{cause}; the next open rebuilds the quad index"));
            None
        }
        InspectedIndex::Open(index) if index.checkpointed_sequence() >= LOADING_SEQUENCE => {
            add_note(&mut verified, "the quad index is unfinished; the next open rebuilds it")
        }
        InspectedIndex::Open(index) => Some(*index),
    };
    let checked = journal::check_journal(&folder, noted)?;
    verified.notes.extend(checked.leftovers.iter().cloned());
    verified.damage.extend(checked.damage.iter().map(ToString::to_string));
    verified.parts = checked.base.as_ref().map_or(0, |base| base.end.parts);
    verified.segments = checked.segments;
    verified.frames = checked.frames;
    verified.bytes = checked.bytes;
    verified.format = checked.format;
    verified.sequence = checked.newest;
    if checked.damage.is_empty() {
        let compared = compare_with_journal(&mut verified, dir, index, &checked, progress);
        discard_scratch(dir)?;
        compared?;
    }
    Ok(verified)
}

fn add_note(verified: &mut Verified, what: &str) -> Option<Index> {
    verified.notes.push(what.to_owned());
    None
}

/// Builds an index from the journal, and compares the index of the store with it.
fn compare_with_journal(
    verified: &mut Verified,
    dir: &Path,
    index: Option<Index>,
    checked: &CheckedJournal,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    let scratch = dir.join(SCRATCH_FOLDER);
    files::create_folder(&scratch)?;
    // The values of the index are compared with its own quads.
    let mut rebuilt = index::open_index(&scratch, checked.id, false)?;
    let folder = dir.join("journal");
    let replay = |index: &mut Index, write_back_bytes, progress: &mut dyn FnMut(Progress)| {
        let frames = |after: u64, apply: &mut journal::ApplyFrame<'_>| {
            journal::replay_synced(&folder, &checked.id, after, checked.newest, apply)
        };
        Replay {
            base: checked.base.as_ref(),
            newest: checked.newest,
            write_back_bytes,
            steps: &WriterSteps::default(),
            frames: &frames,
        }
        .replay_into(index, progress)
    };
    replay(&mut rebuilt, Some(Options::default().write_back_bytes), progress)?;
    let (quads, documents) = digest::digest_index(&rebuilt, &mut |_| Ok(()))?;
    (verified.quads, verified.documents) = (quads.count, documents.count);
    drop(rebuilt);
    let Some(mut index) = index else { return Ok(()) };
    let from = checked.base.as_ref().map_or(0, |base| base.end.from);
    if index.store_id() != checked.id {
        verified.damage.push("the quad index belongs to another journal".into());
        return Ok(());
    }
    if index.checkpointed_sequence() < from {
        add_note(verified, "the quad index is older than the base; the next open rebuilds it");
        return Ok(());
    }
    let lacking = checked.newest - index.checkpointed_sequence();
    if lacking > 0 {
        add_note(
            verified,
            &format!("the quad index lacks {lacking} frames; the next open replays them"),
        );
    }
    // Replayed only in memory: what the index lacks is at most the content of one checkpoint.
    let differs = replay(&mut index, None, &mut |_| {})
        .and_then(|()| find_differences(&index, quads, documents));
    match differs {
        Ok(differs) => verified.damage.extend(differs),
        Err(Error::Index(cause)) => verified.damage.push(format!(
            "the quad index cannot be read: {cause}; delete the index folder in the data directory, and the next \
             open rebuilds it"
        )),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Returns the differences between the index and the expected digests, in all quads and in the answers to
/// patterns.
fn find_differences(index: &Index, quads: Digest, documents: Digest) -> Result<Vec<String>, Error> {
    let mut faults = Vec::new();
    let (mut predicates, mut graphs, mut objects) =
        (TermDigests::new(), TermDigests::new(), TermDigests::new());
    let found = digest::digest_index(index, &mut |quad| {
        predicates.count_quad(&quad.predicate, quad)?;
        graphs.count_quad(&quad.graph_name, quad)?;
        if !quad.object.is_literal() {
            objects.count_quad(&quad.object, quad)?;
        }
        Ok(())
    })?;
    let mut differ = |what: &str, found: Digest, expected: Digest| {
        if found != expected {
            faults.push(format!(
                "the {what} in the quad index differ from the journal (index: {}, journal: {}); \
                 delete the index folder in the data directory, and the next open rebuilds it",
                found.count, expected.count
            ));
        }
    };
    differ("quads", found.0, quads);
    differ("documents", found.1, documents);
    if let Some(values) = index.view().digest_values()? {
        differ("values", values.found, values.expected);
    }
    for (predicate, expected) in predicates.0 {
        let what = format!("quads of the predicate {predicate}");
        let pattern = Pattern { predicate: Some(predicate), ..Pattern::default() };
        differ(&what, digest_answer(index, &pattern)?, expected);
    }
    for (graph, expected) in graphs.0 {
        let what = format!("quads of the graph {graph}");
        let pattern = Pattern { graph: Some(graph), ..Pattern::default() };
        differ(&what, digest_answer(index, &pattern)?, expected);
    }
    for (object, expected) in objects.0 {
        let what = format!("quads of the object {object}");
        let pattern = Pattern { object: Some(object), ..Pattern::default() };
        differ(&what, digest_answer(index, &pattern)?, expected);
    }
    Ok(faults)
}

/// The digests of the quads of some terms: the first ones found.
struct TermDigests<T>(HashMap<T, Digest>);

impl<T: Clone + Eq + Hash> TermDigests<T> {
    fn new() -> Self {
        Self(HashMap::new())
    }

    fn count_quad(&mut self, term: &T, quad: &Quad) -> Result<(), Error> {
        if let Some(digest) = self.0.get_mut(term) {
            return digest.add_quad(quad);
        }
        if self.0.len() < MAX_COMPARED_TERMS {
            let mut digest = Digest::default();
            digest.add_quad(quad)?;
            self.0.insert(term.clone(), digest);
        }
        Ok(())
    }
}

fn digest_answer(index: &Index, pattern: &Pattern) -> Result<Digest, Error> {
    let mut digest = Digest::default();
    let mut failed = Ok(());
    index.view().for_each(pattern, &FastSet::default(), &mut |quad| {
        failed = digest.add_quad(&quad);
        if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    failed.map(|()| digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Read as _, Store};
    use oxrdf::{GraphName, Literal, NamedNode};

    fn filled(dir: &Path, quads: u64) -> Index {
        let store = Store::open(dir, Options::default(), &mut |_| {}).unwrap();
        let iri = |name: &str| NamedNode::new_unchecked(format!("https://example.org/{name}"));
        for n in 0..quads {
            store
                .transact::<_, Error>(|change| {
                    let subject = iri(&format!("s{n}"));
                    let literal = Literal::new_simple_literal(n.to_string());
                    change.put_document("c", &n.to_be_bytes(), &vec![1; 700])?;
                    change.insert(
                        Quad::new(subject.clone(), iri("p"), literal, GraphName::DefaultGraph)
                            .as_ref(),
                    )?;
                    change.insert(Quad::new(subject, iri("p"), iri("o"), iri("g")).as_ref())
                })
                .unwrap();
        }
        assert_eq!(store.read().any(&Pattern::default()).unwrap(), quads > 0);
        drop(store);
        match index::inspect_index(dir).unwrap().0 {
            InspectedIndex::Open(index) => *index,
            _ => panic!("the index is unusable"),
        }
    }

    #[test]
    fn an_index_with_more_or_fewer_quads_differs_in_every_answer() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let one = filled(dirs[0].path(), 30);
        let (quads, documents) = digest::digest_index(&one, &mut |_| Ok(())).unwrap();
        assert_eq!((quads.count, documents.count), (60, 30));
        assert_eq!(find_differences(&one, quads, documents).unwrap(), Vec::<String>::new());
        let other = filled(dirs[1].path(), 31);
        let differs = find_differences(&other, quads, documents).unwrap();
        assert_eq!(differs.len(), 2, "{differs:?}");
        assert!(differs[0].contains("index: 62, journal: 60"), "{differs:?}");
        assert!(differs[1].contains("index: 31, journal: 30"), "{differs:?}");
    }
}
