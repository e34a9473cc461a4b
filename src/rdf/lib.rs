//! RDF documents: the formats, the one reader and the one writer of them. `number` and `compare` have the values of
//! literals: whether they are valid, and their order.
//!
//! Every document that somebody outside wrote goes through [`QuadReader`]: the parsers of the formats set no bounds to
//! the memory and the stack that a document takes. Every document that the gateway writes goes through [`QuadWriter`]: the
//! serializer of RDF/XML writes documents that are not well-formed.

pub mod compare;
mod format;
pub mod number;
mod reader;
mod scan;
mod source;
mod turtle;
mod writer;
mod xml;
mod xml_scan;

pub use format::Format;
pub use reader::{MAX_IRI_BYTES, QuadReader, ReadError, ReadOptions, count_term_bytes};
pub use scan::MAX_NESTING;
pub use writer::{QuadWriter, WriteError};
pub use xml::{ReferenceWriter, find_non_xml_char};
