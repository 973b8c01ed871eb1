use super::*;
use Activity::*;

fn stack(path: &str) -> Vec<FunctionName> {
    let function = |name: &str| FunctionName { name: name.to_string(), module: String::new() };
    path.split(" < ").map(function).collect()
}

#[track_caller]
fn check(path: &str, activity: Activity) {
    assert_eq!(activity_of(&stack(path)), activity, "{path}");
}

#[test]
fn every_rule_names_an_activity() {
    let rules = Rules::parse(RULES).unwrap();
    let wrong: Vec<&str> = rules.classes().filter(|name| Activity::of_name(name).is_none()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let unused: Vec<Activity> = Activity::ALL
        .into_iter()
        .filter(|activity| !rules.classes().any(|name| name == activity.name()))
        .collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn the_innermost_named_function_decides() {
    check(
        "memcpy < row_search_mvcc < ha_innobase::index_read < handler::ha_index_read_map < sub_select",
        IndexRead,
    );
    check("rec_get_offsets_func < row_search_mvcc < ha_innobase::rnd_next < handler::ha_rnd_next", Scan);
    check(
        "Item_func_eq::val_int < evaluate_join_record < sub_select < do_select < dispatch_command",
        Evaluate,
    );
    check("MYSQLlex(THD*) < MYSQLparse(THD*) < parse_sql < dispatch_command", Parse);
    check("row_vers_build_for_consistent_read < row_search_mvcc < ha_innobase::index_read", Versions);
    check(
        "buf_page_get_gen < btr_cur_search_to_nth_level < row_ins_clust_index_entry < row_ins",
        IndexChange,
    );
    check("ut_delay < mutex_spin_wait < buf_page_get_gen < row_search_mvcc", Spin);
    check("strlen < a_plugin < dispatch_command < do_command < do_handle_one_connection", Other);
    check("clear_page < THD::THD < create_new_thread", Connect);
    check("memset < do_handle_one_connection < handle_one_connection < start_thread", Connect);
    check(
        "unix_stream_read_generic < sock_recvmsg < vio_read < do_command < do_handle_one_connection",
        Network,
    );
    check("nothing < that < has < a_rule", Other);
}

#[test]
fn memory_belongs_to_what_is_no_ordinary_work() {
    check("_int_malloc < malloc < my_malloc < MYSQLparse < dispatch_command", Allocation);
    check("_int_malloc < malloc < my_malloc < THD::init < login_connection", Connect);
    check("malloc < alloc_root < open_table_from_share < open_table", TableOpen);
    check("malloc < filesort < create_sort_index", Sort);
    check("free", Allocation);
}

#[test]
fn shares_are_of_all_threads_and_a_handful_of_samples_divides_nothing() {
    let sampled =
        |activity, count, ns| SampledActivity { activity, role: "connection".to_string(), count, ns };
    let activities = Activities::of(&[
        sampled(Scan, 20, 20e6),
        sampled(Parse, 10, 10e6),
        SampledActivity { role: "purge".to_string(), ..sampled(Purge, 10, 10e6) },
    ])
    .unwrap();
    assert_eq!(activities.share(&[Scan, Purge]), 0.75);
    assert_eq!(activities.largest(0.3), [(Scan, 0.5)]);
    assert_eq!(activities.samples(), 40);
    assert!(Activities::of(&[sampled(Scan, SAMPLES_MIN - 1, 1e9)]).is_none());
}
