//! Oxigraph's server as a SPARQL store.
use super::plant_a;
use crate::process::free_port;
use crate::until;
use penstock_config::{
    ExportFormat, GraphTemplate, KeyTemplate, SparqlLogin, SparqlProtocol, SparqlStore, Target,
    TargetKind, Targets,
};
use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};

/// A running server with an empty store in memory.
pub struct SparqlServer {
    process: Child,
    pub url: String,
}

impl Drop for SparqlServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl SparqlServer {
    pub async fn start() -> Self {
        let binary = std::env::var("PENSTOCK_TEST_OXIGRAPH").unwrap_or_else(|_| {
            panic!(
                "this test needs Oxigraph's server: run `tests/run`, which installs it, or `pip install oxigraph`, and \
                 set PENSTOCK_TEST_OXIGRAPH to the path of the program `oxigraph`"
            )
        });
        let address = format!("127.0.0.1:{}", free_port());
        let process = Command::new(binary)
            .args(["serve", "--bind", &address])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let store = Self { process, url: format!("http://{address}") };
        until("the server listens", async || reqwest::get(&store.url).await.is_ok()).await;
        store
    }

    /// Returns the values of `?x`, as the store writes them in N-Triples.
    pub async fn select(&self, pattern: &str) -> BTreeSet<String> {
        let client = reqwest::Client::new();
        let request = client
            .post(format!("{}/query", self.url))
            .header("content-type", "application/sparql-query")
            .header("accept", "text/tab-separated-values")
            .body(format!("SELECT DISTINCT ?x WHERE {{ {pattern} }}"));
        let answer = request.send().await.unwrap().error_for_status().unwrap();
        let text = answer.text().await.unwrap();
        text.lines().skip(1).map(str::to_owned).collect()
    }

    /// Returns the names of all graphs.
    pub async fn graphs(&self) -> Vec<String> {
        self.select("GRAPH ?x { ?s ?p ?o }").await.into_iter().collect()
    }

    pub async fn update(&self, text: &str) {
        let client = reqwest::Client::new();
        let request = client
            .post(format!("{}/update", self.url))
            .header("content-type", "application/sparql-update")
            .body(text.to_owned());
        request.send().await.unwrap().error_for_status().unwrap();
    }
}

/// Returns a target at this URL.
pub fn sparql(endpoint: &str, protocol: SparqlProtocol) -> Target {
    Target {
        kind: TargetKind::Sparql(SparqlStore {
            endpoint: endpoint.to_owned(),
            protocol,
            login: SparqlLogin::Bearer("SECRET".to_owned()),
            ca_file: None,
            graph: GraphTemplate::default(),
        }),
        prefix: String::new(),
        key: KeyTemplate::default(),
        format: ExportFormat::Json,
    }
}

/// Returns targets with `plant-a`, a store that is updated at this server.
pub fn updated(server: &str) -> Targets {
    plant_a(sparql(&format!("{server}/update"), SparqlProtocol::Update))
}
