//! Plots over time, as SVG rendered by the server. All plots of a page have the same time axis, so that they align.
use super::words;

/// The height of the plotted area.
const HEIGHT: u64 = 100;
/// The width of one period.
const STEP: u64 = 10;
/// The steps of an axis within a power of ten. Half of each is a whole number.
const ROUND_STEPS: [u64; 5] = [2, 4, 6, 8, 10];

/// The kind of the numbers of a plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Whole numbers.
    Count,
    /// Bytes.
    Bytes,
}

/// A series of a plot: its class, which has the color, its label, and a value for each period. A period without a value
/// is a gap.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) class: &'static str,
    pub(super) label: &'static str,
    pub(super) values: Vec<Option<u64>>,
}

/// One plot: the series are stacked.
#[derive(Debug)]
pub(super) struct Plot {
    pub(super) heading: String,
    /// The class and the label of each series, with its value.
    pub(super) legend: Vec<(&'static str, String)>,
    /// The labels of the axis, from the top: the highest value, half of it, and zero.
    pub(super) axis: [String; 3],
    /// The content as text, for screen readers.
    pub(super) words: String,
    pub(super) bars: Vec<Bar>,
    /// The height of a limit.
    pub(super) limit: Option<u64>,
    periods: u64,
}

/// One bar.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) class: &'static str,
    pub(super) x: u64,
    pub(super) y: u64,
    pub(super) width: u64,
    pub(super) height: u64,
}

impl Plot {
    /// Creates a plot of rates: bars with gaps between them. Each label in the legend has the total of its series.
    /// `factor` converts the count of a period to the rate that the axis shows.
    pub(super) fn of_rates(heading: String, mut series: Vec<Series>, factor: u64) -> Self {
        let totals = series.iter().map(|one| {
            let total =
                one.values.iter().flatten().fold(0_u64, |sum, value| sum.saturating_add(*value));
            (one.class, format!("{}: {} in total", one.label, words::format_number(total)))
        });
        let legend: Vec<_> = totals.collect();
        for value in series.iter_mut().flat_map(|one| one.values.iter_mut().flatten()) {
            *value = value.saturating_mul(factor);
        }
        Self::new(heading, legend, &series, Bars::OfRates)
    }

    /// Creates a plot of levels: bars without gaps. The label in the legend has the value of `now`. `limit` is a level
    /// that matters, with its label.
    pub(super) fn of_levels(
        heading: String,
        series: Series,
        now: Option<u64>,
        unit: Unit,
        limit: Option<(&'static str, u64)>,
    ) -> Self {
        let now = now.map_or_else(|| "unknown".to_owned(), |now| unit.format(now));
        let mut legend = vec![(series.class, format!("{}: {now}", series.label))];
        legend.extend(
            limit.map(|(label, value)| ("limit", format!("{label}: {}", unit.format(value)))),
        );
        let limit = limit.map(|(_, value)| value);
        Self::new(heading, legend, &[series], Bars::OfLevels { unit, limit })
    }

    fn new(
        heading: String,
        legend: Vec<(&'static str, String)>,
        series: &[Series],
        kind: Bars,
    ) -> Self {
        let (unit, limit) = match kind {
            Bars::OfRates => (Unit::Count, None),
            Bars::OfLevels { unit, limit } => (unit, limit),
        };
        let periods = series.iter().map(|one| one.values.len()).max().unwrap_or_default();
        let sum_at = |at: usize| {
            series.iter().filter_map(|one| *one.values.get(at)?).fold(0, u64::saturating_add)
        };
        let highest = (0..periods).map(sum_at).max().unwrap_or_default();
        let top = unit.round_up(highest.max(limit.unwrap_or_default()));
        let mut bars = Vec::new();
        for at in 0..periods {
            let (x, mut below, mut from) = (at as u64 * STEP, 0_u64, 0);
            for Series { class, values, .. } in series {
                let Some(value) = values.get(at).copied().flatten() else { continue };
                if value == 0 && kind == Bars::OfRates {
                    continue;
                }
                below = below.saturating_add(value);
                // Any value is visible, if need be in front of the one below it.
                let to = scale_to_height(below, top).max(from + 1).min(HEIGHT);
                from = from.min(to - 1);
                bars.push(Bar { class, x, y: HEIGHT - to, width: kind.width(), height: to - from });
                from = to;
            }
        }
        let shown: Vec<&str> = legend.iter().map(|(_, label)| label.as_str()).collect();
        let words =
            format!("{heading}: {}; highest value {}", shown.join(", "), unit.format(highest));
        Self {
            axis: [unit.format(top), unit.format_half(top), "0".to_owned()],
            heading,
            words,
            bars,
            limit: limit.map(|limit| HEIGHT - scale_to_height(limit, top)),
            legend,
            periods: periods as u64,
        }
    }

    pub(super) fn width(&self) -> u64 {
        self.periods * STEP
    }

    pub(super) fn height() -> u64 {
        HEIGHT
    }

    /// Returns the positions of the lines that divide the time into quarters.
    pub(super) fn quarters(&self) -> [u64; 3] {
        [1, 2, 3].map(|quarter| self.width() * quarter / 4)
    }
}

/// The kind of the bars of a plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bars {
    /// Bars with gaps between them. A rate of zero has none.
    OfRates,
    /// Bars without gaps. A level of zero has one too, because without one the level is unknown.
    OfLevels { unit: Unit, limit: Option<u64> },
}

impl Bars {
    fn width(self) -> u64 {
        match self {
            Self::OfRates => STEP - 2,
            Self::OfLevels { .. } => STEP,
        }
    }
}

impl Unit {
    fn format(self, value: u64) -> String {
        match self {
            Self::Count => words::format_number(value),
            Self::Bytes => words::format_size(value),
        }
    }

