/** The router's plan: pure, synchronous, total. What is the same for every noun with operations is in
 *  `controllers/operation/plan.ts`. Which networks are at it and what it translates to is claimed in PostgreSQL; its
 *  rows in OVN follow from that and from its spec. */
import { isDeepStrictEqual } from 'node:util'
import { gatewayOf, isReached } from '../../domain/private-network.ts'
import { Router, type RouterAction, type RouterStatus } from '../../resources/router/index.ts'
import { isBeingDeleted } from '../../resources/operation/index.ts'
import { firstDecision } from '../operation/decision.ts'
import { auditRequests } from '../operation/direct-edit.ts'
import { type During, planOperations } from '../operation/plan.ts'
import { activeOperation } from '../operation/stanza.ts'
import { refusalOf } from '../refusal.ts'
import { actionOf, auditedSync, failed, reconciling, removeFirst, type SyncDecision, syncActions } from '../synced.ts'
import { CLAIMED, ENDED, type Observed, type RouterEffect, type RouterObject } from './observed.ts'

interface ReconcileInput {
  readonly router: RouterObject
  readonly observed: Observed
}
type OperationInput = During<ReconcileInput>
type Decision = SyncDecision<RouterStatus, RouterEffect>
type Rule<Input = ReconcileInput> = (input: Input) => Decision | undefined

/** What is installed nobody is woken for. */
const INSTALLED_LOOK_SECONDS = 1
/** It is looked at again however little has changed. */
const LOOK_SECONDS = 300
const IN_USE_LOOK_SECONDS = 10
const MISSING_LOOK_SECONDS = 5

export const plan = planOperations<RouterObject, Observed, ReconcileInput, Decision, RouterEffect>({
  label: 'A router',
  flows: { 'router.sync': (input) => (isBeingDeleted(input.router) ? remove(input) : synchronize(input)) },
  inputOf: (router, observed) => ({ router, observed }),
  unchanged: () => reconciling('Waiting'),
  always: ({ router, observed }) => auditRequests(router, observed.edits),
  guard: ({ router }) => removeFirst(Router, router),
  detectEdit({ router, observed }) {
    const action = detectEdit(router)
    return action && { kind: 'router.sync', field: '', arguments: { action }, actor: observed.editor }
  },
  idle: (input) => (isBeingDeleted(input.router) ? remove(input) : idle(input)),
  // A deletion goes on behind its operation.
  overdue: ({ router }, decision, error) =>
    isBeingDeleted(router) ? { ...decision, outcome: 'failed', error } : { ...decision, ...failed('applied', error) },
  auditedAs: auditedSync('router'),
  toActions: (input, decision) =>
    syncActions(input.router, { ...decision, status: { ...knownOf(input), ...decision.status } }),
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
  const { router, observed } = input
  const { claim, region } = observed
  return {
    ...(region === undefined ? {} : { region }),
    publicIpv4: claim?.natEnabled === true ? claim.publicAddress?.address : undefined,
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
  const { router, observed } = input
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
    ...(observed.isApplied ? [] : ['Its hosts have not been told yet.']),
  ]
  return { isHealthy: faults.length === 0, healthDetail: faults.join(' ') }
}

function faultOfClaim({ router }: ReconcileInput): readonly string[] | undefined {
  const refusal = refusalOf(router, CLAIMED)
  return refusal && [refusal.message]
}

/** Steps in order: claimed, applied, installed. */
const synchronize = (input: OperationInput): Decision =>
  firstDecision(input, [hasAccount, hasZone, hasAllNetworks, claimed, applied, installed, trimmed, done])

const hasAccount: Rule = ({ observed }) =>
  observed.accountId === undefined ? failed('claimed', 'The namespace belongs to no account.') : undefined

const hasZone: Rule = ({ router: { spec }, observed: { hasNetworks, claim } }) => {
  if (hasNetworks) return undefined
  return claim === undefined
    ? failed('claimed', `The zone ${spec.zone} has no private networks.`)
    : { ...reconciling('Waiting'), step: 'applied', waitFor: `zone ${spec.zone} to have private networks again` }
}

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
function isMet({ router: { spec }, observed: { claim } }: ReconcileInput): boolean {
  if (claim === undefined || claim.name !== spec.name || claim.natEnabled !== spec.natEnabled) return false
  const at = claim.networks.flatMap(({ networkId, isLeaving: leaves }) => (leaves ? [] : [networkId]))
  return (
    (!spec.natEnabled || claim.publicAddress !== undefined) &&
    isDeepStrictEqual(at.toSorted(), spec.networkIds.toSorted())
  )
}

const claimed: Rule = (input) => {
  if (isMet(input)) return undefined
  const refusal = refusalOf(input.router, CLAIMED)
  if (refusal !== undefined) return failed('claimed', refusal.message)
  return claiming(input)
}

function claiming({ router, observed: { accountId = '' } }: ReconcileInput): Decision {
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

const applied: Rule = ({ observed: { facts, isApplied } }) =>
  facts === undefined || isApplied
    ? undefined
    : {
        ...reconciling('Applying'),
        step: 'applied',
        actions: [{ do: 'effect', name: 'apply', input: { facts } }],
        waitFor: 'the network',
        waitSeconds: 0,
      }

const installed: Rule = ({ router: { status }, observed }) =>
  observed.installed === undefined || observed.installed >= (status?.appliedSequence ?? 0)
    ? undefined
    : {
        ...reconciling('Applying'),
        step: 'installed',
        waitFor: 'the hosts of its zone',
        waitSeconds: INSTALLED_LOOK_SECONDS,
      }

/** What nothing leads to any more is given back. */
const trimmed: Rule = ({ router, observed: { accountId = '', claim } }) => {
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
  const { router, observed } = input
  if (observed.claim === undefined)
    return { health: 'stalled', reason: 'Error', message: router.status?.operation?.error ?? 'It was not made.' }
  const isRefused = refusalOf(router, CLAIMED) !== undefined
  if (!isMet(input) && observed.missing.length === 0 && !isRefused) return claiming(input)
  const decision = observed.hasNetworks ? (applied(input) ?? installed(input) ?? trimmed(input)) : undefined
  return decision === undefined ? standing(input) : { ...decision, health: 'ready', reason: 'Applying' }
}

/** It goes once no network is at it. */
function remove({ router, observed }: ReconcileInput): Decision {
  const { accountId, claim } = observed
  const id = accountId === undefined ? undefined : { accountId, routerId: router.metadata.name }
  if (id !== undefined && claim?.isEnding === false) {
    const refusal = router.status?.conditions?.find(({ type, status }) => type === ENDED && status === 'False')
    return {
      ...reconciling('Deleting'),
      step: 'applied',
      ...(refusal === undefined ? {} : { message: refusal.message }),
      actions: [{ do: 'effect', name: 'end', input: id }],
      waitFor: refusal?.message ?? 'the database',
      waitSeconds: refusal === undefined ? 0 : IN_USE_LOOK_SECONDS,
    }
  }
  return {
    ...reconciling('Deleting'),
    step: 'installed',
    outcome: 'succeeded',
    actions: [{ do: 'effect', name: 'release', input: { zone: router.spec.zone, id } }],
    isGone: true,
  }
}
