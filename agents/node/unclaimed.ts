/** Finds guests, disks and images on the host that no object names. They remain when objects were removed past their
 *  finalizer, or when Kubernetes was restored to an older state. They are reported and stay: a guest continues to run,
 *  a disk and an image keep their bytes. Only records without either are removed: the record of a guest that has ended,
 *  and that of a disk on shared storage that no guest of this host has. A host that was fenced returns with many of
 *  them. */
import { defined } from '../../domain/defined.ts'
import { forgettableBefore } from '../../domain/store-age.ts'
import type { ResourceType } from '../../kit/kube/object.ts'
import { isNotFound } from '../../kit/kube/store.ts'
import { Gauge, type Registry } from '../../kit/sys/metrics.ts'
import { Outages } from '../../kit/sys/outages.ts'
import {
  Image,
  Instance,
  NODE_REPORT_NAME,
  NodeReport,
  type NodeReportStatus,
  UNCLAIMED_NAMED_MAXIMUM,
  Volume,
} from '../../resources/instance/index.ts'
import { hasGuestEnded } from './drivers/hypervisor/hypervisor.ts'
import { guestOf } from './instance/guest-definition.ts'
import { KeyedMutex } from '../../kit/sys/mutex.ts'
import type { Ledger } from './ledger.ts'
import type { Usage } from './usage.ts'
import { isCurrent } from './volume/bytes.ts'
import { releaseUnused, type VolumeOptions } from './volume/effects.ts'

export interface HoldingsOptions extends VolumeOptions {
  readonly ledger: Ledger
  readonly usage: Pick<Usage, 'takeReading'>
  readonly registry: Registry
}

const LOOK_MILLISECONDS = 15_000
/** Interval at which an unchanged report is written again. The report of an empty host is written after each look,
 *  because the removal of a node waits for a new one. */
const REPORT_MILLISECONDS = 60_000
/** Time between the two lists that must agree that no object names something. */
const UNCLAIMED_MILLISECONDS = 600_000

type HeldNames = NonNullable<NodeReportStatus['held']>
type UnclaimedNames = NonNullable<NodeReportStatus['unclaimed']>
type Kind = UnclaimedNames[number]['kind']
const KINDS: Readonly<Record<Kind, ResourceType>> = { Instance, Volume, Image }

interface Missing {
  readonly kind: Kind
  readonly name: string
  /** When a list first lacked it: the time of the wall clock, for people, and of the monotonic clock. */
  readonly since: string
  readonly sinceMilliseconds: number
  /** A second list has confirmed it. */
  isUnclaimed: boolean
}

export interface Holdings {
  /** Reports what the host holds now, without guests that are reported as removed. Throws errors of the store. */
  reportNow(): Promise<void>
  /** Looks at once and then every LOOK_MILLISECONDS, until the signal aborts. The caches must be ready. */
  run(signal: AbortSignal): Promise<void>
}

export function openHoldings(options: HoldingsOptions): Holdings {
  const { store, namespace, clock, log, registry } = options
  const missing = new Map<string, Missing>()
  const gauge = new Gauge({
    name: 'svccloud_node_unclaimed',
    help: 'What is on this host and no object names, by the kind of object that is missing',
    labelNames: ['kind'],
    registers: [registry],
  })
  let reported = { text: '', atMilliseconds: Number.NEGATIVE_INFINITY }

  async function report(held: HeldNames, found: Pick<NodeReportStatus, 'unclaimed' | 'unnamed'>): Promise<void> {
    const text = JSON.stringify([held, found])
    const now = clock.monotonicMilliseconds()
    const isEmpty = Object.values(held).every((count) => count === 0)
    if (!isEmpty && text === reported.text && now - reported.atMilliseconds < REPORT_MILLISECONDS) return
    const status: NodeReportStatus = { held, heldAt: clock.now().toISOString(), ...found }
    try {
      await store.patch(NodeReport, { namespace, name: NODE_REPORT_NAME }, { status }, 'status')
    } catch (error) {
      if (!isNotFound(error)) throw error
      return // the next heartbeat creates it
    }
    reported = { text, atMilliseconds: now }
  }

  /** One at a time, so that an older count never replaces a newer one. */
  const turns = new KeyedMutex()
  const findUnclaimed = () => [...missing.values()].filter(({ isUnclaimed }) => isUnclaimed)
  const reportOf = async (names: Names, unclaimed: readonly Missing[]) =>
    report(
      {
        guests: names.Instance.length,
        volumes: names.Volume.length,
        images: names.Image.length,
        unclaimed: unclaimed.length,
      },
      {
        unclaimed: unclaimed.slice(0, UNCLAIMED_NAMED_MAXIMUM).map(({ kind, name, since }) => ({
          kind,
          name,
          since,
          ...(kind === 'Volume' && isCurrent(options.ledger, name) ? { isCurrent: true } : {}),
        })),
        unnamed: await unnamedGuests(options, [...missing.values()]),
      },
    )

  async function look(): Promise<void> {
    const names = await namesOn(options)
    noteGuests(options, names.Instance)
    await compare(options, names, missing)
    const unclaimed = findUnclaimed()
    for (const { kind, name } of unclaimed)
      if (kind !== 'Image')
        await PUT_AWAY[kind](options, name).catch((error: unknown) =>
          log.info('a record without an object is not put away yet', { kind, name, error }),
        )
    for (const kind of Object.keys(KINDS)) gauge.set({ kind }, unclaimed.filter((one) => one.kind === kind).length)
    await reportOf(names, unclaimed)
    options.ledger.pruneRemoved(forgettableBefore(clock.now()))
  }

  return {
    reportNow: () => turns.run('', async () => reportOf(await namesOn(options), findUnclaimed())),
    async run(signal) {
      const outages = new Outages({ log, clock }, 'what the host holds was not looked at')
      while (!signal.aborted) {
        await outages.attempt(() => turns.run('', look))
        await clock.sleep(LOOK_MILLISECONDS, signal)
      }
    },
  }
}

