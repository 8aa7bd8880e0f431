/** Metrics of managed databases for operators, by zone where it helps. Only the leader of a shard knows them, for its
 *  own zones; every other replica reports 0. The content of a database is visible to its owner only. */
import { archiveRoomOf } from '../../../domain/database/archive-room.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { gaugesIn, Gauge, type Registry } from '../../../kit/sys/metrics.ts'
import type { DatabaseSpec, DatabaseStatus } from '../../../resources/database/index.ts'

type DatabaseObject = KubeObject<DatabaseSpec, DatabaseStatus>

export function openDatabaseMetrics(
  databases: () => readonly DatabaseObject[],
  registry: Registry,
  clock: Pick<Clock, 'now'>,
): void {
  const gauge = gaugesIn(registry)
  const existing = () => databases().filter(({ status }) => status?.isMade === true)
  const secondsTo = (text: string) => (Date.parse(text) - clock.now().getTime()) / 1_000
  gauge(
    'svccloud_databases_unhealthy',
    'Databases whose machine does not run PostgreSQL as configured',
    // The owner must repair what the owner did to the credentials.
    () => existing().filter(({ status }) => status?.isHealthy !== true && status?.hasStaleCredentials !== true).length,
  )
  gauge(
    'svccloud_databases_archive_failing',
    'Databases that cannot be restored to now: their archive fails, or they have none',
    () => existing().filter(({ status }) => isArchiveFailing(status)).length,
  )
  gauge(
    'svccloud_databases_archive_nearly_full',
    'Databases whose archive holds nine tenths of what it may, or more',
    () => existing().filter(isArchiveNearlyFull).length,
  )
  gauge(
    'svccloud_databases_archive_paused',
    'Databases whose archiving is paused, or has no full backup yet since it was',
    () => existing().filter(({ status }) => status?.backups?.pause !== undefined).length,
  )
  gauge(
    'svccloud_databases_archive_lag_seconds',
    'Of the database that is furthest behind: since the last moment that it can be restored to',
    () => Math.max(0, ...present(existing(), ({ status }) => -secondsTo(status?.backups?.latestAt ?? ''))),
  )
  new Gauge({
    name: 'svccloud_databases_certificate_seconds',
    help: 'Until the first certificate of a database expires; absent without any',
    labelNames: ['zone'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [zone, seconds] of soonest(existing(), secondsTo)) this.set({ zone }, seconds)
    },
  })
  new Gauge({
    name: 'svccloud_databases',
    help: 'Databases by zone',
    labelNames: ['zone'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { spec } of databases()) this.inc({ zone: spec.zone })
    },
  })
}

/** The values that are read of each, without those that have none. */
const present = (databases: readonly DatabaseObject[], read: (database: DatabaseObject) => number): readonly number[] =>
  databases.map(read).filter((value) => !Number.isNaN(value))

const isArchiveNearlyFull = ({ spec, status }: DatabaseObject): boolean =>
  ['nearly_full', 'full'].includes(archiveRoomOf(status?.archiveBytes ?? 0, spec.storageGibibytes))

const isArchiveFailing = (status: DatabaseStatus | undefined): boolean =>
  (status?.archiveObstacle ?? '') !== '' || (status?.backups?.failure ?? '') !== ''

function soonest(
  databases: readonly DatabaseObject[],
  secondsTo: (text: string) => number,
): ReadonlyMap<string, number> {
  const byZone = new Map<string, number>()
  for (const { spec, status } of databases) {
    const seconds = secondsTo(status?.certificateExpiresAt ?? '')
    if (!Number.isNaN(seconds)) byZone.set(spec.zone, Math.min(seconds, byZone.get(spec.zone) ?? seconds))
  }
  return byZone
}
