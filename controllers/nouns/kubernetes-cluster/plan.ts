/** The plan of Kubernetes clusters: pure, synchronous, total. The name of a cluster and the id of its control plane are
 *  claimed in PostgreSQL; the host receives what the claim says. A cluster that was created once is never created
 *  again: an empty cluster must not take the place of one that its host has lost. */
import { isQuorumGivenUp, minorOf, nextMinor, newestRelease } from '../../../domain/kubernetes-cluster/rules.ts'
import { derivedId } from '../../../domain/uuid.ts'
import type { ClusterClaim } from '../../../db/kubernetes-cluster/index.ts'
import type { ControlPlaneState } from '../../../integrations/control-planes/control.ts'
import { keyOf } from '../../../kit/kube/object.ts'
import {
  KubernetesCluster,
  type KubernetesClusterSpec,
  type KubernetesClusterStatus,
} from '../../../resources/kubernetes-cluster/index.ts'
import { NodePool } from '../../../resources/node-pool/index.ts'
import { claiming, networkAwaited, planMade } from '../../kit/made-plan.ts'
import { firstDecision, truncated } from '../../kit/operation/decision.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { refusalOf } from '../../kit/refusal.ts'
import {
  CLAIMED,
  type ClusterEffect,
  type ClusterObject,
  type Decision,
  HOSTED,
  type HostView,
  idOf,
  type Input,
  type Observed,
  type OperationInput,
} from './observed.ts'
import { dueGrants } from './grants.ts'
import { forgettingNodes } from './nodes.ts'
import { dueSnapshot, kindOf, noted, placing, snapshotUpkeep, storedSnapshotIds, snapshotStep } from './snapshots.ts'
import {
  deregistrationRules,
  dueRegistration,
  leaving,
  notedRegistration,
  registrationRules,
  registrationUpkeep,
} from './registration.ts'
import { failed } from '../../kit/synced.ts'
import { hasAccount } from '../../kit/synced-plan.ts'

type Rule = (input: OperationInput) => Decision | undefined

/** The host wakes no reconciler. */
const BUSY_LOOK_SECONDS = 2
const LOOK_SECONDS = 15

export const plan = planMade<ClusterObject, KubernetesClusterSpec, KubernetesClusterStatus, Observed, ClusterEffect>({
  label: 'A Kubernetes cluster',
  type: KubernetesCluster,
  creates: 'kubernetes_cluster.create',
  deletes: 'kubernetes_cluster.delete',
  flows: {
    'kubernetes_cluster.create': (input) => firstDecision(input, [hasAccount, hasNetwork, claimed, hosted, isMade]),
    'kubernetes_cluster.upgrade': (input) => firstDecision(input, [reachable, savedForUpgrade, rolled, upgraded]),
    'kubernetes_cluster.snapshot': (input) => firstDecision(input, [reachable, takenNow, saved]),
    'kubernetes_cluster.restore': (input) =>
      firstDecision(input, [recovered, reachable, savedForRestore, broughtBack, restored]),
    'kubernetes_cluster.platform_register': (input) => firstDecision(input, registrationRules),
    'kubernetes_cluster.platform_deregister': (input) => firstDecision(input, deregistrationRules),
  },
  detectMore({ root, observed, now }) {
    const { spec, status } = root
    if (status?.isMade !== true || activeOperation(root) !== undefined) return undefined
    if (hasFailedToUpgrade(root)) return undefined
    const isEdited = status.version !== undefined && spec.version !== status.version
    if (isEdited && spec.version !== status.failedVersion) return { kind: 'kubernetes_cluster.upgrade' }
    if (status.fault !== undefined || !hasQuorum(observed)) return undefined
    return dueSnapshot(root, now) ?? dueRegistration(root, observed)
  },
  idle,
  remove,
  overdue: ({ root, operation }, error) =>
    root.status?.isMade === true &&
    ['kubernetes_cluster.upgrade', 'kubernetes_cluster.restore'].includes(operation.kind)
      ? { fault: truncated(error) }
      : {},
})

/** The newest operation was an upgrade that failed, which is not recorded yet. */
const hasFailedToUpgrade = ({ spec, status }: ClusterObject): boolean =>
  status?.operation?.kind === 'kubernetes_cluster.upgrade' &&
  status.operation.status === 'failed' &&
  spec.version !== status.version &&
  spec.version !== status.failedVersion

const hostOf = ({ host }: Observed): HostView | undefined => ('obstacle' in host ? undefined : host)

/** Every API server and every member of etcd serves. */
export const isWhole = ({ phase, apiServersReady, etcdMembersReady, etcdMembersTotal }: ControlPlaneState): boolean =>
  phase === 'running' && apiServersReady === etcdMembersTotal && etcdMembersReady === etcdMembersTotal

