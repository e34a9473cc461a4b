//! Loads the configuration: reads the sources, merges their values, and checks them.
use super::fault::ConfigFault;
use super::kind::{Kind, Raw, Value};
use super::name::{self, Known};
use super::settings::{Effective, Settings};
use super::sources::{self, Found, Source, Sources};
use super::table::{self, SIGN_IN_PROFILES, Setting, TABLE};
use super::{security, typed};
use std::collections::BTreeMap;

/// A valid configuration.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// The warnings for the operator, a sentence each.
    pub warnings: Vec<String>,
}

/// A value of a setting, and its origin.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) setting: &'static Setting,
    pub(super) id: Option<String>,
    pub(super) raw: Raw,
    pub(super) origin: String,
    source: Option<Source>,
    /// Whether `raw` was collected from `name[0]`, `name[1]`, ... of one source.
    indexed: bool,
}

impl Entry {
    /// Returns the value for display, with secrets masked.
    pub(super) fn shown(&self) -> String {
        if self.setting.secret {
            return "******".to_owned();
        }
        let text = self.raw.to_string();
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
    fn exposed(&self, name: &str) -> Option<String> {
        let is_path = self.setting.kind == Kind::Pem
            && !self.raw.to_string().trim_start().starts_with("-----BEGIN ");
        (self.setting.secret && !is_path && self.source == Some(Source::Argument)).then(|| {
            format!(
                "{name} is a secret on the command line, where every user of this machine can read it; give it in \
                 an environment variable, in a file {name} in $CREDENTIALS_DIRECTORY, or in an application.yaml \
                 that only the service can read, and change the secret"
            )
        })
    }

    /// Creates an error about this value.
    pub(super) fn fault(&self, name: &str, message: String) -> ConfigFault {
        ConfigFault {
            name: Some(name.to_owned()),
            value: Some(self.shown()),
            origin: Some(self.origin.clone()),
            message,
        }
    }
}

/// A value in force, parsed.
pub(super) struct Typed {
    pub(super) entry: Entry,
    pub(super) value: Value,
}

/// Reads, merges and checks the configuration.
///
/// # Errors
/// Returns every fault found.
pub fn load(sources: &Sources) -> Result<Loaded, Vec<ConfigFault>> {
    let mut faults = Vec::new();
    let mut warnings = Vec::new();
    let found = gather(sources, &mut faults, &mut warnings);
    let merged = merge(found, sources, &mut faults, &mut warnings);
    let typed = read(merged, &mut faults);
    warnings.extend(typed.iter().filter_map(|(name, typed)| typed.entry.exposed(name)));
    let mut settings = typed::settings(&typed, &mut faults, &mut warnings);
    if !faults.is_empty() {
        return Err(faults);
    }
    let effective = typed.into_iter().map(|(name, typed)| Effective {
        name,
        value: typed.entry.shown(),
        origin: typed.entry.origin,
    });
    settings.effective = effective.collect();
    settings.warnings.clone_from(&warnings);
    Ok(Loaded { settings, warnings })
}

/// Checks one file, as far as that is possible without the other sources. Returns its faults and warnings.
pub fn check_file(path: &std::path::Path, text: &str) -> (Vec<ConfigFault>, Vec<String>) {
    let mut faults = Vec::new();
    let mut warnings = Vec::new();
    let found = sources::file(path, text, &mut faults);
    let merged = merge(found, &Sources::default(), &mut faults, &mut warnings);
    let typed = read(merged, &mut faults);
    typed::check_ids(&typed, &mut faults);
    (faults, warnings)
}

/// Reads all sources. Later values override earlier ones.
fn gather(
    sources: &Sources,
    faults: &mut Vec<ConfigFault>,
    warnings: &mut Vec<String>,
) -> Vec<Found> {
    let mut found = sources::files(sources, None, faults, warnings);
    let mut late = sources::environment(sources);
    late.extend(sources::credentials(sources, faults));
    late.extend(sources::arguments(sources, faults));
    let is_profiles = |found: &&Found| {
        let known = match found.source {
            Source::Environment => name::resolve_variable(&found.name),
            _ => name::resolve(&found.name),
        };
        known.is_some_and(|known| known.setting.kind == Kind::Profiles)
    };
    let profiles = found.iter().chain(&late).rfind(is_profiles).cloned();
    if let Some(Ok(Value::List(names))) = profiles.map(|found| Kind::Profiles.parse(&found.value)) {
        for profile in names {
            let of_profile = sources::files(sources, Some(&profile), faults, warnings);
            if of_profile.is_empty() && !SIGN_IN_PROFILES.contains(&profile.as_str()) {
                warnings.push(format!(
                    "the profile {profile} is active, but there are no settings in an application-{profile}.yaml or .properties in {} or {}",
                    sources.working_dir.display(),
                    sources.system_dir.display()
                ));
            }
            if let Some(inner) = of_profile.iter().find(is_profiles) {
                faults.push(ConfigFault::of_source(
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
fn merge(
    found: Vec<Found>,
    sources: &Sources,
    faults: &mut Vec<ConfigFault>,
    warnings: &mut Vec<String>,
) -> BTreeMap<String, Entry> {
    let mut merged = defaults(sources);
    let ids: Vec<String> = found
        .iter()
        .filter(|f| f.source != Source::Environment)
        .filter_map(|f| name::resolve(&f.name)?.id)
        .collect();
    for found in found {
        let known = match found.source {
            Source::Environment => {
                let known = variable(&found, &ids, faults);
                if known.is_none() {
                    warnings.extend(unknown_variable(&found.name));
                    continue;
                }
                known
            }
            _ => name::resolve(&found.name),
        };
        match known {
            Some(known) => put(&mut merged, &known, found),
            None => warnings.push(unknown(&found)),
        }
    }
    merged.retain(|_, entry| !entry.raw.is_empty());
    for (name, default) in defaults(sources) {
        merged.entry(name).or_insert(default);
    }
    preset(&mut merged);
    merged
}

/// Replaces defaults by the values that a bundled profile presets.
fn preset(merged: &mut BTreeMap<String, Entry>) {
    let is_active = |profile: &str| {
        merged
            .get("profiles.active")
            .is_some_and(|active| active.raw.items().iter().any(|name| name == profile))
    };
    if !is_active(security::AZUREAD) {
        return;
    }
    let given = |name: &str| merged.get(name).map(|entry| entry.raw.to_string().trim().to_owned());
    for (name, value) in security::presets(given) {
        let known = name::resolve(&name).expect("presets are settings");
        let entry = Entry {
            setting: known.setting,
            id: known.id,
            raw: Raw::Text(value),
            origin: format!("profile {}", security::AZUREAD),
            source: None,
            indexed: false,
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

fn unknown(found: &Found) -> String {
    let near = name::nearest(&found.name);
    let near = near.map_or(String::new(), |near| format!("; the nearest is {near}"));
    format!("{} is not a known setting (from {}){near}", found.name, found.origin)
}

/// Returns a warning only for a near miss, because the environment contains many variables of other programs.
fn unknown_variable(variable: &str) -> Option<String> {
    let near = name::nearest_variable(variable)
        .filter(|_| variable.starts_with("SERVICE_") || variable.starts_with("FRAMEWORK_"))?;
    Some(format!(
        "the environment variable {variable} is not a known setting; the nearest is {near}"
    ))
}

/// Finds the setting for an environment variable, with its `<...>` among `ids`.
fn variable(found: &Found, ids: &[String], faults: &mut Vec<ConfigFault>) -> Option<Known<String>> {
    let known = name::resolve_variable(&found.name)?;
    let Some(spelled) = &known.id else { return Some(known) };
    match name::id_of_variable(spelled, ids.iter().map(String::as_str)) {
        Ok(id) => Some(Known { id: Some(id), ..known }),
        Err(several) => {
            faults.push(ConfigFault::of_source(
                found.origin.clone(),
                format!("it could mean any of {}; set it in a file", several.join(", ")),
            ));
            None
        }
    }
}

fn put(merged: &mut BTreeMap<String, Entry>, known: &Known<String>, found: Found) {
    let name = known.name();
    if known.index.is_some()
        && let Some(entry) = merged.get_mut(&name)
        && entry.indexed
        && entry.source.as_ref() == Some(&found.source)
    {
        let mut items = entry.raw.items();
        items.extend(found.value.items());
        entry.raw = Raw::List(items);
        return;
    }
    let raw = match known.index {
        Some(_) => Raw::List(found.value.items()),
        None => found.value,
    };
    let entry = Entry {
        setting: known.setting,
        id: known.id.clone(),
        raw,
        origin: found.origin,
        source: Some(found.source),
        indexed: known.index.is_some(),
    };
    merged.insert(name, entry);
}

fn defaults(sources: &Sources) -> BTreeMap<String, Entry> {
    let of_table = TABLE.iter().filter(|s| name::placeholder(s.name).is_none()).filter_map(|s| {
        let entry = |value: &str, origin: &str| Entry {
            setting: s,
            id: None,
            raw: Raw::Text(value.to_owned()),
            origin: origin.to_owned(),
            source: None,
            indexed: false,
        };
        // `STATE_DIRECTORY` has the directories of `StateDirectory=`, separated by colons (systemd.exec(5)).
        let state = sources.environment.get("STATE_DIRECTORY").and_then(|d| d.split(':').next());
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
fn read(merged: BTreeMap<String, Entry>, faults: &mut Vec<ConfigFault>) -> BTreeMap<String, Typed> {
    let mut typed = BTreeMap::new();
    for (name, entry) in merged {
        let value = match entry.setting.kind.parse(&entry.raw) {
            Ok(value) => value,
            Err(expected) => {
                faults.push(entry.fault(&name, format!("expected {expected}")));
                continue;
            }
        };
        typed.insert(name, Typed { entry, value });
    }
    typed
}

/// Returns the parsed default of a setting.
pub(super) fn default_of(name: &str) -> Option<Value> {
    let setting = table::find(name)?;
    setting.kind.parse(&Raw::Text(setting.default?.to_owned())).ok()
}
