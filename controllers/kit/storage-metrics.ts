/** Metrics of storages for operators: the storages of customers, by zone and tier, and the operations of storages under
 *  way. Only the leader of a shard knows them, for its own zones; every other replica reports nothing. */
import type { KubeObject } from '../../kit/kube/object.ts'
import { gaugesIn, Gauge, type Registry } from '../../kit/sys/metrics.ts'
import type { VolumeSpec, VolumeStatus } from '../../resources/instance/index.ts'
import type { StorageSpec, StorageStatus } from '../../resources/storage/index.ts'
import { activeOperation } from './operation/stanza.ts'

type StorageObject = KubeObject<StorageSpec, StorageStatus>
const BYTES_PER_GIBIBYTE = 1024 ** 3

export interface WatchedStorages {
  readonly storages: () => readonly StorageObject[]
  /** Disks on hosts. */
  readonly volumes: () => readonly KubeObject<VolumeSpec, VolumeStatus>[]
}

export function openStorageMetrics({ storages, volumes }: WatchedStorages, registry: Registry): void {
  const gauge = gaugesIn(registry)
  gauge(
    'svccloud_volumes_lost',
    'Disks that were on their host once and are there no longer',
    () => volumes().filter(({ status }) => status?.state === 'lost').length,
  )
  new Gauge({
    name: 'svccloud_storage_bytes',
    help: 'Size of the storages of customers, as sold, by zone and tier',
    labelNames: ['zone', 'tier'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { spec } of storages())
        this.inc({ zone: spec.zone, tier: spec.tier }, spec.sizeGibibytes * BYTES_PER_GIBIBYTE)
    },
  })
  new Gauge({
    name: 'svccloud_storage_operations',
    help: 'Operations of storages under way, by kind',
    labelNames: ['kind'],
    registers: [registry],
    collect() {
      this.reset()
      for (const storage of storages()) {
        const kind = activeOperation(storage)?.kind
        if (kind !== undefined) this.inc({ kind })
      }
    },
  })
  gauge(
    'svccloud_storage_moves_failed',
    'Storages whose newest operation is a move that failed',
    () => storages().filter(hasMoveFailed).length,
  )
}

const hasMoveFailed = ({ spec, status }: StorageObject): boolean => {
  const operation = status?.operation
  return operation?.kind === 'storage.move' && operation.id === spec.operation?.id && operation.status === 'failed'
}
