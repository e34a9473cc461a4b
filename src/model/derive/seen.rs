//! Statistics about the values at one position in all samples.
use oxrdf::NamedNode;
use oxsdatatypes::{Date, DateTime};
use penstock_base::json::Json;
use penstock_rdf::MAX_IRI_BYTES;
use std::collections::HashMap;

/// The values at one position in all samples, counted by type.
#[derive(Debug, Default)]
pub(super) struct SeenValues<'j> {
    texts: TextCounts,
    booleans: usize,
    integers: usize,
    /// Numbers with a fraction or an exponent.
    fractions: usize,
    objects: usize,
    /// The members of the objects, in the order in which their names first occur.
    pub(super) members: Vec<(&'j str, SeenValues<'j>)>,
    member_indexes: HashMap<&'j str, usize>,
    arrays: usize,
    /// The elements of the arrays.
    elements: Option<Box<SeenValues<'j>>>,
}

/// The strings at one position, counted by what they can be parsed as.
#[derive(Debug, Default)]
struct TextCounts {
    all: usize,
    dates: usize,
    times: usize,
    /// Absolute IRIs.
    iris: usize,
    /// Absolute IRIs that are meant as IRIs. `P:101` is one only by chance.
    links: usize,
}

/// The type that a position gets in the mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuessedType {
    /// A single value, with the name of its type in a mapping.
    Single(&'static str),
    /// Objects.
    Object,
    /// Arrays.
    Array,
}

impl<'j> SeenValues<'j> {
    /// Counts one more value.
    pub(super) fn count_value(&mut self, value: &'j Json) {
        match value {
            Json::Null => {}
            Json::Bool(_) => self.booleans += 1,
            Json::Number(digits) if digits.contains(['.', 'e', 'E']) => self.fractions += 1,
            Json::Number(_) => self.integers += 1,
            Json::String(text) => self.texts.count_text(text),
            Json::Array(elements) => {
                self.arrays += 1;
                let seen = self.elements.get_or_insert_default();
                for element in elements {
                    seen.count_value(element);
                }
            }
            Json::Object(members) => {
                self.objects += 1;
                for (name, value) in members {
                    let place = *self.member_indexes.entry(name).or_insert_with(|| {
                        self.members.push((name, SeenValues::default()));
                        self.members.len() - 1
                    });
                    if let Some((_, seen)) = self.members.get_mut(place) {
                        seen.count_value(value);
                    }
                }
            }
        }
    }

    /// Returns the most frequent type; `None` if there are no values.
    pub(super) fn guess_type(&self) -> Option<GuessedType> {
        let (_, guess, _) = self.count_kinds().max_by_key(|(count, _, _)| *count)?;
        Some(guess)
    }

    /// Describes the values of other types; `None` if all have the same type.
    pub(super) fn describe_others(&self) -> Option<String> {
        let guess = self.guess_type()?;
        let others = self.count_kinds().filter(|(_, other, _)| *other != guess);
        let others: Vec<_> = others
            .map(|(count, _, (one, many))| match count {
                1 => format!("1 {one}"),
                _ => format!("{count} {many}"),
            })
            .collect();
        (!others.is_empty()).then(|| others.join(", "))
    }

    /// Returns the elements of the arrays.
    pub(super) fn elements(&self) -> Option<&Self> {
        self.elements.as_deref()
    }

    /// Returns whether all values are meant as IRIs. If `name` is `uri`, any absolute IRI is meant as one.
    fn names_objects(&self, name: &str) -> bool {
        let iris = if name == "uri" { self.texts.iris } else { self.texts.links };
        iris > 0 && iris == self.texts.all && self.count_kinds().count() == 1
    }

    /// Returns the name of the member with the objects' own URIs.
    pub(super) fn id_member(&self) -> Option<&'j str> {
        let is_id = |wanted: &str| {
            let place = self.member_indexes.get(wanted)?;
            let (name, seen) = self.members.get(*place)?;
            seen.names_objects(name).then_some(*name)
        };
        if self.has_member("uri") {
            is_id("uri")
        } else {
            ["@id", "id", "iri"].into_iter().find_map(is_id)
        }
    }

    /// Returns whether some object has a member of this name.
    pub(super) fn has_member(&self, name: &str) -> bool {
        self.member_indexes.contains_key(name)
    }

    /// Returns each type that occurs: its count, its type in the mapping, and its singular and plural. The order
    /// matters: of equally frequent types, [`Self::guess_type`] chooses the last one.
    fn count_kinds(
        &self,
    ) -> impl Iterator<Item = (usize, GuessedType, (&'static str, &'static str))> {
        let number = if self.fractions > 0 { "number" } else { "integer" };
        [
            (self.booleans, GuessedType::Single("boolean"), ("boolean", "booleans")),
            (self.integers + self.fractions, GuessedType::Single(number), ("number", "numbers")),
            (self.texts.all, GuessedType::Single(self.texts.type_name()), ("string", "strings")),
            (self.objects, GuessedType::Object, ("object", "objects")),
            (self.arrays, GuessedType::Array, ("array", "arrays")),
        ]
        .into_iter()
        .filter(|(count, ..)| *count > 0)
    }
}

impl TextCounts {
    fn count_text(&mut self, text: &str) {
        self.all += 1;
        self.dates += usize::from(text.parse::<Date>().is_ok());
        self.times += usize::from(text.parse::<DateTime>().is_ok());
        if text.len() <= MAX_IRI_BYTES && NamedNode::new(text).is_ok() {
            self.iris += 1;
            let is_meant =
                ["http://", "https://", "urn:"].iter().any(|begin| text.starts_with(begin));
            self.links += usize::from(is_meant);
        }
    }

    /// Returns the type in a mapping that fits all strings.
    fn type_name(&self) -> &'static str {
        match self.all {
            all if all == self.dates => "date",
            all if all == self.times => "dateTime",
            all if all == self.links => "resource",
            _ => "string",
        }
    }
}
