/** Resource usage of a guest since its process started. QEMU counts the disks, the host counts the network. */
import { join } from 'node:path'
import { z } from 'zod'
import { defined } from '../../../../domain/defined.ts'
import { processCpuMilliseconds } from '../../host.ts'
import { type GuestNetwork, isOvn, tapTraffic } from '../network/ovn.ts'
import { countFrames, type Traffic } from '../network/traffic-log.ts'
import { trafficFiles } from '../network/user-mode.ts'
import { readGuestRecord } from './guest-record.ts'
import type { GuestCounters } from './hypervisor.ts'
import { indexOf } from './qemu-interfaces.ts'
import type { Qmp } from './qmp.ts'

interface BlockStatistics {
  readonly stats: {
    readonly rd_bytes: number
    readonly wr_bytes: number
    readonly rd_operations: number
    readonly wr_operations: number
  }
}

const BALLOON = { path: '/machine/peripheral/balloon' }
const POLL_SECONDS = 10
/** After more time the guest has stopped to report. */
const STALE_SECONDS = 60

/** Numbers of the guest, which it chooses: more than its memory, or -1, mean nothing. */
const GuestStatistics = z.object({
  'last-update': z.number(),
  stats: z.object({ 'stat-total-memory': z.number(), 'stat-available-memory': z.number() }),
})
const MemorySize = z.object({ 'base-memory': z.number() })

/** Memory that the guest reports as used, at most its memory. Undefined when it reports none, or nothing possible. */
export async function readMemoryUsed(qmp: Pick<Qmp, 'execute'>, now: Date): Promise<number | undefined> {
  const interval = { ...BALLOON, property: 'guest-stats-polling-interval', value: POLL_SECONDS }
  try {
    // QEMU ignores the value that it has already.
    await qmp.execute('qom-set', interval)
    const read = GuestStatistics.safeParse(await qmp.execute('qom-get', { ...BALLOON, property: 'guest-stats' }))
    const size = MemorySize.safeParse(await qmp.execute('query-memory-size-summary'))
    if (!read.success || !size.success) return undefined
    return memoryUsed(read.data, size.data['base-memory'], now)
  } catch {
    return undefined
  }
}

function memoryUsed({ stats, ...report }: z.infer<typeof GuestStatistics>, bytes: number, now: Date) {
  const [total, available] = [stats['stat-total-memory'], stats['stat-available-memory']]
  if (report['last-update'] < now.getTime() / 1_000 - STALE_SECONDS) return undefined
  if (!(total > 0 && total <= bytes && available >= 0 && available <= total)) return undefined
  return Math.floor(total - available)
}

/** Bytes and operations since the process started, and its processor time in milliseconds if the host reports it.
 *  Throws when QEMU does not answer. */
export async function readCounters(
  { pid, qmp }: { readonly pid: number; readonly qmp: Qmp },
  readTrafficOnce: () => Promise<readonly Traffic[]>,
  now: Date,
): Promise<GuestCounters> {
  // shape of QEMU's documented answer
  const devices = (await qmp.execute('query-blockstats')) as readonly BlockStatistics[]
  const sum = (field: keyof BlockStatistics['stats']) => devices.reduce((total, { stats }) => total + stats[field], 0)
  const cpuMilliseconds = await processCpuMilliseconds(pid)
  const memoryUsedBytes = await readMemoryUsed(qmp, now)
  const traffic = await readTrafficOnce()
  const sumOf = (field: keyof Traffic) => traffic.reduce((total, each) => total + each[field], 0)
  return {
    networkReceivedBytes: sumOf('receivedBytes'),
    networkTransmittedBytes: sumOf('transmittedBytes'),
    diskReadBytes: sum('rd_bytes'),
    diskWrittenBytes: sum('wr_bytes'),
    diskReadOperations: sum('rd_operations'),
    diskWriteOperations: sum('wr_operations'),
    ...defined({ cpuMilliseconds, memoryUsedBytes }),
  }
}

/** Bytes of each interface of the guest. Only one call at a time for a guest, because it records what it has counted.
 */
export async function readTraffic(name: string, folder: string, network: GuestNetwork): Promise<readonly Traffic[]> {
  const { interfaces = [] } = (await readGuestRecord(folder)) ?? {}
  return Promise.all(
    interfaces.map(async (each, position) => {
      const index = indexOf(each, position)
      if (isOvn(network)) return tapTraffic(network, name, index)
      if (each.slot !== undefined) return { receivedBytes: 0, transmittedBytes: 0 } // it is connected to nothing
      const bytesOf = (direction: 'received' | 'transmitted') => {
        const { file, countFile } = trafficFiles(index, direction)
        return countFrames({ file: join(folder, file), countFile: join(folder, countFile) })
      }
      return { receivedBytes: await bytesOf('received'), transmittedBytes: await bytesOf('transmitted') }
    }),
  )
}
