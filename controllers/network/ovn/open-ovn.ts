/** The real OVN: rows of nouns in the northbound database, written as the difference to a copy that the database keeps
 *  current, and what nodes have installed, from the southbound database.
 *  One process writes a zone: it holds the zone's lock in the database, and each transaction asserts that. When anyone
 *  else changes a row that this process has written, the row is repaired at once; rows without our marks are left
 *  alone. */
import { Unavailable } from '../../../domain/problem.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { Outages } from '../../../kit/sys/outages.ts'
import { type CopiedChange, type CopiedRow, setMembers, type TableUpdates } from './copy.ts'
import { rowOperations, encodeBundle, type EncodedBundle, isSameRow, MARKS, rowOwnerOf } from './difference.ts'
import { openInstalled } from './installed.ts'
import { connectToLeader, type LeaderOptions } from './leader.ts'
import { ipv4Of, macOfPort } from './names.ts'
import type { Ovn } from './ovn.ts'
import { monitor, type OvsdbConnection, type OvsdbOperation, Refused } from './ovsdb.ts'
import { nameOfOwner, openOwnedRows, type OwnedRows } from './owned-rows.ts'
import { tableShape, TABLE_NAMES } from './row.ts'
import { openSequence } from './sequence.ts'
import { openWrittenAt } from './written-at.ts'

export interface OvnOptions {
  /** Remotes of the northbound database: one or several, separated by commas, each `unix:<path>`, `tcp:<host>:<port>`
   *  or `ssl:<host>:<port>`. */
  readonly northbound: string
  /** Remotes of the southbound database. When absent, it is not known what nodes have installed. */
  readonly southbound?: string
  /** For remotes of `ssl:`. */
  readonly readTls?: LeaderOptions['readTls']
  readonly clock: Clock
  readonly log: Logger
}

const DATABASE = 'OVN_Northbound'
/** Owners whose rows are written in one transaction: OVN needs the same time for many as for one. */
const OWNERS_PER_TRANSACTION_MAXIMUM = 200
/** Everything is compared again, even when the database has reported no change: some owners at a time, with pauses for
 *  other work of the process. */
const SWEEP_MILLISECONDS = 300_000
const OWNERS_PER_SWEEP_STEP = 50
const SWEEP_STEP_MILLISECONDS = 20
const RETRY_MILLISECONDS = 5_000
/** For how long the zone is left to another process that has taken its lock. */
const YIELD_MILLISECONDS = 10_000

/** Names of zones contain dashes, names of locks cannot. */
const lockOf = (zone: string): string => `svccloud_${zone.replaceAll('-', '_')}`
const othersWrite = (zone: string, cause?: unknown) =>
  new Unavailable(`the network of ${zone}, which another process writes,`, cause)

