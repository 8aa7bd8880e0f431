/** Operations that bring changes about, as the spec of their target has them. */
import { isDeepStrictEqual } from 'node:util'
import { type Grant, type Patch, actionOf } from '../../changes/kit/define.ts'
import type { OperationKind } from '../../domain/operations.ts'
import type { Call, Customer } from '../../kit/http/call.ts'
import type { Route } from '../../kit/http/route.ts'
import type { OperationSpec } from '../../resources/operation/index.ts'
import { newStanza } from '../change/accept.ts'
import type { Parts } from '../parts.ts'

type Stanza = ReturnType<typeof newStanza>

/** What has operations is the target of one. */
export const targetOf = (type: string, id: string) => ({ type, id }) as OperationSpec['target'] // named as they name it

/** The stanza of the operation that brings the change about; undefined when it takes effect with the write. */
export function stanzaOf(
  parts: Pick<Parts, 'random'>,
  { caller: { actor }, request: { requestId }, now }: Call<Route, Customer>,
  { operation, ...change }: { readonly name: string; readonly action?: string; readonly operation?: OperationKind },
  given: Readonly<Record<string, string>> = {},
): Stanza | undefined {
  if (operation === undefined) return undefined
  return newStanza(parts, operation, { actor, now, requestId, arguments: { action: actionOf(change), ...given } })
}

/** What all of them grant. */
export const joined = <Spec>(grants: readonly Grant<Spec>[]): Grant<Spec> => ({
  spec: Object.assign({}, ...grants.map(({ spec }) => spec)) as Patch<Spec>, // parts of the spec, joined
  arguments: Object.assign({}, ...grants.map((grant) => grant.arguments)) as Readonly<Record<string, string>>, // texts
})

export const withArguments = (operation: Stanza, { arguments: added }: Pick<Grant<never>, 'arguments'>): Stanza =>
  added === undefined || isDeepStrictEqual(added, {})
    ? operation
    : { ...operation, arguments: { ...operation.arguments, ...added } }
