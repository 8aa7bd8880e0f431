/** The network's database of a simulated world, and the nodes that install what it has. Processes of the controllers
 *  write to it as the real driver does: one after the other, holding the lock of a zone. What they ask for can be late,
 *  get lost, be carried out without an answer, and be said again, as after a connection that ended; a process that died
 *  has asked for it nevertheless. */
import { Unavailable } from '../../domain/problem.ts'
import type { Bundle, Ovn } from '../../controllers/network/ovn/ovn.ts'
import type { Row } from '../../controllers/network/ovn/row.ts'
import { openSimulatedOvn } from '../../controllers/network/ovn/simulated-ovn.ts'
import { NODES } from './catalog.ts'
import type { Scheduler, SimulatedProcess } from './scheduler.ts'

/** As `<zone> <owner>`. */
export type OwnedRows = ReadonlyMap<string, readonly Row[]>

export interface NetworkDatabase {
  readonly owners: OwnedRows
  /** What the node has installed. */
  installedOn(node: string): OwnedRows
  /** As a process of the controllers reaches it, which has just begun. */
  attach(process: SimulatedProcess): Ovn
}

/** Without one of them a world must break an invariant. */
export const NETWORK_DEFENCES = [
  /** Rows are removed when that is answered. */
  'network_order',
  /** What nodes have installed is what they say. */
  'network_truth',
] as const

interface Options {
  readonly scheduler: Scheduler
  readonly isCalm: () => boolean
  /** Nothing reaches the node. */
  readonly isLost: (node: string) => boolean
  /** Called after every write. */
  readonly onWrite: (owners: OwnedRows) => void
  readonly without: string | undefined
}

/** What becomes of what is asked for, and how often at most. */
const FAULTS = [
  ['late', 0.05],
  ['lost', 0.1],
  ['unanswered', 0.1],
] as const
const ANSWER_MILLISECONDS_MAXIMUM = 30
const LATE_MILLISECONDS = { least: 500, most: 12_000 }
const INSTALL_MILLISECONDS = { least: 20, most: 2_500 }
/** As in the real one. */
const YIELD_MILLISECONDS = 10_000
const TIMEOUT_MILLISECONDS = 20_000
/** By how much the network answers before it has done what it was asked for, where it does. */
const EARLY_MILLISECONDS = 120_000
const AGAIN_MILLISECONDS = { least: 5_000, most: 40_000 }

