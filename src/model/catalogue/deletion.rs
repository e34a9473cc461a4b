//! Deletes a Business Object together with its objects, in commits of bounded size.
//!
//! The commit that begins the deletion disables the Business Object and marks it. Each further commit deletes some
//! members and records how far it is, so that the deletion continues after a crash. It ends with a pass through all
//! members that finds none to delete; the commit after it removes the definition.
//!
//! Invariant: an object that belongs to another Business Object stays, and so does one that is nested in a member and
//! belongs to another. A Business Object that is being deleted with its objects keeps none. Each commit holds the lock
//! of the catalogue's changes, so the definitions in memory are those in the store.
use super::entry::{BUSINESS_OBJECTS, Entry, store_definition};
use super::{Action, Catalogue, Change, CommitHook, Requester, check_conditions};
use crate::change_feed;
use crate::ingest::{self, Body, Mode, RemovedMembers, Request};
use crate::members;
use crate::resource::{BusinessObject, Compiled, Deletion};
use penstock_base::commit::{NoClient, commit};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::events::{EventBus, EventKind};
use penstock_base::managed::check_editable;
use penstock_base::{Preconditions, free_name, next_version};
use penstock_resources::business_object::{DeletionCount, Review};
use penstock_resources::definitions::DefinitionKind;
use penstock_store::{Format, SubjectFilter};
use std::sync::Arc;

/// The caller in the ingestion records of a deletion if the requester is not known.
const UNKNOWN_CALLER: &str = "local";

/// Checks that the objects of a Business Object do not require a review, unless the requester overrides that. Returns
/// whether it does.
fn check_not_reviewed(object: &BusinessObject, by: Requester<'_>) -> Result<bool, GatewayError> {
    let definition = &object.definition;
    if definition.review() != Review::Required || by.bypass {
        return Ok(definition.review() == Review::Required);
    }
    Err(GatewayError::new(
        ErrorClass::Conflict,
        format!(
            "the Business Object {:?} requires a review, so its objects are only deleted by changes; ingest a DELETE, or override this as an Admin with bypass=true",
            definition.name
        ),
    ))
}

impl Catalogue {
    /// Counts what the deletion of a Business Object with its objects would do. Stops after more than `limit` members.
    /// Ingestion continues meanwhile. Blocking.
    ///
    /// # Errors
    /// `ErrorClass::Conflict` if the members of another Business Object are unknown, because it does not compile.
    pub fn count_deletion(
        &self,
        business_object: &Compiled,
        limit: u64,
    ) -> Result<DeletionCount, GatewayError> {
        let others = self.list_other_filters(&business_object.object.id)?;
        let own_id = &business_object.object.id;
        let mut count = DeletionCount::default();
        members::for_each_page(&self.store, business_object, |read, page| {
            let definitions = self.watch.current_definitions(read)?;
            for uri in page {
                if ingest::is_kept(read, &definitions, own_id, &others, uri)? {
                    count.kept += 1;
                } else {
                    count.objects += 1;
                }
            }
            Ok(count.objects + count.kept <= limit)
        })?;
        Ok(count)
    }

