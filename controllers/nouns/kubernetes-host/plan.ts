/** The plan of hosts of control planes: pure, synchronous, total. A host is one of the platform's own clusters, and a
 *  host process in it; the first part that is missing or not ready is the step of the operation. */
import { isFinal, type KindOf } from '../../../domain/operations.ts'
import { DAY_MILLISECONDS } from '../../../kit/sys/certificate.ts'
import { keyOf, type KubeObject, type ResourceType } from '../../../kit/kube/object.ts'
import { KubernetesCluster } from '../../../resources/kubernetes-cluster/index.ts'
import type { KubernetesHostStatus } from '../../../resources/kubernetes-host/index.ts'
import { Network } from '../../../resources/network/index.ts'
import { NodePool } from '../../../resources/node-pool/index.ts'
import type { Operable } from '../../../resources/operation/index.ts'
import { firstDecision, truncated } from '../../kit/operation/decision.ts'
import { type During, planOperations } from '../../kit/operation/plan.ts'
import { failed, type SyncDecision, syncActions } from '../../kit/synced.ts'
import { type HostAction, type HostObject, type Observed } from './observed.ts'
import { isLeftOver, makeCluster, makeNetwork, makePools, namesOf, namespaceOfPlatform } from './parts.ts'

interface Input {
  readonly root: HostObject
  readonly observed: Observed
  readonly now: Date
}
type OperationInput = During<Input>
type Decision = SyncDecision<KubernetesHostStatus, HostAction, KindOf<'kubernetes_host'>>
type Rule = (input: OperationInput) => Decision | undefined

const BUSY_LOOK_SECONDS = 5
const LOOK_SECONDS = 60
/** After this time, changes that others made in the cluster are reverted. */
const APPLIED_ANEW_MILLISECONDS = DAY_MILLISECONDS / 24
/** Volumes of etcd, and balancers in front of API servers. */
const ADDONS = ['csi-driver', 'cloud-controller'] as const

export const plan = planOperations<HostObject, Observed, Input, Decision, HostAction>({
  label: 'A host of control planes',
  endedByDeletion: 'all',
  flows: {
    'kubernetes_host.bootstrap': (input) =>
      input.root.metadata.deletionTimestamp === undefined ? bootstrap(input) : { ...remove(input), ...CALLED_OFF },
  },
  inputOf: (root, observed, now) => ({ root, observed, now }),
  unchanged: () => ({ health: 'reconciling', reason: 'Waiting' }),
  // Only the API creates it, with an operation.
  detectEdit: () => undefined,
  idle: (input) => (input.root.metadata.deletionTimestamp === undefined ? idle(input) : remove(input)),
  overdue: (_input, decision, error) => failed(decision.step ?? 'claimed', error),
  toActions: ({ root }, decision) => syncActions(root, decision),
})

const CALLED_OFF = { step: 'claimed', outcome: 'cancelled' } as const

function bootstrap(input: OperationInput): Decision {
  return firstDecision(input, [
    hasSettings,
    claimed,
    hasNetwork,
    hasControlPlane,
    hasNodes,
    hasProcess,
    registered,
    done,
  ])
}

const waiting = (step: NonNullable<Decision['step']>, waitFor: string, more: Partial<Decision> = {}): Decision => ({
  health: 'reconciling',
  reason: 'Making',
  message: truncated(`Waiting for ${waitFor}`),
  step,
  waitFor,
  waitSeconds: BUSY_LOOK_SECONDS,
  ...more,
})

const hasSettings: Rule = ({ observed: { settings } }) =>
  'obstacle' in settings
    ? waiting('claimed', `settings: ${settings.obstacle}`, { waitSeconds: LOOK_SECONDS })
    : undefined

const claimed: Rule = ({ root, observed: { row } }) =>
  row === undefined
    ? waiting('claimed', 'the database', {
        actions: [{ do: 'effect', name: 'claim', input: { id: root.metadata.name } }, namespaceOfPlatform],
        waitSeconds: 0,
      })
    : undefined

/** A part that its own operation creates and that is not ready yet: a Decision while it is awaited, or has failed. */
function madeBy(
  { operation }: OperationInput,
  step: NonNullable<Decision['step']>,
  what: string,
  part: { readonly type: ResourceType; readonly object: KubeObject & Operable; readonly isMade: boolean },
): Decision | undefined {
  const { type, object, isMade } = part
  if (object.metadata.deletionTimestamp !== undefined) return waiting(step, `${what} to be gone`)
  if (isMade) return undefined
  const progress = object.status?.operation
  if (progress === undefined || !isFinal(progress.status) || progress.id !== object.spec.operation?.id)
    return waiting(step, `${what} to be made`)
  return isLeftOver(object, operation)
    ? waiting(step, `${what} to be made anew`, { actions: [{ do: 'remove', type, key: keyOf(object) }] })
    : failed(step, `${what}: ${progress.error === '' ? 'it was not made' : progress.error}`)
}

const hasNetwork: Rule = (input) => {
  const { root: host, observed, now } = input
  const { network } = observed
  if (network === undefined)
    return waiting('network', 'its network', { actions: [namespaceOfPlatform, makeNetwork({ host, now })] })
  const isMade = network.status?.ipv4Cidr !== undefined && network.status.operation?.status === 'succeeded'
  return madeBy(input, 'network', 'its network', { type: Network, object: network, isMade })
}

