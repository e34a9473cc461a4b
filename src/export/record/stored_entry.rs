//! The stored form of an entry. Its JSON must stay readable: data directories of every released version have such
//! records.
use penstock_resources::export::{Doubt, Export, ExportKind, ExportStatus};
use serde::{Deserialize, Serialize};

/// The stored form of [`Export`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Export", rename_all = "camelCase")]
pub(super) struct StoredEntry {
    id: String,
    business_object: String,
    business_object_name: String,
    target: String,
    sequence: u64,
    #[serde(with = "StoredKind")]
    kind: ExportKind,
    #[serde(with = "StoredStatus")]
    status: ExportStatus,
    object_count: u64,
    bytes: u64,
    data_checksum: String,
    sha256: String,
    key: String,
    created_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clock: Option<Doubt>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<u64>,
    #[serde(default)]
    delivered_at: Option<String>,
    #[serde(default)]
    attempts: u64,
    #[serde(default)]
    last_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pushed_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ExportKind", rename_all = "lowercase")]
enum StoredKind {
    Full,
    Incremental,
    Deleted,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ExportStatus", rename_all = "lowercase")]
enum StoredStatus {
    Waiting,
    Queued,
    Delivering,
    Delivered,
    Blocked,
    Parked,
}

#[cfg(test)]
mod tests {
    use super::super::Record;
    use super::*;

    fn queued_record() -> Record {
        Record {
            entry: Export {
                id: "0199c1d2-7d3e-7000-8000-000000000001".to_owned(),
                business_object: "0199c1d2-7d3e-7000-8000-000000000000".to_owned(),
                business_object_name: "Pump".to_owned(),
                target: "plant-exports".to_owned(),
                sequence: 7,
                kind: ExportKind::Full,
                status: ExportStatus::Queued,
                object_count: 3,
                bytes: 512,
                data_checksum: "aa".to_owned(),
                sha256: "bb".to_owned(),
                key: "Pump/Pump-20260301T120000Z-000000000007.json".to_owned(),
                created_at: "2026-03-01T12:00:00.000Z".to_owned(),
                clock: None,
                commit: None,
                delivered_at: None,
                attempts: 0,
                last_error: None,
                pushed_by: None,
                traceparent: None,
                warnings: Vec::new(),
            },
            place: 9,
            kept: true,
            covers: None,
            made_for: None,
            metadata: None,
            schema_version: None,
        }
    }

    const BEFORE_KIND: &str = concat!(
        r#"{"entry":{"id":"0199c1d2-7d3e-7000-8000-000000000001","#,
        r#""businessObject":"0199c1d2-7d3e-7000-8000-000000000000","businessObjectName":"Pump","#,
        r#""target":"plant-exports","sequence":7,"#,
    );
    const AFTER_STATUS: &str = concat!(
        r#""objectCount":3,"bytes":512,"dataChecksum":"aa","sha256":"bb","#,
        r#""key":"Pump/Pump-20260301T120000Z-000000000007.json","createdAt":"2026-03-01T12:00:00.000Z","#,
    );

    /// Asserts that this text is read as this record, and that the record is written as this text.
    fn assert_stored_form(text: &str, record: &Record) {
        assert_eq!(&serde_json::from_str::<Record>(text).unwrap(), record);
        assert_eq!(serde_json::to_string(record).unwrap(), text);
    }

    #[test]
    fn records_of_every_status_and_kind_keep_their_form() {
        for (status, name) in [
            (ExportStatus::Waiting, "waiting"),
            (ExportStatus::Queued, "queued"),
            (ExportStatus::Delivering, "delivering"),
            (ExportStatus::Delivered, "delivered"),
            (ExportStatus::Blocked, "blocked"),
            (ExportStatus::Parked, "parked"),
        ] {
            let mut record = queued_record();
            record.entry.status = status;
            let text = format!(
                r#"{BEFORE_KIND}"kind":"full","status":"{name}",{AFTER_STATUS}"deliveredAt":null,"attempts":0,"lastError":null}},"place":9,"kept":true}}"#
            );
            assert_stored_form(&text, &record);
        }
        for (kind, name) in
            [(ExportKind::Incremental, "incremental"), (ExportKind::Deleted, "deleted")]
        {
            let mut record = queued_record();
            record.entry.kind = kind;
            let text = format!(
                r#"{BEFORE_KIND}"kind":"{name}","status":"queued",{AFTER_STATUS}"deliveredAt":null,"attempts":0,"lastError":null}},"place":9,"kept":true}}"#
            );
            assert_stored_form(&text, &record);
        }
    }

    #[test]
    fn a_record_with_every_member_keeps_its_form() {
        let mut record = queued_record();
        record.entry = Export {
            status: ExportStatus::Delivered,
            clock: Some(Doubt::Behind),
            commit: Some(41),
            delivered_at: Some("2026-03-01T12:00:01.000Z".to_owned()),
            attempts: 2,
            last_error: Some("connection refused".to_owned()),
            pushed_by: Some("an account".to_owned()),
            traceparent: Some("00-a-b-01".to_owned()),
            warnings: vec!["a \"warning\"".to_owned()],
            ..record.entry
        };
        record.kept = false;
        record.covers = Some((4, 5));
        record.made_for = Some("https://s3.example/plant".to_owned());
        record.metadata = Some("{\"metadata\":{}}".to_owned());
        record.schema_version = Some(6);
        let text = [
            BEFORE_KIND,
            r#""kind":"full","status":"delivered","#,
            AFTER_STATUS,
            r#""clock":"behind","commit":41,"deliveredAt":"2026-03-01T12:00:01.000Z","attempts":2,"#,
            r#""lastError":"connection refused","pushedBy":"an account","traceparent":"00-a-b-01","#,
            r#""warnings":["a \"warning\""]},"place":9,"kept":false,"covers":[4,5],"#,
            r#""made_for":"https://s3.example/plant","metadata":"{\"metadata\":{}}","#,
            r#""schema_version":6}"#,
        ];
        assert_stored_form(&text.concat(), &record);
    }

    #[test]
    fn members_that_older_versions_did_not_write_are_optional() {
        let text = [
            BEFORE_KIND,
            r#""kind":"full","status":"queued","#,
            AFTER_STATUS.trim_end_matches(','),
            r#"},"place":9,"kept":true}"#,
        ];
        assert_eq!(serde_json::from_str::<Record>(&text.concat()).unwrap(), queued_record());
    }
}
