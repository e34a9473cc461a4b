//! The memory that all bodies may use at once, and the slots of unauthenticated clients.
use crate::problem::Problem;
use parking_lot::Mutex;
use penstock_base::memory::Memory;
use penstock_base::network;
use penstock_resources::gateway::MemoryLevel;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// The maximum number of bytes of all concurrent small bodies of authenticated clients.
const AUTHENTICATED_QUOTA_BYTES: u64 = 4 << 20;
/// The maximum number of bytes of all concurrent bodies of unauthenticated clients.
const UNAUTHENTICATED_QUOTA_BYTES: u64 = 1 << 20;
/// The maximum number of bytes of a body of an unauthenticated client: an email, a password and a return
/// path, percent-encoded.
pub(super) const MAX_UNAUTHENTICATED_BODY_BYTES: u64 = 10 << 10;
/// The maximum number of concurrent request bodies of unauthenticated clients from one address (for IPv6,
/// from one /64).
const MAX_BODIES_PER_ADDRESS: usize = 8;
/// The maximum number of concurrent request bodies of all unauthenticated clients. Together they fit into
/// their quota, so that none is refused because of the size of others.
const MAX_UNAUTHENTICATED_BODIES: usize = 96;
/// The maximum number of bytes of a body that is accepted while memory is short.
const MAX_BODY_BYTES_WHEN_MEMORY_SHORT: u64 = 1 << 20;

/// Limits the bytes of all bodies of one kind that are in memory at once.
#[derive(Debug)]
pub struct BodyQuota {
    /// Each permit is for [`BodyQuota::PERMIT_BYTES`] bytes.
    permits: Arc<Semaphore>,
    /// The number of permits.
    total_permits: usize,
    /// `None` for a quota so small that its bodies are accepted even while memory is short.
    memory: Option<Memory>,
}

/// The quotas for bodies. Small bodies, and those of unauthenticated clients, have separate quotas, so that
/// they never use up the quota of data.
#[derive(Debug)]
pub struct BodyQuotas {
    /// For data and definitions (`service.limits.in-flight`).
    pub data: BodyQuota,
    /// For small bodies of authenticated clients.
    pub(super) authenticated: BodyQuota,
    /// For bodies of unauthenticated clients.
    pub(super) unauthenticated: BodyQuota,
    pub(super) incoming: IncomingBodies,
}

impl BodyQuotas {
    /// Creates the quotas, with this many bytes for data, for a process with this memory limit.
    pub fn new(data: u64, memory: &Memory) -> Self {
        let quota = |bytes| BodyQuota::new(bytes, memory.clone());
        Self {
            data: quota(data),
            authenticated: quota(AUTHENTICATED_QUOTA_BYTES),
            // Users must be able to sign in even while memory is short and other bodies are arriving.
            unauthenticated: BodyQuota { memory: None, ..quota(UNAUTHENTICATED_QUOTA_BYTES) },
            incoming: IncomingBodies::default(),
        }
    }
}

/// The part of a quota that one body holds. Dropping it releases it.
#[derive(Debug)]
pub struct BodyPermit {
    held: OwnedSemaphorePermit,
    memory: Option<Memory>,
}

impl BodyQuota {
    const PERMIT_BYTES: u64 = 1024;

