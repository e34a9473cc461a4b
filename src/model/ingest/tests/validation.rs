//! Shapes protect the members of a Business Object, whatever changes them.
use super::*;
use crate::ingest::Limits;
use crate::protection::check_untouched;
use crate::resource::Compiled;
use crate::testing::{
    LIMITS, list_quads, local_request, open_store, put_definition, put_shapes_graph,
};
use oxrdf::Literal;
use penstock_config::ShapesLimits;
use penstock_store::Store;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const SHAPES: &str = "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix p: <http://p/> . \
    @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n\
    <http://s/Pump> a sh:NodeShape ; sh:targetSubjectsOf p:name ; \
      sh:property [ sh:path p:power ; sh:minInclusive 0 ; sh:maxCount 1 ] ; \
      sh:property [ sh:path p:name ; sh:minLength 3 ; sh:severity sh:Warning ] ; \
      sh:property [ sh:path (p:maker p:country) ; sh:minCount 1 ] .\n\
    <http://s/Motor> a sh:NodeShape ; sh:targetSubjectsOf p:speed ; \
      sh:property [ sh:path p:speed ; sh:maxInclusive 100 ] .";

/// A gateway with pumps that have shapes, and two other Business Objects that write to what pumps show.
struct Plant {
    _dir: TempDir,
    store: Store,
    catalogue: Catalogue,
    pumps: Arc<Compiled>,
    motors: Arc<Compiled>,
    makers: Arc<Compiled>,
}

impl Plant {
    fn new(mode: &str) -> Self {
        Self::with_shapes(mode, SHAPES)
    }

    fn with_shapes(mode: &str, shapes: &str) -> Self {
        let (dir, store) = open_store();
        put_shapes_graph(&store, "pumps", shapes);
        let catalogue = Catalogue::open(store.clone(), catalogue_settings()).unwrap();
        let define = |name: &str, fields: &str, validation: Option<serde_json::Value>| {
            let config = format!(
                "type: object\npath: {name}:.\nprefixes: {{p: 'http://p/'}}\nfields: {{{fields}}}"
            );
            let bases = [
                ("Pump", "http://x/pump/"),
                ("Motor", "http://x/motor/"),
                ("Maker", "http://x/maker/"),
            ];
            let namespaces = bases
                .map(|(name, base)| json!({"name": name, "uriBase": base, "generator": "manual"}));
            let mut definition = json!({"name": name, "config": config, "namespaces": namespaces});
            if let Some(validation) = validation {
                definition["validation"] = validation;
            }
            put_definition(&catalogue, &definition)
        };
        let makers = define("Maker", "country: {type: string, path: p:country}", None);
        let motors = define("Motor", "speed: {type: integer, path: p:speed}", None);
        let pumps = define(
            "Pump",
            "name: {type: string, path: p:name}, power: {type: number, path: p:power}, \
             maker: {type: resource, path: p:maker}, \
             motors: {type: array, path: p:motor, elements: {type: object, path: 'Motor:.', fields: {speed: {type: integer, path: p:speed}}}}",
            Some(json!({"shapes": ["pumps"], "mode": mode})),
        );
        let plant = Self { _dir: dir, store, catalogue, pumps, motors, makers };
        plant
            .send(&plant.makers, Mode::Add, r#"{"uri": "http://x/maker/m", "country": "CH"}"#)
            .unwrap();
        plant
    }

    fn request<'a>(&'a self, to: &'a Compiled, mode: Mode, body: &'a str) -> Request<'a> {
        local_request(self.catalogue.watch(), to, mode, Body::Json(body.as_bytes()))
    }

    fn run(&self, request: &Request<'_>) -> Result<Answer, GatewayError> {
        self.run_within(LIMITS.shapes.time, request)
    }

    fn run_within(&self, time: Duration, request: &Request<'_>) -> Result<Answer, GatewayError> {
        let limits = Limits { shapes: ShapesLimits { time, ..LIMITS.shapes }, ..*LIMITS };
        crate::ingest::ingest(&GuardedStore::from(self.store.clone()), &limits, request)
    }

    fn send(&self, to: &Compiled, mode: Mode, elements: &str) -> Result<Answer, GatewayError> {
        let body = format!("{{\"data\": [{elements}]}}");
        self.run(&self.request(to, mode, &body))
    }

    /// Adds a pump with a motor that conforms.
    fn add_pump(&self) {
        let pump = r#"{"uri": "http://x/pump/1", "name": "north", "power": 5, "maker": "http://x/maker/m",
            "motors": [{"uri": "http://x/motor/1", "speed": 7}]}"#;
        let answer = self.send(&self.pumps, Mode::Add, pump).unwrap();
        assert_eq!(answer.warnings, []);
    }

    /// Gives the pump another power, beside ingestion, that violates its shape.
    fn add_negative_power(&self) {
        let power = Literal::new_typed_literal("-7", oxrdf::vocab::xsd::DECIMAL);
        insert_quad(&self.store, "http://x/pump/1", "http://p/power", power, "http://x/pump/");
    }

    /// Sends objects that must be refused, and checks that nothing was stored. Returns the pointers.
    fn expect_refusal(&self, to: &Compiled, mode: Mode, elements: &str) -> Vec<String> {
        let before = list_quads(&self.store.read());
        let error = self.send(to, mode, elements).unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid, "{error}");
        assert_eq!(list_quads(&self.store.read()), before);
        assert!(error.findings.iter().all(|finding| finding.violation.is_some()), "{error}");
        pointers(&error)
    }
}

