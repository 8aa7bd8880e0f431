/** THE list of what costs by the hour, one line for each. */
import { billedArchiveGibibytes } from '../../../domain/database/archive-room.ts'
import { billedBytes } from '../../../domain/billing/metered-bytes.ts'
import type { HourlyType } from '../../../domain/billing/units.ts'
import type { SeenResource } from '../../../db/billing/index.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import type { KubeObject, ResourceType } from '../../../kit/kube/object.ts'
import { Backup } from '../../../resources/backup/index.ts'
import { Plan } from '../../../resources/catalog/index.ts'
import { CustomImage } from '../../../resources/custom-image/index.ts'
import { Database } from '../../../resources/database/index.ts'
import { Edge } from '../../../resources/edge/index.ts'
import { FloatingIp } from '../../../resources/floating-ip/index.ts'
import { KubernetesCluster } from '../../../resources/kubernetes-cluster/index.ts'
import { LoadBalancer } from '../../../resources/load-balancer/index.ts'
import { ObjectStorage } from '../../../resources/object-storage/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { Snapshot } from '../../../resources/snapshot/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../../resources/storage/index.ts'

/** What an object is billed for. */
export interface BilledUse extends Pick<SeenResource, 'name'> {
  /** Its plan or tier, which has its own price; empty where there is none. */
  readonly plan?: string
  /** In units of the price; 1 when absent. */
  readonly quantity?: number
  /** It is charged for its maximum within the hour, from the start of the hour. */
  readonly isOfHour?: boolean
}

export interface Billable {
  /** Its name in usage and invoices. */
  readonly resourceType: HourlyType
  readonly kind: ResourceType
  /** Undefined while the object costs nothing. */
  readonly of: (object: KubeObject, caches: Caches, now: Date) => BilledUse | undefined
}

const billable = <Spec, Status>(
  resourceType: HourlyType,
  kind: ResourceType<Spec, Status>,
  of: (object: KubeObject<Spec, Status>, caches: Caches, now: Date) => BilledUse | undefined,
): Billable => ({ resourceType, kind, of: of as Billable['of'] }) // it is called with objects of `kind` only

const GIBIBYTE = 1024 ** 3

export const BILLABLES: readonly Billable[] = [
  billable('server', Server, ({ spec, status }) => ({ name: spec.hostname, plan: status?.plan ?? spec.plan })),
  billable('public_ipv4', Server, ({ status }) =>
    status?.publicIpv4 === undefined ? undefined : { name: status.publicIpv4 },
  ),
  billable('public_ipv4', LoadBalancer, ({ status }) =>
    status?.publicIpv4 === undefined ? undefined : { name: status.publicIpv4 },
  ),
  // In addition to their machines, which are servers: from the time their claims are granted.
  billable('edge', Edge, ({ spec, status }) => (status?.granted === undefined ? undefined : { name: spec.name })),
  billable('load_balancer', LoadBalancer, ({ spec, status }) =>
    status?.privateIpv4 === undefined ? undefined : { name: spec.name },
  ),
  // Its nodes are servers.
  billable('kubernetes_cluster', KubernetesCluster, ({ spec, status }) =>
    status?.isMade === true && status.isSimulated !== true ? { name: spec.name } : undefined,
  ),
  billable('floating_ip', FloatingIp, ({ spec, status }) => {
    const address = status?.address ?? spec.address
    return address === undefined ? undefined : { name: address }
  }),
  billable('storage', Storage, (storage, caches) =>
    bySize(
      storage,
      (storage.status?.sizeGibibytes ?? storage.spec.sizeGibibytes) - includedOf(storage, caches),
      storage.spec.tier,
    ),
  ),
  billable('snapshot', Snapshot, (snapshot) => bySize(snapshot, snapshot.status?.sizeGibibytes)),
  billable('object_storage', ObjectStorage, ({ spec, status }, _caches, now) => {
    const bytes = status?.metered === undefined ? (status?.usedBytes ?? 0) : billedBytes(status.metered, now)
    const quantity = Math.ceil(bytes / GIBIBYTE)
    return quantity === 0 ? undefined : { name: spec.zone, quantity, isOfHour: true }
  }),
  // The part of a database's archive above its allowance.
  billable('object_storage', Database, ({ spec, status }, _caches, now) => {
    const { archiveBytes = 0, archiveMetered } = status ?? {}
    const bytes = archiveMetered === undefined ? archiveBytes : billedBytes(archiveMetered, now)
    const quantity = billedArchiveGibibytes(bytes, spec.storageGibibytes)
    return quantity === 0 ? undefined : { name: `${spec.name} (archive)`, quantity, isOfHour: true }
  }),
  billable('backup', Backup, (backup) => bySize(backup, backup.status?.sizeGibibytes)),
  billable('custom_image', CustomImage, (image) =>
    bySize(image, image.status?.state === 'online' ? image.status.sizeGibibytes : undefined),
  ),
]

/** By the GiB; nothing while it has no size. */
const bySize = (
  { metadata, spec }: KubeObject<{ readonly title: string }>,
  gibibytes: number | undefined,
  plan = '',
): BilledUse | undefined =>
  gibibytes === undefined || gibibytes <= 0
    ? undefined
    : { name: spec.title === '' ? metadata.name : spec.title, plan, quantity: gibibytes }

/** The part of a boot storage that its server's plan includes; all of it when the server no longer exists. */
function includedOf({ metadata, spec }: KubeObject<StorageSpec, StorageStatus>, caches: Caches): number {
  if (!spec.isBoot || spec.serverId === undefined) return 0
  const server = caches.of(Server).get({ namespace: metadata.namespace ?? '', name: spec.serverId })
  const plan = server && caches.of(Plan).get({ name: server.status?.plan ?? server.spec.plan })
  return plan?.spec.storageGibibytes ?? Number.POSITIVE_INFINITY
}
