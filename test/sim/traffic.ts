/** What guests move while everything is shaken. Each process of a guest counts from nothing on; whoever adds its
 *  readings up must neither lose what was read nor add it twice. */
import type { Hypervisor } from '../../agents/node/drivers/hypervisor/hypervisor.ts'
import type { Database } from '../../db/kit/open.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Host } from './hosts.ts'

export interface Traffic {
  /** The hypervisor of the host, whose guests receive a byte a millisecond from when they are first looked at, and send
   *  two. */
  counted(host: string, hypervisor: Hypervisor): Hypervisor
  /** The most that was ever read, in bytes received, by process. */
  readonly read: ReadonlyMap<string, number>
}

/** Readings are fetched every twenty seconds, and has readings of ten seconds ago at most. */
const UNCOUNTED_MILLISECONDS_MAXIMUM = 60_000

export function newTraffic(clock: Clock): Traffic {
  const begun = new Map<string, number>()
  const read = new Map<string, number>()
  return {
    read,
    counted: (host, hypervisor) => ({
      ...hypervisor,
      async counters(name) {
        const [guest, counters] = [await hypervisor.inspect(name), await hypervisor.counters(name)]
        if (guest === undefined || counters === undefined) return counters
        const [process, now] = [processOf(host, guest), clock.now().getTime()]
        begun.set(process, begun.get(process) ?? now)
        const received = now - (begun.get(process) ?? now)
        read.set(process, Math.max(received, read.get(process) ?? 0))
        return { ...counters, networkReceivedBytes: received, networkTransmittedBytes: 2 * received }
      },
    }),
  }
}

const processOf = (
  host: string,
  { uid, incarnation, startedAt }: { readonly uid: string; readonly incarnation: number; readonly startedAt: string },
): string => `${host}/${uid}/${incarnation}/${startedAt}`

/** What is counted for accounts is the sum of what was read of their guests, each once; of guests that run now hardly
 *  anything is missing. */
export async function checkTraffic(
  { traffic, hosts }: { readonly traffic: Traffic; readonly hosts: readonly Host[] },
  db: Database,
): Promise<string[]> {
  const violations: string[] = []
  const readings = new Map(
    (await db.selectFrom('usage_reading').select(['epoch', 'network_received_bytes']).execute()).map((row) => [
      row.epoch,
      row.network_received_bytes,
    ]),
  )
  for (const [process, received] of readings) {
    const most = traffic.read.get(process)
    if (most === undefined || received > most)
      violations.push(`${received} bytes are counted of ${process}, which received ${most}`)
  }
  const counted = await db
    .selectFrom('network_transfer')
    .select(({ fn }) => [
      fn.sum<number>('received_bytes').as('received'),
      fn.sum<number>('transmitted_bytes').as('sent'),
    ])
    .executeTakeFirstOrThrow()
  const received = [...readings.values()].reduce((sum, bytes) => sum + bytes, 0)
  if (Number(counted.received) !== received || Number(counted.sent) !== 2 * received)
    violations.push(
      `${counted.received} bytes received and ${counted.sent} sent are counted for accounts, and ${received} were read`,
    )
  for (const { name, machine } of hosts) {
    for (const guest of machine.running()) {
      const [count, most] = [readings.get(processOf(name, guest)) ?? 0, traffic.read.get(processOf(name, guest)) ?? 0]
      if (count < most - UNCOUNTED_MILLISECONDS_MAXIMUM)
        violations.push(`guest ${guest.name} on ${name} has received ${most} bytes, and ${count} are counted`)
    }
  }
  return violations
}
