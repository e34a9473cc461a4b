//! Events, and the records that the audit trail stores of them.
use penstock_base::collections;
use penstock_base::error::GatewayError;
use penstock_base::table::{AsJson, Row, Table};
use penstock_base::time;
use penstock_resources::audit::AuditEvent;
use penstock_store::{Read, UnreadableDocument};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The events, by number. Numbers begin at 1 and grow. Deleted events leave gaps.
pub(super) const EVENTS: Table<u64, AsJson<Record>> = Table::new(collections::AUDIT);

/// The maximum length of an event's detail in characters. Clients can influence parts of it.
pub(super) const MAX_DETAIL_CHARS: usize = 500;
/// The number of events per read transaction.
pub(super) const EVENTS_PER_READ: usize = 200;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The kind: `sign-in`, `sign-in.refused`, `request.refused`, `account.created`, `role.changed`, ...
    pub what: &'static str,
    /// The account that the event is about.
    pub account: Option<String>,
    /// The actor (the id of an account or of an API key, or `local`), if it is not the account itself.
    pub by: Option<String>,
    /// The client's address.
    pub from: Option<IpAddr>,
    /// The reason or the change as text; never a part of a credential.
    pub detail: String,
}

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The number, from 1.
    #[serde(default)]
    pub id: u64,
    /// The time (RFC 3339, UTC).
    pub at: String,
    /// As in [`Event`].
    pub what: String,
    /// As in [`Event`].
    pub account: Option<String>,
    /// As in [`Event`].
    pub by: Option<String>,
    /// As in [`Event`].
    pub from: Option<IpAddr>,
    /// As in [`Event`].
    pub detail: String,
    /// The number of occurrences.
    pub count: u64,
}

impl Record {
    pub(super) fn from_event(event: Event, count: u64) -> Self {
        let Event { what, account, by, from, detail } = event;
        Self {
            id: 0,
            at: time::now_rfc3339(),
            what: what.to_owned(),
            account,
            by,
            from,
            detail: detail.chars().take(MAX_DETAIL_CHARS).collect(),
            count,
        }
    }

    pub(super) fn from_row(row: &Row<u64, AsJson<Self>>) -> Result<Self, UnreadableDocument> {
        let (id, record) = row.entry()?;
        Ok(Self { id, ..record })
    }
}

impl From<Record> for AuditEvent {
    fn from(record: Record) -> Self {
        Self {
            id: record.id.to_string(),
            at: record.at,
            what: record.what,
            account: record.account,
            by: record.by,
            from: record.from.map(|from| from.to_string()),
            detail: record.detail,
            count: record.count,
        }
    }
}

/// Returns the number of the last event.
pub(super) fn read_last_number(read: &dyn Read) -> Result<Option<u64>, GatewayError> {
    let last = EVENTS.scan().reverse().first(read)?;
    Ok(last.map(|row| row.key()).transpose()?)
}
