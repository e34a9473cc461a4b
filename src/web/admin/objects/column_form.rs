//! The form that changes the columns of the table. The browser keeps the columns of each Business Object in a cookie.
use super::address::{ADDRESS, find_value};
use super::columns::{find_columns, list_default_columns};
use super::saved::find_view_of;
use super::state::State;
use crate::admin::form::{Form, take_form};
use crate::admin::frame::{Cookie, PageReply, PageResult};
use penstock_base::time_zone::Zone;
use penstock_http::caller::caller;
use penstock_http::path::path_parameter;
use penstock_http::query::parse_form;
use penstock_http::state::gateway;
use penstock_service::business_objects::find_business_object;
use salvo::{Depot, Request, handler};

/// The cookie with the columns of a Business Object.
pub(super) const COLUMNS_COOKIE: &str = "penstock_columns";
/// How long the browser keeps it, in seconds.
const COOKIE_SECONDS: u32 = 365 * 24 * 3_600;

/// Changes the columns by the form of the page, and leads back to it.
#[handler]
pub(crate) async fn change_columns(req: &mut Request, depot: &mut Depot) -> PageResult {
    let form = take_form(depot);
    let gateway = gateway(depot)?;
    let compiled = find_business_object(&gateway, path_parameter(req, "id"))?;
    let pairs = parse_form(form.text(ADDRESS).as_bytes())?;
    let view = find_view_of(&gateway, caller(depot), &compiled, find_value(&pairs, "view"))?;
    let shape = &compiled.mapping.root;
    let state = State::new(shape, view, &pairs, &Zone::UTC);
    let shown = state.columns.clone().unwrap_or_else(|| list_default_columns(&compiled.mapping));
    let columns = apply_form(&form, shown).map(|columns| find_columns(shape, columns));
    let path = format!("/admin/objects/{}", compiled.object.id);
    let cookie = Cookie {
        name: COLUMNS_COOKIE,
        value: columns.as_deref().unwrap_or_default().join("\n"),
        path: path.clone(),
        seconds: if columns.is_some() { COOKIE_SECONDS } else { 0 },
    };
    let state = State { columns, ..state };
    let path = format!("{path}{}", state.to_query(shape));
    Ok(PageReply::Moved { path, cookie: Some(cookie) })
}

/// Returns the columns after the button of the form was pressed; `None` for those of the mapping. A table without columns
/// besides the label has those of the mapping.
fn apply_form(form: &Form, mut columns: Vec<String>) -> Option<Vec<String>> {
    let place_of = |button: &str| form.trimmed(button)?.parse::<usize>().ok();
    if form.is_ticked("default") {
        return None;
    }
    if let Some(place) = place_of("left").filter(|place| (1..columns.len()).contains(place)) {
        columns.swap(place - 1, place);
    } else if let Some(place) = place_of("remove").filter(|place| *place < columns.len()) {
        columns.remove(place);
    } else if let Some(name) = form.trimmed("add") {
        columns.push(name);
    }
    Some(columns).filter(|columns| !columns.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buttons_of_the_form_change_the_columns() {
        let apply = |button: &str, value: &str| {
            let form = Form::with_values([(button, Some(value.to_owned()))]);
            apply_form(&form, vec!["a".to_owned(), "b".to_owned()])
        };
        let columns = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(apply("left", "1"), columns(&["b", "a"]));
        assert_eq!(apply("left", "0"), columns(&["a", "b"]));
        assert_eq!(apply("remove", "0"), columns(&["b"]));
        assert_eq!(apply("remove", "7"), columns(&["a", "b"]));
        assert_eq!(apply("add", "c"), columns(&["a", "b", "c"]));
        assert_eq!(apply("default", "true"), None);
    }
}
