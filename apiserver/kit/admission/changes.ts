/** Changes by kubectl: the difference of two states of an object becomes changes, which are judged like those of REST.
 *  Their claims are tried in transactions that are rolled back: the controllers claim once the object exists. */
import { isDeepStrictEqual } from 'node:util'
import {
  auditActionOf,
  type Changeable,
  creationOf,
  type NamedChange,
  type OperableSpec,
  type OperableStatus,
  type Reference,
  type Rules,
  type Subject,
} from '../../../changes/kit/define.ts'
import { auditChangesOf, changesBetween, patched, requireUntouched } from '../../../changes/kit/judge.ts'
import { referredIn, requireReferred } from '../../../changes/kit/references.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { accountExists } from '../../../db/server/index.ts'
import { isMachineId } from '../../../domain/managed-machine/rules.ts'
import { notFound } from '../../../domain/problem.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import { requireAccount, requireStanding, requireVerifiedOwner } from './account-objects.ts'
import type { AdmissionParts, AdmissionRules, AdmittedChange } from './kind.ts'
import { denyPlatformFields, type PlatformFields } from './platform-fields.ts'
import { rehearse } from './rehearse.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import { inWords, WORDS } from '../words.ts'

/** The admission rules of the noun. They throw the Problem that REST would answer, with the fields of the spec. */
export function admissionOf<Spec extends OperableSpec, Status extends OperableStatus, Facts>(
  noun: Changeable<Spec, Status, Facts>,
): AdmissionRules<Spec, Status> {
  const { title, resource, remove } = noun
  const platform: PlatformFields = {
    noun: title,
    finalizer: finalizerOf(resource),
    goesWhen: noun.finalizedWhen,
  }
  return {
    create: (parts, object) =>
      inWords(WORDS.kubectl, async () => {
        const accountId = await requireAccount(parts, object, `${title}s`)
        denyPlatformFields(object, undefined, platform)
        requireUntouched(noun, undefined, object.spec)
        noun.readable?.(object.spec)
        const subject = { accountId, id: object.metadata.name, spec: object.spec, facts: undefined }
        const create = creationOf(noun, object.spec)
        create.allow?.(subject, worldOf(parts.caches))
        const pending = ['creation', 'always'] as const
        requireReferences(parts, noun, object, { pending, fields: Object.keys(object.spec) })
        await requireNeeds(parts, [create], accountId)
        await tryClaims(parts, [create], { ...subject, spec: withoutPending(parts, noun, object, pending) })
        return recordOf(noun, [create], object.spec)
      }),
    update: (parts, object, before) =>
      inWords(WORDS.kubectl, async () => {
        denyPlatformFields(object, before, platform)
        requireUntouched(noun, before.spec, object.spec)
        if (isDeepStrictEqual(object.spec, before.spec)) return []
        noun.readable?.(object.spec)
        const matches = changesBetween(noun, before.spec, object.spec)
        const accountId = await requireAccount(parts, object, `${title}s`)
        const subject = { ...subjectOf(noun, object, before), accountId, before: before.spec }
        for (const { allow } of matches) allow?.(subject, worldOf(parts.caches))
        const pending = ['always'] as const
        const fields = matches.flatMap(({ sets }): readonly string[] => sets)
        requireReferences(parts, noun, object, { pending, fields, before: before.spec })
        await requireNeeds(parts, matches, subject.accountId)
        await tryClaims(parts, matches, { ...subject, spec: withoutPending(parts, noun, object, pending) })
        return recordOf(noun, matches, object.spec, before.spec)
      }),
    delete: (parts, before) =>
      inWords(WORDS.kubectl, async () => {
        // Requesting again what is already under way is not an error.
        if (before.metadata.deletionTimestamp !== undefined) return []
        const subject = subjectOf(noun, before, before)
        remove.allow?.(subject, worldOf(parts.caches))
        // Nothing is claimed for an account that does not exist, and what is left in its namespace must go.
        if (await accountExists(parts.db, subject.accountId)) await tryClaims(parts, [remove], subject)
        return recordOf(noun, [remove], before.spec)
      }),
    actionsOf: (after, before) => [
      ...new Set(
        (after === undefined
          ? [remove]
          : before === undefined
            ? [creationOf(noun, after.spec)]
            : changesBetween(noun, before.spec, after.spec)
        ).map((change) => auditActionOf(noun, change)),
      ),
    ],
    refers: noun.refers.map(({ field }) => field),
    reads: [...noun.reads, ...noun.refers.map(({ type }) => type)],
  }
}

