-- Everything that a script finds in its environment, and the loop that calls its events.
-- Arguments: what Rust serves, what a coroutine yields for, the module sql, and the run's facts.
local native, wants, sql, facts = ...
local ffi = require("ffi")
local real_require, real_ffi = require, ffi
local yield = coroutine.yield

local runtime = {}

-- A line at once: users of other loops print too.
local function print(...)
   local values = { ... }
   for place = 1, select("#", ...) do
      values[place] = tostring(values[place])
   end
   io.write(table.concat(values, "\t") .. "\n")
end

-- ffi ----------------------------------------------------------------------------------------------------------------

local served = {
   sb_counter_inc = function(_, counter)
      native.count(native.loop, counter)
   end,
   usleep = function(microseconds)
      yield(wants.PAUSE, tonumber(microseconds))
      return 0
   end,
   sleep = function(seconds)
      yield(wants.PAUSE, tonumber(seconds) * 1e6)
      return 0
   end,
}

local declared = {}
local script_ffi = {}
for name, value in pairs(real_ffi) do
   script_ffi[name] = value
end
script_ffi.C = setmetatable({}, {
   __index = function(_, name)
      local ours = served[name]
      if ours ~= nil then
         return ours
      end
      local is_there, value = pcall(function() return real_ffi.C[name] end)
      if not is_there then
         error("the C symbol '" .. tostring(name) .. "' is not served; of sysbench's own, scripts can use sb_counter_inc() "
               .. "and usleep(), and the functions of the table 'sysbench' for everything else", 2)
      end
      return value
   end,
   __newindex = function(_, name, value)
      real_ffi.C[name] = value
   end,
})
-- Every connection runs the script's body, and C accepts a type's definition once only.
function script_ffi.cdef(text, ...)
   if not declared[text] then
      real_ffi.cdef(text, ...)
      declared[text] = true
   end
end

-- Random numbers -----------------------------------------------------------------------------------------------------

local function drawn(distribution)
   return function(a, b)
      return tonumber(native.draw(native.loop, distribution, a, b))
   end
end

