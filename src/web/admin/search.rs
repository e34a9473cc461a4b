//! `/admin/search`: one search field for pages, Business Objects, saved views, objects, exports and settings.
use super::frame::{Frame, PageReply, PageResult};
use super::menu::{Section, list_groups};
use super::object::link::object_path;
use super::objects::address::view_path;
use super::words::{self, shorten_text};
use askama::Template;
use penstock_auth::{Authorized, Role};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_config::Settings;
use penstock_http::caller::caller;
use penstock_http::path::encode_segment;
use penstock_http::query::Query;
use penstock_http::state::{gateway, state};
use penstock_model::search::{SearchField, TextFilter, join_parameter, list_search_fields};
use penstock_service::exports::find_exports_by_text;
use penstock_service::gateway::Gateway;
use penstock_service::objects::{NamedObject, look_up_objects};
use penstock_service::views::list_views_by_business_object;
use salvo::{Depot, Request, handler};

/// The maximum length of the text in characters.
const MAX_TEXT_CHARS: usize = 200;
/// The maximum number of results of each kind.
const MAX_RESULTS: usize = 10;
/// The maximum number of objects of each Business Object.
const MAX_OBJECTS_EACH: usize = 5;
/// The maximum number of Business Objects whose other fields are offered if nothing was found.
const MAX_OFFERED: usize = 10;
/// The maximum number of fields that are offered of each of them.
const MAX_FIELDS_EACH: usize = 10;
/// The test of an offered field.
const CONTAINS: &str = "containsAnyCase";

#[derive(Template)]
#[template(path = "admin/search.html")]
struct Page {
    frame: Frame,
    /// How many results there are, in words; empty without a text.
    total: String,
    groups: Vec<ResultGroup>,
    /// What was not searched to its end, and why.
    notes: Vec<String>,
    /// The fields that were not searched, if nothing was found.
    offers: Vec<Offer>,
}

/// The fields of a Business Object in which Explore finds the text.
struct Offer {
    name: String,
    /// The name of each, and the path of Explore with its filter, without the prefix.
    fields: Vec<(String, String)>,
}

/// The results of a kind.
struct ResultGroup {
    id: &'static str,
    caption: &'static str,
    results: Vec<SearchResult>,
}

/// A page that was found.
struct SearchResult {
    /// Its path, without the prefix.
    path: String,
    words: String,
    /// What distinguishes it from others of the same name.
    detail: String,
}

/// The parts of the page.
#[derive(Default)]
struct Findings {
    groups: Vec<ResultGroup>,
    notes: Vec<String>,
}

impl Findings {
    fn add(&mut self, id: &'static str, caption: &'static str, mut results: Vec<SearchResult>) {
        if results.len() > MAX_RESULTS {
            results.truncate(MAX_RESULTS);
            self.notes.push(format!("{caption}: only the first {MAX_RESULTS} are shown."));
        }
        if !results.is_empty() {
            self.groups.push(ResultGroup { id, caption, results });
        }
    }
}

/// A text that names are compared with, ignoring case.
struct Part(String);

impl Part {
    fn is_in(&self, text: &str) -> bool {
        text.to_lowercase().contains(&self.0)
    }
}

/// Shows what was found.
#[handler]
pub(crate) async fn show_search(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["q"])?;
    let text = query.get("q").unwrap_or_default().trim();
    let frame = Frame::new(req, depot, Section::None);
    let mut findings = Findings::default();
    let mut total = String::new();
    let mut offers = Vec::new();
    if text.chars().count() > MAX_TEXT_CHARS {
        findings.notes.push(format!("The text has more than {MAX_TEXT_CHARS} characters."));
    } else if !text.is_empty() {
        let (gateway, state) = (gateway(depot)?, state(depot));
        findings = search(&gateway, state.settings(), caller(depot), text).await?;
        let count = findings.groups.iter().map(|group| group.results.len() as u64).sum();
        total = words::format_count(count, "result", "results");
        if findings.groups.is_empty() {
            offers = list_offers(&gateway, text);
        }
    }
    let Findings { groups, notes } = findings;
    let frame = Frame { searched: text.to_owned(), ..frame };
    Ok(PageReply::show(&Page { frame, total, groups, notes, offers }))
}

