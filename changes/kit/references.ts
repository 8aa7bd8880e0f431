/** References of changes to other objects, and the ones that several nouns share. */
import { isDeletion } from '../../domain/operations.ts'
import { isHiddenMachineId, requireOwnMachine } from '../../domain/managed-machine/rules.ts'
import { notFound } from '../../domain/problem.ts'
import { Network, type NetworkStatus } from '../../resources/network/index.ts'
import { Server, type ServerSpec } from '../../resources/server/index.ts'
import { isBeingDeleted, type Operable } from '../../resources/operation/index.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import type { Changeable, Reference } from './define.ts'

/** The objects that a spec names in these fields, and did not name before. */
export const referredIn = <Spec extends object>(
  { refers }: Pick<Changeable<Spec, never, never>, 'refers'>,
  {
    spec,
    before,
    fields,
  }: { readonly spec: Spec; readonly before?: Spec | undefined; readonly fields: readonly string[] },
): readonly { readonly reference: Reference; readonly name: string }[] =>
  refers
    .filter(({ field }) => fields.includes(field))
    .flatMap((reference) => {
      const known = namesIn(before?.[reference.field])
      const added = namesIn(spec[reference.field]).filter((name) => !known.includes(name))
      return added.map((name) => ({ reference, name }))
    })

const namesIn = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? value : [value]).filter((name) => typeof name === 'string')

/** Throws 404 for an object that does not exist or is being deleted, and its other refusals. */
export function requireReferred(
  { title, requireUsable }: Reference,
  object: KubeObject | undefined,
  spec: object,
): void {
  if (object === undefined || isLeaving(object)) throw notFound(title)
  requireUsable?.(object, spec)
}

function isLeaving(object: KubeObject): boolean {
  const operable = object as KubeObject & Operable // what has no operations has no such member
  const kind = operable.spec.operation?.kind
  return isBeingDeleted(operable) || (kind !== undefined && isDeletion(kind))
}

/** A server of the account's own: machines that the platform runs for it are changed through the resource that they run
 *  for. */
export const ownServer = (mayFollow: Reference['mayFollow']): Reference => ({
  type: Server,
  title: 'server',
  mayFollow,
  requireUsable({ metadata: { name }, spec }) {
    if (isHiddenMachineId(name)) throw notFound('server')
    requireOwnMachine((spec as ServerSpec).managedBy, 'other') // the kind is `Server`
  },
})

/** A private network. Nothing can be attached to one that has claimed no ranges yet. */
export const ownNetwork = (mayFollow: Reference['mayFollow']): Reference => ({
  type: Network,
  title: 'network',
  mayFollow,
  isReady: ({ status }) => (status as NetworkStatus | undefined)?.ipv6Prefix !== undefined, // the kind is `Network`
})
