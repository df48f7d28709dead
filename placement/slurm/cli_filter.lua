local site_defaults = slurm_cli_setup_defaults
local site_pre = slurm_cli_pre_submit
local site_post = slurm_cli_post_submit

local SIGN = "nidmap.options/1"
local ALLOWED = {
  sbatch = { exclude = true, nodelist = true, segment = true },
  salloc = { exclude = true, nodelist = true, segment = true },
  srun = { nodelist = true, distribution = true, ntasks = true, nodes = true,
           ["ntasks-per-node"] = true, export = true },
}

local function say(text)
  io.stderr:write("nidmap: " .. text .. "\n")
end

local function quoted(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- What a clock shows that nobody sets.
local function now()
  local file = io.open("/proc/uptime")
  local seconds, rest = file:read("*a"):match("^(%d+)%.(%d%d)")
  file:close()
  return tonumber(seconds) * 100 + tonumber(rest)
end

local function text_of(centiseconds)
  return string.format("%d.%02d", math.floor(centiseconds / 100), centiseconds % 100)
end

-- Run a command until a time; what it says is not waited for any longer, not even where
-- something that it has started still holds its output.
local function answer(command, finish)
  local left = finish - now()
  if left < 10 then return "code 137" end
  local limited = "timeout -s KILL " .. text_of(left) .. " " .. command .. " </dev/null"
  local reader = "timeout -s KILL " .. text_of(left + 5) .. " sed '/^code [0-9]*$/q'"
  local both = limited .. "; echo \"code $?\"; } | " .. reader
  local pipe = io.popen("{ { " .. both .. "; } 2>/dev/null")
  local text = pipe:read("*a")
  pipe:close()
  return text
end

-- Ask nidmap until a time; return its options, or nil and why there are none.
local function ask(words, finish)
  local text = answer("env NIDMAP_FILTER=off " .. NIDMAP .. " slurm " .. words, finish)
  local code = text:match("code (%d+)%s*$")
  if now() >= finish - 10 and (not code or code == "137") then
    return nil, "no answer in " .. SECONDS .. " s"
  end
  if not code or code == "127" then return nil, "nidmap or timeout is not there" end
  local whole = text:sub(1, #SIGN + 1) == SIGN .. "\n" and text:find("\ndone\n", 1, true)
  if code ~= "0" or not whole then
    return nil, "nidmap failed (code " .. tostring(code) .. ")"
  end
  local found = {}
  for line in text:gmatch("[^\n]+") do
    local said = line:match("^say (.*)")
    local name, value = line:match("^set ([%w-]+)=(.*)")
    if said then say(said) elseif name then found[name] = value end
  end
  return found
end

local function apply(options, words, finish)
  local found, why = ask(words, finish)
  if not found then
    say(why .. ": started as written")
    return
  end
  for name in pairs(found) do
    if not ALLOWED[options["type"]][name] then
      say("nidmap answered '" .. name .. "': started as written")
      return
    end
  end
  for name, value in pairs(found) do options[name] = value end
end

local function command_line()
  local words = {}
  local file = io.open("/proc/self/cmdline", "rb")
  for word in file:read("*a"):gmatch("([^%z]*)%z") do words[#words + 1] = word end
  file:close()
  return words
end

local function heterogeneous(options, words)
  for _, word in ipairs(words) do
    if word == ":" then return true end
  end
  local file = io.open(tostring(options.argv and options.argv[1]), "rb")
  local text = file and file:read(1048576) or ""
  if file then file:close() end
  return text:find("#SBATCH%s+hetjob") ~= nil or text:find("#SBATCH%s+packjob") ~= nil
end

local function submit(options, offset)
  local comment = options["comment"]
  if not comment or comment:sub(1, 7) ~= "nidmap:" then return end
  if offset > 0 then return end
  local finish = now() + CENTISECONDS
  if heterogeneous(options, command_line()) then
    say("a heterogeneous job has several layouts: submitted as written")
    return
  end
  apply(options, "constrain " .. quoted(slurm.json_cli_options(options)), finish)
end

local function launch(options)
  local job = os.getenv("SLURM_JOB_ID")
  if not job:match("^%d+$") or os.getenv("SLURM_HET_SIZE") then return end
  local finish = now() + CENTISECONDS
  local text = answer("squeue -h -j " .. job .. " -o %k", finish - math.floor(CENTISECONDS / 2))
  local comment = text:match("^(nidmap:%S*)")
  if not comment or not comment:find("pattern=", 1, true) then return end
  local words = command_line()
  for k, word in ipairs(words) do words[k] = quoted(word) end
  local file = io.open("/proc/self/stat")
  local pid = file:read("*n")
  file:close()
  apply(options, "launch --comment " .. quoted(comment) .. " --pid " .. pid .. " -- "
    .. table.concat(words, " "), finish)
end

function slurm_cli_setup_defaults(options, early)
  return site_defaults and site_defaults(options, early) or slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
  if site_pre then
    local code = site_pre(options, offset)
    if code ~= nil and code ~= slurm.SUCCESS then return code end
  end
  if os.getenv("NIDMAP_FILTER") ~= "off" then
    local inside = options["type"] == "srun" and os.getenv("SLURM_JOB_ID")
    local ok, why = true, nil
    if inside then
      ok, why = pcall(launch, options)
    elseif options["type"] == "sbatch" or options["type"] == "salloc" then
      ok, why = pcall(submit, options, offset)
    elseif (options["comment"] or ""):sub(1, 7) == "nidmap:" then
      say("an srun outside a job is not planned, sbatch and salloc are: started as written")
    end
    if not ok then pcall(say, tostring(why) .. ": started as written") end
  end
  return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job_id, step_id)
  return site_post and site_post(offset, job_id, step_id) or slurm.SUCCESS
end
