//! Reads what senders may write: `accept`, `timeZone`, `absent` and `default`.
use super::compiler::{Checked, Compiler, ErrorReported};
use super::definition::Definition;
use super::position::Position;
use crate::ingest::check_value;
use crate::mapping::reading::{PatternError, check_pattern};
use crate::mapping::yaml::{Content, Key, Location, Node, list_nodes};
use crate::mapping::{AcceptedForm, Kind, ListedValue, Property, Reading};
use crate::source_text::node_to_json;
use penstock_base::json::Json;
use penstock_base::nearest::find_nearest;
use penstock_base::time_zone::Zone;

impl Compiler {
    /// Reads `timeZone` and `absent` of the root, which the fields and groups inherit.
    pub(super) fn read_root_reading(&mut self, root: &Definition<'_>) {
        // Errors are reported, and the fields are compiled without the value.
        self.inherited.time_zone = self.read_time_zone(root).unwrap_or_default();
        self.inherited.absent = self.read_absent(root).ok().flatten().unwrap_or_default();
    }

    /// Adds what senders may write to the property of a field. `values` is the definition of its values, which for an array
    /// can be that of its elements.
    pub(super) fn add_reading(
        &mut self,
        field: &Definition<'_>,
        values: &Definition<'_>,
        mut property: Property,
    ) -> Checked<Property> {
        let reading = self.read_reading(field, values, property.value.kind())?;
        property.reading = (reading != Reading::default()).then(|| Box::new(reading));
        if let Some((_, node)) = field.get("default") {
            let default = node_to_json(node);
            if let Err(why) = check_value(&property, default.clone()) {
                let message = format!("`default` is no value of the field: {why}");
                return Err(self.report_error(node.at, field.place, message));
            }
            property.reading.get_or_insert_default().default = Some(default);
        }
        Ok(property)
    }

    /// Reads what senders may write to a field with values of this kind, all but its `default`.
    pub(super) fn read_reading(
        &mut self,
        field: &Definition<'_>,
        values: &Definition<'_>,
        kind: &Kind,
    ) -> Checked<Reading> {
        let accept = self.read_accept(values, kind);
        // A key that the type does not take is reported with the other keys.
        let has_zone = kind.order.is_time();
        let time_zone = if has_zone { self.read_time_zone(values) } else { Ok(None) };
        let absent = self.read_absent(field);
        let mut reading = Reading { accept: accept?, time_zone: time_zone?, ..Reading::default() };
        if has_zone && reading.time_zone.is_none() {
            reading.time_zone.clone_from(&self.inherited.time_zone);
        }
        match absent? {
            Some(absent) => reading.absent = absent,
            None if kind.inherits_absent => reading.absent.clone_from(&self.inherited.absent),
            None => {}
        }
        Ok(reading)
    }

    fn read_time_zone(&mut self, definition: &Definition<'_>) -> Checked<Option<Zone>> {
        let Some((at, name)) = self.read_text(definition, "timeZone")? else { return Ok(None) };
        name.parse().map(Some).map_err(|()| {
            let near = find_nearest(name, Zone::all_names());
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let message = format!(
                "the `timeZone` {name:?} is not in the IANA database (`Europe/Berlin`, `UTC`){near}"
            );
            self.report_error(at, definition.place, message)
        })
    }

    /// Reads `absent`: a value, or a list of them.
    pub(super) fn read_absent(
        &mut self,
        definition: &Definition<'_>,
    ) -> Checked<Option<Vec<ListedValue>>> {
        let Some((_, node)) = definition.get("absent") else { return Ok(None) };
        self.read_listed(node, "absent", definition.place).map(Some)
    }

