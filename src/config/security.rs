//! Builds the settings of authentication and authorization, for people and machines (specification, 5).
use super::error::ConfigError;
use super::load::ParsedSetting;
use super::settings::{
    Claims, ClientAuthentication, Oidc, ResourceServer, RoleValues, Security, SessionLimits,
};
use super::table::SIGN_IN_PROFILES;
use super::typed::{Values, report_missing};
use penstock_base::Role;
use std::path::PathBuf;

/// The bundled profile of the cloud directory (specification, 5.6).
pub(super) const AZUREAD_PROFILE: &str = "azuread";

const MODE_SETTING: &str = "security";
const REGISTRATION_SETTING: &str = "service.security.registration";
const TENANT_SETTING: &str = "service.security.tenant-id";
const DEFAULT_ROLE_SETTING: &str = "service.security.defaultServiceAccountRole";
const CLIENT_PREFIX: &str = "framework.security.oauth2.client.";
const CLIENT_ID_SETTING: &str = "framework.security.oauth2.client.registration.<id>.client-id";
const JWT_PREFIX: &str = "framework.security.oauth2.resourceserver.jwt.";

/// Returns what the profile `azuread` presets, derived from the given values. A preset is omitted if it depends on a
/// value that is not set; that value is then reported as missing.
pub(super) fn list_presets(given: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let id = given(REGISTRATION_SETTING).unwrap_or_else(|| "azure".to_owned());
    let provider = |property: &str| format!("{CLIENT_PREFIX}provider.{id}.{property}");
    let mut presets = vec![
        (MODE_SETTING.to_owned(), "oauth2".to_owned()),
        (REGISTRATION_SETTING.to_owned(), id.clone()),
        (provider("user-name-attribute"), "oid".to_owned()),
        ("service.security.claims.email".to_owned(), "email,preferred_username".to_owned()),
    ];
    if let Some(tenant) = given(TENANT_SETTING) {
        let login = format!("https://login.microsoftonline.com/{tenant}");
        presets.extend([
            (provider("issuer-uri"), v2_issuer(&tenant)),
            (provider("authorization-uri"), format!("{login}/oauth2/v2.0/authorize")),
            (provider("token-uri"), format!("{login}/oauth2/v2.0/token")),
            (provider("jwk-set-uri"), format!("{login}/discovery/v2.0/keys")),
            (format!("{JWT_PREFIX}issuer-uri"), format!("https://sts.windows.net/{tenant}/")),
            (format!("{JWT_PREFIX}jwk-set-uri"), format!("{login}/discovery/v2.0/keys")),
        ]);
    }
    if let Some(client) = given(&format!("{CLIENT_PREFIX}registration.{id}.client-id")) {
        presets.push((format!("{JWT_PREFIX}audiences"), format!("api://{client}")));
    }
    presets
}

/// Builds the settings of authentication and authorization.
pub(super) fn build_security(
    values: &Values<'_>,
    errors: &mut Vec<ConfigError>,
    warnings: &mut Vec<String>,
) -> Security {
    let role_values = build_role_values(values, errors);
    let session = SessionLimits {
        idle: values.get_duration("service.security.session.idle"),
        absolute: values.get_duration("service.security.session.absolute"),
    };
    if session.absolute < session.idle {
        report_error(
            values,
            errors,
            "service.security.session.absolute",
            "expected at least service.security.session.idle",
        );
    }
    let oidc = build_sign_in(values, errors, warnings);
    let mut resource_server = build_resource_server(values, &role_values, errors, warnings);
    if let (Some(oidc), Some(server)) = (&oidc, &mut resource_server)
        && is_one_provider(oidc, server, values.get_text(TENANT_SETTING).as_deref())
    {
        server.sign_in_issuer = Some(oidc.identity_issuer().to_owned());
    }
    if let (Some(oidc), Some(server)) = (&oidc, &mut resource_server)
        && values.get_list("profiles.active").iter().any(|name| name == AZUREAD_PROFILE)
    {
        server.client_id_audience =
            client_id_audience(oidc, server, values.get_text(TENANT_SETTING));
    }
    let client_ids =
        values.0.iter().filter(|(_, typed)| typed.entry.setting.name == CLIENT_ID_SETTING);
    Security {
        client_ids: client_ids.filter_map(|(name, _)| values.get_text(name)).collect(),
        oidc,
        resource_server,
        algorithms: values.get_list("service.security.jwt.algorithms"),
        claims: Claims {
            first_name: values.get_list("service.security.claims.firstName"),
            last_name: values.get_list("service.security.claims.lastName"),
            email: values.get_list("service.security.claims.email"),
            organization: values.get_list("service.security.claims.organization"),
            roles: values.get_list("service.security.claims.roles"),
            groups: values.get_list("service.security.claims.groups"),
        },
        role_values,
        ca_file: check_ca_file(values, errors),
        session,
    }
}