const hasQuorum = (observed: Observed): boolean => hostOf(observed)?.plane?.hasEtcdQuorum === true

const waiting = (step: NonNullable<Decision['step']>, waitFor: string, more: Partial<Decision> = {}): Decision => ({
  health: 'reconciling',
  reason: 'Waiting',
  message: `Waiting for ${waitFor}`,
  step,
  waitFor,
  waitSeconds: BUSY_LOOK_SECONDS,
  ...more,
})

const hasNetwork: Rule = ({ root, observed: { claim, hasNetwork: isThere } }) =>
  claim !== undefined || isThere ? undefined : networkAwaited(root.spec.networkId)

const claimed: Rule = (input) => {
  if (input.observed.claim !== undefined) return undefined
  const refusal = refusalOf(input.root, CLAIMED)
  if (refusal !== undefined) return failed('claimed', refusal.message)
  return claiming({ do: 'effect', name: 'claim', input: idOf(input) })
}

/** Its control plane exists and is complete. Until it has existed, it is requested repeatedly: nothing can be lost by
 *  that. */
const hosted: Rule = (input) => {
  const { observed, root } = input
  const refusal = refusalOf(root, HOSTED)
  if (refusal !== undefined) return failed('control_plane', refusal.message)
  const unreachable = reachable(input)
  if (unreachable !== undefined) return { ...unreachable, step: 'control_plane' }
  const plane = hostOf(observed)?.plane
  if (plane === undefined)
    return waiting('control_plane', 'its control plane', {
      actions: [{ do: 'effect', name: 'ensure', input: idOf(input) }],
    })
  return isWhole(plane)
    ? undefined
    : waiting('control_plane', plane.detail === '' ? 'its control plane to run' : plane.detail, {
        status: seenOf(input),
      })
}

const isMade: Rule = (input) => ({
  health: 'ready',
  reason: 'Running',
  step: 'control_plane',
  outcome: 'succeeded',
  status: { ...seenOf(input), isMade: true, version: versionOf(input.observed.claim) },
})

const versionOf = (claim: ClusterClaim | undefined): string | undefined => claim && minorOf(claim.release)

const LOST = 'The host of its control plane has lost it.'
const NOT_STORED = 'The snapshot was with it: only one in object storage brings it back.'

/** The host answers, and has the control plane that was created there. */
const reachable: Rule = ({ root, observed: { host } }) => {
  if ('obstacle' in host) return waiting('reached', host.obstacle)
  return root.status?.isMade === true && host.plane === undefined
    ? { ...failed('reached', LOST), status: { fault: LOST } }
    : undefined
}

/** A cluster that its host has lost is created again from a snapshot in object storage, and from nothing else. */
const recovered: Rule = ({ root, operation, observed, ...input }) => {
  const host = hostOf(observed)
  const { id: restoreId, arguments: { snapshotId = '' } = {} } = operation
  if (root.status?.isMade !== true || host === undefined || host.plane !== undefined) return undefined
  const refusal = refusalOf(root, HOSTED)
  if (refusal !== undefined) return failed('restored', refusal.message)
  if (root.status.storedSnapshots?.includes(snapshotId) !== true) return failed('restored', `${LOST} ${NOT_STORED}`)
  return waiting('restored', 'its host to make it anew', {
    actions: [
      { do: 'effect', name: 'recover', input: { ...idOf({ root, observed, ...input }), restoreId, snapshotId } },
    ],
  })
}

/** The snapshot that is restored when the upgrade fails. */
const savedForUpgrade: Rule = (input) =>
  input.observed.claim?.release === targetOf(input)
    ? undefined
    : snapshotStep(input, { id: derivedId(`${input.operation.id}/pre_upgrade`), kind: 'pre_upgrade' }, 'saved')

/** The release that the operation names, or the newest of the edited version. */
function targetOf({ root, operation, observed }: OperationInput): string | undefined {
  const { release } = operation.arguments ?? {}
  return release ?? newestRelease(root.spec.version, hostOf(observed)?.offer.releases ?? [])
}

const rolled: Rule = (input) => {
  const { observed } = input
  const { claim } = observed
  const release = targetOf(input)
  const plane = hostOf(observed)?.plane
  if (release === undefined || claim === undefined || plane === undefined)
    return failed('upgraded', `Kubernetes ${input.root.spec.version} is not offered.`)
  if (claim.release !== release)
    return waiting('upgraded', 'the database', {
      actions: [{ do: 'effect', name: 'setRelease', input: { ...idOf(input), release } }],
      waitSeconds: 0,
    })
  if (plane.release === release && isWhole(plane)) return undefined
  const refusal = refusalOf(input.root, HOSTED)
  if (refusal !== undefined)
    return { ...failed('upgraded', refusal.message), status: { fault: truncated(refusal.message) } }
  return waiting('upgraded', `its API servers to run ${release}`, {
    status: seenOf(input),
    // Repeated: it is not known whether the host has received it.
    actions: plane.phase === 'upgrading' ? [] : [{ do: 'effect', name: 'ensure', input: idOf(input) }],
  })
}

