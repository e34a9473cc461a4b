//! Exponential backoff.
use std::time::Duration;

/// Returns the delay after this number of failures in a row: `first` after one, doubled with each further failure, at
/// most `max`.
pub fn exponential_delay(first: Duration, failures: u64, max: Duration) -> Duration {
    let doublings =
        u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(u32::BITS - 1);
    first.saturating_mul(1 << doublings).min(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum() {
        let delay = |failures| {
            exponential_delay(Duration::from_secs(5), failures, Duration::from_mins(5)).as_secs()
        };
        assert_eq!([1, 2, 3, 6, 7, 40, u64::MAX].map(delay), [5, 10, 20, 160, 300, 300, 300]);
        assert_eq!(delay(0), 5);
    }
}
