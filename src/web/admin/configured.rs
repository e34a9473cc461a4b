//! Settings as the pages show them: each value in force with its source, and how to change it.
use penstock_config::{EffectiveValue, SETTINGS, Settings};
use std::path::{Path, absolute};

/// The file in which the package's service looks for settings.
pub(super) const CONFIGURATION_FILE: &str = "/etc/penstock/application.yaml";
/// The folder of the package's secrets, and the beginning of the paths under which systemd passes them to a service.
pub(super) const CREDENTIALS_DIR: &str = "/etc/penstock/credentials";
const PASSED_CREDENTIALS: &str = "/run/credentials/";
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
        let EffectiveValue { name, value, origin, meaning } = effective;
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
            meaning: meaning.replace('`', ""),
        }
    }
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

/// What the steps to change settings say beside the settings.
struct Advice {
    /// How to configure something that has no setting yet.
    add: String,
    /// What a restart does not lose.
    kept: &'static str,
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
            setting.applies_to(kind).then_some((part, &*setting.meaning))
        });
        let targets = &settings.targets;
        let default = if targets.named.is_empty() && targets.default.is_none() {
            // Without any configured target, every name is a directory. The first one ends that.
            format!(
                " Also add {DEFAULT_TARGET}type: directory, so that other names remain directories."
            )
        } else {
            String::new()
        };
        let add = format!("Add the settings, such as {prefix}type.{default}");
        Self::with_prefix(
            settings,
            &prefix,
            known,
            &Advice { add, kept: "The exports that wait are kept." },
        )
    }

    /// Collects the settings of a source.
    pub(super) fn of_source(settings: &Settings, name: &str) -> Self {
        let table = format!("{SOURCES}<source>.");
        let known = SETTINGS.iter().filter_map(|setting| {
            Some((setting.name.strip_prefix(table.as_str())?, &*setting.meaning))
        });
        let prefix = format!("{SOURCES}{name}.");
        let add = format!("Add the settings, such as {prefix}type.");
        let kept = "The broker keeps the messages meanwhile.";
        Self::with_prefix(settings, &prefix, known, &Advice { add, kept })
    }

    /// Collects the settings whose names begin with `prefix`. `known` are the parts of the names after it, with their
    /// meanings.
    fn with_prefix<'a>(
        settings: &Settings,
        prefix: &str,
        known: impl Iterator<Item = (&'a str, &'a str)>,
        advice: &Advice,
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
            steps: list_steps(&given, advice),
            given,
        }
    }

    /// Returns the given settings whose names end in one of these parts.
    pub(super) fn find_rows(&self, parts: &[&str]) -> Vec<&SettingRow> {
        let is_selected = |row: &&SettingRow| {
            row.name.rsplit_once('.').is_some_and(|(_, part)| parts.contains(&part))
        };
        self.given.iter().filter(is_selected).collect()
    }
}

/// Where settings come from: files, files of secrets, and others.
#[derive(Debug, Default)]
struct Origins {
    files: Vec<String>,
    credentials: Vec<String>,
    has_others: bool,
}

impl Origins {
    fn of_rows(rows: &[SettingRow]) -> Self {
        let mut origins = Self::default();
        for row in rows {
            if let Some(path) = row.origin.strip_prefix("credential ") {
                origins.credentials.push(name_editable_credential(path));
            } else if let Some((file, _)) = row.origin.rsplit_once(", line ") {
                // The commands are typed in another folder.
                let path = absolute(file)
                    .map_or_else(|_| file.to_owned(), |path| path.display().to_string());
                if !origins.files.contains(&path) {
                    origins.files.push(path);
                }
            } else {
                origins.has_others = true;
            }
        }
        origins
    }
}

/// Returns the file in which a secret is changed. systemd passes copies to the service.
fn name_editable_credential(path: &str) -> String {
    let name = Path::new(path).file_name().map(|name| name.to_string_lossy());
    match name.filter(|_| path.starts_with(PASSED_CREDENTIALS)) {
        Some(name) => {
            format!("{CREDENTIALS_DIR}/{}", name.strip_prefix("penstock_").unwrap_or(&name))
        }
        None => path.to_owned(),
    }
}

