//! Settings as the pages show them: each value in force with its source, and how to change it.
use penstock_config::{EffectiveValue, SETTINGS, Setting, Settings};

/// The file in which the package's service looks for settings.
const CONFIGURATION_FILE: &str = "/etc/penstock/application.yaml";
/// The types of targets, which the meanings of their settings begin with.
const TARGET_KINDS: [&str; 3] = ["s3", "directory", "sparql"];
const TARGETS: &str = "service.export.targets.";
const DEFAULT_TARGET: &str = "service.export.default.";
const SOURCES: &str = "service.sources.";

/// One value in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SettingRow {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) origin: String,
    pub(super) meaning: String,
}

impl From<&EffectiveValue> for SettingRow {
    fn from(effective: &EffectiveValue) -> Self {
        let EffectiveValue { name, value, origin } = effective;
        // A table cell shows where a text ends, so it needs no quotes.
        let plain = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        let plain = plain.filter(|value| !value.contains(['\\', '"'])).unwrap_or(value);
        Self {
            name: name.clone(),
            value: plain.to_owned(),
            origin: match origin.as_str() {
                "demo" => "chosen by the demo".to_owned(),
                argument if argument.starts_with("--") => "command line".to_owned(),
                origin => origin.to_owned(),
            },
            // The page shows plain text, not Markdown.
            meaning: find_setting(name).map_or("", |setting| setting.meaning).replace('`', ""),
        }
    }
}

/// Returns the setting with this name. A name in the table may have a placeholder in angle brackets, which
/// any text may replace.
fn find_setting(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| match setting.name.split_once('<') {
        None => setting.name == name,
        Some((before, rest)) => {
            let after = rest.rsplit_once('>').map_or("", |(_, after)| after);
            name.strip_prefix(before).is_some_and(|name| name.ends_with(after))
        }
    })
}

/// The settings of one target or source.
#[derive(Debug, Default)]
pub(super) struct SettingGroup {
    /// Those with a configured value.
    pub(super) given: Vec<SettingRow>,
    /// Those without, with their full name and their meaning.
    pub(super) unset: Vec<(String, String)>,
    /// How to change them.
    pub(super) steps: Vec<Step>,
}

/// A step of an instruction: words, and what to type.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) words: String,
    pub(super) command: String,
}

impl SettingGroup {
    /// Collects the settings of a target. Without settings of its own, those of `service.export.default`.
    pub(super) fn of_target(settings: &Settings, name: &str, kind: &str) -> Self {
        let own = format!("{TARGETS}{name}.");
        let is_default = !settings.targets.named.contains_key(name);
        let prefix = if is_default && settings.targets.default.is_some() {
            DEFAULT_TARGET.to_owned()
        } else {
            own
        };
        let table = format!("{TARGETS}<bucketName>.");
        let known = SETTINGS.iter().filter_map(|setting| {
            let part = setting.name.strip_prefix(table.as_str())?;
            applies_to_kind(setting.meaning, kind).then_some((part, setting.meaning))
        });
        Self::collect(settings, &prefix, known, "The exports that wait are kept.")
    }

    /// Collects the settings of a source.
    pub(super) fn of_source(settings: &Settings, name: &str) -> Self {
        let table = format!("{SOURCES}<source>.");
        let known = SETTINGS.iter().filter_map(|setting| {
            Some((setting.name.strip_prefix(table.as_str())?, setting.meaning))
        });
        let prefix = format!("{SOURCES}{name}.");
        Self::collect(settings, &prefix, known, "The broker keeps the messages meanwhile.")
    }

    /// Collects the settings whose names begin with `prefix`. `known` are the parts of the names after it, with their
    /// meanings; `kept` says what a restart does not lose.
    fn collect<'a>(
        settings: &Settings,
        prefix: &str,
        known: impl Iterator<Item = (&'a str, &'a str)>,
        kept: &str,
    ) -> Self {
        let known: Vec<_> = known.collect();
        let is_part = |part: &str| {
            known.iter().any(|(known, _)| match known.split_once('<') {
                None => *known == part,
                Some((before, _)) => part.starts_with(before),
            })
        };
        let effective = settings.effective_values.iter();
        let given: Vec<SettingRow> = effective
            .filter(|value| value.name.strip_prefix(prefix).is_some_and(is_part))
            .map(SettingRow::from)
            .collect();
        let is_given = |part: &str| given.iter().any(|row| row.name == format!("{prefix}{part}"));
        let unset = known.iter().filter(|(part, _)| !part.contains('<') && !is_given(part));
        Self {
            unset: unset
                .map(|(part, meaning)| (format!("{prefix}{part}"), meaning.replace('`', "")))
                .collect(),
            steps: list_steps(&given, prefix, kept),
            given,
        }
    }

    /// Returns the given settings whose names end in one of these parts.
    pub(super) fn select(&self, parts: &[&str]) -> Vec<&SettingRow> {
        let is_selected = |row: &&SettingRow| {
            row.name.rsplit_once('.').is_some_and(|(_, part)| parts.contains(&part))
        };
        self.given.iter().filter(is_selected).collect()
    }
}

