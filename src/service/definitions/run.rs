//! Compares the definitions in files with what is stored, and writes what differs in one commit.
use super::difference::compare_lines;
use super::drift::find_fingerprint;
use super::resources::{Content, Resource, files_error, parse_files, read_resources};
use super::{AppliedChange, ApplyAction, ApplyOptions, ApplyReport, DefinitionFile, DefinitionId};
use crate::audit::change_event;
use crate::business_objects::{add_audit_events, report_withdrawal};
use crate::changes::withdraw_abandoned;
use crate::gateway::Gateway;
use crate::namespaces::{erase_namespace, write_namespace};
use crate::shapes_graphs::add_audit_event;
use penstock_auth::groups::{Group, GroupsBatch};
use penstock_auth::{Authorized, Role};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::managed::{
    DefinitionKind, ManagedDefinition, check_editable, find_managed, forget_managed, list_managed,
};
use penstock_model::catalogue::{Action, Batch, Change, PreparedDefinition, Requester, ShapesHook};
use penstock_model::namespace::{self, Generator, NamespaceDefinition};
use penstock_model::resource::{CompiledDefinition, Definition};
use penstock_model::shapes_graphs::{self, GraphMetadata};
use penstock_store::{Read, Transaction};
use serde_json::Value;
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
/// - `ErrorClass::InsufficientStorage` when less than the reserve is free on the disk, and a definition would change
pub fn apply_files(
    gateway: &Gateway,
    by: &Authorized,
    files: &[DefinitionFile],
    options: &ApplyOptions,
) -> Result<ApplyReport, GatewayError> {
    by.require_role(Role::Admin)?;
    if !options.is_dry_run
        && let Err(full) = gateway.disk.check_reserve()
    {
        // Files that change nothing need no space.
        let dry_run = ApplyOptions { is_dry_run: true, ..options.clone() };
        let report = apply_files(gateway, by, files, &dry_run)?;
        return if report.changes.is_empty() { Ok(report) } else { Err(full) };
    }
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
    let prepared = prepare_all(&mut catalogue, requester, &resources, options.is_dry_run)?;
    let mut run = Run {
        gateway,
        by,
        requester,
        on_graph: &add_graph_event,
        options,
        catalogue,
        groups: gateway.auth.groups.begin_batch(),
        report: ApplyReport::default(),
        has_changes: false,
        new_names: BTreeSet::new(),
    };
    let ended = gateway.store.commit::<_, Ended>(by, |transaction| {
        run.write_all(transaction, &resources, &prepared)?;
        if options.is_dry_run { Err(Ended::DryRun) } else { Ok(()) }
    });
    match ended {
        Ok(_) => {}
        Err(Ended::DryRun) => return Ok(run.report),
        Err(Ended::Failed(error)) => return Err(error),
    }
    let Run { catalogue, groups, report, .. } = run;
    groups.publish();
    catalogue.publish(requester);
    if report.changes.iter().any(|change| {
        change.action == ApplyAction::Deleted && change.id.kind == DefinitionKind::BusinessObject
    }) {
        report_withdrawal(withdraw_abandoned(gateway));
    }
    Ok(report)
}

/// How a transaction ends without a commit.
enum Ended {
    DryRun,
    Failed(GatewayError),
}

impl From<GatewayError> for Ended {
    fn from(error: GatewayError) -> Self {
        Self::Failed(error)
    }
}

