//! `/api/v1/targets`: the export targets, their state, and a test of whether they would accept files.
use penstock_http::access::MinimumRole::{Admin, User};
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get, post};
use penstock_http::parameters::PageQuery;
use penstock_http::query::TextCursor;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_resources::Page;
use penstock_resources::export::{Target, TargetTest};
use penstock_service::targets;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/targets", User, list_targets)
            .describe(
                "listTargets",
                "Exports",
                "Lists every target that the configuration, a Business Object or the queue names, ordered by name.",
            )
            .answer::<Page<Target>>(200, "A page.")
            .problems(&[400]),
        post("/api/v1/targets/{bucketName}/test", Admin, test_target)
            .describe(
                "testTarget",
                "Exports",
                "Tests whether a target would accept files, with its configured credentials. The test writes \
                 nothing.\n\nA failed test has its reason in `cause`; the status is 200 then, too.",
            )
            .parameter("bucketName", "The target's bucketName.")
            .answer::<TargetTest>(200, "The result of the test.")
            .problems(&[400, 404]),
    ]
}

async fn list_targets(call: Call<'_>, query: PageQuery<TextCursor>) -> ReplyResult {
    let all = targets::list_targets(&call.gateway()?).await?;
    Reply::json(&query.page_of_all(all, |target| target.name.as_str()))
}

async fn test_target(call: Call<'_>) -> ReplyResult {
    let (gateway, name) = (call.gateway()?, call.path("bucketName"));
    Reply::json(&targets::test_target(&gateway, call.caller(), name).await?)
}
