/** The plan of node pools: pure, synchronous, total. Its name is claimed in PostgreSQL; its servers follow its spec. A
 *  node is drained before it is removed; a node that is replaced by another version is removed like a surplus one, and
 *  created again under its name. */
import { defined } from '../../../domain/defined.ts'
import { isDrainOver, isJoinable, isOwnRequest, joinTokenId } from '../../../domain/node-pool/rules.ts'
import { NodePool, type NodePoolSpec, type NodePoolStatus } from '../../../resources/node-pool/index.ts'
import { claiming, planMade } from '../../kit/made-plan.ts'
import { planMachines } from '../managed-machine/index.ts'
import { firstDecision, truncated } from '../../kit/operation/decision.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { refusalOf } from '../../kit/refusal.ts'
import { factsDigest, failed } from '../../kit/synced.ts'
import { hasAccount } from '../../kit/synced-plan.ts'
import { dueScaling, reconsidered } from './scaling.ts'
import { addressesOf, nodeDemand, isOutdated, marksOf, nodePoolOwner, type Slot, slotsOf } from './nodes.ts'
import {
  apiOf,
  CLAIMED,
  type Decision,
  type Drain,
  type Input,
  type NodePoolEffect,
  type NodePoolObject,
  type Observed,
  type OperationInput,
} from './observed.ts'

type Rule = (input: OperationInput) => Decision | undefined

/** Changes inside a cluster wake no reconciler. */
const BUSY_LOOK_SECONDS = 2
const LOOK_SECONDS = 15
const SCALING_LOOK_SECONDS = 10

/** The operations that create and delete it. */
export const LIFE = { creates: 'node_pool.sync', deletes: 'node_pool.delete' } as const

export const plan = planMade<NodePoolObject, NodePoolSpec, NodePoolStatus, Observed, NodePoolEffect>({
  label: 'A node pool',
  type: NodePool,
  ...LIFE,
  flows: {
    'node_pool.sync': (input) => firstDecision(input, [hasAccount, hasCluster, claimed, isBrought, done]),
  },
  auditedAs: ({ kind, arguments: parameters }) =>
    kind === 'node_pool.delete' ? kind : parameters === undefined ? 'node_pool.create' : 'node_pool.update',
  detectMore(input) {
    const { root, observed } = input
    if (activeOperation(root) !== undefined || root.status?.followed === undefined) return undefined
    if (root.status.followed === followed(root)) return dueScaling(input)
    const isUpgrade = slotsOf(root, observed, root.spec.count).some((slot) => isOutdated(root, slot))
    return { kind: 'node_pool.sync', arguments: { action: isUpgrade ? 'upgrade' : 'scale' } }
  },
  idle,
  remove,
  overdue: ({ root }, error) => (root.status?.isMade === true ? { fault: truncated(error) } : {}),
})

/** The fields whose change starts an operation. */
const followed = ({ spec: { count, version, labels, taints, maxUnavailable } }: NodePoolObject): string =>
  factsDigest([count, version, labels, taints, maxUnavailable])

const waiting = (step: NonNullable<Decision['step']>, waitFor: string): Decision => ({
  health: 'reconciling',
  reason: 'Waiting',
  message: truncated(`Waiting for ${waitFor}`),
  step,
  waitFor,
  waitSeconds: LOOK_SECONDS,
})

/** The cluster in the same manifest may be created later, and a pool may be created with it. */
const hasCluster: Rule = ({ root, observed: { cluster, clusterClaim } }) => {
  if (cluster === undefined) return waiting('claimed', `cluster ${root.spec.clusterId} to be there`)
  if (cluster.spec.zone !== root.spec.zone)
    return failed('claimed', `The cluster is in zone ${cluster.spec.zone}, and so are its nodes.`)
  return clusterClaim === undefined ? waiting('claimed', 'its cluster to be claimed') : undefined
}

