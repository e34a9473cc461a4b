//! Builds the settings of authentication and authorization, for people and machines (specification, 5).
use super::section::{Build, Scope, Section};
use super::table::{Oidc, ResourceServer, Security};
use penstock_base::Role;
use penstock_base::files::remedy_of_unreadable;

/// The profiles that turn on sign-in (specification, 5.1 and 5.6).
pub(super) const SIGN_IN_PROFILES: [&str; 2] = ["oauth2", AZUREAD_PROFILE];
/// The bundled profile of the cloud directory (specification, 5.6).
pub(super) const AZUREAD_PROFILE: &str = "azuread";

const MODE_SETTING: &str = "security";
const REGISTRATION_SETTING: &str = "service.security.registration";
const TENANT_SETTING: &str = "service.security.tenant-id";
const DEFAULT_ROLE_SETTING: &str = "service.security.defaultServiceAccountRole";
const CLIENT_PREFIX: &str = "framework.security.oauth2.client.";
const EMAIL_DOMAIN_SETTING: &str = "service.security.serviceAccount.emailDomain";
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

impl Build for Security {
    type Value = Self;

    fn build(mut self, scope: &mut Scope<'_>) -> Self {
        check_role_values(&self, scope);
        if self.session.absolute < self.session.idle {
            let message = "expected at least service.security.session.idle";
            scope.error("service.security.session.absolute", message);
        }
        check_ca_file(&self, scope);
        let profiles =
            scope.find("profiles.active").map_or_else(Vec::new, |entry| entry.raw.split_items());
        let is_azuread = profiles.iter().any(|name| name == AZUREAD_PROFILE);
        self.oidc = build_sign_in(&self, &profiles, scope);
        self.resource_server = build_resource_server(&self, is_azuread, scope);
        let tenant = self.tenant.as_deref();
        if let (Some(oidc), Some(server)) = (&self.oidc, &mut self.resource_server) {
            if is_one_provider(oidc, server, tenant) {
                server.sign_in_issuer = Some(oidc.identity_issuer().to_owned());
            }
            if is_azuread {
                server.client_id_audience = client_id_audience(oidc, server, tenant);
            }
        }
        let registrations = scope.values.values().filter(|entry| {
            entry.setting.name == format!("{CLIENT_PREFIX}registration.<id>.client-id")
        });
        self.client_ids =
            registrations.map(|entry| entry.raw.to_string().trim().to_owned()).collect();
        self
    }
}

