//! Warns about SPARQL targets that would write the same graphs.
use crate::settings::{SparqlStore, TargetKind, Targets};

/// Warns about each pair of targets at one endpoint with the same template of graphs: a Business Object that names both
/// would give its graph two writers.
pub(crate) fn warn_about_shared_graphs(targets: &Targets, warnings: &mut Vec<String>) {
    let stores: Vec<(&str, &SparqlStore)> = targets
        .named
        .iter()
        .filter_map(|(name, target)| match &target.kind {
            TargetKind::Sparql(store) => Some((name.as_str(), store)),
            TargetKind::Directory { .. } | TargetKind::S3 { .. } => None,
        })
        .collect();
    for (place, (name, store)) in stores.iter().enumerate() {
        let same = stores
            .iter()
            .skip(place + 1)
            .find(|(_, other)| (&other.endpoint, &other.graph) == (&store.endpoint, &store.graph));
        if let Some((other, _)) = same {
            warnings.push(format!(
                "the targets `{name}` and `{other}` write the same graphs at {}: a Business Object that names both is \
                 exported to one of them only; set another `service.export.targets.{other}.graph`",
                store.endpoint
            ));
        }
    }
    if let Some(TargetKind::Sparql(store)) = targets.default.as_ref().map(|target| &target.kind) {
        warnings.push(format!(
            "service.export.default is a SPARQL store ({}), so every bucketName without an entry of its own has the same \
             graphs there: let each Business Object name only one of them",
            store.endpoint
        ));
    }
}
