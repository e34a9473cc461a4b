//! The slot for long passes over the store: a compaction, packing, a backup, or reopening.
//!
//! A backup keeps its slot while it waits for its reader, so that no compaction removes frames that it still
//! needs. Reopening must not wait for a reader that has stalled: it borrows the slot from a waiting backup.
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long reopening waits for the reader of a backup that began on a poisoned store. That backup may be the
/// last one that saves the data.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
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
    state: Mutex<State>,
    changed: Condvar,
}

impl Slot {
    /// Waits until the slot is free, and takes it.
    pub(crate) fn take(&self) -> Taken<'_> {
        let mut state = self.wait_while(|state| state != State::Free);
        *state = State::Taken;
        Taken { slot: self, left: State::Free }
    }

    /// Takes the slot like [`Self::take`], or borrows it from a holder that waits for its reader.
    pub(crate) fn take_or_borrow(&self) -> Taken<'_> {
        let mut state = self.state();
        loop {
            let left = *state;
            match left {
                State::Free => {
                    *state = State::Taken;
                    return Taken { slot: self, left };
                }
                State::Lendable(from) => {
                    let wait = from.saturating_duration_since(Instant::now());
                    if wait.is_zero() {
                        *state = State::Borrowed;
                        return Taken { slot: self, left };
                    }
                    let waited = self.changed.wait_timeout(state, wait);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                State::Taken | State::Borrowed => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, is_in_the_way: impl Fn(State) -> bool) -> MutexGuard<'_, State> {
        self.changed
            .wait_while(self.state(), |state| is_in_the_way(*state))
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: State) {
        *self.state() = state;
        self.changed.notify_all();
    }
}

/// Holds the slot until dropped.
#[derive(Debug)]
pub(crate) struct Taken<'a> {
    slot: &'a Slot,
    /// The state that the slot returns to.
    left: State,
}

impl Taken<'_> {
    /// Runs `write`, which writes to a reader that may stall. The slot can be borrowed meanwhile: at once, or
    /// after [`PATIENCE`] if `is_last` (this pass may be the last one). Returns when the slot is given back.
    fn lend<T>(&self, is_last: bool, write: impl FnOnce() -> T) -> T {
        let patience = if is_last { PATIENCE } else { Duration::ZERO };
        self.slot.set(State::Lendable(Instant::now() + patience));
        let written = write();
        *self.slot.wait_while(|state| state == State::Borrowed) = State::Taken;
        written
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if self.left == State::Free {
            // A write that panicked may have left it borrowed.
            drop(self.slot.wait_while(|state| state == State::Borrowed));
        }
        self.slot.set(self.left);
    }
}

/// A writer that makes its slot available for borrowing while it waits for the reader.
pub(crate) struct Lending<'a> {
    pub(crate) out: &'a mut dyn Write,
    pub(crate) slot: &'a Taken<'a>,
    /// Whether this pass may be the last one that saves the data.
    pub(crate) is_last: bool,
}

impl Write for Lending<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.slot.lend(self.is_last, || self.out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.slot.lend(self.is_last, || self.out.flush())
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
            taken.lend(false, || {
                scope.spawn(|| {
                    let borrowing = slot.take_or_borrow();
                    borrowed.send(()).unwrap();
                    assert_eq!(*slot.state(), State::Borrowed);
                    drop(borrowing);
                });
                is_borrowed.recv_timeout(Duration::from_mins(1)).unwrap();
            });
            assert_eq!(*slot.state(), State::Taken);
        });
        drop(taken);
        assert_eq!(*slot.state(), State::Free);
        drop(slot.take_or_borrow());
        assert_eq!(*slot.state(), State::Free);
    }

    #[test]
    fn the_last_pass_lends_its_slot_only_after_some_time() {
        let slot = Slot::default();
        let taken = slot.take();
        let lent = taken.lend(true, || match *slot.state() {
            State::Lendable(from) => from.saturating_duration_since(Instant::now()),
            _ => Duration::ZERO,
        });
        assert!(lent > Duration::ZERO && lent <= PATIENCE, "{lent:?}");
    }
}
