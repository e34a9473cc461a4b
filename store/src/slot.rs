//! The slot for long passes over the store: a compaction, packing, a backup, or reopening.
//!
//! A backup keeps its slot while it waits for its reader, so that no compaction removes frames that it still
//! needs. Reopening must not wait for a reader that has stalled: it borrows the slot from a waiting backup.
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// How long reopening waits for the reader of a backup that began on a poisoned store. That backup may be the
/// last one that saves the data.
const LAST_BACKUP_WAIT: Duration = Duration::from_secs(10);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum SlotState {
    #[default]
    Free,
    Taken,
    /// The holder waits for a reader. The slot can be borrowed from this moment on.
    Lendable(Instant),
    Borrowed,
}

/// A slot that one pass holds at a time.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    state: Mutex<SlotState>,
    changed: Condvar,
}

impl Slot {
    /// Waits until the slot is free, and takes it.
    pub(crate) fn take(&self) -> SlotGuard<'_> {
        let mut state = self.wait_while(|state| state != SlotState::Free);
        *state = SlotState::Taken;
        SlotGuard { slot: self, state_after: SlotState::Free }
    }

    /// Takes the slot if it is free.
    pub(crate) fn try_take(&self) -> Option<SlotGuard<'_>> {
        let mut state = self.lock_state();
        (*state == SlotState::Free).then(|| {
            *state = SlotState::Taken;
            SlotGuard { slot: self, state_after: SlotState::Free }
        })
    }

    /// Takes the slot like [`Self::take`], or borrows it from a holder that waits for its reader.
    pub(crate) fn take_or_borrow(&self) -> SlotGuard<'_> {
        let mut state = self.lock_state();
        loop {
            let before = *state;
            match before {
                SlotState::Free => {
                    *state = SlotState::Taken;
                    return SlotGuard { slot: self, state_after: before };
                }
                SlotState::Lendable(from) => {
                    let wait = from.saturating_duration_since(Instant::now());
                    if wait.is_zero() {
                        *state = SlotState::Borrowed;
                        return SlotGuard { slot: self, state_after: before };
                    }
                    self.changed.wait_for(&mut state, wait);
                }
                SlotState::Taken | SlotState::Borrowed => self.changed.wait(&mut state),
            }
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock()
    }

    fn wait_while(&self, is_blocking: impl Fn(SlotState) -> bool) -> MutexGuard<'_, SlotState> {
        let mut state = self.lock_state();
        self.changed.wait_while(&mut state, |state| is_blocking(*state));
        state
    }

    fn set_state(&self, state: SlotState) {
        *self.lock_state() = state;
        self.changed.notify_all();
    }
}

/// Holds the slot until dropped.
#[derive(Debug)]
pub(crate) struct SlotGuard<'a> {
    slot: &'a Slot,
    /// The state that the slot returns to.
    state_after: SlotState,
}

impl SlotGuard<'_> {
    /// Runs `write`, which writes to a reader that may stall. The slot can be borrowed meanwhile: at once, or
    /// after [`LAST_BACKUP_WAIT`] if `is_last` (this pass may be the last one that saves the data). Returns
    /// when the borrower has returned the slot.
    fn lend_during<T>(&self, is_last: bool, write: impl FnOnce() -> T) -> T {
        let delay = if is_last { LAST_BACKUP_WAIT } else { Duration::ZERO };
        self.slot.set_state(SlotState::Lendable(Instant::now() + delay));
        let written = write();
        *self.slot.wait_while(|state| state == SlotState::Borrowed) = SlotState::Taken;
        written
    }
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        if self.state_after == SlotState::Free {
            // A write that panicked may have left it borrowed.
            drop(self.slot.wait_while(|state| state == SlotState::Borrowed));
        }
        self.slot.set_state(self.state_after);
    }
}

/// A writer that makes its slot available for borrowing while it waits for the reader.
pub(crate) struct LendingWriter<'a> {
    pub(crate) out: &'a mut dyn Write,
    pub(crate) slot: &'a SlotGuard<'a>,
    /// Whether this pass may be the last one that saves the data.
    pub(crate) is_last: bool,
}

impl Write for LendingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.slot.lend_during(self.is_last, || self.out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.slot.lend_during(self.is_last, || self.out.flush())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn a_borrowed_slot_is_returned_before_its_holder_continues() {
        let slot = Slot::default();
        let taken = slot.take();
        let (borrowed, is_borrowed) = channel();
        thread::scope(|scope| {
            taken.lend_during(false, || {
                scope.spawn(|| {
                    let borrowing = slot.take_or_borrow();
                    borrowed.send(()).unwrap();
                    assert_eq!(*slot.lock_state(), SlotState::Borrowed);
                    drop(borrowing);
                });
                is_borrowed.recv_timeout(Duration::from_mins(1)).unwrap();
            });
            assert_eq!(*slot.lock_state(), SlotState::Taken);
        });
        drop(taken);
        assert_eq!(*slot.lock_state(), SlotState::Free);
        drop(slot.take_or_borrow());
        assert_eq!(*slot.lock_state(), SlotState::Free);
    }

    #[test]
    fn the_last_pass_lends_its_slot_only_after_some_time() {
        let slot = Slot::default();
        let taken = slot.take();
        let lent = taken.lend_during(true, || match *slot.lock_state() {
            SlotState::Lendable(from) => from.saturating_duration_since(Instant::now()),
            _ => Duration::ZERO,
        });
        assert!(lent > Duration::ZERO && lent <= LAST_BACKUP_WAIT, "{lent:?}");
    }
}
