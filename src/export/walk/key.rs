//! Parses the key of an export.
use percent_encoding::percent_decode_str;

/// `<prefix><name>/<name>-<export_date>-<sequence>.json`
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
}
