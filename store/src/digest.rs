//! Digests of sets of quads and documents, independent of their order.
use crate::index::Index;
use crate::{Error, term};
use oxrdf::{Quad, TermRef};
use std::hash::{DefaultHasher, Hasher};
use std::ops::ControlFlow;

/// The number of items, and the sum of their hashes. It detects damage, not forgery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) count: u64,
    sum: u128,
}

impl Digest {
    pub(crate) fn add_item(&mut self, parts: &[&[u8]]) {
        let half = |seed: u8| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(seed);
            for part in parts {
                hasher.write_usize(part.len());
                hasher.write(part);
            }
            u128::from(hasher.finish())
        };
        self.count += 1;
        self.sum = self.sum.wrapping_add((half(0) << 64) | half(1));
    }

    pub(crate) fn add_quad(&mut self, quad: &Quad) -> Result<(), Error> {
        let terms: [Option<TermRef<'_>>; 4] = [
            Some(quad.subject.as_ref().into()),
            Some(quad.predicate.as_ref().into()),
            Some(quad.object.as_ref()),
            term::graph_to_term(quad.graph_name.as_ref()),
        ];
        let mut bytes: [Vec<u8>; 4] = Default::default();
        for (bytes, term) in bytes.iter_mut().zip(terms) {
            if let Some(term) = term {
                term::encode(bytes, term)?;
            }
        }
        let [s, p, o, g] = &bytes;
        self.add_item(&[s, p, o, g]);
        Ok(())
    }
}

/// Computes the digests of all quads and of all documents. Calls `visit` with each quad.
pub(crate) fn digest_index(
    index: &Index,
    visit: &mut dyn FnMut(&Quad) -> Result<(), Error>,
) -> Result<(Digest, Digest), Error> {
    let (mut quads, mut documents) = (Digest::default(), Digest::default());
    index.view().visit_quad_page(&Vec::new(), &mut |quad| {
        visit(&quad)?;
        quads.add_quad(&quad)?;
        Ok(ControlFlow::Continue(()))
    })?;
    index.view().visit_document_page(&Vec::new(), &mut |collection, key, value| {
        documents.add_item(&[collection.as_bytes(), key, value]);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((quads, documents))
}
