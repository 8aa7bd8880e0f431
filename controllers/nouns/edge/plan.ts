/** The edge's plan: pure, synchronous, total. `controllers/kit/operation/plan.ts` has what is the same for every noun
 *  with operations, `controllers/nouns/managed-machine` what is the same for everything with machines. An edge routes
 *  its network to the machine that translates once that machine works, and withdraws the route before the machine is
 *  deleted. */
import type { KindOf } from '../../../domain/operations.ts'
import { isDeepStrictEqual } from 'node:util'
import { ROLE_LOST_SECONDS } from '../../../domain/edge/rules.ts'
import { type Gateway, gatewayOf, gatewayRoutes } from '../../../domain/network/rules.ts'
import { edgeConfiguration, Edge, type EdgeAction, type EdgeStatus } from '../../../resources/edge/index.ts'
import { keyOf } from '../../../kit/kube/object.ts'
import { LoadBalancer } from '../../../resources/load-balancer/index.ts'
import { isBeingDeleted } from '../../../resources/operation/index.ts'
import type { OperationStanza } from '../../../resources/kit/shapes.ts'
import type { OperationEvent } from '../../../kit/reconcile/action.ts'
import { planMachines } from '../managed-machine/index.ts'
import { firstDecision } from '../../kit/operation/decision.ts'
import { auditRequests, retryAt, secondsToRetry, SYSTEM_ACTOR, wasRefused } from '../../kit/operation/direct-edit.ts'
import { type During, planOperations } from '../../kit/operation/plan.ts'
import { activeOperation, hasNoRequest, operationActionOf } from '../../kit/operation/stanza.ts'
import type { RouterFacts } from '../../network/ovn/router.ts'
import { refusalOf } from '../../kit/refusal.ts'
import { factsDigest, failed, reconciling, removeFirst, type SyncDecision, syncActions } from '../../kit/synced.ts'
import { edgeDemands, grantedOf, grows, lostSince, edgeMachine, rulesOf, viewsOf, requiredGrant } from './machines.ts'
import { isServing, type PairPlan, pairViewOf, planPair } from './pair.ts'
import { CLAIMED, type EdgeEffect, type EdgeObject, type Observed } from './observed.ts'

interface ReconcileInput {
  readonly edge: EdgeObject
  readonly observed: Observed
  readonly now: Date
}
type OperationInput = During<ReconcileInput>
type Decision = SyncDecision<EdgeStatus, EdgeEffect, KindOf<'edge'>>
type Rule<Input = ReconcileInput> = (input: Input) => Decision | undefined

const LOOK_SECONDS = 60
const MACHINES_LOOK_SECONDS = 5
const INSTALLED_LOOK_SECONDS = 1
/** The most servers that an event names. */
const SERVERS_IN_EVENT_MAXIMUM = 100

export const plan = planOperations<EdgeObject, Observed, ReconcileInput, Decision, EdgeEffect>({
  label: 'An edge',
  endedByDeletion: (operation) => operationActionOf(operation) === 'create',
  flows: {
    'edge.sync': (input) => (isBeingDeleted(input.edge) ? remove(input) : synchronize(input)),
    'edge.delete': (input) => remove(input),
  },
  inputOf: (edge, observed, now) => ({ edge, observed, now }),
  unchanged: () => reconciling('Waiting'),
  always: ({ edge, observed }) => auditRequests(edge, observed.edits),
  guard: ({ edge }) => removeFirst(Edge, edge),
  detectEdit: (input) => {
    const { edge, observed } = input
    const edit = detectEdit(edge)
    const unfinished = unfinishedEdit(edge)
    const action = edit ?? unfinished?.action ?? (needsRepair(input) ? 'repair' : undefined)
    return (
      action && {
        kind: action === 'delete' ? 'edge.delete' : 'edge.sync',
        field: '',
        arguments: { action },
        actor: edit === undefined ? (unfinished?.actor ?? SYSTEM_ACTOR) : observed.editor,
      }
    )
  },
  idle: (input) => (isBeingDeleted(input.edge) ? remove(input) : standing(input)),
  overdue: (input, decision, error) =>
    isBeingDeleted(input.edge)
      ? { ...decision, outcome: 'failed', error }
      : { ...decision, ...failed(decision.step ?? 'machines', error), ...isUnmade(input, 'error') },
  auditedAs,
  toActions: (input, decision) =>
    syncActions(input.edge, { ...decision, status: { ...knownOf(input), ...decision.status } }),
})

