//! If a credential ends during a request, the request changes nothing, on any route.
//!
//! [`Fixture::samples`] has a request for every changing route; a route without one fails the tests here. Each request is sent
//! twice. The first time its body is held back until the credential has ended. The second time it is sent after the end
//! of the credential was committed, and before memory is updated, so that only the commit can refuse it.
mod samples;

use penstock_auth::accounts::{self, AccountEdit};
use penstock_auth::audit::{Filter, Record};
use penstock_auth::groups::NewGroup;
use penstock_auth::keys;
use penstock_auth::password::Hash;
use penstock_auth::{Account, Authorized};
use penstock_base::commit::NoClient;
use penstock_base::error::GatewayError;
use penstock_base::{IfMatch, Preconditions};
use penstock_model::testing::list_quads;
use penstock_service::gateway::Gateway;
use penstock_store::{DocumentRange, Read as _};
use penstock_test_support::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PASSWORD: &str = "correct horse battery";
const OTHER: &str = "another horse battery";
const LONG: Duration = Duration::from_mins(1);
const SHAPES: &str = "<urn:S> a <http://www.w3.org/ns/shacl#NodeShape> ; <http://www.w3.org/ns/shacl#targetNode> <urn:a> .";

/// A request to a changing route.
struct Sample {
    method: &'static str,
    route: &'static str,
    path: String,
    media_type: &'static str,
    body: String,
    /// Whether it changes stored data.
    changes: bool,
    /// The header `If-Match`.
    if_match: Option<&'static str>,
}

/// A gateway with data that each sample can change.
struct Fixture {
    server: TestApp,
    hash: Hash,
    samples: Vec<Sample>,
    /// The exports of the samples: a delivered one and a waiting one.
    exports: [String; 2],
}

/// How a credential ends or loses rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    SignedOut,
    PasswordSet,
    Disabled,
    Deleted,
    Demoted,
    KeyRevoked,
    OwnerDisabled,
    OwnerDemoted,
}

impl End {
    const ALL: [Self; 8] = [
        Self::SignedOut,
        Self::PasswordSet,
        Self::Disabled,
        Self::Deleted,
        Self::Demoted,
        Self::KeyRevoked,
        Self::OwnerDisabled,
        Self::OwnerDemoted,
    ];

    fn is_of_key(self) -> bool {
        matches!(self, Self::KeyRevoked | Self::OwnerDisabled | Self::OwnerDemoted)
    }

    fn is_demotion(self) -> bool {
        matches!(self, Self::Demoted | Self::OwnerDemoted)
    }
}

/// The credential of an Admin.
struct Shown {
    account: Arc<Account>,
    /// The id of the session or of the key.
    id: String,
    caller: Caller,
}

impl Fixture {
    async fn new() -> Self {
        // No server listens there.
        let away = s3_settings("away", "http://127.0.0.1:9", "secret");
        let others = [
            "--service.export.targets.plant-exports.type=directory",
            "--service.sparql.update=true",
            "--service.sources.line.type=mqtt",
            "--service.sources.line.url=mqtt://127.0.0.1:9",
            "--service.sources.line.subscriptions[0].topic=pumps",
            "--service.sources.line.subscriptions[0].business-object=Pump",
            "--service.sources.line.subscriptions[0].mode=ADD",
            "--service.webhooks.ops.url=http://127.0.0.1:9",
            "--service.webhooks.ops.secret=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "--service.webhooks.ops.events=penstock.target.blocked",
        ];
        let server = TestApp::start(&[&lent(&away)[..], &others].concat()).await;
        let targets = json!([{"bucketName": "plant-exports"}, {"bucketName": "away"}]);
        server.define_with(&json!({"pushTargets": targets})).await;
        let pump = json!([{"uri": "https://plant.example/p/1", "name": "one"}]);
        server.ingest("ADD", &pump).await.expect(200);
        let push = server.post_empty("/api/v1/business-objects/Pump/push").await.expect(202).json();
        let id = |n: usize| push["exports"][n]["id"].string();
        let exports = [id(0), id(1)];
        let hash = Hash::from_password(PASSWORD).unwrap();
        let mut fixture = Self { server, hash, samples: Vec::new(), exports };
        fixture.samples = fixture.samples().await;
        fixture
    }