/// Returns the audience of access tokens of version 2.0 of the cloud directory, which is the bare client id. Tokens
/// of version 1.0 have `api://<client id>`.
fn client_id_audience(
    oidc: &Oidc,
    server: &ResourceServer,
    tenant: Option<String>,
) -> Option<String> {
    let is_v2 = server.issuer_uri == v2_issuer(&tenant?);
    let is_expected = server.audiences.contains(&format!("api://{}", oidc.client_id));
    (is_v2 && is_expected).then(|| oidc.client_id.clone())
}

fn v2_issuer(tenant: &str) -> String {
    format!("https://login.microsoftonline.com/{tenant}/v2.0")
}

/// Whether users sign in at the provider that also issues the access tokens. Tenants of the cloud directory have two
/// forms of their issuer. Without an issuer, equal key URIs decide.
fn is_one_provider(oidc: &Oidc, server: &ResourceServer, tenant: Option<&str>) -> bool {
    let Some(issuer) = &oidc.issuer_uri else {
        return oidc.jwk_set_uri.is_some() && oidc.jwk_set_uri == server.jwk_set_uri;
    };
    let forms =
        tenant.map(|tenant| [v2_issuer(tenant), format!("https://sts.windows.net/{tenant}/")]);
    *issuer == server.issuer_uri
        || forms.is_some_and(|forms| forms.contains(issuer) && forms.contains(&server.issuer_uri))
}

/// Builds the settings of sign-in, which `security=oauth2` turns on together with one of its profiles.
fn build_sign_in(
    values: &Values<'_>,
    errors: &mut Vec<ConfigError>,
    warnings: &mut Vec<String>,
) -> Option<Oidc> {
    let profiles = values.get_list("profiles.active");
    let has_profile = profiles.iter().any(|name| SIGN_IN_PROFILES.contains(&name.as_str()));
    let has_mode = values.get_text(MODE_SETTING).is_some();
    match (has_mode, has_profile) {
        (true, true) => build_registration(
            values,
            profiles.iter().any(|p| p == AZUREAD_PROFILE),
            errors,
            warnings,
        ),
        (false, false) => {
            let unused = |name: &&String| {
                name.starts_with(CLIENT_PREFIX)
                    || [REGISTRATION_SETTING, TENANT_SETTING].contains(&name.as_str())
            };
            if let Some(name) = values.0.keys().find(unused) {
                warnings.push(format!(
                    "{name} does nothing: sign-in through a provider is off; security=oauth2 and profiles.active=oauth2 turn it on"
                ));
            }
            None
        }
        (true, false) => {
            let message = "it needs the profile oauth2 (profiles.active=oauth2) or azuread";
            report_error(values, errors, MODE_SETTING, message);
            None
        }
        (false, true) => {
            // If another value is set, it has been reported already.
            let message = "it is missing: the profile oauth2 is active and needs security=oauth2";
            report_missing(errors, MODE_SETTING.to_owned(), message.to_owned());
            None
        }
    }
}

