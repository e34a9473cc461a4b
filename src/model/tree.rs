//! Reads an object for a page: its fields in the mapping's order, and nested objects down to a limit.
//!
//! A view shows an object as a whole, up to 32 MiB. A page shows much less, so it reads only that: some elements of each
//! array, a few levels, and a limited number of nested objects. Every nested object can be read as a tree of its own.
use crate::list::Lists;
use crate::mapping::{Detail, Field, Property, Shape, Value};
use crate::view::{
    FieldValues, NestingPath, ShownValues, find_nested_label, read_members, shows_value,
};
use oxrdf::{NamedNode, NamedNodeRef, TermRef};
use penstock_base::error::GatewayError;
use penstock_rdf::compare::SortKey;
use penstock_store::{Read, SubjectQuads};
use std::collections::BTreeSet;

/// The number of elements of an array that are read at once.
pub const PAGE_ELEMENTS: usize = 20;
/// The number of elements that are read of an array in a nested object, and of one that begins with the newest.
const NESTED_ELEMENTS: usize = 5;
/// The number of levels of nested objects that are read.
const MAX_LEVELS: usize = 3;
/// The maximum number of nested objects that are read.
const MAX_NESTED: usize = 300;
/// The maximum number of elements of an array that are read to order them by time.
const MAX_ORDERED: usize = 10_000;
/// The maximum number of members of maps that are read to know which ones the view shows, and of one map. So many more are read
/// as windows of maps that are not read as a whole.
const MAX_MEMBERS: usize = if cfg!(test) { 30 } else { 10_000 };
/// The maximum number of bytes of all values that are read.
const MAX_VALUE_BYTES: usize = 1 << 20;
/// The number of bytes of a page that a value takes besides its text, about.
const VALUE_OVERHEAD_BYTES: usize = 100;
/// The maximum number of characters of a literal.
const MAX_LITERAL_CHARS: usize = 1_000;
/// The maximum number of characters of a label.
const MAX_LABEL_CHARS: usize = 200;
/// The maximum number of notes of a field.
const MAX_NOTES: usize = 5;
/// The maximum number of characters of a value in a note.
const MAX_NOTE_CHARS: usize = 80;

/// An object, or only its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectTree {
    /// Its URI.
    pub uri: NamedNode,
    /// The text by which people recognise it.
    pub label: Option<String>,
    /// Its fields, except its URI; `None` if they were not read.
    pub fields: Option<Vec<TreeField>>,
}

/// A field of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeField {
    /// Its name.
    pub name: String,
    /// Its type in words, of one element if it is an array.
    pub type_name: String,
    /// Whether its values are nested objects.
    pub holds_objects: bool,
    /// Whether it is an array.
    pub is_array: bool,
    /// Whether its objects have only fields with values, and no objects nested in them.
    pub is_flat: bool,
    /// The values that were read.
    pub values: Vec<TreeValue>,
    /// The index of the first of them among all values.
    pub first: usize,
    /// The number of elements that the values cover. Of a map with too many members for any page, these are also those that the
    /// view leaves out, which are no values.
    pub covered: usize,
    /// The number of all values that the field shows; of a map with too many members, of all that are stored.
    pub total: usize,
    /// The name of the field by which its objects are ordered, the newest first; otherwise they are ordered by URI.
    pub newest_by: Option<String>,
    /// What a reader should know about the stored values, such as values that the field cannot show.
    pub notes: Vec<String>,
}

/// A value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeValue {
    /// A literal or a code, as the view shows it.
    Literal {
        /// Its text, or the beginning.
        text: String,
        /// Whether this is only the beginning.
        is_cut: bool,
    },
    /// An IRI.
    Resource(NamedNode),
    /// A nested object.
    Object(ObjectTree),
}

/// Some elements of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldWindow {
    /// The name of the field.
    pub field: String,
    /// The index of the first element.
    pub from: usize,
}

/// Reads an object of this shape. With a window, it reads only these elements of that field.
///
/// # Errors
/// The errors of the store.
pub fn read_tree(
    read: &dyn Read,
    shape: &Shape,
    uri: &NamedNode,
    window: Option<&FieldWindow>,
) -> Result<ObjectTree, GatewayError> {
    let mut quads = SubjectQuads::default();
    read.read_subject(uri.as_ref().into(), &mut quads)?;
    let mut reader = TreeReader {
        read,
        nested_left: MAX_NESTED,
        ordered_left: MAX_ORDERED,
        members_left: MAX_MEMBERS,
        windowed_left: MAX_MEMBERS,
        bytes_left: MAX_VALUE_BYTES,
    };
    reader.read_object(shape, &NestingPath { uri, above: None }, &quads, window)
}

