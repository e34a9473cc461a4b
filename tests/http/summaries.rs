//! Summaries over HTTP: groups, measures, time zones, and what is refused.
use penstock_test_support::prelude::*;

const SUMMARY: &str = "/api/v1/business-objects/Reading/summary";

const CONFIG: &str = "
type: object
path: Reading:.
key: tag
fields:
  tag: {type: string, path: <urn:p:tag>, required: true}
  flow: {type: number, path: <urn:p:flow>}
  at: {type: dateTime, path: <urn:p:at>}
  line: {type: string, path: <urn:p:line>}
";

async fn start() -> TestApp {
    let server = TestApp::plain().await;
    let definition = json!({"name": "Reading", "config": CONFIG, "timezone": "Europe/Berlin"});
    server.define_object(&definition).await;
    let text = r#"{"data": [
        {"tag": "a", "flow": 0.1, "at": "2024-10-27T00:30:00Z", "line": "L,1"},
        {"tag": "b", "flow": 0.20, "at": "2024-10-27T01:30:00Z", "line": "L,1"},
        {"tag": "c", "flow": 100000000000000000000000000000.3, "at": "2024-10-27T01:45:00Z"},
        {"tag": "d", "line": "L2"}]}"#;
    let path = "/api/v1/business-objects/Reading?mode=ADD";
    server.send("POST", path, &[JSON], text).await.expect(200);
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_have_their_group_their_count_and_the_measures_by_name() {
    let server = start().await;
    let summary =
        server.read(&format!("{SUMMARY}?group=line&measure=count,min(flow),sum(flow)")).await;
    assert_eq!(
        summary.to_string(),
        r#"{"rows":[{"group":"L,1","count":2,"min(flow)":0.1,"sum(flow)":0.3},"#.to_owned()
            + r#"{"group":"L2","count":1,"min(flow)":null,"sum(flow)":null},"#
            + r#"{"group":null,"count":1,"min(flow)":100000000000000000000000000000.3,"sum(flow)":100000000000000000000000000000.3}],"complete":true}"#
    );
    // Without a group there is one row, and without a measure the count.
    assert_eq!(server.read(SUMMARY).await, json!({"rows": [{"count": 4}], "complete": true}));
    let both = server.read(&format!("{SUMMARY}?group=line&group=at.year")).await;
    assert_eq!(both["rows"][0], json!({"group": ["L,1", "2024"], "count": 2}));
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_select_what_counts() {
    let server = start().await;
    for (filter, count) in [
        ("filter.line=L2", 1),
        ("filter.flow.atMost=0.2", 2),
        ("filter.flow.exists=false", 1),
        ("filter.at.before=2024-10-27T01:40:00Z&filter.line.startsWith=L", 2),
    ] {
        let summary = server.read(&format!("{SUMMARY}?{filter}")).await;
        assert_eq!(summary["rows"], json!([{"count": count}]), "{filter}");
    }
    server.get(&format!("{SUMMARY}?filter.flow.after=x")).await.refused(422, "filter.flow.after");
}

#[tokio::test(flavor = "multi_thread")]
async fn periods_are_in_the_time_zone_of_the_business_object_or_the_request() {
    let server = start().await;
    let hours = async |zone: &str| {
        let summary = server.read(&format!("{SUMMARY}?group=at.hour{zone}")).await;
        summary["rows"].list().iter().map(|row| row["group"].clone()).collect::<Vec<_>>()
    };
    let berlin = [json!("2024-10-27T02:00+02:00"), json!("2024-10-27T02:00+01:00"), json!(null)];
    assert_eq!(hours("").await, berlin);
    let utc = [json!("2024-10-27T00:00+00:00"), json!("2024-10-27T01:00+00:00"), json!(null)];
    assert_eq!(hours("&timezone=UTC").await, utc);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_refused() {
    let server = start().await;
    for (query, words) in [
        ("?group=lien", "did you mean `line`?"),
        ("?group=line.day", "has no dates or times"),
        ("?measure=sum(line)", "needs numbers"),
        ("?measure=median(flow)", "there is no measure"),
        ("?timezone=Europe/Berln", "did you mean `Europe/Berlin`?"),
        ("?group=line&group=at&group=tag", "at most 2"),
    ] {
        server.get(&format!("{SUMMARY}{query}")).await.refused(422, words);
    }
    server.get(&format!("{SUMMARY}?groups=line")).await.problem(400);
    server.get("/api/v1/business-objects/None/summary").await.problem(404);
    server.define().await;
    let other = server.with_key(Role::User, Some("Pump"));
    other.get(SUMMARY).await.problem(403);
    other.get("/api/v1/business-objects/Pump/summary").await.expect(200);
}
