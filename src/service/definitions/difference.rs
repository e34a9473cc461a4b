//! The difference between two definitions, line by line.

/// The number of unchanged lines around a change.
const CONTEXT_LINES: usize = 2;
/// The maximum product of the numbers of lines that are compared with each other. Beyond it, all of them count as changed.
const MAX_COMPARISONS: usize = 4_000_000;

/// A line and what a change does with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'t> {
    Same(&'t str),
    Removed(&'t str),
    Added(&'t str),
}

/// Returns the lines that differ, with `-` and `+` before them, and some unchanged ones around them. `…` is in the place of
/// further unchanged lines.
pub(super) fn compare_lines(before: &[String], after: &[String]) -> Vec<String> {
    let lines = align_lines(before, after);
    let is_change = |line: &Line<'_>| !matches!(line, Line::Same(_));
    let mut shown = Vec::new();
    let mut is_cut = false;
    for (index, line) in lines.iter().enumerate() {
        let from = index.saturating_sub(CONTEXT_LINES);
        let mut near = lines.iter().skip(from).take(index - from + CONTEXT_LINES + 1);
        if !near.any(is_change) {
            is_cut = true;
            continue;
        }
        if std::mem::take(&mut is_cut) {
            shown.push("  …".to_owned());
        }
        shown.push(match line {
            Line::Same(text) => format!("  {text}"),
            Line::Removed(text) => format!("- {text}"),
            Line::Added(text) => format!("+ {text}"),
        });
    }
    shown
}

/// Aligns the lines by their longest common subsequence.
fn align_lines<'t>(before: &'t [String], after: &'t [String]) -> Vec<Line<'t>> {
    let common_start = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let (start, before) = before.split_at(common_start);
    let (_, after) = after.split_at(common_start);
    let common_end =
        before.iter().rev().zip(after.iter().rev()).take_while(|(one, other)| one == other).count();
    let (before, end) = before.split_at(before.len() - common_end);
    let (after, _) = after.split_at(after.len() - common_end);
    let mut lines: Vec<Line<'_>> = start.iter().map(|line| Line::Same(line)).collect();
    lines.extend(align_middle(before, after));
    lines.extend(end.iter().map(|line| Line::Same(line)));
    lines
}

fn align_middle<'t>(before: &'t [String], after: &'t [String]) -> Vec<Line<'t>> {
    if before.len().saturating_mul(after.len()) > MAX_COMPARISONS {
        let removed = before.iter().map(|line| Line::Removed(line));
        return removed.chain(after.iter().map(|line| Line::Added(line))).collect();
    }
    let lengths = common_lengths(before, after);
    let length = |row: usize, column: usize| {
        lengths.get(row).and_then(|row| row.get(column)).copied().unwrap_or_default()
    };
    let (mut row, mut column) = (0, 0);
    let mut lines = Vec::new();
    loop {
        match (before.get(row), after.get(column)) {
            (Some(one), Some(other)) if one == other => {
                lines.push(Line::Same(one));
                (row, column) = (row + 1, column + 1);
            }
            (Some(one), other)
                if other.is_none() || length(row + 1, column) >= length(row, column + 1) =>
            {
                lines.push(Line::Removed(one));
                row += 1;
            }
            (_, Some(other)) => {
                lines.push(Line::Added(other));
                column += 1;
            }
            (_, None) => return lines,
        }
    }
}

/// Returns for each pair of ends of the texts the length of their longest common subsequence.
fn common_lengths(before: &[String], after: &[String]) -> Vec<Vec<u32>> {
    let mut rows = vec![vec![0; after.len() + 1]];
    for one in before.iter().rev() {
        let below = rows.last().map_or(&[][..], Vec::as_slice);
        let mut row = vec![0; after.len() + 1];
        let mut right = 0;
        for (column, other) in after.iter().enumerate().rev() {
            let under = |column: usize| below.get(column).copied().unwrap_or_default();
            let best = if one == other { under(column + 1) + 1 } else { under(column).max(right) };
            if let Some(place) = row.get_mut(column) {
                *place = best;
            }
            right = best;
        }
        rows.push(row);
    }
    rows.reverse();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(before: &str, after: &str) -> String {
        let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        compare_lines(&lines(before), &lines(after)).join("|")
    }

    #[test]
    fn changed_lines_are_shown_with_their_surroundings() {
        assert_eq!(compare("a b c", "a b c"), "");
        assert_eq!(compare("a b c", "a x c"), "  a|- b|+ x|  c");
        assert_eq!(compare("a b", "a b c"), "  a|  b|+ c");
        assert_eq!(
            compare("1 2 3 4 5 6 7 8 9", "1 2 3 4 x 6 7 8 9"),
            "  …|  3|  4|- 5|+ x|  6|  7"
        );
        assert_eq!(compare("1 2 3 4 5 6 7", "x 2 3 4 5 6 7 y"), "- 1|+ x|  2|  3|  …|  6|  7|+ y");
        assert_eq!(compare("a b c d", "b a c d e"), "- a|  b|+ a|  c|  d|+ e");
    }

    #[test]
    fn large_texts_are_not_compared_line_by_line() {
        let text = |letter: char| (0..3000).map(|n| format!("{letter}{n}")).collect::<Vec<_>>();
        let shown = compare_lines(&text('a'), &text('b'));
        assert_eq!(
            (shown.len(), shown[0].as_str(), shown[5999].as_str()),
            (6000, "- a0", "+ b2999")
        );
    }
}