/** An operation that the platform starts by itself is audited as a change like any other. */
function auditedAs(operation: OperationStanza): string | undefined {
  if (!hasNoRequest(operation)) return undefined
  const action = operationActionOf(operation)
  return `edge.${action === 'create' || action === 'delete' ? action : 'update'}`
}

/** The operation that an edit with kubectl needs; undefined when the spec and the operations agree. */
export function detectEdit(edge: EdgeObject): Exclude<EdgeAction, 'repair'> | undefined {
  const { metadata, spec, status } = edge
  if (spec.operation?.kind === 'edge.delete') return undefined
  if (metadata.deletionTimestamp !== undefined) return 'delete'
  if (activeOperation(edge) !== undefined) return undefined
  if (status?.asked === undefined) return spec.operation === undefined ? 'create' : undefined
  return status.asked === edgeConfiguration(edge).fingerprint ? undefined : 'update'
}

/** The creation or edit past the API whose operation ran out of time: it starts again, after pauses that grow (decision
 *  122). Its status already has what was asked for. */
function unfinishedEdit(edge: EdgeObject): { readonly action: EdgeAction; readonly actor: string } | undefined {
  const { operation } = edge.spec
  if (operation === undefined || !hasNoRequest(operation) || isBeingDeleted(edge)) return undefined
  const { id, status } = edge.status?.operation ?? {}
  if (id !== operation.id || status !== 'failed' || wasRefused(edge)) return undefined
  const action = operationActionOf(operation)
  return action === 'create' || action === 'update' ? { action, actor: operation.actor } : undefined
}

/** It was complete once, and is no longer in its desired state. */
function needsRepair(input: ReconcileInput): boolean {
  const { edge, observed, now } = input
  const { state } = edge.status ?? {}
  if (activeOperation(edge) !== undefined || isBeingDeleted(edge) || state === undefined || state === 'creating')
    return false
  if (observed.claim === undefined || observed.network === undefined || !observed.hasNetworks) return false
  if (secondsToRetry(edge, now) > 0) return false
  return !machinesOf(input).isSettled || !pairOf(input).isSettled
}

const machinesOf = ({ edge, observed, now }: ReconcileInput, demands = edgeDemands(edge, observed)) =>
  planMachines({
    owner: {
      type: 'edge',
      resource: Edge,
      namespace: edge.metadata.namespace ?? '',
      id: edge.metadata.name,
      uid: edge.metadata.uid ?? '',
      zone: edge.spec.zone,
      accountId: observed.accountId ?? '',
    },
    demands,
    machines: observed.machines,
    lost: observed.lost,
    now,
  })

const pairOf = ({ edge, observed }: ReconcileInput): PairPlan => planPair(edge, observed.pair, observed.accountId ?? '')

/** What its status shows, whatever the decision. */
function knownOf({ edge, observed, now }: ReconcileInput): NonNullable<Decision['status']> {
  const lost = lostSince(edge, { machines: observed.machines, isServing: isServing(observed.pair) }, now)
  const isLost = Object.values(lost).some((since) => now.getTime() - Date.parse(since) >= ROLE_LOST_SECONDS * 1_000)
  const { state = 'creating' } = edge.status ?? {}
  return {
    state: isBeingDeleted(edge) ? 'deleting' : state === 'running' && isLost ? 'error' : state,
    configuration: edgeConfiguration(edge),
    machines: viewsOf(edge, observed.machines),
    balancer: pairViewOf(observed.pair),
    leadsOut: observed.claim?.gateway,
    hostKey: observed.claim?.hostKey,
    lostSince: lost,
    ...(activeOperation(edge) === undefined ? {} : { asked: edgeConfiguration(edge).fingerprint }),
  }
}

const isUnmade = ({ edge }: ReconcileInput, state: 'error'): Pick<Decision, 'status'> =>
  edge.status?.state === 'running' ? {} : { status: { state } }

/** Steps in order: claimed, machines, announced. */
const synchronize = (input: OperationInput): Decision =>
  firstDecision(input, [hasAccount, hasNetwork, claimed, withdrawn, settled, announced, installed, done])

const hasAccount: Rule = (input) =>
  input.observed.accountId === undefined ? refused(input, 'The namespace belongs to no account.') : undefined

const refused = (input: ReconcileInput, error: string): Decision => ({
  ...failed('claimed', error),
  ...isUnmade(input, 'error'),
})

