//! The configuration reports all errors, each with its value and origin, and without secrets.
use crate::{in_dir, load_errors, with_arguments};
use penstock_config::Sources;

#[test]
fn all_errors_are_reported_with_their_origins() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("application.yaml");
    std::fs::write(&file, "server:\n  port: 80800\nservice.limits.nesting: 0\n").unwrap();
    let mut sources = in_dir(dir.path());
    sources.environment.insert("SERVICE_LIMITS_BODY".into(), "lots".into());
    sources.arguments.push("--service.log.level=verbose".into());
    let found = load_errors(&sources);
    let file = file.display();
    for expected in [
        format!("server.port = \"80800\" (from {file}, line 2): expected a whole number from 0 to 65535"),
        format!("service.limits.nesting = \"0\" (from {file}, line 3): expected a whole number from 1 to 1000"),
        "service.limits.body = \"lots\" (from environment variable SERVICE_LIMITS_BODY): expected a size in bytes from 1KiB to 1GiB, such as 16777216 or 16MiB".into(),
        "service.log.level = \"verbose\" (from --service.log.level): expected error, warn, info, debug, trace or off, also per part, such as info,penstock_http=debug".into(),
    ] {
        assert!(found.contains(&expected), "{expected}\nis not in\n{found:#?}");
    }
    assert_eq!(found.len(), 4, "{found:#?}");
}

#[test]
fn an_environment_variable_that_is_not_utf_8_is_named_if_it_is_a_setting() {
    let unreadable_variables = vec!["LS_COLORS".to_owned(), "SERVICE_DATA_DIR".to_owned()];
    let found = load_errors(&Sources { unreadable_variables, ..Sources::default() });
    assert_eq!(found, ["environment variable SERVICE_DATA_DIR: its value is not UTF-8"]);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    for (file, text, expected) in [
        ("application.yaml", b"a: 1\nb: [\n".as_slice(), "line 3"),
        ("application.properties", b"a=1\nb=\\uzz\n", "line 2"),
        ("application.yml", b"\xff\xfe", "UTF-8"),
    ] {
        let path = dir.path().join(file);
        std::fs::write(&path, text).unwrap();
        let found = load_errors(&in_dir(dir.path()));
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].starts_with(&path.display().to_string()), "{found:#?}");
        assert!(found[0].contains(expected), "{found:#?}");
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn credentials_that_were_not_read_are_named_if_a_value_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("credentials");
    std::fs::create_dir(&folder).unwrap();
    let target = ["type=s3", "endpoint=https://s3.example", "access-key-id=a"];
    let target = target.map(|value| format!("--service.export.targets.plant.{value}"));
    let is_named = |arguments: &[String], credentials_dir| {
        let arguments = arguments.to_vec();
        let sources = Sources { arguments, credentials_dir, ..in_dir(dir.path()) };
        let warnings = penstock_config::load(&sources).unwrap_err().warnings;
        let expected = format!("the secrets in {} were not read", folder.display());
        warnings.iter().any(|warning| warning.starts_with(&expected))
    };
    assert!(is_named(&target, None));
    assert!(!is_named(&target, Some(folder.clone())));
    assert!(!is_named(&["--server.port=x".to_owned()], None));
}

#[test]
fn a_secret_is_never_shown() {
    let secret = "tip\u{7}top-secret";
    let found = load_errors(&with_arguments(&[
        "--service.export.targets.plant.type=s3",
        &format!("--service.export.targets.plant.secret-access-key={secret}"),
        "--framework.security.oauth2.client.registration.azure.client-secret=tip\u{7}top-secret",
        "--service.export.targets.plant.endpoint=https://user:top-secret@s3.example",
    ]));
    assert_eq!(found.iter().filter(|f| f.contains("******")).count(), 3, "{found:#?}");
    assert!(!found.iter().any(|f| f.contains("top-secret")), "{found:#?}");
}

#[test]
fn a_sparql_target_needs_its_endpoint_and_complete_credentials() {
    let target = "--service.export.targets.central.";
    let login = |settings: &[&str]| {
        let mut arguments = vec![format!("{target}type=sparql")];
        arguments.extend(settings.iter().map(|setting| format!("{target}{setting}")));
        load_errors(&with_arguments(&arguments.iter().map(String::as_str).collect::<Vec<_>>()))
    };
    let endpoint = "endpoint=https://store.example/update";
    for (settings, expected) in [
        (&["username=a", "password=top-secret"][..], "central.endpoint"),
        (&[endpoint, "username=a"][..], "central.password"),
        (&[endpoint, "password=top-secret"][..], "central.username"),
        (
            &[endpoint, "username=a", "password=top-secret", "bearer-token=top-secret"][..],
            "central.bearer-token",
        ),
        (&[endpoint, "graph=plants"][..], "absolute IRI"),
        (&[endpoint, "graph=urn:{name}-{gateway}"][..], "between"),
        (&[endpoint, "protocol=load"][..], "central.protocol"),
    ] {
        let found = login(settings);
        assert!(found.len() == 1 && found[0].contains(expected), "{settings:?}: {found:#?}");
        assert!(!found[0].contains("top-secret"), "{found:#?}");
    }
}

