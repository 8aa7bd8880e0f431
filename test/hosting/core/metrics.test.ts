import { expect, test } from 'vitest'
import { openHostMetrics } from '../../../hosting/core/metrics.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'

const NOW = new Date('2026-03-01T12:00:00Z')

test('memory, reservations, the demand of another one and the earliest expiry are reported', async () => {
  let endsAt: Date | undefined
  const offer = {
    driver: 'process' as const,
    releases: [],
    memoryBytes: 10,
    reservedBytes: 4,
    bytesOfOne: 2,
    bytesOfThree: 3,
    nodeCount: 1,
    etcdBytes: 0,
    nodesObstacle: '',
    guests: { obstacle: '', bytesOfOne: 0, appDomain: '' },
  }
  const registry = openRegistry({ isProcessWide: false })
  const planes = { offer: async () => offer, certificatesEndAt: () => endsAt }
  openHostMetrics(registry, planes, { now: () => NOW })
  const lines = async () => (await registry.metrics()).split('\n').filter((line) => line.startsWith('svccloud_'))
  const memory = [
    'svccloud_control_planes_memory_bytes 10',
    'svccloud_control_planes_reserved_bytes 4',
    'svccloud_control_planes_next_bytes 2',
  ]
  expect(await lines()).toEqual(memory)
  endsAt = new Date('2026-03-01T12:01:00Z')
  expect(await lines()).toEqual([...memory, 'svccloud_control_planes_certificate_seconds 60'])
  offer.memoryBytes = 12
  expect(await lines()).toContain('svccloud_control_planes_next_bytes 3')
})
