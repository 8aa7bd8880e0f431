/** The three questions about two states of a spec: which changes lead from one to the other, whether each is allowed,
 *  and whether a field was changed that nobody may change. Pure. */
import { isDeepStrictEqual } from 'node:util'
import type { AuditChange } from '../../domain/audit/entry.ts'
import { badField, forbidden } from '../../domain/problem.ts'
import type { Change, Changeable, Field, NamedChange, Patch } from './define.ts'
import { snakeCase } from '../../resources/kit/view.ts'

const partOf = <Spec>({ sets, of }: Pick<Change<Spec, never>, 'sets' | 'of'>, spec: Spec): unknown =>
  of === undefined ? sets.map((field) => spec[field]) : of(spec)

/** The changes that lead from one spec to the other, in the order of the noun. */
export const changesBetween = <Spec, Facts>(
  { changes }: Pick<Changeable<Spec, never, Facts>, 'changes'>,
  before: Spec,
  after: Spec,
): readonly NamedChange<Spec, Facts>[] =>
  changes.filter(
    (change) =>
      !isDeepStrictEqual(partOf(change, after), partOf(change, before)) && (change.when?.(after, before) ?? true),
  )

/** Throws 400 for a fixed field that has changed, and 403 for one that only the platform writes. `before` is undefined
 *  for an object that is being created. */
export function requireUntouched<Spec>(
  { fixed, platform }: Pick<Changeable<Spec, never, never>, 'fixed' | 'platform'>,
  before: Spec | undefined,
  after: Spec,
): void {
  for (const field of platform)
    if (!isDeepStrictEqual(before?.[field], after[field]) && !(before === undefined && isNothing(after[field])))
      throw forbidden(`spec.${field} is written by the platform only.`)
  for (const field of before === undefined ? [] : fixed)
    if (!isDeepStrictEqual(before?.[field], after[field])) throw badField(field, 'cannot be changed')
}

/** The defaults that a schema fills in for absent fields. */
const isNothing = (value: unknown): boolean => value === undefined || isDeepStrictEqual(value, [])

/** The spec with the patch applied. */
export function patched<Spec extends object>(spec: Spec, patch: Patch<Spec>): Spec {
  const entries = Object.entries({ ...spec, ...patch }).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as Spec // a patch takes out only what may be absent
}

/** The changes for the audit log: REST's names of fields, absent values as null. */
export function auditChangesOf<Spec>(
  { audited }: Pick<Changeable<Spec, never, never>, 'audited'>,
  changes: readonly Pick<Change<Spec, never>, 'sets'>[],
  before: Spec,
  after: Spec,
): readonly AuditChange[] {
  const fields = [...new Set(changes.flatMap(({ sets }): readonly Field<Spec>[] => sets))]
  const shown = (spec: Spec): Readonly<Record<string, unknown>> =>
    Object.fromEntries(
      fields.flatMap((field) => Object.entries(audited?.[field]?.(spec[field]) ?? { [snakeCase(field)]: spec[field] })),
    )
  const [was, is] = [shown(before), shown(after)]
  return Object.keys(is)
    .filter((field) => !isDeepStrictEqual(was[field], is[field]))
    .map((field) => ({ field, before: was[field] ?? null, after: is[field] ?? null }))
}
