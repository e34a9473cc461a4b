//! `/api/v1/sources`: the sources, their connections, and a test of a connection.
use penstock_http::access::MinimumRole::{Admin, User};
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get, post};
use penstock_http::parameters::PageQuery;
use penstock_http::query::TextCursor;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_resources::Page;
use penstock_resources::source::{Source, SourceTest};
use penstock_service::sources;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/sources", User, list_sources)
            .describe(
                "listSources",
                "Sources",
                "Lists every source of the configuration, ordered by name.",
            )
            .answer::<Page<Source>>(200, "A page.")
            .problems(&[400]),
        get("/api/v1/sources/{name}", User, get_source)
            .describe("getSource", "Sources", "Returns a source.")
            .parameter("name", "The name of the source.")
            .answer::<Source>(200, "The source.")
            .problems(&[400, 404]),
        post("/api/v1/sources/{name}/test", Admin, test_source)
            .describe(
                "testSource",
                "Sources",
                "Tests whether the gateway can connect to the broker of a source, with the configured credentials. The \
                 test uses a session of its own, subscribes to nothing and receives no message.\n\nA failed test has \
                 its reason in `cause`; the status is 200 then, too.",
            )
            .parameter("name", "The name of the source.")
            .answer::<SourceTest>(200, "The result of the test.")
            .problems(&[400, 404]),
    ]
}

async fn list_sources(call: Call<'_>, query: PageQuery<TextCursor>) -> ReplyResult {
    let all = sources::list_sources(&call.gateway()?, call.caller())?;
    Reply::json(&query.page_of_all(all, |source| source.name.as_str()))
}

async fn get_source(call: Call<'_>) -> ReplyResult {
    Reply::json(&sources::read_source(&call.gateway()?, call.caller(), call.path("name"))?)
}

async fn test_source(call: Call<'_>) -> ReplyResult {
    let (gateway, name) = (call.gateway()?, call.path("name"));
    Reply::json(&sources::test_source(&gateway, call.caller(), name).await?)
}
