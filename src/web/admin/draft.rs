//! The content of the editor's form.
use super::form::Form;
use super::schedule::ShownSchedule;
use chrono::Utc;
use penstock_base::error::Finding;
use penstock_base::principal::Principal;
use penstock_model::resource::{BusinessObject, Definition, NewDefinition};
use penstock_resources::business_object::{
    Condition, PushTarget, Review, Validation, ValidationMode,
};
use penstock_resources::namespace::{DefinedNamespace, Generator};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A field of the form: its name in the API, its label, and how its value is shown for comparison.
type Field = (&'static str, &'static str, fn(&Draft) -> String);

/// The fields of the form.
pub(super) const FIELDS: [Field; 16] = [
    ("name", "Name", |draft| draft.definition.name.clone()),
    ("description", "Description", |draft| draft.definition.description.clone()),
    ("enabled", "Enabled", |draft| show_tick(draft.definition.enabled)),
    ("config", "Mapping", |draft| draft.definition.config.clone()),
    ("namespaces", "Namespaces", |draft| {
        let show = |one: &DefinedNamespace| {
            let generator = one.generator.map(Generator::name).unwrap_or_default();
            format!("{} {} {generator}", one.name, one.uri_base.as_deref().unwrap_or_default())
        };
        draft.definition.namespaces.iter().map(show).collect::<Vec<_>>().join("\n")
    }),
    ("conditions", "Conditions", |draft| {
        let show = |one: &Condition| format!("{} = {}", one.predicate, one.describe_value());
        draft.definition.conditions.iter().map(show).collect::<Vec<_>>().join("\n")
    }),
    ("pushTargets", "Targets", |draft| {
        let names = draft.definition.push_targets.iter().map(|target| target.bucket_name.as_str());
        names.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
    }),
    ("schedule", "Schedule", |draft| draft.definition.schedule.clone().unwrap_or_default()),
    ("timezone", "Time zone", |draft| draft.definition.timezone.clone().unwrap_or_default()),
    ("exportOnChange", "Export on change", |draft| show_tick(draft.definition.export_on_change)),
    ("debounce", "Wait for further changes", |draft| {
        draft.definition.debounce.clone().unwrap_or_default()
    }),
    ("retention", "Keep for", |draft| draft.definition.retention.clone().unwrap_or_default()),
    ("shapes", "Shapes", |draft| draft.shapes().join(", ")),
    ("validation", "Validation", |draft| draft.validation_mode().to_owned()),
    ("review", "Review", |draft| draft.definition.review().name().to_owned()),
    ("approvers", "Approvers", |draft| draft.approvers.clone()),
];

/// The content of the editor's form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Draft {
    /// The definition. What could not be read has its default value.
    pub(super) definition: Definition,
    /// What could not be read, in the order of the members.
    pub(super) findings: Vec<Finding>,
    /// Who approves changes, one a line, as it was entered.
    pub(super) approvers: String,
    /// The id and version of the edited Business Object.
    pub(super) id: String,
    pub(super) version: Option<u64>,
    pub(super) sample: Arc<str>,
}

impl Draft {
    /// Creates the draft of an existing Business Object.
    pub(super) fn from_business_object(object: &BusinessObject) -> Self {
        let approvers = object.definition.approvers().iter().map(ToString::to_string);
        Self {
            approvers: approvers.collect::<Vec<_>>().join("\n"),
            definition: object.definition.clone(),
            id: object.id.clone(),
            version: Some(object.version),
            ..Self::default()
        }
    }

