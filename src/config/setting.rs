//! Settings and the sections that they are declared in: a section is a struct whose fields are settings, or sections.
use super::error::ConfigError;
use super::kind::{Kind, PEM, RawValue};
use super::load::RawSetting;
use super::name::fill_name;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A setting.
pub struct Setting {
    /// Its name. A part in angle brackets is a placeholder for any name.
    pub name: String,
    /// The kind of its value.
    pub kind: Kind<()>,
    /// Its default, in the form of a configuration file.
    pub default: Option<&'static str>,
    /// A description of its effect.
    pub meaning: Cow<'static, str>,
}

impl Setting {
    /// Whether it has an effect in a target of this type.
    pub fn applies_to(&self, target_type: &str) -> bool {
        let types = self.kind.target_types;
        types.is_empty() || types.contains(&target_type)
    }
}

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

/// The valid values of settings, by name.
pub(super) type Values = BTreeMap<String, RawSetting>;

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
        let is_text = entry.setting.kind.expected == PEM && path.contains("-----BEGIN");
        if !is_text && let Err(error) = std::fs::File::open(path.trim()) {
            self.error(key, format!("it cannot be read: {error}"));
        }
    }
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

/// A section, and how the value of the field is built from it.
pub(super) struct Built<S, T>(fn(S, &mut Scope<'_>) -> T);

/// The field is this section.
pub(super) fn section<S>() -> Built<S, S> {
    Built(|section, _| section)
}

/// The field is built from a section.
pub(super) fn built<S, T>(build: fn(S, &mut Scope<'_>) -> T) -> Built<S, T> {
    Built(build)
}

impl<S: Section, T> Part<T> for Built<S, T> {
    fn list(self, name: &str, _meaning: &'static str, table: &mut Vec<Setting>) {
        S::list(name, table);
    }

    fn read(self, scope: &mut Scope<'_>, key: &str) -> Option<T> {
        let mut scope = scope.below(key);
        Some(self.0(S::read(&mut scope)?, &mut scope))
    }
}

/// A section for each name in place of the last placeholder of the key, and how an element of the field is built from it.
pub(super) struct Each<S, T>(Box<Build<S, T>>);

type Build<S, T> = dyn Fn(S, &mut Scope<'_>) -> Option<T>;

/// The elements of the field are built from sections. `None` leaves one out after an error.
pub(super) fn each<S: 'static, T: 'static>(
    build: fn(S, &mut Scope<'_>) -> Option<T>,
) -> Each<S, T> {
    Each(Box::new(build))
}

/// The elements of the field are sections, which are checked.
pub(super) fn each_checked<S: 'static>(check: fn(&S, &mut Scope<'_>)) -> Each<S, S> {
    Each(Box::new(move |section, scope| {
        check(&section, scope);
        Some(section)
    }))
}

impl<S: Section, T> Each<S, T> {
    /// Reads the elements without an error.
    fn read_each(self, scope: &mut Scope<'_>, key: &str) -> Vec<(String, T)> {
        let mut found = Vec::new();
        for id in scope.ids(key) {
            let mut scope = scope.below(key);
            let mut scope = scope.of(&id);
            let read = S::read(&mut scope);
            found.extend(
                read.and_then(|section| self.0(section, &mut scope)).map(|value| (id, value)),
            );
        }
        found
    }
}

impl<S: Section, T> Part<BTreeMap<String, T>> for Each<S, T> {
    fn list(self, name: &str, _meaning: &'static str, table: &mut Vec<Setting>) {
        S::list(name, table);
    }

    fn read(self, scope: &mut Scope<'_>, key: &str) -> Option<BTreeMap<String, T>> {
        Some(self.read_each(scope, key).into_iter().collect())
    }
}

impl<S: Section, T> Part<Vec<T>> for Each<S, T> {
    fn list(self, name: &str, _meaning: &'static str, table: &mut Vec<Setting>) {
        S::list(name, table);
    }

    fn read(self, scope: &mut Scope<'_>, key: &str) -> Option<Vec<T>> {
        Some(self.read_each(scope, key).into_iter().map(|(_, value)| value).collect())
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
