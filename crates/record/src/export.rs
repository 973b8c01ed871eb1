//! A recording in the long form that any tool reads: one row per value.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;

use crate::data::{Kind, SeriesId, SeriesKey};
use crate::error::{Error, Result};
use crate::parquet_file::properties;
use crate::read::{Recording, Samples};
use crate::run::Window;

/// What to export; `None` takes all. Names are compared as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub host: Option<String>,
    pub source: Option<String>,
    pub metric: Option<String>,
    pub instance: Option<String>,
    pub window: Option<Window>,
}

impl Filter {
    fn takes(&self, key: &SeriesKey) -> bool {
        let fits =
            |wanted: &Option<String>, name: &String| wanted.as_ref().is_none_or(|wanted| wanted == name);
        fits(&self.host, &key.host)
            && fits(&self.source, &key.source)
            && fits(&self.metric, &key.metric)
            && fits(&self.instance, &key.instance)
    }
}

/// Writes `t_ns,host,source,metric,instance,kind,unit,value`, a header first; readings by series, then by time. Text is quoted by RFC 4180.
/// Returns the number of rows.
pub fn to_csv(recording: &Recording, out: &mut impl Write, filter: &Filter) -> Result<u64> {
    let mut rows = 0;
    let mut failed = out.write_all(b"t_ns,host,source,metric,instance,kind,unit,value\n").err();
    each_series(recording, filter, |key, samples| {
        let names = [&key.host, &key.source, &key.metric, &key.instance].map(|name| quoted(name));
        let labels = format!("{},{},{}", names.join(","), kind(key.kind), quoted(&key.unit));
        for (at, (t_ns, value)) in samples.t_end_ns.iter().zip(&samples.value).enumerate() {
            if failed.is_none() {
                failed = match samples.whole(at) {
                    Some(whole) => writeln!(out, "{t_ns},{labels},{whole}").err(),
                    None => writeln!(out, "{t_ns},{labels},{value}").err(),
                };
                rows += 1;
            }
        }
        Ok(())
    })?;
    match failed {
        Some(cause) => Err(Error::Export(format!("the CSV can't be written: {cause}"))),
        None => Ok(rows),
    }
}

/// Writes the same columns as one Parquet file. Returns the number of rows.
pub fn to_parquet(recording: &Recording, out: impl Write + Send, filter: &Filter) -> Result<u64> {
    let text = |name| Field::new(name, DataType::Utf8, false);
    let schema = Arc::new(Schema::new(vec![
        Field::new("t_ns", DataType::Int64, false),
        text("host"),
        text("source"),
        text("metric"),
        text("instance"),
        text("kind"),
        text("unit"),
        Field::new("value", DataType::Float64, false),
    ]));
    let failed =
        |cause: &dyn std::fmt::Display| Error::Export(format!("the Parquet file can't be written: {cause}"));
    let writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties(&schema, &[]).build()));
    let mut writer = writer.map_err(|cause| failed(&cause))?;
    let mut rows = 0;
    each_series(recording, filter, |key, samples| {
        let label = |text: &str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(samples.value.iter().map(|_| text)))
        };
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(samples.t_end_ns.clone())),
            label(&key.host),
            label(&key.source),
            label(&key.metric),
            label(&key.instance),
            label(kind(key.kind)),
            label(&key.unit),
            Arc::new(Float64Array::from(samples.value.clone())),
        ];
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(|cause| failed(&cause))?;
        writer.write(&batch).map_err(|cause| failed(&cause))?;
        rows += samples.len() as u64;
        if writer.in_progress_rows() >= GROUP_ROWS {
            writer.flush().map_err(|cause| failed(&cause))?;
        }
        Ok(())
    })?;
    writer.close().map_err(|cause| failed(&cause))?;
    Ok(rows)
}

const GROUP_ROWS: usize = 1_000_000;

fn each_series(
    recording: &Recording,
    filter: &Filter,
    mut each: impl FnMut(&SeriesKey, Samples) -> Result<()>,
) -> Result<()> {
    let wanted = recording.series().iter().filter(|info| filter.takes(&info.key));
    let ids: Vec<SeriesId> = wanted.map(|info| info.id).collect();
    let mut result = Ok(());
    recording.samples_each(&ids, filter.window, |id, samples| {
        if let (Ok(()), Some(info)) = (&result, recording.info(id)) {
            result = each(&info.key, samples);
        }
    })?;
    result
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

/// Creates a file for an export, with an error that names it.
pub fn create_file(path: &Path) -> Result<std::io::BufWriter<std::fs::File>> {
    let file = std::fs::File::create(path).map_err(|cause| Error::io(path, cause))?;
    Ok(std::io::BufWriter::new(file))
}
