//! The values at one position in all samples.
use super::name::is_name_of_object;
use oxrdf::NamedNode;
use penstock_base::json::Json;
use penstock_rdf::MAX_IRI_BYTES;
use std::collections::{HashMap, HashSet};

/// The values at one position in all samples, without `null`.
#[derive(Debug, Default)]
pub(super) struct SeenValues<'j> {
    values: Vec<&'j Json>,
}

/// The members of the objects at one position, in the order in which their names first occur.
#[derive(Debug, Default)]
pub(super) struct Members<'j> {
    all: Vec<(&'j str, SeenValues<'j>)>,
    indexes: HashMap<&'j str, usize>,
    /// The members of each object.
    objects: Vec<&'j [(String, Json)]>,
}

/// The values at one position by their type in JSON.
pub(super) enum Content<'j> {
    /// There are none.
    Nothing,
    Booleans,
    /// Only numbers, with their digits.
    Numbers(Vec<&'j str>),
    /// Only strings.
    Texts(Vec<&'j str>),
    /// Single values of different types.
    Scalars,
    /// Only objects.
    Objects,
    /// Only arrays.
    Arrays(Vec<&'j [Json]>),
    /// Objects or arrays, and other values.
    Mixed,
}

impl<'j> SeenValues<'j> {
    /// Collects values.
    pub(super) fn new(values: impl IntoIterator<Item = &'j Json>) -> Self {
        Self { values: values.into_iter().filter(|value| **value != Json::Null).collect() }
    }

    /// Returns whether there are no values.
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the values.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'j Json> {
        self.values.iter().copied()
    }

    /// Returns the values by their type.
    pub(super) fn content(&self) -> Content<'j> {
        let texts: Vec<&str> = self.iter().filter_map(as_text).collect();
        let numbers: Vec<&str> = self.iter().filter_map(as_number).collect();
        let arrays: Vec<&[Json]> = self.iter().filter_map(as_array).collect();
        let objects = self.iter().filter(|value| matches!(value, Json::Object(_))).count();
        match self.values.len() {
            0 => Content::Nothing,
            all if all == texts.len() => Content::Texts(texts),
            all if all == numbers.len() => Content::Numbers(numbers),
            all if all == arrays.len() => Content::Arrays(arrays),
            all if all == objects => Content::Objects,
            _ if objects + arrays.len() > 0 => Content::Mixed,
            _ if texts.len() + numbers.len() > 0 => Content::Scalars,
            _ => Content::Booleans,
        }
    }

    /// Returns the members of the objects.
    pub(super) fn members(&self) -> Members<'j> {
        let mut members = Members { objects: self.objects().collect(), ..Members::default() };
        for (name, value) in self.iter().filter_map(as_object).flatten() {
            members.add(name, value);
        }
        members
    }

    /// Returns the members of each object.
    pub(super) fn objects(&self) -> impl Iterator<Item = &'j [(String, Json)]> {
        self.iter().filter_map(as_object)
    }

    /// Returns the elements of the arrays.
    pub(super) fn elements(&self) -> Self {
        Self::new(self.iter().filter_map(as_array).flatten())
    }

    /// Returns whether all values are meant as IRIs. If `name` is `uri`, any absolute IRI is meant as one.
    fn names_objects(&self, name: &str) -> bool {
        let Content::Texts(texts) = self.content() else { return false };
        let is_meant = |text: &&str| if name == "uri" { is_iri(text) } else { is_link(text) };
        texts.iter().all(is_meant)
    }
}

impl<'j> Members<'j> {
    fn add(&mut self, name: &'j str, value: &'j Json) {
        let index = *self.indexes.entry(name).or_insert_with(|| {
            self.all.push((name, SeenValues::default()));
            self.all.len() - 1
        });
        if let Some((_, seen)) = self.all.get_mut(index)
            && *value != Json::Null
        {
            seen.values.push(value);
        }
    }

    /// Returns the names and their values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'j str, &SeenValues<'j>)> + Clone {
        self.all.iter().map(|(name, seen)| (*name, seen))
    }

    /// Returns the names and their values.
    pub(super) fn into_values(self) -> impl Iterator<Item = (&'j str, SeenValues<'j>)> {
        self.all.into_iter()
    }

    /// Returns the values of a member.
    pub(super) fn find(&self, name: &str) -> Option<&SeenValues<'j>> {
        self.all.get(*self.indexes.get(name)?).map(|(_, seen)| seen)
    }

    /// Returns whether no member has a value.
    pub(super) fn is_empty(&self) -> bool {
        self.iter().all(|(_, seen)| seen.is_empty())
    }

    /// Returns whether objects seem to be the same: they are equal, or have the same value in a member that names objects.
    pub(super) fn have_repeats(&self) -> bool {
        let mut texts = HashSet::new();
        let has_repeated_name = |(name, seen): (&str, &SeenValues<'_>)| {
            let mut names = HashSet::new();
            let mut values = seen.iter().filter_map(|value| as_text(value).or(as_number(value)));
            is_name_of_object(name) && values.any(|value| !names.insert(value))
        };
        self.objects.iter().any(|object| !texts.insert(format!("{object:?}")))
            || self.iter().any(has_repeated_name)
    }

    /// Returns the name of the member with the objects' own URIs.
    pub(super) fn id_member(&self) -> Option<&'j str> {
        let is_id = |wanted: &str| {
            let (name, seen) = self.all.get(*self.indexes.get(wanted)?)?;
            seen.names_objects(name).then_some(*name)
        };
        if self.find("uri").is_some() {
            is_id("uri")
        } else {
            ["@id", "id", "iri"].into_iter().find_map(is_id)
        }
    }
}

/// Returns the text of a string.
pub(super) fn as_text(json: &Json) -> Option<&str> {
    if let Json::String(text) = json { Some(text) } else { None }
}

fn as_number(json: &Json) -> Option<&str> {
    if let Json::Number(digits) = json { Some(digits) } else { None }
}

fn as_array(json: &Json) -> Option<&[Json]> {
    if let Json::Array(elements) = json { Some(elements) } else { None }
}

fn as_object(json: &Json) -> Option<&[(String, Json)]> {
    if let Json::Object(members) = json { Some(members) } else { None }
}

fn is_iri(text: &str) -> bool {
    text.len() <= MAX_IRI_BYTES && NamedNode::new(text).is_ok()
}

/// Returns whether a text is an IRI that is meant as one. `P:101` is one only by chance.
pub(super) fn is_link(text: &str) -> bool {
    let begins = ["http://", "https://", "urn:"];
    begins.iter().any(|begin| text.starts_with(begin)) && is_iri(text)
}
