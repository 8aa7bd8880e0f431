/** What still reads the source that it is created from. */
import type { KubeObject } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import { activeOperationOf } from '../../resources/operation/index.ts'
import { Server, type ServerSpec, type ServerStatus } from '../../resources/server/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../resources/storage/index.ts'

type ServerObject = KubeObject<ServerSpec, ServerStatus>

/** Its boot storage is not created yet, or not replaced yet. */
function isServerBeingMade({ metadata, spec, status }: ServerObject): boolean {
  const kind = activeOperationOf({ spec, status })?.kind
  const isNew = status === undefined || (kind === 'server.create' && status.bootStorageId === undefined)
  return metadata.deletionTimestamp === undefined && (isNew || kind === 'server.rebuild')
}

export const isStorageBeingMade = ({
  metadata,
  status,
}: Pick<KubeObject<StorageSpec, StorageStatus>, 'metadata' | 'status'>): boolean =>
  metadata.deletionTimestamp === undefined && (status?.state ?? 'creating') === 'creating'

/** The servers and storages that are being created from the source, in words, according to Kubernetes itself: a cache
 *  may be behind. Without a namespace, those of all accounts. */
export async function creationsFrom(
  store: Store,
  { kind, id, namespace }: { readonly kind: 'image' | 'template'; readonly id: string; readonly namespace?: string },
): Promise<readonly string[]> {
  const selection = namespace === undefined ? {} : { namespace }
  const [servers, storages] = await Promise.all([store.list(Server, selection), store.list(Storage, selection)])
  const sourceOf = ({ template, customImageId }: ServerSpec) => (kind === 'image' ? customImageId : template)
  return [
    ...servers.items
      .filter((server) => sourceOf(server.spec) === id && isServerBeingMade(server))
      .map(({ metadata }) => `server ${metadata.name}`),
    ...storages.items
      .filter((storage) => {
        const { source } = storage.spec
        return source?.kind === kind && source.id === id && isStorageBeingMade(storage)
      })
      .map(({ metadata }) => `storage ${metadata.name}`),
  ]
}
