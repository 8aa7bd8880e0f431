/** What networks, routers and floating IPs share: each claims in PostgreSQL, owns rows of OVN, and has one kind of
 *  operation that makes both match its spec. Nouns that are created, maintained and deleted use the same decisions. */
import { createHash } from 'node:crypto'
import type { OperationKind, OperationStep } from '../../domain/operations.ts'
import type { Queries } from '../../db/kit/open.ts'
import { isEdit, type KubernetesRequest, listKubernetesRequests } from '../../db/request/index.ts'
import { type KubeObject, keyOf, type ResourceType } from '../../kit/kube/object.ts'
import { isBeingDeleted, type Operable } from '../../resources/operation/index.ts'
import type { OperationStanza } from '../../resources/kit/shapes.ts'
import { orUnavailable } from './outage.ts'
import type { PlainAction } from './effects.ts'
import { type Health, healthConditions } from './health.ts'
import { operationActions, type OperationDecision, truncated, waitActions } from './operation/decision.ts'
import { hasNoRequest, operationActionOf } from './operation/stanza.ts'
import type { Ovn } from '../network/ovn/ovn.ts'
import type { Row } from '../network/ovn/row.ts'

/** An object that is deleted through the API is deleted in Kubernetes first. */
export const removeFirst = <Spec, Status>(
  type: ResourceType<Spec, Status>,
  root: KubeObject<Spec, Status> & Operable,
  isRemoved = isBeingDeleted(root),
): readonly PlainAction[] | undefined =>
  isRemoved && root.metadata.deletionTimestamp === undefined ? [{ do: 'remove', type, key: keyOf(root) }] : undefined

/** The audit entry of an operation that no request of the API started. */
export const auditedSync =
  (noun: string) =>
  (operation: OperationStanza): string | undefined =>
    hasNoRequest(operation) ? `${noun}.${operationActionOf(operation) ?? 'update'}` : undefined

export interface SyncDecision<Status, Action, Kind extends OperationKind = OperationKind>
  extends OperationDecision<Action, Kind> {
  readonly status?: { readonly [Field in keyof Status]?: Status[Field] | undefined }
  readonly health: Health
  readonly reason: string
  readonly message?: string
  /** Nothing of it is left anywhere. */
  readonly isGone?: boolean
}

export const reconciling = (reason: string) => ({ health: 'reconciling', reason }) as const

/** Ends the operation with the error. */
export const failed = <Step extends OperationStep | undefined>(step: Step, error: string) =>
  ({ health: 'stalled', reason: 'Error', message: error, step, outcome: 'failed', error }) as const

/** Carries the decision out. */
export const syncActions = <Status, Action>(
  root: KubeObject & Operable,
  decision: SyncDecision<Status, Action>,
): readonly (Action | PlainAction)[] => [
  ...(decision.actions ?? []),
  ...operationActions(root, decision),
  {
    do: 'status',
    status: { ...decision.status },
    conditions: healthConditions(decision.health, decision.reason, truncated(decision.message ?? '')),
  },
  ...(decision.isGone === true ? [{ do: 'finalized' } as const] : []),
  ...waitActions(decision),
]

/** The requests by kubectl since the object was last observed. */
export async function newRequests(
  db: Queries,
  { metadata, status }: KubeObject<unknown, { readonly observedGeneration?: number | undefined }>,
): Promise<readonly KubernetesRequest[]> {
  const [after, upTo] = [status?.observedGeneration ?? 0, metadata.generation ?? 0]
  return upTo > after ? orUnavailable(listKubernetesRequests(db, metadata.uid ?? '', { after, upTo })) : []
}

/** Those that start no operation. */
export const editsOf = (requests: readonly KubernetesRequest[]): readonly KubernetesRequest[] => requests.filter(isEdit)

export const factsDigest = (facts: unknown): string => createHash('sha256').update(JSON.stringify(facts)).digest('hex')

/** What this process last wrote to OVN. After a restart everything is written again, which costs nothing for rows that
 *  exist. */
export interface Bundles {
  /** Digest of the facts from which the owner's rows were last built; undefined before. */
  digestOf(owner: string): string | undefined
  /** Answers the sequence number of the write. */
  apply(owner: string, zone: string, facts: unknown, rows: readonly Row[]): Promise<number>
  clear(owner: string, zone: string): Promise<void>
}

/** Without OVN nothing is written: the zone has only simulated hosts, or no private networks. */
export function openBundles(ovn: Ovn | undefined): Bundles {
  const applied = new Map<string, string>()
  return {
    digestOf: (owner) => applied.get(owner),
    async apply(owner, zone, facts, rows) {
      const { sequence } = (await ovn?.apply({ zone, owner, rows })) ?? { sequence: 0 }
      applied.set(owner, factsDigest(facts))
      return sequence
    },
    async clear(owner, zone) {
      await ovn?.apply({ zone, owner, rows: [] })
      applied.delete(owner)
    },
  }
}
