//! Guesses what each position in the samples becomes in the mapping.
use super::name::{are_language_tags, look_like_data};
use super::seen::{Content, Members, SeenValues, as_text};
use super::value::ValueGuess;
use crate::mapping::MEMBER_KEY;
use penstock_base::json::Json;
use std::collections::HashSet;

/// What a position becomes in the mapping.
pub(super) enum Guess<'j> {
    /// Single values.
    Value(ValueGuess),
    /// One value of any type, and why.
    Json(&'static str),
    LanguageMap {
        has_arrays: bool,
    },
    Object(Members<'j>),
    Map {
        has_integers: bool,
        /// What each member is.
        member: Box<Guess<'j>>,
    },
    Array {
        is_ordered: bool,
        /// What each element is; `None` if all arrays are empty.
        element: Option<Box<Guess<'j>>>,
    },
}

impl<'j> Guess<'j> {
    /// Guesses what the values in a member of this name become; `None` if there are none.
    pub(super) fn new(name: &str, seen: &SeenValues<'j>) -> Option<Self> {
        Some(match seen.content() {
            Content::Objects => guess_objects(name, seen),
            Content::Arrays(arrays) => guess_arrays(name, seen, &arrays),
            _ => return Self::of_single(name, seen),
        })
    }

    /// Guesses what the elements of arrays in a member of this name become. They are no maps.
    fn of_elements(name: &str, elements: &SeenValues<'j>) -> Option<Self> {
        Some(match elements.content() {
            Content::Objects => guess_plain_objects(elements.members()),
            Content::Arrays(_) => Self::Json("arrays in arrays"),
            _ => return Self::of_single(name, elements),
        })
    }

    fn of_single(name: &str, seen: &SeenValues<'j>) -> Option<Self> {
        Some(Self::Value(match seen.content() {
            Content::Nothing => return None,
            Content::Booleans => ValueGuess::new("boolean"),
            Content::Numbers(numbers) => ValueGuess::of_numbers(name, &numbers),
            Content::Texts(texts) => ValueGuess::of_texts(name, &texts),
            Content::Scalars => ValueGuess::of_scalars(),
            Content::Objects | Content::Arrays(_) | Content::Mixed => {
                return Some(Self::Json("objects or arrays beside other values"));
            }
        }))
    }
}

fn guess_objects<'j>(name: &str, seen: &SeenValues<'j>) -> Guess<'j> {
    let members = seen.members();
    if let Some(has_arrays) = find_language_map(seen, &members) {
        return Guess::LanguageMap { has_arrays };
    }
    if is_map(&members)
        && let Some(member) = guess_map_member(name, &members)
    {
        let is_integer =
            |name: &str| name.parse::<u64>().is_ok_and(|number| number.to_string() == name);
        let has_integers = members.iter().all(|(name, _)| is_integer(name));
        return Guess::Map { has_integers, member: Box::new(member) };
    }
    guess_plain_objects(members)
}

fn guess_plain_objects(members: Members<'_>) -> Guess<'_> {
    if members.is_empty() { Guess::Json("objects without values") } else { Guess::Object(members) }
}

/// Returns whether the objects are language maps, and if so, whether each language has an array.
fn find_language_map(seen: &SeenValues<'_>, members: &Members<'_>) -> Option<bool> {
    if members.is_empty() || !are_language_tags(members.iter().map(|(name, _)| name)) {
        return None;
    }
    let has_tag_twice = |object: &[(String, Json)]| {
        let mut tags = HashSet::new();
        !object.iter().all(|(tag, _)| tags.insert(tag.to_ascii_lowercase()))
    };
    if seen.objects().any(has_tag_twice) {
        return None;
    }
    let mut has_arrays = None;
    for (_, texts) in members.iter() {
        let is_array = match texts.content() {
            Content::Nothing => continue,
            Content::Texts(_) => false,
            Content::Arrays(arrays) => {
                let has_texts =
                    matches!(texts.elements().content(), Content::Texts(_) | Content::Nothing);
                let are_sets = arrays.iter().all(|array| !array.is_empty() && is_sorted(array));
                (has_texts && are_sets).then_some(true)?
            }
            _ => return None,
        };
        if *has_arrays.get_or_insert(is_array) != is_array {
            return None;
        }
    }
    has_arrays
}

/// Returns whether there are several members, whose names look like data.
fn is_map(members: &Members<'_>) -> bool {
    let names = || members.iter().map(|(name, _)| name);
    names().nth(1).is_some() && look_like_data(names())
}

/// Guesses what the members of a map become; `None` if they have not one shape.
fn guess_map_member<'j>(name: &str, members: &Members<'j>) -> Option<Guess<'j>> {
    let values = SeenValues::new(members.iter().flat_map(|(_, values)| values.iter()));
    match values.content() {
        Content::Nothing | Content::Scalars | Content::Mixed => return None,
        // An empty array is no value.
        Content::Arrays(arrays) if arrays.iter().any(|array| array.is_empty()) => return None,
        Content::Objects if !are_alike(&values) => return None,
        _ => {}
    }
    match Guess::new(name, &values)? {
        Guess::Object(members) if members.find(MEMBER_KEY).is_some() => None,
        guess => Some(guess),
    }
}

/// Returns whether each object has at least half of all members.
fn are_alike(objects: &SeenValues<'_>) -> bool {
    let all = objects.members().iter().count();
    objects.objects().all(|object| object.len() * 2 >= all)
}

fn guess_arrays<'j>(name: &str, seen: &SeenValues<'j>, arrays: &[&'j [Json]]) -> Guess<'j> {
    let Some(element) = Guess::of_elements(name, &seen.elements()) else {
        return Guess::Array { is_ordered: false, element: None };
    };
    if let Guess::Json(why) = element {
        return Guess::Json(why);
    }
    let is_ordered = needs_order(arrays, &element);
    if is_ordered && arrays.iter().any(|array| array.contains(&Json::Null)) {
        return Guess::Json("arrays with an order and `null`");
    }
    Guess::Array { is_ordered, element: Some(Box::new(element)) }
}

/// Returns whether a set would lose the order of arrays, or what they have twice.
fn needs_order(arrays: &[&[Json]], element: &Guess<'_>) -> bool {
    let is_number = |json: &Json| matches!(json, Json::Number(_));
    if arrays.iter().any(|array| array.iter().any(is_number)) {
        return true;
    }
    let mut longer = arrays
        .iter()
        .filter(|array| array.iter().filter(|element| **element != Json::Null).nth(1).is_some());
    match element {
        Guess::Value(value) if value.is_plain_text() => !longer.all(|array| is_sorted(array)),
        Guess::Object(members) => match members.id_member() {
            Some(id) => !longer.all(|array| {
                let ids = array.iter().map(|one| as_text(one.member(id)?));
                let ids: Option<Vec<&str>> = ids.collect();
                ids.is_some_and(|ids| ids.is_sorted_by(|one, next| one < next))
            }),
            None => longer.next().is_some(),
        },
        _ => longer.next().is_some(),
    }
}

/// Returns whether the texts in an array are in order, without repeats.
fn is_sorted(array: &[Json]) -> bool {
    let texts: Vec<&str> = array.iter().filter_map(as_text).collect();
    texts.is_sorted_by(|one, next| one < next)
}
