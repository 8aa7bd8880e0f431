export { usageFromAgents } from './agents.ts'
export { runUsageCollector, type UsageSource } from './collector.ts'
