"""The scripts that Slurm's commands run at submission, written, chained and taken away again.

``cli_filter.lua`` is run by sbatch, salloc and srun themselves, with the user's
rights; it asks ``nidmap slurm constrain`` and ``nidmap slurm launch`` and gives
them so many seconds in all, whatever they start or leave behind.
``job_submit.lua`` is run inside slurmctld, where nothing may be started or waited
for: it only counts leaves. A script that is there already is kept beside ours and
runs first.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from placement import __version__
from placement.commands.common import write_output
from placement.errors import OutputError, UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CLI_FILTER", "JOB_SUBMIT", "cli_filter", "install", "job_submit", "remove"]

CLI_FILTER, JOB_SUBMIT = "cli_filter.lua", "job_submit.lua"

#: What the first line of a script of ours begins with.
_MARK = "-- nidmap"

_HEAD = """-- nidmap {version}: {name}, written by `nidmap slurm install`;
-- `nidmap slurm remove` takes it away. A script that was here before is beside it,
-- as {kept}, and runs first.

local kept = io.open({path})
if kept then
  kept:close()
  dofile({path})
end
"""

_CLI_FILTER = (
    _HEAD
    + """
local site_defaults = slurm_cli_setup_defaults
local site_pre = slurm_cli_pre_submit
local site_post = slurm_cli_post_submit

local NIDMAP = {command}
local SECONDS, CENTISECONDS = "{seconds:g}", {centiseconds}
local SIGN = "nidmap.options/1"
local ALLOWED = {{
  sbatch = {{ exclude = true, switches = true, nodelist = true, segment = true }},
  salloc = {{ exclude = true, switches = true, nodelist = true, segment = true }},
  srun = {{ nodelist = true, distribution = true, ntasks = true, nodes = true,
           ["ntasks-per-node"] = true, export = true }},
}}

local function say(text)
  io.stderr:write("nidmap: " .. text .. "\\n")
end

local function quoted(text)
  return "'" .. text:gsub("'", "'\\\\''") .. "'"
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
  local both = limited .. "; echo \\"code $?\\"; }} | " .. reader
  local pipe = io.popen("{{ {{ " .. both .. "; }} 2>/dev/null")
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
  local whole = text:sub(1, #SIGN + 1) == SIGN .. "\\n" and text:find("\\ndone\\n", 1, true)
  if code ~= "0" or not whole then
    return nil, "nidmap failed (code " .. tostring(code) .. ")"
  end
  local found = {{}}
  for line in text:gmatch("[^\\n]+") do
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
  local words = {{}}
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
    end
    if not ok then pcall(say, tostring(why) .. ": started as written") end
  end
  return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job_id, step_id)
  return site_post and site_post(offset, job_id, step_id) or slurm.SUCCESS
end
"""
)

_JOB_SUBMIT = (
    _HEAD
    + """
local site_submit = slurm_job_submit
local site_modify = slurm_job_modify

local LEAF = {leaf}  -- nodes of a leaf switch
local UNSET = 1e6  -- numbers of Slurm's that stand for none are larger
local WAIT = 600  -- seconds that a job waits for so few leaves at most

function slurm_job_submit(job, partitions, uid)
  if site_submit then
    local code = site_submit(job, partitions, uid)
    if code ~= slurm.SUCCESS then return code end
  end
  pcall(function()
    local wanted = (job.comment or ""):sub(1, 7) == "nidmap:"
    local free = not (job.req_nodes or job.exc_nodes or job.array_inx)
    local switches = job.req_switch or 0
    if not (wanted and free) or (switches > 0 and switches < UNSET) then return end
    if job.min_nodes and job.min_nodes < UNSET and job.min_nodes == job.max_nodes then
      job.req_switch = math.ceil(job.min_nodes / LEAF)
      job.wait4switch = WAIT
    end
  end)
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
  return site_modify and site_modify(job, record, partitions, uid) or slurm.SUCCESS
end
"""
)


def cli_filter(folder: str, command: Sequence[str], seconds: float) -> str:
    """Return the text of ``cli_filter.lua``.

    Parameters
    ----------
    folder : str
        Where it will stand: a script that was there is looked for beside it.
    command : sequence of str
        What starts nidmap.
    seconds : float
        What a submission or a launch may wait for its answers.
    """
    return _CLI_FILTER.format(
        command=_lua(shlex.join(command)),
        seconds=seconds,
        centiseconds=round(100 * seconds),
        **_names(folder, CLI_FILTER),
    )


def job_submit(folder: str, leaf: int) -> str:
    """Return the text of ``job_submit.lua``, for leaf switches of so many nodes."""
    return _JOB_SUBMIT.format(leaf=leaf, **_names(folder, JOB_SUBMIT))


def _names(folder: str, name: str) -> dict[str, str]:
    kept = _kept(name)
    path = _lua(os.path.join(os.path.abspath(folder), kept))
    return {"version": __version__, "name": name, "kept": kept, "path": path}


def _kept(name: str) -> str:
    """Return what a site's own script is called while ours has its name."""
    return name.replace(".lua", ".site.lua")


def _lua(text: str) -> str:
    """Return a text as Lua writes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def install(folder: str, name: str, text: str) -> str:
    """Write a script; one that is there and not ours is kept beside it. Return what was done.

    Raises
    ------
    UsageError
        Two scripts of the site's are there.
    OutputError
        It cannot be written.
    """
    path, kept = os.path.join(folder, name), os.path.join(folder, _kept(name))
    chained = ""
    if os.path.exists(path) and not _is_ours(path):
        if os.path.exists(kept):
            raise UsageError(f"{printable(path)} and {printable(kept)} are both there")
        _renamed(path, kept)
        chained = f"; the script that was there is {kept} now, and runs first"
    write_output(text, path)
    return f"{path} written{chained}"


def remove(folder: str, name: str) -> str:
    """Take a script of ours away, put back what was there; return what was done, '' if nothing."""
    path, kept = os.path.join(folder, name), os.path.join(folder, _kept(name))
    if not _is_ours(path):
        return ""
    if os.path.exists(kept):
        _renamed(kept, path)
        return f"{path} is the site's own again"
    try:
        os.unlink(path)
    except OSError as error:
        raise OutputError(f"cannot remove {printable(path)}: {error.strerror}") from None
    return f"{path} removed"


def _renamed(one: str, other: str) -> None:
    try:
        os.rename(one, other)
    except OSError as error:
        raise OutputError(f"cannot rename {printable(one)}: {error.strerror}") from None


def _is_ours(path: str) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.readline().startswith(_MARK)
    except OSError:
        return False
