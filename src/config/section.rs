//! Sections: a section is a struct whose fields are settings, or sections.
use super::error::ConfigError;
use super::kind::{Kind, PEM, RawValue};
use super::name_parts::fill_name;
use super::setting::{RawSetting, Setting, Values};
use penstock_base::files::{is_pem, remedy_of_unreadable};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::marker::PhantomData;

/// Declares sections. A field has its type, the key that follows the prefix of its section, what it is read from, and the
/// sentence for the documentation.
macro_rules! sections {
    ($(
        $(#[$attribute:meta])*
        $visibility:vis struct $section:ident {
            $($field:ident: $type:ty = $key:literal => $part:expr, $meaning:literal;)*
        }
    )*) => {$(
        $(#[$attribute])*
        $visibility struct $section {
            $(#[doc = $meaning] $visibility $field: $type,)*
        }

        impl Section for $section {
            fn list(prefix: &str, table: &mut Vec<Setting>) {
                $(Part::<$type>::list($part, &format!("{prefix}{}", $key), $meaning, table);)*
            }

            fn read(scope: &mut Scope<'_>) -> Option<Self> {
                // All errors are reported before one of them ends the reading.
                $(let $field = Part::<$type>::read($part, scope, $key);)*
                Some(Self { $($field: $field?,)* })
            }
        }
    )*};
}
pub(super) use sections;

/// A struct whose fields are settings.
pub(super) trait Section: Sized {
    /// Adds its settings to the table.
    fn list(prefix: &str, table: &mut Vec<Setting>);

    /// Reads its values. Returns `None` if one is missing, which is reported.
    fn read(scope: &mut Scope<'_>) -> Option<Self>;
}

/// What a field is read from.
pub(super) trait Part<T>: Sized {
    /// Adds its settings to the table.
    fn list(self, name: &str, meaning: &'static str, table: &mut Vec<Setting>);

    /// Reads the value. Returns `None` if it is missing, which is reported.
    fn read(self, scope: &mut Scope<'_>, key: &str) -> Option<T>;
}

/// All errors and warnings.
#[derive(Default)]
pub(super) struct Report {
    pub(super) errors: Vec<ConfigError>,
    pub(super) warnings: Vec<String>,
}

/// The place in the values that a section is read from.
pub(super) struct Scope<'a> {
    pub(super) values: &'a Values,
    pub(super) report: &'a mut Report,
    /// The prefix of the section, with placeholders.
    prefix: String,
    /// What replaces the placeholders.
    given: Vec<String>,
}

impl<'a> Scope<'a> {
    /// Creates the scope of all settings.
    pub(super) fn new(values: &'a Values, report: &'a mut Report) -> Self {
        Self { values, report, prefix: String::new(), given: Vec::new() }
    }

    /// Returns the scope of what is below this key.
    pub(super) fn below(&mut self, key: &str) -> Scope<'_> {
        let (prefix, given) = (format!("{}{key}", self.prefix), self.given.clone());
        Scope { values: self.values, report: self.report, prefix, given }
    }

    /// Returns this scope with a name in place of the next placeholder.
    pub(super) fn of(&mut self, id: &str) -> Scope<'_> {
        let mut scope = self.below("");
        scope.given.push(id.to_owned());
        scope
    }

    /// Returns the full name of a setting.
    pub(super) fn name(&self, key: &str) -> String {
        fill_name(&format!("{}{key}", self.prefix), &self.given)
    }

    /// Finds the value of a setting: a valid one, or its default.
    pub(super) fn find(&self, key: &str) -> Option<&'a RawSetting> {
        self.values.get(&self.name(key))
    }

    /// Lists the names that replace the next placeholder, of settings that begin with this key. Numbers are in their order.
    pub(super) fn ids(&self, key: &str) -> Vec<String> {
        let prefix = format!("{}{key}", self.prefix);
        let is_below = |entry: &&RawSetting| {
            entry.setting.name.starts_with(&prefix) && entry.given.starts_with(&self.given)
        };
        let below = self.values.values().filter(is_below);
        let mut ids: Vec<String> =
            below.filter_map(|entry| entry.given.get(self.given.len()).cloned()).collect();
        ids.sort_by_cached_key(|id| (id.parse::<u16>().ok(), id.clone()));
        ids.dedup();
        ids
    }

    /// Reports an error about a setting. If it has no value, it is reported unless there is an error about it already.
    pub(super) fn error(&mut self, key: &str, message: impl Into<String>) {
        let name = self.name(key);
        match self.find(key) {
            Some(entry) => self.report.errors.push(entry.to_error(&name, message.into())),
            None if self.report.errors.iter().all(|error| error.name.as_ref() != Some(&name)) => {
                self.report.errors.push(ConfigError::missing_value(name, message.into()));
            }
            None => {}
        }
    }

    /// Reports an error if a setting names a file that cannot be opened. A setting of the kind PEM can have the text of one.
    pub(super) fn check_file(&mut self, key: &str) {
        let Some(entry) = self.find(key) else { return };
        let path = entry.raw.to_string();
        let is_text = entry.setting.kind.expected == PEM && is_pem(&path);
        if !is_text && let Err(error) = open_file(path.trim()) {
            let remedy = remedy_of_unreadable(&error);
            self.error(key, format!("it cannot be read: {error}{remedy}"));
        }
    }
}

/// Opens a file, which must not be a folder.
fn open_file(path: &str) -> io::Result<()> {
    let metadata = File::open(path)?.metadata()?;
    if metadata.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(()) }
}

/// A setting that is read into a field of its kind.
pub(super) struct Leaf<T> {
    kind: Kind<T>,
    /// The default that the documentation lists.
    listed: Option<&'static str>,
    fallback: Fallback<T>,
}

/// What a setting without a value is.
enum Fallback<T> {
    Default(&'static str),
    Empty(fn() -> T),
    /// An error with this message.
    Missing(&'static str),
}

impl<T: 'static> Kind<T> {
    /// Returns a setting with this default, which the documentation lists.
    pub(super) fn default(self, default: &'static str) -> Leaf<T> {
        Leaf { listed: Some(default), ..self.or(default) }
    }

    /// Returns a setting with this default, which only its sentence has.
    pub(super) fn or(self, default: &'static str) -> Leaf<T> {
        Leaf { kind: self, listed: None, fallback: Fallback::Default(default) }
    }

    /// Returns a setting that is empty without a value.
    pub(super) fn or_empty(self) -> Leaf<T>
    where
        T: Default,
    {
        Leaf { kind: self, listed: None, fallback: Fallback::Empty(T::default) }
    }

    /// Returns a setting that must have a value; `message` is the error without one.
    pub(super) fn required(self, message: &'static str) -> Leaf<T> {
        Leaf { kind: self, listed: None, fallback: Fallback::Missing(message) }
    }

    /// Creates the setting of this name.
    fn named(self, name: &str, meaning: &'static str, default: Option<&'static str>) -> Setting {
        Setting { name: name.to_owned(), kind: self.drop_value(), default, meaning: meaning.into() }
    }

    fn find(&self, scope: &Scope<'_>, key: &str) -> Option<T> {
        self.parse(&scope.find(key)?.raw).ok()
    }
}

impl<T: 'static> Part<T> for Leaf<T> {
    fn list(self, name: &str, meaning: &'static str, table: &mut Vec<Setting>) {
        table.push(self.kind.named(name, meaning, self.listed));
    }

    fn read(self, scope: &mut Scope<'_>, key: &str) -> Option<T> {
        let value = self.kind.find(scope, key);
        if value.is_some() {
            return value;
        }
        match self.fallback {
            Fallback::Default(default) => {
                let parsed = self.kind.parse(&RawValue::Text(default.to_owned()));
                Some(parsed.expect("defaults are valid"))
            }
            Fallback::Empty(create) => Some(create()),
            Fallback::Missing(message) => {
                scope.error(key, message);
                None
            }
        }
    }
}

/// An optional setting.
impl<T: 'static> Part<Option<T>> for Kind<T> {
    fn list(self, name: &str, meaning: &'static str, table: &mut Vec<Setting>) {
        table.push(self.named(name, meaning, None));
    }

    fn read(self, scope: &mut Scope<'_>, key: &str) -> Option<Option<T>> {
        Some(self.find(scope, key))
    }
}