const claimed: Rule = ({ root, observed: { accountId = '', isClaimed } }) => {
  if (isClaimed) return undefined
  const refusal = refusalOf(root, CLAIMED)
  if (refusal !== undefined) return failed('claimed', refusal.message)
  const { clusterId, name } = root.spec
  return claiming({
    do: 'effect',
    name: 'claim',
    input: { accountId, nodePoolId: root.metadata.name, clusterId, name },
  })
}

/** How many nodes of the spec's count are created: those granted before, while the account may create nothing that
 *  costs. Whether a person or autoscaling asked for more makes no difference; nodes that are replaced were granted
 *  before. */
const countOf = ({ root: { spec, status }, observed }: Pick<Input, 'root' | 'observed'>): number =>
  observed.mayGrow ? spec.count : Math.min(spec.count, status?.grantedCount ?? spec.count)

const withheldOf = (input: Pick<Input, 'root' | 'observed'>): string => {
  const withheld = input.root.spec.count - countOf(input)
  return withheld === 0
    ? ''
    : `The account may make nothing that costs now: ${withheld} nodes of its spec are not made.`
}

/** Its nodes are as desired. */
const isBrought: Rule = (input) => {
  const { root, observed } = input
  const status = { followed: followed(root), grantedCount: countOf(input) }
  const withheld = withheldOf(input)
  if (withheld !== '') return { ...failed('servers', withheld), status }
  if ('obstacle' in observed.api) return { ...waiting('servers', observed.api.obstacle), status }
  const upkeep = maintained(input, countOf(input))
  if (upkeep.waitFor === '') return undefined
  return {
    health: 'reconciling',
    reason: 'Following',
    message: truncated(`Waiting for ${upkeep.waitFor}`),
    step: stepOf(upkeep.slots),
    actions: upkeep.actions,
    status: { ...upkeep.status, ...status },
    waitFor: upkeep.waitFor,
    waitSeconds: BUSY_LOOK_SECONDS,
  }
}

/** The step of the operation under way. */
function stepOf(slots: readonly Slot[]): Decision['step'] {
  const wanted = slots.filter(({ isWanted }) => isWanted)
  if (wanted.some(({ machine }) => machine?.state !== 'started')) return 'servers'
  return wanted.some(({ node }) => node?.isReady !== true) ? 'ready' : 'drained'
}

const done: Rule = (input) => ({
  health: 'ready',
  reason: 'Running',
  step: 'drained',
  outcome: 'succeeded',
  status: {
    ...maintained(input, countOf(input)).status,
    followed: followed(input.root),
    grantedCount: countOf(input),
    isMade: true,
    fault: undefined,
  },
})

interface Upkeep {
  readonly slots: readonly Slot[]
  readonly actions: readonly NodePoolEffect[]
  /** Empty when everything is as desired. */
  readonly waitFor: string
  readonly status: NonNullable<Decision['status']>
}

/** What to do for this number of nodes, and the status of the existing ones. */
function maintained({ root: pool, observed, now }: Input, count: number): Upkeep {
  const { accountId = '', machines, lost, region } = observed
  const slots = slotsOf(pool, observed, count)
  const drains = currentDrains(pool, slots)
  const leaving = leavingOf(pool, slots, drains)
  const isEmpty = ({ name, node, isLetGo }: Slot): boolean => {
    const drain = drains.find(({ hostname }) => hostname === name)
    // Autoscaling released this node, nobody requested that: if its pods take too long, the node stays.
    return node === undefined || (drain !== undefined && (drain.isDone || (!isLetGo && isDrainOver(drain.since, now))))
  }
  const demanded = slots.filter((slot) => {
    if (leaving.includes(slot)) return !isEmpty(slot)
    // A node that is replaced has left the cluster before another is created under its name.
    return (slot.isWanted || isKept(slot, drains)) && (slot.machine !== undefined || slot.node === undefined)
  })
  const planned = planMachines({
    owner: nodePoolOwner(pool, accountId),
    // While one node is removed, no other is replaced for its health: the other has not been drained.
    demands: demanded.map((slot) => ({
      ...nodeDemand(pool, observed, slot),
      isPatient: leaving.some((other) => other !== slot && other.isWanted),
    })),
    machines,
    lost,
    now,
  })
  const draining = leaving.filter((slot) => !isEmpty(slot)).map(({ name }) => name)
  const changes = reconsidered({ root: pool, now }, slots, drains)
  const inCluster = clusterActions(pool, slots, { draining, drains, region, observed, now })
  const missing = missingOf(pool, slots, { leaving, marks: marksOf(pool, region).digest })
  return {
    slots,
    // This changes the spec, which the next reconcile follows.
    actions: changes?.actions ?? [...inCluster, ...planned.actions],
    waitFor: missing === '' ? planned.waitFor : missing,
    status: {
      nodes: nodesOf(slots, pool.status?.nodes ?? []),
      ...changes?.status,
      // The effect records them itself.
      ...(draining.length > 0 ? {} : { drains: drains.length === 0 ? undefined : [...drains] }),
    },
  }
}

