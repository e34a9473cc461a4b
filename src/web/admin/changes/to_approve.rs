//! `/admin/changes/to-approve`: how many changes wait for the viewer's approval, for a script that updates the menu.
use crate::admin::frame::{Frame, PageReply, PageResult};
use crate::admin::menu::Section;
use askama::Template;
use penstock_http::query::Query;
use salvo::{Depot, Request, handler};

/// Only the count, which a script inserts.
#[derive(Template)]
#[template(path = "admin/approval_count.html")]
struct Count {
    frame: Frame,
}

/// Shows the count.
#[handler]
pub(crate) async fn show_count(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let frame = Frame::new(req, depot, Section::Changes);
    Ok(PageReply::show_fragment(&Count { frame }))
}
