//! The uplink that all deliveries share: its bandwidth and the window in which it may be used.
use chrono::{DateTime, Timelike as _, Utc};
use parking_lot::Mutex;
use penstock_config::DeliveryWindow;
use std::time::{Duration, Instant, SystemTime};

/// The maximum chunk size in bytes.
const MAX_CHUNK_BYTES: usize = 64 << 10;
/// The minimum chunk size in bytes.
const MIN_CHUNK_BYTES: usize = 1 << 10;
/// The number of chunks per second at a limited rate, so that the pauses do not make a server time out.
const CHUNKS_PER_SECOND: u64 = 4;

/// The uplink, shared by all targets.
#[derive(Debug)]
pub(super) struct Uplink {
    bytes_per_second: Option<u64>,
    window: Option<DeliveryWindow>,
    /// When the bytes reserved so far will have been sent.
    free_at: Mutex<Instant>,
}

impl Uplink {
    pub(super) fn new(bytes_per_second: Option<u64>, window: Option<DeliveryWindow>) -> Self {
        Self { bytes_per_second, window, free_at: Mutex::new(Instant::now()) }
    }

    /// Returns the chunk size in bytes.
    pub(super) fn chunk_bytes(&self) -> usize {
        let fitting = self.bytes_per_second.map(|rate| usize::try_from(rate / CHUNKS_PER_SECOND));
        fitting
            .and_then(Result::ok)
            .map_or(MAX_CHUNK_BYTES, |chunk| chunk.clamp(MIN_CHUNK_BYTES, MAX_CHUNK_BYTES))
    }

    /// Reserves bandwidth for `bytes` and returns how long to wait before sending them.
    pub(super) fn reserve_bytes(&self, bytes: usize) -> Duration {
        let Some(rate) = self.bytes_per_second else { return Duration::ZERO };
        let mut free = self.free_at.lock();
        let now = Instant::now();
        let begin = (*free).max(now);
        let micros = (bytes as u64).saturating_mul(1_000_000) / rate.max(1);
        *free = begin + Duration::from_micros(micros);
        begin - now
    }

    /// Returns whether the delivery window is open.
    pub(super) fn is_open(&self) -> bool {
        self.window.as_ref().is_none_or(|times| is_within(times, SystemTime::now().into()))
    }

    /// Returns why deliveries are paused and until when, or `None` while the window is open.
    pub(super) fn pause_reason(&self) -> Option<String> {
        let times = self.window.as_ref()?;
        let now = DateTime::<Utc>::from(SystemTime::now());
        if is_within(times, now) {
            return None;
        }
        let (window, zone) = (&times.window, &times.zone);
        let minutes = (1..=2 * 24 * 60).map(|minutes| now + chrono::TimeDelta::minutes(minutes));
        let opens = minutes
            .into_iter()
            .find(|at| is_within(times, *at))
            .map(|at| format!("; it opens at {}", zone.local_time_at(at).format("%Y-%m-%d %H:%M")));
        Some(format!(
            "outside of `service.export.window` ({window} {zone}){}",
            opens.unwrap_or_default()
        ))
    }
}

fn is_within(times: &DeliveryWindow, at: DateTime<Utc>) -> bool {
    let local = times.zone.local_time_at(at);
    let minute = local.hour() * 60 + local.minute();
    u16::try_from(minute).is_ok_and(|minute| times.window.contains_minute(minute))
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_config::Window;

    fn times(window: &str, zone: &str) -> DeliveryWindow {
        DeliveryWindow { window: window.parse::<Window>().unwrap(), zone: zone.parse().unwrap() }
    }

    #[test]
    fn bytes_are_sent_at_the_configured_rate() {
        let uplink = Uplink::new(Some(10_000), None);
        assert_eq!(uplink.chunk_bytes(), 2_500);
        let waits: Vec<_> = (0..4).map(|_| uplink.reserve_bytes(2_500).as_millis()).collect();
        assert!(
            waits[0] == 0 && waits[1] <= 250 && waits[3] <= 750 && waits[3] > waits[1],
            "{waits:?}"
        );
        let free = Uplink::new(None, None);
        assert_eq!(
            (free.chunk_bytes(), free.reserve_bytes(1 << 30)),
            (MAX_CHUNK_BYTES, Duration::ZERO)
        );
        assert_eq!(Uplink::new(Some(1), None).chunk_bytes(), MIN_CHUNK_BYTES);
    }

    #[test]
    fn the_window_follows_its_time_zone_through_clock_changes() {
        let night = times("22:00-06:00", "Europe/Berlin");
        for (at, open) in [
            ("2026-01-10T20:59:59Z", false),
            ("2026-01-10T21:00:00Z", true),
            ("2026-07-10T20:00:00Z", true),
            ("2026-07-10T04:00:00Z", false),
        ] {
            assert_eq!(is_within(&night, at.parse().unwrap()), open, "{at}");
        }
        // On 2026-03-29 the clock jumps from 02:00 to 03:00: a window within that hour is skipped.
        let skipped = times("02:10-02:50", "Europe/Berlin");
        assert!((0..24 * 60).all(|minute| {
            let at: DateTime<Utc> = "2026-03-28T23:00:00Z".parse().unwrap();
            !is_within(&skipped, at + chrono::TimeDelta::minutes(minute))
        }));
        // On 2026-10-25 the hour from 02:00 happens twice, and so does the window.
        let open = |minute| {
            let at: DateTime<Utc> = "2026-10-24T22:00:00Z".parse().unwrap();
            is_within(&skipped, at + chrono::TimeDelta::minutes(minute))
        };
        assert_eq!((0..24 * 60).filter(|minute| open(*minute)).count(), 80);
    }

    #[test]
    fn a_pause_reports_when_it_ends() {
        let now = DateTime::<Utc>::from(SystemTime::now()).format("%H").to_string();
        let later = (now.parse::<u32>().unwrap() + 2) % 24;
        let window = format!("{later:02}:00-{later:02}:30");
        let uplink = Uplink::new(None, Some(times(&window, "UTC")));
        assert!(!uplink.is_open());
        let reason = uplink.pause_reason().unwrap();
        assert!(
            reason.contains("it opens at 20") && reason.contains(&format!(" {later:02}:00")),
            "{reason}"
        );
    }
}
