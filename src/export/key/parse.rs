//! Reading the key of an object in a bucket by the templates of targets.
use super::{
    JSON_ENDING, LINES_ENDING, MAX_KEY_BYTES, METADATA_ENDING, MIN_SEQUENCE_DIGITS, date_part,
    kind_suffix, percent_encode, replace_ending,
};
use penstock_config::{KeyPart, KeyTemplate, Placeholder};
use penstock_resources::export::ExportKind;
use percent_encoding::percent_decode_str;

/// The maximum number of readings of one key by one template. So many places in it can be the end of the prefix.
pub(super) const MAX_READINGS: usize = MAX_KEY_BYTES;

/// What an object of a bucket is, by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectRole {
    /// The file of an export in the format `json`.
    Document,
    /// The file of an export in the format `jsonl`.
    Lines,
    /// The metadata of an export in the format `jsonl`.
    Metadata,
}

/// The values in the key of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExportKey {
    pub(crate) role: ObjectRole,
    /// The prefix and the name, as in the key. If nothing is between them, it is the same for every template, even where
    /// it is unclear which of the two a character belongs to.
    pub(crate) folder: String,
    /// The length of the prefix in `folder`.
    prefix_length: usize,
    /// The name of the Business Object.
    pub(crate) name: String,
    pub(crate) sequence: u64,
    /// The kind, if the key has one. Without `{kind}`, a key of an earlier version has none.
    pub(crate) kind: Option<ExportKind>,
    /// Whether it has the form of the key of a full export. Earlier versions wrote other kinds under keys without a suffix,
    /// of which only their metadata says so.
    pub(crate) is_like_full: bool,
    /// `{date}`
    date: Option<String>,
    /// `{yyyy}`, `{mm}` and `{dd}`
    date_parts: [Option<String>; 3],
    /// `{gateway}`
    pub(crate) gateway: Option<String>,
}

impl ExportKey {
    /// Returns every reading of a key by these templates, at most [`MAX_READINGS`] by each. A key has several readings if
    /// several templates match it, or if the end of the prefix or of the name is unclear. If readings with the known
    /// `prefix` of the target exist, there are no others.
    pub(crate) fn parse_all(
        path: &str,
        templates: &[KeyTemplate],
        prefix: Option<&str>,
    ) -> Vec<Self> {
        let (role, path) = if path.ends_with(LINES_ENDING) {
            (ObjectRole::Lines, replace_ending(path, LINES_ENDING, JSON_ENDING))
        } else if path.ends_with(METADATA_ENDING) {
            (ObjectRole::Metadata, replace_ending(path, METADATA_ENDING, JSON_ENDING))
        } else {
            (ObjectRole::Document, path.to_owned())
        };
        let read = |prefix| {
            let mut keys: Vec<Self> = Vec::new();
            for template in templates {
                let found = KeyTexts::default();
                let mut reader = KeyReader { role, prefix, found, keys: Vec::new() };
                reader.read_parts(template.parts(), &path);
                reader.keys.retain(|key| !keys.contains(key));
                keys.append(&mut reader.keys);
            }
            keys
        };
        let with_prefix = prefix.map(|prefix| read(Some(prefix))).unwrap_or_default();
        if with_prefix.is_empty() { read(None) } else { with_prefix }
    }

    /// Returns whether the date in the key, if there is one, is this `metadata.export_date`.
    pub(crate) fn has_date(&self, export_date: &str) -> bool {
        let parts = [0..4, 4..6, 6..8].map(|range| date_part(export_date, range));
        self.date.as_deref().is_none_or(|date| date == export_date)
            && self
                .date_parts
                .iter()
                .zip(parts)
                .all(|(found, expected)| found.as_ref().is_none_or(|found| *found == expected))
    }

    /// Returns the prefix, the gateway if it is in the key, and the name.
    pub(crate) fn folder_label(&self) -> String {
        match (&self.gateway, self.folder.split_at_checked(self.prefix_length)) {
            (Some(gateway), Some((prefix, name))) => {
                format!("{prefix}{}/{name}", percent_encode(gateway))
            }
            _ => self.folder.clone(),
        }
    }

    /// Returns the date as it is in the key.
    pub(crate) fn date_text(&self) -> String {
        let parts = self.date_parts.iter().flatten().map(String::as_str);
        self.date.as_deref().into_iter().chain(parts).collect::<Vec<_>>().join(" ")
    }
}

/// Selects the text of a placeholder.
type TextSlot = fn(&mut KeyTexts) -> &mut Option<String>;

/// The texts of the placeholders that are known so far.
#[derive(Debug, Clone, Default)]
struct KeyTexts {
    name: Option<String>,
    kind: Option<ExportKind>,
    /// Whether `kind` is the absence of a suffix, which says nothing for keys of earlier versions.
    is_without_suffix: bool,
    date: Option<String>,
    year: Option<String>,
    month: Option<String>,
    day: Option<String>,
    sequence: Option<String>,
    gateway: Option<String>,
}

/// Reads keys from their end to their beginning, because most placeholders have a fixed form and the prefix has none.
struct KeyReader<'a> {
    role: ObjectRole,
    prefix: Option<&'a str>,
    found: KeyTexts,
    keys: Vec<ExportKey>,
}

