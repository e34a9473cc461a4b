//! Derives GraphQL names from arbitrary names.
//!
//! 1. A name is split into words. ASCII letters and digits belong to words; everything else separates them. Before
//!    that, Latin letters with marks become plain letters (`ä` is `ae`, `é` is `e`, `ß` is `ss`). Every other letter
//!    or digit beyond ASCII becomes `u` and its code point, with at least four hexadecimal digits.
//! 2. In the name of a type, each word begins with a capital. In the name of a field, the first word does not: its
//!    leading capitals become lower case. If a lower-case letter follows several capitals, the last of them stays
//!    (`SerialNumber` is `serialNumber`, `URL` is `url`, `URLPath` is `urlPath`).
//! 3. A name that begins with a digit gets a leading `_`.
//! 4. If no word remains, every character becomes `u` and its code point.
//! 5. A name that is taken gets `_2`, `_3` and so on. Derived names contain no `_` except that of step 3, so no
//!    derived name equals a numbered one.
use std::collections::HashSet;
use std::fmt::Write;

/// The maximum number of characters of a derived name.
const MAX_NAME_CHARS: usize = 120;

/// Derives the name of a field.
pub(super) fn derive_field_name(name: &str) -> String {
    let mut words = split_words(name).into_iter();
    let first = words.next().map(|word| lowercase_leading(&word)).unwrap_or_default();
    finish_name(words.fold(first, |name, word| name + &capitalize_word(&word)))
}

/// Derives the name of a type.
pub(super) fn derive_type_name(name: &str) -> String {
    finish_name(split_words(name).iter().map(|word| capitalize_word(word)).collect())
}

/// The set of names that are already used.
#[derive(Debug, Default)]
pub(super) struct UsedNames(HashSet<String>);

impl UsedNames {
    pub(super) fn from_names(names: &[&str]) -> Self {
        Self(names.iter().map(|&name| name.to_owned()).collect())
    }

    pub(super) fn is_free(&self, name: &str) -> bool {
        !self.0.contains(name)
    }

    /// Reserves the name, or the first free one with a number appended.
    pub(super) fn reserve_name(&mut self, name: &str) -> String {
        self.reserve_family(name, |name| vec![name.to_owned()])
    }

    /// Reserves a name for which all names that `family` derives from it are free. Reserves those too.
    pub(super) fn reserve_family(
        &mut self,
        name: &str,
        family: impl Fn(&str) -> Vec<String>,
    ) -> String {
        let mut tried = name.to_owned();
        for number in 2.. {
            let members = family(&tried);
            if members.iter().all(|member| !self.0.contains(member)) {
                self.0.extend(members);
                break;
            }
            tried = format!("{name}_{number}");
        }
        tried
    }
}

fn split_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        let start = words.len() - 1;
        let Some(word) = words.get_mut(start) else { continue };
        match to_plain_letters(c) {
            Some(letters) => word.push_str(&letters),
            None if c.is_ascii_alphanumeric() => word.push(c),
            None if c.is_alphanumeric() => push_code_point(word, c),
            None if word.is_empty() => {}
            None => words.push(String::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    if words.is_empty() {
        let mut word = String::new();
        name.chars().for_each(|c| push_code_point(&mut word, c));
        words.push(word);
    }
    words
}

fn push_code_point(word: &mut String, c: char) {
    // Writing into a string does not fail.
    let _ = write!(word, "u{:04X}", u32::from(c));
}

fn capitalize_word(word: &str) -> String {
    let mut chars = word.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + chars.as_str())
}

fn lowercase_leading(word: &str) -> String {
    let capitals = word.chars().take_while(char::is_ascii_uppercase).count();
    let small_follows = word.chars().nth(capitals).is_some_and(|c| c.is_ascii_lowercase());
    let leading = if capitals > 1 && small_follows { capitals - 1 } else { capitals };
    word.chars()
        .enumerate()
        .map(|(place, c)| if place < leading { c.to_ascii_lowercase() } else { c })
        .collect()
}

fn finish_name(mut name: String) -> String {
    // The name is ASCII, so every index is a character boundary.
    name.truncate(MAX_NAME_CHARS);
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    name
}

