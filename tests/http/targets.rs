//! A test of a target, which reports obstacles and writes nothing, what an operator should know of a target, and the pages
//! of lists that come from the configuration.
use penstock_test_support::prelude::*;
use penstock_test_support::receiver::SECRET;
use penstock_test_support::stub::{answer_with, serve};

#[tokio::test(flavor = "multi_thread")]
async fn a_test_of_a_target_writes_no_data() {
    // No server listens at the second one.
    let away = s3_settings("away", "http://127.0.0.1:9", "a-secret-of-the-target");
    let archive = ["--service.export.targets.archive.type=directory"];
    let server = TestApp::start(&[&archive[..], &lent(&away)].concat()).await;
    let test = async |name: &str| server.post_empty(&format!("/api/v1/targets/{name}/test")).await;

    let found = test("archive").await.expect(200).json();
    found.includes(&json!({
        "target": "archive", "type": "directory", "ok": true, "reachable": true, "causedBy": null,
    }));
    assert!(found["cause"].has("does not exist yet"), "{found}");

    let found = test("away").await.expect(200).json();
    found.includes(&json!({"ok": false, "reachable": false, "causedBy": "unreachable"}));
    assert!(found["cause"].has("127.0.0.1:9"), "{found}");
    assert!(!found.to_string().contains("a-secret-of-the-target"));

    test("nowhere").await.refused(404, "has no target");
    test("Not%20a%20bucket").await.problem(404);

    // There is a file instead of the directory.
    let buckets = server.dir().join("data/buckets");
    assert!(!buckets.exists());
    std::fs::write(&buckets, "").unwrap();
    let found = test("archive").await.expect(200).json();
    assert_eq!((&found["ok"], &found["causedBy"]), (&false.into(), &"gateway".into()));
    // The export queue is not changed.
    let targets = server.items("/api/v1/targets").await;
    assert!(targets.iter().all(|target| target["reachable"].is_null()));

    // A delivery says the same.
    let cause = found["cause"].string();
    assert!(cause.contains(&format!("is a file: {}; remove it", buckets.display())), "{cause}");
    server.define_with(&json!({"pushTargets": [{"bucketName": "archive"}]})).await;
    server.ingest("ADD", &json!([{"name": "P-1"}])).await.expect(200);
    server.post_empty("/api/v1/business-objects/Pump/push").await.expect(202);
    let archive = async || {
        let targets = server.items("/api/v1/targets").await;
        targets.into_iter().find(|target| target["name"] == "archive").unwrap()
    };
    until("the target is blocked", async || !archive().await["blocked"].is_null()).await;
    archive().await.includes(&json!({"blocked": cause, "blockedBy": "gateway"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_without_queries_has_a_remark_wherever_its_target_is_shown() {
    // A SPARQL store that accepts updates and allows no queries.
    let address = serve(|request| {
        let status = if request.method == "POST" { "204 No Content" } else { "403 Forbidden" };
        Some(answer_with(status, "Connection: close\r\n", ""))
    });
    let target = "--service.export.targets.central";
    let server = TestApp::start(&[
        &format!("{target}.type=sparql"),
        &format!("{target}.endpoint=http://{address}/update"),
    ])
    .await;
    let list = async || server.items("/api/v1/targets").await.swap_remove(0);
    let target = list().await;
    target.includes(&json!({"name": "central", "type": "sparql", "remark": null}));
    let words = "the store does not answer queries";
    for path in ["/admin/targets", "/admin/targets/central"] {
        assert!(!server.page(path).await.contains(words), "{path}");
    }

    server.define_with(&json!({"pushTargets": [{"bucketName": "central"}]})).await;
    server.ingest("ADD", &json!([{"name": "P-1"}])).await.expect(200);
    server.push("Pump").await;
    let target = until_some("the target has got an export", async || {
        Some(list().await).filter(|target| target["lastDelivery"].is_string())
    })
    .await;
    let remark = target["remark"].text();
    assert!(remark.starts_with(words), "{target}");
    let query = json!({"query": "{ targets { name remark } }"});
    let found = server.post("/graphql", &query).await.expect(200).json();
    assert_eq!(found["data"]["targets"], json!([{"name": "central", "remark": remark}]));
    for path in ["/admin/targets", "/admin/targets/central"] {
        let page = server.page(path).await;
        assert!(page.contains(remark), "{path}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_whose_keys_do_not_tell_the_kind_has_a_warning() {
    let target = |setting: &str| format!("--service.export.targets.{setting}");
    let settings = [
        target("plant.type=directory"),
        target("plant.key={prefix}{name}/{sequence}.json"),
        target("site.type=directory"),
    ];
    let server = TestApp::start(&lent(&settings)).await;
    let targets = server.items("/api/v1/targets").await;
    targets[0].includes(&json!({"name": "plant"}));
    targets[1].includes(&json!({"name": "site", "warnings": []}));
    let message = targets[0]["warnings"][0]["message"].text();
    let words = "{prefix}{name}/{sequence}.json has neither {kind} nor {suffix}";
    assert!(message.contains(words), "{message}");
    let query = json!({"query": "{ targets { warnings { message } } }"});
    let found = server.post("/graphql", &query).await.expect(200).json();
    let expected = json!([{"warnings": [{"message": message}]}, {"warnings": []}]);
    assert_eq!(found["data"]["targets"], expected);
    let page = server.page("/admin/targets/plant").await;
    assert!(page.contains(words), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lists_of_what_is_configured_are_paged_too() {
    let mut settings = Vec::new();
    for name in ["c-1", "a-1", "b-1"] {
        let of = |kind: &str, setting: &str| format!("--service.{kind}.{name}.{setting}");
        settings.extend([
            of("export.targets", "type=directory"),
            of("sources", "type=mqtt"),
            of("sources", "url=mqtt://127.0.0.1:9"),
            of("sources", "subscriptions[0].topic=plant/#"),
            of("sources", "subscriptions[0].business-object=Pump"),
            of("webhooks", "url=http://127.0.0.1:9/hook"),
            of("webhooks", &format!("secret={SECRET}")),
            of("webhooks", "events=penstock.ingestion.committed"),
        ]);
    }
    let server = TestApp::start(&lent(&settings)).await;
    for list in ["targets", "sources", "webhooks"] {
        let path = format!("/api/v1/{list}");
        let items = server.all(&format!("{path}?limit=2"), 2).await;
        let names: Vec<&str> = items.iter().map(|item| item["name"].text()).collect();
        assert_eq!(names, ["a-1", "b-1", "c-1"], "{list}");
        assert_eq!(server.items(&path).await.len(), 3, "{list}");
        for bad in ["limit=0", "cursor=zz", "other=1"] {
            server.get(&format!("{path}?{bad}")).await.problem(400);
        }
    }
}
