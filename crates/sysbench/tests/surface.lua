sysbench.cmdline.options = {
   flag = {"a flag", false}, number = {"a number", 1.5}, text = {"a text", "x"}, list = {"a list", {1, 2}},
   nothing = {"no default"}, size = {"a size", 1024, sysbench.cmdline.ARG_SIZE},
}
print("body sees opt", sysbench.opt)
local t = sysbench.sql.type
function thread_init(tid)
   drv = sysbench.sql.driver()
   con = drv:connect()
   print("objects", drv, con, drv:name(), tid, sysbench.tid, sysbench.version)
   print("options", sysbench.opt.flag, sysbench.opt.number, sysbench.opt.text, sysbench.opt.list[2],
         sysbench.opt.nothing, sysbench.opt.size, sysbench.opt.mysql_user, sysbench.opt.threads)
   local rs = con:query("SELECT 1, NULL, 'x' UNION ALL SELECT 2, 3, 'y'")
   local first, second, third = rs:fetch_row(), rs:fetch_row(), rs:fetch_row()
   print("rows", rs, rs.nrows, rs.nfields, first[1], first[2], first[3], second[2], third)
   rs:free()
   local none = con:query("SET @a = 1")
   print("no result", none, none == nil, con:query("SELECT 1 FROM DUAL WHERE 0").nrows)
   print("query_row", con:query_row("SELECT 1, NULL, 2.50"))
   print("query_row of none", con:query_row("SELECT 1 FROM DUAL WHERE 0"))
   con:query("CREATE OR REPLACE TABLE t1 (a INT, b DOUBLE, c VARCHAR(20), d VARCHAR(20))")
   local insert = con:prepare("INSERT INTO t1 VALUES (?, ?, ?, ?)")
   local a, b, c, d = insert:bind_create(t.INT), insert:bind_create(t.DOUBLE), insert:bind_create(t.VARCHAR, 5),
      insert:bind_create(t.CHAR, 20)
   insert:bind_param(a, b, c, d)
   a:set(7.9); b:set(1.5); c:set("hello world"); d:set_rand_str("##-@@")
   print("execute", insert, a, insert:execute() == nil)
   a:set(nil); c:set("it's \\ here"); insert:execute()
   insert:close()
   print("bound", con:query_row("SELECT a, b, c, d RLIKE '^[0-9][0-9]-[a-z][a-z]$' FROM t1 WHERE a IS NOT NULL"))
   print("null", con:query_row("SELECT a, c FROM t1 WHERE a IS NULL"))
   print("closed", pcall(insert.execute, insert))
   con:bulk_insert_init("INSERT INTO t1 (a) VALUES")
   for i = 1, 60000 do con:bulk_insert_next("(" .. 1000 + i .. ")") end
   con:bulk_insert_done()
   print("bulk", con:query_row("SELECT COUNT(*), MAX(a) FROM t1 WHERE a > 1000"))
   con:query("CREATE OR REPLACE PROCEDURE p() BEGIN SELECT 1; SELECT 2, 3; END")
   rs = con:query("CALL p()")
   print("first result", rs.nfields, con:more_results())
   rs = con:next_result()
   print("second result", rs.nfields, rs:fetch_row()[2])
   local ok, err = pcall(function() con:query("SELECT * FROM missing") end)
   print("error", ok, err)
   print("error fields", con.error, con.sql_errno, con.sql_state, con.sql_errmsg)
   print("dates", pcall(insert.bind_create, insert, t.DATE))
   con:reconnect()
   print("after reconnect", con:query_row("SELECT 5"))
   local r = sysbench.rand
   local function within(a, b, v) return v >= a and v <= b and v == math.floor(v) end
   local good = true
   for i = 1, 1000 do
      good = good and within(3, 9, r.default(3, 9)) and within(3, 9, r.uniform(3, 9)) and within(3, 9, r.gaussian(3, 9))
         and within(3, 9, r.special(3, 9)) and within(3, 9, r.pareto(3, 9)) and within(3, 9, r.zipfian(3, 9))
         and #r.varstring(2, 4) >= 2 and #r.varstring(2, 4) <= 4 and r.uniform_double() < 1
   end
   print("random", good, type(r.uniform_uint64()), r.unique() ~= r.unique(), #r.string("##@@-"))
   print("legacy", sb_rand(5, 5), thread_id)
   local h = sysbench.histogram.new(100, 0.1, 1000)
   h:update(1); h:update(1); h:update(10)
   h:print()
   print("globals", ffi.string("abc"), bit.bor(1, 2), unpack({1, 2}))
   ffi.cdef("void sb_counter_inc(int thread, sb_counter_type type); int usleep(unsigned int);")
   ffi.C.sb_counter_inc(tid, ffi.C.SB_CNT_ERROR)
   ffi.C.usleep(1000)
   print("unserved", pcall(function() return ffi.C.sb_event_start end))
   local select = con:prepare("SELECT a, b, c FROM t1 WHERE a = ?")
   local wanted = select:bind_create(t.INT)
   select:bind_param(wanted)
   wanted:set(7)
   for execution = 1, 3 do
      rs = select:execute()
      local row = rs:fetch_row()
      print("prepared row", execution, rs.nrows, rs.nfields, row[1], row[2], row[3], rs:fetch_row())
   end
   con:query("ALTER TABLE t1 MODIFY b VARCHAR(10)")
   for execution = 4, 5 do
      local row = select:execute():fetch_row()
      print("prepared row", execution, row[1], row[2], row[3])
   end
   select:close()
   print("second connection", pcall(drv.connect, drv))
end
local events = 0
function event(tid)
   con:query("SELECT 1")
   events = events + 1
   if events == 4 then return true end
end
function thread_done(tid)
   print("done", tid, events, con:disconnect())
   print("after disconnect", pcall(con.query, con, "SELECT 1"))
end
function sysbench.hooks.report_cumulative(stat)
   print("hook", stat.events, stat.reads, stat.errors, stat.latency_max > 0)
end
