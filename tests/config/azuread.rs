//! What the profile `azuread` presets and requires.
use crate::security::JWT;
use crate::{in_dir, load_errors, loaded, with_arguments};
use penstock_base::Role;
use penstock_config::Sources;

/// Returns the minimum settings of the profile `azuread`, and these.
pub(crate) fn azuread(more: &[&str]) -> Sources {
    let arguments = [
        "--profiles.active=azuread",
        "--service.security.tenant-id=t-1",
        "--framework.security.oauth2.client.registration.azure.client-id=c-1",
    ];
    let secret = "FRAMEWORK_SECURITY_OAUTH2_CLIENT_REGISTRATION_AZURE_CLIENTSECRET";
    let environment = [(secret.to_owned(), "s".to_owned())].into();
    Sources { environment, ..with_arguments(&[&arguments[..], more].concat()) }
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

#[test]
fn azuread_reports_its_missing_settings() {
    let found = load_errors(&with_arguments(&["--profiles.active=azuread"]));
    for missing in [
        "service.security.tenant-id: it is missing: the profile azuread needs it",
        "framework.security.oauth2.client.registration.azure.client-id: it is missing",
        "framework.security.oauth2.client.registration.azure.client-secret: it is missing",
    ] {
        assert!(found.iter().any(|error| error.starts_with(missing)), "{found:#?}");
    }
    assert_eq!(found.len(), 3, "{found:#?}");
    let found = load_errors(&azuread(&["--service.security.tenant-id=common"]));
    assert!(found.len() == 1 && found[0].contains("of one tenant"), "{found:#?}");
}
