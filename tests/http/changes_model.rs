//! A model of changes: random users, groups, steps, concurrent ingestions and restarts. After each step, everybody sees
//! exactly the changes that they may see, each change is published at most once, and no identifier is minted twice.
use penstock_test_support::prelude::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tempfile::TempDir;

/// The users: two authors, a reader, and an Admin that is no approver unless the group has it.
const ROLES: [Role; 4] = [Role::Contributor, Role::Contributor, Role::User, Role::Admin];
const ADMIN: usize = 3;
const GROUPS: [&str; 2] = ["owners", "approvers"];
const ACTIONS: [&str; 5] = ["submit", "approve", "reject", "withdraw", "rebase"];

#[derive(Debug, Clone)]
enum Operation {
    /// A user sends a change, perhaps as a draft, and perhaps with an owner: a user, or the group `owners`.
    Send { user: usize, draft: bool, owner: Option<usize> },
    /// A user takes a step of a change, with the version that it has, or with an older one.
    Step { user: usize, change: usize, action: usize, stale: bool },
    /// A user joins or leaves a group.
    Toggle { user: usize, group: usize },
    /// Something else is ingested, with an identifier of the same counter.
    Ingest,
    /// What a change would create is created with other values by somebody who guesses its URI.
    Interfere { change: usize },
    /// The gateway is stopped and started.
    Restart,
}

/// A change as it should be.
#[derive(Debug, Clone)]
struct Expected {
    id: String,
    uri: String,
    author: usize,
    owner: Option<usize>,
    state: &'static str,
    version: u64,
    /// Whether its difference is no longer what it would do.
    differs: bool,
    /// Whether another object has its URI.
    is_taken: bool,
}

struct Model {
    server: Option<TestApp>,
    dir: TempDir,
    people: Vec<Person>,
    members: [BTreeSet<usize>; 2],
    changes: Vec<Expected>,
    minted: BTreeSet<String>,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let user = 0..ROLES.len();
    let operation = prop_oneof![
        4 => (0..2_usize, any::<bool>(), prop::option::of(0..5_usize))
            .prop_map(|(user, draft, owner)| Operation::Send { user, draft, owner }),
        8 => (user.clone(), 0..6_usize, 0..ACTIONS.len(), prop::bool::weighted(0.2)).prop_map(
            |(user, change, action, stale)| Operation::Step { user, change, action, stale }
        ),
        2 => (user, 0..2_usize).prop_map(|(user, group)| Operation::Toggle { user, group }),
        1 => Just(Operation::Ingest),
        1 => (0..6_usize).prop_map(|change| Operation::Interfere { change }),
        1 => Just(Operation::Restart),
    ];
    prop::collection::vec(operation, 1..14)
}

