//! The guard against a definition that removes objects from a Business Object by mistake.
use super::Catalogue;
use crate::members::{self, Loss};
use crate::namespace;
use crate::resource::{Compiled, CompiledDefinition, Conditions};
use oxrdf::NamedNode;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_resources::namespace::DefinedNamespace;
use penstock_store::{Error, SubjectFilter};

impl Catalogue {
    /// Counts the objects that a new definition would remove from a Business Object. Ingestion continues meanwhile.
    /// Returns `None` if the definition does not change which objects belong. The same commit defines `namespaces` before.
    ///
    /// # Errors
    /// `ErrorClass::Unconfirmed` if there are too many of them and `force` is not given.
    pub(super) fn check_loss(
        &self,
        before: &Compiled,
        CompiledDefinition { definition, mapping, conditions }: &CompiledDefinition,
        namespaces: &[DefinedNamespace],
        force: bool,
    ) -> Result<Option<Loss>, GatewayError> {
        let (old_root, root) = (&before.mapping.root.namespace, &mapping.root.namespace);
        let is_by_namespace = before.conditions.is_empty() && conditions.is_empty();
        // If there is data, the commit refuses another base of the same namespace.
        if before.conditions == *conditions && (!is_by_namespace || old_root == root) {
            return Ok(None);
        }
        let mut defined = definition.namespaces.iter().chain(namespaces);
        let defined = defined.find(|defined| defined.name == *root);
        if !self.settings.auto_create_namespaces
            && defined.is_none()
            && namespace::get(&self.store.read(), root)?.is_none()
        {
            // The commit refuses this definition.
            return Ok(None);
        }
        let base = defined.and_then(|defined| defined.uri_base.as_deref());
        let old_filter = self.members_filter(old_root, None, &before.conditions)?;
        let filter = self.members_filter(root, base, conditions)?;
        let loss = members::count_loss(&self.store, &old_filter, &filter)?;
        if !loss.is_large() || force {
            return Ok(Some(loss));
        }
        let cause = if !is_by_namespace {
            "its conditions change".to_owned()
        } else if members::list_filtered(&self.store.read(), &filter, None, 1)?.is_empty() {
            format!(
                "its root namespace changes from `{old_root}` to `{root}`, which has no objects"
            )
        } else {
            format!("its root namespace changes from `{old_root}` to `{root}`")
        };
        let remedy =
            "check the definition; to save it anyway, send the request again with ?force=true";
        Err(GatewayError::with_findings(
            ErrorClass::Unconfirmed,
            format!(
                "with this definition {loss} would no longer belong to the Business Object {:?}, because {cause}",
                before.object.definition.name
            ),
            vec![Finding::whole(remedy)],
        ))
    }

    /// Returns the filter of the members of a Business Object. `base` is the new base of its root namespace.
    fn members_filter(
        &self,
        root: &str,
        base: Option<&str>,
        conditions: &Conditions,
    ) -> Result<SubjectFilter, Error> {
        if !conditions.is_empty() {
            return Ok(SubjectFilter {
                graph: None,
                having: conditions.clone(),
                ..SubjectFilter::default()
            });
        }
        let there = namespace::get(&self.store.read(), root)?;
        let base = match (base, there) {
            (Some(base), _) => base.to_owned(),
            (None, Some(namespace)) => namespace.uri_base,
            (None, None) => self.default_base(root),
        };
        let graph = NamedNode::new_unchecked(base).into();
        Ok(SubjectFilter { graph: Some(graph), having: Vec::new(), ..SubjectFilter::default() })
    }
}
