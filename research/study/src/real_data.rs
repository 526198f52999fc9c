//! On real data, where `MNAR_DATA` names a folder with them.

use crate::size::REGRESSION;
use crate::worlds;
use anyhow::Result;
use mnar::pipeline::Pipeline;
use mnar::test::PermutationTest;
use mnar::{Phi, Sample};
use std::path::PathBuf;

/// 5,620 digits, of which 5% to 23% are labelled by class: phi is found, and the test rejects.
#[test]
fn optdigits_mechanism_is_found() -> Result<()> {
    let data = std::env::var_os("MNAR_DATA").map(PathBuf::from);
    let Some(data) = data.filter(|data| data.join("optdigits").is_dir()) else {
        eprintln!("skipped: MNAR_DATA names no folder with optdigits/");
        return Ok(());
    };
    let world = worlds::optdigits(&data)?;
    let rows = world.draw(0);
    let truth = Phi::new((0..10).map(|k| 0.05 + 0.02 * k as f64).collect())?;
    let complete = worlds::complete(&rows)?;
    let labels = worlds::self_masked(&rows, &truth, 5)?;
    let fit = Pipeline { regression: REGRESSION, ..Default::default() }.run(rows.x.view(), &labels)?;
    // Compared with the share of each class that was really drawn; the classifier adds little error to that.
    let drawn = (0..10).map(|k| labels.counts()[k] as f64 / complete.counts()[k] as f64).collect();
    let error = fit.estimate.phi.normalised_mse(&Phi::new(drawn)?);
    assert!(error < 0.01, "{error}");
    let test = PermutationTest { permutations: 999, seed: 1 };
    let result = test.run(&Sample::new(&fit.raw, &labels)?, &fit.plan)?;
    assert!(result.p_value <= 0.01, "{}", result.p_value);
    Ok(())
}