export function newNetworkDatabase({ scheduler, isCalm, isLost, onWrite, without }: Options): NetworkDatabase {
  const { random } = scheduler
  const between = ({ least, most }: { readonly least: number; readonly most: number }) =>
    least + random.fraction() * (most - least)
  const rates = FAULTS.map(([name, strongest]) => [name, strongest * random.fraction()] as const)
  const faultOf = () => (isCalm() ? undefined : rates.find(([, rate]) => random.fraction() < rate)?.[0])
  const database = openSimulatedOvn()
  /** Who writes a zone: a life of a process. */
  const holders = new Map<string, object>()
  const nodes = new Map<string, { sequence: number; owners: OwnedRows }>(
    NODES.map(({ name }) => [name, { sequence: 0, owners: new Map() }]),
  )

  function install(): void {
    for (const [name, node] of nodes)
      scheduler.after(between(INSTALL_MILLISECONDS), () => {
        if (!isLost(name)) Object.assign(node, { sequence: database.sequence, owners: new Map(database.owners) })
      })
  }
  // Nodes that were lost learn of everything when they are back.
  void scheduler.repeat(
    { least: 4_000, most: 6_000 },
    () => false,
    async () => install(),
  )

  async function write(bundle: Bundle): Promise<number> {
    const before = database.sequence
    const { sequence } = await database.apply(bundle)
    if (database.sequence !== before) {
      scheduler.note(`network ${bundle.owner.split('/')[0]} ${bundle.rows.length}`)
      onWrite(database.owners)
      install()
    }
    return sequence
  }

  function attach(process: SimulatedProcess): Ovn {
    const life = {}
    const epoch = process.epoch
    const wanted = new Map<string, Bundle>()
    const lostAt = new Map<string, number>()
    let queue: Promise<unknown> = Promise.resolve()

    function hold(zone: string): void {
      const holder = holders.get(zone)
      if (holder === life) return
      const known = lostAt.get(zone)
      if (known === undefined && hasHeld.has(zone)) lostAt.set(zone, scheduler.nowMilliseconds)
      if (scheduler.nowMilliseconds - (lostAt.get(zone) ?? -YIELD_MILLISECONDS) < YIELD_MILLISECONDS)
        throw new Unavailable(`the network of ${zone}, which another process writes,`)
      lostAt.delete(zone)
      hasHeld.add(zone)
      holders.set(zone, life)
    }
    const hasHeld = new Set<string>()

    /** On its way the process may die, and the message goes on. */
    async function send(bundle: Bundle): Promise<number> {
      const fault = faultOf()
      if (process.isAlive(epoch)) hold(bundle.zone)
      await scheduler.pause(fault === 'late' ? between(LATE_MILLISECONDS) : random.fraction() * answerMaximum())
      if (fault === 'lost') throw new Unavailable('the network')
      if (holders.get(bundle.zone) !== life)
        throw new Unavailable(`the network of ${bundle.zone}, which another process writes,`)
      const sequence = await write(bundle)
      if (fault === 'unanswered') throw new Unavailable('the network')
      return sequence
    }
    const answerMaximum = () => (isCalm() ? 1 : ANSWER_MILLISECONDS_MAXIMUM)

    function apply(bundle: Bundle): Promise<number> {
      const name = `${bundle.zone} ${bundle.owner}`
      if (bundle.rows.length === 0) wanted.delete(name)
      else wanted.set(name, bundle)
      if (without === 'network_order' && bundle.rows.length === 0) {
        scheduler.after(EARLY_MILLISECONDS, () => void send(bundle).catch(() => {}))
        return Promise.resolve(database.sequence)
      }
      const sent = queue.then(() => send(bundle))
      queue = sent.catch(() => {})
      return sent
    }
    const sayAgain = () =>
      scheduler.after(between(AGAIN_MILLISECONDS), () => {
        if (!process.isAlive(epoch)) return
        if (!isCalm()) for (const bundle of wanted.values()) void apply(bundle).catch(() => {})
        sayAgain()
      })
    sayAgain()

    const read = async <T>(answer: () => Promise<T>): Promise<T> => {
      await scheduler.pause(random.fraction() * answerMaximum())
      return answer()
    }
    return process.boundTo<Ovn>({
      apply: async (bundle) => ({ sequence: await withTimeout(scheduler, apply(bundle)) }),
      addressesOf: (owner) => read(() => database.addressesOf(owner)),
      addressesIn: (zone) => read(() => database.addressesIn(zone)),
      forwardsTo: (owner) => read(() => database.forwardsTo(owner)),
      ownersOfMac: (zone, macAddress) => read(() => database.ownersOfMac(zone, macAddress)),
      ownersIn: (zone) => read(() => database.ownersIn(zone)),
      installed: (names) =>
        read(async () =>
          without === 'network_truth'
            ? database.sequence
            : Math.min(database.sequence, ...names.map((name) => nodes.get(name)?.sequence ?? 0)),
        ),
      close() {},
    })
  }
  return { owners: database.owners, installedOn: (node) => nodes.get(node)?.owners ?? new Map(), attach }
}

const withTimeout = <T>(scheduler: Scheduler, answer: Promise<T>): Promise<T> =>
  Promise.race([
    answer,
    scheduler.pause(TIMEOUT_MILLISECONDS).then(() => Promise.reject(new Unavailable('the network'))),
  ])
