//! Loads the configuration: reads the sources, merges their values, and checks them.
use super::checks;
use super::error::ConfigError;
use super::kind::RawValue;
use super::name::{self, KnownName};
use super::section::{Report, Scope, Section};
use super::security::{self, SIGN_IN_PROFILES};
use super::setting::{RawSetting, SourceKind, Values};
use super::sources::{self, FoundValue, Sources};
use super::table::{SETTINGS, Settings, Source};
use super::types::EffectiveValue;
use super::valid::is_profile;
use std::collections::BTreeMap;

/// A valid configuration.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// The warnings for the operator, a sentence each.
    pub warnings: Vec<String>,
}

/// A configuration with errors.
#[derive(Debug)]
pub struct InvalidConfiguration {
    /// Its errors.
    pub errors: Vec<ConfigError>,
    /// The warnings for the operator, a sentence each. A mistyped name is one, and can be the cause of an error.
    pub warnings: Vec<String>,
}

impl InvalidConfiguration {
    /// Returns the errors, then the warnings, as lines for a person.
    pub fn list_lines(&self) -> Vec<String> {
        let warnings = self.warnings.iter().map(|warning| format!("warning: {warning}"));
        self.errors.iter().map(ToString::to_string).chain(warnings).collect()
    }
}

/// Reads, merges and checks the configuration.
///
/// # Errors
/// Returns every error found, and the warnings.
pub fn load(sources: &Sources) -> Result<Loaded, InvalidConfiguration> {
    let mut report = Report::default();
    let found = read_sources(sources, &mut report);
    let values = merge_values(found, sources, &mut report);
    report.warnings.extend(values.iter().filter_map(|(name, entry)| entry.describe_exposure(name)));
    let read = Settings::read(&mut Scope::new(&values, &mut report));
    if let Some(settings) = &read {
        checks::check_together(settings, &values, &mut report);
    }
    let Report { errors, mut warnings } = report;
    let Some(mut settings) = read.filter(|_| errors.is_empty()) else {
        warnings.extend(sources::describe_unread_credentials(sources, &errors));
        return Err(InvalidConfiguration { errors, warnings });
    };
    let effective = values.into_iter().map(|(name, entry)| EffectiveValue {
        name,
        value: entry.display_value(),
        meaning: &entry.setting.meaning,
        origin: entry.origin,
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
    let mut report = Report::default();
    let found = sources::parse_file(path, text, &mut report.errors);
    let values = merge_values(found, &Sources::default(), &mut report);
    checks::check_names(&values, &mut report.errors);
    checks::warn_about_keys(&values, &mut report.warnings);
    // What is missing may be in another file.
    let read = Settings::read(&mut Scope::new(&values, &mut Report::default()));
    let sources = read.map_or_else(BTreeMap::new, |settings| settings.sources);
    CheckedFile { errors: report.errors, warnings: report.warnings, sources }
}

/// Reads all sources. Later values override earlier ones.
fn read_sources(sources: &Sources, report: &mut Report) -> Vec<FoundValue> {
    let mut found = sources::read_files(sources, None, report);
    let mut late = sources::read_environment(sources, &mut report.errors);
    late.extend(sources::read_credentials(sources, &mut report.errors));
    late.extend(sources::read_arguments(sources, &mut report.errors));
    let is_profiles = |found: &&FoundValue| {
        let known = match found.source {
            SourceKind::Environment => name::resolve_variable(&found.name),
            _ => name::resolve_name(&found.name),
        };
        known.is_some_and(|known| known.setting.name == "profiles.active")
    };
    let profiles = found.iter().chain(&late).rfind(is_profiles).cloned();
    let names = profiles.map_or_else(Vec::new, |found| found.value.split_items());
    if names.iter().all(|name| is_profile(name)) {
        for profile in names {
            let of_profile = sources::read_files(sources, Some(&profile), report);
            if of_profile.is_empty() && !SIGN_IN_PROFILES.contains(&profile.as_str()) {
                report.warnings.push(format!(
                    "the profile {profile} is active, but there are no settings in an application-{profile}.yaml or .properties in {} or {}",
                    sources.working_dir.display(),
                    sources.system_dir.display()
                ));
            }
            if let Some(inner) = of_profile.iter().find(is_profiles) {
                report.errors.push(ConfigError::of_source(
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

/// Merges the values: for each name the last one, or else the default. Reports and leaves out those that are not valid.
fn merge_values(found: Vec<FoundValue>, sources: &Sources, report: &mut Report) -> Values {
    let mut merged = list_defaults(sources);
    let spelled = found.iter().filter(|found| found.source != SourceKind::Environment);
    let spelled: Vec<Vec<String>> =
        spelled.filter_map(|found| Some(name::resolve_name(&found.name)?.given)).collect();
    for found in found {
        let is_variable = found.source == SourceKind::Environment;
        let known = if is_variable {
            name::resolve_variable(&found.name)
        } else {
            name::resolve_name(&found.name)
        };
        let sources = if is_variable { "service_sources_" } else { "service.sources." };
        let is_source = found.name.to_ascii_lowercase().starts_with(sources);
        match known {
            Some(known) if is_variable => match find_spelling(&known, &spelled) {
                Ok(known) => insert_value(&mut merged, &known, found),
                Err(several) => report.errors.push(ConfigError::of_source(
                    found.origin,
                    format!("it could mean any of {}; set it in a file", several.join(", ")),
                )),
            },
            Some(known) => insert_value(&mut merged, &known, found),
            // A connection with less protection than meant must not be opened.
            None if is_source => {
                let message = describe_unknown(&found);
                report.errors.push(ConfigError::of_source(found.origin, message));
            }
            None if is_variable => report.warnings.extend(describe_unknown_variable(&found.name)),
            None => report.warnings.push(describe_unknown(&found)),
        }
    }
    merged.retain(|_, entry| !entry.raw.is_empty());
    for (name, default) in list_defaults(sources) {
        merged.entry(name).or_insert(default);
    }
    apply_presets(&mut merged);
    merged.retain(|name, entry| match entry.setting.kind.parse(&entry.raw) {
        Ok(()) => true,
        Err(expected) => {
            report.errors.push(entry.to_error(name, format!("expected {expected}")));
            false
        }
    });
    merged
}

/// Replaces defaults by the values that a bundled profile presets.
fn apply_presets(merged: &mut Values) {
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
        if merged.get(&name).is_none_or(|entry| entry.source.is_none()) {
            let origin = format!("profile {}", security::AZUREAD_PROFILE);
            merged.insert(
                name,
                RawSetting::new(known.setting, known.given, RawValue::Text(value), origin),
            );
        }
    }
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

/// Replaces each `<...>` of an environment variable by how the other sources spell it.
///
/// # Errors
/// Returns all spellings if there are several.
fn find_spelling(known: &KnownName, spelled: &[Vec<String>]) -> Result<KnownName, Vec<String>> {
    let find = |at: usize, own: &str| -> Result<String, Vec<String>> {
        let others: Vec<&str> =
            spelled.iter().filter_map(|given| Some(given.get(at)?.as_str())).collect();
        let found = name::id_of_variable(own, others.iter().copied())?;
        // The third `<...>` is that of a field, which keeps its `_`.
        let is_field = at == 2 && !others.contains(&found.as_str());
        Ok(if is_field { own.to_ascii_lowercase() } else { found })
    };
    let given = known.given.iter().enumerate().map(|(at, own)| match at {
        1 => Ok(own.clone()),
        at => find(at, own),
    });
    Ok(KnownName { given: given.collect::<Result<_, _>>()?, ..*known })
}

fn insert_value(merged: &mut Values, known: &KnownName, found: FoundValue) {
    let name = known.canonical_name();
    let is_indexed = known.index.is_some();
    if is_indexed
        && let Some(entry) = merged.get_mut(&name)
        && entry.is_indexed
        && entry.source.as_ref() == Some(&found.source)
    {
        let mut items = entry.raw.split_items();
        items.extend(found.value.split_items());
        entry.raw = RawValue::List(items);
        return;
    }
    let raw = if is_indexed { RawValue::List(found.value.split_items()) } else { found.value };
    let entry = RawSetting::new(known.setting, known.given.clone(), raw, found.origin);
    merged.insert(name, RawSetting { source: Some(found.source), is_indexed, ..entry });
}

fn list_defaults(sources: &Sources) -> Values {
    // `STATE_DIRECTORY` has the directories of `StateDirectory=`, separated by colons (systemd.exec(5)).
    let state = sources.environment.get("STATE_DIRECTORY").and_then(|d| d.split(':').next());
    let own = SETTINGS.iter().filter(|setting| !setting.name.contains('<'));
    let defaults = own.filter_map(|setting| {
        let (default, origin) = match (setting.name.as_str(), state) {
            ("service.data-dir", Some(dir)) if !dir.is_empty() => {
                (dir, "environment variable STATE_DIRECTORY")
            }
            _ => (setting.default?, "default"),
        };
        let raw = RawValue::Text(default.to_owned());
        let entry = RawSetting::new(setting, Vec::new(), raw, origin.to_owned());
        Some((setting.name.clone(), entry))
    });
    defaults.collect()
}