/// A setting for each name in place of the last placeholder of the key.
impl<T: 'static> Part<BTreeMap<String, T>> for Kind<T> {
    fn list(self, name: &str, meaning: &'static str, table: &mut Vec<Setting>) {
        table.push(self.named(name, meaning, None));
    }

    fn read(self, scope: &mut Scope<'_>, key: &str) -> Option<BTreeMap<String, T>> {
        let ids = scope.ids(key).into_iter();
        Some(ids.filter_map(|id| Some((id.clone(), self.find(&scope.of(&id), key)?))).collect())
    }
}

/// Reads a section of which every setting has a default.
pub(super) fn read_defaults<S: Section>() -> S {
    S::read(&mut Scope::new(&Values::new(), &mut Report::default()))
        .expect("no setting of it is required")
}

/// The field is a section.
pub(super) struct Subsection;

impl<S: Section> Part<S> for Subsection {
    fn list(self, name: &str, _meaning: &'static str, table: &mut Vec<Setting>) {
        S::list(name, table);
    }

    fn read(self, scope: &mut Scope<'_>, key: &str) -> Option<S> {
        S::read(&mut scope.below(key))
    }
}

/// A section that the value of a field is built from.
pub(super) trait Build: Section {
    /// The value.
    type Value;

    /// Checks the section, and builds the value from it.
    fn build(self, scope: &mut Scope<'_>) -> Self::Value;
}

/// The field is built from a section.
pub(super) struct Built<S>(PhantomData<S>);

/// Returns the [`Built`] of this section.
pub(super) fn built<S>() -> Built<S> {
    Built(PhantomData)
}

impl<S: Build> Part<S::Value> for Built<S> {
    fn list(self, name: &str, _meaning: &'static str, table: &mut Vec<Setting>) {
        S::list(name, table);
    }

