-- An order-entry load over the functions that Percona's sysbench-tpcc calls: a parallel prepare and a parallel command of
-- its own, query_row, bulk inserts, BEGIN and COMMIT, transactions called by name, numbers that are not uniform, errors
-- handled by hooks and by pcall, reports by option, and sb_counter_inc and usleep through ffi.

local ffi = require("ffi")
ffi.cdef[[
void sb_counter_inc(int, sb_counter_type);
int usleep(unsigned int);
]]

sysbench.cmdline.options = {
   scale = {"Number of warehouses", 1},
   districts = {"Districts a warehouse", 3},
   stock = {"Articles a warehouse", 100},
   isolation = {"RR or RC", "RR"},
   report_csv = {"Report as CSV: yes or no", "no"},
}

local function connect()
   local drv = sysbench.sql.driver()
   local con = drv:connect()
   if drv:name() == "mysql" then
      local level = sysbench.opt.isolation == "RC" and "READ COMMITTED" or "REPEATABLE READ"
      con:query("SET SESSION TRANSACTION ISOLATION LEVEL " .. level)
   end
   return drv, con
end

-- Numbers of which some come more often, as TPC-C draws them.
local function not_uniform(mask, least, most)
   local drawn = bit.bor(sysbench.rand.uniform(0, mask), sysbench.rand.uniform(least, most))
   return (drawn + 42) % (most - least + 1) + least
end

local function load_warehouse(con, w)
   print(string.format("loading warehouse %d", w))
   con:query(string.format("CREATE TABLE district%d (d_id INT PRIMARY KEY, d_next INT, d_paid DECIMAL(12,2)) ENGINE=InnoDB", w))
   con:query(string.format("CREATE TABLE stock%d (s_id INT PRIMARY KEY, s_count INT, s_data VARCHAR(50)) ENGINE=InnoDB", w))
   con:query(([[CREATE TABLE orders%d (o_id INT, o_district INT, o_lines INT, o_entry DATETIME,
      PRIMARY KEY (o_district, o_id)) ENGINE=InnoDB]]):format(w))
   con:bulk_insert_init(string.format("INSERT INTO district%d VALUES", w))
   for d = 1, sysbench.opt.districts do
      con:bulk_insert_next(string.format("(%d, 1, 0)", d))
   end
   con:bulk_insert_done()
   con:bulk_insert_init(string.format("INSERT INTO stock%d VALUES", w))
   for s = 1, sysbench.opt.stock do
      con:bulk_insert_next(string.format("(%d, %d, '%s')", s, sysbench.rand.uniform(10, 100), sysbench.rand.string("@@@@@@@@")))
   end
   con:bulk_insert_done()
end

local function wait_for_tables()
   print("waiting for tables")
   assert(os.execute("sleep 2") == 0)
end

local function each_warehouse_of_mine(body)
   local _, con = connect()
   for w = sysbench.tid % sysbench.opt.threads + 1, sysbench.opt.scale, sysbench.opt.threads do
      body(con, w)
   end
end

-- Every order has the number that its district gave out.
local function check_warehouse(con, w)
   for d = 1, sysbench.opt.districts do
      local given = con:query_row(string.format("SELECT d_next FROM district%d WHERE d_id = %d", w, d))
      local orders = con:query_row(string.format("SELECT COUNT(*) FROM orders%d WHERE o_district = %d", w, d))
      assert(given - 1 == tonumber(orders), "district " .. d .. " of warehouse " .. w .. " lost orders")
   end
   print(string.format("warehouse %d is consistent", w))
end

sysbench.cmdline.commands = {
   prepare = {
      function()
         wait_for_tables()
         each_warehouse_of_mine(load_warehouse)
      end, sysbench.cmdline.PARALLEL_COMMAND,
   },
   check = { function() each_warehouse_of_mine(check_warehouse) end, sysbench.cmdline.PARALLEL_COMMAND },
}

function cleanup()
   local _, con = connect()
   for w = 1, sysbench.opt.scale do
      con:query(string.format("DROP TABLE IF EXISTS district%d, stock%d, orders%d", w, w, w))
   end
end

function thread_init()
   drv, con = connect()
   con:query("SET SESSION autocommit = 0")
end

local function any_warehouse_and_district()
   return sysbench.rand.uniform(1, sysbench.opt.scale), sysbench.rand.uniform(1, sysbench.opt.districts)
end

function new_order()
   local w, d = any_warehouse_and_district()
   con:query("BEGIN")
   local number = con:query_row(string.format("SELECT d_next FROM district%d WHERE d_id = %d FOR UPDATE", w, d))
   con:query(string.format("UPDATE district%d SET d_next = %d WHERE d_id = %d", w, number + 1, d))
   con:query(string.format("INSERT INTO orders%d VALUES (%d, %d, 5, '%s')", w, number, d, os.date("%Y-%m-%d %H:%M:%S")))
   for _ = 1, 5 do
      local s = not_uniform(63, 1, sysbench.opt.stock)
      local count, data = con:query_row(string.format("SELECT s_count, s_data FROM stock%d WHERE s_id = %d FOR UPDATE", w, s))
      assert(#data == 8, "a row as it was loaded")
      con:query(string.format("UPDATE stock%d SET s_count = %d WHERE s_id = %d", w, tonumber(count) - 1, s))
   end
   if sysbench.rand.uniform(1, 50) == 1 then
      ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_ERROR)
      con:query("ROLLBACK")
   else
      con:query("COMMIT")
   end
end

-- Looks after its errors itself.
function payment()
   local w, d = any_warehouse_and_district()
   con:query("BEGIN")
   local paid, problem = pcall(function()
      con:query(string.format("UPDATE district%d SET d_paid = d_paid + %d.50 WHERE d_id = %d", w, sysbench.rand.uniform(1, 50), d))
   end)
   if not paid then
      assert(problem.errcode == sysbench.error.RESTART_EVENT and problem.connection == con, "an error that may be tried again")
   end
   con:query(paid and "COMMIT" or "ROLLBACK")
end

function stock_level()
   local w = any_warehouse_and_district()
   local rs = con:query(string.format("SELECT s_id, s_count FROM stock%d WHERE s_count < 20", w))
   for _ = 1, rs.nrows do
      local row = rs:fetch_row()
      assert(tonumber(row[2]) < 20)
   end
   con:query("COMMIT")
   ffi.C.usleep(100)
end

function event()
   local drawn = sysbench.rand.uniform(1, 20)
   local transaction = drawn <= 10 and "new_order" or drawn <= 18 and "payment" or "stock_level"
   _G[transaction]()
end

function sysbench.hooks.sql_error_ignorable(err)
   return err.sql_errno == 1213
end

function sysbench.hooks.before_restart_event(err)
   con:query("ROLLBACK")
end

function sysbench.hooks.report_intermediate(stat)
   if sysbench.opt.report_csv == "yes" then
      sysbench.report_csv(stat)
   else
      sysbench.report_default(stat)
   end
end

function thread_done()
   con:disconnect()
end
