//! Reading the whole index one page at a time, while commits continue between the pages.
//!
//! An item that does not change between the first page and the last is visited once. An item that changes
//! meanwhile may be visited in its old or new state, or not at all; a quad even twice.
use super::View;
use super::block_source::ReadEntries as _;
use super::documents::{self, PAST_KEY_END};
use super::key::{KeyBuffer, build_key, damaged_entry, tree};
use super::key_scan::KeyScan;
use super::quad_scan::CodedRow;
use super::quads::TermResolver;
use crate::Error;
use crate::varint::Input;
use oxrdf::Quad;
use std::ops::ControlFlow;

/// The position of the next page. Its bytes are private to this file.
pub(crate) type PageCursor = Vec<u8>;

/// The callback for each document, with its collection, key and value.
pub(crate) type VisitDocument<'v> =
    dyn FnMut(&str, &[u8], &[u8]) -> Result<ControlFlow<()>, Error> + 'v;

impl View<'_> {
    /// Passes the quads from a position on to `visit` until it breaks. Returns the position after the last
    /// one, or `None` at the end.
    pub(crate) fn visit_quad_page(
        &self,
        from: &PageCursor,
        visit: &mut dyn FnMut(Quad) -> Result<ControlFlow<()>, Error>,
    ) -> Result<Option<PageCursor>, Error> {
        self.track_damage(|| {
            let mut names = TermResolver::new(*self);
            let mut from_key = KeyBuffer::new(tree::SPOG);
            if !from_key.extend(from.get(1..).unwrap_or_default()) {
                return Err(damaged_entry("the position", from));
            }
            let mut keys = KeyScan::new(self.blocks, (from_key, 1));
            while keys.advance()? {
                let key = keys.key();
                let row = CodedRow::from_key(key).ok_or_else(|| damaged_entry("a quad", key))?;
                if visit(names.resolve_quad(&row)?)?.is_break() {
                    let mut after = key.to_vec();
                    after.push(0);
                    return Ok(Some(after));
                }
            }
            Ok(None)
        })
    }

    /// Works as [`Self::page_of_quads`], but the next page begins with the quad at which `visit` broke.
    pub(crate) fn visit_quads_from(
        &self,
        from: &PageCursor,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<Option<PageCursor>, Error> {
        let next = self.visit_quad_page(from, &mut |quad| Ok(visit(quad)))?;
        Ok(next.map(|mut after| {
            // The position is the quad's key with one byte appended.
            after.pop();
            after
        }))
    }

    /// Passes the documents of all collections from a position on to `visit` until it breaks. Returns the
    /// position after the last one, or `None` at the end.
    pub(crate) fn visit_document_page(
        &self,
        from: &PageCursor,
        visit: &mut VisitDocument<'_>,
    ) -> Result<Option<PageCursor>, Error> {
        self.track_damage(|| {
            let from = if from.is_empty() { build_key(tree::DOCUMENT, &[]) } else { from.clone() };
            let mut current: Option<(String, Vec<u8>, Vec<u8>)> = None;
            let mut next = None;
            self.blocks.scan(&from, &mut |key, part| {
                let (collection, name, number) =
                    parse_part_key(key).ok_or_else(|| damaged_entry("a document", key))?;
                if number > 0 {
                    let (_, _, value) =
                        current.as_mut().ok_or_else(|| damaged_entry("a document", key))?;
                    value.extend_from_slice(part);
                    return Ok(ControlFlow::Continue(()));
                }
                let whole = current.replace((collection.to_owned(), name, part.to_vec()));
                let Some((collection, name, value)) = whole else {
                    return Ok(ControlFlow::Continue(()));
                };
                let flow = visit(&collection, &name, &value)?;
                if flow.is_break() {
                    next = Some(cursor_after(&collection, &name));
                    current = None;
                }
                Ok(flow)
            })?;
            if let Some((collection, name, value)) = current
                && visit(&collection, &name, &value)?.is_break()
            {
                next = Some(cursor_after(&collection, &name));
            }
            Ok(next)
        })
    }
}

fn parse_part_key(key: &[u8]) -> Option<(&str, Vec<u8>, u64)> {
    let mut input = Input::new(key.get(1..)?);
    let collection = input.read_text()?;
    let (name, number) = documents::split_document_key(input.rest())?;
    Some((collection, name, number))
}

fn cursor_after(collection: &str, name: &[u8]) -> PageCursor {
    let mut cursor = documents::collection_key(collection);
    documents::write_escaped(&mut cursor, name);
    cursor.extend_from_slice(&PAST_KEY_END);
    cursor
}
