//! Tries a definition out before it is saved: its mapping, its namespaces, and what it would store of a sample.
use super::check_approvers;
use super::mapping_tree::{MappingTree, count_fields};
use crate::gateway::Gateway;
use penstock_auth::{Authorized, Role};
use penstock_base::error::{Finding, GatewayError};
use penstock_model::derive::{self, SampleBody};
use penstock_model::ingest::{self, Body, BodyForm, DryRun, Limits};
use penstock_model::mapping::{self, Mapping};
use penstock_model::namespace;
use penstock_model::resource::{BusinessObject, Compiled, Definition, expand_condition};
use penstock_resources::business_object::Condition;
use penstock_store::Transaction;
use std::sync::Arc;

/// The maximum number of JSON values in the body of a dry run: those of the sample, the array `data` and the
/// body itself. The limit is low because a dry run delays ingestions.
const MAX_DRY_RUN_VALUES: usize = derive::MAX_VALUES + 2;

/// What is known about a definition that is not stored.
#[derive(Debug, Default)]
pub struct DefinitionCheck {
    /// The errors in the text of the mapping. With any, nothing else is checked.
    pub mapping_errors: Vec<Finding>,
    /// The fields of the mapping, if its text has no errors.
    pub tree: Option<MappingTree>,
    /// The error of the definition as a whole.
    pub error: Option<GatewayError>,
    /// The number of fields, including those of nested objects.
    pub field_count: usize,
    /// The namespaces that the mapping names.
    pub namespaces: Vec<NamespaceCheck>,
    /// Valid parts of the definition that are probably mistakes.
    pub warnings: Vec<Finding>,
    /// What would be stored of the sample, or why nothing; `None` without a sample.
    pub sample: Option<Result<SampleCheck, GatewayError>>,
}

/// A namespace that a mapping names.
#[derive(Debug, Clone)]
pub struct NamespaceCheck {
    /// Its name.
    pub name: String,
    /// Its URI base.
    pub uri_base: String,
    /// Whether saving the definition would create it.
    pub is_new: bool,
}

/// What would be stored of a sample.
#[derive(Debug)]
pub struct SampleCheck {
    /// The result of the ingestion, which was not committed.
    pub dry_run: DryRun,
    /// Which part of the text was used, if not all.
    pub used_part: Option<String>,
}

/// Checks a definition, with a dry run of the sample unless that is empty. `id` is the id of the Business Object that
/// the definition would replace, or empty. Values other than the mapping that are not valid are ignored: they are
/// reported when the definition is saved.
///
/// # Errors
/// `ErrorClass::Forbidden` without the role Admin.
pub async fn check_definition(
    gateway: &Gateway,
    by: &Authorized,
    id: String,
    definition: Definition,
    sample: Arc<str>,
) -> Result<DefinitionCheck, GatewayError> {
    let check = move |gateway: &Gateway, _: &Authorized| {
        let mut check = DefinitionCheck::default();
        match mapping::compile(&definition.config) {
            Ok(mapping) => {
                check.field_count = count_fields(&mapping.root);
                check.tree = Some(MappingTree::new(&mapping));
                let compiled = compile_unsaved(id, definition, mapping);
                check.error = run_dry_run(gateway, &compiled, &sample, &mut check).err();
            }
            Err(errors) => check.mapping_errors = errors,
        }
        Ok(check)
    };
    gateway.run(by, Role::Admin, check).await
}

/// Compiles a Business Object that is not stored, without its invalid conditions.
fn compile_unsaved(id: String, mut definition: Definition, mapping: Mapping) -> Compiled {
    let expand = |condition: &Condition| expand_condition(condition, &mapping.prefixes).ok();
    definition.conditions.retain(|condition| expand(condition).is_some());
    let conditions = definition.conditions.iter().filter_map(expand).collect();
    let object = BusinessObject {
        id,
        definition,
        version: 0,
        created_at: String::new(),
        updated_at: String::new(),
        updated_by: None,
        created_namespaces: Vec::new(),
        changed_types: false,
        deleting: None,
    };
    Compiled { object, mapping, conditions }
}

/// Checks the namespaces and the sample in a transaction that is not committed.
fn run_dry_run(
    gateway: &Gateway,
    compiled: &Compiled,
    sample: &str,
    check: &mut DefinitionCheck,
) -> Result<(), GatewayError> {
    let nesting = gateway.settings.limits.nesting;
    let mut data = None;
    if !sample.trim().is_empty() {
        match SampleBody::read(sample, &compiled.mapping, nesting) {
            Ok(read) => data = Some(read),
            Err(error) => check.sample = Some(Err(error)),
        }
    }
    let is_new = list_new_namespaces(gateway, &compiled.mapping)?;
    let limits = Limits {
        nesting: nesting.saturating_add(2),
        // A sample of documents is limited by its values.
        objects: match data.as_ref().map(|data| data.form) {
            Some(BodyForm::Document) => usize::MAX,
            _ => derive::MAX_OBJECTS,
        },
        // A sample of CSV has a limited number of cells. Delimiters in quotes would count too.
        values: match data.as_ref().map(SampleBody::to_body) {
            Some(Body::Records { .. }) => usize::MAX,
            _ => MAX_DRY_RUN_VALUES,
        },
        idempotency_keys: 0,
        idempotency_bytes: 0,
        history: 0,
        rejected_bytes: 0,
        changes: 0,
        change_bytes: 0,
        ..gateway.settings.limits
    };
    let ((bases, tried), warnings) = gateway.catalogue.dry_run(compiled, |transaction| {
        let bases = list_bases(transaction, &compiled.mapping)?;
        let mut compiled = compiled.clone();
        compiled.mapping.resolve_namespaces(transaction)?;
        let tried = data.map(|data| {
            let body = data.to_body();
            let dry_run =
                ingest::dry_run_ingestion(transaction, &limits, &compiled, data.form, body)?;
            Ok::<_, GatewayError>(SampleCheck { dry_run, used_part: data.used_part })
        });
        Ok((bases, tried))
    })?;
    let namespaces = compiled.mapping.namespaces().into_iter().zip(bases).zip(is_new);
    check.namespaces = namespaces
        .map(|((name, uri_base), is_new)| NamespaceCheck {
            name: name.to_owned(),
            uri_base,
            is_new,
        })
        .collect();
    check.warnings = warnings;
    let accounts = gateway.auth.accounts.list(None, usize::MAX)?;
    check.warnings.extend(check_approvers(gateway, &accounts, &compiled.object.definition));
    check.sample = tried.or(check.sample.take());
    Ok(())
}

/// Returns for each namespace of the mapping whether it does not exist yet.
fn list_new_namespaces(gateway: &Gateway, mapping: &Mapping) -> Result<Vec<bool>, GatewayError> {
    let read = gateway.store.read();
    let names = mapping.namespaces().into_iter();
    names.map(|name| Ok(namespace::get(&read, name)?.is_none())).collect()
}

/// Returns the URI base of each namespace of the mapping.
fn list_bases(
    transaction: &Transaction<'_>,
    mapping: &Mapping,
) -> Result<Vec<String>, GatewayError> {
    let names = mapping.namespaces().into_iter();
    names
        .map(|name| {
            let there = namespace::get(transaction, name)?;
            Ok(there.map_or_else(String::new, |there| there.uri_base))
        })
        .collect()
}
