//! Columns of one row group into a Parquet file.

use crate::{Error, Origin, file};
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// The cells of a column.
pub enum Cells {
    /// Texts, null where there is none.
    Text(Vec<Option<String>>),
    /// Numbers, null where there is none.
    Numbers(Vec<Option<f64>>),
    /// Whole numbers, null where there is none.
    Integers(Vec<Option<i64>>),
    /// Yes or no.
    Flags(Vec<bool>),
}

impl Cells {
    /// Texts.
    pub fn text<T: AsRef<str>>(cells: impl Iterator<Item = Option<T>>) -> Cells {
        Cells::Text(cells.map(|c| c.map(|t| t.as_ref().to_string())).collect())
    }

    /// Numbers; one that is not finite becomes null.
    pub fn numbers(cells: impl Iterator<Item = Option<f64>>) -> Cells {
        Cells::Numbers(cells.map(|c| c.filter(|x| x.is_finite())).collect())
    }
}

/// A Parquet file in the making: columns of equal length, and notes about them.
pub struct File {
    columns: Vec<(String, Cells)>,
    notes: Vec<KeyValue>,
    version: String,
}

impl File {
    pub fn new(origin: &Origin) -> File {
        let mut file = File {
            columns: Vec::new(),
            notes: Vec::new(),
            version: origin.version.clone(),
        };
        file.note("machine", &origin.machine);
        file.note("seed", &origin.seed.to_string());
        file.note("version", &origin.version);
        file.note("command", &origin.command);
        file
    }

    /// A key and its value in the file's metadata.
    pub fn note(&mut self, key: &str, text: &str) {
        self.notes
            .push(KeyValue::new(key.to_string(), text.to_string()));
    }

    pub fn column(&mut self, name: &str, unit: &str, cells: Cells) {
        if !unit.is_empty() {
            self.note(&format!("unit.{name}"), unit);
        }
        self.columns.push((name.to_string(), cells));
    }

    /// Write the file, whole or not at all.
    pub fn write(self, path: &Path) -> std::result::Result<(), Error> {
        // In memory first: results are small, and a full disk then fails in one place.
        let bytes = self.encode().map_err(|e| Error::Inconsistent {
            what: path.display().to_string(),
            why: e.to_string(),
        })?;
        file::write_with(path, |file| -> io::Result<()> { file.write_all(&bytes) })
    }

    fn encode(self) -> Result<Vec<u8>> {
        let mut fields = Vec::new();
        for (name, cells) in &self.columns {
            let (physical, repetition) = match cells {
                Cells::Text(_) => (Physical::BYTE_ARRAY, Repetition::OPTIONAL),
                Cells::Numbers(_) => (Physical::DOUBLE, Repetition::OPTIONAL),
                Cells::Integers(_) => (Physical::INT64, Repetition::OPTIONAL),
                Cells::Flags(_) => (Physical::BOOLEAN, Repetition::REQUIRED),
            };
            let mut field =
                Type::primitive_type_builder(name, physical).with_repetition(repetition);
            if physical == Physical::BYTE_ARRAY {
                field = field
                    .with_logical_type(Some(LogicalType::String))
                    .with_converted_type(ConvertedType::UTF8);
            }
            fields.push(Arc::new(field.build()?));
        }
        let schema = Arc::new(
            Type::group_type_builder("results")
                .with_fields(fields)
                .build()?,
        );
        let properties = WriterProperties::builder()
            .set_created_by(format!("varve {}", self.version))
            .set_key_value_metadata(Some(self.notes))
            .build();
        let mut out = Vec::new();
        let mut file = SerializedFileWriter::new(&mut out, schema, Arc::new(properties))?;
        let mut group = file.next_row_group()?;
        for (_, cells) in self.columns {
            let Some(mut column) = group.next_column()? else {
                break;
            };
            match cells {
                Cells::Text(cells) => {
                    let (levels, texts) = present(cells);
                    let texts: Vec<ByteArray> =
                        texts.iter().map(|t: &String| t.as_str().into()).collect();
                    column
                        .typed::<ByteArrayType>()
                        .write_batch(&texts, Some(&levels), None)?;
                }
                Cells::Numbers(cells) => {
                    let (levels, numbers) = present(cells);
                    column
                        .typed::<DoubleType>()
                        .write_batch(&numbers, Some(&levels), None)?;
                }
                Cells::Integers(cells) => {
                    let (levels, numbers) = present(cells);
                    column
                        .typed::<Int64Type>()
                        .write_batch(&numbers, Some(&levels), None)?;
                }
                Cells::Flags(flags) => {
                    column.typed::<BoolType>().write_batch(&flags, None, None)?;
                }
            }
            column.close()?;
        }
        group.close()?;
        file.close()?;
        Ok(out)
    }
}

/// Parquet's way to say null: a level for each cell, and only the values that are there.
fn present<T>(cells: Vec<Option<T>>) -> (Vec<i16>, Vec<T>) {
    let levels = cells.iter().map(|c| i16::from(c.is_some())).collect();
    (levels, cells.into_iter().flatten().collect())
}
