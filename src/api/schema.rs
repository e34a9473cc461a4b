//! `/api/v1/business-objects/{id}/schema`: the JSON Schema of one object.
use penstock_http::access::MinimumRole::User;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_model::mapping::build_json_schema;
use penstock_resources::business_object::ObjectSchema;
use penstock_service::business_objects::find_business_object;

/// Returns the operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        get("/api/v1/business-objects/{id}/schema", User, get_schema)
            .describe(
                "getSchema",
                "Business Objects",
                "Returns the JSON Schema (2020-12) of one object of the Business Object.",
            )
            .parameter("id", "The Business Object's id or name.")
            .empty_answer(200, "The schema.")
            .answer_as::<ObjectSchema>("application/schema+json")
            .problems(&[400, 404]),
    ]
}

async fn get_schema(call: Call<'_>) -> ReplyResult {
    let business_object = find_business_object(&call.gateway()?, call.path("id"))?;
    let name = &business_object.object.definition.name;
    let schema = build_json_schema(name, &business_object.mapping);
    Ok(Reply::bytes("application/schema+json", schema.to_string()))
}
