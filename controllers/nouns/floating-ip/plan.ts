/** The plan of a floating IP: pure, synchronous, total. PostgreSQL decides what it points to; its rows in OVN are
 *  derived from that. */
import type { FloatingIpClaim, FloatingIpId } from '../../../db/floating-ip/index.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { FloatingIpSpec, FloatingIpStatus } from '../../../resources/floating-ip/index.ts'
import type { AuditEffects } from '../../kit/audit.ts'
import type { ActionWith } from '../../kit/effects.ts'
import { type ClaimEffects, type Edits, claimed, planChanges } from '../../kit/changes.ts'
import type { Forwarding } from '../../network/ovn/floating-ip.ts'
import type { KindOf } from '../../../domain/operations.ts'
import { floatingIpChanges } from '../../../changes/floating-ip.ts'
import { firstDecision } from '../../kit/operation/decision.ts'
import { SYSTEM_ACTOR } from '../../kit/operation/direct-edit.ts'
import type { During } from '../../kit/operation/plan.ts'
import { operationActionOf } from '../../kit/operation/stanza.ts'
import { refusalOf } from '../../kit/refusal.ts'
import { type SyncInput, hasAccount, installed, releasing } from '../../kit/synced-plan.ts'
import { type SyncDecision, reconciling } from '../../kit/synced.ts'

export type FloatingIpObject = KubeObject<FloatingIpSpec, FloatingIpStatus>

export interface Observed extends Edits {
  /** Undefined when the namespace is no account's. */
  readonly accountId: string | undefined
  readonly claim: FloatingIpClaim | undefined
  /** The server that the spec names: `there` has room; `unmade` does not exist yet, or is lost; the deletion of
   *  one that is `gone` was ordered. */
  readonly server: 'there' | 'unmade' | 'gone'
  /** Its rows forward to an address of another holder: the server that it was assigned to has lost that. */
  readonly isTargetTaken: boolean
  /** The desired facts for OVN; undefined when it points nowhere. */
  readonly facts: Forwarding | undefined
  /** PostgreSQL has the router that it points through, and Kubernetes does not. No router is deleted before that: the
   *  rows in OVN stay until it is there. */
  readonly isRouterMissing: boolean
  readonly isApplied: boolean
  /** The newest sequence that the gateways of the zone have installed; undefined when it is not known. */
  readonly installed: number | undefined
}

/** The effects of floating IPs by name, each with its input. */
export interface FloatingIpEffects extends AuditEffects, ClaimEffects {
  /** Writes its rows in OVN. */
  readonly apply: { readonly zone: string; readonly facts: Forwarding | undefined }
  /** Deletes its rows in OVN, then releases the address. */
  readonly release: { readonly zone: string; readonly id: FloatingIpId | undefined }
}
export type FloatingIpEffect = ActionWith<FloatingIpEffects>

type ReconcileInput = SyncInput<FloatingIpObject, Observed>
type Decision = SyncDecision<FloatingIpStatus, FloatingIpEffect, KindOf<'floating_ip'>>
type Rule<Input = ReconcileInput> = (input: Input) => Decision | undefined

const SERVER_LOOK_SECONDS = 2
/** The interval of checks without a change. */
const LOOK_SECONDS = 300

export const plan = planChanges(floatingIpChanges, {
  applied: appliedFloatingIp,
  due: serverGone,
  synchronize: (input: During<ReconcileInput>) =>
    firstDecision(input, [hasAccount, withoutTaken, serverMade, isClaimed, routerThere, applied, areInstalled, done]),
  idle,
  remove,
  knownOf: ({ observed: { claim } }) =>
    claim === undefined ? {} : { address: claim.address, serverId: claim.serverId, target: targetOf(claim) },
})

/** The applied spec, as its status shows it. */
export function appliedFloatingIp({ spec, status }: FloatingIpObject): FloatingIpSpec | undefined {
  return status?.address === undefined ? undefined : { ...spec, serverId: status.serverId, target: status.target }
}

