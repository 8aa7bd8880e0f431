/** Storages of tier standard that are on the disks of hosts although those hosts reach shared storage: when they were
 *  created, the zone had none, or the hosts did not reach it. */
import { listHeldOnHosts } from '../../../db/storage-hold/index.ts'
import type { Cache } from '../../../kit/kube/cache.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../../resources/storage/index.ts'
import { orUnavailable } from '../../kit/outage.ts'
import { readGuests, readStorages } from '../node/index.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import type { Parts } from '../../kit/parts.ts'
import { poolsOf } from '../../kit/shared-pools.ts'
import { GATHERER, GATHERED_AT_ONCE_MAXIMUM } from './gathering.ts'
import type { MisplacedData, Observed, StorageObject } from './observed.ts'

const ON_HOSTS = 'on hosts of a zone'

/** By zone: storages that may have to move to shared storage, and those that are moving there. */
export const indexMisplaced = (storages: Cache<StorageSpec, StorageStatus>): void =>
  storages.addIndex(ON_HOSTS, (storage) => (isOnHost(storage) || isGathered(storage) ? [storage.spec.zone] : []))

const isOnHost = ({ spec, status }: StorageObject): boolean =>
  spec.tier === 'standard' && status?.nodeName !== undefined && status.pool === undefined
const isGathered = (storage: StorageObject): boolean => activeOperation(storage)?.actor === GATHERER

/** Asks PostgreSQL only while there is something to start. */
export async function readMisplaced(parts: Parts, zone: string): Promise<Pick<Observed, 'misplaced' | 'gathered'>> {
  const storages = parts.caches.of(Storage).by(ON_HOSTS, zone)
  const gathered = storages.filter(isGathered).length
  const onHosts = Map.groupBy(storages.filter(isOnHost), ({ status }) => status?.nodeName ?? '')
  const nodes = [...onHosts.keys()].filter((node) => poolsOf(parts.caches, node).length > 0).sort()
  if (gathered >= GATHERED_AT_ONCE_MAXIMUM || nodes.length === 0) return { gathered }
  const found: MisplacedData[] = []
  for (const node of nodes) found.push(...(await readMisplacedOn(parts, node, onHosts.get(node) ?? [])))
  const accounts = [...new Set(found.map(({ accountId }) => accountId))]
  const held = await orUnavailable(listHeldOnHosts(parts.db, accounts))
  return { gathered, misplaced: found.filter((one) => !held.some((hold) => isOf(one, hold))) }
}

/** In groups: a server with its storages, or a storage without a server. */
async function readMisplacedOn(
  parts: Parts,
  node: string,
  onHost: readonly StorageObject[],
): Promise<readonly MisplacedData[]> {
  const of = (namespace: string, isIts: (storage: StorageObject) => boolean): readonly StorageObject[] =>
    onHost
      .filter((storage) => storage.metadata.namespace === namespace && isIts(storage))
      .sort((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1))
  const known = parts.caches.of(Node).get({ name: node })
  const isNodeBusy = known !== undefined && activeOperation(known) !== undefined
  const guests = (await readGuests(parts, node)).filter(({ isArriving }) => !isArriving)
  const detached = (await readStorages(parts, node)).filter(({ isArriving }) => !isArriving)
  return [
    ...guests.map((guest) => ({
      ...guest,
      node,
      isNodeBusy,
      storages: of(guest.namespace, isOfServer(guest.serverId)),
    })),
    ...detached.map(({ namespace, storageId, sizeGibibytes }) => ({
      node,
      isNodeBusy,
      namespace,
      accountId: accountOfNamespace(namespace) ?? '',
      storages: of(namespace, ({ metadata }) => metadata.name === storageId),
      room: { cores: 0, memoryMebibytes: 0, storageGibibytes: sizeGibibytes },
    })),
  ].filter(({ storages }) => storages.length > 0)
}

const isOfServer =
  (serverId: string) =>
  ({ spec, status }: StorageObject): boolean =>
    (spec.isBoot ? spec.serverId : status?.serverId) === serverId

const isOf = (
  { accountId, serverId, storages }: MisplacedData,
  hold: Awaited<ReturnType<typeof listHeldOnHosts>>[number],
): boolean =>
  accountId === hold.accountId &&
  (serverId === undefined
    ? storages.some(({ metadata }) => metadata.name === hold.storageId)
    : serverId === hold.serverId)
