import { expect, test } from 'vitest'
import { openStorageMetrics } from '../../../controllers/kit/storage-metrics.ts'
import type { StorageObject } from '../../../controllers/nouns/storage/volumes.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import type { StorageSpec } from '../../../resources/storage/index.ts'

const move = {
  id: 'op-1',
  kind: 'storage.move',
  requestedAt: '2026-01-01T00:00:00Z',
  deadlineAt: '2026-01-01T01:00:00Z',
  actor: 'operator',
  requestId: 'r',
} as const
const storage = (tier: StorageSpec['tier'], sizeGibibytes: number, status?: 'running' | 'failed'): StorageObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Storage',
  metadata: { name: 's', namespace: 'a' },
  spec: {
    zone: 'z1',
    title: '',
    sizeGibibytes,
    tier,
    isBoot: false,
    labels: {},
    isProtected: false,
    ...(status === undefined ? {} : { operation: move }),
  },
  status: {
    state: 'online',
    ...(status === undefined
      ? {}
      : {
          operation: {
            ...move,
            status,
            step: 'brought',
            stepIndex: 1,
            stepCount: 3,
            error: '',
            createdAt: move.requestedAt,
          },
        }),
  },
})

test('storages are counted by zone and tier, with the operations on them', async () => {
  const storages: StorageObject[] = []
  const registry = openRegistry({ isProcessWide: false })
  const volumes = [{ status: { state: 'ready' } }, { status: { state: 'lost' } }]
  openStorageMetrics({ storages: () => storages, volumes: () => volumes as never }, registry) // what is looked at
  const lines = async () =>
    (await registry.metrics()).split('\n').filter((line) => line.startsWith('svccloud_') && !line.endsWith(' 0'))
  expect(await lines()).toEqual(['svccloud_volumes_lost 1'])
  volumes.length = 1
  expect(await lines()).toEqual([])
  storages.push(storage('standard', 1), storage('standard', 2, 'running'), storage('local-nvme', 1, 'failed'))
  expect(await lines()).toEqual([
    'svccloud_storage_bytes{zone="z1",tier="standard"} 3221225472',
    'svccloud_storage_bytes{zone="z1",tier="local-nvme"} 1073741824',
    'svccloud_storage_operations{kind="storage.move"} 1',
    'svccloud_storage_moves_failed 1',
  ])
  storages.length = 0
  expect(await lines()).toEqual([])
})
