//! A blocked target reports its cause, and no export is lost. Deliveries continue automatically once the cause is
//! fixed: no test here requests a retry.
#![expect(clippy::unwrap_used, reason = "a failing test ends immediately")]

use penstock_test_support::exports::prelude::*;
use std::io::{BufRead as _, BufReader};
use std::process::Child;

/// Checks that a target is blocked until `fix` has run, and that the bucket then has both exports.
async fn blocked_until<M: Future<Output = ()>>(
    server: &Server,
    bucket: &str,
    targets: Targets,
    (class, words): (Cause, &str),
    fix: impl FnOnce() -> M,
) {
    let entries = delivered_after(targets, class, words, fix).await;
    server.check(bucket, &entries).await;
}

/// Creates a plant with two exports to these targets. Checks that a failure of this class blocks the first one until
/// `fix` has run, and that both are delivered then.
async fn delivered_after<M: Future<Output = ()>>(
    targets: Targets,
    class: Cause,
    words: &str,
    fix: impl FnOnce() -> M,
) -> [Export; 2] {
    let plant = Plant::with_pumps(0..2, 10);
    let exporter = plant.quick(targets);
    let pumps = pump("Pump", &["plant-a"]);
    let entries = [push_one(&exporter, &pumps), push_one(&exporter, &pumps)];
    let running = run(&exporter);
    blocked(&exporter, &entries[0], class, words).await;
    assert_eq!(status_of(&exporter, &entries[1]), ExportStatus::Queued);
    // The test of a target writes nothing, so it cannot detect an error that only affects writes.
    let result = exporter.test_target("plant-a").await.unwrap();
    if matches!(class, Cause::Bucket | Cause::Credentials | Cause::Certificate) {
        assert!(!result.ok && result.caused_by == Some(class), "{result:?}");
    }
    fix().await;
    until_delivered(&exporter, &entries[1]).await;
    let result = exporter.test_target("plant-a").await.unwrap();
    assert!(result.ok && result.caused_by.is_none(), "{result:?}");
    running.stop().await;
    let target = find_target(&exporter, "plant-a");
    assert!(target.blocked.is_none() && target.attempts == 0 && target.depth == 0, "{target:?}");
    entries
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_bucket() {
    let (server, bucket) = (ceph(), new_name());
    let targets = server.target(&bucket);
    let fix = || server.create(&bucket);
    blocked_until(&server, &bucket, targets, (Cause::Bucket, "does not exist"), fix).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_bucket_of_swift() {
    let (server, bucket) = (swift(), new_name());
    let targets = server.target(&bucket);
    let fix = || server.create(&bucket);
    blocked_until(&server, &bucket, targets, (Cause::Bucket, "does not exist"), fix).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_policy_and_a_write_only_policy() {
    let (server, bucket) = (ceph(), new_name());
    server.create(&bucket).await;
    let (id, user) = Server::user();
    let write = ["s3:PutObject"];
    let fix = || server.allow(&bucket, &id, &write);
    let entries = delivered_after(user.target(&bucket), Cause::Policy, "may not write", fix).await;
    server.allow(&bucket, &id, &["s3:PutObject", "s3:GetObject", "s3:ListBucketVersions"]).await;
    user.check(&bucket, &entries).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exceeded_quota() {
    let bucket = new_name();
    let (id, user) = Server::user();
    user.create(&bucket).await;
    let uid = format!("--uid={id}");
    admin(&["quota", "set", &uid, "--quota-scope=user", "--max-objects=0"]);
    admin(&["quota", "enable", &uid, "--quota-scope=user"]);
    let fix = || async { admin(&["quota", "disable", &uid, "--quota-scope=user"]) };
    blocked_until(&user, &bucket, user.target(&bucket), (Cause::Quota, "quota"), fix).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_user() {
    let bucket = new_name();
    let (id, user) = Server::user();
    user.create(&bucket).await;
    let uid = format!("--uid={id}");
    admin(&["user", "suspend", &uid]);
    let (targets, class) = (user.target(&bucket), Cause::Credentials);
    let fix = || async { admin(&["user", "enable", &uid]) };
    blocked_until(&user, &bucket, targets, (class, "UserSuspended"), fix).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_changes() {
    let bucket = new_name();
    let (id, user) = Server::user();
    user.create(&bucket).await;
    let key = format!("--access-key={}", user.key);
    let uid = format!("--uid={id}");
    admin(&["key", "create", &uid, &key, "--secret-key=ANOTHERSECRET"]);
    let (targets, class) = (user.target(&bucket), Cause::Credentials);
    let fix = || async { admin(&["key", "create", &uid, &key, "--secret-key=SECRET"]) };
    blocked_until(&user, &bucket, targets, (class, "`secret-access-key`"), fix).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_to_slow_down_and_a_broken_link() {
    let server = ceph();
    for (fault, class, words) in [
        (Fault::SlowDown, Cause::Busy, "503"),
        (Fault::Refuse(100_000), Cause::Unreachable, "refused"),
        (Fault::Blackhole, Cause::Broken, "sent no answer"),
    ] {
        let bucket = new_name();
        server.create(&bucket).await;
        let link = Link::to(&server.endpoint, move || fault).await;
        let targets = server.at(&link.endpoint).target(&bucket);
        blocked_until(&server, &bucket, targets, (class, words), || async {
            link.set(Fault::Pass);
            link.listen().await;
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_host_name() {
    let server = ceph();
    let plant = Plant::with_pumps(0..1, 10);
    let exporter = plant.quick(server.at("http://no-such-host.invalid").target("plant"));
    let entry = push_pump(&exporter);
    let running = run(&exporter);
    blocked(&exporter, &entry, Cause::Unreachable, "cannot be resolved").await;
    running.stop().await;
}

/// An `openssl s_server`, killed on drop.
struct Tls(Child, String);

impl Drop for Tls {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a TLS server on `localhost` with a certificate for `name` that is valid in this period.
fn start_tls_server(dir: &Path, from: &str, to: &str, name: &str) -> Tls {
    let openssl = |arguments: &str| {
        Command::new("openssl").args(arguments.split(' ')).current_dir(dir).succeed();
    };
    let config = format!(
        "[ca]\ndefault_ca=d\n[d]\ndatabase=index\nserial=serial\npolicy=p\nx509_extensions=x\n[p]\n\
         commonName=supplied\n[x]\nsubjectAltName=DNS:{name}\n"
    );
    std::fs::write(dir.join("config"), config).unwrap();
    std::fs::write(dir.join("index"), "").unwrap();
    std::fs::write(dir.join("serial"), "01").unwrap();
    openssl(
        "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out request.csr -subj /CN=x",
    );
    openssl(&format!(
        "ca -batch -selfsign -in request.csr -keyfile key.pem -startdate {from} -enddate {to} -md sha256 -notext \
         -out certificate.pem -outdir . -config config"
    ));
    let mut child = Command::new("openssl")
        .args("s_server -accept 127.0.0.1:0 -cert certificate.pem -key key.pem".split(' '))
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let port = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.strip_prefix("ACCEPT ")?.rsplit(':').next()?.to_owned()));
    Tls(child, format!("https://localhost:{}", port.unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_expired_is_not_valid_yet_or_is_for_another_name() {
    let server = ceph();
    for (from, to, name, words) in [
        ("20200101000000Z", "20210101000000Z", "localhost", "has expired"),
        ("20900101000000Z", "20910101000000Z", "localhost", "not valid yet"),
        ("20200101000000Z", "20910101000000Z", "elsewhere.example", "another name"),
    ] {
        let plant = Plant::with_pumps(0..1, 10);
        let tls = start_tls_server(plant.dir.path(), from, to, name);
        let mut targets = server.at(&tls.1).target("plant");
        trust(&mut targets, &plant.dir.path().join("certificate.pem"));
        let exporter = plant.quick(targets);
        let entry = push_pump(&exporter);
        let running = run(&exporter);
        blocked(&exporter, &entry, Cause::Certificate, words).await;
        running.stop().await;
    }
}

/// Pushes once to a bucket with an object under the key, which blocks the delivery until the object is removed.
async fn blocks_until_the_object_is_removed(
    server: &Server,
    bucket: &str,
    more: &[(&'static str, &str)],
    words: &str,
) {
    let plant = Plant::with_pumps(0..1, 10);
    let exporter = plant.quick(server.target(bucket));
    let entry = push_pump(&exporter);
    server.put(bucket, &entry.key, "theirs", more).await;
    let running = run(&exporter);
    blocked(&exporter, &entry, Cause::Conflict, words).await;
    let (_, body) = server.object(bucket, &entry.key).await;
    assert_eq!(body, b"theirs");
    // The owner of the foreign object removes it.
    server.delete(bucket, &entry.key).await;
    until_delivered(&exporter, &entry).await;
    running.stop().await;
    let (_, body) = server.object(bucket, &entry.key).await;
    assert_eq!(body.len() as u64, entry.bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_another_gateway_is_never_overwritten() {
    for server in [ceph(), swift()] {
        let bucket = new_name();
        server.create_plain(&bucket).await;
        let theirs = [("x-amz-meta-export-id", "other"), ("x-amz-meta-gateway-id", "gateway-2")];
        blocks_until_the_object_is_removed(&server, &bucket, &theirs, "gateway `gateway-2`").await;
        blocks_until_the_object_is_removed(&server, &bucket, &[], "no gateway put there").await;
    }
}

fn open_gateway(plant: &Plant, id: &str, targets: Targets) -> Exporter {
    let options =
        ExportOptions { gateway_id: id.to_owned(), timings: quick(), ..plant.options(targets) };
    Exporter::open(plant.store.clone(), options).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_share_a_bucket_by_their_prefixes() {
    let (server, bucket) = (ceph(), new_name());
    server.create(&bucket).await;
    let mut entries = Vec::new();
    for id in ["gateway-1", "gateway-2"] {
        let plant = Plant::with_pumps(0..1, 10);
        let mut targets = server.target(&bucket);
        targets.named.get_mut("plant-a").unwrap().prefix = format!("{id}/");
        let exporter = open_gateway(&plant, id, targets);
        let running = run(&exporter);
        for _ in 0..3 {
            let entry = push_pump(&exporter);
            entries.push(until_delivered(&exporter, &entry).await);
        }
        running.stop().await;
    }
    let sequences: Vec<u64> = entries.iter().map(|entry| entry.sequence).collect();
    assert_eq!(sequences, [1, 2, 3, 1, 2, 3]);
    server.check(&bucket, &entries).await;
}

/// Creates a bucket into which this user may only put objects. Ceph ignores `If-None-Match` in a versioned
/// bucket.
async fn create_write_only_bucket(server: &Server, user: &str) -> String {
    let bucket = new_name();
    server.create_plain(&bucket).await;
    server.allow(&bucket, user, &["s3:PutObject"]).await;
    bucket
}

/// With write-only credentials, a lost answer causes neither a duplicate nor an endless wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_with_write_only_credentials() {
    let server = ceph();
    let (id, user) = Server::user();
    // An attempt sends HEAD, PUT and HEAD, and after a failure the gateway probes the server. The link denies each
    // HEAD of an object, and loses the answer to the PUT or to the HEAD after it.
    for (lost, heads) in [(2, [1, 4, 6]), (3, [1, 5, 7])] {
        let bucket = create_write_only_bucket(&server, &id).await;
        let mut requests = 0;
        let link = Link::to(&server.endpoint, move || {
            requests += 1;
            match requests {
                n if n == lost => Fault::DropAnswer,
                n if heads.contains(&n) => Fault::Deny,
                _ => Fault::Pass,
            }
        })
        .await;
        let plant = Plant::with_pumps(0..1, 10);
        let exporter = plant.quick(user.at(&link.endpoint).target(&bucket));
        let running = run(&exporter);
        let first = push_pump(&exporter);
        let first = until_delivered(&exporter, &first).await;
        assert_eq!(first.attempts, 2, "{lost}");
        let keys = server.keys(&bucket).await;
        assert_eq!(keys.iter().filter(|key| **key == first.key).count(), 1);
        running.stop().await;
    }
    let bucket = create_write_only_bucket(&server, &id).await;
    let plant = Plant::with_pumps(0..1, 10);
    let exporter = plant.quick(user.target(&bucket));
    let running = run(&exporter);
    // A foreign object does not count as this export.
    let second = push_pump(&exporter);
    until_delivered(&exporter, &second).await;
    running.stop().await;
    let third = push_pump(&exporter);
    server.put(&bucket, &third.key, "theirs", &[]).await;
    let running = run(&exporter);
    blocked(&exporter, &third, Cause::Conflict, "may not read").await;
    running.stop().await;
    user.object(&bucket, &second.key).await;
}

/// With write-only credentials, the metadata that an attempt stored does not block the next attempt.
#[tokio::test(flavor = "multi_thread")]
async fn lines_follow_their_metadata_with_write_only_credentials() {
    let server = ceph();
    let (id, user) = Server::user();
    let bucket = create_write_only_bucket(&server, &id).await;
    // An attempt sends HEAD for the lines, HEAD, PUT and HEAD for the metadata, and then PUT and HEAD for the lines. The
    // link denies each HEAD, and is too busy for the first PUT of the lines.
    let mut requests = 0;
    let link = Link::to(&server.endpoint, move || {
        requests += 1;
        match requests {
            1 | 2 | 4 | 6 | 7 | 9 | 11 => Fault::Deny,
            5 => Fault::SlowDown,
            _ => Fault::Pass,
        }
    })
    .await;
    let plant = Plant::with_pumps(0..1, 10);
    let exporter = plant.quick(user.at(&link.endpoint).lines_target(&bucket));
    let entry = push_pump(&exporter);
    let entry = run_until_delivered(&exporter, &entry).await;
    assert_eq!(entry.attempts, 2);
    server.allow(&bucket, &id, &["s3:PutObject", "s3:GetObject", "s3:ListBucketVersions"]).await;
    user.check(&bucket, &[entry]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_metadata_is_sent_before_its_lines_can_be_sent() {
    let (server, bucket) = (ceph(), new_name());
    server.create_plain(&bucket).await;
    for is_foreign in [false, true] {
        let plant = Plant::with_pumps(0..1, 10);
        let exporter = plant.quick(server.lines_target(&bucket));
        let entry = push_pump(&exporter);
        let spooled = exporter.spool_folder().join(format!("{}.json", entry.id));
        let lines = std::fs::read(&spooled).unwrap();
        if is_foreign {
            server.put(&bucket, &entry.key, "theirs", &[]).await;
        } else {
            std::fs::write(&spooled, "damaged").unwrap();
        }
        let running = run(&exporter);
        until_status(&exporter, &entry.id, ExportStatus::Blocked).await;
        let metadata = entry.metadata_key().unwrap();
        assert!(!server.keys(&bucket).await.contains(&metadata), "{is_foreign}");
        // Deleting after the cause is removed could delete what was just delivered.
        if is_foreign {
            server.delete(&bucket, &entry.key).await;
        } else {
            std::fs::write(&spooled, lines).unwrap();
        }
        let entry = until_delivered(&exporter, &entry).await;
        running.stop().await;
        server.check(&bucket, &[entry]).await;
        for key in server.keys(&bucket).await {
            server.delete(&bucket, &key).await;
        }
    }
}

/// With write-only credentials, the gateway cannot see whose object exists. It must not assume that the failed attempt
/// stored it.
#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_object_does_not_count_as_delivered_after_an_attempt_that_reached_no_server() {
    let server = ceph();
    let (id, user) = Server::user();
    let bucket = create_write_only_bucket(&server, &id).await;
    let link = Link::to(&server.endpoint, || Fault::Pass).await;
    let plant = Plant::with_pumps(0..1, 10);
    let exporter = plant.quick(user.at(&link.endpoint).target(&bucket));
    link.set(Fault::Refuse(u64::MAX));
    let entry = push_pump(&exporter);
    let running = run(&exporter);
    blocked(&exporter, &entry, Cause::Unreachable, "refused").await;
    server.put(&bucket, &entry.key, "theirs", &[]).await;
    link.set(Fault::Pass);
    link.listen().await;
    blocked(&exporter, &entry, Cause::Conflict, "may not read").await;
    let (_, body) = server.object(&bucket, &entry.key).await;
    assert_eq!(body, b"theirs");
    server.delete(&bucket, &entry.key).await;
    until_delivered(&exporter, &entry).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_another_gateway_in_the_directory_is_never_overwritten() {
    let plant = Plant::with_pumps(0..1, 10);
    let exporter = plant.quick(embedded());
    let entry = push_pump(&exporter);
    let path = plant.bucket("plant-a").join(&entry.key);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "theirs").unwrap();
    let running = run(&exporter);
    blocked(&exporter, &entry, Cause::Conflict, "not overwritten").await;
    assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
    std::fs::remove_file(&path).unwrap();
    until_delivered(&exporter, &entry).await;
    running.stop().await;
}
