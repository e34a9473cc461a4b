//! Requests on several connections at once.
use crate::client::open_connection;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// A request that is repeated.
#[derive(Clone)]
pub(crate) struct RepeatedRequest<N> {
    pub(crate) address: SocketAddr,
    pub(crate) method: &'static str,
    /// The headers with their values.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Returns the path and the body of the next request; `None` after the last one.
    pub(crate) next: N,
    /// The minimum size of each response in bytes.
    pub(crate) min_response_bytes: usize,
}

/// The times between requests and their responses, in order of their length.
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    /// Returns the number of responses.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the time in ms that this percentage of the responses took at most.
    pub(crate) fn percentile_ms(&self, percent: usize) -> f64 {
        self.0[(self.0.len() - 1) * percent / 100].as_secs_f64() * 1e3
    }
}

impl<N: Fn(&mut StdRng) -> Option<(String, String)> + Clone + Send + 'static> RepeatedRequest<N> {
    /// Repeats the request on this number of connections until the given time. Each connection sends the next request
    /// after its response has arrived.
    pub(crate) fn measure_latencies(&self, connections: u64, until: Instant) -> Latencies {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut latencies = runtime.block_on(async {
            let mut all = JoinSet::new();
            for number in 0..connections {
                all.spawn(self.clone().measure_on_one(number, until));
            }
            all.join_all().await.concat()
        });
        latencies.sort_unstable();
        Latencies(latencies)
    }

    async fn measure_on_one(self, number: u64, until: Instant) -> Vec<Duration> {
        let mut sender = open_connection(self.address).await.unwrap();
        let host = self.address.to_string();
        let mut random = StdRng::seed_from_u64(number);
        let mut latencies = Vec::new();
        while Instant::now() < until
            && let Some((path, body)) = (self.next)(&mut random)
        {
            let mut request =
                Request::builder().method(self.method).uri(path).header("Host", &host);
            for (name, value) in &self.headers {
                request = request.header(*name, value);
            }
            sender.ready().await.unwrap();
            let request = request.body(Full::<Bytes>::from(body)).unwrap();
            let begun = Instant::now();
            let answer = sender.send_request(request).await.unwrap();
            assert!(answer.status().is_success(), "{}", answer.status());
            let answer = answer.into_body().collect().await.unwrap().to_bytes();
            latencies.push(begun.elapsed());
            assert!(answer.len() >= self.min_response_bytes);
        }
        latencies
    }
}
