//! Confidence thresholds of pseudo-label methods: tau_k = tau_0 (a_k / max a)^beta, where a is the mechanism phi (the
//! most observed class has the highest threshold) or the class shares (the CADR rule).

/// The adaptive thresholds for `by`, one per class. `beta` = 0 gives the fixed threshold.
///
/// ```
/// let tau = mnar::threshold::adaptive(0.95, &[0.1, 0.4], 0.5);
/// assert!((tau[0] - 0.475).abs() < 1e-12 && tau[1] == 0.95);
/// ```
pub fn adaptive(tau_0: f64, by: &[f64], beta: f64) -> Vec<f64> {
    let max = by.iter().copied().fold(f64::MIN, f64::max);
    by.iter().map(|a| tau_0 * (a / max).powf(beta)).collect()
}
