//! Which status variables are levels, and in what unit: a table of the well-known ones.

use std::cmp::Ordering;

/// Levels whose names no pattern below catches; lower case, sorted.
const GAUGES: &[&str] = &[
    "delayed_insert_threads",
    "error_log_buffered_bytes",
    "error_log_buffered_events",
    "innodb_available_undo_logs",
    "innodb_buffer_pool_bytes_data",
    "innodb_buffer_pool_bytes_dirty",
    "innodb_buffer_pool_pages_data",
    "innodb_buffer_pool_pages_dirty",
    "innodb_buffer_pool_pages_free",
    "innodb_buffer_pool_pages_latched",
    "innodb_buffer_pool_pages_misc",
    "innodb_buffer_pool_pages_old",
    "innodb_buffer_pool_pages_total",
    "innodb_buffer_pool_resize_status_code",
    "innodb_buffer_pool_resize_status_progress",
    "innodb_checkpoint_age",
    "innodb_checkpoint_max_age",
    "innodb_encryption_rotation_estimated_iops",
    "innodb_history_list_length",
    "innodb_ibuf_free_list",
    "innodb_ibuf_segment_size",
    "innodb_ibuf_size",
    "innodb_mem_adaptive_hash",
    "innodb_mem_dictionary",
    "innodb_mem_total",
    "innodb_num_open_files",
    "innodb_onlineddl_pct_progress",
    "innodb_onlineddl_rowlog_pct_used",
    "innodb_page_size",
    "innodb_redo_log_capacity_resized",
    "innodb_redo_log_logical_size",
    "innodb_redo_log_physical_size",
    "innodb_row_lock_current_waits",
    "innodb_row_lock_time_avg",
    "innodb_row_lock_time_max",
    "innodb_undo_tablespaces_active",
    "innodb_undo_tablespaces_explicit",
    "innodb_undo_tablespaces_implicit",
    "innodb_undo_tablespaces_total",
    "key_blocks_not_flushed",
    "key_blocks_unused",
    "key_blocks_used",
    "key_blocks_warm",
    "last_query_cost",
    "last_query_partial_plans",
    "locked_connects",
    "max_memory_used",
    "max_used_connections",
    "memory_used",
    "memory_used_initial",
    "mysqlx_worker_threads",
    "mysqlx_worker_threads_active",
    "not_flushed_delayed_rows",
    "ongoing_anonymous_gtid_violating_transaction_count",
    "ongoing_anonymous_transaction_count",
    "open_files",
    "open_streams",
    "open_table_definitions",
    "open_tables",
    "performance_schema_session_connect_attrs_longest_seen",
    "prepared_stmt_count",
    "qcache_free_blocks",
    "qcache_free_memory",
    "qcache_queries_in_cache",
    "qcache_total_blocks",
    "replica_open_temp_tables",
    "rpl_semi_sync_master_clients",
    "rpl_semi_sync_source_clients",
    "slave_heartbeat_period",
    "slave_open_temp_tables",
    "slaves_connected",
    "slaves_running",
    "ssl_ctx_verify_depth",
    "ssl_ctx_verify_mode",
    "ssl_default_timeout",
    "ssl_session_cache_size",
    "ssl_used_session_cache_entries",
    "ssl_verify_depth",
    "ssl_verify_mode",
    "stack_usage",
    "table_open_cache_active_instances",
    "tc_log_max_pages_used",
    "tc_log_page_size",
    "threadpool_idle_threads",
    "threadpool_threads",
    "threads_cached",
    "threads_connected",
    "threads_running",
];

