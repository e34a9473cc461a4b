//! An HTTP client, on one connection or several.
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use std::net::SocketAddr;
use std::time::Instant;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

async fn connection(address: SocketAddr) -> Option<SendRequest<Full<Bytes>>> {
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
    /// What goes into `Authorization`.
    pub(crate) authorization: Option<String>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Option<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let sender = runtime.block_on(connection(address))?;
        Some(Self { runtime, sender, host: address.to_string(), authorization: None })
    }

    /// Sends GET requests on so many connections of their own, each the next one when it has its answer,
    /// until the time has come; gives how many were answered, each with more than `least` bytes.
    pub(crate) fn several(
        &self,
        address: SocketAddr,
        connections: u64,
        until: Instant,
        headers: &[(&'static str, &'static str)],
        least: usize,
        path: impl Fn(&mut StdRng) -> String + Clone + Send + 'static,
    ) -> u64 {
        self.runtime.block_on(async {
            let mut all = JoinSet::new();
            for number in 0..connections {
                let mut sender = connection(address).await.unwrap();
                let (path, headers, host) = (path.clone(), headers.to_vec(), self.host.clone());
                let authorization = self.authorization.clone();
                all.spawn(async move {
                    let mut random = StdRng::seed_from_u64(number);
                    let mut count = 0;
                    while Instant::now() < until {
                        let mut request = Request::get(path(&mut random)).header("Host", &host);
                        if let Some(authorization) = &authorization {
                            request = request.header("Authorization", authorization);
                        }
                        for (name, value) in &headers {
                            request = request.header(*name, *value);
                        }
                        sender.ready().await.unwrap();
                        let answer = sender
                            .send_request(request.body(Full::default()).unwrap())
                            .await
                            .unwrap();
                        assert!(answer.status().is_success(), "{}", answer.status());
                        let body = answer.into_body().collect().await.unwrap().to_bytes();
                        assert!(body.len() > least);
                        count += 1;
                    }
                    count
                });
            }
            all.join_all().await.into_iter().sum()
        })
    }

    /// Whether a GET of this path succeeds.
    pub(crate) fn answers(&mut self, path: &str) -> bool {
        let request = Request::get(path).header("Host", &self.host).body(Full::default()).unwrap();
        let answer = self.runtime.block_on(self.sender.send_request(request));
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// Sends a request, reads the whole answer, and counts its bytes; `body` gets each piece.
    pub(crate) fn send(
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

    /// Sends a request and gives the whole answer.
    pub(crate) fn text(&mut self, method: &str, path: &str, body: &str) -> String {
        let mut text = Vec::new();
        let json = [("Content-Type", "application/json")];
        self.send(method, path, &json, body.to_owned(), &mut |piece| text.extend_from_slice(piece));
        String::from_utf8(text).unwrap()
    }
}