    /// Reads a submitted form.
    pub(super) fn from_form(form: &Form) -> Self {
        let word = |name: &str| form.trimmed(name).unwrap_or_default();
        let mut findings = Vec::new();
        let namespaces = read_rows(form, "namespace", ["name", "uriBase", "generator"]);
        let namespaces =
            namespaces.into_iter().enumerate().map(|(row, (_, [name, base, generator]))| {
                let place = format!("/namespaces/{row}/generator");
                DefinedNamespace {
                    name,
                    uri_base: (!base.is_empty()).then_some(base),
                    generator: parse_choice(&generator, place, Generator::parse, &mut findings),
                }
            });
        let namespaces = namespaces.collect();
        let parts = ["predicate", "value", "datatype", "language"];
        let conditions = read_rows(form, "condition", parts).into_iter();
        let others = form.text("pushTargets");
        let others = others.split([',', ' ', '\n', '\t']).filter(|name| !name.is_empty());
        let targets: BTreeSet<&str> = form.ticked_below("target.").chain(others).collect();
        let (mode, place) = (word("validation"), "/validation/mode");
        let mode = parse_choice(&mode, place, ValidationMode::parse, &mut findings);
        let shapes = form.ticked_below("shapes.").map(str::to_owned);
        let review = parse_choice(&word("review"), "/review", Review::parse, &mut findings);
        let mut approvers = Vec::new();
        for (index, line) in form.lines("approvers").iter().enumerate() {
            match Principal::parse(line) {
                Ok(approver) => approvers.push(approver),
                Err(why) => {
                    findings.push(Finding::at_pointer(format!("/approvers/{index}"), why));
                }
            }
        }
        let definition = Definition {
            name: word("name"),
            description: form.text("description").trim().to_owned(),
            enabled: form.is_ticked("enabled"),
            config: form.text("config"),
            namespaces,
            conditions: conditions
                .map(|(row, [predicate, value, datatype, language])| Condition {
                    predicate,
                    value: read_stored_value(form, row).unwrap_or(value),
                    datatype: (!datatype.is_empty()).then_some(datatype),
                    language: (!language.is_empty()).then_some(language),
                })
                .collect(),
            push_targets: targets
                .into_iter()
                .map(|name| PushTarget { bucket_name: name.to_owned() })
                .collect(),
            schedule: form.trimmed("schedule"),
            timezone: form.trimmed("timezone"),
            export_on_change: form.is_ticked("exportOnChange"),
            debounce: form.trimmed("debounce"),
            retention: form.trimmed("retention"),
            validation: mode.map(|mode| Validation { shapes: shapes.collect(), mode }),
            // A form with a review has approvers too.
            approvers: review.is_some().then_some(approvers),
            review,
        };
        Self {
            definition,
            findings,
            approvers: form.text("approvers"),
            id: word("id"),
            version: form.version(),
            sample: form.text("sample").into(),
        }
    }

    /// Returns the definition in the form.
    pub(super) fn to_definition(&self) -> NewDefinition {
        let Self { definition, findings, .. } = self.clone();
        NewDefinition { definition, findings }
    }

    /// Describes the schedule, with its next runs.
    pub(super) fn describe_schedule(&self) -> ShownSchedule {
        let Definition { schedule, timezone, .. } = &self.definition;
        ShownSchedule::new(schedule.as_deref(), timezone.as_deref(), Utc::now())
    }

    /// Returns the rows of conditions in the form: the existing ones, and two empty ones.
    pub(super) fn condition_rows(&self) -> Vec<(usize, Condition)> {
        with_empty_rows(&self.definition.conditions)
    }

    /// Returns the rows of namespaces in the form: the existing ones, and two empty ones.
    pub(super) fn namespace_rows(&self) -> Vec<(usize, DefinedNamespace)> {
        with_empty_rows(&self.definition.namespaces)
    }

    /// Whether it has this target.
    pub(super) fn has_target(&self, name: &str) -> bool {
        self.definition.push_targets.iter().any(|target| target.bucket_name == name)
    }

    /// Returns the names of the shapes graphs that validate its objects.
    pub(super) fn shapes(&self) -> &[String] {
        self.definition.validation.as_ref().map_or(&[], |validation| validation.shapes.as_slice())
    }

    /// Returns the mode of the validation.
    pub(super) fn validation_mode(&self) -> &'static str {
        let validation = self.definition.validation.as_ref();
        validation.map(|validation| validation.mode).unwrap_or_default().name()
    }
}