    /// Creates a quota of this many bytes for a process with this memory limit.
    pub fn new(bytes: u64, memory: Memory) -> Self {
        let permits = usize::try_from(bytes / Self::PERMIT_BYTES).unwrap_or(usize::MAX);
        let total_permits = permits.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            permits: Arc::new(Semaphore::new(total_permits)),
            total_permits,
            memory: Some(memory),
        }
    }

    /// Returns a permit for a body of this many bytes, or 503. While memory is short, it accepts only bodies of
    /// up to [`MAX_BODY_BYTES_WHEN_MEMORY_SHORT`], one at a time, so that clients still make progress.
    pub fn try_acquire(&self, bytes: u64) -> Result<BodyPermit, Problem> {
        let is_alone = self.permits.available_permits() == self.total_permits;
        if is_memory_short(self.memory.as_ref())
            && (bytes > MAX_BODY_BYTES_WHEN_MEMORY_SHORT || !is_alone)
        {
            return Err(memory_short_problem());
        }
        // A body of unknown length takes at least one permit.
        let units = u32::try_from(bytes.div_ceil(Self::PERMIT_BYTES).max(1)).unwrap_or(u32::MAX);
        self.acquire_units(units)
    }

    /// Returns an empty permit, for memory that reading a body takes besides its bytes. The body has its own permit, so
    /// while memory is short this one needs no turn of its own.
    pub(crate) fn acquire_working_memory(&self) -> Result<BodyPermit, Problem> {
        self.acquire_units(0)
    }

    fn acquire_units(&self, units: u32) -> Result<BodyPermit, Problem> {
        let held = self.permits.clone().try_acquire_many_owned(units);
        let held = held.map_err(|_| Self::exhausted_problem())?;
        Ok(BodyPermit { held, memory: self.memory.clone() })
    }

    fn exhausted_problem() -> Problem {
        Problem::unavailable(
            1,
            "the bodies of other requests use up the limit (service.limits.in-flight for data); try again",
        )
    }
}

impl BodyPermit {
    /// Extends the permit to this many bytes.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), Problem> {
        let units = (bytes as u64).div_ceil(BodyQuota::PERMIT_BYTES);
        let more = units.saturating_sub(self.held.num_permits() as u64);
        if more > 0 {
            if bytes as u64 > MAX_BODY_BYTES_WHEN_MEMORY_SHORT
                && is_memory_short(self.memory.as_ref())
            {
                return Err(memory_short_problem());
            }
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            let more = Arc::clone(self.held.semaphore()).try_acquire_many_owned(more);
            self.held.merge(more.map_err(|_| BodyQuota::exhausted_problem())?);
        }
        Ok(())
    }
}

fn is_memory_short(memory: Option<&Memory>) -> bool {
    memory.is_some_and(|memory| memory.current_level() == MemoryLevel::Short)
}

/// 503: the process has used nearly all of its memory limit.
fn memory_short_problem() -> Problem {
    Problem::unavailable(
        5,
        "memory is short (service.limits.memory, or the limit of the gateway's control group): bodies of up \
         to 1 MiB are accepted one at a time, larger ones are not; try again, or send less at once",
    )
}

/// The bodies of unauthenticated clients that are arriving. A new body always gets a slot. If all slots of its
/// address, or of all clients, are in use, the oldest of these bodies is cut off. So slow clients never prevent
/// others from signing in, however many addresses they use.
#[derive(Debug, Default)]
pub(super) struct IncomingBodies(Mutex<IncomingSlots>);

#[derive(Debug, Default)]
struct IncomingSlots {
    next: u64,
    /// The bodies in the order in which they began, each with its address. Dropping the sender cuts the body off.
    bodies: BTreeMap<u64, (Option<IpAddr>, oneshot::Sender<()>)>,
}

/// The slot of one such body. Dropping this value frees the slot.
pub(super) struct IncomingSlot<'a> {
    incoming: &'a IncomingBodies,
    id: u64,
}

impl IncomingBodies {
    /// Takes a slot. The receiver resolves when another body takes the slot away.
    pub(super) fn take_slot(
        &self,
        from: Option<IpAddr>,
    ) -> (IncomingSlot<'_>, oneshot::Receiver<()>) {
        let from = from.map(network::network_of);
        let (keep, cut_off) = oneshot::channel();
        let mut slots = self.0.lock();
        let mut own = slots.bodies.iter().filter(|(_, (address, _))| *address == from);
        let slowest = match (own.next(), own.count() + 1) {
            (Some((id, _)), count) if count >= MAX_BODIES_PER_ADDRESS => Some(*id),
            _ if slots.bodies.len() >= MAX_UNAUTHENTICATED_BODIES => {
                slots.bodies.keys().next().copied()
            }
            _ => None,
        };
        if let Some(id) = slowest {
            slots.bodies.remove(&id);
        }
        let id = slots.next;
        slots.next += 1;
        slots.bodies.insert(id, (from, keep));
        (IncomingSlot { incoming: self, id }, cut_off)
    }
}

