//! The graph as RDF documents.
use crate::gateway::{Gateway, data_events};
use penstock_auth::{Authorized, Role};
use penstock_base::error::GatewayError;
use penstock_model::rdf::{
    self, DumpOptions, Dumped, LoadError, LoadOptions, LoadProgress, LoadTarget,
};
use std::io::{Read, Write};

/// Dumps the graph to `out`, and records it in the audit trail, complete or not. Blocking.
///
/// # Errors
/// As [`rdf::write_dump`].
pub fn dump_graph(
    gateway: &Gateway,
    by: &Authorized,
    options: &DumpOptions,
    out: impl Write,
) -> Result<Dumped, GatewayError> {
    by.require_role(Role::Admin)?;
    let result = rdf::write_dump(&gateway.store, options, out, &mut |_| {});
    gateway.auth.audit.record_event(data_events::dump_event(options, &result));
    match &result {
        Ok(dumped @ Dumped { quads, .. }) => match dumped.to_warning() {
            None => tracing::info!(quads, "The graph was dumped."),
            Some(cause) => tracing::warn!(
                quads,
                cause,
                "The graph was dumped, but not as it was after one commit."
            ),
        },
        Err(cause) => tracing::warn!(%cause, "A dump failed."),
    }
    result
}

/// Loads a document into the graph, and records it in the audit trail, complete or not. `on_progress` is called after
/// each commit, and an error from it stops the load. Blocking.
///
/// # Errors
/// As [`rdf::load_document`].
pub fn load_document(
    gateway: &Gateway,
    by: &Authorized,
    options: &LoadOptions,
    text: impl Read,
    on_progress: &mut dyn FnMut(LoadProgress) -> Result<(), GatewayError>,
) -> Result<LoadProgress, LoadError> {
    by.require_role(Role::Admin)
        .map_err(|error| LoadError { error, loaded: LoadProgress::default() })?;
    let target = LoadTarget {
        store: &gateway.store,
        check: by,
        disk: &gateway.disk,
        watch: gateway.catalogue.watch(),
        check_time: gateway.settings.limits.shapes.time,
    };
    let result = rdf::load_document(&target, options, text, on_progress);
    gateway.auth.audit.record_event(data_events::load_event(options, &result));
    match &result {
        Ok(LoadProgress { quads, added, commits }) => {
            tracing::info!(quads, added, commits, "A document was loaded.");
        }
        Err(LoadError { error, loaded: LoadProgress { quads, added, commits } }) => {
            tracing::warn!(quads, added, commits, cause = %error, "A document was loaded in part.");
        }
    }
    result
}