/// Returns how many objects contain the last one of a path.
fn nesting_level(path: &NestingPath<'_>) -> usize {
    path.above.map_or(0, |above| nesting_level(above) + 1)
}

struct TreeReader<'r> {
    read: &'r dyn Read,
    /// How many nested objects may still be read.
    nested_left: usize,
    /// How many elements may still be read to order them.
    ordered_left: usize,
    /// How many members of maps may still be read to know whether they are shown.
    members_left: usize,
    /// How many members of maps that are not read as a whole may still be read.
    windowed_left: usize,
    /// How many bytes of values may still be read.
    bytes_left: usize,
}

/// A map of which a page reads only some members, because there are too many to read all of them.
struct MapWindow<'q> {
    /// The members that are read, if indexes count all stored ones. Of a map that can be read on a page of its own, they count
    /// only those that the view shows.
    counted: Vec<NamedNodeRef<'q>>,
    /// The number of all members.
    total: usize,
}

impl MapWindow<'_> {
    /// Returns how many of the counted members are before this one; without it, how many there are.
    fn count_before(&self, next: Option<NamedNodeRef<'_>>) -> usize {
        let place = next.and_then(|next| self.counted.iter().position(|member| *member == next));
        place.unwrap_or(self.counted.len())
    }
}

impl TreeReader<'_> {
    fn read_object(
        &mut self,
        shape: &Shape,
        path: &NestingPath<'_>,
        quads: &SubjectQuads,
        window: Option<&FieldWindow>,
    ) -> Result<ObjectTree, GatewayError> {
        let lists = Lists::of_object(self.read, shape, quads.iter())?;
        let values = FieldValues::from_subject(shape, quads).with_lists(&lists);
        let mut fields = Vec::new();
        for property in shape.iter_properties() {
            if window.is_none_or(|window| window.field == property.1.name) {
                fields.push(self.read_field(property, &values, path, window)?);
            }
        }
        Ok(ObjectTree {
            uri: path.uri.clone(),
            label: self.read_label(shape, &values),
            fields: Some(fields),
        })
    }

    fn read_field(
        &mut self,
        (place, field, property): (usize, &Field, &Property),
        values: &FieldValues<'_>,
        path: &NestingPath<'_>,
        window: Option<&FieldWindow>,
    ) -> Result<TreeField, GatewayError> {
        let from = window.map_or(0, |window| window.from);
        let mut notes = Vec::new();
        let mut all = values.collect_values(place, property, &mut |what, term| {
            notes.push(describe_left_out(what, &term.to_string()));
        });
        let level = nesting_level(path);
        let elements = if level == 0 { PAGE_ELEMENTS } else { NESTED_ELEMENTS };
        let mut large = None;
        if let (Some((members, _)), ShownValues::Iris(iris)) = (property.map(), &mut all) {
            large = self.limit_members(iris, (from, elements), &mut notes);
            self.retain_shown(members, iris, path, &mut notes)?;
        }
        let mut read = TreeField {
            name: field.name.clone(),
            type_name: describe_type(&property.value),
            holds_objects: property.value.shape().is_some(),
            is_array: property.is_array,
            is_flat: is_flat(property),
            values: Vec::new(),
            first: from,
            covered: 0,
            total: 0,
            newest_by: None,
            notes: Vec::new(),
        };
        let stored = large.as_ref().map_or_else(|| all.texts().count(), |large| large.total);
        let is_map = property.value.language_map().is_some();
        read.total = if property.is_array || is_map { stored } else { stored.min(1) };
        if stored > read.total {
            notes.push(format!(
                "{stored} values are stored, but the field is not an array; only the first is shown."
            ));
        }
        let mut count = elements.min(read.total.saturating_sub(from));
        match all {
            ShownValues::Literals(literals) => {
                for literal in literals.into_iter().skip(from).take(count) {
                    let (mut text, is_cut) = cut_text(&literal.text, MAX_LITERAL_CHARS);
                    if let Some(language) = literal.language().filter(|_| is_map) {
                        text = format!("{language}: {text}");
                    }
                    if !self.take_bytes(text.len()) {
                        break;
                    }
                    notes.extend(literal.misfit.map(|misfit| format!("The value {misfit}.")));
                    read.values.push(TreeValue::Literal { text, is_cut });
                }
            }
            ShownValues::Codes(codes) => {
                for code in codes.into_iter().skip(from).take(count) {
                    let (text, is_cut) = cut_text(code.text(), MAX_LITERAL_CHARS);
                    if !self.take_bytes(text.len()) {
                        break;
                    }
                    notes.extend(code.misfit.map(|misfit| format!("The value {misfit}.")));
                    read.values.push(TreeValue::Literal { text, is_cut });
                }
            }
            ShownValues::Iris(mut iris) => {
                if let Value::Object(inner) = &property.value {
                    let is_ordered = property.is_ordered || large.is_some();
                    if level == 0 && property.is_array && !is_ordered {
                        read.newest_by = self.order_by_time(inner, &mut iris, &mut notes)?;
                    }
                    if read.newest_by.is_some() && window.is_none() {
                        // The newest ones are what most people look for.
                        count = count.min(NESTED_ELEMENTS);
                    }
                    let skipped = if large.is_some() { 0 } else { from };
                    let mut next = None;
                    for iri in iris.into_iter().skip(skipped).take(count) {
                        if !self.take_bytes(iri.as_str().len()) {
                            next = Some(iri);
                            break;
                        }
                        let nested = self.read_nested(inner, iri, path)?;
                        read.values.push(TreeValue::Object(nested));
                    }
                    read.covered = large.map_or(0, |large| large.count_before(next));
                } else {
                    for iri in iris.into_iter().skip(from).take(count) {
                        if !self.take_bytes(iri.as_str().len()) {
                            break;
                        }
                        read.values.push(TreeValue::Resource(iri.into_owned()));
                    }
                }
            }
        }
        notes.truncate(MAX_NOTES);
        read.covered = read.covered.max(read.values.len());
        read.notes = notes;
        Ok(read)
    }

    /// Retains only the members of the window, from an index and so many, if there are too many members to read all of them.
    fn limit_members<'q>(
        &mut self,
        iris: &mut Vec<NamedNodeRef<'q>>,
        (from, count): (usize, usize),
        notes: &mut Vec<String>,
    ) -> Option<MapWindow<'q>> {
        let total = iris.len();
        if let Some(left) = self.members_left.checked_sub(total) {
            self.members_left = left;
            return None;
        }
        let count = count.min(self.windowed_left);
        let members: Vec<_> = iris.iter().copied().skip(from).take(count).collect();
        self.windowed_left -= members.len();
        iris.clone_from(&members);
        notes.push(
            "More members are stored than a page reads. They are ordered by URI, and their number includes those that the view leaves out."
                .to_owned(),
        );
        // Whether other maps were read before must not change what an index means on the next page.
        let counted = if total > MAX_MEMBERS { members } else { Vec::new() };
        Some(MapWindow { counted, total })
    }

    /// Retains the members that a map shows. The notes say which ones it leaves out, except those that the reader may not see.
    fn retain_shown(
        &mut self,
        shape: &Shape,
        iris: &mut Vec<NamedNodeRef<'_>>,
        path: &NestingPath<'_>,
        notes: &mut Vec<String>,
    ) -> Result<(), GatewayError> {
        let mut left_out = Vec::new();
        let named = read_members(self.read, shape, iris, &mut |what, term| {
            left_out.push((what, term));
        })?;
        let mut shown = BTreeSet::new();
        for (_, uri) in named {
            if shows_value(self.read, shape, uri, Some(path))? {
                shown.insert(uri);
            } else {
                left_out.push(("a member of the map without a value", uri.into()));
            }
        }
        for (what, term) in left_out {
            if notes.len() >= MAX_NOTES {
                break;
            }
            if let TermRef::NamedNode(uri) = term
                && !self.read.is_hidden(uri.into())?
            {
                notes.push(describe_left_out(what, &term.to_string()));
            }
        }
        iris.retain(|uri| shown.contains(uri));
        Ok(())
    }

    fn read_nested(
        &mut self,
        shape: &Shape,
        iri: NamedNodeRef<'_>,
        path: &NestingPath<'_>,
    ) -> Result<ObjectTree, GatewayError> {
        let uri = iri.into_owned();
        if path.contains_uri(&uri) || self.nested_left == 0 {
            return Ok(ObjectTree { uri, label: None, fields: None });
        }
        self.nested_left -= 1;
        let mut quads = SubjectQuads::default();
        self.read.read_subject(iri.into(), &mut quads)?;
        let path = NestingPath { uri: &uri, above: Some(path) };
        if nesting_level(&path) > MAX_LEVELS {
            let label = self.read_label(shape, &FieldValues::from_subject(shape, &quads));
            return Ok(ObjectTree { uri, label, fields: None });
        }
        self.read_object(shape, &path, &quads, None)
    }

    fn read_label(&mut self, shape: &Shape, values: &FieldValues<'_>) -> Option<String> {
        let (label, _) = cut_text(&find_nested_label(shape, values)?, MAX_LABEL_CHARS);
        self.take_bytes(label.len()).then_some(label)
    }

    /// Takes the bytes of a value from the remaining ones. Returns whether there were any left.
    fn take_bytes(&mut self, bytes: usize) -> bool {
        let had_some = self.bytes_left > 0;
        self.bytes_left = self.bytes_left.saturating_sub(bytes + VALUE_OVERHEAD_BYTES);
        had_some
    }

    /// Orders objects by their first field with a time, the newest first, if they have one and are not too many. Returns
    /// the name of that field.
    fn order_by_time(
        &mut self,
        shape: &Shape,
        iris: &mut Vec<NamedNodeRef<'_>>,
        notes: &mut Vec<String>,
    ) -> Result<Option<String>, GatewayError> {
        let mut times = shape.iter_properties().filter(|(_, field, _)| field.is_single_time());
        let Some((place, field, property)) = times.next() else { return Ok(None) };
        if iris.len() < 2 {
            return Ok(None);
        }
        if iris.len() > self.ordered_left {
            notes.push(format!(
                "They are ordered by URI, because more than {MAX_ORDERED} would have to be read to show the newest first."
            ));
            return Ok(None);
        }
        self.ordered_left -= iris.len();
        let order = property.value.kind().order;
        let mut quads = SubjectQuads::default();
        let mut keyed: Vec<(Option<SortKey>, NamedNodeRef<'_>)> = Vec::with_capacity(iris.len());
        for iri in iris.iter() {
            self.read.read_subject((*iri).into(), &mut quads)?;
            let values = FieldValues::from_subject(shape, &quads).collect_shown(place, property);
            let key = match &values {
                // What is not a time comes last.
                ShownValues::Literals(shown) => {
                    let time = shown.first().filter(|one| one.misfit.is_none());
                    time.map(|one| order.sort_key(&one.text))
                }
                ShownValues::Iris(_) | ShownValues::Codes(_) => None,
            };
            keyed.push((key, *iri));
        }
        keyed.sort_by(|(a, _), (b, _)| b.cmp(a));
        *iris = keyed.into_iter().map(|(_, iri)| iri).collect();
        Ok(Some(field.name.clone()))
    }
}

/// Describes a stored value that a field does not show.
fn describe_left_out(what: &str, term: &str) -> String {
    let shown: String = term.chars().take(MAX_NOTE_CHARS).collect();
    format!("The value {shown} is {what}, and is left out.")
}

/// Returns the first characters of a text, and whether there are more.
fn cut_text(text: &str, max_chars: usize) -> (String, bool) {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => (text.get(..end).unwrap_or_default().to_owned(), true),
        None => (text.to_owned(), false),
    }
}

fn is_flat(property: &Property) -> bool {
    property.value.shape().is_some_and(|inner| !inner.fields.iter().any(Field::contains_objects))
}

/// Returns the type of a value in words.
pub fn describe_type(value: &Value) -> String {
    match value.detail() {
        Detail::Datatype(datatype) => {
            let iri = datatype.as_str();
            let name = iri.rsplit(['#', '/']).next().filter(|name| !name.is_empty());
            name.unwrap_or(iri).to_owned()
        }
        Detail::Language(tag) => format!("string, {tag}"),
        Detail::Objects(_) | Detail::None => value.kind().name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
