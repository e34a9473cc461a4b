//! The examples in docs/graphql.md equal the gateway's answers.
use penstock_test_support::prelude::*;

const PAGE: &str = include_str!("../../docs/graphql.md");

#[tokio::test]
async fn the_examples_equal_the_answers() {
    let server = TestApp::plain().await;
    let mut asked: Option<&str> = None;
    let mut answered = 0;
    for (language, text) in code_blocks(PAGE) {
        match (language.split_once(' '), language) {
            (Some(("yaml", name)), _) => {
                let definition = json!({"name": name, "config": text}).to_string();
                server
                    .send("PUT", "/api/v1/business-objects", &[JSON], definition)
                    .await
                    .expect(201);
            }
            (Some(("json", name)), _) => {
                let name = name.strip_prefix("data ").unwrap();
                let body = format!("{{\"data\": {text}}}");
                let path = format!("/api/v1/business-objects/{name}?mode=ADD");
                server.send("POST", &path, &[JSON], body).await.expect(200);
            }
            (None, "graphql") => assert_eq!(asked.replace(text), None, "{text} has no answer"),
            (None, "json") => {
                let body = json!({"query": asked.take().unwrap()}).to_string();
                let answer = server.send("POST", "/graphql", &[JSON], body).await.expect(200);
                // Values keep their digits, so that 12.50 does not equal 12.5 here.
                let expected: Value = serde_json::from_str(text).unwrap();
                assert_eq!(answer.json(), expected, "{text}");
                answered += 1;
            }
            _ => {}
        }
    }
    assert!(answered > 5 && asked.is_none());
    server.stop().await;
}
