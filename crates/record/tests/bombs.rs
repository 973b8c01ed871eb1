//! Small files that would take much memory: what is read of a recording is bounded by its size.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, DictionaryArray, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    UInt32Array, UInt64Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Int32Type, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use whyso_record::data::Event;
use whyso_record::{Options, Recorder, Recording};

/// Writes a recording, and gives the size of its file that harms.
type Make = fn(&Path) -> u64;

/// The recording that the child is to read.
const FOLDER: &str = "WHYSO_TEST_BOMB";
/// Of the child's addresses, which are more than its memory.
const ADDRESSES_MAX: u64 = 512 << 20;
/// The files are smaller.
const FILE_BYTES_MAX: u64 = 128 << 10;

fn recording(
    dir: &Path,
    stream: &str,
    columns: Vec<(&str, ArrayRef)>,
    properties: WriterPropertiesBuilder,
) -> u64 {
    let options = Options { reserve_bytes: 0, own_cost: false, ..Options::default() };
    let recorder = Recorder::create(dir, options).unwrap();
    recorder.event(Event { t_ns: 1, host: "client".into(), kind: "note".into(), text: "x".into() });
    recorder.finish().unwrap();
    // Who makes such a file makes its digest, too.
    fs::remove_file(dir.join("manifest.jsonl")).unwrap();
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), false)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
    let properties = properties.set_compression(Compression::ZSTD(ZstdLevel::try_new(3).unwrap())).build();
    let path = dir.join(format!("{stream}-000000.parquet"));
    let file = fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    fs::metadata(path).unwrap().len()
}

fn numbers(rows: usize) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(0..rows as u32))
}

/// One long text in every row, which a dictionary holds once.
fn one_text_in_all_rows(dir: &Path) -> u64 {
    let rows = 1_200;
    let texts = StringArray::from(vec!["a".repeat(500_000)]);
    let all = DictionaryArray::<Int32Type>::new(vec![0; rows].into(), Arc::new(texts));
    let properties = WriterProperties::builder().set_dictionary_page_size_limit(8 << 20);
    // As a plain column: what reads it expects text.
    let properties = properties.set_data_page_row_count_limit(3_600).set_write_batch_size(600);
    let size =
        recording(dir, "statements", vec![("statement", numbers(rows)), ("text", Arc::new(all))], properties);
    drop_arrow_schema(dir, "statements");
    size
}

/// The footer says that the column was a dictionary; a reader of ours would then not take it for text.
fn drop_arrow_schema(dir: &Path, stream: &str) {
    let path = dir.join(format!("{stream}-000000.parquet"));
    let mut bytes = fs::read(&path).unwrap();
    let key = b"ARROW:schema";
    let at = bytes.windows(key.len()).position(|window| window == key).unwrap();
    bytes[at] = b'X';
    fs::write(path, bytes).unwrap();
}

/// Pages of one byte again and again, which compress to almost nothing.
fn pages_that_compress_well(dir: &Path) -> u64 {
    let rows = 200;
    let text = "a".repeat(1 << 20);
    let texts = StringArray::from(vec![text.as_str(); rows]);
    let properties = WriterProperties::builder().set_dictionary_enabled(false);
    recording(dir, "statements", vec![("statement", numbers(rows)), ("text", Arc::new(texts))], properties)
}

/// One row with a list of very many states.
fn one_long_list(dir: &Path) -> u64 {
    let items = 6_000_000;
    let states = StringArray::from_iter_values(std::iter::repeat_n("", items));
    list_of(dir, Arc::new(states), WriterProperties::builder())
}

/// One row with a list of long states, which are all the same one, so that a dictionary holds it once.
fn one_text_in_a_list(dir: &Path) -> u64 {
    let texts = StringArray::from(vec!["a".repeat(500_000)]);
    let states = DictionaryArray::<Int32Type>::new(vec![0; 1_200].into(), Arc::new(texts));
    let properties = WriterProperties::builder().set_dictionary_page_size_limit(8 << 20);
    let size = list_of(dir, Arc::new(states), properties);
    drop_arrow_schema(dir, "waits");
    size
}

