//! The JSON of an object as a tree: its fields, and the groups of fields in it.
//!
//! A group (`type: group`) is a JSON object without a node of its own: its fields belong to the object around it. So they are
//! in the list of the fields of that object, one after the other. The name of each begins with the names of its groups, with
//! a dot after each: `limits.low`. Only what reads or writes JSON needs to know the groups.
use super::reading::contains_value;
use super::shape::FieldGroup;
use super::{Field, FieldKind, ListedValue, Shape};
use penstock_base::json::{Json, push_pointer};
use std::ops::Range;
use std::sync::Arc;

/// The members of a JSON object: of an object, or of a group in it.
#[derive(Debug, Clone, Copy)]
pub struct Level<'s> {
    fields: &'s [Field],
    /// The index of the first of these fields in [`Shape::fields`].
    first: usize,
    /// The number of groups around them.
    depth: usize,
}

/// A member of a JSON object.
#[derive(Debug, Clone, Copy)]
pub enum Entry<'s> {
    /// A field, and its index in [`Shape::fields`].
    Field(usize, &'s Field),
    /// A group, and what is in it.
    Group(Level<'s>),
}

impl Shape {
    /// Returns the members of the JSON of these objects.
    pub fn level(&self) -> Level<'_> {
        Level { fields: self.named_fields(), first: 0, depth: 0 }
    }
}

impl<'s> Level<'s> {
    /// Returns the members in the order of the mapping, each with its name.
    pub fn entries(self) -> impl Iterator<Item = (&'s str, Entry<'s>)> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let (name, entry) = self.entry_at(next)?;
            next += match entry {
                Entry::Field(..) => 1,
                Entry::Group(inner) => inner.fields.len(),
            };
            Some((name, entry))
        })
    }

    /// Returns the member of this name.
    pub fn find(self, name: &str) -> Option<Entry<'s>> {
        // Most fields are in no group.
        let is_named = |field: &Field| {
            let own = &field.name;
            if field.is_grouped() { field.member_at(self.depth) == name } else { own == name }
        };
        let index = self.fields.iter().position(is_named)?;
        self.entry_at(index).map(|(_, entry)| entry)
    }

    /// Returns whether these are the members of an object, not of a group.
    pub fn is_object(self) -> bool {
        self.depth == 0
    }

    /// Returns the field that these names lead to, through groups. The names after it remain.
    pub fn follow<N: AsRef<str>>(self, names: &mut impl Iterator<Item = N>) -> Option<&'s Field> {
        match self.find(names.next()?.as_ref())? {
            Entry::Field(_, field) => Some(field),
            Entry::Group(inner) => inner.follow(names),
        }
    }

    /// Returns the indexes of the fields in [`Shape::fields`], with those in groups.
    pub fn places(self) -> Range<usize> {
        self.first..self.first + self.fields.len()
    }

    /// Returns whether a value that is written in place of the group means no value.
    pub fn is_absent(self, json: &Json) -> bool {
        contains_value(self.absent(), json)
    }

    /// Returns the values that mean no value in place of the group.
    pub(super) fn absent(self) -> &'s [ListedValue] {
        let depth = self.depth.checked_sub(1);
        let group = depth.and_then(|depth| self.fields.first()?.groups.get(depth));
        group.map_or(&[][..], |group| &*group.absent)
    }

    /// Returns whether a sender must give a field of the level, or of a group in it.
    pub(super) fn has_required(self) -> bool {
        self.fields.iter().any(Field::must_be_given)
    }

    /// Returns the name of the member that the field at this index belongs to, and the member, which begins there.
    fn entry_at(self, index: usize) -> Option<(&'s str, Entry<'s>)> {
        let rest = self.fields.get(index..)?;
        let field = rest.first()?;
        let name = field.member_at(self.depth);
        let first = self.first + index;
        if field.groups.len() <= self.depth {
            return Some((name, Entry::Field(first, field)));
        }
        let is_inside =
            |field: &&Field| field.groups.len() > self.depth && field.member_at(self.depth) == name;
        let count = rest.iter().take_while(is_inside).count();
        let fields = rest.get(..count)?;
        Some((name, Entry::Group(Level { fields, first, depth: self.depth + 1 })))
    }
}

impl Field {
    /// Creates a field outside groups.
    pub fn new(name: impl Into<String>, kind: FieldKind) -> Self {
        Self { name: name.into(), groups: Box::default(), is_nameless: false, kind }
    }

    /// Puts the field, with the groups that it is in, into a group.
    #[must_use]
    pub fn in_group(self, group: &str) -> Self {
        self.in_group_with_absent(group, &Arc::<[ListedValue]>::default())
    }

    /// As [`Self::in_group`], with the values that mean no value in place of the group.
    #[must_use]
    pub(super) fn in_group_with_absent(self, group: &str, absent: &Arc<[ListedValue]>) -> Self {
        // The compiler limits the length of a name.
        let to_end = |end: usize| u16::try_from(end).unwrap_or(u16::MAX);
        let outer = FieldGroup { end: to_end(group.len()), absent: Arc::clone(absent) };
        let shift = |inner: &FieldGroup| FieldGroup {
            end: to_end(usize::from(inner.end) + group.len() + 1),
            absent: Arc::clone(&inner.absent),
        };
        let groups = std::iter::once(outer).chain(self.groups.iter().map(shift)).collect();
        Self { name: format!("{group}.{}", self.name), groups, ..self }
    }