async fn search(
    gateway: &Gateway,
    settings: &Settings,
    by: &Authorized,
    text: &str,
) -> Result<Findings, GatewayError> {
    let part = Part(text.to_lowercase());
    let mut found = Findings::default();
    found.add("pages", "Pages", find_pages(by.role, &part));
    found.add("business-objects", "Business Objects", find_business_objects(gateway, &part));
    found.add("views", "Saved views", find_views(gateway, by, &part));
    match look_up_objects(gateway, by, text, MAX_OBJECTS_EACH).await {
        Ok(objects) => {
            found.add("objects", "Objects", objects.objects.into_iter().map(show_object).collect());
            if !objects.incomplete.is_empty() {
                let names = objects.incomplete.into_iter().collect::<Vec<_>>().join(", ");
                let note = format!("These Business Objects may have more such objects: {names}.");
                found.notes.push(note);
            }
        }
        Err(error) if matches!(error.class, ErrorClass::Unavailable(_)) => {
            found.notes.push(format!("Objects were not searched: {}.", error.detail));
        }
        Err(error) => return Err(error),
    }
    let exports = find_exports_by_text(gateway, text, MAX_RESULTS + 1).await?.into_iter();
    let exports = exports.map(|export| SearchResult {
        path: format!("/admin/exports/{}", encode_segment(&export.id)),
        words: export.key,
        detail: format!("export {} to {}", export.sequence, export.target),
    });
    found.add("exports", "Exports", exports.collect());
    if by.role >= Role::Admin {
        found.add("settings", "Settings", find_settings(settings, &part));
    }
    Ok(found)
}

fn find_pages(role: Role, part: &Part) -> Vec<SearchResult> {
    let groups = list_groups(role);
    let items = groups.flat_map(|group| group.items).filter(|item| part.is_in(item.words));
    items
        .map(|item| SearchResult {
            path: item.path.to_owned(),
            words: item.words.to_owned(),
            detail: String::new(),
        })
        .collect()
}

fn find_business_objects(gateway: &Gateway, part: &Part) -> Vec<SearchResult> {
    let mut results = Vec::new();
    for compiled in gateway.catalogue.list() {
        let (object, definition) = (&compiled.object, &compiled.object.definition);
        if part.is_in(&definition.name) || part.is_in(&definition.description) {
            results.push(SearchResult {
                path: format!("/admin/business-objects/{}", encode_segment(&object.id)),
                words: definition.name.clone(),
                detail: shorten_text(&definition.description),
            });
        }
    }
    results
}

fn find_views(gateway: &Gateway, by: &Authorized, part: &Part) -> Vec<SearchResult> {
    let mut results = Vec::new();
    for of in list_views_by_business_object(gateway, by) {
        let object = &of.business_object.object;
        for view in of.views.iter().filter(|view| part.is_in(&view.content.name)) {
            results.push(SearchResult {
                path: view_path(&object.id, &view.id),
                words: view.content.name.clone(),
                detail: format!("of {}", object.definition.name),
            });
        }
    }
    results
}

/// Lists the fields with texts that a search does not look at. It does look at the label.
fn list_offers(gateway: &Gateway, text: &str) -> Vec<Offer> {
    let mut offers = Vec::new();
    for compiled in gateway.catalogue.list() {
        let shape = &compiled.mapping.root;
        let label = compiled.mapping.find_label_field().map(|(_, field)| field.name.as_str());
        let is_offered = |field: &SearchField<'_>| {
            let condition = TextFilter { field: &field.name, test: CONTAINS, value: text };
            label != Some(field.name.as_str())
                && !field.property.holds_iris()
                && condition.check(shape).is_ok()
        };
        let page = format!("/admin/objects/{}", encode_segment(&compiled.object.id));
        let fields = list_search_fields(shape).into_iter().filter(is_offered).take(MAX_FIELDS_EACH);
        let fields: Vec<_> = fields
            .map(|field| {
                let parameter = join_parameter(shape, &field.name, CONTAINS);
                let filter = format!("{}={}", encode_segment(&parameter), encode_segment(text));
                (field.name, format!("{page}?{filter}"))
            })
            .collect();
        if !fields.is_empty() {
            offers.push(Offer { name: compiled.object.definition.name.clone(), fields });
        }
        if offers.len() == MAX_OFFERED {
            break;
        }
    }
    offers
}

fn find_settings(settings: &Settings, part: &Part) -> Vec<SearchResult> {
    let values = settings.effective_values.iter();
    let found = values.filter(|value| part.is_in(&value.name) || part.is_in(value.meaning));
    found
        .map(|value| SearchResult {
            path: format!("/admin/settings#{}", encode_segment(&value.name)),
            words: value.name.clone(),
            // The page shows plain text, not Markdown.
            detail: shorten_text(&value.meaning.replace('`', "")),
        })
        .collect()
}

fn show_object(NamedObject { uri, label, business_object }: NamedObject) -> SearchResult {
    let object = business_object.as_ref().map(|compiled| &compiled.object);
    let view = object.map(|object| format!("&view={}", encode_segment(&object.id)));
    let kind = object.map(|object| format!("{}, ", object.definition.name));
    SearchResult {
        path: format!("{}{}", object_path(&uri), view.unwrap_or_default()),
        words: label.as_deref().map_or_else(|| uri.clone(), shorten_text),
        detail: format!("{}{uri}", kind.unwrap_or_default()),
    }
}