impl Drop for IncomingSlot<'_> {
    fn drop(&mut self) {
        self.incoming.0.lock().bodies.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot::error::TryRecvError::{Closed, Empty};

    #[test]
    fn the_quota_of_all_bodies_is_limited() {
        let quota = BodyQuota::new(10 * 1024, Memory::new(None));
        let mut first = quota.try_acquire(6 * 1024).unwrap();
        assert!(quota.try_acquire(5 * 1024).is_err());
        first.grow_to(10 * 1024).unwrap();
        assert!(first.grow_to(10 * 1024 + 1).is_err());
        assert!(quota.try_acquire(1).is_err());
        drop(first);
        quota.try_acquire(10 * 1024).unwrap();
    }

    #[tokio::test]
    async fn a_new_body_of_an_unauthenticated_client_always_gets_a_slot() {
        let incoming = IncomingBodies::default();
        let address = |n: usize| Some(IpAddr::V4(u32::try_from(n).unwrap().into()));
        let mut held: Vec<_> =
            (0..MAX_UNAUTHENTICATED_BODIES).map(|n| incoming.take_slot(address(n))).collect();
        assert!(held.iter_mut().all(|(_, cut_off)| cut_off.try_recv() == Err(Empty)));
        let (slot, mut cut_off) = incoming.take_slot(address(1000));
        assert_eq!(held[0].1.try_recv(), Err(Closed));
        assert_eq!((held[1].1.try_recv(), cut_off.try_recv()), (Err(Empty), Err(Empty)));
        // Dropping a slot that was cut off frees no second slot.
        held.remove(0);
        assert_eq!(incoming.0.lock().bodies.len(), MAX_UNAUTHENTICATED_BODIES);
        drop((slot, held));
        assert!(incoming.0.lock().bodies.is_empty());

        // One address cuts off only its own bodies.
        let (_other, mut others) = incoming.take_slot(address(1));
        let network = |n: usize| Some(format!("2001:db8::{n:x}").parse().unwrap());
        let mut own: Vec<_> =
            (0..=MAX_BODIES_PER_ADDRESS).map(|n| incoming.take_slot(network(n))).collect();
        assert_eq!((own[0].1.try_recv(), own[1].1.try_recv()), (Err(Closed), Err(Empty)));
        assert_eq!(others.try_recv(), Err(Empty));
        assert!(
            MAX_UNAUTHENTICATED_BODIES as u64 * MAX_UNAUTHENTICATED_BODY_BYTES
                <= UNAUTHENTICATED_QUOTA_BYTES
        );
    }

    #[tokio::test]
    async fn users_can_sign_in_while_memory_is_short() {
        let quotas = BodyQuotas::new(64 << 20, &Memory::new(Some(1)));
        let _slow = quotas.unauthenticated.try_acquire(MAX_UNAUTHENTICATED_BODY_BYTES).unwrap();
        quotas.unauthenticated.try_acquire(MAX_UNAUTHENTICATED_BODY_BYTES).unwrap();
        let _known = quotas.authenticated.try_acquire(1).unwrap();
        assert!(quotas.authenticated.try_acquire(1).is_err());
    }

    #[test]
    fn accepts_small_bodies_one_at_a_time_while_memory_is_short() {
        let quota = BodyQuota::new(64 << 20, Memory::new(Some(1)));
        assert!(quota.try_acquire(MAX_BODY_BYTES_WHEN_MEMORY_SHORT + 1).is_err());
        let mut only_body = quota.try_acquire(10).unwrap();
        assert!(quota.try_acquire(10).is_err());
        only_body.grow_to(1 << 20).unwrap();
        assert!(only_body.grow_to((1 << 20) + 1024).is_err());
        drop(only_body);
        quota.try_acquire(MAX_BODY_BYTES_WHEN_MEMORY_SHORT).unwrap();
    }
}
