//! Cursors of pages as text: opaque, and valid only for the list that returned them.
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The version of the format.
const CURSOR_VERSION: &str = "1";

/// Encodes these texts as a cursor.
pub fn encode_cursor(parts: &[Option<&str>]) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::json!([CURSOR_VERSION, parts]).to_string())
}

/// Decodes the texts in a cursor; `None` if it is not a cursor with `N` of them.
pub fn decode_cursor<const N: usize>(cursor: &str) -> Option<[Option<String>; N]> {
    let text = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (version, parts): (String, Vec<Option<String>>) = serde_json::from_slice(&text).ok()?;
    if version == CURSOR_VERSION { parts.try_into().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_decode_to_their_parts() {
        let cursor = encode_cursor(&[Some("http://example.org/ü?a=1"), None]);
        assert_eq!(
            decode_cursor(&cursor),
            Some([Some("http://example.org/ü?a=1".to_owned()), None])
        );
        assert_eq!(decode_cursor::<1>(&cursor), None);
        for bad in ["", "0", "zz", "3G", "WyIyIixbXV0"] {
            assert_eq!(decode_cursor::<0>(bad), None, "{bad}");
        }
    }
}
