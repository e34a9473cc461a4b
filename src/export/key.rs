//! The key of an export: `<prefix><name>/<name>-<export_date>-<sequence>.json`. Exports are created with it, and the check
//! of a bucket parses it.
use super::file::to_hex;
use percent_encoding::percent_decode_str;

/// The parts of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExportKey<'a> {
    /// The prefix and the name as in the key.
    pub(super) folder: &'a str,
    /// The name of the Business Object.
    pub(super) name: String,
    pub(super) date: &'a str,
    pub(super) sequence: u64,
}

impl<'a> ExportKey<'a> {
    pub(super) fn parse(path: &'a str) -> Option<Self> {
        let (folder, file) = path.rsplit_once('/')?;
        let mut parts = file.strip_suffix(".json")?.rsplitn(3, '-');
        let (digits, date, name) = (parts.next()?, parts.next()?, parts.next()?);
        let whole = digits.len() >= 12 && digits.bytes().all(|byte| byte.is_ascii_digit());
        let dated = date.len() == 16
            && date.bytes().enumerate().all(|(at, byte)| match at {
                8 => byte == b'T',
                15 => byte == b'Z',
                _ => byte.is_ascii_digit(),
            });
        if !whole || !dated || name.is_empty() || !folder.ends_with(name) {
            return None;
        }
        let sequence = digits.parse().ok().filter(|sequence| *sequence > 0)?;
        let name = percent_decode_str(name).decode_utf8().ok()?.into_owned();
        Some(Self { folder, name, date, sequence })
    }
}

/// Checks that the longest possible file name of a key fits into a directory (255 bytes).
pub(super) fn check_name_length(name: &str) -> Result<(), String> {
    let file_name =
        build_key("", name, "20260301T120000Z", u64::MAX).len() - percent_encode(name).len() - 1;
    if file_name <= 255 {
        return Ok(());
    }
    Err(format!(
        "the name of the Business Object is too long for the key of an export: it has {} percent-encoded \
         bytes, {} too many; shorten it",
        percent_encode(name).len(),
        file_name - 255
    ))
}

/// Returns the key of an export.
pub(super) fn build_key(prefix: &str, name: &str, export_date: &str, sequence: u64) -> String {
    let name = percent_encode(name);
    format!("{prefix}{name}/{name}-{export_date}-{sequence:012}.json")
}

/// Percent-encodes all bytes except `A-Za-z0-9._-`. A name that consists only of dots is encoded completely,
/// because it would lead to another folder.
fn percent_encode(name: &str) -> String {
    let dots = name.bytes().all(|b| b == b'.');
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if (byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')) && !dots {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push_str(&to_hex(&[byte]).to_ascii_uppercase());
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn export_keys_are_parsed_and_others_are_foreign() {
        let key =
            ExportKey::parse("edge 1/a-b%20%C3%BC/a-b%20%C3%BC-20260301T120000Z-000000000007.json");
        let expected = ExportKey {
            folder: "edge 1/a-b%20%C3%BC",
            name: "a-b ü".to_owned(),
            date: "20260301T120000Z",
            sequence: 7,
        };
        assert_eq!(key, Some(expected));
        assert_eq!(
            ExportKey::parse("gw1-Pump/Pump-20260301T120000Z-1000000000000.json").unwrap().sequence,
            1_000_000_000_000
        );
        for path in [
            "Pump-20260301T120000Z-000000000007.json",
            "Valve/Pump-20260301T120000Z-000000000007.json",
            "Pump/Pump-20260301T120000Z-7.json",
            "Pump/Pump-20260301T120000Z-000000000000.json",
            "Pump/Pump-20260301-000000000007.json",
            "Pump/Pump-20260301T120000Z-000000000007.json.gz",
            "Pump/-20260301T120000Z-000000000007.json",
            "Pump/readme.txt",
            "",
        ] {
            assert_eq!(ExportKey::parse(path), None, "{path}");
        }
    }

    #[test]
    fn keys_contain_no_path_characters() {
        assert_eq!(
            build_key("plant/", "Pump", "20260301T120000Z", 7),
            "plant/Pump/Pump-20260301T120000Z-000000000007.json"
        );
        assert_eq!(percent_encode("a b/ü..c"), "a%20b%2F%C3%BC..c");
        assert_eq!(percent_encode("."), "%2E");
        assert_eq!(percent_encode(".."), "%2E%2E");
        assert_eq!(check_name_length(&"n".repeat(200)), Ok(()));
        assert!(check_name_length(&"ü".repeat(100)).is_err());
    }
}
