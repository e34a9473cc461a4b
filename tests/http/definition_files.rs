//! What the pages and the API show of definitions that come from files.
use penstock_auth::Authorized;
use penstock_resources::definitions::DefinitionFile;
use penstock_service::definitions::{ApplyOptions, apply_files, apply_service_folder};
use penstock_test_support::prelude::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const PLANT: &str = "\
- kind: BusinessObject
  name: Pumps
  config: |
    type: object
    path: Pump:.
    fields:
      name: {type: string, path: <https://plant.example/name>}
- {name: Tank, uriBase: 'https://plant.example/Tank/', generator: counter}
- {kind: Group, name: leaders, claimValues: [shift-leaders]}
";
const SHAPES: &str = "<urn:S> a <http://www.w3.org/ns/shacl#NodeShape> ; <http://www.w3.org/ns/shacl#targetNode> <urn:a> .";

/// Writes a file of the folder of the service.
fn write(dir: &Path, name: &str, text: &str) {
    let folder = dir.join("definitions");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(folder.join(name), text).unwrap();
    fs::set_permissions(folder.join(name), PermissionsExt::from_mode(0o644)).unwrap();
}

async fn start(dir: &Path) -> TestApp {
    write(dir, "plant.yaml", PLANT);
    write(dir, "names.ttl", SHAPES);
    let setting = format!("--service.definitions.dir={}", dir.join("definitions").display());
    let server = TestApp::start_in(dir, &[&setting]).await.unwrap();
    let files = &server.gateway().definition_files;
    until("the files are applied", async || !files.outcome().is_running).await;
    server
}

/// Returns a file as `penstock apply` sends it.
fn group_file(claim: &str) -> DefinitionFile {
    let text = format!("{{kind: Group, name: others, claimValues: [{claim}]}}\n");
    DefinitionFile { name: "others.yaml".to_owned(), text }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_of_a_definition_from_a_file_are_read_only() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let admin = server.session(Role::Admin);
    let object = server.gateway().catalogue.get("Pumps").unwrap().object.clone();
    let pumps = format!("/admin/business-objects/{}", object.id);
    for (path, file) in [
        (pumps.as_str(), "plant.yaml"),
        ("/admin/namespaces/Tank", "plant.yaml"),
        ("/admin/groups/leaders", "plant.yaml"),
        ("/admin/shapes/names", "names.ttl"),
    ] {
        let notice = format!("The file {file} of service.definitions.dir defines this.");
        let shown = admin.page(path).await;
        assert!(shown.contains(&notice), "{path}: {shown}");
        for action in [">Save<", "/delete\"", "/edit\""] {
            assert!(!shown.contains(action), "{path} has {action}: {shown}");
        }
        let shown = admin.page(&format!("{path}/delete")).await;
        assert!(shown.contains(&notice), "{path}: {shown}");
        assert!(!shown.contains("class=\"danger\""), "{path}: {shown}");
    }
    let list = admin.page("/admin/business-objects").await;
    assert!(list.contains(&pumps) && !list.contains(&format!("{pumps}/edit")), "{list}");
    let editor = admin.page(&format!("{pumps}/edit")).await;
    assert!(editor.contains("The file plant.yaml of") && !editor.contains(">Save<"), "{editor}");
    let group = admin.page("/admin/groups/leaders").await;
    assert!(group.contains("<dd>shift-leaders</dd>"), "{group}");

    // A form that was opened before is refused, and the page says why.
    let send = async |path: &str, fields: &str| {
        admin.send("POST", path, &[FORM, HTML], fields.to_owned()).await
    };
    let saved = send("/admin/groups/leaders", "version=1&claimValues=mine").await.expect(409);
    assert!(saved.text().contains("is defined by the file plant.yaml"), "{}", saved.text());
    let base = "uriBase=https://plant.example/Other/&generator=counter";
    let saved = send("/admin/namespaces/Tank", base).await.expect(409);
    assert!(saved.text().contains("is defined by the file plant.yaml"), "{}", saved.text());
    send("/admin/groups/leaders/delete", "version=1").await.expect(303);
    send("/admin/namespaces/Tank/delete", "x=1").await.expect(303);
    send("/admin/shapes/names/delete", "x=1").await.expect(303);
    send(&format!("{pumps}/delete"), "version=1").await.expect(303);
    send(&format!("{pumps}/delete"), "version=1&data=true").await.expect(303);
    for path in ["groups/leaders", "namespaces/Tank", "shapes/names", "business-objects/Pumps"] {
        server.get(&format!("/api/v1/{path}")).await.expect(200);
        server.delete(&format!("/api/v1/{path}")).await.problem(409);
    }

    // Without their files, all can be changed again.
    for name in ["plant.yaml", "names.ttl"] {
        fs::remove_file(dir.path().join("definitions").join(name)).unwrap();
    }
    apply_service_folder(server.gateway(), &Authorized::local());
    let shown = admin.page("/admin/groups/leaders").await;
    assert!(shown.contains(">Save<") && !shown.contains("service.definitions.dir"), "{shown}");
    let shown = admin.page(&pumps).await;
    assert!(shown.contains("/edit\"") && shown.contains("/delete\""), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_and_the_pages_show_errors_and_drift() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let admin = server.session(Role::Admin);
    let definitions = async || server.get("/api/v1/status").await.json()["definitions"].clone();
    let status = definitions().await;
    assert_eq!((status["managed"].as_u64(), status["drift"].list().len()), (Some(4), 0));
    assert!(status["appliedAt"].is_string(), "{status}");
    assert_eq!(status["running"], false, "{status}");
    let (overview, settings) = ("/admin", "/admin/settings");
    assert!(!admin.page(settings).await.contains("Definitions from files"));
    let run = server.gateway().definition_files.begin_run();
    assert_eq!(definitions().await["running"], true);
    assert!(admin.page(settings).await.contains("The gateway is applying the files."));
    drop(run);
    assert!(!admin.page(overview).await.contains("definition files"));

    // A client changes what `penstock apply` created.
    let options = ApplyOptions { folder: "/others".to_owned(), ..ApplyOptions::default() };
    apply_files(server.gateway(), &Authorized::local(), &[group_file("a")], &options).unwrap();
    let body = json!({"claimValues": ["b"]});
    server.put("/api/v1/groups/others", &body).await.expect(200);
    write(dir.path(), "plant.yaml", &PLANT.replace("type: string", "type: <b>"));
    apply_service_folder(server.gateway(), &Authorized::local());
    let status = definitions().await;
    assert_eq!(status["drift"][0]["name"], "others", "{status}");
    assert!(status["errors"][0].text().starts_with("plant.yaml:7:20: "), "{status}");
    let metrics = server.page("/metrics").await;
    let errors = format!("errors {}", status["errorCount"]);
    assert_ne!(errors, "errors 0");
    for line in ["managed 5", "drifted 1", &errors] {
        assert!(metrics.contains(&format!("\npenstock_definitions_{line}\n")), "{line}: {metrics}");
    }
    let shown = admin.page(settings).await;
    shown.has_all(&[
        "Definitions from files",
        "plant.yaml:7:20: ",
        "<th scope=\"row\">others</th><td data-label=\"Kind\">group</td><td data-label=\"File\">others.yaml</td>",
        "Changed since the file was applied",
    ]);
    assert!(!shown.contains("<b>"), "{shown}");
    let shown = admin.page(overview).await;
    shown.has_all(&[
        "The definition files were not applied.",
        "plant.yaml:7:20: ",
        "Definitions differ from their files.",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_admins_see_which_member_of_a_group_is_not_an_account() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let email = "ada@plant.example";
    let unknown = PLANT.replace("claimValues:", &format!("members: [{email}], claimValues:"));
    write(dir.path(), "plant.yaml", &unknown);
    apply_service_folder(server.gateway(), &Authorized::local());
    let of_admin = server.page("/api/v1/status").await;
    assert!(of_admin.contains(email), "{of_admin}");

    for role in [Role::User, Role::Contributor] {
        let status = server.with_key(role, None).get("/api/v1/status").await.expect(200);
        assert!(!status.text().contains("ada@"), "{}", status.text());
        let status = status.json();
        let expected = "plant.yaml:9:42: a member is not an account; Admins see the id or email that was given";
        assert_eq!(status["definitions"]["errors"][0], expected, "{status}");
        let warning = status["warnings"][0].text();
        assert!(warning.ends_with(expected), "{status}");
        let overview = server.session(role).page("/admin").await;
        assert!(overview.contains("plant.yaml:9:42: ") && !overview.contains("ada@"), "{overview}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_lists_the_first_errors_and_differences_and_counts_all() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let groups = |claim: &str| {
        let group = |n: u32| format!("- {{kind: Group, name: g{n:02}, claimValues: [{claim}]}}\n");
        (0..30).map(group).collect::<String>()
    };
    let options = ApplyOptions { folder: "/others".to_owned(), ..ApplyOptions::default() };
    let file = |text: String| [DefinitionFile { name: "groups.yaml".to_owned(), text }];
    let by = Authorized::local();
    apply_files(server.gateway(), &by, &file(groups("a")), &options).unwrap();
    // All but the last have no file any more.
    let last = "{kind: Group, name: g29, claimValues: [a]}\n".to_owned();
    apply_files(server.gateway(), &by, &file(last), &options).unwrap();
    let body = json!({"claimValues": ["b"]});
    server.put("/api/v1/groups/g29", &body).await.expect(200);
    write(dir.path(), "plant.yaml", &groups("{}"));
    apply_service_folder(server.gateway(), &by);
    let status = server.read("/api/v1/status").await;
    let definitions = &status["definitions"];
    let counts = [&definitions["driftCount"], &definitions["errorCount"]].map(Value::as_u64);
    assert_eq!(counts, [Some(30), Some(30)], "{status}");
    let lengths = [&definitions["drift"], &definitions["errors"], &status["warnings"]]
        .map(|list| list.list().len());
    assert_eq!(lengths, [20, 20, 21], "{status}");
    // What somebody changed comes before what has no file any more.
    assert_eq!(definitions["drift"][0]["state"], "changed", "{status}");
    let more = "service.definitions.dir: 10 more; penstock apply --dry-run shows all";
    assert_eq!(status["warnings"][20], more, "{status}");
}
