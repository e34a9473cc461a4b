//! Templates of the keys of exports (`service.export.targets.<bucketName>.key`): text with placeholders.
use std::fmt;
use std::str::FromStr;

/// The folder of heartbeats, after the prefix of a target.
pub const HEARTBEAT_FOLDER: &str = "_status";
/// The folder of continuous backups, after the prefix of a target.
pub const BACKUP_FOLDER: &str = "_backup";
/// The template of targets without one of their own.
const DEFAULT_TEMPLATE: &str = "{prefix}{name}/{name}-{date}-{sequence}{suffix}.json";
/// The maximum length of a template in bytes.
const MAX_TEMPLATE_BYTES: usize = 512;
/// The ending of every template.
const ENDING: &str = ".json";

/// A valid template of keys.
///
/// Every key begins with the prefix of its target. Each part of its path has a character other than dots, whatever the
/// values of the placeholders are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyTemplate {
    text: String,
    parts: Vec<KeyPart>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyPart {
    /// The same text in every key. It is not empty.
    Text(String),
    /// A value of the export.
    Placeholder(Placeholder),
}

/// A placeholder of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholder {
    /// `{prefix}`: the prefix of the target. Only at the beginning.
    Prefix,
    /// `{name}`: the name of the Business Object, percent-encoded.
    Name,
    /// `{kind}`: `full`, `incremental` or `deleted`.
    Kind,
    /// `{suffix}`: empty for a full export, otherwise `.incremental` or `.deleted`.
    Suffix,
    /// `{date}`: `metadata.export_date`.
    Date,
    /// `{sequence}`: the sequence with at least 12 digits.
    Sequence,
    /// `{gateway}`: the id of the gateway.
    Gateway,
    /// `{yyyy}`: the year of `{date}`.
    Year,
    /// `{mm}`: the month of `{date}`.
    Month,
    /// `{dd}`: the day of `{date}`.
    Day,
}

/// Why a text is not a template of keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyTemplateError {
    /// The template is too long.
    #[error("has more than {MAX_TEMPLATE_BYTES} bytes")]
    TooLong,
    /// The template contains a control character.
    #[error("contains a control character")]
    ControlCharacter,
    /// A brace has no counterpart.
    #[error("has a `{0}` without its counterpart; braces are only for placeholders")]
    SingleBrace(char),
    /// The name in braces is not a placeholder.
    #[error("has `{{{0}}}`, which is not a placeholder; these are: {list}", list = list_placeholders())]
    UnknownPlaceholder(String),
    /// The template does not begin with `{prefix}`. Consumers list keys by their prefix.
    #[error("does not begin with `{{prefix}}`")]
    PrefixNotFirst,
    /// The template has `{prefix}` in another place too.
    #[error("has `{{prefix}}` in another place than its beginning")]
    SecondPrefix,
    /// The template lacks a placeholder, so that several exports would have the same key.
    #[error("has no `{0}`, so that several exports would have the same key")]
    Missing(Placeholder),
    /// Nothing separates two placeholders, so that it is unclear where the first value ends.
    #[error("has neither `/` nor `-` between `{0}` and `{1}`")]
    NotSeparated(Placeholder, Placeholder),
    /// The template does not end in `.json`.
    #[error("does not end in `{ENDING}`")]
    WrongEnding,
    /// The template ends in `.meta.json`.
    #[error("ends in `{ending}`, which only the metadata of an export has", ending = KeyTemplate::METADATA_ENDING)]
    MetadataEnding,
    /// A part of the path can be empty, `.` or `..`.
    #[error("has a part of the path that can be empty, `.` or `..`")]
    InvalidPath,
}

impl KeyTemplate {
    /// The ending of the key of an export's metadata in the format `jsonl`.
    pub const METADATA_ENDING: &str = ".meta.json";

    /// Returns the parts in order. The first one is `{prefix}`.
    pub fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// Returns the template as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the keys of full, incremental and deleted exports differ.
    pub fn tells_kind(&self) -> bool {
        self.has(Placeholder::Kind) || self.has(Placeholder::Suffix)
    }

    /// Returns why consumers may misread the keys; `None` if these tell the kind of each export.
    pub fn warning(&self) -> Option<&'static str> {
        (!self.tells_kind()).then_some(
            "has neither {kind} nor {suffix}, so a consumer cannot tell incremental and deleted exports from full ones by \
             their keys; add one of them",
        )
    }

    /// Returns the number of placeholders.
    pub fn placeholder_count(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part, KeyPart::Placeholder(_))).count()
    }

    /// Returns whether the template has this placeholder.
    pub fn has(&self, placeholder: Placeholder) -> bool {
        self.parts.contains(&KeyPart::Placeholder(placeholder))
    }

    fn check(&self) -> Result<(), KeyTemplateError> {
        let [KeyPart::Placeholder(Placeholder::Prefix), rest @ ..] = self.parts.as_slice() else {
            return Err(KeyTemplateError::PrefixNotFirst);
        };
        if rest.contains(&KeyPart::Placeholder(Placeholder::Prefix)) {
            return Err(KeyTemplateError::SecondPrefix);
        }
        for required in [Placeholder::Name, Placeholder::Sequence] {
            if !self.has(required) {
                return Err(KeyTemplateError::Missing(required));
            }
        }
        if !self.text.ends_with(ENDING) {
            return Err(KeyTemplateError::WrongEnding);
        }
        check_separators(rest)?;
        check_path(rest)?;
        check_ending(rest)
    }
}