/// Galera's levels; everything else that begins so is a counter.
const WSREP_GAUGES: &[&str] = &[
    "wsrep_applier_thread_count",
    "wsrep_apply_oooe",
    "wsrep_apply_oool",
    "wsrep_apply_window",
    "wsrep_cert_deps_distance",
    "wsrep_cert_index_size",
    "wsrep_cert_interval",
    "wsrep_cluster_conf_id",
    "wsrep_cluster_size",
    "wsrep_cluster_weight",
    "wsrep_commit_oooe",
    "wsrep_commit_oool",
    "wsrep_commit_window",
    "wsrep_desync_count",
    "wsrep_flow_control_paused",
    "wsrep_ist_receive_seqno_current",
    "wsrep_ist_receive_seqno_end",
    "wsrep_ist_receive_seqno_start",
    "wsrep_local_cached_downto",
    "wsrep_local_index",
    "wsrep_local_recv_queue",
    "wsrep_local_recv_queue_avg",
    "wsrep_local_recv_queue_max",
    "wsrep_local_recv_queue_min",
    "wsrep_local_send_queue",
    "wsrep_local_send_queue_avg",
    "wsrep_local_send_queue_max",
    "wsrep_local_send_queue_min",
    "wsrep_local_state",
    "wsrep_open_connections",
    "wsrep_open_transactions",
    "wsrep_protocol_version",
    "wsrep_rollbacker_thread_count",
    "wsrep_thread_count",
];

/// A name with one of these in it is a level, whatever the server.
const GAUGE_PARTS: &[&str] = &["_current_", "_pending_", "acl_", "aria_pagecache_blocks_", "innodb_have_"];
const GAUGE_ENDS: &[&str] = &["_current_waits", "_length"];

pub(super) fn is_gauge(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.as_str();
    if find(GAUGES, name) || find(WSREP_GAUGES, name) {
        return true;
    }
    GAUGE_PARTS.iter().any(|part| name.contains(part)) || GAUGE_ENDS.iter().any(|end| name.ends_with(end))
}

fn find(sorted: &[&str], name: &str) -> bool {
    let by_name = |entry: &&str| -> Ordering { (*entry).cmp(name) };
    sorted.binary_search_by(by_name).is_ok()
}

/// By the server's own documentation; "1" for a plain count, and where it is not known.
pub(super) fn unit(name: &str) -> &'static str {
    let name = name.to_ascii_lowercase();
    let name = name.as_str();
    match name {
        "uptime" | "uptime_since_flush_status" | "busy_time" | "cpu_time" | "query_time" => "s",
        "innodb_row_lock_time" | "innodb_row_lock_time_avg" | "innodb_row_lock_time_max" => "ms",
        "bytes_received"
        | "bytes_sent"
        | "innodb_data_read"
        | "innodb_data_written"
        | "innodb_os_log_written"
        | "innodb_checkpoint_age"
        | "innodb_checkpoint_max_age"
        | "innodb_page_size"
        | "memory_used"
        | "memory_used_initial"
        | "max_memory_used"
        | "qcache_free_memory"
        | "innodb_mem_adaptive_hash"
        | "innodb_mem_dictionary"
        | "innodb_mem_total"
        | "binlog_bytes_written" => "bytes",
        _ if name.contains("_bytes") || name.starts_with("innodb_lsn_") => "bytes",
        _ if name.contains("_pages_") => "pages",
        _ => "1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted_so_that_they_can_be_searched() {
        for table in [GAUGES, WSREP_GAUGES] {
            for name in table {
                assert!(find(table, name), "{name} is out of place");
            }
        }
    }

    #[test]
    fn patterns_do_not_catch_counters() {
        assert!(!is_gauge("Innodb_buffer_pool_pages_flushed"));
        assert!(!is_gauge("Innodb_pages_written"));
        assert!(!is_gauge("wsrep_replicated_bytes"));
        assert!(is_gauge("Innodb_data_pending_reads"));
        assert!(is_gauge("wsrep_local_recv_queue"));
    }

    #[test]
    fn units_follow_the_name() {
        assert_eq!(unit("Bytes_sent"), "bytes");
        assert_eq!(unit("Innodb_row_lock_time"), "ms");
        assert_eq!(unit("Innodb_buffer_pool_pages_free"), "pages");
        assert_eq!(unit("Com_select"), "1");
    }
}
