//! Maps and sets with a hasher that is faster than the standard library's, for paths on which every term is hashed.
//!
//! Keys come from outside, so the hasher is seeded at random in each process. It is no cryptographic one: use it for maps
//! only, and never for digests.
use foldhash::quality::RandomState;

/// A map for hot paths. [`Default`] creates one.
pub type FastMap<K, V> = std::collections::HashMap<K, V, RandomState>;

/// A set for hot paths. [`Default`] creates one.
pub type FastSet<T> = std::collections::HashSet<T, RandomState>;
