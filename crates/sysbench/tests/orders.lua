-- An order-entry load over the functions that Percona's sysbench-tpcc calls: query_row, bulk inserts, a parallel
-- prepare, BEGIN and COMMIT, errors handled by hooks, and sb_counter_inc and usleep through ffi.

local ffi = require("ffi")
ffi.cdef[[
void sb_counter_inc(int, sb_counter_type);
int usleep(unsigned int);
]]

sysbench.cmdline.options = {
   scale = {"Number of warehouses", 1},
   districts = {"Districts a warehouse", 3},
   stock = {"Articles a warehouse", 100},
}

local function connect()
   local drv = sysbench.sql.driver()
   return drv, drv:connect()
end

local function load_warehouse(con, w)
   print(string.format("loading warehouse %d", w))
   con:query(string.format("CREATE TABLE district%d (d_id INT PRIMARY KEY, d_next INT) ENGINE=InnoDB", w))
   con:query(string.format("CREATE TABLE stock%d (s_id INT PRIMARY KEY, s_count INT, s_data VARCHAR(50)) ENGINE=InnoDB", w))
   con:query(string.format("CREATE TABLE orders%d (o_id INT, o_district INT, o_lines INT, PRIMARY KEY (o_district, o_id)) ENGINE=InnoDB", w))
   con:bulk_insert_init(string.format("INSERT INTO district%d VALUES", w))
   for d = 1, sysbench.opt.districts do
      con:bulk_insert_next(string.format("(%d, 1)", d))
   end
   con:bulk_insert_done()
   con:bulk_insert_init(string.format("INSERT INTO stock%d VALUES", w))
   for s = 1, sysbench.opt.stock do
      con:bulk_insert_next(string.format("(%d, %d, '%s')", s, sysbench.rand.uniform(10, 100), sysbench.rand.string("@@@@@@@@")))
   end
   con:bulk_insert_done()
end

local function cmd_prepare()
   local _, con = connect()
   for w = sysbench.tid % sysbench.opt.threads + 1, sysbench.opt.scale, sysbench.opt.threads do
      load_warehouse(con, w)
   end
end

sysbench.cmdline.commands = { prepare = { cmd_prepare, sysbench.cmdline.PARALLEL_COMMAND } }

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

local function new_order()
   local w = sysbench.rand.uniform(1, sysbench.opt.scale)
   local d = sysbench.rand.uniform(1, sysbench.opt.districts)
   con:query("BEGIN")
   local number = con:query_row(string.format("SELECT d_next FROM district%d WHERE d_id = %d FOR UPDATE", w, d))
   con:query(string.format("UPDATE district%d SET d_next = %d WHERE d_id = %d", w, number + 1, d))
   con:query(string.format("INSERT INTO orders%d VALUES (%d, %d, 5)", w, number, d))
   for _ = 1, 5 do
      local s = sysbench.rand.uniform(1, sysbench.opt.stock)
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

local function stock_level()
   local w = sysbench.rand.uniform(1, sysbench.opt.scale)
   local rs = con:query(string.format("SELECT s_id, s_count FROM stock%d WHERE s_count < 20", w))
   for _ = 1, rs.nrows do
      local row = rs:fetch_row()
      assert(tonumber(row[2]) < 20)
   end
   con:query("COMMIT")
   ffi.C.usleep(100)
end

function event()
   if sysbench.rand.uniform(1, 10) == 1 then
      stock_level()
   else
      new_order()
   end
end

function sysbench.hooks.sql_error_ignorable(err)
   return err.sql_errno == 1213
end

function sysbench.hooks.before_restart_event(err)
   con:query("ROLLBACK")
end

function thread_done()
   con:disconnect()
end
