/** Metrics of object storage for operators, whatever the backend. Only the leader of a shard knows them, for its own
 *  zones; every other replica reports 0. The front end itself reports its counts of requests. */
import type { KubeObject } from '../../../kit/kube/object.ts'
import { Gauge, type Registry } from '../../../kit/sys/metrics.ts'
import type { ObjectStorageSpec, ObjectStorageStatus } from '../../../resources/object-storage/index.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { MOVING, UNREACHABLE } from './plan.ts'

type ObjectStorageObject = KubeObject<ObjectStorageSpec, ObjectStorageStatus>
/** The share of the quota from which somebody should be notified. */
const NEARLY_FULL_SHARE = 0.9

export function openObjectStorageMetrics(storages: () => readonly ObjectStorageObject[], registry: Registry): void {
  const count = (isCounted: (storage: ObjectStorageObject) => boolean) => storages().filter(isCounted).length
  new Gauge({
    name: 'svccloud_object_storage_unreachable',
    help: 'Object storages whose store does not answer the platform',
    registers: [registry],
    collect() {
      this.set(count((storage) => conditionOf(storage, 'Ready')?.reason === UNREACHABLE))
    },
  })
  new Gauge({
    name: 'svccloud_object_storage_nearly_full',
    help: 'Object storages that hold nine tenths of their quota or more',
    registers: [registry],
    collect() {
      this.set(count(isNearlyFull))
    },
  })
  new Gauge({
    name: 'svccloud_object_storage_moves_waiting',
    help: 'Moves to the gateway that a store keeps from going on',
    registers: [registry],
    collect() {
      this.set(count(isMoveWaiting))
    },
  })
}

const conditionOf = ({ status }: ObjectStorageObject, wanted: string) =>
  status?.conditions?.find(({ type }) => type === wanted)

const isNearlyFull = ({ status: { usedBytes = 0, quotaBytes = 0 } = {} }: ObjectStorageObject): boolean =>
  usedBytes > 0 && usedBytes >= quotaBytes * NEARLY_FULL_SHARE

const isMoveWaiting = (storage: ObjectStorageObject): boolean =>
  activeOperation(storage)?.kind === 'object_storage.migrate' && conditionOf(storage, MOVING)?.status === 'False'