export function openOvn({ northbound, southbound, readTls, clock, log }: OvnOptions): Ovn {
  const installed = southbound === undefined ? undefined : openInstalled(southbound, { clock, readTls })
  const rows = openOwnedRows({
    onChange: (owner, change) => writer.judge(owner, change),
    onSequence: (at) => sequence.note(at),
  })
  const link = openLink({
    remotes: northbound,
    readTls,
    clock,
    rows,
    onEnd: () => clock.after(RETRY_MILLISECONDS, repairAll),
  })
  const sequence = openSequence({
    clock,
    raise: async (operations) => (await link.connected()).transact(DATABASE, operations),
  })
  const sequences = openWrittenAt()

  /** Answers the sequences at which the rows are written. Throws Refused, and Unavailable. */
  async function write(zone: string, bundles: readonly EncodedBundle[]): Promise<readonly number[]> {
    const opened = await link.zone(zone)
    const changed = bundles
      .map((bundle) => ({ bundle, operations: rowOperations(bundle, knownOf(rows, bundle)) }))
      .filter(({ operations }) => operations.length > 0)
      .toSorted((one, other) => one.bundle.needs.length - other.bundle.needs.length) // others may need their rows
    if (changed.length > 0) {
      const [only] = changed
      const operations = changed.flatMap((each) => each.operations)
      const raising = sequence.operations()
      await transact(opened, zone, [...operations, ...raising]).catch(async (error: unknown) => {
        if (changed.length > 1 || only === undefined || !(error instanceof Refused)) throw error
        await writeAgain(opened, only.bundle, { refusal: error, raising })
      })
      // The database reports the changes before its answer: the sequence is that of the transaction, or of a later one.
      const at = sequence.ofNow(raising.length > 0)
      for (const { bundle } of changed) sequences.note(bundle, at)
    }
    return bundles.map((bundle) => {
      const at = sequences.of(bundle) ?? sequence.ofNow(false)
      sequences.note(bundle, at)
      return at
    })
  }

  /** The rows may exist without their marks, or with those of another owner; they become ours again. */
  async function writeAgain(
    opened: OvsdbConnection,
    bundle: EncodedBundle,
    { refusal, raising }: { readonly refusal: Refused; readonly raising: ReturnType<typeof sequence.operations> },
  ): Promise<void> {
    if (refusal.reason !== 'duplicate uuid') throw refusal
    const found = await find(opened, bundle)
    await transact(opened, bundle.zone, [...rowOperations(bundle, knownOf(rows, bundle, found)), ...raising])
  }

  const writer = openWriter({
    clock,
    rows,
    ...noting(write, new Outages({ log, clock }, 'rows of the network were not put right')),
  })
  const repairAll = () => writer.repairAll()
  const sweep = () => clock.after(SWEEP_MILLISECONDS, () => void writer.sweep(link.hasZone).then(sweep))
  sweep()

  return {
    apply: (bundle) => writer.apply(encodeBundle(bundle)).then((at) => ({ sequence: at })),
    ...openReading(link, rows),
    installed: async (nodes) => installed?.by(nodes),
    close() {
      writer.close()
      link.close()
      installed?.close()
    },
  }
}

/** Reads from the copy, which is current by then. */
function openReading(
  link: Pick<ReturnType<typeof openLink>, 'zone'>,
  rows: OwnedRows,
): Pick<Ovn, 'addressesOf' | 'addressesIn' | 'forwardsTo' | 'ownersOfMac' | 'ownersIn'> {
  const addressesOf = (owner: Parameters<Ovn['addressesOf']>[0]) =>
    new Map(
      rows.of(nameOfOwner(owner)).flatMap(({ table, columns: { name, addresses } }) => {
        const address = table === 'Logical_Switch_Port' ? ipv4Of(setMembers(addresses)) : undefined
        return address === undefined ? [] : [[String(name), address] as const]
      }),
    )
  return {
    async addressesOf(owner) {
      await link.zone(owner.zone)
      return addressesOf(owner)
    },
    async addressesIn(zone) {
      await link.zone(zone)
      return new Set(rows.ownersIn(zone).flatMap((owner) => [...addressesOf({ zone, owner }).values()]))
    },
    async forwardsTo(owner) {
      await link.zone(owner.zone)
      return rows
        .of(nameOfOwner(owner))
        .flatMap(({ table, columns }) => (table === 'NAT' ? [String(columns['logical_ip'])] : []))
    },
    async ownersOfMac(zone, macAddress) {
      await link.zone(zone)
      return rows
        .ownersIn(zone)
        .filter((owner) =>
          rows
            .of(nameOfOwner({ zone, owner }))
            .some(
              ({ table, columns }) =>
                table === 'Logical_Switch_Port' && macOfPort(setMembers(columns['addresses'])) === macAddress,
            ),
        )
    },
    async ownersIn(zone) {
      await link.zone(zone)
      return rows.ownersIn(zone)
    },
  }
}

const knownOf = (rows: OwnedRows, bundle: EncodedBundle, found: ReadonlyMap<string, CopiedRow> = new Map()) => ({
  get: (uuid: string) => rows.get(uuid) ?? found.get(uuid),
  own: rows.of(nameOfOwner(bundle)),
})

const transact = (opened: OvsdbConnection, zone: string, operations: readonly OvsdbOperation[]) =>
  opened.transact(DATABASE, [{ op: 'assert', lock: lockOf(zone) }, ...operations])

/** The rows of the bundle in the database, whoever owns them. */
async function find(opened: OvsdbConnection, bundle: EncodedBundle): Promise<ReadonlyMap<string, CopiedRow>> {
  const wanted = [...bundle.rows.values()]
  const answers = await opened.transact(
    DATABASE,
    wanted.map(({ table, uuid }) => ({ op: 'select', table, where: [['_uuid', '==', ['uuid', uuid]]] })),
  )
  return new Map(
    wanted.flatMap(({ table, uuid }, index) =>
      (answers[index]?.rows ?? []).map(
        // As RFC 7047 says.
        (columns) => [uuid, { table, uuid, columns: columns as CopiedRow['columns'] }] as const,
      ),
    ),
  )
}

