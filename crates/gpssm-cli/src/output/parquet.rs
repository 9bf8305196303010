//! Tables in Parquet.

use std::fs::File;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::Column;

/// Writes named columns as one row group; numbers that are not finite are missing.
pub(super) fn write(columns: &[(String, Column)], file: File) -> std::io::Result<()> {
    let fields = columns.iter().map(|(name, column)| {
        let (kind, there, text) = match column {
            Column::Numbers(_) => (PhysicalType::DOUBLE, Repetition::OPTIONAL, None),
            Column::Integers(_) => (PhysicalType::INT64, Repetition::REQUIRED, None),
            Column::Texts(_) => (PhysicalType::BYTE_ARRAY, Repetition::REQUIRED, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(name, kind).with_repetition(there);
        field.with_logical_type(text).build().map(Arc::new)
    });
    let schema = Type::group_type_builder("table").with_fields(fields.collect::<Result<_, _>>()?).build()?;
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), properties)?;
    let mut group = writer.next_row_group()?;
    for (_, column) in columns {
        let Some(mut out) = group.next_column()? else { break };
        match column {
            Column::Numbers(values) => {
                let there: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
                let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_finite())).collect();
                out.typed::<DoubleType>().write_batch(&there, Some(&levels), None)?;
            }
            Column::Integers(values) => {
                out.typed::<Int64Type>().write_batch(values, None, None)?;
            }
            Column::Texts(values) => {
                let values: Vec<ByteArray> = values.iter().map(|text| text.as_str().into()).collect();
                out.typed::<ByteArrayType>().write_batch(&values, None, None)?;
            }
        }
        out.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(())
}
