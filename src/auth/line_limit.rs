//! Limits the lines that clients without credentials cause in the log. Otherwise they could fill it, and displace its
//! recent warnings and errors.
use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// The maximum number of lines in each [`LINE_WINDOW`].
const MAX_LINES_PER_WINDOW: u32 = 10;
const LINE_WINDOW: Duration = Duration::from_mins(1);

/// The limit of one kind of lines. It has the start of the current window, and the number of lines in it.
#[derive(Debug, Default)]
pub(super) struct LineLimit(Mutex<Option<(Instant, u32)>>);

impl LineLimit {
    /// Counts a line. Returns whether it may be written.
    pub(super) fn take_permit(&self, now: Instant) -> bool {
        // A panic cannot leave the window half changed.
        let mut window = self.0.lock();
        let (begun, lines) = window.get_or_insert((now, 0));
        if now.duration_since(*begun) >= LINE_WINDOW {
            (*begun, *lines) = (now, 0);
        }
        *lines = lines.saturating_add(1);
        *lines <= MAX_LINES_PER_WINDOW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_some_lines_a_minute_are_written() {
        let (limit, now) = (LineLimit::default(), Instant::now());
        let written = |now| (0..100).filter(|_| limit.take_permit(now)).count();
        assert_eq!(written(now), 10);
        assert_eq!(written(now + LINE_WINDOW / 2), 0);
        assert_eq!(written(now + LINE_WINDOW), 10);
    }
}
