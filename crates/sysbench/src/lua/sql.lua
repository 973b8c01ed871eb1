-- Connections, statements, parameters and results, as scripts see them.
-- Arguments: what Rust serves (see bridge.rs), and what a coroutine yields for (see driver.rs).
local native, wants, is_dry_run = ...
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
local QUERY, EXECUTE, PREPARE, NOTHING, CONNECT, RECONNECT =
   wants.QUERY, wants.EXECUTE, wants.PREPARE, wants.NOTHING, wants.CONNECT, wants.RECONNECT
local COUNT_OTHER, COUNT_ERROR = 0, 4
local FATAL_LINE, ALERT_LINE = 0, 1

-- Prints a line of the log, as sysbench does.
local function log(priority, text)
   native.log_line(native.loop, text, #text, priority)
end
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

function Result.free(self)
   if self == nil or native.free_result(native.loop) ~= 0 then
      log(ALERT_LINE, "attempt to free an invalid result set")
      error("db_free_results() failed", 0)
   end
   return true
end

ffi.metatype("sql_result", Result)

local Connection = {}
local Statement = {}
-- By connection: its fields, as scripts see them, and what is known of it here.
local state_of = setmetatable({}, { __mode = "k" })

local function forget_error(state)
   state.error, state.sql_errno, state.sql_state, state.sql_errmsg = 0, 0, nil, nil
end

-- Takes over what became of the last command.
local function take_error(state)
   local user = state.user
   state.error, state.sql_errno = user.status, user.sql_errno
   state.sql_state = native.sql_state(native.loop) ~= 0 and left_text(user) or ""
   state.sql_errmsg = native.sql_message(native.loop) ~= 0 and left_text(user) or ""
end

-- Raises what became of the last command. `name`: the function of the C client that sysbench would have called; `shown`:
-- the query for hooks. `level` is the script's own line.
local function raise(con, query, shown, name, level)
   local state = state_of[con]
   local user = state.user
   take_error(state)
   local err = {
      connection = con, query = shown, sql_errno = state.sql_errno, sql_state = state.sql_state,
      sql_errmsg = state.sql_errmsg,
   }
   if state.error == FATAL then
      log(FATAL_LINE, string.format("%s returned error %d (%s) for query '%s'", name, state.sql_errno,
                                    state.sql_errmsg, query))
      -- The engine counts those that are ignored.
      native.count(native.loop, COUNT_ERROR)
   end
   local hook = state.hooks.sql_error_ignorable
   if state.error == IGNORABLE or (state.error == FATAL and type(hook) == "function" and hook(err)) then
      if user.is_over ~= 0 then
         yield(RECONNECT)
         user.is_over = 0
      end
      err.errcode = 1
      error(err, level + 1)
   end
   error(string.format("SQL error, errno = %d, state = '%s': %s", state.sql_errno, state.sql_state,
                       state.sql_errmsg), level + 1)
end

-- What is known of a connection that can be used. `level`: the script's own line, as error() takes it from whoever calls
-- this.
local function usable(con, level)
   local state = state_of[con]
   if state.is_over then
      error("the run is over: thread_done() is called without a connection", level + 1)
   elseif not state.is_open then
      state.error = FATAL
      log(ALERT_LINE, "attempt to use an already closed connection")
      -- sysbench names the line that called the script's function, where that is a line of the script too.
      local caller = debug.getinfo(level + 2, "S")
      local is_script = caller ~= nil and caller.what ~= "C" and caller.source ~= "=whyso"
      error("SQL API error", is_script and level + 2 or 0)
   end
   return state
end

-- Sends a query and waits for its answer; whether it has rows. `level` as above.
local function ask(con, query, level)
   local state = usable(con, level + 1)
   if is_dry_run then
      native.count(loop, COUNT_OTHER)
      return false
   end
   write_query(query)
   local outcome = yield(QUERY)
   if outcome == FAILED then
      raise(con, query, query, "mysql_drv_query()", level + 1)
   end
   return outcome == WITH_ROWS
end

function Connection.query(con, query)
   if ask(con, query, 2) then
      return state_of[con].result
   end
   return no_result
end

function Connection.query_row(con, query)
   if not ask(con, query, 2) then
      return nil
   end
   local row, columns = state_of[con].result:fetch_row()
   if row == nil then
      return nil
   end
   return unpack(row, 1, columns)
end

function Connection.next_result(con)
   if native.next_result(native.loop) == 0 then
      return no_result
   end
   local state = state_of[con]
   return state.user.has_rows ~= 0 and state.result or no_result
end

function Connection.more_results()
   return native.more_results(native.loop) ~= 0
end

function Connection.check_error(_, result)
   return result
end

function Connection.prepare(con, query)
   local state = usable(con, 2)
   local user = state.user
   local statement = setmetatable({ connection = con, query = query, params = {} }, Statement)
   if is_dry_run then
      statement.place = native.new_statement(native.loop, query, #query, 1)
      return statement
   end
   if native.is_text_only(native.loop) == 0 then
      native.prepare(native.loop, query, #query)
      if yield(PREPARE) ~= FAILED then
         statement.place = native.new_statement(native.loop, query, #query, 0)
      elseif user.sql_errno ~= 1295 then
         take_error(state)
         log(FATAL_LINE, "mysql_stmt_prepare() failed")
         log(FATAL_LINE, string.format('MySQL error: %d "%s"', state.sql_errno, state.sql_errmsg))
         error("SQL API error", 2)
      end
   end
   if statement.place == nil then
      user.status = 0
      statement.place = native.new_statement(native.loop, query, #query, 1)
   end
   return statement
end

function Connection.bulk_insert_init(con, query)
   local state = usable(con, 2)
   state.bulk_head, state.bulk_rows, state.bulk_bytes, state.bulk_count = query, {}, 0, 0
   return true
end

local function flush(con, level)
   local state = state_of[con]
   if state.bulk_count == 0 then
      return
   end
   local query = state.bulk_head .. table.concat(state.bulk_rows, ",")
   state.bulk_rows, state.bulk_bytes, state.bulk_count = {}, 0, 0
   if is_dry_run then
      native.count(loop, COUNT_OTHER)
      return
   end
   write_query(query)
   if yield(QUERY) == FAILED then
      raise(con, query, state.bulk_head, "mysql_drv_query()", level + 1)
   end
end

function Connection.bulk_insert_next(con, values)
   local state = usable(con, 2)
   if state.bulk_head == nil then
      log(ALERT_LINE, "attempt to call bulk_insert_next() before bulk_insert_init()")
      error("db_bulk_insert_next() failed", 2)
   end
   if state.bulk_bytes + #values + 1 > BULK_BYTES_MAX - #state.bulk_head then
      flush(con, 2)
   end
   state.bulk_count = state.bulk_count + 1
   state.bulk_rows[state.bulk_count] = values
   state.bulk_bytes = state.bulk_bytes + #values + 1
   return true
end

function Connection.bulk_insert_done(con)
   local state = usable(con, 2)
   if state.bulk_head ~= nil then
      flush(con, 2)
      state.bulk_head, state.bulk_rows = nil, nil
   end
   return true
end

function Connection.disconnect(con)
   local state = state_of[con]
   if not state.is_open and not state.is_over then
      log(ALERT_LINE, "attempt to close an already closed connection")
   end
   state.is_open = false
   return true
end

function Connection.reconnect(con)
   local state = state_of[con]
   if state.is_over or is_dry_run then
      return true
   end
   if not state.is_open then
      log(ALERT_LINE, "attempt to close an already closed connection")
      return true
   end
   if yield(RECONNECT) == FAILED then
      state.is_open = false
      error("assertion failed!", 2)
   end
   forget_error(state)
   return true
end

-- A method of connections, or a field of this one.
local function member(con, key)
   local method = Connection[key]
   if method ~= nil then
      return method
   end
   return state_of[con][key]
end

local connection_type = ffi.typeof("struct whyso_connection")
local connections_made = 0

ffi.metatype(connection_type, {
   __index = member,
   __eq = function(one, other)
      return ffi.istype(connection_type, one) and ffi.istype(connection_type, other) and one.number == other.number
   end,
   __tostring = function() return "<sql_connection>" end,
})

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
      error("Unsupported argument type: " .. tostring(kind), 2)
   end
   local bytes = native_kind == KIND_TEXT and length_max or 0
   local param = ffi.new("struct whyso_param", bytes)
   param.kind, param.is_null, param.length_max = native_kind, 1, bytes
   return param
end

function Statement.bind_param(statement, ...)
   local count = select("#", ...)
   if count < 1 then
      return nil
   end
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
   local state = usable(con, 2)
   if is_dry_run then
      native.count(loop, COUNT_OTHER)
      return no_result
   end
   local form, outcome = write_execution(statement.place), nil
   if form == 0 then
      outcome = yield(EXECUTE)
   elseif form == 1 then
      outcome = yield(QUERY)
   else
      error("the statement was closed, or its parameters are not bound: " .. statement.query, 2)
   end
   if outcome == WITH_ROWS then
      return state.result
   elseif outcome == FAILED then
      local name = form == 0 and "mysql_stmt_execute()" or "mysql_drv_query()"
      raise(con, statement.query, "<prepared statement>", name, 2)
   end
   return no_result
end

function Statement.next_result(statement)
   return statement.connection:next_result()
end

function Statement.close(statement)
   local place = statement.place
   statement.place = NO_PLACE
   if native.close(native.loop, place) ~= 0 then
      local state = state_of[statement.connection]
      if state.is_open and not state.is_over then
         yield(NOTHING)
      end
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
      error("connection creation failed", 2)
   end
   local held = own.held.con
   if held ~= nil and state_of[held].is_open then
      held = nil
      collectgarbage()
      if own.held.con ~= nil then
         error("one user has one connection at a time here, and this one has a connection that is open: use that one, "
               .. "close it by con:disconnect() first, or run more threads", 2)
      end
   end
   local user = own.user
   if not is_dry_run and yield(CONNECT) == FAILED then
      error("connection creation failed", 2)
   end
   connections_made = connections_made + 1
   local con = connection_type(connections_made)
   state_of[con] = {
      user = user, hooks = own.hooks, is_open = true, result = user.result, error = 0, sql_errno = 0,
   }
   own.held.con = con
   return con
end

-- Nothing can be sent any more on a user's connection.
function sql.end_connection(own)
   local con = own.held.con
   if con ~= nil then
      local state = state_of[con]
      state.is_open, state.is_over = false, true
   end
end

-- `own`: what one environment knows of its user.
function sql.for_user(own)
   local driver = setmetatable({ own = own }, Driver)
   return {
      type = sql.type,
      error = sql.error,
      driver = function(name)
         if name ~= nil and name ~= "mysql" then
            log(FATAL_LINE, "invalid database driver name: '" .. tostring(name) .. "'")
            error("failed to initialize the DB driver", 2)
         end
         native.use_sql(native.loop)
         return driver
      end,
   }
end

return sql
