//! The warnings about definitions, and dry runs with a definition that is not stored.
use super::Catalogue;
use super::namespaces::list_created;
use crate::resource::{BusinessObject, Compiled};
use crate::shapes_graphs::check_exist;
use crate::warnings::{self, CreatedNamespaces, WarningContext};
use crate::{natural_key, unshown};
use penstock_base::error::{Finding, GatewayError};
use penstock_store::{Read, Transaction};
use std::sync::Arc;

impl Catalogue {
    /// Returns the warnings about each of these stored definitions. Blocking.
    pub fn collect_warnings(
        &self,
        of: &[Arc<Compiled>],
    ) -> Result<Vec<Vec<Finding>>, GatewayError> {
        let known = self.known_namespaces()?;
        let context = WarningContext::new(&known);
        let warnings = |compiled: &Arc<Compiled>| {
            let names = &compiled.object.created_namespaces;
            let created = CreatedNamespaces { names, is_dry_run: false };
            self.collect_warnings_in(&self.store.read(), &context, compiled, created)
        };
        of.iter().map(warnings).collect()
    }

    /// Returns the warnings about stored values that the fields of a definition cannot show. Blocking.
    pub fn check_stored_values(&self, compiled: &Compiled) -> Result<Vec<Finding>, GatewayError> {
        Ok(unshown::check_stored_values(&self.store.read(), &compiled.mapping)?)
    }

    fn collect_warnings_in(
        &self,
        read: &dyn Read,
        context: &WarningContext<'_>,
        compiled: &Compiled,
        created: CreatedNamespaces<'_>,
    ) -> Result<Vec<Finding>, GatewayError> {
        let default_base = |name: &str| self.default_base(name);
        let mut found = warnings::check_definition(
            &compiled.object.definition,
            &compiled.mapping,
            &compiled.conditions,
        );
        found.extend(self.check_validation(&compiled.object.definition));
        found.extend(warnings::check_namespaces(read, context, compiled, created, &default_base)?);
        Ok(found)
    }

    /// Runs `work` in a transaction that is never committed. Before, it defines and creates the namespaces of the
    /// Business Object as [`Self::put`] does. Returns the result of `work` and the warnings about the definition.
    ///
    /// # Errors
    /// - `ErrorClass::Invalid` if namespaces are missing and are not created automatically
    /// - `ErrorClass::Conflict` for another base of a namespace that is in use
    /// - The errors of `work`
    pub fn dry_run<T>(
        &self,
        compiled: &Compiled,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, GatewayError>,
    ) -> Result<(T, Vec<Finding>), GatewayError> {
        let BusinessObject { id, definition, .. } = &compiled.object;
        self.store.dry_run(|transaction| {
            let mapping = &compiled.mapping;
            let changed =
                self.define_namespaces(transaction, Some(id), &definition.namespaces, mapping)?;
            natural_key::check_keys(transaction, Some(id), mapping)?;
            check_exist(transaction, definition.validation.as_ref())?;
            let known = self.watch.namespaces().current(transaction)?;
            let context = WarningContext::new(&known);
            let names = list_created(&changed);
            let created = CreatedNamespaces { names: &names, is_dry_run: true };
            let warnings = self.collect_warnings_in(transaction, &context, compiled, created)?;
            Ok((work(transaction)?, warnings))
        })
    }
}
