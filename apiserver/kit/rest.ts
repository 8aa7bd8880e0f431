/** Changes by REST: an endpoint for each route that the changes of a noun name. A body becomes the desired spec. The
 *  changes that produce it are judged, what they need is claimed with the intent in one transaction, and ONE write
 *  makes them. */
import type { Transaction } from 'kysely'
import { z } from 'zod'
import {
  type Changeable,
  type Grant,
  type Means,
  type NamedChange,
  type OperableSpec,
  type OperableStatus,
  type Patch,
  type Reading,
  type Subject,
  type Surroundings,
  auditActionOf,
} from '../../changes/kit/define.ts'
import { auditChangesOf, changesBetween, patched } from '../../changes/kit/judge.ts'
import { worldOf } from '../../changes/kit/world.ts'
import { defined } from '../../domain/defined.ts'
import { conflict } from '../../domain/problem.ts'
import type { Tables } from '../../db/tables.ts'
import type { Answer, Call, Customer } from '../../kit/http/call.ts'
import { requireMatch } from '../../kit/http/conditional.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import type { Route } from '../../kit/http/route.ts'
import { mergePatch } from '../../kit/kube/merge-patch.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { newUuid } from '../../kit/sys/random.ts'
import { accountNamespace } from '../../resources/index.ts'
import { LAST_CHANGE_ANNOTATION } from '../../resources/kit/labels.ts'
import { rehearse } from './admission/rehearse.ts'
import { accept, announceEarlier } from './change/accept.ts'
import { auditEntryOf } from './change/audit.ts'
import { patchWithOperation } from './change/begin.ts'
import { begunView } from './change/begun.ts'
import { idOf } from './change/id-of.ts'
import type { Parts } from './parts.ts'
import { readAgain } from './plain/change-object.ts'
import { etagOfObject } from './plain/objects.ts'
import { type ChangedObjects, type Context, make, requireReferences } from './create.ts'
import { joinedGrants, stanzaOf, operationTarget, withArguments } from './stanza.ts'
import { inWords, WORDS } from './words.ts'
import { writePlain } from './write-plain.ts'

type Answering = (call: Call<Route, Customer>) => Promise<Answer>

/** The effect of a request on an object: the desired spec, and the changes that produce it. */
interface Wish<Spec, Facts> {
  readonly after: Spec
  readonly matches: readonly NamedChange<Spec, Facts>[]
  /** A removal without an operation. */
  readonly deletes?: boolean
  /** Of its operation. */
  readonly parameters?: Readonly<Record<string, string>> | undefined
  /** For the audit log. */
  readonly detail?: Readonly<Record<string, string>>
}

/** The endpoints of the noun's creation, its changes and its removal. */
export function changeEndpoints<Spec extends OperableSpec, Status extends OperableStatus, View, Facts>(
  parts: Parts,
  noun: Changeable<Spec, Status, Facts>,
  objects: ChangedObjects<Spec, Status, View, Facts>,
): readonly Endpoint[] {
  const context = { parts, noun, objects }
  for (const type of noun.reads) parts.caches.of(type)
  const answering = (route: Route, answer: Answering, names: Reading<unknown>['names'] = {}): Endpoint =>
    customerEndpoint(route, (call) =>
      inWords(
        (field) => WORDS.rest(names[field] ?? field),
        () => answer(call),
      ),
    )
  const readings = noun.changes.flatMap(({ by }) => (by !== undefined && 'read' in by ? [by] : []))
  const routes = new Map(readings.map(({ route, names }) => [route, names]))
  const { by, ...removal } = noun.remove
  const { create } = noun
  const reading =
    ({ read }: Reading<Spec>): Answering =>
    (call) => {
      const surroundings = surroundingsOf(parts, call)
      // Parsed with the schemas of this very route.
      return make(context, call, read(call.body as never, undefined as never, call.params as never, surroundings))
    }
  return [
    ...('read' in create.by ? [answering(create.by.route, reading(create.by), create.by.names)] : []),
    ...[...routes].map(([route, names]) =>
      answering(route, (call) => change(context, call, (spec) => wishOf(parts, noun, call, spec)), names),
    ),
    answering(by.route, (call) =>
      change(context, call, (after) => ({
        after,
        matches: [{ ...removal, sets: [] }],
        deletes: removal.operation === undefined,
        parameters: by.arguments?.(call.query as never), // parsed with the schema of this very route
        ...defined({ detail: removal.detail?.(after) }),
      })),
    ),
  ]
}

