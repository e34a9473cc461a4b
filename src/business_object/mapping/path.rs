//! The forms of `path` (specification, 2.2).
