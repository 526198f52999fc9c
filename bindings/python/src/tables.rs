//! Tables of Python as Arrow tables: nothing is written to disk.

use crate::errors::{Kind, exception};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{Field, Schema};
use mnar_data::{ArrowTable, Source};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use std::path::PathBuf;
use std::sync::Arc;

/// What messages call a table in memory.
pub(crate) const TABLE: &str = "the table";

/// Data as Python hands them over: a path, an object with Arrow's stream interface, or columns by name.
#[derive(FromPyObject)]
pub(crate) enum Data<'py> {
    Path(PathBuf),
    Columns(Vec<(String, Values<'py>)>),
    Stream(Bound<'py, PyAny>),
}

/// A column: an array of numbers or booleans, or texts with gaps.
#[derive(FromPyObject)]
pub(crate) enum Values<'py> {
    Floats(PyReadonlyArray1<'py, f64>),
    Integers(PyReadonlyArray1<'py, i64>),
    Booleans(PyReadonlyArray1<'py, bool>),
    Texts(Vec<Option<String>>),
}

/// The same as owned data that another thread may read.
pub(crate) enum Owned {
    Path(PathBuf),
    Table(ArrowTable),
}

impl Owned {
    pub(crate) fn source(&self) -> Source<'_> {
        match self {
            Self::Path(path) => Source::from(path),
            Self::Table(table) => Source::from(table),
        }
    }
}

impl Data<'_> {
    pub(crate) fn owned(self, py: Python<'_>) -> PyResult<Owned> {
        let wrong = |error: &dyn std::fmt::Display| exception(py, Kind::Input, format!("{TABLE}: {error}"));
        let (schema, batches) = match self {
            Self::Path(path) => return Ok(Owned::Path(path)),
            Self::Columns(columns) => {
                let (names, arrays): (Vec<String>, Vec<ArrayRef>) =
                    columns.into_iter().map(|(name, values)| (name, values.array())).unzip();
                let fields = names.into_iter().zip(&arrays);
                let fields: Vec<Field> =
                    fields.map(|(name, array)| Field::new(name, array.data_type().clone(), true)).collect();
                let schema = Arc::new(Schema::new(fields));
                let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(|error| wrong(&error))?;
                (schema, vec![batch])
            }
            Self::Stream(object) => {
                let reader = stream(py, &object)?;
                let schema = arrow_array::RecordBatchReader::schema(&reader);
                let batches = reader.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(&error))?;
                (schema, batches)
            }
        };
        ArrowTable::new(schema, batches, TABLE).map(Owned::Table).map_err(|error| wrong(&error))
    }
}

impl Values<'_> {
    fn array(&self) -> ArrayRef {
        match self {
            Self::Floats(values) => Arc::new(values.as_array().iter().copied().collect::<Float64Array>()),
            Self::Integers(values) => Arc::new(values.as_array().iter().copied().collect::<Int64Array>()),
            Self::Booleans(values) => {
                Arc::new(values.as_array().iter().map(|value| Some(*value)).collect::<BooleanArray>())
            }
            Self::Texts(values) => Arc::new(values.iter().map(Option::as_deref).collect::<StringArray>()),
        }
    }
}

/// The record batches of an object with Arrow's PyCapsule interface.
fn stream(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let unreadable = |error: &dyn std::fmt::Display| exception(py, Kind::Input, format!("{TABLE}: {error}"));
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>().map_err(|error| unreadable(&error))?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: by the PyCapsule interface, a capsule of this name points to a valid stream structure, which the reader takes
    // over: it leaves a released structure behind, so that the capsule, which lives until the end of this function, frees
    // nothing twice.
    #[allow(unsafe_code)]
    let reader = unsafe { RecordBatchStreamReader::from_raw(pointer.as_ptr().cast::<FFI_ArrowArrayStream>()) };
    reader.map_err(|error| unreadable(&error))
}