/** Changes an object as a function reads it from the request, as the changes of the noun say. Throws their refusals,
 *  with the fields of REST. */
export const changerOf =
  <Spec extends OperableSpec, Status extends OperableStatus, View, Facts>(
    parts: Parts,
    noun: Changeable<Spec, Status, Facts>,
    objects: ChangedObjects<Spec, Status, View, Facts>,
  ) =>
  (call: Call<Route, Customer>, read: (spec: Spec) => Patch<Spec>): Promise<Answer> =>
    inWords(WORDS.rest, () => change({ parts, noun, objects }, call, (spec) => wishOf(parts, noun, call, spec, read)))

const surroundingsOf = (
  { caches }: Pick<Parts, 'caches'>,
  { caller: { accountId } }: Pick<Call<Route, Customer>, 'caller'>,
): Surroundings => ({ accountId, world: worldOf(caches) })

/** Finds the effect of the request on the object. A verb that is requested again is applied again: its operation finds
 *  nothing to do. */
function wishOf<Spec extends object, Facts>(
  parts: Pick<Parts, 'caches'>,
  noun: Pick<Changeable<Spec, never, Facts>, 'changes'>,
  call: Call<Route, Customer>,
  spec: Spec,
  patchOf?: (spec: Spec) => Patch<Spec>,
): Wish<Spec, Facts> {
  const { route, body, params } = call
  const offered = noun.changes.filter(({ by }) => by?.route === route)
  const readings = new Set(offered.flatMap(({ by }) => (by !== undefined && 'read' in by ? [by.read] : [])))
  const surroundings = surroundingsOf(parts, call)
  let after = patchOf === undefined ? spec : patched(spec, patchOf(spec))
  for (const read of readings) {
    // Parsed with the schemas of this very route.
    after = patched(after, read(body as never, after as never, params as never, surroundings))
  }
  const matches = changesBetween({ changes: offered }, spec, after)
  // Without a 200 the route always starts an operation.
  const isVerb = route.answers[200] === undefined
  return {
    after,
    matches: matches.length === 0 && isVerb ? offered.filter(({ when }) => when?.(after, spec) ?? true) : matches,
  }
}

/** Throws 409 for another version than the one that the request names, and what the rules of the changes throw. */
function judge<Spec extends OperableSpec, Status extends OperableStatus, View, Facts>(
  { parts, objects }: Context<Spec, Status, View, Facts>,
  { caller: { accountId }, request, body }: Call<Route, Customer>,
  object: KubeObject<Spec, Status>,
  { after, matches }: Wish<Spec, Facts>,
): Subject<Spec, Facts> {
  requireMatch(request, etagOfObject(object))
  objects.requireOwn?.(object, matches[0]?.name ?? '')
  const { name: id, uid } = object.metadata
  const by = matches[0]?.by
  // Parsed with the schema of this very route.
  const options = by !== undefined && 'read' in by ? by.options?.(body as never) : undefined
  const subject = { accountId, id, uid, spec: after, before: object.spec, facts: objects.factsOf(object), options }
  for (const { allow } of matches) allow?.(subject, worldOf(parts.caches))
  return subject
}

