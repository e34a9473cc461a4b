//! Requests to a SPARQL store: updates, queries and the Graph Store Protocol.
use crate::backoff::DeliveryTimings;
use crate::delivery::ObjectContent;
use crate::graph_lines::VOCABULARY;
use crate::transport::{self, HttpAnswer, LostRequest, Progress, bytes_body, file_body};
use crate::uplink::Uplink;
use bytes::Bytes;
use penstock_config::{SparqlLogin, SparqlStore};
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use reqwest::{Client, Method, RequestBuilder, Url};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The maximum bytes of an answer that are read.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Sends requests to one store.
pub(super) struct StoreClient {
    client: Client,
    endpoint: Url,
    /// Where the store answers queries.
    query_endpoint: Url,
    login: SparqlLogin,
    timings: DeliveryTimings,
}

impl fmt::Debug for StoreClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreClient({})", self.endpoint)
    }
}

impl StoreClient {
    /// Prepares requests to the store. Sends nothing.
    ///
    /// # Errors
    /// The setting that is not usable.
    pub(super) fn open(store: &SparqlStore, timings: &DeliveryTimings) -> Result<Self, String> {
        let endpoint = Url::parse(&store.endpoint)
            .map_err(|error| format!("the target's `endpoint` cannot be used: {error}"))?;
        Ok(Self {
            client: transport::build_client(store.ca_file.as_deref(), timings)?,
            query_endpoint: derive_query_endpoint(&endpoint),
            endpoint,
            login: store.login.clone(),
            timings: *timings,
        })
    }

    /// Returns the URL of the endpoint.
    pub(super) fn endpoint(&self) -> &str {
        self.endpoint.as_str()
    }

    /// Returns the URL that queries are sent to.
    pub(super) fn query_endpoint(&self) -> &str {
        self.query_endpoint.as_str()
    }

    /// Returns whether the server answers with any status.
    pub(super) async fn is_reachable(&self) -> bool {
        transport::is_reachable(&self.client, self.endpoint.clone(), &self.timings).await
    }

    /// Sends an update.
    pub(super) async fn update(
        &self,
        text: String,
        uplink: &Arc<Uplink>,
        extra_timeout: Duration,
    ) -> Result<HttpAnswer, LostRequest> {
        let length = text.len() as u64;
        let progress = Arc::new(Progress::begin(&self.timings, length, extra_timeout));
        let body = bytes_body(Bytes::from(text), Arc::clone(uplink), Arc::clone(&progress));
        let request = self
            .request(Method::POST, self.endpoint.clone())
            .header(CONTENT_TYPE, "application/sparql-update")
            .header(CONTENT_LENGTH, length)
            .body(body);
        transport::send(request, &progress, MAX_ANSWER_BYTES).await
    }

    /// Sends an update that changes nothing.
    pub(super) async fn update_nothing(&self) -> Result<HttpAnswer, LostRequest> {
        let test = test_graph();
        let text = format!("DELETE WHERE {{ GRAPH <{test}> {{ <{test}> <{test}> ?nothing }} }}");
        self.update(text, &Arc::new(Uplink::new(None, None)), Duration::ZERO).await
    }

    /// Sends a query. It is in the URL, which every store supports: Virtuoso 7.2 never answers a query in the body of a
    /// POST.
    pub(super) async fn query(&self, text: &str) -> Result<HttpAnswer, LostRequest> {
        let mut url = self.query_endpoint.clone();
        url.query_pairs_mut().append_pair("query", text);
        let request =
            self.request(Method::GET, url).header(ACCEPT, "application/sparql-results+json");
        self.get(request).await
    }

    /// Requests a graph that does not exist.
    pub(super) async fn get_test_graph(&self) -> Result<HttpAnswer, LostRequest> {
        let request = self
            .request(Method::GET, self.graph_url(&test_graph()))
            .header(ACCEPT, "application/n-triples");
        self.get(request).await
    }

    /// Replaces a graph by the triples of a file.
    pub(super) async fn put_graph(
        &self,
        graph: &str,
        content: &ObjectContent,
        uplink: &Arc<Uplink>,
        extra_timeout: Duration,
    ) -> Result<HttpAnswer, LostRequest> {
        let length = content.length;
        let progress = Arc::new(Progress::begin(&self.timings, length, extra_timeout));
        let (file, uplink) = (Arc::clone(&content.file), Arc::clone(uplink));
        let body = file_body(file, 0..length, uplink, Arc::clone(&progress));
        let request = self
            .request(Method::PUT, self.graph_url(graph))
            .header(CONTENT_TYPE, "application/n-triples")
            .header(CONTENT_LENGTH, length)
            .body(body);
        transport::send(request, &progress, MAX_ANSWER_BYTES).await
    }

    /// Sends a request without a body.
    async fn get(&self, request: RequestBuilder) -> Result<HttpAnswer, LostRequest> {
        let progress = Progress::begin(&self.timings, 0, Duration::ZERO);
        transport::send(request, &progress, MAX_ANSWER_BYTES).await
    }

    fn graph_url(&self, graph: &str) -> Url {
        let mut url = self.endpoint.clone();
        url.query_pairs_mut().append_pair("graph", graph);
        url
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.client.request(method, url);
        match &self.login {
            SparqlLogin::Anonymous => request,
            SparqlLogin::Basic { username, password } => {
                request.basic_auth(username, Some(password))
            }
            SparqlLogin::Bearer(token) => request.bearer_auth(token),
        }
    }
}

fn test_graph() -> String {
    format!("{VOCABULARY}connection-test")
}

/// Returns where a store answers queries, by the address for updates: `/update` and `/query` (Oxigraph, Fuseki, Stardog),
/// `/statements` below the repository (RDF4J), otherwise the same one.
fn derive_query_endpoint(endpoint: &Url) -> Url {
    let mut url = endpoint.clone();
    let path = endpoint.path();
    if let Some(parent) = path.strip_suffix("/update") {
        url.set_path(&format!("{parent}/query"));
    } else if let Some(repository) = path.strip_suffix("/statements") {
        url.set_path(repository);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_for_queries_follows_from_that_for_updates() {
        for (endpoint, queries) in [
            ("https://s.example/update", "https://s.example/query"),
            ("https://s.example/plant/update", "https://s.example/plant/query"),
            ("https://s.example/repositories/p/statements", "https://s.example/repositories/p"),
            ("https://s.example/sparql", "https://s.example/sparql"),
        ] {
            let url = derive_query_endpoint(&Url::parse(endpoint).unwrap());
            assert_eq!(url.as_str(), queries);
        }
    }
}
