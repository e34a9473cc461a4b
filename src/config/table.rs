//! Every setting there is: the one place that names them. Validation, the settings' documentation and
//! the nearest known name all come from here.
use super::kind::Kind;

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name; a part in angle brackets stands for any name.
    pub name: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// Its default, written as in a file.
    pub default: Option<&'static str>,
    /// Whether its value is shown to nobody.
    pub secret: bool,
    /// What it decides.
    pub meaning: &'static str,
}

const fn setting(name: &'static str, kind: Kind, meaning: &'static str) -> Setting {
    Setting { name, kind, default: None, secret: false, meaning }
}

impl Setting {
    const fn or(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    const fn secret(self) -> Self {
        Self { secret: true, ..self }
    }
}

const KIB: u64 = 1 << 10;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// Those with a public key: a shared secret would let whoever checks a token make one.
const ALGORITHMS: &[&str] =
    &["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
/// In milliseconds, as the one that follows.
const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;

/// All of them, in the order of the documentation.
pub static TABLE: &[Setting] = &[
    setting("profiles.active", Kind::Profiles, "Profiles whose `application-<profile>.*` files are read too, later ones win."),
    setting("server.address", Kind::Address, "The IP address to listen on. Beyond loopback it needs HTTPS (`server.ssl.*`), or `server.insecure-http`. A socket that systemd passes on comes before it.").or("127.0.0.1"),
    setting("server.port", Kind::Whole { min: 0, max: 65_535 }, "The TCP port to listen on; with 0 the system chooses one, and the log says which.").or("8080"),
    setting("server.forward-headers-strategy", Kind::Choice(&["none", "native", "framework"]), "Whether `Forwarded` and `X-Forwarded-*` of trusted proxies are believed; `native` and `framework` are the same.").or("none"),
    setting("server.cors.allowed-origins", Kind::Origins, "Origins whose pages may call the API (CORS); `*` is any."),
    setting("server.insecure-http", Kind::Flag, "Plain HTTP beyond loopback, where passwords and keys go over the network in the clear: for a network of one's own behind a proxy that ends HTTPS.").or("false"),
    setting("server.ssl.certificate", Kind::Pem, "HTTPS with this certificate chain, the server's certificate first. Files are read again at SIGHUP."),
    setting("server.ssl.certificate-private-key", Kind::Pem, "The certificate's private key.").secret(),
    setting("server.ssl.self-signed", Kind::Flag, "HTTPS with a certificate that is made at the first start and kept in `<data-dir>/tls`; not with `server.ssl.certificate`.").or("false"),
    setting("server.ssl.client-auth", Kind::Choice(&["none", "want", "need"]), "Whether clients show a certificate of their own: `need` refuses those without one, `want` those with a wrong one. It is asked for beside the credentials of a request, never in their place.").or("none"),
    setting("server.ssl.trust-certificate", Kind::Pem, "The certificates of the authorities that client certificates are checked against."),
    setting("server.connections", Kind::Whole { min: 1, max: 65_535 }, "Connections at once; more wait in the system's queue.").or("512"),
    setting("server.connections-per-address", Kind::Whole { min: 1, max: 65_535 }, "Connections at once from one address (IPv6: from one /64); more are closed. `service.trusted-proxies` are not counted.").or("128"),
    setting("service.base-url", Kind::Url, "The URL that the outside knows the service by; new namespaces get `<service.base-url>/id/<Namespace>/` as their URI base."),
    setting("service.data-dir", Kind::Text, "The directory that holds everything Penstock keeps. Without it, `$STATE_DIRECTORY`, which systemd sets.").or("/var/lib/penstock"),
    setting("service.gateway-id", Kind::GatewayId, "The name of this gateway in export metadata and in default URI bases; made at the first start, and kept."),
    setting("service.trusted-proxies", Kind::Networks, "Addresses or networks (`10.0.0.0/8`) of the proxies whose forwarded headers are believed."),
    setting("service.namespace.auto-create", Kind::Flag, "Whether a namespace that a mapping names, and nobody has defined, is created.").or("true"),
    setting("service.limits.body", Kind::Size { min: KIB, max: GIB }, "The largest request body, or line of NDJSON; less where memory is small, see `service.limits.memory`.").or("16MiB"),
    setting("service.limits.nesting", Kind::Whole { min: 1, max: 1000 }, "Levels of JSON in a request.").or("128"),
    setting("service.limits.objects", Kind::Whole { min: 1, max: 1_000_000 }, "Objects in one JSON request.").or("10000"),
    setting("service.limits.values", Kind::Whole { min: 1, max: 100_000_000 }, "JSON values in one JSON request, or in a chunk of NDJSON: each number, string, array and object counts. It bounds the memory of a request, at up to a kilobyte a value; fewer where memory is small.").or("150000"),
    setting("service.limits.in-flight", Kind::Size { min: KIB, max: TIB }, "Bytes of all request bodies at once, and as many of answers that wait to be read, half of them of one account or key; past it the answer is 503. At least `service.limits.body`; less where memory is small.").or("64MiB"),
    setting("service.limits.memory", Kind::Size { min: 1 << 20, max: TIB }, "Memory of the process that is not to be gone beyond: from three quarters of it on what waits in memory to be written is written, from nine tenths on a body of more than 1 MiB gets 503, and smaller ones are taken one at a time. Without it, what the control group allows (systemd's `MemoryHigh=` and `MemoryMax=`), and where nothing does, no bound. What requests may hold is kept within it: all bodies at once a sixteenth (but 8 MiB), one of them half of that, and a JSON value for each 3 KiB (but 10,000); `GET /api/v1/limits` says what they come to."),
    setting("service.limits.disk-reserve", Kind::Size { min: 0, max: TIB }, "Room on the disk of `service.data-dir` that ingestions and definitions leave free: when less is free they get 507, while reading, `DELETE`, exporting and compaction go on. The default has room for a checkpoint and the deletions that make room; a compaction takes about as much as the journal's base, so give large stores more. 0 keeps none.").or("64MiB"),
    setting("service.limits.idempotency-keys", Kind::Whole { min: 0, max: 1_000_000 }, "Answers kept, for 24 h, for requests with an `Idempotency-Key`; past it the oldest go.").or("1000"),
    setting("service.limits.idempotency-bytes", Kind::Size { min: 0, max: TIB }, "Bytes of those answers; past it the oldest go. The newest is always kept.").or("16MiB"),
    setting("service.limits.history", Kind::Whole { min: 0, max: 10_000_000 }, "Records of ingestions, and of delivered exports, kept.").or("10000"),
    setting("service.limits.audit", Kind::Whole { min: 0, max: 10_000_000 }, "Events of the audit trail kept; past it the oldest go.").or("10000"),
    setting("service.limits.graphql.depth", Kind::Whole { min: 1, max: 50 }, "Levels of fields that a GraphQL query asks for; introspection may have 20 in any case.").or("20"),
    setting("service.limits.graphql.complexity", Kind::Whole { min: 1, max: 100_000_000 }, "Fields that a GraphQL query asks for, told before it is executed: those below a page count as often as the page has items (`first`), those below a list 5 times.").or("100000"),
    setting("service.limits.graphql.rows", Kind::Whole { min: 1, max: 10_000_000 }, "Objects that a GraphQL query asks for: those of its pages before it is executed, nested ones too while it is.").or("10000"),
    setting("service.limits.graphql.scan", Kind::Whole { min: 1, max: 1_000_000_000 }, "Objects that a GraphQL query looks at, when no index answers what it asks; past it there is an error, never a shorter list.").or("1000000"),
    setting("service.limits.graphql.time", Kind::Duration { min: 100, max: 60 * MINUTE }, "How long a GraphQL query may take; it also waits so long for its turn, since 4 read what is stored at once.").or("10s"),
    setting("service.limits.graphql.answer", Kind::Size { min: KIB, max: GIB }, "Bytes of an answer to a GraphQL query, about.").or("4MiB"),
    setting("service.limits.graphql.fields", Kind::Whole { min: 0, max: 1_000_000 }, "Fields of all Business Objects in the GraphQL schema, nested ones too; the newest that do not fit have no type there. Introspection and the schema in SDL take some 10 KB of memory a field while they are written, and get 503 where less is left; queries need only the types that they name.").or("20000"),
    setting("service.events.depth", Kind::Whole { min: 1, max: 100_000 }, "Events kept in memory, 4 MiB of them at most, for listeners that were away; one that missed more is told so.").or("1000"),
    setting("service.events.listeners", Kind::Whole { min: 0, max: 256 }, "Listeners to events at once; past it the answer is 503.").or("32"),
    setting("service.export.history", Kind::Size { min: 0, max: TIB }, "Bytes of delivered files kept for reading and replay; past it the oldest go.").or("64MiB"),
    setting("service.export.spool", Kind::Size { min: 0, max: TIB }, "Bytes of files that wait for their targets, each counted for each target. When there are as many, exports by themselves wait, and what changes meanwhile joins them; a push gets 507. The export that reaches it is made to its end.").or("256MiB"),
    setting("service.export.bandwidth", Kind::Size { min: KIB, max: TIB }, "Bytes a second that deliveries take at most, all targets together, averaged over a second; what an object, its headers and TLS add is not counted. Without it, as much as the link gives."),
    setting("service.export.window", Kind::Window, "Times of day at which deliveries are made. At the end of one nothing more is begun: the request under way, a file of up to 8 MiB or a part of a longer one, is finished, and the rest waits for the next. The clock is looked at each time, so that one that was set is followed within a minute, and a wrong one moves the window and loses nothing. Without it, always."),
    setting("service.export.timezone", Kind::TimeZone, "The time zone of `service.export.window`. A time that a change of the clocks leaves out or has twice counts as the clock shows it.").or("UTC"),
    setting("service.export.targets.<bucketName>.type", Kind::Choice(&["s3", "directory"]), "What the bucketName leads to: an S3-compatible bucket, or a directory."),
    setting("service.export.targets.<bucketName>.endpoint", Kind::Url, "s3: the URL of the server. Required."),
    setting("service.export.targets.<bucketName>.region", Kind::Text, "s3: the region. `us-east-1` when it is not given."),
    setting("service.export.targets.<bucketName>.bucket", Kind::Bucket, "s3: the bucket's name on the server. The bucketName when it is not given."),
    setting("service.export.targets.<bucketName>.prefix", Kind::Prefix, "What every key begins with."),
    setting("service.export.targets.<bucketName>.access-key-id", Kind::Text, "s3: the access key's id. Required."),
    setting("service.export.targets.<bucketName>.secret-access-key", Kind::Text, "s3: the access key's secret. Required.").secret(),
    setting("service.export.targets.<bucketName>.path-style", Kind::Flag, "s3: `endpoint/bucket/key` rather than `bucket.endpoint/key`. `true` when it is not given."),
    setting("service.export.targets.<bucketName>.ca-file", Kind::Text, "s3: a PEM file of certificates that are trusted for this target."),
    setting("service.export.targets.<bucketName>.compression", Kind::Choice(&["none", "gzip", "zstd"]), "s3: how the object is compressed; it then has a `Content-Encoding`, its key stays the same, and the `sha256` of its metadata is still that of the export file. `none` when it is not given."),
    setting("service.export.targets.<bucketName>.path", Kind::Text, "directory: the directory that holds the bucket's directory. `<data-dir>/buckets` when it is not given. The package's unit lets the service write into its data directory alone; another one has to be opened to it: `systemctl edit penstock`, and there `[Service]` and `ReadWritePaths=/the/directory`."),
    setting("service.export.default.type", Kind::Choice(&["s3", "directory"]), "For every bucketName without an entry: what it leads to."),
    setting("service.export.default.endpoint", Kind::Url, "The same for every bucketName without an entry."),
    setting("service.export.default.region", Kind::Text, "The same for every bucketName without an entry."),
    setting("service.export.default.bucket", Kind::Bucket, "The same for every bucketName without an entry: one bucket for all of them."),
    setting("service.export.default.prefix", Kind::Prefix, "The same for every bucketName without an entry."),
    setting("service.export.default.access-key-id", Kind::Text, "The same for every bucketName without an entry."),
    setting("service.export.default.secret-access-key", Kind::Text, "The same for every bucketName without an entry.").secret(),
    setting("service.export.default.path-style", Kind::Flag, "The same for every bucketName without an entry."),
    setting("service.export.default.ca-file", Kind::Text, "The same for every bucketName without an entry."),
    setting("service.export.default.compression", Kind::Choice(&["none", "gzip", "zstd"]), "The same for every bucketName without an entry."),
    setting("service.export.default.path", Kind::Text, "The same for every bucketName without an entry."),
    setting("service.log.level", Kind::Filter, "What is logged: `error`, `warn`, `info`, `debug`, `trace` or `off`, also per part (`info,penstock::http=debug`).").or("info"),
    setting("service.log.format", Kind::Choice(&["text", "json"]), "How it is logged: readable lines, or a JSON object a line.").or("text"),
    setting("security", Kind::Choice(&["oauth2"]), "`oauth2` for sign-in through an OpenID provider, together with the profile `oauth2`; the profile `azuread` implies it. Without it the accounts are built in."),
    setting("service.security.registration", Kind::Registration, "The registration identifier: a few lowercase letters. `azure` with the profile `azuread`."),
    setting("service.security.tenant-id", Kind::Tenant, "The tenant, for the profile `azuread`. Required there."),
    setting("service.security.ca-file", Kind::Text, "A PEM file of certificates that are trusted for identity providers, beside the system's."),
    setting("service.security.claims.firstName", Kind::List, "Claims that carry the given name; the first one present counts.").or("given_name"),
    setting("service.security.claims.lastName", Kind::List, "Claims that carry the family name.").or("family_name"),
    setting("service.security.claims.email", Kind::List, "Claims that carry the email. `email,preferred_username` with the profile `azuread`.").or("user_email,preferred_username"),
    setting("service.security.claims.organization", Kind::List, "Claims that carry the organization.").or("organization,companyname"),
    setting("service.security.claims.roles", Kind::List, "Claims that carry the roles. Dots lead into a claim that is an object (`realm_access.roles`), unless a claim has the whole name.").or("roles"),
    setting("service.security.defaultServiceAccountRole", Kind::Text, "The role of clients without an assigned one: `Admin`, `Contributor`, `User`, or the value that `security.role.*` maps to it, in any case. Without it they are rejected."),
    setting("service.security.serviceAccount.emailDomain", Kind::EmailDomain, "The domain (`@...`) of the emails made for service accounts. Without it their email is the bare `sub`."),
    setting("service.security.jwks.max-stale", Kind::Duration { min: MINUTE, max: 365 * DAY }, "How long the provider's keys are used while it is out of reach.").or("7d"),
    setting("service.security.jwt.algorithms", Kind::Choices(ALGORITHMS), "The algorithms (RFC 7518, 3.1; RFC 8037) that access tokens and ID tokens may be signed with.").or("RS256"),
    setting("service.security.session.idle", Kind::Duration { min: MINUTE, max: 365 * DAY }, "A session without a request ends after this time.").or("30m"),
    setting("service.security.session.absolute", Kind::Duration { min: MINUTE, max: 365 * DAY }, "A session ends so long after its start, however much it is used; at least `service.security.session.idle`. Sessions last over a restart of the service, and end when the machine restarts.").or("12h"),
    setting("security.role.admin", Kind::Text, "The role value that makes an Admin.").or("ACCURIDS_ADMIN"),
    setting("security.role.contributor", Kind::Text, "The role value that makes a Contributor.").or("ACCURIDS_CONTRIBUTOR"),
    setting("security.role.user", Kind::Text, "The role value that makes a User.").or("ACCURIDS_USER"),
    setting("framework.security.oauth2.client.registration.<id>.client-id", Kind::Text, "The client id from the provider. Required for sign-in."),
    setting("framework.security.oauth2.client.registration.<id>.client-secret", Kind::Text, "The client secret from the provider. Required for sign-in.").secret(),
    setting("framework.security.oauth2.client.registration.<id>.redirect-uri", Kind::RedirectUri, "The redirect URI. `{baseUrl}` is `service.base-url`, or without it the address that the request was sent to, by the forwarded headers of trusted proxies; `{registrationId}` is the registration identifier.").or("{baseUrl}/login/oauth2/code/{registrationId}"),
    setting("framework.security.oauth2.client.registration.<id>.scope", Kind::List, "The scopes asked for; `openid` among them.").or("profile,openid"),
    setting("framework.security.oauth2.client.registration.<id>.authorization-grant-type", Kind::Choice(&["authorization_code"]), "Always `authorization_code`.").or("authorization_code"),
    setting("framework.security.oauth2.client.provider.<id>.issuer-uri", Kind::Endpoint, "The issuer: the endpoints are discovered there, those given below win, and the issuer of answers and ID tokens is checked. Without it the three endpoints below are required, and no issuer is checked."),
    setting("framework.security.oauth2.client.provider.<id>.authorization-uri", Kind::Endpoint, "The authorization endpoint."),
    setting("framework.security.oauth2.client.provider.<id>.token-uri", Kind::Endpoint, "The token endpoint."),
    setting("framework.security.oauth2.client.provider.<id>.jwk-set-uri", Kind::Endpoint, "The JWKS endpoint."),
    setting("framework.security.oauth2.client.provider.<id>.user-info-uri", Kind::Endpoint, "The userinfo endpoint: claims that the ID token lacks are looked for there."),
    setting("framework.security.oauth2.client.provider.<id>.user-name-attribute", Kind::Text, "The claim that identifies the user, for good: an account is known by it. `oid` with the profile `azuread`.").or("sub"),
    setting("framework.security.oauth2.resourceserver.jwt.issuer-uri", Kind::Endpoint, "The issuer of access tokens, exactly as it stands in them; without it machine access is off."),
    setting("framework.security.oauth2.resourceserver.jwt.jwk-set-uri", Kind::Endpoint, "The issuer's JWKS endpoint; discovered when it is not given."),
    setting("framework.security.oauth2.resourceserver.jwt.audiences", Kind::List, "The `aud` claim that is expected: one of these. Required with `issuer-uri`."),
];

/// The profiles that turn sign-in on (specification, 5.1 and 5.6).
pub(super) const SIGN_IN_PROFILES: [&str; 2] = ["oauth2", "azuread"];

/// The setting of this exact name.
pub(super) fn find(name: &str) -> Option<&'static Setting> {
    TABLE.iter().find(|setting| setting.name == name)
}

#[cfg(test)]
mod tests {
    use super::super::kind::Raw;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn defaults_are_valid_and_names_are_distinct_even_as_environment_variables() {
        let mut seen = BTreeSet::new();
        for setting in TABLE {
            if let Some(default) = setting.default {
                let parsed = setting.kind.parse(&Raw::Text(default.to_owned()));
                assert!(parsed.is_ok(), "{}: {:?}", setting.name, parsed.err());
            }
            let plain: String =
                setting.name.to_lowercase().chars().filter(|c| !"._-".contains(*c)).collect();
            assert!(seen.insert(plain), "{}", setting.name);
        }
    }
}
