//! Dead letters survive SIGKILL and are in backups. A retry that was acknowledged is never undone.
use crate::define_notes;
use penstock_test_support::prelude::*;

#[test]
fn dead_letters_and_their_retries_survive_kills_and_restores() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let data = "--service.data-dir=data";
    let server = TestProcess::start(dir, &[data]);
    admin_key(dir, data);
    let client = server.client;
    define_notes(client, &json!([]));
    let body = json!({"data": [{"text": "kept"}, {"text": 1}, {"text": 2}]}).to_string();
    let answer = client.post("/api/v1/business-objects/Notes?onError=skip", body);
    let answer = answer.expect(200).json();
    let list = format!("/api/v1/ingestions/{}/rejected", answer["ingestionId"].text());
    let letter = |n: usize| format!("{list}/{}", answer["rejected"][n]["id"].text());
    server.kill();

    let server = TestProcess::start(dir, &[data]);
    let client = server.client;
    assert_eq!(lines(&client.get(&list).expect(200).text()).len(), 2);
    penstock(dir).args(["backup", "monday", data]).succeed();
    let corrected = json!({"text": "corrected"}).to_string();
    client.post(&format!("{}/retry", letter(0)), corrected).expect(200);
    server.kill();

    let server = TestProcess::start(dir, &[data]);
    let client = server.client;
    let left = lines(&client.get(&list).expect(200).text());
    assert_eq!((left.len(), &left[0]["text"]), (1, &json!("{\"text\":2}")));
    let retry = format!("{}/retry", letter(0));
    client.post(&retry, json!({"text": "again"}).to_string()).expect(404);
    let objects = client.read("/api/v1/business-objects/Notes/objects");
    assert_eq!(objects["items"].list().len(), 2);
    server.stop();

    let restored = "--service.data-dir=restored";
    penstock(dir).args(["restore", "monday", restored]).succeed();
    let server = TestProcess::start(dir, &[restored]);
    let client = server.client;
    assert_eq!(lines(&client.get(&list).expect(200).text()).len(), 2);
    server.stop();
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
