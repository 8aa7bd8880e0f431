/** Access to the storage of a Ceph cluster, through the program `ceph`: a host is served no more while its addresses
 *  are on the cluster's blocklist. The monitors agree on that list; every daemon that stores data refuses a blocked
 *  client from the first request on by which it learns of the list, and whoever reads or writes afterwards brings it
 *  along. So nobody who begins after the answer can be overtaken by the blocked host. */
import { isIP } from 'node:net'
import { z } from 'zod'
import type { Clock } from '../../kit/sys/clock.ts'
import { openCephProgram } from '../ceph/program.ts'
import { type StorageAccess, StorageAccessFailed, type StorageLogin } from './storage-access.ts'

export interface CephOptions extends StorageLogin {
  /** From which the host reaches the cluster, IPv4 or IPv6. */
  readonly addresses: readonly string[]
  readonly clock: Clock
  /** The program, when it is not `ceph` on the path. */
  readonly program?: string
}

/** Ten years. By default an entry ends after an hour, and a host that was only cut off would write again. */
const EXPIRY_SECONDS = 315_360_000
/** An entry that ends sooner is none of ours. */
const EXPIRY_LEFT_SECONDS_MINIMUM = EXPIRY_SECONDS / 2
const RANGE = /^(?:cidr:)?(?:\[([0-9a-f:.]+)\]|([0-9.]+)):0\/(\d+)$/i

/** Of `osd blocklist ls`: clients and ranges. */
const Entries = z.array(z.looseObject({ range: z.string().optional(), until: z.string() }))

/** Throws StorageAccessFailed when what it is given cannot be used. */
export function openCeph({ addresses, clock, program, ...login }: CephOptions): StorageAccess {
  const run = openCephProgram(login, program)
  const wanted = addresses.map(rangeOf)
  if (wanted.length === 0) throw new StorageAccessFailed('The node names no address from which it reaches the storage.')
  const blocklist = (...command: readonly string[]) => run('osd', 'blocklist', ...command)

  /** Of what is wanted, the ranges that are listed, and whether for long enough. */
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
        // An entry that is there keeps its end whatever is added.
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

/** The range of one host, as Ceph takes it. */
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

/** Clients and ranges come as two lists, one right after the other. */
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
