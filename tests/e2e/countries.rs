//! Third-party data: the npm package world-countries, through one gateway into another.
use penstock_test_support::prelude::*;
use serde_json::Map;

const CONFIG: &str = include_str!("../data/countries.yaml");
/// With the same base, both gateways mint the same identifiers and name graphs equally.
const SAME_BASE: &str = "--service.base-url=https://countries.example";

#[test]
fn countries_exported_by_one_gateway_are_the_same_in_another() {
    let countries = countries();
    assert_eq!(countries.len(), 250);
    let [first, second] = [0, 1].map(|_| tempfile::tempdir().unwrap());

    let server = TestProcess::start(first.path(), &["--service.data-dir=data", SAME_BASE]);
    define(server.client, "countries");
    let answer = ingest(server.client, &countries);
    assert_eq!(answer["created"], 250, "{}", answer["warnings"]);
    let exported = exported_data(&server, first.path());
    let stored = view(&server);
    assert_eq!(stored.len(), 250);
    for (uri, country) in &stored {
        let given = countries.iter().find(|c| c["uri"] == **uri).expect("only ingested objects");
        assert_eq!(sorted(country), sorted(given), "{uri}");
    }
    server.stop();

    let server = TestProcess::start(second.path(), &["--service.data-dir=data", SAME_BASE]);
    define(server.client, "countries");
    let mut body = b"{\"data\":".to_vec();
    body.extend_from_slice(&exported);
    body.push(b'}');
    let path = "/api/v1/business-objects/Countries?mode=REPLACE";
    let answer = server.client.post(path, body).expect(200).json();
    answer.includes(&json!({"created": 250, "warnings": []}));
    let again = exported_data(&server, second.path());
    server.stop();

    assert!(again == exported, "the two exports differ in their data");
    let (one, _) = quads(&first.path().join("data"));
    let (other, _) = quads(&second.path().join("data"));
    assert!(one.len() > 20_000, "{} quads are too few for this data", one.len());
    assert_eq!(one.symmetric_difference(&other).take(5).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn countries_given_again_in_another_order_change_nothing() {
    let mut countries = countries();
    let dir = tempfile::tempdir().unwrap();
    let server = TestProcess::start(dir.path(), &["--service.data-dir=data", SAME_BASE]);
    define(server.client, "countries");
    ingest(server.client, &countries);
    countries.reverse();
    let backwards: Vec<Value> = countries.into_iter().map(backwards).collect();
    let again = ingest(server.client, &backwards);
    assert_eq!([&again["created"], &again["updated"], &again["unchanged"]], [0, 0, 250]);
    server.stop();
}

pub(crate) fn define(client: Client, bucket: &str) {
    let definition = json!({
        "name": "Countries", "config": CONFIG, "pushTargets": [{ "bucketName": bucket }],
    });
    client.put("/api/v1/business-objects", &definition).expect(201);
}

pub(crate) fn ingest(client: Client, countries: &[Value]) -> Value {
    let body = json!({ "data": countries }).to_string();
    client.post("/api/v1/business-objects/Countries?mode=ADD", body).expect(200).json()
}

/// Returns the bytes of `data` in the only delivered file.
fn exported_data(server: &TestProcess, dir: &Path) -> Vec<u8> {
    let entry = push_and_wait(server.client, "Countries");
    let key = entry["key"].text();
    let file = std::fs::read(dir.join("data/buckets/countries").join(key)).unwrap();
    let start = file.windows(8).position(|w| w == b"\"data\":[").expect("the file has data") + 7;
    file[start..file.len() - 1].to_vec()
}

/// Returns every object with its URI, as the view shows it.
fn view(server: &TestProcess) -> Vec<(String, Value)> {
    let found = server.client.all("/api/v1/business-objects/Countries/objects?limit=100");
    found.into_iter().map(|item| (item["uri"].string(), item)).collect()
}

/// Returns the countries of the package, with URIs, and with its maps by language or code as arrays of objects.
pub(crate) fn countries() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/node_modules/world-countries/countries.json");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|e| panic!("{}: {e}; `npm ci` in tests/ installs it", path.display()));
    let countries: Vec<Value> = serde_json::from_str(&text).unwrap();
    countries.iter().map(country).collect()
}

fn country(given: &Value) -> Value {
    let code = given["cca3"].text();
    let uri = |part: &str| format!("https://countries.example/id/{code}{part}");
    let entries = |map: &Value, part: &str, shape: &dyn Fn(&str, &Value) -> Value| -> Value {
        // The package sometimes writes an empty map as an empty array.
        let entries = map.as_object().into_iter().flatten().map(|(key, value)| {
            let mut object = Map::new();
            object.insert("uri".to_owned(), json!(uri(&format!("/{part}/{key}"))));
            object.extend(shape(key, value).as_object().unwrap().clone());
            Value::Object(object)
        });
        Value::Array(entries.collect())
    };
    let name = |key: &str, value: &Value| json!({ "language": key, "common": value["common"], "official": value["official"] });
    let borders: Vec<String> = given["borders"]
        .list()
        .iter()
        .map(|b| format!("https://countries.example/id/{}", b.text()))
        .collect();
    let copied = "tld cca2 ccn3 cca3 cioc independent status unMember unRegionalGroup capital altSpellings region \
        subregion landlocked area flag";
    let mut country: Map<_, _> =
        copied.split(' ').map(|name| (name.to_owned(), given[name].clone())).collect();
    let currency = |key: &str, value: &Value| json!({"code": key, "name": value["name"], "symbol": value["symbol"]});
    let demonym = |key: &str, value: &Value| json!({"language": key, "female": value["f"], "male": value["m"]});
    let language = |key: &str, value: &Value| json!({"code": key, "name": value});
    let others = json!({
        "uri": uri(""),
        "name": {
            "uri": uri("/name"),
            "common": given["name"]["common"], "official": given["name"]["official"],
            "native": entries(&given["name"]["native"], "native", &name),
        },
        "currencies": entries(&given["currencies"], "currency", &currency),
        "idd": {"uri": uri("/idd"), "root": given["idd"]["root"], "suffixes": given["idd"]["suffixes"]},
        "languages": entries(&given["languages"], "language", &language),
        "translations": entries(&given["translations"], "translation", &name),
        "latlng": {
            "uri": uri("/position"), "latitude": given["latlng"][0], "longitude": given["latlng"][1],
        },
        "borders": borders,
        "demonyms": entries(&given["demonyms"], "demonym", &demonym),
    });
    country.extend(others.as_object().unwrap().clone());
    Value::Object(country)
}

/// Normalizes a value for comparison: sorts arrays as sets, and removes members without a value.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(sorted).collect();
            items.sort_by_key(Value::to_string);
            items.dedup();
            Value::Array(items)
        }
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> = members
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key.clone(), sorted(value)))
                .filter(|(_, value)| *value != json!([]))
                .collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(members.into_iter().collect())
        }
        other => other.clone(),
    }
}

/// Reverses the members and arrays of an object at every level.
fn backwards(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().rev().map(backwards).collect()),
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().collect();
            members.reverse();
            Value::Object(members.into_iter().map(|(k, v)| (k, backwards(v))).collect())
        }
        other => other,
    }
}
