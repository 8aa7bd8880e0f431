/** Which nouns have claims, and what must be gone before those are released. */
import { listQuotaHolders } from '../../../db/account/index.ts'
import type { QuotaHolder, RowNounName } from '../../../domain/account/quota.ts'
import { releaseCustomImage } from '../../../db/custom-image/index.ts'
import { releaseFloatingIp } from '../../../db/floating-ip/index.ts'
import { listZonedRows, releaseNetwork } from '../../../db/network/index.ts'
import type { Database } from '../../../db/kit/open.ts'
import { releaseRouter } from '../../../db/router/index.ts'
import { listServersWithClaims, releaseServer } from '../../../db/server/index.ts'
import { deleteStorageClaim, listStoragesWithClaims } from '../../../db/storage/index.ts'
import type { Tables } from '../../../db/tables.ts'
import type { Transaction } from 'kysely'
import type { Key, KubeObject, ResourceType } from '../../../kit/kube/object.ts'
import { Backup } from '../../../resources/backup/index.ts'
import { CustomImage } from '../../../resources/custom-image/index.ts'
import { Database as DatabaseResource } from '../../../resources/database/index.ts'
import { DevCluster } from '../../../resources/dev-cluster/index.ts'
import { Edge } from '../../../resources/edge/index.ts'
import { FloatingIp } from '../../../resources/floating-ip/index.ts'
import { Image, Instance, NodeReport, UNCLAIMED_NAMED_MAXIMUM, Volume } from '../../../resources/instance/index.ts'
import { KubernetesCluster } from '../../../resources/kubernetes-cluster/index.ts'
import { LoadBalancer } from '../../../resources/load-balancer/index.ts'
import { Network } from '../../../resources/network/index.ts'
import { NodePool } from '../../../resources/node-pool/index.ts'
import { Playground } from '../../../resources/playground/index.ts'
import { Router } from '../../../resources/router/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { ServerGroup } from '../../../resources/server-group/index.ts'
import { Snapshot } from '../../../resources/snapshot/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { removeWebhook } from '../../../db/webhook/index.ts'
import { Webhook } from '../../../resources/webhook/index.ts'
import type { Parts } from '../../kit/parts.ts'

/** The object of a claim is written long before the claim has this age, or never: then its intent was settled. */
const CLAIM_AGE_MILLISECONDS = 600_000

export interface Claimant {
  readonly accountId: string
  /** The zone whose shard sweeps it; a claimant without a zone is common work. */
  readonly zone?: string
  readonly name: string
}

export interface ClaimantKind {
  readonly type: ResourceType
  readonly list: (db: Database, now: Date) => Promise<readonly Claimant[]>
  /** Idempotent. Absent for nouns with more than rows here: only their controller releases those. */
  readonly release?: (tx: Transaction<Tables>, claimant: Claimant) => Promise<void>
  /** When absent, hosts hold nothing of it. */
  readonly isOnHost?: (caches: Parts['caches'], key: Key) => boolean
  /** A host reports a guest of it that no object names, or so many that its report leaves some out: then it may be any.
   *  It counts as missing, and keeps its claims whatever an operator decides: the guest uses its addresses. */
  readonly hasUnnamedGuest?: (caches: Parts['caches'], key: Key) => boolean
}

const isOnHost =
  <Spec, Status>(type: ResourceType<Spec, Status>, ownerOf: (child: KubeObject<Spec, Status>) => Key) =>
  (caches: Parts['caches'], { namespace, name }: Key): boolean =>
    caches
      .of(type)
      .list()
      .map(ownerOf)
      .some((owner) => owner.namespace === namespace && owner.name === name)

const listZoned =
  (table: Parameters<typeof listZonedRows>[1]): ClaimantKind['list'] =>
  async (db) =>
    (await listZonedRows(db, table)).map(({ id: name, ...of }) => ({ ...of, name }))

