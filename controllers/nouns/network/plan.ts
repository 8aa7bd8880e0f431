/** The network's plan: pure, synchronous, total. Its ranges are claimed in PostgreSQL; its rows in OVN are derived from
 *  them, from its spec and from the router that it is attached to. */
import type { NetworkClaim, NetworkId } from '../../../db/network/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { NetworkSpec, NetworkStatus } from '../../../resources/network/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'
import { type ClaimEffects, type Edits, claimed, planChanges, removalClaimed } from '../../kit/changes.ts'
import type { NetworkFacts } from '../../network/ovn/private-network.ts'
import type { KindOf } from '../../../domain/operations.ts'
import { networkChanges } from '../../../changes/network.ts'
import { defined } from '../../../domain/defined.ts'
import { firstDecision } from '../../kit/operation/decision.ts'
import type { During } from '../../kit/operation/plan.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { refusalOf } from '../../kit/refusal.ts'
import type { SyncDecision } from '../../kit/synced.ts'
import { type SyncInput, applied, hasAccount, hasZone, installed, releasing } from '../../kit/synced-plan.ts'

export type NetworkObject = KubeObject<NetworkSpec, NetworkStatus>

export interface Observed extends Edits {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly claim: NetworkClaim | undefined
  /** Its zone has private networks now. */
  readonly hasNetworks: boolean
  readonly region: string | undefined
  /** The desired facts for OVN; undefined while nothing is claimed. */
  readonly facts: NetworkFacts | undefined
  readonly isApplied: boolean
  /** The newest sequence that the hosts of its ports have installed; undefined when it is not known. */
  readonly installed: number | undefined
}

/** The effects of networks by name, each with its input. */
export interface NetworkEffects extends AuditEffects, ClaimEffects {
  /** Writes its rows in OVN. */
  readonly apply: { readonly facts: NetworkFacts }
  /** Deletes its rows in OVN, then releases its claims. */
  readonly release: { readonly zone: string; readonly id: NetworkId | undefined }
}
export type NetworkEffect = ActionWith<NetworkEffects>

type ReconcileInput = SyncInput<NetworkObject, Observed>
type Decision = SyncDecision<NetworkStatus, NetworkEffect, KindOf<'network'>>
type Rule<Input = ReconcileInput> = (input: Input) => Decision | undefined

/** The interval of checks without a change. */
const LOOK_SECONDS = 300

export const plan = planChanges(networkChanges, {
  applied: appliedNetwork,
  synchronize: (input: During<ReconcileInput>) =>
    firstDecision(input, [hasAccount, hasZone, isClaimed, applied, areInstalled, done]),
  idle,
  remove,
  knownOf: ({ root: network, observed }) => ({
    ...defined({ region: observed.region }),
    ...(observed.claim === undefined
      ? {}
      : { ipv4Cidr: observed.claim.ipv4Cidr, ipv6Prefix: observed.claim.ipv6Prefix }),
    ...(activeOperation(network) === undefined ? {} : { asked: askedOf(network) }),
  }),
})

const askedOf = ({ spec: { dnsServers, dhcpEnabled } }: NetworkObject): NonNullable<NetworkStatus['asked']> => ({
  dnsServers,
  dhcpEnabled,
})

/** The applied spec, as its status shows it. */
export function appliedNetwork({ spec, status }: NetworkObject): NetworkSpec | undefined {
  return status?.asked === undefined ? undefined : { ...spec, ...status.asked }
}

const areInstalled = installed('the hosts of its servers')

/** A name that another network has is not claimed: the network keeps working under its previous name. */
const isClaimed: Rule = claimed(networkChanges, ({ root: { spec }, observed: { claim } }: ReconcileInput) =>
  claim === undefined ? undefined : { ...spec, name: claim.name },
)

const done: Rule<During<ReconcileInput>> = (input) => ({ ...standing(input), step: 'installed', outcome: 'succeeded' })

function standing({ root: network }: ReconcileInput): Decision {
  const refusal = refusalOf(network, 'Claimed')
  return refusal === undefined
    ? { health: 'ready', reason: 'Applied', waitFor: 'a change', waitSeconds: LOOK_SECONDS }
    : { health: 'stalled', reason: refusal.reason, message: refusal.message }
}

/** Its rows follow the facts that they are built from, whoever changes those. */
function idle(input: ReconcileInput): Decision {
  const { root: network, observed } = input
  if (observed.claim === undefined)
    return { health: 'stalled', reason: 'Error', message: network.status?.operation?.error ?? 'It was not made.' }
  const decision = isClaimed(input) ?? (observed.hasNetworks ? applied(input) : undefined)
  return decision === undefined ? standing(input) : { ...decision, health: 'ready', reason: 'Applying' }
}

/** It is deleted once it is empty: the claim is released first, then its rows are deleted, then the rest. */
function remove({ root: network, observed: { accountId, claim } }: ReconcileInput): Decision {
  const id = accountId === undefined ? undefined : { accountId, networkId: network.metadata.name }
  const isGranted = claim?.isEnding !== false
  return removalClaimed(networkChanges, network, { accountId, isGranted }) ?? releasing(network.spec.zone, id)
}
