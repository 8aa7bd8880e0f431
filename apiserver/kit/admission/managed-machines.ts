/** Managed machines belong to the resource that they run for: nobody but the platform changes them, deletes them, or
 *  creates an object that refers to them. */
import { forbidden } from '../../../domain/problem.ts'
import { isMachineId, machineInUse } from '../../../domain/managed-machine/rules.ts'
import type { AdmissionRequest } from './review.ts'

const NAMED_KINDS: readonly string[] = ['servers', 'storages']
/** Maximum depth of references in specs. */
const DEPTH_MAXIMUM = 3

/** The resource that the server of that name in the namespace runs for, or the server of the disk of that name;
 *  undefined when nobody knows. */
export type ManagedByOf = (namespace: string, id: string) => string | undefined

/** Throws 409 for a change of a managed machine or its disk, and for an object whose spec names one, with the owner;
 *  403 for a new server or storage with a name that such machines have. Fields that are `judged` have rules of their
 *  noun. */
export function requireNoMachine(
  managedByOf: ManagedByOf,
  { operation, namespace, resource, object, oldObject }: AdmissionRequest,
  judged: readonly string[] = [],
): void {
  const target = object ?? oldObject
  const name = target?.metadata.name ?? ''
  const managedBy = (id: string) => managedByOf(namespace, id)
  if (NAMED_KINDS.includes(resource.resource) && isMachineId(name)) {
    if (operation === 'CREATE') throw forbidden('Names that begin with machine- are given by the platform only.')
    throw machineInUse(managedBy(name))
  }
  const spec = Object.fromEntries(Object.entries(object?.spec ?? {}).filter(([field]) => !judged.includes(field)))
  const referred = operation === 'DELETE' ? undefined : referenceIn(spec, DEPTH_MAXIMUM)
  if (referred !== undefined) throw machineInUse(managedBy(referred))
}

/** The first id of a machine among the ids in a spec. */
function referenceIn(value: unknown, depth: number): string | undefined {
  if (typeof value !== 'object' || value === null || depth === 0) return undefined
  for (const [key, member] of Object.entries(value)) {
    if (typeof member === 'string' && key.endsWith('Id') && isMachineId(member)) return member
    const found = referenceIn(member, depth - 1)
    if (found !== undefined) return found
  }
  return undefined
}
