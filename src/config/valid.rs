//! Which texts are valid values, and how sizes and time spans are written.
use std::net::IpAddr;

/// Parses a size in bytes: a number and a unit. As in Spring, MB means MiB.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

pub(super) fn format_size(bytes: u64) -> String {
    [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")]
        .into_iter()
        .find(|(shift, _)| bytes >= 1 << shift && bytes.trailing_zeros() >= *shift)
        .map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// The units of time in milliseconds, the longest first.
const TIME_UNITS: [(u64, &str); 5] =
    [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")];

/// Parses a time span: a number and its unit. Returns milliseconds.
pub(super) fn parse_duration(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let (milliseconds, _) = TIME_UNITS.into_iter().find(|(_, name)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(milliseconds)
}

pub(super) fn format_duration(milliseconds: u64) -> String {
    TIME_UNITS
        .into_iter()
        .find(|(unit, _)| milliseconds >= *unit && milliseconds.is_multiple_of(*unit))
        .map_or_else(|| "0s".to_owned(), |(unit, name)| format!("{}{name}", milliseconds / unit))
}

pub(super) fn parse_address(text: &str) -> Option<IpAddr> {
    if text == "localhost" { Some([127, 0, 0, 1].into()) } else { text.parse().ok() }
}

pub(super) fn parse_network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(most), |bits| bits.parse().ok().filter(|b| *b <= most))?;
    Some((address, bits))
}

pub(super) fn is_url(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let authority = rest.split('/').next().unwrap_or_default();
    !authority.is_empty()
        && !authority.starts_with(':')
        && !text.contains(['?', '#', '@'])
        && oxrdf::NamedNode::new(text).is_ok()
}

/// Whether this host of a URL is this machine.
pub(super) fn is_loopback_host(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Whether this is a URL of plain HTTP. The case of a scheme does not matter (RFC 3986, 3.1).
pub(super) fn is_plain_http(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| url.scheme() == "http")
}

/// Whether the host of this URL is this machine.
pub(super) fn is_on_loopback(url: &str) -> bool {
    let url = reqwest::Url::parse(url).ok();
    url.is_some_and(|url| url.host_str().is_some_and(is_loopback_host))
}

/// Whether this is an `https` URL, or an `http` URL on loopback. With plain HTTP, anyone on the network path could read
/// the client secret and forge the provider's keys.
pub fn is_endpoint(text: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(text) else { return false };
    (url.scheme() == "https"
        || (url.scheme() == "http" && url.host_str().is_some_and(is_loopback_host)))
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none()
        && !text.contains(char::is_whitespace)
}

pub(super) fn is_redirect_uri(text: &str) -> bool {
    let filled =
        text.strip_prefix("{baseUrl}").map(|rest| format!("https://gateway.example{rest}"));
    let filled = filled.as_deref().unwrap_or(text).replacen("{registrationId}", "registration", 1);
    is_url(&filled)
        && filled.rsplit_once('/').is_some_and(|(before, id)| {
            before.ends_with("/login/oauth2/code") && is_registration(id)
        })
}

pub(super) fn is_registration(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase())
}

/// Whether this names one tenant. The three refused words are the endpoints for several tenants, whose tokens name
/// another issuer.
pub(super) fn is_tenant(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-')
        && !["common", "organizations", "consumers"].iter().any(|w| w.eq_ignore_ascii_case(text))
}

pub(super) fn is_email_domain(text: &str) -> bool {
    text.strip_prefix('@').is_some_and(|domain| {
        !domain.is_empty()
            && !domain.contains(|c: char| c == '@' || c.is_whitespace() || c.is_control())
    })
}

pub(super) fn is_origin(text: &str) -> bool {
    text == "*" || (is_url(text) && text.matches('/').count() == 2)
}

pub(super) fn is_profile(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

pub(super) fn is_gateway_id(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && !matches!(text, "." | "..")
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// Whether this has the form of an age identity (`AGE-SECRET-KEY-1…`) or recipient (`age1…`): Bech32 of 32 bytes. Its
/// checksum is not checked.
pub(super) fn is_age_key(text: &str) -> bool {
    const BECH32: &str = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    let has_data = |data: &str, alphabet: &str| {
        // 52 characters of the key, 6 of the checksum.
        data.len() == 58 && data.chars().all(|c| alphabet.contains(c))
    };
    match (text.strip_prefix("age1"), text.strip_prefix("AGE-SECRET-KEY-1")) {
        (Some(data), _) => has_data(data, BECH32),
        (None, Some(data)) => has_data(data, &BECH32.to_ascii_uppercase()),
        (None, None) => false,
    }
}

/// Whether this is a valid filter. A single word must be a level, because `EnvFilter` reads any other word as the name
/// of a module, and then logs nothing else.
pub(super) fn is_filter(text: &str) -> bool {
    const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
    text.split(',').all(|part| {
        let part = part.trim();
        part.contains(['=', '[']) || LEVELS.iter().any(|level| level.eq_ignore_ascii_case(part))
    }) && tracing_subscriber::EnvFilter::try_new(text).is_ok()
}

pub(super) fn is_prefix(text: &str) -> bool {
    let whole = text.strip_suffix('/').unwrap_or(text);
    text.len() <= 512
        && !text.contains(|c: char| c.is_control())
        && whole.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::super::kind::{RawValue, checked_list, flag, text, whole};
    use super::*;

    #[test]
    fn sizes_have_units_and_do_not_overflow() {
        for (text, bytes) in [
            ("16777216", 1 << 24),
            ("16MiB", 1 << 24),
            ("16MB", 1 << 24),
            ("16 mb", 1 << 24),
            ("1k", 1024),
            ("0", 0),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
        for text in
            ["", "MiB", "1.5MiB", "-1", "16 megs", "99999999999999TiB", "99999999999999999999"]
        {
            assert_eq!(parse_size(text), None, "{text}");
        }
        assert_eq!(format_size(16 << 20), "16MiB");
        assert_eq!(format_size(1500), "1500");
    }

    #[test]
    fn times_have_a_unit() {
        for (text, milliseconds) in [
            ("30m", 1_800_000),
            ("12 h", 43_200_000),
            ("7d", 604_800_000),
            ("5S", 5000),
            ("0ms", 0),
        ] {
            assert_eq!(parse_duration(text), Some(milliseconds), "{text}");
        }
        for text in ["", "30", "m", "1.5h", "-1s", "1w", "99999999999999999d"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
        assert_eq!(format_duration(1_800_000), "30m");
        assert_eq!(format_duration(90_000), "90s");
        assert_eq!(format_duration(0), "0s");
    }

    #[test]
    fn each_kind_rejects_invalid_values() {
        let of_text = |text: &str| RawValue::Text(text.to_owned());
        assert!(is_url("https://gateway.example/penstock/"));
        for url in
            ["gateway.example", "ftp://x", "http://", "http://u:p@x", "http://x?y", "http://x y"]
        {
            assert!(!is_url(url), "{url}");
        }
        assert!(is_filter("info,penstock_http=debug"));
        assert!(!is_filter("verbose"));
        assert!(parse_network("10.0.0.0/8").is_some() && parse_network("::1").is_some());
        assert_eq!(parse_network("10.0.0.0/33"), None);
        assert!(is_origin("https://a.example:8443") && is_origin("*"));
        assert!(!is_origin("https://a.example/"));
        let urls = checked_list("", is_url);
        assert!(urls.parse(&of_text("https://a.example/sparql,http://b.example/")).is_ok());
        assert!(urls.parse(&of_text("https://a.example/sparql,ftp://b.example")).is_err());
        assert!(is_prefix("plant/1/"));
        for prefix in ["/a", "a/../b", "a//b", "a\u{7}", "..", "/"] {
            assert!(!is_prefix(prefix), "{prefix}");
        }
        assert!(!is_profile("../../etc"));
        for url in [
            "https://sts.windows.net/t/",
            "http://127.0.0.1:5710",
            "https://x.example/a?p=1",
            "http://[::1]/",
            "http://localhost:1",
        ] {
            assert!(is_endpoint(url), "{url}");
        }
        for url in [
            "http://login.example",
            "https://u@x",
            "https://x#f",
            "x.example",
            "ftp://x",
            "https://",
            "http://127.0.0.1.example",
        ] {
            assert!(!is_endpoint(url), "{url}");
        }
        for uri in [
            "{baseUrl}/login/oauth2/code/{registrationId}",
            "{baseUrl}/login/oauth2/code/azure",
            "https://gw.example/a/login/oauth2/code/azure",
        ] {
            assert!(is_redirect_uri(uri), "{uri}");
        }
        for uri in [
            "{baseUrl}/callback",
            "{baseScheme}://x/login/oauth2/code/a",
            "/login/oauth2/code/a",
            "https://gw.example/login/oauth2/code/a?b",
            "{baseUrl}x/login/oauth2/code/{registrationId}{registrationId}",
        ] {
            assert!(!is_redirect_uri(uri), "{uri}");
        }
        assert!(is_registration("keycloak"));
        for id in ["Azure", "a1", "a-b", "", "ä"] {
            assert!(!is_registration(id), "{id}");
        }
        assert!(is_tenant("9188040d-6c67-4c5b-b112-36a304b66dad"));
        for tenant in ["common", "Organizations", "a/b", "a b"] {
            assert!(!is_tenant(tenant), "{tenant}");
        }
        assert!(is_email_domain("@machines.example"));
        for domain in ["machines.example", "@", "@a@b", "@a b"] {
            assert!(!is_email_domain(domain), "{domain}");
        }
        assert!(is_gateway_id("edge-1.a") && is_gateway_id("..."));
        for id in ["a b", ".", ".."] {
            assert!(!is_gateway_id(id), "{id}");
        }
        let data = "qpzry9x8gf2tvdw0s3jn54khce6mua7lqpzry9x8gf2tvdw0s3jn54khce";
        let identity = format!("AGE-SECRET-KEY-1{}", data.to_ascii_uppercase());
        assert!(is_age_key(&format!("age1{data}")) && is_age_key(&identity));
        for key in [
            identity.to_ascii_lowercase(),
            format!("age1{}b", data.split_at(57).0),
            format!("age1{data}q"),
            format!("age1pq1{data}"),
            String::new(),
        ] {
            assert!(!is_age_key(&key), "{key}");
        }
        assert!(
            flag().parse(&of_text("yes")).is_err() && flag().parse(&of_text("True")) == Ok(true)
        );
        assert!(whole::<u64>(1, 2).parse(&of_text("3")).is_err());
        assert!(text::<String>().parse(&RawValue::List(vec!["a".into()])).is_err());
    }
}
