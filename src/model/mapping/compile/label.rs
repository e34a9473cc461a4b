//! Checks the `label` of the root.
use super::compiler::Compiler;
use super::definition::{Definition, format_list};
use crate::mapping::Field;
use penstock_base::nearest::find_nearest;

/// The maximum number of fields that an error lists.
const MAX_LISTED_FIELDS: usize = 20;

impl Compiler {
    /// Reads `label`, which names one of the root's `fields`. Only a single string is a label: of several values none
    /// is the name, and numbers, dates and references are no names.
    pub(super) fn read_label(&mut self, root: &Definition<'_>, fields: &[Field]) {
        let Ok(Some((at, name))) = self.read_text(root, "label") else { return };
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            let names = fields.iter().filter(|field| field.is_single_string());
            let names: Vec<&str> = names.map(|field| field.name.as_str()).collect();
            let remedy = match find_nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if names.is_empty() => {
                    "leave `label` out, because the root has no field of `type: string`".to_owned()
                }
                None => {
                    let listed = names.get(..MAX_LISTED_FIELDS).unwrap_or(&names);
                    let more = if listed.len() < names.len() { " and others" } else { "" };
                    format!("it can be {}{more}", format_list(listed))
                }
            };
            let message =
                format!("`label` names the field `{name}`, which the root does not have; {remedy}");
            self.report_error(at, root.place, message);
            return;
        };
        if field.is_single_string() {
            self.label = Some(name.to_owned());
        } else {
            let message = format!(
                "`label` names the field `{name}`, which is not a single text; name a field of `type: string` that is \
                 not an array, or leave `label` out"
            );
            self.report_error(at, root.place, message);
        }
    }
}