fn show_tick(is_ticked: bool) -> String {
    if is_ticked { "yes" } else { "no" }.to_owned()
}

/// Returns these rows with their numbers, and two empty ones.
fn with_empty_rows<T: Clone + Default>(rows: &[T]) -> Vec<(usize, T)> {
    let empty = std::iter::repeat_n(T::default(), 2);
    rows.iter().cloned().chain(empty).enumerate().collect()
}

/// Parses a choice; `None` if it is empty. Reports one that does not exist at `place`.
fn parse_choice<T>(
    name: &str,
    place: impl Into<String>,
    parse: fn(&str) -> Result<T, String>,
    findings: &mut Vec<Finding>,
) -> Option<T> {
    if name.is_empty() {
        return None;
    }
    parse(name).map_err(|why| findings.push(Finding::at_pointer(place, why))).ok()
}

/// Returns the value of a condition for a hidden field, if an input does not send it as it is: with white space around it, or
/// with line breaks. It is JSON, because browsers change line breaks.
pub(super) fn write_stored_value(value: &str) -> Option<String> {
    let is_changed = value.trim() != value || value.contains(['\n', '\r']);
    if is_changed { serde_json::to_string(value).ok() } else { None }
}

/// Returns the value in the hidden field of a condition, if its input is unchanged. White space that somebody types around a
/// value does not count, but that of a value which others have defined does.
fn read_stored_value(form: &Form, row: usize) -> Option<String> {
    let sent = form.text(&format!("condition.{row}.stored"));
    let stored: String = serde_json::from_str(&sent).ok()?;
    let shown: String = stored.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    (form.text(&format!("condition.{row}.value")) == shown).then_some(stored)
}