impl From<penstock_store::Error> for Ended {
    fn from(error: penstock_store::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// Checks the guards of all Business Objects, before the transaction. Returns for each resource what its commit needs; `None`
/// for a Business Object that is the same, and for other kinds.
fn prepare_all(
    catalogue: &mut Batch<'_>,
    by: Requester<'_>,
    resources: &[Resource<'_>],
    is_dry_run: bool,
) -> Result<Vec<Option<PreparedDefinition>>, GatewayError> {
    let namespaces: Vec<NamespaceDefinition> = resources
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
    if !is_dry_run {
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

/// The errors of definitions, with their places.
#[derive(Default)]
struct Errors {
    findings: Vec<Finding>,
    class: Option<ErrorClass>,
}

impl Errors {
    /// Keeps the error of a definition and returns `None`. An error that is not about the definition ends the run.
    fn collect<T>(
        &mut self,
        resource: &Resource<'_>,
        result: Result<T, GatewayError>,
    ) -> Result<Option<T>, GatewayError> {
        let error = match result {
            Ok(value) => return Ok(Some(value)),
            Err(error) => error,
        };
        match error.class {
            ErrorClass::Invalid
            | ErrorClass::Malformed
            | ErrorClass::Conflict
            | ErrorClass::Unconfirmed
            | ErrorClass::TooLarge => {
                self.class.get_or_insert(error.class);
                self.findings.extend(resource.place.place_error(error));
                Ok(None)
            }
            _ => Err(error),
        }
    }

    fn finish(self) -> Result<(), GatewayError> {
        match self.class {
            Some(class) => Err(files_error(class, self.findings)),
            None => Ok(()),
        }
    }
}

/// A run in its transaction.
struct Run<'r> {
    gateway: &'r Gateway,
    by: &'r Authorized,
    requester: Requester<'r>,
    on_graph: ShapesHook<'r>,
    options: &'r ApplyOptions,
    catalogue: Batch<'r>,
    groups: GroupsBatch<'r>,
    report: ApplyReport,
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
    /// Writes all definitions, then handles the ones without a file.
    fn write_all(
        &mut self,
        transaction: &mut Transaction<'_>,
        resources: &[Resource<'_>],
        prepared: &[Option<PreparedDefinition>],
    ) -> Result<(), GatewayError> {
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
        let named: BTreeSet<&DefinitionId> =
            resources.iter().map(|resource| &resource.id).collect();
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
    fn check_keys(
        &self,
        transaction: &Transaction<'_>,
        resources: &[Resource<'_>],
    ) -> Result<(), GatewayError> {
        let mut found = self.catalogue.check_keys(transaction)?;
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

    /// Returns whether a record is one of this folder whose definition is in no file.
    fn is_abandoned(&self, record: &ManagedDefinition, named: &BTreeSet<&DefinitionId>) -> bool {
        let id = DefinitionId { kind: record.kind, name: record.name.clone() };
        let is_own = if self.options.is_service_folder {
            record.is_read_only
        } else {
            record.folder == self.options.folder && self.may_change(record)
        };
        is_own && !named.contains(&id)
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
    ) -> Result<(), GatewayError> {
        let DefinitionId { kind, name } = &resource.id;
        let before = self.describe(transaction, resource)?;
        let Written { action, fingerprint } =
            self.write_content(transaction, resource, prepared)?;
        let known = find_managed(transaction, *kind, name)?;
        if known.is_none() {
            self.new_names.insert(name.clone());
        }
        let may_change = known.as_ref().is_none_or(|known| self.may_change(known));
        if let Some(action) = action {
            if !may_change {
                check_editable(transaction, *kind, name)?;
            }
            let after = self.describe_new(transaction, resource)?;
            self.report.changes.push(AppliedChange {
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
                || known.is_some_and(|known| known.is_created),
            is_unmanaged: false,
            fingerprint,
        };
        self.has_changes |= action.is_some() | record.store(transaction)?;
        Ok(())
    }

    /// Writes a definition as its PUT does.
    fn write_content(
        &mut self,
        transaction: &mut Transaction<'_>,
        resource: &Resource<'_>,
        prepared: Option<&PreparedDefinition>,
    ) -> Result<Written, GatewayError> {
        let name = &resource.id.name;
        let before = find_fingerprint(self.gateway, transaction, &resource.id)?;
        let after = match &resource.content {
            Content::Namespace(definition) => {
                let base = self.gateway.catalogue.default_base(name);
                let new = definition.clone().into_namespace(base, Generator::default());
                let (after, _) = write_namespace(self.gateway, self.by, transaction, new)?;
                Some(after.fingerprint()).filter(|after| before.as_ref() != Some(after))
            }
            Content::Shapes(graph) => self
                .catalogue
                .put_graph(transaction, self.requester, graph, self.on_graph)?
                .map(|graph| graph.metadata.fingerprint()),
            Content::Group(new) => {
                self.groups.put(transaction, self.by, name, new)?.map(|group| group.fingerprint())
            }
            Content::BusinessObject(_) => {
                let by = Requester { force: resource.force, ..self.requester };
                let put = prepared.map(|prepared| self.catalogue.put(transaction, by, prepared));
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

    /// Deletes a definition that no file has any more, or records that.
    fn handle_abandoned(
        &mut self,
        transaction: &mut Transaction<'_>,
        mut record: ManagedDefinition,
    ) -> Result<(), GatewayError> {
        let id = DefinitionId { kind: record.kind, name: record.name.clone() };
        if find_fingerprint(self.gateway, transaction, &id)?.is_none() {
            self.has_changes = true;
            return Ok(forget_managed(transaction, id.kind, &id.name)?);
        }
        let mut change = AppliedChange {
            action: ApplyAction::Unmanaged,
            id,
            file: record.file.clone(),
            difference: Vec::new(),
            reason: None,
        };
        // A new definition of another kind with this name may be this one with a wrong kind.
        let is_redefined = self.new_names.contains(&record.name);
        let is_prunable = record.is_created && !record.is_read_only && !is_redefined;
        if is_prunable && self.options.prune.contains(&change.id) {
            match self.delete(transaction, &change.id) {
                Ok(()) => {
                    change.action = ApplyAction::Deleted;
                    self.report.changes.push(change);
                    self.has_changes = true;
                    return Ok(forget_managed(transaction, record.kind, &record.name)?);
                }
                Err(error) if error.class == ErrorClass::Conflict => {
                    change.action = ApplyAction::Kept;
                    change.reason = Some(error.detail);
                }
                Err(error) => return Err(error),
            }
        }
        if is_prunable {
            self.report.prunable.push(change.id.clone());
        }
        let is_new = !record.is_unmanaged;
        if is_new {
            record.is_unmanaged = true;
            record.is_read_only = false;
            self.has_changes |= record.store(transaction)?;
            let mut warning = format!(
                "{}: no file defines it any more; it stays, and can be changed and deleted as any other",
                change.id
            );
            if is_redefined {
                warning.push_str(
                    ". The files define something new with this name, so that only a later run prunes it",
                );
            }
            self.report.warnings.push(warning);
        }
        if is_new || change.action == ApplyAction::Kept {
            self.report.changes.push(change);
        }
        Ok(())
    }

    /// Deletes a definition, never its data.
    fn delete(
        &mut self,
        transaction: &mut Transaction<'_>,
        DefinitionId { kind, name }: &DefinitionId,
    ) -> Result<(), GatewayError> {
        match kind {
            DefinitionKind::Namespace => erase_namespace(self.gateway, self.by, transaction, name),
            DefinitionKind::Shapes => self.catalogue.delete_graph(transaction, name, self.on_graph),
            DefinitionKind::Group => self.groups.delete(transaction, self.by, name),
            DefinitionKind::BusinessObject => {
                self.catalogue.delete(transaction, self.requester, name)
            }
        }
    }

    /// Adds the audit event of the run, if it changes anything.
    fn add_event(&self, transaction: &mut Transaction<'_>) -> Result<(), GatewayError> {
        if !self.has_changes {
            return Ok(());
        }
        let describe = |change: &AppliedChange| format!("{} {}", change.action.name(), change.id);
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
        let event = change_event(self.by, "definitions.applied", detail);
        self.gateway.auth.audit.add_event(transaction, &event)
    }

    /// Returns the lines of the stored definition that a resource replaces; only for a dry run.
    fn describe(
        &self,
        read: &impl Read,
        resource: &Resource<'_>,
    ) -> Result<Vec<String>, GatewayError> {
        if !self.options.is_dry_run {
            return Ok(Vec::new());
        }
        let name = &resource.id.name;
        Ok(match &resource.content {
            Content::BusinessObject(_) => {
                let there = self.gateway.catalogue.get(name);
                there.map(|there| describe_definition(&there.object.definition)).unwrap_or_default()
            }
            Content::Group(_) => {
                let there = self.gateway.auth.groups.get(name);
                there.map(|there| describe_group(&there)).unwrap_or_default()
            }
            _ => describe_stored(read, &resource.id)?,
        })
    }

    /// Returns the lines of a definition after it was written; only for a dry run.
    fn describe_new(
        &self,
        read: &impl Read,
        resource: &Resource<'_>,
    ) -> Result<Vec<String>, GatewayError> {
        if !self.options.is_dry_run {
            return Ok(Vec::new());
        }
        Ok(match &resource.content {
            Content::BusinessObject(new) => describe_definition(&new.definition),
            Content::Group(_) => {
                let new = self.groups.get(&resource.id.name);
                new.map(|new| describe_group(&new)).unwrap_or_default()
            }
            _ => describe_stored(read, &resource.id)?,
        })
    }
}

/// Returns the lines of a stored namespace or shapes graph.
fn describe_stored(
    read: &impl Read,
    DefinitionId { kind, name }: &DefinitionId,
) -> Result<Vec<String>, GatewayError> {
    Ok(match kind {
        DefinitionKind::Namespace => namespace::get(read, name)?
            .map(|there| {
                vec![
                    format!("uriBase: {}", there.uri_base),
                    format!("generator: {}", there.generator.name()),
                ]
            })
            .unwrap_or_default(),
        DefinitionKind::Shapes => shapes_graphs::read_graph(read, name)?
            .map(|there| {
                let head = format!("contentType: {}", there.metadata.format.media_type());
                let lines = there.text.lines().map(str::to_owned);
                std::iter::once(head).chain(lines).collect()
            })
            .unwrap_or_default(),
        DefinitionKind::Group | DefinitionKind::BusinessObject => Vec::new(),
    })
}

fn describe_group(group: &Group) -> Vec<String> {
    let list = |name: &str, values: &[String]| {
        let elements = values.iter().map(|value| format!("  - {value}"));
        std::iter::once(format!("{name}:")).chain(elements).collect::<Vec<_>>()
    };
    [list("members", &group.members), list("claimValues", &group.claim_values)].concat()
}

/// Returns the members of a definition, one or more lines for each. The mapping is last, as it was given.
fn describe_definition(definition: &Definition) -> Vec<String> {
    let Ok(Value::Object(members)) = serde_json::to_value(definition) else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for (name, value) in members.into_iter().filter(|(name, _)| name != "config") {
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        lines.extend(format!("{name}: {text}").lines().map(str::to_owned));
    }
    lines.push("config:".to_owned());
    lines.extend(definition.config.lines().map(|line| format!("  {line}")));
    lines
}
