/** A simulated OVN: rows in memory, and chassis that install what is written, unless a test holds them. It can be
 *  unavailable, and lose a request or only its answer; nodes can lag behind. */
import { Unavailable } from '../../../domain/problem.ts'
import { ipv4Of, macOfPort } from './names.ts'
import type { Bundle, Ovn } from './ovn.ts'
import { referredBy } from './difference.ts'
import { type Row, rowId, type RowRef } from './row.ts'

export interface SimulatedOvn extends Ovn {
  /** Every row of the existing owners, by zone and owner, as in `z1 Network/<uid>`. */
  readonly owners: ReadonlyMap<string, readonly Row[]>
  /** The sequence that was written last. */
  readonly sequence: number
  /** The outcome of the next calls of apply: `lost`: nothing is written; `unanswered`: it is written, but the caller
   *  gets no answer. */
  fail(...how: readonly ('lost' | 'unanswered')[]): void
  /** `hold`: nodes install nothing new from now on; `release`: they install everything again. */
  hold(...nodes: readonly string[]): void
  release(...nodes: readonly string[]): void
}

/** Rows that other rows need must exist first, as in the real one. */
export function openSimulatedOvn(): SimulatedOvn {
  const owners = new Map<string, readonly Row[]>()
  const written = new Map<string, { readonly text: string; readonly sequence: number }>()
  const held = new Map<string, number>()
  const failures: ('lost' | 'unanswered')[] = []
  let sequence = 0

  const exists = (zone: string, wanted: RowRef) =>
    [...owners].some(
      ([name, rows]) =>
        name.startsWith(`${zone} `) && rows.some(({ table, key }) => table === wanted.table && key === wanted.key),
    )

  function write({ zone, owner, rows }: Bundle): number {
    const name = `${zone} ${owner}`
    const text = JSON.stringify(rows)
    const last = written.get(name)
    if (last?.text === text) return last.sequence
    const own = new Set(rows.map((row) => rowId(zone, row)))
    const missing = rows.flatMap(referredBy).find((row) => !own.has(rowId(zone, row)) && !exists(zone, row))
    if (missing !== undefined) throw new Unavailable(`${missing.table} ${missing.key}`)
    sequence++
    written.set(name, { text, sequence })
    if (rows.length === 0) owners.delete(name)
    else owners.set(name, rows)
    return sequence
  }

  const addressesOf = (name: string) =>
    new Map(
      (owners.get(name) ?? []).flatMap(({ table, columns }) => {
        const address = table === 'Logical_Switch_Port' ? ipv4Of(columns['addresses']) : undefined
        return address === undefined ? [] : [[String(columns['name']), address] as const]
      }),
    )
  const ownersIn = (zone: string) =>
    [...owners.keys()].flatMap((name) => (name.startsWith(`${zone} `) ? [name.slice(zone.length + 1)] : []))

  return {
    owners,
    get sequence() {
      return sequence
    },
    async apply(bundle) {
      const failure = failures.shift()
      if (failure === 'lost') throw new Unavailable('the network')
      const at = write(bundle)
      if (failure === 'unanswered') throw new Unavailable('the network')
      return { sequence: at }
    },
    addressesOf: async ({ zone, owner }) => addressesOf(`${zone} ${owner}`),
    addressesIn: async (zone) =>
      new Set(ownersIn(zone).flatMap((owner) => [...addressesOf(`${zone} ${owner}`).values()])),
    forwardsTo: async ({ zone, owner }) => forwardsOf(owners.get(`${zone} ${owner}`) ?? []),
    ownersOfMac: async (zone, macAddress) =>
      ownersIn(zone).filter((owner) =>
        owners
          .get(`${zone} ${owner}`)
          ?.some(
            ({ table, columns }) => table === 'Logical_Switch_Port' && macOfPort(columns['addresses']) === macAddress,
          ),
      ),
    ownersIn: async (zone) => ownersIn(zone),
    async installed(nodes) {
      return Math.min(sequence, ...nodes.map((node) => held.get(node) ?? sequence))
    },
    fail: (...how) => void failures.push(...how),
    hold: (...nodes) => nodes.forEach((node) => held.set(node, sequence)),
    release: (...nodes) => nodes.forEach((node) => held.delete(node)),
    close() {},
  }
}

const forwardsOf = (rows: readonly Row[]): readonly string[] =>
  rows.flatMap(({ table, columns }) => (table === 'NAT' ? [String(columns['logical_ip'])] : []))
