//! On real data, where `MNAR_DATA` names a folder with them.

use crate::fit::{FOLDS, REGRESSION, cross_fit, default_estimate};
use crate::worlds;
use anyhow::Result;
use mnar::test::PermutationTest;
use mnar::{Phi, Sample};
use std::path::PathBuf;

/// 5,620 digits, of which 5% to 23% are labelled by class: phi is found, and the test rejects.
#[test]
fn optdigits_mechanism_is_found() -> Result<()> {
    let data = std::env::var_os("MNAR_DATA").map(PathBuf::from);
    let Some(data) = data.filter(|data| data.join("optdigits").is_dir()) else {
        eprintln!("skipped: MNAR_DATA does not name a folder with optdigits/");
        return Ok(());
    };
    let world = worlds::optdigits(&data)?;
    let rows = world.draw(0);
    let truth = Phi::new((0..10).map(|k| 0.05 + 0.02 * k as f64).collect())?;
    let complete = worlds::complete(&rows)?;
    let labels = worlds::self_masked(&rows, &truth, 5)?;
    let evidence = cross_fit(&rows.x, &labels, &REGRESSION, FOLDS, 0)?;
    let found = default_estimate().run(&evidence, &())?;
    // Compared with the share of each class that was really drawn; the classifier adds little error to that.
    let drawn = (0..10).map(|k| labels.counts()[k] as f64 / complete.counts()[k] as f64).collect();
    let error = found.phi.normalised_mse(&Phi::new(drawn)?);
    assert!(error < 0.01, "{error}");
    let test = PermutationTest { permutations: 999, seed: 1 };
    let result = test.run(&Sample::new(&evidence.posteriors, &labels)?, &evidence.plan)?;
    assert!(result.p_value <= 0.01, "{}", result.p_value);
    Ok(())
}
