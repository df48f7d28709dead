local site_submit = slurm_job_submit
local site_modify = slurm_job_modify

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