/** Drains of nodes whose server or whose entry in the cluster still exists, unless the nodes stay after all. */
const currentDrains = ({ status }: NodePoolObject, slots: readonly Slot[]): readonly Drain[] =>
  (status?.drains ?? []).filter(({ hostname, isCalledOff }) =>
    slots.some(
      ({ name, machine, node, isLetGo }) =>
        name === hostname && (machine !== undefined || node !== undefined) && (isCalledOff !== true || isLetGo),
    ),
  )

/** Autoscaling has released it, but its pods did not leave. */
const isKept = ({ name }: Slot, drains: readonly Drain[]): boolean =>
  drains.some(({ hostname, isCalledOff }) => hostname === name && isCalledOff === true)

/** Nodes whose servers are to be deleted: surplus ones, those whose removal has started, and those of another version,
 *  as many at a time as may be unavailable. */
function leavingOf(pool: NodePoolObject, slots: readonly Slot[], drains: readonly Drain[]): readonly Slot[] {
  const isBegun = ({ name }: Slot) =>
    drains.some(({ hostname, isCalledOff }) => hostname === name && isCalledOff !== true)
  const present = slots.filter(({ machine }) => machine !== undefined && !machine.isDeleting)
  const going = present.filter((slot) => (!slot.isWanted && !isKept(slot, drains)) || isBegun(slot))
  const wanted = slots.filter(({ isWanted }) => isWanted)
  const away = wanted.filter((slot) => slot.node?.isReady !== true || isBegun(slot) || !present.includes(slot))
  const next = present.filter((slot) => slot.isWanted && !isBegun(slot) && isOutdated(pool, slot))
  const off = next.filter(isOff)
  const running = next.filter((slot) => !isOff(slot))
  return [...going, ...off, ...running.slice(0, Math.max(0, pool.spec.maxUnavailable - away.length))]
}

/** Its customer has switched it off: it is unavailable for any length of time, and a replacement does not change
 *  that. */
const isOff = ({ machine }: Slot): boolean => machine?.state === 'stopped' && machine.desiredPower === 'stopped'

interface InCluster {
  readonly draining: readonly string[]
  readonly drains: readonly Drain[]
  readonly region: string
  readonly observed: Observed
  readonly now: Date
}

