//! No secret leaves the gateway: the tests search for planted secrets in everything that it answers and writes.
use penstock_test_support::prelude::*;
use std::os::unix::fs::PermissionsExt;

const DATA: &str = "--service.data-dir=data";
/// The text that all planted secrets contain.
const PLANTED: &str = "PLANTED";
const CLIENT_SECRET: &str = "PLANTED-client-secret-4f1c";
const S3_SECRET: &str = "PLANTED-s3-secret-77ab";
const CONFIGURATION: &str = include_str!("secrets.yaml");

/// The collected texts, each with the place where it was found.
#[derive(Default)]
struct Seen(Vec<(String, String)>);

impl Seen {
    fn note(&mut self, place: &str, text: impl Into<String>) {
        self.0.push((place.to_owned(), text.into()));
    }

    fn answer(&mut self, place: &str, answer: &Answer) {
        self.note(
            place,
            format!("{:?}\n{}", answer.headers, String::from_utf8_lossy(&answer.body)),
        );
    }

    fn run(&mut self, dir: &Path, arguments: &[&str]) {
        let output = penstock(dir).args(arguments).output().expect("the binary starts");
        let said = [output.stdout, output.stderr].concat();
        self.note(&arguments.join(" "), String::from_utf8_lossy(&said));
    }

    #[track_caller]
    fn assert_contains_none(&self, secrets: &[&str]) {
        for (place, text) in &self.0 {
            for secret in secrets {
                let at = text.find(secret);
                let around = at.map(|at| {
                    text.chars().skip(at.saturating_sub(200)).take(400).collect::<String>()
                });
                assert!(at.is_none(), "{secret} is in {place}: {around:?}");
            }
        }
    }
}

