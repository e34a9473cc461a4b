//! Every property of sign-in and access tokens, from every kind of source, and its default.
use crate::security::{JWT, oauth2};
use crate::{in_dir, loaded};
use penstock_config::{self as config, Security, Sources};
use std::time::Duration;

/// Each property of the specification's 5.3 to 5.7 and related ones: its name, a value that is not the default, and
/// how to read it from the settings.
type Row = (&'static str, &'static str, fn(&Security) -> String);

fn rows() -> Vec<Row> {
    macro_rules! oidc {
        ($($field:tt)*) => { |s: &Security| format!("{}", s.oidc.as_ref().expect("sign-in is on").$($field)*) };
    }
    macro_rules! server {
        ($($field:tt)*) => { |s: &Security| s.resource_server.as_ref().expect("access tokens are accepted").$($field)* };
    }
    vec![
        ("service.security.registration", "kc", oidc!(registration)),
        (
            "framework.security.oauth2.client.registration.kc.client-id",
            "penstock-web",
            oidc!(client_id),
        ),
        (
            "framework.security.oauth2.client.registration.kc.client-secret",
            "not-to-be-shown",
            oidc!(client_secret),
        ),
        (
            "framework.security.oauth2.client.registration.kc.redirect-uri",
            "https://gw.example/login/oauth2/code/kc",
            oidc!(redirect_uri),
        ),
        (
            "framework.security.oauth2.client.registration.kc.scope",
            "openid,profile,email",
            oidc!(scopes.join(",")),
        ),
        (
            "framework.security.oauth2.client.registration.kc.authorization-grant-type",
            "authorization_code",
            |_| "authorization_code".into(),
        ),
        (
            "framework.security.oauth2.client.provider.kc.issuer-uri",
            "https://kc.example/realms/plant/",
            oidc!(issuer_uri.clone().unwrap()),
        ),
        (
            "framework.security.oauth2.client.provider.kc.authorization-uri",
            "https://kc.example/auth",
            oidc!(authorization_uri.clone().unwrap()),
        ),
        (
            "framework.security.oauth2.client.provider.kc.token-uri",
            "https://kc.example/token",
            oidc!(token_uri.clone().unwrap()),
        ),
        (
            "framework.security.oauth2.client.provider.kc.jwk-set-uri",
            "https://kc.example/jwks",
            oidc!(jwk_set_uri.clone().unwrap()),
        ),
        (
            "framework.security.oauth2.client.provider.kc.user-info-uri",
            "https://kc.example/me",
            oidc!(user_info_uri.clone().unwrap()),
        ),
        (
            "framework.security.oauth2.client.provider.kc.user-name-attribute",
            "user_email",
            oidc!(user_name_attribute),
        ),
        ("service.security.claims.firstName", "vorname", |s| s.claims.first_name.join(",")),
        ("service.security.claims.lastName", "nachname,family_name", |s| {
            s.claims.last_name.join(",")
        }),
        ("service.security.claims.email", "mail,upn", |s| s.claims.email.join(",")),
        ("service.security.claims.organization", "org", |s| s.claims.organization.join(",")),
        ("service.security.claims.roles", "realm_access.roles,groups", |s| {
            s.claims.roles.join(",")
        }),
        ("security.role.admin", "ADMIN", |s| s.role_values.admin.clone()),
        ("security.role.contributor", "CONTRIBUTOR", |s| s.role_values.contributor.clone()),
        ("security.role.user", "USER", |s| s.role_values.user.clone()),
        (
            "framework.security.oauth2.resourceserver.jwt.issuer-uri",
            "https://sts.example/t/",
            server!(issuer_uri.clone()),
        ),
        (
            "framework.security.oauth2.resourceserver.jwt.jwk-set-uri",
            "https://sts.example/keys",
            server!(jwk_set_uri.clone().unwrap()),
        ),
        (
            "framework.security.oauth2.resourceserver.jwt.audiences",
            "api://one,api://two",
            server!(audiences.join(",")),
        ),
        (
            "service.security.defaultServiceAccountRole",
            "Contributor",
            server!(default_role.map(|r| format!("{r:?}")).unwrap()),
        ),
        (
            "service.security.serviceAccount.emailDomain",
            "@machines.example",
            server!(email_domain.clone().unwrap()),
        ),
        (
            "service.security.jwks.max-stale",
            "36h",
            server!(max_stale.as_secs().div_euclid(3600).to_string() + "h"),
        ),
        ("service.security.jwt.algorithms", "RS256,ES256", |s| s.algorithms.join(",")),
        ("service.security.session.idle", "90s", |s| format!("{}s", s.session.idle.as_secs())),
        ("service.security.session.absolute", "20h", |s| {
            format!("{}h", s.session.absolute.as_secs() / 3600)
        }),
    ]
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
        text += &[name, "=", value, "\n"].concat();
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
    let yaml = "
profiles.active: oauth2
security: oauth2
service:
  security:
    registration: kc
    claims:
      firstName: vorname
      lastName: [nachname, family_name]
      email: mail,upn
      organization: org
      roles: [realm_access.roles, groups]
    defaultServiceAccountRole: Contributor
    serviceAccount: {emailDomain: '@machines.example'}
    jwks: {max-stale: 36h}
    session: {idle: 90s, absolute: 20h}
    jwt.algorithms: [RS256, ES256]
security.role: {admin: ADMIN, contributor: CONTRIBUTOR, user: USER}
framework:
  security:
    oauth2:
      client:
        registration:
          kc:
            client-id: penstock-web
            clientSecret: not-to-be-shown
            redirect-uri: https://gw.example/login/oauth2/code/kc
            scope: [openid, profile, email]
            authorization-grant-type: authorization_code
        provider:
          kc:
            issuer-uri: https://kc.example/realms/plant/
            authorization-uri: https://kc.example/auth
            tokenUri: https://kc.example/token
            jwk-set-uri: https://kc.example/jwks
            user-info-uri: https://kc.example/me
            user-name-attribute: user_email
      resourceserver:
        jwt:
          issuer-uri: https://sts.example/t/
          jwk-set-uri: https://sts.example/keys
          audiences: [api://one, api://two]
";
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
