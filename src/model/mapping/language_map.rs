//! Language maps: JSON objects whose names are language tags, and whose values are texts in these languages.
use std::borrow::Cow;

/// What the texts of a language map have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LanguageMap {
    /// The languages that it may have, in lower case and in the order of the mapping; empty if it may have all.
    pub languages: Vec<String>,
    /// Whether each language has an array of texts instead of one text.
    pub has_arrays: bool,
}

impl LanguageMap {
    /// Creates a map that may have all languages, with one text in each.
    pub const fn new() -> Self {
        Self { languages: Vec::new(), has_arrays: false }
    }

    /// Returns whether the map may have a language. Tags are equal whatever their case.
    pub fn accepts(&self, tag: &str) -> bool {
        self.languages.is_empty()
            || self.languages.iter().any(|language| language.eq_ignore_ascii_case(tag))
    }
}

/// Returns a language tag in the case that RFC 5646 (2.1.1) recommends: `de-AT`, `zh-Hans`.
pub fn format_language_tag(tag: &str) -> Cow<'_, str> {
    if tag.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Cow::Borrowed(tag);
    }
    let mut formatted = String::with_capacity(tag.len());
    let mut is_extension = false;
    for (index, subtag) in tag.split('-').enumerate() {
        if index > 0 {
            formatted.push('-');
        }
        match subtag.len() {
            2 if index > 0 && !is_extension => formatted.push_str(&subtag.to_ascii_uppercase()),
            4 if index > 0 && !is_extension => {
                // A filter can name any text.
                let (first, rest) = subtag.split_at_checked(1).unwrap_or((subtag, ""));
                formatted.push_str(&first.to_ascii_uppercase());
                formatted.push_str(&rest.to_ascii_lowercase());
            }
            _ => formatted.push_str(&subtag.to_ascii_lowercase()),
        }
        // What follows a singleton is in lower case.
        is_extension |= subtag.len() == 1;
    }
    Cow::Owned(formatted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_the_recommended_case() {
        for (tag, formatted) in [
            ("en", "en"),
            ("DE", "de"),
            ("de-at", "de-AT"),
            ("sgn-be-fr", "sgn-BE-FR"),
            ("AZ-latn-X-LATN", "az-Latn-x-latn"),
            ("en-ca-x-ca", "en-CA-x-ca"),
            ("de-1996", "de-1996"),
            ("sl-rozaj-biske", "sl-rozaj-biske"),
            ("en-u-ca-gregory", "en-u-ca-gregory"),
            // No tag.
            ("de-\u{e9}12", "de-\u{e9}12"),
        ] {
            assert_eq!(format_language_tag(tag), formatted);
            assert_eq!(format_language_tag(&tag.to_ascii_uppercase()), formatted);
        }
    }

    #[test]
    fn a_map_accepts_its_languages_in_any_case() {
        let map = LanguageMap { languages: vec!["de-at".to_owned()], has_arrays: false };
        assert!(map.accepts("de-AT") && !map.accepts("de"));
        assert!(LanguageMap::new().accepts("xx"));
    }
}
