//! Every property of sign-in and access tokens, from every kind of source, and its default.
use crate::security::{CLIENT, JWT, PROVIDER, oauth2};
use crate::{in_dir, loaded};
use penstock_config::{self as config, Security, Sources};
use std::fmt::Write as _;
use std::time::Duration;

type Row<Name> = (Name, &'static str, fn(&Security) -> String);

/// Returns each property of the specification's 5.3 to 5.7 and related ones: its name, a value that is not the default,
/// and how to read it from the settings.
fn rows() -> Vec<Row<String>> {
    macro_rules! oidc {
        ($($field:tt)*) => { |s: &Security| format!("{}", s.oidc.as_ref().expect("sign-in is on").$($field)*) };
    }
    macro_rules! server {
        ($($field:tt)*) => { |s: &Security| s.resource_server.as_ref().expect("access tokens are accepted").$($field)* };
    }
    let rows: Vec<Row<&str>> = vec![
        ("SERVICE.registration", "kc", oidc!(registration)),
        ("CLIENT.client-id", "penstock-web", oidc!(client_id)),
        ("CLIENT.client-secret", "not-to-be-shown", oidc!(client_secret)),
        ("CLIENT.redirect-uri", "https://gw.example/login/oauth2/code/kc", oidc!(redirect_uri)),
        ("CLIENT.scope", "openid,profile,email", oidc!(scopes.join(","))),
        ("CLIENT.authorization-grant-type", "authorization_code", |_| "authorization_code".into()),
        (
            "PROVIDER.issuer-uri",
            "https://kc.example/realms/plant/",
            oidc!(issuer_uri.clone().unwrap()),
        ),
        (
            "PROVIDER.authorization-uri",
            "https://kc.example/auth",
            oidc!(authorization_uri.clone().unwrap()),
        ),
        ("PROVIDER.token-uri", "https://kc.example/token", oidc!(token_uri.clone().unwrap())),
        ("PROVIDER.jwk-set-uri", "https://kc.example/jwks", oidc!(jwk_set_uri.clone().unwrap())),
        ("PROVIDER.user-info-uri", "https://kc.example/me", oidc!(user_info_uri.clone().unwrap())),
        ("PROVIDER.user-name-attribute", "user_email", oidc!(user_name_attribute)),
        ("SERVICE.claims.firstName", "vorname", |s| s.claims.first_name.join(",")),
        ("SERVICE.claims.lastName", "nachname,family_name", |s| s.claims.last_name.join(",")),
        ("SERVICE.claims.email", "mail,upn", |s| s.claims.email.join(",")),
        ("SERVICE.claims.organization", "org", |s| s.claims.organization.join(",")),
        ("SERVICE.claims.roles", "realm_access.roles,groups", |s| s.claims.roles.join(",")),
        ("security.role.admin", "ADMIN", |s| s.role_values.admin.clone()),
        ("security.role.contributor", "CONTRIBUTOR", |s| s.role_values.contributor.clone()),
        ("security.role.user", "USER", |s| s.role_values.user.clone()),
        ("JWT.issuer-uri", "https://sts.example/t/", server!(issuer_uri.clone())),
        ("JWT.jwk-set-uri", "https://sts.example/keys", server!(jwk_set_uri.clone().unwrap())),
        ("JWT.audiences", "api://one,api://two", server!(audiences.join(","))),
        (
            "SERVICE.defaultServiceAccountRole",
            "Contributor",
            server!(default_role.map(|r| format!("{r:?}")).unwrap()),
        ),
        (
            "SERVICE.serviceAccount.emailDomain",
            "@machines.example",
            server!(email_domain.clone().unwrap()),
        ),
        (
            "SERVICE.jwks.max-stale",
            "36h",
            server!(max_stale.as_secs().div_euclid(3600).to_string() + "h"),
        ),
        ("SERVICE.jwt.algorithms", "RS256,ES256", |s| s.algorithms.join(",")),
        ("SERVICE.session.idle", "90s", |s| format!("{}s", s.session.idle.as_secs())),
        ("SERVICE.session.absolute", "20h", |s| {
            format!("{}h", s.session.absolute.as_secs() / 3600)
        }),
    ];
    let whole = |name: &str| {
        let name =
            name.replace("CLIENT.", CLIENT).replace("PROVIDER.", PROVIDER).replace("JWT.", JWT);
        name.replace("SERVICE.", "service.security.")
    };
    rows.into_iter().map(|(name, value, read)| (whole(name), value, read)).collect()
}

/// Checks that the settings have every row's value.
fn assert_all_values(sources: &Sources) {
    let loaded = loaded(sources);
    for (name, value, read) in rows() {
        assert_eq!(read(&loaded.settings.security), value, "{name}");
    }
    assert_eq!(loaded.warnings, Vec::<String>::new());
    assert!(!format!("{loaded:?}").contains("not-to-be-shown"));
}

#[test]
fn every_property_can_be_set_by_properties() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = "security=oauth2\nprofiles.active=oauth2\n".to_owned();
    for (name, value, _) in rows() {
        writeln!(text, "{name}={value}").unwrap();
    }
    std::fs::write(
        dir.path().join("application.properties"),
        text.replace("framework.", "spring."),
    )
    .unwrap();
    assert_all_values(&in_dir(dir.path()));
    std::fs::write(dir.path().join("application.properties"), text).unwrap();
    assert_all_values(&in_dir(dir.path()));
}