/// Checks that `/` or `-` separates each two placeholders. `{suffix}` begins with a dot, which separates it from
/// placeholders whose values have none.
fn check_separators(parts: &[KeyPart]) -> Result<(), KeyTemplateError> {
    let mut last: Option<Placeholder> = None;
    let mut is_separated = true;
    for part in parts {
        match part {
            KeyPart::Text(text) => is_separated |= text.contains(['/', '-']),
            KeyPart::Placeholder(next) => {
                if let Some(last) = last
                    && !is_separated
                    && !(*next == Placeholder::Suffix && last.has_fixed_form())
                {
                    return Err(KeyTemplateError::NotSeparated(last, *next));
                }
                (last, is_separated) = (Some(*next), false);
            }
        }
    }
    Ok(())
}

/// Checks that no part of the path can be empty or lead to another folder. Only `{suffix}` can be empty; names and ids
/// that consist of dots are percent-encoded.
fn check_path(parts: &[KeyPart]) -> Result<(), KeyTemplateError> {
    let path: String = parts
        .iter()
        .map(|part| match part {
            KeyPart::Text(text) => text.as_str(),
            KeyPart::Placeholder(Placeholder::Suffix) => "",
            KeyPart::Placeholder(_) => "x",
        })
        .collect();
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(KeyTemplateError::InvalidPath);
    }
    Ok(())
}

/// Checks that the text after the last value does not end as the key of metadata does. `{suffix}` can be empty.
fn check_ending(parts: &[KeyPart]) -> Result<(), KeyTemplateError> {
    let mut ending = String::new();
    for part in parts.iter().rev() {
        match part {
            KeyPart::Text(text) => ending.insert_str(0, text),
            KeyPart::Placeholder(Placeholder::Suffix) => {}
            KeyPart::Placeholder(_) => break,
        }
    }
    if ending.ends_with(KeyTemplate::METADATA_ENDING) {
        return Err(KeyTemplateError::MetadataEnding);
    }
    Ok(())
}

impl Default for KeyTemplate {
    fn default() -> Self {
        let parts = parse_parts(DEFAULT_TEMPLATE).unwrap_or_default();
        Self { text: DEFAULT_TEMPLATE.to_owned(), parts }
    }
}

impl FromStr for KeyTemplate {
    type Err = KeyTemplateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > MAX_TEMPLATE_BYTES {
            return Err(KeyTemplateError::TooLong);
        }
        if text.contains(|c: char| c.is_control()) {
            return Err(KeyTemplateError::ControlCharacter);
        }
        let template = Self { text: text.to_owned(), parts: parse_parts(text)? };
        template.check()?;
        Ok(template)
    }
}

fn parse_parts(text: &str) -> Result<Vec<KeyPart>, KeyTemplateError> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (before, after) = rest.split_once('{').map_or((rest, None), |(b, a)| (b, Some(a)));
        if before.contains('}') {
            return Err(KeyTemplateError::SingleBrace('}'));
        }
        if !before.is_empty() {
            parts.push(KeyPart::Text(before.to_owned()));
        }
        let Some(after) = after else { break };
        let (name, after) = after.split_once('}').ok_or(KeyTemplateError::SingleBrace('{'))?;
        let placeholder = Placeholder::ALL.into_iter().find(|known| known.name() == name);
        let unknown = || KeyTemplateError::UnknownPlaceholder(name.to_owned());
        parts.push(KeyPart::Placeholder(placeholder.ok_or_else(unknown)?));
        rest = after;
    }
    Ok(parts)
}

impl fmt::Display for KeyTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Placeholder {
    const ALL: [Self; 10] = [
        Self::Prefix,
        Self::Name,
        Self::Kind,
        Self::Suffix,
        Self::Date,
        Self::Sequence,
        Self::Gateway,
        Self::Year,
        Self::Month,
        Self::Day,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Prefix => "prefix",
            Self::Name => "name",
            Self::Kind => "kind",
            Self::Suffix => "suffix",
            Self::Date => "date",
            Self::Sequence => "sequence",
            Self::Gateway => "gateway",
            Self::Year => "yyyy",
            Self::Month => "mm",
            Self::Day => "dd",
        }
    }

    /// Returns whether no value of this placeholder contains a dot or is empty.
    fn has_fixed_form(self) -> bool {
        !matches!(self, Self::Prefix | Self::Name | Self::Gateway | Self::Suffix)
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{}}}", self.name())
    }
}