/// Lists the steps that change settings: where, the check of the file, and the restart.
fn list_steps(given: &[SettingRow], advice: &Advice) -> Vec<Step> {
    let step = |words: &str, command: String| Step { words: words.to_owned(), command };
    let mut origins = Origins::of_rows(given);
    let mut edit = "Edit the file:".to_owned();
    if given.is_empty() {
        edit = format!("{} Edit the file:", advice.add);
        origins.files.push(CONFIGURATION_FILE.to_owned());
    }
    let mut steps = Vec::new();
    for file in &origins.files {
        steps.push(step(&edit, format!("sudoedit {file}")));
    }
    for file in &origins.credentials {
        steps.push(step("Edit the file of the secret:", format!("sudoedit {file}")));
    }
    if origins.has_others {
        let words = "Change the values that come from elsewhere at the source that the table names: the environment and the \
                     command line of the service with";
        steps.push(step(words, "systemctl edit penstock".to_owned()));
    }
    for file in &origins.files {
        steps.push(step("Check it:", format!("penstock check {file}")));
    }
    let words =
        format!("Restart the gateway, which reads these settings at its start. {}", advice.kept);
    steps.push(step(&words, "systemctl restart penstock".to_owned()));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, value: &str, origin: &str) -> EffectiveValue {
        let (value, origin) = (format!("{value:?}"), origin.to_owned());
        EffectiveValue { name: name.to_owned(), value, origin, meaning: "" }
    }

    fn commands(group: &SettingGroup) -> Vec<&str> {
        group.steps.iter().map(|step| step.command.as_str()).collect()
    }

    #[test]
    fn shows_values_with_their_meaning_and_no_secrets() {
        let source = "service.sources.line";
        let arguments = [
            "server.port=8443",
            &format!("{source}.type=mqtt"),
            &format!("{source}.url=mqtts://broker.example"),
            &format!("{source}.username=gateway"),
            &format!("{source}.password=hidden"),
            &format!("{source}.subscriptions[0].topic=a/+"),
            &format!("{source}.subscriptions[0].business-object=Pump"),
            &format!("{source}.subscriptions[0].fields.type={{1}}"),
        ];
        let sources = penstock_config::Sources {
            arguments: arguments.map(|argument| format!("--{argument}")).into(),
            ..penstock_config::Sources::default()
        };
        let settings = penstock_config::load(&sources).unwrap().settings;
        let row = |name: &str| {
            let mut values = settings.effective_values.iter();
            SettingRow::from(values.find(|value| value.name == name).unwrap())
        };
        let port = row("server.port");
        assert_eq!(port.value, "8443");
        assert!(port.meaning.starts_with("The TCP port"), "{port:?}");
        assert_eq!(port.origin, "command line");
        assert_eq!(row(&format!("{source}.password")).value, "******");
        let topic = row(&format!("{source}.subscriptions[0].topic"));
        assert!(topic.meaning.starts_with("A topic filter"), "{topic:?}");
        // The name of a field may be that of a setting.
        let kind = row(&format!("{source}.type"));
        let field = row(&format!("{source}.subscriptions[0].fields.type"));
        assert!(kind.meaning.starts_with("The kind of source"), "{kind:?}");
        assert!(!field.meaning.is_empty() && field.meaning != kind.meaning, "{field:?}");
        let quoted = SettingRow::from(&EffectiveValue {
            name: "service.log.level".to_owned(),
            value: r#""a\"b""#.to_owned(),
            origin: "default".to_owned(),
            meaning: "",
        });
        assert_eq!(quoted.value, r#""a\"b""#);
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
        assert_eq!(
            commands(&group),
            [
                "sudoedit /etc/penstock/application.yaml",
                "systemctl edit penstock",
                "penstock check /etc/penstock/application.yaml",
                "systemctl restart penstock"
            ]
        );
        assert_eq!(group.find_rows(&["type"]).len(), 1);
        let nothing = SettingGroup::of_target(&settings, "other", "directory");
        assert!(nothing.given.is_empty() && nothing.steps.len() == 3, "{nothing:?}");
        // A first configured target ends the embedded default of all others.
        let hint = "service.export.default.type: directory";
        assert!(nothing.steps[0].words.contains(hint), "{nothing:?}");
        settings.targets.default = Some(penstock_config::Target {
            kind: penstock_config::TargetKind::Directory { path: None },
            prefix: String::new(),
            key: penstock_config::KeyTemplate::default(),
            format: penstock_config::ExportFormat::Json,
        });
        let named = SettingGroup::of_target(&settings, "other", "directory");
        assert!(!named.steps[0].words.contains(hint), "{named:?}");
        // A SPARQL store has graphs, and no files with keys.
        let store = SettingGroup::of_target(&settings, "other", "sparql");
        let unset: Vec<_> = store.unset.iter().map(|(name, _)| name.as_str()).collect();
        assert!(unset.contains(&"service.export.default.graph"), "{unset:?}");
        assert!(!unset.contains(&"service.export.default.key"), "{unset:?}");
    }

    #[test]
    fn secrets_are_changed_where_the_package_keeps_them() {
        let loaded = penstock_config::load(&penstock_config::Sources::default()).unwrap();
        let mut settings = loaded.settings;
        let (target, file) = ("service.export.targets.my", "sub/application.yaml");
        let passed = "/run/credentials/penstock.service/penstock_service.export.targets.my.secret-access-key";
        settings.effective_values = vec![
            value(&format!("{target}.access-key-id"), "a", "credential /srv/secrets/id"),
            value(&format!("{target}.secret-access-key"), "s", &format!("credential {passed}")),
            value(&format!("{target}.type"), "s3", &format!("{file}, line 7")),
        ];
        let group = SettingGroup::of_target(&settings, "my", "s3");
        let file = absolute(file).unwrap().display().to_string();
        assert_eq!(
            commands(&group),
            [
                &format!("sudoedit {file}"),
                "sudoedit /srv/secrets/id",
                "sudoedit /etc/penstock/credentials/service.export.targets.my.secret-access-key",
                &format!("penstock check {file}"),
                "systemctl restart penstock"
            ]
        );
    }
}
