/** The move of an object storage from the single host to the gateway, step by step. The result of a step is in the row
 *  before the next one starts; an interrupted step is repeated. Until the last one the single host is authoritative,
 *  and only the mover has the key of the tenant at the gateway. */
import { createHash } from 'node:crypto'
import type { Transaction } from 'kysely'
import { conflict, Problem, Unavailable } from '../../../domain/problem.ts'
import {
  findObjectStorage,
  type ObjectStorageRow,
  recordObjectStorageMove,
  switchObjectStorage,
  tenantFacts,
  tenantOf,
  whileTelling,
} from '../../../db/object-storage/index.ts'
import type { ObjectStorageMove, Tables } from '../../../db/tables.ts'
import type { Turn } from '../../../db/turn/index.ts'
import { offerIn } from '../../../integrations/object-storage/configuration.ts'
import type { ObjectStorage as Served, ObjectStorageControl } from '../../../integrations/object-storage/control.ts'
import type { Stores } from '../../../integrations/object-storage/copy-object.ts'
import { BEGINNING, moveObstacle, type PassKind, runPass } from '../../../integrations/object-storage/pass.ts'
import type { Patience } from '../../../integrations/object-storage/retry.ts'
import { StoreRefused } from '../../../integrations/object-storage/s3.ts'
import type { BackupAccess } from '../../kit/backup-key.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { Parts } from '../../kit/parts.ts'
import { openSecret } from './secret.ts'

/** The most time that a step takes, apart from its last objects. */
const STEP_MILLISECONDS = 20_000
/** A pass that copies fewer objects is followed by the freeze, and so is the last of this many passes. */
const FEW_CHANGES = 100
const LIVE_PASSES_MAXIMUM = 5
/** The engine may still process a request whose client has disconnected. */
const SETTLE_MILLISECONDS = 10_000
/** The quota of the tenant at the gateway until the switch: the gateway counts each object rounded up to 4 KiB, and
 *  everything that the single host has accepted must fit. */
const MOVING_QUOTA_BYTES = 2 ** 52

export type MoveParts = Pick<Parts, 'db' | 'clock' | 'random' | 'objectStorage'> & BackupAccess

export interface MoveContext extends Stores {
  /** The control interface of the source. */
  readonly single: Pick<ObjectStorageControl, 'getTenant'>
  readonly tenant: string
  readonly now: () => Date
  readonly isOver: () => boolean
  readonly patience: Patience
}

/** Answers the progress of the move; unchanged when there is nothing to do yet. Throws the Problem that ends the
 *  move. */
export async function stepMove(move: ObjectStorageMove, context: MoveContext): Promise<ObjectStorageMove> {
  const { source, single, tenant, now } = context
  const next = (change: Partial<ObjectStorageMove>): ObjectStorageMove => ({
    ...move,
    ...change,
    version: move.version + 1,
  })
  if (move.phase === 'verified') return move
  if (move.phase === 'frozen') {
    const state = await single.getTenant(tenant)
    const isQuiet = state?.isFrozen === true && state.openWrites === 0
    if (!isQuiet || now().getTime() < Date.parse(move.frozenAt ?? '') + SETTLE_MILLISECONDS) return move
    await requireMovable(context)
    return next({ phase: 'exact', place: BEGINNING, changed: 0 })
  }
  const { changed, place, ...counts } = await goOn(move, move.phase, context)
  if (place !== undefined) return next({ changed, place, ...counts })
  if (move.phase === 'check' && changed > 0)
    throw conflict('state_not_allowed', `${changed} objects are not the same in the replicated storage.`)
  if (move.phase !== 'live') return next({ phase: AFTER[move.phase], place: BEGINNING, changed: 0, ...counts })
  if (changed <= FEW_CHANGES || move.pass >= LIVE_PASSES_MAXIMUM) {
    const frozenAt = now().toISOString()
    return next({ phase: 'frozen', place: BEGINNING, changed: 0, since: move.begunAt, frozenAt, ...counts })
  }
  const begunAt = (await source.buckets()).at.toISOString()
  return next({ pass: move.pass + 1, place: BEGINNING, changed: 0, since: move.begunAt, begunAt, ...counts })
}

