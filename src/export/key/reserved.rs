//! The keys of what targets have besides exports: heartbeats and continuous backups. Their folders follow the prefix of
//! a target, which need not end in `/`.
use super::{JSON_ENDING, percent_encode};
use penstock_config::{BACKUP_FOLDER, HEARTBEAT_FOLDER};

/// Returns the key of a gateway's heartbeat.
pub(crate) fn heartbeat_key(prefix: &str, gateway: &str) -> String {
    format!("{prefix}{HEARTBEAT_FOLDER}/{}{JSON_ENDING}", percent_encode(gateway))
}

/// Returns what all keys of a gateway's backup begin with.
pub(crate) fn backup_root(prefix: &str, gateway: &str) -> String {
    format!("{prefix}{BACKUP_FOLDER}/{}/", percent_encode(gateway))
}

/// Returns whether this is the key of a heartbeat or of an object of a backup. Without the known prefix of the target,
/// the reserved folder is a whole one: `x_backup` is that of a Business Object.
pub(crate) fn is_reserved_key(key: &str, prefix: Option<&str>) -> bool {
    let has_prefix = prefix.is_some_and(|prefix| key.strip_prefix(prefix).is_some_and(is_reserved));
    let mut folders = key.match_indices('/').map(|(slash, _)| slash + 1);
    has_prefix || is_reserved(key) || folders.any(|start| key.get(start..).is_some_and(is_reserved))
}

/// Returns whether a key without its prefix is reserved.
fn is_reserved(key: &str) -> bool {
    let Some((folder, rest)) = key.split_once('/') else { return false };
    match folder {
        HEARTBEAT_FOLDER => rest.strip_suffix(JSON_ENDING).is_some_and(is_gateway),
        BACKUP_FOLDER => rest
            .split_once('/')
            .is_some_and(|(gateway, object)| is_gateway(gateway) && !object.is_empty()),
        _ => false,
    }
}

/// Returns whether this can be the id of a gateway in a key.
fn is_gateway(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    // Only an id of dots is percent-encoded.
    let dots = text.replace("%2E", "");
    !text.is_empty() && (dots.is_empty() || text.chars().all(is_allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_heartbeats_and_backups_are_reserved() {
        assert_eq!(heartbeat_key("plant/", "edge-1"), "plant/_status/edge-1.json");
        assert_eq!(backup_root("plant-", "edge-1"), "plant-_backup/edge-1/");
        for key in [
            "_status/a.json",
            "plant/_status/edge-1.json",
            "a/b/_status/x.y_z.json",
            heartbeat_key("", "..").as_str(),
            "_backup/edge-1/head.json",
            "plant/_backup/a/000001-ab/1.base.age",
            format!("{}head.json", backup_root("", "..")).as_str(),
        ] {
            assert!(is_reserved_key(key, None) && is_reserved_key(key, Some("x-")), "{key}");
        }
        for with_prefix in ["plant-_status/edge-1.json", "plant-_backup/edge-1/head.json"] {
            assert!(is_reserved_key(with_prefix, Some("plant-")), "{with_prefix}");
            assert!(!is_reserved_key(with_prefix, Some("plan")), "{with_prefix}");
            assert!(!is_reserved_key(with_prefix, None), "{with_prefix}");
        }
    }

    #[test]
    fn other_keys_are_not_reserved() {
        for key in [
            "_status.json",
            "_status/.json",
            "_status/a.txt",
            "_status/a b.json",
            "_status/a/b.json",
            "_status/%20.json",
            "Pump/a.json",
            "pump_status/a.json",
            "_backup.json",
            "_backup/readme.txt",
            "_backup/a b/head.json",
            "_backup/edge-1/",
            "a/_backup",
            "pump_backup/edge-1/head.json",
        ] {
            assert!(!is_reserved_key(key, None) && !is_reserved_key(key, Some("p")), "{key}");
        }
    }
}