/** Pools follow by their own operations, unless the operation excludes them. */
function followingPools({ operation, observed }: OperationInput): readonly ClusterEffect[] {
  const version = versionOf(observed.claim)
  const names = observed.pools.flatMap(({ metadata, spec }) => (spec.version === version ? [] : [metadata.name]))
  if (version === undefined || names.length === 0 || operation.arguments?.['nodePools'] === 'false') return []
  return [{ do: 'effect', name: 'raisePools', input: { version, names } }]
}

const upgraded: Rule = (input) => ({
  health: 'ready',
  actions: followingPools(input),
  reason: 'Running',
  step: 'upgraded',
  outcome: 'succeeded',
  status: { ...seenOf(input), version: versionOf(input.observed.claim), fault: undefined, failedVersion: undefined },
})

const takenNow: Rule = (input) =>
  snapshotStep(input, { id: input.operation.id, kind: kindOf(input.operation) }, 'taken')

const saved: Rule = (input) => ({
  health: 'ready',
  reason: 'Running',
  step: 'taken',
  outcome: 'succeeded',
  status: { ...seenOf(input), ...noted(input) },
})

/** Without a quorum of etcd no snapshot can be taken, which must not prevent a restore. */
const savedForRestore: Rule = (input) => {
  const plane = hostOf(input.observed)?.plane
  const hasBegun = plane?.restoreId === input.operation.id || plane?.phase === 'restoring'
  if (hasBegun || plane?.hasEtcdQuorum !== true) return undefined
  const decision = snapshotStep(
    input,
    { id: derivedId(`${input.operation.id}/pre_restore`), kind: 'pre_restore' },
    'saved',
  )
  return decision?.outcome === 'failed' ? undefined : decision
}

const broughtBack: Rule = (input) => {
  const plane = hostOf(input.observed)?.plane
  const { id, arguments: { snapshotId = '' } = {} } = input.operation
  const refusal = refusalOf(input.root, HOSTED)
  if (refusal !== undefined)
    return { ...failed('restored', refusal.message), status: { fault: truncated(refusal.message) } }
  if (plane?.restoreId === id && isWhole(plane)) return undefined
  return waiting('restored', 'its state to be brought back', {
    status: seenOf(input),
    actions:
      plane?.restoreId === id || plane?.phase === 'restoring'
        ? []
        : [{ do: 'effect', name: 'restore', input: { ...idOf(input), restoreId: id, snapshotId } }],
  })
}

const restored: Rule = (input) => ({
  health: 'ready',
  reason: 'Running',
  step: 'restored',
  outcome: 'succeeded',
  status: { ...seenOf(input), fault: undefined },
})

const UNKNOWN = { apiServer: 'unknown', etcdMembersReady: 0, hasEtcdQuorum: false, nodesReady: 0 } as const

/** The current state of its control plane, in the form of the status. */
function seenOf({ root, observed, now }: Input): NonNullable<Decision['status']> {
  const host = hostOf(observed)
  const plane = host?.plane
  const before = root.status?.health
  const replicas = observed.claim?.replicas
  if (host === undefined || plane === undefined) {
    const detail = 'obstacle' in observed.host ? observed.host.obstacle : LOST
    const counts = { etcdMembersTotal: replicas ?? 0, nodesTotal: before?.nodesTotal ?? 0 }
    return { health: { ...UNKNOWN, ...counts, observedAt: before?.observedAt, detail: truncated(detail) } }
  }
  const available = nextMinor(minorOf(observed.claim?.release ?? ''), host.offer.releases)
  return {
    replicas,
    isSimulated: host.offer.driver === 'simulated' ? true : undefined,
    ...(plane.release === null ? {} : { kubernetesVersion: plane.release }),
    ...(plane.endpoint === null ? {} : { endpoint: plane.endpoint }),
    ...(plane.certificateAuthority === null ? {} : { certificateAuthority: plane.certificateAuthority }),
    availableUpgrade: available,
    addons: plane.addons.length === 0 ? undefined : [...plane.addons],
    storedSnapshots: storedSnapshotIds(host),
    quorumLostAt: plane.hasEtcdQuorum ? undefined : (root.status?.quorumLostAt ?? now.toISOString()),
    health: {
      apiServer: plane.apiServer,
      etcdMembersReady: plane.etcdMembersReady,
      etcdMembersTotal: plane.etcdMembersTotal,
      hasEtcdQuorum: plane.hasEtcdQuorum,
      nodesReady: host.nodes.filter(({ isReady }) => isReady).length,
      nodesTotal: host.nodes.length,
      observedAt: plane.observedAt,
      detail: truncated(plane.detail === '' ? plane.snapshotStore.detail : plane.detail),
    },
  }
}

