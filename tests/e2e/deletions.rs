//! A Business Object is deleted with its objects, however often the process is killed meanwhile.
use penstock_test_support::prelude::*;

const DATA: &str = "--service.data-dir=data";
const ALL: &str = "/api/v1/business-objects";
const CONFIG: &str = include_str!("deletions.yaml");

#[test]
fn a_deletion_with_objects_ends_after_any_number_of_kills() {
    let dir = tempfile::tempdir().unwrap();
    let server = TestProcess::start(dir.path(), &[DATA]);
    let client = server.client;
    client.put(ALL, &json!({"name": "Pump", "config": CONFIG})).expect(201);
    let condition =
        json!({"predicate": "https://plant.example/kind", "value": "https://plant.example/hot"});
    let hot = json!({"name": "Hot", "config": CONFIG, "conditions": [condition]});
    client.put(ALL, &hot).expect(201);
    for chunk in 0..4 {
        let objects = (0..1000).map(|number| {
            let number = chunk * 1000 + number;
            let mut pump = json!({
                "uri": format!("urn:pump:{number}"), "name": "Feed pump",
                "parts": [{"uri": format!("urn:part:{number}"), "code": "seal"}],
            });
            if number % 100 == 0 {
                pump["kind"] = json!("https://plant.example/hot");
            }
            pump
        });
        let body = json!({ "data": objects.collect::<Vec<Value>>() }).to_string();
        client.post(&format!("{ALL}/Pump"), body).expect(200);
    }
    let delete = |parameters: &str| {
        let path = format!("{ALL}/Pump?data=true{parameters}");
        client.send("DELETE", &path, &[], "").unwrap()
    };
    assert_eq!(delete("&dryRun=true").expect(200).json(), json!({"objects": 3960, "kept": 40}));
    delete("").expect(202);
    server.kill();

    let mut server = TestProcess::start(dir.path(), &[DATA]);
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(rand::random_range(0..150)));
        server.kill();
        server = TestProcess::start(dir.path(), &[DATA]);
    }
    let client = server.client;
    wait_for("the Business Object is gone", || {
        let answer = client.get(&format!("{ALL}/Pump"));
        if answer.status == 200 {
            assert!(answer.json()["deleting"]["remaining"].is_u64());
        }
        answer.status == 404
    });
    let left = client.read(&format!("{ALL}/Hot/objects?limit=1000"));
    assert_eq!(left["items"].list().len(), 40);
    server.stop();
    // The kept pumps with their parts: name, kind, part and code.
    assert_eq!(quads(&dir.path().join("data")).0.len(), 160);
}