fn build_registration(
    values: &Values<'_>,
    is_azuread: bool,
    errors: &mut Vec<ConfigError>,
    warnings: &mut Vec<String>,
) -> Option<Oidc> {
    let mut require = |name: String, why: &str| {
        let value = values.get_text(&name);
        if value.is_none() {
            report_missing(errors, name, format!("it is missing: {why}"));
        }
        value
    };
    let id = require(
        REGISTRATION_SETTING.to_owned(),
        "sign-in needs a registration identifier, 1 to 64 lowercase letters",
    );
    let tenant =
        is_azuread.then(|| require(TENANT_SETTING.to_owned(), "the profile azuread needs it"));
    let id = id?;
    let registered = |property: &str| format!("{CLIENT_PREFIX}registration.{id}.{property}");
    let provided = |property: &str| format!("{CLIENT_PREFIX}provider.{id}.{property}");
    let client_id = require(registered("client-id"), "the provider assigns it");
    let client_secret = require(registered("client-secret"), "the provider assigns it");
    let issuer_uri = values.get_text(&provided("issuer-uri"));
    // With `azuread`, the missing value is the tenant.
    if issuer_uri.is_none() && tenant != Some(None) {
        for property in ["authorization-uri", "token-uri", "jwk-set-uri"] {
            require(
                provided(property),
                &format!("set it, or set {} to discover it", provided("issuer-uri")),
            );
        }
    }
    let of = |part: &str, property: &str| {
        values
            .get_text(&format!("{CLIENT_PREFIX}{part}.{id}.{property}"))
            .or_else(|| values.get_text(&format!("{CLIENT_PREFIX}{part}.<id>.{property}")))
    };
    let client_authentication =
        values.get_text(&registered("client-authentication-method")).map(|method| {
            match method.as_str() {
                "client_secret_post" => ClientAuthentication::Post,
                _ => ClientAuthentication::Basic,
            }
        });
    let mut scopes = values.get_list(&registered("scope"));
    if scopes.is_empty() {
        scopes = values.get_list(&format!("{CLIENT_PREFIX}registration.<id>.scope"));
    }
    if !scopes.iter().any(|scope| scope == "openid") {
        let message = "sign-in requires the scope openid";
        report_error(values, errors, &registered("scope"), message);
    }
    let redirect_uri = of("registration", "redirect-uri").unwrap_or_default();
    let redirect_uri = redirect_uri.replace("{registrationId}", &id);
    if !redirect_uri.ends_with(&format!("/{id}")) {
        let message = format!(
            "it must end with /login/oauth2/code/{id}, because {REGISTRATION_SETTING} is {id}"
        );
        report_error(values, errors, &registered("redirect-uri"), &message);
    }
    let is_foreign = |name: &&String| {
        name.strip_prefix(CLIENT_PREFIX)
            .is_some_and(|rest| rest.split('.').nth(1) != Some(id.as_str()))
    };
    for name in values.0.keys().filter(is_foreign) {
        warnings.push(format!("{name} does nothing: {REGISTRATION_SETTING} is {id}"));
    }
    Some(Oidc {
        client_id: client_id?,
        client_secret: client_secret?,
        client_authentication,
        redirect_uri,
        scopes,
        issuer_uri,
        authorization_uri: of("provider", "authorization-uri"),
        token_uri: of("provider", "token-uri"),
        jwk_set_uri: of("provider", "jwk-set-uri"),
        user_info_uri: of("provider", "user-info-uri"),
        user_name_attribute: of("provider", "user-name-attribute")?,
        registration: id,
    })
}

