//! Texts that a spreadsheet would run as formulas.
//!
//! A label such as `=cmd|' /C calc'!A1` is text in a CSV file and a command once a spreadsheet opens it. A quote before it
//! makes it text there too. Reading takes the quote away again, so that names of rows that were written here still match
//! those of the data; a text that has such quotes of its own gets one more, so that no two texts become one.

/// What becomes of texts that a spreadsheet would take for formulas, in CSV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Formulas {
    /// A quote is put before them.
    #[default]
    Neutralised,
    /// They are written as they are.
    Kept,
}

/// Whether a spreadsheet would take a text for a formula. Numbers are not, nor are bare signs: `+` and `-` are the results
/// of many a laboratory.
fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r'])
        && !text.chars().all(|c| c == '+' || c == '-')
        && text.trim().parse::<f64>().is_err()
}

/// Whether a text is a formula behind any number of quotes.
fn is_quoted_formula(text: &str) -> bool {
    is_formula(text.trim_start_matches('\''))
}

/// Whether a quote has to be put before a text.
pub(crate) fn needs_quote(text: &str) -> bool {
    text.starts_with(['\'', '=', '+', '-', '@', '\t', '\r']) && is_quoted_formula(text)
}

/// The text without the quote that was put before it.
pub(crate) fn unquoted(text: &str) -> &str {
    match text.strip_prefix('\'') {
        Some(rest) if is_quoted_formula(rest) => rest,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn formulas_are_told_from_numbers_and_signs() {
        for text in ["=1+1", "=cmd|' /C calc'!A1", "+1+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''+a", "-x"] {
            assert!(needs_quote(text), "{text:?}");
        }
        for text in ["", "a=b", "-1", "+1.5e3", "-", "+", "+-", "--", "'", "'a", "''", "it's", "1=1", " =1"] {
            assert!(!needs_quote(text), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(text in "['=+@a1 \\-]{0,6}") {
            let written = if needs_quote(&text) { format!("'{text}") } else { text.clone() };
            prop_assert_eq!(unquoted(&written), &text);
        }
    }
}
