//! Tests the forms of entity tags with a server that has one object.
use super::*;
use crate::DeliveryTimings;
use crate::record::Record;
use crate::s3::request::RequestBody;
use crate::s3::small::{Precondition, Replaced};
use parking_lot::Mutex;
use penstock_config::{Compression, TargetKind};
use penstock_resources::export::{Cause, Export};
use serde_json::{from_value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// The entity tag of the object.
const TAG: &str = "\"0123\"";
const BARE_TAG: &str = "0123";

/// `If-Match` of each PUT.
type Sent = Arc<Mutex<Vec<Option<String>>>>;

/// Starts a server that accepts a PUT with this `If-Match`, or without one if it is `None`. Its threads end with the
/// process.
fn start(accepted: Option<&'static str>) -> (Bucket, Sent) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let sent = Sent::default();
    let serving = Arc::clone(&sent);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sent = Arc::clone(&serving);
            std::thread::spawn(move || while answer_request(&stream, accepted, &sent) {});
        }
    });
    let target = TargetKind::S3 {
        endpoint,
        region: "default".to_owned(),
        bucket: None,
        access_key_id: "key".to_owned(),
        secret_access_key: "secret".to_owned(),
        path_style: true,
        ca_file: None,
        compression: Compression::None,
    };
    (Bucket::open(&target, "vault", "edge-1", &DeliveryTimings::default()).unwrap(), sent)
}

/// Answers one request. Returns false at the end of the connection. The client sends the next one after the answer, so
/// no byte of it is in the buffer.
fn answer_request(mut stream: &TcpStream, accepted: Option<&str>, sent: &Sent) -> bool {
    let mut reader = BufReader::new(stream);
    let mut lines: Vec<String> = Vec::new();
    while lines.last().is_none_or(|line| !line.is_empty()) {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or_default() == 0 {
            return false;
        }
        lines.push(line.trim_end().to_ascii_lowercase());
    }
    let header = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name));
    let length = header("content-length: ").map_or(0, |length| length.parse().unwrap());
    reader.read_exact(&mut vec![0; length]).unwrap();
    let mut status = "200 OK";
    if lines[0].starts_with("put ") {
        let tag = header("if-match: ");
        sent.lock().push(tag.map(str::to_owned));
        if tag != accepted {
            status = "412 Precondition Failed";
        }
    }
    let answer = format!("HTTP/1.1 {status}\r\nETag: {TAG}\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(answer.as_bytes()).is_ok()
}

fn tags(sent: &Sent) -> Vec<Option<String>> {
    std::mem::take(&mut *sent.lock())
}

fn some(tags: &[&str]) -> Vec<Option<String>> {
    tags.iter().map(|tag| Some((*tag).to_owned())).collect()
}

fn entry() -> Export {
    let entry = json!({
        "id": "backup-1", "businessObject": "", "businessObjectName": "", "target": "vault", "sequence": 1,
        "kind": "full", "status": "delivering", "objectCount": 0, "bytes": 2, "dataChecksum": "", "sha256": "",
        "key": "a", "createdAt": "",
    });
    from_value::<Record>(json!({ "entry": entry, "place": 1, "kept": true })).unwrap().entry
}

async fn put_small(bucket: &Bucket) -> Result<Replaced, DeliveryFailure> {
    bucket.put_small("head.json", "{}", &Precondition::Unchanged(TAG.to_owned())).await
}

async fn put_object(bucket: &Bucket) -> bool {
    let body = || RequestBody::Text("{}".to_owned());
    bucket.put_object(&entry(), None, body, Overwrite::Tagged(TAG)).await.unwrap()
}

#[tokio::test]
async fn the_form_of_a_tag_that_the_server_accepts_is_found_and_remembered() {
    let stored = Replaced::Stored(Some(TAG.to_owned()));
    let (bucket, sent) = start(Some(BARE_TAG));
    assert_eq!(put_small(&bucket).await, Ok(stored.clone()));
    assert_eq!(put_small(&bucket).await, Ok(stored.clone()));
    assert_eq!(tags(&sent), some(&[TAG, BARE_TAG, BARE_TAG]));
    let (bucket, sent) = start(Some(BARE_TAG));
    assert!(put_object(&bucket).await && put_object(&bucket).await);
    assert_eq!(tags(&sent), some(&[TAG, BARE_TAG, BARE_TAG]));
    // The other way round, after an upgrade of the server.
    let (bucket, sent) = start(Some(TAG));
    bucket.compares_bare_tags.store(true, Ordering::Relaxed);
    assert_eq!(put_small(&bucket).await, Ok(stored));
    assert!(put_object(&bucket).await);
    assert_eq!(tags(&sent), some(&[BARE_TAG, TAG, TAG]));
}

#[tokio::test]
async fn a_server_that_refuses_both_forms_keeps_its_head_but_gets_other_objects() {
    let (bucket, sent) = start(None);
    for _ in 0..2 {
        let failure = put_small(&bucket).await.unwrap_err();
        assert!(failure.class == Cause::Busy && failure.cause.contains("If-Match"), "{failure:?}");
        assert_eq!(tags(&sent), some(&[TAG, BARE_TAG]));
    }
    assert!(put_object(&bucket).await);
    assert_eq!(tags(&sent), [some(&[TAG, BARE_TAG]), vec![None]].concat());
}
