/** The plain verbs of nouns whose rows are in PostgreSQL: list, get, create, update and delete, with quota, audit
 *  entry, ETag and unique names. Everything else that a noun can do is a separate function. */
import type { Transaction } from 'kysely'
import type { z } from 'zod'
import { notFound } from '../../../domain/problem.ts'
import type { RowNounName } from '../../../domain/account/quota.ts'
import { findQuota, releaseQuotas, takeQuotas } from '../../../db/account/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import type { Queries } from '../../../db/kit/open.ts'
import type { Tables } from '../../../db/tables.ts'
import type { ListPlace } from '../../../db/kit/page.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { etagOf, requireMatch } from '../../../kit/http/conditional.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import type { Route } from '../../../kit/http/route.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import { auditEntryOf } from '../change/audit.ts'
import { idOf } from '../change/id-of.ts'
import { type Feed, rowFeed } from '../feed.ts'
import { answerOf, readPageByTime } from '../list/page.ts'
import type { Parts } from '../parts.ts'

export type RowParts = Pick<Parts, 'db' | 'cursors' | 'clock' | 'random'>

export interface Row {
  readonly id: string
  readonly name: string
  /** Increases with every change, from 1; absent when rows never change. */
  readonly generation?: number
  readonly created_at: Date
}

/** The facts about a noun that the plain verbs need. Ids of other accounts are unknown ids to every query. */
export interface RowNoun<Item extends Row> {
  /** Its name in answers and references: `ssh_key`. */
  readonly name: RowNounName
  /** Its name in refusals: `SSH key`. */
  readonly title: string
  /** Newest first, after the position. */
  readonly list: (queries: Queries, accountId: string, after: ListPlace | undefined, limit: number) => Promise<Item[]>
  readonly find: (queries: Queries, accountId: string, id: string) => Promise<Item | undefined>
  readonly insert: (queries: Queries, accountId: string, row: Item) => Promise<void>
  readonly update?: (queries: Queries, accountId: string, row: Item) => Promise<void>
  /** Returns the row that was deleted. */
  readonly remove: (queries: Queries, accountId: string, id: string) => Promise<Item | undefined>
  /** Locks more than the names of the account's rows until the transaction ends. */
  readonly lock?: (tx: Transaction<Tables>, accountId: string) => Promise<void>
  /** Throws 409 when another row of the account has a value that must be unique. */
  readonly requireFree: (queries: Queries, accountId: string, row: Item) => Promise<void>
  readonly toView: (row: Item) => object
  /** What the audit entry of its creation has in addition to the name. */
  readonly createdDetail?: (row: Item) => Readonly<Record<string, string>>
}

type ListRoute = Route<z.ZodType, z.ZodType<{ readonly cursor?: string | undefined; readonly limit: number }>>
type RouteOfOne<Body extends z.ZodType = z.ZodType> = Route<z.ZodType<{ readonly id: string }>, z.ZodType, Body>

const FIRST_GENERATION = 1
const etagOfRow = ({ generation = FIRST_GENERATION }: Row) => ({ etag: etagOf(generation) })

export const listRows = <Item extends Row>(
  { db, cursors }: RowParts,
  noun: RowNoun<Item>,
  route: ListRoute,
): Endpoint =>
  customerEndpoint(route, async (call) => {
    const page = await readPageByTime(
      cursors,
      call,
      (after, count) => noun.list(db, call.caller.accountId, after, count),
      ({ created_at: createdAt, id }) => ({ createdAt, id }),
      { viewsOf: (rows) => rows.map(noun.toView) },
    )
    return answerOf(page)
  })

export const getRow = <Item extends Row>({ db }: RowParts, noun: RowNoun<Item>, route: RouteOfOne): Endpoint =>
  customerEndpoint(route, async ({ caller, params }) => {
    const row = await noun.find(db, caller.accountId, params.id)
    if (row === undefined) throw notFound(noun.title)
    return { status: 200, body: { [noun.name]: noun.toView(row) }, headers: etagOfRow(row) }
  })

/** Each row counts as one. The lock of the quota serializes the account's creations.
 *  `draft` builds the row of a request; throws a Problem for an invalid one. */
