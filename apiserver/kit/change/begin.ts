/** Starts operations: the desired state and the operation that brings it about are one conditional write of its
 *  target. */
import { defined } from '../../../domain/defined.ts'
import type { Extent, OperationKind } from '../../../domain/operations.ts'
import type { Call } from '../../../kit/http/call.ts'
import { replacing } from '../../../kit/kube/merge-patch.ts'
import { keyOf, type KubeObject, type ResourceType } from '../../../kit/kube/object.ts'
import type { Operable, OperationSpec, OperationView } from '../../../resources/operation/index.ts'
import type { OperationStanza } from '../../../resources/kit/shapes.ts'
import type { Parts } from '../parts.ts'
import { newStanza } from './accept.ts'
import { begunView } from './begun.ts'
import { changeAsOperator } from './operator-change.ts'
import type { OperatorAct } from './staff-audit.ts'

type Patch = Readonly<Record<string, unknown>>

/** Writes the operation with its part of the spec. Conflicts unless the target is still the one that was validated. */
export const patchWithOperation = <Spec extends Operable['spec'], Status>(
  { store }: Pick<Parts, 'store'>,
  resource: ResourceType<Spec, Status>,
  target: KubeObject<Spec, Status>,
  operation: OperationStanza,
  spec: Patch = {},
): Promise<KubeObject<Spec, Status>> => {
  const { arguments: earlier = {} } = target.spec.operation ?? {}
  const { arguments: parameters, traceparent = null } = operation
  return store.patch(resource, keyOf(target), {
    metadata: { resourceVersion: target.metadata.resourceVersion },
    spec: {
      ...spec,
      // null removes what the previous operation had
      operation: {
        ...operation,
        traceparent,
        arguments: parameters === undefined ? null : replacing(earlier, parameters),
      },
    },
  })
}

export interface OperatorBeginning<Spec extends Operable['spec'], Status> extends Extent {
  readonly kind: OperationKind
  /** Its name in the operators' log; by default that of its kind. */
  readonly action?: string
  readonly target: OperationSpec['target']
  readonly resource: ResourceType<Spec, Status>
  /** The target as the store has it now; throws 404. */
  readonly read: () => Promise<KubeObject<Spec, Status>>
  /** Throws a Problem when the state does not allow it. Called again when others change the target meanwhile. */
  readonly validate: (target: KubeObject<Spec, Status>) => Promise<void> | void
  /** Merge patch of the spec, without the operation. */
  readonly spec?: Patch | undefined
  readonly arguments?: Readonly<Record<string, string>> | undefined
  /** Overrides the default of its kind. */
  readonly deadlineAt?: Date | undefined
  /** For the operators' log. */
  readonly detail?: Readonly<Record<string, string>> | undefined
  /** Affected accounts: the entry is written into their chains too. */
  readonly accountIds?: readonly string[]
}

/** Returns the operation as it is then. Throws what `read` and `validate` throw, and 409 when others keep changing the
 *  target. */
export async function beginAsOperator<Spec extends Operable['spec'], Status extends Operable['status']>(
  parts: Parts,
  act: OperatorAct & Pick<Call, 'now'>,
  beginning: OperatorBeginning<Spec, Status>,
): Promise<OperationView> {
  const { kind, action = kind, target: reference, resource, deadlineAt, detail = {}, accountIds = [] } = beginning
  const stanza: OperationStanza = {
    ...newStanza(parts, kind, {
      actor: act.caller.actor,
      requestId: act.request.requestId,
      now: act.now,
      gibibytes: beginning.gibibytes,
      graceSeconds: beginning.graceSeconds,
      ...defined({ arguments: beginning.arguments }),
    }),
    ...defined({ deadlineAt: deadlineAt?.toISOString() }),
  }
  const written = await changeAsOperator(parts, act, {
    resource: reference,
    audit: { action, detail },
    accountIds,
    async write() {
      const target = await beginning.read()
      await beginning.validate(target)
      return patchWithOperation(parts, resource, target, stanza, beginning.spec)
    },
  })
  parts.caches.of(resource).apply(written)
  return begunView(written, reference)
}