impl Model {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = TestApp::reopen(dir.path()).await;
        let mut people = Vec::new();
        for role in ROLES {
            people.push(Person::sign_in(&server, role).await);
        }
        for group in GROUPS {
            server.put(&format!("/api/v1/groups/{group}"), &json!({})).await.expect(201);
        }
        let namespaces = json!([{"name": "Pump", "generator": "counter"}]);
        let others = json!({"review": "optional", "approvers": ["group:approvers"], "namespaces": namespaces});
        server.define_with(&others).await;
        Self {
            server: Some(server),
            dir,
            people,
            members: Default::default(),
            changes: Vec::new(),
            minted: BTreeSet::new(),
        }
    }

    fn server(&self) -> &TestApp {
        self.server.as_ref().unwrap()
    }

    /// Returns whether a user is the author, an owner, an approver and an Admin.
    fn relation(&self, user: usize, change: &Expected) -> [bool; 4] {
        let owner = match change.owner {
            Some(4) => self.members[0].contains(&user),
            Some(owner) => owner == user,
            None => false,
        };
        [change.author == user, owner, self.members[1].contains(&user), user == ADMIN]
    }

    async fn run(&mut self, operation: &Operation) {
        match *operation {
            Operation::Send { user, draft, owner } => self.send(user, draft, owner).await,
            Operation::Step { user, change, action, stale } => {
                if !self.changes.is_empty() {
                    let change = change % self.changes.len();
                    self.step(user, change, ACTIONS[action], stale).await;
                }
            }
            Operation::Toggle { user, group } => {
                if !self.members[group].remove(&user) {
                    self.members[group].insert(user);
                }
                let ids: Vec<_> =
                    self.members[group].iter().map(|user| self.people[*user].id.clone()).collect();
                let path = format!("/api/v1/groups/{}", GROUPS[group]);
                self.server().put(&path, &json!({"members": ids})).await.expect(200);
            }
            Operation::Ingest => {
                let answer = self.server().ingest("ADD", &json!([{"name": "direct"}])).await;
                let uri = answer.expect(200).json()["objects"][0]["uri"].string();
                assert!(self.minted.insert(uri.clone()), "{uri} was minted twice");
            }
            Operation::Interfere { change } => {
                if self.changes.is_empty() {
                    return;
                }
                let change = change % self.changes.len();
                let Expected { uri, state, .. } = self.changes[change].clone();
                if !matches!(state, "draft" | "submitted") {
                    return;
                }
                let object = json!([{"uri": uri, "flow": 7}]);
                self.server().ingest("ADD", &object).await.expect(200);
                self.changes[change].differs = true;
                self.changes[change].is_taken = true;
            }
            Operation::Restart => {
                self.server.take().unwrap().stop().await;
                let server = TestApp::reopen(self.dir.path()).await;
                self.people = self.people.iter().map(|person| person.at(&server)).collect();
                self.server = Some(server);
            }
        }
    }

    async fn send(&mut self, user: usize, draft: bool, owner: Option<usize>) {
        let owners = match owner {
            Some(4) => "&changeOwners=group:owners".to_owned(),
            Some(owner) => format!("&changeOwners=user:{}", self.people[owner].id),
            None => String::new(),
        };
        let path = format!("/api/v1/business-objects/Pump?review=true&draft={draft}{owners}");
        let body = json!({"data": [{"name": format!("change {}", self.changes.len())}]});
        let change = self.people[user].post(&path, &body).await.expect(202).json();
        let uri = change["objects"][0]["uri"].string();
        assert!(self.minted.insert(uri.clone()), "{uri} was minted twice");
        self.changes.push(Expected {
            id: change["id"].string(),
            uri,
            author: user,
            owner,
            state: if draft { "draft" } else { "submitted" },
            version: 1,
            differs: false,
            is_taken: false,
        });
    }

    async fn step(&mut self, user: usize, change: usize, action: &str, stale: bool) {
        let expected = self.changes[change].clone();
        let seen = if stale { expected.version - 1 } else { expected.version };
        let tag = format!("\"{seen}\"");
        let answer = self.people[user].step(&expected.id, action, &tag).await;
        let [author, owner, approver, admin] = self.relation(user, &expected);
        let (may, to) = match action {
            "submit" => (author || owner, "submitted"),
            "approve" => (approver && !author, "approved"),
            "reject" => (approver, "rejected"),
            "withdraw" => (author || owner, "withdrawn"),
            _ => (author || owner || approver, "submitted"),
        };
        let needs_contributor = matches!(action, "approve" | "reject");
        let is_open = matches!(expected.state, "draft" | "submitted");
        let is_allowed = match action {
            "submit" => expected.state == "draft",
            "approve" | "reject" => expected.state == "submitted",
            _ => is_open,
        };
        let status = if needs_contributor && ROLES[user] == Role::User {
            403
        } else if !(author || owner || approver || admin) {
            404
        } else if !may {
            403
        } else if !is_allowed {
            if expected.state == to && action != "rebase" { 200 } else { 409 }
        } else if stale {
            412
        } else if action == "approve" && expected.differs {
            409
        } else {
            200
        };
        let text = format!("{action} by {user} of {expected:?}: {}", answer.text());
        assert_eq!(answer.status, status, "{text}");
        if status != 200 || !is_allowed {
            return;
        }
        let now = answer.json();
        let changed = &mut self.changes[change];
        changed.version = now["version"].as_u64().unwrap();
        changed.state = to;
        if action == "rebase" {
            changed.differs = false;
            self.learn_new_uri(change, user).await;
        } else {
            assert_eq!(changed.version, expected.version + 1, "{text}");
        }
    }

    /// Reads the URI that a rebase minted because another object has the first one.
    async fn learn_new_uri(&mut self, change: usize, user: usize) {
        let path = format!("/api/v1/changes/{}", self.changes[change].id);
        let details = self.people[user].read(&path).await;
        let uri = details["difference"]["items"][0]["uri"].string();
        let expected = &mut self.changes[change];
        assert_eq!(uri != expected.uri, expected.is_taken, "{details}");
        if uri != expected.uri {
            assert!(self.minted.insert(uri.clone()), "{uri} was minted twice");
            expected.uri = uri;
            expected.is_taken = false;
        }
    }

    /// Compares what everybody sees, and what is published.
    async fn check(&self) {
        let server = self.server();
        for (user, person) in self.people.iter().enumerate() {
            let visible: BTreeMap<&str, &str> = self
                .changes
                .iter()
                .filter(|change| self.relation(user, change).contains(&true))
                .map(|change| (change.id.as_str(), change.state))
                .collect();
            let states = |changes: &[Value]| -> BTreeMap<String, String> {
                changes
                    .iter()
                    .map(|change| (change["id"].string(), change["state"].string()))
                    .collect()
            };
            let found = states(&person.items("/api/v1/changes").await);
            let expected: BTreeMap<String, String> =
                visible.iter().map(|(id, state)| ((*id).to_owned(), (*state).to_owned())).collect();
            assert_eq!(found, expected, "user {user}");
            let query = json!({"query": "{ penstockPendingChanges { id state } }"});
            let pending = person.post("/graphql", &query).await.json();
            let pending = states(pending["data"]["penstockPendingChanges"].list());
            let is_open = |state: &str| matches!(state, "draft" | "submitted");
            let open = expected.into_iter().filter(|(_, state)| is_open(state)).collect();
            assert_eq!(pending, open, "user {user}");
            for change in &self.changes {
                let path = format!("/api/v1/changes/{}", change.id);
                let status = person.get(&path).await.status;
                let sees = visible.contains_key(change.id.as_str());
                assert_eq!(status, if sees { 200 } else { 404 }, "user {user}, {change:?}");
            }
        }
        let objects = server.items("/api/v1/business-objects/Pump/objects?limit=1000").await;
        let names: Vec<&str> = objects.iter().filter_map(|it| it["name"].as_str()).collect();
        for (number, change) in self.changes.iter().enumerate() {
            let name = format!("change {number}");
            let count = names.iter().filter(|other| **other == name).count();
            assert_eq!(count, usize::from(change.state == "approved"), "{change:?}: {objects:?}");
        }
    }
}

#[test]
fn everybody_sees_exactly_what_they_may_and_a_change_is_published_once() {
    let cases = std::env::var("PENSTOCK_CHANGES_CASES").ok().and_then(|text| text.parse().ok());
    let config =
        Config { cases: cases.unwrap_or(12), failure_persistence: None, ..Config::default() };
    let run = |operations: Vec<Operation>| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let mut model = Model::new().await;
            for operation in &operations {
                model.run(operation).await;
                model.check().await;
            }
            model.server.take().unwrap().stop().await;
        });
        Ok::<_, TestCaseError>(())
    };
    TestRunner::new(config).run(&operations(), run).unwrap();
}
