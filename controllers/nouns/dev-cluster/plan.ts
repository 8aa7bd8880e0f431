/** The plan of dev clusters: pure, synchronous, total. One server is created, once, and observed from then on: it holds
 *  the complete cluster, so it is never replaced. */
import { defined } from '../../../domain/defined.ts'
import {
  DEV_CLUSTER_MINUTES,
  isCreationOverdue,
  plainVersion,
  SIMULATED_DETAIL,
} from '../../../domain/dev-cluster/rules.ts'
import type { DevClusterStatus } from '../../../resources/dev-cluster/index.ts'
import { type Health, healthConditions } from '../../kit/health.ts'
import {
  delivery,
  isSameConfiguration,
  type Machine,
  machineName,
  removal,
  serverOf,
} from '../managed-machine/index.ts'
import { truncated } from '../../kit/operation/decision.ts'
import { auditRequests } from '../../kit/operation/direct-edit.ts'
import { refusalOf } from '../../kit/refusal.ts'
import { devClusterDemand, devClusterMachine, devClusterOwner } from './machine.ts'
import { CLAIMED, type DevClusterAction, type DevClusterObject, type Observed } from './observed.ts'

/** Changes of its server wake it; this interval is for what nobody reports: a deadline. */
const LOOK_SECONDS = 15

type Status = { readonly [Field in keyof DevClusterStatus]?: DevClusterStatus[Field] | undefined }

interface Decision {
  readonly health: Health
  readonly reason: string
  readonly message: string
  readonly actions?: readonly DevClusterAction[]
  readonly status?: Status
  /** The time until the next check of what wakes nobody. */
  readonly waitSeconds?: number
}

/** Guards in order: deleting, no account, failed, not claimed, lost, missing, not created in time, followed. */
export function plan(cluster: DevClusterObject, observed: Observed, now: Date): readonly DevClusterAction[] {
  return [
    ...auditRequests(cluster, observed.requests),
    ...(cluster.metadata.deletionTimestamp === undefined
      ? actionsOf(decide(cluster, observed, now))
      : remove(cluster, observed)),
  ]
}

const actionsOf = ({ actions = [], status = {}, ...facts }: Decision): readonly DevClusterAction[] => [
  ...actions,
  {
    do: 'status',
    status: { ...status },
    conditions: healthConditions(facts.health, facts.reason, truncated(facts.message)),
  },
  { do: 'wait', seconds: facts.waitSeconds ?? LOOK_SECONDS, for: 'a change' },
]

function decide(cluster: DevClusterObject, observed: Observed, now: Date): Decision {
  const { status = {}, metadata, spec } = cluster
  const { accountId, isClaimed, machines } = observed
  if (accountId === undefined)
    return { health: 'stalled', reason: 'NoAccount', message: 'The namespace belongs to no account.' }
  if (status.failureReason !== undefined)
    return { health: 'stalled', reason: 'Error', message: status.failureReason, ...ends(cluster, observed, accountId) }
  if (!isClaimed) return claiming(cluster, accountId)
  const machine = devClusterMachine(machines)
  const lost = lossOf(cluster, observed, machine)
  if (lost !== undefined) return failed(lost)
  const owner = devClusterOwner(cluster, accountId)
  const demand = devClusterDemand(cluster, observed)
  const isKnown = status.serverId !== undefined || observed.lost.includes(machineName(owner, demand.role))
  if (machine === undefined && isKnown) return serverMissing
  if (status.isMade !== true && isCreationOverdue(metadata.creationTimestamp ?? '', now))
    return failed(`It did not come up within ${DEV_CLUSTER_MINUTES} minutes: ${waitedFor(cluster, observed)}`)
  if (machine === undefined) {
    // The network in the same manifest may be created later.
    if (spec.networkId !== undefined && observed.networkCidr === undefined)
      return waiting(`Waiting for network ${spec.networkId} to be there`)
    return { ...waiting('Its server is made'), actions: [serverOf(owner, demand, undefined)] }
  }
  return followed(cluster, observed, { machine, actions: delivery(owner, demand, machine) })
}

const SERVER_MISSING = 'Its server is missing, and nobody deleted it. It is not made again.'
/** It recovers when its server is there again. */
const serverMissing: Decision = {
  health: 'stalled',
  reason: 'ServerMissing',
  message: SERVER_MISSING,
  status: { health: { apiServer: 'unknown', isNodeReady: false, detail: SERVER_MISSING } },
}

const waiting = (message: string): Decision => ({ health: 'reconciling', reason: 'Making', message })

function claiming({ metadata, spec, ...cluster }: DevClusterObject, accountId: string): Decision {
  const refusal = refusalOf({ metadata, spec, ...cluster }, CLAIMED)
  if (refusal !== undefined) return failed(refusal.message)
  const input = { accountId, change: 'create' }
  return { ...waiting('Its name is claimed'), actions: [{ do: 'effect', name: 'claim', input }], waitSeconds: 0 }
}

/** It stays in error, whatever its server does: nobody should build on a cluster that comes and goes. */
const failed = (why: string): Decision => ({
  health: 'stalled',
  reason: 'Error',
  message: why,
  status: {
    failureReason: truncated(why),
    health: { apiServer: 'unhealthy', isNodeReady: false, detail: truncated(why) },
  },
})

