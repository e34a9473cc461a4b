//! Rewrites the documents of all collections that have IRIs ([`Collection::has_iris`]).
use super::Run;
use super::rebase::Rebase;
use crate::namespace::change::rewrite_namespace;
use crate::namespace::minting::{rewrite_counter, rewrite_reserved};
use crate::{catalogue, change_feed, ingest, namespace, shapes_graphs, views};
use penstock_base::collections::{self, Collection};
use penstock_base::error::GatewayError;
use penstock_base::table::{Codec, Row, Table};
use penstock_store::Transaction;

/// The number of documents of at most some kilobytes that are read for one commit.
const SMALL: usize = if cfg!(test) { 7 } else { 2_000 };
/// The number of documents of up to a megabyte that are read for one commit.
const LARGE: usize = 8;

/// Rewrites the documents of a collection.
type RewriteCollection = fn(&mut Run<'_>) -> Result<(), GatewayError>;

/// Rewrites a document. Returns whether this changes it; it does not if it was rewritten already.
type RewriteRow<K, V> = fn(&mut Transaction<'_>, &Rebase, &Row<K, V>) -> Result<bool, GatewayError>;

/// The collections whose documents are rewritten.
const REWRITTEN: &[(Collection, RewriteCollection)] = &[
    (collections::BUSINESS_OBJECTS, |run| {
        run.rewrite_table(&catalogue::BUSINESS_OBJECTS, LARGE, catalogue::rewrite_definition)
    }),
    (collections::CHANGES, |run| {
        run.rewrite_table(&change_feed::CHANGES, SMALL, change_feed::rewrite_change)
    }),
    (collections::COUNTERS, |run| run.rewrite_table(&namespace::COUNTERS, SMALL, rewrite_counter)),
    (collections::IDEMPOTENCY, |run| {
        run.rewrite_table(&ingest::ANSWERS, LARGE, ingest::rewrite_stored_answer)
    }),
    (collections::NAMESPACES, |run| {
        run.rewrite_table(&namespace::NAMESPACES, SMALL, rewrite_namespace)
    }),
    (collections::OBJECT_AGES, |run| {
        run.rewrite_table(&change_feed::AGES, SMALL, change_feed::rewrite_age)
    }),
    (collections::RESERVED_IDENTIFIERS, |run| {
        run.rewrite_table(&namespace::RESERVED, SMALL, rewrite_reserved)
    }),
    (collections::SHAPES_GRAPHS, |run| {
        run.rewrite_table(&shapes_graphs::SHAPES_GRAPHS, LARGE, shapes_graphs::rewrite_shapes)
    }),
    (collections::VIEWS, |run| run.rewrite_table(&views::VIEWS, SMALL, views::rewrite_view)),
];

impl Run<'_> {
    /// Rewrites the documents of all collections that have IRIs.
    pub(super) fn rewrite_documents(&mut self) -> Result<(), GatewayError> {
        REWRITTEN.iter().try_for_each(|(_, rewrite)| rewrite(self))
    }

    /// Rewrites the documents of a table.
    fn rewrite_table<K: Codec, V: Codec>(
        &mut self,
        table: &Table<K, V>,
        per_commit: usize,
        rewrite: RewriteRow<K, V>,
    ) -> Result<(), GatewayError> {
        let mut rows = table.scan();
        loop {
            let page = rows.next_page(&self.target.store.read(), per_commit)?;
            if page.is_empty() {
                return Ok(());
            }
            self.commit(|transaction, rebase, stored| {
                for row in &page {
                    stored.documents += u64::from(rewrite(transaction, rebase, row)?);
                }
                Ok(())
            })?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_collection_with_iris_is_rewritten() {
        let with_iris = collections::ALL.iter().filter(|collection| collection.has_iris);
        let rewritten = REWRITTEN.iter().map(|(collection, _)| collection);
        assert!(with_iris.eq(rewritten));
    }
}
