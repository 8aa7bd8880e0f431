/** Which nodes of a zone reach its store of backups, by their own reports. */
import { isReachableState } from '../../domain/node/rules.ts'
import type { Caches } from '../../kit/kube/caches.ts'
import {
  BACKUPS_FEATURE,
  backupSourceFeature,
  backupSourcesOf,
  OBJECT_BACKUPS_FEATURE,
  VAULT_FEATURE,
} from '../../resources/backup-job/index.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { NODE_REPORT_NAME, nodeNamespace, NodeReport } from '../../resources/instance/index.ts'
import { Node } from '../../resources/node/index.ts'

const featuresOf = (caches: Caches, node: string): readonly string[] =>
  caches.of(NodeReport).get({ namespace: nodeNamespace(node), name: NODE_REPORT_NAME })?.spec.features ?? []

const has = (caches: Caches, node: string, feature: string): boolean =>
  isReachableState(caches.of(Node).get({ name: node })?.status?.state) && featuresOf(caches, node).includes(feature)

/** Sorted by name, so that the first stays the same. With `source`, those that reach the store of that zone too. */
export const backupHosts = (caches: Caches, zone: string | undefined, source?: string): readonly string[] =>
  caches
    .of(Node)
    .list()
    .filter(({ metadata, spec }) => spec.zone === zone && has(caches, metadata.name, BACKUPS_FEATURE))
    .filter(({ metadata }) => source === undefined || has(caches, metadata.name, backupSourceFeature(source)))
    .map(({ metadata }) => metadata.name)
    .sort()

/** Those backup hosts that can use the zone's object storage. */
export const objectBackupHosts = (caches: Caches, zone: string | undefined): readonly string[] =>
  backupHosts(caches, zone).filter((node) => has(caches, node, OBJECT_BACKUPS_FEATURE))

/** Other zones whose backups a host of the zone can copy: those whose store the host's operator has configured, and
 *  those of the region where every new backup is written to object storage, which every host that can use its own can
 *  reach. */
export function copySourcesOf(
  caches: Caches,
  {
    zone,
    region,
    hasObjectStorage,
  }: {
    readonly zone: string
    readonly region: string
    readonly hasObjectStorage: (zone: string) => boolean
  },
): readonly string[] {
  const named = backupHosts(caches, zone).flatMap((node) => backupSourcesOf(featuresOf(caches, node)))
  const isKeptThere = (other: string) => {
    const hosts = backupHosts(caches, other)
    return hasObjectStorage(other) && hosts.length > 0 && hosts.every((host) => isObjectStorageChosen(caches, host))
  }
  const others = caches
    .of(Zone)
    .list()
    .filter(({ metadata, spec }) => metadata.name !== zone && spec.region === region)
    .map(({ metadata }) => metadata.name)
  const reached = objectBackupHosts(caches, zone).length === 0 ? [] : others.filter(isKeptThere)
  return [...new Set([...named, ...reached])].sort()
}

/** Whether a new backup of the host is written to object storage: its operator chose no bucket, the zone has object
 *  storage, and the host can use it. A bucket that the operator chose comes first; without either, the backup is
 *  written to the host's own store. */
export const isObjectStorageChosen = (caches: Caches, node: string): boolean =>
  has(caches, node, OBJECT_BACKUPS_FEATURE) && !has(caches, node, VAULT_FEATURE)
