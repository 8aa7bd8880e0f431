/** What the steps of all operations of a storage share. */
import type { Decision, OperationInput } from './decision.ts'
import { layOut } from './layout.ts'

export const RECHECK_SECONDS = 2

/** Its id in PostgreSQL. Throws for a storage of no account. */
export const idOf = ({ storage, observed: { accountId } }: OperationInput) => {
  if (accountId === undefined) throw new Error(`storage ${storage.metadata.name} belongs to no account`)
  return { accountId, storageId: storage.metadata.name }
}

/** The decision while its volumes follow; the step determines the rest. */
export const during = (
  { storage, observed }: OperationInput,
  step: Decision['step'],
  rest: Partial<Decision> = {},
): Decision => {
  const laid = layOut(storage, observed)
  return { ...laid, step, ...rest, actions: [...(laid.actions ?? []), ...(rest.actions ?? [])] }
}
