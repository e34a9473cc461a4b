//! Compiles groups: their fields become fields of the object around them.
use super::compiler::{Checked, Compiler, MAX_NAME_CHARS};
use super::position::Position;
use crate::mapping::yaml::{Content, Location, Node};
use crate::mapping::{Field, FieldKind, ListedValue};
use std::collections::HashSet;
use std::sync::Arc;

/// The `type` of a group.
pub(super) const GROUP: &str = "group";

/// Why arrays and maps have no groups as elements.
pub(super) const GROUP_AS_ELEMENT: &str =
    "a `group` cannot be an element, because it has no node of its own; write `type: object`";

/// Returns whether a definition is that of a group.
pub(super) fn is_group(node: &Node) -> bool {
    has_type(node, GROUP)
}

/// Returns whether a definition is of this type.
pub(super) fn has_type(node: &Node, name: &str) -> bool {
    let Content::Mapping(entries) = &node.content else { return false };
    entries.iter().any(|(key, value)| {
        key.name == "type" && matches!(&value.content, Content::Scalar { text, .. } if text == name)
    })
}

impl Compiler {
    /// Compiles the group of this name, and adds its fields to those of the object around it.
    pub(super) fn compile_group(
        &mut self,
        name: &str,
        node: &Node,
        place: &Position<'_>,
        fields: &mut Vec<(Location, Field)>,
    ) -> Checked<()> {
        let definition = self.read_definition(node, place)?;
        self.check_keys(&definition, &["type", "fields", "absent"]);
        let (absent, read) = match self.read_absent(&definition) {
            Ok(own) => (own.unwrap_or_else(|| self.inherited.absent.clone()), Ok(())),
            Err(reported) => (Vec::new(), Err(reported)),
        };
        let absent: Arc<[ListedValue]> = absent.into();
        let mut inner = Vec::new();
        let mut result = read.and(self.read_fields(&definition, &mut inner));
        let chars = name.chars().count();
        for (at, field) in inner {
            let inside = Position::Field(place, &field.name);
            if field.kind == FieldKind::Id {
                let message = "an `id` is the URI of the object around the group; define it there, or write `type: string` \
                               or `type: resource` with a `path`";
                result = Err(self.report_error(at, &inside, message));
            } else if chars + field.name.chars().count() >= MAX_NAME_CHARS {
                let message = format!(
                    "the name of a field and those of its groups, with dots between them, have up to {MAX_NAME_CHARS} \
                     characters"
                );
                result = Err(self.report_error(at, &inside, message));
            } else {
                fields.push((at, field.in_group_with_absent(name, &absent)));
            }
        }
        result
    }

    /// Checks the names of an object's fields: the one that is reserved, and those that are the same with their groups.
    pub(super) fn check_names(
        &mut self,
        fields: &[(Location, Field)],
        place: &Position<'_>,
    ) -> Checked<()> {
        let mut names = HashSet::with_capacity(fields.len());
        let mut result = Ok(());
        for (at, field) in fields {
            let is_named_uri = field.path().next() == Some("uri");
            let message = if is_named_uri && field.kind != FieldKind::Id {
                "the name `uri` is reserved for the object's own URI (type `id`); choose another one"
            } else if names.insert(field.name.as_str()) {
                continue;
            } else {
                "a field in a group has the same name with that of its group, and keys, filters and columns could not tell \
                 them apart; choose another one"
            };
            result = Err(self.report_error(*at, &Position::Field(place, &field.name), message));
        }
        result
    }
}