/** The network in the same manifest may be created later. */
const hasNetwork: Rule = ({ edge: { spec }, observed: { network, hasNetworks } }) =>
  network !== undefined && hasNetworks
    ? undefined
    : {
        ...reconciling('Waiting'),
        step: 'claimed',
        waitFor: network === undefined ? `network ${spec.networkId} to be there` : `zone ${spec.zone} to have networks`,
        waitSeconds: MACHINES_LOOK_SECONDS,
      }

/** Claims its network, and claims again what costs more than before. A repair restores what was granted, and claims
 *  nothing. */
const claimed: Rule<OperationInput> = (input) => {
  const { edge, observed, operation } = input
  const isRepair = operationActionOf(operation) === 'repair' && edge.status?.granted !== undefined
  if (observed.claim !== undefined && (isRepair || !grows(edge))) return undefined
  const refusal = refusalOf(edge, CLAIMED)
  if (refusal !== undefined) return refused(input, refusal.message)
  const { accountId = '' } = observed
  return {
    ...reconciling('Claiming'),
    step: 'claimed',
    actions: [
      {
        do: 'effect',
        name: 'claim',
        input: {
          accountId,
          edgeId: edge.metadata.name,
          networkId: edge.spec.networkId,
          granted: requiredGrant(edge),
        },
      },
    ],
    waitFor: 'the database',
    waitSeconds: 0,
  }
}

/** The gateway machine, once it translates; until then the previous gateway. */
function gatewayOfEdge({ edge, observed }: ReconcileInput): Gateway | undefined {
  const rule = rulesOf(edge).find(({ roles }) => roles.includes('nat_gateway'))
  const machine = rule && edgeMachine(observed.machines, rule.name)
  const own = machine?.interfaces.find(({ networkId }) => networkId === edge.spec.networkId)
  if (rule === undefined) return undefined
  return machine?.isHealthy === true && own !== undefined
    ? { ipv4: own.ipv4Address, ipv6: own.ipv6Address }
    : observed.claim?.gateway
}

/** The edge's own router, which it has where the network has no other. */
function routerOf(
  { edge, observed: { network } }: ReconcileInput,
  gateway: Gateway | undefined,
): RouterFacts | undefined {
  if (network === undefined || network.isAtRouter || gateway === undefined) return undefined
  const { uid, ipv4Cidr, ipv6Prefix } = network
  return {
    zone: edge.spec.zone,
    id: edge.metadata.uid ?? '',
    networks: [{ networkId: uid, cidr: ipv4Cidr, ipv4: gatewayOf(ipv4Cidr), ipv6: gatewayOf(ipv6Prefix), gateway }],
    staticRoutes: gatewayRoutes(gateway, { natEnabled: false }),
    gatewayNodes: [],
  }
}

function isAnnounced(input: ReconcileInput, gateway = gatewayOfEdge(input)): boolean {
  const { claim, routerDigest } = input.observed
  const router = routerOf(input, gateway)
  return isDeepStrictEqual(claim?.gateway, gateway) && routerDigest === (router && factsDigest(router))
}

const announcing = (input: ReconcileInput, gateway: Gateway | undefined): readonly EdgeEffect[] => [
  {
    do: 'effect',
    name: 'announce',
    input: {
      accountId: input.observed.accountId ?? '',
      edgeId: input.edge.metadata.name,
      networkId: input.edge.spec.networkId,
      zone: input.edge.spec.zone,
      gateway,
      router: routerOf(input, gateway),
    },
  },
]

/** The route is withdrawn before its machine is deleted. */
const withdrawn: Rule = (input) => {
  const { edge, observed } = input
  if (observed.claim?.gateway === undefined || edge.spec.roles.includes('nat_gateway')) return undefined
  return {
    ...reconciling('Withdrawing'),
    step: 'machines',
    actions: announcing(input, undefined),
    ...losingEgress(observed),
    waitFor: 'the network',
    waitSeconds: 0,
  }
}

/** The event that names the servers that this cuts off from IPv4. */
function losingEgress({ serversWithoutIpv4: ids }: Observed): { readonly events: readonly OperationEvent[] } {
  return {
    events:
      ids.length === 0
        ? []
        : [
            {
              kind: 'warning',
              message: `${ids.length} servers of the network can no longer reach IPv4 addresses outside it.`,
              data: { server_ids: ids.slice(0, SERVERS_IN_EVENT_MAXIMUM) },
            },
          ],
  }
}

