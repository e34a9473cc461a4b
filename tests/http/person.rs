//! A signed-in account that sends requests.
use crate::server::{Answer, Server, connect};
use penstock_auth::Role;
use penstock_auth::sessions::Sessions;

/// A signed-in account.
pub(crate) struct Person {
    pub(crate) id: String,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Person {
    pub(crate) async fn sign_in(server: &Server, role: Role) -> Self {
        let cookie = server.sign_in(role);
        let token = Sessions::csrf_token(cookie.split_once('=').unwrap().1);
        let headers = vec![
            ("Cookie", cookie),
            ("Sec-Fetch-Site", "same-origin".to_owned()),
            ("X-CSRF-Token", token),
        ];
        let mut person = Self { id: String::new(), headers };
        let me = person.send(server, "GET", "/api/v1/users/me", &[], "").await.expect(200).json();
        me["id"].as_str().unwrap().clone_into(&mut person.id);
        person
    }

    pub(crate) async fn send(
        &self,
        server: &Server,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let own = self.headers.iter().map(|(name, value)| (*name, value.as_str()));
        let mut headers: Vec<(&str, &str)> = own.chain(more.iter().copied()).collect();
        if !body.is_empty() && !more.iter().any(|(name, _)| *name == "Content-Type") {
            headers.push(("Content-Type", "application/json"));
        }
        connect(server.address, method, path, &headers, body.to_owned()).await
    }

    pub(crate) async fn get(&self, server: &Server, path: &str) -> Answer {
        self.send(server, "GET", path, &[], "").await
    }

    pub(crate) async fn step(
        &self,
        server: &Server,
        id: &str,
        action: &str,
        if_match: &str,
    ) -> Answer {
        let path = format!("/api/v1/changes/{id}/{action}");
        let headers = [("If-Match", if_match)];
        let headers = if if_match.is_empty() { &headers[..0] } else { &headers[..] };
        self.send(server, "POST", &path, headers, "").await
    }
}
