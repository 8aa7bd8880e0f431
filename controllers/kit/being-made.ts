/** Whether a server still reads what it is made from. */
import type { KubeObject } from '../../kit/kube/object.ts'
import { activeOperationOf } from '../../resources/operation/index.ts'
import type { ServerSpec, ServerStatus } from '../../resources/server/index.ts'

/** Its boot storage is not made yet, or not exchanged. */
export function isBeingMade({ metadata, spec, status }: KubeObject<ServerSpec, ServerStatus>): boolean {
  const kind = activeOperationOf({ spec, status })?.kind
  const isNew = status === undefined || (kind === 'server.create' && status.bootStorageId === undefined)
  return metadata.deletionTimestamp === undefined && (isNew || kind === 'server.rebuild')
}