const AFTER = { exact: 'prune', prune: 'check', check: 'verified' } as const

async function goOn(move: ObjectStorageMove, kind: PassKind, { source, target, ...rest }: MoveContext) {
  const since = move.since === null ? undefined : new Date(move.since)
  const progress = await runPass({ source, target }, { kind, from: move.place, since, ...rest })
  return {
    place: progress.next,
    changed: move.changed + progress.changed,
    objects: move.objects + (kind === 'live' || kind === 'exact' ? progress.changed : 0),
    bytes: move.bytes + progress.bytes,
  }
}

/** Throws 409 for content that cannot be moved. */
export async function requireMovable({ source }: Pick<Stores, 'source'>): Promise<void> {
  const obstacle = await moveObstacle(source)
  if (obstacle !== undefined) throw conflict('state_not_allowed', obstacle)
}

/** The secret of the tenant at the gateway until the switch: nobody else can know it, and a rotation changes it. */
const moveSecretOf = ({ sealedSecret }: ObjectStorageRow): string =>
  createHash('sha256').update(`move/${sealedSecret}`).digest('hex').slice(0, 40)

interface Both {
  readonly single: Served
  readonly gateway: Served
}

/** Throws Unavailable when one of them is no longer configured. */
function bothIn({ objectStorage = { stores: [], obstacle: 'nothing' } }: MoveParts, zone: string): Both {
  const [single, gateway] = [offerIn(objectStorage, zone, 'svc-s3-single'), offerIn(objectStorage, zone, 'rgw')]
  if ('obstacle' in single || 'obstacle' in gateway) throw new Unavailable(`both object stores of zone ${zone}`)
  return { single, gateway }
}

/** Runs the work while no other process configures a store with it. Throws Unavailable while another does. */
export const inTurnOf = (
  parts: Pick<Parts, 'db' | 'clock' | 'random'>,
  row: ObjectStorageRow,
  work: Parameters<typeof whileTelling<void>>[2],
): Promise<void> =>
  orUnavailable(
    whileTelling(parts, row, work, () => {
      throw new Unavailable('the object storage')
    }),
  )

/** Runs the work in its turn, so that the gateway's tenant is not treated as one that has not moved when it has. */
const whileOnSingle = (
  parts: MoveParts,
  row: ObjectStorageRow,
  work: (turn: Turn, current: ObjectStorageRow) => Promise<void>,
): Promise<void> =>
  inTurnOf(parts, row, async (turn, current) => {
    if (current?.backend === 'svc-s3-single') await work(turn, current)
  })

/** Records what was done outside, while the turn is ours. */
const write = ({ db }: MoveParts, turn: Turn, work: (tx: Transaction<Tables>) => Promise<unknown>): Promise<void> =>
  db.transaction().execute(async (tx) => {
    await turn.require(tx)
    await work(tx)
  })

const contextOf = (parts: MoveParts, row: ObjectStorageRow): MoveContext => {
  const { single, gateway } = bothIn(parts, row.zone)
  const { accessKeyId, zone } = row
  const until = parts.clock.monotonicMilliseconds() + STEP_MILLISECONDS
  return {
    source: single.openS3(zone, { accessKeyId, secretAccessKey: openSecret(parts, row) }),
    target: gateway.openS3(zone, { accessKeyId, secretAccessKey: moveSecretOf(row) }),
    single: single.control,
    tenant: tenantOf(row),
    now: parts.clock.now,
    isOver: () => parts.clock.monotonicMilliseconds() >= until,
    patience: parts,
  }
}

/** Starts the move: the gateway has an empty tenant with the key. Throws the Problem for content that cannot be
 *  moved. */
