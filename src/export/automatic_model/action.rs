//! The actions of these tests, and definitions that export the same graph as other objects.
use super::*;

pub(super) const NAMES: [&str; 2] = ["Plant", "Part"];
pub(super) const TARGETS: [&str; 2] = ["north", "south"];

#[derive(Debug, Clone)]
pub(super) enum TestAction {
    Ingest { of: usize, mode: Mode, objects: Vec<(usize, usize, Vec<usize>)> },
    Load { quads: Vec<(bool, usize, usize, usize)> },
    Push { of: usize },
    RunSchedule { of: usize },
    RunRound,
    Interrupt { push: Option<usize> },
    Deliver { target: usize },
    Define { of: usize, definition: TestDefinition },
    Remove { of: usize },
    Restart,
}

#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each flag is a member of the definition")]
pub(super) struct TestDefinition {
    pub(super) on_change: bool,
    pub(super) scheduled: bool,
    pub(super) enabled: bool,
    pub(super) conditions: bool,
    pub(super) other_mapping: bool,
    pub(super) targets: Vec<usize>,
}

impl TestDefinition {
    /// Returns a definition that exports to these targets on each change.
    pub(super) fn exporting_to(targets: &[usize]) -> Self {
        Self {
            on_change: true,
            scheduled: false,
            enabled: true,
            conditions: false,
            other_mapping: false,
            targets: targets.to_vec(),
        }
    }

    pub(super) fn to_json(&self, of: usize) -> Value {
        // Parts are top-level objects in one view and nested in the other, two levels deep.
        let config = match (of, self.other_mapping) {
            (0, false) => {
                "type: object\npath: Plant:.\nfields:\n  name: {type: string, path: <urn:name>}\n  parts:\n    \
                 type: array\n    path: <urn:part>\n    elements:\n      type: object\n      path: Part:.\n      \
                 fields:\n        name: {type: string, path: <urn:name>}\n        maker: {type: object, path: \
                 <urn:maker>/Maker:., fields: {name: {type: string, path: <urn:name>}}}\n"
            }
            (0, true) => {
                "type: object\npath: Plant:.\nfields:\n  parts:\n    type: array\n    path: <urn:part>\n    \
                 elements:\n      type: object\n      path: Part:.\n      fields:\n        name: {type: string, path: \
                 <urn:name>}\n"
            }
            (_, false) => {
                "type: object\npath: Part:.\nfields:\n  name: {type: string, path: <urn:name>}\n  maker: {type: \
                 object, path: <urn:maker>/Maker:., fields: {name: {type: string, path: <urn:name>}}}\n"
            }
            (_, true) => {
                "type: object\npath: Part:.\nfields:\n  name: {type: string, path: <urn:name>}\n"
            }
        };
        let conditions = if self.conditions {
            json!([{"predicate": "urn:part", "value": "urn:x-part:1"}])
        } else {
            json!([])
        };
        let targets: Vec<Value> =
            self.targets.iter().map(|t| json!({ "bucketName": TARGETS[*t] })).collect();
        json!({
            "name": NAMES[of],
            "config": config,
            "enabled": self.enabled,
            "conditions": conditions,
            "pushTargets": targets,
            "exportOnChange": self.on_change,
            "debounce": "0s",
            "schedule": self.scheduled.then_some("0 0 1 1 *"),
        })
    }
}

pub(super) fn arbitrary_actions() -> impl Strategy<Value = Vec<TestAction>> {
    let objects =
        prop::collection::vec((0..3usize, 0..3usize, prop::collection::vec(0..3usize, 0..3)), 1..4);
    let mode = prop_oneof![
        3 => Just(Mode::Add), 2 => Just(Mode::Replace), 1 => Just(Mode::Update), 2 => Just(Mode::Delete)
    ];
    let defined = (
        prop::bool::weighted(0.8),
        any::<bool>(),
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.3),
        any::<bool>(),
        prop::collection::btree_set(0..2usize, 0..3),
    )
        .prop_map(|(on_change, scheduled, enabled, conditions, other_mapping, targets)| {
            TestDefinition {
                on_change,
                scheduled,
                enabled,
                conditions,
                other_mapping,
                targets: targets.into_iter().collect(),
            }
        });
    let action = prop_oneof![
        8 => (0..2usize, mode, objects).prop_map(|(of, mode, objects)| TestAction::Ingest { of, mode, objects }),
        3 => prop::collection::vec((any::<bool>(), 0..9usize, 0..3usize, 0..9usize), 1..4)
            .prop_map(|quads| TestAction::Load { quads }),
        2 => (0..2usize).prop_map(|of| TestAction::Push { of }),
        1 => (0..2usize).prop_map(|of| TestAction::RunSchedule { of }),
        6 => Just(TestAction::RunRound),
        1 => prop::option::of(0..2usize).prop_map(|push| TestAction::Interrupt { push }),
        4 => (0..2usize).prop_map(|target| TestAction::Deliver { target }),
        2 => (0..2usize, defined).prop_map(|(of, definition)| TestAction::Define { of, definition }),
        1 => (0..2usize).prop_map(|of| TestAction::Remove { of }),
        1 => Just(TestAction::Restart),
    ];
    prop::collection::vec(action, 1..60)
}
