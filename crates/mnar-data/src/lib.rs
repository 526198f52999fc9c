//! Reads partly labelled data for `mnar`: predictions (labels with one probability per class) and features, from
//! text tables of any kind, Parquet, Arrow, JSON lines and spreadsheets; images and embeddings from numpy arrays, MNIST and CIFAR files and folders, all through
//! [`read_dataset`]; writes tables that appear whole or not at all; contains two small samples.
//!
//! ```
//! use mnar_data::{PredictionColumns, predictions_from_csv};
//! let csv = "label,p_cat,p_dog\ncat,0.9,0.1\n,0.3,0.7\ndog,0.2,0.8\n";
//! let predictions = predictions_from_csv(csv.as_bytes(), &PredictionColumns::new("label"), "pets.csv")?;
//! assert_eq!(predictions.labels.counts(), [1, 1]);
//! let error = predictions_from_csv(csv.as_bytes(), &PredictionColumns::new("lable"), "pets.csv").unwrap_err();
//! assert!(error.to_string().starts_with("pets.csv: there is no column `lable`, did you mean `label`?"));
//! # Ok::<(), mnar_data::DataError>(())
//! ```

mod arrays;
mod arrow_table;
mod atomic;
mod batch;
mod bmp;
mod cells;
mod checksum;
mod cifar;
mod classes;
mod column_builder;
mod columns;
mod dataset;
mod dates;
mod delimited;
mod disguise;
mod encoder;
mod error;
mod excel;
mod feature_table;
mod format;
mod formulas;
mod guard;
pub mod idx;
mod image_folder;
mod image_rows;
mod images;
mod ipc;
mod json_lines;
mod label_columns;
mod label_file;
mod labels_alone;
mod mask;
mod mnist;
mod note;
mod npy;
mod npz;
mod number_column;
mod output;
mod parquet_flat;
mod parquet_folder;
mod parquet_pages;
mod parquet_table;
mod parquet_types;
mod picture;
mod predictions;
mod row_names;
pub mod samples;
mod screen;
mod stream;
mod stream_given;
mod survey;
mod table_reader;
mod text;
mod text_table;
mod title_rows;
mod values;
mod write;

pub use arrow_table::{ArrowTable, Source, SourceKind};
pub use atomic::{AtomicFile, is_partial, is_stdout, sweep_partial};
pub use checksum::{Checksum, Sum};
pub use columns::PredictionColumns;
pub use dataset::{Dataset, Expected, Inputs, ReadOptions, RowsToPredict, Split, read_dataset, read_for_prediction};
pub use dates::{DateFormat, date_text};
pub use disguise::Disguise;
pub use encoder::{ColumnEncoding, EncodedColumn, Scale, TableEncoder};
pub use error::{Cause, ColumnRole, DataError, LabelAdvice};
pub use feature_table::{Categories, ColumnValues, FeatureColumn, FeatureTable};
pub use formulas::Formulas;
pub use guard::{Memory, quiet_decoder_panics};
pub use images::{ImageShape, Images};
pub use label_columns::read_label_columns;
pub use labels_alone::{read_folds, read_labels};
pub use mask::mask_labels;
pub use note::{IdentifierReason, Note};
pub use output::{check_not_read, check_output};
pub use predictions::{Predictions, predictions_from_csv, predictions_from_parquet, read_predictions};
pub use row_names::RowNames;
pub use samples::FullyLabelled;
pub use stream::{LabelledRows, ParquetPredictions};
pub use stream_given::{Beside, GivenPredictions};
pub use survey::{ColumnFate, Survey, SurveyedColumn, survey};
pub use table_reader::{read_columns, read_marks};
pub use text_table::TextTable;
pub use write::{Column, ColumnKind, TableWriter, write_table, write_table_with};
