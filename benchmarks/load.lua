-- What wrk sends, for benchmarks/load.py. Arguments: what (feedback, decide or mix), seconds, and a file of decisions.
--
-- Each decision of the file is used once: when they have run out nothing more is sent, and `missing` says so. After the
-- seconds nothing more is sent either, and wrk is given longer, so that everything sent is answered and counted.

local ffi = require("ffi")
ffi.cdef("typedef struct { long seconds; long nanoseconds; } pamo_time; int clock_gettime(int clock, pamo_time *time);")
local MONOTONIC = ffi.os == "OSX" and 6 or 1
local time = ffi.new("pamo_time")

local function now()
  ffi.C.clock_gettime(MONOTONIC, time)
  return tonumber(time.seconds) + tonumber(time.nanoseconds) * 1e-9
end

local USERS = 5000
local JSON = { ["Content-Type"] = "application/json" }
local what, seconds, ends
local ids, bodies, waiting = {}, {}, {}

-- Global, so that `done` can ask the thread for them.
used, missing, decided, recorded, refused, first, last = 0, 0, 0, 0, 0, 0, 0

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init(arguments)
  what, seconds = arguments[1], tonumber(arguments[2])
  if arguments[3] then
    for line in io.lines(arguments[3]) do ids[#ids + 1] = line end
  end
  for n = 1, 997 do -- a prime, so that every user gives all of them
    bodies[n] = string.format(
      '{"rewards":{"price":%d,"taste":%.2f,"service":%.3f},"overall":%.2f}',
      n * 37 % 500, 1 + n * 13 % 400 / 100, n * 7 % 1000 / 1000, 1 + n * 29 % 400 / 100)
  end
  if what == "mix" then
    response = read
  end
end

local function feedback(id, n)
  return wrk.format("POST", "/v1/decisions/" .. id .. "/feedback", JSON, bodies[n % #bodies + 1])
end

local function decide(n)
  return wrk.format("POST", "/v1/decisions", JSON, '{"user":"user-' .. n % USERS .. '"}')
end

-- Nothing left to send: wait longer than wrk runs.
function delay()
  if used == 0 then return 0 end
  last = now()
  if first == 0 then
    first, ends = last, last + seconds
  end
  if last >= ends then return 1e9 end
  if what == "feedback" and used >= #ids then
    missing = missing + 1
    return 1e9
  end
  return 0
end

function request()
  used = used + 1
  if what == "feedback" then return feedback(ids[used] or "none", used) end
  if what == "decide" then return decide(used) end
  local id = table.remove(waiting)
  if id then return feedback(id, used) end
  return decide(used)
end

function read(status, headers, body)
  if status == 201 then
    decided = decided + 1
    waiting[#waiting + 1] = string.match(body, '"id":"([^"]+)"')
  elseif status == 200 then
    recorded = recorded + 1
  else
    refused = refused + 1
  end
end

function done(summary, latency, requests)
  local thread, errors = threads[1], summary.errors
  io.write(string.format(
    '\n{"answers":%d,"refused":%d,"lost":%d,"missing":%d,"decided":%d,"recorded":%d,"seconds":%.6f,' ..
    '"p50":%.3f,"p90":%.3f,"p99":%.3f,"p99.9":%.3f,"worst":%.3f}\n',
    summary.requests, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    thread:get("missing"), thread:get("decided"), thread:get("recorded"), thread:get("last") - thread:get("first"),
    latency:percentile(50) / 1000, latency:percentile(90) / 1000, latency:percentile(99) / 1000,
    latency:percentile(99.9) / 1000, latency.max / 1000))
end