const hasControlPlane: Rule = (input) => {
  const { root: host, observed, now } = input
  const { cluster } = observed
  if (cluster === undefined)
    return waiting('control_plane', 'its control plane', { actions: [makeCluster({ host, now })] })
  const isMade = cluster.status?.isMade === true
  const awaited = madeBy(input, 'control_plane', 'its control plane', {
    type: KubernetesCluster,
    object: cluster,
    isMade,
  })
  if (awaited !== undefined) return awaited
  if (cluster.status?.isSimulated === true)
    return failed('control_plane', 'The host of its control plane only counts: nothing runs there.')
  const missing = ADDONS.filter((addon) => cluster.status?.addons?.some(({ name }) => name === addon) !== true)
  return missing.length === 0 ? undefined : waiting('control_plane', `${missing.join(' and ')} of its cluster to run`)
}

const hasNodes: Rule = (input) => {
  const { root: host, observed, now } = input
  const { pools, settings } = observed
  const wanted = namesOf(host).pools.map(({ name }) => name)
  const missing = wanted.filter((name) => !pools.some(({ metadata }) => metadata.name === name))
  const status = seenOf(input)
  if (missing.length > 0 && !('obstacle' in settings))
    return waiting('nodes', 'its nodes', { actions: makePools({ host, now }, settings.publicIpv4, missing), status })
  for (const pool of pools) {
    const isMade = pool.status?.isMade === true
    const awaited = madeBy(input, 'nodes', 'its nodes', { type: NodePool, object: pool, isMade })
    if (awaited !== undefined) return { ...awaited, status }
  }
  return undefined
}

const readyNodes = ({ pools }: Observed): number =>
  pools.flatMap(({ status }) => status?.nodes ?? []).filter(({ isReady }) => isReady).length

const seenOf = ({ observed }: Input) => ({ nodesReady: readyNodes(observed) })

/** The manifests that are applied in the cluster: when they have changed, and after a while in any case. */
function installing({ root, observed: { settings }, now }: Input): readonly HostAction[] {
  if ('obstacle' in settings) return []
  const { digest, appliedAt = '', isReady = false, address } = root.status?.process ?? {}
  const isFresh = now.getTime() - Date.parse(appliedAt) < APPLIED_ANEW_MILLISECONDS
  if (digest === settings.digest && isFresh && isReady && address !== undefined) return []
  return [{ do: 'effect', name: 'install', input: { id: root.metadata.name, digest: settings.digest } }]
}

const hasProcess: Rule = (input) => {
  const { root } = input
  const actions = installing(input)
  if (actions.length === 0) return undefined
  const { detail = '' } = root.status?.process ?? {}
  const awaited = `its host process${detail === '' ? '' : `: ${detail}`}`
  return waiting('host', awaited, { actions, status: seenOf(input) })
}

/** The URL of the address. */
export const urlOf = (address: string): string => `https://${address.includes(':') ? `[${address}]` : address}`

const registered: Rule = (input) => {
  const { root, observed } = input
  const { address = '' } = root.status?.process ?? {}
  if (observed.silence !== '')
    return waiting(
      'registered',
      `its host process to answer${observed.silence === undefined ? '' : `: ${observed.silence}`}`,
    )
  if (observed.row?.url === urlOf(address)) return undefined
  return waiting('registered', 'the database', {
    actions: [{ do: 'effect', name: 'register', input: { id: root.metadata.name, url: urlOf(address) } }],
    waitSeconds: 0,
  })
}

const done: Rule = (input) => ({
  health: 'ready',
  reason: 'Running',
  step: 'registered',
  outcome: 'succeeded',
  status: { ...seenOf(input), isMade: true },
})

/** A host that could not be created is left as it is, until somebody requests it again or deletes it. */
function idle(input: Input): Decision {
  const { root, observed } = input
  if (root.status?.isMade !== true)
    return { health: 'stalled', reason: 'Error', message: root.status?.operation?.error ?? 'It was not made.' }
  const { address } = root.status.process ?? {}
  const isMoved = address !== undefined && observed.silence === '' && observed.row?.url !== urlOf(address)
  const problem = observed.silence ?? 'it has no address'
  return {
    health: 'ready',
    reason: problem === '' ? 'Running' : 'Silent',
    message: truncated(problem),
    actions: [
      ...installing(input),
      ...(isMoved
        ? [{ do: 'effect', name: 'register', input: { id: root.metadata.name, url: urlOf(address) } } as const]
        : []),
    ],
    status: seenOf(input),
    waitFor: 'a change',
    waitSeconds: LOOK_SECONDS,
  }
}

/** The host is first withdrawn from use; then its nodes are deleted, then its cluster with everything created in it,
 *  then its network. */
function remove({ root, observed }: Input): Decision {
  const { row, clustersHosted, network, cluster, pools } = observed
  const going = { health: 'reconciling', reason: 'Deleting', waitSeconds: BUSY_LOOK_SECONDS } as const
  if (clustersHosted > 0)
    return { ...going, message: `${clustersHosted} clusters have their control planes there.`, waitFor: 'them to go' }
  if (row?.url !== undefined)
    return { ...going, actions: [{ do: 'effect', name: 'forget', input: { id: root.metadata.name } }], waitSeconds: 0 }
  if (cluster !== undefined) {
    const isGoing = cluster.spec.operation?.kind === 'kubernetes_cluster.delete'
    const input = { id: root.metadata.name, clusterId: cluster.metadata.name }
    return {
      ...going,
      actions: isGoing ? [] : [{ do: 'effect', name: 'dismantle', input }],
      waitFor: 'its cluster to go',
    }
  }
  const left = [
    ...pools.map((object) => ({ type: NodePool, object })),
    ...(network ? [{ type: Network, object: network }] : []),
  ]
  if (left.length > 0)
    return {
      ...going,
      actions: left
        .filter(({ object }) => object.metadata.deletionTimestamp === undefined)
        .map(({ type, object }) => ({ do: 'remove', type, key: keyOf(object) }) as const),
      waitFor: 'its network to go',
    }
  return { ...going, actions: [{ do: 'effect', name: 'forget', input: { id: root.metadata.name } }], isGone: true }
}
