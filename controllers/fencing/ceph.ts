/** Access to the storage of a Ceph cluster, through the program `ceph`: a host has no access while its addresses are on
 *  the cluster's blocklist. The monitors agree on that list. Every daemon that stores data refuses a blocked client
 *  from the first request that carries the new list, and every client that reads or writes afterwards carries it. So no
 *  client that starts after the answer can be overtaken by a write of the blocked host. */
import { isIP } from 'node:net'
import { z } from 'zod'
import type { Clock } from '../../kit/sys/clock.ts'
import { openCephProgram } from '../ceph/program.ts'
import { type StorageAccess, StorageAccessFailed, type StorageLogin } from './storage-access.ts'

export interface CephOptions extends StorageLogin {
  /** Addresses from which the host reaches the cluster, IPv4 or IPv6. */
  readonly addresses: readonly string[]
  readonly clock: Clock
  /** The program, when it is not `ceph` on the path. */
  readonly program?: string
}

/** Ten years. By default an entry expires after an hour, and a host that was only cut off would write again. */
const EXPIRY_SECONDS = 315_360_000
/** An entry that expires sooner is not one of ours. */
const EXPIRY_LEFT_SECONDS_MINIMUM = EXPIRY_SECONDS / 2
const RANGE = /^(?:cidr:)?(?:\[([0-9a-f:.]+)\]|([0-9.]+)):0\/(\d+)$/i

/** The answer of `osd blocklist ls`: clients and ranges. */
const Entries = z.array(z.looseObject({ range: z.string().optional(), until: z.string() }))

/** Throws StorageAccessFailed when the options cannot be used. */
export function openCeph({ addresses, clock, program, ...login }: CephOptions): StorageAccess {
  const run = openCephProgram(login, program)
  const wanted = addresses.map(rangeOf)
  if (wanted.length === 0) throw new StorageAccessFailed('The node names no address from which it reaches the storage.')
  const blocklist = (...command: readonly string[]) => run('osd', 'blocklist', ...command)

  /** Those of the wanted ranges that are listed, and whether each is listed for long enough. */
  async function listed(): Promise<ReadonlyMap<string, boolean>> {
    const leastMilliseconds = clock.now().getTime() + EXPIRY_LEFT_SECONDS_MINIMUM * 1_000
    const entries = parse(await blocklist('ls', '--format', 'json')).flatMap(({ range, until }) =>
      canonicalRange(range).map((name) => [name, Date.parse(until) >= leastMilliseconds] as const),
    )
    return new Map(entries.filter(([name]) => wanted.includes(name)))
  }

  return {
    async take() {
      const before = await listed()
      for (const range of wanted.filter((name) => before.get(name) !== true)) {
        // Adding a range again does not change the expiry of an entry that exists.
        if (before.has(range)) await blocklist('range', 'rm', range)
        await blocklist('range', 'add', range, String(EXPIRY_SECONDS))
      }
      const after = await listed()
      const missing = wanted.filter((range) => after.get(range) !== true)
      if (missing.length > 0)
        throw new StorageAccessFailed(`The storage does not list ${missing.join(' and ')} as blocked.`)
    },
    async giveBack() {
      for (const range of wanted) await blocklist('range', 'rm', range)
    },
  }
}

/** The range of one host, in Ceph's notation. */
function rangeOf(address: string): string {
  const family = isIP(address)
  if (family === 0) throw new StorageAccessFailed(`${address} is no address.`)
  return `${canonical(address)}/${family === 4 ? 32 : 128}`
}

const canonical = (address: string): string =>
  isIP(address) === 6 ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address

function canonicalRange(range = ''): readonly string[] {
  const [, ipv6, ipv4, prefix] = RANGE.exec(range) ?? []
  const address = ipv6 ?? ipv4
  return address === undefined || isIP(address) === 0 ? [] : [`${canonical(address)}/${prefix}`]
}

/** Clients and ranges are printed as two lists, one right after the other. */
function parse(text: string): z.infer<typeof Entries> {
  try {
    return text
      .trim()
      .split(/(?<=\])\s*(?=\[)/)
      .flatMap((list) => Entries.parse(JSON.parse(list)))
  } catch (error) {
    throw new StorageAccessFailed('The storage answers with something that is no blocklist.', { cause: error })
  }
}
