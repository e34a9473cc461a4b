//! Ordered arrays: RDF lists, whose nodes have IRIs of their own.
//!
//! The IRI of a node is `urn:penstock:@list:<object>:<property>:<position>`, with the IRIs of the object and its property
//! percent-encoded. So the same array gives the same quads. No namespace and no request has such an IRI, and the default base
//! of a namespace has no `@`. The nodes are in the graph of their object. They are no objects: what changes one changes its
//! object.
//!
//! A list that other software wrote has other IRIs. It is read in the same way, and never changed.
//!
//! - `node` has the IRIs of nodes, and of the elements that get one from their place
//! - `read` reads lists, and finds the objects that have an element in one
//! - `write` writes and removes nodes

mod node;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use node::{ElementUris, ListNode, find_owner, is_list_node};
pub use read::Lists;
pub(crate) use read::{List, changed_objects, find_element_owners, list_objects, may_have_lists};
pub(crate) use write::{
    ListPlace, remove_quads, remove_unlinked, remove_unlinked_lists, write_list,
};
