//! Compares the definitions in files with what is stored, and writes what differs in one commit.
mod abandoned;
mod errors;

use super::ApplyOptions;
use super::batch::DefinitionBatch;
use super::content::Content;
use super::difference::compare_lines;
use super::kind::{Result, StoredKind as _};
use super::resources::{Resource, parse_files, read_resources};
use crate::audit::change_event;
use crate::business_objects::{add_audit_events, report_withdrawal};
use crate::changes::steps::withdraw_abandoned;
use crate::gateway::Gateway;
use crate::namespaces::write_namespace;
use crate::shapes_graphs::add_audit_event;
use errors::Errors;
use penstock_auth::{Authorized, Role};
use penstock_base::error::{Finding, GatewayError};
use penstock_base::managed::{ManagedDefinition, check_editable, find_managed, list_managed};
use penstock_model::catalogue::{Action, Batch, Change, PreparedDefinition, Requester};
use penstock_model::namespace::Namespace;
use penstock_model::resource::CompiledDefinition;
use penstock_model::shapes_graphs::GraphMetadata;
use penstock_resources::definitions::{
    AppliedDefinition, AppliedDefinitions, ApplyAction, DefinitionFile, DefinitionId,
    DefinitionKind,
};
use penstock_resources::namespace::{DefinedNamespace, Generator};
use penstock_store::{Read, Transaction};
use std::collections::BTreeSet;

/// The maximum number of definitions that the audit event of a run names. What a run creates, changes and
/// deletes has events of its own.
const MAX_NAMED_CHANGES: usize = 100;

/// Applies the definitions in files in one commit, or none of them. A definition that is the same keeps its version. Blocking.
///
/// # Errors
/// - `ErrorClass::Invalid` with every error in the files, and `ErrorClass::Conflict` with every definition that cannot be
///   saved, each with its file, line and column
/// - `ErrorClass::Forbidden` without the role Admin
/// - `ErrorClass::InsufficientStorage` when less than the reserve is free on the disk, and a definition or a record of what
///   files define would change
pub fn apply_files(
    gateway: &Gateway,
    by: &Authorized,
    files: &[DefinitionFile],
    options: &ApplyOptions,
) -> Result<AppliedDefinitions> {
    by.require_role(Role::Admin)?;
    let full = if options.is_dry_run { None } else { gateway.disk.check_reserve().err() };
    let is_committed = !options.is_dry_run && full.is_none();
    let (report, has_changes) = run_files(gateway, by, files, options, is_committed)?;
    match full {
        // Files that change nothing need no space.
        Some(full) if has_changes => Err(full),
        _ => Ok(report),
    }
}

/// Applies the files, whatever is free on the disk; unless `is_committed`, in a transaction that is discarded. Returns also
/// whether a definition or a record of what files define has changed.
fn run_files(
    gateway: &Gateway,
    by: &Authorized,
    files: &[DefinitionFile],
    options: &ApplyOptions,
    is_committed: bool,
) -> Result<(AppliedDefinitions, bool)> {
    let parsed = parse_files(files)?;
    let resources = read_resources(gateway, &parsed)?;
    gateway.auth.audit.flush();
    let add_events = |transaction: &mut Transaction<'_>, change: &Change<'_>| {
        add_audit_events(gateway, by, transaction, change)
    };
    let add_graph_event =
        |transaction: &mut Transaction<'_>, action: Action, graph: &GraphMetadata| {
            add_audit_event(gateway, by, transaction, action, graph)
        };
    let requester = Requester { on_commit: Some(&add_events), ..Requester::new(by, by.id()) };
    let mut catalogue = gateway.catalogue.begin_batch();
    let prepared = prepare_all(&mut catalogue, requester, &resources, is_committed)?;
    let groups = gateway.auth.groups.begin_batch();
    let mut run = Run {
        batch: DefinitionBatch {
            gateway,
            by,
            requester,
            on_graph: &add_graph_event,
            catalogue,
            groups,
        },
        options,
        report: AppliedDefinitions::default(),
        has_changes: false,
        new_names: BTreeSet::new(),
    };
    let write =
        |transaction: &mut Transaction<'_>| run.write_all(transaction, &resources, &prepared);
    if !is_committed {
        gateway.store.dry_run::<_, GatewayError>(by, write)?;
        return Ok((run.report, run.has_changes));
    }
    gateway.store.commit::<_, GatewayError>(by, write)?;
    let Run { batch, report, has_changes, .. } = run;
    batch.publish();
    if report.changes.iter().any(|change| {
        change.action == ApplyAction::Deleted && change.id.kind == DefinitionKind::BusinessObject
    }) {
        report_withdrawal(withdraw_abandoned(gateway));
    }
    Ok((report, has_changes))
}

