//! Sign-in and access tokens: every property from every kind of source, the presets of the profiles, and the errors
//! that stop the start.
use penstock_base::Role;
use penstock_config::{self as config, Loaded, Security, Sources};
use std::time::Duration;

const CLIENT: &str = "framework.security.oauth2.client.registration.kc.";
const PROVIDER: &str = "framework.security.oauth2.client.provider.kc.";
const JWT: &str = "framework.security.oauth2.resourceserver.jwt.";

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

fn in_dir(dir: &std::path::Path) -> Sources {
    Sources { working_dir: dir.join("none"), system_dir: dir.to_owned(), ..Sources::default() }
}

fn loaded(sources: &Sources) -> Loaded {
    config::load(sources).unwrap_or_else(|errors| panic!("{errors:#?}"))
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

/// Returns the minimum settings of sign-in.
fn oauth2() -> Sources {
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

fn azuread(more: &[&str]) -> Sources {
    let arguments = [
        "--profiles.active=azuread",
        "--service.security.tenant-id=t-1",
        "--framework.security.oauth2.client.registration.azure.client-id=c-1",
    ];
    let arguments = arguments.iter().chain(more).map(|argument| (*argument).to_owned()).collect();
    let secret = "FRAMEWORK_SECURITY_OAUTH2_CLIENT_REGISTRATION_AZURE_CLIENTSECRET";
    let environment = [(secret.to_owned(), "s".to_owned())].into();
    Sources { arguments, environment, ..Sources::default() }
}

#[test]
fn azuread_presets_the_provider_the_claims_and_the_machines() {
    let loaded = loaded(&azuread(&[]));
    assert_eq!(loaded.warnings, Vec::<String>::new());
    let security = loaded.settings.security;
    let oidc = security.oidc.unwrap();
    let login = "https://login.microsoftonline.com/t-1";
    assert_eq!(oidc.registration, "azure");
    assert_eq!(oidc.redirect_uri, "{baseUrl}/login/oauth2/code/azure");
    assert_eq!(oidc.scopes, ["profile", "openid"]);
    assert_eq!(oidc.issuer_uri.unwrap(), format!("{login}/v2.0"));
    assert_eq!(oidc.authorization_uri.unwrap(), format!("{login}/oauth2/v2.0/authorize"));
    assert_eq!(oidc.token_uri.unwrap(), format!("{login}/oauth2/v2.0/token"));
    assert_eq!(oidc.jwk_set_uri.unwrap(), format!("{login}/discovery/v2.0/keys"));
    assert_eq!(oidc.user_name_attribute, "oid");
    assert_eq!(security.claims.email, ["email", "preferred_username"]);
    assert_eq!(security.claims.organization, ["organization", "companyname"]);
    assert_eq!(security.role_values.admin, "ACCURIDS_ADMIN");
    let server = security.resource_server.unwrap();
    assert_eq!(server.issuer_uri, "https://sts.windows.net/t-1/");
    assert_eq!(server.audiences, ["api://c-1"]);
    assert_eq!(server.jwk_set_uri.unwrap(), format!("{login}/discovery/v2.0/keys"));
    assert_eq!(server.default_role, None);
    assert_eq!(server.sign_in_issuer.unwrap(), format!("{login}/v2.0"));
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
fn what_azuread_presets_can_be_overridden() {
    let v2 = "https://login.microsoftonline.com/t-1/v2.0";
    let sources = azuread(&[
        &format!("--{JWT}issuer-uri={v2}"),
        &format!("--{JWT}audiences=c-1"),
        "--service.security.claims.email=upn",
        "--framework.security.oauth2.client.provider.azure.user-name-attribute=sub",
    ]);
    let security = loaded(&sources).settings.security;
    let server = security.resource_server.unwrap();
    assert_eq!((server.issuer_uri.as_str(), server.audiences), (v2, vec!["c-1".to_owned()]));
    assert_eq!(security.claims.email, ["upn"]);
    assert_eq!(security.oidc.unwrap().user_name_attribute, "sub");
    // A value that is only in a file of the profile also wins, and an empty one restores the preset.
    let dir = tempfile::tempdir().unwrap();
    let text = format!("{JWT}audiences=api://other\nservice.security.claims.email=\n");
    std::fs::write(dir.path().join("application-azuread.properties"), text).unwrap();
    let security =
        loaded(&Sources { system_dir: dir.path().into(), ..azuread(&[]) }).settings.security;
    assert_eq!(security.resource_server.unwrap().audiences, ["api://other"]);
    assert_eq!(security.claims.email, ["email", "preferred_username"]);
}

#[test]
fn with_the_issuer_of_version_2_the_bare_client_id_is_an_audience() {
    let v2 = format!("--{JWT}issuer-uri=https://login.microsoftonline.com/t-1/v2.0");
    let audience = |sources: &Sources| {
        loaded(sources).settings.security.resource_server.unwrap().client_id_audience
    };
    assert_eq!(audience(&azuread(&[&v2])).as_deref(), Some("c-1"));
    let other = format!("--{JWT}audiences=api://other");
    let foreign = format!("--{JWT}issuer-uri=https://login.microsoftonline.com/t-2/v2.0");
    for more in [&[][..], &[&v2, other.as_str()], &[foreign.as_str()]] {
        assert_eq!(audience(&azuread(more)), None, "{more:?}");
    }
    let loaded =
        loaded(&azuread(&["--framework.security.oauth2.client.registration.x.client-id=c-2"]));
    assert_eq!(loaded.settings.security.client_ids, ["c-1", "c-2"]);
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
fn the_sample_deployment_overrides_the_role_values() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/samples/azuread");
    let mut sources = in_dir(sample.as_ref());
    let secret = "FRAMEWORK_SECURITY_OAUTH2_CLIENT_REGISTRATION_AZURE_CLIENTSECRET";
    sources.environment.insert(secret.into(), "s".into());
    let loaded = loaded(&sources);
    assert_eq!(loaded.warnings, Vec::<String>::new());
    let roles = loaded.settings.security.role_values;
    assert_eq!([roles.admin, roles.contributor, roles.user], ["ADMIN", "CONTRIBUTOR", "USER"]);
    assert_eq!(loaded.settings.security.oidc.unwrap().registration, "azure");
    // The package's socket is reachable from other hosts, and the service does not start there without TLS.
    assert!(loaded.settings.server.tls.is_some());
}

#[test]
fn a_default_role_is_a_name_or_a_mapped_value_in_any_case() {
    for (given, role) in [
        ("USER", Role::User),
        ("admin", Role::Admin),
        ("Contributor", Role::Contributor),
        ("accurids_USER", Role::User),
        ("Writers", Role::Contributor),
    ] {
        let mut sources = azuread(&["--security.role.contributor=writers"]);
        sources.arguments.push(format!("--service.security.defaultServiceAccountRole={given}"));
        let server = loaded(&sources).settings.security.resource_server.unwrap();
        assert_eq!(server.default_role, Some(role), "{given}");
    }
}

/// Returns the errors of the minimum settings of sign-in followed by these arguments.
fn load_errors(base: Sources, more: &[&str]) -> Vec<String> {
    let mut sources = base;
    sources.arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
    config::load(&sources).map_or_else(
        |errors| errors.iter().map(ToString::to_string).collect(),
        |loaded| panic!("it loaded with {more:?}: {:#?}", loaded.settings.security),
    )
}

#[test]
fn each_mistake_stops_the_start_with_its_reason() {
    for (more, reason) in [
        (
            "--profiles.active=",
            "security = \"oauth2\" (from --security): it needs the profile oauth2",
        ),
        (
            "--profiles.active=plant",
            "security = \"oauth2\" (from --security): it needs the profile oauth2",
        ),
        (
            "--security=",
            "security: it is missing: the profile oauth2 is active and needs security=oauth2",
        ),
        ("--security=saml", "security = \"saml\" (from --security): expected oauth2"),
        ("--service.security.registration=", "service.security.registration: it is missing"),
        (
            "--service.security.registration=KC1",
            "service.security.registration = \"KC1\" (from --service.security.registration): expected 1 to 64 lowercase letters",
        ),
        ("--CLIENT.client-id=", "CLIENT.client-id: it is missing"),
        ("--CLIENT.client-secret=", "CLIENT.client-secret: it is missing"),
        (
            "--CLIENT.authorization-grant-type=client_credentials",
            "CLIENT.authorization-grant-type = \"client_credentials\" (from --CLIENT.authorization-grant-type): expected authorization_code",
        ),
        (
            "--CLIENT.client-authentication-method=private_key_jwt",
            "CLIENT.client-authentication-method = \"private_key_jwt\" (from --CLIENT.client-authentication-method): expected one of client_secret_basic, client_secret_post",
        ),
        (
            "--CLIENT.scope=profile",
            "CLIENT.scope = \"profile\" (from --CLIENT.scope): sign-in requires the scope openid",
        ),
        (
            "--CLIENT.redirect-uri={baseUrl}/callback",
            "CLIENT.redirect-uri = \"{baseUrl}/callback\" (from --CLIENT.redirect-uri): expected {baseUrl}/login/oauth2/code/{registrationId}",
        ),
        (
            "--CLIENT.redirect-uri=https://x.example/login/oauth2/code/azure",
            "CLIENT.redirect-uri = \"https://x.example/login/oauth2/code/azure\" (from --CLIENT.redirect-uri): it must end with /login/oauth2/code/kc",
        ),
        (
            "--PROVIDER.token-uri=",
            "PROVIDER.token-uri: it is missing: set it, or set PROVIDER.issuer-uri",
        ),
        ("--PROVIDER.authorization-uri=", "PROVIDER.authorization-uri: it is missing"),
        ("--PROVIDER.jwk-set-uri=", "PROVIDER.jwk-set-uri: it is missing"),
        (
            "--PROVIDER.token-uri=http://kc.example/token",
            "PROVIDER.token-uri = \"http://kc.example/token\" (from --PROVIDER.token-uri): expected an https URL (http only on loopback)",
        ),
        (
            "--JWT.issuer-uri=https://sts.example/",
            "JWT.audiences: it is missing: JWT.issuer-uri is set",
        ),
        (
            "--service.security.serviceAccount.emailDomain=machines.example",
            "service.security.serviceAccount.emailDomain = \"machines.example\" (from --service.security.serviceAccount.emailDomain): expected a domain that starts with @",
        ),
        (
            "--service.security.defaultServiceAccountRole=Owner",
            "service.security.defaultServiceAccountRole = \"Owner\" (from --service.security.defaultServiceAccountRole): expected a role: Admin, Contributor, User, or a value",
        ),
        (
            "--security.role.user=ACCURIDS_ADMIN",
            "security.role.admin = \"ACCURIDS_ADMIN\" (from default): expected a value different from security.role.user",
        ),
        (
            "--service.security.ca-file=/no/such/ca.pem",
            "service.security.ca-file = \"/no/such/ca.pem\" (from --service.security.ca-file): it cannot be read",
        ),
        (
            "--service.security.session.idle=13h",
            "service.security.session.absolute = \"12h\" (from default): expected at least service.security.session.idle",
        ),
    ] {
        let whole = |text: &str| {
            text.replace("CLIENT.", CLIENT).replace("PROVIDER.", PROVIDER).replace("JWT.", JWT)
        };
        let found = load_errors(oauth2(), &[&whole(more)]);
        assert!(found.len() == 1 && found[0].starts_with(&whole(reason)), "{more}: {found:#?}");
    }
}

#[test]
fn with_the_issuer_no_endpoint_is_required() {
    let mut sources = oauth2();
    sources.arguments.truncate(5);
    assert_eq!(load_errors(sources.clone(), &[]).len(), 3);
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
    let found = load_errors(sources, &[]);
    let expected =
        "line 3: the duplicate key \"security\", which is in line 1 already; write `security.mode`";
    assert!(found[0].contains(expected), "{found:?}");
}

#[test]
fn azuread_reports_its_missing_settings() {
    let nothing =
        Sources { arguments: vec!["--profiles.active=azuread".into()], ..Sources::default() };
    let found = load_errors(nothing, &[]);
    for missing in [
        "service.security.tenant-id: it is missing: the profile azuread needs it",
        "framework.security.oauth2.client.registration.azure.client-id: it is missing",
        "framework.security.oauth2.client.registration.azure.client-secret: it is missing",
    ] {
        assert!(found.iter().any(|error| error.starts_with(missing)), "{found:#?}");
    }
    assert_eq!(found.len(), 3, "{found:#?}");
    let found = load_errors(azuread(&["--service.security.tenant-id=common"]), &[]);
    assert!(found.len() == 1 && found[0].contains("of one tenant"), "{found:#?}");
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
        let arguments = arguments.into_iter().map(str::to_owned).collect();
        let warnings = loaded(&Sources { arguments, ..Sources::default() }).warnings;
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

#[test]
fn the_settings_in_the_documentation_are_known_and_valid() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/sign-in");
    let mut blocks = 0;
    for page in std::fs::read_dir(folder).unwrap() {
        let page = page.unwrap().path();
        let text = std::fs::read_to_string(&page).unwrap();
        for block in text.split("\n```").skip(1).step_by(2) {
            let (language, block) = block.split_once('\n').unwrap();
            if !["yaml", "properties"].contains(&language) {
                continue;
            }
            let block = block.replace("<TENANT_ID>", "t-1").replace("<CLIENT_ID>", "c-1");
            let file = page.with_extension(language);
            let (errors, warnings) = config::check_file(&file, &block);
            assert!(errors.is_empty() && warnings.is_empty(), "{errors:#?} {warnings:#?}\n{block}");
            blocks += 1;
        }
    }
    assert!(blocks >= 7, "{blocks}");
}

#[test]
fn the_page_of_entra_id_has_every_value_that_the_profile_presets() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/sign-in/entra-id.md");
    let page = std::fs::read_to_string(path).unwrap();
    let effective = loaded(&azuread(&[])).settings.effective_values;
    let presets = effective.into_iter().filter(|e| e.origin == "profile azuread");
    let mut count = 0;
    for preset in presets.filter(|preset| preset.name != "security") {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", preset.name)));
        let row = row.unwrap_or_else(|| panic!("{} is not in the page", preset.name));
        for value in preset.value.trim_matches('"').split(',') {
            let value = value.replace("t-1", "<tenant>").replace("c-1", "<client-id>");
            assert!(row.contains(&format!("`{value}`")), "{value} is not in {row}");
        }
        count += 1;
    }
    assert_eq!(count, 10);
}
