import { noun } from '../kit/noun.ts'
import type { Parts } from '../kit/parts.ts'
import type { Servers } from '../nouns/server/index.ts'
import { type AgentConnections, openConsoles } from './consoles.ts'
import { consoleEndpoints } from './endpoints.ts'

export { openAgents } from './agents.ts'
export type { AgentConnections } from './consoles.ts'

export const serverConsole = noun<Parts & { readonly servers: Servers; readonly agents: AgentConnections }>({
  name: 'console',
  endpoints: (parts) => consoleEndpoints(parts, parts.servers, openConsoles(parts, parts.servers, parts.agents)),
})
