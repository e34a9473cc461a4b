use crate::{Loaded, Sources, load};

fn load_arguments(arguments: &[&str]) -> Result<Loaded, Vec<String>> {
    let arguments = arguments.iter().map(|one| format!("--service.sources.{one}")).collect();
    let sources = Sources { arguments, ..Sources::default() };
    load(&sources).map_err(|invalid| invalid.errors.iter().map(ToString::to_string).collect())
}

fn load_error(arguments: &[&str]) -> String {
    load_arguments(arguments).err().unwrap_or_default().join("\n")
}

const PLANT: [&str; 4] = [
    "plant.type=mqtt",
    "plant.url=mqtt://127.0.0.1",
    "plant.subscriptions[0].topic=plant/+/pumps",
    "plant.subscriptions[0].business-object=Pumps",
];

#[test]
fn a_source_has_defaults() {
    let more = [
        "plant.subscriptions[0].fields.site={2}",
        "plant.subscriptions[4].topic=x/#",
        "plant.subscriptions[4].business-object=Tanks",
        "plant.subscriptions[4].mode=ADD",
    ];
    let loaded = load_arguments(&[&PLANT[..], &more].concat()).unwrap();
    let source = &loaded.settings.sources["plant"];
    assert_eq!(
        (source.url.host.as_str(), source.url.port, source.url.uses_tls),
        ("127.0.0.1", 1883, false)
    );
    assert_eq!((source.receive_maximum, source.session_expiry.as_secs()), (1000, 7 * 86400));
    let [pumps, tanks] = source.subscriptions.as_slice() else { panic!("{source:?}") };
    assert_eq!((pumps.mode, tanks.mode), ("MERGE", "ADD"));
    assert_eq!(pumps.fields.get("site").map(String::as_str), Some("{2}"));
    let id = source.session_client_id("g", "plant", "Wärme-1");
    assert_eq!(id, "penstock-g-plant-W_c3_a4rme_2d1");
    assert!(source.is_session_client_id("g", "plant", &id));
    assert!(source.is_session_client_id("g", "plant", "penstock-g-plant-Removed"));
    for other in ["penstock-copy-plant-Pumps", "penstock-g-plant", "penstock-g-plant-x-Pumps", "g"]
    {
        assert!(!source.is_session_client_id("g", "plant", other), "{other}");
    }
    assert_eq!(loaded.settings.limits.source_bytes, 8 << 20);
}

#[test]
fn plain_mqtt_beyond_loopback_needs_a_setting() {
    let mut arguments = PLANT;
    arguments[1] = "plant.url=mqtt://broker.example";
    assert!(load_error(&arguments).contains("insecure=true"));
    load_arguments(&[&arguments[..], &["plant.insecure=true"]].concat()).unwrap();
    arguments[1] = "plant.url=mqtts://broker.example";
    let loaded = load_arguments(&arguments).unwrap();
    assert_eq!(loaded.settings.sources["plant"].url.port, 8883);
}

#[test]
fn contradictory_and_unknown_settings_are_errors() {
    for (setting, expected) in [
        ("plant.qos=2", "not a known setting"),
        ("plant.url=mqtt://user@127.0.0.1", "URL of a broker"),
        ("plant.url=mqtt://127.0.0.1/path", "URL of a broker"),
        ("plant.subscriptions[0].topic=a/#/b", "topic filter"),
        ("plant.subscriptions[0].fields.site={4}", "no level 4"),
        ("plant.subscriptions[0].fields.site={x}", "{1} is the first level"),
        ("plant.subscriptions[1].topic=a", "business-object"),
        ("plant.client-key=-----BEGIN X", "without TLS"),
        ("plant.client-certificate=/missing/file", "cannot be read"),
        ("plant.password=x", "no password without a user name"),
        ("plant.subscriptions[0].topic=$exclusive/a", "topic filter"),
        ("other.type=mqtt", "service.sources.other.url"),
    ] {
        let error = load_error(&[&PLANT[..], &[setting]].concat());
        assert!(error.contains(expected), "{setting}: {error}");
    }
    assert!(load_error(&PLANT[1..]).contains("service.sources.plant.type"));
}

#[test]
fn two_sources_with_one_client_id_at_one_broker_are_refused() {
    let other = PLANT.map(|setting| setting.replace("plant.", "other."));
    let ids = ["plant.client-id=gate", "other.client-id=gate"];
    let mut both: Vec<&str> = PLANT.into_iter().chain(other.iter().map(String::as_str)).collect();
    load_arguments(&both).unwrap();
    both.extend(ids);
    assert!(load_error(&both).contains("same client id"));
    both.push("other.url=mqtt://127.0.0.1:1884");
    load_arguments(&both).unwrap();
}

#[test]
fn the_environment_names_a_subscription_of_a_file() {
    let variables = [
        ("SERVICE_SOURCES_PLANT_SUBSCRIPTIONS_0_TOPIC", "plant/+"),
        ("SERVICE_SOURCES_PLANT_SUBSCRIPTIONS_0_BUSINESS_OBJECT", "Pumps"),
        ("SERVICE_SOURCES_PLANT_SUBSCRIPTIONS_0_FIELDS_SITE_CODE", "{2}"),
        ("SERVICE_SOURCES_PLANT_TYPE", "mqtt"),
        ("SERVICE_SOURCES_PLANT_URL", "mqtt://localhost"),
    ];
    let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let loaded = load(&Sources { environment, ..Sources::default() }).unwrap();
    let subscription = &loaded.settings.sources["plant"].subscriptions[0];
    assert_eq!(subscription.topic, "plant/+");
    assert_eq!(subscription.fields.get("site_code").map(String::as_str), Some("{2}"));
}