#[test]
fn the_secrets_of_the_built_in_mode_stay_where_they_belong() {
    let dir = tempfile::tempdir().unwrap();
    let server = TestProcess::start(dir.path(), &[DATA, "--service.log.level=trace"]);
    let client = server.client;
    let password = std::fs::read_to_string(dir.path().join("data/initial-admin-password")).unwrap();
    let password = password.trim().to_owned();
    assert!(password.len() >= 16, "the first password is short");
    let key = create_key(dir.path(), DATA, "secrets", "Admin");
    let unauthenticated = Client::new(client.address);
    let mut seen = Seen::default();

    // Successful and failed sign-ins, also with a password in the wrong field.
    let json_type = ("content-type", "application/json");
    let sign_in = |email: &str, password: &str| {
        let body = json!({"email": email, "password": password}).to_string();
        unauthenticated.send("POST", "/login", &[json_type], body).unwrap()
    };
    let failed = sign_in("admin", "PLANTED-wrong-password");
    seen.answer("a failed sign-in", &failed);
    seen.answer("a confused sign-in", &sign_in("PLANTED-password-as-email", "x"));
    let good = sign_in("admin", &password);
    let cookie = good.header("set-cookie").to_owned();
    let session = cookie.split(';').next().unwrap().to_owned();
    let id = session.split_once('=').unwrap().1.to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");

    // Invalid credentials of every kind, and valid ones in the wrong place.
    let token = "Bearer eyJhbGciOiJub25lIn0.UExBTlRFRA.PLANTED";
    for headers in [
        &[("authorization", token)][..],
        &[("authorization", "Bearer penstock_PLANTED")],
        &[("apikey", "PLANTED")],
        &[("authorization", "Basic PLANTED")],
        &[("cookie", "penstock_session=PLANTED")],
        &[("authorization", token), ("apikey", "penstock_PLANTED")],
    ] {
        seen.answer(
            "a bad credential",
            &unauthenticated.send("GET", "/api/v1/status", headers, "").unwrap(),
        );
    }
    let key_query = format!("/api/v1/status?access_token={key}");
    seen.answer("a key in the query", &unauthenticated.get(&key_query));
    let with_session = [("cookie", session.as_str()), ("sec-fetch-site", "same-origin")];
    let made = json!({"name": "another", "role": "User"}).to_string();
    let headers = [with_session[0], with_session[1], json_type];
    let made = client.send("POST", "/api/v1/api-keys", &headers, made).unwrap().expect(201);
    let other = made.json()["key"].string();
    let user = json!({
        "email": "plant@plant.example", "givenName": "P", "familyName": "Q", "roles": ["User"],
        "password": "PLANTED-password-of-a-user",
    });
    seen.answer("a user", &client.post("/api/v1/users", user.to_string()).expect(201));
    seen.answer("bad JSON", &client.post("/api/v1/users", r#"{"password": "PLANTED-in-bad-json"#));

    for path in [
        "/api/v1/status",
        "/api/v1/limits",
        "/api/v1/targets",
        "/api/v1/users",
        "/api/v1/api-keys",
        "/api/v1/audit",
        "/metrics",
        "/health/ready",
        "/api-doc/openapi.json",
    ] {
        seen.answer(path, &client.get(path).expect(200));
    }
    seen.run(dir.path(), &["user", "list", DATA]);
    seen.run(dir.path(), &["api-key", "list", DATA]);
    seen.run(dir.path(), &["api-key", "list", "--json", DATA]);
    seen.run(dir.path(), &["--help"]);
    for command in ["serve", "user", "api-key", "demo", "backup"] {
        seen.run(dir.path(), &[command, "--help"]);
    }
    seen.run(dir.path(), &["backup", "backup.penstock", DATA]);
    // This answer may repeat the key, because it goes only to the caller who sent it.
    seen.0.retain(|(place, _)| place != "a key in the query");
    seen.note("the log", server.log());
    assert!(server.log().contains("A setting was read"), "the log is not at the level trace");

    let headers = [with_session[0], with_session[1]];
    let ended = client.send("POST", "/logout", &headers, "").unwrap();
    assert!(ended.status < 400, "{}", ended.text());
    seen.note("the log of the sign-out", server.log());
    seen.assert_contains_none(&[PLANTED, &password, &key, &other, &id, "$argon2"]);
    server.stop();

    // Secrets on the disk are hashed, except the first password in its file. Other users cannot read any file.
    let hashed = [key.as_str(), &other, &id, &password, "PLANTED-password-of-a-user"];
    let mut looked_at = 0;
    walk(dir.path(), &mut |path, bytes| {
        let name = path.file_name().unwrap().to_string_lossy();
        if name == "key-of-the-tests" {
            return;
        }
        looked_at += 1;
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        if name == "backup.penstock" || name == "initial-admin-password" {
            assert_eq!(mode & 0o777, 0o600, "{}", path.display());
        }
        for secret in
            hashed.iter().filter(|secret| **secret != password || name != "initial-admin-password")
        {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{secret} is in {}", path.display());
        }
    });
    assert!(looked_at > 5);
    let mode = std::fs::metadata(dir.path().join("data")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "others can read the data directory");
}

#[test]
fn the_secrets_of_the_configuration_stay_in_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("application.yaml"), CONFIGURATION).unwrap();
    let server = TestProcess::start(dir.path(), &[DATA, "--service.log.level=trace"]);
    let client = server.client;
    let mut seen = Seen::default();
    let unauthenticated = Client::new(client.address);
    for path in [
        "/oauth2/authorization/plant",
        "/login/oauth2/code/plant?code=PLANTED-code&state=PLANTED-state",
        "/login/oauth2/code/plant?error=access_denied&state=PLANTED-state",
    ] {
        let _ = unauthenticated.get(path);
    }
    let token = "Bearer eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.e30.PLANTED-signature";
    let headers = [("authorization", token)];
    seen.answer("a token", &unauthenticated.send("GET", "/api/v1/status", &headers, "").unwrap());
    for path in ["/api/v1/status", "/api/v1/targets", "/api/v1/audit", "/metrics"] {
        seen.answer(path, &client.get(path).expect(200));
    }
    seen.run(dir.path(), &["check", "application.yaml"]);
    seen.run(dir.path(), &["export", "list", DATA]);
    seen.note("the log", server.log());
    server.stop();
    // An error in the configuration shows neither the value nor neighbouring text.
    std::fs::write(
        dir.path().join("application.yaml"),
        CONFIGURATION.replace("type: s3", "type: s4"),
    )
    .unwrap();
    seen.run(dir.path(), &["serve", DATA]);
    seen.run(dir.path(), &["check", "application.yaml"]);
    assert!(seen.0.iter().any(|(_, said)| said.contains("s4")), "the error was not reported");
    seen.assert_contains_none(&[PLANTED, CLIENT_SECRET, S3_SECRET]);
}

fn walk(dir: &Path, each: &mut dyn FnMut(&Path, &[u8])) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, each);
        } else if path.is_file() {
            each(&path, &std::fs::read(&path).unwrap());
        }
    }
}