const listHolders =
  (noun: QuotaHolder): ClaimantKind['list'] =>
  async (db) =>
    (await listQuotaHolders(db, noun)).map(({ accountId, id: name }) => ({ accountId, name }))

const before = (now: Date): Date => new Date(now.getTime() - CLAIM_AGE_MILLISECONDS)

/** In the order of release: the contents of a network keep it claimed. A noun that holds quota and has objects does not
 *  compile when it is missing here. */
const CLAIMANTS: Readonly<Record<Exclude<QuotaHolder, RowNounName>, ClaimantKind>> = {
  server: {
    type: Server,
    list: async (db, now) =>
      (await listServersWithClaims(db, before(now))).map(({ serverId: name, ...of }) => ({ ...of, name })),
    release: (tx, { accountId, name: serverId }) => releaseServer(tx, { accountId, serverId }),
    isOnHost: isOnHost(Instance, ({ spec }) => spec.server),
    hasUnnamedGuest: (caches, { namespace, name }) =>
      caches
        .of(NodeReport)
        .list()
        .map(({ status }) => status?.unnamed ?? [])
        .some(
          (unnamed) =>
            unnamed.length >= UNCLAIMED_NAMED_MAXIMUM ||
            unnamed.some(({ server }) => server?.namespace === namespace && server?.name === name),
        ),
  },
  storage: {
    type: Storage,
    list: async (db, now) =>
      (await listStoragesWithClaims(db, before(now))).map(({ accountId, storageId: name }) => ({ accountId, name })),
    release: (tx, { accountId, name: storageId }) => deleteStorageClaim(tx, { accountId, storageId }),
    isOnHost: isOnHost(Volume, ({ spec }) => spec.storage),
  },
  custom_image: {
    type: CustomImage,
    list: listHolders('custom_image'),
    release: (tx, { accountId, name: imageId }) => releaseCustomImage(tx, { accountId, imageId }),
    isOnHost: isOnHost(Image, ({ spec }) => spec.image),
  },
  floating_ip: {
    type: FloatingIp,
    list: listZoned('floating_ip'),
    release: (tx, { accountId, name: floatingIpId }) => releaseFloatingIp(tx, { accountId, floatingIpId }),
  },
  router: {
    type: Router,
    list: listZoned('router'),
    release: (tx, { accountId, name: routerId }) => releaseRouter(tx, { accountId, routerId }),
  },
  network: {
    type: Network,
    list: listZoned('network'),
    release: (tx, { accountId, name: networkId }) => releaseNetwork(tx, { accountId, networkId }),
  },
  snapshot: { type: Snapshot, list: listHolders('snapshot') },
  backup: { type: Backup, list: listHolders('backup') },
  load_balancer: { type: LoadBalancer, list: listHolders('load_balancer') },
  edge: { type: Edge, list: listHolders('edge') },
  database: { type: DatabaseResource, list: listHolders('database') },
  kubernetes_cluster: { type: KubernetesCluster, list: listHolders('kubernetes_cluster') },
  node_pool: { type: NodePool, list: listHolders('node_pool') },
  dev_cluster: { type: DevCluster, list: listHolders('dev_cluster') },
  playground: { type: Playground, list: listHolders('playground') },
  server_group: { type: ServerGroup, list: listHolders('server_group') },
  webhook: {
    type: Webhook,
    list: listHolders('webhook'),
    release: (tx, { accountId, name: webhookId }) => removeWebhook(tx, { accountId, webhookId }),
  },
}

/** The kind of a holder by its name in claims, as in `server/<id>`; undefined for one without objects. */
export function kindOfHolder(holder: string): ClaimantKind | undefined {
  const noun = holder.slice(0, holder.indexOf('/'))
  return Object.entries(CLAIMANTS).find(([key]) => key === noun)?.[1]
}

export const CLAIMANT_KINDS: readonly ClaimantKind[] = Object.values(CLAIMANTS)
