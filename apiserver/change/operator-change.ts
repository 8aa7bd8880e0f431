/** Changes by operators: the entry in the operators' log and ONE write to Kubernetes, both or neither. The entry is
 *  written first and committed last. Should this process die between write and commit, the reconciler of the resource
 *  writes the entry of the operation that it finds; the log takes each request once. */
import { isConflict } from '../../kit/kube/store.ts'
import { conflict, type ResourceReference } from '../../domain/problem.ts'
import type { AuditFacts } from './audit.ts'
import { auditStaff, type OperatorAct } from './staff-audit.ts'
import type { Parts } from '../parts.ts'

const WRITE_ATTEMPTS_MAXIMUM = 5

export interface OperatorChange<T> {
  readonly resource: ResourceReference
  readonly audit: AuditFacts
  /** Accounts that it touches: the entry enters their chains too. */
  readonly accountIds?: readonly string[]
  /** Called again after a 409: reads and validates anew each time, throws a Problem to refuse. */
  readonly write: () => Promise<T>
}

/** Answers what was written. Throws a Problem when the change was refused; nothing has changed then. */
export async function changeAsOperator<T>(
  parts: Pick<Parts, 'db' | 'clock' | 'random'>,
  call: OperatorAct,
  { resource, audit, accountIds = [], write }: OperatorChange<T>,
): Promise<T> {
  return await parts.db.transaction().execute(async (tx) => {
    await auditStaff(tx, parts, call, { resourceId: resource.id, resourceType: resource.type, ...audit }, accountIds)
    for (let attempt = 1; ; attempt++) {
      try {
        return await write()
      } catch (error) {
        if (!isConflict(error)) throw error
        if (attempt >= WRITE_ATTEMPTS_MAXIMUM)
          throw conflict('state_not_allowed', 'The resource is being changed by others. Try again.', { resource })
      }
    }
  })
}
