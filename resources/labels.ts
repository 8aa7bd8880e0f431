/** Names that the platform puts on Kubernetes objects. */

export const ACCOUNT_LABEL = 'svccloud.dev/account'
export const SERVER_LABEL = 'svccloud.dev/server'
/** Keeps a server until its host side and its claims are gone. */
export const SERVER_FINALIZER = 'svccloud.dev/server'
/** The newest accepted change that started no operation; shows that its write happened. */
export const LAST_CHANGE_ANNOTATION = 'svccloud.dev/last-change'
/** Keeps a server group while it has servers. */
export const SERVER_GROUP_FINALIZER = 'svccloud.dev/server-group'
export const STORAGE_FINALIZER = 'svccloud.dev/storage'
export const NODE_FINALIZER = 'svccloud.dev/node'
/** Keeps a pool while somebody has an address of it. */
export const PUBLIC_POOL_FINALIZER = 'svccloud.dev/public-pool'
/** The operation that the newest incarnation of an Instance was made for. */
export const OPERATION_ANNOTATION = 'svccloud.dev/operation'
/** Where the platform keeps what is its own, like the leases of the leaders. */
export const SYSTEM_NAMESPACE = 'svccloud-system'
