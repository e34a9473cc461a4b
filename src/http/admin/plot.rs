//! Plots of counts over time, as SVG that the server makes.
use super::words;

/// The height above the line, and that below it where something stands there.
const UP: u64 = 90;
const DOWN: u64 = 30;
/// The width of one bar with the gap behind it.
const STEP: u64 = 10;

/// One plot: counts upwards, and what went wrong downwards.
#[derive(Debug)]
pub(super) struct Plot {
    pub(super) heading: &'static str,
    /// The sum, in words.
    pub(super) total: String,
    /// All that it shows, for those who do not see it.
    pub(super) words: String,
    /// When it begins, in words.
    pub(super) from: &'static str,
    /// What the highest bar stands for.
    pub(super) most: String,
    pub(super) bars: Vec<Bar>,
    /// Where the line is.
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

/// What a plot is of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Of {
    pub(super) heading: &'static str,
    /// One of what it counts, and more of it.
    pub(super) one: &'static str,
    pub(super) more: &'static str,
    /// The same of what goes downwards; empty where nothing does.
    pub(super) wrong: (&'static str, &'static str),
    pub(super) from: &'static str,
    /// What one bar stands for: `1 min`.
    pub(super) step: &'static str,
}

impl Plot {
    /// The plot of these pairs of counts, the oldest first.
    pub(super) fn new(of: Of, counts: &[(u64, u64)]) -> Self {
        let sum = |side: fn(&(u64, u64)) -> u64| counts.iter().map(side).sum::<u64>();
        let most = counts.iter().map(|(up, _)| *up).max().unwrap_or_default();
        let most_down = counts.iter().map(|(_, down)| *down).max().unwrap_or_default();
        let has_down = most_down > 0;
        let scaled = |count: u64, most: u64, height: u64| match most {
            0 => 0,
            // What there is at all is seen.
            _ => (u128::from(count) * u128::from(height)).div_ceil(u128::from(most)),
        };
        let mut bars = Vec::new();
        for (at, (up, down)) in (0..).zip(counts) {
            for (class, count, most, side) in
                [("up", *up, most, UP), ("down", *down, most_down, DOWN)]
            {
                let height = u64::try_from(scaled(count, most, side)).unwrap_or(side);
                let y = if class == "up" { UP - height } else { UP };
                if height > 0 {
                    bars.push(Bar { class, x: at * STEP, y, width: STEP - 2, height });
                }
            }
        }
        let mut total = words::many(sum(|(up, _)| *up), of.one, of.more);
        if has_down {
            let (one, more) = of.wrong;
            total = format!("{total}, {}", words::many(sum(|(_, down)| *down), one, more));
        }
        let highest = match most {
            0 => String::new(),
            _ => format!("at most {} in {}", words::number(most), of.step),
        };
        let separator = if highest.is_empty() { "" } else { "; " };
        Self {
            words: format!("{}: {total}{separator}{highest}", of.heading),
            heading: of.heading,
            total,
            from: of.from,
            most: highest,
            bars,
            zero: UP,
            steps: counts.len() as u64,
            has_down,
        }
    }

    pub(super) fn width(&self) -> u64 {
        self.steps * STEP
    }

    pub(super) fn height(&self) -> u64 {
        if self.has_down { UP + DOWN } else { UP + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF: Of = Of {
        heading: "Exports, last hour",
        one: "delivered",
        more: "delivered",
        wrong: ("failed attempt", "failed attempts"),
        from: "60 min ago",
        step: "1 min",
    };

    #[test]
    fn the_highest_bar_fills_the_plot_and_the_least_is_seen() {
        let plot = Plot::new(OF, &[(0, 0), (1, 0), (1_000_000, 2)]);
        let bar = |class, x, y, height| Bar { class, x, y, width: 8, height };
        assert_eq!(
            plot.bars,
            [bar("up", 10, 89, 1), bar("up", 20, 0, 90), bar("down", 20, 90, 30)]
        );
        assert_eq!((plot.width(), plot.height()), (30, 120));
        assert_eq!(
            plot.words,
            "Exports, last hour: 1,000,001 delivered, 2 failed attempts; at most 1,000,000 in 1 min"
        );
    }

    #[test]
    fn nothing_is_a_line() {
        let plot = Plot::new(OF, &[(0, 0); 60]);
        assert!(plot.bars.is_empty());
        assert_eq!(plot.words, "Exports, last hour: 0 delivered");
        let plot = Plot::new(OF, &[(u64::MAX / 2, 0)]);
        assert_eq!(plot.bars.len(), 1);
    }
}
