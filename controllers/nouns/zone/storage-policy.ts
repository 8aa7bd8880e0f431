/** The operation `storage.rebalance_policy`: the shared storage of a zone gets another policy. The policy is applied
 *  when the storage has recorded it, and the operation is over when every copy is in its place. Pure. */
import { isDeepStrictEqual } from 'node:util'
import {
  STORAGE_FAILURE_DOMAINS,
  STORAGE_REPLICAS_MAXIMUM,
  type StoragePolicy,
  type ZoneStatus,
} from '../../../resources/catalog/index.ts'
import { firstDecision, type Rule } from '../../kit/operation/decision.ts'
import type { DirectEdit } from '../../kit/operation/direct-edit.ts'
import type { During } from '../../kit/operation/plan.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { refusalOf } from '../../kit/refusal.ts'
import type { SharedStoragePools, Decision, ReconcileInput, SharedStorage, ZoneObject } from './observed.ts'

/** Condition with the reason why the storage did not accept the policy. */
export const POLICY_SET = 'StoragePolicySet'
const IDLE_LOOK_SECONDS = 60
const LOOK_SECONDS = 5

type PoolState = NonNullable<ZoneStatus['sharedStorage']>['pools'][number]

/** Whether the policy differs from that of the last operation. */
export const detectEdit = (zone: ZoneObject): boolean => {
  const policy = zone.spec.sharedStorage?.policy
  return (
    zone.metadata.deletionTimestamp === undefined &&
    activeOperation(zone) === undefined &&
    policy !== undefined &&
    !isDeepStrictEqual(policy, zone.status?.storagePolicy)
  )
}

/** The actor that gives storage more copies when it has room for them. */
const ACTOR = 'system:zones'
/** Failure domains that are no stronger than each, in the cluster's words. */
const WEAKER_DOMAINS: Readonly<Record<StoragePolicy['failureDomain'], readonly string[]>> = {
  host: ['osd', 'host'],
  rack: ['osd', 'host', 'rack'],
}
/** A single copy is the administrator's choice, or all that a single host can have. */
const COPIES_MINIMUM = 2

/** The zone names no policy, and its storage has enough hosts or racks for a stronger one than its pools have. Tried
 *  once for each such policy; what its administrator has set beyond that is never made weaker. */
export function detectRoom({
  metadata,
  spec,
  status,
}: ZoneObject): (DirectEdit & { readonly actor: string }) | undefined {
  const { sharedStorage, operation } = spec
  const answer = status?.sharedStorage
  if (metadata.deletionTimestamp !== undefined || activeOperation({ spec, status }) !== undefined) return undefined
  if (sharedStorage === undefined || sharedStorage.policy !== undefined || answer?.detail !== '') return undefined
  const stronger = strongerPolicy(answer.pools)
  const args = stronger && { replicas: String(stronger.replicas), failure_domain: stronger.failureDomain }
  return args === undefined || isDeepStrictEqual(args, operation?.arguments)
    ? undefined
    : { kind: 'storage.rebalance_policy', field: 'sharedStorage', actor: ACTOR, arguments: args }
}

/** As many copies as there are hosts, up to three, and in separate racks from the third rack on. Undefined when one of
 *  the pools has a stronger policy, or all of them have this one. */
function strongerPolicy(pools: readonly PoolState[]): StoragePolicy | undefined {
  const least = (field: 'hosts' | 'racks') => Math.min(...pools.map((pool) => pool[field]))
  const replicas = Math.min(STORAGE_REPLICAS_MAXIMUM, least('hosts'))
  const failureDomain = least('racks') >= STORAGE_REPLICAS_MAXIMUM ? 'rack' : 'host'
  const domains = WEAKER_DOMAINS[failureDomain]
  const isRaised = (pool: PoolState) => pool.replicas <= replicas && domains.includes(pool.failureDomain)
  const isSame = (pool: PoolState) => pool.replicas === replicas && pool.failureDomain === failureDomain
  return pools.length === 0 || replicas < COPIES_MINIMUM || !pools.every(isRaised) || pools.every(isSame)
    ? undefined
    : { replicas, failureDomain }
}

/** No operation is under way: the state of the storage is read periodically. */
export function keepPolicy(input: ReconcileInput): Decision {
  const { zone, observed } = input
  const { sharedStorage } = zone.spec
  const forgotten =
    sharedStorage?.policy === undefined && zone.status?.storagePolicy !== undefined
      ? { status: { storagePolicy: undefined } }
      : {}
  if (sharedStorage === undefined || ageSeconds(input) < IDLE_LOOK_SECONDS) return forgotten
  return { ...forgotten, actions: [look(sharedStorage, observed.pools)] }
}