    /// Begins to delete the Business Object together with its objects, and disables it. If that has begun already,
    /// nothing changes. [`Self::continue_deletion`] deletes the objects.
    ///
    /// # Errors
    /// - `ErrorClass::NotFound` and `ErrorClass::PreconditionFailed`
    /// - `ErrorClass::Unavailable` if the definition was replaced while its members were counted
    /// - `ErrorClass::Conflict` if the definition does not compile, or that of another Business Object, so that it is
    ///   not known which objects belong; and without `bypass` if it requires a review
    pub fn begin_deletion(
        &self,
        by: Requester<'_>,
        id_or_name: &str,
        conditions: Preconditions,
    ) -> Result<Arc<Compiled>, GatewayError> {
        // Counting may take minutes, in which other changes must be possible.
        let entry = self.find_entry(id_or_name)?;
        let counted = require_compiled(&entry)?;
        if counted.object.deleting.is_none() {
            check_conditions(conditions, &entry.name, Some(&entry))?;
        }
        let remaining = self.count_members(&counted)?;
        let _writer = self.lock_writer();
        let entry = self.find_entry(id_or_name)?;
        let compiled = require_compiled(&entry)?;
        if compiled.object.deleting.is_some() {
            commit::<_, GatewayError>(&self.store, by.check, |_| Ok(()))?;
            return Ok(compiled);
        }
        check_conditions(conditions, &entry.name, Some(&entry))?;
        if (&compiled.object.id, compiled.object.version)
            != (&counted.object.id, counted.object.version)
        {
            return Err(ingest::outdated_error(&entry.name));
        }
        let bypassed = check_not_reviewed(&compiled.object, by)?;
        self.list_other_filters(&entry.id)?;
        let Compiled { mut object, mapping, conditions } = (*compiled).clone();
        object.deleting = Some(Deletion { remaining, ..Deletion::default() });
        object.definition.enabled = false;
        object.version = next_version(&self.store.read(), Some(object.version))?;
        object.updated_at = self.watch.stamp().to_rfc3339();
        object.updated_by = Some(by.id.to_owned());
        let entry = Entry::from_compiled(Arc::new(Compiled { object, mapping, conditions }));
        let compiled = require_compiled(&entry)?;
        commit::<_, GatewayError>(&self.store, by.check, |t| {
            check_editable(t, DefinitionKind::BusinessObject, &entry.name)?;
            // An older version would accept objects again and never end the deletion.
            t.require_format(Format::V3);
            change_feed::stop_watching(t, &entry.id)?;
            store_definition(t, &compiled)?;
            let change = Change::of_entry(Action::DeletionBegun(remaining), &entry);
            by.add_to_commit(t, &Change { bypassed, ..change })
        })?;
        self.watch.close(&entry.id);
        tracing::info!(
            business_object = entry.name,
            id = entry.id,
            objects = remaining,
            by = by.id,
            "The deletion of a Business Object with its objects began."
        );
        self.write_entries().insert(entry);
        self.watch.wake();
        self.deletion_begun.notify_one();
        Ok(compiled)
    }

