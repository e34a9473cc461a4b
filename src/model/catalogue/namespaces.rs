//! The namespaces that a definition defines or its mapping names.
use super::Catalogue;
use crate::mapping::Mapping;
use crate::namespace::{self, Namespace};
use penstock_base::Put;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::managed::check_editable;
use penstock_resources::definitions::DefinitionKind;
use penstock_resources::namespace::DefinedNamespace;
use penstock_store::{Read, Transaction};

/// The maximum number of namespaces that an error names.
const MAX_NAMED: usize = 50;

impl Catalogue {
    /// Returns whether the stored namespaces equal the defined ones.
    pub(super) fn has_namespaces(
        &self,
        defined: &[DefinedNamespace],
    ) -> Result<bool, GatewayError> {
        let read = self.store.read();
        for definition in defined {
            let there = namespace::get(&read, &definition.name)?;
            if !there.is_some_and(|there| there.matches(definition)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Defines the namespaces in the definition of a Business Object, and creates the undefined ones that its mapping
    /// names. Returns each created or changed namespace.
    pub(super) fn define_namespaces(
        &self,
        transaction: &mut Transaction<'_>,
        business_object: Option<&str>,
        defined: &[DefinedNamespace],
        mapping: &Mapping,
    ) -> Result<Vec<Put<Namespace>>, GatewayError> {
        let mut changed = Vec::new();
        for (index, definition) in defined.iter().enumerate() {
            let there = namespace::get(transaction, &definition.name)?;
            if there.is_some_and(|there| there.matches(definition)) {
                continue;
            }
            let default_base = self.default_base(&definition.name);
            let put = check_editable(transaction, DefinitionKind::Namespace, &definition.name)
                .and_then(|()| {
                    namespace::define_namespace(
                        transaction,
                        self.watch.namespaces(),
                        definition,
                        default_base,
                        business_object,
                    )
                });
            changed.push(put.map_err(|error| {
                let finding =
                    Finding::at_pointer(format!("/namespaces/{index}"), error.detail.clone());
                GatewayError { findings: vec![finding], ..error }
            })?);
        }
        let mut missing = Vec::new();
        for name in mapping.namespaces() {
            if namespace::get(transaction, name)?.is_none() {
                missing.push(name.to_owned());
            }
        }
        if !missing.is_empty() && !self.settings.auto_create_namespaces {
            return Err(unknown_namespaces_error(transaction, &missing)?);
        }
        for name in missing {
            let base = self.default_base(&name);
            let definition = DefinedNamespace { name, uri_base: None, generator: None };
            changed.push(namespace::define_namespace(
                transaction,
                self.watch.namespaces(),
                &definition,
                base,
                business_object,
            )?);
        }
        Ok(changed)
    }
}

/// Returns the names of the created namespaces.
pub(super) fn list_created(changed: &[Put<Namespace>]) -> Vec<String> {
    let created = changed.iter().filter(|put| put.is_created());
    created.map(|put| put.value().name.clone()).collect()
}

fn unknown_namespaces_error(
    read: &dyn Read,
    missing: &[String],
) -> Result<GatewayError, GatewayError> {
    let mut known: Vec<String> = namespace::list(read, None, MAX_NAMED + 1)?
        .into_iter()
        .map(|namespace| format!("`{}`", namespace.name))
        .collect();
    let more = if known.len() > MAX_NAMED { " and more" } else { "" };
    known.truncate(MAX_NAMED);
    let known = if known.is_empty() {
        "no namespace is defined".to_owned()
    } else {
        format!("the defined namespaces are {}{more}", known.join(", "))
    };
    let findings = missing.iter().map(|name| {
        Finding::at_pointer(
            "/config",
            format!("the mapping names the namespace `{name}`, which is not defined; {known}"),
        )
    });
    Ok(GatewayError::with_findings(
        ErrorClass::Invalid,
        "the mapping names namespaces that are not defined, and service.namespace.auto-create is false; \
         define them first",
        findings.collect(),
    ))
}