    fn gateway(&self) -> &Gateway {
        self.server.gateway()
    }

    fn account(&self) -> Arc<Account> {
        let new = accounts::NewAccount {
            given_name: None,
            family_name: None,
            email: format!("{}@plant.example", uuid::Uuid::now_v7()),
            organization: None,
            role: Role::Admin,
            enabled: true,
            password: String::new(),
        };
        let auth = &self.gateway().auth;
        let account = auth.accounts.create(&Authorized::local(), new, self.hash.clone()).unwrap();
        let group = auth.groups.get("owners");
        let mut members = group.map_or_else(Vec::new, |group| auth.groups.list_members(&group));
        members.push(account.id.clone());
        let group = NewGroup { name: "owners".to_owned(), members, ..NewGroup::default() };
        auth.groups.put(&Authorized::local(), &group, Preconditions::default()).unwrap();
        account
    }

    /// Creates a change, whose owners are all accounts, and returns its id.
    async fn change(&self, parameter: &str) -> String {
        let path =
            format!("/api/v1/business-objects/Reviewed?{parameter}&changeOwners=group:owners");
        let change = self.server.post(&path, &json!({"data": [{"name": "new"}]})).await;
        change.expect(202).json()["id"].string()
    }

    fn session(&self, account: Arc<Account>) -> Shown {
        let id = self.gateway().auth.sessions.start_session(&account, None, None).unwrap().id;
        let caller = Caller::with_session(self.server.address, format!("penstock_session={id}"));
        Shown { account, id, caller }
    }

    fn key(&self, account: Arc<Account>) -> Shown {
        let auth = &self.gateway().auth;
        let owner = auth.sessions.authenticate_session(&self.session(account.clone()).id).unwrap();
        let owner = auth.authorize(owner, Role::Admin).unwrap();
        let (name, role) = ("line 4".to_owned(), Role::Admin);
        let new = keys::NewApiKey {
            name,
            role,
            expires_at: None,
            business_object: None,
            business_objects: Vec::new(),
        };
        let (key, secret) = auth.keys.create_key(&owner, new).unwrap();
        Shown { account, id: key.id.clone(), caller: self.server.caller_with(&secret) }
    }

    /// Ends a credential, as an Admin, its owner or the owner's sign-out does.
    fn end(&self, shown: &Shown, end: End) {
        let (auth, local) = (&self.gateway().auth, Authorized::local());
        let id = &shown.account.id;
        let change = |edit| {
            auth.accounts.change(&local, id, IfMatch::Any, edit).unwrap();
        };
        let unchanged = AccountEdit::unchanged_from(&shown.account);
        match end {
            End::SignedOut => drop(auth.sessions.end_session(&shown.id)),
            End::PasswordSet => {
                auth.accounts.set_password(&local, id, self.hash.clone()).unwrap();
            }
            End::Disabled | End::OwnerDisabled => {
                change(AccountEdit { enabled: Some(false), ..unchanged });
            }
            End::Demoted | End::OwnerDemoted => {
                change(AccountEdit { role: Some(Role::User), ..unchanged });
            }
            End::Deleted => auth.delete_account(&local, id, IfMatch::Any, &|_| Ok(())).unwrap(),
            End::KeyRevoked => auth.keys.revoke_key(&local, &shown.id).unwrap(),
        }
    }

    /// Returns what is stored, except for what every request changes: the audit trail, last uses and sessions.
    fn stored(&self) -> BTreeMap<String, Value> {
        let store = &self.gateway().store;
        let mut stored = BTreeMap::new();
        let collections = "accounts api-keys business-objects namespaces shapes-graphs exports export-sequences \
            ingestion-ids dead-letters groups reviewed-changes views";
        for collection in collections.split(' ') {
            let range = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
            for (key, document) in store.read().read_documents(collection, range).unwrap() {
                let text = String::from_utf8_lossy(&document).into_owned();
                let mut value = serde_json::from_slice(&document).unwrap_or(Value::String(text));
                for member in ["firstLogin", "lastLogin", "lastUsed"] {
                    value.as_object_mut().map(|members| members.remove(member));
                }
                stored.insert(format!("{collection} {:?}", String::from_utf8_lossy(&key)), value);
            }
        }
        let quads: BTreeSet<String> = list_quads(&store.read()).into_iter().collect();
        stored.insert("quads".to_owned(), json!(quads));
        stored
    }