impl KeyReader<'_> {
    /// Reads the text by these parts, and adds each reading.
    fn read_parts(&mut self, parts: &[KeyPart], text: &str) {
        if self.keys.len() == MAX_READINGS {
            return;
        }
        let Some((part, before)) = parts.split_last() else { return };
        let placeholder = match part {
            KeyPart::Text(expected) => {
                if let Some(rest) = text.strip_suffix(expected.as_str()) {
                    self.read_parts(before, rest);
                }
                return;
            }
            KeyPart::Placeholder(placeholder) => *placeholder,
        };
        match placeholder {
            Placeholder::Prefix => self.add_key(text),
            Placeholder::Name => self.read_encoded(before, text, |found| &mut found.name),
            Placeholder::Gateway => self.read_encoded(before, text, |found| &mut found.gateway),
            Placeholder::Sequence => self.read_sequence(before, text),
            Placeholder::Kind | Placeholder::Suffix => self.read_kind(placeholder, before, text),
            Placeholder::Date => self.read_fixed(before, text, 16, |f| &mut f.date, is_date),
            Placeholder::Year => self.read_fixed(before, text, 4, |f| &mut f.year, is_digits),
            Placeholder::Month => self.read_fixed(before, text, 2, |f| &mut f.month, is_digits),
            Placeholder::Day => self.read_fixed(before, text, 2, |f| &mut f.day, is_digits),
        }
    }

    /// Reads a percent-encoded value of any length, the longest first. It has no slash.
    fn read_encoded(&mut self, before: &[KeyPart], text: &str, slot: TextSlot) {
        if let Some(known) = slot(&mut self.found).clone() {
            if let Some(rest) = text.strip_suffix(known.as_str()) {
                self.read_parts(before, rest);
            }
            return;
        }
        let from = text.rfind('/').map_or(0, |slash| slash + 1);
        for (at, _) in text.char_indices().filter(|(at, _)| *at >= from) {
            let (rest, value) = text.split_at(at);
            if decode(value).is_some_and(|decoded| percent_encode(&decoded) == value) {
                *slot(&mut self.found) = Some(value.to_owned());
                self.read_parts(before, rest);
                *slot(&mut self.found) = None;
            }
        }
    }

    /// Reads a value of a fixed length.
    fn read_fixed(
        &mut self,
        before: &[KeyPart],
        text: &str,
        length: usize,
        slot: TextSlot,
        is_valid: impl Fn(&str) -> bool,
    ) {
        let Some((rest, value)) =
            text.len().checked_sub(length).and_then(|at| text.split_at_checked(at))
        else {
            return;
        };
        let known = slot(&mut self.found).clone();
        if is_valid(value) && known.as_deref().is_none_or(|known| known == value) {
            *slot(&mut self.found) = Some(value.to_owned());
            self.read_parts(before, rest);
            *slot(&mut self.found) = known;
        }
    }

    /// Reads a sequence, the shortest first: the digits before it may belong to the prefix.
    fn read_sequence(&mut self, before: &[KeyPart], text: &str) {
        let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
        for length in MIN_SEQUENCE_DIGITS..=digits.min(u64::MAX.to_string().len()) {
            self.read_fixed(
                before,
                text,
                length,
                |found| &mut found.sequence,
                |digits| {
                    let is_whole = digits.len() == MIN_SEQUENCE_DIGITS || !digits.starts_with('0');
                    is_whole && digits.parse::<u64>().is_ok_and(|sequence| sequence > 0)
                },
            );
        }
    }

    fn read_kind(&mut self, placeholder: Placeholder, before: &[KeyPart], text: &str) {
        let known = (self.found.kind, self.found.is_without_suffix);
        for kind in [ExportKind::Incremental, ExportKind::Deleted, ExportKind::Full] {
            let is_suffix = placeholder == Placeholder::Suffix;
            let value = if is_suffix { kind_suffix(kind) } else { kind.name() };
            let Some(rest) = text.strip_suffix(value) else { continue };
            if known.0.is_none_or(|known| known == kind) {
                self.found.kind = Some(kind);
                self.found.is_without_suffix =
                    is_suffix && kind == ExportKind::Full && (known.0.is_none() || known.1);
                self.read_parts(before, rest);
                (self.found.kind, self.found.is_without_suffix) = known;
            }
        }
    }

    /// Adds the reading whose prefix is this rest of the key.
    fn add_key(&mut self, prefix: &str) {
        if self.prefix.is_some_and(|known| known != prefix) || prefix.starts_with('/') {
            return;
        }
        let found = &self.found;
        let (Some(name), Some(sequence)) = (&found.name, &found.sequence) else { return };
        let (Some(decoded), Ok(sequence)) = (decode(name), sequence.parse()) else { return };
        let key = ExportKey {
            role: self.role,
            folder: format!("{prefix}{name}"),
            prefix_length: prefix.len(),
            name: decoded,
            sequence,
            kind: found.kind.filter(|_| !found.is_without_suffix),
            is_like_full: found.kind == Some(ExportKind::Full),
            date: found.date.clone(),
            date_parts: [&found.year, &found.month, &found.day].map(Clone::clone),
            gateway: found.gateway.as_deref().and_then(decode),
        };
        if !self.keys.contains(&key) {
            self.keys.push(key);
        }
    }
}

fn is_date(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| match at {
        8 => byte == b'T',
        15 => byte == b'Z',
        _ => byte.is_ascii_digit(),
    })
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn decode(text: &str) -> Option<String> {
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    (!decoded.is_empty()).then(|| decoded.into_owned())
}
