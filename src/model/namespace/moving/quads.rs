//! Rewrites the quads.
use super::Run;
use crate::change_feed;
use crate::rdf::estimate_bytes;
use oxrdf::{NamedNode, NamedOrBlankNode, Quad};
use penstock_base::error::GatewayError;
use penstock_store::QuadPosition;
use std::ops::ControlFlow;

/// The maximum number of quads in one commit, each of which is removed and added.
const MAX_COMMIT_QUADS: usize = if cfg!(test) { 20 } else { 5_000 };
/// The maximum size in bytes of their terms, which a single quad may exceed.
const MAX_COMMIT_BYTES: usize = 2 << 20;
/// The maximum number of quads that are read with one reader.
const MAX_READ_QUADS: u64 = 50_000;

impl Run<'_> {
    /// Reads all quads, and rewrites those with an IRI of the namespace. Only these change meanwhile, and each is read
    /// before it changes, so one pass reads all of them ([`penstock_store::Reader::visit_quads_from`]).
    pub(super) fn rewrite_quads(&mut self) -> Result<(), GatewayError> {
        let mut position = Some(QuadPosition::default());
        while let Some(from) = position {
            let mut page: Vec<(Quad, Quad)> = Vec::new();
            let (mut bytes, mut read) = (0, 0);
            let store = self.target.store;
            position = store.read().visit_quads_from(&from, &mut |quad| {
                if page.len() == MAX_COMMIT_QUADS
                    || bytes >= MAX_COMMIT_BYTES
                    || read == MAX_READ_QUADS
                {
                    return ControlFlow::Break(());
                }
                read += 1;
                if let Some(rewritten) = self.rebase.rewrite_quad(&quad) {
                    bytes += 2 * estimate_bytes(&quad);
                    page.push((quad, rewritten));
                }
                ControlFlow::Continue(())
            })?;
            if !page.is_empty() {
                self.commit_quads(&page)?;
            }
        }
        Ok(())
    }

    fn commit_quads(&mut self, page: &[(Quad, Quad)]) -> Result<(), GatewayError> {
        let mut subjects: Vec<NamedNode> = Vec::new();
        for (quad, _) in page {
            if let NamedOrBlankNode::NamedNode(subject) = &quad.subject
                && subjects.last() != Some(subject)
            {
                subjects.push(subject.clone());
            }
        }
        let watch = self.target.watch;
        self.commit(|transaction, _, stored| {
            let required = &mut stored.full_exports;
            change_feed::require_full_exports(transaction, watch, &subjects, required)?;
            for (quad, rewritten) in page {
                transaction.remove(quad.as_ref())?;
                transaction.insert(rewritten.as_ref())?;
            }
            stored.quads += page.len() as u64;
            Ok(())
        })
    }
}
