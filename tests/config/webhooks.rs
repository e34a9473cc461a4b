//! Webhooks in the configuration: what one needs, and which connections are refused.
use crate::{in_dir, load_errors, loaded, with_arguments};
use penstock_base::events::EventKind;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn errors_of(settings: &[&str]) -> Vec<String> {
    let arguments: Vec<String> =
        settings.iter().map(|setting| format!("--service.webhooks.ops.{setting}")).collect();
    load_errors(&with_arguments(&arguments.iter().map(String::as_str).collect::<Vec<_>>()))
}

#[test]
fn a_webhook_has_a_url_a_secret_and_events() {
    let text = format!(
        "service.webhooks:\n  ops:\n    url: https://a.example/hook?token=1\n    secret: {SECRET}\n    events: ['penstock.change.*', penstock.target.blocked]\n"
    );
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("application.yaml"), text).unwrap();
    let mut sources = in_dir(dir.path());
    for (name, value) in [("URL", "http://[::1]:9/"), ("SECRET", SECRET), ("EVENTS", "*")] {
        sources.environment.insert(format!("SERVICE_WEBHOOKS_ALL_{name}"), value.into());
    }
    let loaded = loaded(&sources);
    let webhooks = &loaded.settings.webhooks;
    let ops = &webhooks["ops"];
    assert_eq!(ops.url, "https://a.example/hook?token=1");
    assert_eq!(ops.secret.as_bytes().len(), 24);
    assert_eq!((ops.events.len(), ops.events[0]), (6, EventKind::TargetBlocked));
    assert_eq!(webhooks["all"].events, EventKind::FOR_WEBHOOKS);
    let values = &loaded.settings.effective_values;
    let url = values.iter().find(|value| value.name == "service.webhooks.ops.url").unwrap();
    assert_eq!(url.value, "\"https://a.example/******\"");
    let limits = &loaded.settings.limits;
    assert_eq!((limits.webhook_events, limits.webhook_bytes), (10_000, 16 << 20));
    assert!(!format!("{loaded:?}").contains("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
}

#[test]
fn each_mistake_in_a_webhook_is_reported_once() {
    let (url, secret) = ("url=https://a.example/", format!("secret={SECRET}"));
    let secret = secret.as_str();
    for (settings, expected) in [
        (&[url, secret][..], "ops.events: it is missing"),
        (&[url, "events=*"][..], "ops.secret: it is missing"),
        (&[secret, "events=*"][..], "ops.url: it is missing"),
        (&[url, "secret=a secret of more than 24 bytes", "events=*"][..], "openssl rand"),
        (&[url, secret, "events=penstock.events.lost"][..], "penstock.target.blocked"),
        (&["url=ftp://a.example", secret, "events=*"][..], "an http or https URL"),
        (&["url=http://a.example", secret, "events=*"][..], "insecure=true"),
        (&["url=HTTP://a.example", secret, "events=*"][..], "insecure=true"),
        (&["url=http://localhost", secret, "events=*", "ca-file=/x"][..], "no effect without TLS"),
        (&[url, secret, "events=*", "ca-file=/no/such"][..], "cannot be read"),
    ] {
        let found = errors_of(settings);
        assert!(found.len() == 1 && found[0].contains(expected), "{settings:?}: {found:#?}");
        assert!(!found[0].contains("more than 24") && !found[0].contains("MfKQ"), "{found:#?}");
    }
    let plain = ["url=http://a.example", secret, "events=*", "insecure=true"];
    let arguments = plain.map(|setting| format!("--service.webhooks.ops.{setting}"));
    let sources = with_arguments(&arguments.each_ref().map(String::as_str));
    assert!(penstock_config::load(&sources).is_ok());
    let found = load_errors(&with_arguments(&["--service.webhooks[a b].url=https://a.example"]));
    assert!(found.iter().any(|error| error.contains("the name of a webhook")), "{found:#?}");
}

#[test]
fn a_gateway_has_at_most_32_webhooks() {
    let load = |count: usize| {
        let arguments: Vec<String> = (0..count)
            .flat_map(|number| {
                [
                    "url=https://a.example".to_owned(),
                    format!("secret={SECRET}"),
                    "events=*".to_owned(),
                ]
                .map(|setting| format!("--service.webhooks.w{number}.{setting}"))
            })
            .collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        penstock_config::load(&with_arguments(&arguments))
    };
    assert_eq!(load(32).unwrap().settings.webhooks.len(), 32);
    let errors: Vec<String> =
        load(40).unwrap_err().errors.iter().map(ToString::to_string).collect();
    assert!(errors.len() == 1 && errors[0].contains("at most 32 webhooks"), "{errors:#?}");
}

#[test]
fn a_heartbeat_has_an_interval_of_at_least_a_minute() {
    let load = |value: &str| {
        let argument = format!("--service.export.heartbeat={value}");
        penstock_config::load(&with_arguments(&[&argument]))
    };
    let interval = |value| load(value).unwrap().settings.targets.heartbeat_interval;
    assert_eq!(interval("5m"), Some(std::time::Duration::from_mins(5)));
    assert_eq!(interval(""), None);
    assert!(load("59s").is_err());
}