/** Guests whose resources nobody else knows. Guests that have ended use none, and are not started here again. */
async function unnamedGuests(
  { ledger, hypervisor, volumes }: HoldingsOptions,
  missing: readonly Missing[],
): Promise<NonNullable<NodeReportStatus['unnamed']>> {
  const names = new Set(missing.filter(({ kind }) => kind === 'Instance').map(({ name }) => name))
  if (names.size === 0) return []
  const disks = new Map((await volumes.list()).map(({ name, sizeGibibytes }) => [name, sizeGibibytes]))
  const there = (await hypervisor.list()).filter((guest) => names.has(guest.name) && !hasGuestEnded(guest))
  return there
    .slice(0, UNCLAIMED_NAMED_MAXIMUM)
    .map(({ name }) => {
      const { guest, volumes: own = [] } = ledger.get(name) ?? {}
      const storageGibibytes = own.reduce((sum, volume) => sum + (disks.get(volume) ?? 0), 0)
      const { server, cores = 0, memoryMebibytes = 0 } = guest ?? {}
      return { name, ...defined({ server }), cores, memoryMebibytes, storageGibibytes }
    })
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

type Names = Readonly<Record<Kind, readonly string[]>>

const namesOn = async ({ hypervisor, volumes, customImages }: HoldingsOptions): Promise<Names> => ({
  Instance: (await hypervisor.list()).map(({ name }) => name),
  Volume: (await volumes.list()).map(({ name }) => name),
  Image: await customImages.names(),
})

/** Agents of earlier versions recorded neither the owner of guests nor their resources. */
function noteGuests({ ledger, caches, namespace }: HoldingsOptions, names: readonly string[]): void {
  for (const name of names) {
    const [entry, spec] = [ledger.get(name), caches.of(Instance).get({ namespace, name })?.spec]
    if (entry !== undefined && entry.guest === undefined && spec !== undefined)
      ledger.put(name, { ...entry, guest: guestOf(spec) })
  }
}

/** Updates `missing` to the things on the host that no object names. If a possibly stale cache has an object, that is
 *  enough. If it has none, a fresh list decides. */
async function compare(options: HoldingsOptions, names: Names, missing: Map<string, Missing>): Promise<void> {
  const { store, caches, namespace, clock } = options
  // the keys are kinds
  for (const [kind, type] of Object.entries(KINDS) as [Kind, ResourceType][]) {
    const unknown = names[kind].filter((name) => caches.of(type).get({ namespace, name }) === undefined)
    for (const one of missing.values())
      if (one.kind === kind && !unknown.includes(one.name)) missing.delete(`${kind}/${one.name}`)
    const now = clock.monotonicMilliseconds()
    const due = unknown.filter((name) => {
      const known = missing.get(`${kind}/${name}`)
      return known === undefined || (!known.isUnclaimed && now - known.sinceMilliseconds >= UNCLAIMED_MILLISECONDS)
    })
    if (due.length === 0) continue
    const objects = new Set((await store.list(type, { namespace })).items.map(({ metadata }) => metadata.name))
    for (const name of due) note(options, missing, { kind, name, isThere: objects.has(name) })
  }
}

/** Handles the result of a fresh list for one name. */
function note(
  { clock, log }: HoldingsOptions,
  missing: Map<string, Missing>,
  { kind, name, isThere }: { readonly kind: Kind; readonly name: string; readonly isThere: boolean },
): void {
  const key = `${kind}/${name}`
  const known = missing.get(key)
  if (isThere) missing.delete(key)
  else if (known === undefined) {
    const [since, sinceMilliseconds] = [clock.now().toISOString(), clock.monotonicMilliseconds()]
    missing.set(key, { kind, name, since, sinceMilliseconds, isUnclaimed: false })
  } else {
    known.isUnclaimed = true
    log.warn('on this host and named by no object; it stays', { kind, name, since: known.since })
  }
}

/** Removes records without a guest or data; leaves everything else. */
const PUT_AWAY: Readonly<Record<Exclude<Kind, 'Image'>, (options: HoldingsOptions, name: string) => Promise<void>>> = {
  async Instance({ hypervisor, ledger, usage, clock, log }, name) {
    const [guest, entry] = [await hypervisor.inspect(name), ledger.get(name)]
    if (guest === undefined || !hasGuestEnded(guest)) return
    // The ledger keeps the start, so that no older object starts it again.
    if (entry !== undefined && entry.ended === undefined) {
      const reason = guest.state === 'off' ? 'guest_shutdown' : 'crashed'
      ledger.put(name, { ...entry, ended: { at: clock.now().toISOString(), reason } })
    }
    await usage.takeReading(name)
    await hypervisor.forget(name)
    log.info('record of an ended guest without an Instance put away', { instance: name })
  },
  async Volume(options, name) {
    const { volumes, log } = options
    const known = (await volumes.list()).find((one) => one.name === name)
    if (known?.pool === undefined) return
    await releaseUnused(options, name)
    log.info('record of a disk on shared storage without a Volume put away; the disk stays', { volume: name })
  },
}
