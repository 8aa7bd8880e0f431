/** The router's plan: pure, synchronous, total. Its networks and its NAT address are claimed in PostgreSQL; its rows in
 *  OVN are derived from that and from its spec. */
import type { RouterClaim, RouterId } from '../../../db/router/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { RouterSpec, RouterStatus } from '../../../resources/router/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'
import { type ClaimEffects, type Edits, claimed, planChanges, removalClaimed } from '../../kit/changes.ts'
import type { RouterFacts } from '../../network/ovn/router.ts'
import type { KindOf } from '../../../domain/operations.ts'
import { routerChanges } from '../../../changes/router.ts'
import { defined } from '../../../domain/defined.ts'
import { gatewayOf, isReached } from '../../../domain/network/rules.ts'
import { firstDecision } from '../../kit/operation/decision.ts'
import type { During } from '../../kit/operation/plan.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { refusalOf } from '../../kit/refusal.ts'
import { type SyncDecision, reconciling } from '../../kit/synced.ts'
import { type SyncInput, applied, hasAccount, hasZone, installed, releasing } from '../../kit/synced-plan.ts'

export type RouterObject = KubeObject<RouterSpec, RouterStatus>

export interface Observed extends Edits {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly claim: RouterClaim | undefined
  /** Its zone has private networks now. */
  readonly hasNetworks: boolean
  readonly region: string | undefined
  /** Networks of its spec that do not exist, or are not ready yet. */
  readonly missing: readonly string[]
  /** The desired facts for OVN; undefined while nothing is claimed, and while a network of it is missing. */
  readonly facts: RouterFacts | undefined
  readonly isApplied: boolean
  /** The newest sequence that its gateways have installed; undefined when it is not known. */
  readonly installed: number | undefined
}

/** The effects of routers by name, each with its input. */
export interface RouterEffects extends AuditEffects, ClaimEffects {
  /** Writes its rows in OVN, and those of its networks. */
  readonly apply: { readonly facts: RouterFacts }
  /** Releases the networks and the address that it gives up. */
  readonly trim: RouterId
  /** Deletes its rows in OVN, then releases its claims. */
  readonly release: { readonly zone: string; readonly id: RouterId | undefined }
}
export type RouterEffect = ActionWith<RouterEffects>

type ReconcileInput = SyncInput<RouterObject, Observed>
type Decision = SyncDecision<RouterStatus, RouterEffect, KindOf<'router'>>
type Rule<Input = ReconcileInput> = (input: Input) => Decision | undefined

/** The interval of checks without a change. */
const LOOK_SECONDS = 300
const MISSING_LOOK_SECONDS = 5

export const plan = planChanges(routerChanges, {
  applied: appliedRouter,
  // Steps in order: claimed, applied, installed.
  synchronize: (input: During<ReconcileInput>) =>
    firstDecision(input, [hasAccount, hasZone, hasAllNetworks, isClaimed, applied, areInstalled, trimmed, done]),
  idle,
  remove,
  knownOf,
})

/** The applied spec, as its status shows it. */
export function appliedRouter({ spec, status }: RouterObject): RouterSpec | undefined {
  return status?.asked === undefined ? undefined : { ...spec, ...status.asked }
}

const askedOf = ({
  spec: { natEnabled, networkIds, staticRoutes },
}: RouterObject): NonNullable<RouterStatus['asked']> => ({ natEnabled, networkIds, staticRoutes })

/** Networks that stay attached to it. */
const networksOf = ({ observed: { claim } }: ReconcileInput) =>
  claim?.networks.filter((network) => !network.isLeaving) ?? []

function knownOf(input: ReconcileInput): NonNullable<Decision['status']> {
  const { root: router, observed } = input
  const { claim, region } = observed
  return {
    ...defined({ region }),
    // What PostgreSQL has lost still belongs to the router.
    ...(claim === undefined ? {} : { publicIpv4: claim.natEnabled ? claim.publicAddress?.address : undefined }),
    networks: networksOf(input).map(({ networkId, ipv4Cidr, ipv6Prefix }) => ({
      networkId,
      ipv4Address: gatewayOf(ipv4Cidr),
      ipv6Address: gatewayOf(ipv6Prefix),
    })),
    ...(activeOperation(router) === undefined ? {} : { asked: askedOf(router) }),
    ...healthOf(input),
  }
}