/// Checks the guards of all Business Objects, before the transaction, because they may read everything that is stored.
/// Returns for each resource what its commit needs; `None` for a Business Object that is the same, and for other kinds.
fn prepare_all(
    catalogue: &mut Batch<'_>,
    by: Requester<'_>,
    resources: &[Resource<'_>],
    is_committed: bool,
) -> Result<Vec<Option<PreparedDefinition>>> {
    let namespaces: Vec<DefinedNamespace> = resources
        .iter()
        .filter_map(|resource| match &resource.content {
            Content::Namespace(definition) => Some(definition.clone()),
            _ => None,
        })
        .collect();
    let mut errors = Errors::default();
    let mut prepared = Vec::new();
    for resource in resources {
        prepared.push(match &resource.content {
            Content::BusinessObject(new) => {
                let by = Requester { force: resource.force, ..by };
                let new = CompiledDefinition::clone(new);
                errors.collect(resource, catalogue.prepare(by, new, &namespaces))?.flatten()
            }
            _ => None,
        });
    }
    errors.finish()?;
    if is_committed {
        let (changed, new): (Vec<_>, Vec<_>) = resources
            .iter()
            .zip(&prepared)
            .filter_map(|(resource, prepared)| Some((resource, prepared.as_ref()?)))
            .unzip();
        let mut errors = Errors::default();
        let verified = catalogue.prepare_keys(by, &new, &namespaces)?;
        for (resource, verified) in changed.into_iter().zip(verified) {
            errors.collect(resource, verified)?;
        }
        errors.finish()?;
    }
    Ok(prepared)
}

/// A run in its transaction.
struct Run<'r> {
    batch: DefinitionBatch<'r>,
    options: &'r ApplyOptions,
    report: AppliedDefinitions,
    /// Whether a definition or a record of what files define has changed.
    has_changes: bool,
    /// The names of the definitions that no file had before this run.
    new_names: BTreeSet<String>,
}

/// What became of a definition.
struct Written {
    /// `None` if it is the same as before.
    action: Option<ApplyAction>,
    /// The record's description of what is stored now.
    fingerprint: String,
}

