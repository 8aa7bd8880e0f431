/** The network's plan: pure, synchronous, total. What is the same for every noun with operations is in
 *  `controllers/operation/plan.ts`. Its ranges are claimed in PostgreSQL; its rows in OVN follow from them, from its
 *  spec and from the router that it is at. */
import { isDeepStrictEqual } from 'node:util'
import { Network, type NetworkAction, type NetworkStatus } from '../../resources/network/index.ts'
import { isBeingDeleted } from '../../resources/operation/index.ts'
import { firstDecision } from '../operation/decision.ts'
import { auditRequests } from '../operation/direct-edit.ts'
import { type During, planOperations } from '../operation/plan.ts'
import { activeOperation } from '../operation/stanza.ts'
import { refusalOf } from '../refusal.ts'
import { actionOf, auditedSync, failed, reconciling, removeFirst, type SyncDecision, syncActions } from '../synced.ts'
import { CLAIMED, ENDED, type NetworkEffect, type NetworkObject, type Observed } from './observed.ts'

interface ReconcileInput {
  readonly network: NetworkObject
  readonly observed: Observed
}
type OperationInput = During<ReconcileInput>
type Decision = SyncDecision<NetworkStatus, NetworkEffect>
type Rule<Input = ReconcileInput> = (input: Input) => Decision | undefined

/** What is installed nobody is woken for. */
const INSTALLED_LOOK_SECONDS = 1
/** It is looked at again however little has changed. */
const LOOK_SECONDS = 300
const IN_USE_LOOK_SECONDS = 10

export const plan = planOperations<NetworkObject, Observed, ReconcileInput, Decision, NetworkEffect>({
  label: 'A network',
  flows: { 'network.sync': (input) => (isBeingDeleted(input.network) ? remove(input) : synchronize(input)) },
  inputOf: (network, observed) => ({ network, observed }),
  unchanged: () => reconciling('Waiting'),
  always: ({ network, observed }) => auditRequests(network, observed.edits),
  guard: ({ network }) => removeFirst(Network, network),
  detectEdit({ network, observed }) {
    const action = detectEdit(network)
    return action && { kind: 'network.sync', field: '', arguments: { action }, actor: observed.editor }
  },
  idle: (input) => (isBeingDeleted(input.network) ? remove(input) : idle(input)),
  // A deletion goes on behind its operation.
  overdue: ({ network }, decision, error) =>
    isBeingDeleted(network) ? { ...decision, outcome: 'failed', error } : { ...decision, ...failed('applied', error) },
  auditedAs: auditedSync('network'),
  toActions: (input, decision) =>
    syncActions(input.network, { ...decision, status: { ...knownOf(input), ...decision.status } }),
})

/** What an edit with kubectl does; undefined when the spec and the operations agree. */
export function detectEdit(network: NetworkObject): NetworkAction | undefined {
  const { metadata, spec, status } = network
  if (actionOf(spec.operation) === 'delete') return undefined
  if (metadata.deletionTimestamp !== undefined) return 'delete'
  if (activeOperation(network) !== undefined) return undefined
  if (status?.asked === undefined) return spec.operation === undefined ? 'create' : undefined
  return isDeepStrictEqual(status.asked, askedOf(network)) ? undefined : 'update'
}

const askedOf = ({ spec: { dnsServers, dhcpEnabled } }: NetworkObject): NonNullable<NetworkStatus['asked']> => ({
  dnsServers,
  dhcpEnabled,
})

const knownOf = ({ network, observed }: ReconcileInput): NonNullable<Decision['status']> => ({
  ...(observed.region === undefined ? {} : { region: observed.region }),
  ...(observed.claim === undefined ? {} : { ipv4Cidr: observed.claim.ipv4Cidr, ipv6Prefix: observed.claim.ipv6Prefix }),
  serverCount: observed.serverCount,
  ...(activeOperation(network) === undefined ? {} : { asked: askedOf(network) }),
})

/** Steps in order: claimed, applied, installed. */
const synchronize = (input: OperationInput): Decision =>
  firstDecision(input, [hasAccount, hasZone, claimed, named, applied, installed, done])

const hasAccount: Rule = ({ observed }) =>
  observed.accountId === undefined ? failed('claimed', 'The namespace belongs to no account.') : undefined

const hasZone: Rule = ({ network: { spec }, observed: { hasNetworks, claim } }) => {
  if (hasNetworks) return undefined
  return claim === undefined
    ? failed('claimed', `The zone ${spec.zone} has no private networks.`)
    : { ...reconciling('Waiting'), step: 'applied', waitFor: `zone ${spec.zone} to have private networks again` }
}

const claimed: Rule = ({ network, observed: { accountId = '', claim } }) => {
  if (claim !== undefined) return undefined
  const refusal = refusalOf(network, CLAIMED)
  if (refusal !== undefined) return failed('claimed', refusal.message)
  const { metadata, spec } = network
  const { zone, name, ipv4Cidr } = spec
  return {
    ...reconciling('Claiming'),
    step: 'claimed',
    actions: [{ do: 'effect', name: 'claim', input: { accountId, networkId: metadata.name, zone, name, ipv4Cidr } }],
    waitFor: 'the database',
    waitSeconds: 0,
  }
}

/** A name that another network has is not taken: the network works on under the one that it had. */
const named: Rule = ({ network, observed: { accountId = '', claim } }) => {
  const { metadata, spec } = network
  if (claim === undefined || claim.name === spec.name || refusalOf(network, CLAIMED) !== undefined) return undefined
  return {
    ...reconciling('Claiming'),
    step: 'claimed',
    actions: [{ do: 'effect', name: 'rename', input: { accountId, networkId: metadata.name, name: spec.name } }],
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

const installed: Rule<OperationInput> = ({ network: { status }, observed }) =>
  observed.installed === undefined || observed.installed >= (status?.appliedSequence ?? 0)
    ? undefined
    : {
        ...reconciling('Applying'),
        step: 'installed',
        waitFor: 'the hosts of its servers',
        waitSeconds: INSTALLED_LOOK_SECONDS,
      }

const done: Rule<OperationInput> = (input) => ({ ...standing(input), step: 'installed', outcome: 'succeeded' })

function standing({ network }: ReconcileInput): Decision {
  const refusal = refusalOf(network, CLAIMED)
  return refusal === undefined
    ? { health: 'ready', reason: 'Applied', waitFor: 'a change', waitSeconds: LOOK_SECONDS }
    : { health: 'stalled', reason: refusal.reason, message: refusal.message }
}

/** Its rows follow what they are made from, whoever changes it. */
function idle(input: ReconcileInput): Decision {
  const { network, observed } = input
  if (observed.claim === undefined)
    return { health: 'stalled', reason: 'Error', message: network.status?.operation?.error ?? 'It was not made.' }
  const decision = named(input) ?? (observed.hasNetworks ? applied(input) : undefined)
  return decision === undefined ? standing(input) : { ...decision, health: 'ready', reason: 'Applying' }
}

/** It goes once nothing is in it. */
function remove({ network, observed }: ReconcileInput): Decision {
  const { accountId, claim } = observed
  const id = accountId === undefined ? undefined : { accountId, networkId: network.metadata.name }
  if (id !== undefined && claim?.isEnding === false) {
    const refusal = network.status?.conditions?.find(({ type, status }) => type === ENDED && status === 'False')
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
    actions: [{ do: 'effect', name: 'release', input: { zone: network.spec.zone, id } }],
    isGone: true,
  }
}
