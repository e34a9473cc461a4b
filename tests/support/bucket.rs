//! An S3 bucket in memory that misbehaves as a test wants: a real server loses no answer and returns no old object at a
//! chosen moment. It checks no signatures, and takes no uploads in parts.
use crate::exports::prelude::Server;
use crate::stub::{StubRequest, serve_counted};
use crate::wait_for;
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the bucket does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketFault {
    None,
    /// It breaks the connection, and does nothing.
    Cut,
    /// It does what is asked, and breaks the connection.
    LoseAnswer,
    /// It answers 503, and does nothing.
    Busy,
    /// It answers 403, and does nothing.
    Deny,
    /// It returns the object as it was before it was last replaced.
    ReturnOld,
    /// It ignores `If-Match` and `If-None-Match`.
    IgnorePreconditions,
}

type Choose = Box<dyn FnMut(&str, &str) -> BucketFault + Send>;

/// A running bucket. Its threads end with the process.
#[derive(Clone)]
pub struct MemoryBucket {
    pub server: Server,
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    objects: BTreeMap<String, Object>,
    /// The method and key of each request.
    requests: Vec<(String, String)>,
    choose: Choose,
    /// Counts the open connections.
    open: Arc<()>,
    /// How far its clock is ahead.
    ahead: SignedDuration,
}

#[derive(Clone)]
struct Object {
    bytes: Vec<u8>,
    /// The header lines that it was stored with.
    lines: String,
    modified: Timestamp,
    former: Option<Box<Self>>,
}

impl MemoryBucket {
    /// The name of the bucket.
    pub const NAME: &'static str = "memory";

    /// Starts an empty bucket on a free port.
    pub fn start() -> Self {
        let open = Arc::default();
        let state = Arc::new(Mutex::new(State {
            objects: BTreeMap::new(),
            requests: Vec::new(),
            choose: Box::new(|_, _| BucketFault::None),
            open: Arc::clone(&open),
            ahead: SignedDuration::ZERO,
        }));
        let serving = Arc::clone(&state);
        let address = serve_counted(move |request| lock(&serving).answer(&request), &open);
        let server = Server {
            endpoint: format!("http://{address}"),
            region: "default".to_owned(),
            key: "key".to_owned(),
            secret: "secret".to_owned(),
            max_late_copies: 0,
        };
        Self { server, address, state }
    }

    /// Calls `choose` with the method and the key of each request from now on. The bucket waits for it, so it must not use
    /// the bucket.
    pub fn choose(&self, choose: impl FnMut(&str, &str) -> BucketFault + Send + 'static) {
        lock(&self.state).choose = Box::new(choose);
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.choose(|_, _| BucketFault::None);
    }

    /// Waits until what its clients have sent is done, and they have closed their connections. A process that was killed
    /// may have sent a request that the bucket gets later.
    pub fn wait_until_idle(&self) {
        // Once this one is answered, all connections before it are counted.
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(b"HEAD / HTTP/1.1\r\n\r\n").unwrap();
        stream.read_exact(&mut [0]).unwrap();
        drop(stream);
        // The clones of the state and of the thread that accepts connections.
        wait_for("the bucket is idle", || Arc::strong_count(&lock(&self.state).open) == 2);
    }

    /// Returns the method and key of each request so far.
    pub fn requests(&self) -> Vec<(String, String)> {
        lock(&self.state).requests.clone()
    }

