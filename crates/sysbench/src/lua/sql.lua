-- Connections, statements, parameters and results, as scripts see them.
-- Arguments: what Rust serves (see bridge.rs), and what a coroutine yields for (see driver.rs).
local native, wants = ...
local ffi = require("ffi")
local yield, setmetatable, error, type, tostring = coroutine.yield, setmetatable, error, type, tostring
local text_of = ffi.string

local sql = {
   type = {
      NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6, TIME = 7, DATE = 8,
      DATETIME = 9, TIMESTAMP = 10, CHAR = 11, VARCHAR = 12,
   },
   error = { NONE = 0, IGNORABLE = 1, FATAL = 2 },
}

local IGNORABLE, FATAL = 1, 2
-- What a yield for a command gives; see Told in driver.rs.
local WITH_ROWS, FAILED = 1, 2
local QUERY, EXECUTE, PREPARE, NOTHING, RECONNECT =
   wants.QUERY, wants.EXECUTE, wants.PREPARE, wants.NOTHING, wants.RECONNECT
local KIND_INTEGER, KIND_REAL, KIND_TEXT = 1, 2, 3
local NO_PLACE = 0xffffffff
local BULK_BYTES_MAX = 512 * 1024

local no_result = ffi.cast("sql_result *", nil)

-- What yields is interpreted, where calls of C and looks at its structures are slow. So each stands in a function that
-- does not: LuaJIT compiles those.
local loop, write_query_to, write_execution_to = native.loop, native.query, native.execute

