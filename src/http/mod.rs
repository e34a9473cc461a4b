//! HTTP: the routes, the shapes on the wire, the faults as problem details.
//!
//! One file per resource; `router` is the table of contents.
