//! The collections of documents, of all layers. A [`Table`](crate::table::Table) needs one of them, so the list is complete.

/// A collection of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collection {
    /// Its name in the store.
    pub name: &'static str,
    /// What a document of it is, as the beginning of a sentence.
    pub document: &'static str,
    /// Whether its documents have IRIs or bases of namespaces, and not only in texts for people. A move of a namespace
    /// rewrites them.
    pub has_iris: bool,
}

const IRIS: bool = true;
const NO_IRIS: bool = false;

macro_rules! collections {
    ($($constant:ident: $name:literal, $document:literal, $has_iris:ident;)+) => {
        $(
            #[doc = $document]
            pub const $constant: Collection =
                Collection { name: $name, document: $document, has_iris: $has_iris };
        )+

        /// All collections.
        pub const ALL: &[Collection] = &[$($constant),+];
    };
}

collections! {
    ACCOUNTS: "accounts", "An account", NO_IRIS;
    API_KEYS: "api-keys", "An API key", NO_IRIS;
    AUDIT: "audit", "An event of the audit trail", NO_IRIS;
    AUDIT_CREDENTIALS: "audit.credentials", "A list of the audit trail", NO_IRIS;
    AUDIT_CHANGES: "audit.changes", "A list of the audit trail", NO_IRIS;
    AUDIT_COUNTS: "audit.counts", "A count of the audit trail", NO_IRIS;
    AUDIT_OTHERS: "audit.others", "A list of the audit trail", NO_IRIS;
    AUDIT_REFUSALS: "audit.refusals", "A list of the audit trail", NO_IRIS;
    AUDIT_SIGN_INS: "audit.sign-ins", "A list of the audit trail", NO_IRIS;
    BOUNDED_SUMS: "bounded-sums", "The size of a bounded log", NO_IRIS;
    BUSINESS_OBJECTS: "business-objects", "A Business Object", IRIS;
    // The commits of a move that rewrite quads require full exports.
    CHANGE_CURSORS: "change-cursors", "The export progress of a Business Object", NO_IRIS;
    CHANGES: "changes", "A changed object", IRIS;
    COUNTERS: "counters", "The counter of a namespace", IRIS;
    // A rejected object stays as it was received. A retry rewrites the IRIs in it (`list_rebases_since`).
    DEAD_LETTERS: "dead-letters", "A dead letter", NO_IRIS;
    DEAD_LETTERS_BY_INGESTION: "dead-letters.by-ingestion", "A list of dead letters", NO_IRIS;
    DEAD_LETTERS_BY_ORIGIN: "dead-letters.by-origin", "The order of dead letters", NO_IRIS;
    DEAD_LETTERS_REMOVED: "dead-letters.removed", "The number of removed dead letters", NO_IRIS;
    DEAD_LETTER_TEXTS: "dead-letters.texts", "The text of a dead letter", NO_IRIS;
    DEAD_LETTER_TOTALS: "dead-letters.totals", "The number of dead letters", NO_IRIS;
    EXPORT_DELIVERED: "export-delivered", "The last sequence delivered to a target", NO_IRIS;
    EXPORT_HELD: "export-held", "The number of exported objects", NO_IRIS;
    EXPORT_IDS: "export-ids", "The order of an export", NO_IRIS;
    EXPORT_SEQUENCES: "export-sequences", "The last sequence of exports to a target", NO_IRIS;
    // A queued file stays as it was rendered, and so does the record of it.
    EXPORTS: "exports", "A record of the export queue", NO_IRIS;
    GATEWAY: "gateway", "A document about the gateway", NO_IRIS;
    GROUPS: "groups", "A group", NO_IRIS;
    IDEMPOTENCY: "idempotency", "A stored answer", IRIS;
    // The entries of both are rewritten with the answers that they belong to.
    IDEMPOTENCY_CHUNKS: "idempotency-chunks", "The order of stored answers", NO_IRIS;
    IDEMPOTENCY_ORDER: "idempotency-order", "The order of stored answers", NO_IRIS;
    INGESTION_IDS: "ingestion-ids", "The sequence of an ingestion", NO_IRIS;
    // It has hashes of URIs. `list_earlier_iris` finds those of the old ones.
    INGESTIONS: "ingestions", "A record of an ingestion", NO_IRIS;
    MANAGED_DEFINITIONS: "managed-definitions", "The record of a definition", NO_IRIS;
    NAMESPACE_MOVES: "namespace-moves", "A move of a namespace", NO_IRIS;
    // It has digests of URIs, and is created again at the end of a move.
    NATURAL_KEYS: "natural-keys", "An entry of the index of keys", NO_IRIS;
    NAMESPACES: "namespaces", "A namespace", IRIS;
    NAMESPACE_CHANGES: "namespaces.changes", "The last changes of namespaces", NO_IRIS;
    OBJECT_AGES: "object-ages", "The age of an object", IRIS;
    RESERVED_IDENTIFIERS: "reserved-identifiers", "A reserved identifier", IRIS;
    // A change stays as it was computed. Computing it again rewrites the IRIs in it (`list_rebases_since`).
    REVIEWED_CHANGES: "reviewed-changes", "A change", NO_IRIS;
    REVIEWED_CHANGES_CLOSED: "reviewed-changes.closed", "A list of closed changes", NO_IRIS;
    REVIEWED_CHANGES_OPEN: "reviewed-changes.open", "An open change", NO_IRIS;
    REVIEWED_CHANGES_PARTS: "reviewed-changes.parts", "A part of a change", NO_IRIS;
    REVIEWED_CHANGES_TOTALS: "reviewed-changes.totals", "The number of changes", NO_IRIS;
    SCHEDULES: "schedules", "The progress of a schedule", NO_IRIS;
    SESSIONS: "sessions", "A session", NO_IRIS;
    SHAPES_GRAPHS: "shapes-graphs", "A shapes graph", IRIS;
    SOURCE_SESSIONS: "source-sessions", "A session of a source", NO_IRIS;
    VIEWS: "views", "A saved view", IRIS;
    WATCHED: "watched", "The number of the definitions", NO_IRIS;
    // An event stays as it was when it happened.
    WEBHOOK_EVENTS: "webhook-events", "An event for a webhook", NO_IRIS;
    WEBHOOK_QUEUES: "webhook-queues", "The size of a queue for a webhook", NO_IRIS;
}
