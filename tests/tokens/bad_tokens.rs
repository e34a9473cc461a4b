//! Tokens that must be refused: each gets the right status, and the gateway creates no account for any of them.
use crate::gateway::Gateway;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use penstock_test_support::forge::{Key, encode, now, with};
use penstock_test_support::issuer::claims;
use penstock_test_support::prelude::*;
use ring::hmac;
use ring::signature::{RSA_PKCS1_SHA384, RSA_PSS_SHA256};

/// A description, the expected status, and the token.
type Bad = (String, u16, String);

struct Forger<'a> {
    issuer: &'a Issuer,
    key: &'a Key,
    foreign: &'a Key,
    bad: Vec<Bad>,
}

/// Returns what a token signs.
fn join(header: &Value, claims: &Value) -> String {
    [header, claims].map(|part| encode(part.to_string().as_bytes())).join(".")
}

impl Forger<'_> {
    fn add(&mut self, what: impl Into<String>, status: u16, token: String) {
        self.bad.push((what.into(), status, token));
    }

    fn header(&mut self, what: &str, header: &Value) {
        let header = with(&self.key.header(), header);
        let token = self.key.sign(&header, &claims(self.issuer));
        self.add(format!("header: {what}: {header}"), 401, token);
    }

    fn claim(&mut self, status: u16, others: &Value) {
        let token = self.key.token(&with(&claims(self.issuer), others));
        self.add(format!("claims: {others}"), status, token);
    }

    fn text(&mut self, what: &str, header: &str, claims: &str) {
        let token = self.key.sign_text(header, claims);
        self.add(what, 401, token);
    }

    fn algorithms(&mut self) {
        let (key, good) = (self.key, claims(self.issuer));
        for alg in ["none", "None", "NONE", "nOnE", ""] {
            let header = with(&key.header(), &json!({"alg": alg}));
            let message = join(&header, &good);
            self.add(format!("alg {alg:?} without a signature"), 401, format!("{message}."));
            self.header("alg, signed", &json!({"alg": alg}));
        }
        let public = key.public();
        let secrets = [public["n"].string(), public.to_string(), String::new()];
        for (name, kind) in [
            ("HS256", hmac::HMAC_SHA256),
            ("HS384", hmac::HMAC_SHA384),
            ("HS512", hmac::HMAC_SHA512),
        ] {
            for secret in &secrets {
                let header = with(&key.header(), &json!({"alg": name}));
                let message = join(&header, &good);
                let signature =
                    hmac::sign(&hmac::Key::new(kind, secret.as_bytes()), message.as_bytes());
                self.add(
                    format!("{name} with a public text as the secret"),
                    401,
                    format!("{message}.{}", encode(signature.as_ref())),
                );
            }
        }
        for alg in &each(json!([
            "rs256",
            "RS256 ",
            256,
            null,
            ["RS256"],
            "RS384",
            "PS256",
            "ES256",
            "RS1",
        ])) {
            self.header("alg", &json!({"alg": alg}));
        }
        // Valid signatures of algorithms that are not in the list.
        for (alg, padding) in [
            ("RS384", &RSA_PKCS1_SHA384 as &'static dyn ring::signature::RsaEncoding),
            ("PS256", &RSA_PSS_SHA256),
            ("RS256", &RSA_PSS_SHA256),
        ] {
            let header = with(&key.header(), &json!({"alg": alg}));
            let message = join(&header, &good);
            let signature = key.signature(message.as_bytes(), padding);
            self.add(
                format!("alg {alg} with another padding or digest"),
                401,
                format!("{message}.{}", encode(&signature)),
            );
        }
        for other in [Key::p256("p256"), Key::ed25519("ed")] {
            self.issuer.state().keys.push(other.public());
            let token = other.token(&good);
            self.add(format!("{} is not in the list", other.algorithm()), 401, token);
        }
    }

    fn keys(&mut self) {
        let good = claims(self.issuer);
        for kid in &each(json!(["other", "", 1, ["first"], "../../jwks.json", "' OR 1=1"])) {
            self.header("kid", &json!({"kid": kid}));
        }
        let foreign = self.foreign.public();
        let jku = format!("{}/jwks", self.issuer.url);
        for own in &each(json!([
            {"jwk": foreign}, {"jku": jku}, {"jku": "https://attacker.example/jwks"},
            {"x5u": "https://attacker.example/chain"}, {"x5c": ["MIIB"]},
            {"jwk": foreign, "kid": null},
        ])) {
            let header = with(&self.key.header(), own);
            self.add(format!("a key of its own: {own}"), 401, self.foreign.sign(&header, &good));
            if own.get("x5c").is_none() {
                self.header("an unneeded key of its own", own);
            }
        }
        self.add("by a foreign key", 401, self.foreign.token(&good));
        let as_ours = self.foreign.sign(&self.key.header(), &good);
        self.add("by a foreign key under the id of the known key", 401, as_ours);
        let unnamed = with(&self.key.header(), &json!({"kid": null}));
        self.add("by a foreign key without a key id", 401, self.foreign.sign(&unnamed, &good));
        for crit in &each(json!([["exp"], [], ["b64"], "exp"])) {
            self.header("crit", &json!({"crit": crit}));
        }
        self.header("b64", &json!({"b64": false}));
        for typ in
            ["id_token", "logout+jwt", "dpop+jwt", "secevent+jwt", "JOSE", "", "application/"]
        {
            self.header("typ", &json!({"typ": typ}));
        }
        self.header("typ", &json!({"typ": 5}));
    }

    fn forms(&mut self) {
        let good = self.key.token(&claims(self.issuer));
        let parts: Vec<&str> = good.split('.').collect();
        let (header, body, signature) = (parts[0], parts[1], parts[2]);
        for text in ["a", ".", "..", "...", "a.b", "a.b.c", "a.b.c.d.e", "null", "{}"] {
            self.add(format!("no token: {text:?}"), 401, text.to_owned());
        }
        for text in [
            format!("{header}.{body}"),
            format!("{header}.{body}."),
            format!("{header}..{signature}"),
            format!(".{body}.{signature}"),
            format!("{good}."),
            format!(".{good}"),
            format!("{good}.{signature}"),
            format!("{header}.{body}.{signature}.a.b"),
            format!("{body}.{header}.{signature}"),
            format!("{good}="),
            format!("{header}=.{body}.{signature}"),
            format!("{header}.{body}.{}", &signature[1..]),
            format!("{header}.{body}.{}", &signature[..signature.len() - 2]),
            format!("{header}.{body}.{signature}AAAA"),
            format!("{header}.{body}.{}", "A".repeat(signature.len())),
            format!("{header}.{body}.{signature}{signature}"),
            format!("{header}.{}.{signature}", &body[..body.len() / 2]),
            format!("{}.{body}.{signature}", &header[..header.len() / 2]),
            good[..good.len() / 2].to_owned(),
            format!("{header}.{body}.+/{}", &signature[2..]),
            format!("{good} {good}"),
            format!("{good},{good}"),
        ] {
            self.add("another form", 401, text);
        }
        let other =
            self.key.token(&with(&claims(self.issuer), &json!({"roles": ["ACCURIDS_ADMIN"]})));
        let other = other.split('.').nth(1).unwrap();
        self.add("the claims of another token", 401, format!("{header}.{other}.{signature}"));
        // The last character has bits that no byte needs. Decoders that ignore these bits decode another last character
        // to the same bytes.
        let (rest, last) = signature.split_at(signature.len() - 1);
        let with_padding_bit = match last {
            "A" => "B",
            "Q" => "R",
            "g" => "h",
            "w" => "x",
            other => panic!("a signature of 256 bytes does not end in {other}"),
        };
        let alike = format!("{rest}{with_padding_bit}");
        self.add("a signature that ends otherwise", 401, format!("{header}.{body}.{alike}"));

        let (header, body) = (self.key.header().to_string(), claims(self.issuer).to_string());
        for (what, header, body) in [
            ("a header that is not JSON", "{", body.as_str()),
            ("a header that is a list", "[]", &body),
            ("a header that is null", "null", &body),
            ("a header that is a string", "\"RS256\"", &body),
            ("an empty header", "{}", &body),
            ("claims that are not JSON", &header, "{\"iss\":"),
            ("claims that are a list", &header, "[]"),
            ("claims that are null", &header, "null"),
            ("claims that are a number", &header, "7"),
            ("claims without members", &header, "{}"),
            ("claims that are an empty text", &header, ""),
        ] {
            self.text(what, header, body);
        }
        self.text("claims followed by more JSON", &header, &format!("{body}{{}}"));
        self.text("claims with a byte order mark", &header, &format!("\u{feff}{body}"));
        self.text("claims with a comment", &header, &format!("/**/{body}"));
        self.text("claims without end", &header, &format!("{{\"a\":{}", "[".repeat(5000)));
        self.text(
            "claims of great depth",
            &header,
            &format!("{{\"a\":{}{}}}", "[".repeat(4000), "]".repeat(4000)),
        );
        for twice in [
            "\"iss\":\"x\"",
            "\"exp\":1",
            "\"aud\":\"x\"",
            "\"sub\":\"x\"",
            "\"roles\":[\"ACCURIDS_ADMIN\"]",
            "\"\\u0069ss\":\"x\"",
        ] {
            let inner = &body[1..body.len() - 1];
            self.text("a claim twice", &header, &format!("{{{twice},{inner}}}"));
            self.text(
                "a claim twice, the other way round",
                &header,
                &format!("{{{inner},{twice}}}"),
            );
        }
        let inner = &header[1..header.len() - 1];
        self.text("a header's member twice", &format!("{{\"alg\":\"none\",{inner}}}"), &body);
        self.text("a header's member twice", &format!("{{{inner},\"kid\":\"x\"}}"), &body);
        let invalid = self.key.sign_bytes(header.as_bytes(), b"{\"iss\":\"\xff\"}");
        self.add("claims that are not UTF-8", 401, invalid);
        for size in [16 << 10, 40 << 10] {
            self.claim(401, &json!({"padding": "x".repeat(size)}));
        }
    }

    fn issuers_and_audiences(&mut self) {
        let (url, audience) = (self.issuer.url.clone(), self.issuer.audience.clone());
        for iss in &each(json!([
            null,
            format!("{url}/"),
            url.replace("http", "https"),
            url.to_uppercase(),
            format!("{url}?a"),
            format!(" {url}"),
            &url[..url.len() - 1],
            "https://attacker.example",
            [url],
            7,
            "",
        ])) {
            self.claim(401, &json!({"iss": iss}));
        }
        for aud in &each(json!([
            null, format!("{audience}/"), audience.to_uppercase(),
            audience.trim_start_matches("api://"), &audience[..audience.len() - 1],
            format!("{audience},other"), format!("{audience} other"), [], ["other"], [audience, 7],
            [[audience]], {"a": audience}, 7, "", "web-client",
        ])) {
            self.claim(401, &json!({"aud": aud}));
        }
    }

    fn times(&mut self) {
        for exp in &each(json!([
            null,
            now() - 61,
            now() - 86_400,
            0,
            -1,
            format!("{}", now() + 300),
            [now() + 300],
            true,
            {},
        ])) {
            self.claim(401, &json!({"exp": exp}));
        }
        for nbf in &each(json!([now() + 120, now() + 86_400, "0", 1e300, false])) {
            self.claim(401, &json!({"nbf": nbf}));
        }
        self.claim(401, &json!({"iat": "now"}));
        let header = self.key.header().to_string();
        let body = claims(self.issuer).to_string();
        for exp in ["1e400", "-1e400", "null"] {
            let body = body.replacen("\"exp\":", &format!("\"exp\":{exp},\"was\":"), 1);
            self.text(&format!("exp {exp}"), &header, &body);
        }
    }

    fn other_tokens(&mut self) {
        for id_token in [
            json!({"nonce": "n"}),
            json!({"at_hash": "h"}),
            json!({"c_hash": "h"}),
            json!({"s_hash": "h"}),
            json!({"nonce": "n", "at_hash": "h", "auth_time": now(), "aud": "web-client"}),
            json!({"typ": "ID"}),
            json!({"typ": "Refresh"}),
            json!({"typ": "Offline"}),
            json!({"typ": "Logout"}),
            json!({"token_use": "id"}),
            json!({"events": {"http://schemas.openid.net/event/backchannel-logout": {}}}),
            // Bound to a key of the sender (RFC 7800; RFC 8705, 3.1; RFC 9449, 6.1).
            json!({"cnf": {"jwk": {"kty": "oct"}}}),
            json!({"cnf": {"x5t#S256": "h"}}),
            json!({"cnf": {"jkt": "h"}}),
            json!({"cnf": {}}),
            json!({"cnf": false}),
        ] {
            self.claim(401, &id_token);
        }
        for unusable in &each(json!([
            {"sub": null}, {"sub": ""}, {"sub": 7}, {"sub": ["plant-7"]}, {"sub": "a\u{0}b"},
            {"sub": "a\u{202e}b"}, {"sub": "plant-7\u{200b}"}, {"sub": "x".repeat(256)}, {"azp": 7},
            {"azp": ""},
        ])) {
            self.claim(401, unusable);
        }
    }

    fn not_allowed(&mut self) {
        for roles in &each(json!([
            null, [], ["other"], ["accurids_admin"], ["ACCURIDS_ADMIN "], {"ACCURIDS_ADMIN": true},
            [["ACCURIDS_ADMIN"]], 7, "ACCURIDS_ADMIN,ACCURIDS_USER",
        ])) {
            self.claim(403, &json!({"roles": roles}));
        }
        for delegated in &each(json!([
            {"scp": "access_as_user"}, {"scp": ["a", "b"]}, {"scp": ""}, {"idtyp": "user"},
            {"sub": "person", "scope": "openid profile"},
            {"sub": "person", "preferred_username": "ada@example.org"},
            {"sub": "person", "oid": "another"}, {"sub": "person", "sid": "s"},
            {"sub": "person", "email": "ada@example.org", "name": "Ada"},
        ])) {
            self.claim(403, delegated);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_tokens_are_refused_and_create_no_account() {
    let (key, foreign) = (Key::rsa("first"), Key::rsa("foreign"));
    let issuer = Issuer::start(&[&key]);
    let mut forger = Forger { issuer: &issuer, key: &key, foreign: &foreign, bad: Vec::new() };
    forger.algorithms();
    forger.keys();
    forger.forms();
    forger.issuers_and_audiences();
    forger.times();
    forger.other_tokens();
    forger.not_allowed();
    let bad = forger.bad;
    assert!(bad.len() > 150, "{}", bad.len());

    let gateway = Gateway::start(&issuer, &[]).await;
    let before = gateway.gateway().store.stats().quads;
    let mut wrong = Vec::new();
    for (what, status, token) in &bad {
        let answer = gateway.ask(token).await;
        let (found, challenge, text) =
            (answer.status, answer.header("www-authenticate"), answer.text());
        let error = if *status == 401 { "invalid_token" } else { "insufficient_scope" };
        let names_error = challenge.contains(&format!("error=\"{error}\""));
        // The answer does not repeat the token.
        let echoes = token.len() > 20 && (text.contains(token) || challenge.contains(token));
        if found != *status || !challenge.starts_with("Bearer") || !names_error || echoes {
            wrong.push(format!("{what}: {found} for {status}, {challenge:?}, {text}"));
        }
        let accounts = gateway.accounts();
        if !accounts.is_empty() {
            wrong.push(format!("{what}: created an account: {accounts:?}"));
            break;
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), bad.len(), wrong.join("\n"));
    assert_eq!(gateway.gateway().store.stats().quads, before);
    // Despite many unknown keys, the issuer was asked for its keys only once more than at the start.
    assert!(issuer.state().asked <= 3, "{}", issuer.state().asked);

    // A valid token is accepted, so the tokens before were refused because they are bad.
    assert_eq!(gateway.status(&key.token(&claims(&issuer))).await, 200);
    assert_eq!(gateway.accounts().len(), 1);
    println!("{} bad tokens were refused", bad.len());
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_says_what_to_do_about_the_token() {
    let (key, issuer) = Issuer::with_key();
    let gateway = Gateway::start(&issuer, &[]).await;
    let jwt = "framework.security.oauth2.resourceserver.jwt";
    for (others, expected) in [
        (json!({"exp": now() - 86_400}), "get a new token from its issuer".to_owned()),
        (json!({"exp": now() - 86_400}), "the gateway's clock is ahead".to_owned()),
        (json!({"nbf": now() + 3_600}), "the gateway's clock is behind".to_owned()),
        (json!({"aud": "other"}), format!("{jwt}.audiences")),
        (json!({"iss": "https://other.example"}), format!("{jwt}.issuer-uri")),
    ] {
        let answer = gateway.ask(&key.token(&with(&claims(&issuer), &others))).await;
        let detail = answer.problem(401)["detail"].string();
        assert!(detail.contains(&expected) && !detail.contains("API key"), "{detail}");
    }
    gateway.ask("mistyped").await.refused(401, "which begins with penstock_");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_credentials_in_one_request_are_malformed() {
    let (key, issuer) = Issuer::with_key();
    let gateway = Gateway::start(&issuer, &[]).await;
    let token = key.token(&claims(&issuer));
    let bearer = format!("Bearer {token}");
    let path = "/api/v1/limits";
    for twice in [
        &[("Authorization", &*bearer), ("Authorization", &*bearer)][..],
        &[("Authorization", &*bearer), ("Apikey", &*token)],
        &[("Authorization", &*bearer), ("Apikey", "penstock_x")],
        &[("Authorization", "Bearer ")],
    ] {
        let answer = gateway.get_with(path, twice).await;
        let challenge = answer.header("www-authenticate");
        assert!(challenge.contains("error=\"invalid_request\""), "{challenge}");
        answer.problem(400);
    }
    // A token in the address would end up in logs, so the gateway ignores it.
    let query = gateway.anonymous().get(&format!("{path}?access_token={token}")).await;
    let basic = format!("Basic {}", STANDARD.encode(format!("plant-7:{token}")));
    let basic = gateway.get_with(path, &[("Authorization", &*basic)]).await;
    assert_eq!((query.status, basic.status), (401, 401));
    assert!(gateway.accounts().is_empty());
    assert_eq!(gateway.status(&token).await, 200);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_issuer_every_access_token_is_refused() {
    let (key, issuer) = Issuer::with_key();
    let dir = tempfile::tempdir().unwrap();
    let gateway = Gateway::start_with(dir.path(), &[]).await;
    gateway.ask(&key.token(&claims(&issuer))).await.refused(401, "issuer-uri");
    gateway.stop().await;
}
