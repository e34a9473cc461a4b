//! A small HTTP server that answers as a test wants.
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// A request that a stub got.
pub struct StubRequest {
    pub method: String,
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl StubRequest {
    /// Reads a request whose body has a `Content-Length`, if it has one. Returns `None` at the end of the connection.
    pub fn read(reader: &mut impl BufRead) -> Option<Self> {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut words = line.split(' ').map(str::to_owned);
        let (method, path) = (words.next()?, words.next()?);
        let mut headers = BTreeMap::new();
        loop {
            line.clear();
            // A client that was killed sends no end of the headers.
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let length = headers.get("content-length").map_or(Ok(0), |length| length.parse());
        let mut body = vec![0; length.ok()?];
        reader.read_exact(&mut body).ok()?;
        Some(Self { method, path, headers, body })
    }
}

/// Starts a server on a free port. It sends what `answer` returns for each request, and closes the connection after
/// `None`. Its threads end with the process.
pub fn serve<A: AsRef<[u8]> + 'static>(
    answer: impl Fn(StubRequest) -> Option<A> + Send + Sync + 'static,
) -> SocketAddr {
    serve_counted(answer, &Arc::default())
}

/// Serves as [`serve`] does. Each connection has a clone of `open` until its last request is answered.
pub fn serve_counted<A: AsRef<[u8]> + 'static>(
    answer: impl Fn(StubRequest) -> Option<A> + Send + Sync + 'static,
    open: &Arc<()>,
) -> SocketAddr {
    let open = Arc::clone(open);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    let serve_connection = move |stream: TcpStream| {
        let (answer, open) = (Arc::clone(&answer), Arc::clone(&open));
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stream);
            while let Some(bytes) =
                StubRequest::read(&mut reader).and_then(|request| answer(request))
            {
                if reader.get_mut().write_all(bytes.as_ref()).is_err() {
                    break;
                }
            }
            drop(open);
        });
    };
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve_connection));
    address
}

/// Returns an answer with this status and body, and these header lines.
pub fn answer_with(status: &str, lines: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{lines}Content-Length: {}\r\n\r\n{body}", body.len())
}
