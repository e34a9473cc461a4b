//! `exports`: a page of exports, newest first.
use super::document::Arguments;
use super::execution::{Execution, to_json};
use super::gateway_types::{ExportConnection, ExportEdge, PageInfo};
use super::input;
use super::out::ResultValue;
use async_graphql::parser::types::SelectionSet;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::export::{Export, ExportStatus};

impl<'d> Execution<'d> {
    /// Answers with a page of exports.
    pub(super) fn answer_exports(
        &self,
        arguments: &Arguments,
        sets: &[&'d SelectionSet],
    ) -> Result<ResultValue, GatewayError> {
        let first = input::parse_first(arguments)?;
        let after = arguments.get_text("after").map(str::to_owned);
        if after.as_ref().is_some_and(|id| uuid::Uuid::parse_str(id).is_err()) {
            return Err(GatewayError::new(
                ErrorClass::Malformed,
                "`after` is not a cursor of a page of exports",
            ));
        }
        let (target, status) = (arguments.get_text("target"), arguments.get_text("status"));
        let status: Option<ExportStatus> =
            status.and_then(|name| serde_json::from_value(name.into()).ok());
        let of = arguments.get_text("businessObject");
        let (mut nodes, mut has_next_page): (Vec<Export>, _) = (Vec::new(), false);
        for export in self.sources.exporter.iterate(after.clone()) {
            self.budget.check_time()?;
            let export = export?;
            // An API key for certain Business Objects sees only the exports of these.
            if !self.caller.may_use(&export.business_object)
                || of.is_some_and(|of| {
                    of != export.business_object && of != export.business_object_name
                })
                || target.is_some_and(|target| target != export.target)
                || status.is_some_and(|status| status != export.status)
            {
                continue;
            }
            if nodes.len() == first {
                has_next_page = true;
                break;
            }
            nodes.push(export);
        }
        let edges = nodes.iter().map(|node| ExportEdge { cursor: &node.id, node });
        let cursor = |export: Option<&Export>| export.map(|export| export.id.clone());
        let connection = to_json(&ExportConnection {
            edges: edges.collect(),
            page_info: PageInfo {
                has_next_page,
                has_previous_page: after.is_some(),
                start_cursor: cursor(nodes.first()),
                end_cursor: cursor(nodes.last()),
            },
            nodes: &nodes,
        })?;
        self.select_members("ExportConnection", &connection, sets)
    }
}
