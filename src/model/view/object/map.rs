//! Writes maps: objects whose member names are data.
use super::{NestedForm, NestingPath, ObjectWriter, PointerToken};
use crate::list::Lists;
use crate::mapping::Property;
use crate::view::{FieldValues, read_members, shows_member};
use oxrdf::{NamedNode, NamedNodeRef};
use penstock_base::error::GatewayError;
use penstock_store::SubjectQuads;

impl<'w> ObjectWriter<'w> {
    /// Writes the members of a map in the order of their names. A map without members is left out.
    pub(super) fn write_map(
        &mut self,
        name: &str,
        property: &'w Property,
        uris: &[NamedNodeRef<'_>],
        path: &NestingPath<'_>,
        first: &mut bool,
    ) -> Result<(), GatewayError> {
        let Some((shape, map)) = property.map() else { return Ok(()) };
        let members = read_members(self.read, shape, uris, &mut |what, uri| {
            self.warn_left_out(what, uri, path);
        })?;
        let (length, was_first) = (self.out.len(), *first);
        self.write_name(name, first)?;
        self.out.push(b'{');
        let mut is_first = true;
        for (member, uri) in members {
            self.pointer.push(PointerToken::Member(member.as_str().into()));
            if map.value.is_some() {
                self.write_member_value(&member, property, uri, path, &mut is_first)?;
            } else {
                self.write_name(&member, &mut is_first)?;
                self.report_value(path, property, uri.into())?;
                self.write_nested(shape, &uri.into_owned(), path)?;
            }
            self.pointer.pop();
        }
        if is_first {
            self.out.truncate(length);
            *first = was_first;
        } else {
            self.out.push(b'}');
        }
        Ok(())
    }

    /// Writes a member that is a value. One without a value is left out.
    fn write_member_value(
        &mut self,
        member: &str,
        property: &'w Property,
        uri: NamedNodeRef<'_>,
        path: &NestingPath<'_>,
        first: &mut bool,
    ) -> Result<(), GatewayError> {
        let Some((shape, map)) = property.map() else { return Ok(()) };
        let Some((place, value)) = map.value else { return Ok(()) };
        let uri = NamedNode::from(uri);
        if path.contains_uri(&uri) {
            self.warn_left_out("a member of the map inside itself", uri.as_ref().into(), path);
            return Ok(());
        }
        // A value has no form with only its URI, so it is repeated until the object is too large.
        if self.budget.choose_form(shape, &uri, self.out.len()) == NestedForm::None {
            return Err(self.too_large_error(path));
        }
        let mut about = SubjectQuads::default();
        self.read.read_subject(uri.as_ref().into(), &mut about)?;
        let lists = Lists::of_object(self.read, shape, about.iter())?;
        let owned = FieldValues::new(shape, about.iter()).with_lists(&lists);
        if owned.values_at(place).is_empty() {
            self.warn_left_out("a member of the map without a value", uri.as_ref().into(), path);
            return Ok(());
        }
        let inner = NestingPath { uri: &uri, above: Some(path) };
        // A member that is left out is not reported either.
        let is_reported = self.shown.is_some() && shows_member(self.read, shape, &inner, &owned)?;
        let unused = if is_reported { None } else { self.shown.take() };
        self.report_value(path, property, uri.as_ref().into())?;
        let containing = self.begin_reported(shape, &uri, &about)?;
        let (length, was_first) = (self.out.len(), *first);
        self.write_field((place, member), value, &owned, &inner, first)?;
        self.warn_of_unowned(shape, place, value, &owned, &inner);
        if value.is_array && self.out.ends_with(b":[]") {
            self.out.truncate(length);
            *first = was_first;
        }
        self.end_reported(containing);
        if unused.is_some() {
            self.shown = unused;
        }
        Ok(())
    }
}
