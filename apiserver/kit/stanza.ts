/** Operations that bring changes about, in the form that the spec of their target has. */
import { isDeepStrictEqual } from 'node:util'
import { actionOf, auditActionOf, type Grant, type Patch, type Rules, type Subject } from '../../changes/kit/define.ts'
import type { Call, Customer } from '../../kit/http/call.ts'
import type { Route } from '../../kit/http/route.ts'
import type { OperationSpec } from '../../resources/operation/index.ts'
import { newStanza } from './change/accept.ts'
import type { Parts } from './parts.ts'

type Stanza = ReturnType<typeof newStanza>

/** A resource with operations is the target of one. */
export const operationTarget = (type: string, id: string) => ({ type, id }) as OperationSpec['target'] // its names

/** The stanza of the operation that brings the change about; undefined when it takes effect with the write. */
export function stanzaOf<Spec, Facts>(
  parts: Pick<Parts, 'random'>,
  { caller: { actor }, request: { requestId }, now }: Call<Route, Customer>,
  type: string,
  change: Rules<Spec, Facts> & Parameters<typeof auditActionOf>[1],
  subject: Subject<Spec, Facts>,
  parameters: Readonly<Record<string, string>> = {},
): Stanza | undefined {
  const { operation } = change
  if (operation === undefined) return undefined
  const { arguments: added, ...extent } = change.stanza?.(subject) ?? {}
  const named = operation === auditActionOf({ name: type }, change) ? {} : { action: actionOf(change) }
  const stanza = newStanza(parts, operation, { actor, now, requestId, ...extent })
  return withArguments(stanza, { arguments: { ...named, ...added, ...parameters } })
}

/** The grants of all of them. */
export const joinedGrants = <Spec>(grants: readonly Grant<Spec>[]): Grant<Spec> => ({
  spec: Object.assign({}, ...grants.map(({ spec }) => spec)) as Patch<Spec>, // parts of the spec, joined
  arguments: Object.assign({}, ...grants.map((grant) => grant.arguments)) as Readonly<Record<string, string>>, // texts
})

export const withArguments = (operation: Stanza, { arguments: added }: Pick<Grant<never>, 'arguments'>): Stanza =>
  added === undefined || isDeepStrictEqual(added, {})
    ? operation
    : { ...operation, arguments: { ...operation.arguments, ...added } }
