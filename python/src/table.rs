//! Columns that pandas, polars and others take without copying, by Arrow's C stream interface.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_schema::{ArrowError, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;
use varve_report::columnar::{Cells, NamedCells};

/// The name that Arrow gives a capsule with a stream.
const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// A table whose columns are in Arrow's format.
#[pyclass(frozen, module = "varve")]
pub struct Table {
    batch: RecordBatch,
}

impl Table {
    /// # Errors
    /// Columns of different lengths.
    pub fn of(columns: &[NamedCells]) -> Result<Table, ArrowError> {
        let arrays: Vec<ArrayRef> = columns.iter().map(|(_, cells)| array(cells)).collect();
        let field = |((name, _), array): (&NamedCells, &ArrayRef)| {
            Field::new(name, array.data_type().clone(), true)
        };
        let fields: Vec<Field> = columns.iter().zip(&arrays).map(field).collect();
        let schema = Arc::new(Schema::new(fields));
        Ok(Table {
            batch: RecordBatch::try_new(schema, arrays)?,
        })
    }

    /// The columns' buffers are those of this table.
    pub fn stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, STREAM)
    }

    pub fn names(&self) -> Vec<String> {
        let schema = self.batch.schema();
        schema.fields().iter().map(|f| f.name().clone()).collect()
    }

    pub fn rows(&self) -> usize {
        self.batch.num_rows()
    }
}

fn array(cells: &Cells) -> ArrayRef {
    match cells {
        Cells::Text(cells) => Arc::new(StringArray::from_iter(cells)),
        Cells::Numbers(cells) => Arc::new(Float64Array::from_iter(cells.iter().copied())),
        Cells::Integers(cells) => Arc::new(Int64Array::from_iter(cells.iter().copied())),
        Cells::Flags(cells) => Arc::new(BooleanArray::from(cells.clone())),
    }
}

#[pymethods]
impl Table {
    /// Arrow's stream of the table; what schema is asked for, the reader converts.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        self.stream(py)
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        self.names()
    }

    fn __len__(&self) -> usize {
        self.rows()
    }

    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        framed(slf.as_any(), "pandas")
    }

    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        framed(slf.as_any(), "polars")
    }

    fn __repr__(&self) -> String {
        format!(
            "<varve.Table {} rows: {}>",
            self.rows(),
            self.names().join(", ")
        )
    }
}

/// A data frame, made by `maker` from anything that has a stream.
pub fn framed<'py>(table: &Bound<'py, PyAny>, maker: &str) -> PyResult<Bound<'py, PyAny>> {
    let module = table.py().import("varve._frames")?;
    module.getattr(maker)?.call1((table,))
}
