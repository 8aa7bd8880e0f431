/** The router's plan: pure, synchronous, total. What is the same for every noun with operations is in
 *  `controllers/operation/plan.ts`. Which networks are at it and what it translates to is claimed in PostgreSQL; its
 *  rows in OVN follow from that and from its spec. */
import { isDeepStrictEqual } from 'node:util'
import { gatewayOf, isReached } from '../../domain/private-network.ts'
import { Router, type RouterAction, type RouterSpec, type RouterStatus } from '../../resources/router/index.ts'
import { firstDecision } from '../operation/decision.ts'
import type { During } from '../operation/plan.ts'
import { activeOperation } from '../operation/stanza.ts'
import { refusalOf } from '../refusal.ts'
import { actionOf, failed, reconciling, type SyncDecision } from '../synced.ts'
import { applied, ending, hasAccount, hasZone, installed, planSynced, type SyncInput } from '../synced-plan.ts'
import { CLAIMED, ENDED, type Observed, type RouterEffect, type RouterObject } from './observed.ts'

type ReconcileInput = SyncInput<RouterObject, Observed>
type OperationInput = During<ReconcileInput>
type Decision = SyncDecision<RouterStatus, RouterEffect>
type Rule<Input = ReconcileInput> = (input: Input) => Decision | undefined

/** It is looked at again however little has changed. */
const LOOK_SECONDS = 300
const MISSING_LOOK_SECONDS = 5

export const plan = planSynced<RouterObject, RouterSpec, RouterStatus, Observed, RouterEffect>({
  label: 'A router',
  noun: 'router',
  type: Router,
  detectEdit,
  synchronize: (input) => synchronize(input),
  idle,
  remove: ({ root, observed: { accountId, claim } }) =>
    ending(root, {
      id: accountId === undefined ? undefined : { accountId, routerId: root.metadata.name },
      claim,
      ended: ENDED,
    }),
  knownOf: (input) => knownOf(input),
})

/** What an edit with kubectl does; undefined when the spec and the operations agree. */
export function detectEdit(router: RouterObject): RouterAction | undefined {
  const { metadata, spec, status } = router
  if (actionOf(spec.operation) === 'delete') return undefined
  if (metadata.deletionTimestamp !== undefined) return 'delete'
  if (activeOperation(router) !== undefined) return undefined
  if (status?.asked === undefined) return spec.operation === undefined ? 'create' : undefined
  const { asked } = status
  if (isDeepStrictEqual(asked, askedOf(router))) return undefined
  if (spec.networkIds.some((networkId) => !asked.networkIds.includes(networkId))) return 'attach_network'
  return asked.networkIds.some((networkId) => !spec.networkIds.includes(networkId)) ? 'detach_network' : 'update'
}

const askedOf = ({
  spec: { natEnabled, networkIds, staticRoutes },
}: RouterObject): NonNullable<RouterStatus['asked']> => ({ natEnabled, networkIds, staticRoutes })

/** Networks at it to stay. */
const networksOf = ({ observed: { claim } }: ReconcileInput) =>
  claim?.networks.filter((network) => !network.isLeaving) ?? []

function knownOf(input: ReconcileInput): NonNullable<Decision['status']> {
  const { root: router, observed } = input
  const { claim, region } = observed
  return {
    ...(region === undefined ? {} : { region }),
    // What PostgreSQL has forgotten is the router's all the same.
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

/** What it does not do of what it shall. */
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
  const refusal = refusalOf(router, CLAIMED)
  return refusal && [refusal.message]
}

const areInstalled = installed('the hosts of its zone')

/** Steps in order: claimed, applied, installed. */
const synchronize = (input: OperationInput): Decision =>
  firstDecision(input, [hasAccount, hasZone, hasAllNetworks, claimed, applied, areInstalled, trimmed, done])

/** Those of the same manifest may come later. */
const hasAllNetworks: Rule = ({ observed: { missing } }) =>
  missing.length === 0
    ? undefined
    : {
        ...reconciling('Waiting'),
        step: 'claimed',
        waitFor: `network ${missing[0]} to be there`,
        waitSeconds: MISSING_LOOK_SECONDS,
      }

/** It holds all that it shall. */
function isMet({ root: { spec }, observed: { claim } }: ReconcileInput): boolean {
  if (claim === undefined || claim.name !== spec.name || claim.natEnabled !== spec.natEnabled) return false
  const at = claim.networks.flatMap(({ networkId, isLeaving: leaves }) => (leaves ? [] : [networkId]))
  return (
    (!spec.natEnabled || claim.publicAddress !== undefined) &&
    isDeepStrictEqual(at.toSorted(), spec.networkIds.toSorted())
  )
}

const claimed: Rule = (input) => {
  if (isMet(input)) return undefined
  const refusal = refusalOf(input.root, CLAIMED)
  if (refusal !== undefined) return failed('claimed', refusal.message)
  return claiming(input)
}

function claiming({ root: router, observed: { accountId = '' } }: ReconcileInput): Decision {
  const {
    metadata: { name: routerId },
    spec: { zone, name, natEnabled, networkIds },
  } = router
  return {
    ...reconciling('Claiming'),
    step: 'claimed',
    actions: [{ do: 'effect', name: 'claim', input: { accountId, routerId, zone, name, natEnabled, networkIds } }],
    waitFor: 'the database',
    waitSeconds: 0,
  }
}

/** What nothing leads to any more is given back. */
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

const done: Rule<OperationInput> = (input) => ({ ...standing(input), step: 'installed', outcome: 'succeeded' })

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

/** Its rows follow what they are made from, whoever changes it; what was refused is asked for again now and then. */
function idle(input: ReconcileInput): Decision {
  const { root: router, observed } = input
  if (observed.claim === undefined)
    return { health: 'stalled', reason: 'Error', message: router.status?.operation?.error ?? 'It was not made.' }
  const isRefused = refusalOf(router, CLAIMED) !== undefined
  if (!isMet(input) && observed.missing.length === 0 && !isRefused) return claiming(input)
  const decision = observed.hasNetworks ? (applied(input) ?? areInstalled(input) ?? trimmed(input)) : undefined
  return decision === undefined ? standing(input) : { ...decision, health: 'ready', reason: 'Applying' }
}