async function change<Spec extends OperableSpec, Status extends OperableStatus, View, Facts>(
  context: Context<Spec, Status, View, Facts>,
  call: Call<Route, Customer>,
  wish: (spec: Spec) => Wish<Spec, Facts>,
): Promise<Answer> {
  const { parts, noun, objects } = context
  const { resource, target: type } = noun
  const target = { accountId: call.caller.accountId, id: idOf(call) }
  const before = await objects.read(target.accountId, target.id)
  const { after, matches, deletes, parameters, detail } = wish(before.spec)
  if (matches[0] !== undefined) call.audited.as = auditActionOf(noun, matches[0])
  const subject = judge(context, call, before, { after, matches })
  const fields = matches.flatMap(({ sets }): readonly string[] => sets)
  await requireReferences(parts, noun, target.accountId, { spec: after, before: before.spec, fields })
  const changes = auditChangesOf(noun, matches, before.spec, after)
  const begun = matches.find((each) => each.operation !== undefined)
  const operation = begun && stanzaOf(parts, call, type, begun, subject, parameters)
  const changeId = operation?.id ?? newUuid(parts.random)
  const means = { ...parts, changeId }
  const claim = (tx: Transaction<Tables>, claiming: typeof matches) => claimAll(tx, claiming, subject, means)
  const held = matches.filter(({ claimed }) => claimed !== 'by operation')
  const tried = matches.filter(({ claimed }) => claimed === 'by operation')
  if (tried.length > 0 || matches.some(({ tries }) => tries !== undefined))
    await rehearse(parts, async (tx) => {
      await claim(tx, tried)
      for (const { tries } of matches) await tries?.(tx, subject, means)
    })
  const read = readAgain(objects, target, before)
  const written = await accept<Grant<Spec>, Spec, Status>(parts, {
    id: changeId,
    accountId: target.accountId,
    resource: { type, id: target.id },
    ...defined({ operation }),
    audit: auditEntryOf(call, {
      resourceId: target.id,
      changes,
      ...defined({ detail }),
    }),
    claim: (tx) => claim(tx, held),
    ...(held.every(({ release }) => release === undefined)
      ? {}
      : {
          release: async (tx, stored) => {
            for (const { release } of held) await release?.(tx, { ...target, changeId, changes }, stored)
          },
        }),
    write: async (granted = {}) => {
      const object = await read()
      const next = wish(object.spec)
      const judged = judge(context, call, object, next)
      if (next.matches.some((each) => each.operation !== undefined) !== (operation !== undefined))
        throw conflict('state_not_allowed', 'The resource is being changed by others. Try again.', {
          resource: { type, id: target.id },
        })
      const spec = mergePatch(object.spec, patched(next.after, granted.spec ?? {}))
      if (operation !== undefined) {
        await announceEarlier(parts, target.accountId, operationTarget(type, target.id), object)
        const stanza = withArguments(operation, begun?.stanza?.(judged) ?? {})
        return patchWithOperation(parts, resource, object, withArguments(stanza, granted), spec)
      }
      return writePlain(parts, resource, object, { changeId, spec, deletedAt: deletes === true ? call.now : undefined })
    },
    read: () => parts.store.get(resource, { namespace: accountNamespace(target.accountId), name: target.id }),
    wasApplied: ({ metadata, spec }) =>
      (deletes === true && metadata.deletionTimestamp !== undefined) ||
      (operation === undefined ? metadata.annotations?.[LAST_CHANGE_ANNOTATION] : spec.operation?.id) === changeId,
  })
  objects.cache?.apply(written)
  return answerOf(context, call.route, written, operation !== undefined)
}

/** Returns what all of them grant. Throws the refusal of one. */
async function claimAll<Spec>(
  tx: Transaction<Tables>,
  changes: readonly NamedChange<Spec, never>[],
  subject: Subject<Spec, unknown>,
  means: Means,
): Promise<Grant<Spec>> {
  const grants: Grant<Spec>[] = []
  for (const { claim } of changes) grants.push((await claim?.(tx, subject, means)) ?? {})
  return joinedGrants(grants)
}

/** 200 with the object, 202 with the operation, or both where the answer of the route has both. */
async function answerOf<Spec extends OperableSpec, Status extends OperableStatus, View, Facts>(
  { noun: { name, target }, objects }: Context<Spec, Status, View, Facts>,
  route: Route,
  written: KubeObject<Spec, Status>,
  hasBegun: boolean,
): Promise<Answer> {
  if (route.answers[204] !== undefined) return { status: 204 }
  const shown = { [name]: await objects.viewOf(written) }
  const headers = { etag: etagOfObject(written) }
  if (!hasBegun) return { status: 200, body: shown, headers }
  const begun = { operation: begunView(written, operationTarget(target, written.metadata.name)) }
  return shows(route, 202, name) ? { status: 202, body: { ...shown, ...begun }, headers } : { status: 202, body: begun }
}

const shows = ({ answers }: Route, status: number, member: string): boolean => {
  const schema = answers[status]
  return schema instanceof z.ZodObject && member in schema.shape
}
