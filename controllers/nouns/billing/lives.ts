/** Records the lives of resources that cost: when they were created, what they are, when they were deleted. */
import { hourOf } from '../../../domain/billing/metered-bytes.ts'
import { isPlatformAccount } from '../../../domain/account/platform-account.ts'
import {
  findRecorded,
  listOpenLives,
  type ResourceKey,
  readMetering,
  recordLook,
  recordSeen,
  recordVanished,
  type SeenResource,
} from '../../../db/billing/index.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import type { KubeObject, ResourceType } from '../../../kit/kube/object.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import type { OperationProgress } from '../../../resources/kit/shapes.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { Parts } from '../../kit/parts.ts'
import { BILLABLES, type Billable } from './billables.ts'

type LifeParts = Pick<Parts, 'caches' | 'clock' | 'db'>

/** A look may have missed what was created this shortly before it. */
const MISSED_MILLISECONDS = 600_000
/** Resources that are recorded in one transaction. */
const BATCH = 1_000

const keyOf = ({ resourceType, uid }: ResourceKey): string => `${resourceType}/${uid}`
const contentOf = ({ name, plan, quantity }: Pick<SeenResource, 'name' | 'plan' | 'quantity'>): string =>
  `${plan} ${quantity} ${name}`

interface Look {
  readonly now: Date
  /** When the previous look was. */
  readonly lookedAt: Date
}

/** The billable record of the object; undefined while it costs nothing, and when it is nobody's or the platform's
 *  own. */
function seenOf(
  { resourceType, of }: Billable,
  object: KubeObject,
  caches: Caches,
  { now, lookedAt }: Look,
): SeenResource | undefined {
  const { name, namespace = '', uid, creationTimestamp, deletionTimestamp } = object.metadata
  const accountId = accountOfNamespace(namespace)
  const billed = of(object, caches, now)
  if (billed === undefined || accountId === undefined || uid === undefined || isPlatformAccount(accountId))
    return undefined
  const { operation } = (object.status ?? {}) as { operation?: OperationProgress } // any kind with operations
  const finishedAt = new Date(operation?.finishedAt ?? now)
  const seenAt = finishedAt > lookedAt && finishedAt < now ? finishedAt : now
  const changedAt = billed.isOfHour === true ? hourOf(now) : seenAt
  const createdAt = new Date(creationTimestamp ?? now)
  const isNew = createdAt.getTime() > lookedAt.getTime() - MISSED_MILLISECONDS
  return {
    accountId,
    resourceType,
    uid,
    resourceId: name,
    name: billed.name,
    plan: billed.plan ?? '',
    quantity: billed.quantity ?? 1,
    since: isNew ? createdAt : changedAt,
    changedAt,
    until: deletionTimestamp === undefined ? undefined : new Date(deletionTimestamp),
  }
}

/** Records the end of an object that is about to be deleted, in case it was created and deleted between two looks.
 *  Writes nothing when it is recorded already. Throws Unavailable. */
export async function recordGone(
  { caches, clock, db }: LifeParts,
  type: ResourceType,
  root: KubeObject,
): Promise<void> {
  const billables = BILLABLES.filter(({ kind }) => kind === type)
  const { uid, deletionTimestamp } = root.metadata
  if (billables.length === 0 || uid === undefined) return
  const now = clock.now()
  const until = new Date(deletionTimestamp ?? now)
  const types = billables.map(({ resourceType }) => resourceType)
  const found = await orUnavailable(findRecorded(db, types, uid))
  const recorded = new Map(found.map(({ resourceType, isOpen }) => [resourceType, isOpen]))
  const { lookedAt } = await orUnavailable(readMetering(db))
  const lives = billables.flatMap(
    (billable) => seenOf(billable, root, caches, { now, lookedAt: lookedAt ?? now }) ?? [],
  )
  const begun = lives.filter(({ resourceType }) => recorded.get(resourceType) !== false)
  const ended = [...recorded].flatMap(([resourceType, isOpen]) =>
    isOpen && !begun.some((each) => each.resourceType === resourceType) ? [{ resourceType, uid }] : [],
  )
  if (begun.length === 0 && ended.length === 0) return
  await orUnavailable(
    db.transaction().execute(async (tx) => {
      await recordSeen(
        tx,
        begun.map((each) => ({ ...each, until })),
      )
      await recordVanished(tx, ended, until)
    }),
  )
}

/** Answers a function that looks once at everything that costs, and records what differs from the records. Throws
 *  Unavailable. */
export function openLooks({ caches, clock, db }: LifeParts): () => Promise<void> {
  let recorded: Map<string, string> | undefined

  return async () => {
    const now = clock.now()
    recorded ??= new Map((await orUnavailable(listOpenLives(db))).map((life) => [keyOf(life), contentOf(life)]))
    const known = recorded
    const lookedAt = (await orUnavailable(readMetering(db))).lookedAt ?? now
    const lives = BILLABLES.flatMap((billable) =>
      caches
        .of(billable.kind)
        .list()
        .flatMap((object) => seenOf(billable, object, caches, { now, lookedAt }) ?? []),
    )
    const there = new Set(lives.map(keyOf))
    const endedKeys = [...known.keys()].filter((key) => !there.has(key))
    const changed = lives.filter((each) =>
      each.until === undefined ? known.get(keyOf(each)) !== contentOf(each) : known.has(keyOf(each)),
    )
    for (let start = 0; start < changed.length; start += BATCH) {
      const batch = changed.slice(start, start + BATCH)
      await orUnavailable(db.transaction().execute((tx) => recordSeen(tx, batch)))
      for (const each of batch)
        if (each.until === undefined) known.set(keyOf(each), contentOf(each))
        else known.delete(keyOf(each))
    }
    for (let start = 0; start < endedKeys.length; start += BATCH) {
      const batch = endedKeys.slice(start, start + BATCH)
      await orUnavailable(db.transaction().execute((tx) => recordVanished(tx, batch.map(resourceKey), lookedAt)))
      for (const key of batch) known.delete(key)
    }
    await orUnavailable(recordLook(db, now))
  }
}

const resourceKey = (key: string): ResourceKey => {
  const [resourceType = '', uid = ''] = key.split('/')
  return { resourceType, uid }
}
