//! What stands in one place of all samples.
use oxrdf::NamedNode;
use oxsdatatypes::{Date, DateTime};
use penstock_base::json::Json;
use std::collections::HashMap;

/// The longest IRI that an ingestion takes, in bytes.
const LONGEST_IRI: usize = 1 << 16;

/// What stands in one place of all samples.
#[derive(Debug, Default)]
pub(super) struct Seen<'j> {
    texts: Texts,
    booleans: usize,
    integers: usize,
    /// Numbers with a fraction or an exponent.
    fractions: usize,
    objects: usize,
    /// What the objects hold, in the order of the first mention.
    pub(super) members: Vec<(&'j str, Seen<'j>)>,
    places: HashMap<&'j str, usize>,
    arrays: usize,
    /// What the arrays hold.
    elements: Option<Box<Seen<'j>>>,
}

/// The strings among it.
#[derive(Debug, Default)]
struct Texts {
    all: usize,
    dates: usize,
    times: usize,
    /// Absolute IRIs.
    iris: usize,
    /// Those of them that are meant as such: `P:101` is one by chance.
    links: usize,
}

/// What a place holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guess {
    /// A single value of this type of mappings.
    Single(&'static str),
    /// Objects.
    Object,
    /// Arrays.
    Array,
}

impl<'j> Seen<'j> {
    /// Takes up one more value.
    pub(super) fn see(&mut self, value: &'j Json) {
        match value {
            Json::Null => {}
            Json::Bool(_) => self.booleans += 1,
            Json::Number(digits) if digits.contains(['.', 'e', 'E']) => self.fractions += 1,
            Json::Number(_) => self.integers += 1,
            Json::String(text) => self.texts.see(text),
            Json::Array(elements) => {
                self.arrays += 1;
                let seen = self.elements.get_or_insert_default();
                for element in elements {
                    seen.see(element);
                }
            }
            Json::Object(members) => {
                self.objects += 1;
                for (name, value) in members {
                    let place = *self.places.entry(name).or_insert_with(|| {
                        self.members.push((name, Seen::default()));
                        self.members.len() - 1
                    });
                    if let Some((_, seen)) = self.members.get_mut(place) {
                        seen.see(value);
                    }
                }
            }
        }
    }

    /// What it holds the most often; nothing when there are no values.
    pub(super) fn guess(&self) -> Option<Guess> {
        let (_, guess, _) = self.kinds().max_by_key(|(count, _, _)| *count)?;
        Some(guess)
    }

    /// What else it holds, in words; nothing when all is of one kind.
    pub(super) fn others(&self) -> Option<String> {
        let guess = self.guess()?;
        let others = self.kinds().filter(|(_, other, _)| *other != guess);
        let others: Vec<_> = others
            .map(|(count, _, (one, many))| match count {
                1 => format!("1 {one}"),
                _ => format!("{count} {many}"),
            })
            .collect();
        (!others.is_empty()).then(|| others.join(", "))
    }

    /// What the arrays hold.
    pub(super) fn elements(&self) -> Option<&Self> {
        self.elements.as_deref()
    }

    /// Whether all values are IRIs; not only by chance, unless the name says that they are.
    fn names_objects(&self, name: &str) -> bool {
        let iris = if name == "uri" { self.texts.iris } else { self.texts.links };
        iris > 0 && iris == self.texts.all && self.kinds().count() == 1
    }

    /// The member that holds the objects' own URIs.
    pub(super) fn id(&self) -> Option<&'j str> {
        let is_id = |wanted: &str| {
            let place = self.places.get(wanted)?;
            let (name, seen) = self.members.get(*place)?;
            seen.names_objects(name).then_some(*name)
        };
        if self.has("uri") {
            is_id("uri")
        } else {
            ["@id", "id", "iri"].into_iter().find_map(is_id)
        }
    }

    /// Whether some object has a member of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Each kind that is there: how often, as what, in words. The last one counts where several are as often.
    fn kinds(&self) -> impl Iterator<Item = (usize, Guess, (&'static str, &'static str))> {
        let number = if self.fractions > 0 { "number" } else { "integer" };
        [
            (self.booleans, Guess::Single("boolean"), ("boolean", "booleans")),
            (self.integers + self.fractions, Guess::Single(number), ("number", "numbers")),
            (self.texts.all, Guess::Single(self.texts.name()), ("string", "strings")),
            (self.objects, Guess::Object, ("object", "objects")),
            (self.arrays, Guess::Array, ("array", "arrays")),
        ]
        .into_iter()
        .filter(|(count, ..)| *count > 0)
    }
}

impl Texts {
    fn see(&mut self, text: &str) {
        self.all += 1;
        self.dates += usize::from(text.parse::<Date>().is_ok());
        self.times += usize::from(text.parse::<DateTime>().is_ok());
        if text.len() <= LONGEST_IRI && NamedNode::new(text).is_ok() {
            self.iris += 1;
            let is_meant =
                ["http://", "https://", "urn:"].iter().any(|begin| text.starts_with(begin));
            self.links += usize::from(is_meant);
        }
    }

    /// The type of mappings that all of them are.
    fn name(&self) -> &'static str {
        match self.all {
            all if all == self.dates => "date",
            all if all == self.times => "dateTime",
            all if all == self.links => "resource",
            _ => "string",
        }
    }
}
