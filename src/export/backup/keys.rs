//! The keys of a backup's objects.
use crate::key::backup_root;

/// The ending of encrypted objects.
const AGE_ENDING: &str = ".age";
const SEGMENT_ENDING: &str = ".segment";
const BASE_ENDING: &str = ".base";
const PROBE_BEGINNING: &str = "probe-";
/// The digits of a sequence.
const SEQUENCE_DIGITS: usize = 20;
/// The greatest sequence and number that are read from a bucket. No gateway gets there, and no computation with them
/// overflows.
pub(super) const MAX_SEQUENCE: u64 = 1 << 60;
/// The hexadecimal digits of the random part of an era's id.
const RANDOM_DIGITS: usize = 16;

/// The keys of one gateway's backup.
#[derive(Debug, Clone)]
pub(super) struct BackupKeys {
    /// What all keys begin with.
    pub(super) root: String,
    encrypted: bool,
}

/// What an object below the folder of an era is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectName {
    /// `era.json`
    Era,
    /// The frames from `first` to `last`.
    Segment { first: u64, last: u64 },
    /// The state after a commit.
    Base { sequence: u64 },
}

impl BackupKeys {
    pub(super) fn new(prefix: &str, gateway: &str, encrypted: bool) -> Self {
        Self { root: backup_root(prefix, gateway), encrypted }
    }

    pub(super) fn head(&self) -> String {
        format!("{}head.json", self.root)
    }

    pub(super) fn era(&self, era: &str) -> String {
        format!("{}era.json", self.era_folder(era))
    }

    /// Returns what the keys of an era begin with.
    pub(super) fn era_folder(&self, era: &str) -> String {
        format!("{}{era}/", self.root)
    }

    pub(super) fn segment(&self, era: &str, first: u64, last: u64) -> String {
        let folder = self.era_folder(era);
        format!(
            "{folder}{first:0SEQUENCE_DIGITS$}-{last:0SEQUENCE_DIGITS$}{SEGMENT_ENDING}{}",
            self.ending()
        )
    }

    pub(super) fn base(&self, era: &str, sequence: u64) -> String {
        let folder = self.era_folder(era);
        format!("{folder}{sequence:0SEQUENCE_DIGITS$}{BASE_ENDING}{}", self.ending())
    }

    /// Returns the key of an object for a test of the bucket.
    pub(super) fn probe(&self) -> String {
        format!("{}{PROBE_BEGINNING}{:016x}", self.root, rand::random::<u64>())
    }

    /// Returns whether this is the key of an object for a test of the bucket.
    pub(super) fn is_probe(&self, key: &str) -> bool {
        let name = key.strip_prefix(&self.root);
        name.is_some_and(|name| name.starts_with(PROBE_BEGINNING) && !name.contains('/'))
    }

    fn ending(&self) -> &'static str {
        if self.encrypted { AGE_ENDING } else { "" }
    }

    /// Returns the era and what the object is, encrypted or not. `None` for other objects.
    pub(super) fn parse<'a>(&self, key: &'a str) -> Option<(&'a str, ObjectName)> {
        let (era, name) = key.strip_prefix(&self.root)?.split_once('/')?;
        era_number(era)?;
        if name == "era.json" {
            return Some((era, ObjectName::Era));
        }
        let name = name.strip_suffix(AGE_ENDING).unwrap_or(name);
        let sequence = |text: &str| -> Option<u64> {
            let sequence = (text.len() == SEQUENCE_DIGITS).then(|| text.parse().ok())?;
            sequence.filter(|sequence| *sequence <= MAX_SEQUENCE)
        };
        if let Some(name) = name.strip_suffix(SEGMENT_ENDING) {
            let (first, last) = name.split_once('-')?;
            let (first, last) = (sequence(first)?, sequence(last)?);
            return (0 < first && first <= last)
                .then_some((era, ObjectName::Segment { first, last }));
        }
        let sequence = sequence(name.strip_suffix(BASE_ENDING)?)?;
        Some((era, ObjectName::Base { sequence }))
    }
}

/// Returns a new id of an era.
pub(super) fn new_era_id(number: u64) -> String {
    format!("{number:06}-{:016x}", rand::random::<u64>())
}

/// Returns the number of an era, from its id. Returns `None` for anything else, such as the name of another folder.
pub(super) fn era_number(era: &str) -> Option<u64> {
    let (number, random) = era.split_once('-')?;
    let is_random = random.len() == RANDOM_DIGITS
        && random.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let is_number = number.len() >= 6 && number.bytes().all(|digit| digit.is_ascii_digit());
    if !is_random || !is_number {
        return None;
    }
    number.parse().ok().filter(|number| *number <= MAX_SEQUENCE)
}

/// Returns a random token.
pub(super) fn random_token() -> String {
    format!("{:032x}", rand::random::<u128>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_parsed_as_they_are_built() {
        let keys = BackupKeys::new("plant/", "edge-1", true);
        let era = new_era_id(3);
        assert_eq!(era_number(&era), Some(3));
        assert_eq!(keys.head(), "plant/_backup/edge-1/head.json");
        let segment = keys.segment(&era, 101, 140);
        assert!(segment.ends_with("/00000000000000000101-00000000000000000140.segment.age"));
        let name = ObjectName::Segment { first: 101, last: 140 };
        assert_eq!(keys.parse(&segment), Some((era.as_str(), name)));
        let base = keys.base(&era, 7);
        assert_eq!(keys.parse(&base), Some((era.as_str(), ObjectName::Base { sequence: 7 })));
        assert_eq!(keys.parse(&keys.era(&era)), Some((era.as_str(), ObjectName::Era)));
        for key in [
            keys.head(),
            keys.probe(),
            segment.replace("101-", "141-"),
            segment.replace("101-", "000-"),
            format!("{base}x"),
            base.replace("0007", "0007/.."),
            keys.base(&era, u64::MAX),
            keys.base("..", 7),
            keys.base("000003-0123456789abcdeF", 7),
        ] {
            assert_eq!(keys.parse(&key), None, "{key}");
        }
        assert_eq!(era_number(&format!("{}-0123456789abcdef", u64::MAX)), None);
        assert!(keys.is_probe(&keys.probe()) && !keys.is_probe(&segment));
        let plain = BackupKeys::new("plant/", "edge-1", false);
        assert_eq!(plain.parse(&base), Some((era.as_str(), ObjectName::Base { sequence: 7 })));
        assert_eq!(plain.base(&era, 7).rsplit_once('.').unwrap().1, "base");
    }
}