fn list_placeholders() -> String {
    Placeholder::ALL.map(|placeholder| placeholder.to_string()).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_default_tells_the_kind_and_the_template_of_earlier_versions_does_not() {
        assert_eq!(DEFAULT_TEMPLATE.parse(), Ok(KeyTemplate::default()));
        assert!(KeyTemplate::default().tells_kind());
        let earlier: KeyTemplate = "{prefix}{name}/{name}-{date}-{sequence}.json".parse().unwrap();
        assert!(!earlier.tells_kind());
        assert!(earlier.warning().is_some() && KeyTemplate::default().warning().is_none());
        for template in [
            "{prefix}{kind}/{name}/{yyyy}/{mm}/{dd}/{sequence}.json",
            "{prefix}{gateway}/{name}/{sequence}-{kind}.json",
            "{prefix}plant/{name}/part-{sequence}{suffix}.json",
            "{prefix}{gateway}-{name}-{sequence}{suffix}-x.json",
            "{prefix}{kind}/{sequence}/{name}.json",
        ] {
            let parsed: KeyTemplate = template.parse().unwrap();
            assert!(parsed.tells_kind(), "{template}");
            assert_eq!(parsed.to_string(), template);
        }
    }

    #[test]
    fn each_error_names_what_is_wrong() {
        let long = format!("{{prefix}}{{name}}/{}{{sequence}}.json", "x".repeat(500));
        for (template, error) in [
            ("{name}/{sequence}.json", "does not begin with `{prefix}`"),
            ("edge/{prefix}{name}/{sequence}.json", "does not begin with `{prefix}`"),
            ("", "does not begin with `{prefix}`"),
            (
                "{prefix}{name}/{prefix}-{sequence}.json",
                "has `{prefix}` in another place than its beginning",
            ),
            ("{prefix}{sequence}.json", "has no `{name}`"),
            ("{prefix}{name}/{date}.json", "has no `{sequence}`"),
            ("{prefix}{name}/{sequence}", "does not end in `.json`"),
            ("{prefix}{name}/{sequence}.jsonl", "does not end in `.json`"),
            ("{prefix}{name}{sequence}.json", "between `{name}` and `{sequence}`"),
            ("{prefix}{name}_{sequence}.json", "between `{name}` and `{sequence}`"),
            ("{prefix}{name}{suffix}/{sequence}.json", "between `{name}` and `{suffix}`"),
            ("{prefix}{name}/{sequence}{suffix}{kind}.json", "between `{suffix}` and `{kind}`"),
            (
                "{prefix}{name}/{seq}.json",
                "has `{seq}`, which is not a placeholder; these are: {prefix}, {name},",
            ),
            ("{prefix}{name}/{Sequence}.json", "has `{Sequence}`, which is not a placeholder"),
            ("{prefix}{name}/{sequence.json", "has a `{` without its counterpart"),
            ("{prefix}{name}/}{sequence}.json", "has a `}` without its counterpart"),
            (
                "{prefix}/{name}/{sequence}.json",
                "has a part of the path that can be empty, `.` or `..`",
            ),
            ("{prefix}{name}//{sequence}.json", "has a part of the path that can be empty"),
            ("{prefix}{name}/../{sequence}.json", "has a part of the path that can be empty"),
            ("{prefix}{name}/{suffix}/{sequence}.json", "has a part of the path that can be empty"),
            (
                "{prefix}{name}/.{suffix}/{sequence}.json",
                "has a part of the path that can be empty",
            ),
            ("{prefix}{name}/\n{sequence}.json", "contains a control character"),
            (
                "{prefix}{name}/{sequence}.meta.json",
                "ends in `.meta.json`, which only the metadata",
            ),
            ("{prefix}{name}/{sequence}.meta{suffix}.json", "ends in `.meta.json`"),
            ("{prefix}{sequence}-{name}/.meta{suffix}.json", "ends in `.meta.json`"),
            (long.as_str(), "has more than 512 bytes"),
        ] {
            let found = template.parse::<KeyTemplate>().unwrap_err().to_string();
            assert!(found.contains(error), "{template}: {found}");
        }
    }

    proptest! {
        #[test]
        fn a_text_is_a_valid_template_or_an_error(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "{prefix}", "{name}", "{kind}", "{suffix}", "{date}", "{sequence}", "{gateway}", "{yyyy}", "{mm}",
                    "{dd}", "/", "-", "x", ".", "..", "{", "}", ".json",
                ]),
                0..12,
            )
        ) {
            let text = parts.concat();
            if let Ok(template) = text.parse::<KeyTemplate>() {
                prop_assert_eq!(template.as_str(), text.as_str());
                let is_whole = text.starts_with("{prefix}") && text.ends_with(ENDING);
                prop_assert!(is_whole, "{}", text);
                let is_text_empty = |part: &KeyPart| matches!(part, KeyPart::Text(text) if text.is_empty());
                prop_assert!(!template.parts().iter().any(is_text_empty));
            }
        }
    }
}
