//! The page of one object: its fields, the objects around it, its RDF, the ingestions that wrote it, and what refers to it,
//! each on a tab of its own.
use super::changes::ChangeRow;
use super::check::format_json;
use super::frame::{Frame, PageReply, PageResult};
use super::labels::Labelled as _;
use super::menu::Section;
use super::pager::Pager;
use super::words::{self, shorten_text};
use askama::Template;
use fields::{FieldList, ListBuilder, TreeItem};
use graph::Drawing;
use header::{Header, ObjectAddress, Tab};
use history::Written;
use link::object_link;
use penstock_auth::Authorized;
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::state::gateway;
use penstock_model::tree::FieldWindow;
use penstock_service::changes::list_touching_changes;
use penstock_service::gateway::Gateway;
use penstock_service::objects::{
    IriNames, ObjectPart, PartContent, ReferringObject, ReferringObjects, describe_object,
};
use salvo::{Depot, Request, handler};

mod change;
pub(crate) mod delete;
pub(crate) mod edit;
mod fields;
mod graph;
mod header;
mod history;
mod inputs;
pub(super) mod link;

#[derive(Template)]
#[template(path = "admin/object.html")]
struct Page {
    frame: Frame,
    header: Header,
    /// The open changes that touch it and that the viewer may see; `None` if this tab does not show them.
    pending: Option<Pending>,
    content: Content,
}

/// The open changes that touch an object.
struct Pending {
    changes: Vec<ChangeRow>,
    /// Whether all open changes were searched.
    is_searched: bool,
}

/// What a tab shows.
enum Content {
    Fields(FieldList),
    /// No Business Object shows it.
    NoFields,
    Graph(Drawing),
    Rdf(Rdf),
    History(Written),
    References(References),
}

/// An object as RDF and as JSON.
struct Rdf {
    turtle: String,
    /// How many quads the Turtle leaves out.
    omitted_quads: usize,
    /// The JSON; `None` if no Business Object shows it, or if it is too large.
    json: Option<String>,
    warnings: Vec<String>,
    /// Why the JSON cannot be shown.
    unshown: Option<String>,
}

/// A page of what refers to an object.
struct References {
    found: Vec<Reference>,
    pager: Pager,
    /// Why the search for referring objects failed.
    unsearched: Option<String>,
}

/// An object that refers to another one.
struct Reference {
    uri: String,
    label: Option<String>,
    link: String,
    business_object: String,
    path: String,
}

/// Shows one object.
#[handler]
pub(crate) async fn show_object(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["uri", "tab", "view", "field", "from", "cursor", "expand"])?;
    let (gateway, by) = (gateway(depot)?, caller(depot));
    let (tab, view) = (Tab::read(query.get("tab"))?, query.get("view").map(str::to_owned));
    let after = query.get("cursor").map(str::to_owned);
    let is_first = after.is_none();
    let window = query.get("field").map(|field| FieldWindow {
        field: field.to_owned(),
        from: query.get("from").and_then(|from| from.parse().ok()).unwrap_or_default(),
    });
    let expanded = query.get("expand").map(str::to_owned);
    let part = match tab {
        Tab::Fields => ObjectPart::Fields(window.clone()),
        Tab::Graph => ObjectPart::Graph(expanded.clone()),
        Tab::Rdf => ObjectPart::Rdf,
        Tab::History => ObjectPart::History,
        Tab::References => ObjectPart::References(after),
    };
    let uri = query.get("uri").unwrap_or_default();
    let details = describe_object(&gateway, caller(depot), uri, view.clone(), part).await?;
    let frame = Frame::new(req, depot, Section::BusinessObjects);
    let address = ObjectAddress::new(&frame, details.header.uri.as_str(), view);
    let names = IriNames::new(&gateway);
    let pending = match tab {
        Tab::Fields | Tab::History => Some(find_pending(&gateway, by, &address).await?),
        Tab::Graph | Tab::Rdf | Tab::References => None,
    };
    let content = match details.content {
        PartContent::Fields(Some(tree), labels) => {
            let builder = ListBuilder::new(&labels, &names, &address, &frame);
            Content::Fields(builder.list_fields(&tree, window.as_ref()))
        }
        PartContent::Fields(None, _) => Content::NoFields,
        PartContent::Graph(graph) => {
            let label = details.header.label.as_deref().unwrap_or(address.uri());
            Content::Graph(Drawing::new(label, &graph, expanded.as_deref(), &address, &frame))
        }
        PartContent::Rdf { turtle, omitted_quads, json, warnings } => {
            let (json, unshown) = match json.transpose() {
                Ok(json) => (json, None),
                Err(error) => (None, Some(error.detail)),
            };
            let nesting = gateway.settings.limits.nesting;
            let warnings = warnings.iter().map(ToString::to_string).collect();
            let json = json.map(|json| format_json(&json, nesting));
            Content::Rdf(Rdf { turtle, omitted_quads, json, warnings, unshown })
        }
        PartContent::History(history) => {
            Content::History(Written::from_history(&gateway, by, *history, &frame))
        }
        PartContent::References(found) => {
            let found = match found {
                Ok(found) => Ok(found),
                Err(error) => Err(error.detail),
            };
            Content::References(References::new(found, is_first, &address, &frame))
        }
    };
    let header = Header::new(&gateway, &frame, details.header, &address, tab);
    Ok(PageReply::show(&Page { frame, header, pending, content }))
}

async fn find_pending(
    gateway: &Gateway,
    by: &Authorized,
    address: &ObjectAddress,
) -> Result<Pending, Problem> {
    let touching = list_touching_changes(gateway, by, address.uri().to_owned()).await?;
    let changes = touching.changes.into_iter();
    Ok(Pending {
        changes: changes.map(|one| ChangeRow::new(one, gateway, by)).collect(),
        is_searched: touching.is_complete,
    })
}

impl References {
    fn new(
        found: Result<ReferringObjects, String>,
        is_first: bool,
        address: &ObjectAddress,
        frame: &Frame,
    ) -> Self {
        let (page, unsearched) = match found {
            Ok(page) => (page, None),
            Err(why) => (ReferringObjects { found: Vec::new(), next: None }, Some(why)),
        };
        let parameters = address.parameters(Tab::References);
        let pager = Pager::new(frame, "/admin/object", &parameters, is_first, page.next.as_deref());
        let found = page.found.into_iter().map(|ReferringObject { referrer, label }| Reference {
            label: label.as_deref().map(shorten_text),
            link: object_link(frame, referrer.uri.as_str()),
            uri: referrer.uri.into_string(),
            business_object: referrer.business_object.object.definition.name.clone(),
            path: referrer.path,
        });
        Self { found: found.collect(), pager, unsearched }
    }
}