/** Takes the lock from whoever holds it: a process that no longer leads may not know that yet. */
async function openZone(opened: OvsdbConnection, zone: string, rows: OwnedRows): Promise<void> {
  await opened.call('steal', [lockOf(zone)])
  const where = [['external_ids', 'includes', ['map', [[MARKS.zone, zone]]]]]
  const requests = TABLE_NAMES.map((table) => [
    table,
    [{ columns: [...Object.keys(tableShape(table).columns), 'external_ids'], where }],
  ])
  await monitor(opened, { database: DATABASE, id: zone, requests: Object.fromEntries(requests) }, rows.take)
}

/** The connection to the northbound database, and the zones that are written and copied over it. */
function openLink({
  remotes,
  readTls,
  clock,
  rows,
  onEnd,
}: {
  readonly remotes: string
  readonly readTls: LeaderOptions['readTls']
  readonly clock: Clock
  readonly rows: OwnedRows
  readonly onEnd: () => void
}) {
  let connection: Promise<OvsdbConnection> | undefined
  let isClosed = false
  const zones = new Map<string, Promise<void>>()
  /** Until when a zone is left to another process, by its lock. */
  const lostUntil = new Map<string, number>()

  async function connect(): Promise<OvsdbConnection> {
    if (isClosed) throw new Unavailable("the network's database")
    const opened = await connectToLeader(remotes, DATABASE, {
      clock,
      readTls,
      onNotice(method, params) {
        if (method === 'update3') rows.take(params[2] as TableUpdates) // as ovsdb-server(7) says
        if (method === 'stolen') lostUntil.set(String(params[0]), clock.monotonicMilliseconds() + YIELD_MILLISECONDS)
      },
      onEnd() {
        connection = undefined
        zones.clear()
        onEnd()
      },
    })
    rows.clear()
    const requests = { NB_Global: [{ columns: ['nb_cfg'] }] }
    await monitor(opened, { database: DATABASE, id: 'sequence', requests }, rows.take)
    return opened
  }

  function connected(): Promise<OvsdbConnection> {
    connection ??= connect().catch((error: unknown) => {
      connection = undefined
      throw error
    })
    return connection
  }

  return {
    connected,
    hasZone: (zone: string) => zones.has(zone),
    /** The connection, with the zone's lock and its rows. */
    async zone(zone: string): Promise<OvsdbConnection> {
      const lock = lockOf(zone)
      if ((lostUntil.get(lock) ?? 0) > clock.monotonicMilliseconds()) throw othersWrite(zone)
      const opened = await connected()
      if (lostUntil.delete(lock)) await opened.call('steal', [lock])
      const opening = zones.get(zone) ?? openZone(opened, zone, rows)
      zones.set(zone, opening)
      await opening.catch((error: unknown) => {
        zones.delete(zone)
        throw error
      })
      return opened
    },
    close() {
      isClosed = true
      void connection?.then((opened) => opened.close()).catch(() => {})
    },
  }
}

interface Pending {
  readonly bundle: EncodedBundle
  readonly waiters: { readonly resolve: (sequence: number) => void; readonly reject: (error: unknown) => void }[]
}

type Write = (zone: string, bundles: readonly EncodedBundle[]) => Promise<readonly number[]>

/** Reports failed repairs, and their end once the rows are written. */
const noting = (write: Write, outages: Outages) => ({
  write: async (zone: string, bundles: readonly EncodedBundle[]): Promise<readonly number[]> => {
    const written = await write(zone, bundles)
    for (const bundle of bundles) outages.over(nameOfOwner(bundle))
    return written
  },
  failed: (bundle: EncodedBundle, error: unknown) =>
    outages.failed(error, { owner: bundle.owner }, nameOfOwner(bundle)),
})

