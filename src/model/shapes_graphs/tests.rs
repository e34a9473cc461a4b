//! Shapes graphs in the catalogue, and in the definitions that name them.
