//! An export file as the body of an ingestion. Its metadata is checked, and not stored.
use super::{Mode, Request, ReviewStep};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::hex::encode_hex;
use penstock_base::json::{DataBody, Json};
use sha2::{Digest, Sha256};

/// Whether an object only names itself, as all objects in a file of deletions do.
pub(super) fn has_only_uri(object: &Json) -> bool {
    matches!(object, Json::Object(members) if members.iter().all(|(name, _)| name == "uri"))
}

/// Compares the metadata with the request and the data, and returns the warning that names it. `has_values` is whether
/// an object has more than its `uri`.
///
/// # Errors
/// `ErrorClass::Invalid` if they differ, or if a file of deletions would create what it deletes.
pub(super) fn check_metadata(
    request: &Request<'_>,
    metadata: &[(String, Json)],
    around: &DataBody,
    has_values: bool,
) -> Result<Finding, GatewayError> {
    let name = &request.business_object.object.definition.name;
    let data = request.body.text().get(around.data.clone()).unwrap_or_default();
    let checksum = encode_hex(&Sha256::digest(data));
    let find =
        |member: &str| metadata.iter().find(|(name, _)| name == member).map(|(_, value)| value);
    let expected = [
        ("object_type", Json::String(name.clone()), "the Business Object of the request"),
        ("object_count", Json::Number(around.count.to_string()), "as `data` has it"),
        ("checksum_algorithm", Json::String("SHA-256".to_owned()), "the only one"),
        ("data_checksum", Json::String(checksum), "as `data` has it"),
    ];
    // A change under review was compared with the name when it was sent. The Business Object may have been renamed since.
    let is_replay = matches!(request.review, ReviewStep::Replay(_));
    let mut findings: Vec<_> = expected
        .iter()
        .filter(|(member, ..)| !is_replay || *member != "object_type")
        .filter_map(|(member, expected, why)| {
            let found = find(member);
            if found == Some(expected) {
                return None;
            }
            let found = found.map_or_else(|| "nothing".to_owned(), Json::to_string);
            let message = format!(
                "the metadata of an export file does not match: expected {expected}, {why}; found {found}"
            );
            Some(Finding::at_pointer(format!("/metadata/{member}"), message))
        })
        .collect();
    if !has_values && around.count > 0 && request.mode != Mode::Delete {
        let message = "no object of this export file has more than its `uri`, so it is a file of deletions; send it \
                       with mode=DELETE";
        findings.push(Finding::at_pointer("/data", message));
    }
    match findings.first() {
        None => Ok(Finding::at_pointer(
            "/metadata",
            format!(
                "the body is an export file of {} with {} objects; its checksum is right, and `metadata` is not stored",
                find("object_type").map_or_else(String::new, Json::to_string),
                around.count
            ),
        )),
        Some(first) => {
            Err(GatewayError::with_findings(ErrorClass::Invalid, first.to_string(), findings))
        }
    }
}
