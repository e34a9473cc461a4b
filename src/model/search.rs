//! Looking for objects of a Business Object by what the view shows of them.
//!
//! `filter` is what is asked of an object, `matching` asks it; `order` and `cursor` say where an object
//! stands in a listing; `narrow` finds what an index can say beforehand; `page` puts them together;
//! `referrers` finds what refers to an object; `bounds` is how much may be looked at.
//!
//! A value counts as the view shows it: of several values under a field that is no array the first alone,
//! and an object that stands within itself is its URI.
//!
//! # What an index answers
//! Which objects hold an IRI: a field of type `resource`, the URI of a nested object, at any depth, and the
//! object's own URI, each with [`Test::In`]. The rest is read and tested, page by page, so that commits do not
//! wait; [`Bounds`] says how much, and a search that would need more fails rather than end early.
//!
//! # Pages while data changes
//! A cursor holds where its object stood: the value that it is ordered by, and its URI. The next page holds
//! what stands after that place when it is read. So what does not change is listed once, whatever else is
//! added, changed or removed meanwhile; an object whose place changes may be listed twice or not.

mod bounds;
mod cursor;
mod filter;
mod matching;
mod narrow;
mod order;
mod page;
mod referrers;
#[cfg(test)]
mod tests;

pub use bounds::Bounds;
pub use filter::{Filter, Test};
pub use order::Order;
pub use page::{Found, Page, Search, count, page};
pub use referrers::{Referrer, Referrers, Through, referrers};