    /// Sets its clock ahead, so that what it has is older.
    pub fn pass_time(&self, time: SignedDuration) {
        lock(&self.state).ahead += time;
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Returns the answer to a request, or `None` to break the connection.
    fn answer(&mut self, request: &StubRequest) -> Option<Vec<u8>> {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let path = percent_encoding::percent_decode_str(path).decode_utf8().unwrap();
        let key = path.trim_start_matches('/').split_once('/').map_or("", |(_, key)| key);
        self.requests.push((request.method.clone(), key.to_owned()));
        let fault = (self.choose)(&request.method, key);
        match fault {
            BucketFault::Cut => return None,
            BucketFault::Busy => return Some(self.refuse("503 Slow Down", "SlowDown")),
            BucketFault::Deny => return Some(self.refuse("403 Forbidden", "AccessDenied")),
            _ => {}
        }
        let answer = match request.method.as_str() {
            "PUT" => self.put(key, request, fault),
            "GET" if key.is_empty() => self.list(query),
            "GET" | "HEAD" => self.get(key, &request.method, fault),
            "DELETE" => {
                self.objects.remove(key);
                self.respond("204 No Content", "", b"")
            }
            _ => self.refuse("501 Not Implemented", "NotImplemented"),
        };
        (fault != BucketFault::LoseAnswer).then_some(answer)
    }

    fn put(&mut self, key: &str, request: &StubRequest, fault: BucketFault) -> Vec<u8> {
        let former = self.objects.get(key).cloned();
        let wanted = |name: &str| request.headers.get(name).map(String::as_str);
        let is_refused = wanted("if-none-match").is_some() && former.is_some()
            || wanted("if-match")
                .is_some_and(|tag| former.as_ref().is_none_or(|object| tag != object.tag()));
        if is_refused && fault != BucketFault::IgnorePreconditions {
            return self.refuse("412 Precondition Failed", "PreconditionFailed");
        }
        let mut lines = String::new();
        for (name, value) in &request.headers {
            if name.starts_with("x-amz-meta-") || name == "content-type" {
                let _ = write!(lines, "{name}: {value}\r\n");
            }
        }
        let former = former.map(|former| Box::new(Object { former: None, ..former }));
        let object = Object { bytes: request.body.clone(), lines, modified: self.now(), former };
        let tag = format!("ETag: {}\r\n", object.tag());
        self.objects.insert(key.to_owned(), object);
        self.respond("200 OK", &tag, b"")
    }

    fn get(&self, key: &str, method: &str, fault: BucketFault) -> Vec<u8> {
        let Some(object) = self.objects.get(key) else {
            return self.refuse("404 Not Found", "NoSuchKey");
        };
        let old = object.former.as_deref().filter(|_| fault == BucketFault::ReturnOld);
        let object = old.unwrap_or(object);
        let modified = object.modified.strftime("%a, %d %b %Y %H:%M:%S GMT");
        let tag = object.tag();
        let lines = format!("{}ETag: {tag}\r\nLast-Modified: {modified}\r\n", object.lines);
        let mut answer = self.respond("200 OK", &lines, &object.bytes);
        if method == "HEAD" {
            answer.truncate(answer.len() - object.bytes.len());
        }
        answer
    }

    fn list(&self, query: &str) -> Vec<u8> {
        let prefix = query.split('&').find_map(|part| part.strip_prefix("prefix=")).unwrap_or("");
        let prefix = percent_encoding::percent_decode_str(prefix).decode_utf8().unwrap();
        let mut found = String::new();
        for (key, object) in &self.objects {
            if key.starts_with(&*prefix) {
                let (bytes, tag) = (object.bytes.len(), object.tag());
                let modified = object.modified.strftime("%Y-%m-%dT%H:%M:%S.000Z");
                let _ = write!(
                    found,
                    "<Contents><Key>{key}</Key><LastModified>{modified}</LastModified><ETag>{tag}</ETag>\
                     <Size>{bytes}</Size></Contents>"
                );
            }
        }
        let text = format!(
            "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>"
        );
        self.respond("200 OK", "Content-Type: application/xml\r\n", text.as_bytes())
    }

    fn refuse(&self, status: &str, code: &str) -> Vec<u8> {
        let text = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>");
        self.respond(status, "Content-Type: application/xml\r\n", text.as_bytes())
    }

    fn respond(&self, status: &str, lines: &str, body: &[u8]) -> Vec<u8> {
        let date = self.now().strftime("%a, %d %b %Y %H:%M:%S GMT");
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status}\r\nDate: {date}\r\n{lines}Content-Length: {length}\r\n\r\n");
        [head.as_bytes(), body].concat()
    }

    fn now(&self) -> Timestamp {
        Timestamp::now() + self.ahead
    }
}

impl Object {
    /// Returns its entity tag.
    fn tag(&self) -> String {
        let digest = format!("{:x}", Sha256::digest(&self.bytes));
        format!("\"{}\"", &digest[..32])
    }
}