export async function prepareMove(parts: MoveParts, row: ObjectStorageRow, operationId: string): Promise<void> {
  const { source } = contextOf(parts, row)
  await orStoreAway(requireMovable({ source }))
  const { at } = await orStoreAway(source.buckets())
  await whileOnSingle(parts, row, async (turn, current) => {
    if (current.move !== null) return
    await bothIn(parts, row.zone).gateway.control.removeTenant(tenantOf(row), true)
    await tellTarget(parts, current)
    const move: ObjectStorageMove = {
      operationId,
      phase: 'live',
      pass: 1,
      place: BEGINNING,
      since: null,
      begunAt: at.toISOString(),
      changed: 0,
      objects: 0,
      bytes: 0,
      frozenAt: null,
      version: 1,
    }
    await write(parts, turn, (tx) => recordObjectStorageMove(tx, current, move))
  })
}

async function tellTarget(parts: MoveParts, row: ObjectStorageRow): Promise<void> {
  const facts = await tenantFacts(parts.db, row, parts.clock.now())
  const settings = {
    ...facts,
    isSuspended: false,
    isFrozen: false,
    secretAccessKey: moveSecretOf(row),
    quotaBytes: MOVING_QUOTA_BYTES,
  }
  await bothIn(parts, row.zone).gateway.control.putTenant(tenantOf(row), settings)
}

/** Throws the Problem that ends the move. */
export async function goOnMoving(parts: MoveParts, { accountId, id }: ObjectStorageRow): Promise<void> {
  const row = await orUnavailable(findObjectStorage(parts.db, accountId, id))
  if (row === undefined || row.move === null) return
  await whileOnSingle(parts, row, (_turn, current) => tellTarget(parts, current))
  const move = await orStoreAway(stepMove(row.move, contextOf(parts, row)))
  if (move !== row.move) await orUnavailable(recordObjectStorageMove(parts.db, row, move))
}

/** Makes the gateway authoritative, with the owner's key. */
export const switchOver = (parts: MoveParts, row: ObjectStorageRow): Promise<void> =>
  whileOnSingle(parts, row, async (turn, current) => {
    if (current.move?.phase !== 'verified') return
    const now = parts.clock.now()
    const settings = { ...(await tenantFacts(parts.db, current, now)), isFrozen: false }
    const secretAccessKey = openSecret(parts, current)
    await bothIn(parts, row.zone).gateway.control.putTenant(tenantOf(row), { ...settings, secretAccessKey })
    await write(parts, turn, (tx) => switchObjectStorage(tx, current, now))
  })

/** Deletes the copies; the single host serves as before. */
export const abandonMove = (parts: MoveParts, row: ObjectStorageRow): Promise<void> =>
  whileOnSingle(parts, row, async (turn, current) => {
    if (current.move === null) return
    await bothIn(parts, row.zone).gateway.control.removeTenant(tenantOf(row), true)
    await write(parts, turn, (tx) => recordObjectStorageMove(tx, current, null))
  })

/** The reason, for the owner, without addresses: which of the stores does not answer, or what one of them has
 *  refused. */
export async function whyMoveWaits(parts: MoveParts, row: ObjectStorageRow, error: Unavailable): Promise<string> {
  const { cause } = error
  if (cause instanceof StoreRefused && cause.answer !== undefined)
    return `A store refuses what is copied: ${cause.answer}.`
  const isAway = (check: (both: Both) => Promise<unknown>) =>
    (async () => check(bothIn(parts, row.zone)))().then(
      () => false,
      () => true,
    )
  if (await isAway(({ single }) => single.control.getTenant(tenantOf(row)))) return 'The single host does not answer.'
  if (await isAway(({ gateway }) => gateway.control.getTenant(tenantOf(row)))) return 'The gateway does not answer.'
  return 'A step of it did not come to its end, and is tried again.'
}

/** Problems end the move; any other answer of a store, or none, is retried. */
const orStoreAway = <Result>(work: Promise<Result>): Promise<Result> =>
  work.catch((error: unknown) => {
    if (error instanceof Problem || error instanceof Unavailable) throw error
    throw new Unavailable('the object storage', error)
  })
