//! What the operations of all kinds of definitions share. And `/control/definitions`, only over the control socket: applies the
//! files of `penstock apply`.
use penstock_auth::Authorized;
use penstock_base::definition::missing_error;
use penstock_base::{Put, Role};
use penstock_http::access::MinimumRole::Local;
use penstock_http::call::Call;
use penstock_http::etag::{ChangeConditions, PutConditions, format_etag};
use penstock_http::operation::{Operation, post};
use penstock_http::parameters::PageQuery;
use penstock_http::path::encode_segment;
use penstock_http::problem::Problem;
use penstock_http::query::TextCursor;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_resources::definitions::ApplyDefinitions;
use penstock_service::definitions::{self, ApplyOptions, Kind, apply_files};
use penstock_service::gateway::Gateway;
use salvo::http::StatusCode;
use salvo::http::header::{ETAG, LOCATION};
use serde::Serialize;

/// A kind of definitions as the API serves it.
pub(super) trait Served: Kind<Shown: Serialize> {
    /// The path of the list.
    const PATH: &'static str;
    /// The parameter of the path that names one.
    const PARAMETER: &'static str = "name";

    /// Returns the value of the parameter in the path of a definition.
    fn segment(shown: &Self::Shown) -> &str {
        Self::name(shown)
    }
}

/// Lists definitions, ordered by name.
pub(super) async fn list_definitions<K: Served>(
    call: Call<'_>,
    query: PageQuery<TextCursor>,
) -> ReplyResult {
    let (gateway, after) = (call.gateway()?, query.after.clone());
    let listed = definitions::list::<K>(&gateway, call.caller(), after, query.limit + 1).await?;
    Reply::json(&query.page(listed, |one| K::name(one).to_owned()))
}

/// Returns the definition in the path.
pub(super) async fn get_definition<K: Served>(call: Call<'_>) -> ReplyResult {
    let (gateway, name) = (call.gateway()?, call.path(K::PARAMETER));
    show_definition::<K>(&definitions::find::<K>(&gateway, call.caller(), name).await?)
}

/// Creates or replaces the definition with this name.
pub(super) async fn put_definition<K: Served>(
    call: &Call<'_>,
    name: &str,
    new: K::New,
    conditions: &PutConditions,
) -> ReplyResult {
    let gateway = call.gateway()?;
    let preconditions = match K::STORED_VERSION {
        Some(find) => conditions.check(find(&gateway, name))?,
        None => conditions.check_existence()?,
    };
    let put = definitions::save::<K>(&gateway, call.caller(), new, preconditions).await?;
    let reply = show_definition::<K>(put.value())?;
    let Put::Created(created) = &put else { return Ok(reply) };
    let path = format!("{}/{}", K::PATH, encode_segment(K::segment(created)));
    Ok(reply.with_status(StatusCode::CREATED).with_header(LOCATION, &call.locate(&path)))
}

/// Deletes the definition in the path.
pub(super) async fn delete_definition<K: Served>(
    call: Call<'_>,
    conditions: ChangeConditions,
) -> ReplyResult {
    let (gateway, name) = (call.gateway()?, call.path(K::PARAMETER));
    let preconditions = match K::STORED_VERSION.map(|find| find(&gateway, name)) {
        None => conditions.check_existence()?,
        // One that does not exist is 404, whatever the conditions.
        Some(None) => return Err(missing_error(K::KIND, name).into()),
        Some(stored) => conditions.check(stored)?,
    };
    definitions::delete::<K>(&gateway, call.caller(), name, preconditions).await?;
    Ok(Reply::no_content())
}

/// Responds with a definition and its entity tag.
pub(super) fn show_definition<K: Served>(shown: &K::Shown) -> ReplyResult {
    let reply = Reply::json(shown)?;
    Ok(match K::version(shown) {
        Some(version) => reply.with_header(ETAG, &format_etag(version)),
        None => reply,
    })
}

/// Returns the operations of the control socket.
pub(super) fn operations() -> Vec<Operation> {
    vec![post("/control/definitions", Local, apply_definitions)]
}

/// Applies the files in the body, or says what applying them would do.
async fn apply_definitions(mut call: Call<'_>) -> ReplyResult {
    let limit = call.state().settings().limits.body_bytes;
    let body = call.read_json().await.map_err(|problem| {
        if problem.status() != StatusCode::PAYLOAD_TOO_LARGE {
            return problem;
        }
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "the files are larger than service.limits.body allows ({limit} bytes as JSON); divide the folder, raise the \
                 setting, or stop the service: without it the command has no such limit"
            ),
        )
    })?;
    let asked: ApplyDefinitions = serde_json::from_slice(body.bytes())
        .map_err(|error| Problem::malformed(format!("the body cannot be read: {error}")))?;
    let options = ApplyOptions::of_request(&asked);
    let apply =
        move |gateway: &Gateway, by: &Authorized| apply_files(gateway, by, &asked.files, &options);
    Reply::json(&call.gateway()?.run(call.caller(), Role::Admin, apply).await?)
}