local function write_query(query)
   write_query_to(loop, query, #query)
end

local function write_execution(place)
   return write_execution_to(loop, place)
end

-- Text that Rust left for the user whose turn it is.
local function left_text(user)
   return text_of(user.text, user.text_length)
end

local Result = {}
Result.__index = Result
Result.__tostring = function() return "<sql_result>" end

-- The next row as an array, nil where there are no more.
function Result.fetch_row(self)
   if self == nil then
      error("attempt to fetch a row from a statement that gave no result", 2)
   end
   local columns = native.next_row(native.loop)
   if columns < 0 then
      return nil
   end
   local row, user = {}, native.loop.user
   for column = 1, columns do
      if native.field(native.loop, column - 1) ~= 0 then
         row[column] = text_of(user.text, user.text_length)
      end
   end
   return row, columns
end

function Result.free()
end

ffi.metatype("sql_result", Result)

local Connection = {}
local Statement = {}

local function forget_error(con)
   con.error, con.sql_errno, con.sql_state, con.sql_errmsg = 0, 0, nil, nil
end

-- Raises what became of the last command. `level` is the script's own line.
local function raise(con, query, level)
   local user = con.user
   con.error, con.sql_errno = user.status, user.sql_errno
   con.sql_state = native.sql_state(native.loop) ~= 0 and left_text(user) or ""
   con.sql_errmsg = native.sql_message(native.loop) ~= 0 and left_text(user) or ""
   local err = {
      connection = con, query = query, sql_errno = con.sql_errno, sql_state = con.sql_state,
      sql_errmsg = con.sql_errmsg,
   }
   local hook = con.hooks.sql_error_ignorable
   if con.error == IGNORABLE or (con.error == FATAL and type(hook) == "function" and hook(err)) then
      con.error = IGNORABLE
      if user.is_over ~= 0 then
         yield(RECONNECT)
         user.is_over = 0
      end
      err.errcode = 1
      error(err, level + 1)
   end
   native.note_query(native.loop, query, #query)
   error(string.format("SQL error, errno = %d, state = '%s': %s", con.sql_errno, con.sql_state, con.sql_errmsg),
         level + 1)
end

-- `level`: the script's own line, as error() takes it from whoever calls this.
local function check_open(con, level)
   if con.is_over then
      error("the run is over: thread_done() is called without a connection", level + 1)
   elseif not con.is_open then
      error("the connection is closed: call con:reconnect() or drv:connect() first", level + 1)
   end
end

-- Sends a query and waits for its answer; whether it has rows. `level` as above.
local function ask(con, query, level)
   check_open(con, level + 1)
   write_query(query)
   local outcome = yield(QUERY)
   if outcome == FAILED then
      raise(con, query, level + 1)
   end
   return outcome == WITH_ROWS
end

function Connection.query(con, query)
   if ask(con, query, 2) then
      return con.result
   end
   return no_result
end

function Connection.query_row(con, query)
   if not ask(con, query, 2) then
      return nil
   end
   local row, columns = con.result:fetch_row()
   if row == nil then
      return nil
   end
   return unpack(row, 1, columns)
end

function Connection.next_result(con)
   if native.next_result(native.loop) == 0 then
      return no_result
   end
   return con.user.has_rows ~= 0 and con.result or no_result
end

function Connection.more_results()
   return native.more_results(native.loop) ~= 0
end

function Connection.check_error(con, result)
   return result
end

function Connection.prepare(con, query)
   check_open(con, 2)
   local user = con.user
   local statement = setmetatable({ connection = con, query = query, params = {} }, Statement)
   if native.is_text_only(native.loop) == 0 then
      native.prepare(native.loop, query, #query)
      if yield(PREPARE) ~= FAILED then
         statement.place = native.new_statement(native.loop, query, #query, 0)
      elseif user.sql_errno ~= 1295 then
         raise(con, query, 2)
      end
   end
   if statement.place == nil then
      user.status = 0
      statement.place = native.new_statement(native.loop, query, #query, 1)
   end
   return statement
end

function Connection.bulk_insert_init(con, query)
   check_open(con, 2)
   con.bulk_head, con.bulk_rows, con.bulk_bytes, con.bulk_count = query, {}, 0, 0
end

local function flush(con, level)
   if con.bulk_count == 0 then
      return
   end
   local query = con.bulk_head .. table.concat(con.bulk_rows, ",")
   con.bulk_rows, con.bulk_bytes, con.bulk_count = {}, 0, 0
   write_query(query)
   if yield(QUERY) == FAILED then
      raise(con, con.bulk_head, level + 1)
   end
end

function Connection.bulk_insert_next(con, values)
   check_open(con, 2)
   if con.bulk_head == nil then
      error("bulk_insert_next() without bulk_insert_init()", 2)
   end
   if con.bulk_bytes + #values + 1 > BULK_BYTES_MAX - #con.bulk_head then
      flush(con, 2)
   end
   con.bulk_count = con.bulk_count + 1
   con.bulk_rows[con.bulk_count] = values
   con.bulk_bytes = con.bulk_bytes + #values + 1
end

function Connection.bulk_insert_done(con)
   check_open(con, 2)
   flush(con, 2)
   con.bulk_head, con.bulk_rows = nil, nil
end

function Connection.disconnect(con)
   con.is_open = false
   return 0
end

function Connection.reconnect(con)
   if con.is_over then
      return 0
   end
   con.is_open = true
   yield(RECONNECT)
   forget_error(con)
   return 0
end

Connection.__index = Connection
Connection.__tostring = function() return "<sql_connection>" end

function Statement.bind_create(statement, kind, length_max)
   local types = sql.type
   local native_kind
   if kind == types.TINYINT or kind == types.SMALLINT or kind == types.INT or kind == types.BIGINT then
      native_kind = KIND_INTEGER
   elseif kind == types.FLOAT or kind == types.DOUBLE then
      native_kind = KIND_REAL
   elseif kind == types.CHAR or kind == types.VARCHAR then
      native_kind = KIND_TEXT
      if type(length_max) ~= "number" or length_max < 0 then
         error("bind_create() of a text needs its greatest length as second argument", 2)
      end
   else
      error("Unsupported argument type: " .. tostring(kind) .. " (dates and times are bound as VARCHAR)", 2)
   end
   local bytes = native_kind == KIND_TEXT and length_max or 0
   local param = ffi.new("struct whyso_param", bytes)
   param.kind, param.is_null, param.length_max = native_kind, 1, bytes
   return param
end

function Statement.bind_param(statement, ...)
   local count = select("#", ...)
   local params = { ... }
   for place = 1, count do
      if not ffi.istype("struct whyso_param", params[place]) then
         error(string.format("bind_param(): argument %d was not made by bind_create()", place), 2)
      end
   end
   local wanted = native.statement_params(native.loop, statement.place)
   if wanted ~= count then
      error(string.format("bind_param(): the statement has %d parameters, and %d were given: %s", wanted, count,
                          statement.query), 2)
   end
   statement.params = params
   for place = 1, count do
      native.bind(native.loop, statement.place, place - 1, params[place])
   end
end

function Statement.execute(statement)
   local con = statement.connection
   check_open(con, 2)
   local form, outcome = write_execution(statement.place), nil
   if form == 0 then
      outcome = yield(EXECUTE)
   elseif form == 1 then
      outcome = yield(QUERY)
   else
      error("the statement was closed, or its parameters are not bound: " .. statement.query, 2)
   end
   if outcome == WITH_ROWS then
      return con.result
   elseif outcome == FAILED then
      raise(con, statement.query, 2)
   end
   return no_result
end

function Statement.next_result(statement)
   return statement.connection:next_result()
end

function Statement.close(statement)
   local place = statement.place
   statement.place = NO_PLACE
   if native.close(native.loop, place) ~= 0 and not statement.connection.is_over then
      yield(NOTHING)
   end
   return 0
end

Statement.__index = Statement
Statement.__tostring = function() return "<sql_statement>" end

local Param = {}
Param.__tostring = function() return "<sql_param>" end
Param.__index = Param

function Param.set(param, value)
   if value == nil then
      param.is_null = 1
      return
   end
   param.is_null = 0
   local kind = param.kind
   if kind == 1 then
      param.integer = value
   elseif kind == 2 then
      param.real = value
   else
      local text = type(value) == "string" and value or tostring(value)
      local length = #text
      if length > param.length_max then
         length = param.length_max
      end
      ffi.copy(param.text, text, length)
      param.length = length
   end
end

function Param.set_rand_str(param, format)
   param.is_null = 0
   native.random_text_into(native.loop, param, format, #format)
end

ffi.metatype("struct whyso_param", Param)

local Driver = {}
Driver.__tostring = function() return "<sql_driver>" end
Driver.__index = Driver

function Driver.name()
   return "mysql"
end

-- The user's connection. It has one at a time: another is made where the one before was closed, as sysbench does also
-- where nothing refers to it any more.
function Driver.connect(driver)
   local own = driver.own
   if own.user == nil then
      error("no connection can be had while the script is loaded: connect in a function, such as thread_init()", 2)
   end
   if own.held.con ~= nil and own.held.con.is_open then
      collectgarbage()
      if own.held.con ~= nil then
         error("one user has one connection at a time here, and this one has a connection that is open: use that one, "
               .. "close it by con:disconnect() first, or run more threads", 2)
      end
   end
   if own.has_connected then
      yield(RECONNECT)
   end
   own.has_connected = true
   local user = own.user
   local con = setmetatable({
      user = user, hooks = own.hooks, is_open = true, result = user.result, error = 0, sql_errno = 0,
   }, Connection)
   own.held.con = con
   return con
end

-- `own`: what one environment knows of its user.
function sql.for_user(own)
   local driver = setmetatable({ own = own }, Driver)
   return {
      type = sql.type,
      error = sql.error,
      driver = function(name)
         if name ~= nil and name ~= "mysql" then
            error("'" .. tostring(name) .. "' is not served: the only database driver is mysql", 2)
         end
         return driver
      end,
   }
end

return sql
