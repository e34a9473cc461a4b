//! Dry runs of sample data.
use super::*;
use crate::ingest::{BodyForm, DryRun, dry_run_ingestion};

fn dry_run(fixture: &Fixture, data: &str) -> Result<DryRun, GatewayError> {
    let catalogue = Catalogue::open(fixture.store.clone(), catalogue_settings()).unwrap();
    let body = format!("{{\"data\": [{data}]}}");
    let dry_run = catalogue.dry_run(&fixture.business_object, |transaction| {
        dry_run_ingestion(
            transaction,
            &fixture.limits,
            &fixture.business_object,
            BodyForm::Data,
            Body::Json(body.as_bytes()),
        )
    });
    dry_run.map(|(result, _)| result)
}

#[test]
fn a_dry_run_shows_what_would_be_stored_and_stores_nothing() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:m", "name": "a"}"#);
    let (quads, sequence) = (fixture.quads(), fixture.store.stats().sequence);
    let data = r#"{"uri": "urn:m", "weight": 1.50, "motor": {"power": 2}}, {"tags": ["x"]}"#;
    for _ in 0..2 {
        let result = dry_run(&fixture, data).unwrap();
        let added: Vec<String> = result.added.iter().map(ToString::to_string).collect();
        assert_eq!(added.len(), 4, "{added:?}");
        assert!(added.iter().any(|quad| quad.contains("1.50")), "{added:?}");
        assert!(
            !added.iter().any(|quad| quad.contains("\"a\"")),
            "existing quads are not listed: {added:?}"
        );
        let views: Vec<_> =
            result.views.iter().map(|view| String::from_utf8(view.json.clone()).unwrap()).collect();
        let motor = &result.answer.objects[0].nested[0].uri;
        assert_eq!(
            views[0],
            format!(
                r#"{{"uri":"urn:m","id":"urn:m","name":"a","weight":1.50,"tags":[],"motor":{{"uri":"{motor}","power":2}},"parts":[]}}"#
            )
        );
        assert_eq!(
            result.answer.objects[1].uri, "http://x/Machine/1",
            "the counter has not changed"
        );
        assert_eq!(result.answer.objects[1].status, IngestedStatus::Created);
    }
    assert_eq!((fixture.quads(), fixture.store.stats().sequence), (quads, sequence));
    assert_eq!(fixture.add(r#"{"name": "b"}"#).objects[0].uri, "http://x/Machine/1");
}

#[test]
fn a_dry_run_reports_errors_like_an_ingestion() {
    let fixture = Fixture::with_generator(machine(), Generator::Manual);
    let error = dry_run(&fixture, r#"{"uri": "urn:m", "name": 1}, {"uri": "urn:n", "wight": 1}"#)
        .unwrap_err();
    assert_eq!((error.class, error.findings.len()), (ErrorClass::Invalid, 2));
    assert_eq!(dry_run(&fixture, r#"{"name": "a"}"#).unwrap_err().class, ErrorClass::Invalid);
}