/// One wait whose waker was in these states.
fn list_of(dir: &Path, states: ArrayRef, properties: WriterPropertiesBuilder) -> u64 {
    let items = states.len();
    let ns = UInt64Array::from_iter_values(std::iter::repeat_n(7, items));
    let past: Vec<(Arc<Field>, ArrayRef)> = vec![
        (Arc::new(Field::new("state", states.data_type().clone(), false)), states),
        (Arc::new(Field::new("ns", DataType::UInt64, false)), Arc::new(ns)),
    ];
    let past = StructArray::from(past);
    let item = Arc::new(Field::new("item", past.data_type().clone(), false));
    let list = ListArray::new(item, OffsetBuffer::from_lengths([items]), Arc::new(past), None);
    let count = || -> ArrayRef { Arc::new(UInt64Array::from(vec![1])) };
    let int = || -> ArrayRef { Arc::new(UInt32Array::from(vec![1])) };
    let text = || -> ArrayRef { Arc::new(StringArray::from(vec!["x"])) };
    let columns = vec![
        ("t_ns", Arc::new(Int64Array::from(vec![1])) as ArrayRef),
        ("wait", count()),
        ("tid", int()),
        ("role", text()),
        ("state", text()),
        ("length_ns", count()),
        ("weight_ns", count()),
        ("stack", int()),
        ("waker_tid", int()),
        ("waker_stack", int()),
        ("waker_past", Arc::new(list)),
    ];
    recording(dir, "waits", columns, properties)
}

/// A reading with a number so large that very many must have come before it.
fn one_late_reading(dir: &Path) -> u64 {
    let text = |text| -> ArrayRef { Arc::new(StringArray::from(vec![text, text])) };
    let long = |first, second| -> ArrayRef { Arc::new(Int64Array::from(vec![first, second])) };
    let source = 7 << 32;
    let columns = vec![
        ("id", long(source, source + 0x0fff_ffff)),
        ("source", text("a")),
        ("t_begin_ns", long(1, 2)),
        ("t_end_ns", long(1, 2)),
        ("status", text("ok")),
    ];
    recording(dir, "collections", columns, WriterProperties::builder())
}

fn read(dir: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    match Recording::open(dir) {
        Ok(recording) => {
            problems.extend(recording.problems().iter().cloned());
            problems.extend(recording.statements().err().map(|error| error.to_string()));
            problems.extend(recording.waits(None).err().map(|error| error.to_string()));
        }
        Err(error) => problems.push(error.to_string()),
    }
    problems
}

#[test]
fn small_files_do_not_take_much_memory_and_are_reported() {
    if let Some(dir) = std::env::var_os(FOLDER) {
        let limit = rustix::process::Rlimit { current: Some(ADDRESSES_MAX), maximum: Some(ADDRESSES_MAX) };
        rustix::process::setrlimit(rustix::process::Resource::As, limit).unwrap();
        println!("problems: {:?}", read(Path::new(&dir)));
        return;
    }
    let bombs: [(&str, Make, &str); 5] = [
        ("text", one_text_in_all_rows, "its rows take more memory"),
        ("pages", pages_that_compress_well, "its pages take more memory"),
        ("list", one_long_list, "its pages take more memory"),
        ("text in a list", one_text_in_a_list, "its lists take more memory"),
        ("late", one_late_reading, "numbers that can't be right"),
    ];
    let mut failed = Vec::new();
    for (name, make, words) in bombs {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        let size = make(&dir);
        assert!(size < FILE_BYTES_MAX, "{name}: {size} bytes");
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "small_files_do_not_take_much_memory_and_are_reported",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(FOLDER, &dir)
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&child.stdout);
        if !child.status.success() || !stdout.contains(words) {
            failed.push(format!("{name}: {stdout}{}", String::from_utf8_lossy(&child.stderr)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn texts_of_a_dictionary_are_read_whole_however_many_rows_are_decoded_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let rows = 3_000;
    let long = "b".repeat(100_000);
    let texts = (0..rows).map(|row| if row == 7 { long.clone() } else { format!("text {}", row % 5) });
    let texts = Arc::new(StringArray::from_iter_values(texts));
    recording(
        &dir,
        "statements",
        vec![("statement", numbers(rows)), ("text", texts)],
        WriterProperties::builder(),
    );
    let statements = Recording::open(&dir).unwrap().statements().unwrap();
    assert_eq!(statements.len(), rows);
    assert_eq!((&statements[&7], &*statements[&2_999]), (&long, "text 4"));
}
