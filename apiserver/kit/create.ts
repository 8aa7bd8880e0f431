/** Creations by REST: what the new object needs is claimed with the intent in one transaction, and ONE write creates
 *  it. */
import {
  auditActionOf,
  type Changeable,
  creationOf,
  type Grant,
  type Means,
  type OperableSpec,
  type OperableStatus,
} from '../../changes/kit/define.ts'
import { patched } from '../../changes/kit/judge.ts'
import { referredIn, requireReferred } from '../../changes/kit/references.ts'
import { worldOf } from '../../changes/kit/world.ts'
import type { Answer, Call, Customer } from '../../kit/http/call.ts'
import type { Route } from '../../kit/http/route.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { newOrderedUuid, newUuid } from '../../kit/sys/random.ts'
import { accountNamespace } from '../../resources/index.ts'
import { rehearse } from './admission/rehearse.ts'
import { auditEntryOf } from './change/audit.ts'
import { begunView } from './change/begun.ts'
import { createObject } from './change/create.ts'
import type { OperatedObjects } from './change/operate.ts'
import type { Parts } from './parts.ts'
import { etagOfObject } from './plain/objects.ts'
import { stanzaOf, operationTarget, withArguments } from './stanza.ts'
import { inWords, WORDS } from './words.ts'

/** The objects of a noun, with or without operations. */
export interface ChangedObjects<Spec, Status, View, Facts>
  extends Pick<OperatedObjects<Spec, Status, View, Facts>, 'factsOf' | 'read'>,
    Partial<Pick<OperatedObjects<Spec, Status, View, Facts>, 'cache'>> {
  /** Throws for objects that customers see but must not change in this way. */
  readonly requireOwn?: (object: KubeObject<Spec, Status>, change: string) => void
  readonly viewOf: (object: KubeObject<Spec, Status>) => View | Promise<View>
  /** What the answer to a creation shows in addition, or differently. */
  readonly createdOf?: (object: KubeObject<Spec, Status>) => Promise<object>
}

export interface Context<Spec, Status, View, Facts> {
  readonly parts: Parts
  readonly noun: Changeable<Spec, Status, Facts>
  readonly objects: ChangedObjects<Spec, Status, View, Facts>
}

/** Throws the refusals for the objects that the spec names. A client of REST has created them before: they are read
 *  from the store, which knows more than the caches. */
export async function requireReferences<Spec extends object>(
  { store }: Pick<Parts, 'store'>,
  noun: Pick<Changeable<Spec, never, never>, 'refers'>,
  accountId: string,
  named: Parameters<typeof referredIn<Spec>>[1],
): Promise<void> {
  for (const { reference, name } of referredIn(noun, named))
    requireReferred(
      reference,
      await store.get(reference.type, { namespace: accountNamespace(accountId), name }),
      named.spec,
    )
}

interface Judgement extends Pick<Means, 'storage'> {
  /** Called once everything is claimed, right before the write: throws the Problem that refuses it by then. */
  readonly requireStill?: () => Promise<void>
}

type Making<Spec> = (call: Call<Route, Customer>, spec: Spec, judged?: Judgement) => Promise<Answer>

/** Creates an object of that spec for a request, as the changes of the noun say. Throws their refusals, with the fields
 *  of REST. */
export const makerOf =
  <Spec extends OperableSpec, Status extends OperableStatus, View, Facts>(
    parts: Parts,
    noun: Changeable<Spec, Status, Facts>,
    objects: Omit<ChangedObjects<Spec, Status, View, Facts>, 'factsOf'>,
  ): Making<Spec> =>
  async (call, spec, judged) =>
    inWords(WORDS.rest, () => make({ parts, noun, objects }, call, spec, judged))

/** As `makerOf`, but refusals name the fields of the spec. */
export async function make<Spec extends OperableSpec, Status extends OperableStatus, View, Facts>(
  {
    parts,
    noun,
    objects,
  }: Pick<Context<Spec, Status, View, Facts>, 'parts' | 'noun'> & {
    readonly objects: Omit<ChangedObjects<Spec, Status, View, Facts>, 'factsOf'>
  },
  call: Call<Route, Customer>,
  spec: Spec,
  { requireStill, storage }: Judgement = {},
): Promise<Answer> {
  const { accountId } = call.caller
  const { resource, name, target: type } = noun
  const creation = creationOf(noun, spec)
  call.audited.as = auditActionOf(noun, creation)
  // Lists are newest first by second of creation, then by id: the id keeps the order within the second.
  const id = newOrderedUuid(parts.random, call.now)
  const subject = { accountId, id, spec, facts: undefined }
  creation.allow?.(subject, worldOf(parts.caches))
  await requireReferences(parts, noun, accountId, { spec, fields: Object.keys(spec) })
  const operation = (creation.starts?.(spec) ?? true) ? stanzaOf(parts, call, type, creation, subject) : undefined
  const changeId = operation?.id ?? newUuid(parts.random)
  const means = { ...parts, changeId, storage }
  const { tries } = creation
  if (tries !== undefined) await rehearse(parts, (tx) => tries(tx, subject, means))
  const written = await createObject<Spec, Status, Grant<Spec> | void>(parts, accountId, {
    changeId,
    reference: { type, id },
    resource,
    operation,
    audit: auditEntryOf(call, { resourceId: creation.audit?.idOf(spec) ?? id, detail: creation.detail(spec, id) }),
    claim: async (tx) => creation.claim?.(tx, subject, means),
    release: async (tx) => creation.release?.(tx, { ...subject, changeId, changes: [] }, undefined),
    specOf: (claimed) => {
      const grant = claimed ?? {}
      const granted = patched(spec, grant.spec ?? {})
      return operation === undefined ? granted : { ...granted, operation: withArguments(operation, grant) }
    },
    requireStill,
  })
  objects.cache?.apply(written)
  const begun = operation === undefined ? {} : { operation: begunView(written, operationTarget(type, id)) }
  return {
    status: call.route.answers[201] === undefined ? 202 : 201,
    body: { [name]: await objects.viewOf(written), ...begun, ...(await objects.createdOf?.(written)) },
    ...(operation === undefined ? { headers: { etag: etagOfObject(written) } } : {}),
  }
}
