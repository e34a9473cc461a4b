//! The uplink that all deliveries share: its bandwidth and the window in which it may be used.
use chrono::{DateTime, Timelike as _, Utc};
use parking_lot::Mutex;
use penstock_config::DeliveryWindow;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// The maximum chunk size in bytes.
const MAX_CHUNK_BYTES: usize = 64 << 10;
/// The minimum chunk size in bytes.
const MIN_CHUNK_BYTES: usize = 1 << 10;
/// The number of chunks per second at a limited rate, so that the pauses do not make a server time out.
const CHUNKS_PER_SECOND: u64 = 4;

/// The least share of the bandwidth for segments of the backup: one part in so many.
const SEGMENTS_PART: u32 = 4;
/// The least share for a base of the backup while something else is sent, so that its server does not time out.
const BASE_PART: u32 = 16;

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Traffic {
    /// Exports and events. They respect the window.
    Export,
    /// Segments of the backup. They have a share of the bandwidth whatever else is sent.
    Segment,
    /// A base of the backup. It uses what the others leave.
    Base,
}

/// The uplink, shared by all targets.
#[derive(Debug)]
pub(super) struct Uplink {
    link: Arc<Link>,
    traffic: Traffic,
}

/// What the uplinks of all kinds of traffic share.
#[derive(Debug)]
struct Link {
    bytes_per_second: Option<u64>,
    window: Option<DeliveryWindow>,
    reserved: Mutex<Reserved>,
    /// Why nothing may be exported.
    hold: Mutex<Option<String>>,
}

/// The answer to a request for bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bandwidth {
    /// It is reserved. The bytes may be sent after this time.
    Reserved(Duration),
    /// Other traffic comes first. Ask again after this time.
    Busy(Duration),
}

/// What is reserved of a limited link.
#[derive(Debug)]
struct Reserved {
    /// When the bytes reserved so far will have been sent.
    free: Instant,
    /// When those of exports, events and segments will have been sent.
    others_free: Instant,
    /// When the next chunk of a segment may begin, whatever else is reserved.
    next_segment: Instant,
    /// The same for a base.
    next_base: Instant,
}

impl Uplink {
    pub(super) fn new(bytes_per_second: Option<u64>, window: Option<DeliveryWindow>) -> Self {
        let now = Instant::now();
        let reserved = Reserved { free: now, others_free: now, next_segment: now, next_base: now };
        let link = Link {
            bytes_per_second,
            window,
            reserved: Mutex::new(reserved),
            hold: Mutex::default(),
        };
        Self { link: Arc::new(link), traffic: Traffic::Export }
    }

    /// Returns the same uplink for another kind of traffic.
    pub(super) fn for_traffic(&self, traffic: Traffic) -> Self {
        Self { link: Arc::clone(&self.link), traffic }
    }

    /// Stops all exports and events, with the reason for it.
    pub(super) fn hold(&self, reason: String) {
        *self.link.hold.lock() = Some(reason);
    }

    /// Ends the hold.
    pub(super) fn release(&self) {
        *self.link.hold.lock() = None;
    }

    /// Returns why exports and events are stopped, if they are.
    pub(super) fn hold_reason(&self) -> Option<String> {
        self.link.hold.lock().clone()
    }

    /// Returns the chunk size in bytes.
    pub(super) fn chunk_bytes(&self) -> usize {
        let rate = self.link.bytes_per_second;
        let fitting = rate.map(|rate| usize::try_from(rate / CHUNKS_PER_SECOND));
        fitting
            .and_then(Result::ok)
            .map_or(MAX_CHUNK_BYTES, |chunk| chunk.clamp(MIN_CHUNK_BYTES, MAX_CHUNK_BYTES))
    }

    /// Returns whether the bandwidth is limited.
    pub(super) fn is_limited(&self) -> bool {
        self.link.bytes_per_second.is_some()
    }

    /// Waits until `bytes` may be sent.
    pub(super) async fn wait_for_bandwidth(&self, bytes: usize) {
        loop {
            let bandwidth = self.reserve_at(Instant::now(), bytes);
            let (Bandwidth::Reserved(wait) | Bandwidth::Busy(wait)) = bandwidth;
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            if matches!(bandwidth, Bandwidth::Reserved(_)) {
                return;
            }
        }
    }

    /// Waits as [`Self::wait_for_bandwidth`], on a thread that may block.
    pub(super) fn block_for_bandwidth(&self, bytes: usize) {
        loop {
            let bandwidth = self.reserve_at(Instant::now(), bytes);
            let (Bandwidth::Reserved(wait) | Bandwidth::Busy(wait)) = bandwidth;
            std::thread::sleep(wait);
            if matches!(bandwidth, Bandwidth::Reserved(_)) {
                return;
            }
        }
    }

