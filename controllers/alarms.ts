/** What calls for a person, as numbers that alerts watch. Only the leader of a shard knows them, of its own zones;
 *  whoever does not lead says 0. */
import { NODE_STATES } from '../domain/node-rules.ts'
import type { KubeObject } from '../kit/kube/object.ts'
import { Gauge, type Registry } from '../kit/sys/metrics.ts'
import type { NodeSpec, NodeStatus } from '../resources/node/index.ts'
import type { ServerSpec, ServerStatus } from '../resources/server/index.ts'
import type { SweepResult } from './change-intent/index.ts'
import type { OperationObject } from './operation/record.ts'
import { DOWNTIME_EXCEEDED } from './server/index.ts'

export interface Watched {
  readonly nodes: () => readonly KubeObject<NodeSpec, NodeStatus>[]
  readonly servers: () => readonly KubeObject<ServerSpec, ServerStatus>[]
  /** Those that run or have ended within the last hour. */
  readonly operations: () => readonly OperationObject[]
}

/** What is told to the alarms, because nothing can be asked for it. */
export interface Alarms {
  readonly noteSweep: (result: SweepResult) => void
}

export function openAlarms({ nodes, servers, operations }: Watched, registry: Registry): Alarms {
  new Gauge({
    name: 'svccloud_nodes',
    help: 'Nodes by state',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      for (const state of NODE_STATES)
        this.set({ state }, nodes().filter(({ status }) => (status?.state ?? 'provisioning') === state).length)
    },
  })
  new Gauge({
    name: 'svccloud_deletions_overdue',
    help: 'Servers whose deletion goes on beyond its deadline',
    registers: [registry],
    collect() {
      this.set(servers().filter(isOverdue).length)
    },
  })
  new Gauge({
    name: 'svccloud_downtimes_exceeded',
    help: 'Moves of the last hour whose guest stood still for longer than its migration policy allows',
    registers: [registry],
    collect() {
      this.set(
        operations().filter(({ status }) => status?.events?.some(({ kind }) => kind === DOWNTIME_EXCEEDED)).length,
      )
    },
  })
  const unknownIntents = new Gauge({
    name: 'svccloud_change_intents_unknown',
    help: 'Change intents of the last sweep that no noun has registered for',
    registers: [registry],
  })
  return { noteSweep: ({ unknown }) => unknownIntents.set(unknown) }
}

const isOverdue = ({ status }: KubeObject<ServerSpec, ServerStatus>): boolean =>
  status?.state === 'deleting' && status.operation?.status === 'failed'
