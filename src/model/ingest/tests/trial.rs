//! A trial of sample data.
use super::world::{LIMITS, World, machine};
use crate::catalogue::{Catalogue, Defaults};
use crate::ingest::{Status, Trial, try_out};
use crate::namespace::Generator;
use penstock_base::fault::{Fault, Kind};

fn tried(world: &World, data: &str) -> Result<Trial, Fault> {
    let defaults =
        Defaults { base_url: None, gateway_id: "gw".to_owned(), auto_create_namespaces: true };
    let catalogue = Catalogue::open(world.store.clone(), defaults).unwrap();
    let body = format!("{{\"data\": [{data}]}}");
    let tried = catalogue.rehearse(&world.business_object, |transaction| {
        try_out(transaction, &LIMITS, &world.business_object, body.as_bytes())
    });
    tried.map(|(trial, _)| trial)
}

#[test]
fn a_trial_shows_what_would_be_stored_and_stores_nothing() {
    let world = World::new(machine());
    world.add(r#"{"uri": "urn:m", "name": "a"}"#);
    let (quads, sequence) = (world.quads(), world.store.stats().sequence);
    let data = r#"{"uri": "urn:m", "weight": 1.50, "motor": {"power": 2}}, {"tags": ["x"]}"#;
    for _ in 0..2 {
        let trial = tried(&world, data).unwrap();
        let added: Vec<String> = trial.added.iter().map(ToString::to_string).collect();
        assert_eq!(added.len(), 4, "{added:?}");
        assert!(added.iter().any(|quad| quad.contains("1.50")), "{added:?}");
        assert!(
            !added.iter().any(|quad| quad.contains("\"a\"")),
            "what is there is not new: {added:?}"
        );
        let views: Vec<_> =
            trial.views.iter().map(|view| String::from_utf8(view.json.clone()).unwrap()).collect();
        let motor = &trial.answer.objects[0].nested[0].uri;
        assert_eq!(
            views[0],
            format!(
                r#"{{"uri":"urn:m","id":"urn:m","name":"a","weight":1.50,"tags":[],"motor":{{"uri":"{motor}","power":2}},"parts":[]}}"#
            )
        );
        assert_eq!(trial.answer.objects[1].uri, "http://x/Machine/1", "no counter has moved");
        assert_eq!(trial.answer.objects[1].status, Status::Created);
    }
    assert_eq!((world.quads(), world.store.stats().sequence), (quads, sequence));
    assert_eq!(world.add(r#"{"name": "b"}"#).objects[0].uri, "http://x/Machine/1");
}

#[test]
fn what_does_not_fit_is_told_as_an_ingestion_would() {
    let world = World::with(machine(), Generator::Manual);
    let fault =
        tried(&world, r#"{"uri": "urn:m", "name": 1}, {"uri": "urn:n", "wight": 1}"#).unwrap_err();
    assert_eq!((fault.kind, fault.errors.len()), (Kind::Invalid, 2));
    assert_eq!(tried(&world, r#"{"name": "a"}"#).unwrap_err().kind, Kind::Invalid);
}
