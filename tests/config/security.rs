//! Sign-in and access tokens: settings that depend on each other, and the errors that stop the start.
use crate::{in_dir, load_errors, loaded, with_arguments};
use penstock_config::{self as config, Loaded, Sources};

pub(crate) const CLIENT: &str = "framework.security.oauth2.client.registration.kc.";
pub(crate) const PROVIDER: &str = "framework.security.oauth2.client.provider.kc.";
pub(crate) const JWT: &str = "framework.security.oauth2.resourceserver.jwt.";

/// Returns the minimum settings of sign-in.
pub(crate) fn oauth2() -> Sources {
    let arguments = [
        "--security=oauth2".to_owned(),
        "--profiles.active=oauth2".to_owned(),
        "--service.security.registration=kc".to_owned(),
        format!("--{CLIENT}client-id=web"),
        format!("--{CLIENT}client-secret=s"),
        format!("--{PROVIDER}authorization-uri=https://kc.example/auth"),
        format!("--{PROVIDER}token-uri=https://kc.example/token"),
        format!("--{PROVIDER}jwk-set-uri=https://kc.example/jwks"),
    ];
    Sources { arguments: arguments.into(), ..Sources::default() }
}

#[test]
fn the_sign_in_issuer_is_known_to_the_resource_server_if_it_is_the_same_provider() {
    let known = |more: &[String]| {
        let mut sources = oauth2();
        sources.arguments.push(format!("--{JWT}audiences=api://x"));
        sources.arguments.extend(more.iter().cloned());
        loaded(&sources).settings.security.resource_server.unwrap().sign_in_issuer
    };
    let server = |issuer: &str| format!("--{JWT}issuer-uri={issuer}");
    let sign_in = |issuer: &str| format!("--{PROVIDER}issuer-uri={issuer}");
    let one = "https://kc.example/realms/plant";
    assert_eq!(known(&[server(one), sign_in(one)]).as_deref(), Some(one));
    assert_eq!(known(&[server(one), sign_in("https://kc.example/realms/plant/")]), None);
    assert_eq!(known(&[server(one)]), None);
    let keys = format!("--{JWT}jwk-set-uri=https://kc.example/jwks");
    assert_eq!(known(&[server(one), keys]).as_deref(), Some("kc"));
}

#[test]
fn the_client_authentication_is_configurable() {
    for (given, expected) in [
        (None, None),
        (Some("client_secret_basic"), Some(config::ClientAuthentication::Basic)),
        (Some("client_secret_post"), Some(config::ClientAuthentication::Post)),
    ] {
        let mut sources = oauth2();
        let setting = given.map(|given| format!("--{CLIENT}client-authentication-method={given}"));
        sources.arguments.extend(setting);
        let oidc = loaded(&sources).settings.security.oidc.unwrap();
        assert_eq!(oidc.client_authentication, expected);
    }
}

#[test]
fn each_mistake_stops_the_start_with_its_reason() {
    let lines: Vec<&str> = include_str!("mistakes.txt").lines().map(str::trim).collect();
    for pair in lines.chunks(2) {
        let [more, reason] = pair else { panic!("{pair:?}") };
        let whole = |text: &str| {
            text.replace("CLIENT.", CLIENT).replace("PROVIDER.", PROVIDER).replace("JWT.", JWT)
        };
        let mut sources = oauth2();
        sources.arguments.push(whole(more));
        let found = load_errors(&sources);
        assert!(found.len() == 1 && found[0].starts_with(&whole(reason)), "{more}: {found:#?}");
    }
}

#[test]
fn with_the_issuer_no_endpoint_is_required() {
    let mut sources = oauth2();
    sources.arguments.truncate(5);
    assert_eq!(load_errors(&sources).len(), 3);
    sources.arguments.push(format!("--{PROVIDER}issuer-uri=https://kc.example/realms/plant"));
    let oidc = loaded(&sources).settings.security.oidc.unwrap();
    assert_eq!(oidc.issuer_uri.as_deref(), Some("https://kc.example/realms/plant"));
    assert_eq!(oidc.token_uri, None);
}

#[test]
fn the_mode_and_the_roles_can_be_in_one_yaml_file() {
    let dir = tempfile::tempdir().unwrap();
    let rest = "profiles.active: oauth2\n";
    let mut sources = in_dir(dir.path());
    sources.arguments = oauth2().arguments;
    sources.arguments.retain(|argument| {
        !["--security=", "--profiles.active="].iter().any(|name| argument.starts_with(name))
            && !argument.contains("client-secret")
    });
    let secret = "FRAMEWORK_SECURITY_OAUTH2_CLIENT_REGISTRATION_KC_CLIENTSECRET";
    sources.environment.insert(secret.to_owned(), "s".to_owned());
    for form in [
        "security: oauth2\nsecurity.role.admin: BOSS\nsecurity.role:\n  user: READER\n",
        "security.mode: oauth2\nsecurity:\n  role:\n    admin: BOSS\n    user: READER\n",
        "security:\n  mode: oauth2\n  role: {admin: BOSS, user: READER}\n",
    ] {
        std::fs::write(dir.path().join("application.yaml"), format!("{form}{rest}")).unwrap();
        let Loaded { settings, warnings } = loaded(&sources);
        assert!(warnings.is_empty(), "{form}: {warnings:?}");
        assert!(settings.security.oidc.is_some(), "{form}");
        let roles = settings.security.role_values;
        assert_eq!((roles.admin.as_str(), roles.user.as_str()), ("BOSS", "READER"), "{form}");
    }
    let both = format!("security: oauth2\n{rest}security:\n  role:\n    admin: BOSS\n");
    std::fs::write(dir.path().join("application.yaml"), both).unwrap();
    let found = load_errors(&sources);
    let expected =
        "line 3: the duplicate key \"security\", which is in line 1 already; write `security.mode`";
    assert!(found[0].contains(expected), "{found:?}");
}

#[test]
fn settings_without_effect_cause_warnings() {
    for (arguments, warning) in [
        (
            vec!["--service.security.registration=kc"],
            "service.security.registration does nothing: sign-in through a provider is off",
        ),
        (
            vec!["--framework.security.oauth2.client.registration.kc.client-id=x"],
            "client-id does nothing: sign-in",
        ),
        (
            vec!["--framework.security.oauth2.resourceserver.jwt.audiences=api://x"],
            "audiences does nothing: machine access is off",
        ),
        (
            vec!["--service.security.defaultServiceAccountRole=USER"],
            "defaultServiceAccountRole does nothing: machine access is off",
        ),
    ] {
        let warnings = loaded(&with_arguments(&arguments)).warnings;
        assert!(warnings.iter().any(|found| found.contains(warning)), "{warnings:#?}");
    }
    let mut sources = oauth2();
    sources
        .arguments
        .push("--framework.security.oauth2.client.registration.other.client-id=x".into());
    let warnings = loaded(&sources).warnings;
    assert!(
        warnings.iter().any(|w| w.contains("does nothing: service.security.registration is kc")),
        "{warnings:#?}"
    );
}

#[test]
fn access_tokens_work_without_sign_in_through_a_provider() {
    let arguments = vec![
        format!("--{JWT}issuer-uri=https://sts.example/t/"),
        format!("--{JWT}audiences=api://x"),
    ];
    let security = loaded(&Sources { arguments, ..Sources::default() }).settings.security;
    assert!(security.oidc.is_none());
    assert_eq!(security.resource_server.unwrap().issuer_uri, "https://sts.example/t/");
}