    /// Formats half of a value; empty if it is not a whole number.
    fn format_half(self, value: u64) -> String {
        if value.is_multiple_of(2) { self.format(value / 2) } else { String::new() }
    }

    /// Returns the lowest round value that is not less than this one, and whose half is a whole number.
    fn round_up(self, value: u64) -> u64 {
        if self == Self::Bytes {
            return value.max(2).checked_next_power_of_two().unwrap_or(u64::MAX);
        }
        let mut power = 1_u64;
        while value > power.saturating_mul(10) {
            power = power.saturating_mul(10);
        }
        let step = ROUND_STEPS.into_iter().find(|step| step.saturating_mul(power) >= value);
        step.unwrap_or(10).saturating_mul(power)
    }
}

/// Scales a value to the height of the plot, rounded up.
fn scale_to_height(value: u64, top: u64) -> u64 {
    let scaled = (u128::from(value) * u128::from(HEIGHT)).div_ceil(u128::from(top.max(1)));
    u64::try_from(scaled).unwrap_or(HEIGHT).min(HEIGHT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(class: &'static str, label: &'static str, values: &[u64]) -> Series {
        Series { class, label, values: values.iter().copied().map(Some).collect() }
    }

    #[test]
    fn rates_are_stacked_on_a_round_axis_and_the_lowest_is_visible() {
        let changed = series("up", "changed", &[0, 1, 700_000]);
        let unchanged = series("again", "unchanged", &[0, 0, 300_000]);
        let plot = Plot::of_rates("Objects per minute".to_owned(), vec![changed, unchanged], 1);
        let bar = |class, x, y, height| Bar { class, x, y, width: 8, height };
        assert_eq!(
            plot.bars,
            [bar("up", 10, 99, 1), bar("up", 20, 30, 70), bar("again", 20, 0, 30)]
        );
        assert_eq!(plot.axis, ["1,000,000", "500,000", "0"]);
        assert_eq!((plot.width(), plot.quarters()), (30, [7, 15, 22]));
        assert_eq!(
            plot.words,
            "Objects per minute: changed: 700,001 in total, unchanged: 300,000 in total; highest value 1,000,000"
        );
        let hourly = Plot::of_rates(String::new(), vec![series("up", "changed", &[3])], 4);
        assert_eq!(hourly.axis, ["20", "10", "0"]);
        assert_eq!(hourly.legend, [("up", "changed: 3 in total".to_owned())]);
    }

    #[test]
    fn levels_have_gaps_a_limit_and_the_value_of_now() {
        let values = vec![None, Some(50 << 20), Some(100 << 20), Some(0), None];
        let memory = Series { class: "level", label: "in use", values };
        let (now, limit) = (Some(90 << 20), Some(("limit", 300 << 20)));
        let plot = Plot::of_levels("Memory".to_owned(), memory, now, Unit::Bytes, limit);
        assert_eq!(plot.axis, ["512 MiB", "256 MiB", "0"]);
        // A level of zero is not a gap.
        let bars: Vec<_> = plot.bars.iter().map(|bar| (bar.x, bar.height)).collect();
        assert_eq!(bars, [(10, 10), (20, 20), (30, 1)]);
        assert_eq!(plot.limit, Some(41));
        assert_eq!(plot.words, "Memory: in use: 90 MiB, limit: 300 MiB; highest value 100 MiB");
        let nothing = Series { class: "level", label: "free", values: vec![None; 60] };
        let plot = Plot::of_levels("Disk".to_owned(), nothing, None, Unit::Bytes, None);
        assert!(plot.bars.is_empty() && plot.legend == [("level", "free: unknown".to_owned())]);
        let most = series("up", "changed", &[u64::MAX, 1]);
        assert_eq!(Plot::of_rates(String::new(), vec![most], 4).bars.len(), 2);
    }

    #[test]
    fn a_low_value_beside_a_high_one_is_visible() {
        let plot_of = |delivered, failed| {
            let delivered = series("up", "delivered", &[delivered]);
            let failed = series("down", "failed attempts", &[failed]);
            let plot = Plot::of_rates(String::new(), vec![delivered, failed], 1);
            plot.bars.into_iter().map(|bar| (bar.class, bar.y, bar.height)).collect::<Vec<_>>()
        };
        assert_eq!(plot_of(10_010, 1), [("up", 49, 51), ("down", 48, 1)]);
        // At the top it is in front of the other.
        assert_eq!(plot_of(19_999, 1), [("up", 0, 100), ("down", 0, 1)]);
        assert_eq!(plot_of(0, 1), [("down", 50, 50)]);
    }

    #[test]
    fn an_axis_ends_at_a_round_value_with_a_whole_half() {
        for (value, top) in
            [(0, 2), (1, 2), (3, 4), (5, 6), (10, 10), (11, 20), (500, 600), (801, 1000)]
        {
            assert_eq!(Unit::Count.round_up(value), top);
        }
        for (value, top) in
            [(0, 2), (700, 1024), (1025, 2 << 10), (600 << 20, 1 << 30), (90 << 20, 128 << 20)]
        {
            assert_eq!(Unit::Bytes.round_up(value), top);
        }
        assert_eq!(Unit::Bytes.round_up(u64::MAX), u64::MAX);
        assert!(Unit::Count.round_up(u64::MAX) > u64::MAX / 2);
    }
}
