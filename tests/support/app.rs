//! A gateway in the process of the test, on a free port of the loopback address.
use crate::{Answer, Caller, JsonExt as _, control, wait};
use bytes::Bytes;
use penstock_auth::accounts::NewAccount;
use penstock_auth::keys::NewApiKey;
use penstock_auth::password::Hash;
use penstock_auth::{Authorized, Role};
use penstock_base::error::GatewayError;
use penstock_cli::app;
use penstock_config::{Sources, load};
use penstock_service::gateway::Gateway;
use serde_json::{Value, json};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const DEFINITIONS: &str = "/api/v1/business-objects";

/// A running gateway, aborted when dropped. As a [`Caller`] it sends an Admin's API key.
pub struct TestApp {
    caller: Caller,
    /// The path of the control socket.
    pub control: PathBuf,
    /// The Admin's API key.
    pub key: String,
    /// The opened gateway; `None` after the stop.
    gateway: Option<Gateway>,
    dir: Option<TempDir>,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<Result<(), GatewayError>>,
}

impl Deref for TestApp {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}

impl TestApp {
    /// Starts a gateway with the default settings in its own folder.
    pub async fn plain() -> Self {
        Self::start(&[]).await
    }

    /// Starts a gateway with these settings in its own folder.
    pub async fn start(settings: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut started = Self::start_in(dir.path(), settings).await.unwrap();
        started.dir = Some(dir);
        started
    }

    /// Starts a gateway with the default settings in an existing folder.
    pub async fn reopen(dir: &Path) -> Self {
        Self::start_in(dir, &[]).await.unwrap()
    }

    /// Starts a gateway in an existing folder, with its data in `data`.
    pub async fn start_in(dir: &Path, settings: &[&str]) -> Result<Self, GatewayError> {
        let data = format!("--service.data-dir={}", dir.join("data").display());
        let mut arguments = vec![data, "--server.port=0".to_owned()];
        arguments.extend(settings.iter().map(|setting| (*setting).to_owned()));
        let loaded = load(&Sources { arguments, ..Sources::default() }).unwrap();
        let (ready, is_ready) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(app::serve_until(
            Arc::new(loaded.settings),
            Box::new(|| None),
            move |address, gateway| ready.send((address, gateway)).ok().unwrap(),
            async {
                let _ = stopped.await;
            },
        ));
        let Ok((address, gateway)) = is_ready.await else {
            return Err(running.await.unwrap().unwrap_err());
        };
        let control = gateway.settings.data_dir.join("control.sock");
        let caller = Caller { address, headers: Vec::new() };
        let (key, gateway, stop) = (String::new(), Some(gateway), Some(stop));
        let mut app = Self { caller, control, key, gateway, dir: None, stop, running };
        app.key = app.make_key(Role::Admin, None);
        app.caller = app.caller_with(&app.key);
        Ok(app)
    }

    /// Returns the opened gateway.
    pub fn gateway(&self) -> &Gateway {
        self.gateway.as_ref().unwrap()
    }

    /// Returns the folder of a gateway that was started in its own.
    pub fn dir(&self) -> &Path {
        self.dir.as_ref().unwrap().path()
    }