    /// Returns whether the field is in a group.
    pub fn is_grouped(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Returns the names of the members that lead from the object to the value: those of the groups, then the field's own. A
    /// name or value of a member of a map has none.
    pub fn path(&self) -> impl DoubleEndedIterator<Item = &str> {
        let count = if self.is_nameless { 0 } else { self.groups.len() + 1 };
        (0..count).map(move |depth| self.member_at(depth))
    }

    /// Returns the name of the member at this depth: of a group, or of the field itself in the innermost one.
    fn member_at(&self, depth: usize) -> &str {
        let end_at = |depth: usize| self.groups.get(depth).map(|group| usize::from(group.end));
        let begin = depth.checked_sub(1).and_then(end_at).map_or(0, |end| end + 1);
        self.name.get(begin..end_at(depth).unwrap_or(self.name.len())).unwrap_or_default()
    }

    /// Returns the JSON Pointer of the field of the object at this JSON Pointer.
    pub fn pointer_in(&self, object: &str) -> String {
        let mut pointer = object.to_owned();
        self.path().for_each(|name| push_pointer(&mut pointer, name));
        pointer
    }

    /// Returns the value of the field in the JSON of its object.
    pub fn value_in<'j>(&self, object: &'j Json) -> Option<&'j Json> {
        self.path().try_fold(object, |json, name| json.member(name))
    }

    /// As [`Self::value_in`], to change it.
    pub fn value_mut<'j>(&self, object: &'j mut Json) -> Option<&'j mut Json> {
        self.path().try_fold(object, |json, name| {
            let Json::Object(members) = json else { return None };
            members.iter_mut().find(|(known, _)| known == name).map(|(_, value)| value)
        })
    }

    /// Sets or removes the value of the field in the JSON of its object. A group that gets its first value is created, and one
    /// that loses its last is removed.
    pub fn set_value(&self, object: &mut Json, value: Option<Json>) {
        let names: Vec<&str> = self.path().collect();
        set_member(object, &names, value);
    }
}

/// Sets or removes the member at a path.
fn set_member(object: &mut Json, path: &[&str], value: Option<Json>) {
    let Json::Object(members) = object else { return };
    let Some((name, inner)) = path.split_first() else { return };
    let Some(at) = members.iter().position(|(known, _)| known == name) else {
        if let Some(value) = value {
            let nest = |json, name: &&str| Json::Object(vec![((*name).to_owned(), json)]);
            members.push(((*name).to_owned(), inner.iter().rev().fold(value, nest)));
        }
        return;
    };
    let Some((_, member)) = members.get_mut(at) else { return };
    match (inner, value) {
        ([], Some(value)) => *member = value,
        ([], None) => {
            members.remove(at);
        }
        (inner, value) => {
            if value.is_some() && !matches!(member, Json::Object(_)) {
                *member = Json::Object(Vec::new());
            }
            set_member(member, inner, value);
            if matches!(member, Json::Object(left) if left.is_empty()) {
                members.remove(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_base::json;

    fn shape() -> Shape {
        let id = |name: &str| Field::new(name, FieldKind::Id);
        let fields = vec![
            id("a.b"),
            id("low").in_group("limits"),
            id("x.y").in_group("inner").in_group("limits"),
            id("z").in_group("inner").in_group("limits"),
            id("last"),
        ];
        Shape::new("N", fields)
    }

    fn describe(level: Level<'_>) -> String {
        let describe = |(name, entry): (&str, Entry<'_>)| match entry {
            Entry::Field(place, field) => format!("{name}={place}:{}", field.name),
            Entry::Group(inner) => format!("{name}{:?}({})", inner.places(), describe(inner)),
        };
        level.entries().map(describe).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn fields_of_a_list_are_a_tree() {
        let shape = shape();
        assert_eq!(
            describe(shape.level()),
            "a.b=0:a.b limits1..4(low=1:limits.low inner2..4(x.y=2:limits.inner.x.y z=3:limits.inner.z)) last=4:last"
        );
        let follow = |names: &[&str]| {
            let field = shape.level().follow(&mut names.iter());
            field.map(|field| field.name.as_str())
        };
        assert_eq!(follow(&["limits", "inner", "x.y"]), Some("limits.inner.x.y"));
        assert_eq!(follow(&["a.b"]), Some("a.b"));
        // The name of a field in a group is no name of a member.
        assert_eq!(follow(&["limits.low"]), None);
        assert_eq!(follow(&["limits", "inner"]), None);
        assert_eq!(shape.fields[2].path().collect::<Vec<_>>(), ["limits", "inner", "x.y"]);
        assert_eq!(shape.fields[2].pointer_in("/data/0"), "/data/0/limits/inner/x.y");
    }

    #[test]
    fn values_are_set_in_groups_that_come_and_go() {
        let shape = shape();
        let mut object = json::parse(br#"{"last":1}"#, 5).unwrap();
        let text = |text: &str| Some(Json::String(text.to_owned()));
        shape.fields[2].set_value(&mut object, text("xy"));
        shape.fields[1].set_value(&mut object, text("l"));
        assert_eq!(object.to_string(), r#"{"last":1,"limits":{"inner":{"x.y":"xy"},"low":"l"}}"#);
        assert_eq!(shape.fields[2].value_in(&object), text("xy").as_ref());
        *shape.fields[2].value_mut(&mut object).unwrap() = Json::Null;
        shape.fields[2].set_value(&mut object, None);
        assert_eq!(object.to_string(), r#"{"last":1,"limits":{"low":"l"}}"#);
        shape.fields[1].set_value(&mut object, None);
        shape.fields[3].set_value(&mut object, None);
        assert_eq!(object.to_string(), r#"{"last":1}"#);
    }
}
