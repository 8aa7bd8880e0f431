/** Secrets that two nodes share while the data of a detached storage is copied between them. */
import { type Key, Secret } from '../../../kit/kube/object.ts'
import { nodeNamespace, nodeOf } from '../../../resources/instance/index.ts'
import type { PlainAction } from '../../kit/effects.ts'
import type { StorageAction } from './actions.ts'
import { isTerminating, type StorageObject, uidOf, type VolumeObject } from './volumes.ts'

/** The Secret with the key that the agent of the node may read. */
export const transferKeyKey = (storage: StorageObject, node: string): Key => ({
  namespace: nodeNamespace(node),
  name: `copy-${uidOf(storage)}`,
})

/** Gives both nodes the same key, once the source is to serve the data and the target has a volume for it: through
 *  those two volumes the keys are found again, whatever happens to the copy. */
export const transferKeys = (
  storage: StorageObject,
  source: VolumeObject | undefined,
  target: VolumeObject | undefined,
): readonly StorageAction[] =>
  source === undefined ||
  target === undefined ||
  isTerminating(target) ||
  !isServing(storage, source) ||
  target.spec.source?.name !== source.spec.serve?.id
    ? []
    : [
        {
          do: 'effect',
          name: 'shareKey',
          input: { keys: [transferKeyKey(storage, nodeOf(source)), transferKeyKey(storage, nodeOf(target))] },
        },
      ]

const isServing = (storage: StorageObject, { spec: { serve } }: VolumeObject): boolean =>
  serve !== undefined && serve.secretName === `copy-${uidOf(storage)}`

/** Removes the keys of a copy that has ended. */
export const removeTransferKeys = (storage: StorageObject, nodes: readonly string[]): readonly PlainAction[] =>
  nodes.map((node) => ({ do: 'remove', type: Secret, key: transferKeyKey(storage, node) }))

/** Removes the keys that the nodes of these volumes may have. It has to come before any change of the volumes. */
export const removeKeysOf = (storage: StorageObject, volumes: readonly VolumeObject[]): readonly PlainAction[] =>
  storage.spec.isBoot
    ? []
    : removeTransferKeys(
        storage,
        volumes.filter((one) => one.spec.source?.kind === 'copy' || isServing(storage, one)).map(nodeOf),
      )

/** Removes the key of a node that is no longer to serve the data. */
export const removeServingKey = (
  storage: StorageObject,
  own: VolumeObject,
  serve: VolumeObject['spec']['serve'],
): readonly PlainAction[] =>
  serve?.secretName !== own.spec.serve?.secretName && isServing(storage, own) ? removeKeysOf(storage, [own]) : []
