import { describe, expect, it } from 'vitest'
import type { Guest, GuestCounters } from '../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { openGuestUsage } from '../../../agents/node/usage.ts'
import { systemClock } from '../../../kit/sys/clock.ts'

const guest = (incarnation: number): Guest => ({
  name: 'web',
  uid: 'u',
  incarnation,
  state: 'running',
  isResponsive: true,
  startedAt: '2026-01-01T00:00:00Z',
  forwards: [],
  disks: [],
  interfaces: [],
})
const counted = (diskReadBytes: number): GuestCounters => ({
  diskReadBytes,
  diskWrittenBytes: 1,
  diskReadOperations: 2,
  diskWriteOperations: 3,
  networkTransmittedBytes: 4,
})

function open() {
  const host = {
    guest: undefined as Guest | undefined,
    counters: undefined as GuestCounters | undefined,
    milliseconds: 0,
  }
  const usage = openGuestUsage({
    hypervisor: {
      list: async () => (host.guest === undefined ? [] : [host.guest]),
      inspect: async () => host.guest,
      counters: async () => host.counters,
    },
    clock: { ...systemClock, monotonicMilliseconds: () => host.milliseconds },
  })
  return { host, usage }
}

describe('usage of a host', () => {
  it('is what each guest has transferred since its process started', async () => {
    const { host, usage } = open()
    host.guest = guest(1)
    host.counters = counted(7)
    expect(await usage.list()).toEqual([
      {
        instance: 'web',
        epoch: 'u/1/2026-01-01T00:00:00Z',
        counters: {
          networkReceivedBytes: 0,
          networkTransmittedBytes: 4,
          diskReadBytes: 7,
          diskWrittenBytes: 1,
          diskReadOperations: 2,
          diskWriteOperations: 3,
        },
        load: { cpuMilliseconds: null, memoryUsedBytes: null },
      },
    ])
    host.counters = { ...counted(7), cpuMilliseconds: 12, memoryUsedBytes: 34 }
    expect((await usage.list())[0]?.load).toEqual({ cpuMilliseconds: 12, memoryUsedBytes: 34 })
  })

  it('keeps the last reading of a guest that ended until it has surely been asked for', async () => {
    const { host, usage } = open()
    host.guest = guest(1)
    host.counters = counted(7)
    await usage.takeReading('web')
    host.guest = guest(2)
    host.counters = counted(1)
    expect((await usage.list()).map(({ epoch, counters }) => [epoch, counters.diskReadBytes])).toEqual([
      ['u/1/2026-01-01T00:00:00Z', 7],
      ['u/2/2026-01-01T00:00:00Z', 1],
    ])
    host.milliseconds = 700_000
    expect((await usage.list()).map(({ epoch }) => epoch)).toEqual(['u/2/2026-01-01T00:00:00Z'])
  })

  it('leaves out a guest that cannot be read', async () => {
    const { host, usage } = open()
    host.guest = guest(1)
    expect(await usage.list()).toEqual([])
  })
})