const settled: Rule = (input) => {
  const machines = machinesOf(input)
  const pair = pairOf(input)
  if (machines.isSettled && pair.isSettled) return undefined
  const gateway = gatewayOfEdge(input)
  return {
    ...reconciling('Building'),
    step: 'machines',
    // The route to a gateway that works is announced while the other machines are still created.
    actions: [...machines.actions, ...pair.actions, ...(isAnnounced(input, gateway) ? [] : announcing(input, gateway))],
    waitFor: [machines.waitFor, pair.waitFor].find((one) => one !== '') ?? 'its machines',
    waitSeconds: MACHINES_LOOK_SECONDS,
  }
}

const announced: Rule = (input) => {
  const gateway = gatewayOfEdge(input)
  return isAnnounced(input, gateway)
    ? undefined
    : {
        ...reconciling('Announcing'),
        step: 'announced',
        actions: announcing(input, gateway),
        waitFor: 'the network',
        waitSeconds: 0,
      }
}

const installed: Rule = ({ edge: { status }, observed }) =>
  observed.installed === undefined || observed.installed >= (status?.appliedSequence ?? 0)
    ? undefined
    : {
        ...reconciling('Announcing'),
        step: 'announced',
        waitFor: 'the hosts of its zone',
        waitSeconds: INSTALLED_LOOK_SECONDS,
      }

const done: Rule<OperationInput> = ({ edge }) => ({
  health: 'ready',
  reason: 'Running',
  step: 'announced',
  outcome: 'succeeded',
  status: { state: 'running', granted: grantedOf(edge) },
  waitFor: 'a change',
  waitSeconds: LOOK_SECONDS,
})

/** Its rows follow the facts that they are built from, whoever changes those. */
function standing(input: ReconcileInput): Decision {
  const { state, machines = [], operation } = input.edge.status ?? {}
  const decision = input.observed.claim === undefined ? undefined : announced(input)
  if (decision !== undefined) return { ...decision, health: 'ready', reason: 'Announcing' }
  const pair = pairOf(input)
  const missing = edgeDemands(input.edge, input.observed).filter(
    ({ role }) => edgeMachine(input.observed.machines, role) === undefined,
  )
  const faults = [
    ...missing.map(({ role }) => `The machine ${role} is missing.`),
    ...machines.flatMap(({ name, isHealthy, healthDetail }) =>
      isHealthy ? [] : [`The machine ${name} is not healthy: ${healthDetail}`],
    ),
    ...(pair.isSettled ? [] : [`Waiting for ${pair.waitFor}.`]),
  ]
  const next = faults.length === 0 ? undefined : retryAt(input.edge)
  if (next !== undefined && next > input.now) faults.push(`The next repair starts at ${next.toISOString()}.`)
  const common = { waitFor: 'a change', waitSeconds: LOOK_SECONDS }
  if (state === 'running' && faults.length === 0) return { ...common, health: 'ready', reason: 'Running' }
  const message = [...faults, ...(state === 'running' ? [] : [operation?.error ?? ''])].join(' ').trim()
  return { ...common, health: 'stalled', reason: state === 'running' ? 'Unhealthy' : 'Error', message }
}

/** The route is withdrawn first, then its machines and its load balancer are deleted; then its claims are released. */
function remove(input: ReconcileInput): Decision {
  const { edge, observed } = input
  const { accountId, claim } = observed
  const id = accountId === undefined ? undefined : { accountId, edgeId: edge.metadata.name }
  const removing = reconciling('Deleting')
  if (claim?.gateway !== undefined || observed.routerDigest !== undefined)
    return {
      ...removing,
      step: 'withdrawn',
      actions: announcing(input, undefined),
      ...losingEgress(observed),
      waitFor: 'the network',
      waitSeconds: 0,
    }
  const { actions, waitFor } = machinesOf(input, [])
  const { pair } = observed
  if (observed.machines.length > 0 || pair !== undefined)
    return {
      ...removing,
      step: 'machines',
      actions: [
        ...actions,
        ...(pair === undefined || pair.metadata.deletionTimestamp !== undefined
          ? []
          : [{ do: 'remove', type: LoadBalancer, key: keyOf(pair) } as const]),
      ],
      waitFor: observed.machines.length > 0 ? waitFor : 'its load balancer to go',
      waitSeconds: MACHINES_LOOK_SECONDS,
    }
  return {
    ...removing,
    step: 'released',
    outcome: 'succeeded',
    actions: [...actions, { do: 'effect', name: 'release', input: { id } }],
    isGone: true,
  }
}
