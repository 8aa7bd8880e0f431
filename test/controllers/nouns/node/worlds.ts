/** Nodes and what is seen of them, for tests of the plan; and the plan told in words. */
import type { NodeObject, Observed, TenantServer } from '../../../../controllers/nouns/node/observed.ts'
import { defined } from '../../../../domain/defined.ts'
import type { OperationKind } from '../../../../domain/operations.ts'
import { type Candidate, NO_ROOM } from '../../../../domain/node/placement.ts'
import type { Action } from '../../../../kit/reconcile/action.ts'
import type { NodeReportSpec } from '../../../../resources/instance/index.ts'
import type { NodeSpec, NodeStatus } from '../../../../resources/node/index.ts'
import type { ServerSpec, ServerStatus } from '../../../../resources/server/index.ts'
import type { OperationStanza } from '../../../../resources/kit/shapes.ts'

export const NOW = new Date('2026-01-01T12:00:00Z')
export const report: NodeReportSpec = {
  agentVersion: '1',
  bootId: 'b',
  logicalCpus: 4,
  memoryMebibytes: 8_192,
  storageGibibytes: 100,
  hypervisor: 'simulated',
  features: [],
}

export const node = (status?: NodeStatus, spec: Partial<NodeSpec> = {}, deletionTimestamp?: string): NodeObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Node',
  metadata: { name: 'n1', uid: 'u', generation: 1, ...defined({ deletionTimestamp }) },
  spec: {
    zone: 'z1',
    rack: 'r1',
    roles: ['compute'],
    isCordoned: false,
    cpuOvercommit: 4,
    reservedMemoryMebibytes: 2_048,
    ...spec,
  },
  ...defined({ status }),
})

export const candidate = (changes: Partial<Candidate> = {}): Candidate => ({
  node: 'n1',
  zone: 'z1',
  rack: 'r1',
  cpuPool: null,
  dedicatedAccountId: null,
  isSchedulable: true,
  total: { cores: 16, memoryMebibytes: 6_144, storageGibibytes: 100 },
  used: { cores: 0, memoryMebibytes: 0, storageGibibytes: 0 },
  ...changes,
})

export const observed = (changes: Partial<Observed> = {}): Observed => ({
  hasNamespace: true,
  hasAccess: true,
  report,
  heartbeat: { renewedAt: 't1', ageSeconds: 1 },
  held: { counts: { guests: 0, volumes: 0, images: 0, unclaimed: 0 }, ageSeconds: 1 },
  mirror: candidate(),
  forgotten: NO_ROOM,
  editor: 'user:kubectl',
  blockedDeletions: [],
  observers: [],
  observations: [],
  guests: [],
  instanceCount: 0,
  storages: [],
  volumeCount: 0,
  zoneNodes: [candidate({ isSchedulable: false }), candidate({ node: 'n2' })],
  ...changes,
})

export const stanza = (kind: OperationKind, changes: Partial<OperationStanza> = {}): OperationStanza => ({
  id: 'op',
  kind,
  requestedAt: '2026-01-01T11:00:00Z',
  deadlineAt: '2026-01-02T11:00:00Z',
  actor: 'operator',
  requestId: 'r',
  ...changes,
})

/** A server of one core that lives on the node. */
export const guest = (
  serverId: string,
  state: ServerStatus['state'],
  {
    operation,
    progress,
    isArriving = false,
  }: {
    readonly operation?: OperationStanza
    readonly progress?: 'running' | 'succeeded' | 'failed'
    readonly isArriving?: boolean
  } = {},
): TenantServer => ({
  accountId: 'a',
  namespace: 'acct-a',
  serverId,
  room: { cores: 1, memoryMebibytes: 512, storageGibibytes: 1 },
  cpuPool: undefined,
  group: undefined,
  isArriving,
  isOnPool: true,
  server: {
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'Server',
    metadata: { name: serverId, namespace: 'acct-a', uid: `uid-${serverId}` },
    spec: {
      hostname: serverId,
      zone: 'z1',
      plan: 'tiny',
      ...defined({ operation }),
    } as ServerSpec, // what the plan reads of it
    status: {
      state,
      nodeName: 'n1',
      ...(operation === undefined || progress === undefined
        ? {}
        : {
            operation: {
              id: operation.id,
              kind: operation.kind,
              status: progress,
              step: '',
              stepIndex: 0,
              stepCount: 1,
              error: progress === 'failed' ? 'The target was lost.' : '',
              actor: operation.actor,
              createdAt: '',
              deadlineAt: '',
            },
          }),
    },
  },
})

/** What lines show of the inputs of effects. */
const SHOWN_INPUTS: Readonly<Record<string, readonly string[]>> = {
  mirror: ['isSchedulable'],
  order: ['kind', 'id'],
}

export const actionLines = (actions: readonly Action[]) =>
  actions.flatMap((action) => {
    switch (action.do) {
      case 'status':
        return [`state ${String(action.status['state'])}`]
      case 'effect':
        return [
          ['effect', action.name, ...(SHOWN_INPUTS[action.name] ?? []).map((name) => String(action.input[name]))].join(
            ' ',
          ),
        ]
      case 'ensure':
      case 'remove':
        return [`${action.do} ${action.type.kind}`]
      case 'operation':
        return [`operation ${action.outcome ?? action.step}`]
      case 'change':
        return [`change ${JSON.stringify(action.patch['spec'])}`]
      case 'wait':
        return []
      default:
        return [action.do]
    }
  })
export const statusOf = (actions: readonly Action[]) => actions.find((action) => action.do === 'status')?.status
export const operationOf = (actions: readonly Action[]) => actions.find((action) => action.do === 'operation')
