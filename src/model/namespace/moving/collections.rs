//! All collections of documents, and what a move does with each.
//!
//! A test (`tests/architecture.rs`) compares the list with the source code of all crates. A change that adds a collection
//! decides here whether its documents have IRIs.
use super::record::MOVES;
use super::{Rebase, Run};
use crate::{catalogue, change_feed, ingest, namespace, natural_key, shapes_graphs};
use penstock_base::error::GatewayError;
use penstock_store::{DocumentRange, Read as _, Transaction};

/// A collection of documents.
#[derive(Debug, Clone, Copy)]
pub struct Collection {
    /// Its name.
    pub name: &'static str,
    content: Content,
}

/// What the documents of a collection hold.
#[derive(Debug, Clone, Copy)]
enum Content {
    /// No IRI, or only in texts for people.
    NoIris,
    /// IRIs or bases of namespaces.
    Iris {
        /// The number of documents that are read for one commit. Their sizes limit it.
        per_commit: usize,
        rewrite: RewriteDocument,
    },
}

/// Rewrites the document with this key. Returns whether this changes it; it does not if it was rewritten already.
type RewriteDocument = fn(&mut Transaction<'_>, &Rebase, &[u8]) -> Result<bool, GatewayError>;

/// Documents of at most some kilobytes.
const SMALL: usize = if cfg!(test) { 7 } else { 2_000 };
/// Documents of up to a megabyte.
const LARGE: usize = 8;

/// All collections of documents of all crates.
pub const COLLECTIONS: &[Collection] = &[
    without_iris("accounts"),
    without_iris("api-keys"),
    without_iris("audit"),
    without_iris("audit.credentials"),
    without_iris("audit.changes"),
    without_iris("audit.counts"),
    without_iris("audit.others"),
    without_iris("audit.refusals"),
    without_iris("audit.sign-ins"),
    without_iris("bounded-sums"),
    with_iris(catalogue::COLLECTION, LARGE, catalogue::rewrite_definition),
    // The commits that rewrite quads require full exports.
    without_iris("change-cursors"),
    with_iris(change_feed::CHANGES, SMALL, change_feed::rewrite_change),
    with_iris(namespace::COUNTERS, SMALL, namespace::rewrite_counter),
    // A rejected object stays as it was received. A retry rewrites the IRIs in it (`list_rebases_since`).
    without_iris("dead-letters"),
    without_iris("dead-letters.by-ingestion"),
    without_iris("dead-letters.by-origin"),
    without_iris("dead-letters.removed"),
    without_iris("dead-letters.texts"),
    without_iris("dead-letters.totals"),
    without_iris("export-delivered"),
    without_iris("export-held"),
    without_iris("export-ids"),
    without_iris("export-sequences"),
    // A queued file stays as it was rendered, and so does the record of it.
    without_iris("exports"),
    without_iris("gateway"),
    without_iris("groups"),
    with_iris(ingest::ANSWERS_BY_SCOPE, LARGE, ingest::rewrite_stored_answer),
    // Its entries are rewritten with the answers that they belong to.
    without_iris("idempotency-order"),
    without_iris("ingestion-ids"),
    // It has hashes of URIs. `list_earlier_iris` finds those of the old ones.
    without_iris("ingestions"),
    without_iris("managed-definitions"),
    without_iris(MOVES),
    // It has digests of URIs, and is created again at the end of a move.
    without_iris(natural_key::COLLECTION),
    with_iris(namespace::COLLECTION, SMALL, namespace::rewrite_namespace),
    without_iris("namespaces.changes"),
    with_iris(change_feed::AGES, SMALL, change_feed::rewrite_age),
    with_iris(namespace::RESERVED, SMALL, namespace::rewrite_reserved),
    // A change stays as it was computed. Computing it again rewrites the IRIs in it (`list_rebases_since`).
    without_iris("reviewed-changes"),
    without_iris("reviewed-changes.closed"),
    without_iris("reviewed-changes.open"),
    without_iris("reviewed-changes.parts"),
    without_iris("reviewed-changes.totals"),
    without_iris("schedules"),
    without_iris("sessions"),
    with_iris(shapes_graphs::COLLECTION, LARGE, shapes_graphs::rewrite_shapes),
    without_iris("source-sessions"),
    without_iris("watched"),
    // An event stays as it was when it happened.
    without_iris("webhook-events"),
    without_iris("webhook-queues"),
];

const fn without_iris(name: &'static str) -> Collection {
    Collection { name, content: Content::NoIris }
}

const fn with_iris(name: &'static str, per_commit: usize, rewrite: RewriteDocument) -> Collection {
    Collection { name, content: Content::Iris { per_commit, rewrite } }
}

impl Run<'_> {
    /// Rewrites the documents of all collections that hold IRIs.
    pub(super) fn rewrite_documents(&mut self) -> Result<(), GatewayError> {
        for Collection { name, content } in COLLECTIONS {
            if let Content::Iris { per_commit, rewrite } = content {
                self.rewrite_collection(name, *per_commit, *rewrite)?;
            }
        }
        Ok(())
    }

    fn rewrite_collection(
        &mut self,
        name: &str,
        per_commit: usize,
        rewrite: RewriteDocument,
    ) -> Result<(), GatewayError> {
        let mut after: Option<Vec<u8>> = None;
        loop {
            let range = DocumentRange {
                after: after.as_deref(),
                limit: per_commit,
                ..DocumentRange::default()
            };
            let page = self.target.store.read().read_documents(name, range)?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = Some(last.clone());
            self.commit(|transaction, rebase, stored| {
                for (key, _) in &page {
                    stored.documents += u64::from(rewrite(transaction, rebase, key)?);
                }
                Ok(())
            })?;
        }
    }
}