/// Returns the audience of access tokens of version 2.0 of the cloud directory, which is the bare client id. Tokens
/// of version 1.0 have `api://<client id>`.
fn client_id_audience(
    oidc: &Oidc,
    server: &ResourceServer,
    tenant: Option<&str>,
) -> Option<String> {
    let is_v2 = server.issuer_uri == v2_issuer(tenant?);
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
fn build_sign_in(security: &Security, profiles: &[String], scope: &mut Scope<'_>) -> Option<Oidc> {
    let has_profile = profiles.iter().any(|name| SIGN_IN_PROFILES.contains(&name.as_str()));
    match (security.is_oauth2, has_profile) {
        (true, true) => {
            let is_azuread = profiles.iter().any(|name| name == AZUREAD_PROFILE);
            return build_registration(security, is_azuread, scope);
        }
        (false, false) => {
            let unused = |name: &&String| {
                name.starts_with(CLIENT_PREFIX)
                    || [REGISTRATION_SETTING, TENANT_SETTING].contains(&name.as_str())
            };
            if let Some(name) = scope.values.keys().find(unused) {
                scope.report.warnings.push(format!(
                    "{name} does nothing: sign-in through a provider is off; security=oauth2 and profiles.active=oauth2 turn it on"
                ));
            }
        }
        (true, false) => scope
            .error(MODE_SETTING, "it needs the profile oauth2 (profiles.active=oauth2) or azuread"),
        // If another value is set, it has been reported already.
        (false, true) => scope.error(
            MODE_SETTING,
            "it is missing: the profile oauth2 is active and needs security=oauth2",
        ),
    }
    None
}

fn build_registration(
    security: &Security,
    is_azuread: bool,
    scope: &mut Scope<'_>,
) -> Option<Oidc> {
    if security.registration.is_none() {
        let message =
            "it is missing: sign-in needs a registration identifier, 1 to 64 lowercase letters";
        scope.error(REGISTRATION_SETTING, message);
    }
    let lacks_tenant = is_azuread && security.tenant.is_none();
    if lacks_tenant {
        scope.error(TENANT_SETTING, "it is missing: the profile azuread needs it");
    }
    let id = security.registration.as_ref()?;
    let mut below = scope.below(CLIENT_PREFIX);
    let mut client = below.of(id);
    let mut oidc = Oidc::read(&mut client)?;
    oidc.registration.clone_from(id);
    oidc.redirect_uri = oidc.redirect_uri.replace("{registrationId}", id);
    let assigned = "it is missing: the provider assigns it".to_owned();
    let mut required = vec![
        ("registration.<id>.client-id", &assigned),
        ("registration.<id>.client-secret", &assigned),
    ];
    let issuer = client.name("provider.<id>.issuer-uri");
    let discovered = format!("it is missing: set it, or set {issuer} to discover it");
    // With `azuread`, the missing value is the tenant.
    if oidc.issuer_uri.is_none() && !lacks_tenant {
        required.extend([
            ("provider.<id>.authorization-uri", &discovered),
            ("provider.<id>.token-uri", &discovered),
            ("provider.<id>.jwk-set-uri", &discovered),
        ]);
    }
    for (key, message) in required {
        if client.find(key).is_none() {
            client.error(key, message.as_str());
        }
    }
    if !oidc.scopes.iter().any(|scope| scope == "openid") {
        client.error("registration.<id>.scope", "sign-in requires the scope openid");
    }
    if !oidc.redirect_uri.ends_with(&format!("/{id}")) {
        let message = format!(
            "it must end with /login/oauth2/code/{id}, because {REGISTRATION_SETTING} is {id}"
        );
        client.error("registration.<id>.redirect-uri", message);
    }
    for (name, entry) in scope.values {
        if entry.setting.name.starts_with(CLIENT_PREFIX) && entry.given.first() != Some(id) {
            let warning = format!("{name} does nothing: {REGISTRATION_SETTING} is {id}");
            scope.report.warnings.push(warning);
        }
    }
    Some(oidc)
}

fn build_resource_server(
    security: &Security,
    is_azuread: bool,
    scope: &mut Scope<'_>,
) -> Option<ResourceServer> {
    let default_role = find_default_role(security, scope);
    let server = ResourceServer::read(&mut scope.below(JWT_PREFIX))?;
    let (issuer, audiences) = (format!("{JWT_PREFIX}issuer-uri"), format!("{JWT_PREFIX}audiences"));
    if server.issuer_uri.is_empty() {
        let keys = format!("{JWT_PREFIX}jwk-set-uri");
        for name in [audiences.as_str(), keys.as_str(), DEFAULT_ROLE_SETTING, EMAIL_DOMAIN_SETTING]
        {
            if scope.find(name).is_some() && !is_azuread {
                scope.report.warnings.push(format!(
                    "{name} does nothing: machine access is off, because {issuer} is not set"
                ));
            }
        }
        return None;
    }
    // With `azuread`, the missing value is the client id.
    let mut names = scope.report.errors.iter().filter_map(|error| error.name.as_deref());
    if server.audiences.is_empty() && !names.any(|name| name.ends_with(".client-id")) {
        scope.error(
            &audiences,
            format!(
                "it is missing: {issuer} is set, and tokens for other services must be refused (example: api://<client_id>)"
            ),
        );
    }
    let (email_domain, max_stale) = (security.email_domain.clone(), security.max_stale);
    Some(ResourceServer { default_role, email_domain, max_stale, ..server })
}

/// Finds the default role of service accounts by the value that is mapped to it, or else by its name.
fn find_default_role(security: &Security, scope: &mut Scope<'_>) -> Option<Role> {
    let given = security.service_account_role.as_ref()?.to_lowercase();
    let roles = &security.role_values;
    let named = [
        (roles.user.as_str(), Role::User),
        (roles.contributor.as_str(), Role::Contributor),
        (roles.admin.as_str(), Role::Admin),
        ("user", Role::User),
        ("contributor", Role::Contributor),
        ("admin", Role::Admin),
    ];
    let role = named.into_iter().find(|(name, _)| name.to_lowercase() == given);
    if role.is_none() {
        let message = format!(
            "expected a role: Admin, Contributor, User, or a value that security.role.* maps to one ({}, {}, {})",
            roles.admin, roles.contributor, roles.user
        );
        scope.error(DEFAULT_ROLE_SETTING, message);
    }
    role.map(|(_, role)| role)
}

fn check_role_values(security: &Security, scope: &mut Scope<'_>) {
    let roles = &security.role_values;
    for (role, other, is_same) in [
        ("admin", "contributor", roles.admin == roles.contributor),
        ("admin", "user", roles.admin == roles.user),
        ("contributor", "user", roles.contributor == roles.user),
    ] {
        if is_same {
            let message = format!("expected a value different from security.role.{other}");
            scope.error(&format!("security.role.{role}"), message);
        }
    }
}

fn check_ca_file(security: &Security, scope: &mut Scope<'_>) {
    let Some(path) = &security.ca_file else { return };
    let message = match std::fs::read(path).map(|pem| reqwest::Certificate::from_pem_bundle(&pem)) {
        Ok(Ok(certificates)) if !certificates.is_empty() => return,
        Ok(_) => "it contains no PEM certificate".to_owned(),
        Err(error) => format!("it cannot be read: {error}{}", remedy_of_unreadable(&error)),
    };
    scope.error("service.security.ca-file", message);
}