#[test]
fn every_property_can_be_set_by_yaml() {
    let dir = tempfile::tempdir().unwrap();
    let yaml = include_str!("properties.yaml");
    std::fs::write(dir.path().join("application.yaml"), yaml).unwrap();
    assert_all_values(&in_dir(dir.path()));
}

#[test]
fn every_property_can_be_set_by_environment() {
    for dash in ["", "_"] {
        let mut sources = Sources::default();
        sources.environment.insert("SECURITY".into(), "oauth2".into());
        sources.environment.insert("PROFILES_ACTIVE".into(), "oauth2".into());
        for (name, value, _) in rows() {
            let variable = name.replace('.', "_").replace('-', dash).to_uppercase();
            sources.environment.insert(variable, value.into());
        }
        assert_all_values(&sources);
    }
}

#[test]
fn the_defaults_are_those_of_the_specification() {
    let mut sources = oauth2();
    sources.arguments.push(format!("--{JWT}issuer-uri=https://sts.example/t"));
    sources.arguments.push(format!("--{JWT}audiences=api://x"));
    let security = loaded(&sources).settings.security;
    let oidc = security.oidc.unwrap();
    assert_eq!(oidc.redirect_uri, "{baseUrl}/login/oauth2/code/kc");
    assert_eq!(oidc.scopes, ["profile", "openid"]);
    assert_eq!(oidc.user_name_attribute, "sub");
    assert_eq!((oidc.issuer_uri, oidc.user_info_uri), (None, None));
    assert_eq!(security.claims.first_name, ["given_name"]);
    assert_eq!(security.claims.last_name, ["family_name"]);
    assert_eq!(security.claims.email, ["user_email", "preferred_username"]);
    assert_eq!(security.claims.organization, ["organization", "companyname"]);
    assert_eq!(security.claims.roles, ["roles"]);
    let roles = security.role_values;
    assert_eq!(
        [roles.admin, roles.contributor, roles.user],
        ["ACCURIDS_ADMIN", "ACCURIDS_CONTRIBUTOR", "ACCURIDS_USER"]
    );
    let server = security.resource_server.unwrap();
    assert_eq!((server.default_role, server.email_domain, server.jwk_set_uri), (None, None, None));
    assert_eq!(server.max_stale, Duration::from_hours(7 * 24));
    assert_eq!(security.session, config::SessionLimits::default());
    let built_in = loaded(&Sources::default());
    assert_eq!(built_in.settings.security.oidc, None);
    assert_eq!(built_in.settings.security.resource_server, None);
}
