local health = { status = "Progressing", message = "Waiting for the first visit of its controller" }
if obj.status == nil or obj.status.conditions == nil then
  return health
end
if obj.status.observedGeneration ~= nil and obj.status.observedGeneration ~= obj.metadata.generation then
  health.message = "The newest change has not been looked at yet"
  return health
end
local conditions = {}
for _, condition in ipairs(obj.status.conditions) do
  conditions[condition.type] = condition
end
local ready, stalled, reconciling = conditions.Ready, conditions.Stalled, conditions.Reconciling
if stalled ~= nil and stalled.status == "True" then
  return { status = "Degraded", message = stalled.message }
end
if ready == nil then
  return health
end
if ready.status == "True" then
  return { status = "Healthy", message = ready.message }
end
-- Not ready and not on its way there: somebody wants it so, as a zone that takes no new servers.
if ready.status == "False" and (reconciling == nil or reconciling.status == "False") then
  return { status = "Suspended", message = ready.reason }
end
return { status = "Progressing", message = ready.message }
