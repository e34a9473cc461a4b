//! Plots of counts over time, as SVG rendered by the server.
use super::words;

/// The height above the line.
const HEIGHT_ABOVE: u64 = 90;
/// The height below the line, in plots with failures.
const HEIGHT_BELOW: u64 = 30;
/// The width of one bar together with the gap after it.
const BAR_STEP: u64 = 10;

/// One plot: counts upwards, and failures downwards.
#[derive(Debug)]
pub(super) struct Plot {
    pub(super) heading: &'static str,
    /// The sum, in words.
    pub(super) total: String,
    /// The content as text, for screen readers.
    pub(super) words: String,
    /// The start of the plot, in words.
    pub(super) from: &'static str,
    /// The value of the highest bar.
    pub(super) most: String,
    pub(super) bars: Vec<Bar>,
    /// The vertical position of the line, where counts are zero.
    pub(super) zero: u64,
    steps: u64,
    has_down: bool,
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

/// The description of a plot.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlotSpec {
    pub(super) heading: &'static str,
    /// The singular and plural of what it counts.
    pub(super) singular: &'static str,
    pub(super) plural: &'static str,
    /// The same for failures; empty if there are none.
    pub(super) failure_nouns: (&'static str, &'static str),
    pub(super) from: &'static str,
    /// The period of one bar: `min` or `15 min`.
    pub(super) step: &'static str,
}

impl Plot {
    /// Creates the plot of these pairs of counts, the oldest first.
    pub(super) fn new(spec: PlotSpec, counts: &[(u64, u64)]) -> Self {
        let sum = |side: fn(&(u64, u64)) -> u64| counts.iter().map(side).sum::<u64>();
        let most = counts.iter().map(|(up, _)| *up).max().unwrap_or_default();
        let most_down = counts.iter().map(|(_, down)| *down).max().unwrap_or_default();
        let has_down = most_down > 0;
        let scaled = |count: u64, most: u64, height: u64| match most {
            0 => 0,
            // Rounds up, so that any count above zero is visible.
            _ => (u128::from(count) * u128::from(height)).div_ceil(u128::from(most)),
        };
        let mut bars = Vec::new();
        for (at, (up, down)) in (0..).zip(counts) {
            for (class, count, most, side) in
                [("up", *up, most, HEIGHT_ABOVE), ("down", *down, most_down, HEIGHT_BELOW)]
            {
                let height = u64::try_from(scaled(count, most, side)).unwrap_or(side);
                let y = if class == "up" { HEIGHT_ABOVE - height } else { HEIGHT_ABOVE };
                if height > 0 {
                    bars.push(Bar { class, x: at * BAR_STEP, y, width: BAR_STEP - 2, height });
                }
            }
        }
        let mut total = words::format_count(sum(|(up, _)| *up), spec.singular, spec.plural);
        if has_down {
            let (one, more) = spec.failure_nouns;
            total = format!("{total}, {}", words::format_count(sum(|(_, down)| *down), one, more));
        }
        let highest = match most {
            0 => String::new(),
            _ => format!("peak {}/{}", words::format_number(most), spec.step),
        };
        let separator = if highest.is_empty() { "" } else { "; " };
        Self {
            words: format!("{}: {total}{separator}{highest}", spec.heading),
            heading: spec.heading,
            total,
            from: spec.from,
            most: highest,
            bars,
            zero: HEIGHT_ABOVE,
            steps: counts.len() as u64,
            has_down,
        }
    }

    pub(super) fn width(&self) -> u64 {
        self.steps * BAR_STEP
    }

    pub(super) fn height(&self) -> u64 {
        if self.has_down { HEIGHT_ABOVE + HEIGHT_BELOW } else { HEIGHT_ABOVE + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: PlotSpec = PlotSpec {
        heading: "Exports, last hour",
        singular: "delivered",
        plural: "delivered",
        failure_nouns: ("failed attempt", "failed attempts"),
        from: "60 min ago",
        step: "min",
    };

    #[test]
    fn the_highest_bar_fills_the_plot_and_the_lowest_is_visible() {
        let plot = Plot::new(SPEC, &[(0, 0), (1, 0), (1_000_000, 2)]);
        let bar = |class, x, y, height| Bar { class, x, y, width: 8, height };
        assert_eq!(
            plot.bars,
            [bar("up", 10, 89, 1), bar("up", 20, 0, 90), bar("down", 20, 90, 30)]
        );
        assert_eq!((plot.width(), plot.height()), (30, 120));
        assert_eq!(
            plot.words,
            "Exports, last hour: 1,000,001 delivered, 2 failed attempts; peak 1,000,000/min"
        );
    }

    #[test]
    fn a_plot_without_counts_is_a_line() {
        let plot = Plot::new(SPEC, &[(0, 0); 60]);
        assert!(plot.bars.is_empty());
        assert_eq!(plot.words, "Exports, last hour: 0 delivered");
        let plot = Plot::new(SPEC, &[(u64::MAX / 2, 0)]);
        assert_eq!(plot.bars.len(), 1);
    }
}