#[test]
fn a_violation_refuses_the_request_and_is_placed_at_its_field() {
    let plant = Plant::new("reject");
    let pumps = r#"{"uri": "http://x/pump/1", "name": "north", "power": -5, "maker": "http://x/maker/m"},
        {"uri": "http://x/pump/2", "name": "south",
         "motors": [{"uri": "http://x/motor/1", "speed": 1}, {"uri": "http://x/motor/2", "speed": 101}]}"#;
    let found = plant.expect_refusal(&plant.pumps, Mode::Add, pumps);
    assert_eq!(found, ["/data/1/motors/1/speed", "/data/0/power", "/data/1"]);
    let error = plant.send(&plant.pumps, Mode::Validate, pumps).unwrap_err();
    let violation = error.findings[1].violation.as_ref().unwrap();
    assert_eq!(violation.focus_node, "http://x/pump/1");
    assert_eq!(violation.path.as_deref(), Some("http://p/power"));
    assert_eq!(
        (violation.value.as_deref(), violation.shape.as_str()),
        (Some("-5"), "http://s/Pump")
    );
    assert!(error.findings[1].message.contains("must be 0 or more"), "{error}");
    let missing = error.findings[2].violation.as_ref().unwrap();
    assert_eq!(missing.path.as_deref(), Some("(<http://p/maker>/<http://p/country>)"));
}

/// Shapes for what pumps refer to.
const SHAPES_OF_VALUES: &str = "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix p: <http://p/> .\n\
    <http://s/Motor> a sh:NodeShape ; sh:targetObjectsOf p:motor ; \
      sh:property [ sh:path p:speed ; sh:minCount 1 ] .\n\
    <http://s/Maker> a sh:NodeShape ; sh:targetObjectsOf p:maker ; \
      sh:property [ sh:path p:country ; sh:minCount 1 ] .\n\
    <http://s/Name> a sh:NodeShape ; sh:targetObjectsOf p:name ; sh:minLength 3 .\n\
    <http://s/Node> a sh:NodeShape ; sh:targetNode <http://x/motor/9> ; sh:nodeKind sh:Literal .";

