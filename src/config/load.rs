//! Loads the configuration: reads the sources, merges their values, and checks them.
use super::error::ConfigError;
use super::kind::{ParsedValue, RawValue, SettingKind};
use super::mqtt::{self, Source};
use super::name::{self, KnownName};
use super::settings::{EffectiveValue, Settings};
use super::sources::{self, FoundValue, SourceKind, Sources};
use super::table::{self, SETTINGS, SIGN_IN_PROFILES, Setting};
use super::{security, typed, webhooks};
use std::collections::BTreeMap;

/// A valid configuration.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// The warnings for the operator, a sentence each.
    pub warnings: Vec<String>,
}

/// A value of a setting, not yet parsed, and its origin.
#[derive(Clone)]
pub(super) struct RawSetting {
    pub(super) setting: &'static Setting,
    pub(super) id: Option<String>,
    /// What replaces the further `<...>` of the setting's name.
    pub(super) rest: Vec<String>,
    pub(super) raw: RawValue,
    pub(super) origin: String,
    source: Option<SourceKind>,
    /// Whether `raw` was collected from `name[0]`, `name[1]`, ... of one source.
    is_indexed: bool,
}

impl RawSetting {
    /// Returns the value for display, with secrets masked.
    pub(super) fn display_value(&self) -> String {
        if self.setting.is_secret {
            return "******".to_owned();
        }
        let text = self.raw.to_string();
        if self.setting.kind == SettingKind::WebhookUrl {
            return format!("{:?}", format!("{}/******", webhooks::display_origin(&text)));
        }
        // A URL can contain a password, even where none is allowed.
        match (text.find("://"), text.rfind('@')) {
            (Some(scheme), Some(at)) if scheme < at => {
                format!(
                    "{:?}",
                    text.replace(text.get(scheme + 3..at).unwrap_or_default(), "******")
                )
            }
            _ => format!("{text:?}"),
        }
    }

    /// Returns a warning if this is a secret that every user of the machine can read.
    fn describe_exposure(&self, name: &str) -> Option<String> {
        let is_path = self.setting.kind == SettingKind::Pem
            && !self.raw.to_string().trim_start().starts_with("-----BEGIN ");
        (self.setting.is_secret && !is_path && self.source == Some(SourceKind::Argument)).then(|| {
            format!(
                "{name} is a secret on the command line, where every user of this machine can read it; give it in \
                 an environment variable, in a file {name} in $CREDENTIALS_DIRECTORY, or in an application.yaml \
                 that only the service can read, and change the secret"
            )
        })
    }

    /// Creates an error about this value.
    pub(super) fn to_error(&self, name: &str, message: String) -> ConfigError {
        ConfigError {
            name: Some(name.to_owned()),
            value: Some(self.display_value()),
            origin: Some(self.origin.clone()),
            message,
        }
    }
}

/// The effective value of a setting, parsed.
pub(super) struct ParsedSetting {
    pub(super) entry: RawSetting,
    pub(super) value: ParsedValue,
}

/// Reads, merges and checks the configuration.
///
/// # Errors
/// Returns every error found.
pub fn load(sources: &Sources) -> Result<Loaded, Vec<ConfigError>> {
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    let found = read_sources(sources, &mut errors, &mut warnings);
    let merged = merge_values(found, sources, &mut errors, &mut warnings);
    let typed = parse_values(merged, &mut errors);
    warnings.extend(typed.iter().filter_map(|(name, typed)| typed.entry.describe_exposure(name)));
    let mut settings = typed::build_settings(&typed, &mut errors, &mut warnings);
    if !errors.is_empty() {
        return Err(errors);
    }
    let effective = typed.into_iter().map(|(name, typed)| EffectiveValue {
        name,
        value: typed.entry.display_value(),
        meaning: typed.entry.setting.meaning,
        origin: typed.entry.origin,
    });
    settings.effective_values = effective.collect();
    settings.warnings.clone_from(&warnings);
    Ok(Loaded { settings, warnings })
}

/// What a check of one file has found.
#[derive(Debug)]
pub struct CheckedFile {
    /// Its errors.
    pub errors: Vec<ConfigError>,
    /// Its warnings, a sentence each.
    pub warnings: Vec<String>,
    /// The sources that it describes completely.
    pub sources: BTreeMap<String, Source>,
}

/// Checks one file, as far as that is possible without the other sources.
pub fn check_file(path: &std::path::Path, text: &str) -> CheckedFile {
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    let found = sources::parse_file(path, text, &mut errors);
    let merged = merge_values(found, &Sources::default(), &mut errors, &mut warnings);
    let typed = parse_values(merged, &mut errors);
    typed::check_ids(&typed, &mut errors);
    mqtt::check_names(&typed, &mut errors);
    webhooks::check_names(&typed, &mut errors);
    typed::warn_about_keys(&typed, &mut warnings);
    // What is missing may be in another file.
    let sources = mqtt::build_sources(&typed::Values(&typed), &mut Vec::new());
    CheckedFile { errors, warnings, sources }
}

