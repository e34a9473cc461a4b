//! Runs validations, one after the other, on a thread of its own.
use super::kept::{MAX_RUNS, remove_unended, update_runs, write_file};
use super::report::Findings;
use crate::gateway::Gateway;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::events::EventKind;
use penstock_base::telemetry::metrics::count_validation;
use penstock_base::time::format_rfc3339;
use penstock_model::validation::StoredValidation;
use penstock_resources::validation::{Progress, UsedShapes, Validation, ValidationState};
use penstock_shapes::{Cancellation, Limits, VALIDATION_STACK_BYTES};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// The maximum pause after a batch.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Runs the validations that clients enqueue until `stop` becomes true. One that runs then begins again at the next start.
pub async fn run_validations(gateway: Gateway, mut stop: watch::Receiver<bool>) {
    loop {
        while let Some((validation, cancellation)) = start_next(&gateway) {
            let (done, is_done) = oneshot::channel::<()>();
            let run = {
                let (gateway, cancellation) = (gateway.clone(), cancellation.clone());
                move || {
                    run_validation(&gateway, validation, &cancellation);
                    drop(done);
                }
            };
            let thread = thread::Builder::new().name("validation".into());
            if let Err(error) = thread.stack_size(VALIDATION_STACK_BYTES).spawn(run) {
                tracing::warn!(%error, "A thread for a validation could not be started.");
                fail_running(&gateway);
            }
            // The sender is dropped at the end.
            let mut is_done = std::pin::pin!(is_done);
            let is_stopping = tokio::select! {
                _ = &mut is_done => false,
                _ = stop.wait_for(|stop| *stop) => true,
            };
            if is_stopping {
                gateway.validations.is_stopping.store(true, Ordering::Release);
                cancellation.cancel();
                let _ = is_done.await;
                return;
            }
        }
        tokio::select! {
            () = gateway.validations.enqueued.notified() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// Takes the next validation from the queue, and marks it as running.
pub(super) fn start_next(gateway: &Gateway) -> Option<(Validation, Cancellation)> {
    let mut queue = gateway.validations.lock();
    let mut next = queue.waiting.pop_front()?;
    next.state = ValidationState::Running;
    next.started_at = Some(format_rfc3339(gateway.clock.now()));
    let started = (next, Cancellation::default());
    queue.running = Some(started.clone());
    Some(started)
}

/// Runs a validation that was taken from the queue, and keeps its report. Blocking.
pub(super) fn run_validation(
    gateway: &Gateway,
    mut validation: Validation,
    cancellation: &Cancellation,
) {
    let started = Instant::now();
    let folder = gateway.validations.lock().kept.folder();
    let runs = update_runs(&folder, &validation.id, |runs| runs.saturating_add(1));
    let mut findings = Findings::default();
    let result = if runs > MAX_RUNS {
        Err(ended_process_error())
    } else {
        validate(gateway, &mut validation, &mut findings, cancellation)
    };
    let mut queue = gateway.validations.lock();
    let running = queue.running.as_ref();
    let is_unwanted =
        running.is_some_and(|(running, _)| running.state == ValidationState::Cancelled);
    match result {
        _ if cancellation.is_cancelled() => validation.state = ValidationState::Cancelled,
        Ok(()) => {
            validation.state = ValidationState::Finished;
            validation.conforms = Some(findings.counts.total() == 0);
        }
        Err(error) => {
            validation.state = ValidationState::Failed;
            validation.error = Some(error.detail);
        }
    }
    // In this state it cannot be cancelled.
    queue.running = Some((validation.clone(), cancellation.clone()));
    drop(queue);
    // One that a client cancelled does not begin again.
    if gateway.validations.is_stopping.load(Ordering::Acquire) && !is_unwanted {
        update_runs(&folder, &validation.id, |_| 0);
    } else {
        let ended = keep_ended(gateway, validation, findings);
        count_validation(
            ended.state.name(),
            ended.progress.validated,
            started.elapsed().as_secs_f64(),
        );
    }
    gateway.validations.lock().running = None;
}

fn ended_process_error() -> GatewayError {
    let detail = format!(
        "the process ended unexpectedly {MAX_RUNS} times while this validation ran; look for the cause in the log of the \
         system, and validate again"
    );
    GatewayError::new(ErrorClass::Internal, detail)
}

fn fail_running(gateway: &Gateway) {
    let running = gateway.validations.lock().running.clone();
    if let Some((mut validation, _)) = running {
        validation.state = ValidationState::Failed;
        validation.error =
            Some("the machine has no capacity for a validation now; try again later".to_owned());
        keep_ended(gateway, validation, Findings::default());
    }
}

/// Validates all members, batch by batch. Others get the same time as a batch takes.
fn validate(
    gateway: &Gateway,
    validation: &mut Validation,
    findings: &mut Findings,
    cancellation: &Cancellation,
) -> Result<(), GatewayError> {
    let compiled = gateway.catalogue.get(&validation.business_object).ok_or_else(|| {
        GatewayError::new(ErrorClass::NotFound, "the Business Object was deleted")
    })?;
    let limits = gateway.settings.limits.shapes;
    let limits = Limits {
        time: limits.time,
        deadline: None,
        memory: limits.memory,
        violations: usize::MAX,
        cancellation: cancellation.clone(),
    };
    let mut stored = StoredValidation::new(gateway.store.snapshot()?, &compiled, limits)?;
    validation.commit = Some(stored.commit());
    let shapes = stored.shapes().iter();
    validation.shapes = shapes
        .map(|(name, version)| UsedShapes { name: name.clone(), version: *version })
        .collect();
    validation.progress =
        Progress { validated: 0, expected: Some(stored.count_members(cancellation)?) };
    loop {
        show_progress(gateway, validation);
        let started = Instant::now();
        let Some(batch) = stored.validate_batch()? else { return Ok(()) };
        if cancellation.is_cancelled() {
            return Ok(());
        }
        for violation in &batch.violations {
            findings.add(violation)?;
        }
        validation.progress.validated += batch.members as u64;
        validation.counts = findings.counts;
        thread::sleep(started.elapsed().min(MAX_PAUSE));
    }
}

/// Shows clients how far the running validation is.
fn show_progress(gateway: &Gateway, validation: &Validation) {
    let mut queue = gateway.validations.lock();
    if let Some((running, _)) = &mut queue.running {
        // A client may have cancelled it.
        *running = Validation { state: running.state, ..validation.clone() };
    }
}

/// Keeps a validation that has ended, and publishes its event. Blocking.
pub(super) fn keep_ended(
    gateway: &Gateway,
    mut validation: Validation,
    findings: Findings,
) -> Validation {
    // What was deleted, or is being deleted, must not stay in a report.
    let found = gateway.catalogue.get(&validation.business_object);
    let is_deleted = found.is_none_or(|found| found.object.deleting.is_some());
    let findings = if is_deleted { Findings::default() } else { findings };
    validation.ended_at = Some(format_rfc3339(gateway.clock.now()));
    validation.counts = findings.counts;
    validation.listed = findings.listed;
    let folder = gateway.validations.lock().kept.folder();
    let written = findings.into_file(validation.clone()).and_then(|content| {
        write_file(&folder, &validation.id, &content).map(|()| content.len() as u64)
    });
    let bytes = written.unwrap_or_else(|error| {
        tracing::warn!(%error, id = validation.id, "Writing the report of a validation failed.");
        if validation.state == ValidationState::Finished {
            validation.state = ValidationState::Failed;
            validation.conforms = None;
            validation.error = Some(format!(
                "writing the report failed: {error}; free disk space and validate again"
            ));
        }
        validation.listed = 0;
        0
    });
    remove_unended(&folder, &validation.id);
    let mut queue = gateway.validations.lock();
    queue.kept.add(validation.clone(), bytes);
    if queue.running.as_ref().is_some_and(|(running, _)| running.id == validation.id) {
        queue.running = None;
    }
    drop(queue);
    tracing::info!(
        id = validation.id,
        business_object = validation.business_object_name,
        state = validation.state.name(),
        violations = validation.counts.total(),
        "A validation ended."
    );
    gateway.events.publish_unstored(None, EventKind::Validation, &validation.id, &validation);
    validation
}