#[test]
fn what_an_ingestion_makes_a_target_is_validated_even_if_it_is_not_stored() {
    let plant = Plant::with_shapes("reject", SHAPES_OF_VALUES);
    let pump = |fields: &str| format!(r#"{{"uri": "http://x/pump/1", "name": "north"{fields}}}"#);
    for (fields, expected) in [
        (r#", "motors": [{"uri": "http://x/motor/1"}]"#, "/data/0/motors/0/speed"),
        (r#", "maker": "http://x/maker/none""#, "/data/0/maker"),
    ] {
        let found = plant.expect_refusal(&plant.pumps, Mode::Add, &pump(fields));
        assert_eq!(found, [expected], "{fields}");
    }
    let literal = r#"{"uri": "http://x/pump/1", "name": "no"}"#;
    assert_eq!(plant.expect_refusal(&plant.pumps, Mode::Add, literal), ["/data/0/name"]);
    let both = pump(r#", "motors": [{"uri": "http://x/motor/9"}]"#);
    assert_eq!(plant.expect_refusal(&plant.pumps, Mode::Add, &both).len(), 2);
    let fields =
        r#", "maker": "http://x/maker/m", "motors": [{"uri": "http://x/motor/1", "speed": 1}]"#;
    plant.send(&plant.pumps, Mode::Add, &pump(fields)).unwrap();
    // The maker is a target because the pump refers to it.
    plant.expect_refusal(&plant.makers, Mode::Merge, WITHOUT_COUNTRY);
}

#[test]
fn only_the_objects_with_a_value_that_violates_are_rejected() {
    let plant = Plant::with_shapes("reject", SHAPES_OF_VALUES);
    let body = r#"{"data": [{"uri": "http://x/pump/1", "name": "north", "maker": "http://x/maker/none"},
        {"uri": "http://x/pump/2", "name": "south", "maker": "http://x/maker/m"},
        {"uri": "http://x/pump/3", "name": "east", "maker": "http://x/maker/none"},
        {"uri": "http://x/pump/4", "name": "no"}]}"#;
    let request =
        Request { on_error: OnError::Skip, ..plant.request(&plant.pumps, Mode::Add, body) };
    let answer = plant.run(&request).unwrap();
    let rejected: Vec<_> = answer.rejected.iter().map(|one| one.index).collect();
    assert_eq!((answer.created, rejected), (1, vec![0, 2, 3]));
}

#[test]
fn a_value_that_violated_a_shape_before_does_not_refuse_a_change() {
    let plant = Plant::with_shapes("reject", SHAPES_OF_VALUES);
    let pump = r#"{"uri": "http://x/pump/1", "name": "north"}"#;
    plant.send(&plant.pumps, Mode::Add, pump).unwrap();
    let motor = NamedNode::new_unchecked("http://x/motor/5");
    insert_quad(&plant.store, "http://x/pump/1", "http://p/motor", motor, "http://x/pump/");
    let renamed = r#"{"uri": "http://x/pump/1", "name": "south"}"#;
    plant.send(&plant.pumps, Mode::Update, renamed).unwrap();
}

#[test]
fn warnings_and_the_mode_warn_store_the_objects() {
    let pump =
        r#"{"uri": "http://x/pump/1", "name": "n", "power": 1, "maker": "http://x/maker/m"}"#;
    let bad =
        r#"{"uri": "http://x/pump/2", "name": "south", "power": -1, "maker": "http://x/maker/m"}"#;
    let plant = Plant::new("reject");
    let answer = plant.send(&plant.pumps, Mode::Add, pump).unwrap();
    assert_eq!((answer.created, answer.warnings.len()), (1, 1));
    let warning = &answer.warnings[0];
    assert_eq!(
        (warning.pointer.as_str(), warning.violation.as_ref().unwrap().severity.as_str()),
        ("/data/0/name", "warning")
    );
    let plant = Plant::new("warn");
    let answer = plant.send(&plant.pumps, Mode::Add, bad).unwrap();
    assert_eq!((answer.created, answer.warnings.len()), (1, 1));
    assert_eq!(answer.warnings[0].violation.as_ref().unwrap().severity, "violation");
    let plant = Plant::new("off");
    assert_eq!(plant.send(&plant.pumps, Mode::Add, bad).unwrap().warnings, []);
}

#[test]
fn no_other_business_object_is_a_way_around() {
    let plant = Plant::new("reject");
    plant.add_pump();
    // The motor is nested in the pump.
    assert_eq!(
        plant.expect_refusal(
            &plant.motors,
            Mode::Merge,
            r#"{"uri": "http://x/motor/1", "speed": 101}"#
        ),
        ["/data/0/speed"]
    );
    // The pump refers to the maker, and its shape reads the maker's country.
    assert_eq!(
        plant.expect_refusal(
            &plant.makers,
            Mode::Merge,
            r#"{"uri": "http://x/maker/m", "country": null}"#
        ),
        [""]
    );
    // A motor that no pump has is not protected.
    plant.send(&plant.motors, Mode::Add, r#"{"uri": "http://x/motor/9", "speed": 999}"#).unwrap();
    // Deleting is never refused.
    plant.send(&plant.makers, Mode::Delete, r#"{"uri": "http://x/maker/m"}"#).unwrap();
}

#[test]
fn data_with_violations_can_be_repaired_step_by_step() {
    let plant = Plant::new("reject");
    plant.add_pump();
    plant.add_negative_power();
    // The negative power and the second value existed before. The name is new.
    let answer = plant
        .send(&plant.pumps, Mode::Update, r#"{"uri": "http://x/pump/1", "name": "no"}"#)
        .unwrap();
    let found: Vec<_> =
        answer.warnings.iter().filter_map(|w| w.violation.as_ref()?.value.as_deref()).collect();
    assert_eq!((answer.warnings.len(), found), (3, vec!["no", "-7"]));
}

#[test]
fn only_the_objects_that_violate_are_rejected() {
    let plant = Plant::new("reject");
    let body = r#"{"data": [{"uri": "http://x/pump/1", "name": "north", "power": -5},
        {"uri": "http://x/pump/2", "name": "south", "power": 5, "maker": "http://x/maker/m"}]}"#;
    let request =
        Request { on_error: OnError::Skip, ..plant.request(&plant.pumps, Mode::Add, body) };
    let answer = plant.run(&request).unwrap();
    assert_eq!((answer.created, answer.rejected.len()), (1, 1));
    assert_eq!((answer.rejected[0].index, answer.rejected[0].errors.len()), (0, 2));
    assert_eq!(answer.objects[0].uri, "http://x/pump/2");
}

/// Returns a quad in the default graph that no field shows.
fn color_of(subject: &str, color: &str) -> Quad {
    let node = NamedNode::new_unchecked;
    Quad::new(node(subject), node("http://p/color"), Literal::from(color), GraphName::DefaultGraph)
}

#[test]
fn a_commit_that_is_no_ingestion_must_not_touch_protected_objects() {
    let plant = Plant::new("reject");
    plant.add_pump();
    let watch = plant.catalogue.watch();
    let check = |subject: &str, overridden: bool| {
        let quad = color_of(subject, "red");
        let mut result = Ok(Vec::new());
        let rolled_back = plant.store.transact(|t| -> Result<(), GatewayError> {
            t.insert(quad.as_ref())?;
            result = check_untouched(t, watch, LIMITS.shapes.time, overridden);
            Err(GatewayError::new(ErrorClass::Internal, "rolled back"))
        });
        assert!(rolled_back.is_err());
        result
    };
    for subject in ["http://x/pump/1", "http://x/motor/1"] {
        let error = check(subject, false).unwrap_err();
        assert_eq!(error.class, ErrorClass::Conflict);
        assert!(
            error.detail.contains("\"Pump\"") && error.detail.contains("bypass=true"),
            "{error}"
        );
        assert_eq!(check(subject, true).unwrap(), ["Pump"]);
    }
    assert_eq!(check("http://x/maker/m", false).unwrap(), Vec::<String>::new());
}

#[test]
fn shapes_that_cannot_be_used_refuse_every_change() {
    let plant = Plant::new("reject");
    plant.store.transact(|t| t.put_document("shapes-graphs", b"pumps", b"{}")).unwrap();
    // Only the definitions are cached, so the next change of one reads the graph again.
    let catalogue = Catalogue::open(plant.store.clone(), catalogue_settings()).unwrap();
    let send = |to: &Compiled, object: &str| {
        let body = format!("{{\"data\": [{object}]}}");
        let body = Body::Json(body.as_bytes());
        plant.run(&local_request(catalogue.watch(), to, Mode::Add, body))
    };
    let error = send(&plant.pumps, r#"{"uri": "http://x/pump/1", "name": "north"}"#).unwrap_err();
    assert_eq!(error.class, ErrorClass::Damaged);
    assert!(error.detail.contains("\"Pump\" cannot be validated"), "{error}");
    // Other objects are not concerned.
    send(&plant.motors, r#"{"uri": "http://x/motor/9", "speed": 1}"#).unwrap();
}

#[test]
fn what_a_commit_brings_under_the_shapes_had_no_violation_before() {
    let plant = Plant::new("reject");
    // It violates the shape, but nothing protects it.
    plant.send(&plant.motors, Mode::Add, r#"{"uri": "http://x/motor/9", "speed": 999}"#).unwrap();
    let pump = r#"{"uri": "http://x/pump/2", "name": "south", "maker": "http://x/maker/m",
        "motors": [{"uri": "http://x/motor/9"}]}"#;
    assert_eq!(plant.expect_refusal(&plant.pumps, Mode::Add, pump), ["/data/0/motors/0/speed"]);

    // The same for an object that a condition makes a member.
    let define = |name: &str, field: &str, others: serde_json::Value| {
        let config = format!(
            "type: object\npath: Valve:.\nprefixes: {{p: 'http://p/'}}\nfields: {{{field}}}"
        );
        let mut definition = json!({"name": name, "config": config, "namespaces":
            [{"name": "Valve", "uriBase": "http://x/valve/", "generator": "manual"}]});
        definition.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
        put_definition(&plant.catalogue, &definition)
    };
    let fields = "name: {type: string, path: p:name}, power: {type: number, path: p:power}, maker: {type: resource, path: p:maker}";
    let valves = define("Valve", fields, json!({}));
    let kinds = define("Kind", "kind: {type: resource, path: p:kind}", json!({}));
    let conditions = json!([{"predicate": "http://p/kind", "value": "http://p/Checked"}]);
    let validation = json!({"shapes": ["pumps"], "mode": "reject"});
    define("Checked", fields, json!({"conditions": conditions, "validation": validation}));
    let valve =
        r#"{"uri": "http://x/valve/1", "name": "east", "power": -5, "maker": "http://x/maker/m"}"#;
    plant.send(&valves, Mode::Add, valve).unwrap();
    let kind = r#"{"uri": "http://x/valve/1", "kind": "http://p/Checked"}"#;
    assert_eq!(plant.expect_refusal(&kinds, Mode::Merge, kind), ["/data/0"]);
}

/// Stores as many triples with this property and object as one commit may touch, and one more.
fn add_many(plant: &Plant, subjects: &str, predicate: &str, object: &str) {
    plant
        .store
        .transact(|t| {
            (0..10_001).try_for_each(|number| {
                let quad = Quad::new(
                    NamedNode::new_unchecked(format!("{subjects}{number}")),
                    NamedNode::new_unchecked(predicate),
                    NamedNode::new_unchecked(object),
                    NamedNode::new_unchecked(subjects),
                );
                t.insert(quad.as_ref()).map(drop)
            })
        })
        .unwrap();
}

const WITHOUT_COUNTRY: &str = r#"{"uri": "http://x/maker/m", "country": null}"#;

#[test]
fn referrers_that_are_no_members_hide_none() {
    let plant = Plant::new("reject");
    add_many(&plant, "http://a/", "http://p/maker", "http://x/maker/m");
    plant.add_pump();
    plant.expect_refusal(&plant.makers, Mode::Merge, WITHOUT_COUNTRY);
}

#[test]
fn too_many_members_are_refused_or_a_warning() {
    let plant = Plant::new("reject");
    add_many(&plant, "http://x/pump/", "http://p/maker", "http://x/maker/m");
    let error = plant.send(&plant.makers, Mode::Merge, WITHOUT_COUNTRY).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict, "{error}");
    let body = format!("{{\"data\": [{WITHOUT_COUNTRY}]}}");
    let request = plant.request(&plant.makers, Mode::Merge, &body);
    let answer = plant.run(&Request { bypass: true, ..request }).unwrap();
    assert!(answer.warnings[0].message.contains("because bypass=true overrides"), "{answer:?}");
    let plant = Plant::new("warn");
    add_many(&plant, "http://x/pump/", "http://p/maker", "http://x/maker/m");
    let answer = plant.send(&plant.makers, Mode::Merge, WITHOUT_COUNTRY).unwrap();
    assert!(answer.warnings[0].message.contains("\"Pump\" were not validated"), "{answer:?}");

    // An Admin overrides this limit too.
    let plant = Plant::new("reject");
    add_many(&plant, "http://x/pump/", "http://p/motor", "http://x/motor/1");
    plant
        .store
        .transact(|t| -> Result<(), GatewayError> {
            t.insert(color_of("http://x/motor/1", "red").as_ref())?;
            let watch = plant.catalogue.watch();
            assert!(check_untouched(t, watch, LIMITS.shapes.time, false).is_err());
            assert_eq!(check_untouched(t, watch, LIMITS.shapes.time, true)?, ["Pump"]);
            Ok(())
        })
        .unwrap();
}

#[test]
fn the_search_for_touched_members_counts_time() {
    for mode in ["reject", "warn"] {
        let plant = Plant::new(mode);
        // No member refers to the maker, but finding that out takes longer than the limit.
        add_many(&plant, "http://a/", "http://p/maker", "http://x/maker/m");
        let body = format!("{{\"data\": [{WITHOUT_COUNTRY}]}}");
        let request = plant.request(&plant.makers, Mode::Merge, &body);
        let result = plant.run_within(Duration::ZERO, &request);
        if mode == "reject" {
            let error = result.unwrap_err();
            assert_eq!(error.class, ErrorClass::Invalid, "{error}");
            assert!(error.detail.contains("service.limits.shapes.time"), "{error}");
            plant.run(&request).unwrap();
        } else {
            let warnings = result.unwrap().warnings;
            assert!(warnings[0].message.contains("were not validated"), "{warnings:?}");
        }
    }

    // What may be nested in a member counts as nested, if time does not suffice to look at all holders.
    let plant = Plant::new("reject");
    add_many(&plant, "http://a/", "http://p/motor", "http://x/motor/1");
    let watch = plant.catalogue.watch();
    for (color, time, touched) in
        [("red", Duration::ZERO, &["Pump"] as &[&str]), ("blue", Duration::from_mins(1), &[])]
    {
        let color = color_of("http://x/motor/1", color);
        let checked = plant.store.transact(|t| -> Result<_, GatewayError> {
            t.insert(color.as_ref())?;
            assert_eq!(check_untouched(t, watch, time, false).is_err(), !touched.is_empty());
            check_untouched(t, watch, time, true)
        });
        assert_eq!(checked.unwrap().0, touched);
    }
}

#[test]
fn a_limited_credential_sees_no_data_of_others() {
    let plant = Plant::new("reject");
    plant.add_pump();
    let scope = [&*plant.makers];
    let body = format!("{{\"data\": [{WITHOUT_COUNTRY}]}}");
    let request = plant.request(&plant.makers, Mode::Merge, &body);
    let limited = Request { write_scope: Some(&scope), ..request };
    let error = plant.run(&limited).unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid);
    assert!(!format!("{error:?}").contains("/pump/"), "{error:?}");
    // Without the limit it has the pump.
    assert!(format!("{:?}", plant.run(&request).unwrap_err()).contains("/pump/1"));

    // What violated before is not part of an answer about other objects.
    plant.add_negative_power();
    let maker = r#"{"uri": "http://x/maker/m", "country": "DE"}"#;
    assert_eq!(plant.send(&plant.makers, Mode::Merge, maker).unwrap().warnings, []);
}
