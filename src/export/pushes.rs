//! Limits concurrent pushes. A push renders on a blocking thread, and there are only a few of these. So pushes wait
//! for a permit without occupying a thread. Those of one Business Object get it in order of arrival. A waiting push
//! is dropped when its client disconnects.
use super::render;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::permits::{Permit, Permits};
use penstock_model::resource::Compiled;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The maximum number of concurrent pushes. A Business Object has at most one of them.
const MAX_CONCURRENT_PUSHES: u64 = 3;
/// The maximum number of pushes that run or wait. One account may have half of them.
const MAX_PENDING_PUSHES: usize = 64;
/// The `Retry-After` of a push that is refused because too many wait.
const PUSH_RETRY_AFTER: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct PushLimiter {
    /// By account.
    pending: Permits<String>,
    /// By the id of the Business Object.
    running: Permits<String>,
}

impl Default for PushLimiter {
    fn default() -> Self {
        Self {
            pending: Permits::for_accounts(MAX_PENDING_PUSHES),
            running: Permits::new(MAX_CONCURRENT_PUSHES, 1),
        }
    }
}

/// A permit to push, released on drop.
#[derive(Debug)]
pub struct PushPermit {
    _pending: Permit<String>,
    _running: Permit<String>,
}

impl PushLimiter {
    /// Waits for the permit of an account to push this Business Object.
    ///
    /// # Errors
    /// `ErrorClass::Unavailable` if too many pushes wait, or if the gateway stops.
    pub(super) async fn acquire_permit(
        &self,
        account: &str,
        business_object: &Compiled,
        stopping: &AtomicBool,
    ) -> Result<PushPermit, GatewayError> {
        let permit = match self.pending.try_acquire(account, 1) {
            Some(pending) => {
                let running = self.running.acquire(&business_object.object.id).await;
                Some(PushPermit { _pending: pending, _running: running })
            }
            None => None,
        };
        render::check_not_stopping(stopping)?;
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
}
