//! JSON has no NaN: serde writes it as null, and these functions read it back.

use serde::{Deserialize, Deserializer};

/// Reads a number; null stands for NaN.
pub fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(or_nan(Option::deserialize(deserializer)?))
}

/// Reads a list of numbers, some of which may be null.
pub fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<f64>>, D::Error> {
    let numbers = Option::<Vec<Option<f64>>>::deserialize(deserializer)?;
    Ok(numbers.map(|numbers| numbers.into_iter().map(or_nan).collect()))
}

/// Reads a list of intervals, some of whose ends may be null.
pub fn intervals<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<(f64, f64)>>, D::Error> {
    let intervals = Option::<Vec<(Option<f64>, Option<f64>)>>::deserialize(deserializer)?;
    Ok(intervals.map(|all| all.into_iter().map(|(low, high)| (or_nan(low), or_nan(high))).collect()))
}

fn or_nan(number: Option<f64>) -> f64 {
    number.unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    struct Held {
        #[serde(deserialize_with = "super::number")]
        one: f64,
        #[serde(deserialize_with = "super::numbers")]
        many: Option<Vec<f64>>,
        #[serde(deserialize_with = "super::intervals")]
        pairs: Option<Vec<(f64, f64)>>,
    }

    #[test]
    fn what_was_written_is_read_and_nan_stays_nan() {
        let held = Held { one: f64::NAN, many: Some(vec![0.5, f64::NAN]), pairs: Some(vec![(0.1, f64::NAN)]) };
        let text = serde_json::to_string(&held).unwrap();
        assert_eq!(text, r#"{"one":null,"many":[0.5,null],"pairs":[[0.1,null]]}"#);
        let again: Held = serde_json::from_str(&text).unwrap();
        let (many, pairs) = (again.many.unwrap(), again.pairs.unwrap());
        assert!(again.one.is_nan() && many[0] == 0.5 && many[1].is_nan());
        assert!(pairs[0].0 == 0.1 && pairs[0].1.is_nan());
        let none: Held = serde_json::from_str(r#"{"one":1.0,"many":null,"pairs":null}"#).unwrap();
        assert!(none.one == 1.0 && none.many.is_none() && none.pairs.is_none());
    }
}
