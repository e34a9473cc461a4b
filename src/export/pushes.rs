//! Limits concurrent pushes. A push renders on a blocking thread, and there are only a few of these. So pushes wait
//! for a permit without occupying a thread. Those of one Business Object get it in order of arrival. A waiting push
//! is dropped when its client disconnects.
use super::{Exporter, render};
use parking_lot::Mutex;
use penstock_base::account_slots::{AccountSlot, AccountSlots};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_model::resource::Compiled;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The maximum number of concurrent pushes. A Business Object has at most one of them.
const MAX_CONCURRENT_PUSHES: usize = 3;
/// The maximum number of pushes that run or wait. One account may have half of them.
const MAX_PENDING_PUSHES: usize = 64;
/// The `Retry-After` of a push that is refused because too many wait.
const PUSH_RETRY_AFTER: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct PushLimiter {
    pending: AccountSlots,
    running: Arc<Semaphore>,
    /// One permit for each Business Object id.
    by_business_object: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Default for PushLimiter {
    fn default() -> Self {
        Self {
            pending: AccountSlots::new(MAX_PENDING_PUSHES),
            running: Arc::new(Semaphore::new(MAX_CONCURRENT_PUSHES)),
            by_business_object: Mutex::default(),
        }
    }
}

/// A permit to push, released on drop.
#[derive(Debug)]
pub struct PushPermit {
    _place: AccountSlot,
    _permits: [OwnedSemaphorePermit; 2],
}

impl PushLimiter {
    fn object_semaphore(&self, id: &str) -> Arc<Semaphore> {
        let mut of_one = self.by_business_object.lock();
        Arc::clone(of_one.entry(id.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(1))))
    }

    /// Waits for a permit. Returns `None` if too many pushes wait already.
    async fn acquire_permit(&self, account: &str, id: &str) -> Option<PushPermit> {
        let place = self.pending.try_acquire(account)?;
        let of_one = self.object_semaphore(id).acquire_owned().await.ok()?;
        let at_once = Arc::clone(&self.running).acquire_owned().await.ok()?;
        Some(PushPermit { _place: place, _permits: [of_one, at_once] })
    }
}

impl Exporter {
    /// Waits for the permit of an account to push this Business Object with [`Self::push`]. Hold the permit until the push
    /// is done.
    ///
    /// # Errors
    /// `ErrorClass::Unavailable` if too many pushes wait, or if the gateway stops.
    pub async fn acquire_push_permit(
        &self,
        account: &str,
        business_object: &Compiled,
    ) -> Result<PushPermit, GatewayError> {
        let inner = &*self.inner;
        let permit = inner.pushes.acquire_permit(account, &business_object.object.id).await;
        render::check_not_stopping(&inner.stopping)?;
        permit.ok_or_else(|| {
            GatewayError::new(
                ErrorClass::Unavailable(PUSH_RETRY_AFTER),
                format!(
                    "{MAX_PENDING_PUSHES} pushes run or wait already, or half as many of this account, so `{}` was not \
                     pushed; retry in {} s, and wait for the answer before the next push",
                    business_object.object.definition.name,
                    PUSH_RETRY_AFTER.as_secs()
                ),
            )
        })
    }

    /// Cancels the rendering in progress and prevents further rendering, because the gateway stops.
    pub fn stop_rendering(&self) {
        self.inner.stopping.store(true, Ordering::Relaxed);
    }
}