/// Reads all sources. Later values override earlier ones.
fn read_sources(
    sources: &Sources,
    errors: &mut Vec<ConfigError>,
    warnings: &mut Vec<String>,
) -> Vec<FoundValue> {
    let mut found = sources::read_files(sources, None, errors, warnings);
    let mut late = sources::read_environment(sources);
    late.extend(sources::read_credentials(sources, errors));
    late.extend(sources::read_arguments(sources, errors));
    let is_profiles = |found: &&FoundValue| {
        let known = match found.source {
            SourceKind::Environment => name::resolve_variable(&found.name),
            _ => name::resolve_name(&found.name),
        };
        known.is_some_and(|known| known.setting.kind == SettingKind::Profiles)
    };
    let profiles = found.iter().chain(&late).rfind(is_profiles).cloned();
    if let Some(Ok(ParsedValue::List(names))) =
        profiles.map(|found| SettingKind::Profiles.parse(&found.value))
    {
        for profile in names {
            let of_profile = sources::read_files(sources, Some(&profile), errors, warnings);
            if of_profile.is_empty() && !SIGN_IN_PROFILES.contains(&profile.as_str()) {
                warnings.push(format!(
                    "the profile {profile} is active, but there are no settings in an application-{profile}.yaml or .properties in {} or {}",
                    sources.working_dir.display(),
                    sources.system_dir.display()
                ));
            }
            if let Some(inner) = of_profile.iter().find(is_profiles) {
                errors.push(ConfigError::of_source(
                    inner.origin.clone(),
                    "profiles.active has no effect in the file of a profile; list all profiles where the first one is set".into(),
                ));
            }
            found.extend(of_profile);
        }
    }
    found.extend(late);
    found
}

/// Merges the values: for each name the last one, or else the default.
fn merge_values(
    found: Vec<FoundValue>,
    sources: &Sources,
    errors: &mut Vec<ConfigError>,
    warnings: &mut Vec<String>,
) -> BTreeMap<String, RawSetting> {
    let mut merged = list_defaults(sources);
    let (ids, rests): (Vec<_>, Vec<_>) = found
        .iter()
        .filter(|f| f.source != SourceKind::Environment)
        .filter_map(|f| name::resolve_name(&f.name))
        .map(|known| (known.id, known.rest))
        .unzip();
    let ids = KnownIds {
        ids: ids.into_iter().flatten().collect(),
        fields: rests.into_iter().filter_map(|rest| rest.into_iter().nth(1)).collect(),
    };
    for found in found {
        let known = match found.source {
            SourceKind::Environment => {
                let known = find_variable_setting(&found, &ids, errors);
                if known.is_none() {
                    let is_known = name::resolve_variable(&found.name).is_some();
                    if !is_known && found.name.to_ascii_uppercase().starts_with("SERVICE_SOURCES_")
                    {
                        errors.push(unknown_source_setting_error(&found));
                    } else {
                        warnings.extend(describe_unknown_variable(&found.name));
                    }
                    continue;
                }
                known
            }
            _ => name::resolve_name(&found.name),
        };
        match known {
            Some(known) => insert_value(&mut merged, &known, found),
            None if mqtt::is_source_setting(&found.name) => {
                errors.push(unknown_source_setting_error(&found));
            }
            None => warnings.push(describe_unknown(&found)),
        }
    }
    merged.retain(|_, entry| !entry.raw.is_empty());
    for (name, default) in list_defaults(sources) {
        merged.entry(name).or_insert(default);
    }
    apply_presets(&mut merged);
    merged
}

/// Replaces defaults by the values that a bundled profile presets.
fn apply_presets(merged: &mut BTreeMap<String, RawSetting>) {
    let is_active = |profile: &str| {
        merged
            .get("profiles.active")
            .is_some_and(|active| active.raw.split_items().iter().any(|name| name == profile))
    };
    if !is_active(security::AZUREAD_PROFILE) {
        return;
    }
    let given = |name: &str| merged.get(name).map(|entry| entry.raw.to_string().trim().to_owned());
    for (name, value) in security::list_presets(given) {
        let known = name::resolve_name(&name).expect("presets are settings");
        let entry = RawSetting {
            setting: known.setting,
            id: known.id,
            rest: known.rest,
            raw: RawValue::Text(value),
            origin: format!("profile {}", security::AZUREAD_PROFILE),
            source: None,
            is_indexed: false,
        };
        match merged.entry(name) {
            std::collections::btree_map::Entry::Occupied(mut taken)
                if taken.get().source.is_none() =>
            {
                taken.insert(entry);
            }
            std::collections::btree_map::Entry::Occupied(_) => {}
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(entry);
            }
        }
    }
}