local function random_text(format)
   native.random_text(native.loop, format, #format)
   local user = native.loop.user
   return ffi.string(user.text, user.text_length)
end

local rand = {
   default = drawn(0),
   uniform = function(a, b) return tonumber(native.uniform(native.loop, a, b)) end,
   gaussian = drawn(2),
   special = drawn(3),
   pareto = drawn(4),
   zipfian = drawn(5),
   unique = function() return tonumber(native.unique(native.loop)) end,
   uniform_double = function() return native.uniform_double(native.loop) end,
   uniform_uint64 = function() return native.uniform_uint64(native.loop) end,
   string = random_text,
   varstring = function(least, most)
      local length = tonumber(native.uniform(native.loop, least, most))
      return random_text(string.rep("@", length))
   end,
}

-- Histograms of a script's own -----------------------------------------------------------------------------------------

local Histogram = {}
Histogram.__index = Histogram
Histogram.__tostring = function() return "<sb_histogram>" end

function Histogram.update(histogram, value)
   local place = math.floor((math.log(value) - histogram.log_least) / histogram.step + 0.5)
   place = math.max(0, math.min(histogram.size - 1, place))
   histogram.counts[place] = (histogram.counts[place] or 0) + 1
end

function Histogram.print(histogram)
   local most = 0
   for _, count in pairs(histogram.counts) do
      most = math.max(most, count)
   end
   print("       value  ------------- distribution ------------- count")
   for place = 0, histogram.size - 1 do
      local count = histogram.counts[place]
      if count then
         local stars = string.rep("*", math.floor(count * 40 / most + 0.5))
         print(string.format("%12.3f |%-40s %d", math.exp(histogram.log_least + place * histogram.step), stars, count))
      end
   end
end

function Histogram.new(size, least, most)
   if not (size > 1 and least > 0 and most > least) then
      error("histogram.new(size, least, most) needs at least two buckets and 0 < least < most", 2)
   end
   local step = (math.log(most) - math.log(least)) / (size - 1)
   return setmetatable({ size = size, log_least = math.log(least), step = step, counts = {} }, Histogram)
end

-- Reports --------------------------------------------------------------------------------------------------------------

local function each_second(stat)
   local seconds = stat.time_interval
   return (stat.reads + stat.writes + stat.other) / seconds, stat.reads / seconds, stat.writes / seconds,
      stat.other / seconds
end

local function report_default(stat)
   local seconds = stat.time_interval
   local queries, reads, writes, other = each_second(stat)
   print(string.format(
      "[ %.0fs ] thds: %d tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%d%%): %4.2f err/s %4.2f reconn/s: %4.2f",
      stat.time_total, stat.threads_running, stat.events / seconds, queries, reads, writes, other,
      facts.percentile, stat.latency_pct * 1000, stat.errors / seconds, stat.reconnects / seconds))
end

local function report_csv(stat)
   local seconds = stat.time_interval
   local queries, reads, writes, other = each_second(stat)
   print(string.format("%.0f,%d,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f", stat.time_total,
                       stat.threads_running, stat.events / seconds, queries, reads, writes, other,
                       stat.latency_pct * 1000, stat.errors / seconds, stat.reconnects / seconds))
end

-- By the name of the hook that reports: whether its list has begun.
local json_begun = {}
local function report_json(stat)
   local seconds = stat.time_interval
   local queries, reads, writes, other = each_second(stat)
   local series = runtime.reports or "report"
   if not json_begun[series] then
      json_begun[series] = true
      io.write("[\n")
   else
      io.write(",\n")
   end
   io.write(string.format([[
  {
    "time": %4.0f,
    "threads": %d,
    "tps": %4.2f,
    "qps": {
      "total": %4.2f,
      "reads": %4.2f,
      "writes": %4.2f,
      "other": %4.2f
    },
    "latency": %4.2f,
    "errors": %4.2f,
    "reconnects": %4.2f
  }]], stat.time_total, stat.threads_running, stat.events / seconds, queries, reads, writes, other,
      stat.latency_pct * 1000, stat.errors / seconds, stat.reconnects / seconds))
end

-- No further report comes from this hook.
function runtime.end_reports(series)
   if json_begun[series] then
      json_begun[series] = nil
      io.write("\n]\n")
   end
end

-- Modules --------------------------------------------------------------------------------------------------------------

local chunks = {}

-- A file's code with this environment; compiled once, so that traces are shared.
local function load_chunk(path, env)
   local chunk = chunks[path]
   if chunk == nil then
      local problem
      chunk, problem = loadfile(path)
      if chunk == nil then
         error(problem, 0)
      end
      chunks[path] = chunk
   end
   return setfenv(chunk, env)
end

local function find_module(path, name)
   local tried = {}
   local file_name = name:gsub("%.", "/")
   for template in path:gmatch("[^;]+") do
      local candidate = template:gsub("%?", file_name)
      local file = io.open(candidate, "r")
      if file then
         file:close()
         return candidate
      end
      tried[#tried + 1] = "\n\tno file '" .. candidate .. "'"
   end
   return nil, table.concat(tried)
end

local shared_modules = {
   string = string, table = table, math = math, io = io, debug = debug, coroutine = coroutine,
   bit = bit, jit = jit, ffi = script_ffi,
}

local function package_of(env)
   local package = { path = facts.package_path, cpath = _G.package.cpath, config = _G.package.config,
                     preload = {}, loaded = { _G = env, os = env.os } }
   for name, module in pairs(shared_modules) do
      package.loaded[name] = module
   end
   local function require_module(name)
      local loaded = package.loaded[name]
      if loaded ~= nil then
         return loaded
      end
      local result
      if package.preload[name] then
         result = package.preload[name](name)
      else
         local path, tried = find_module(package.path, name)
         if path == nil then
            local is_there, module = pcall(real_require, name)
            if not is_there then
               error("module '" .. tostring(name) .. "' not found:" .. tried, 2)
            end
            result = module
         else
            result = load_chunk(path, env)(name)
         end
      end
      if result ~= nil then
         package.loaded[name] = result
      elseif package.loaded[name] == nil then
         package.loaded[name] = true
      end
      return package.loaded[name]
   end
   return package, require_module
end

-- Environments ---------------------------------------------------------------------------------------------------------

local function copy_of(table)
   local copy = {}
   for key, value in pairs(table) do
      copy[key] = value
   end
   return copy
end

local globals = copy_of(_G)
-- By environment: the coroutine that may yield to the engine.
local own_coroutine = setmetatable({}, { __mode = "k" })

-- An environment for one user, and what is known of the user; `user` is nil in the global state, `tid` its number.
function runtime.environment(user, tid)
   local env = copy_of(globals)
   env._G, env.print = env, print
   env.os = copy_of(os)
   -- Others of the loop work while a shell command runs.
   function env.os.execute(command)
      if command == nil or native.loop.user == nil or coroutine.running() ~= own_coroutine[env] then
         return os.execute(command)
      end
      native.start_errand(native.loop, command, #command)
      yield(wants.ERRAND)
      return native.errand_status(native.loop)
   end
   local hooks = {}
   -- A connection is held for as long as the script refers to it.
   local own = { user = user, hooks = hooks, held = setmetatable({}, { __mode = "v" }) }
   local cmdline = copy_of(facts.cmdline)
   cmdline.PARALLEL_COMMAND = true
   local types = { "NULL", "BOOL", "INT", "SIZE", "DOUBLE", "STRING", "LIST", "FILE", "MAX" }
   for place, name in ipairs(types) do
      cmdline["ARG_" .. name] = place - 1
   end
   cmdline.options, cmdline.commands = nil, nil
   env.sysbench = {
      tid = tid, version = facts.version, version_string = "sysbench " .. facts.version,
      error = { NONE = 0, RESTART_EVENT = 1 },
      hooks = hooks, cmdline = cmdline, rand = copy_of(rand), sql = sql.for_user(own),
      histogram = { new = Histogram.new },
      report_default = report_default, report_csv = report_csv, report_json = report_json,
   }
   env.sysbench.db = env.sysbench.sql
   if facts.is_cpu_test then
      env.count_primes = function(limit) return native.count_primes(native.loop, limit) end
   end
   -- Whether it is among the script's own commands, with a function.
   local function is_own(name)
      local commands = cmdline.commands
      local command = type(commands) == "table" and commands[name] or nil
      return type(command) == "table" and command[1] ~= nil
   end
   function cmdline.command_defined(name)
      return is_own(name) or ((name == "prepare" or name == "cleanup") and type(env[name]) == "function")
   end
   function cmdline.command_parallel(name)
      return is_own(name) and cmdline.commands[name][2] == true
   end
   function cmdline.call_command(name)
      local body = is_own(name) and cmdline.commands[name][1] or env[name]
      if type(body) ~= "function" then
         error("the script has no command '" .. tostring(name) .. "'", 2)
      end
      body()
      return true
   end
   function cmdline.print_test_options()
      io.write(runtime.test_help or "")
   end
   function cmdline.read_cmdline_options()
   end
   env.ffi = script_ffi
   env.bit = bit
   env.package, env.require = package_of(env)
   -- Names from sysbench 0.5 that scripts still use.
   env.thread_id, env.test = tid, facts.test
   env.sb_rand, env.sb_rand_uniform, env.sb_rand_gaussian = rand.default, rand.uniform, rand.gaussian
   env.sb_rand_special, env.sb_rand_str = rand.special, rand.string
   -- Those outside the range are left out, so that none repeats.
   function env.sb_rand_uniq(least, most)
      local number
      repeat
         number = rand.unique()
      until number >= (least or 0) and number <= (most or number)
      return number
   end
   env.sb_rnd = function() return rand.uniform(0, 1073741822) end
   env.DB_ERROR_NONE, env.DB_ERROR_RESTART_TRANSACTION, env.DB_ERROR_FAILED = 0, 1, 2
   env.db_connect = function() env.db_connection = env.sysbench.sql.driver():connect() end
   env.db_disconnect = function() env.db_connection:disconnect() end
   env.db_query = function(query) return env.db_connection:query(query) end
   env.db_bulk_insert_init = function(query) return env.db_connection:bulk_insert_init(query) end
   env.db_bulk_insert_next = function(values) return env.db_connection:bulk_insert_next(values) end
   env.db_bulk_insert_done = function() return env.db_connection:bulk_insert_done() end
   return env, own
end

-- Runs the script's body in an environment.
function runtime.load_script(env)
   setfenv(0, env)
   if facts.script_file then
      load_chunk(facts.script_file, env)()
   else
      local chunk, problem = loadstring(facts.script_text, "=stdin")
      if chunk == nil then
         error(problem, 0)
      end
      setfenv(chunk, env)()
   end
end

-- Lists are copied, so that one user's changes are not another's.
function runtime.set_options(env)
   local options = {}
   for name, value in pairs(facts.options) do
      options[name] = type(value) == "table" and copy_of(value) or value
   end
   env.sysbench.opt = options
end

-- For the global state, which has to be there before the options are known.
function runtime.know_options(env, options)
   facts.options = options
   runtime.set_options(env)
end

-- The environment of the global state; its coroutine runs the script's body in it.
function runtime.global_state()
   local env, own = runtime.environment(nil, 0)
   runtime.env_of_global_state, runtime.own_of_global_state = env, own
   return env
end

function runtime.load_global_state()
   runtime.load_script(runtime.env_of_global_state)
end

-- What a command of the script is called by, where one user carries it out: in the global state.
function runtime.command_function(name)
   local env = runtime.env_of_global_state
   local function body() env.sysbench.cmdline.call_command(name) end
   local commands = env.sysbench.cmdline.commands
   local is_own = type(commands) == "table" and commands[name] ~= nil
   return body, is_own and "sysbench.cmdline.call_command" or name
end

-- Keeps where an error came from, which is lost when its frames are left.
local function with_trace(problem)
   if type(problem) == "table" then
      return problem
   end
   runtime.trace = debug.traceback(tostring(problem), 2)
   return problem
end
runtime.with_trace = with_trace

-- An error that a script raised, as sysbench prints it.
local function text_of(problem)
   return (type(problem) == "string" or type(problem) == "number") and tostring(problem) or "(not a string)"
end

-- Calls a function of the script; `name` is for the message.
local function call(name, body, ...)
   local went_well, problem = xpcall(body, with_trace, ...)
   if went_well then
      return problem
   end
   if type(problem) == "table" and problem.sql_errmsg then
      problem = string.format("an ignored error stands outside event(), where nothing can be begun again: %d: %s",
                              problem.sql_errno, problem.sql_errmsg)
   end
   error({ name = name, message = text_of(problem), trace = runtime.trace }, 0)
end

-- What a yield gives before an event; see Told in driver.rs.
local GOES_ON, IS_OVER = 0, 4
local AGAIN, DONE = wants.AGAIN, wants.DONE

-- One event, begun again as often as ignored errors want it; its result.
local function run_event(env, own, tid)
   local user = own.user
   while true do
      local went_well, result = xpcall(env.event, with_trace, tid)
      if went_well then
         return result
      end
      if type(result) ~= "table" or result.errcode ~= 1 then
         if type(result) == "table" and result.sql_errmsg then
            result = result.sql_errmsg
         end
         error({ name = "thread_run", message = text_of(result), trace = runtime.trace }, 0)
      end
      if yield(AGAIN, tonumber(result.sql_errno) or 0) ~= GOES_ON then
         return true
      end
      if user.is_over ~= 0 then
         user.is_over = 0
         result.sql_errno, result.sql_state, result.sql_errmsg = user.sql_errno, "HY000", "the connection was lost"
      end
      local hook = env.sysbench.hooks.before_restart_event
      if type(hook) == "function" then
         call("before_restart_event", hook, result)
      end
   end
end

-- Runs the script's body for a user; what fails is reported without a function.
local function load_for_user(env)
   call("", runtime.load_script, env)
end

-- What a worker's coroutine does.
function runtime.worker(user, tid)
   local env, own = runtime.environment(user, tid)
   own_coroutine[env] = coroutine.running()
   load_for_user(env)
   runtime.set_options(env)
   if type(env.event) ~= "function" then
      error({ name = "event", message = "cannot find the event() function in " .. facts.test }, 0)
   end
   if type(env.thread_init) == "function" then
      call("thread_init", env.thread_init, tid)
   end
   local ends = yield(wants.READY)
   if type(env.thread_run) == "function" then
      if ends ~= IS_OVER then
         call("thread_run", env.thread_run, tid)
      end
   else
      while ends == GOES_ON do
         if run_event(env, own, tid) then
            break
         end
         ends = yield(DONE)
      end
   end
   if ends == IS_OVER then
      sql.end_connection(own)
   end
   if type(env.thread_done) == "function" then
      local went_well, problem = pcall(call, "thread_done", env.thread_done, tid)
      if not went_well then
         -- The user's events are done: they count.
         local text = "`thread_done' function failed: " .. problem.message
         native.log_line(native.loop, text, #text, 0)
         native.fail_late(native.loop)
      end
   end
end

-- What the coroutine of a command (prepare, cleanup, …) does.
function runtime.command(user, tid)
   local env = runtime.environment(user, tid)
   own_coroutine[env] = coroutine.running()
   load_for_user(env)
   runtime.set_options(env)
   call("sysbench.cmdline.call_command", env.sysbench.cmdline.call_command, facts.command)
end

-- The body of the global state's coroutine: it calls what `runtime.to_call` names, again and again. `runtime.to_call`: the
-- function's name, for messages, the function, and its argument.
function runtime.caller(user)
   runtime.own_of_global_state.user = user
   own_coroutine[runtime.env_of_global_state] = coroutine.running()
   repeat
      local name, body, argument = unpack(runtime.to_call, 1, 3)
      runtime.reports = name
      call(name, body, argument)
   until yield(DONE) == IS_OVER
end

-- The coroutine of a user: what it gives at its end says how it went.
function runtime.start(body, address, tid)
   local user = ffi.cast("struct whyso_user *", address)
   return coroutine.create(function()
      local went_well, problem = xpcall(runtime[body], with_trace, user, tid)
      if went_well then
         return wants.FINISHED
      end
      if type(problem) ~= "table" or problem.name == nil then
         problem = { name = body, message = tostring(problem), trace = runtime.trace }
      end
      runtime.failure = problem
      return wants.FAILED
   end)
end

return runtime
