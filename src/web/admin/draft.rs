//! The content of the editor's form, and its conversion from a definition and into one.
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

/// The fields that can have errors, by their names in the API.
pub(super) const FIELDS: &[&str] = &[
    "name",
    "description",
    "enabled",
    "config",
    "namespaces",
    "conditions",
    "pushTargets",
    "schedule",
    "timezone",
    "exportOnChange",
    "debounce",
    "retention",
    "validation",
    "review",
    "approvers",
];

/// The maximum number of rows that are read, of conditions and of namespaces.
const MAX_ROWS: usize = 100;

/// The content of the editor's form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) enabled: bool,
    pub(super) config: String,
    /// Name, URI base and generator of each.
    pub(super) namespaces: Vec<[String; 3]>,
    /// Predicate and value of each.
    pub(super) conditions: Vec<(String, String)>,
    pub(super) targets: BTreeSet<String>,
    pub(super) schedule: String,
    pub(super) timezone: String,
    pub(super) export_on_change: bool,
    pub(super) debounce: String,
    pub(super) retention: String,
    /// The names of the shapes graphs that validate its objects.
    pub(super) shapes: Vec<String>,
    /// The mode of the validation; empty if the form lacks it.
    pub(super) validation: String,
    /// Which ingestions become changes; empty if the form lacks it.
    pub(super) review: String,
    /// Who approves changes, one a line.
    pub(super) approvers: String,
    /// The id and version of the edited Business Object.
    pub(super) id: String,
    pub(super) version: Option<u64>,
    pub(super) sample: Arc<str>,
}

impl Draft {
    /// Creates the draft of an existing Business Object.
    pub(super) fn from_business_object(object: &BusinessObject) -> Self {
        Self {
            id: object.id.clone(),
            version: Some(object.version),
            ..Self::from_definition(&object.definition)
        }
    }

    fn from_definition(definition: &Definition) -> Self {
        let definition = definition.clone();
        let review = definition.review().name().to_owned();
        let approvers: Vec<String> =
            definition.approvers().iter().map(ToString::to_string).collect();
        let validation = definition.validation.unwrap_or_default();
        let conditions = definition.conditions.into_iter();
        let targets = definition.push_targets.into_iter();
        let namespaces = definition.namespaces.into_iter().map(|namespace| {
            let generator = namespace.generator.map(Generator::name).unwrap_or_default();
            [namespace.name, namespace.uri_base.unwrap_or_default(), generator.to_owned()]
        });
        Self {
            name: definition.name,
            description: definition.description,
            enabled: definition.enabled,
            config: definition.config,
            namespaces: namespaces.collect(),
            conditions: conditions
                .map(|condition| (condition.predicate, condition.value))
                .collect(),
            targets: targets.map(|target| target.bucket_name).collect(),
            schedule: definition.schedule.unwrap_or_default(),
            timezone: definition.timezone.unwrap_or_default(),
            export_on_change: definition.export_on_change,
            debounce: definition.debounce.unwrap_or_default(),
            retention: definition.retention.unwrap_or_default(),
            validation: validation.mode.name().to_owned(),
            shapes: validation.shapes,
            review,
            approvers: approvers.join("\n"),
            id: String::new(),
            version: None,
            sample: Arc::default(),
        }
    }

    /// Reads a submitted form. `known` are the targets that the form lists with a check box.
    pub(super) fn from_form(form: &Form, known: &[String]) -> Self {
        let word = |name: &str| form.trimmed(name).unwrap_or_default();
        let ticked = known.iter().filter(|name| form.is_ticked(&format!("target.{name}"))).cloned();
        let others = form.text("pushTargets");
        let others = others.split([',', ' ', '\n', '\t']).filter(|name| !name.is_empty());
        Self {
            name: word("name"),
            description: form.text("description").trim().to_owned(),
            enabled: form.is_ticked("enabled"),
            config: form.text("config"),
            namespaces: read_rows(form, "namespace", ["name", "uriBase", "generator"]),
            conditions: read_rows(form, "condition", ["predicate", "value"])
                .into_iter()
                .map(|[predicate, value]| (predicate, value))
                .collect(),
            targets: ticked.chain(others.map(str::to_owned)).collect(),
            schedule: word("schedule"),
            timezone: word("timezone"),
            export_on_change: form.is_ticked("exportOnChange"),
            debounce: word("debounce"),
            retention: word("retention"),
            shapes: form.ticked_below("shapes.").map(str::to_owned).collect(),
            validation: word("validation"),
            review: word("review"),
            approvers: form.text("approvers"),
            id: word("id"),
            version: form.trimmed("version").and_then(|version| version.parse().ok()),
            sample: form.text("sample").into(),
        }
    }

