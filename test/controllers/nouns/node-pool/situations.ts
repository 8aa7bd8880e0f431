/** Pools, their servers and nodes as the plan of node pools finds them, for its tests. */
import { nodeNameOf } from '../../../../domain/node-pool/rules.ts'
import { machineName, type Machine } from '../../../../controllers/nouns/managed-machine/index.ts'
import { nodeDemand, marksOf, slotsOf } from '../../../../controllers/nouns/node-pool/nodes.ts'
import type { ApiView, NodePoolObject, Observed } from '../../../../controllers/nouns/node-pool/observed.ts'
import { plan } from '../../../../controllers/nouns/node-pool/plan.ts'
import type { ControlPlaneNode, ServingRequest } from '../../../../integrations/control-planes/control.ts'
import { KubernetesCluster } from '../../../../resources/kubernetes-cluster/index.ts'
import { NodePool } from '../../../../resources/node-pool/index.ts'
import { Server, type ServerSpec } from '../../../../resources/server/index.ts'
import type { OperationStanza } from '../../../../resources/kit/shapes.ts'
import { STARTED } from '../managed-machine/started.ts'

export const NOW = new Date('2026-03-01T12:00:00Z')
export const at = (minutes: number): string => new Date(NOW.getTime() + minutes * 60_000).toISOString()
export const UID = 'uid-of-the-pool'
export const nameOf = (number: number) => nodeNameOf({ name: 'web', uid: UID }, number)
export const JOIN = { tokenId: 'abcdef', expiresAt: at(50) }

export const operationOf = (action: string, more: Partial<OperationStanza> = {}): OperationStanza => ({
  id: '00000000-0000-4000-8000-000000000002',
  kind: 'node_pool.sync',
  actor: 'user:ada',
  requestId: 'r',
  requestedAt: at(-1),
  deadlineAt: at(59),
  arguments: { action },
  ...more,
})

export interface PoolOptions {
  readonly count?: number
  readonly spec?: Partial<NodePoolObject['spec']>
  readonly status?: Partial<NonNullable<NodePoolObject['status']>>
  readonly operation?: OperationStanza
}
export function poolWith({ count = 1, spec = {}, status = {}, operation }: PoolOptions = {}): NodePoolObject {
  const base = NodePool.spec.parse({
    clusterId: 'shop',
    zone: 'eu-1a',
    name: 'web',
    plan: 'small',
    version: '1.36',
    count,
    labels: { tier: 'front' },
  })
  const ended = { ...operationOf('create'), id: 'earlier' }
  return {
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'NodePool',
    metadata: { name: 'p', namespace: 'acct-a', uid: UID, generation: 3, creationTimestamp: at(-60) },
    spec: { ...base, ...spec, operation: operation ?? ended },
    status: {
      isMade: true,
      operation: {
        id: ended.id,
        kind: ended.kind,
        step: 'drained',
        stepIndex: 4,
        stepCount: 4,
        error: '',
        status: 'succeeded',
        actor: ended.actor,
        createdAt: at(-60),
        deadlineAt: at(0),
      },
      ...status,
    },
  }
}

