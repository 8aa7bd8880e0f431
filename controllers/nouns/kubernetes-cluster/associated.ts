/** Objects that programs of a cluster created in its account, found by the labels that they set: volumes, their
 *  snapshots, and load balancers. They are deleted with the cluster when its deletion asks for that, except those that
 *  are protected or used elsewhere. */
import { CLUSTER_LABELS } from '../../../domain/kubernetes-cluster/rules.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import { type Key, keyOf, type KubeObject, type ResourceType } from '../../../kit/kube/object.ts'
import { LoadBalancer } from '../../../resources/load-balancer/index.ts'
import { Snapshot } from '../../../resources/snapshot/index.ts'
import { Storage } from '../../../resources/storage/index.ts'

export interface AssociatedObject {
  readonly type: ResourceType
  readonly key: Key
  readonly isDeleting: boolean
}

const INDEX = 'what a Kubernetes cluster made'
type LabeledObject = KubeObject<{ readonly labels: Readonly<Record<string, string>> }>
const clusterOf = ({ metadata: { namespace }, spec }: LabeledObject): readonly string[] => {
  const cluster = spec.labels[CLUSTER_LABELS.cluster]
  return cluster === undefined ? [] : [`${namespace}/${cluster}`]
}

export const ASSOCIATED_KINDS: readonly ResourceType[] = [LoadBalancer, Snapshot, Storage]

/** Finds it by the cluster's namespace and name. */
export function openAssociated({ caches }: { readonly caches: Caches }) {
  const [balancers, snapshots, storages] = [caches.of(LoadBalancer), caches.of(Snapshot), caches.of(Storage)]
  for (const cache of [balancers, snapshots, storages]) cache.addIndex(INDEX, clusterOf)
  return ({ namespace, name }: { readonly namespace: string; readonly name: string }): readonly AssociatedObject[] => {
    const at = `${namespace}/${name}`
    const isVolume = ({ spec }: LabeledObject) => spec.labels[CLUSTER_LABELS.volume] !== undefined
    const ownSnapshots = snapshots.by(INDEX, at).filter(isVolume)
    const isFree = ({ metadata }: KubeObject): boolean =>
      snapshots
        .list()
        .every(
          (each) =>
            each.metadata.namespace !== namespace ||
            each.spec.storageId !== metadata.name ||
            ownSnapshots.some((own) => own.metadata.uid === each.metadata.uid),
        )
    const ownStorages = storages
      .by(INDEX, at)
      .filter((each) => isVolume(each) && !each.spec.isProtected && each.spec.serverId === undefined && isFree(each))
    const ownBalancers = balancers
      .by(INDEX, at)
      .filter(({ spec }) => spec.labels[CLUSTER_LABELS.service] !== undefined && !spec.isProtected)
    const found = (type: ResourceType, objects: readonly KubeObject[]) =>
      objects.map((each) => ({ type, key: keyOf(each), isDeleting: each.metadata.deletionTimestamp !== undefined }))
    return [...found(LoadBalancer, ownBalancers), ...found(Snapshot, ownSnapshots), ...found(Storage, ownStorages)]
  }
}