impl Run<'_> {
    /// Deletes what is in the way of the definitions, writes all of them, then handles the ones without a file.
    fn write_all(
        &mut self,
        transaction: &mut Transaction<'_>,
        resources: &[Resource<'_>],
        prepared: &[Option<PreparedDefinition>],
    ) -> Result<()> {
        let named: BTreeSet<&DefinitionId> =
            resources.iter().map(|resource| &resource.id).collect();
        for DefinitionId { kind, name } in &named {
            if find_managed(transaction, *kind, name)?.is_none() {
                self.new_names.insert(name.clone());
            }
        }
        let deleted = self.prune_obstacles(transaction, resources, &named)?;
        for kind in DefinitionKind::ALL {
            // Definitions of later kinds depend on these, so their errors would only follow from those of these.
            let mut errors = Errors::default();
            for (resource, prepared) in resources.iter().zip(prepared) {
                if resource.id.kind == kind {
                    let written = self.write_resource(transaction, resource, prepared.as_ref());
                    errors.collect(resource, written)?;
                }
            }
            errors.finish()?;
        }
        self.check_keys(transaction, resources)?;
        self.report.changes.extend(deleted);
        let mut records = list_managed(transaction)?;
        records.retain(|record| self.is_abandoned(record, &named));
        // What depends on others first.
        for record in records.into_iter().rev() {
            self.handle_abandoned(transaction, record)?;
        }
        self.report.prunable.sort();
        self.add_event(transaction)
    }

    /// Checks the keys of the Business Objects that this run writes, once for all of them.
    fn check_keys(&self, transaction: &Transaction<'_>, resources: &[Resource<'_>]) -> Result<()> {
        let mut found = self.batch.catalogue.check_keys(transaction)?;
        let mut errors = Errors::default();
        for resource in resources {
            if resource.id.kind == DefinitionKind::BusinessObject
                && let Some(error) = found.remove(&resource.id.name)
            {
                errors.collect::<()>(resource, Err(error))?;
            }
        }
        errors.finish()
    }

    /// Returns whether this run may change a definition. A dry run of the folder of the service shows what its next run
    /// changes.
    fn may_change(&self, record: &ManagedDefinition) -> bool {
        let is_of_same_folder = self.options.is_dry_run && record.folder == self.options.folder;
        !record.is_read_only || self.options.is_service_folder || is_of_same_folder
    }

    /// Writes one definition and its record.
    fn write_resource(
        &mut self,
        transaction: &mut Transaction<'_>,
        resource: &Resource<'_>,
        prepared: Option<&PreparedDefinition>,
    ) -> Result<()> {
        let DefinitionId { kind, name } = &resource.id;
        let before = self.describe(transaction, &resource.id)?;
        let Written { action, fingerprint } =
            self.write_content(transaction, resource, prepared)?;
        let known = find_managed(transaction, *kind, name)?;
        let may_change = known.as_ref().is_none_or(|known| self.may_change(known));
        if let Some(action) = action {
            if !may_change {
                check_editable(transaction, *kind, name)?;
            }
            let after = self.describe(transaction, &resource.id)?;
            self.report.changes.push(AppliedDefinition {
                action,
                id: resource.id.clone(),
                file: resource.place.file.to_owned(),
                difference: compare_lines(&before, &after),
                reason: None,
            });
        } else {
            self.report.unchanged += 1;
            if resource.force {
                let message = "`force: true` has no effect any more; remove it, so that the next change is checked";
                let warning = resource.place.place_finding(Finding::whole(message));
                self.report.warnings.push(warning.message);
            }
        }
        if !may_change {
            return Ok(());
        }
        let record = ManagedDefinition {
            kind: *kind,
            name: name.clone(),
            file: resource.place.file.to_owned(),
            folder: self.options.folder.clone(),
            is_read_only: self.options.is_service_folder,
            is_created: action == Some(ApplyAction::Created)
                || known.is_some_and(|known| known.is_created && known.is_record_of(&fingerprint)),
            is_unmanaged: false,
            fingerprint,
        };
        self.has_changes |= action.is_some() | record.store(transaction)?;
        Ok(())
    }

    /// Returns the lines of a definition as the run has left it so far; only for a dry run.
    fn describe(
        &self,
        read: &dyn Read,
        DefinitionId { kind, name }: &DefinitionId,
    ) -> Result<Vec<String>> {
        if !self.options.is_dry_run {
            return Ok(Vec::new());
        }
        of_kind!(kind, K => K::describe(&self.batch, read, name))
    }

    /// Writes a definition as its PUT does.
    fn write_content(
        &mut self,
        transaction: &mut Transaction<'_>,
        resource: &Resource<'_>,
        prepared: Option<&PreparedDefinition>,
    ) -> Result<Written> {
        let DefinitionId { kind, name } = &resource.id;
        let batch = &mut self.batch;
        let before = of_kind!(kind, K => K::find_fingerprint(batch.gateway, transaction, name))?;
        let after = match &resource.content {
            Content::Namespace(definition) => {
                let base = batch.gateway.catalogue.default_base(name);
                let new =
                    Namespace::from_definition(definition.clone(), base, Generator::default());
                let put = write_namespace(batch.gateway, batch.by, transaction, new)?;
                Some(put.value().fingerprint()).filter(|after| before.as_ref() != Some(after))
            }
            Content::Shapes(graph) => batch
                .catalogue
                .put_graph(transaction, batch.requester, graph, batch.on_graph)?
                .map(|graph| graph.metadata.fingerprint()),
            Content::Group(new) => {
                batch.groups.put(transaction, batch.by, new)?.map(|group| group.fingerprint())
            }
            Content::BusinessObject(_) => {
                let by = Requester { force: resource.force, ..batch.requester };
                let put = prepared.map(|prepared| batch.catalogue.put(transaction, by, prepared));
                put.transpose()?.map(|saved| saved.fingerprint())
            }
        };
        Ok(match after {
            Some(fingerprint) => {
                let is_new = before.is_none();
                let action = if is_new { ApplyAction::Created } else { ApplyAction::Changed };
                Written { action: Some(action), fingerprint }
            }
            None => Written { action: None, fingerprint: before.unwrap_or_default() },
        })
    }

    /// Adds the audit event of the run, if it changes anything.
    fn add_event(&self, transaction: &mut Transaction<'_>) -> Result<()> {
        if !self.has_changes {
            return Ok(());
        }
        let describe =
            |change: &AppliedDefinition| format!("{} {}", change.action.name(), change.id);
        let all = &self.report.changes;
        let mut changes: Vec<String> = all.iter().take(MAX_NAMED_CHANGES).map(describe).collect();
        if all.len() > MAX_NAMED_CHANGES {
            changes.push(format!("{} more", all.len() - MAX_NAMED_CHANGES));
        }
        let source = if self.options.is_service_folder { "service.definitions.dir, " } else { "" };
        let changes = if changes.is_empty() {
            "no definition changed, but which file they come from".to_owned()
        } else {
            changes.join(", ")
        };
        let detail = format!("{source}{:?}: {changes}", self.options.folder);
        let event = change_event(self.batch.by, "definitions.applied", detail);
        self.batch.gateway.auth.audit.add_event(transaction, &event)
    }
}
