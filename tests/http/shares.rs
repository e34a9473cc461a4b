//! The threads that all requests share: one account may have a part of them.
use penstock_base::error::GatewayError;
use penstock_service::blocking::{run_blocking, run_for_account};
use penstock_test_support::prelude::*;
use std::sync::mpsc;
use tokio::sync::oneshot;
use tokio::time::timeout;

#[tokio::test(flavor = "multi_thread")]
async fn slow_requests_of_an_account_keep_only_its_own_waiting() {
    let server = TestApp::with_pumps().await;
    let key = server.make_key(Role::User, None);
    let account = server.gateway().auth.keys.authenticate_key(&key).unwrap().id().to_owned();
    let mut slow = Vec::new();
    for _ in 0..8 {
        let (end, ended) = mpsc::channel::<()>();
        let (begin, begun) = oneshot::channel();
        let work = run_blocking(move || {
            let _ = begin.send(());
            let _ = ended.recv();
            Ok::<_, GatewayError>(())
        });
        slow.push((end, tokio::spawn(run_for_account(account.clone(), work))));
        begun.await.unwrap();
    }
    let caller = server.caller_with(&key);
    let query = json!({"query": "{ pumpConnection(first: 1) { nodes { name } } }"});
    for path in ["/api/v1/business-objects/Pump/objects", "/api/v1/ingestions"] {
        let own = timeout(Duration::from_millis(200), caller.get(path)).await;
        assert!(own.is_err(), "{path} takes more than the share of its account");
        server.get(path).await.expect(200);
    }
    let own = timeout(Duration::from_millis(200), caller.post("/graphql", &query)).await;
    assert!(own.is_err(), "GraphQL takes more than the share of its account");
    server.post("/graphql", &query).await.expect(200);
    for (end, work) in slow {
        drop(end);
        work.await.unwrap().unwrap();
    }
    caller.post("/graphql", &query).await.expect(200);
}