/** Which parts of its spec it does not fulfil. */
function healthOf(input: ReconcileInput): Pick<RouterStatus, 'isHealthy' | 'healthDetail'> {
  const { root: router, observed } = input
  const { spec } = router
  const lost = spec.staticRoutes.find(({ nextHop }) => !isReached(nextHop, networksOf(input)))
  const faults = [
    ...observed.missing.map((networkId) => `There is no network ${networkId}.`),
    ...(observed.hasNetworks ? [] : [`The zone ${spec.zone} has no private networks now.`]),
    ...(spec.natEnabled && observed.claim?.publicAddress === undefined ? ['It has no public address.'] : []),
    ...(spec.natEnabled && observed.facts?.gatewayNodes.length === 0 ? ['No host of the zone leads outside now.'] : []),
    ...(lost === undefined
      ? []
      : [`The route to ${lost.destination} leads nowhere: ${lost.nextHop} is in none of its networks.`]),
    ...(faultOfClaim(input) ?? []),
    ...(observed.isApplied ? [] : ['Its hosts have not received it yet.']),
  ]
  return { isHealthy: faults.length === 0, healthDetail: faults.join(' ') }
}

function faultOfClaim({ root: router }: ReconcileInput): readonly string[] | undefined {
  const refusal = refusalOf(router, 'Claimed')
  return refusal && [refusal.message]
}

const areInstalled = installed('the hosts of its zone')

/** The networks in the same manifest may be created later. */
const hasAllNetworks: Rule = ({ observed: { missing } }) =>
  missing.length === 0
    ? undefined
    : {
        ...reconciling('Waiting'),
        step: 'claimed',
        waitFor: `network ${missing[0]} to be there`,
        waitSeconds: MISSING_LOOK_SECONDS,
      }

/** NAT without an address does not count yet. */
const isClaimed: Rule = claimed(routerChanges, (input: ReconcileInput) => {
  const { root, observed } = input
  const { claim } = observed
  return (
    claim && {
      ...root.spec,
      name: claim.name,
      natEnabled: claim.natEnabled && claim.publicAddress !== undefined,
      networkIds: networksOf(input).map(({ networkId }) => networkId),
    }
  )
})

/** What is no longer routed is released. */
const trimmed: Rule = ({ root: router, observed: { accountId = '', claim } }) => {
  const isFull = claim?.networks.some((network) => network.isLeaving) === true
  const keepsAddress = claim?.natEnabled === false && claim.publicAddress !== undefined
  return isFull || keepsAddress
    ? {
        ...reconciling('Applying'),
        step: 'installed',
        actions: [{ do: 'effect', name: 'trim', input: { accountId, routerId: router.metadata.name } }],
        waitFor: 'the database',
        waitSeconds: 0,
      }
    : undefined
}

const done: Rule<During<ReconcileInput>> = (input) => ({ ...standing(input), step: 'installed', outcome: 'succeeded' })

function standing(input: ReconcileInput): Decision {
  const { isHealthy, healthDetail = '' } = healthOf(input)
  return isHealthy === true
    ? { health: 'ready', reason: 'Applied', waitFor: 'a change', waitSeconds: LOOK_SECONDS }
    : {
        health: 'stalled',
        reason: 'Unhealthy',
        message: healthDetail,
        waitFor: 'a change',
        waitSeconds: LOOK_SECONDS,
      }
}

/** Its rows follow the facts that they are built from, whoever changes those; a refused claim is tried again from time
 *  to time. */
function idle(input: ReconcileInput): Decision {
  const { root: router, observed } = input
  if (observed.claim === undefined)
    return { health: 'stalled', reason: 'Error', message: router.status?.operation?.error ?? 'It was not made.' }
  const isRefused = refusalOf(router, 'Claimed') !== undefined
  const claiming = isRefused || observed.missing.length > 0 ? undefined : isClaimed(input)
  if (claiming !== undefined) return claiming
  const decision = observed.hasNetworks ? (applied(input) ?? areInstalled(input) ?? trimmed(input)) : undefined
  return decision === undefined ? standing(input) : { ...decision, health: 'ready', reason: 'Applying' }
}

/** It is deleted once no network is attached to it: the claim is released first, then its rows are deleted, then the
 *  rest. */
function remove({ root: router, observed: { accountId, claim } }: ReconcileInput): Decision {
  const id = accountId === undefined ? undefined : { accountId, routerId: router.metadata.name }
  const isGranted = claim?.isEnding !== false
  return removalClaimed(routerChanges, router, { accountId, isGranted }) ?? releasing(router.spec.zone, id)
}