/// Reads all rows of a form in their order, each with its number and these parts. Empty rows are ignored.
fn read_rows<const N: usize>(
    form: &Form,
    kind: &str,
    parts: [&str; N],
) -> Vec<(usize, [String; N])> {
    let prefix = format!("{kind}.");
    let rows: BTreeSet<usize> = form
        .ticked_below(&prefix)
        .filter_map(|rest| rest.split('.').next()?.parse().ok())
        .collect();
    rows.into_iter()
        .map(|row| {
            let read =
                |part: &str| form.trimmed(&format!("{kind}.{row}.{part}")).unwrap_or_default();
            (row, parts.map(read))
        })
        .filter(|(_, texts)| texts.iter().any(|text| !text.is_empty()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_base::error::Place;

    #[test]
    fn a_definition_survives_the_form() {
        let body = br#"{"name": "Pump", "description": "d", "enabled": false, "config":
            "type: object\npath: Pump:.\nfields:\n  n:\n    type: string\n    path: <urn:n>\n",
            "namespaces": [{"name": "Pump", "uriBase": "urn:pump:"}, {"name": "B", "generator": "counter"}],
            "conditions": [{"predicate": "rdf:type", "value": "urn:v"},
                {"predicate": "urn:rank", "value": "1", "datatype": "xsd:integer"}],
            "pushTargets": [{"bucketName": "plant-exports"}], "schedule": "0 5 * * *",
            "timezone": "Europe/Vienna", "exportOnChange": true, "debounce": "2s", "retention": "P30D",
            "validation": {"shapes": ["pumps"], "mode": "warn"}, "review": "required",
            "approvers": ["user:ada", "group:shift 1"]}"#;
        let new = NewDefinition::from_json(body).unwrap();
        let fields = [
            ("name", "Pump"),
            ("description", " d "),
            (
                "config",
                "type: object\r\npath: Pump:.\r\nfields:\r\n  n:\r\n    type: string\r\n    path: <urn:n>\r\n",
            ),
            ("namespace.0.name", "Pump"),
            ("namespace.0.uriBase", "urn:pump:"),
            ("namespace.7.name", "B"),
            ("namespace.7.generator", "counter"),
            ("condition.0.predicate", "rdf:type"),
            ("condition.0.value", "urn:v"),
            ("condition.1.predicate", "urn:rank"),
            ("condition.1.value", "1"),
            ("condition.1.datatype", "xsd:integer"),
            ("condition.1.language", ""),
            ("target.plant-exports", "true"),
            ("schedule", "0 5 * * *"),
            ("timezone", "Europe/Vienna"),
            ("exportOnChange", "true"),
            ("debounce", "2s"),
            ("retention", "P30D"),
            ("shapes.pumps", "true"),
            ("validation", "warn"),
            ("review", "required"),
            ("approvers", "user:ada\r\n\r\ngroup:shift 1"),
        ];
        let form = Form::with_values(fields.map(|(name, value)| (name, Some(value.to_owned()))));
        let draft = Draft::from_form(&form);
        assert_eq!(draft.to_definition(), new);
        assert!(new.compile(&|_| Ok(())).is_ok());
        assert_eq!(draft.condition_rows().len(), 4);
        assert_eq!(draft.namespace_rows().len(), 4);
    }

    #[test]
    fn a_form_has_as_many_rows_as_the_definition() {
        let mut fields = Vec::new();
        for row in 0..250 {
            fields.push((format!("namespace.{row}.name"), format!("N{row}")));
            fields.push((format!("condition.{row}.predicate"), format!("urn:p:{row}")));
            fields.push((format!("condition.{row}.value"), format!("urn:v:{row}")));
        }
        let form =
            fields.iter().fold(Form::default(), |form, (name, value)| form.with_value(name, value));
        let definition = Draft::from_form(&form).definition;
        let namespaces: Vec<_> = definition.namespaces.iter().map(|one| one.name.clone()).collect();
        assert_eq!(namespaces, (0..250).map(|row| format!("N{row}")).collect::<Vec<_>>());
        let values: Vec<_> = definition.conditions.iter().map(|one| one.value.clone()).collect();
        assert_eq!(values, (0..250).map(|row| format!("urn:v:{row}")).collect::<Vec<_>>());
    }

    #[test]
    fn a_condition_keeps_the_white_space_of_its_stored_value() {
        let read = |sent: &str, stored: &str| {
            let form = Form::with_values([
                ("condition.0.predicate", Some("urn:p".to_owned())),
                ("condition.0.value", Some(sent.to_owned())),
                ("condition.0.stored", write_stored_value(stored)),
            ]);
            Draft::from_form(&form).definition.conditions.swap_remove(0).value
        };
        assert_eq!(write_stored_value("PUMP"), None);
        assert_eq!(read("PUMP  ", "PUMP  "), "PUMP  ");
        // Inputs have no line breaks.
        assert_eq!(read("ab", "a\r\nb"), "a\r\nb");
        assert_eq!(read("PUMP", "PUMP\r"), "PUMP\r");
        assert_eq!(read("PUMP", "PUMP  "), "PUMP");
        assert_eq!(read(" FAN ", "PUMP  "), "FAN");
        assert_eq!(read(" FAN ", "FAN"), "FAN");
        // A row that somebody empties is no condition.
        let form = Form::with_values([("condition.0.stored", write_stored_value("PUMP  "))]);
        assert!(Draft::from_form(&form).definition.conditions.is_empty());
    }

    #[test]
    fn what_a_form_cannot_say_is_reported_in_the_order_of_the_members() {
        let fields = [
            ("namespace.0.name", "Pump"),
            ("namespace.0.generator", "x"),
            ("validation", "x"),
            ("review", "off"),
            ("approvers", "ada"),
        ];
        let form = Form::with_values(fields.map(|(name, value)| (name, Some(value.to_owned()))));
        let draft = Draft::from_form(&form);
        let places: Vec<_> = draft.findings.iter().map(|finding| finding.place.clone()).collect();
        let pointers = ["/namespaces/0/generator", "/validation/mode", "/approvers/0"];
        assert_eq!(places, pointers.map(|place| Place::Pointer(place.to_owned())));
        assert_eq!(draft.approvers, "ada");
    }
}