/// Returns the plain letters for a Latin letter with marks.
fn to_plain_letters(c: char) -> Option<String> {
    // Letters of other blocks can have one of these as their small letter, such as the sign of the ångström.
    if !('\u{c0}'..='\u{24f}').contains(&c) {
        return None;
    }
    let small = c.to_lowercase().next()?;
    let plain = match small {
        'à' | 'á' | 'â' | 'ã' | 'ā' | 'ă' | 'ą' => "a",
        'ä' | 'æ' => "ae",
        'å' => "aa",
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è' | 'é' | 'ê' | 'ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => "e",
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => "g",
        'ĥ' | 'ħ' => "h",
        'ì' | 'í' | 'î' | 'ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' => "i",
        'ĵ' => "j",
        'ķ' => "k",
        'ĺ' | 'ļ' | 'ľ' | 'ł' => "l",
        'ñ' | 'ń' | 'ņ' | 'ň' => "n",
        'ò' | 'ó' | 'ô' | 'õ' | 'ō' | 'ŏ' | 'ő' => "o",
        'ö' | 'ø' | 'œ' => "oe",
        'ŕ' | 'ŗ' | 'ř' => "r",
        'ś' | 'ŝ' | 'ş' | 'š' | 'ș' => "s",
        'ß' => "ss",
        'ţ' | 'ť' | 'ŧ' | 'ț' => "t",
        'þ' => "th",
        'ù' | 'ú' | 'û' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' => "u",
        'ü' => "ue",
        'ŵ' => "w",
        'ý' | 'ÿ' | 'ŷ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        // The small letter of this one has its dot apart.
        _ if c == 'İ' => "i",
        _ => return None,
    };
    Some(if small == c { plain.to_owned() } else { capitalize_word(plain) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_derived_as_documented() {
        for (name, as_field, as_type) in [
            ("name", "name", "Name"),
            ("SerialNumber", "serialNumber", "SerialNumber"),
            ("serial number", "serialNumber", "SerialNumber"),
            ("serial_number", "serialNumber", "SerialNumber"),
            ("serial-number.of/pump", "serialNumberOfPump", "SerialNumberOfPump"),
            ("URL", "url", "URL"),
            ("URLPath", "urlPath", "URLPath"),
            ("pump_ID", "pumpID", "PumpID"),
            ("ID7", "id7", "ID7"),
            ("3dModel", "_3dModel", "_3dModel"),
            ("Räder & Größe", "raederGroesse", "RaederGroesse"),
            ("Ärger", "aerger", "Aerger"),
            ("\u{130}st \u{212b}", "istU212B", "IstU212B"),
            ("泵", "u6CF5", "U6CF5"),
            ("насос 2", "u043Du0430u0441u043Eu04412", "U043Du0430u0441u043Eu04412"),
            ("__typename", "typename", "Typename"),
            ("...", "u002Eu002Eu002E", "U002Eu002Eu002E"),
            ("🚰", "u1F6B0", "U1F6B0"),
        ] {
            assert_eq!(
                (derive_field_name(name).as_str(), derive_type_name(name).as_str()),
                (as_field, as_type),
                "{name}"
            );
        }
    }

    #[test]
    fn collisions_are_numbered_in_order() {
        let mut taken = UsedNames::from_names(&["uri"]);
        let took: Vec<_> = ["a b", "aB", "a-b", "URI"]
            .iter()
            .map(|name| taken.reserve_name(&derive_field_name(name)))
            .collect();
        assert_eq!(took, ["aB", "aB_2", "aB_3", "uri_2"]);
        let family = |name: &str| vec![name.to_owned(), format!("{name}Connection")];
        let mut taken = UsedNames::default();
        assert_eq!(taken.reserve_family("PumpConnection", family), "PumpConnection");
        assert_eq!(taken.reserve_family("Pump", family), "Pump_2");
    }

    proptest! {
        #[test]
        fn any_name_becomes_a_graphql_name(name in any::<String>()) {
            for derived in [derive_field_name(&name), derive_type_name(&name)] {
                let mut chars = derived.chars();
                if name.is_empty() {
                    continue;
                }
                prop_assert!(chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_'));
                prop_assert!(chars.all(|c| c.is_ascii_alphanumeric()));
                prop_assert!(derived.len() <= MAX_NAME_CHARS + 1);
            }
        }
    }
}