    /// Waits until the export to the directory is delivered, so that its stored state stays the same.
    async fn settle(&self) {
        until("the export is delivered", async || {
            let exports = self.server.items("/api/v1/exports?limit=1000").await;
            let mut waiting = exports.iter().filter(|export| export["target"] == "plant-exports");
            waiting.all(|export| export["status"] == "delivered")
        })
        .await;
    }

    async fn send(&self, sample: &Sample, shown: &Shown) -> (u16, String) {
        let mut headers = vec![("Content-Type", sample.media_type)];
        headers.extend(sample.if_match.map(|tag| ("If-Match", tag)));
        let body = sample.body.clone();
        let answer = shown.caller.send(sample.method, &sample.path, &headers, body).await;
        (answer.status, answer.text())
    }

    /// Sends a sample, and repeats it while the worker that delivers exports holds the export.
    async fn send_until_free(&self, sample: &Sample, shown: &Shown) -> (u16, String) {
        let before = self.stored();
        until_some("the export is free", async || {
            let (status, text) = self.send(sample, shown).await;
            let is_busy =
                text.contains("is being delivered") || (status == 303 && self.stored() == before);
            (!(is_busy && sample.route.contains("/exports/"))).then_some((status, text))
        })
        .await
    }
}

/// Sends the head of a request, and waits until the gateway has authorized it and asks for the body.
async fn begin(server: &TestApp, sample: &Sample, shown: &Shown) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let headers = shown.caller.headers.iter();
    let headers: Vec<_> = headers.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let if_match = sample.if_match.map(|tag| format!("If-Match: {tag}\r\n"));
    let headers = headers.concat() + &if_match.unwrap_or_default();
    let head = format!(
        "{} {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\n{headers}\
         Content-Type: {}\r\nContent-Length: {}\r\n\r\n",
        sample.method,
        sample.path,
        sample.media_type,
        sample.body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    timeout(LONG, expect_continue(&mut stream)).await.expect("the gateway asks for the body");
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_after_the_end_of_its_credential_changes_nothing() {
    let fixture = Fixture::new().await;
    fixture.settle().await;
    let minimum_roles: BTreeMap<_, _> = penstock_cli::app::list_routes()
        .into_iter()
        .map(|(method, path, minimum_role)| ((method, path), minimum_role))
        .collect();
    for sample in fixture.samples.iter().filter(|sample| !sample.body.is_empty()) {
        let minimum_role = &minimum_roles[&(sample.method.to_owned(), sample.route)];
        for end in End::ALL {
            let makes_key = sample.route.contains("keys") && sample.changes;
            if end.is_demotion() && minimum_role == "User" && !makes_key {
                // The request continues with the lower role.
                continue;
            }
            if makes_key && sample.route.contains("revoke") && end.is_demotion() {
                // With the lower role, keys of other accounts do not exist.
                continue;
            }
            let account = fixture.account();
            let shown =
                if end.is_of_key() { fixture.key(account) } else { fixture.session(account) };
            let request = format!("{} {} after {end:?}", sample.method, sample.path);
            let mut stream = begin(&fixture.server, sample, &shown).await;
            let (begun, rest) = sample.body.split_at(1);
            stream.write_all(begun.as_bytes()).await.unwrap();
            fixture.end(&shown, end);
            let before = fixture.stored();
            stream.write_all(rest.as_bytes()).await.unwrap();
            let mut answer = String::new();
            timeout(LONG, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
            let status = if end.is_demotion() { "403" } else { "401" };
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
            assert_eq!(fixture.stored(), before, "{request}");
        }
    }
    fixture.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_after_the_revocation_changes_nothing() {
    let fixture = Fixture::new().await;
    let samples: BTreeSet<_> = fixture.samples.iter().map(|s| (s.method, s.route)).collect();
    let routes = penstock_cli::app::list_routes();
    let missing = routes.iter().filter(|(method, path, minimum_role)| {
        let acts = !matches!(method.as_str(), "GET" | "HEAD") || path.ends_with("/push");
        let is_of_caller = !matches!(minimum_role.as_str(), "Anyone" | "Local");
        acts && is_of_caller && !samples.contains(&(method.as_str(), *path))
    });
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "add a sample for each of these routes: {missing:?}");

    for sample in fixture.samples.iter().filter(|sample| sample.changes) {
        let request = format!("{} {} ({})", sample.method, sample.path, sample.media_type);
        let shown = fixture.session(fixture.account());
        let id = shown.account.id.as_bytes();
        fixture.settle().await;
        let store = &fixture.gateway().store;
        let put = |document: &[u8]| {
            let put = store.commit::<_, GatewayError>(&NoClient, |t| {
                Ok(t.put_document("accounts", id, document)?)
            });
            put.unwrap();
        };
        let stored = store.read().read_document("accounts", id).unwrap().unwrap();
        let mut disabled: Value = serde_json::from_slice(&stored).unwrap();
        disabled["enabled"] = json!(false);
        // This is the state between the commit that disables an account and the update of memory.
        put(disabled.to_string().as_bytes());
        let before = fixture.stored();
        let (status, text) = if sample.media_type == JSON.1 {
            fixture.send_until_free(sample, &shown).await
        } else {
            fixture.send(sample, &shown).await
        };
        let is_page = sample.media_type == FORM.1;
        // A page may redirect to the previous page and show the error there.
        assert!(status == 401 || is_page && status == 303, "{request}: {status} {text}");
        assert_eq!(fixture.stored(), before, "{request}");

        put(&stored);
        let before = fixture.stored();
        let (status, text) = fixture.send_until_free(sample, &shown).await;
        assert!((200..400).contains(&status), "{request}: {status} {text}");
        assert_ne!(fixture.stored(), before, "{request} would have changed nothing anyway: {text}");
    }
    fixture.server.stop().await;
}

/// The routes whose requests are no events of the audit trail: they only read or rehearse, or leave a record that names the
/// account. Ingestions have `/api/v1/ingestions`, pushes `/api/v1/exports`.
const WITHOUT_EVENT: &[&str] = &[
    "POST /api/v1/business-objects/{id}",
    "POST /api/v1/ingestions/{id}/rejected/{letter}/retry",
    "POST /api/v1/sources/{name}/rejected/{letter}/retry",
    "POST /admin/rejected/{id}/retry",
    "POST /admin/object/edit",
    "POST /admin/object/delete",
    "GET /api/v1/business-objects/{id}/push",
    "POST /api/v1/business-objects/{id}/push",
    "POST /admin/business-objects/{id}/push",
    "POST /graphql",
    "POST /sparql",
    // The browser keeps what they change.
    "POST /admin/objects/{id}/columns",
    "POST /admin/query",
    "POST /admin/sparql",
    "POST /admin/business-objects/derive",
    "POST /admin/business-objects/check",
    // They need a validation that runs. Its end is recorded as its start is.
    "DELETE /api/v1/validations/{id}",
    "POST /admin/quality/{id}/cancel",
    // The Business Object of the samples has no shapes; a test of its own starts a validation.
    "POST /api/v1/business-objects/{id}/validation",
    "POST /admin/quality",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_acting_route_has_an_audit_event() {
    let fixture = Fixture::new().await;
    let mut without = Vec::new();
    for sample in &fixture.samples {
        let route = format!("{} {}", sample.method, sample.route);
        let account = fixture.account();
        let shown = fixture.session(account.clone());
        fixture.settle().await;
        let (status, text) = fixture.send_until_free(sample, &shown).await;
        let filter = Filter { account: Some(account.id.clone()), ..Filter::default() };
        let events = fixture.gateway().auth.audit.list(&filter, None, 100).unwrap();
        // The fixture itself creates the account, adds it to a group and signs it in.
        let is_own = |record: &Record| {
            record.by.as_deref() != Some("local")
                && record.what != "sign-in"
                && !record.what.ends_with(".refused")
        };
        let is_event = events.iter().any(is_own);
        let is_expected = !WITHOUT_EVENT.contains(&route.as_str());
        if is_event != is_expected {
            without.push(format!("{route}: {status}, events {events:?}: {text:.200}"));
        }
    }
    assert!(without.is_empty(), "{}", without.join("\n"));
    fixture.server.stop().await;
}