/** A failed cluster that once ran still removes expired credentials from its server. */
function ends(cluster: DevClusterObject, observed: Observed, accountId: string): Pick<Decision, 'actions' | 'status'> {
  if (cluster.status?.isMade !== true) return {}
  const machine = devClusterMachine(observed.machines)
  if (machine === undefined) return observed.isServerRemoved ? { status: { admins: [] } } : {}
  const { admins } = machine.report?.devCluster ?? {}
  return {
    actions: delivery(devClusterOwner(cluster, accountId), devClusterDemand(cluster, observed), machine),
    ...(admins === undefined ? {} : { status: { admins } }),
  }
}

/** Why its server is lost, for people; undefined while it is not. */
function lossOf(
  { status }: DevClusterObject,
  { isServerRemoved }: Observed,
  machine: Machine | undefined,
): string | undefined {
  if (machine === undefined ? isServerRemoved : status?.serverId !== undefined && machine.isDeleting)
    return 'Its server was deleted, and the cluster with it.'
  if (machine === undefined || status?.serverId === undefined) return undefined
  if (machine.state !== 'error' || (status.isMade === true && machine.stateDetail === '')) return undefined
  const what = status.isMade === true ? 'Its server is lost' : 'Its server could not be made'
  return `${what}: ${machine.stateDetail}`
}

/** What it still waits for, for people. */
function waitedFor(cluster: DevClusterObject, observed: Observed): string {
  const machine = devClusterMachine(observed.machines)
  if (machine === undefined) return 'its server was not made'
  if (machine.state !== 'started') return `its server is ${machine.state}, ${machine.stateDetail}`
  const { configuration } = devClusterDemand(cluster, observed)
  if (configuration === undefined) return 'the configuration of its server could not be determined'
  return machine.report?.devCluster?.detail || machine.detail || 'its server did not say why'
}

interface Following {
  readonly machine: Machine
  readonly actions: readonly DevClusterAction[]
}

/** Its status shows what its server reports. */
function followed(cluster: DevClusterObject, observed: Observed, { machine, actions }: Following): Decision {
  const clusterReport = machine.report?.devCluster
  // A cluster that was created reports its own state, also while it receives another configuration.
  const isTold =
    cluster.status?.isMade === true ||
    isSameConfiguration(machine.running, devClusterDemand(cluster, observed).configuration)
  const isRunning = machine.state === 'started' && isTold
  // A simulated host reports that all is well, and nothing about a cluster.
  const isSimulated = machine.isHealthy && clusterReport === undefined
  const isReady = isRunning && (clusterReport?.isReady === true || isSimulated)
  const detail = detailOf(machine, { isReady, isSimulated })
  // Without its node it would count as running, while every pod of its owner waits.
  const isUp = isReady && (isSimulated || clusterReport?.isNodeReady === true)
  const isMade = cluster.status?.isMade === true || isUp
  return {
    health: !isMade ? 'reconciling' : 'ready',
    reason: !isMade ? 'Making' : isReady ? 'Running' : 'Unhealthy',
    message: detail,
    actions,
    status: {
      serverId: machine.serverId,
      ipv6Address: machine.publicIpv6,
      ipv4Address: cluster.spec.publicIpv4 ? machine.publicIpv4 : undefined,
      ...(isMade ? { isMade } : {}),
      ...(isSimulated ? { isSimulated } : {}),
      ...(isReady && clusterReport !== undefined ? saidOf(cluster, clusterReport) : {}),
      health: {
        apiServer: isSimulated || machine.reportedAt === undefined ? 'unknown' : isReady ? 'healthy' : 'unhealthy',
        isNodeReady: isRunning && clusterReport?.isNodeReady === true,
        ...defined({ observedAt: machine.reportedAt }),
        detail: truncated(detail),
      },
    },
  }
}

/** A guest reports these values: the authority of its first ready API is kept, so that no later one is trusted. */
const saidOf = (
  { status }: DevClusterObject,
  { certificateAuthority, admins, version }: NonNullable<NonNullable<Machine['report']>['devCluster']>,
): Status => ({
  certificateAuthority: status?.certificateAuthority ?? certificateAuthority,
  admins,
  version: status?.version ?? (version === undefined ? undefined : plainVersion(version.replace(/^v/, ''))),
})

interface Verdict {
  readonly isReady: boolean
  readonly isSimulated: boolean
}

function detailOf({ state, stateDetail, detail, report }: Machine, { isReady, isSimulated }: Verdict): string {
  if (isSimulated) return SIMULATED_DETAIL
  if (state !== 'started') return `Its server is ${state}${stateDetail === '' ? '' : `: ${stateDetail}`}`
  const text = report?.devCluster?.detail ?? ''
  if (text !== '') return text
  return detail === '' && !isReady ? 'Its server has not said yet that its API is ready' : detail
}

/** Its server is deleted first, whatever runs on it; then its claims are released. */
function remove(cluster: DevClusterObject, { accountId, machines }: Observed): readonly DevClusterAction[] {
  if (accountId === undefined) return [{ do: 'finalized' }]
  if (machines.length > 0)
    return actionsOf({
      health: 'reconciling',
      reason: 'Deleting',
      message: 'Its server goes',
      actions: machines.flatMap((machine) => removal(devClusterOwner(cluster, accountId), machine)),
    })
  const input = { accountId, devClusterId: cluster.metadata.name }
  return [{ do: 'effect', name: 'release', input }, { do: 'finalized' }]
}
