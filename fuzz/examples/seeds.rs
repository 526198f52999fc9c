//! Writes a few tiny valid files for the fuzzers to start from: `cargo run --example seeds`.

use mnar_data::{Column, write_table};
use std::error::Error;
use std::fs;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for target in ["csv_predictions", "parquet_predictions", "features_csv", "idx"] {
        fs::create_dir_all(corpus.join(target))?;
    }
    let predictions = [
        "label,p_a,p_b\na,0.9,0.1\n,0.5,0.5\nb,0.2,0.8\n",
        "\u{feff}fold,label,p_0,p_1,note\r\n0,1.0,1e-1,0.9,\"x, \"\"y\"\"\"\r\n1,NA,.5,5e-1,\r\n1,0.0,1,0,\n",
        "id,label,p_höher 🙂,p_b\n7,höher 🙂,0.9995,0.0001\n8, ,0.25,0.75\n9,b,0,1\n",
    ];
    for (i, text) in predictions.iter().enumerate() {
        fs::write(corpus.join(format!("csv_predictions/{i}.csv")), text)?;
    }
    let features = [
        "a,b,label\n1,2,x\n-3.5,1e9,\n0,0,y\n",
        "label,fold,a,b,c\nx,1,1,2,t\nNA,2,3,4,u\ny,1,5,6,v\n",
        "label;a;b\nx;1,5;29.02.2024\n-1;?;01.03.2024\n",
        "{\"a\":1,\"b\":[1,2],\"label\":\"x\"}\n{\"a\":null,\"label\":null}\n",
    ];
    for (i, text) in features.iter().enumerate() {
        fs::write(corpus.join(format!("features_csv/{i}.csv")), text)?;
    }
    fs::write(corpus.join("idx/images"), [0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 9, 8, 7, 6])?;
    fs::write(corpus.join("idx/labels"), [0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3])?;

    let p = [0.9, 0.5, 0.2, 0.25];
    let q = p.map(|p| 1.0 - p);
    let ones = [1, 0, 1, 0];
    let texts = vec![Some("a"), None, Some("b"), Some("")];
    let path = |name: &str| corpus.join("parquet_predictions").join(name);
    write_table(
        &path("text.parquet"),
        &[
            ("label", Column::Texts(texts)),
            ("fold", Column::Integers(&[0, 1, 0, 1])),
            ("p_a", Column::Numbers(&p)),
            ("p_b", Column::Numbers(&q)),
        ],
    )?;
    // Whole-number probabilities and float labels take other ways through the decoder.
    write_table(
        &path("numbers.parquet"),
        &[
            ("label", Column::Numbers(&[1.0, f64::NAN, 2.0, 1.0])),
            ("fold", Column::Texts(vec![Some("x"), Some("y"), Some("x"), Some("x")])),
            ("p_1", Column::Integers(&ones)),
            ("p_2", Column::Integers(&ones.map(|one| 1 - one))),
        ],
    )?;
    Ok(())
}