/** The requests to the API of the cluster. */
function clusterActions(
  pool: NodePoolObject,
  slots: readonly Slot[],
  { draining, drains, region, observed, now }: InCluster,
): readonly NodePoolEffect[] {
  const api = apiOf(observed)
  if (api === undefined) return []
  const { join } = pool.status ?? {}
  const isJoining = slots.some((slot) => slot.isWanted && slot.machine !== undefined && slot.node === undefined)
  const marks = marksOf(pool, region)
  const unmarked = slots.filter(
    ({ machine, node }) => machine !== undefined && node !== undefined && node.marked !== marks.digest,
  )
  const isEnding = isPoolLeaving(pool)
  const left = slots.filter(
    ({ machine, node, isServerRemoved }) =>
      node !== undefined && (machine === undefined ? isServerRemoved || isEnding : machine.isDeleting),
  )
  const requests = api.requests.filter((request) =>
    slots.some(
      ({ name, machine }) =>
        machine?.state === 'started' && isOwnRequest(request, { name, addresses: addressesOf(machine) }),
    ),
  )
  const names = (of: readonly { readonly name: string }[]) => of.map(({ name }) => name)
  const tokenId = joinTokenId(pool.metadata.uid ?? '', join?.expiresAt ?? '')
  return [
    ...(isJoining && !isJoinable(join?.expiresAt, now)
      ? [{ do: 'effect', name: 'issue', input: { tokenId } } as const]
      : []),
    ...(!isJoining && join !== undefined
      ? [{ do: 'effect', name: 'revoke', input: { tokenId: join.tokenId } } as const]
      : []),
    ...(requests.length === 0
      ? []
      : [{ do: 'effect', name: 'approve', input: { requests: names(requests) } } as const]),
    ...(unmarked.length === 0
      ? []
      : [{ do: 'effect', name: 'mark', input: { names: names(unmarked), marks } } as const]),
    ...(left.length === 0 ? [] : [{ do: 'effect', name: 'forget', input: { names: names(left) } } as const]),
    ...(draining.length === 0
      ? []
      : [{ do: 'effect', name: 'drain', input: { names: draining, known: [...drains] } } as const]),
  ]
}

/** The first difference of the nodes from their desired state, apart from their servers; empty when there is none. */
function missingOf(
  pool: NodePoolObject,
  slots: readonly Slot[],
  { leaving, marks }: { readonly leaving: readonly Slot[]; readonly marks: string },
): string {
  for (const slot of slots) {
    const { name, node, machine, isWanted, isMissing } = slot
    if (isMissing && !isPoolLeaving(pool)) return serverMissing(slot)
    if (leaving.includes(slot)) return `node ${name} to be drained`
    if (!isWanted && (machine !== undefined || node !== undefined)) return `node ${name} to go`
    if (!isWanted) continue
    if (isOff(slot)) return `the server of node ${name} to be started`
    if (machine?.state === 'started' && node === undefined) return `node ${name} to join`
    if (node !== undefined && !node.isReady) return `node ${name} to be ready`
    if (isOutdated(pool, slot)) return `node ${name} to be replaced`
    if (node !== undefined && node.marked !== marks) return `node ${name} to have its labels`
  }
  return ''
}

/** The deletion of the pool orders that of its nodes. */
const isPoolLeaving = ({ metadata, spec }: NodePoolObject): boolean =>
  metadata.deletionTimestamp !== undefined || spec.operation?.kind === LIFE.deletes

const serverMissing = ({ name, serverId }: Slot): string =>
  `server ${serverId} of node ${name} to be there: it is missing, and nobody deleted it. The node stays until ` +
  'somebody deletes it in the cluster, or an operator gives the server up'

/** A node whose server is missing keeps what is known of that: an order is found by it. */
const nodesOf = (
  slots: readonly Slot[],
  known: NonNullable<NodePoolStatus['nodes']>,
): NonNullable<NodePoolStatus['nodes']> =>
  slots.flatMap(({ name, machine, node, serverId, isServerRemoved, isMissing }) =>
    machine === undefined
      ? known
          .filter((each) => each.serverId === serverId && (isMissing || node !== undefined))
          .map((each): (typeof known)[number] => ({
            ...each,
            state: isServerRemoved ? 'deleting' : 'error',
            isReady: !isServerRemoved && node?.isReady === true,
          }))
      : [
          {
            serverId,
            serverUid: machine.serverUid,
            serverCreatedAt: machine.createdAt,
            hostname: name,
            state: machine.isDeleting ? 'deleting' : machine.state,
            isReady: node?.isReady === true && !machine.isDeleting,
            kubeletVersion: node?.kubeletVersion ?? '',
            ...defined({ publicIpv6: machine.publicIpv6, publicIpv4: machine.publicIpv4 }),
          },
        ],
  )