/** Writes bundles, one transaction after the other, and repairs what was written. */
function openWriter({
  clock,
  rows,
  write,
  failed,
}: Pick<OvnOptions, 'clock'> & ReturnType<typeof noting> & { readonly rows: OwnedRows }) {
  const wanted = new Map<string, EncodedBundle>()
  const pending = new Map<string, Pending>()
  let isWriting = false
  let isClosed = false

  function enqueue(bundle: EncodedBundle, waiters: Pending['waiters']): void {
    if (isClosed) return
    const owner = nameOfOwner(bundle)
    pending.set(owner, { bundle, waiters: [...(pending.get(owner)?.waiters ?? []), ...waiters] })
    if (!isWriting) void writeAll()
  }
  const repair = (owner: string) => {
    const bundle = wanted.get(owner)
    if (bundle !== undefined && !pending.has(owner)) enqueue(bundle, [])
  }

  async function writeAll(): Promise<void> {
    isWriting = true
    while (pending.size > 0) {
      const batch = [...pending.entries()].slice(0, OWNERS_PER_TRANSACTION_MAXIMUM)
      for (const [owner] of batch) pending.delete(owner)
      const byZone = Map.groupBy(
        batch.map(([, each]) => each),
        ({ bundle }) => bundle.zone,
      )
      for (const [zone, ofZone] of byZone) await settle(ofZone, (bundles) => write(zone, bundles), refuse)
      // When nothing changed, nothing was awaited; other work of the process gets its turn here.
      if (pending.size > 0) await clock.sleep(0)
    }
    isWriting = false
  }

  function refuse({ bundle, waiters }: Pending, error: unknown): void {
    const reason = error instanceof Refused ? explain(bundle, error) : error
    for (const { reject } of waiters) reject(reason)
    if (waiters.length > 0) return
    failed(bundle, reason)
    clock.after(RETRY_MILLISECONDS, () => repair(nameOfOwner(bundle)))
  }

  return {
    apply: (bundle: EncodedBundle) =>
      new Promise<number>((resolve, reject) => {
        const owner = nameOfOwner(bundle)
        if (bundle.rows.size === 0) wanted.delete(owner)
        else wanted.set(owner, bundle)
        enqueue(bundle, [{ resolve, reject }])
      }),
    /** A row that differs from what was written is written again. */
    judge(owner: string, { uuid, after }: CopiedChange): void {
      const row = wanted.get(owner)?.rows.get(uuid)
      const isOwn = after !== undefined && nameOfOwner(rowOwnerOf(after)) === owner
      if (row === undefined ? isOwn : !isSameRow(row, after)) repair(owner)
    },
    repairAll: () => [...wanted.keys()].forEach(repair),
    sweep: (isOpen: (zone: string) => boolean) =>
      inSteps(clock, [...wanted.keys()], (owner) => {
        const bundle = wanted.get(owner)
        if (bundle === undefined || isClosed || !isOpen(bundle.zone)) return
        if (rowOperations(bundle, knownOf(rows, bundle)).length > 0) repair(owner)
      }),
    close() {
      isClosed = true
    },
  }
}

async function inSteps(clock: Clock, owners: readonly string[], work: (owner: string) => void): Promise<void> {
  for (let start = 0; start < owners.length; start += OWNERS_PER_SWEEP_STEP) {
    owners.slice(start, start + OWNERS_PER_SWEEP_STEP).forEach(work)
    await new Promise<void>((resolve) => clock.after(SWEEP_STEP_MILLISECONDS, resolve))
  }
}

/** A refused bundle does not block the others. */
async function settle(
  batch: readonly Pending[],
  write: (bundles: readonly EncodedBundle[]) => Promise<readonly number[]>,
  refuse: (pending: Pending, error: unknown) => void,
): Promise<void> {
  try {
    const written = await write(batch.map(({ bundle }) => bundle))
    for (const [index, { waiters }] of batch.entries()) for (const { resolve } of waiters) resolve(written[index] ?? 0)
  } catch (error) {
    if (error instanceof Refused && batch.length > 1) for (const each of batch) await settle([each], write, refuse)
    else for (const each of batch) refuse(each, error)
  }
}

/** The refusal of the database, in terms of the caller. */
function explain({ zone, owner, needs }: EncodedBundle, refusal: Refused): Error {
  if (refusal.reason === 'not owner') return othersWrite(zone, refusal)
  return refusal.reason === 'timed out' && needs.length > 0
    ? new Unavailable(`what ${owner} needs of the network`, refusal)
    : refusal
}
