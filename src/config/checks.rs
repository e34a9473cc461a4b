//! Checks what depends on several settings.
use super::backup;
use super::error::ConfigError;
use super::key_template::KeyTemplate;
use super::mqtt::check_client_ids;
use super::section::{Build, Report, Scope};
use super::setting::Values;
use super::table::{Settings, TlsSettings, Webhook};
use super::targets::{TARGET_PREFIX, warn_about_shared_graphs};
use super::types::{ForwardHeaders, Tls};
use super::valid::{is_on_loopback, is_plain_http};
use penstock_base::bucket_name::check_bucket_name;
use std::collections::BTreeSet;

/// The maximum number of webhooks. Each event is stored for each of them.
const MAX_WEBHOOKS: usize = 32;

/// Checks the names that replace the first `<...>`, each once.
pub(super) fn check_names(values: &Values, errors: &mut Vec<ConfigError>) {
    let (mut seen, mut webhooks) = (BTreeSet::new(), 0);
    for (name, entry) in values {
        let prefix = entry.setting.name.split('<').next().unwrap_or_default();
        let Some(id) = entry.given.first().filter(|id| seen.insert((prefix, *id))) else {
            continue;
        };
        let mut refuse = |message: String| errors.push(entry.to_error(name, message));
        let is_short = (1..=64).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        match prefix {
            "service.export.targets." => {
                if let Err(why) = check_bucket_name(id) {
                    refuse(format!("the bucketName {why}"));
                }
            }
            "service.sources." if !is_short => {
                refuse("the name of a source has 1 to 64 of A-Z a-z 0-9 _ -".to_owned());
            }
            "service.webhooks." => {
                webhooks += 1;
                if !is_short {
                    refuse("the name of a webhook has 1 to 64 of A-Z a-z 0-9 _ -".to_owned());
                }
                if webhooks == MAX_WEBHOOKS + 1 {
                    refuse(format!("a gateway has at most {MAX_WEBHOOKS} webhooks"));
                }
            }
            _ => {}
        }
    }
}

/// Warns about templates of keys that do not tell the kind of an export.
pub(super) fn warn_about_keys(values: &Values, warnings: &mut Vec<String>) {
    let is_key =
        |name: &str| name == format!("{TARGET_PREFIX}key") || name == "service.export.default.key";
    for (name, entry) in values.iter().filter(|(_, entry)| is_key(&entry.setting.name)) {
        let template = entry.raw.to_string().trim().parse::<KeyTemplate>();
        if let Some(why) = template.ok().and_then(|template| template.warning()) {
            warnings.push(format!("{name} {why}"));
        }
    }
}

/// Checks the settings as a whole.
pub(super) fn check_together(settings: &Settings, values: &Values, report: &mut Report) {
    check_names(values, &mut report.errors);
    warn_about_keys(values, &mut report.warnings);
    warn_about_shared_graphs(&settings.targets, &mut report.warnings);
    let mut scope = Scope::new(values, report);
    check_client_ids(settings, &mut scope);
    backup::check_target(settings, &mut scope);
    let address = settings.server.address;
    if let Err(why) = settings.server.check_serving_address(address) {
        scope.error("server.address", why);
    } else if !address.is_loopback() && settings.server.tls.is_none() {
        scope.report.warnings.push(format!(
            "plain HTTP is served on {address}: passwords and keys go over the network in the clear"
        ));
    }
    let body_bytes = settings.limits.body_bytes;
    if settings.limits.in_flight_bytes < body_bytes {
        let message = format!("expected at least service.limits.body, which is {body_bytes} bytes");
        scope.error("service.limits.in-flight", message);
    }
    if settings.server.forward_headers == ForwardHeaders::Trusted
        && settings.trusted_proxies.is_empty()
    {
        scope.report.warnings.push(
            "server.forward-headers-strategy is on and service.trusted-proxies is empty, so forwarded headers are ignored".into(),
        );
    }
}

impl Build for TlsSettings {
    type Value = Option<Tls>;

    /// Contradictory settings are errors, so that an operator never relies on protection that is not active.
    fn build(self, scope: &mut Scope<'_>) -> Option<Tls> {
        let Self { certificate, private_key, is_self_signed, client_auth, client_authorities } =
            self;
        let (has_certificate, asks) = (certificate.is_some(), client_auth != "none");
        let is_on = has_certificate || is_self_signed;
        for (is_wrong, key, message) in [
            (
                has_certificate && private_key.is_none(),
                "certificate-private-key",
                "it is missing: server.ssl.certificate needs its private key",
            ),
            (
                !has_certificate && private_key.is_some(),
                "certificate",
                "it is missing: server.ssl.certificate-private-key needs it",
            ),
            (
                has_certificate && is_self_signed,
                "self-signed",
                "server.ssl.certificate is set as well; remove one of them",
            ),
            (
                asks && !is_on,
                "client-auth",
                "it needs HTTPS: set server.ssl.certificate or server.ssl.self-signed",
            ),
            (
                asks && client_authorities.is_none(),
                "client-auth",
                "it needs server.ssl.trust-certificate: the authorities that issue the clients' certificates",
            ),
            (
                !asks && client_authorities.is_some(),
                "trust-certificate",
                "it has no effect while server.ssl.client-auth is none; set that to want or need",
            ),
        ] {
            if is_wrong {
                scope.error(key, message);
            }
        }
        is_on.then(|| Tls {
            certificate: certificate.zip(private_key),
            client_authorities: client_authorities.filter(|_| asks),
            client_certificate_needed: client_auth == "need",
        })
    }
}

impl Build for Webhook {
    type Value = Option<Self>;

    fn build(self, scope: &mut Scope<'_>) -> Option<Self> {
        let is_plain = is_plain_http(&self.url);
        if is_plain && !is_on_loopback(&self.url) && !self.is_insecure {
            let message = "the events would go over the network in the clear; use https://, or set insecure=true beside it";
            scope.error("url", message);
        }
        if !is_plain {
            scope.check_file("ca-file");
        } else if self.ca_file.is_some() {
            scope.error("ca-file", "it has no effect without TLS; use https:// in url");
        }
        Some(self)
    }
}
