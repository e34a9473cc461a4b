//! The last step of the demo: a change under review. One account sends it, its change owner sees it, another account
//! approves it.
use super::client::{Body, Client, DemoError};
use super::tour::{APPROVERS, FIRST_PLANT, Tour, encode_uri, text_of, value_at};
use hyper::{Method, StatusCode};
use penstock_auth::password::generate_password;
use serde_json::{Value, json};
use std::io::Write;

const AUTHOR: &str = "ada@demo.example";
const OWNER: &str = "otto@demo.example";
const APPROVER: &str = "grace@demo.example";
/// The operator of the plant after the change.
const NEW_OPERATOR: &str = "https://demo.example/organisation/alpine-hydro";

impl<W: Write> Tour<'_, W> {
    /// Sends a change of a plant, has it approved by another account, and exports the plants.
    pub(super) async fn review_change(&mut self, base: &str) -> Result<(), DemoError> {
        let author = self.sign_in_as(AUTHOR, "Ada", "Contributor").await?;
        let owner = self.sign_in_as(OWNER, "Otto", "User").await?;
        let approver = self.sign_in_as(APPROVER, "Grace", "Contributor").await?;
        let group = format!("/api/v1/groups/{}", APPROVERS.replace(' ', "%20"));
        let members = Body::Json(json!({ "members": [APPROVER] }).to_string());
        self.client.send_for_text(Method::PUT, &group, members).await?;

        let plant = format!("{base}{FIRST_PLANT}");
        let path = format!("/api/v1/business-objects/Plants?mode=UPDATE&changeOwners=user:{OWNER}");
        let data = json!({ "data": [{ "uri": plant, "operator": NEW_OPERATOR }] });
        let body = Body::Json(data.to_string());
        let sent = author.send_for_json(Method::POST, &path, body).await?;
        let id = text_of(value_at(&sent, "/id")).to_owned();
        self.begin_step(&format!(
            "Ada sent a new operator of the first plant as a change, with Otto as its change owner (POST {path}). It is \
             {}: nothing is stored in the graph yet. Otto sees what it would do (GET /api/v1/changes/{id}):",
            text_of(value_at(&sent, "/state")),
        ))?;
        let listed = owner.get_json("/api/v1/changes?role=owner&state=submitted").await?;
        let items = value_at(&listed, "/items").as_array().into_iter().flatten();
        if !items.into_iter().any(|one| value_at(one, "/id") == id.as_str()) {
            return Err(format!("the change owner does not see the change {id}: {listed}").into());
        }
        let change = owner.get_json(&format!("/api/v1/changes/{id}")).await?;
        for side in ["before", "after"] {
            let operator = value_at(&change, &format!("/difference/items/0/{side}/operator"));
            writeln!(self.out, "     operator {side:<7} {}", text_of(operator))?;
        }

        let approve = format!("/api/v1/changes/{id}/approve");
        let seen = format!("\"{}\"", value_at(&change, "/version"));
        let (status, problem) = author.send_with_match(&approve, &seen).await?;
        if status != StatusCode::FORBIDDEN {
            return Err(format!("the author of a change approved it: {status} {problem}").into());
        }
        let (status, approved) = approver.send_with_match(&approve, &seen).await?;
        if !status.is_success() {
            return Err(format!("the change was not approved: {status} {approved}").into());
        }
        let approved: Value = serde_json::from_str(&approved)?;
        let objects = "/api/v1/business-objects/Plants/objects";
        let stored = self.client.get_json(&format!("{objects}?uri={}", encode_uri(&plant))).await?;
        if value_at(&stored, "/operator") != NEW_OPERATOR {
            return Err(format!("the approved change is not stored: {stored}").into());
        }
        self.begin_step(&format!(
            "Ada cannot approve her own change ({}). Grace of the group {APPROVERS:?} approved what she saw (POST {approve} \
             with If-Match: {seen}), and the same commit published it: the change is {}, and the plant has its new operator.",
            StatusCode::FORBIDDEN,
            text_of(value_at(&approved, "/state")),
        ))?;
        self.push_and_verify("Plants", "maintenance").await
    }

    /// Creates an account, or sets the password of the one of an earlier demo, and signs it in.
    async fn sign_in_as(
        &self,
        email: &str,
        given_name: &str,
        role: &str,
    ) -> Result<Client, DemoError> {
        let password = generate_password();
        let users = self.client.get_json("/api/v1/users?limit=1000").await?;
        let users = value_at(&users, "/items").as_array().map_or(&[][..], Vec::as_slice);
        let known = users.iter().find(|user| value_at(user, "/email") == email);
        let (path, body) = match known {
            Some(user) => (
                format!("/api/v1/users/{}/password", text_of(value_at(user, "/id"))),
                json!({ "password": password }),
            ),
            None => (
                "/api/v1/users".to_owned(),
                json!({ "email": email, "givenName": given_name, "roles": [role], "password": password }),
            ),
        };
        self.client.send_for_text(Method::POST, &path, Body::Json(body.to_string())).await?;
        self.client.sign_in(email, &password).await
    }
}
