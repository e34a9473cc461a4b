//! `/api/v1/business-objects/{id}/schema`: the JSON Schema of one object.
use crate::shapes;
use penstock_http::path::path_parameter;
use penstock_http::query::Query;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::gateway;
use penstock_model::mapping::build_json_schema;
use penstock_service::business_objects::find_business_object;
use salvo::{Depot, Request};
use salvo_oapi::endpoint;

/// Returns the JSON Schema (2020-12) of one object of the Business Object.
#[endpoint(
    operation_id = "getSchema",
    tags("Business Objects"),
    parameters(("id" = String, Path, description = "The Business Object's id or name.")),
    responses((status_code = 200, description = "The schema.", body = shapes::JsonSchema,
        content_type = "application/schema+json")),
)]
pub(super) async fn get_schema(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    Query::read(req, &[])?;
    let business_object = find_business_object(&gateway(depot)?, path_parameter(req, "id"))?;
    let name = &business_object.object.definition.name;
    let schema = build_json_schema(name, &business_object.mapping);
    Ok(Reply::bytes("application/schema+json", schema.to_string()))
}
