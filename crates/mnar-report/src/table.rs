//! Text tables that fit a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns of text, the first left-aligned and shortened to fit, the others right-aligned.
pub struct TextTable {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Columns of a usual terminal.
const WIDTH: usize = 80;

impl TextTable {
    /// A table with these headings.
    pub fn new(header: &[&str]) -> Self {
        Self { header: header.iter().map(|text| (*text).to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a line with as many cells as there are headings.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Renders the table in 80 columns, as far as shortening the first column allows.
    pub fn render(&self) -> String {
        let columns = self.header.len();
        let mut widths: Vec<usize> = (0..columns)
            .map(|j| {
                let cells = self.rows.iter().map(|row| row[j].width());
                cells.chain([self.header[j].width()]).max().unwrap_or(0)
            })
            .collect();
        let others: usize = widths[1..].iter().map(|width| width + 2).sum();
        widths[0] = widths[0].min(WIDTH.saturating_sub(others + 2).max(8));
        let mut out = String::new();
        for row in std::iter::once(&self.header).chain(&self.rows) {
            let mut line = format!("  {}", pad(&shorten(&row[0], widths[0]), widths[0]));
            for (cell, &width) in row[1..].iter().zip(&widths[1..]) {
                line.push_str("  ");
                line.push_str(&" ".repeat(width.saturating_sub(cell.width())));
                line.push_str(cell);
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Whether a character would move the cursor, start an escape sequence, or reorder the text around it: controls, the marks
/// of bidirectional text, and the separators of lines and paragraphs.
pub fn is_unsettling(c: char) -> bool {
    let bidirectional =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || bidirectional || matches!(c, '\u{2028}' | '\u{2029}')
}

/// One line of text, with the characters replaced that would upset a terminal or the text around it.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if is_unsettling(c) { '\u{fffd}' } else { c }).collect()
}

/// The same for text of several lines, which may have tabs.
pub fn printable_lines(text: &str) -> String {
    text.chars().map(|c| if is_unsettling(c) && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect()
}

/// A name for a sentence or a heading, cut to this many letters.
pub fn cut(name: &str, letters: usize) -> String {
    let name = printable(name);
    match name.char_indices().nth(letters) {
        None => name,
        Some(_) => name.chars().take(letters.saturating_sub(1)).collect::<String>() + "…",
    }
}

/// The text, printable and cut to the width with an ellipsis.
fn shorten(text: &str, width: usize) -> String {
    let text = printable(text);
    if text.width() <= width {
        return text;
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let next = c.width().unwrap_or(0);
        if used + next + 1 > width {
            break;
        }
        out.push(c);
        used += next;
    }
    out.push('…');
    out
}

/// Two significant digits below 0.001 in size, four decimals otherwise; a dash if the number is not finite.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        "-".to_owned()
    } else if value.abs() > f64::MIN_POSITIVE && value.abs() < 0.001 {
        format!("{value:.1e}")
    } else {
        format!("{value:.4}")
    }
}

/// The two ends of an interval.
pub fn interval((low, high): (f64, f64)) -> String {
    if low.is_finite() && high.is_finite() { format!("{}–{}", number(low), number(high)) } else { "-".to_owned() }
}

/// A p-value as text, `p < 0.0001` where it is smaller.
pub fn p_value(p: f64) -> String {
    if p < 0.0001 { "p < 0.0001".to_owned() } else { format!("p = {p:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_wide_names_are_cut_to_eighty_columns() {
        let mut table = TextTable::new(&["class", "labels", "phi"]);
        table.row(vec!["数".repeat(60), "12".into(), "0.1234".into()]);
        table.row(vec!["a\u{1b}[31m".into(), "3".into(), "0.2".into()]);
        let text = table.render();
        assert!(text.lines().all(|line| line.width() <= 80), "{text}");
        assert!(text.contains('…') && !text.contains('\u{1b}'));
    }
}