    fn read(self, scope: &mut Scope<'_>, key: &str) -> Option<S::Value> {
        let mut scope = scope.below(key);
        Some(S::read(&mut scope)?.build(&mut scope))
    }
}

/// The elements of the field are built from a section for each name in place of the last placeholder of the key. Those
/// without a value are left out, after an error.
pub(super) struct Each<S>(PhantomData<S>);

/// Returns the [`Each`] of this section.
pub(super) fn each<S>() -> Each<S> {
    Each(PhantomData)
}

impl<S: Build<Value = Option<T>>, T> Each<S> {
    /// Reads the elements without an error.
    fn read_each(scope: &mut Scope<'_>, key: &str) -> Vec<(String, T)> {
        let mut found = Vec::new();
        for id in scope.ids(key) {
            let mut scope = scope.below(key);
            let mut scope = scope.of(&id);
            let value = S::read(&mut scope).and_then(|section| section.build(&mut scope));
            found.extend(value.map(|value| (id, value)));
        }
        found
    }
}

impl<S: Build<Value = Option<T>>, T> Part<BTreeMap<String, T>> for Each<S> {
    fn list(self, name: &str, _meaning: &'static str, table: &mut Vec<Setting>) {
        S::list(name, table);
    }

    fn read(self, scope: &mut Scope<'_>, key: &str) -> Option<BTreeMap<String, T>> {
        Some(Self::read_each(scope, key).into_iter().collect())
    }
}

impl<S: Build<Value = Option<T>>, T> Part<Vec<T>> for Each<S> {
    fn list(self, name: &str, _meaning: &'static str, table: &mut Vec<Setting>) {
        S::list(name, table);
    }

    fn read(self, scope: &mut Scope<'_>, key: &str) -> Option<Vec<T>> {
        Some(Self::read_each(scope, key).into_iter().map(|(_, value)| value).collect())
    }
}

/// The settings of a section that is read later: the field is empty until it is built, together with other settings.
pub(super) struct Listed<S>(PhantomData<S>);

/// Returns the [`Listed`] of this section.
pub(super) fn listed<S>() -> Listed<S> {
    Listed(PhantomData)
}

impl<S: Section, T: Default> Part<T> for Listed<S> {
    fn list(self, name: &str, _meaning: &'static str, table: &mut Vec<Setting>) {
        S::list(name, table);
    }

    fn read(self, _scope: &mut Scope<'_>, _key: &str) -> Option<T> {
        Some(T::default())
    }
}

/// No setting: the field is empty until it is built from the other ones.
pub(super) struct Unset;

impl<T: Default> Part<T> for Unset {
    fn list(self, _name: &str, _meaning: &'static str, _table: &mut Vec<Setting>) {}

    fn read(self, _scope: &mut Scope<'_>, _key: &str) -> Option<T> {
        Some(T::default())
    }
}
