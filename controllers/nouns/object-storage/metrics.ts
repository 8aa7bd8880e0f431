/** Metrics of object storage for operators, whatever the backend. Only the leader of a shard knows them, for its own
 *  zones; every other replica reports 0. The front end itself reports its counts of requests. */
import type { KubeObject } from '../../../kit/kube/object.ts'
import { gaugesIn, type Registry } from '../../../kit/sys/metrics.ts'
import type { ObjectStorageSpec, ObjectStorageStatus } from '../../../resources/object-storage/index.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { MOVING, UNREACHABLE } from './plan.ts'

type ObjectStorageObject = KubeObject<ObjectStorageSpec, ObjectStorageStatus>
/** The share of the quota from which somebody should be notified. */
const NEARLY_FULL_SHARE = 0.9

export function openObjectStorageMetrics(storages: () => readonly ObjectStorageObject[], registry: Registry): void {
  const gauge = gaugesIn(registry)
  const count = (isCounted: (storage: ObjectStorageObject) => boolean) => storages().filter(isCounted).length
  gauge('svccloud_object_storage_unreachable', 'Object storages whose store does not answer the platform', () =>
    count((storage) => conditionOf(storage, 'Ready')?.reason === UNREACHABLE),
  )
  gauge('svccloud_object_storage_nearly_full', 'Object storages that hold nine tenths of their quota or more', () =>
    count(isNearlyFull),
  )
  gauge('svccloud_object_storage_moves_waiting', 'Moves to the gateway that a store keeps from going on', () =>
    count(isMoveWaiting),
  )
}

const conditionOf = ({ status }: ObjectStorageObject, wanted: string) =>
  status?.conditions?.find(({ type }) => type === wanted)

const isNearlyFull = ({ status: { usedBytes = 0, quotaBytes = 0 } = {} }: ObjectStorageObject): boolean =>
  usedBytes > 0 && usedBytes >= quotaBytes * NEARLY_FULL_SHARE

const isMoveWaiting = (storage: ObjectStorageObject): boolean =>
  activeOperation(storage)?.kind === 'object_storage.migrate' && conditionOf(storage, MOVING)?.status === 'False'