    /// Checks that no other Business Object has the name of this one, which may have been deleted or renamed since it was
    /// read. The caller is inside the transaction that queues an export of it. The other one is exported only after it is
    /// visible here, so its exports come later in the sequence of the name.
    ///
    /// # Errors
    /// `ErrorClass::Conflict`.
    pub fn check_name_not_taken(&self, object: &BusinessObject) -> Result<(), GatewayError> {
        let name = &object.definition.name;
        match self.read_entries().find_by_name(name) {
            Some(owner) if owner.id != object.id => Err(GatewayError::new(
                ErrorClass::Conflict,
                format!(
                    "the Business Object {name:?} was deleted or renamed meanwhile, and another one has its name; export \
                     that one"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Counts the members of a Business Object that is not being deleted yet.
    fn count_members(&self, business_object: &Compiled) -> Result<u64, GatewayError> {
        let mut members = 0;
        if business_object.object.deleting.is_none() {
            members::for_each_page(&self.store, business_object, |_, page| {
                members += page.len() as u64;
                Ok(true)
            })?;
        }
        Ok(members)
    }

    /// Waits until a deletion begins.
    pub async fn wait_for_deletion(&self) {
        self.deletion_begun.notified().await;
    }

    /// Returns the ids of the Business Objects that are being deleted with their objects, ordered by name.
    pub fn list_deletions(&self) -> Vec<String> {
        let all = self.list().into_iter().filter(|compiled| compiled.object.deleting.is_some());
        all.map(|compiled| compiled.object.id.clone()).collect()
    }

    /// Makes the next commit of the deletion of this Business Object. Returns whether there is more to do. The commits
    /// have one ingestion record, which is published after the last one; `max_records` is the maximum number of records.
    /// `on_commit` runs in the last commit, which removes the definition. Blocking.
    ///
    /// # Errors
    /// The errors of the store. The commit is then undone, and the next call repeats it.
    pub fn continue_deletion(
        &self,
        id: &str,
        max_records: usize,
        events: &EventBus,
        on_commit: CommitHook<'_>,
    ) -> Result<bool, GatewayError> {
        let _writer = self.lock_writer();
        let Some(compiled) = self.get(id).filter(|found| found.object.id == id) else {
            return Ok(false);
        };
        let Some(deletion) = compiled.object.deleting.clone() else { return Ok(false) };
        let others = self.list_other_filters(id)?;
        let caller = compiled.object.updated_by.as_deref().unwrap_or(UNKNOWN_CALLER);
        let body = Body::Json(b"");
        let request = Request::of_gateway(&compiled, Mode::Delete, caller, &self.watch, body);
        let (next, _) = commit::<_, GatewayError>(&self.store, &NoClient, |t| {
            let step = ingest::remove_next_members(t, &request, max_records, &deletion, &others)?;
            let next = deletion.advance(&step);
            if let Some(next) = &next {
                store_definition(t, &compiled.with_deletion(next.clone()))?;
            } else {
                // Commits after this one forget the definition.
                change_feed::stop_watching(t, id)?;
                BUSINESS_OBJECTS.delete(t, id)?;
                free_name(t, compiled.object.version)?;
                if let Some(record) = &deletion.record {
                    events.store(t, None, EventKind::Ingestion, &record.id, record)?;
                }
                let entry = Entry::from_compiled(Arc::clone(&compiled));
                let action = Action::DeletedWithObjects(deletion.deleted);
                on_commit(t, &Change::of_entry(action, &entry))?;
            }
            Ok(next)
        })?;
        if let Some(next) = next {
            let updated = Arc::new(compiled.with_deletion(next));
            self.write_entries().update_progress(Entry::from_compiled(updated));
            return Ok(true);
        }
        self.write_entries().remove(id);
        if let Some(record) = &deletion.record {
            events.publish(EventKind::Ingestion, &record.id, record);
        }
        tracing::info!(
            business_object = compiled.object.definition.name,
            id,
            deleted = deletion.deleted,
            "A Business Object was deleted with its objects."
        );
        self.watch.wake();
        Ok(false)
    }

    /// Returns the filters of the members of all other Business Objects, except those that are being deleted with their
    /// objects.
    fn list_other_filters(&self, id: &str) -> Result<Vec<SubjectFilter>, GatewayError> {
        let others: Vec<Entry> =
            self.read_entries().iter_by_name().filter(|entry| entry.id != id).cloned().collect();
        let read = self.store.read();
        let mut filters = Vec::new();
        for entry in &others {
            let compiled = require_compiled(entry)?;
            if compiled.object.deleting.is_none() {
                filters.push(members::build_member_filter(&read, &compiled)?);
            }
        }
        Ok(filters)
    }
}

impl Deletion {
    /// Returns the progress after a commit that removes these members, or `None` if it was the last one.
    fn advance(&self, step: &RemovedMembers) -> Option<Self> {
        let has_deleted = self.has_deleted || step.removed > 0;
        let is_pass_over = step.last_visited.is_none();
        if is_pass_over && !has_deleted {
            return None;
        }
        Some(Self {
            remaining: if is_pass_over { 0 } else { self.remaining.saturating_sub(step.visited) },
            deleted: self.deleted + step.removed,
            last_visited: step.last_visited.clone(),
            record: step.record.clone(),
            has_deleted: has_deleted && !is_pass_over,
        })
    }
}

impl Compiled {
    /// Returns the same Business Object with this progress of its deletion.
    fn with_deletion(&self, deletion: Deletion) -> Self {
        let mut compiled = self.clone();
        compiled.object.deleting = Some(deletion);
        compiled
    }
}

/// Returns the compiled form of an entry.
fn require_compiled(entry: &Entry) -> Result<Arc<Compiled>, GatewayError> {
    entry.compiled.clone().ok_or_else(|| {
        let message = format!(
            "the stored Business Object {:?} does not compile, so it is not known which objects belong to it; replace \
             its definition or delete it first",
            entry.name
        );
        GatewayError::new(ErrorClass::Conflict, message)
    })
}

#[cfg(test)]
mod tests;
