//! While the store opens, every route that needs it responds with 503 and the progress.
use penstock_cli::app::build_service;
use penstock_config::{Sources, load};
use penstock_http::state::State;
use penstock_store::Progress;
use penstock_test_support::prelude::*;
use salvo::conn::Acceptor;
use salvo::{Listener, Server};

#[tokio::test(flavor = "multi_thread")]
async fn requests_get_503_with_progress() {
    let loaded = load(&Sources::default()).unwrap();
    let state = State::new(Arc::new(loaded.settings));
    let acceptor = salvo::conn::TcpListener::new("127.0.0.1:0").bind().await;
    let address = acceptor.holdings()[0].local_addr.clone().into_std().unwrap();
    let running = tokio::spawn(Server::new(acceptor).try_serve(build_service(state.clone())));
    state.set_progress(Progress { done: 3, total: 7 });

    connect(address, "GET", "/health/live", &[], "").await.expect(200);
    connect(address, "GET", "/metrics", &[], "").await.expect(200);
    for path in ["/health/ready", "/api/v1/status", "/api/v1/business-objects", "/id/Pump/1"] {
        let answer = connect(address, "GET", path, &[], "").await;
        let problem = answer.problem(503);
        assert_eq!(answer.header("retry-after"), "1");
        assert!(problem["detail"].has("3 of 7"), "{problem}");
    }
    running.abort();
}