    /// Stops the gateway gracefully, waits until its store is closed, and returns its own folder.
    pub async fn stop(mut self) -> Option<TempDir> {
        let lock = self.gateway().settings.data_dir.join("store/lock");
        self.gateway = None;
        self.stop.take().unwrap().send(()).unwrap();
        (&mut self.running).await.unwrap().unwrap();
        // The tasks of closed connections may keep the store open for a moment.
        let lock = std::fs::File::open(lock).unwrap();
        let begun = Instant::now();
        while lock.try_lock().is_err() {
            assert!(begun.elapsed() < wait::TEST_TIMEOUT, "the store is still open");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        lock.unlock().unwrap();
        self.dir.take()
    }

    /// Creates an API key, as local administration does.
    pub fn make_key(&self, role: Role, business_object: Option<&str>) -> String {
        let gateway = self.gateway();
        let business_object =
            business_object.map(|name| gateway.catalogue.get(name).unwrap().object.id.clone());
        let new = NewApiKey {
            name: "tests".to_owned(),
            role,
            expires_at: None,
            business_object,
            business_objects: Vec::new(),
        };
        gateway.auth.keys.create_key(&Authorized::local(), new).unwrap().1
    }

    /// Returns a client without credentials.
    pub fn anonymous(&self) -> Caller {
        Caller { address: self.address, headers: Vec::new() }
    }

    /// Returns a client with a new API key.
    pub fn with_key(&self, role: Role, business_object: Option<&str>) -> Caller {
        self.caller_with(&self.make_key(role, business_object))
    }

    /// Returns a client with this API key or access token.
    pub fn caller_with(&self, token: &str) -> Caller {
        Caller::with_token(self.address, token)
    }

    /// Creates an account with this role, and returns a client with a session of it.
    pub fn session(&self, role: Role) -> Caller {
        Caller::with_session(self.address, self.sign_in(role))
    }

    /// Creates an account with this role, and returns a client with the cookie of a session of it and no other header.
    pub fn cookie_of(&self, role: Role) -> Caller {
        Caller { address: self.address, headers: vec![("Cookie", self.sign_in(role))] }
    }

    /// Creates an account with this role and a session of it, and returns the cookie.
    pub fn sign_in(&self, role: Role) -> String {
        let auth = &self.gateway().auth;
        let new = NewAccount {
            given_name: None,
            family_name: None,
            email: format!("{}@plant.example", uuid::Uuid::now_v7()),
            organization: None,
            role,
            enabled: true,
            password: String::new(),
        };
        let hash = Hash::from_password("of no account").unwrap();
        let account = auth.accounts.create(&Authorized::local(), new, hash).unwrap();
        let session = auth.sessions.start_session(&account, None, None).unwrap();
        format!("penstock_session={}", session.id)
    }

    /// Sends a request through the control socket.
    pub async fn control(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        control(&self.control, method, path, headers, body).await
    }

    /// Returns all quads as N-Quads.
    pub async fn dump(&self) -> String {
        self.control("GET", "/control/dump?format=nq", &[], "").await.expect(200).text()
    }

    /// Sends the head of a request with the Admin's key and these lines, and leaves the connection open.
    pub async fn begin(&self, method_and_path: &str, lines: &str) -> TcpStream {
        self.begin_as(&self.key, method_and_path, lines).await
    }

    /// Sends the head of a request with an API key and these lines, and waits until the gateway asks for the body.
    pub async fn begin_body(&self, key: &str, method_and_path: &str, lines: &str) -> TcpStream {
        let lines = format!("Expect: 100-continue\r\nConnection: close\r\n{lines}");
        let mut stream = self.begin_as(key, method_and_path, &lines).await;
        expect_continue(&mut stream).await;
        stream
    }

    /// Sends the head of a request with an API key and these lines, and leaves the connection open.
    pub async fn begin_as(&self, key: &str, method_and_path: &str, lines: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!(
            "{method_and_path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n{lines}\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    /// Starts a gateway with the default settings that has the Business Object `Pump`.
    pub async fn with_pumps() -> Self {
        let app = Self::plain().await;
        app.define().await;
        app
    }

    /// Defines the Business Object `Pump`.
    pub async fn define(&self) -> Value {
        self.define_object(&definition()).await
    }

    /// Defines a new Business Object.
    pub async fn define_object(&self, definition: &Value) -> Value {
        self.put(DEFINITIONS, definition).await.expect(201).json()
    }

    /// Defines `Pump` with these members replaced.
    pub async fn define_with(&self, others: &Value) {
        let mut definition = definition();
        definition.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
        let put = self.put(DEFINITIONS, &definition).await;
        assert!(matches!(put.status, 200 | 201), "{put:?}");
    }

    /// Exports a Business Object, and returns the id of the export.
    pub async fn push(&self, business_object: &str) -> String {
        let pushed = self.post_empty(&format!("{DEFINITIONS}/{business_object}/push")).await;
        pushed.expect(202).json()["exports"][0]["id"].string()
    }

    /// Exports a Business Object, and returns the delivered export.
    pub async fn deliver(&self, business_object: &str) -> Value {
        let path = format!("/api/v1/exports/{}", self.push(business_object).await);
        wait::until_some("the export is delivered", async || {
            Some(self.read(&path).await).filter(|export| export["status"] == "delivered")
        })
        .await
    }

    /// Ingests these objects into `Pump`.
    pub async fn ingest(&self, mode: &str, objects: &Value) -> Answer {
        let path = format!("{DEFINITIONS}/Pump?mode={mode}");
        self.post(&path, &json!({"data": objects})).await
    }

    /// Returns the data of a GraphQL query, which has no errors.
    pub async fn graphql(&self, query: &str) -> Value {
        let mut answer = self.post("/graphql", &json!({"query": query})).await.expect(200).json();
        assert_eq!(answer.get("errors"), None, "{answer}");
        answer["data"].take()
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Reads that the gateway has authorized a request and asks for its body.
pub async fn expect_continue(stream: &mut TcpStream) {
    let mut told = [0; 25];
    stream.read_exact(&mut told).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&told), "HTTP/1.1 100 Continue\r\n\r\n");
}

/// Reads the rest of an answer.
pub async fn read_rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Returns the settings of a target in a bucket of this S3 server.
pub fn s3_settings(target: &str, endpoint: &str, secret: &str) -> [String; 4] {
    [
        format!("--service.export.targets.{target}.type=s3"),
        format!("--service.export.targets.{target}.endpoint={endpoint}"),
        format!("--service.export.targets.{target}.access-key-id=key"),
        format!("--service.export.targets.{target}.secret-access-key={secret}"),
    ]
}

/// Lends each setting.
pub fn lent(settings: &[String]) -> Vec<&str> {
    settings.iter().map(String::as_str).collect()
}

/// Returns the definition of a pump with parts.
pub fn definition() -> Value {
    json!({
        "name": "Pump",
        "description": "Pumps of the plant",
        "enabled": true,
        "config": include_str!("pump.yaml"),
        "conditions": [],
        "pushTargets": [{"bucketName": "plant-exports"}],
    })
}
