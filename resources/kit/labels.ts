/** Names that the platform puts on Kubernetes objects. */

export const ACCOUNT_LABEL = 'svccloud.dev/account'
export const SERVER_LABEL = 'svccloud.dev/server'
/** Which of its owner's machines a managed machine is. */
export const MACHINE_ROLE_LABEL = 'svccloud.dev/machine-role'
/** The newest accepted change that started no operation; shows that its write happened. */
export const LAST_CHANGE_ANNOTATION = 'svccloud.dev/last-change'
/** On a DevCluster: ids of credentials in kubeconfigs that have ended. It wakes its controller, which looks at rows. */
export const ENDED_KUBECONFIGS_ANNOTATION = 'svccloud.dev/ended-kubeconfigs'
/** The operation that the newest incarnation of an Instance was made for. */
export const OPERATION_ANNOTATION = 'svccloud.dev/operation'
/** Where the platform keeps what is its own, like the leases of the leaders. */
export const SYSTEM_NAMESPACE = 'svccloud-system'