    /// Reads a list of strings, numbers and booleans, or only one.
    fn read_listed(
        &mut self,
        node: &Node,
        name: &str,
        place: &Position<'_>,
    ) -> Checked<Vec<ListedValue>> {
        let nodes = list_nodes(node);
        let mut listed: Vec<ListedValue> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let Some(value) = ListedValue::new(node_to_json(node)) else {
                let why = match node.content {
                    Content::Null => "`null` always means no value; leave it out".to_owned(),
                    _ => format!("write strings, numbers and booleans, not {}", node.kind()),
                };
                return Err(self.report_error(node.at, place, format!("`{name}`: {why}")));
            };
            if !listed.iter().any(|other| other.is_same(&value)) {
                listed.push(value);
            }
        }
        Ok(listed)
    }

    fn read_accept(
        &mut self,
        definition: &Definition<'_>,
        kind: &Kind,
    ) -> Checked<Vec<AcceptedForm>> {
        let place = definition.place;
        // A key that the type does not take is reported with the other keys.
        let node = definition.get("accept").filter(|_| !kind.accept.is_empty());
        let Some((_, node)) = node else { return Ok(Vec::new()) };
        let nodes = list_nodes(node);
        let mut forms: Vec<AcceptedForm> = Vec::with_capacity(nodes.len());
        for node in nodes {
            let form = self.read_form(node, kind, place)?;
            if let Some(other) = forms.iter().find(|other| other.contradicts(&form)) {
                let message = format!(
                    "`accept` has `{other}` and `{form}`, which give the same value different meanings; leave one of them out"
                );
                return Err(self.report_error(node.at, place, message));
            }
            forms.push(form);
        }
        for (form, node) in forms.iter().zip(nodes) {
            if let AcceptedForm::Pattern(pattern) = form
                && let Err(error) = check_pattern(pattern, kind, &forms)
            {
                return Err(self.report_pattern(pattern, error, node.at, place));
            }
        }
        Ok(forms)
    }

    fn read_form(
        &mut self,
        node: &Node,
        kind: &Kind,
        place: &Position<'_>,
    ) -> Checked<AcceptedForm> {
        let (form, shown) = match &node.content {
            Content::Scalar { text, .. } => {
                let named = AcceptedForm::named().find(|form| form.to_string() == *text);
                let is_pattern = text.contains('%');
                let pattern = || is_pattern.then(|| AcceptedForm::Pattern(text.clone()));
                (named.or_else(pattern), format!("`{text}`"))
            }
            Content::Mapping(entries) => {
                let form = if entries.iter().any(|(key, _)| matches!(&*key.name, "true" | "false"))
                {
                    self.read_booleans(entries, node.at, place)?
                } else {
                    self.read_decimal(entries, node.at, place)?
                };
                let shown = format!("`{form}`");
                (Some(form), shown)
            }
            Content::Null | Content::Sequence(_) => (None, node.kind().to_owned()),
        };
        if let Some(form) = form.filter(|form| kind.accept.contains(&form.name())) {
            return Ok(form);
        }
        let forms: Vec<&str> = kind.accept.iter().map(|name| name.syntax()).collect();
        let message = format!(
            "`accept` is {shown}, which a field of the type `{}` does not take; it takes {}",
            kind.name,
            forms.join(", ")
        );
        Err(self.report_error(node.at, place, message))
    }

    /// Reads `{true: [...], false: [...]}`.
    fn read_booleans(
        &mut self,
        entries: &[(Key, Node)],
        at: Location,
        place: &Position<'_>,
    ) -> Checked<AcceptedForm> {
        let (mut yes, mut no) = (Vec::new(), Vec::new());
        for (key, node) in entries {
            let listed = self.read_listed(node, &format!("accept.{}", key.name), place)?;
            match key.name.as_str() {
                "true" => yes = listed,
                "false" => no = listed,
                _ => return Err(self.report_unknown_key(key, "`true` and `false`", place)),
            }
        }
        let message = if yes.iter().chain(&no).any(|one| matches!(one.json(), Json::Bool(_))) {
            "the booleans `true` and `false` are always accepted; leave them out of `accept`"
                .to_owned()
        } else if let Some(both) = yes.iter().find(|yes| no.iter().any(|no| no.is_same(yes))) {
            format!("`accept` has {} for true and for false; leave out one of them", both.json())
        } else {
            return Ok(AcceptedForm::Booleans { yes, no });
        };
        Err(self.report_error(at, place, message))
    }

    /// Reads `{decimal: ",", group: "."}`.
    fn read_decimal(
        &mut self,
        entries: &[(Key, Node)],
        at: Location,
        place: &Position<'_>,
    ) -> Checked<AcceptedForm> {
        let (mut decimal, mut group) = (None, None);
        for (key, node) in entries {
            let separator = self.read_separator(key, node, place);
            match key.name.as_str() {
                "decimal" => decimal = Some(separator?),
                "group" => group = Some(separator?),
                _ => return Err(self.report_unknown_key(key, "`decimal` and `group`", place)),
            }
        }
        let message = match decimal {
            None => {
                "`accept` needs the separator of the fraction too, as `decimal: \",\"`".to_owned()
            }
            Some(decimal) if group == Some(decimal) => {
                format!("`decimal` and `group` are both {decimal:?}; a number could not be read")
            }
            Some(decimal) => return Ok(AcceptedForm::Decimal { decimal, group }),
        };
        Err(self.report_error(at, place, message))
    }

    fn read_separator(&mut self, key: &Key, node: &Node, place: &Position<'_>) -> Checked<char> {
        if let Content::Scalar { text, .. } = &node.content {
            let mut characters = text.chars();
            if let (Some(separator), None) = (characters.next(), characters.next())
                && !separator.is_alphanumeric()
                && !matches!(separator, '+' | '-')
            {
                return Ok(separator);
            }
        }
        let message = format!(
            "`{}` is one character that separates digits, such as \",\", in quotes",
            key.name
        );
        Err(self.report_error(node.at, place, message))
    }

    fn report_unknown_key(
        &mut self,
        key: &Key,
        known: &str,
        place: &Position<'_>,
    ) -> ErrorReported {
        let message = format!("`accept` has the key `{}`; it takes {known} here", key.name);
        self.report_error(key.at, place, message)
    }

    fn report_pattern(
        &mut self,
        pattern: &str,
        error: PatternError,
        at: Location,
        place: &Position<'_>,
    ) -> ErrorReported {
        let why = match error {
            PatternError::Unreadable(why) => {
                format!("cannot be used: {why}; write one such as `\"%d.%m.%Y %H:%M:%S\"`")
            }
            PatternError::Unix => {
                "reads the time since 1970; write `unix`, `unix-ms`, `unix-us` or `unix-ns`"
                    .to_owned()
            }
            PatternError::NoTime => {
                "has no time of day; add it, such as `%H:%M`, or write `type: date`".to_owned()
            }
            PatternError::OtherTime => {
                "does not read the time that it writes; add `%p` to `%I`, or write `%H`".to_owned()
            }
            PatternError::Contradicts(form) => format!(
                "gives texts another meaning than {form}, which the field accepts too; leave one of them out"
            ),
        };
        self.report_error(at, place, format!("the pattern {pattern:?} {why}"))
    }
}
