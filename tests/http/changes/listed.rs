//! Lists of changes: in GraphQL, in the pages, and of an object.
use super::{PENDING, Person, Plant, Server};
use penstock_auth::Role;
use penstock_base::commit::NoClient;
use penstock_base::error::GatewayError;
use penstock_store::{Read as _, Transaction};
use serde_json::{Value, json};

/// The members of a pending change in GraphQL.
const MEMBERS: &str = "id state version businessObject businessObjectName mode author changeOwners approvers bypass \
    createdAt updatedAt base created updated unchanged deleted changedObjects requestBytes";

async fn ask(server: &Server, who: &Person, query: &str) -> Value {
    let body = json!({ "query": query }).to_string();
    who.send(server, "POST", "/graphql", &[], &body).await.expect(200).json()
}

#[tokio::test(flavor = "multi_thread")]
async fn graphql_lists_the_open_changes_that_the_caller_may_see() {
    let plant = Plant::new("required", &[]).await;
    let Plant { server, author, owner, approver, stranger } = &plant;
    let rejected = plant.submit("rejected").await;
    approver.step(server, rejected["id"].as_str().unwrap(), "reject", "").await.expect(200);
    let change = plant.submit(PENDING).await;
    let path = format!("/api/v1/changes/{}", change["id"].as_str().unwrap());
    let known = author.get(server, &path).await.expect(200).json();
    let mut expected = json!({});
    for member in MEMBERS.split_whitespace() {
        expected[member] = known[member].clone();
    }
    expected["history"] = known["history"].clone();
    assert_eq!(expected["changeOwners"], json!([format!("user:{}", owner.id)]));
    let query = format!(
        "{{ all: penstockPendingChanges {{ {MEMBERS} history {{ at by state rebased }} }} \
            pumps: penstockPendingChanges(businessObject: \"Pump\") {{ id }} \
            others: penstockPendingChanges(businessObject: \"Other\") {{ id }} }}"
    );
    for who in [author, owner, approver] {
        let data = ask(server, who, &query).await["data"].take();
        assert_eq!(data["all"], json!([expected]), "{data}");
        assert_eq!((&data["pumps"], &data["others"]), (&json!([{"id": change["id"]}]), &json!([])));
    }
    let none = json!({"data": {"all": [], "pumps": [], "others": []}});
    assert_eq!(ask(server, stranger, &query).await, none);
    // A key for certain Business Objects sees what it has sent itself.
    let bearer = format!("Bearer {}", server.make_key(Role::Contributor, Some("Pump")));
    let limited = Person { id: String::new(), headers: vec![("Authorization", bearer)] };
    assert_eq!(ask(server, &limited, &query).await, none);
    let body = json!({"data": [{"name": "its own"}]}).to_string();
    let path = "/api/v1/business-objects/Pump";
    let own = limited.send(server, "POST", path, &[], &body).await.expect(202).json();
    let found = ask(server, &limited, "{ penstockPendingChanges { id } }").await;
    assert_eq!(found["data"]["penstockPendingChanges"], json!([{"id": own["id"]}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn graphql_lists_large_changes_completely() {
    let plant = Plant::new("required", &[]).await;
    let Plant { server, approver, .. } = &plant;
    let mut ids = Vec::new();
    for number in 0..6 {
        ids.push(plant.submit(&number.to_string()).await["id"].clone());
    }
    ids.reverse();
    let enlarge = |transaction: &mut Transaction<'_>| {
        for id in &ids {
            let key = uuid::Uuid::parse_str(id.as_str().unwrap()).unwrap().into_bytes();
            let stored = transaction.read_document("reviewed-changes", &key)?.unwrap();
            let mut document: Value = serde_json::from_slice(&stored).unwrap();
            document["history"][0]["comment"] = json!("x".repeat(1 << 20));
            transaction.put_document("reviewed-changes", &key, document.to_string().as_bytes())?;
        }
        Ok::<_, GatewayError>(())
    };
    server.gateway().store.commit(&NoClient, enlarge).unwrap();
    let query = "{ a: penstockPendingChanges { id } b: penstockPendingChanges { id } }";
    let found = ask(server, approver, query).await;
    let expected: Vec<_> = ids.iter().map(|id| json!({ "id": id })).collect();
    assert_eq!(found, json!({"data": {"a": expected, "b": expected}}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_in_graphql_counts_as_an_object_each_time() {
    let plant = Plant::new("required", &["--service.limits.graphql.rows=3"]).await;
    let Plant { server, approver, .. } = &plant;
    for name in ["one", "two"] {
        plant.submit(name).await;
    }
    let once = ask(server, approver, "{ penstockPendingChanges { id } }").await;
    assert_eq!(once["data"]["penstockPendingChanges"].as_array().unwrap().len(), 2);
    let twice = "{ a: penstockPendingChanges { id } b: penstockPendingChanges { id } }";
    let errors = ask(server, approver, twice).await["errors"].to_string();
    assert!(errors.contains("service.limits.graphql.rows"), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_to_approve_has_what_the_menu_counts() {
    for (self_approval, is_own_listed) in [("false", false), ("true", true)] {
        let argument = format!("--service.review.self-approval={self_approval}");
        let plant = Plant::new("required", &[&argument]).await;
        let Plant { server, author, approver, .. } = &plant;
        let group = json!({"members": [approver.id, author.id]});
        server.json("PUT", "/api/v1/groups/approvers", &group).await.expect(200);
        let id = plant.submit("one").await["id"].as_str().unwrap().to_owned();
        let html = [("Accept", "text/html")];
        let path = "/admin/changes?role=approver&state=submitted";
        for (who, is_listed) in [(author, is_own_listed), (approver, true)] {
            let page = who.send(server, "GET", path, &html, "").await.expect(200).text();
            assert_eq!(
                page.contains(&format!("href=\"/admin/changes/{id}\"")),
                is_listed,
                "{page}"
            );
            assert_eq!(
                page.contains("1<span class=\"sr\"> to approve</span>"),
                is_listed,
                "{page}"
            );
        }
        // It is the approver of its own change nevertheless, and may reject it.
        let listed = author.get(server, "/api/v1/changes?role=approver").await.expect(200).json();
        assert_eq!(listed["items"][0]["id"], id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_cannot_be_read_hides_neither_its_object_nor_others() {
    let plant = Plant::new("optional", &[]).await;
    let Plant { server, author, approver, .. } = &plant;
    let stored = server.ingest("ADD", &json!([{"name": "one"}])).await.expect(200).json();
    let uri = stored["objects"][0]["uri"].as_str().unwrap();
    let mut ids = Vec::new();
    for name in ["two", "three"] {
        let body = json!({"data": [{"uri": uri, "name": name}]}).to_string();
        let path = "/api/v1/business-objects/Pump?mode=REPLACE&review=true";
        let change = author.send(server, "POST", path, &[], &body).await.expect(202).json();
        ids.push(change["id"].as_str().unwrap().to_owned());
    }
    let damage = |transaction: &mut Transaction<'_>| {
        let id = uuid::Uuid::parse_str(&ids[1]).unwrap().into_bytes();
        // The hashes of its objects.
        let key = [&id[..], &[4, 0, 0, 0, 0]].concat();
        assert!(transaction.read_document("reviewed-changes.parts", &key)?.is_some());
        transaction.delete_document("reviewed-changes.parts", &key)?;
        Ok::<_, GatewayError>(())
    };
    server.gateway().store.commit(&NoClient, damage).unwrap();
    let path = format!("/admin/object?uri={}", crate::server::escaped(uri));
    let html = [("Accept", "text/html")];
    let page = approver.send(server, "GET", &path, &html, "").await.expect(200).text();
    assert!(page.contains(&format!("href=\"/admin/changes/{}\"", ids[0])), "{page}");
    assert!(!page.contains(&ids[1]), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_change_has_the_next_page_of_its_difference() {
    let plant = Plant::new("required", &[]).await;
    let Plant { server, author, approver, .. } = &plant;
    let pumps: Vec<_> = (1..=150).map(|n| json!({"name": format!("pump {n}.")})).collect();
    let body = json!({ "data": pumps }).to_string();
    let path = "/api/v1/business-objects/Pump";
    let sent = author.send(server, "POST", path, &[], &body).await.expect(202).json();
    let path = format!("/admin/changes/{}", sent["id"].as_str().unwrap());
    let html = [("Accept", "text/html")];
    let get =
        async |path: &str| approver.send(server, "GET", path, &html, "").await.expect(200).text();
    let first = get(&path).await;
    assert!(first.contains("pump 100.") && !first.contains("pump 101."), "{first}");
    let link = format!("href=\"{path}?cursor=");
    let (_, rest) = first.split_once(&link).unwrap();
    let cursor = rest.split('"').next().unwrap();
    let second = get(&format!("{path}?cursor={cursor}")).await;
    assert!(second.contains("pump 101.") && second.contains("pump 150."), "{second}");
    assert!(!second.contains("pump 100.") && !second.contains("/approve\""), "{second}");
    assert!(second.contains("Back to the first page"), "{second}");
}