/// Returns the error of an unknown setting of a source. A connection with less protection than meant must not be opened.
fn unknown_source_setting_error(found: &FoundValue) -> ConfigError {
    ConfigError::of_source(found.origin.clone(), describe_unknown(found))
}

/// What replaces the `<...>` of names in the sources that spell it exactly.
struct KnownIds {
    ids: Vec<String>,
    /// The fields of subscriptions.
    fields: Vec<String>,
}

fn describe_unknown(found: &FoundValue) -> String {
    let near = name::find_nearest(&found.name);
    let near = near.map_or(String::new(), |near| format!("; the nearest is {near}"));
    format!("{} is not a known setting (from {}){near}", found.name, found.origin)
}

/// Returns a warning only for a near miss, because the environment contains many variables of other programs.
fn describe_unknown_variable(variable: &str) -> Option<String> {
    let near = name::find_nearest_variable(variable)
        .filter(|_| variable.starts_with("SERVICE_") || variable.starts_with("FRAMEWORK_"))?;
    Some(format!(
        "the environment variable {variable} is not a known setting; the nearest is {near}"
    ))
}

/// Finds the setting for an environment variable, with its `<...>` among `ids`.
fn find_variable_setting(
    found: &FoundValue,
    ids: &KnownIds,
    errors: &mut Vec<ConfigError>,
) -> Option<KnownName> {
    let known = name::resolve_variable(&found.name)?;
    let Some(spelled) = &known.id else { return Some(known) };
    let mut find = |spelled: &str, ids: &[String]| {
        let found_id = name::id_of_variable(spelled, ids.iter().map(String::as_str));
        found_id.map_err(|several| {
            errors.push(ConfigError::of_source(
                found.origin.clone(),
                format!("it could mean any of {}; set it in a file", several.join(", ")),
            ));
        })
    };
    let id = find(spelled, &ids.ids).ok()?;
    let mut rest = known.rest.clone();
    if let Some(field) = rest.get_mut(1) {
        let known = find(field, &ids.fields).ok()?;
        *field = if ids.fields.contains(&known) { known } else { field.to_ascii_lowercase() };
    }
    Some(KnownName { id: Some(id), rest, ..known })
}

fn insert_value(merged: &mut BTreeMap<String, RawSetting>, known: &KnownName, found: FoundValue) {
    let name = known.canonical_name();
    if known.index.is_some()
        && let Some(entry) = merged.get_mut(&name)
        && entry.is_indexed
        && entry.source.as_ref() == Some(&found.source)
    {
        let mut items = entry.raw.split_items();
        items.extend(found.value.split_items());
        entry.raw = RawValue::List(items);
        return;
    }
    let raw = match known.index {
        Some(_) => RawValue::List(found.value.split_items()),
        None => found.value,
    };
    let entry = RawSetting {
        setting: known.setting,
        id: known.id.clone(),
        rest: known.rest.clone(),
        raw,
        origin: found.origin,
        source: Some(found.source),
        is_indexed: known.index.is_some(),
    };
    merged.insert(name, entry);
}

fn list_defaults(sources: &Sources) -> BTreeMap<String, RawSetting> {
    let of_table =
        SETTINGS.iter().filter(|s| name::split_placeholder(s.name).is_none()).filter_map(|s| {
            let entry = |value: &str, origin: &str| RawSetting {
                setting: s,
                id: None,
                rest: Vec::new(),
                raw: RawValue::Text(value.to_owned()),
                origin: origin.to_owned(),
                source: None,
                is_indexed: false,
            };
            // `STATE_DIRECTORY` has the directories of `StateDirectory=`, separated by colons (systemd.exec(5)).
            let state =
                sources.environment.get("STATE_DIRECTORY").and_then(|d| d.split(':').next());
            let entry = match (s.name, state) {
                ("service.data-dir", Some(dir)) if !dir.is_empty() => {
                    entry(dir, "environment variable STATE_DIRECTORY")
                }
                _ => entry(s.default?, "default"),
            };
            Some((s.name.to_owned(), entry))
        });
    of_table.collect()
}

/// Parses the values.
fn parse_values(
    merged: BTreeMap<String, RawSetting>,
    errors: &mut Vec<ConfigError>,
) -> BTreeMap<String, ParsedSetting> {
    let mut typed = BTreeMap::new();
    for (name, entry) in merged {
        let value = match entry.setting.kind.parse(&entry.raw) {
            Ok(value) => value,
            Err(expected) => {
                errors.push(entry.to_error(&name, format!("expected {expected}")));
                continue;
            }
        };
        typed.insert(name, ParsedSetting { entry, value });
    }
    typed
}

/// Returns the parsed default of a setting.
pub(super) fn default_of(name: &str) -> Option<ParsedValue> {
    let setting = table::find_setting(name)?;
    setting.kind.parse(&RawValue::Text(setting.default?.to_owned())).ok()
}