    /// Returns the definition in the form.
    pub(super) fn to_definition(&self) -> NewDefinition {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let mut findings = Vec::new();
        let mode = some(&self.validation).and_then(|name| {
            let parsed = ValidationMode::parse(&name);
            parsed.map_err(|why| findings.push(Finding::at_pointer("/validation/mode", why))).ok()
        });
        let review = some(&self.review).and_then(|name| {
            let parsed = Review::parse(&name);
            parsed.map_err(|why| findings.push(Finding::at_pointer("/review", why))).ok()
        });
        let mut approvers = Vec::new();
        let lines = self.approvers.lines().map(str::trim).filter(|line| !line.is_empty());
        for (index, line) in lines.enumerate() {
            match Principal::parse(line) {
                Ok(approver) => approvers.push(approver),
                Err(why) => {
                    findings.push(Finding::at_pointer(format!("/approvers/{index}"), why));
                }
            }
        }
        let mut generator = |row: usize, name: &str| {
            let parsed = Generator::parse(&some(name)?);
            let place = format!("/namespaces/{row}/generator");
            parsed.map_err(|why| findings.push(Finding::at_pointer(place, why))).ok()
        };
        let namespaces = self.namespaces.iter().enumerate();
        let namespaces = namespaces.map(|(row, [name, base, kind])| DefinedNamespace {
            name: name.clone(),
            uri_base: some(base),
            generator: generator(row, kind),
        });
        let conditions = self.conditions.iter().cloned();
        let targets = self.targets.iter().cloned();
        let definition = Definition {
            name: self.name.clone(),
            description: self.description.clone(),
            enabled: self.enabled,
            config: self.config.clone(),
            namespaces: namespaces.collect(),
            conditions: conditions
                .map(|(predicate, value)| Condition { predicate, value })
                .collect(),
            push_targets: targets.map(|bucket_name| PushTarget { bucket_name }).collect(),
            schedule: some(&self.schedule),
            timezone: some(&self.timezone),
            export_on_change: self.export_on_change,
            debounce: some(&self.debounce),
            retention: some(&self.retention),
            validation: mode.map(|mode| Validation { shapes: self.shapes.clone(), mode }),
            // A form with a review has approvers too.
            approvers: review.is_some().then_some(approvers),
            review,
        };
        NewDefinition { definition, findings }
    }

    /// Describes the schedule, with its next runs.
    pub(super) fn describe_schedule(&self) -> ShownSchedule {
        let [schedule, zone] = [&self.schedule, &self.timezone]
            .map(|text| Some(text.as_str()).filter(|text| !text.is_empty()));
        ShownSchedule::new(schedule, zone, Utc::now())
    }

    /// Returns every field with its label and its value, for comparison.
    pub(super) fn field_values(&self) -> [(&'static str, String); 16] {
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let conditions =
            self.conditions.iter().map(|(predicate, value)| format!("{predicate} = {value}"));
        let targets = self.targets.iter().map(String::as_str);
        let namespaces = self.namespaces.iter().map(|namespace| namespace.join(" "));
        [
            ("Name", self.name.clone()),
            ("Description", self.description.clone()),
            ("Enabled", yes(self.enabled)),
            ("Mapping", self.config.clone()),
            ("Namespaces", namespaces.collect::<Vec<_>>().join("\n")),
            ("Conditions", conditions.collect::<Vec<_>>().join("\n")),
            ("Targets", targets.collect::<Vec<_>>().join(", ")),
            ("Schedule", self.schedule.clone()),
            ("Time zone", self.timezone.clone()),
            ("Export on change", yes(self.export_on_change)),
            ("Wait for further changes", self.debounce.clone()),
            ("Keep for", self.retention.clone()),
            ("Shapes", self.shapes.join(", ")),
            ("Validation", self.validation.clone()),
            ("Review", self.review.clone()),
            ("Approvers", self.approvers.clone()),
        ]
    }

    /// Returns the rows of conditions in the form: the existing ones, and two empty ones.
    pub(super) fn rows(&self) -> Vec<(usize, String, String)> {
        let empty = std::iter::repeat_n((String::new(), String::new()), 2);
        let rows = self.conditions.iter().cloned().chain(empty).enumerate();
        rows.map(|(row, (predicate, value))| (row, predicate, value)).collect()
    }

    /// Returns the rows of namespaces in the form: the existing ones, and two empty ones.
    pub(super) fn namespace_rows(&self) -> Vec<(usize, String, String, String)> {
        let empty = std::iter::repeat_n(<[String; 3]>::default(), 2);
        let rows = self.namespaces.iter().cloned().chain(empty).enumerate();
        rows.map(|(row, [name, base, generator])| (row, name, base, generator)).collect()
    }
}

/// Reads the rows of a form, each with these parts. Empty rows are ignored.
fn read_rows<const N: usize>(form: &Form, kind: &str, parts: [&str; N]) -> Vec<[String; N]> {
    (0..MAX_ROWS)
        .map(|row| {
            parts.map(|part| form.trimmed(&format!("{kind}.{row}.{part}")).unwrap_or_default())
        })
        .filter(|row| row.iter().any(|text| !text.is_empty()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_survives_the_form() {
        let body = br#"{"name": "Pump", "description": "d", "enabled": false, "config":
            "type: object\npath: Pump:.\nfields:\n  n:\n    type: string\n    path: <urn:n>\n",
            "namespaces": [{"name": "Pump", "uriBase": "urn:pump:"}, {"name": "B", "generator": "counter"}],
            "conditions": [{"predicate": "rdf:type", "value": "urn:v"}],
            "pushTargets": [{"bucketName": "plant-exports"}], "schedule": "0 5 * * *",
            "timezone": "Europe/Vienna", "exportOnChange": true, "debounce": "2s", "retention": "P30D",
            "validation": {"shapes": ["pumps"], "mode": "warn"}, "review": "required",
            "approvers": ["user:ada", "group:shift 1"]}"#;
        let new = NewDefinition::from_json(body).unwrap();
        let draft = Draft::from_definition(&new.definition);
        assert_eq!(draft.to_definition(), new);
        assert!(new.compile(&|_| Ok(())).is_ok());
        assert_eq!(draft.rows().len(), 3);
        assert_eq!(draft.namespace_rows().len(), 4);
    }
}