#[test]
fn an_s3_target_needs_its_endpoint_and_keys() {
    let found = load_errors(&with_arguments(&[
        "--service.export.targets.plant.type=s3",
        "--service.export.targets.plant.ca-file=/no/such/ca.pem",
        "--service.export.default.prefix=x/",
    ]));
    for missing in [
        "service.export.targets.plant.endpoint: it is missing",
        "service.export.targets.plant.access-key-id: it is missing",
        "service.export.targets.plant.secret-access-key: it is missing",
        "service.export.targets.plant.ca-file = \"/no/such/ca.pem\" (from --service.export.targets.plant.ca-file): it cannot be read",
        "service.export.default.type: it is missing: s3, directory or sparql",
    ] {
        assert!(found.iter().any(|f| f.starts_with(missing)), "{missing}: {found:#?}");
    }
    let wrong = load_errors(&with_arguments(&["--service.export.default.type=s4"]));
    assert_eq!(wrong.len(), 1, "what is wrong is not missing: {wrong:#?}");
}

#[test]
fn a_file_that_a_setting_names_and_that_cannot_be_read_has_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    for (name, remedy) in [
        ("", "is a directory; name a file in this folder"),
        ("missing.pem", "(os error 2); put the file there, or correct the path"),
    ] {
        let path = dir.path().join(name);
        for setting in ["service.export.targets.plant.ca-file", "service.security.ca-file"] {
            let file = format!("--{setting}={}", path.display());
            let found =
                load_errors(&with_arguments(&["--service.export.targets.plant.type=s3", &file]));
            let error = found.iter().find(|error| error.starts_with(setting)).unwrap();
            let error = error.to_lowercase().replace(" (os error 21)", "");
            assert!(error.ends_with(remedy), "{error}");
        }
    }
}

#[test]
fn an_invalid_bucket_name_is_reported_once() {
    let found = load_errors(&with_arguments(&[
        "--service.export.targets[../etc].type=directory",
        "--service.export.targets[../etc].path=/tmp",
    ]));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].contains("\"../etc\" is not an S3 bucket name"), "{found:#?}");
}

#[test]
fn the_text_of_a_certificate_is_no_ca_file() {
    let text = "-----BEGIN CERTIFICATE----- MIIB -----END CERTIFICATE-----";
    let ca_file = format!("--service.export.targets.plant-a.ca-file={text}");
    let found = load_errors(&with_arguments(&[
        "--service.export.targets.plant-a.type=s3",
        "--service.export.targets.plant-a.url=https://s3.example",
        "--service.export.targets.plant-a.access-key-id=id",
        "--service.export.targets.plant-a.secret-access-key=secret",
        &ca_file,
    ]));
    assert!(found.iter().any(|error| error.contains("it cannot be read")), "{found:#?}");
}

#[test]
fn related_settings_are_checked_together() {
    let found = load_errors(&with_arguments(&["--service.limits.body=128MiB"]));
    assert!(found.len() == 1 && found[0].starts_with("service.limits.in-flight"), "{found:#?}");
    let found = load_errors(&with_arguments(&["--service.data-dir"]));
    assert!(found[0].contains("--name=value"), "{found:#?}");
}

#[test]
fn an_ambiguous_environment_variable_is_refused() {
    let mut sources = Sources {
        arguments: vec![
            "--service.export.targets.a-b-c.type=directory".into(),
            "--service.export.targets[a.b.c].type=directory".into(),
        ],
        ..Sources::default()
    };
    sources.environment.insert("SERVICE_EXPORT_TARGETS_A_B_C_PATH".into(), "/x".into());
    let found = load_errors(&sources);
    assert!(found.len() == 1 && found[0].contains("a-b-c, a.b.c"), "{found:#?}");
}

#[test]
fn a_profile_cannot_activate_profiles() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("application.yaml"), "profiles.active: a").unwrap();
    std::fs::write(dir.path().join("application-a.yaml"), "profiles.active: b").unwrap();
    let found = load_errors(&in_dir(dir.path()));
    assert!(found.iter().any(|f| f.contains("application-a.yaml")), "{found:#?}");
}

#[test]
fn a_template_of_keys_that_is_not_valid_is_refused_with_its_cause() {
    for (template, cause) in [
        ("{name}/{sequence}.json", "does not begin with `{prefix}`"),
        ("{prefix}{name}/{date}.json", "has no `{sequence}`"),
        (
            "{prefix}{name}{sequence}.json",
            "has neither `/` nor `-` between `{name}` and `{sequence}`",
        ),
        ("{prefix}{name}/{sequence}", "does not end in `.json`"),
        ("{prefix}{name}/{sequense}.json", "this one has `{sequense}`, which is not a placeholder"),
    ] {
        for property in ["service.export.targets.plant.key", "service.export.default.key"] {
            let found = load_errors(&with_arguments(&[
                &format!("--{}type=directory", property.trim_end_matches("key")),
                &format!("--{property}={template}"),
            ]));
            assert_eq!(found.len(), 1, "{found:#?}");
            assert!(found[0].starts_with(&format!("{property} = \"{template}\"")), "{found:#?}");
            assert!(found[0].contains("expected a template of keys, such as {prefix}{name}/"));
            assert!(found[0].contains(cause), "{found:#?}");
        }
    }
}
