//! What the page says if it has no object: how to send some, or which filter hides them.
use super::filters::{Chip, list_chips};
use super::part_request::{PartRequest, explain, skip_if_busy};
use crate::admin::business_objects::{build_command, build_ingestion_address};
use crate::admin::words::describe_total;
use penstock_http::problem::Problem;
use penstock_service::objects::count_without;
use std::sync::Arc;

/// The maximum number of filters of which the page says how many objects they hide.
const MAX_EXPLAINED: usize = 5;

/// Why there is no object.
pub(super) enum Empty {
    /// There are none: a command sends some.
    NoObjects { command: String },
    /// None passes all filters: each filter, and how many objects there are without it, in words.
    NoMatch(Vec<(Chip, String)>),
}

impl Empty {
    /// Finds out why there is no object. `base` is the address of the gateway.
    pub(super) async fn explain(request: &PartRequest, base: &str) -> Result<Self, Problem> {
        let PartRequest { gateway, by, compiled, state, .. } = request;
        let shape = request.shape();
        if state.conditions.is_empty() {
            let address = build_ingestion_address(base, compiled);
            let command = build_command(&address, "KEY", &compiled.mapping);
            return Ok(Self::NoObjects { command });
        }
        let chips: Vec<Chip> =
            list_chips(state, shape, &request.path()).into_iter().take(MAX_EXPLAINED).collect();
        let others = (0..chips.len()).map(|place| state.without_condition(place));
        let filters = others.map(|other| other.build_filter(shape)).collect::<Result<_, _>>()?;
        let counts = count_without(gateway, by, Arc::clone(compiled), filters).await;
        let counts = explain(skip_if_busy(counts))?.unwrap_or_default();
        let hides = chips.len() > 1;
        let explained =
            chips.into_iter().zip(counts).map(|(chip, count)| (chip, describe_total(count, hides)));
        Ok(Self::NoMatch(explained.collect()))
    }
}