const subjectOf = <Spec, Status, Facts>(
  noun: Pick<Changeable<Spec, Status, Facts>, 'factsOf'>,
  { metadata: { name: id, namespace = '', uid }, spec }: KubeObject<Spec, Status>,
  before: KubeObject<Spec, Status>,
): Subject<Spec, Facts> => ({
  accountId: accountOfNamespace(namespace) ?? '', // no account has this id
  id,
  uid,
  spec,
  facts: noun.factsOf(storedOf(before)),
})

async function requireNeeds(
  parts: AdmissionParts,
  changes: readonly Pick<Rules<never, never>, 'needs'>[],
  accountId: string,
): Promise<void> {
  if (changes.some(({ needs }) => needs === 'standing')) await requireStanding(parts, accountId)
  else if (changes.some(({ needs }) => needs === 'verified')) await requireVerifiedOwner(parts, accountId)
}

async function tryClaims<Spec>(
  parts: AdmissionParts,
  changes: readonly Pick<Rules<Spec, never>, 'claim' | 'operation' | 'tries'>[],
  subject: Subject<Spec, unknown>,
): Promise<void> {
  const means = { ...parts, changeId: newUuid(parts.random) }
  const claiming = changes.filter(({ claim, tries }) => claim !== undefined || tries !== undefined)
  // Operations of several kinds run one after another.
  for (const together of Map.groupBy(claiming, ({ operation }) => operation).values())
    await rehearse(parts, async (tx) => {
      for (const { claim } of together) await claim?.(tx, subject, means)
      for (const { tries } of together) await tries?.(tx, subject, means)
    })
}

/** Throws the refusals for the objects that the object names, as REST does. Objects that do not exist yet, or that may
 *  become ready later, are waited for, or looked up when they are claimed. */
function requireReferences<Spec extends object, Status>(
  { caches }: Pick<AdmissionParts, 'caches'>,
  noun: Pick<Changeable<Spec, never, never>, 'refers'>,
  { metadata: { namespace = '' }, spec }: KubeObject<Spec, Status>,
  {
    pending,
    ...changed
  }: {
    readonly pending: readonly Reference['mayFollow'][]
    readonly fields: readonly string[]
    readonly before?: Spec
  },
): void {
  for (const { reference, name } of referredIn(noun, { spec, ...changed })) {
    const object = caches.of(reference.type).get({ namespace, name })
    if (object === undefined) {
      if (isMachineId(name)) throw notFound(reference.title) // names of machines are known before these are
      continue
    }
    if (reference.isReady?.(object) === false && pending.includes(reference.mayFollow)) continue
    requireReferred(reference, object, spec)
  }
}

/** The spec without the names of objects that may be created later and do not exist yet. */
function withoutPending<Spec extends object, Status>(
  { caches }: Pick<AdmissionParts, 'caches'>,
  { refers }: Pick<Changeable<Spec, never, never>, 'refers'>,
  { metadata: { namespace = '' }, spec }: KubeObject<Spec, Status>,
  pending: readonly Reference['mayFollow'][],
): Spec {
  const known = refers.flatMap(({ field, type, mayFollow, isReady }) => {
    const named: unknown = spec[field]
    const isThere = (name: unknown): boolean => {
      const object = caches.of(type).get({ namespace, name: String(name) })
      return object !== undefined && (isReady?.(object) ?? true)
    }
    if (!pending.includes(mayFollow)) return []
    return [[field, Array.isArray(named) ? named.filter(isThere) : isThere(named) ? named : undefined]]
  })
  return patched(spec, Object.fromEntries(known) as Partial<Spec>) // its fields
}

/** The records from which the controller takes the actor: the operations, creations and removals without one, and edits
 *  without one, each kind together. */
function recordOf<Spec>(
  noun: Pick<Changeable<Spec, never, never>, 'name' | 'audited'>,
  matches: readonly (Pick<NamedChange<Spec, never>, 'action' | 'name' | 'operation'> & { readonly sets?: unknown })[],
  spec: Spec,
  before?: Spec,
): readonly AdmittedChange[] {
  const isEdit = (change: (typeof matches)[number]): change is NamedChange<Spec, never> =>
    change.operation === undefined && change.sets !== undefined
  const begun = matches.filter((change) => !isEdit(change))
  const actions = new Set(begun.map((change) => change.operation ?? auditActionOf(noun, change)))
  const edits = Map.groupBy(matches.filter(isEdit), (change) => auditActionOf(noun, change))
  return [
    ...[...actions].map((action) => ({ action, changes: [] })),
    ...[...edits].map(([action, changes]) => ({
      action,
      changes: before === undefined ? [] : auditChangesOf(noun, changes, before, spec),
    })),
  ]
}
