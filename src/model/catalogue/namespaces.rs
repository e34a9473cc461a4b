//! The namespaces that a definition defines or its mapping names.
use super::Catalogue;
use crate::mapping::Mapping;
use crate::namespace::{self, Namespace, NamespaceDefinition};
use penstock_base::fault::{Fault, Finding, Kind};
use penstock_store::{Read, Transaction};

/// The maximum number of namespaces that an error names.
const MAX_NAMED: usize = 50;

impl Catalogue {
    /// Returns whether the stored namespaces equal the defined ones.
    pub(super) fn has_namespaces(&self, defined: &[NamespaceDefinition]) -> Result<bool, Fault> {
        let read = self.store.read();
        for definition in defined {
            let there = namespace::get(&read, &definition.name)?;
            if !there.is_some_and(|there| definition.describes(&there)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Defines the namespaces in the definition of a Business Object, and creates the undefined ones that its mapping
    /// names. Returns each created (true) or changed namespace.
    pub(super) fn define_namespaces(
        &self,
        transaction: &mut Transaction<'_>,
        business_object: Option<&str>,
        defined: &[NamespaceDefinition],
        mapping: &Mapping,
    ) -> Result<Vec<(Namespace, bool)>, Fault> {
        let mut changed = Vec::new();
        for (index, definition) in defined.iter().enumerate() {
            let there = namespace::get(transaction, &definition.name)?;
            if there.is_some_and(|there| definition.describes(&there)) {
                continue;
            }
            let default_base = self.default_base(&definition.name);
            let put = namespace::define(transaction, definition, default_base, business_object);
            changed.push(put.map_err(|fault| {
                let finding = Finding::at(format!("/namespaces/{index}"), fault.detail.clone());
                Fault { errors: vec![finding], ..fault }
            })?);
        }
        let mut missing = Vec::new();
        for name in mapping.namespaces() {
            if namespace::get(transaction, name)?.is_none() {
                missing.push(name.to_owned());
            }
        }
        if !missing.is_empty() && !self.defaults.auto_create_namespaces {
            return Err(unknown_namespaces(transaction, &missing)?);
        }
        for name in missing {
            let base = self.default_base(&name);
            let definition = NamespaceDefinition { name, uri_base: None, generator: None };
            changed.push(namespace::define(transaction, &definition, base, business_object)?);
        }
        Ok(changed)
    }
}

/// Returns the names of the created namespaces.
pub(super) fn created(changed: &[(Namespace, bool)]) -> Vec<String> {
    let created = changed.iter().filter(|(_, is_new)| *is_new);
    created.map(|(namespace, _)| namespace.name.clone()).collect()
}

fn unknown_namespaces(read: &impl Read, missing: &[String]) -> Result<Fault, Fault> {
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
        Finding::at(
            "/config",
            format!("the mapping names the namespace `{name}`, which is not defined; {known}"),
        )
    });
    Ok(Fault::with(
        Kind::Invalid,
        "the mapping names namespaces that are not defined, and service.namespace.auto-create is false; \
         define them first",
        findings.collect(),
    ))
}
