import { expect, test } from 'vitest'
import { openDatabaseMetrics } from '../../../../controllers/nouns/database/index.ts'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import { openRegistry } from '../../../../kit/sys/metrics.ts'
import { Database, type DatabaseSpec, type DatabaseStatus } from '../../../../resources/database/index.ts'

const NOW = new Date('2026-03-01T12:00:00Z')
const database = (zone: string, status: Partial<DatabaseStatus>): KubeObject<DatabaseSpec, DatabaseStatus> => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Database',
  metadata: { name: 'd', namespace: 'a' },
  spec: Database.spec.parse({ zone, name: 'd', networkId: 'n', databaseName: 'shop', ownerName: 'shop' }),
  status: { isMade: true, isHealthy: true, ...status },
})
const backups = { isOpen: true, failure: '', observedAt: NOW.toISOString(), gaps: [], backups: [] }

test('failures, delays and expiries are reported, for databases that have run', async () => {
  const databases: KubeObject<DatabaseSpec, DatabaseStatus>[] = []
  const registry = openRegistry({ isProcessWide: false })
  openDatabaseMetrics(() => databases, registry, { now: () => NOW })
  const lines = async () =>
    (await registry.metrics()).split('\n').filter((line) => line.startsWith('svccloud_') && !line.endsWith(' 0'))
  expect(await lines()).toEqual([])
  databases.push(
    database('z1', { backups: { ...backups, latestAt: '2026-03-01T11:59:00Z' } }),
    database('z1', { certificateExpiresAt: '2026-03-02T12:00:00Z', isHealthy: false }),
    database('z1', { certificateExpiresAt: '2026-03-03T12:00:00Z', archiveObstacle: 'no object storage' }),
    database('z2', {
      certificateExpiresAt: '2026-03-01T13:00:00Z',
      backups: { ...backups, failure: 'no answer', latestAt: '2026-03-01T11:00:00Z' },
    }),
    database('z2', { backups: { ...backups, pause: { state: 'resuming', reason: 'archive_full', since: '' } } }),
    database('z2', { archiveBytes: 75 * 1024 ** 3 }),
    database('z2', { isMade: false, isHealthy: false, certificateExpiresAt: '2026-03-01T12:00:01Z' }),
  )
  expect(await lines()).toEqual([
    'svccloud_databases_unhealthy 1',
    'svccloud_databases_archive_failing 2',
    'svccloud_databases_archive_nearly_full 1',
    'svccloud_databases_archive_paused 1',
    'svccloud_databases_archive_lag_seconds 3600',
    'svccloud_databases_certificate_seconds{zone="z1"} 86400',
    'svccloud_databases_certificate_seconds{zone="z2"} 3600',
    'svccloud_databases{zone="z1"} 3',
    'svccloud_databases{zone="z2"} 4',
  ])
})
