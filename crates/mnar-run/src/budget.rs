//! A time limit as people write it: `45s`, `2m`, `1h 30m`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How long something may take.
///
/// ```
/// let budget: mnar_run::Budget = "1m 30s".parse()?;
/// assert_eq!(budget.seconds(), 90.0);
/// assert_eq!(budget.to_string(), "1m 30s");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Budget(Duration);

/// Longer times are slips, and could not be added to the present one.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

impl Budget {
    /// The time in seconds.
    pub fn seconds(self) -> f64 {
        self.0.as_secs_f64()
    }
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match humantime::parse_duration(text.trim()) {
            Ok(time) if !time.is_zero() && time <= LONGEST => Ok(Self(time)),
            _ => Err("expected a time with its unit, at most a year, such as 45s, 2m or 1h".to_owned()),
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl TryFrom<String> for Budget {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Budget> for String {
    fn from(budget: Budget) -> Self {
        budget.to_string()
    }
}
