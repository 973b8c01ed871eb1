//! The messages of pprof's profile.proto, with the numbers of their fields: <https://github.com/google/pprof/blob/main/proto/profile.proto>.
//! Texts are places in the table of strings, whose first one is empty; identifiers begin at 1.

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Profile {
    #[prost(message, repeated, tag = "1")]
    pub(super) sample_types: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(super) samples: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub(super) mappings: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub(super) locations: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub(super) functions: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub(super) strings: Vec<String>,
    /// When the window began, in nanoseconds since 1970-01-01 UTC.
    #[prost(int64, tag = "9")]
    pub(super) time_ns: i64,
    #[prost(int64, tag = "10")]
    pub(super) duration_ns: i64,
    #[prost(int64, repeated, tag = "13")]
    pub(super) comments: Vec<i64>,
    #[prost(int64, tag = "14")]
    pub(super) default_sample_type: i64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(super) kind: i64,
    #[prost(int64, tag = "2")]
    pub(super) unit: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Sample {
    /// Innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub(super) locations: Vec<u64>,
    /// One a sample type.
    #[prost(int64, repeated, tag = "2")]
    pub(super) values: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(super) labels: Vec<Label>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Label {
    #[prost(int64, tag = "1")]
    pub(super) key: i64,
    #[prost(int64, tag = "2")]
    pub(super) text: i64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int64, tag = "5")]
    pub(super) file: i64,
    #[prost(int64, tag = "6")]
    pub(super) build_id: i64,
    #[prost(bool, tag = "7")]
    pub(super) has_functions: bool,
    #[prost(bool, tag = "8")]
    pub(super) has_file_names: bool,
    #[prost(bool, tag = "9")]
    pub(super) has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub(super) has_inline_frames: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Location {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    /// 0: none.
    #[prost(uint64, tag = "2")]
    pub(super) mapping: u64,
    #[prost(uint64, tag = "3")]
    pub(super) address: u64,
    /// Innermost first: the last is the function that the others were put into.
    #[prost(message, repeated, tag = "4")]
    pub(super) lines: Vec<Line>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Line {
    #[prost(uint64, tag = "1")]
    pub(super) function: u64,
    /// 0: not known.
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Function {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int64, tag = "2")]
    pub(super) name: i64,
    #[prost(int64, tag = "3")]
    pub(super) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(super) file: i64,
}
