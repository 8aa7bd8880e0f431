/** The network's plan: pure, synchronous, total. What is the same for every noun with operations is in
 *  `controllers/operation/plan.ts`. Its ranges are claimed in PostgreSQL; its rows in OVN follow from them, from its
 *  spec and from the router that it is at. */
import { isDeepStrictEqual } from 'node:util'
import { Network, type NetworkAction, type NetworkSpec, type NetworkStatus } from '../../resources/network/index.ts'
import { firstDecision } from '../operation/decision.ts'
import type { During } from '../operation/plan.ts'
import { activeOperation } from '../operation/stanza.ts'
import { refusalOf } from '../refusal.ts'
import { actionOf, failed, reconciling, type SyncDecision } from '../synced.ts'
import { applied, ending, hasAccount, hasZone, installed, planSynced, type SyncInput } from '../synced-plan.ts'
import { CLAIMED, ENDED, type NetworkEffect, type NetworkObject, type Observed } from './observed.ts'

type ReconcileInput = SyncInput<NetworkObject, Observed>
type OperationInput = During<ReconcileInput>
type Decision = SyncDecision<NetworkStatus, NetworkEffect>
type Rule<Input = ReconcileInput> = (input: Input) => Decision | undefined

/** It is looked at again however little has changed. */
const LOOK_SECONDS = 300

export const plan = planSynced<NetworkObject, NetworkSpec, NetworkStatus, Observed, NetworkEffect>({
  label: 'A network',
  noun: 'network',
  type: Network,
  detectEdit,
  synchronize: (input) => synchronize(input),
  idle,
  remove: ({ root, observed: { accountId, claim } }) =>
    ending(root, {
      id: accountId === undefined ? undefined : { accountId, networkId: root.metadata.name },
      claim,
      ended: ENDED,
    }),
  knownOf: (input) => knownOf(input),
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

const knownOf = ({ root: network, observed }: ReconcileInput): NonNullable<Decision['status']> => ({
  ...(observed.region === undefined ? {} : { region: observed.region }),
  ...(observed.claim === undefined ? {} : { ipv4Cidr: observed.claim.ipv4Cidr, ipv6Prefix: observed.claim.ipv6Prefix }),
  serverCount: observed.serverCount,
  ...(activeOperation(network) === undefined ? {} : { asked: askedOf(network) }),
})

const areInstalled = installed('the hosts of its servers')

/** Steps in order: claimed, applied, installed. */
const synchronize = (input: OperationInput): Decision =>
  firstDecision(input, [hasAccount, hasZone, claimed, named, applied, areInstalled, done])

const claimed: Rule = ({ root: network, observed: { accountId = '', claim } }) => {
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
const named: Rule = ({ root: network, observed: { accountId = '', claim } }) => {
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

const done: Rule<OperationInput> = (input) => ({ ...standing(input), step: 'installed', outcome: 'succeeded' })

function standing({ root: network }: ReconcileInput): Decision {
  const refusal = refusalOf(network, CLAIMED)
  return refusal === undefined
    ? { health: 'ready', reason: 'Applied', waitFor: 'a change', waitSeconds: LOOK_SECONDS }
    : { health: 'stalled', reason: refusal.reason, message: refusal.message }
}

/** Its rows follow what they are made from, whoever changes it. */
function idle(input: ReconcileInput): Decision {
  const { root: network, observed } = input
  if (observed.claim === undefined)
    return { health: 'stalled', reason: 'Error', message: network.status?.operation?.error ?? 'It was not made.' }
  const decision = named(input) ?? (observed.hasNetworks ? applied(input) : undefined)
  return decision === undefined ? standing(input) : { ...decision, health: 'ready', reason: 'Applying' }
}
