//! What the name of a member says about its values, and whether a field can have it.

/// The words in names of times.
const TIME_WORDS: &[&str] = &[
    "at",
    "bt",
    "created",
    "date",
    "datetime",
    "dt",
    "epoch",
    "expires",
    "modified",
    "seen",
    "since",
    "sunrise",
    "sunset",
    "t",
    "time",
    "timestamp",
    "ts",
    "until",
    "updated",
];
/// The words in names of what identifies something or is read by people. Digits in such texts are no numbers.
const IDENTIFIER_WORDS: &[&str] = &[
    "address",
    "article",
    "asset",
    "batch",
    "code",
    "description",
    "ean",
    "equipment",
    "eui",
    "firmware",
    "fw",
    "gtin",
    "guid",
    "id",
    "imei",
    "ip",
    "key",
    "label",
    "lot",
    "mac",
    "material",
    "model",
    "name",
    "no",
    "nr",
    "number",
    "order",
    "phone",
    "plz",
    "postcode",
    "rev",
    "revision",
    "serial",
    "sku",
    "sn",
    "tag",
    "text",
    "title",
    "topic",
    "type",
    "uuid",
    "version",
    "zip",
];
/// Those of them in names of what an object has, and a document around objects has not.
const OBJECT_WORDS: &[&str] =
    &["code", "eui", "id", "key", "label", "name", "no", "number", "serial", "sn", "tag", "title"];
/// The languages of which one is in most language maps (ISO 639-1). `id` and `no` are languages too.
const COMMON_LANGUAGES: &[&str] = &[
    "ar", "cs", "da", "de", "el", "en", "es", "fi", "fr", "hu", "it", "ja", "ko", "nl", "pl", "pt",
    "ro", "ru", "sk", "sv", "tr", "uk", "zh",
];
/// All languages with a tag of two letters (ISO 639-1).
const LANGUAGES: &str = "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da \
     de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is \
     it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb \
     nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st \
     su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu";

/// The minimum length of names that look like data because they are hexadecimal, such as an address of a device.
const MIN_HEX_LENGTH: usize = 6;
/// The maximum length of a field's name in characters.
const MAX_FIELD_NAME_CHARACTERS: usize = 256;

/// Returns whether the name is that of a time.
pub(super) fn is_time_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    has_word(name, TIME_WORDS)
        || ["time", "timestamp", "date"].iter().any(|end| lower.ends_with(end))
}

/// Returns whether the name is that of something which identifies, or which people read.
pub(super) fn is_identifier_name(name: &str) -> bool {
    has_word(name, IDENTIFIER_WORDS) || name.to_ascii_lowercase().ends_with("num")
}

/// Returns whether the name is that of what an object has, and a document around objects has not.
pub(super) fn is_name_of_object(name: &str) -> bool {
    has_word(name, OBJECT_WORDS)
}

/// Returns whether one of the words of a name is in a list. `devEui` and `dev_eui` have two words.
fn has_word(name: &str, listed: &[&str]) -> bool {
    let mut spaced = String::with_capacity(name.len());
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && was_lower {
            spaced.push(' ');
        }
        was_lower = c.is_ascii_lowercase();
        spaced.push(if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' });
    }
    spaced.split(' ').any(|word| listed.contains(&word))
}

/// Returns whether all names are language tags, with at least one in a language that is common in industry.
pub(super) fn are_language_tags<'n>(mut names: impl Iterator<Item = &'n str> + Clone) -> bool {
    fn primary(name: &str) -> String {
        name.split('-').next().unwrap_or_default().to_ascii_lowercase()
    }
    let is_tag = |name: &str| {
        let rest = name.get(2..).unwrap_or_default();
        let subtag = |part: &str| {
            (2..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        LANGUAGES.split(' ').any(|language| language == primary(name))
            && (rest.is_empty() || rest.split('-').skip(1).all(subtag))
    };
    names.clone().all(is_tag)
        && names.any(|name| COMMON_LANGUAGES.contains(&primary(name).as_str()))
}

/// Returns whether names look like data and not like the names of fields: they differ only in numbers (`T1` and `T2`), or
/// are hexadecimal.
pub(super) fn look_like_data<'n>(mut names: impl Iterator<Item = &'n str> + Clone) -> bool {
    let is_hex = |name: &str| {
        let digits = name.strip_prefix("0x").unwrap_or(name);
        name.len() >= MIN_HEX_LENGTH
            && digits.contains(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '-'))
    };
    if names.clone().all(is_hex) {
        return true;
    }
    let Some(first) = names.next().map(replace_numbers) else { return false };
    first.contains('#') && names.all(|name| replace_numbers(name) == first)
}

/// Replaces each number in a name by `#`.
fn replace_numbers(name: &str) -> String {
    let mut replaced = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '0'..='9' if replaced.ends_with('#') => {}
            '0'..='9' => replaced.push('#'),
            c => replaced.push(c),
        }
    }
    replaced
}

/// Returns why a mapping cannot have a field of this name.
pub(super) fn find_name_problem(name: &str) -> Option<&'static str> {
    if name == "uri" {
        Some(
            "`uri` is reserved for the object's own URI, which must be an absolute IRI; give the field another name",
        )
    } else if name.is_empty() {
        Some("its name is empty")
    } else if name.chars().any(char::is_control) {
        Some("its name contains a control character")
    } else if name.chars().count() > MAX_FIELD_NAME_CHARACTERS {
        Some("its name is longer than 256 characters")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_name_say_what_its_values_are() {
        for name in ["timestamp", "createdAt", "last_seen", "t", "unixtime", "ts"] {
            assert!(is_time_name(name), "{name}");
        }
        for name in ["flow", "state", "latitude", "tension"] {
            assert!(!is_time_name(name), "{name}");
        }
        for name in ["id", "devEui", "serial_number", "assetnum", "zip"] {
            assert!(is_identifier_name(name), "{name}");
        }
        assert!(!is_identifier_name("fluid") && !is_identifier_name("node"));
    }

    #[test]
    fn language_tags_are_known_languages() {
        let are_tags = |names: &[&str]| are_language_tags(names.iter().copied());
        assert!(are_tags(&["en", "de"]) && are_tags(&["de-AT"]) && are_tags(&["no", "sv"]));
        assert!(!are_tags(&["id", "no"]), "fields of an order");
        for names in [&["en", "xx"][..], &["english"], &["en-"], &["e"], &["en", ""]] {
            assert!(!are_tags(names), "{names:?}");
        }
    }

    #[test]
    fn names_that_differ_in_numbers_are_data() {
        let are_data = |names: &[&str]| look_like_data(names.iter().copied());
        assert!(are_data(&["T1", "T22"]) && are_data(&["10.0.0.1", "10.0.0.2"]));
        assert!(are_data(&["0x00158d0001a2b3c4", "0x00158d0001ffffff"]));
        assert!(!are_data(&["T1", "P1"]) && !are_data(&["a", "b"]) && !are_data(&["time", "T1"]));
    }
}
