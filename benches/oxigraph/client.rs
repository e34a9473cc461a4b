//! An HTTP client on one connection.
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

/// Connects. The connection's task runs on the runtime of the caller.
pub(crate) async fn open_connection(address: SocketAddr) -> Option<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await.ok()?;
    stream.set_nodelay(true).ok()?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    Some(sender)
}

pub(crate) struct Client {
    runtime: Runtime,
    sender: SendRequest<Full<Bytes>>,
    host: String,
    /// The value of the header `Authorization`.
    pub(crate) authorization: Option<String>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Option<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let sender = runtime.block_on(open_connection(address))?;
        Some(Self { runtime, sender, host: address.to_string(), authorization: None })
    }

    /// Whether a GET of this path succeeds.
    pub(crate) fn is_path_ready(&mut self, path: &str) -> bool {
        let request = Request::get(path).header("Host", &self.host).body(Full::default()).unwrap();
        let answer = self.runtime.block_on(self.sender.send_request(request));
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// Sends a request, and passes each part of the response to `piece`. Returns the size of the response in bytes.
    pub(crate) fn send_request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
        piece: &mut dyn FnMut(&[u8]),
    ) -> u64 {
        let mut request = Request::builder().method(method).uri(path).header("Host", &self.host);
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let Self { runtime, sender, .. } = self;
        runtime.block_on(async {
            sender.ready().await.unwrap();
            let mut answer = sender.send_request(request).await.unwrap();
            let status = answer.status();
            let mut bytes = 0;
            let mut refused = Vec::new();
            while let Some(frame) = answer.frame().await {
                let Ok(data) = frame.unwrap().into_data() else { continue };
                bytes += data.len() as u64;
                piece(&data);
                if !status.is_success() {
                    refused.extend_from_slice(&data);
                }
            }
            let refused = String::from_utf8_lossy(&refused);
            assert!(status.is_success(), "{method} {path}: {status} {refused}");
            bytes
        })
    }

    /// Sends a request, and returns the text of the response.
    pub(crate) fn send_for_text(&mut self, method: &str, path: &str, body: &str) -> String {
        let mut text = Vec::new();
        let json = [("Content-Type", "application/json")];
        self.send_request(method, path, &json, body.to_owned(), &mut |piece| {
            text.extend_from_slice(piece);
        });
        String::from_utf8(text).unwrap()
    }
}
