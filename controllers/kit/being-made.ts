/** Whether a server still reads the source that it is created from. */
import type { KubeObject } from '../../kit/kube/object.ts'
import { activeOperationOf } from '../../resources/operation/index.ts'
import type { ServerSpec, ServerStatus } from '../../resources/server/index.ts'

/** Its boot storage is not created yet, or not replaced yet. */
export function isBeingMade({ metadata, spec, status }: KubeObject<ServerSpec, ServerStatus>): boolean {
  const kind = activeOperationOf({ spec, status })?.kind
  const isNew = status === undefined || (kind === 'server.create' && status.bootStorageId === undefined)
  return metadata.deletionTimestamp === undefined && (isNew || kind === 'server.rebuild')
}