/// Whether a setting with this meaning applies to this type of target. A meaning that names no type applies to all.
fn applies_to_kind(meaning: &str, kind: &str) -> bool {
    let names = |kind: &str| {
        meaning.contains(&format!("{kind}: ")) || meaning.starts_with(&format!("{kind}, "))
    };
    names(kind) || !TARGET_KINDS.into_iter().any(names)
}

/// Lists the steps that change settings: where, the check of the file, and the restart.
fn list_steps(given: &[SettingRow], prefix: &str, kept: &str) -> Vec<Step> {
    let step = |words: String, command: String| Step { words, command };
    let mut files: Vec<&str> = Vec::new();
    let mut is_elsewhere = false;
    for row in given {
        match row.origin.rsplit_once(", line ") {
            Some((file, _)) if !files.contains(&file) => files.push(file),
            Some(_) => {}
            None => is_elsewhere = true,
        }
    }
    let mut edit = "Edit the file:".to_owned();
    if given.is_empty() {
        edit = format!("Add the settings, such as {prefix}type, to the file:");
        files.push(CONFIGURATION_FILE);
    }
    let mut steps = Vec::new();
    for file in &files {
        steps.push(step(edit.clone(), format!("sudoedit {file}")));
    }
    if is_elsewhere {
        let words = "Change the values that come from elsewhere at the source that the table names: the environment and the \
                     command line of the service with";
        steps.push(step(words.to_owned(), "systemctl edit penstock".to_owned()));
    }
    for file in &files {
        steps.push(step("Check it:".to_owned(), format!("penstock check {file}")));
    }
    let words = format!("Restart the gateway, which reads these settings at its start. {kept}");
    steps.push(step(words, "systemctl restart penstock".to_owned()));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, value: &str, origin: &str) -> EffectiveValue {
        let (value, origin) = (format!("{value:?}"), origin.to_owned());
        EffectiveValue { name: name.to_owned(), value, origin }
    }

    #[test]
    fn shows_values_with_their_meaning_and_no_secrets() {
        let row = |name: &str, value: &str| {
            let origin = "default".to_owned();
            SettingRow::from(&EffectiveValue {
                name: name.to_owned(),
                value: value.to_owned(),
                origin,
            })
        };
        let port = row("server.port", "\"8080\"");
        assert_eq!(port.value, "8080");
        assert!(port.meaning.starts_with("The TCP port"));
        assert_eq!(row("service.log.level", r#""a\"b""#).value, r#""a\"b""#);
        let secret = row("service.export.targets.my.bucket.secret-access-key", "******");
        assert_eq!(secret.value, "******");
        assert!(secret.meaning.contains("secret"));
        let topic = row("service.sources.line.subscriptions[0].topic", "a/b");
        assert!(topic.meaning.starts_with("A topic filter"), "{topic:?}");
        assert_eq!(row("nothing", "").meaning, "");
    }

    #[test]
    fn a_group_has_the_settings_of_its_type_and_tells_how_to_change_them() {
        let loaded = penstock_config::load(&penstock_config::Sources::default()).unwrap();
        let mut settings = loaded.settings;
        let file = "/etc/penstock/application.yaml";
        settings.effective_values = vec![
            value("service.export.targets.my.bucket", "b", "--service.export.targets.my.bucket"),
            value("service.export.targets.my.bucket.type", "s3", "default"),
            value("service.export.targets.my.type", "s3", &format!("{file}, line 7")),
        ];
        let group = SettingGroup::of_target(&settings, "my", "s3");
        let names: Vec<_> = group.given.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["service.export.targets.my.bucket", "service.export.targets.my.type"]);
        let unset: Vec<_> = group.unset.iter().map(|(name, _)| name.as_str()).collect();
        assert!(unset.contains(&"service.export.targets.my.endpoint"), "{unset:?}");
        assert!(unset.contains(&"service.export.targets.my.ca-file"), "{unset:?}");
        for other in ["path", "protocol", "username", "type"] {
            assert!(!unset.contains(&format!("service.export.targets.my.{other}").as_str()));
        }
        let commands: Vec<_> = group.steps.iter().map(|step| step.command.as_str()).collect();
        assert_eq!(
            commands,
            [
                "sudoedit /etc/penstock/application.yaml",
                "systemctl edit penstock",
                "penstock check /etc/penstock/application.yaml",
                "systemctl restart penstock"
            ]
        );
        assert_eq!(group.select(&["type"]).len(), 1);
        let nothing = SettingGroup::of_target(&settings, "other", "directory");
        assert!(nothing.given.is_empty() && nothing.steps.len() == 3, "{nothing:?}");
    }
}
