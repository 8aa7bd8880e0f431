import { expect, test } from 'vitest'
import type { Guest, GuestCounters } from '../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { openServerMetrics, SERVERS_MAXIMUM } from '../../../agents/node/server-metrics.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import type { InstanceSpec } from '../../../resources/instance/index.ts'

const ACCOUNT = '11111111-0000-4000-8000-000000000001'
const COUNTERS: GuestCounters = {
  diskReadBytes: 10,
  diskWrittenBytes: 20,
  diskReadOperations: 1,
  diskWriteOperations: 2,
  cpuMilliseconds: 1_500,
  networkReceivedBytes: 30,
  networkTransmittedBytes: 40,
}
const guest = (name: string, state: Guest['state'] = 'running') => ({ name, state }) as Guest // what is read of it
const specOf = (name: string) =>
  ({ server: { namespace: `acct-${ACCOUNT}`, name }, cores: 2, memoryMebibytes: 256 }) as InstanceSpec // as above

function read(guests: readonly Guest[], counters: (name: string) => Promise<GuestCounters | undefined>) {
  const registry = openRegistry({ isProcessWide: false })
  openServerMetrics({ registry, hypervisor: { list: async () => guests, counters }, specOf })
  return registry
}

test('a guest that runs has its series, by account and server; its counters are shown as they are', async () => {
  const registry = read([guest('web'), guest('off', 'off')], async () => COUNTERS)
  const text = await registry.metrics()
  expect(await registry.metrics()).toBe(text)
  const labels = `{account="${ACCOUNT}",server="web"}`
  for (const line of [
    `svccloud_server_cpu_seconds_total${labels} 1.5`,
    `svccloud_server_cpu_cores${labels} 2`,
    `svccloud_server_memory_bytes${labels} 268435456`,
    `svccloud_server_disk_read_bytes_total${labels} 10`,
    `svccloud_server_disk_written_bytes_total${labels} 20`,
    `svccloud_server_network_received_bytes_total${labels} 30`,
    `svccloud_server_network_transmitted_bytes_total${labels} 40`,
  ])
    expect(text).toContain(line)
  expect(text).not.toContain('server="off"')
})

test('a guest that does not answer is left out, and there are so many at most', async () => {
  const guests = Array.from({ length: SERVERS_MAXIMUM + 5 }, (_each, index) => guest(`s${index}`))
  const text = await read(guests, async (name) => {
    if (name === 's0') throw new Error('gone')
    return COUNTERS
  }).metrics()
  expect(text).not.toContain('server="s0"')
  expect(text.match(/^svccloud_server_memory_bytes\{/gm)).toHaveLength(SERVERS_MAXIMUM - 1)
})
