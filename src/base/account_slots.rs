//! Slots for work that all accounts share: a total, and a share of it for each account, so that no account holds all.
use super::shared_limit::{LimitShare, SharedLimit};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

/// The slots of one kind of work. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AccountSlots {
    total: usize,
    limit: SharedLimit<String>,
    freed: Arc<Notify>,
}

/// A slot of an account. Dropping it frees the slot.
#[derive(Debug)]
pub struct AccountSlot {
    share: Option<LimitShare<String>>,
    freed: Arc<Notify>,
}

impl AccountSlots {
    /// Creates this many slots, of which one account may hold half, but at least one.
    pub fn new(total: usize) -> Self {
        let limit = SharedLimit::new(total as u64, (total as u64 / 2).max(1));
        Self { total, limit, freed: Arc::default() }
    }

    /// Returns a slot of this account if it and the total allow one now.
    pub fn try_acquire(&self, account: &str) -> Option<AccountSlot> {
        if self.total == 0 {
            // The limit would let a single one pass.
            return None;
        }
        let share = self.limit.try_acquire(&account.to_owned(), 1)?;
        Some(AccountSlot { share: Some(share), freed: self.freed.clone() })
    }

    /// Waits at most this long for a slot of this account.
    pub async fn acquire(&self, account: &str, within: Duration) -> Option<AccountSlot> {
        let wait = async {
            loop {
                // Registered before it looks for a slot, so that one that is freed meanwhile is noticed.
                let mut freed = std::pin::pin!(self.freed.notified());
                freed.as_mut().enable();
                if let Some(slot) = self.try_acquire(account) {
                    return slot;
                }
                freed.await;
            }
        };
        timeout(within, wait).await.ok()
    }
}

impl Drop for AccountSlot {
    fn drop(&mut self) {
        drop(self.share.take());
        self.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn an_account_holds_half_and_leaves_the_rest_to_others() {
        let slots = AccountSlots::new(4);
        let own = [slots.try_acquire("a"), slots.try_acquire("a")];
        assert!(own.iter().all(Option::is_some) && slots.try_acquire("a").is_none());
        assert!(slots.acquire("a", SHORT).await.is_none());
        let others = [slots.acquire("b", SHORT).await, slots.acquire("c", SHORT).await];
        assert!(others.iter().all(Option::is_some) && slots.try_acquire("d").is_none());
        let waiting = tokio::spawn({
            let slots = slots.clone();
            async move { slots.acquire("a", LONG).await.is_some() }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(others);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "its own share is used up");
        drop(own);
        assert!(waiting.await.unwrap());
    }

    #[test]
    fn a_single_slot_is_for_anyone() {
        let slots = AccountSlots::new(1);
        let slot = slots.try_acquire("a").unwrap();
        assert!(slots.try_acquire("b").is_none());
        drop(slot);
        assert!(slots.try_acquire("b").is_some());
        assert!(AccountSlots::new(0).try_acquire("a").is_none());
    }
}
