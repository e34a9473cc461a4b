//! `/admin/objects/{id}/requests`: the requests for the objects that the page shows, to be copied.
use super::address::{read_pairs, write_query};
use super::columns::list_default_columns;
use super::part_request::{PartRequest, explain};
use super::{ROWS_PER_PAGE, build_api_path};
use crate::admin::frame::{Frame, PageReply, PageResult};
use crate::admin::menu::Section;
use askama::Template;
use penstock_graphql::WrittenSearch;
use penstock_http::origin::origin;
use penstock_http::path::encode_segment;
use penstock_http::problem::Problem;
use penstock_http::state::state;
use penstock_service::blocking::run_in_place;
use penstock_service::objects::write_sparql;
use salvo::http::StatusCode;
use salvo::{Depot, Request, handler};

#[derive(Template)]
#[template(path = "admin/objects/requests.html")]
struct Page {
    frame: Frame,
    name: String,
    /// The address of the page with the objects.
    back: String,
    requests: Vec<WrittenRequest>,
    /// Why there are none.
    fault: Option<String>,
}

/// A request in one language.
struct WrittenRequest {
    id: &'static str,
    caption: &'static str,
    text: String,
    /// The address of the page that runs it.
    run: Option<String>,
}

/// Shows the requests.
#[handler]
pub(crate) async fn show_requests(req: &mut Request, depot: &mut Depot) -> PageResult {
    let request = PartRequest::new(req, depot, &read_pairs(req)?)?;
    let frame = Frame::new(req, depot, Section::BusinessObjects);
    let base = origin(depot).base_url(state(depot).settings()).unwrap_or_default();
    let order = request.explore().and_then(|_| request.state.build_order(request.shape()));
    let (requests, fault) = match explain(order)? {
        Err(fault) => (Vec::new(), Some(fault)),
        Ok(_) => (write_requests(&request, depot, &base).await?, None),
    };
    let status = if fault.is_none() { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY };
    let page = Page {
        name: request.compiled.object.definition.name.clone(),
        back: request.address_of(&request.state),
        frame,
        requests,
        fault,
    };
    Ok(PageReply::show_with_status(status, &page))
}

async fn write_requests(
    request: &PartRequest,
    depot: &Depot,
    base: &str,
) -> Result<Vec<WrittenRequest>, Problem> {
    let shape = request.shape();
    let path = format!("{base}{}", build_api_path(&request.compiled));
    let pairs = request.state.list_search_pairs(shape);
    let mut requests = vec![WrittenRequest {
        id: "curl",
        caption: "curl",
        text: format!(
            "curl -H \"Authorization: Bearer $KEY\" \\\n  '{path}{}'\n",
            write_query(&pairs)
        ),
        run: None,
    }];
    let mut all = pairs;
    all.insert(0, ("format".to_owned(), "ndjson".to_owned()));
    let address = format!("{path}{}", write_query(&all));
    requests.push(WrittenRequest {
        id: "python",
        caption: "Python",
        text: format!(
            "import json, os, urllib.request\n\nrequest = urllib.request.Request(\n    \"{address}\",\n    \
             headers={{\"Authorization\": f\"Bearer {{os.environ['KEY']}}\"}},\n)\n\
             with urllib.request.urlopen(request) as objects:\n    for line in objects:\n        print(json.loads(line))\n"
        ),
        run: None,
    });
    let mapping = &request.compiled.mapping;
    let label = mapping.find_label_field().map(|(_, field)| field.name.clone());
    let columns = request.state.columns.clone();
    let columns = columns.unwrap_or_else(|| list_default_columns(mapping));
    let columns: Vec<String> = label.into_iter().chain(columns).collect();
    let order = request.state.build_order(shape)?;
    let explored = request.explore()?;
    let search = WrittenSearch {
        business_object: &request.compiled.object.id,
        filter: explored.filter.as_ref(),
        order,
        columns: &columns,
        limit: ROWS_PER_PAGE,
    };
    let graphql = state(depot).graphql()?.clone();
    let page_of = |page: &str, query: &str| {
        let query = encode_segment(query);
        Some(format!("{}/admin/{page}?query={query}", request.prefix))
    };
    if let Some(text) = run_in_place(|| graphql.write_search(&request.by, search)) {
        let run = page_of("query", &text);
        requests.push(WrittenRequest { id: "graphql", caption: "GraphQL", text, run });
    }
    let found =
        write_sparql(&request.gateway, request.explore()?, order, columns, ROWS_PER_PAGE).await;
    if let Ok(text) = explain(found)? {
        let run = page_of("sparql", &text);
        requests.push(WrittenRequest { id: "sparql", caption: "SPARQL", text, run });
    }
    Ok(requests)
}