/** The server was deleted: it points nowhere from then on. */
function serverGone({ root: { metadata, spec }, observed: { claim, server } }: ReconcileInput) {
  if (spec.serverId === undefined || server !== 'gone' || claim === undefined || claim.serverId !== undefined)
    return undefined
  if (metadata.deletionTimestamp !== undefined || operationActionOf(spec.operation) === 'release') return undefined
  return {
    kind: 'floating_ip.sync',
    arguments: { action: 'unassign' },
    spec: { serverId: null, target: null },
    actor: SYSTEM_ACTOR,
  } as const
}

const targetOf = ({ serverId, networkId }: NonNullable<Observed['claim']>): string | undefined =>
  serverId === undefined ? undefined : networkId === undefined ? 'public' : `private:${networkId}`

/** Nobody else receives its traffic. */
const withoutTaken: Rule = (input) => (input.observed.isTargetTaken ? applied(input) : undefined)

/** `kubectl apply` may create a floating IP before its server. */
const serverMade: Rule = ({ root: { spec }, observed: { server } }) =>
  spec.serverId === undefined || server === 'there'
    ? undefined
    : {
        ...reconciling('Waiting'),
        step: 'claimed',
        waitFor: `the server ${spec.serverId}`,
        waitSeconds: SERVER_LOOK_SECONDS,
      }

const isClaimed: Rule = claimed(floatingIpChanges, ({ root: { spec }, observed: { claim } }: ReconcileInput) =>
  claim === undefined ? undefined : { ...spec, serverId: claim.serverId, target: targetOf(claim) },
)

const routerThere: Rule = ({ observed: { isRouterMissing } }) =>
  isRouterMissing
    ? {
        ...reconciling('Waiting'),
        step: 'applied',
        waitFor: 'its router to be there',
        waitSeconds: SERVER_LOOK_SECONDS,
      }
    : undefined

const applied: Rule = ({ root: { spec }, observed: { facts, isApplied } }) =>
  isApplied
    ? undefined
    : {
        ...reconciling('Applying'),
        step: 'applied',
        actions: [{ do: 'effect', name: 'apply', input: { zone: spec.zone, facts } }],
        waitFor: 'the network',
        waitSeconds: 0,
      }

const areInstalled = installed('the hosts that lead outside')

const done: Rule<During<ReconcileInput>> = (input) => ({ ...standing(input), step: 'installed', outcome: 'succeeded' })

/** PostgreSQL has no assignment and the spec has one, to a server whose deletion nobody ordered: PostgreSQL was
 *  restored from an older state, perhaps Kubernetes too. The rows in OVN stay until an operation claims the assignment
 *  again, or another server gets the address that they forward to. */
const isForgotten = ({ root: { spec }, observed: { claim, server, isTargetTaken } }: ReconcileInput): boolean =>
  spec.serverId !== undefined && claim?.serverId === undefined && server !== 'gone' && !isTargetTaken

function standing(input: ReconcileInput): Decision {
  const { root: floatingIp, observed } = input
  const { claim, facts } = observed
  const refusal = refusalOf(floatingIp, 'Assigned')
  if (refusal !== undefined) return { health: 'stalled', reason: refusal.reason, message: refusal.message }
  const rest = { waitFor: 'a change', waitSeconds: LOOK_SECONDS } as const
  return (claim?.serverId !== undefined && facts === undefined) || isForgotten(input)
    ? { health: 'stalled', reason: 'NoTarget', message: 'What it points to is not there now.', ...rest }
    : { health: 'ready', reason: claim?.serverId === undefined ? 'Unassigned' : 'Assigned', ...rest }
}

/** Its rows follow the facts that they are built from, whoever changes those. */
function idle(input: ReconcileInput): Decision {
  const { root: floatingIp, observed } = input
  if (observed.claim === undefined)
    return {
      health: 'stalled',
      reason: 'Error',
      message: floatingIp.status?.operation?.error ?? 'It was not allocated.',
    }
  const decision = isForgotten(input) || observed.isRouterMissing ? undefined : applied(input)
  return decision === undefined ? standing(input) : { ...decision, health: 'ready', reason: 'Applying' }
}

function remove({ root: floatingIp, observed: { accountId } }: ReconcileInput): Decision {
  const id = accountId === undefined ? undefined : { accountId, floatingIpId: floatingIp.metadata.name }
  return releasing(floatingIp.spec.zone, id)
}
