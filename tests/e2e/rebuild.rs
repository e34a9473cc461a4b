//! A lost index is rebuilt at the start. Meanwhile every route answers 503 with the progress.
use oxrdf::{GraphName, Literal, NamedNode, Quad};
use penstock_store::{Error, Options, Store};
use penstock_test_support::prelude::*;

const FRAMES: u64 = 60;

#[test]
fn requests_get_503_with_the_progress_while_the_index_is_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("data/store");
    let store = Store::open(&folder, Options::default(), &mut |_| {}).unwrap();
    let iri = |name: String| NamedNode::new(format!("https://rebuild.example/{name}")).unwrap();
    for frame in 0..FRAMES {
        store
            .transact::<_, Error>(|change| {
                for n in 0..500 {
                    let text = Literal::from(format!("a value, {frame} {n}"));
                    let (subject, predicate) = (iri(format!("{frame}/{n}")), iri("p".to_owned()));
                    let quad = Quad::new(subject, predicate, text, GraphName::DefaultGraph);
                    change.insert(quad.as_ref())?;
                }
                Ok(())
            })
            .unwrap();
    }
    drop(store);
    std::fs::remove_dir_all(folder.join("index")).unwrap();

    // The server prints its address only when it is ready.
    let server = TestProcess::start_without_waiting(dir.path(), &["--service.data-dir=data"]);
    let client = server.client;
    let mut details = Vec::new();
    let end = Instant::now() + TEST_TIMEOUT;
    for path in ["/api/v1/status", "/api/v1/business-objects", "/health/ready"].iter().cycle() {
        assert!(Instant::now() < end, "it does not become ready");
        let Ok(answer) = client.send("GET", path, &[], "") else { continue };
        // The server is ready, or requires credentials.
        if matches!(answer.status, 200 | 401) {
            break;
        }
        let retry = answer.headers.get("retry-after").cloned();
        let detail = answer.expect(503).json()["detail"].string();
        assert!(retry.is_some(), "{path}: {detail}");
        details.push(detail);
    }
    let progress = format!("of {FRAMES} journal frames replayed");
    assert!(details.iter().any(|detail| detail.contains(&progress)), "{details:?}");
    let client = client.with_key(admin_key(dir.path(), "--service.data-dir=data"));
    let quads = client.read("/api/v1/status")["store"]["quads"].as_u64();
    assert_eq!(quads, Some(FRAMES * 500));
    let log = server.kill();
    assert!(log.contains("Replaying the journal"), "{log}");
}
