//! HTTPS: settings that depend on each other, and the addresses that need HTTPS.
use crate::{load_errors, loaded, with_arguments};

#[test]
fn beyond_loopback_needs_https_or_an_explicit_setting() {
    let found = load_errors(&with_arguments(&["--server.address=0.0.0.0"]));
    assert!(found.len() == 1 && found[0].contains("server.insecure-http=true"), "{found:#?}");
    let warnings =
        loaded(&with_arguments(&["--server.address=::", "--server.insecure-http=true"])).warnings;
    assert!(warnings.iter().any(|w| w.contains("in the clear")), "{warnings:#?}");
    let secure = loaded(&with_arguments(&["--server.address=::", "--server.ssl.self-signed=true"]));
    assert!(secure.warnings.is_empty(), "{:#?}", secure.warnings);
}

#[test]
fn a_certificate_needs_its_key_and_client_certificates_their_authorities() {
    for (arguments, name) in [
        (&["--server.ssl.certificate=c.pem"][..], "server.ssl.certificate-private-key"),
        (&["--server.ssl.certificate-private-key=k.pem"], "server.ssl.certificate"),
        (
            &["--server.ssl.self-signed=true", "--server.ssl.client-auth=need"],
            "server.ssl.client-auth",
        ),
        (&["--server.ssl.trust-certificate=a.pem"], "server.ssl.trust-certificate"),
        (
            &[
                "--server.ssl.self-signed=true",
                "--server.ssl.certificate=c.pem",
                "--server.ssl.certificate-private-key=k.pem",
            ],
            "server.ssl.self-signed",
        ),
    ] {
        let found = load_errors(&with_arguments(arguments));
        assert!(found.len() == 1 && found[0].starts_with(name), "{arguments:?}: {found:#?}");
    }
}

#[test]
fn a_private_key_is_never_shown() {
    let key = "-----BEGIN PRIVATE KEY-----\nplanted";
    let loaded = loaded(&with_arguments(&[
        "--server.ssl.certificate=c.pem",
        &format!("--server.ssl.certificate-private-key={key}"),
    ]));
    assert!(!format!("{loaded:?}").contains("planted"));
}