export const createRow = <Item extends Row, Body extends z.ZodType>(
  { db, clock, random }: RowParts,
  noun: RowNoun<Item>,
  route: Route<z.ZodType, z.ZodType, Body>,
  draft: (
    call: Call<Route<z.ZodType, z.ZodType, Body>, Customer>,
    base: Pick<Row, 'id' | 'created_at'> & { readonly generation: number },
  ) => Item,
): Endpoint =>
  customerEndpoint(route, async (call) => {
    const { accountId } = call.caller
    const row = draft(call, { id: newUuid(random), generation: FIRST_GENERATION, created_at: call.now })
    await db.transaction().execute(async (tx) => {
      await takeQuotas(tx, { accountId, holder: holderOf(noun, row.id), amounts: { [`${noun.name}s`]: 1 } })
      await noun.requireFree(tx, accountId, row)
      await noun.insert(tx, accountId, row)
      const detail = { name: row.name, ...noun.createdDetail?.(row) }
      await appendAudit(tx, auditEntryOf(call, { resourceId: row.id, detail }), { clock, random })
    })
    const answer: Answer = { status: 201, body: { [noun.name]: noun.toView(row) } }
    return row.generation === undefined ? answer : { ...answer, headers: etagOfRow(row) }
  })

/** `edit` builds the changed row from the previous one, which already has the next generation. */
export const updateRow = <Item extends Row, Body extends z.ZodType>(
  { db, clock, random }: RowParts,
  noun: RowNoun<Item>,
  route: RouteOfOne<Body>,
  edit: (before: Item & { readonly generation: number }, call: Call<RouteOfOne<Body>, Customer>) => Item,
): Endpoint =>
  customerEndpoint(route, async (call) => {
    const { accountId } = call.caller
    const row = await db.transaction().execute(async (tx) => {
      await lockNames(tx, noun, accountId)
      const before = await noun.find(tx, accountId, idOf(call))
      if (before === undefined) throw notFound(noun.title)
      requireMatch(call.request, etagOfRow(before).etag)
      const after = edit({ ...before, generation: (before.generation ?? FIRST_GENERATION) + 1 }, call)
      await noun.requireFree(tx, accountId, after)
      await noun.update?.(tx, accountId, after)
      const changes = after.name === before.name ? [] : [{ field: 'name', before: before.name, after: after.name }]
      const entry = auditEntryOf(call, { resourceId: after.id, detail: { name: after.name }, changes })
      await appendAudit(tx, entry, { clock, random })
      return after
    })
    return { status: 200, body: { [noun.name]: noun.toView(row) }, headers: etagOfRow(row) }
  })

export const deleteRow = <Item extends Row>(
  { db, clock, random }: RowParts,
  noun: RowNoun<Item>,
  route: RouteOfOne,
): Endpoint =>
  customerEndpoint(route, async (call) => {
    const { accountId } = call.caller
    await db.transaction().execute(async (tx) => {
      await lockNames(tx, noun, accountId)
      const row = await noun.remove(tx, accountId, call.params.id)
      if (row === undefined) throw notFound(noun.title)
      await releaseQuotas(tx, { accountId, holder: holderOf(noun, row.id) })
      const entry = auditEntryOf(call, { resourceId: row.id, detail: { name: row.name } })
      await appendAudit(tx, entry, { clock, random })
    })
    return { status: 204 }
  })

/** Serializes changes of the account's rows, as the quota does creations, so that a free name stays free. */
async function lockNames<Item extends Row>(
  tx: Transaction<Tables>,
  { name, lock }: Pick<RowNoun<Item>, 'name' | 'lock'>,
  accountId: string,
): Promise<void> {
  await findQuota(tx, accountId, `${name}s`)
  await lock?.(tx, accountId)
}

/** Its rows in the stream of changes. */
export const rowsOf = <Item extends Row>(db: Queries, noun: RowNoun<Item>, list: ListRoute): Feed =>
  rowFeed(noun.name, list, async (accountId, id) => {
    const row = await noun.find(db, accountId, id)
    return row && noun.toView(row)
  })

const holderOf = ({ name }: { readonly name: RowNounName }, id: string) => `${name}/${id}` as const