/** Its nodes follow its spec, also those of a pool in error, which leaves the error once everything is as desired. */
function idle(input: Input): Decision {
  const { root: pool, observed } = input
  const { status } = pool
  if (!observed.isClaimed)
    return { health: 'stalled', reason: 'Error', message: status?.operation?.error ?? 'It was not made.' }
  if ('obstacle' in observed.api)
    return { ...waiting('servers', observed.api.obstacle), health: status?.isMade === true ? 'ready' : 'reconciling' }
  const upkeep = maintained(input, countOf(input))
  const isSettled = upkeep.waitFor === ''
  const isMade = isSettled || status?.isMade === true
  const fault = isSettled ? undefined : status?.fault
  const isServerMissing = upkeep.slots.some(({ isMissing }) => isMissing)
  const isInError = fault !== undefined || !isMade
  return {
    health: isInError || isServerMissing ? 'stalled' : 'ready',
    reason: isServerMissing ? 'ServerMissing' : isInError ? 'Error' : isSettled ? 'Running' : 'Maintaining',
    message: truncated(isServerMissing ? upkeep.waitFor : (fault ?? (isSettled ? withheldOf(input) : upkeep.waitFor))),
    actions: upkeep.actions,
    status: { ...upkeep.status, fault, grantedCount: countOf(input), ...(isMade ? { isMade } : {}) },
    waitFor: upkeep.waitFor === '' ? 'a change' : upkeep.waitFor,
    waitSeconds: !isSettled
      ? BUSY_LOOK_SECONDS
      : pool.spec.autoscaling === undefined
        ? LOOK_SECONDS
        : SCALING_LOOK_SECONDS,
  }
}

/** Its nodes are deleted first; then its claims are released. Nodes are not drained when their cluster is being
 *  deleted, or has not answered for as long as a drain may take. */
function remove(input: Input): Decision {
  const { root: pool, observed, now } = input
  const { accountId, machines, cluster } = observed
  const isLast = cluster === undefined || isLeaving(cluster)
  const going = { health: 'reconciling', reason: 'Deleting', step: 'servers', waitSeconds: BUSY_LOOK_SECONDS } as const
  const isSilent = 'obstacle' in observed.api
  if (isSilent && !isLast && machines.length > 0 && !isDrainOver(pool.metadata.deletionTimestamp ?? '', now))
    return { ...going, ...waiting('servers', observed.api.obstacle), reason: 'Deleting' }
  if (accountId !== undefined && (isLast || isSilent)) {
    if (machines.length > 0) {
      const planned = planMachines({ owner: nodePoolOwner(pool, accountId), demands: [], machines, lost: [], now })
      return { ...going, actions: planned.actions, waitFor: planned.waitFor }
    }
  } else if (accountId !== undefined) {
    // All nodes are deleted, also those that autoscaling has released and kept.
    const all = { ...pool, spec: { ...pool.spec, skipped: [] } }
    const upkeep = maintained({ ...input, root: all }, 0)
    const isRevoked = pool.status?.join === undefined
    if (upkeep.waitFor !== '' || !isRevoked)
      return { ...going, actions: upkeep.actions, status: upkeep.status, waitFor: upkeep.waitFor }
  }
  return {
    health: 'reconciling',
    reason: 'Deleting',
    step: 'released',
    outcome: 'succeeded',
    actions:
      accountId === undefined
        ? []
        : [{ do: 'effect', name: 'release', input: { accountId, nodePoolId: pool.metadata.name } }],
    isGone: true,
  }
}

const isLeaving = ({ metadata, spec }: NonNullable<Observed['cluster']>): boolean =>
  metadata.deletionTimestamp !== undefined || spec.operation?.kind === 'kubernetes_cluster.delete'