    /// Reserves bandwidth. Only a base can be told to ask again.
    fn reserve_at(&self, now: Instant, bytes: usize) -> Bandwidth {
        let Some(rate) = self.link.bytes_per_second else {
            return Bandwidth::Reserved(Duration::ZERO);
        };
        let micros = (bytes as u64).saturating_mul(1_000_000) / rate.max(1);
        let time = Duration::from_micros(micros);
        let mut reserved = self.link.reserved.lock();
        let free = reserved.free.max(now);
        let begin = match self.traffic {
            Traffic::Export => {
                reserved.others_free = free + time;
                free
            }
            Traffic::Segment => {
                let begin = free.min(reserved.next_segment.max(now));
                reserved.others_free = reserved.others_free.max(begin + time);
                reserved.next_segment = begin + time * SEGMENTS_PART;
                begin
            }
            Traffic::Base => {
                let is_busy = reserved.others_free > now;
                if is_busy && reserved.next_base > now {
                    // What others have reserved may end before the next chunk is due. Then the base has the whole link.
                    return Bandwidth::Busy(reserved.others_free.min(reserved.next_base) - now);
                }
                let begin = if is_busy { now } else { free };
                reserved.next_base = begin + time * BASE_PART;
                begin
            }
        };
        reserved.free = free + time;
        Bandwidth::Reserved(begin - now)
    }

    /// Returns whether this traffic may be sent now: the delivery window is open, and nothing holds exports.
    pub(super) fn is_open(&self) -> bool {
        let is_in_window = |times: &DeliveryWindow| is_within(times, SystemTime::now().into());
        self.traffic != Traffic::Export
            || (self.link.hold.lock().is_none()
                && self.link.window.as_ref().is_none_or(is_in_window))
    }

    /// Returns why deliveries are paused and until when, or `None` if they are not.
    pub(super) fn pause_reason(&self) -> Option<String> {
        if let Some(reason) = self.hold_reason() {
            return Some(reason);
        }
        let times = self.link.window.as_ref()?;
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

    /// Reserves bandwidth for a chunk of 2,500 bytes, and returns in how many milliseconds it may be sent.
    fn reserve_chunk(uplink: &Uplink, now: Instant) -> u128 {
        match uplink.reserve_at(now, 2_500) {
            Bandwidth::Reserved(wait) => wait.as_millis(),
            Bandwidth::Busy(wait) => panic!("busy for {wait:?}"),
        }
    }

    #[test]
    fn bytes_are_sent_at_the_configured_rate() {
        let uplink = Uplink::new(Some(10_000), None);
        assert_eq!(uplink.chunk_bytes(), 2_500);
        let now = Instant::now();
        let waits = [(); 4].map(|()| reserve_chunk(&uplink, now));
        assert_eq!(waits, [0, 250, 500, 750]);
        let free = Uplink::new(None, None);
        assert_eq!(
            (free.chunk_bytes(), free.reserve_at(now, 1 << 30)),
            (MAX_CHUNK_BYTES, Bandwidth::Reserved(Duration::ZERO))
        );
        assert_eq!(Uplink::new(Some(1), None).chunk_bytes(), MIN_CHUNK_BYTES);
    }

    #[test]
    fn segments_have_a_share_and_a_base_gets_what_is_left() {
        let exports = Uplink::new(Some(10_000), None);
        let (segments, base) =
            (exports.for_traffic(Traffic::Segment), exports.for_traffic(Traffic::Base));
        let now = Instant::now();
        assert_eq!(reserve_chunk(&base, now), 0);
        for _ in 0..40 {
            reserve_chunk(&exports, now);
        }
        assert_eq!(reserve_chunk(&exports, now), 10_250);
        assert_eq!([(); 4].map(|()| reserve_chunk(&segments, now)), [0, 1_000, 2_000, 3_000]);
        // One chunk in sixteen, whatever else is sent.
        let due = Duration::from_secs(4);
        assert_eq!(base.reserve_at(now, 2_500), Bandwidth::Busy(due));
        assert_eq!(reserve_chunk(&base, now + due), 0);
        assert_eq!(base.reserve_at(now + due, 2_500), Bandwidth::Busy(due));
    }

    #[test]
    fn a_base_uses_an_idle_link_fully() {
        let exports = Uplink::new(Some(10_000), None);
        let base = exports.for_traffic(Traffic::Base);
        let now = Instant::now();
        assert_eq!([(); 4].map(|()| reserve_chunk(&base, now)), [0, 250, 500, 750]);
        assert_eq!(reserve_chunk(&exports, now), 1_000);
        let later = now + Duration::from_millis(750);
        let busy = Duration::from_millis(500);
        assert_eq!(base.reserve_at(later, 2_500), Bandwidth::Busy(busy));
        assert_eq!([(); 2].map(|()| reserve_chunk(&base, later + busy)), [0, 250]);
    }

    #[test]
    fn a_hold_stops_exports_but_not_the_backup() {
        let uplink = Uplink::new(None, None);
        let segments = uplink.for_traffic(Traffic::Segment);
        segments.hold("replaced".to_owned());
        assert!(!uplink.is_open() && segments.is_open());
        assert_eq!(uplink.pause_reason().as_deref(), Some("replaced"));
        uplink.release();
        assert!(uplink.is_open() && uplink.pause_reason().is_none());
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