fn build_resource_server(
    values: &Values<'_>,
    roles: &RoleValues,
    errors: &mut Vec<ConfigError>,
    warnings: &mut Vec<String>,
) -> Option<ResourceServer> {
    let audiences = values.get_list(&format!("{JWT_PREFIX}audiences"));
    let jwk_set_uri = values.get_text(&format!("{JWT_PREFIX}jwk-set-uri"));
    let default_role = find_default_role(values, roles, errors);
    let email_domain = values.get_text("service.security.serviceAccount.emailDomain");
    let Some(issuer_uri) = values.get_text(&format!("{JWT_PREFIX}issuer-uri")) else {
        for (name, is_given) in [
            (format!("{JWT_PREFIX}audiences"), !audiences.is_empty()),
            (format!("{JWT_PREFIX}jwk-set-uri"), jwk_set_uri.is_some()),
            (DEFAULT_ROLE_SETTING.to_owned(), default_role.is_some()),
            ("service.security.serviceAccount.emailDomain".to_owned(), email_domain.is_some()),
        ] {
            if is_given
                && !values.get_list("profiles.active").iter().any(|name| name == AZUREAD_PROFILE)
            {
                warnings.push(format!(
                    "{name} does nothing: machine access is off, because {JWT_PREFIX}issuer-uri is not set"
                ));
            }
        }
        return None;
    };
    // With `azuread`, the missing value is the client id.
    let is_reported =
        errors.iter().any(|f| f.name.as_deref().is_some_and(|name| name.ends_with(".client-id")));
    if audiences.is_empty() && !is_reported {
        report_missing(
            errors,
            format!("{JWT_PREFIX}audiences"),
            format!(
                "it is missing: {JWT_PREFIX}issuer-uri is set, and tokens for other services must be refused (example: api://<client_id>)"
            ),
        );
    }
    let max_stale = values.get_duration("service.security.jwks.max-stale");
    Some(ResourceServer {
        sign_in_issuer: None,
        issuer_uri,
        jwk_set_uri,
        audiences,
        client_id_audience: None,
        default_role,
        email_domain,
        max_stale,
    })
}

/// Finds the default role of service accounts by the value that is mapped to it, or else by its name.
fn find_default_role(
    values: &Values<'_>,
    roles: &RoleValues,
    errors: &mut Vec<ConfigError>,
) -> Option<Role> {
    let given = values.get_text(DEFAULT_ROLE_SETTING)?;
    let named = [
        (roles.user.as_str(), Role::User),
        (roles.contributor.as_str(), Role::Contributor),
        (roles.admin.as_str(), Role::Admin),
        ("user", Role::User),
        ("contributor", Role::Contributor),
        ("admin", Role::Admin),
    ];
    let role = named.into_iter().find(|(name, _)| name.to_lowercase() == given.to_lowercase());
    if role.is_none() {
        let message = format!(
            "expected a role: Admin, Contributor, User, or a value that security.role.* maps to one ({}, {}, {})",
            roles.admin, roles.contributor, roles.user
        );
        report_error(values, errors, DEFAULT_ROLE_SETTING, &message);
    }
    role.map(|(_, role)| role)
}

fn build_role_values(values: &Values<'_>, errors: &mut Vec<ConfigError>) -> RoleValues {
    let value = |role: &str| values.get_text(&format!("security.role.{role}")).unwrap_or_default();
    let roles = RoleValues {
        admin: value("admin"),
        contributor: value("contributor"),
        user: value("user"),
    };
    for (role, other, same) in [
        ("admin", "contributor", roles.admin == roles.contributor),
        ("admin", "user", roles.admin == roles.user),
        ("contributor", "user", roles.contributor == roles.user),
    ] {
        if same {
            let message = format!("expected a value different from security.role.{other}");
            report_error(values, errors, &format!("security.role.{role}"), &message);
        }
    }
    roles
}

fn check_ca_file(values: &Values<'_>, errors: &mut Vec<ConfigError>) -> Option<PathBuf> {
    let name = "service.security.ca-file";
    let path = PathBuf::from(values.get_text(name)?);
    match std::fs::read(&path).map(|bytes| reqwest::Certificate::from_pem_bundle(&bytes)) {
        Ok(Ok(certificates)) if !certificates.is_empty() => {}
        Ok(_) => report_error(values, errors, name, "it contains no PEM certificate"),
        Err(error) => report_error(values, errors, name, &format!("it cannot be read: {error}")),
    }
    Some(path)
}

/// Reports an error about a value, or about the default if no value is set.
fn report_error(values: &Values<'_>, errors: &mut Vec<ConfigError>, name: &str, message: &str) {
    errors.push(match values.0.get(name) {
        Some(ParsedSetting { entry, .. }) => entry.to_error(name, message.to_owned()),
        None => ConfigError::missing_value(name.to_owned(), message.to_owned()),
    });
}