/** The policy of the last operation. */
export const policyTried = ({ spec: { sharedStorage } }: ZoneObject): Decision['status'] & {} => ({
  storagePolicy: sharedStorage?.policy,
})

export const rebalance = (input: During<ReconcileInput>): Decision =>
  firstDecision(input, [hasPolicy, isTaken, applied, rebalanced, done])

type PolicyRule = Rule<During<ReconcileInput>, Decision>

/** The policy of the zone, or the one that its storage has room for. */
function wantedPolicy({ zone, operation }: During<ReconcileInput>): StoragePolicy | undefined {
  const { sharedStorage } = zone.spec
  const { replicas, failure_domain: wanted } = operation.arguments ?? {}
  const failureDomain = STORAGE_FAILURE_DOMAINS.find((domain) => domain === wanted)
  return sharedStorage === undefined || sharedStorage.policy !== undefined || failureDomain === undefined
    ? sharedStorage?.policy
    : { replicas: Number(replicas), failureDomain }
}

const failed = ({ zone }: ReconcileInput, error: string): Decision => ({
  step: 'applied',
  outcome: 'failed',
  error,
  status: policyTried(zone),
})

const hasPolicy: PolicyRule = (input) =>
  wantedPolicy(input) === undefined
    ? failed(input, 'The zone names no shared storage, or no policy for it.')
    : undefined

const isTaken: PolicyRule = (input) => {
  const refusal = refusalOf(input.zone, POLICY_SET)
  return refusal && failed(input, refusal.message)
}

const applied: PolicyRule = (input) => {
  const { zone, observed, operation } = input
  const { sharedStorage } = zone.spec
  const policy = wantedPolicy(input)
  const known = zone.status?.sharedStorage
  if (sharedStorage === undefined || policy === undefined) return undefined
  const isOfOperation = known !== undefined && known.readAt >= operation.requestedAt
  const isAnswer = isOfOperation && known.detail === ''
  const states = poolsOf(input)
  const isApplied = states.every(
    ({ replicas, failureDomain }) => replicas === policy.replicas && failureDomain === policy.failureDomain,
  )
  if (isAnswer && isApplied && states.length > 0) return undefined
  const isEmpty = isAnswer && states.length === 0
  const pools = observed.pools ?? []
  return {
    step: 'applied',
    actions:
      isOfOperation && ageSeconds(input) < LOOK_SECONDS
        ? []
        : [{ do: 'effect', name: 'setStoragePolicy', input: { access: accessOf(sharedStorage), pools, policy } }],
    waitFor: isEmpty
      ? 'pools of the zone that the shared storage has'
      : known === undefined || known.detail === ''
        ? 'the shared storage to take the policy'
        : `the shared storage, which says: ${known.detail}`,
  }
}

const rebalanced: PolicyRule = (input) => {
  const { zone, observed } = input
  const { sharedStorage } = zone.spec
  const left = poolsOf(input).reduce((sum, { misplacedGroups }) => sum + misplacedGroups, 0)
  if (sharedStorage === undefined || left === 0) return undefined
  return {
    step: 'rebalanced',
    actions: ageSeconds(input) < LOOK_SECONDS ? [] : [look(sharedStorage, observed.pools)],
    waitFor: `${left} parts of the storage to have all their copies in place`,
  }
}

const done: PolicyRule = ({ zone }) => ({ step: 'rebalanced', outcome: 'succeeded', status: policyTried(zone) })

/** The storage's report about the pools of the policy. */
function poolsOf({ zone: { spec, status } }: ReconcileInput) {
  const names = spec.sharedStorage?.policy?.pools
  return (status?.sharedStorage?.pools ?? []).filter(({ name }) => names === undefined || names.includes(name))
}

const accessOf = ({ protocol, secretName }: SharedStorage): SharedStoragePools['access'] => ({ protocol, secretName })
const look = (sharedStorage: SharedStorage, pools: readonly string[] = []) =>
  ({ do: 'effect', name: 'readSharedStorage', input: { access: accessOf(sharedStorage), pools } }) as const

/** Seconds since the storage was last asked; infinite when it never was. */
const ageSeconds = ({ zone: { status }, now }: ReconcileInput): number =>
  status?.sharedStorage === undefined
    ? Number.POSITIVE_INFINITY
    : (now.getTime() - Date.parse(status.sharedStorage.readAt)) / 1_000
