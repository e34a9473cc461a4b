//! A gateway that accepts the access tokens of an issuer.
use penstock_auth::Account;
use penstock_test_support::issuer::accept_tokens;
use penstock_test_support::prelude::*;
use std::ops::Deref;

/// A running gateway.
pub(crate) struct Gateway(TestApp);

impl Deref for Gateway {
    type Target = TestApp;

    fn deref(&self) -> &TestApp {
        &self.0
    }
}

impl Gateway {
    /// Starts a gateway with its own data directory.
    pub(crate) async fn start(issuer: &Issuer, more: &[&str]) -> Self {
        let settings = accept_tokens(&issuer.url, &issuer.audience);
        Self(TestApp::start(&[&lent(&settings), more].concat()).await)
    }

    /// Starts a gateway in an existing data directory.
    pub(crate) async fn start_in(dir: &Path, issuer: &Issuer, more: &[&str]) -> Self {
        let settings = accept_tokens(&issuer.url, &issuer.audience);
        Self::start_with(dir, &[&lent(&settings), more].concat()).await
    }

    /// Starts a gateway with these settings in an existing data directory.
    pub(crate) async fn start_with(dir: &Path, settings: &[&str]) -> Self {
        Self(TestApp::start_in(dir, settings).await.unwrap())
    }

    /// Stops it gracefully.
    pub(crate) async fn stop(self) {
        self.0.stop().await;
    }

    /// Requests a resource that every user can read.
    pub(crate) async fn ask(&self, token: &str) -> Answer {
        self.caller_with(token).get("/api/v1/limits").await
    }

    /// Returns the status of [`Self::ask`].
    pub(crate) async fn status(&self, token: &str) -> u16 {
        self.ask(token).await.status
    }

    /// Queries the current user with GraphQL.
    pub(crate) async fn user(&self, token: &str) -> Value {
        let query = "{ authenticatedUser { id givenName email roles serviceAccount } }";
        let answer = self.caller_with(token).post("/graphql", &json!({"query": query})).await;
        answer.expect(200).json()["data"]["authenticatedUser"].take()
    }

    /// Lists the accounts of identity providers, so without the first account `admin`.
    pub(crate) fn accounts(&self) -> Vec<Arc<Account>> {
        let mut accounts = self.gateway().auth.accounts.list(None, 1000).unwrap();
        accounts.retain(|account| account.identity.is_some());
        accounts
    }
}
