/** Resource usage of a guest since its process started. QEMU counts the disks, the host counts the network. */
import { join } from 'node:path'
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

/** Bytes and operations since the process started, and its processor time in milliseconds if the host reports it.
 *  Throws when QEMU does not answer. */
export async function readCounters(
  { pid, qmp }: { readonly pid: number; readonly qmp: Qmp },
  readTrafficOnce: () => Promise<readonly Traffic[]>,
): Promise<GuestCounters> {
  // shape of QEMU's documented answer
  const devices = (await qmp.execute('query-blockstats')) as readonly BlockStatistics[]
  const sum = (field: keyof BlockStatistics['stats']) => devices.reduce((total, { stats }) => total + stats[field], 0)
  const cpuMilliseconds = await processCpuMilliseconds(pid)
  const traffic = await readTrafficOnce()
  const sumOf = (field: keyof Traffic) => traffic.reduce((total, each) => total + each[field], 0)
  return {
    networkReceivedBytes: sumOf('receivedBytes'),
    networkTransmittedBytes: sumOf('transmittedBytes'),
    diskReadBytes: sum('rd_bytes'),
    diskWrittenBytes: sum('wr_bytes'),
    diskReadOperations: sum('rd_operations'),
    diskWriteOperations: sum('wr_operations'),
    ...defined({ cpuMilliseconds }),
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
