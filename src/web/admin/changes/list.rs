//! `/admin/changes`: the list of changes, by what the viewer is to them.
use super::ChangeRow;
use crate::admin::filter_bar::Select;
use crate::admin::frame::{Frame, PageReply, PageResult};
use crate::admin::labels::Labelled as _;
use crate::admin::menu::Section;
use crate::admin::pager::Pager;
use crate::admin::words;
use askama::Template;
use penstock_auth::Role;
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::query::{Query, UuidCursor, cursor_after};
use penstock_http::state::gateway;
use penstock_resources::change::ChangeState;
use penstock_service::changes::{self, ChangeFilter, RelationFilter};
use salvo::{Depot, Request, handler};

/// Rows of one page.
const ROWS_PER_PAGE: usize = 50;
/// The tabs of the list: the value of `role`, the state that its link selects, and the words.
const TABS: [(&str, &str, &str); 4] = [
    ("", "", "All"),
    ("approver", "submitted", "To approve"),
    ("author", "", "Mine"),
    ("owner", "", "Shared with me"),
];

#[derive(Template)]
#[template(path = "admin/changes.html")]
struct List {
    frame: Frame,
    tabs: Vec<Tab>,
    role: String,
    filters: [Select; 2],
    is_narrowed: bool,
    rows: Vec<ChangeRow>,
    pager: Pager,
}

struct Tab {
    address: String,
    words: &'static str,
    is_current: bool,
}

/// Lists the changes that the viewer may see.
#[handler]
pub(crate) async fn list_changes(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["role", "state", "businessObject", "cursor"])?.without_empty();
    let after = query.read_cursor::<UuidCursor>()?;
    let parameters = ["role", "state", "businessObject"].map(|name| (name, query.get(name)));
    let [role, state, business_object] = parameters.map(|(_, value)| value);
    let relation = match role {
        None => None,
        Some("author") => Some(RelationFilter::Author),
        Some("owner") => Some(RelationFilter::Owner),
        // As the menu counts them.
        Some("approver") => Some(RelationFilter::Decider),
        Some(other) => return Err(Problem::malformed(format!("there is no role {other:?}"))),
    };
    let filter = ChangeFilter {
        state: state.map(ChangeState::parse).transpose().map_err(Problem::malformed)?,
        only_open: false,
        business_object: business_object.map(str::to_owned),
        relation,
    };
    let (gateway, by, is_first) = (gateway(depot)?, caller(depot), after.is_none());
    let listed = changes::list_changes(&gateway, by, filter, after, ROWS_PER_PAGE).await?;
    let last = listed.changes.last().filter(|_| listed.has_more);
    let next = last.map(|last| cursor_after(&last.change.id));
    let frame = Frame::new(req, depot, Section::Changes);
    let states = ChangeState::ALL.map(|one| (one.name(), one.label().words));
    let states = std::iter::once(("", "Any")).chain(states);
    Ok(PageReply::show(&List {
        tabs: TABS.iter().map(|tab| Tab::new(&frame, tab, role.unwrap_or_default())).collect(),
        role: role.unwrap_or_default().to_owned(),
        filters: [
            Select::new("state", "State", states, state),
            Select::of_business_objects(&gateway, business_object),
        ],
        is_narrowed: parameters.iter().any(|(_, value)| value.is_some()),
        rows: listed
            .changes
            .into_iter()
            .map(|visible| ChangeRow::new(visible, &gateway, by))
            .collect(),
        pager: Pager::new(&frame, "/admin/changes", &parameters, is_first, next.as_deref()),
        frame,
    }))
}

impl Tab {
    fn new(frame: &Frame, (role, state, words): &(&str, &str, &'static str), chosen: &str) -> Self {
        let query = match (*role, *state) {
            ("", _) => String::new(),
            (role, "") => format!("?role={role}"),
            (role, state) => format!("?role={role}&state={state}"),
        };
        let address = format!("{}/admin/changes{query}", frame.prefix);
        Self { address, words, is_current: *role == chosen }
    }
}