const NO_QUORUM = 'Its etcd has had no quorum for half an hour. A restore of a snapshot brings it back.'

/** What is wrong with it now; undefined when nothing is. Earlier faults are over once it is complete. */
function faultOf({ root, observed, now }: Input): string | undefined {
  const host = hostOf(observed)
  if (host === undefined) return root.status?.fault
  const { plane } = host
  if (plane === undefined) return LOST
  if (isWhole(plane) && plane.release === observed.claim?.release) return undefined
  const quorumLostAt = plane.hasEtcdQuorum ? undefined : root.status?.quorumLostAt
  return isQuorumGivenUp(quorumLostAt, now) ? NO_QUORUM : root.status?.fault
}

/** Nothing retries an upgrade by itself: the customer requests it again, or edits the version back first. */
function failedVersionOf(root: ClusterObject): string | undefined {
  const { spec, status } = root
  if (spec.version === status?.version) return undefined
  return hasFailedToUpgrade(root) ? spec.version : status?.failedVersion
}

function idle(input: Input): Decision {
  const { root, observed } = input
  const { status } = root
  if (status?.isMade !== true || observed.claim === undefined)
    return { health: 'stalled', reason: 'Error', message: status?.operation?.error ?? 'It was not made.' }
  const fault = faultOf(input)
  const isRunning = fault === undefined && hasQuorum(observed)
  return {
    health: fault !== undefined ? 'stalled' : isRunning ? 'ready' : 'reconciling',
    reason: fault !== undefined ? 'Error' : isRunning ? 'Running' : 'Unhealthy',
    message: fault ?? '',
    status: {
      ...seenOf(input),
      fault,
      ...noted(input),
      failedVersion: failedVersionOf(root),
      ...notedRegistration(input),
    },
    actions: [...placing(input), ...(isRunning ? upkeep(input) : [])],
    waitFor: 'a change',
    waitSeconds: LOOK_SECONDS,
  }
}

const upkeep = (input: Input): readonly ClusterEffect[] => [
  ...snapshotUpkeep(input),
  ...dueGrants(input),
  ...registrationUpkeep(input),
  ...forgettingNodes(input),
]

function associatedDeletion({ root, observed }: Input): Partial<Decision> | undefined {
  const isWanted = root.spec.operation?.arguments?.['associated'] === 'delete'
  if (!isWanted || observed.associated.length === 0) return undefined
  return {
    step: 'associated',
    actions: observed.associated
      .filter(({ isDeleting }) => !isDeleting)
      .map(({ type, key }) => ({ do: 'remove', type, key })),
    waitFor: 'volumes and load balancers that it made to go',
  }
}

/** The order of a deletion: its pools with their servers, its entry in the organisation platform, its control plane.
 *  Then the objects that the control plane created are deleted, if requested, because nothing creates new ones by then.
 *  Its claims are released last. */
function remove(input: Input): Decision {
  const { host, claim, accountId, pools } = input.observed
  const going = { health: 'reconciling', reason: 'Deleting', waitSeconds: BUSY_LOOK_SECONDS } as const
  if (pools.length > 0)
    return {
      ...going,
      step: 'node_pools',
      actions: pools
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
        .map((pool) => ({ do: 'remove', type: NodePool, key: keyOf(pool) })),
      waitFor: 'its node pools to go',
    }
  const left = leaving(input)
  if (left !== undefined) return { ...going, ...left }
  if (claim !== undefined) {
    if ('obstacle' in host) return { ...going, step: 'control_plane', message: host.obstacle, waitFor: host.obstacle }
    if (host.plane !== undefined)
      return {
        ...going,
        step: 'control_plane',
        actions: [{ do: 'effect', name: 'dismantle', input: idOf(input) }],
        waitFor: 'its control plane to end',
      }
  }
  const associated = associatedDeletion(input)
  if (associated !== undefined) return { ...going, ...associated }
  return {
    health: 'reconciling',
    reason: 'Deleting',
    step: 'released',
    outcome: 'succeeded',
    actions: accountId === undefined ? [] : [{ do: 'effect', name: 'release', input: idOf(input) }],
    isGone: true,
  }
}