export const MARKED = marksOf(poolWith(), 'eu-1').digest
export const nodeOf = (number: number, more: Partial<ControlPlaneNode> = {}): ControlPlaneNode => ({
  name: nameOf(number),
  isReady: true,
  kubeletVersion: 'v1.36.3',
  marked: MARKED,
  address: `10.1.0.${10 + number}`,
  podCidr: `172.20.${number}.0/24`,
  ...more,
})
/** It runs what it must unless that says otherwise. */
export const machineOf = (number: number, more: Partial<Machine> = {}): Machine => ({
  ...STARTED,
  role: `n${number}`,
  serverId: machineName({ uid: UID, type: 'node_pool' }, `n${number}`),
  serverUid: `s${number}`,
  plan: 'small',
  createdAt: at(-5),
  node: 'h1',
  publicIpv6: '2001:2::5',
  publicMacAddress: '52:54:00:00:00:05',
  interfaces: [
    {
      id: `i${number}`,
      networkId: 'back',
      macAddress: '02:00:00:00:00:01',
      ipv4Address: `10.1.0.${10 + number}`,
      ipv6Address: 'fd00::5',
    },
  ] as unknown as Machine['interfaces'], // what the rules look at
  isHealthy: true,
  judgedSince: at(-1),

  ...more,
})
export const PLANE: ApiView['plane'] = {
  id: '00000000-0000-4000-8000-000000000001',
  phase: 'running',
  release: '1.36.3',
  detail: '',
  addons: [],
  grants: [],
  endpoint: 'https://127.0.0.1:1',
  certificateAuthority: 'pem',
  apiServer: 'healthy',
  apiServersReady: 1,
  etcdMembersReady: 1,
  etcdMembersTotal: 1,
  hasEtcdQuorum: true,
  restoreId: null,
  observedAt: at(0),
  forNodes: { endpoint: 'https://[2001:2::1]:6443', tunnel: { host: '2001:2::1', port: 6_444 } },
  snapshotStore: { mark: '', detail: '' },
}
export const CLUSTER: NonNullable<Observed['cluster']> = {
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'KubernetesCluster',
  metadata: { name: 'shop', namespace: 'acct-a' },
  spec: KubernetesCluster.spec.parse({ zone: 'eu-1a', name: 'shop', networkId: 'back', version: '1.36' }),
  status: { isMade: true },
}

export interface World extends Partial<Omit<Observed, 'api'>> {
  readonly nodes?: readonly ControlPlaneNode[]
  readonly requests?: readonly ServingRequest[]
  readonly api?: Observed['api']
}
export const observedWith = ({ nodes = [], requests = [], ...more }: World = {}): Observed => ({
  accountId: 'a',
  isClaimed: true,
  cluster: CLUSTER,
  region: 'eu-1',
  machines: [],
  lost: [],
  removed: [],
  edits: [],
  editor: 'user:ada',
  scaling: undefined,
  numbersInUse: [],
  mayGrow: true,
  clusterClaim: {
    zone: 'eu-1a',
    region: 'eu-1',
    name: 'shop',
    networkId: 'back',
    controlPlaneId: PLANE.id,
    release: '1.36.3',
    replicas: 1,
    podCidr: '172.20.0.0/16',
    serviceCidr: '172.21.0.0/16',
  },
  api: { plane: PLANE, releases: ['1.35.4', '1.36.3'], nodes, requests },
  ...more,
})

/** Machines that run what is asked of them. */
export function running(pool: NodePoolObject, world: World): Observed {
  const observed = observedWith(world)
  const slots = slotsOf(pool, observed, Math.max(pool.spec.count, 9))
  const machines = observed.machines.map((machine) => {
    const slot = slots.find(({ role }) => role === machine.role)
    const demand = slot && nodeDemand(pool, observed, slot)
    const told = machine.delivered ?? demand?.configuration
    return { ...machine, delivered: told, running: told, sharedAddresses: demand?.sharedAddresses ?? [] }
  })
  return { ...observed, machines }
}

export interface Decided {
  readonly effects: Readonly<Record<string, unknown>>
  readonly made: readonly string[]
  readonly removed: readonly string[]
  readonly status: Record<string, unknown>
  readonly outcome: string | undefined
  readonly step: string | undefined
  readonly change: unknown
}
export function decide(pool: NodePoolObject, observed: Observed, now = NOW): Decided {
  const actions = plan(pool, observed, now)
  const operation = actions.find((each) => each.do === 'operation')
  const change = actions.find((each) => each.do === 'change')
  return {
    effects: Object.fromEntries(
      actions.flatMap((each) => (each.do === 'effect' && each.name !== 'audit' ? [[each.name, each.input]] : [])),
    ),
    made: actions.flatMap((each) =>
      each.do === 'ensure' && each.type.kind === Server.kind ? [(each.draft.spec as ServerSpec).hostname] : [],
    ),
    removed: actions.flatMap((each) => (each.do === 'remove' ? [each.key.name] : [])),
    status: Object.assign({}, ...actions.flatMap((each) => (each.do === 'status' ? [each.status] : []))),
    outcome: operation?.outcome,
    step: operation?.step,
    change: change?.patch,
  }
}
