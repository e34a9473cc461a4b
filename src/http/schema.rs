//! `/api/v1/business-objects/{id}/schema`: the JSON Schema of one object.
use super::business_objects::named;
use super::query::Query;
use super::reply::{Outcome, Reply};
use super::shapes;
use super::state::gateway;
use penstock_model::mapping::json_schema;
use salvo::oapi::endpoint;
use salvo::{Depot, Request};

/// Returns the JSON Schema (2020-12) of one object of the Business Object.
#[endpoint(
    operation_id = "getSchema",
    tags("Business Objects"),
    parameters(("id" = String, Path, description = "The Business Object's id or name.")),
    responses((status_code = 200, description = "The schema.", body = shapes::JsonSchema,
        content_type = "application/schema+json")),
)]
pub(super) async fn get(req: &mut Request, depot: &mut Depot) -> Outcome {
    Query::read(req, &[])?;
    let business_object = named(req, &gateway(depot)?)?;
    let name = &business_object.object.definition.name;
    let schema = json_schema(name, &business_object.mapping);
    Ok(Reply::bytes("application/schema+json", schema.to_string()))
}
