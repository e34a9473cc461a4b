//! How far the writer is, for who watches it and must wait for nothing.
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// What the writer of a store is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// Nothing.
    Idle,
    /// It makes a change, by the rules of who asked for it.
    Changing,
    /// It writes a frame to the journal.
    Appending,
    /// It brings a commit into the index.
    Applying,
    /// It waits until the journal is on the medium, for a checkpoint.
    Syncing,
    /// It writes the index out.
    WritingOut,
}

impl Stage {
    const ALL: [Self; 6] = [
        Self::Idle,
        Self::Changing,
        Self::Appending,
        Self::Applying,
        Self::Syncing,
        Self::WritingOut,
    ];
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "nothing",
            Self::Changing => "making a change",
            Self::Appending => "writing to the journal",
            Self::Applying => "bringing a commit into the index",
            Self::Syncing => "waiting for the journal to be on the medium",
            Self::WritingOut => "writing the index out",
        })
    }
}

/// Counts what the writer does.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    count: AtomicU64,
    stage: AtomicU8,
}

impl Steps {
    /// One more thing is done.
    pub(crate) fn step(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// It goes over to another stage, which ends with what is given, if not before.
    pub(crate) fn begin(&self, stage: Stage) -> Begun<'_> {
        self.stage.store(stage as u8, Ordering::Relaxed);
        Begun(self)
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn stage(&self) -> Stage {
        let stage = usize::from(self.stage.load(Ordering::Relaxed));
        Stage::ALL.get(stage).copied().unwrap_or(Stage::Idle)
    }
}

/// A stage; the writer is idle after it.
pub(crate) struct Begun<'a>(&'a Steps);

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.0.stage.store(Stage::Idle as u8, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stage_is_the_one_that_was_begun() {
        let steps = Steps::default();
        assert_eq!(steps.stage(), Stage::Idle);
        for stage in Stage::ALL {
            let begun = steps.begin(stage);
            assert_eq!(steps.stage(), stage);
            drop(begun);
            assert_eq!(steps.stage(), Stage::Idle);
        }
    }
}
