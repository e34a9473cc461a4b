//! Reports the lists of ordered arrays.
use super::{NestingPath, ObjectWriter, ShownFact, ShownReporter};
use crate::list::List;
use crate::mapping::Property;
use crate::view::FieldValues;
use penstock_base::error::GatewayError;

impl ObjectWriter<'_> {
    /// Reports the list that an ordered array of the last object of `path` shows.
    pub(super) fn report_list(
        &mut self,
        place: usize,
        property: &Property,
        owned: &FieldValues<'_>,
        path: &NestingPath<'_>,
    ) -> Result<(), GatewayError> {
        let Some(shown) = &mut self.shown else { return Ok(()) };
        let Some((head, list)) = owned.find_list(place, &mut |_, _| {}) else { return Ok(()) };
        shown.report_value(path.uri, property.predicate.as_ref(), head.into())?;
        shown.report_nodes(list)
    }
}

impl ShownReporter<'_> {
    /// Reports the nodes of a list, each as a subject, so that a target removes them with the object that has the list.
    fn report_nodes(&mut self, list: &List) -> Result<(), GatewayError> {
        if !self.is_active {
            return Ok(());
        }
        let mut last = None;
        for (node, predicate, value) in list.triples() {
            if last.replace(node) != Some(node) {
                (self.report)(ShownFact::Subject(node.as_ref()))?;
            }
            (self.report)(ShownFact::Triple(node.as_ref(), predicate, value))?;
        }
        Ok(())
    }
}
