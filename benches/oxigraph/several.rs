//! Reads on several connections at once.
use crate::client::open_connection;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use std::net::SocketAddr;
use std::time::Instant;
use tokio::task::JoinSet;

/// A request that is repeated.
#[derive(Clone)]
pub(crate) struct RepeatedRequest<P> {
    pub(crate) address: SocketAddr,
    /// The headers with their values.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Returns the path of the next request.
    pub(crate) path: P,
    /// The minimum size of each response in bytes.
    pub(crate) min_response_bytes: usize,
}

impl<P: Fn(&mut StdRng) -> String + Clone + Send + 'static> RepeatedRequest<P> {
    /// Repeats the request on this number of connections until the given time. Each connection sends the next request
    /// after its response has arrived. Returns the number of responses.
    pub(crate) fn count_responses(&self, connections: u64, until: Instant) -> u64 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut all = JoinSet::new();
            for number in 0..connections {
                all.spawn(self.clone().count_responses_on_one(number, until));
            }
            all.join_all().await.into_iter().sum()
        })
    }

    async fn count_responses_on_one(self, number: u64, until: Instant) -> u64 {
        let mut sender = open_connection(self.address).await.unwrap();
        let host = self.address.to_string();
        let mut random = StdRng::seed_from_u64(number);
        let mut count = 0;
        while Instant::now() < until {
            let mut request = Request::get((self.path)(&mut random)).header("Host", &host);
            for (name, value) in &self.headers {
                request = request.header(*name, value);
            }
            sender.ready().await.unwrap();
            let request = request.body(Full::<Bytes>::default()).unwrap();
            let answer = sender.send_request(request).await.unwrap();
            assert!(answer.status().is_success(), "{}", answer.status());
            assert!(
                answer.into_body().collect().await.unwrap().to_bytes().len()
                    >= self.min_response_bytes
            );
            count += 1;
        }
        count
    }
}
